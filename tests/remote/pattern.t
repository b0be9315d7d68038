#!/usr/bin/env python3
"""The reads of a real boot and of a real installation, again: how much of the image an HTTP and an NBD server has to send for
them."""

import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from faultserver import FaultServer
from patterns import Places, recording
from servers import io
from tap import Tap

folder = tempfile.mkdtemp(prefix="spindle-pattern-")
UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20}


class Reads:
    """A recording, on an image that ends with the last of them; `requests` for each of them at most."""

    def __init__(self, name, requests):
        self.name, self.requests = name, requests
        self.list = [(first, count) for first, count, _ in recording(name)]
        self.size = max(first + count for first, count in self.list) * 2048
        self.covered = len({s for first, count in self.list for s in range(first, first + count)}) * 2048

    def script(self):
        return ["read -q %d %d" % (first * 2048, count * 2048) for first, count in self.list]


def by_http(tap, reads):
    server = FaultServer(Places(reads.size))
    text = io("-r", "-f", "raw", server.url(), script=reads.script(), timeout=100)
    tap.ok(not text, "%s, http: all reads of the recording" % reads.name, text)
    tap.ok(server.sent < 1.5 * reads.covered, "%s, http: the server sends less than 1.5 times what is read" % reads.name,
           "%.2f times" % (server.sent / reads.covered))
    tap.ok(len(server.requests) < len(reads.list) * reads.requests, "%s, http: in %g times as many requests as there are reads at most" %
           (reads.name, reads.requests), len(server.requests), len(reads.list))
    tap.note("%.2f times, %d requests for %d reads" % (server.sent / reads.covered, len(server.requests), len(reads.list)))
    server.stop()


def by_nbd(tap, reads):
    stats = os.path.join(folder, reads.name + ".stats")
    server = servers.nbdkit(folder, "--filter=stats", "pattern", str(reads.size), "statsfile=" + stats)
    text = io("-r", "-f", "raw", "nbd:unix:" + server.path, script=reads.script(), timeout=100)
    tap.ok(not text, "%s, nbd: all reads of the recording" % reads.name, text)
    server.process.terminate()
    server.process.wait()
    with open(stats) as f:
        found = re.search(r"read: \d+ ops, [\d.]+ s, ([\d.]+) (\w+),", f.read())
    sent = float(found.group(1)) * UNITS[found.group(2)] / reads.covered
    tap.ok(0.8 < sent < 1.5, "%s, nbd: the server sends less than 1.5 times what is read" % reads.name, "%.2f times" % sent)


with Tap() as tap:
    try:
        for reads in (Reads("live-boot", 0.8), Reads("install", 0.3)):
            by_http(tap, reads)
            by_nbd(tap, reads)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
