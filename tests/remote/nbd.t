#!/usr/bin/env python3
"""Exports of real NBD servers: nbdkit with its fault filters, the engine's qemu-nbd."""

import hashlib
import os
import random
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from servers import IMG, IO, Background, Server, file_sum, free_port, listening, run
from guest import engine
from tap import run_tests

folder = tempfile.mkdtemp(prefix="spindle-nbd-")
DISC = os.path.join(folder, "disc.iso")
CONTENT = random.Random(8).randbytes(9 * 1000 * 1000) + bytes(4 << 20) + b"end" * 171
SUM = hashlib.sha256(CONTENT).hexdigest()
with open(DISC, "wb") as f:
    f.write(CONTENT)


def nbdkit(*args, path=None):
    return servers.nbdkit(folder, *args, path=path)


def copy(*image):
    out = os.path.join(folder, "out")
    _, why = got = servers.copy(out, *image)
    # A server may round an export up to a whole block.
    return got if got[0] is None else (file_sum(out, len(CONTENT)), why)


def same(tap, name, *image):
    got, why = copy(*image)
    tap.ok(got == SUM, name, why, got)


def refused(tap, name, message, *image):
    got, why = copy(*image)
    tap.ok(got is None and message in why, name, why)


def test_forms(tap):
    server = nbdkit("file", DISC)
    port = free_port()
    tcp = Server("nbdkit", "-f", "-p", str(port), "-i", "127.0.0.1", "-r", "-e", "disc", "file", DISC, ready=listening(port))
    same(tap, "nbd+unix", "nbd+unix:///?socket=" + server.path)
    same(tap, "nbd:unix:", "nbd:unix:" + server.path)
    same(tap, "nbd://", "nbd://127.0.0.1:%d/disc" % port)
    same(tap, "nbd:HOST:PORT", "nbd:127.0.0.1:%d:exportname=disc" % port)
    same(tap, "json", 'json:{"driver":"nbd","server":{"type":"inet","host":"127.0.0.1","port":"%d"},"export":"disc"}' % port)
    same(tap, "options of unix", "--image-opts", "driver=nbd,server.type=unix,server.path=%s,export=disc" % server.path)
    same(tap, "old options", "--image-opts", "driver=nbd,host=127.0.0.1,port=%d" % port)
    same(tap, "driver=cache above it without a cache of its own", "--image-opts",
         "driver=cache,file.driver=nbd,file.cache-size=0,file.readahead=0,file.server.type=unix,file.server.path=" + server.path)
    status, text, errors = run(IMG, "info", "nbd:unix:" + server.path)
    tap.ok("(%d bytes)" % len(CONTENT) in text, "info: the size", text, errors)
    server.stop()
    tcp.stop()


def test_refusals(tap):
    refused(tap, "nobody there", "Failed to connect to '127.0.0.1:1'", "nbd://127.0.0.1:1")
    refused(tap, "no such socket", "Failed to connect to", "nbd:unix:/nonexistent")
    refused(tap, "no address", "NBD server address missing", "--image-opts", "driver=nbd")
    refused(tap, "no port", "needs a host and a port", "nbd:host")
    refused(tap, "no socket", "Invalid NBD URL", "nbd+unix:///x")
    refused(tap, "no host", "Invalid NBD URL", "nbd:///x")
    refused(tap, "unknown type", "Parameter 'server.type'", "--image-opts", "driver=nbd,server.type=fd")
    server = Server(engine("qemu-nbd"), "-t", "-r", "-f", "raw", "-x", "known", "-k", os.path.join(folder, "q0.sock"), DISC,
                    ready=lambda: os.path.exists(os.path.join(folder, "q0.sock")))
    refused(tap, "no such export", "export", "nbd:unix:%s/q0.sock:exportname=unknown" % folder)
    server.stop()


def test_qemu(tap):
    path = os.path.join(folder, "q.sock")
    server = Server(engine("qemu-nbd"), "-t", "-r", "-f", "raw", "-e", "1", "-k", path, DISC, ready=lambda: os.path.exists(path))
    same(tap, "qemu-nbd, which takes one connection", "nbd:unix:" + path)
    server.stop()


def test_faults(tap):
    for name, args in (
            ("every fifth read fails", ["--filter=error", "error-pread=EIO", "error-pread-rate=20%"]),
            ("slow to answer", ["--filter=delay", "rdelay=50ms"]),
            ("of 4 MB/s", ["--filter=rate", "rate=32M"]),
            ("out of order", ["--filter=delay", "rdelay=5ms", "--threads=16"]),
            ("without structured replies", ["--no-sr"])):
        server = nbdkit("file", DISC, *args)
        same(tap, "a server " + name, "nbd:unix:" + server.path)
        server.stop()


def test_restart(tap):
    server = nbdkit("--filter=rate", "file", DISC, "rate=16M")
    out = os.path.join(folder, "restart")
    tool = Background(IMG, "convert", "-O", "raw", "nbd:unix:" + server.path, out)
    time.sleep(1)
    server.restart(1.5)
    status, errors = tool.end()
    tap.ok(status == 0 and file_sum(out, len(CONTENT)) == SUM, "server restarted in the middle", errors)
    tap.ok("connected again after" in errors, "it is told", errors)
    server.stop()


def test_other_size(tap):
    server = nbdkit("--filter=rate", "file", DISC, "rate=16M")
    tool = Background(IMG, "convert", "-O", "raw", "nbd:unix:" + server.path, os.path.join(folder, "other"))
    time.sleep(1)
    server.vanish()
    other = nbdkit("memory", "1M", path=server.path)
    status, errors = tool.end()
    tap.ok(status != 0 and "another size" in errors, "another export in its place is refused", errors)
    other.stop()


def test_hang(tap):
    server = nbdkit("file", DISC)
    tool = Background(IO, "-r", "--image-opts", "-c", "sleep 1000", "-c", "read 8M 4k",
                      "driver=nbd,deadline=2,read-only=on,server.type=unix,server.path=" + server.path)
    time.sleep(0.5)
    server.process.send_signal(signal.SIGSTOP)
    tool.mark()
    _, text = tool.end(30)
    tap.ok("timed out" in text and tool.took < 6, "a server that hangs: a read ends at the deadline", text, "%.1f s" % tool.took)
    server.process.send_signal(signal.SIGCONT)
    server.stop()


def test_holes(tap):
    server = nbdkit("data", "@1048576 1 @4194303 0", "size=4194304")
    status, text, errors = run(IMG, "map", "--output=json", "nbd:unix:" + server.path)
    tap.ok(status == 0 and '"zero": true' in text and '"zero": false' in text, "holes are told", text, errors)
    server.stop()


run_tests(globals(), folder)
