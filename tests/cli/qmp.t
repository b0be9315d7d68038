#!/usr/bin/env python3
"""QMP commands beyond the media's: limits, hot-plug, file descriptors, marks, errors that stop the machine, the schema; and clients
that send what nobody should."""

import array
import hashlib
import json
import os
import re
import socket
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from guest_cd import Guest  # noqa: E402
from program import Place  # noqa: E402
from tap import Tap  # noqa: E402
from qmp import Qmp  # noqa: E402

MIB = 1 << 20
PX_SSTS, PX_SERR = "reg 128", "reg 130"
NO_LIMITS = {"bps": 0, "bps_rd": 0, "bps_wr": 0, "iops": 0, "iops_rd": 0, "iops_wr": 0}


class Server:
    def __init__(self, place, *words, monitors=1):
        self.socket = os.path.join(place.tmp, "s")
        self.paths = [os.path.join(place.tmp, "q%d" % i) for i in range(monitors)]
        more = [w for i, path in enumerate(self.paths)
                for w in ("--chardev", "socket,id=c%d,server=on,wait=off,path=%s" % (i, path), "--monitor", "c%d" % i)]
        self.process = place.start("spindled", *more, "--vfio-user", self.socket, *words)
        place.wait_for(lambda: os.path.exists(self.socket) or self.process.poll() is not None, "start")

    def memory(self):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def files(self):
        """Names of the test's files that are open, one for each descriptor."""
        folder = "/proc/%d/fd" % self.process.pid
        paths = [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)]
        return sorted(os.path.basename(path) for path in paths if "/files/" in path)

    def end(self, tap, name, said=""):
        self.process.terminate()
        _, err = self.process.communicate(timeout=20)
        tap.equal((self.process.returncode, err), (0, said), name + ": the process ends, and has said nothing more")


def disc(name):
    return ["--blockdev", "driver=raw,node-name=n,read-only=on,file.driver=file,file.filename=" + name, "--device", "ide-cd,drive=n,id=cd0"]


def sha1(byte, sectors=4):
    return hashlib.sha1(byte * (sectors * 2048)).hexdigest()


def throttle(qmp, **limits):
    qmp.send(json.dumps({"execute": "block_set_io_throttle", "arguments": dict(dict(NO_LIMITS, id="cd0"), **limits)}))
    return qmp.answer()


def test_limits(tap, place):
    """A limit takes hold of a drive whose guest reads, and lets go of it."""
    server = Server(place, *disc("a.iso"))
    guest = Guest(server.socket)
    with Qmp(server.paths[0]) as qmp:
        fast = int(guest.run("reads 64 8")[2])
        tap.equal(throttle(qmp, bps_rd=MIB, group="g"), {"return": {}}, "block_set_io_throttle")
        slow = int(guest.run("reads 64 8")[2])
        tap.ok(700 < slow < 5000, "1 MiB at 1 MiB/s takes about a second: %d ms, %d ms before" % (slow, fast))
        drive = qmp.command("query-block")[0]["inserted"]
        tap.equal((drive["bps_rd"], drive["group"], drive["node-name"]), (MIB, "g", "n"), "query-block shows the limit and its group")
        tap.equal(guest.run("sum 3 4")[1:], ["000000", sha1(b"a")], "the guest reads what it read before")
        qmp.command("blockdev-change-medium", id="cd0", filename=place.path("b.iso"), force=True)
        guest.ready()
        tap.equal(guest.run("sum 3 4")[1:], ["000000", sha1(b"b")], "another disc")
        tap.equal(qmp.command("query-block")[0]["inserted"]["bps_rd"], MIB, "is limited, too")
        tap.equal(len(qmp.command("query-named-block-nodes")), 4, "the limits are no node that users see")
        throttle(qmp)
        again = int(guest.run("reads 64 8")[2])
        tap.ok(again < 600 and "group" not in qmp.command("query-block")[0]["inserted"], "without limits it is as fast as ever: %d ms" % again)
        stats = qmp.command("query-blockstats")[0]["stats"]
        tap.ok(stats["rd_bytes"] > 3 * MIB and stats["rd_operations"] > 100, "query-blockstats counts over all discs and limits", stats)
        tap.equal(qmp.failure("object-add", qom_type="throttle-group", id="g", limits={}), {}, "the group is gone with the last of it")
    guest.close()
    server.end(tap, "limits")


def test_plug(tap, place):
    server = Server(place, *disc("a.iso"))
    guest = Guest(server.socket)
    with Qmp(server.paths[0]) as qmp:
        tap.equal(int(guest.run(PX_SSTS)[1], 16) & 15, 3, "PxSSTS.DET: a drive, and its link is up")
        qmp.command("device_del", id="cd0")
        events = [(e["event"], e["data"]) for e in qmp.take_events()]
        tap.equal(events, [("DEVICE_DELETED", {"device": "cd0", "path": "/machine/peripheral/cd0"})], "device_del: the event")
        tap.equal(int(guest.run(PX_SSTS)[1], 16) & 15, 0, "the guest sees no drive")
        tap.ok(int(guest.run(PX_SERR)[1], 16) & 1 << 16, "and that it went: PxSERR.DIAG.N")
        tap.equal((qmp.command("query-block"), qmp.command("blockdev-del", node_name="n")), ([], {}), "its node is free")
        qmp.command("blockdev-add", driver="raw", node_name="m", read_only=True, file={"driver": "file", "filename": "b.iso"})
        tap.equal(qmp.command("device_add", driver="ide-cd", id="cd1", drive="m", bus="ide.0", serial="S1"), {}, "device_add")
        tap.equal(int(guest.run(PX_SSTS)[1], 16) & 15, 3, "the guest sees it come")
        tap.ok(int(guest.run(PX_SERR)[1], 16) & 1 << 26, "PxSERR.DIAG.X")
        guest.run("up")
        tap.equal((guest.ready(), guest.run("sum 7 4")[1:]), ("000000", ["000000", sha1(b"b")]), "and reads its disc")
        tap.equal([qmp.command("qom-get", path="cd1", property=p) for p in ("hotplugged", "serial", "drive")], [True, "S1", "m"], "qom-get")
        tap.equal(qmp.failure("device_add", driver="ide-cd", id="cd1", bus="ide.1"), ("GenericError", "Duplicate ID 'cd1' for device"),
                  "an id is for one")
        tap.equal(qmp.failure("device_add", driver="ide-hd", id="hd", bus="ide.1"), ("GenericError", "No drive specified"), "a disk needs a node")
        tap.equal(qmp.failure("device_add", driver="ide-cd", id="x", bus="ide.1", color="red"),
                  ("GenericError", "Property 'ide-cd.color' not found"), "an unknown property")
        for i in range(100):
            qmp.command("device_add", driver="ide-cd", id="y", bus="ide.1")
            qmp.command("device_del", id="y")
        tap.equal(len(qmp.take_events()), 100, "a hundred times")
    guest.close()
    server.end(tap, "hot-plug")
    server = Server(place, "--vfio-user", place.tmp + "/s2,id=pata,controller=piix3-ide")
    with Qmp(server.paths[0]) as qmp:
        tap.equal(qmp.failure("device_add", driver="ide-cd", id="x", bus="pata.0"),
                  ("GenericError", "Bus 'pata.0' does not support hotplugging"), "a PATA bus takes none while the machine runs")
    server.end(tap, "PATA")


def send_fds(qmp, fds, name, **arguments):
    message = json.dumps({"execute": name, "arguments": {k.replace("_", "-"): v for k, v in arguments.items()}}).encode()
    qmp.socket.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    return qmp.answer()


def test_descriptors(tap, place):
    server = Server(place, *disc("a.iso"))
    guest = Guest(server.socket)
    readable, writable = os.open(place.path("b.iso"), os.O_RDONLY), os.open(place.path("d.img"), os.O_RDWR)
    with Qmp(server.paths[0]) as qmp:
        one = send_fds(qmp, [readable], "add-fd", opaque="note")["return"]
        two = send_fds(qmp, [writable], "add-fd", fdset_id=7)["return"]
        tap.equal((one["fdset-id"], two["fdset-id"]), (0, 7), "add-fd: the first free set, or the one asked for")
        tap.equal(qmp.command("query-fdsets"), [{"fdset-id": 0, "fds": [{"fd": one["fd"], "opaque": "note"}]},
                                                {"fdset-id": 7, "fds": [{"fd": two["fd"]}]}], "query-fdsets")
        os.unlink(place.path("b.iso"))
        add = {"driver": "file", "node_name": "m", "filename": "/dev/fdset/0"}
        tap.equal(qmp.failure("blockdev-add", **add), ("GenericError", "Could not open '/dev/fdset/0': Permission denied"),
                  "a descriptor for reading is not for writing")
        qmp.command("blockdev-add", read_only=True, **add)
        tap.equal(qmp.command("remove-fd", fdset_id=0), {}, "remove-fd")
        tap.equal(qmp.failure("blockdev-add", **dict(add, node_name="o", read_only=True)),
                  ("GenericError", "Could not open '/dev/fdset/0': No such file or directory"), "a set that is gone")
        for name in ("open-tray", "remove-medium"):
            qmp.command("blockdev-" + name, id="cd0")
        qmp.command("blockdev-insert-medium", id="cd0", node_name="m")
        qmp.command("blockdev-close-tray", id="cd0")
        guest.ready()
        tap.equal(guest.run("sum 9 4")[1:], ["000000", sha1(b"b")], "the guest reads a file that has no name any more")
        qmp.command("blockdev-add", driver="file", node_name="w", filename="/dev/fdset/7", cache={"direct": True, "no-flush": False})
        tap.equal(qmp.command("human-monitor-command", command_line='qemu-io w "write -P 0x5a 0 4k"'), "", "a set for writing, O_DIRECT")
        with open(place.path("d.img"), "rb") as f:
            tap.equal(f.read(4096), b"\x5a" * 4096, "is written to")
        qmp.command("blockdev-del", node_name="w")
        tap.equal(qmp.failure("remove-fd", fdset_id=7, fd=12345), ("GenericError", "File descriptor named 'fdset-id:7, fd:12345' not found"),
                  "a descriptor that is not in the set")
        tap.equal(qmp.command("remove-fd", fdset_id=7, fd=two["fd"]), {}, "one that is")
        tap.equal(send_fds(qmp, [readable, writable], "getfd", fdname="x")["return"], {}, "getfd")
        tap.equal(send_fds(qmp, [readable], "getfd", fdname="1x")["error"]["desc"], "Parameter 'fdname' expects a name not starting with a digit",
                  "getfd: a name is none with a digit first")
        tap.equal((qmp.command("closefd", fdname="x"), qmp.failure("closefd", fdname="x")),
                  ({}, ("GenericError", "File descriptor named 'x' not found")), "closefd, once")
        for _ in range(50):
            send_fds(qmp, [readable] * 8, "query-name")
        qmp.command("query-name")
    with Qmp(server.paths[0]) as qmp:
        place.wait_for(lambda: server.files() == ["a.iso", "b.iso (deleted)"], "end of unwanted descriptors")
        tap.ok(True, "descriptors that nobody asks for are closed")
    os.close(readable)
    os.close(writable)
    guest.close()
    server.end(tap, "descriptors")


def check_stop(tap, qmp, server, place):
    """The guest's write fails, the client stops the machine, and nothing is tried again until it runs."""
    guest = Guest(server.socket, "disk")
    guest.send("write 40 77")
    error = qmp.wait_event("BLOCK_IO_ERROR")
    tap.equal([error[k] for k in ("qom-path", "operation", "action", "nospace", "node-name")], ["/machine/peripheral/hd0", "write", "stop", True, "d"],
              "a write without room: BLOCK_IO_ERROR")
    qmp.command("stop")
    tap.equal((qmp.command("query-status")["status"], qmp.command("query-block")[0]["io-status"]), ("io-error", "nospace"),
              "query-status and query-block tell")
    time.sleep(1.2)
    with open(place.path("d.img"), "rb") as f:
        f.seek(40 * 512)
        tap.equal(f.read(512), bytes(512), "while the machine is stopped nothing is tried again")
    qmp.command("cont")
    tap.equal(guest.answers(), [["write", "50"]], "cont: the write ends well")
    with open(place.path("d.img"), "rb") as f:
        f.seek(40 * 512)
        tap.equal(f.read(512), b"w" * 512, "and is in the image")
    tap.equal((qmp.command("query-status")["status"], qmp.command("query-block")[0]["io-status"]), ("running", "ok"), "all is well")
    guest.close()


def test_errors(tap, place):
    """A full disk stops the machine: the event says so, and once it runs again the write succeeds."""
    server = Server(place, "--blockdev", "driver=blkdebug,node-name=d,image.driver=file,image.filename=d.img,"
                    "inject-error.0.event=none,inject-error.0.iotype=write,inject-error.0.errno=28,inject-error.0.once=on,inject-error.0.sector=40",
                    "--device", "ide-hd,drive=d,id=hd0,werror=stop")
    with Qmp(server.paths[0]) as qmp:
        tap.equal(qmp.command("query-status"), {"status": "running", "running": True}, "query-status")
        tap.equal((qmp.command("stop"), qmp.command("stop")), ({}, {}), "stop")
        tap.equal(qmp.command("query-status"), {"status": "paused", "running": False}, "query-status: paused")
        tap.equal((qmp.command("cont"), [e["event"] for e in qmp.take_events()]), ({}, ["STOP", "RESUME"]), "cont, and one event for each")
        qmp.command("block-set-write-threshold", node_name="d", write_threshold=65536)
        qmp.command("human-monitor-command", command_line='qemu-io d "write 0 4k"')
        tap.equal([e["event"] for e in qmp.take_events()], [], "a write before the mark is not told of")
        qmp.command("human-monitor-command", command_line='qemu-io d "write 64k 4k"')
        tap.equal(qmp.wait_event("BLOCK_WRITE_THRESHOLD"), {"node-name": "d", "amount-exceeded": 4096, "write-threshold": 65536}, "one behind it is")
        qmp.command("human-monitor-command", command_line='qemu-io d "write 64k 4k"')
        tap.equal((qmp.take_events(), qmp.command("query-named-block-nodes")[0]["write_threshold"]), ([], 0), "once")
        check_stop(tap, qmp, server, place)
    server.end(tap, "errors", "spindled: warning: 'hd0': a write failed: No space left on device; it is tried again every second\n")


def test_disc_errors(tap, place):
    """A disc with a bad sector: the guest gets the sense, clients the event, no more than one a second."""
    server = Server(place, "--blockdev", "driver=blkdebug,node-name=d,read-only=on,image.driver=file,image.filename=a.iso,"
                    "inject-error.0.event=none,inject-error.0.errno=5,inject-error.0.sector=40", "--device", "ide-cd,drive=d,id=cd0")
    guest = Guest(server.socket)
    with Qmp(server.paths[0]) as qmp:
        tap.equal(guest.run("sum 8 4")[1], "031100", "the guest gets 03/11/00")
        error = qmp.wait_event("BLOCK_IO_ERROR")
        tap.equal({k: error[k] for k in ("device", "qom-path", "node-name", "operation", "action", "nospace", "reason")},
                  {"device": "", "qom-path": "/machine/peripheral/cd0", "node-name": "d", "operation": "read", "action": "report",
                   "nospace": False, "reason": "Input/output error"}, "BLOCK_IO_ERROR")
        begun = time.monotonic()
        for _ in range(200):
            guest.run("sum 8 4")
        time.sleep(max(0, begun + 1.2 - time.monotonic()))
        count = len(qmp.take_events())
        tap.ok(1 <= count <= time.monotonic() - begun + 1, "two hundred more at once are one, a second later", count)
    guest.close()
    server.end(tap, "disc errors")


def test_disc_stop(tap, place):
    """rerror=stop of a disc with no machine here to be stopped: the read is tried every second; and held back once somebody has
    stopped the machine."""
    server = Server(place, "--blockdev", "driver=blkdebug,node-name=d,read-only=on,image.driver=file,image.filename=a.iso,"
                    + ",".join("inject-error.%d.event=none,inject-error.%d.errno=5,inject-error.%d.once=on,inject-error.%d.sector=40" % (4 * (n,))
                               for n in range(4)), "--device", "ide-cd,drive=d,id=cd0,rerror=stop")
    guest = Guest(server.socket)
    with Qmp(server.paths[0]) as qmp:
        begun = time.monotonic()
        tap.equal(guest.run("sum 8 4")[1:], ["000000", sha1(b"a")], "rerror=stop: the read ends well")
        tap.ok(time.monotonic() - begun > 3, "at the fifth try, one each second", time.monotonic() - begun)
        error = qmp.wait_event("BLOCK_IO_ERROR")
        tap.equal((error["operation"], error["action"], error["qom-path"]), ("read", "stop", "/machine/peripheral/cd0"), "BLOCK_IO_ERROR")
        place.wait_for(lambda: qmp.command("query-block")[0]["io-status"] == "ok", "I/O status")
    guest.close()
    server.end(tap, "disc and stop", "spindled: warning: 'cd0': a read failed: Input/output error; it is tried again every second\n")


def test_disc_stop_by_machine(tap, place):
    server = Server(place, "--blockdev", "driver=blkdebug,node-name=d,read-only=on,image.driver=file,image.filename=a.iso,"
                    "inject-error.0.event=none,inject-error.0.errno=5,inject-error.0.once=on,inject-error.0.sector=40",
                    "--device", "ide-cd,drive=d,id=cd0,rerror=stop")
    guest = Guest(server.socket)
    with Qmp(server.paths[0]) as qmp:
        guest.send("sum 8 4")
        qmp.wait_event("BLOCK_IO_ERROR")
        qmp.command("stop")
        time.sleep(1.5)
        tap.equal((qmp.command("query-status")["status"], qmp.command("query-block")[0]["io-status"]), ("io-error", "failed"),
                  "a machine that was stopped: nothing is tried, query-status tells why")
        qmp.command("cont")
        tap.equal(guest.answers(), [["sum", "000000", sha1(b"a")]], "cont: the read ends well")
        tap.equal((qmp.command("query-status")["status"], qmp.command("query-block")[0]["io-status"]), ("running", "ok"), "all is well")
    guest.close()
    server.end(tap, "disc and a machine", "spindled: warning: 'cd0': a read failed: Input/output error; it is tried again every second\n")


def test_remote(tap, place):
    server = Server(place, "--blockdev", "driver=cache,node-name=c,file.driver=file,file.filename=a.iso,read-only=on",
                    "--device", "ide-cd,drive=c,id=cd0")
    guest = Guest(server.socket)
    with Qmp(server.paths[0]) as qmp:
        guest.run("sum 8 4")
        stats = qmp.command("query-blockstats")[0]
        mine = stats["driver-specific"]
        tap.ok(mine["driver"] == "cache" and mine["state"] == "connected" and mine["bytes-served"] >= 8192 and
               mine["bytes-fetched"] >= 8192, "driver-specific: how a cache is doing", mine)
        text = qmp.command("human-monitor-command", command_line="info remote")
        tap.ok("State:            connected" in text and "%d served" % mine["bytes-served"] in text, "info remote", text)
    guest.close()
    server.end(tap, "remote statistics")


def types_of(schema):
    for info in schema:
        for key in ("arg-type", "ret-type", "element-type"):
            if key in info:
                yield info[key]
        for member in info.get("members", []) if info["meta-type"] == "object" else []:
            yield member["type"]
        for variant in info.get("variants", []):
            yield variant["type"]


def test_schema(tap, place):
    server = Server(place)
    with Qmp(server.paths[0]) as qmp:
        schema = qmp.command("query-qmp-schema")
        names = [info["name"] for info in schema]
        tap.equal(len(names), len(set(names)), "query-qmp-schema: each name once")
        tap.equal(set(types_of(schema)) - set(names), set(), "all types that it names are in it")
        commands = {i["name"] for i in schema if i["meta-type"] == "command"}
        tap.equal(commands, {c["name"] for c in qmp.command("query-commands")}, "its commands are query-commands'")
        tap.equal({i["name"] for i in schema if i["meta-type"] == "event"}, {e["name"] for e in qmp.command("query-events")}, "its events, too")
        by_name = {i["name"]: i for i in schema}
        add = by_name[by_name["blockdev-add"]["arg-type"]]
        tap.ok(add["tag"] == "driver" and {"file", "raw", "luks", "http", "nbd"} <= {v["case"] for v in add["variants"]},
               "blockdev-add has a branch for each driver", add)
        eject = {m["name"]: "default" in m for m in by_name[by_name["eject"]["arg-type"]]["members"]}
        tap.equal(eject, {"device": True, "id": True, "force": True}, "eject's arguments may all be left out")
        tap.equal(qmp.failure("block-export-add", type="nbd", id="e", node_name="n")[0], "GenericError", "exports are refused")
        tap.equal(qmp.command("query-block-exports"), [], "there are none")
    server.end(tap, "schema")


def hostile(path, text):
    """Sends it until the other side has had enough; what it answered."""
    with Qmp(path, timeout=10) as qmp:
        try:
            qmp.send(text)
            return qmp.answer()
        except (OSError, EOFError):
            return None


def test_hostile(tap, place):
    server = Server(place, *disc("a.iso"), monitors=2)
    guest = Guest(server.socket)
    with Qmp(server.paths[1]) as other:
        before = server.memory()
        for name, text in (("deep nesting", "[" * 100000 + "]" * 100000), ("deep objects", '{"a":' * 100000), ("a long string", '"' + "x" * (9 * MIB)),
                           ("blanks without an end", " " * (16 * MIB)), ("a NUL", '{"execute":"query\0"}'), ("bytes that are no UTF-8", b'{"execute":"\xff\xfe"}'),
                           ("a lone surrogate", '{"execute":"\\ud800"}'), ("a number out of range", '{"execute":"eject","arguments":{"id":99999999999999999999}}'),
                           ("the same member twice", '{"execute":"stop","execute":"cont"}'), ("many values", "[]" * 100000 + '{"execute":"query-name"}')):
            with Qmp(server.paths[0], timeout=10) as qmp:
                try:
                    qmp.send(text if isinstance(text, bytes) else text.encode())
                except OSError:
                    pass
            tap.equal((other.command("query-name"), guest.ready()), ({}, "000000"), name + ": the other monitor and the guest are served")
        greedy = Qmp(server.paths[0])
        greedy.socket.settimeout(0.5)
        try:
            while True:
                greedy.send('{"execute":"query-qmp-schema"}' * 1000)
        except OSError:
            pass
        for _ in range(2000):
            other.command("stop")
            other.command("cont")
        tap.equal(len(other.take_events()), 4000, "a client that does not read costs the other no event")
        after = server.memory()
        tap.ok(after < before + 64 * 1024, "and memory stays: %d KiB, %d before" % (after, before))
        greedy.close()
    answer = hostile(server.paths[0], '{"execute":"a"' + "]" * 5)
    tap.equal(answer["error"]["class"], "GenericError", "what is no JSON is an error")
    guest.close()
    server.end(tap, "hostile clients")


TESTS = (test_limits, test_plug, test_descriptors, test_errors, test_disc_errors, test_disc_stop, test_disc_stop_by_machine, test_remote, test_schema, test_hostile)

if __name__ == "__main__":
    with Tap() as tap:
        for test in TESTS:
            with Place() as place:
                for name, byte in (("a.iso", b"a"), ("b.iso", b"b")):
                    place.write(name, byte * (2 * MIB))
                place.write("d.img", bytes(4 * MIB))
                begun = time.monotonic()
                test(tap, place)
                tap.note("%s: %.1f s" % (test.__name__, time.monotonic() - begun))
