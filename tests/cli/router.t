#!/usr/bin/env python3
"""QEMU's monitors with Spindle's drives in them: what is answered by whom, what is joined, and what passes untouched. With QEMU
itself, whose guest does not run."""

import array
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import Place, engine
from tap import Tap
from qmp import Qmp

CD = "sata0-0-0"
DISC = ["-blockdev", '{"driver":"file","filename":"a.iso","node-name":"libvirt-1-storage","auto-read-only":true,"discard":"unmap"}',
        "-blockdev", '{"node-name":"libvirt-1-format","read-only":true,"driver":"raw","file":"libvirt-1-storage"}',
        "-device", '{"driver":"ide-cd","bus":"ide.0","drive":"libvirt-1-format","id":"%s"}' % CD]
MACHINE = ["-machine", "q35", "-accel", "tcg", "-m", "64", "-display", "none", "-nodefaults", "-S",
           "-blockdev", "driver=null-co,node-name=null0", "-device", "virtio-scsi-pci,id=scsi0",
           "-device", "scsi-hd,drive=null0,id=disk0", "-device", "pcie-root-port,id=port0,chassis=1"]


class Machine:
    """spindle with a QMP monitor that it is handed as a listening socket, as libvirt does."""

    def __init__(self, place, *args, drive=DISC):
        self.place = place
        self.path = os.path.join(place.tmp, "monitor.sock")
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self.path)
        listening.listen(1)
        os.set_inheritable(listening.fileno(), True)
        self.process = place.start("spindle", *MACHINE, "-chardev", "socket,id=charmonitor,fd=%d,server=on,wait=off" % listening.fileno(),
                                   "-mon", "chardev=charmonitor,id=monitor,mode=control", *drive, *args, pass_fds=[listening.fileno()])
        listening.close()

    def end(self, qmp=None):
        """(exit status, standard error) after `quit`."""
        if qmp:
            qmp.command("quit")
        _, err = self.process.communicate(timeout=20)
        os.unlink(self.path)
        return self.process.returncode, re.sub(r".*'-mon' is deprecated.*\n", "", err)

    def children(self, name):
        return [pid for pid, line in self.place.processes().items() if line.startswith(name + " ")]


def names(answer, key):
    return [item.get(key) for item in answer]


def trays(qmp):
    return [(e["data"]["id"], e["data"]["tray-open"]) for e in qmp.take_events() if e["event"] == "DEVICE_TRAY_MOVED"]


def check_queries(tap, qmp):
    tap.ok(re.match(r"Debian|\(|v|$", qmp.greeting["QMP"]["version"]["package"]) and "oob" in qmp.greeting["QMP"]["capabilities"],
           "the greeting is QEMU's", qmp.greeting)
    drives = qmp.command("query-block")
    tap.equal(names(drives, "qdev"), [CD, "disk0"], "query-block: the drives of both")
    tap.equal((drives[0]["inserted"]["node-name"], drives[0]["tray_open"], drives[0]["removable"]), ("libvirt-1-format", False, True),
              "query-block: what is in Spindle's")
    tap.equal(names(qmp.command("query-block", flat=True), "qdev"), [CD, "disk0"], "query-block, flat: likewise")
    for command in ("query-block", "query-blockstats", "query-named-block-nodes"):
        tap.equal(qmp.failure(command, future=True), ("GenericError", "Parameter 'future' is unexpected"),
                  command + ": what one of them does not take is refused, its part is not left out")
    tap.equal(names(qmp.command("query-blockstats"), "qdev"), [CD, "disk0"], "query-blockstats: of both")
    tap.equal(sorted(names(qmp.command("query-named-block-nodes", flat=True), "node-name")),
              ["libvirt-1-format", "libvirt-1-storage", "null0"], "query-named-block-nodes: of both")
    listed = {d["name"]: d["type"] for d in qmp.command("qom-list", path="/machine/peripheral")}
    tap.equal(listed, {"type": "string", CD: "child<ide-cd>", "disk0": "child<scsi-hd>", "scsi0": "child<virtio-scsi-pci>",
                       "port0": "child<pcie-root-port>"}, "qom-list: the drive where the user put it, nothing of Spindle's own")
    tap.equal(qmp.command("qom-get", path="/machine/peripheral/" + CD, property="type"), "ide-cd", "qom-get of Spindle's drive")
    tap.equal(qmp.command("qom-get", path="/machine/peripheral/disk0", property="type"), "scsi-hd", "qom-get of QEMU's")
    tap.equal(names(qmp.command("query-chardev"), "label"), ["charmonitor"], "query-chardev: the user's only")
    text = qmp.command("human-monitor-command", command_line="info block")
    tap.ok("a.iso" in text and "Attached to:      " + CD in text and "null-co" in text, "info block: of both", text)
    tap.ok("disk0" not in qmp.command("human-monitor-command", command_line="info block " + "libvirt-1-format"), "info block of one", text)
    tap.equal(qmp.failure("eject", id="nothing"), ("DeviceNotFound", "Device 'nothing' not found"), "what nobody has is QEMU's to say")
    tap.equal(qmp.failure("nonsense"), ("CommandNotFound", "The command nonsense has not been found"), "likewise what is no command")


def change(qmp, number, filename):
    """The steps of `virsh change-media --update`."""
    qmp.command("blockdev-open-tray", id=CD, force=False)
    qmp.command("blockdev-remove-medium", id=CD)
    for layer in ("format", "storage"):
        qmp.command("blockdev-del", node_name="libvirt-%d-%s" % (number - 1, layer))
    qmp.command("blockdev-add", driver="file", filename=filename, node_name="libvirt-%d-storage" % number, auto_read_only=True, discard="unmap")
    qmp.command("blockdev-add", node_name="libvirt-%d-format" % number, read_only=True, driver="raw", file="libvirt-%d-storage" % number)
    qmp.command("blockdev-insert-medium", id=CD, node_name="libvirt-%d-format" % number)
    qmp.command("blockdev-close-tray", id=CD)


def check_media(tap, place, qmp):
    change(qmp, 2, "b.iso")
    tap.equal(qmp.command("query-block")[0]["inserted"]["file"], "b.iso", "a medium is changed as libvirt does it")
    tap.equal(trays(qmp), [(CD, True), (CD, False)], "DEVICE_TRAY_MOVED, both ways")
    qmp.command("blockdev-open-tray", id=CD)
    qmp.command("blockdev-remove-medium", id=CD)
    failed = qmp.failure("blockdev-add", driver="file", filename="none.iso", node_name="f", read_only=True)
    tap.equal(failed, ("GenericError", "Could not open 'none.iso': No such file or directory"), "a mistake in a source is told when it is added")
    qmp.command("blockdev-close-tray", id=CD)
    tap.equal(qmp.command("blockdev-change-medium", id=CD, filename="a.iso"), {}, "blockdev-change-medium")
    tap.equal(qmp.command("eject", id=CD), {}, "eject")
    tap.ok("inserted" not in qmp.command("query-block")[0], "then the drive is empty")
    for layer in ("format", "storage"):
        qmp.command("blockdev-del", node_name="libvirt-2-" + layer)
    qmp.take_events()


def check_protocol(tap, qmp):
    text = "".join('{"execute":"%s","id":%d}' % (("query-name", "query-block", "query-version", "eject")[n % 4], n) for n in range(200))
    qmp.send(text)
    got = [qmp.answer() for _ in range(200)]
    tap.equal([m["id"] for m in got], list(range(200)), "200 commands sent at once are answered in order")
    tap.ok(all(("error" in m) == (m["id"] % 4 == 3) for m in got), "each with its own answer")
    qmp.send("{'execute': 'query-name', 'id': {'a': [1, null]}}")
    tap.equal(qmp.answer(), {"return": {}, "id": {"a": [1, None]}}, "QEMU's own kind of JSON, and an id of any kind")
    qmp.send("[1}\n")
    tap.equal(qmp.answer()["error"]["class"], "GenericError", "what is no JSON is an error")
    qmp.send('["x"]')
    tap.equal(qmp.answer()["error"]["desc"], "QMP input must be a JSON object", "as is another value, in QEMU's words")
    # QEMU takes such a command byte by byte, 20 s for 1 MiB.
    text = qmp.failure("qom-get", path="/machine/peripheral/" + CD, property="x" * (3 << 20))
    tap.ok(text[0] == "GenericError" and len(text[1]) > 3 << 20, "a command and an answer of 3 MiB", text[1][:100])
    text = qmp.failure("block_resize", node_name="x" * 20000, size=1)
    tap.ok(text[0] == "DeviceNotFound" and len(text[1]) > 20000 or "x" * 1000 in text[1], "and one of 20 KB to QEMU", text[1][:100])
    tap.ok(len(json.dumps(qmp.command("query-qmp-schema"))) > 100000, "and a long answer")
    rounds = 300
    began = time.monotonic()
    for _ in range(rounds):
        qmp.command("query-name")
    tap.note("a command through the router takes %.0f us" % ((time.monotonic() - began) / rounds * 1e6))


def check_descriptors(tap, place, qmp):
    """getfd: what comes along with a command reaches QEMU with it."""
    r, w = os.pipe()
    message = json.dumps({"execute": "getfd", "arguments": {"fdname": "x"}}).encode()
    qmp.socket.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [w]))])
    tap.equal(qmp.answer(), {"return": {}}, "getfd with a descriptor")
    tap.equal(qmp.failure("getfd", fdname="y")[0], "GenericError", "and without one")
    tap.equal(qmp.command("closefd", fdname="x"), {}, "QEMU has it")
    os.close(w)
    tap.equal(os.read(r, 1), b"", "and nobody else has kept it")
    os.close(r)


def check_refused(tap, qmp):
    """What would lose the state of Spindle's drives."""
    words = "Spindle's drives cannot be in snapshots of the machine: stop it and migrate to a file instead"
    tap.equal(qmp.failure("snapshot-save", job_id="j", tag="t", vmstate="null0", devices=["null0"]), ("GenericError", words), "snapshot-save is refused")
    tap.equal(qmp.command("human-monitor-command", command_line="savevm x"), "Error: %s\r\n" % words, "as is savevm")
    qmp.command("blockdev-add", driver="null-co", node_name="mirror0", size=1 << 20)
    failed = qmp.failure("blockdev-mirror", device=CD, target="mirror0", sync="full", job_id="j")
    tap.equal(failed, ("GenericError", "Spindle's drives and their nodes do not support 'blockdev-mirror'"), "a block job on Spindle's drive is refused")
    qmp.command("blockdev-del", node_name="mirror0")


def check_jobs(tap, place):
    """Nobody but its drive writes to a disk of Spindle's, copies or exports it; a node that is free is QEMU's to have."""
    for name in ("disk.img", "other.img"):
        place.write(name, bytes(4 << 20))
    machine = Machine(place, "-blockdev", "driver=file,node-name=hs,filename=disk.img,locking=off", "-blockdev", "driver=raw,node-name=hf,file=hs",
                      "-device", "ide-hd,bus=ide.1,drive=hf,id=hd0")
    with Qmp(machine.path) as qmp:
        qmp.command("blockdev-add", driver="file", filename="other.img", node_name="of")
        qmp.command("nbd-server-start", addr={"type": "unix", "data": {"path": os.path.join(place.tmp, "nbd")}})
        before = sorted(names(qmp.command("query-named-block-nodes"), "node-name"))
        copy = {"target": "of", "sync": "full", "job_id": "j"}
        for command, args in (("blockdev-mirror", dict(copy, device="hf")), ("blockdev-mirror", dict(copy, device="hd0")),
                              ("blockdev-backup", dict(copy, device="hs")), ("block-stream", {"device": "hf", "job_id": "j"}),
                              ("block-commit", {"device": "hf", "job_id": "j"}), ("blockdev-snapshot", {"node": "hf", "overlay": "of"}),
                              ("blockdev-mirror", {"device": "of", "target": "hs", "sync": "full", "job_id": "j"}),
                              ("block-export-add", {"type": "nbd", "id": "e", "node_name": "hf"}),
                              ("blockdev-set-active", {"node_name": "hf", "active": False})):
            tap.equal(qmp.failure(command, **args), ("GenericError", "Spindle's drives and their nodes do not support '%s'" % command),
                      "%s %s of a disk in use" % (command, args))
        for action, data in (("blockdev-snapshot", {"node": "hf", "overlay": "of"}), ("block-dirty-bitmap-add", {"node": "hf", "name": "b"}),
                             ("blockdev-backup", {"device": "hd0", "target": "of", "sync": "full", "job-id": "j"})):
            actions = [{"type": "abort", "data": {}}, {"type": action, "data": data}]
            tap.equal(qmp.failure("transaction", actions=actions), ("GenericError", "Spindle's drives and their nodes do not support '%s'" % action),
                      "%s in a transaction" % action)
        tap.equal(qmp.failure("transaction", actions=[{"type": "abort", "data": {}}, 5, {"type": "abort"}])[0], "GenericError", "what is no transaction is QEMU's to say")
        tap.equal(sorted(names(qmp.command("query-named-block-nodes"), "node-name")), before, "the nodes are as before")
        qmp.command("block_resize", node_name="hf", size=8 << 20)
        tap.equal(os.path.getsize(os.path.join(place.files, "disk.img")), 8 << 20, "and the drive's own")
        qmp.command("blockdev-open-tray", id=CD)
        qmp.command("blockdev-add", driver="file", filename="a.iso", node_name="free", read_only=False, locking="off")
        tap.equal(qmp.command("block-export-add", type="nbd", id="e", node_name="free"), {}, "a node that no drive uses can be exported")
        qmp.command("nbd-server-stop")
        machine.end(qmp)


def check_fdset(tap, place, qmp):
    """add-fd: both have it, and a medium can be opened by it."""
    with open(place.path("b.iso")) as f:
        message = json.dumps({"execute": "add-fd", "arguments": {"fdset-id": 3, "opaque": "rdonly:b.iso"}}).encode()
        qmp.socket.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f.fileno()]))])
    tap.equal(qmp.answer()["return"]["fdset-id"], 3, "add-fd")
    qmp.command("blockdev-open-tray", id=CD)
    qmp.command("blockdev-remove-medium", id=CD)
    tap.equal(qmp.command("blockdev-add", driver="file", filename="/dev/fdset/3", node_name="fd0", read_only=True), {}, "a node of it")
    tap.equal(qmp.command("blockdev-insert-medium", id=CD, node_name="fd0"), {}, "as a medium")
    qmp.command("blockdev-close-tray", id=CD)
    found = [n["image"]["virtual-size"] for n in qmp.command("query-named-block-nodes") if n["node-name"] == "fd0"]
    tap.equal(found, [os.path.getsize(place.path("b.iso"))], "with its size")
    qmp.command("eject", id=CD)
    tap.equal(qmp.command("blockdev-del", node_name="fd0"), {}, "which goes")
    tap.equal(qmp.command("remove-fd", fdset_id=3), {}, "as does the set")
    qmp.take_events()


def check_reconnect(tap, place, machine):
    for number in range(5):
        with Qmp(machine.path, negotiate=False) as qmp:
            tap.equal(qmp.failure("query-block")[0], "CommandNotFound", "client %d negotiates anew" % number)
            qmp.command("qmp_capabilities")
            qmp.send('{"execute":"query-block"}' * 5)  # and away


def check_nodes(tap, place, qmp):
    """Nodes go where they are used."""
    qmp.command("blockdev-add", driver="file", filename="a.iso", node_name="s", read_only=True)
    qmp.command("blockdev-add", driver="raw", file="s", node_name="f", read_only=True)
    qmp.command("blockdev-open-tray", id=CD)
    qmp.command("blockdev-remove-medium", id=CD)
    tap.equal(qmp.command("blockdev-insert-medium", id=CD, node_name="f"), {}, "a node that QEMU opened comes over for a medium")
    qmp.command("blockdev-close-tray", id=CD)
    tap.equal(qmp.command("query-block")[0]["inserted"]["node-name"], "f", "and is in the drive")
    tap.equal(qmp.failure("blockdev-del", node_name="f"), ("GenericError", "Node f is in use"), "where it is in use")
    qmp.command("eject", id=CD)
    tap.equal(qmp.command("device_add", driver="scsi-cd", drive="f", id="other", bus="scsi0.0"), {}, "from there it goes to a device of QEMU's")
    found = {d["qdev"]: d for d in qmp.command("query-block")}
    tap.equal(found["other"]["inserted"]["node-name"], "f", "and is in that")
    tap.equal(qmp.command("blockdev-insert-medium", id=CD, node_name="f"), {}, "what is in use there, and only read, is opened here as well")
    tap.equal(sorted(names(qmp.command("query-named-block-nodes"), "node-name")), ["f", "null0", "s"], "and listed once")
    qmp.command("eject", id=CD)
    qmp.command("device_del", id="other")
    tap.equal(qmp.wait_event("DEVICE_DELETED")["device"], "other", "a device of QEMU's goes, with QEMU's event")
    tap.equal([qmp.command("blockdev-del", node_name=n) for n in "fs"], [{}, {}], "blockdev-del with both")
    tap.equal(names(qmp.command("query-named-block-nodes"), "node-name"), ["null0"], "nobody has them any more")
    failed = qmp.failure("blockdev-add", driver="qcow2", node_name="q", file={"driver": "file", "filename": "a.iso"})
    tap.ok("not in qcow2 format" in failed[1], "a format that Spindle has not is QEMU's", failed)
    qmp.command("object-add", qom_type="secret", id="sec0", data="abc")
    tap.equal(qmp.failure("object-add", qom_type="secret", id="sec0", data="abc")[0], "GenericError", "object-add: a name twice")
    tap.equal(qmp.command("object-del", id="sec0"), {}, "object-del")
    tap.equal(qmp.command("object-add", qom_type="secret", id="sec0", data="abc"), {}, "both have forgotten it")


def check_plug(tap, qmp):
    """A drive comes and goes while the machine is there."""
    tap.equal(qmp.failure("device_add", driver="ide-cd", bus="none.0", id="hot"), ("GenericError", "Bus 'none.0' not found"),
              "device_add: a bus that nobody has is QEMU's to say")
    qmp.command("blockdev-add", driver="file", filename="b.iso", node_name="h", read_only=True)
    tap.equal(qmp.command("device_add", driver="ide-cd", bus="ide.3", drive="h", id="hot"), {}, "device_add of a drive for Spindle's controller")
    tap.equal(names(qmp.command("query-block"), "qdev"), [CD, "hot", "disk0"], "it is there")
    tap.ok("hot" in names(qmp.command("qom-list", path="/machine/peripheral"), "name"), "and in the object tree")
    tap.equal(qmp.command("eject", id="hot"), {}, "and obeys")
    tap.equal(qmp.command("device_del", id="hot"), {}, "device_del")
    tap.equal(qmp.wait_event("DEVICE_DELETED")["device"], "hot", "DEVICE_DELETED")
    tap.ok("hot" not in names(qmp.command("qom-list", path="/machine/peripheral"), "name"), "then it is gone")
    tap.equal(qmp.failure("eject", id="hot")[0], "DeviceNotFound", "for good")
    qmp.command("blockdev-del", node_name="h")


def check_anonymous(tap, place):
    """Drives without an id go by their paths, which no device of QEMU's has."""
    machine = Machine(place, "-device", "scsi-cd,drive=null1", "-blockdev", "driver=null-co,node-name=null1,read-only=on",
                      drive=["-drive", "if=none,id=d0,file=a.iso,format=raw,media=cdrom", "-device", "ide-cd,drive=d0,bus=ide.0", "-device", "ide-cd,bus=ide.1"])
    folder = "/machine/peripheral-anon"
    with Qmp(machine.path) as qmp:
        paths = {d["qdev"]: d["device"] for d in qmp.command("query-block") if d["qdev"].startswith(folder)}
        tap.equal(paths, {folder + "/device[0]": "", folder + "/device[1]": "d0", folder + "/device[2]": ""}, "drives without an id have paths of their own")
        tap.equal({d["name"]: d["type"] for d in qmp.command("qom-list", path=folder)},
                  {"type": "string", "device[0]": "child<scsi-cd>", "device[1]": "child<ide-cd>", "device[2]": "child<ide-cd>"}, "qom-list has them there")
        tap.equal(sorted(names(qmp.command("qom-list", path="/machine/peripheral"), "name")), ["disk0", "port0", "scsi0", "type"], "and not where those with an id are")
        tap.equal([qmp.command("qom-get", path="%s/device[%d]" % (folder, n), property="type") for n in range(3)], ["scsi-cd", "ide-cd", "ide-cd"], "qom-get")
        tap.equal(qmp.command("blockdev-change-medium", id=folder + "/device[2]", filename="b.iso"), {}, "a disc goes into one by its path")
        found = {d["qdev"]: d.get("inserted", {}).get("file") for d in qmp.command("query-block")}
        tap.equal((found[folder + "/device[2]"], found[folder + "/device[1]"]), ("b.iso", "a.iso"), "into that one")
        tap.equal(qmp.command("device_del", id=folder + "/device[2]"), {}, "it is pulled out by its path")
        tap.equal(qmp.wait_event("DEVICE_DELETED"), {"path": folder + "/device[2]"}, "DEVICE_DELETED")
        tap.equal(qmp.command("qom-get", path=folder + "/device[1]", property="type"), "ide-cd", "the other stays")
        tap.equal(qmp.failure("eject", id=folder + "/device[2]")[0], "DeviceNotFound", "and it is gone")
        tap.equal(machine.end(qmp), (0, ""), "drives without an id: the end")


def check_lost(tap, place):
    """The drive process is killed."""
    machine = Machine(place)
    with Qmp(machine.path) as qmp:
        os.kill(machine.children("spindled")[0], signal.SIGKILL)
        event = qmp.wait_event("BLOCK_IO_ERROR")
        tap.equal((event["qom-path"], event["reason"]), ("/machine/peripheral/" + CD, "The drive process has ended"), "the loss of a drive is an event")
        tap.equal({d["qdev"]: d["io-status"] for d in qmp.command("query-block")}, {CD: "failed", "disk0": "ok"}, "query-block tells it, too")
        tap.equal(qmp.failure("eject", id=CD), ("GenericError", "The drive process has ended"), "its commands fail with the reason")
        tap.equal(qmp.command("query-status")["running"], False, "the monitor goes on")
        qmp.command("blockdev-add", driver="file", filename="a.iso", node_name="n", read_only=True)
        tap.ok("n" in names(qmp.command("query-named-block-nodes"), "node-name"), "as do QEMU's block devices")
        qmp.command("system_reset")
        tap.equal(qmp.wait_event("SHUTDOWN")["reason"], "host-qmp-system-reset", "a reset, which QEMU would not survive, is a shutdown")
    status, err = machine.end()
    tap.ok(status == 0 and "spindle-router: The drive process has ended: its drives are lost" in err, "the log has it", status, err)
    tap.equal(place.leftovers(), [], "nothing is left")


def status_of(pid, key):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return re.search(r"^%s:\s*(.*?)\s*$" % key, f.read(), re.M).group(1).split()


def check_user(tap, place):
    """Another user than who started it: QEMU, the drive process and the router are all that; the descriptors they were handed serve."""
    if os.geteuid() != 0:
        tap.skip("-run-with user=", "only root can become another user")
        return
    os.chmod(place.tmp, 0o1777)
    os.chmod(place.path("a.iso"), 0o600)  # open before
    for user, uid, gid in (("nobody", "65534", "65534"), ("12345:54321", "12345", "54321")):
        machine = Machine(place, "-run-with", "user=" + user, "-sandbox", "on,obsolete=deny,spawn=deny,resourcecontrol=deny")
        with Qmp(machine.path) as qmp:
            tap.equal(names(qmp.command("query-block"), "qdev"), [CD, "disk0"], user + ": a user is served")
            pids = [machine.process.pid, *machine.children("spindled"), *machine.children("spindle-router")]
            tap.equal([(status_of(pid, "Uid"), status_of(pid, "Gid"), status_of(pid, "Groups")) for pid in pids], [([uid] * 4, [gid] * 4, [gid])] * 3,
                      user + ": QEMU, the drive process and the router are that")
            boxed = ["0" if "asan" in os.environ.get("SPINDLE_BUILD", "") else "2"]  # the sanitizers start a program of their own
            tap.equal([status_of(pid, "Seccomp") for pid in pids], [["2"], boxed, boxed], user + ": each in its sandbox")
            qmp.command("blockdev-change-medium", id=CD, filename="b.iso")
        with Qmp(machine.path) as qmp:
            tap.equal(qmp.command("query-block")[0]["inserted"]["file"], "b.iso", user + ": so is the next, with what the first has done")
            failed = qmp.failure("blockdev-change-medium", id=CD, filename="a.iso")
            tap.ok(failed[0] == "GenericError" and "Permission denied" in failed[1], user + ": what only root may read cannot be opened any more", failed)
            failed = qmp.failure("migrate", uri="file:%s/state" % place.files)
            tap.ok(failed[0] == "GenericError" and "Permission denied" in failed[1], user + ": nor a file be made where only root may", failed)
            tap.equal(machine.end(qmp), (0, ""), user + ": the end")
        tap.equal(place.leftovers(), [], user + ": nothing is left")
    os.chmod(place.path("a.iso"), 0o644)
    os.chmod(place.tmp, 0o700)


def check_pipe(tap, place):
    """Commands from a pipe are all carried out and answered, though its end comes with them."""
    for name, commands, wanted in (
            ("and quit", ["query-block", "query-status", "query-block", "quit"], 0),
            ("and then the reader goes", ["query-qmp-schema"] * 40 + ["quit"], 0)):
        process = subprocess.Popen([place.program("spindle"), *MACHINE, "-qmp", "stdio", *DISC], cwd=place.files, env=place.environment(),
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        text = "".join('{"execute":"%s"}\n' % command for command in ["qmp_capabilities", *commands])
        if "reader" in name:
            process.stdin.write(text)
            process.stdin.close()
            process.stdout.readline()
            process.stdout.close()
            status = process.wait(20)
        else:
            out, _ = process.communicate(text, timeout=20)
            status = process.returncode
            answers = [answer["return"] for answer in map(json.loads, out.splitlines()) if "return" in answer]
            tap.equal((len(answers), [names(answers[n], "qdev") for n in (1, 3)]), (5, [[CD, "disk0"]] * 2), "commands from a pipe %s: all are answered" % name)
        tap.equal(status, wanted, "commands from a pipe %s: the end" % name)
        tap.equal(place.leftovers(), [], "commands from a pipe %s: nothing is left" % name)


def check_deaf_user(tap, place):
    """A user who does not read: bounded memory, and the others are served."""
    machine = Machine(place, "-qmp", "unix:%s/q,server=on,wait=off" % place.tmp, "-sandbox",
                      "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny")
    deaf = socket.socket(socket.AF_UNIX)
    deaf.connect(machine.path)
    deaf.sendall(b'{"execute":"qmp_capabilities"}')
    deaf.settimeout(1)
    sent = 0
    try:
        while sent < 1 << 20:
            sent += deaf.send(b'{"execute":"query-qmp-schema"}{"execute":"query-block"}' * 100)
    except socket.timeout:
        pass
    with Qmp(place.tmp + "/q") as qmp:
        tap.equal(names(qmp.command("query-block"), "qdev"), [CD, "disk0"], "beside a user who does not read others are served")
        qmp.command("blockdev-change-medium", id=CD, filename="b.iso")
        with open("/proc/%d/status" % machine.children("spindle-router")[0]) as f:
            peak = int(re.search(r"VmHWM:\s+(\d+) kB", f.read()).group(1))
        tap.ok(sent < 1 << 20 and peak < 64 << 10, "who is made to wait after %d KiB of commands; %d MiB of memory" % (sent >> 10, peak >> 10))
        qmp.command("quit")
        began = time.monotonic()
        machine.end()
        tap.equal(place.leftovers(), [], "the end does not wait for them (%.1f s)" % (time.monotonic() - began))
    deaf.close()


def check_daemonize(tap, place):
    """Nothing that was inherited is held, and QEMU's own forms work beside it."""
    r, w = os.pipe()
    with open(place.path("a.iso")) as extra:
        got = place.run("spindle", *MACHINE, *DISC, "-daemonize", "-pidfile", place.tmp + "/pid", "-msg", "timestamp=on", "-add-fd", "fd=%d,set=7" % extra.fileno(),
                        "-qmp", "unix:%s/q,server=on,wait=off" % place.tmp, pass_fds=[w, extra.fileno()])
    os.close(w)
    tap.equal(got, (0, "", ""), "-daemonize, with -pidfile, -add-fd, -msg")
    with Qmp(place.tmp + "/q") as qmp:
        held = {line.split()[0] for pid, line in place.processes().items() for fd in os.listdir("/proc/%d/fd" % pid)
                if os.readlink("/proc/%d/fd/%s" % (pid, fd)) == os.readlink("/proc/self/fd/%d" % r)}
        tap.equal(held & {"spindled", "spindle-router"}, set(), "no descriptor that was inherited is held by Spindle's processes")
        tap.equal(names(qmp.command("query-fdsets"), "fdset-id"), [7], "-add-fd is QEMU's")
        with open(place.tmp + "/pid") as f:
            tap.ok(os.readlink("/proc/%s/exe" % f.read().strip()) == os.readlink("/proc/%d/exe" % [p for p, l in place.processes().items() if "-pidfile" in l][0]),
                   "the pidfile has QEMU's process")
        qmp.command("quit")
    tap.equal(place.leftovers(), [], "nothing is left")
    os.close(r)


def check_qmp_server(tap, place):
    """-qmp with a path of its own, and a client's form; the drive without a medium."""
    with socket.socket(socket.AF_UNIX) as listening:
        path = os.path.join(place.tmp, "client.sock")
        listening.bind(path)
        listening.listen(1)
        listening.settimeout(20)
        process = place.start("spindle", *MACHINE, "-qmp", "unix:%s/q,server=on,wait=off" % place.tmp, "-qmp-pretty", "unix:" + path,
                              "-device", "ide-cd,id=" + CD)
        peer, _ = listening.accept()
        peer.settimeout(20)
        text = b""
        while b"\n}" not in text:
            text += peer.recv(4096)
        tap.ok(b'{\r\n    "QMP": {\r\n' in text, "-qmp-pretty to a listening user", text)
        peer.sendall(b'{"execute":"qmp_capabilities"}{"execute":"query-block"}')
        while b'"tray_open"' not in text:
            text += peer.recv(4096)
        tap.ok(re.search(rb'\r\n        \{\r\n            "device": ', text), "joined answers are pretty, too", text)
        with Qmp(place.tmp + "/q") as qmp:
            qmp.command("blockdev-change-medium", id=CD, filename="a.iso")
            while b"DEVICE_TRAY_MOVED" not in text:
                text += peer.recv(4096)
            tap.ok(True, "what one user does, the other is told")
            tap.equal(names(qmp.command("query-chardev"), "label"), ["compat_monitor1", "compat_monitor0"], "the chardevs have QEMU's names")
            peer.close()
            qmp.command("quit")
        process.communicate(timeout=20)
        os.unlink(path)
    tap.equal(place.leftovers(), [], "nothing is left, the socket of -qmp neither")


def check_names(tap, place):
    """Drives of the short forms go by QEMU's names for them."""
    machine = Machine(place, drive=["-cdrom", "a.iso", "-drive", "if=none,id=two,file=a.iso,media=cdrom,readonly=on", "-device", "ide-cd,drive=two,id=dev2"])
    with Qmp(machine.path) as qmp:
        tap.equal(sorted(names(qmp.command("query-block"), "device")), ["", "ide2-cd0", "two"], "query-block: the names of -cdrom and -drive")
        tap.equal(qmp.command("eject", device="two"), {}, "eject by such a name")
        tap.equal(qmp.wait_event("DEVICE_TRAY_MOVED"), {"device": "two", "id": "dev2", "tray-open": True}, "which the event has, too")
        tap.equal(qmp.command("human-monitor-command", command_line="change ide2-cd0 b.iso"), "", "the human monitor's change")
        found = {d["device"]: d for d in qmp.command("query-block")}
        tap.equal((found["ide2-cd0"]["inserted"]["file"], "inserted" in found["two"]), ("b.iso", False), "both have happened")
        machine.end(qmp)


def check_start_fails(tap, place):
    status, _, err = place.run("spindle", *MACHINE, "-qmp", "unix:/none/q,server=on,wait=off", *DISC)
    tap.equal((status, err), (1, "spindle: -qmp unix:/none/q,server=on,wait=off: Failed to bind socket to /none/q: No such file or directory\n"),
              "a socket that cannot be made")
    tap.equal(place.leftovers(), [], "leaves nothing")
    machine = Machine(place, "-device", "nonsense")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        try:
            client.connect(machine.path)
            while client.recv(4096):
                pass
        except ConnectionError:  # it was quicker than this
            pass
        tap.ok(True, "QEMU fails: its user sees the end")
    status, err = machine.end()
    tap.ok(status == 1 and "'nonsense' is not a valid device model name" in err, "QEMU's own message and status", status, err)
    tap.equal(place.leftovers(), [], "nothing is left")
    machine = Machine(place, drive=[a.replace("a.iso", "none.iso") for a in DISC])
    status, err = machine.end()
    tap.ok(status == 1 and "none.iso': No such file or directory" in err, "a drive fails: its message, status 1", status, err)
    tap.equal(place.leftovers(), [], "nothing is left")


with Tap() as tap, Place() as place:
    for name, size in (("a.iso", 100), ("b.iso", 200)):
        place.write(name, bytes(2048 * size))
    engine()
    machine = Machine(place)
    with Qmp(machine.path) as qmp:
        check_queries(tap, qmp)
        check_media(tap, place, qmp)
        check_protocol(tap, qmp)
        check_descriptors(tap, place, qmp)
        check_refused(tap, qmp)
        check_fdset(tap, place, qmp)
        check_nodes(tap, place, qmp)
        check_plug(tap, qmp)
    check_reconnect(tap, place, machine)
    with Qmp(machine.path) as qmp:
        status, err = machine.end(qmp)
        tap.equal((status, err), (0, ""), "quit: QEMU's exit status, nothing on standard error")
        rest = qmp.read()
        tap.ok("SHUTDOWN" in names(qmp.events, "event") or rest["event"] == "SHUTDOWN", "its last event comes through", rest)
        tap.ok(rest is None or qmp.read() is None, "then the end")
    tap.equal(place.leftovers(), [], "nothing is left")
    check_qmp_server(tap, place)
    check_start_fails(tap, place)
    check_jobs(tap, place)
    check_names(tap, place)
    check_anonymous(tap, place)
    check_lost(tap, place)
    check_user(tap, place)
    check_pipe(tap, place)
    check_deaf_user(tap, place)
    check_daemonize(tap, place)
