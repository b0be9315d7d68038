#!/usr/bin/env python3
"""The PC without a CPU moves to another process: registers, memory, commands halted by an error, trays; and what goes wrong.

What the engine can do by the same script it does, too, as the oracle.
"""

import copy
import os
import random
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import Ahci, BSY, DRQ, ERR, Ide, Machine, Place, engine
from tap import Tap

MIB = 1 << 20
PROGRAMS = []  # (name, path or None for Spindle)


def follow(part, machine):
    """The same driver, now in the other machine's guest."""
    moved = copy.copy(part)
    moved.m = machine
    machine.spare = part.m.spare
    return moved


def query(machine):
    return machine.qmp.must("query-migrate").get("status")


def wait_migrated(machine, want="completed"):
    def ready():
        status = query(machine)
        return status if status not in ("setup", "active", "device", "cancelling", None) else None
    status = machine.wait(ready, "end of the migration")
    assert status == want, machine.qmp.must("query-migrate")


def move(source, target, uri):
    """As QEMU's own test programs do it."""
    running = source.qmp.must("query-status")["running"]
    source.qmp.must("migrate", uri=uri)
    if running:
        source.qmp.wait_event("STOP")
        target.qmp.wait_event("RESUME")
    wait_migrated(source)
    if not running:
        target.wait(lambda: None if target.qmp.must("query-status")["status"] == "inmigrate" else True, "machine")


def processes_of(command):
    return subprocess.run(["pgrep", "-fx", command], stdout=subprocess.PIPE, text=True).stdout.split()


def socket_uri(place):
    place.sockets = getattr(place, "sockets", 0) + 1
    return "unix:" + place.path("m%d" % place.sockets)


def test_ahci(tap, place, name, program):
    disk, uri = place.image("a.img", 4 * MIB), socket_uri(place)
    args = ("-m", "64", "-M", "q35", "-drive", "if=ide,file=%s,format=raw" % disk)
    data = random.Random(3).randbytes(32768)
    with Machine(place, *args, program=program) as a, Machine(place, *args, "-incoming", uri, program=program) as b:
        tap.equal(b.qmp.must("query-status"), {"status": "inmigrate", "running": False, **({"singlestep": False} if "singlestep" in
                  b.qmp.must("query-status") else {})}, name + ": the target waits")
        ahci = Ahci(a)
        memory = a.alloc(len(data))
        a.write(memory, data)
        wrote = ahci.run(0x35, [(memory, len(data))], True, 100, 64)
        a.write(memory, bytes(len(data)))
        marks = {a.alloc(4096): random.Random(n).randbytes(4096) for n in range(4)}
        for at, mark in marks.items():
            a.write(at, mark)
        before = [ahci.px(offset) for offset in range(0, 0x3c, 4)]
        move(a, b, uri)
        tap.equal((query(a), a.qmp.must("query-status")["status"]), ("completed", "postmigrate"), name + ": the source is through")
        tap.equal((query(b), b.qmp.must("query-status")["status"]), ("completed", "running"), name + ": the target runs")
        there = follow(ahci, b)
        tap.equal([there.px(offset) for offset in range(0, 0x3c, 4)], before, name + ": the port's registers are as they were")
        tap.ok(all(b.read(at, 4096) == mark for at, mark in marks.items()), name + ": so is the memory")
        got = there.run(0x25, [(memory, len(data))], False, 100, 64)
        tap.equal((wrote[0] & 0x89, got[0] & 0x89, b.read(memory, len(data)) == data), (0, 0, True), name + ": and the disk is read on")
        wrote = there.run(0x35, [(memory, 4096)], True, 0, 8)
        tap.equal(wrote[0] & 0x89, 0, name + ": and written")


def test_halted(tap, place, name, program):
    """A request that an error keeps moves with the machine, and is done there: QEMU's ahci-test's hardest case."""
    for command, what in ((0x35, "WRITE DMA EXT"), (0x61, "WRITE FPDMA QUEUED"), (0xe7, "FLUSH CACHE")):
        disk, uri = place.image("h.img", 4 * MIB), socket_uri(place)
        with open(place.path("debug"), "w", encoding="utf-8") as f:
            f.write('[inject-error]\nevent = "%s"\nerrno = "5"\nonce = "on"\n' % ("flush_to_disk" if command == 0xe7 else "write_aio"))
        base = ("-m", "64", "-M", "q35", "-device", "ide-hd,drive=drive0", "-drive")
        drive = "if=none,format=raw,cache=writeback,id=drive0,rerror=stop,werror=stop,file="
        data = random.Random(command).randbytes(4096)
        with Machine(place, *base, drive + "blkdebug:%s:%s" % (place.path("debug"), disk), program=program) as a, \
                Machine(place, *base, drive + disk, "-incoming", uri, program=program) as b:
            ahci = Ahci(a)
            memory = a.alloc(4096)
            a.write(memory, data)
            if command == 0xe7:
                ahci.run(0x35, [(memory, 4096)], True, 8, 8)
            size = 0 if command == 0xe7 else 4096
            fis = ahci.register_fis(command, 8, 8 if command == 0x35 else 0, 8 if command == 0x61 else 0)
            ahci.prepare(0, fis, [(memory, 4096)] if size else [], True)
            ahci.issue(0, command == 0x61)
            a.qmp.wait_event("STOP")
            tap.equal(a.qmp.must("query-status")["status"], "io-error", "%s: %s is halted" % (name, what))
            move(a, b, uri)
            tap.equal(b.qmp.must("query-status")["status"], "io-error", "%s: the target stands as the source did" % name)
            there = follow(ahci, b)
            tap.equal(there.px(0x38 if command != 0x61 else 0x34), 1, "%s: the command is still under way" % name)
            b.qmp.must("cont")
            b.qmp.wait_event("RESUME")
            tap.equal(there.done()[0] & 0x89, 0, "%s: cont on the target ends it" % name)
            b.memset(memory, 4096, 0)
            there.run(0x25, [(memory, 4096)], False, 8, 8)
            tap.ok(b.read(memory, 4096) == data, "%s: its data is on the disk" % name)


def test_ide(tap, place, name, program):
    """Half a sector through the data port here, the other half there; then DMA."""
    data = random.Random(9).randbytes(MIB)
    disk, uri = place.image("i.img", MIB, data), socket_uri(place)
    args = ("-m", "64", "-drive", "if=ide,index=0,file=%s,format=raw" % disk, "-nodefaults")
    with Machine(place, *args, program=program) as a, Machine(place, *args, "-incoming", uri, program=program) as b:
        ide = Ide(a)
        ide.lba(5, 2)
        ide.reg(7, 0x20)
        a.wait(lambda: True if ide.status() & DRQ else None, "data")
        got = ide.pio_in(100)
        move(a, b, uri)
        there = follow(ide, b)
        got += there.pio_in(156)
        b.wait(lambda: True if there.status() & DRQ else None, "data")
        got += there.pio_in(256)
        tap.equal((got == data[5 * 512:7 * 512], there.wait_clear(BSY) & (DRQ | ERR)), (True, 0),
                  name + ": a sector that was read to its middle is read to its end")
        memory = b.alloc(4096)
        status, _ = there.dma(0xc8, True, [(memory, 4096)], lambda: there.lba(64, 8))
        tap.equal((status & ERR, b.read(memory, 4096) == data[64 * 512:72 * 512]), (0, True), name + ": the bus master works")
        tap.equal(b.config(1, 1, 0x20) & ~15, Ide.BM, name + ": PCI configuration came along")


def both(test):
    def run(tap, place):
        for name, program in PROGRAMS:
            test(tap, place, name, program)
    return run


def test_cd(tap, place):
    """A tray that the guest locked, an attention it was not told, mode pages; a disc that is gone there."""
    iso, uri = place.image("cd.iso", 2 * MIB, random.Random(1).randbytes(2 * MIB)), socket_uri(place)
    args = ("-m", "64", "-M", "q35", "-device", "ide-cd,id=cd0,drive=c", "-drive", "if=none,id=c,media=cdrom,format=raw,file=")

    def line(path):
        return args[:-1] + (args[-1] + path,)

    def sense(ahci, memory):
        ahci.run(0xa0, [(memory, 18)], packet=bytes([3, 0, 0, 0, 18, 0]))
        data = ahci.m.read(memory, 18)
        return data[2] & 15, data[12], data[13]
    with Machine(place, *line(iso)) as a, Machine(place, *line(iso), "-incoming", uri) as b:
        ahci = Ahci(a)
        memory = a.alloc(4096)
        ahci.run(0xa0, [], packet=bytes([0] * 6))
        ahci.run(0xa0, [], packet=bytes([0x1e, 0, 0, 0, 1, 0]))
        a.qmp.must("blockdev-open-tray", id="cd0", force=True)
        a.qmp.must("blockdev-close-tray", id="cd0")
        ahci.run(0xa0, [], packet=bytes([0x1e, 0, 0, 0, 1, 0]))
        ahci.run(0xa0, [], packet=bytes([0] * 6))
        move(a, b, uri)
        there = follow(ahci, b)
        tap.equal(b.qmp.must("query-block")[0]["locked"], True, "the tray is locked there, too")
        tap.equal((sense(there, memory)[0], sense(there, memory)), (2, (6, 0x28, 0)),
                  "the sense of the last command and the attention that follows it came along")
        there.run(0xa0, [(memory, 2048)], packet=struct.pack(">BBIBHB", 0x28, 0, 3, 0, 1, 0))
        with open(iso, "rb") as f:
            f.seek(3 * 2048)
            tap.ok(b.read(memory, 2048) == f.read(2048), "and the disc is read")
    uri = socket_uri(place)
    with Machine(place, *line(iso)) as a:
        ahci = Ahci(a)
        memory = a.alloc(4096)
        ahci.run(0xa0, [], packet=bytes([0] * 6))
        with Machine(place, *line(place.path("gone.iso")), "-incoming", uri, stderr=subprocess.DEVNULL) as b:
            move(a, b, uri)
            there = follow(ahci, b)
            tap.ok("inserted" not in b.qmp.must("query-block")[0], "a disc that is gone leaves the drive empty")
            there.run(0xa0, [], packet=bytes([0] * 6))
            tap.equal(sense(there, memory), (2, 0x3a, 1), "which the guest is told as a removal")


def statuses(machine):
    machine.qmp.must("query-status")
    found = [e["data"]["status"] for e in machine.qmp.events if e["event"] == "MIGRATION"]
    machine.qmp.events.clear()
    return found


def test_ways(tap, place):
    """exec, file, tcp, descriptors, defer; paused machines; events."""
    args = ("-m", "32", "-M", "q35", "-nodefaults")
    path = place.path("vm.state")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    for out, back in (("file:" + path, "file:" + path), ("exec:cat > '%s'" % path, "exec:cat '%s'" % path),
                      ("file:%s,offset=0x1000" % path, "file:%s,offset=4096" % path), (None, "tcp:127.0.0.1:%d" % port)):
        with Machine(place, *args) as a, Machine(place, *args, "-incoming", "defer", "-S") as b:
            for m in (a, b):
                m.qmp.must("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
            a.write(0x123456, b"still here")
            a.command("clock_step 123456789")
            a.outl(0xcf8, 0x80001234)
            if out is None:
                b.qmp.must("migrate-incoming", uri=back)
            a.qmp.must("migrate", uri=out or back)
            wait_migrated(a)
            if out is not None:
                b.qmp.must("migrate-incoming", uri=back)
            wait_migrated(b)
            info = a.qmp.must("query-migrate")
            tap.equal((b.read(0x123456, 10), b.qmp.must("query-status")["status"], b.inl(0xcf8)), (b"still here", "paused", 0x80001234),
                      "%s: memory and address register; -S keeps it still" % back.split(":")[0])
            tap.equal(b.command("clock_step 1"), "123456790", "the clock goes on")
            tap.equal((statuses(a), statuses(b)), (["setup", "active", "completed"], ["setup", "active", "completed"]), "MIGRATION events")
            tap.ok(info["ram"]["total"] == 32 * MIB and 0 < info["ram"]["transferred"] < MIB and info["total-time"] >= 0,
                   "query-migrate: only pages with something in them are sent", info)
            b.qmp.must("cont")
            tap.equal(b.qmp.wait_event("RESUME")["event"], "RESUME", "cont makes it run")
    with Machine(place, *args) as a:
        a.qmp.must("migrate", uri="exec:cat > /dev/null")
        wait_migrated(a)
        tap.equal(a.qmp.run("migrate", uri="file:x")["error"]["desc"],
                  "Can't migrate the vm that was paused due to previous migration", "once is enough")
        a.qmp.must("cont")
        tap.equal(a.qmp.must("query-status")["status"], "running", "the source can go on after all")


def test_settings(tap, place):
    with Machine(place, "-M", "q35", "-nodefaults") as m:
        q = m.qmp
        tap.equal(q.must("query-migrate"), {}, "query-migrate before there was one")
        q.must("migrate-set-parameters", max_bandwidth=1 << 30, downtime_limit=20)
        got = q.must("query-migrate-parameters")
        tap.equal((got["max-bandwidth"], got["downtime-limit"], got["multifd-channels"]), (1 << 30, 20, 2), "parameters are kept")
        q.must("migrate-set-capabilities", capabilities=[{"capability": "return-path", "state": True}])
        on = [c["capability"] for c in q.must("query-migrate-capabilities") if c["state"]]
        tap.equal(on, ["return-path"], "capabilities are kept")
        for name, args, words in (
                ("migrate-set-capabilities", {"capabilities": [{"capability": "warp", "state": True}]},
                 "Parameter 'capabilities[0].capability' does not accept value 'warp'"),
                ("migrate-set-parameters", {"warp": 9}, "Parameter 'warp' is unexpected"),
                ("migrate-set-parameters", {"max_bandwidth": "fast"}, "Invalid parameter type for 'max-bandwidth', expected: integer"),
                ("migrate", {"uri": "pigeon:home"}, "unknown migration protocol: pigeon:home"),
                ("migrate", {}, "need either 'uri' or 'channels' argument"),
                ("migrate", {"uri": "fd:nobody"}, "File descriptor named 'nobody' has not been found"),
                ("migrate", {"uri": "fd:77"}, "Invalid file descriptor number '77'"),
                ("migrate-incoming", {"uri": "file:x"}, "'-incoming' was not specified on the command line")):
            tap.equal(q.run(name, **args)["error"]["desc"], words, "%s %s" % (name, args))
        for uri, words in (("unix:/no/where", "Failed to connect to '/no/where'"), ("file:/no/where", "Failed to open '/no/where'"),
                           ("exec:cat > /dev/null; exit 3", "status 3"), ("exec:cat > /dev/full", "")):
            q.must("migrate", uri=uri)
            wait_migrated(m, "failed")
            got = q.must("query-migrate")
            tap.ok(words in got["error-desc"] and q.must("query-status")["running"], "%s fails, and the machine runs on" % uri, got)
        q.events.clear()
        sleep = "sleep 100.%d" % os.getpid()
        for size, command, when in ((0, sleep, "its command does not end"), (0, "trap '' TERM; %s; :" % sleep, "nor with SIGTERM"),
                                    (MIB, sleep, "nobody takes what is sent")):
            m.write(0x200000, random.Random(0).randbytes(size))  # at last more than a pipe takes
            q.must("migrate", uri="exec:" + command)
            m.wait(lambda: True if query(m) == "active" and processes_of(sleep) else None, "start")
            q.must("migrate_cancel")
            wait_migrated(m, "cancelled")
            tap.equal(q.must("query-status")["running"], True, "migrate_cancel when %s: the machine runs on" % when)
            tap.equal(processes_of(sleep), [], "… and nothing of the command does")


def start_incoming(place, stream, *args):
    """Exit status and what was said: how a machine ends to which this comes."""
    path = place.path("stream")
    with open(path, "wb") as f:
        f.write(stream)
    with Machine(place, *args, "-incoming", "defer", stderr=subprocess.PIPE) as m:
        m.qmp.must("migrate-incoming", uri="file:" + path)
        status = m.process.wait(20)
        return status, m.process.stderr.read().decode()


def test_bad_streams(tap, place):
    """CVE-2013-4526's kind, for the stream: whatever is wrong with it ends in words, and nothing of it is taken."""
    args, path = ("-m", "32", "-M", "q35", "-cdrom", place.image("bad.iso", MIB)), place.path("good")
    with Machine(place, *args) as a:
        a.write(0x100000, b"x" * 100)
        a.qmp.must("migrate", uri="file:" + path)
        wait_migrated(a)
    with open(path, "rb") as f:
        good = f.read()
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    for what, stream, words in (
            ("nothing", b"", "ends early"), ("half of it", good[:len(good) // 2], "ends early"),
            ("without its end", good[:-1], "ends early"), ("a wrong bit", bytes(flipped), "damaged"),
            ("QEMU's", b"QEVM" + bytes(1000), "Not a migration stream"),
            ("a newer version", good[:7] + b"\x09" + good[8:], "version 9"),
            ("more memory", good[:8] + struct.pack("<Q", 64 * MIB) + good[16:], "Size mismatch: pc.ram: 0x4000000 != 0x2000000"),
            ("an endless state", good[:16] + struct.pack("<Q", 1 << 40) + good[24:], "too large a state")):
        status, text = start_incoming(place, stream, *args)
        tap.ok(status == 1 and "load of migration failed: " in text and words in text, "%s: the target ends" % what, status, text)
    for what, other, words in (("another machine", ("-m", "32", "-M", "pc", "-cdrom", args[-1]), "the machine type is"),
                               ("no drive", args[:4] + ("-nodefaults",), "it has a device on port 2, and here is none"),
                               ("a disk for a CD", args[:4] + ("-hdc", args[-1]), "in its place the state has 'ide-cd'")):
        status, text = start_incoming(place, good, *other)
        tap.ok(status == 1 and words in text, "%s: the target ends" % what, status, text)
    with Machine(place, *args, "-incoming", "defer") as m:
        m.write(0x100000, b"mine")
        with open(path, "wb") as f:
            f.write(bytes(flipped))
        m.qmp.must("migrate-incoming", uri="file:" + path, exit_on_error=False)
        wait_migrated(m, "failed")
        tap.equal((m.read(0x100000, 4), m.qmp.must("query-status")["status"]), (b"mine", "inmigrate"),
                  "exit-on-error=false: it is as it was")
        with open(path, "wb") as f:
            f.write(good)
        m.qmp.must("migrate-incoming", uri="file:" + path)
        wait_migrated(m)
        tap.equal((m.read(0x100000, 4), m.qmp.must("query-status")["status"]), (b"xxxx", "running"), "and can be tried again")


def test_images(tap, place):
    """Two processes with one image: the target asks for its lock when the source has let go, and gets it."""
    disk = place.image("lock.img", MIB)
    args = ("-m", "32", "-M", "q35", "-drive", "if=ide,format=raw,file=" + disk)
    uri = socket_uri(place)
    with Machine(place, *args) as a, Machine(place, *args, "-incoming", uri) as b:
        with Machine(place, *args, "-incoming", "defer") as c:
            move(a, b, uri)
            answer = a.qmp.run("cont")
            tap.ok("lock" in answer["error"]["desc"], "the source cannot go back while the target has the disk", answer)
            answer = c.qmp.run("query-status")
            tap.equal(answer["return"]["status"], "inmigrate", "a third one may wait")
        start = time.monotonic()
        b.close()
        tap.ok(time.monotonic() - start < 10, "the target ends")
        a.qmp.must("cont")
        tap.equal(a.qmp.must("query-status")["running"], True, "then it can")


TESTS = (both(test_ahci), both(test_halted), both(test_ide), test_cd, test_ways, test_settings, test_bad_streams, test_images)

with Tap() as tap, Place() as place:
    PROGRAMS += [("spindle", None), ("engine", engine())]
    for test in TESTS:
        test(tap, place)
