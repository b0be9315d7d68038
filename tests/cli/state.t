#!/usr/bin/env python3
"""The drive process's devices saved and loaded: files, descriptors, answers; whose the images are meanwhile; bad states."""

import base64
import hashlib
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import Place
from tap import Tap
from qmp import Qmp


class Drives:
    """spindled with a disk and a CD drive."""

    def __init__(self, place, name, *more, disc="a.iso", drives=("hd", "cd"), **options):
        self.place, self.socket = place, os.path.join(place.tmp, name)
        nodes = ["--blockdev", "driver=file,node-name=d0,filename=d.img",
                 "--blockdev", "driver=file,node-name=c0,read-only=on,filename=" + disc]
        devices = {"hd": ["--device", "ide-hd,drive=d0,id=hd0,bus=ide.0"], "cd": ["--device", "ide-cd,drive=c0,id=cd0,bus=ide.1"]}
        self.process = place.start(
            "spindled", "--chardev", "socket,id=c,server=on,wait=off,path=%s.qmp" % self.socket, "--monitor", "c", *nodes,
            "--vfio-user", self.socket, *sum((devices[d] for d in drives), []), *more, **options)
        place.wait_for(lambda: os.path.exists(self.socket) or self.process.poll() is not None, "start")
        self.qmp = Qmp(self.socket + ".qmp") if self.process.poll() is None else None

    def end(self):
        if self.qmp:
            self.qmp.close()
        if self.process.poll() is None:
            self.process.terminate()
        return self.process.communicate(timeout=10)[1]


def sealed(body):
    return body + hashlib.sha256(body).digest()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def check_move(tap, place):
    a, b = Drives(place, "a"), Drives(place, "b", "--incoming")
    tap.equal(b.qmp.command("query-status"), {"running": False, "status": "paused"}, "--incoming: stands still")
    tap.ok("lock" in str(b.qmp.failure("cont")), "it cannot run while the other one has the images", b.qmp.failure("cont"))
    tap.equal(a.qmp.command("query-status")["running"], True, "which runs on")
    tap.equal(a.qmp.command("save-state", filename="devices"), {}, "save-state")
    tap.equal(a.qmp.command("query-status"), {"running": False, "status": "paused"}, "stands still then")
    state = read(place.path("devices"))
    tap.equal(base64.b64decode(a.qmp.command("save-state")["data"]), state, "saved again, in the answer: the same")
    tap.equal(os.stat(place.path("devices")).st_mode & 0o777, 0o600, "the file is its owner's alone")
    value = b.qmp.command("load-state", filename="devices")
    writes = value["controllers"][0]["pci-config"]
    tap.equal((value["controllers"][0]["id"], writes[-1]), ("ide", {"offset": 4, "size": 2, "value": 0}),
              "load-state: what the guest had in the PCI configuration, the command register last")
    tap.ok({"offset": 0x24, "size": 4, "value": 0} in writes, "the address of BAR 5 among it", writes)
    tap.equal(b.qmp.command("cont"), {}, "cont: it has the images now")
    tap.equal(b.qmp.command("query-status")["running"], True, "and runs")
    tap.ok("lock" in str(a.qmp.failure("cont")), "the other one cannot go back", a.qmp.failure("cont"))
    tap.equal(b.qmp.command("load-state", data=base64.b64encode(state).decode())["controllers"][0]["id"], "ide", "from an argument")
    b.end()
    tap.equal(a.qmp.command("cont"), {}, "it can when the images are free")
    a.end()
    return state


def check_descriptors(tap, place):
    r, w = os.pipe()
    d = Drives(place, "c", pass_fds=(r, w))
    tap.equal(d.qmp.command("save-state", fd=w), {}, "save-state to a descriptor")
    os.write(w, b"and more")
    tap.equal(d.qmp.command("load-state", fd=r)["controllers"][0]["id"], "ide", "load-state from one")
    tap.equal(os.read(r, 100), b"and more", "which reads no further than the state")
    os.close(r)
    os.close(w)
    for args, words in (({}, "exactly one of"), ({"fd": 99}, "'fd' does not accept value '99'"), ({"filename": "no"}, "No such file"),
                        ({"fd": 3, "filename": "x"}, "exactly one of"), ({"data": "!"}, "no state of Spindle's devices")):
        answer = d.qmp.failure("load-state", **args)
        tap.ok(answer[0] == "GenericError" and words in answer[1], "load-state %s" % args, answer)
    answer = d.qmp.failure("save-state", filename="no/where")
    tap.ok("Could not write the state to 'no/where': No such file" in answer[1], "save-state to nowhere", answer)
    d.end()


def check_bad_states(tap, place, state):
    body = state[:-32]
    rows = (
        ("cut off", state[:-1], "not complete"),
        ("a bit is wrong", state[:200] + bytes([state[200] ^ 4]) + state[201:], "checksum is wrong"),
        ("something else", b"QEVM" + state[4:], "no state of Spindle's devices"),
        ("empty", b"", "no state of Spindle's devices"),
        ("a newer format", sealed(body[:8] + struct.pack("<I", 2) + body[12:]), "format version 2"),
        ("a newer device", sealed(body.replace(b"\x04ahci" + struct.pack("<I", 1), b"\x04ahci" + struct.pack("<I", 7))),
         "State of 'devices/ahci': its version is 7, this Spindle reads up to 1"),
        ("another device", sealed(body.replace(b"\x06ide-hd", b"\x06ide-cd")), "in its place the state has 'ide-cd'"),
    )
    d = Drives(place, "d")
    for what, data, words in rows:
        place.write("bad", data)
        answer = d.qmp.failure("load-state", filename="bad")
        tap.ok(answer[0] == "GenericError" and words in answer[1], "%s: refused" % what, answer)
    tap.equal(d.qmp.command("query-status")["running"], True, "after all of them it runs as before")
    d.end()
    d = Drives(place, "e", drives=("cd",))
    place.write("good", state)
    answer = d.qmp.failure("load-state", filename="good")
    tap.ok("it has a device on port 0, and here is none" in answer[1], "a machine with fewer drives is told what is missing", answer)
    d.end()


def check_vanished(tap, place):
    place.write("good", read(place.path("devices")))
    d = Drives(place, "f", "--incoming", disc="gone.iso")
    tap.equal(d.qmp.command("load-state", filename="good")["controllers"][0]["id"], "ide", "a disc that is gone is no failed load")
    tap.equal(d.qmp.command("cont"), {}, "cont")
    drives = {b["qdev"]: b for b in d.qmp.command("query-block")}
    tap.ok("inserted" not in drives["cd0"] and not drives["cd0"]["tray_open"], "the drive is empty", drives["cd0"])
    text = d.end()
    tap.ok("gone.iso" in text, "and it was said", text)
    os.rename(place.path("d.img"), place.path("e.img"))
    d = Drives(place, "g", "--incoming")
    text = d.end()
    tap.ok(d.process.returncode == 1 and "Property 'ide-hd.drive' can't find value 'd0': Could not open 'd.img'" in text,
           "a disk that is gone is an error", text)
    os.rename(place.path("e.img"), place.path("d.img"))


with Tap() as tap, Place() as place:
    place.write("a.iso", os.urandom(1 << 20))
    place.write("d.img", bytes(1 << 20))
    the_state = check_move(tap, place)
    check_descriptors(tap, place)
    check_bad_states(tap, place, the_state)
    check_vanished(tap, place)
    tap.equal(place.processes(), {}, "nothing is left running")
