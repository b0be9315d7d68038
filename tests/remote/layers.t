#!/usr/bin/env python3
"""What lies over a server: encrypted images by HTTP and on NBD, a CUE sheet and its files, slices; with a server that fails."""

import os
import random
import sys
import tempfile

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from faultserver import FaultServer
from servers import IMG, file_sum, io, run
from tap import run_tests

MIB = 1 << 20
folder = tempfile.mkdtemp(prefix="spindle layers ")
PLAIN = os.path.join(folder, "plain")
with open(PLAIN, "wb") as f:
    f.write(random.Random(3).randbytes(6 * MIB))
SUM = file_sum(PLAIN)
SECRET = ["--object", "secret,id=s0,data=letmein"]


def luks(version):
    path = os.path.join(folder, "luks%d" % version)
    status, text, errors = run(IMG, "convert", *SECRET, "-O", "luks", "-o", "key-secret=s0,iter-time=10,version=%d" % version, PLAIN, path)
    assert status == 0, text + errors
    return path


def same(tap, name, *image):
    out = os.path.join(folder, "out")
    status, text, errors = run(IMG, "convert", *SECRET, "-O", "raw", "--image-opts", *image, out)
    tap.ok(status == 0 and file_sum(out, os.path.getsize(PLAIN)) == SUM, name, text, errors)


def once(number, request):
    return ({"reset": 100000}, {"status": 503}, {}, {"stall": 70000})[number % 4] if 2 < number < 12 else {}


def test_luks(tap):
    for version in (1, 2):
        path = luks(version)
        with open(path, "rb") as f:
            server = FaultServer(f.read(), once)
        same(tap, "LUKS%d by HTTP, from a server that fails now and then" % version,
             "driver=luks,key-secret=s0,file.driver=http,file.timeout=1,file.url=" + server.url())
        server.stop()
        server = servers.nbdkit(folder, "--filter=error", "file", path, "error-pread-rate=10%")
        same(tap, "LUKS%d on NBD, the same" % version, "driver=luks,key-secret=s0,file.driver=nbd,file.server.type=unix,file.server.path=" + server.path)
        server.stop()
        server = servers.nbdkit(folder, "file", path, read_only=False)
        opts = "driver=luks,key-secret=s0,file.driver=nbd,file.server.type=unix,file.server.path=" + server.path
        text = io(*SECRET, "--image-opts", opts, script=("write -P 3 1M 100k", "flush", "read -P 3 1M 100k"))
        tap.ok("exit" not in text and "read 102400/102400" in text, "LUKS%d on NBD, written to" % version, text)
        server.stop()
        text = io(*SECRET, "-r", "--image-opts", "driver=luks,key-secret=s0,file.driver=file,file.filename=" + path, script=("read -P 3 1M 100k",))
        tap.ok("exit" not in text, "LUKS%d: the server's file says the same" % version, text)
    text = io("--object", "secret,id=s0,data=wrong", "-r", "--image-opts", opts.replace(server.path, servers.nbdkit(folder, "file", path).path),
              script=("read 0 4k",))
    tap.ok("Invalid password" in text, "a wrong passphrase over NBD", text)


def test_cue(tap):
    data = open(PLAIN, "rb").read()
    audio = random.Random(4).randbytes(2352 * 300)
    # A second file, so that its sectors are their own size.
    sheet = ('FILE "a b.bin" BINARY\n  TRACK 01 MODE1/2048\n    INDEX 01 00:00:00\nFILE "c.bin" BINARY\n  TRACK 02 AUDIO\n'
             "    INDEX 00 00:00:00\n    INDEX 01 00:02:00\n").encode()
    cue, first, second = FaultServer(sheet), FaultServer(data, once), FaultServer(audio)
    opts = ("driver=cue,read-only=on,file.driver=http,file.url=%s,files.0.driver=http,files.0.timeout=1,files.0.url=%s,"
            "files.1.driver=http,files.1.url=%s" % (cue.url(), first.url(), second.url()))
    same(tap, "a CUE sheet and its files by HTTP, from a server that fails now and then", opts)
    text = io("-r", "--image-opts", opts, script=("read -v %d 16" % len(data),))
    shown = "".join(line.split("  ")[1].replace(" ", "") for line in text.splitlines() if line[:8].strip("0123456789abcdef") == "" and "  " in line)
    tap.ok(audio[:16].hex() in shown, "the audio behind it", text)
    refused = "driver=cue,read-only=on,file.driver=http,file.url=" + cue.url()
    text = io("-r", "--image-opts", refused, script=("read 0 4k",))
    tap.ok("exit" in text, "a sheet on a server does not name files by itself", text)
    for server in (cue, first, second):
        server.stop()


def test_slices(tap):
    with open(PLAIN, "rb") as f:
        data = f.read()
    server = FaultServer(b"x" * 1000 + data + b"y" * 1000)
    same(tap, "a slice by HTTP that begins between sectors", "driver=raw,offset=1000,size=%d,file.driver=http,file.url=%s" % (len(data), server.url()))
    server.stop()


run_tests(globals(), folder)
