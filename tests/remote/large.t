#!/usr/bin/env python3
"""A disc of 25 GB on a server, as a guest reads it: the data is right to the last sector, and the drive process keeps within
its bounds of memory, whatever has passed through it.  Nothing of the disc is stored: each 8 bytes are their own place.

    tests/remote/large.t [--long]     every sector, not three stretches
"""

import contextlib
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "..", "cli", "lib")]
import servers
from faultserver import FaultServer
from guest_cd import Guest
from patterns import Places
from program import Place
from tap import Tap

MIB = 1 << 20
SECTORS = 12219392  # a BD-R
SIZE = SECTORS * 2048
AT_ONCE = 512
LONG = "--long" in sys.argv[1:]
# Each several times what the cache holds; the last one ends with the disc.
STRETCHES = [(0, SECTORS)] if LONG else [(0, 150000), (SECTORS // 2, 100000), (SECTORS - 150000, 150000)]
CACHE = 64 * MIB
# The program, its threads' stacks and buffers, what is on its way.
BESIDE = 28 * MIB


def resident(process):
    """The most memory that it ever had, in bytes."""
    with open("/proc/%d/status" % process.pid) as f:
        return int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1)) * 1024


def reads(tap, place, name, node, also=0):
    """Has a guest read the node that is on a server; what spindled said. `also`: bytes more that it may have."""
    socket = os.path.join(place.tmp, "cd")
    drive = place.start("spindled", "--blockdev", node + ",node-name=disc,read-only=on", "--vfio-user", socket + ",dma=message",
                        "--device", "ide-cd,drive=disc")
    place.wait_for(lambda: os.path.exists(socket), "socket")
    guest = Guest(socket)
    for first, count in STRETCHES:
        _, sense, good, ms = guest.run("places %d %d %d" % (first, count, AT_ONCE))
        tap.ok((sense, int(good)) == ("000000", count), "%s: %d sectors from %d on are right" % (name, count, first), sense, good)
        tap.note("%.1f MB/s" % (count * 2048 / 1000 / max(int(ms), 1)))
    most, bound = resident(drive), CACHE + BESIDE + also
    tap.ok(most < bound, "%s: the drive process stayed below %d MiB" % (name, bound // MIB), "%.1f MiB" % (most / MIB))
    tap.note("it had %.1f MiB at most" % (most / MIB))
    guest.close()
    drive.terminate()
    return drive.communicate(timeout=20)[1]


@contextlib.contextmanager
def small_disk(place, size):
    """A file system with so much room, or None where none may be mounted."""
    folder = place.path("small")
    os.makedirs(folder, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % size, "small", folder], stderr=subprocess.DEVNULL).returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def test_http(tap, place):
    server = FaultServer(Places(SIZE))
    reads(tap, place, "http", "driver=http,url=" + server.url())
    tap.ok(server.sent < 1.05 * sum(n for _, n in STRETCHES) * 2048 + 16 * MIB * len(STRETCHES), "http: hardly more was sent than was read",
           server.sent)
    server.stop()


def test_nbd(tap, place):
    server = servers.nbdkit(place.tmp, "pattern", str(SIZE))
    reads(tap, place, "nbd", "driver=nbd,server.type=unix,server.path=" + server.path)
    server.stop()


def test_cache_file(tap, place):
    """The file's disk has room for a part only."""
    with small_disk(place, 128 * MIB) as folder:
        if folder is None:
            tap.skip("a cache file whose disk is full", "no file system can be mounted here")
            return
        path, server = os.path.join(folder, "cache"), FaultServer(Places(SIZE))
        said = reads(tap, place, "cache file", "driver=http,cache-file=%s,url=%s" % (path, server.url()), 4 * MIB)
        tap.equal(len(re.findall("the cache file takes no more: No space left on device", said)), 1, "cache file: it is said once that its disk is full")
        kept = os.stat(path).st_blocks * 512
        tap.ok(64 * MIB < kept <= 128 * MIB, "cache file: what had room is kept", kept)
        server.stop()
        # What is in it is used by the next one, and what is not is fetched.
        server = FaultServer(Places(SIZE), port=server.port)
        reads(tap, place, "cache file, again", "driver=http,cache-file=%s,url=%s" % (path, server.url()), 4 * MIB)
        everything = sum(n for _, n in STRETCHES) * 2048
        tap.ok(server.sent < everything - 64 * MIB + 16 * MIB * len(STRETCHES), "cache file, again: what it has is not sent", server.sent, everything)
        server.stop()


with Tap() as tap:
    for test in [v for k, v in list(globals().items()) if k.startswith("test_")]:
        with Place() as place:
            test(tap, place)
