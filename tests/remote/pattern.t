#!/usr/bin/env python3
"""The reads of a real boot, again: how much of the image an HTTP and an NBD server has to send for them."""

import os
import random
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from faultserver import FaultServer
from patterns import live_boot
from servers import io
from tap import Tap

folder = tempfile.mkdtemp(prefix="spindle-pattern-")
SIZE = 70 * 1000 * 1000
READS = live_boot()
COVERED = len({s for first, n in READS for s in range(first, first + n)}) * 2048


def script():
    return ["read -q %d %d" % (first * 2048, n * 2048) for first, n in READS if (first + n) * 2048 <= SIZE]


def test_http(tap):
    server = FaultServer(random.Random(5).randbytes(SIZE))
    text = io("-r", "-f", "raw", server.url(), script=script(), timeout=100)
    tap.ok(not text, "http: all reads of the recording", text)
    tap.ok(server.sent < 1.5 * COVERED, "http: the server sends less than 1.5 times what is read",
           "%.2f times" % (server.sent / COVERED))
    tap.ok(len(server.requests) < len(READS), "http: in fewer requests than there are reads", len(server.requests), len(READS))
    server.stop()


def test_nbd(tap):
    path = os.path.join(folder, "disc")
    with open(path, "wb") as f:
        f.truncate(SIZE)
    server = servers.nbdkit(folder, "--filter=stats", "file", path, "statsfile=" + path + ".stats")
    text = io("-r", "-f", "raw", "nbd:unix:" + server.path, script=script(), timeout=100)
    tap.ok(not text, "nbd: all reads of the recording", text)
    server.process.terminate()
    server.process.wait()
    with open(path + ".stats") as f:
        found = re.search(r"read: \d+ ops, [\d.]+ s, ([\d.]+) (\w+),", f.read())
    sent = float(found.group(1)) * {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}[found.group(2)]
    tap.ok(COVERED * 0.8 < sent < 1.5 * COVERED, "nbd: the server sends less than 1.5 times what is read", "%.2f times" % (sent / COVERED))


with Tap() as tap:
    try:
        for test in [v for k, v in list(globals().items()) if k.startswith("test_")]:
            test(tap)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
