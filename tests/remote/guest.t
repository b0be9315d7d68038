#!/usr/bin/env python3
"""Discs on servers in a guest's drive: libvirt's forms of them, read by ATAPI command; what a monitor tells of a server that
hangs, fails and comes back."""

import json
import os
import random
import struct
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "..", "pc", "lib")]
import servers
from faultserver import FaultServer, make_certificate
from ftpserver import FtpServer
from qtestpc import Ahci, Machine, Place
from servers import Server, free_port, listening
from tap import Tap

CONTENT = random.Random(17).randbytes(4 << 20)
BSY, ERR = 0x80, 1


def read10(m, ahci, lba, count=1):
    """(task file data, the sectors)."""
    memory = m.alloc(count * 2048)
    for _ in range(5):  # attentions
        tfd, _, _ = ahci.run(0xa0, [(memory, count * 2048)], packet=struct.pack(">BBIBHB2x", 0x28, 0, lba, 0, count, 0).ljust(16, b"\0"),
                             features=1)
        if not tfd & ERR:
            break
    return tfd, m.read(memory, count * 2048)


def guest(place, storage, *objects, form=None):
    """A machine whose drive has the disc as libvirt gives it."""
    storage.update({"node-name": "libvirt-1-storage", "auto-read-only": True, "discard": "unmap"})
    raw = {"node-name": "libvirt-1-format", "read-only": True, "driver": "raw", "file": "libvirt-1-storage"}
    raw.update(form or {})
    args = ["-M", "q35"]
    for one in objects:
        args += ["-object", json.dumps(one)]
    args += ["-blockdev", json.dumps(storage), "-blockdev", json.dumps(raw), "-device", "ide-cd,bus=ide.0,drive=libvirt-1-format,id=sata0-0-0"]
    return Machine(place, *args)


def works(tap, place, name, storage, *objects, form=None, start=0):
    try:
        with guest(place, storage, *objects, form=form) as m:
            ahci = Ahci(m)
            tfd, data = read10(m, ahci, 100, 16)
            tap.ok(not tfd & ERR and data == CONTENT[start + 204800:start + 204800 + 32768], "libvirt's %s: the guest reads the disc" % name,
                   hex(tfd))
    except (OSError, EOFError, AssertionError) as why:
        tap.ok(False, "libvirt's %s: the guest reads the disc" % name, repr(why))


def test_http(tap, place):
    server = FaultServer(CONTENT)
    url = "http://127.0.0.1:%d/copy.iso" % server.port
    cookie = {"qom-type": "secret", "id": "libvirt-1-storage-httpcookie-secret0", "data": "test=yes"}
    works(tap, place, "http-plain", {"driver": "http", "url": url})
    works(tap, place, "http-query", {"driver": "http", "url": url + "?a=1&b=2"})
    tap.equal(server.requests[-1].path, "/copy.iso?a=1&b=2", "the query is asked for")
    works(tap, place, "http-cache-io", {"driver": "http", "url": url, "cache": {"direct": True, "no-flush": False}},
          form={"cache": {"direct": True, "no-flush": False}})
    works(tap, place, "http-slices", {"driver": "http", "url": url}, form={"offset": 2048, "size": 1048576}, start=2048)
    works(tap, place, "http-all", {"driver": "http", "url": url, "cookie-secret": cookie["id"], "timeout": 6, "readahead": 262144}, cookie)
    tap.equal(server.requests[-1].headers.get("cookie"), "test=yes", "the cookie is sent")
    server.stop()
    tls = FaultServer(CONTENT, tls=make_certificate(place.folder))
    url = "https://localhost:%d/copy.iso" % tls.port
    works(tap, place, "https-ssl", {"driver": "https", "url": url, "sslverify": False})
    works(tap, place, "https-auth-cookie", {"driver": "https", "url": url, "sslverify": True, "cookie-secret": cookie["id"],
                                            "cafile": os.path.join(place.folder, "localhost2.pem")}, cookie)
    tls.stop()
    ftp = FtpServer(CONTENT)
    works(tap, place, "ftp", {"driver": "ftp", "url": "ftp://127.0.0.1:%d/copy.iso" % ftp.port})


def test_nbd(tap, place):
    path, port = place.image("copy.iso", len(CONTENT), CONTENT), free_port()
    server = Server("nbdkit", "-f", "-r", "-p", str(port), "-i", "127.0.0.1", "-e", "iso", "file", path, ready=listening(port))
    works(tap, place, "nbd-tcp", {"driver": "nbd", "server": {"type": "inet", "host": "127.0.0.1", "port": str(port)}, "export": "iso"})
    works(tap, place, "nbd-reconnect", {"driver": "nbd", "server": {"type": "inet", "host": "127.0.0.1", "port": str(port)}, "export": "iso",
                                        "reconnect-delay": 10})
    server.stop()
    unix = servers.nbdkit(place.folder, "file", path)
    works(tap, place, "nbd-unix", {"driver": "nbd", "server": {"type": "unix", "path": unix.path}, "export": "iso"})
    unix.stop()
    pki, port = os.path.join(place.folder, "pki"), free_port()
    os.mkdir(pki)
    certificate, key = make_certificate(place.folder, "localhost")
    for name, source in (("ca-cert", certificate), ("server-cert", certificate), ("server-key", key)):
        os.link(source, os.path.join(pki, name + ".pem"))
    server = Server("nbdkit", "-f", "-r", "-p", str(port), "-i", "127.0.0.1", "--tls=require", "--tls-certificates=" + pki, "file", path,
                    ready=listening(port))
    works(tap, place, "nbd-tls", {"driver": "nbd", "server": {"type": "inet", "host": "localhost", "port": str(port)}, "export": "iso",
                                  "tls-creds": "objlibvirt-1-storage_tls0"},
          {"qom-type": "tls-creds-x509", "id": "objlibvirt-1-storage_tls0", "dir": pki, "endpoint": "client", "verify-peer": True})
    server.stop()


def test_refused(tap, place):
    """The forms whose servers are not here are refused as connections, not as options."""
    for name, storage, message in (
            ("ssh", {"driver": "ssh", "path": "/img/copy.iso", "server": {"host": "127.0.0.1", "port": "1"}}, "Failed to connect to '127.0.0.1:1'"),
            ("iscsi", {"driver": "iscsi", "portal": "127.0.0.1:1", "target": "iqn.2020-01.org.x:t", "lun": 1, "transport": "tcp"},
             "Failed to connect to LUN 1 of 'iqn.2020-01.org.x:t'")):
        storage.update({"node-name": "libvirt-1-storage", "auto-read-only": True, "discard": "unmap"})
        status, text, errors = servers.run(place.spindle, "-M", "q35", "-blockdev", json.dumps(storage), "-accel", "qtest", "-qtest", "stdio",
                                           "-display", "none")
        tap.ok(status == 1 and (message in errors or "needs the module" in errors), "libvirt's %s: taken, and nobody there" % name, errors)


def node_stats(m, name="libvirt-1-storage"):
    for node in m.qmp.must("query-blockstats", query_nodes=True):
        if node.get("node-name") == name:
            return node["driver-specific"]
    raise KeyError(name)


def wait_state(m, state, timeout=10):
    end = time.monotonic() + timeout
    while node_stats(m)["state"] != state and time.monotonic() < end:
        time.sleep(0.05)
    return node_stats(m)


def test_stats(tap, place):
    fault = threading.Event()
    act = {"hang": True}
    server = FaultServer(CONTENT, lambda number, request: dict(act) if fault.is_set() else {})
    with guest(place, {"driver": "http", "url": server.url(), "readahead": 0, "timeout": 3, "deadline": 15}) as m:
        ahci = Ahci(m)
        read10(m, ahci, 100, 16)
        read10(m, ahci, 100, 16)
        stats = node_stats(m)
        tap.ok(stats["driver"] == "http" and stats["state"] == "connected" and stats["bytes-served"] >= 65536 and
               32768 <= stats["bytes-fetched"] <= 4 * 65536 and stats["cache-hits"] > 0 and stats["rate"] > 0,
               "query-blockstats: what was served, fetched and found in the cache", stats)
        fault.set()
        memory = m.alloc(2048)
        ahci.prepare(0, ahci.register_fis(0xa0, features=1), [(memory, 2048)], packet=struct.pack(">BBIBHB2x", 0x28, 0, 1500, 0, 1, 0).ljust(16, b"\0"))
        ahci.issue()
        stats = wait_state(m, "stalled")
        tap.ok(stats["state"] == "stalled" and stats["stalled-ms"] >= 1000, "a server that hangs: stalled, and since when", stats)
        stats = wait_state(m, "retrying")
        tap.ok(stats["state"] == "retrying" and stats["retrying-ms"] >= 0 and stats["fetch-failures"] > 0, "then: tried again", stats)
        fault.clear()
        server.stop()
        server.start()
        stats = wait_state(m, "connected", 12)
        tap.ok(stats["state"] == "connected", "the server is back: connected", stats)
        status = ahci.done()[0]
        tap.ok(not status & 0x89 and m.read(memory, 2048) == CONTENT[1500 * 2048:1501 * 2048], "the guest's read is answered",
               "status %#x" % status)
    server.stop()


with Tap() as tap:
    for test in [v for k, v in list(globals().items()) if k.startswith("test_")]:
        with Place() as place:
            test(tap, place)
