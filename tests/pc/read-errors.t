#!/usr/bin/env python3
"""rerror= of a CD drive: what becomes of a read that fails, beside the engine's own drive."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import BSY, DRQ, ERR, Ide, MAX_WAIT, Machine, Place, engine  # noqa: E402
from tap import Tap  # noqa: E402

MIB = 1 << 20
LBA, COUNT = 9, 4
WANT = slice(LBA * 2048, (LBA + COUNT) * 2048)
CONTENT = random.Random(11).randbytes(MIB)
BAD = LBA + 1  # the sector that cannot be read
# Fails twice, then reads well.
RULE = '[inject-error]\nevent = "none"\niotype = "read"\nerrno = "5"\nonce = "%s"\nsector = "%d"\n'
EVENT = ("device", "operation", "reason", "action", "nospace")


def config(place, passing):
    text = RULE % (("on" if passing else "off"), BAD * 4) * (2 if passing else 1)
    return place.image("errors.cfg", len(text), text.encode())


def machine(place, program, policy, passing, iso):
    drive = "file=blkdebug:%s:%s,if=none,id=drive0,format=raw,media=cdrom" % (config(place, passing), iso)
    return Machine(place, "-nodefaults", "-drive", drive, "-device", "ide-cd,drive=drive0,id=cd0,bus=ide.0%s" %
                   (",rerror=" + policy if policy else ""), program=program)


def read10():
    return bytes([0x28, 0]) + LBA.to_bytes(4, "big") + bytes([0]) + COUNT.to_bytes(2, "big")


def start_dma(m, ide, memory):
    m.memset(memory, COUNT * 2048, 0xee)
    ide.table([(memory, COUNT * 2048)])
    m.outb(ide.bm, 0)
    m.outb(ide.bm + 2, 6)
    m.outl(ide.bm + 4, ide.prdt)
    ide.reg(6, 0xa0)
    ide.reg(1, 1)
    ide.reg(7, 0xa0)
    ide.wait_clear(BSY)
    ide.send_packet(read10())
    m.outb(ide.bm, 9)


def sense(ide):
    data = ide.packet_pio(bytes([3, 0, 0, 0, 18]))[0]
    return "%02x/%02x" % (data[2], data[12])


def errors(qmp):
    return [[e["data"][k] for k in EVENT] for e in qmp.events if e["event"] == "BLOCK_IO_ERROR"]


def io_status(m):
    return m.qmp.must("query-block")[0]["io-status"]


def ready(m):
    ide = Ide(m)
    for _ in range(2):
        ide.packet_pio(bytes(6))
    return ide, m.alloc(65536)


def run_dma(place, program, policy, passing, iso):
    """What can be seen of a read by DMA, turn by turn while it stops the machine."""
    out = {}
    with machine(place, program, policy, passing, iso) as m:
        ide, memory = ready(m)
        start_dma(m, ide, memory)
        for turn in range(3):
            m.wait(lambda: True if not ide.status() & BSY or
                   m.qmp.must("query-status")["status"] == "io-error" else None, "end or stop")
            state = m.qmp.must("query-status")
            out["turn %d" % turn] = state["status"], state["running"], errors(m.qmp), io_status(m), ide.status() & (BSY | ERR)
            m.qmp.events.clear()
            if state["running"]:
                break
            m.qmp.must("cont")
            if not passing and turn == 1:
                return out
        out["error"] = ide.end()[0] & ERR
        out["sense"] = sense(ide)
        out["data"] = m.read(memory, COUNT * 2048)
    return out


def check_stop(tap, place, iso):
    theirs, ours = (run_dma(place, program, "stop", True, iso) for program in (engine(), None))
    stopped = ("io-error", False, [["drive0", "read", "Input/output error", "stop", False]], "failed", BSY)
    tap.equal([ours["turn 0"], ours["turn 1"], ours["turn 2"]], [stopped, stopped, ("running", True, [], "ok", 0)],
              "stop: the machine stops, cont tries again, as often as it fails")
    tap.equal((ours["sense"], ours["data"]), ("00/00", CONTENT[WANT]), "stop: in the end the guest has the data")
    tap.equal(ours, theirs, "stop: all as the engine")
    theirs, ours = (run_dma(place, program, "stop", False, iso) for program in (engine(), None))
    tap.equal(ours, theirs, "stop: an error that stays stops it again and again, as the engine")


def check_others(tap, place, iso):
    expected = bytearray(CONTENT[WANT])
    expected[(BAD - LBA) * 2048:(BAD - LBA + 1) * 2048] = bytes(2048)
    theirs, ours = (run_dma(place, program, "ignore", False, iso) for program in (engine(), None))
    tap.equal(ours["turn 0"], theirs["turn 0"], "ignore: the command succeeds, the event says so, as the engine")
    tap.equal((ours["sense"], ours["data"]), ("00/00", bytes(expected)), "ignore: the sector reads as zeroes (the engine's whole command does)")
    for policy in (None, "auto", "report"):
        theirs, ours = (run_dma(place, program, policy, False, iso) for program in (engine(), None))
        tap.equal(ours["turn 0"], theirs["turn 0"], "%s: the command fails, the event says so, as the engine" % policy)
        tap.equal(ours["sense"], "03/11", "%s: the sense is that of a bad sector" % policy)


def check_pio(tap, place, iso):
    """The engine reports whatever the policy, and tells nobody; Spindle keeps the policy."""
    with machine(place, None, "stop", True, iso) as m:
        ide = ready(m)[0]
        ide.reg(6, 0xa0)
        ide.reg(1, 0)
        ide.reg(5, 0xf8)
        ide.reg(7, 0xa0)
        ide.wait_clear(BSY)
        ide.send_packet(read10())
        for turn in range(2):
            m.qmp.wait_event("STOP")
            tap.equal((m.qmp.must("query-status")["status"], ide.status() & BSY), ("io-error", BSY), "PIO, stop %d: the machine stops" % turn)
            m.qmp.must("cont")
        ide.wait_clear(BSY)
        tap.equal(ide.status() & (DRQ | ERR), DRQ, "PIO: then there is data")
        tap.equal(ide.pio_in(1024), CONTENT[LBA * 2048:(LBA + 1) * 2048], "PIO: the right one")
    with machine(place, None, "ignore", False, iso) as m:
        data, status, _ = ready(m)[0].packet_pio(read10(), 0xf800)
        tap.equal((data.count(b"\0" * 2048), len(data), status & ERR), (1, COUNT * 2048, 0), "PIO, ignore: a sector of zeroes, and no error")


def check_given_up(tap, place, iso):
    """A reset of the machine that stands still ends the command; nothing is tried afterwards."""
    with machine(place, None, "stop", False, iso) as m:
        ide, memory = ready(m)
        start_dma(m, ide, memory)
        m.qmp.wait_event("STOP", MAX_WAIT)
        m.qmp.must("system_reset")
        m.qmp.must("cont")
        m.enable(1, 1, 4, ide.BM)
        tap.equal(ide.packet_pio(bytes(6))[1] & ERR, 0, "after a reset the drive takes commands")
        tap.equal((m.qmp.must("query-status")["running"], io_status(m)), (True, "ok"), "and the machine runs")
        tap.equal(m.read(memory, 16), b"\xee" * 16, "nothing was written into its memory")


with Tap() as tap, Place() as place:
    image = place.image("cd.iso", 10 * MIB, CONTENT)
    check_stop(tap, place, image)
    check_others(tap, place, image)
    check_pio(tap, place, image)
    check_given_up(tap, place, image)
