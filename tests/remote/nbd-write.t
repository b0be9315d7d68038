#!/usr/bin/env python3
"""NBD exports that are written to: by the tools, as the guest's disk, over TLS, through faults and restarts."""

import os
import random
import re
import shutil
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "..", "pc", "lib")]
import servers
from servers import IMG, IO, Background, Server, file_sum, free_port, io, listening, run
from faultserver import make_certificate
from guest import engine
from qtestpc import Ahci, Machine, Place
from tap import run_tests

MIB = 1 << 20
folder = tempfile.mkdtemp(prefix="spindle nbd write ")
SOURCE = os.path.join(folder, "source")
with open(SOURCE, "wb") as f:
    f.write(random.Random(12).randbytes(5 * MIB) + bytes(3 * MIB) + b"tail" * 128 * 1024)
SIZE = os.path.getsize(SOURCE)
SUM = file_sum(SOURCE)


def disk(size=SIZE):
    path = os.path.join(folder, "disk%d" % random.randrange(1 << 30))
    with open(path, "wb") as f:
        f.truncate(size)
    return path


def nbdkit(*args, path=None):
    return servers.nbdkit(folder, *args, path=path, read_only=False)


def unix(server, **more):
    return ",".join(["driver=nbd,server.type=unix,server.path=" + server.path] +
                    ["%s=%s" % (key.replace("_", "-"), value) for key, value in more.items()])


def write_all(tap, name, server, path, *args):
    status, text, errors = run(IMG, "convert", "-n", "-O", "raw", *args, SOURCE, "nbd:unix:" + server.path)
    tap.ok(status == 0 and file_sum(path) == SUM, name, text, errors)


def test_convert(tap):
    for name, args in (("nbdkit", []), ("no FUA", ["--filter=fua", "fuamode=discard"]),
                       ("no zeroes, no trim", ["--filter=nozero"]),
                       ("blocks of 4096 bytes", ["--filter=blocksize-policy", "blocksize-minimum=4096", "blocksize-maximum=64K",
                                                 "blocksize-error-policy=error"]),
                       ("slow", ["--filter=delay", "wdelay=10ms"]), ("of 8 MB/s", ["--filter=rate", "rate=64M"])):
        path = disk()
        server = nbdkit("file", path, *args)
        write_all(tap, "convert to a server: " + name, server, path)
        server.stop()
    path, sock = disk(), os.path.join(folder, "q.sock")
    server = Server(engine("qemu-nbd"), "-t", "-f", "raw", "-k", sock, path, ready=lambda: os.path.exists(sock))
    server.path = sock
    write_all(tap, "convert to a server: qemu-nbd", server, path)
    text = io("-f", "raw", "nbd:unix:" + sock, script=("write -P 0x5a 512 512", "read -P 0x5a 512 512", "write -z 0 4k",
                                                     "read -P 0 0 4k", "discard 1M 1M", "flush", "map"))
    tap.ok("error" not in text and "failed" not in text and "exit" not in text, "write, zeroes, discard, flush on qemu-nbd", text)
    server.stop()


def test_what_is_sent(tap):
    """The server's log of what came."""
    path, log = disk(), os.path.join(folder, "log")
    server = nbdkit("--filter=log", "file", path, "logfile=" + log)
    image = ["--image-opts", unix(server, discard="unmap")]
    text = io(*image, script=("write -P 1 0 64k", "write -f -P 2 64k 64k", "write -z 1M 1M", "write -z -u 2M 1M",
                              "discard 3M 64k", "read -P 1 0 64k", "read -P 2 64k 64k", "read -P 0 1M 2M", "flush"))
    tap.ok("rror" not in text and "erification" not in text, "every kind of write, read back", text)
    with open(log) as f:
        said = f.read()
    for name, words in (("FUA", "Write id=.*offset=0x10000.*fua=1"), ("zeroes that stay", "Zero id=.*offset=0x100000.*trim=0"),
                        ("zeroes that may be a hole", "Zero id=.*offset=0x200000.*trim=1"), ("trim", "Trim id=.*offset=0x300000"),
                        ("flush", "Flush id=")):
        tap.ok(re.search(words, said), "the server sees: " + name, said[-3000:])
    server.stop()


def test_read_only_export(tap):
    server = servers.nbdkit(folder, "file", SOURCE)
    text = io("--image-opts", unix(server), script=("write 0 4k",))
    tap.ok("request on write denied without write permission" in text, "a read-only export: writing is refused at the open", text)
    text = io("--image-opts", unix(server, auto_read_only="on"), script=("read 0 4k",))
    tap.ok("read 4096/4096" in text, "auto-read-only: it is read", text)
    server.stop()


def test_errors(tap):
    path = disk()
    server = nbdkit("--filter=error", "file", path, "error-pwrite=ENOSPC", "error-pwrite-rate=100%")
    text = io("-f", "raw", "nbd:unix:" + server.path, script=("write 0 4k", "read 0 4k"))
    tap.ok("No space left on device" in text and "read 4096/4096" in text, "what the server says of a write is passed on", text)
    server.stop()
    server = nbdkit("--filter=error", "file", path, "error-pread=EIO", "error-pread-rate=100%")
    text = io("-f", "raw", "nbd:unix:" + server.path, script=("write 0 4k", "read 0 4k"))
    tap.ok("Input/output error" in text, "a read error of a disk is one at once", text)
    server.stop()


def test_restart(tap):
    path = disk()
    server = nbdkit("--filter=rate", "file", path, "rate=8M")
    tool = Background(IMG, "convert", "-n", "-O", "raw", SOURCE, "nbd:unix:" + server.path)
    time.sleep(0.7)
    server.restart(1)
    status, errors = tool.end()
    tap.ok(status == 0 and file_sum(path) == SUM, "server restarted while it was written to", errors)
    tap.ok(": retrying: " in errors and "connected again after" in errors, "both are told", errors)
    server.stop()


def test_delays(tap):
    path = os.path.join(folder, "late.sock")
    tool = Background(IO, "-r", "-c", "read 0 4k", "--image-opts", "driver=nbd,server.type=unix,open-timeout=10,server.path=" + path)
    time.sleep(0.7)
    late = nbdkit("file", SOURCE, path=path)
    _, text = tool.end(30)
    tap.ok("read 4096/4096" in text, "open-timeout: a server that comes later", text)
    tool = Background(IO, "-c", "write 0 4k", "-c", "sleep 1500", "-c", "write 0 4k", "--image-opts", unix(late, reconnect_delay=2))
    time.sleep(0.7)
    late.stop()
    tool.mark()
    _, text = tool.end(30)
    tap.ok("timed out" in text and 1.5 < tool.took < 8, "reconnect-delay: how long a write waits for a server that is gone", text, tool.took)


def test_tls(tap):
    certificate, key = make_certificate(folder, "localhost")
    pki = os.path.join(folder, "pki")
    os.mkdir(pki)
    for source, names in ((certificate, ("ca-cert.pem", "server-cert.pem", "client-cert.pem")), (key, ("server-key.pem", "client-key.pem"))):
        for name in names:
            shutil.copy(source, os.path.join(pki, name))
    other = os.path.join(folder, "other pki")
    os.mkdir(other)
    shutil.copy(make_certificate(folder, "elsewhere")[0], os.path.join(other, "ca-cert.pem"))
    port, path = free_port(), disk()
    server = Server("nbdkit", "-f", "-p", str(port), "-i", "localhost", "--tls=require", "--tls-certificates=" + pki, "--tls-verify-peer",
                    "file", path, ready=listening(port))

    def over(creds, *more):
        opts = "driver=nbd,server.type=inet,server.host=localhost,server.port=%d,%s" % (port, ",".join(("tls-creds=t",) + more))
        return io("--object", creds, "--image-opts", opts, script=("write -P 7 0 64k", "read -P 7 0 64k"))
    text = over("tls-creds-x509,id=t,endpoint=client,dir=" + pki)
    tap.ok("read 65536/65536" in text and "exit" not in text, "TLS with certificates", text)
    text = over("tls-creds-x509,id=t,endpoint=client,dir=" + other)
    tap.ok("Failed to connect" in text, "TLS: a certificate that nobody vouches for", text)
    text = over("tls-creds-x509,id=t,endpoint=server,dir=" + pki)
    tap.ok("Expecting TLS credentials with a client endpoint" in text, "TLS: credentials of a server", text)
    text = over("tls-creds-x509,id=t,dir=/nonexistent")
    tap.ok("Unable to access credentials /nonexistent/ca-cert.pem" in text, "TLS: no such folder", text)
    text = over("tls-creds-x509,id=u,dir=" + pki)
    tap.ok("No TLS credentials with id 't'" in text, "TLS: unknown credentials", text)
    text = over("tls-creds-x509,id=t,dir=" + pki, "tls-hostname=example.org")
    tap.ok("'tls-hostname'" in text, "TLS: another name than the host's is refused", text)
    text = io("-f", "raw", "nbd://localhost:%d" % port, script=("read 0 4k",))
    tap.ok("Failed to connect" in text, "TLS: a server that insists on it", text)
    server.stop()
    with open(os.path.join(folder, "keys.psk"), "w") as f:
        f.write("qemu:%s\nmary:%s\n" % ("6b" * 16, "a1" * 16))
    sock = os.path.join(folder, "psk.sock")
    server = Server("nbdkit", "-f", "-U", sock, "--tls=require", "--tls-psk=" + os.path.join(folder, "keys.psk"), "file", path,
                    ready=lambda: os.path.exists(sock))
    server.path = sock
    for user in (None, "mary"):
        creds = "tls-creds-psk,id=t,endpoint=client,dir=" + folder + (",username=" + user if user else "")
        text = io("--object", creds, "--image-opts", unix(server, tls_creds="t"), script=("write -P 9 0 64k", "read -P 9 0 64k"))
        tap.ok("read 65536/65536" in text and "exit" not in text, "TLS with a key of " + (user or "qemu"), text)
    text = io("--object", "tls-creds-psk,id=t,username=nobody,dir=" + folder, "--image-opts", unix(server, tls_creds="t"), script=("read 0 4k",))
    tap.ok("Failed to connect" in text, "TLS: a user without a key", text)
    text = io("--object", "tls-creds-x509,id=t,dir=" + pki, "--image-opts", unix(server, tls_creds="t"), script=("read 0 4k",))
    tap.ok("cannot be verified" in text, "TLS: certificates over a UNIX socket are not taken on trust", text)
    server.stop()


def test_disk(tap):
    """A disk on an AHCI port, over a server that goes away."""
    path = disk(16 * MIB)
    server = nbdkit("--filter=fua", "file", path, "fuamode=force")
    with Place() as place, Machine(place, "-M", "q35", "-blockdev", unix(server, node_name="n0", discard="unmap"), "-device",
                                   "ide-hd,drive=n0") as m:
        ahci = Ahci(m)
        data = random.Random(4).randbytes(65536)
        memory = m.alloc(65536)
        m.write(memory, data)
        tfd, _, _ = ahci.run(0x35, [(memory, 65536)], lba=100, count=128)
        tap.ok(not tfd & 0x89, "a guest's disk on NBD: WRITE DMA EXT", hex(tfd))
        server.restart()
        back = m.alloc(65536)
        tfd, _, _ = ahci.run(0x25, [(back, 65536)], lba=100, count=128)
        tap.ok(not tfd & 0x89 and m.read(back, 65536) == data, "the server restarted: READ DMA EXT gives it back", hex(tfd))
        tfd, _, _ = ahci.run(0x3d, [(memory, 65536)], lba=4000, count=128)
        tap.ok(not tfd & 0x89, "WRITE DMA FUA EXT", hex(tfd))
        tfd, _, _ = ahci.run(0xea, [])
        tap.ok(not tfd & 0x89, "FLUSH CACHE EXT", hex(tfd))
    with open(path, "rb") as f:
        f.seek(100 * 512)
        first = f.read(65536)
        f.seek(4000 * 512)
        tap.ok(first == data and f.read(65536) == data, "the server's file holds both")
    server.stop()


run_tests(globals(), folder)
