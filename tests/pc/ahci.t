#!/usr/bin/env python3
"""AHCI of `q35` by its registers: commands of every mode, length and place; queued commands; the tray over QMP."""

import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import Ahci, CMD_NAMES, Machine, Place  # noqa: E402
from tap import Tap  # noqa: E402

MIB = 1 << 20
ERR = 1


def start(place, disk, *args):
    return Machine(place, "-M", "q35", "-drive", "if=none,id=drive0,file=%s,cache=writeback,format=raw,rerror=stop,"
                   "werror=stop" % disk, "-device", "ide-hd,drive=drive0", "-global", "ide-hd.serial=testdisk", "-global",
                   "ide-hd.ver=version", *args)


def test_config(tap, place):
    with start(place, place.image("config.img", MIB)) as m:
        tap.equal(m.config(31, 2, 0x34, 1), 0x80, "the first capability is at 80h")
        tap.equal(m.config(31, 2, 0x80, 1), 5, "it is MSI")
        after = m.config(31, 2, 0x81, 1)
        tap.equal(m.config(31, 2, after, 1), 0x12, "the next is SATA")
        tap.equal(m.config(31, 2, after + 1, 1), 0, "there are no more")
        m.config(31, 2, 0x92, 1, 0x3f)
        tap.equal(m.config(31, 2, 0x92, 1) & 0x3f, 0x3f, "port control at 92h takes all six ports")
        m.config(31, 2, 0x24, 4, 0xffffffff)
        tap.equal(m.config(31, 2, 0x24), 0xfffff000, "BAR 5 is 4 KiB of memory")
        m.config(31, 2, 0x24, 4, 0xe0000000)
        tap.equal(m.readl(0xe0000000), 0, "it is not decoded before it is enabled")


def test_identify(tap, place):
    with start(place, place.image("identify.img", 64 * MIB)) as m:
        ahci = Ahci(m)
        memory = m.alloc(512)
        tfd, status, moved = ahci.run(0xec, [(memory, 512)])
        data = m.read(memory, 512)
        swapped = bytes(data[i ^ 1] for i in range(512))
        tap.equal((tfd & 0x89, moved), (0, 512), "IDENTIFY DEVICE moves 512 bytes")
        tap.ok(status & 2, "it sets PxIS.PSS")
        tap.equal((swapped[20:40].strip(), swapped[46:54].strip()), (b"testdisk", b"version"), "serial number and revision")
        tap.equal(struct.unpack_from("<Q", data, 200)[0], 64 * MIB // 512, "words 100 to 103 count the sectors")


MODES = (("PIO", 0x20, 0x30, 28), ("PIO48", 0x24, 0x34, 48), ("DMA", 0xc8, 0xca, 28), ("DMA48", 0x25, 0x35, 48),
         ("NCQ", 0x60, 0x61, 48))
LENGTHS = (1, 2, 8, 128, 255)
PLACES = ("first", "middle", "last")
OFFSETS = (0, 2, 510)


def test_matrix(tap, place):
    generator = random.Random(3)
    big = 200 << 30
    disk = place.image("matrix.img", big)
    with start(place, disk) as m:
        ahci = Ahci(m)
        for name, read, write, bits in MODES:
            for where in PLACES:
                wrong = []
                for sectors in LENGTHS:
                    for offset in OFFSETS:
                        size = 512 * sectors
                        top = min(big // 512, 1 << bits)
                        lba = {"first": 0, "middle": top // 2 + 1, "last": top - sectors}[where]
                        data = generator.randbytes(size)
                        source, target = m.alloc(size + 512, 512) + offset, m.alloc(size + 512, 512) + offset
                        m.write(source, data)
                        split = size // 2 & ~1
                        flags = lba >> 24 & 15 if bits == 28 else 0
                        wrote = ahci.run(write, [(source, split), (source + split, size - split)], True, lba, sectors,
                                         device=0x40 | flags)
                        got = ahci.run(read, [(target, size)], False, lba, sectors, device=0x40 | flags)
                        if wrote[0] & 0x89 or got[0] & 0x89 or m.read(target, size) != data or (read != 0x60 and got[2] != size):
                            wrong.append((sectors, offset, wrote, got))
                m.spare = 0x800000
                tap.equal(wrong, [], "%s at the %s sectors of 200 GiB, every length and offset" % (name, where))


def test_errors(tap, place):
    with start(place, place.image("errors.img", 10 * MIB)) as m:
        ahci = Ahci(m)
        memory = m.alloc(MIB)
        for read, write in ((0x25, 0x35), (0x24, 0x34), (0x60, 0x61)):
            for command in (read, write):
                tfd, status, _ = ahci.run(command, [(memory, 1024)], command == write, 10 * MIB // 512 - 1, 2)
                tap.ok(tfd & ERR and status & 1 << 30, "%s over the end: error, PxIS.TFES" % CMD_NAMES[command])
        tfd, _, _ = ahci.run(0x25, [(memory, 512)], False, 0, 1)
        tap.equal(tfd & 0x89, 0, "the next command works")
        ahci.run(0x25, [], False, 0, 1)
        tfd, _, _ = ahci.run(0x25, [(memory, 512)], False, 0, 1)
        tap.equal(tfd & 0x89, 0, "GL2777: a command with an empty table, and the next one works")
        tfd, _, _ = ahci.run(0xb0, [(memory, 512)], features=0xd4, lba=0xc24f00)
        for _ in range(21):
            ahci.run(0xb0, [], features=0xd4, lba=0xc24f02)
        tfd, _, _ = ahci.run(0x25, [(memory, 512)], False, 0, 1)
        tap.equal(tfd & 0x89, 0, "CVE-2014-2894: SMART EXECUTE OFFLINE 21 times, and the next command works")
        tfd, _, _ = ahci.run(0xe7)
        tap.equal(tfd & 0x89, 0, "FLUSH CACHE")


def test_queue(tap, place):
    disk = place.image("queue.img", 64 * MIB, random.Random(4).randbytes(64 * MIB))
    with start(place, disk) as m:
        ahci = Ahci(m)
        memory = m.alloc(32 * 4096)
        for slot in range(32):
            ahci.prepare(slot, ahci.register_fis(0x60, slot * 4096, slot << 3, 8), [(memory + slot * 4096, 4096)])
        ahci.px(0x10, 0xffffffff)
        ahci.px(0x34, 0xffffffff)
        ahci.px(0x38, 0xffffffff)
        m.wait(lambda: None if ahci.px(0x34) else True, "end of 32 queued reads")
        with open(disk, "rb") as f:
            wanted = b""
            for slot in range(32):
                f.seek(slot * 4096 * 512)
                wanted += f.read(4096)
        tap.ok(m.read(memory, 32 * 4096) == wanted, "32 queued reads at once")


def test_counts(tap, place):
    """A FIS brings 16 bits of count; commands that have 8 by the standard use them all, as on QEMU."""
    data = random.Random(6).randbytes(512 * 512)
    with start(place, place.image("counts.img", MIB)) as m:
        ahci = Ahci(m)
        source, target = m.alloc(len(data)), m.alloc(len(data))
        m.write(source, data)
        for read, write in ((0x20, 0x30), (0xc8, 0xca)):
            for count, size in ((0x200, 512 * 512), (0x100, 256 * 512), (0, 256 * 512)):
                wrote = ahci.run(write, [(source, size)], True, 8, count)
                got = ahci.run(read, [(target, size)], False, 8, count)
                tap.equal((wrote[0] & 0x89, got[0] & 0x89, wrote[2], got[2], m.read(target, size) == data[:size]), (0, 0, size, size, True),
                          "%s, count %xh: %d sectors" % (CMD_NAMES[read], count, size // 512))
                m.memset(target, size, 0)


def test_reset_under_way(tap, place):
    """CVE-2023-5088's kind: a write that a reset interrupts ends where it was to go, before whatever comes after the reset."""
    disk = place.image("pending.img", MIB)
    a, b = bytes([0xaa]) * 4096, bytes([0xbb]) * 4096
    for how in ("controller", "port"):
        with Machine(place, "-M", "q35", "-drive", "if=none,id=drive0,file=blkdebug::%s,format=raw,cache=writeback" % disk, "-device",
                     "ide-hd,drive=drive0,id=hd") as m:
            ahci = Ahci(m)
            first, second, back = m.alloc(4096), m.alloc(4096), m.alloc(8192)
            m.write(first, a)
            m.write(second, b)
            m.qmp.hmp('qemu-io drive0 "break pwritev A"')
            ahci.prepare(0, ahci.register_fis(0x35, 64, 8), [(first, 4096)], True)
            ahci.issue()
            m.qmp.hmp('qemu-io drive0 "wait_break A"')
            if how == "controller":
                m.writel(ahci.base + 4, m.readl(ahci.base + 4) | 1)
                m.wait(lambda: None if m.readl(ahci.base + 4) & 1 else True, "end of the reset")
                m.writel(ahci.base + 4, 1 << 31)
            else:
                ahci.px(0x18, ahci.px(0x18) & ~1)
                ahci.px(0x2c, 1)
                ahci.px(0x2c, 0)
            ahci.start()
            m.wait(lambda: True if ahci.px(0x28) & 15 == 3 and not ahci.px(0x20) & 0x88 else None, "device after the reset")
            ahci.prepare(0, ahci.register_fis(0x35, 64, 8), [(second, 4096)], True)
            ahci.issue()
            tap.ok(ahci.px(0x38) & 1, "a write after the reset of the %s waits for the one under way" % how)
            m.qmp.hmp('qemu-io drive0 "resume A"')
            tap.equal(ahci.done()[0] & 0x89, 0, "and is done")
            ahci.run(0x25, [(back, 8192)], False, 60, 16)
            tap.ok(m.read(back, 8192) == bytes(2048) + b + bytes(2048), "the newer data is on the disk, the rest is untouched")
        with open(disk, "r+b") as f:
            tap.equal(f.read(512), bytes(512), "sector 0 as well")
            f.truncate(0)
            f.truncate(MIB)


def sense_of(ahci, memory):
    ahci.run(0xa0, [(memory, 18)], packet=struct.pack(">BBBBB", 3, 0, 0, 0, 18))
    sense = ahci.m.read(memory, 18)
    return sense[2] & 15, sense[12]


def test_tray(tap, place):
    iso = place.image("tray.iso", 10 * MIB, random.Random(5).randbytes(10 * MIB))
    with Machine(place, "-M", "q35", "-drive", "if=none,id=drive0,file=%s,cache=writeback,format=raw,media=cdrom" % iso,
                 "-device", "ide-cd,id=cd0,drive=drive0") as m:
        ahci = Ahci(m)
        memory = m.alloc(4096)

        def packet(*cdb, size=0):
            return ahci.run(0xa0, [(memory, size)] if size else [], packet=bytes(cdb))[0]

        def moved():
            return m.qmp.wait_event("DEVICE_TRAY_MOVED")["data"]["tray-open"]

        def ready():
            tfd = packet(0, 0, 0, 0, 0, 0)
            return sense_of(ahci, memory) if tfd & ERR else (0, 0)
        tap.equal(ready(), (0, 0), "the drive is ready at once")
        packet(0x1b, 0, 0, 0, 2, 0)
        tap.equal(moved(), True, "the guest's eject opens the tray")
        packet(0x1b, 0, 0, 0, 3, 0)
        tap.equal(moved(), False, "its load closes it")
        answer = m.qmp.run("blockdev-open-tray", id="cd0")
        tap.equal((answer, [e["event"] for e in m.qmp.events]), ({"return": {}}, ["DEVICE_TRAY_MOVED"]),
                  "blockdev-open-tray: the event comes before the answer")
        m.qmp.events.clear()
        m.qmp.must("blockdev-remove-medium", id="cd0")
        packet(0x1b, 0, 0, 0, 3, 0)
        tap.equal(moved(), False, "the empty tray is loaded by the guest")
        packet(0x1b, 0, 0, 0, 2, 0)
        tap.equal(moved(), True, "and ejected")
        m.qmp.must("blockdev-add", node_name="node0", driver="raw", file={"driver": "file", "filename": iso})
        m.qmp.must("blockdev-insert-medium", id="cd0", node_name="node0")
        answer = m.qmp.run("blockdev-close-tray", id="cd0")
        tap.equal((answer, [e["event"] for e in m.qmp.events]), ({"return": {}}, ["DEVICE_TRAY_MOVED"]),
                  "blockdev-close-tray: the event comes before the answer")
        m.qmp.events.clear()
        tap.equal([ready(), ready(), ready()], [(2, 0x3a), (6, 0x28), (0, 0)],
                  "the guest sees NOT READY, UNIT ATTENTION, ready")
        packet(0x28, 0, 0, 0, 0, 7, 0, 0, 1, 0, size=2048)
        with open(iso, "rb") as f:
            f.seek(7 * 2048)
            tap.ok(m.read(memory, 2048) == f.read(2048), "and reads the disc")
        packet(0x1e, 0, 0, 0, 1, 0)
        answer = m.qmp.run("blockdev-open-tray", id="cd0")
        tap.equal((answer, m.qmp.must("query-block")[0]["tray_open"]), ({"return": {}}, False),
                  "a locked tray stays closed: the guest is asked to eject")
        tap.equal(m.qmp.run("blockdev-open-tray", id="cd0", force=True), {"return": {}}, "unless forced")


TESTS = (test_config, test_identify, test_matrix, test_errors, test_queue, test_counts, test_reset_under_way, test_tray)

with Tap() as tap, Place() as place:
    for test in TESTS:
        test(tap, place)
