#!/usr/bin/env python3
"""The drive process's monitors: QMP as qemu-storage-daemon serves it, on the live drives."""

import json
import os
import re
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import Place
from tap import Tap
from qmp import Qmp

MOVED = "DEVICE_TRAY_MOVED"


class Server:
    """spindled with two drives, the second one empty and without an id, and two monitors."""

    def __init__(self, place, *more, **options):
        self.path = os.path.join(place.tmp, "qmp")
        self.pretty = os.path.join(place.tmp, "pretty")
        self.process = place.start(
            "spindled", "--chardev", "socket,id=c,server=on,wait=off,path=" + self.path, "--monitor", "chardev=c",
            "--chardev", "socket,id=d,server=on,wait=off,path=" + self.pretty,
            "--monitor", "d,mode=control,pretty=on",
            "--blockdev", "driver=file,node-name=f0,read-only=on,filename=a.iso",
            "--blockdev", "driver=raw,node-name=n0,read-only=on,file=f0", "--vfio-user", place.tmp + "/s",
            "--device", "ide-cd,drive=n0,id=cd0", "--device", "ide-cd", *more, **options)
        place.wait_for(lambda: os.path.exists(place.tmp + "/s") or self.process.poll() is not None, "start")

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.communicate(timeout=10)


def trays(events):
    return [(e["data"]["id"], e["data"]["tray-open"]) for e in events if e["event"] == MOVED]


def check_protocol(tap, server):
    with Qmp(server.path, negotiate=False) as qmp:
        version = qmp.greeting["QMP"]["version"]
        tap.ok(version["qemu"]["major"] >= 10 and version["package"].startswith("spindle-"), "greeting: the version", version)
        tap.equal(qmp.failure("query-block")[0], "CommandNotFound", "before qmp_capabilities there is no other command")
        tap.equal(qmp.failure("qmp_capabilities", enable=["oob"])[0], "GenericError", "oob is refused")
        tap.equal(qmp.command("qmp_capabilities"), {}, "qmp_capabilities")
        tap.equal(qmp.command("query-version"), version, "query-version is the greeting's")
        names = {c["name"] for c in qmp.command("query-commands")}
        wanted = {"query-block", "query-named-block-nodes", "query-blockstats", "blockdev-add", "blockdev-del", "object-add",
                  "object-del", "blockdev-open-tray", "blockdev-close-tray", "blockdev-remove-medium",
                  "blockdev-insert-medium", "blockdev-change-medium", "eject", "query-version", "query-commands",
                  "query-status", "query-name", "quit"}
        tap.equal(wanted - names, set(), "query-commands has them all")
        tap.equal(names & {"system_reset", "migrate"}, set(), "and none of a whole machine's")
        tap.equal(qmp.failure("system_reset"), ("CommandNotFound", "The command system_reset has not been found"),
                  "which are not found")
        tap.equal(qmp.command("query-status"), {"running": True, "status": "running"}, "query-status")
        tap.equal(qmp.command("query-name"), {}, "query-name")
        qmp.send('{"execute":"query-name","id":[1,{"a":2}]}')
        tap.equal(qmp.answer(), {"return": {}, "id": [1, {"a": 2}]}, "an id comes back as it was")
        qmp.send('{"execute":"query-name","id":1}{"execute":"nonsense","id":2}\n{"execute":"query-name","id":3}')
        tap.equal([(m["id"], "return" in m) for m in (qmp.answer(), qmp.answer(), qmp.answer())],
                  [(1, True), (2, False), (3, True)], "commands sent together are answered in order")
        qmp.send(b"{ 'execute': \n")
        qmp.send(b"]\n")
        tap.equal(qmp.answer()["error"]["class"], "GenericError", "what is no JSON is an error")
        tap.equal(qmp.command("query-name"), {}, "and no end")
        tap.equal(qmp.failure("eject", id="cd0", color="red"), ("GenericError", "Parameter 'color' is unexpected"),
                  "an unknown argument")
        tap.equal(qmp.failure("eject", id=7)[0], "GenericError", "an argument of another type")


def check_pretty(tap, server):
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(server.pretty)
        text = b""
        while text.count(b"{") != text.count(b"}") or not text:
            text += s.recv(4096)
    tap.ok(re.match(rb'\{\r?\n    "QMP": \{', text), "pretty=on: indented", text)


def check_queries(tap, qmp, place):
    first, second = qmp.command("query-block")
    inserted = first["inserted"]
    tap.equal((first["device"], first["qdev"], first["removable"], first["locked"], first["tray_open"]),
              ("", "cd0", True, False, False), "query-block: the drive")
    tap.equal((inserted["node-name"], inserted["drv"], inserted["ro"], inserted["file"], inserted["image"]["virtual-size"]),
              ("n0", "raw", True, "a.iso", 1 << 20), "query-block: its medium")
    tap.equal(("inserted" in second, second["qdev"]), (False, "/machine/peripheral-anon/device[0]"), "query-block: the empty one")
    nodes = qmp.command("query-named-block-nodes")
    tap.equal(sorted(n["node-name"] for n in nodes), ["f0", "n0"], "query-named-block-nodes: just what users made")
    stats = qmp.command("query-blockstats")
    tap.equal([(s.get("qdev"), s.get("node-name")) for s in stats],
              [("cd0", "n0"), ("/machine/peripheral-anon/device[0]", None)], "query-blockstats: the drives")


def check_tray(tap, server, qmp):
    """As libvirt changes a medium, seen by two clients."""
    with Qmp(server.path2) as other:
        qmp.take_events()
        tap.equal(qmp.failure("blockdev-remove-medium", id="cd0"), ("GenericError", "Tray of device 'cd0' is not open"),
                  "remove-medium with the tray closed")
        tap.equal(qmp.failure("blockdev-del", node_name="n0"), ("GenericError", "Node n0 is in use"), "a medium stays")
        tap.equal(qmp.command("blockdev-open-tray", id="cd0"), {}, "open-tray")
        tap.equal(qmp.command("blockdev-open-tray", id="cd0"), {}, "open-tray once more")
        tap.equal(trays(qmp.take_events()), [("cd0", True)], "one DEVICE_TRAY_MOVED")
        tap.equal(trays(other.take_events()), [("cd0", True)], "to the other monitor as well")
        tap.equal(qmp.command("query-block")[0]["tray_open"], True, "query-block tells")
        tap.equal(qmp.command("blockdev-remove-medium", id="cd0"), {}, "remove-medium")
        tap.equal((qmp.command("blockdev-del", node_name="n0"), qmp.command("blockdev-del", node_name="f0")), ({}, {}),
                  "nodes of the command line can be deleted")
        tap.equal(qmp.command("query-named-block-nodes"), [], "and are gone")
        tap.equal(qmp.command("blockdev-add", driver="file", filename="b.iso", node_name="f1", auto_read_only=True,
                              discard="unmap"), {}, "blockdev-add of the protocol")
        tap.equal(qmp.command("blockdev-add", driver="raw", file="f1", node_name="n1", read_only=True), {}, "and of the format")
        tap.equal(qmp.failure("blockdev-del", node_name="f1"), ("GenericError", "Block device f1 is in use"),
                  "what has a node on it stays")
        tap.equal(qmp.failure("blockdev-insert-medium", id="cd0", node_name="none"), ("GenericError", "Node 'none' not found"),
                  "insert-medium of nothing")
        tap.equal(qmp.command("blockdev-insert-medium", id="cd0", node_name="n1"), {}, "insert-medium")
        tap.equal(qmp.failure("blockdev-insert-medium", id="cd0", node_name="f1"),
                  ("GenericError", "There already is a medium in device 'cd0'"), "insert-medium into a full drive")
        tap.equal(qmp.command("blockdev-close-tray", id="cd0"), {}, "close-tray")
        tap.equal(trays(qmp.take_events()), [("cd0", False)], "DEVICE_TRAY_MOVED")
        tap.equal(qmp.command("query-block")[0]["inserted"]["file"], "b.iso", "the new medium")


def check_change(tap, qmp, path):
    tap.equal(qmp.failure("blockdev-change-medium", id="cd0", filename="none.iso"),
              ("GenericError", "Could not open 'none.iso': No such file or directory"), "change-medium to what is not there")
    tap.equal((trays(qmp.take_events()), qmp.command("query-block")[0]["inserted"]["file"]), ([], "b.iso"), "moves nothing")
    tap.equal(qmp.command("blockdev-change-medium", id="cd0", filename=path, format="raw"), {}, "change-medium")
    tap.equal(trays(qmp.take_events()), [("cd0", True), ("cd0", False)], "opens and closes the tray")
    tap.equal(qmp.command("query-block")[0]["inserted"]["file"], path, "to the new medium")
    tap.equal(qmp.command("eject", id="cd0"), {}, "eject")
    drive = qmp.command("query-block")[0]
    tap.equal(("inserted" in drive, drive["tray_open"]), (False, True), "leaves it open and empty")
    tap.equal(qmp.failure("eject", id="cd7"), ("DeviceNotFound", "Device 'cd7' not found"), "a drive that is not there")
    anonymous = "/machine/peripheral-anon/device[0]"
    tap.equal(qmp.command("blockdev-change-medium", id=anonymous, filename=path), {}, "a drive without an id goes by its path")
    tap.equal(qmp.command("eject", id=anonymous), {}, "and back")
    tap.equal(qmp.failure("eject"), ("GenericError", "Need exactly one of 'device' and 'id'"), "no drive named")


def check_objects(tap, qmp):
    tap.equal(qmp.command("object-add", qom_type="secret", id="s", data="text"), {}, "object-add secret")
    tap.equal(qmp.failure("object-add", qom_type="secret", id="s", data="text")[0], "GenericError", "but once")
    tap.equal(qmp.command("object-del", id="s"), {}, "object-del secret")
    tap.equal(qmp.failure("object-del", id="s"), ("GenericError", "object 's' not found"), "but once")
    group = {"qom_type": "throttle-group", "id": "g", "limits": {"iops-total": 100}}
    tap.equal(qmp.command("object-add", **group), {}, "object-add throttle-group")
    tap.equal(qmp.command("blockdev-add", driver="throttle", throttle_group="g", node_name="t",
                          file={"driver": "null-co", "size": 1 << 20}), {}, "a node with its limits")
    tap.equal(qmp.failure("object-del", id="g"), ("GenericError", "Cannot delete throttle group 'g' with active references"), "keeps it")
    tap.equal((qmp.command("blockdev-del", node_name="t"), qmp.command("object-del", id="g")), ({}, {}), "until it is deleted")
    tap.equal(qmp.failure("object-del", id="g"), ("GenericError", "object 'g' not found"), "the group is gone")
    tap.equal(qmp.command("object-del", id="of-argv"), {}, "a group of the command line can be deleted")
    tap.equal(qmp.failure("blockdev-add", driver="none", node_name="x"),
              ("GenericError", "Parameter 'driver' does not accept value 'none'"), "blockdev-add of an unknown driver")
    tap.equal(qmp.failure("blockdev-add", driver="null-co")[0], "GenericError", "blockdev-add without a name")


def check_disk(tap, place):
    path = os.path.join(place.tmp, "disk")
    process = place.start("spindled", "--chardev", "socket,id=c,server=on,wait=off,path=" + path, "--monitor", "c",
                          "--blockdev", "driver=null-co,size=1M,node-name=n", "--vfio-user", place.tmp + "/s2",
                          "--device", "ide-hd,drive=n,id=hd0")
    place.wait_for(lambda: os.path.exists(place.tmp + "/s2"), "start")
    with Qmp(path) as qmp:
        disk = qmp.command("query-block")[0]
        tap.equal((disk["qdev"], disk["removable"], disk["inserted"]["node-name"], disk["io-status"], "tray_open" in disk),
                  ("hd0", False, "n", "ok", False), "query-block: a hard disk")
        tap.equal(qmp.failure("eject", id="hd0"), ("GenericError", "Device 'hd0' is not removable"), "which cannot be ejected")
        tap.equal(qmp.failure("blockdev-del", node_name="n"), ("GenericError", "Node n is in use"), "its node stays")
        qmp.command("quit")
    tap.equal(process.wait(10), 0, "with a disk: quit")
    process.communicate()


def check_slow(tap, server, qmp, place):
    """A node whose source does not answer: its own client waits, no other does, and the process can end."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(5)
        url = "http://127.0.0.1:%d/x.iso" % silent.getsockname()[1]
        qmp.send(json.dumps({"execute": "blockdev-add", "arguments": {"driver": "http", "url": url, "node-name": "slow",
                                                                      "read-only": True}}))
        client, _ = silent.accept()
        with Qmp(server.path2) as other:
            tap.equal(other.command("query-name"), {}, "while a source is slow another client is served")
            tap.equal(len(other.command("query-block")), 2, "also with what has to be looked up")
            tap.equal(other.command("quit"), {}, "and may end the process")
        out, err = server.process.communicate(timeout=10)
        tap.equal((server.process.returncode, out, err), (0, "", ""), "quit: status 0, silent")
        client.close()
    tap.ok(not place.leftovers(), "quit: no socket is left", *place.leftovers())


def check_fd(tap, place):
    path = os.path.join(place.tmp, "own")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(1)
        fd = listening.fileno()
        process = place.start("spindled", "--chardev", "socket,id=c,server=on,wait=off,fd=%d" % fd, "--monitor", "c", pass_fds=[fd])
        with Qmp(path) as qmp:
            tap.equal(qmp.command("query-block"), [], "fd=: a listening socket that was handed over")
        with Qmp(path) as qmp:
            qmp.command("quit")
        tap.equal(process.wait(10), 0, "fd=: takes one client after the other")
        process.communicate()
        status, _, err = place.run("spindled", "--chardev", "socket,id=c,fd=%d" % fd, "--monitor", "c", pass_fds=[fd])
        tap.equal((status, err), (1, "spindled: File descriptor '%d' is a listening socket: give server=on\n" % fd),
                  "fd=: a listening socket needs server=on")
    os.unlink(path)
    status, _, err = place.run("spindled", "--chardev", "socket,id=c,fd=0", "--monitor", "c")
    tap.equal((status, err), (1, "spindled: File descriptor '0' is not a socket\n"), "fd=: no socket")


def check_mistakes(tap, place):
    chardev = ["--chardev", "socket,id=c,server=on,wait=off,path=" + place.tmp + "/qmp"]
    for args, message in (
            (["--monitor", "c"], '--monitor c: chardev "c" not found'),
            (chardev + ["--monitor", "mode=control"], "--monitor mode=control: Parameter 'chardev' is missing"),
            (chardev + ["--monitor", "c,mode=none"], "--monitor c,mode=none: Parameter 'mode' does not accept value 'none'"),
            (chardev + ["--monitor", "c", "--monitor", "c"], "--monitor c: Device 'c' is in use"),
            (chardev + chardev, "--chardev %s: Chardev with id 'c' already exists" % chardev[1]),
            (["--chardev", "socket,path=x"], "--chardev socket,path=x: Parameter 'id' is missing"),
            (["--chardev", "socket,id=c"], "--chardev socket,id=c: chardev: socket: no path, host or fd given"),
            (["--chardev", "file,id=c,path=x"], "--chardev file,id=c,path=x: 'file' is not a valid char driver")):
        tap.equal(place.run("spindled", *args), (1, "", "spindled: %s\n" % message), message)
    path = place.tmp + "/none/qmp"
    status, _, err = place.run("spindled", "--chardev", "socket,id=c,server=on,wait=off,path=" + path, "--monitor", "c")
    tap.equal((status, err), (1, "spindled: Failed to bind socket to %s: No such file or directory\n" % path), "a folder that is not there")
    tap.ok(not place.leftovers(), "mistakes leave nothing", *place.leftovers())


def check_clients(tap, server, qmp):
    """Clients that do no good cost nobody else anything."""
    greedy = Qmp(server.path2)
    sent = threading.Event()

    def flood():
        try:
            for _ in range(20000):
                greedy.send('{"execute":"query-commands"}')
        except OSError:
            pass
        sent.set()
    threading.Thread(target=flood, daemon=True).start()
    sent.wait(0.5)
    before = memory(server.process.pid)
    tap.equal(qmp.command("query-name"), {}, "a client that does not read: others are served")
    tap.ok(before < 64 * 1024, "and memory stays: %d KiB" % before)
    greedy.socket.shutdown(socket.SHUT_RDWR)
    greedy.close()
    with Qmp(server.path2) as endless:
        try:
            endless.send(b'{"execute":"' + b"x" * (80 << 20))
        except OSError:
            pass
    tap.equal(qmp.command("query-name"), {}, "a value without an end: others are served")
    after = memory(server.process.pid)
    tap.ok(after < 160 * 1024, "and memory stays: %d KiB" % after)


def memory(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))


with Tap() as tap, Place() as place:
    for name, byte in (("a.iso", b"a"), ("b.iso", b"b"), ("c.iso", b"c")):
        place.write(name, byte * (1 << 20))
    server = Server(place, "--object", "throttle-group,id=of-argv,limits.iops-total=5", "--chardev",
                    "socket,id=e,server=on,wait=off,path=" + place.tmp + "/qmp2", "--monitor", "e")
    server.path2 = place.tmp + "/qmp2"
    check_protocol(tap, server)
    check_pretty(tap, server)
    with Qmp(server.path) as qmp:
        check_queries(tap, qmp, place)
        check_tray(tap, server, qmp)
        check_change(tap, qmp, place.path("c.iso"))
        check_objects(tap, qmp)
        check_clients(tap, server, qmp)
        check_slow(tap, server, qmp, place)
    server.end()
    check_disk(tap, place)
    check_fd(tap, place)
    check_mistakes(tap, place)
