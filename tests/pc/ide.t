#!/usr/bin/env python3
"""Legacy IDE of `pc` by its ports: identification, DMA of every shape, PIO, flush, ATAPI."""

import hashlib
import os
import random
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import BSY, DF, DRDY, DRQ, ERR, Ide, Machine, Place  # noqa: E402
from tap import Tap  # noqa: E402

MIB = 1 << 20


def text_of(identify, first, last):
    raw = identify[2 * first:2 * last + 2]
    return bytes(raw[i ^ 1] for i in range(len(raw))).decode().strip()


def word(identify, number):
    return struct.unpack_from("<H", identify, 2 * number)[0]


def test_identify(tap, place):
    disk = place.image("identify.img", 10 * MIB)
    with Machine(place, "-drive", "file=%s,if=ide,cache=writeback,format=raw" % disk, "-global", "ide-hd.serial=testdisk",
                 "-global", "ide-hd.ver=version") as m:
        ide = Ide(m)
        data = ide.identify()
        tap.equal(text_of(data, 10, 19), "testdisk", "-global ide-hd.serial is the serial number of IDENTIFY")
        tap.equal(text_of(data, 23, 26), "version", "-global ide-hd.ver is the firmware revision of IDENTIFY")
        tap.equal(word(data, 85) & 0x20, 0x20, "cache=writeback: the write cache is on")
        tap.equal(struct.unpack_from("<I", data, 120)[0], 10 * MIB // 512, "IDENTIFY words 60 and 61 count the sectors")
        tap.ok(ide.identify(1) is None, "there is no slave")
        tap.ok(ide.irq_is(False), "reading the status lowers the interrupt")


def test_dma(tap, place):
    disk = place.image("dma.img", 64 * MIB)
    size = 512 * 255
    data = random.Random(1).randbytes(size)
    with Machine(place, "-drive", "file=%s,if=ide,cache=writeback,format=raw" % disk) as m:
        ide = Ide(m)
        source, target = m.alloc(size), m.alloc(size)
        m.write(source, data)
        shapes = [("one piece", 512, [512]), ("sixteen bytes each", 512, [16] * 32), ("odd number of pieces", 1536, [1024, 510, 2]),
                  ("64 KiB as 0", 65536, [0]), ("255 sectors", size, [65536, size - 65536]),
                  ("a table that is longer", 512, [4096])]
        for name, length, pieces in shapes:
            out = [(source + sum(pieces[:i]), n) for i, n in enumerate(pieces)]
            back = [(target + sum(pieces[:i]), n) for i, n in enumerate(pieces)]
            m.memset(target, size, 0)
            write = ide.dma(0xca, False, out, lambda: ide.lba(8, length // 512))
            write_end = ide.end()
            read = ide.dma(0xc8, True, back, lambda: ide.lba(8, length // 512))
            read_end = ide.end()
            longer = pieces == [4096]
            tap.equal((write[0] & (BSY | DF | ERR | DRQ), read[0] & (BSY | DF | ERR | DRQ), write_end[1], read_end[1]), (0, 0, 0, 0),
                    "DMA, %s: no error" % name)
            tap.equal((write[1] & 7, read[1] & 7), (5, 5) if longer else (4, 4), "DMA, %s: bus-master status" % name)
            tap.ok(m.read(target, length) == data[:length], "DMA, %s: the data comes back" % name)
    with open(disk, "rb") as f:
        f.seek(8 * 512)
        tap.ok(f.read(512) == data[:512], "DMA: it is in the image")


def test_short_table(tap, place):
    disk = place.image("short.img", 64 * MIB)
    with Machine(place, "-drive", "file=%s,if=ide,format=raw" % disk) as m:
        ide = Ide(m)
        memory = m.alloc(8192)
        status, bm = ide.dma(0xc8, True, [(memory, 512)], lambda: ide.lba(0, 2))
        tap.equal((status & BSY, bm & 1), (0, 0), "a table that ends before the command does: it ends, not active")
        status, bm = ide.dma(0xc8, True, [(memory, 512)], lambda: ide.lba(0, 1))
        tap.equal((status & (BSY | ERR), bm & 7), (0, 4), "the next command works")
        m.outb(ide.bm + 2, 6)
        m.outb(ide.bm + 8 + 2, 6)
        m.outb(ide.bm + 8, 9)
        m.outb(ide.bm + 8, 0)
        tap.equal(m.inb(ide.bm + 8), 0, "CVE-2020-25743: starting the bus master of an empty channel does nothing")
        status, bm = ide.dma(0xc8, True, [(0xfffff000, 512)], lambda: ide.lba(0, 1))
        tap.equal(status & BSY, 0, "a table entry outside of memory: the command ends")


def test_flush(tap, place):
    disk = place.image("flush.img", 10 * MIB)
    with Machine(place, "-drive", "file=blkdebug::%s,if=ide,cache=writeback,format=raw" % disk) as m:
        ide = Ide(m)
        m.qmp.hmp('qemu-io ide0-hd0 "break flush_to_os A"')
        memory = m.alloc(512)
        ide.dma(0xca, False, [(memory, 512)], lambda: ide.lba(0, 1))
        ide.end()
        ide.reg(6, 0)
        ide.reg(7, 0xe7)
        m.qmp.hmp('qemu-io ide0-hd0 "wait_break A"')
        tap.equal((ide.status() & (BSY | DRDY), ide.status() & (DF | ERR | DRQ)), (BSY | DRDY, 0),
                "FLUSH CACHE is busy while the host's flush is held")
        m.qmp.hmp('qemu-io ide0-hd0 "resume A"')
        status = ide.wait_clear(BSY)
        tap.equal(status & (BSY | DF | ERR | DRQ | DRDY), DRDY, "FLUSH CACHE ends when the host's flush does")
    with Machine(place) as m:
        ide = Ide(m, 1)
        ide.reg(6, 0)
        ide.reg(7, 0xe7)
        tap.equal(m.inb(ide.base + 7) & BSY, 0, "FLUSH CACHE to an empty CD drive ends")
    with Machine(place, "-nodefaults") as m:
        ide = Ide(m)
        ide.reg(6, 0)
        ide.reg(7, 0xe7)
        tap.equal(ide.status(), 0, "no device: status 0 whatever is written")


RETRY = """[inject-error]
event = "flush_to_disk"
errno = "5"
once = "on"
immediately = "off"
state = "1"
[set-state]
event = "flush_to_disk"
new_state = "2"
"""


def test_retry(tap, place):
    disk = place.image("retry.img", 10 * MIB)
    config = place.image("retry.cfg", len(RETRY), RETRY.encode())
    with Machine(place, "-drive", "file=blkdebug:%s:%s,if=ide,cache=writeback,format=raw,rerror=stop,werror=stop" %
                 (config, disk)) as m:
        ide = Ide(m)
        memory = m.alloc(512)
        ide.dma(0xca, False, [(memory, 512)], lambda: ide.lba(0, 1))
        ide.end()
        ide.reg(6, 0)
        ide.reg(7, 0xe7)
        event = m.qmp.wait_event("STOP")
        tap.equal(event["event"], "STOP", "werror=stop: a flush that fails stops the machine")
        tap.equal(ide.status() & (BSY | DRDY), BSY | DRDY, "the command is still busy")
        tap.equal(m.qmp.must("query-status"), {"status": "io-error", "running": False}, "query-status tells io-error")
        m.qmp.must("cont")
        status = ide.wait_clear(BSY)
        tap.equal(status & (BSY | DF | ERR | DRQ | DRDY), DRDY, "cont tries it again, with success")


def test_native_max(tap, place):
    disk = place.image("native.img", 64 * MIB)
    with Machine(place, "-blockdev", "driver=file,node-name=hda,filename=%s" % disk, "-device", "ide-hd,drive=hda,bus=ide.0,unit=0") as m:
        ide = Ide(m)
        ide.reg(2, 0)
        ide.reg(6, 0)
        ide.reg(7, 0x91)
        ide.reg(6, 0xa0)
        ide.reg(7, 0xf8)
        tap.equal((ide.reg(6) & 15, ide.reg(5) << 8 | ide.reg(4), ide.reg(3)), (15, 129, 63),
                  "READ NATIVE MAX ADDRESS without the LBA bit: the last cylinder, head and sector, whatever was set by INITIALIZE")
        ide.reg(6, 0xe0)
        ide.reg(7, 0xf8)
        tap.equal(ide.reg(5) << 16 | ide.reg(4) << 8 | ide.reg(3), 64 * MIB // 512 - 1, "with it: the last LBA")


def test_trim_reset(tap, place):
    """SRST while a TRIM is under way: the bus master's end is seen, the device is ready, the next command works."""
    disk = place.image("trim.img", MIB, bytes([0xee]) * MIB)
    with Machine(place, "-blockdev", "file,filename=%s,node-name=img" % disk, "-blockdev", "blkdebug,image=img,node-name=dbg,discard=unmap,"
                 "inject-error.0.event=none,inject-error.0.iotype=discard,inject-error.0.errno=0,inject-error.0.delay-ns=100000000",
                 "-device", "ide-hd,drive=dbg,bus=ide.0") as m:
        ide = Ide(m)
        memory = m.alloc(512)
        m.write(memory, struct.pack("<QQ", 2 << 48, 8 << 48 | 6) + bytes(496))
        m.outb(ide.bm + 2, 6)
        ide.table([(memory, 512)])
        m.outl(ide.bm + 4, ide.prdt)
        ide.reg(1, 1)
        ide.lba(0, 1)
        ide.reg(7, 6)
        m.outb(ide.bm, 1)
        m.outb(ide.alt, 4)
        m.wait(lambda: None if m.inb(ide.bm + 2) & 5 == 1 else True, "end of the bus master")
        tap.equal((m.inb(ide.bm + 2), ide.irq_is(True)), (4, True), "SRST while a TRIM is under way: the bus master has ended, with an interrupt")
        status = ide.reg(7)
        tap.equal((status & (DRDY | BSY | DRQ | DF | ERR), ide.irq_is(False)), (DRDY, True), "the device is ready")
        m.outb(ide.alt, 0)
        status, bm = ide.dma(0xc8, True, [(memory, 512)], lambda: ide.lba(100, 1))
        tap.equal((status & (BSY | ERR), bm & 7, m.read(memory, 512)), (0, 4, bytes([0xee]) * 512), "the next command works")


def test_resume_early(tap, place):
    """A program need not know that the host's part of a command is another thread's: resume waits for it."""
    disk = place.image("early.img", 10 * MIB)
    with Machine(place, "-drive", "file=blkdebug::%s,if=ide,cache=writeback,format=raw" % disk) as m:
        ide = Ide(m)
        memory = m.alloc(512)
        wrong = []
        for turn in range(20):
            ide.dma(0xca, False, [(memory, 512)], lambda: ide.lba(turn, 1))
            m.qmp.hmp('qemu-io ide0-hd0 "break flush_to_os A"')
            ide.reg(6, 0)
            ide.reg(7, 0xe7)
            busy = ide.status() & (BSY | DRDY)
            m.qmp.hmp('qemu-io ide0-hd0 "resume A"')
            if busy != BSY | DRDY or ide.wait_clear(BSY) & (DF | ERR | DRQ):
                wrong.append(turn)
        tap.equal(wrong, [], "20 times resume straight behind FLUSH CACHE: none stays behind")
        m.qmp.hmp('qemu-io ide0-hd0 "break flush_to_os B"')
        m.qmp.hmp('qemu-io ide0-hd0 "resume B"')
        tap.equal(m.qmp.must("query-status")["running"], True, "resume with nothing under way returns")


def read10(lba, count):
    return struct.pack(">BBIBHB", 0x28, 0, lba, 0, count, 0)


def test_cdrom(tap, place):
    content = random.Random(2).randbytes(2048 * 200)
    iso = place.image("cd.iso", len(content), content)
    with Machine(place, "-drive", "if=none,file=%s,media=cdrom,format=raw,id=sr0,index=0" % iso, "-device",
                 "ide-cd,drive=sr0,bus=ide.0") as m:
        ide = Ide(m)
        for count in (1, 16, 31):
            data, status, _ = ide.packet_pio(read10(5, count), 0xf800)
            tap.equal((hashlib.sha1(data).hexdigest(), status & (ERR | DF)),
                    (hashlib.sha1(content[5 * 2048:(5 + count) * 2048]).hexdigest(), 0), "READ(10) of %d by PIO" % count)
        memory = m.alloc(65536)

        def setup():
            ide.reg(6, 0)
            ide.reg(1, 1)
        status, bm = ide.dma(0xa0, True, [(memory, 2048 * 16)], setup, read10(9, 16))
        ide.end()
        tap.equal((status & (ERR | DF | BSY), bm & 7), (0, 4), "READ(10) by DMA: no error")
        tap.ok(m.read(memory, 2048 * 16) == content[9 * 2048:25 * 2048], "READ(10) by DMA: the data")
        _, status, error = ide.packet_pio(read10(199, 2))
        tap.equal((status & ERR, error & 0xf0), (ERR, 0x50), "READ(10) over the end: ILLEGAL REQUEST")


def test_geometry(tap, place):
    a = place.image("small.img", 10 * MIB)
    b = place.image("big.img", 10 << 30)
    with Machine(place, "-hda", a, "-hdb", b) as m:
        def cmos(index):
            m.outb(0x70, index)
            return m.inb(0x71)
        tap.equal((cmos(0x12), cmos(0x19), cmos(0x1a)), (0xff, 47, 47), "CMOS: both disks of the first channel")
        tap.equal([cmos(0x1b + i) for i in range(9)], [20, 0, 16, 255, 255, 200, 20, 0, 63], "CMOS: geometry of a small disk")
        tap.equal([cmos(0x24 + i) for i in range(9)], [255, 63, 16, 255, 255, 200, 255, 63, 63], "CMOS: geometry of a big disk")
        tap.equal(cmos(0x39), 1 << 2, "CMOS: translation of both")


TESTS = (test_identify, test_dma, test_short_table, test_flush, test_retry, test_native_max, test_trim_reset, test_resume_early, test_cdrom, test_geometry)

with Tap() as tap, Place() as place:
    for test in TESTS:
        test(tap, place)
