#!/usr/bin/env python3
"""What is told of a server that stalls, fails and comes back: a line for each state, with the server's name and figures, and
not more of them than can be read."""

import os
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from faultserver import FaultServer
from patterns import Places
from servers import IO
from tap import run_tests

MIB = 1 << 20
SIZE = 64 * MIB
folder = tempfile.mkdtemp(prefix="spindle-states-")
LINE = re.compile(r"spindle-io: (?:warning|info): (\S+): (stalled|retrying|giving up|connected again)\b(.*)\n")
FIGURES = re.compile(r"; fetched ([\d.]+) MiB \(([\d.]+) MiB/s\), served ([\d.]+) MiB, (\d+) % of the reads from the cache$")


def lines(options, *commands, meanwhile=lambda: None):
    """((name, state, rest) of each line that tells a state, all that was said)."""
    words = []
    for command in commands:
        words += ["-c", command]
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    process = subprocess.Popen([IO, "-r", *words, "--image-opts", options], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, env=env)
    meanwhile()
    text, _ = process.communicate(timeout=90)
    return LINE.findall(text), text


def states(found):
    return [state for _, state, _ in found]


def http(server, **more):
    return ",".join(["driver=http,read-only=on,readahead=0,url=" + server.url()] + ["%s=%s" % item for item in more.items()])


def test_stall(tap):
    server = FaultServer(Places(SIZE), lambda n, r: {"stall": 8192} if n == 2 else {})
    found, text = lines(http(server, timeout=4), "read 1M 1M", "read 9M 64k", "read 9M 64k")
    tap.equal(states(found), ["stalled", "connected again"], "nothing comes for a while: stalled, then connected again")
    tap.ok(all(name == server.url() for name, _, _ in found), "… with the server's name", text)
    tap.ok(": nothing came for 2.0 s" in found[0][2] and re.match(r" after [4-6]\.\d s", found[1][2]), "… since when, and for how long", text)
    figures = [FIGURES.search(rest) for _, _, rest in found]
    tap.ok(all(figures) and all(abs(float(f[1]) - 1.1) < 0.11 and float(f[2]) >= 0.1 and 1.0 <= float(f[3]) <= 1.1 for f in figures),
           "… what was fetched and served, and the rate", text)
    server.stop()


def test_failures(tap):
    server = FaultServer(Places(SIZE), lambda n, r: {"status": 503} if 1 <= n < 7 else {})
    found, text = lines(http(server), "read 1M 64k", "read 2M 64k")
    tap.equal(states(found), ["retrying", "connected again"], "a server that fails for some time: retrying, connected again")
    tap.ok("The requested URL returned error: 503" in found[0][2], "… and why", text)
    server.stop()
    server = FaultServer(Places(SIZE), lambda n, r: {"status": 503} if n >= 1 else {})
    found, text = lines(http(server, retries=1), "read 1M 64k", "read 2M 64k")
    tap.equal(states(found), ["giving up"], "one that fails for good: giving up, once")
    server.stop()
    server = FaultServer(Places(SIZE), lambda n, r: {"status": 503} if n == 2 else {})
    found, text = lines(http(server), "read 1M 64k", "read 2M 64k")
    tap.equal(states(found), [], "one that fails once: nothing worth a line")
    server.stop()


def test_all(tap):
    """First it hangs, then it is not there, then it is back."""
    server = FaultServer(Places(SIZE), lambda n, r: {"hang": True} if n >= 1 else {})

    def trouble():
        time.sleep(4)
        server.stop()
        time.sleep(4)
        server.act = lambda n, r: {}
        server.start()
    found, text = lines(http(server, timeout=30), "read 1M 64k", meanwhile=trouble)
    tap.equal(states(found), ["stalled", "retrying", "connected again"], "hangs, is away, is back: a line for each")
    tap.ok("read 65536/65536" in text, "… and the read is answered", text)
    server.stop()


def test_many(tap):
    """Every read fails for more than a second."""
    fails = {}

    def act(n, request):
        place = request.headers.get("range")
        fails[place] = fails.get(place, 0) + 1
        return {"status": 503} if n >= 1 and fails[place] <= 4 else {}
    server = FaultServer(Places(SIZE), act)
    found, text = lines(http(server), *["read %dM 64k" % i for i in range(1, 6)])
    tap.ok(text.count("read 65536/65536") == 5 and len(server.requests) == 26, "five reads, each of which fails four times", text, len(server.requests))
    tap.equal(states(found), ["retrying", "connected again"], "of trouble after trouble, one is told in ten seconds")
    server.stop()


def test_nbd(tap):
    path = os.path.join(folder, "n.sock")
    server = servers.nbdkit(folder, "pattern", str(SIZE), path=path)

    def trouble():
        time.sleep(1)
        server.restart(4)
    found, text = lines("driver=nbd,read-only=on,readahead=0,server.type=unix,server.path=" + path, "read 1M 64k", "sleep 2000", "read 2M 64k",
                        meanwhile=trouble)
    tap.ok(states(found) in (["retrying", "connected again"], ["stalled", "retrying", "connected again"]), "an NBD server that is away", text)
    tap.ok(all(path in name for name, _, _ in found), "… by its name", text)
    server.stop()


run_tests(globals(), folder)
