#!/usr/bin/env python3
"""The same register sequences on Spindle and on the engine under -accel qtest: what differs is listed here, with the reason."""

import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import Ahci, CMD_NAMES, Machine, Place, engine  # noqa: E402
from tap import Tap  # noqa: E402

MIB = 1 << 20
ABAR = 0xe0000000

# What is meant to differ, and why.
INTENDED = {
    "hba 000": "CAP: AHCI 1.3.1 3.1.1, link speed generation 2, and activity LED",
    "hba 010": "VS: AHCI 1.3, not 1.0",
    "port 18": "PxCMD.HPCP: AHCI 3.3.7, drives may come and go",
    "port 24": "PxSIG: AHCI 3.3.9, the signature has come with the first register FIS",
    "port 28": "PxSSTS.SPD: AHCI 3.3.10, generation 2",
    "piix3 40": "82371SB 2.3.9: IDETIM decodes the ports, as firmware would set it",
    "ata 1": "ATA8-ACS 9.2: error register 01h after power-on, diagnostics passed",
    "srst": "ATA8-AAM: BSY while SRST is set",
}


def registers(place, program, disk):
    out = {}
    drive = ("-drive", "if=none,id=d0,file=%s,format=raw" % disk, "-nodefaults")
    with Machine(place, *drive, "-M", "q35", "-device", "ide-hd,drive=d0,bus=ide.0", program=program) as m:
        for offset in range(0, 256, 4):
            out["ahci %02x" % offset] = m.config(31, 2, offset)
        m.enable(31, 2, 5, ABAR)
        for offset in range(0, 0x30, 4):
            out["hba %03x" % offset] = m.readl(ABAR + offset)
        for offset in range(0, 0x80, 4):
            out["port %02x" % offset] = m.readl(ABAR + 0x100 + offset)
    with Machine(place, "-drive", "if=ide,file=%s,format=raw" % disk, "-nodefaults", program=program) as m:
        for offset in range(0, 256, 4):
            out["piix3 %02x" % offset] = m.config(1, 1, offset)
        for register in range(1, 8):
            out["ata %x" % register] = m.inb(0x1f0 + register)
        m.outb(0x3f6, 4)
        out["srst"] = m.inb(0x3f6)
        m.outb(0x3f6, 0)
        for register in range(1, 8):
            out["after srst %x" % register] = m.inb(0x1f0 + register)
    return out


def commands(place, program, disk, iso):
    """(PxTFD, PxIS, bytes) of commands that succeed."""
    out = {}
    with Machine(place, "-drive", "if=none,id=d0,file=%s,format=raw,cache=writeback" % disk, "-nodefaults", "-M", "q35", "-device",
                 "ide-hd,drive=d0,bus=ide.0", program=program) as m:
        ahci = Ahci(m)
        memory = m.alloc(65536)
        out["IDENTIFY DEVICE"] = ahci.run(0xec, [(memory, 512)])
        for code, name in CMD_NAMES.items():
            for count in (1, 8):
                out["%s, %d" % (name, count)] = ahci.run(code, [(memory, 512 * count)], name.startswith("WRITE"), 5, count)
        for code in (0xe7, 0xea, 0xf8, 0x27, 0x40, 0x42):
            out["command %02x" % code] = ahci.run(code, count=1)
    with Machine(place, "-blockdev", "node-name=drive0,driver=file,filename=%s" % iso, "-nodefaults", "-M", "q35", "-device",
                 "ide-cd,drive=drive0,id=cd0,bus=ide.0", program=program) as m:
        ahci = Ahci(m)
        memory = m.alloc(65536)
        out["IDENTIFY PACKET DEVICE"] = ahci.run(0xa1, [(memory, 512)])
        out["READ(10)"] = ahci.run(0xa0, [(memory, 2048)], packet=bytes([0x28, 0, 0, 0, 0, 3, 0, 0, 1, 0]))
        out["READ(10), its data"] = m.read(memory, 2048)
        out["TEST UNIT READY"] = ahci.run(0xa0, packet=bytes(6))
        m.qmp.must("blockdev-open-tray", id="cd0")
        m.qmp.must("blockdev-remove-medium", id="cd0")
        m.qmp.must("blockdev-add", **{"node_name": "n", "driver": "raw", "file": {"driver": "file", "filename": iso}})
        m.qmp.must("blockdev-insert-medium", id="cd0", node_name="n")
        m.qmp.must("blockdev-close-tray", id="cd0")
        for turn in ("first", "second", "third"):
            tfd = ahci.run(0xa0, packet=bytes(6))[0]
            ahci.run(0xa0, [(memory, 18)], packet=bytes([3, 0, 0, 0, 18]))
            out["%s command after a change: sense key, ERR" % turn] = tfd >> 12, tfd & 1
    return out


ERRORS = [("query-nosuch", {}), ("query-status", {"a": 1}), ("blockdev-open-tray", {}), ("blockdev-open-tray", {"id": 5}),
          ("blockdev-open-tray", {"id": "no"}), ("blockdev-open-tray", {"device": "no"}), ("blockdev-open-tray", {"device": "ide0-hd0"}),
          ("qmp_capabilities", {})]


def monitor(place, program, disk):
    with Machine(place, "-drive", "if=ide,file=%s,format=raw" % disk, program=program) as m:
        out = {"%s %s" % (name, args): m.qmp.run(name, **args) for name, args in ERRORS}
        for name in ("stop", "query-status", "cont", "query-status"):
            out["%s %d" % (name, len(out))] = m.qmp.run(name), [e["event"] for e in m.qmp.events]
            m.qmp.events.clear()
        return out


with Tap() as tap, Place() as place:
    content = random.Random(7).randbytes(MIB)
    hd, cd = place.image("hd.img", 64 * MIB, content), place.image("cd.iso", 10 * MIB, content)
    reference = engine()
    theirs, ours = registers(place, reference, hd), registers(place, None, hd)
    for key in sorted(theirs):
        if key in INTENDED:
            tap.ok(theirs[key] != ours[key], "register %s differs still: %s" % (key, INTENDED[key]))
        elif theirs[key] != ours[key]:
            tap.equal(ours[key], theirs[key], "register %s" % key)
    tap.ok(len(theirs) > 150, "all other registers are the same at power-on")
    for what in (commands, monitor):
        args = (hd, cd) if what is commands else (hd,)
        theirs, ours = what(place, reference, *args), what(place, None, *args)
        for key, value in theirs.items():
            tap.equal(ours[key], value, key)
