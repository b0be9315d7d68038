#!/usr/bin/env python3
"""I/O limits and the clock that test programs step: the same script on Spindle and on the engine."""

import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import Ahci, Machine, Place, engine  # noqa: E402
from tap import Tap  # noqa: E402

MIB = 1 << 20
PIECE = 256 * 1024
MS = 1000000
LIMITS = ("bps", "bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr")


class Rig:
    """A disk on q35 under limits, and commands that are under way."""

    def __init__(self, place, program, drive=(), device="drive=d0"):
        disk = place.image("limited.img", 64 * MIB)
        drive = drive or ("-drive", "if=none,id=d0,file=%s,format=raw" % disk)
        self.m = Machine(place, "-M", "q35", "-nodefaults", *[arg.replace("DISK", disk) for arg in drive], "-device", "ide-hd,id=hd," + device,
                         program=program)
        self.ahci = Ahci(self.m)
        self.memory = self.m.alloc(MIB)
        self.disk = disk

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.m.close()

    def limit(self, **limits):
        values = dict.fromkeys(LIMITS, 0)
        values.update(limits)
        self.m.qmp.send("block_set_io_throttle", id="hd", **values)
        assert self.m.qmp.answer() == {"return": {}}

    def issue(self, slot, write=False, size=PIECE, lba=0):
        self.ahci.prepare(slot, self.ahci.register_fis(0x35 if write else 0x25, lba, size // 512), [(self.memory, size)], write)
        self.ahci.px(0x38, 1 << slot)

    def left(self, expected, limit=10):
        """The slots still under way, which in the end are those expected."""
        end = time.monotonic() + limit
        while True:
            slots = self.ahci.px(0x38)
            if slots == expected or time.monotonic() > end:
                return slots
            time.sleep(0.01)

    def stays(self, expected):
        """Half a second of the host's time changes nothing."""
        time.sleep(0.5)
        return self.ahci.px(0x38) == expected

    def step(self, ns, expected):
        answer = self.m.raw("clock_step %d" % ns)
        return answer.split()[0], self.left(expected)


def bytes_per_second(rig):
    """256 KiB of 1 MiB a second: a tenth of a second's worth is free, so the second command waits for 150 ms."""
    rig.limit(bps=MIB)
    rig.issue(0)
    yield "the first command passes", rig.left(0)
    rig.issue(0)
    yield "the second one waits, whatever the host's clock says", rig.stays(1)
    yield "149 ms are not enough", rig.step(149 * MS, 1), rig.stays(1)
    yield "150 ms are", rig.step(1 * MS, 0)
    for slot in range(3):
        rig.issue(slot)
    yield "three at once wait", rig.stays(7)
    yield "after 250 ms two are left", rig.step(250 * MS, 6)
    yield "after 500 ms one is", rig.step(250 * MS, 4)
    yield "after 750 ms none", rig.step(250 * MS, 0)


def directions(rig):
    rig.limit(iops_wr=1)
    rig.issue(0, write=True, size=4096)
    yield "the first write passes", rig.left(0)
    rig.issue(0, size=4096)
    yield "a read is not limited", rig.left(0)
    rig.issue(0, write=True, size=4096)
    yield "the second write waits", rig.stays(1)
    rig.m.raw("clock_set 899000000")
    yield "until 899 ms it does", rig.left(1), rig.stays(1)
    rig.m.raw("clock_set 900000000")
    yield "at 900 ms it passes", rig.left(0)


def changes(rig):
    """Limits that change under way, a machine that stops."""
    rig.limit(bps=MIB)
    rig.issue(0)
    rig.left(0)
    rig.issue(0)
    yield "a command waits", rig.stays(1)
    rig.limit()
    yield "without limits it passes", rig.left(0)
    rig.limit(iops=2)
    rig.issue(0)
    rig.left(0)
    rig.issue(0)
    yield "a command waits for another limit", rig.stays(1)
    yield "stop", rig.m.qmp.run("stop"), rig.left(0)
    yield "cont", rig.m.qmp.run("cont")


def next_deadline(rig):
    rig.limit(iops_rd=100)
    for _ in range(11):
        rig.issue(0, size=512)
        rig.left(0)
    rig.issue(0, size=512)
    yield "of a hundred a second eleven pass at once", rig.stays(1)
    yield "clock_step without a number goes to where the next may pass", rig.m.raw("clock_step"), rig.left(0)


def guest_clock(tap, place):
    for script in (bytes_per_second, directions, changes, next_deadline):
        results = []
        for program in (engine(), None):
            with Rig(place, program) as rig:
                results.append([(step[0], step[1:]) for step in script(rig)])
        for (name, theirs), (_, ours) in zip(*results):
            tap.equal(ours, theirs, "%s: %s" % (script.__name__.replace("_", " "), name))
        tap.equal(len(results[0]), len(results[1]), "%s: as many steps on both" % script.__name__)


def reset(tap, place):
    """The engine waits for ever for a write under such limits; under those of its command line the write ends."""
    with Rig(place, None) as rig:
        rig.limit(bps_wr=MIB)
        rig.m.memset(rig.memory, PIECE, 0xaa)
        rig.issue(0, write=True)
        rig.left(0)
        rig.m.memset(rig.memory, PIECE, 0xbb)
        rig.issue(0, write=True, lba=PIECE // 512)
        tap.ok(rig.stays(1), "a write waits")
        base = rig.ahci.base
        rig.m.writel(base + 4, rig.m.readl(base + 4) | 1)
        tap.equal(rig.left(0), 0, "a reset of the controller leaves no command")
        rig.m.writel(base + 4, rig.m.readl(base + 4) | 1 << 31)
        rig.ahci.start()
        rig.issue(0, size=1024, lba=PIECE // 512 - 1)
        tap.equal(rig.left(0), 0, "nor does the write hold up a read")
        tap.ok(rig.m.read(rig.memory, 1024) == b"\xaa" * 512 + b"\xbb" * 512, "which finds what was written, where it was to go")
        rig.limit(bps_rd=MIB)
        for slot in range(12):
            rig.issue(slot)
        tap.equal(rig.step(60000 * MS, 0), ("OK", 0), "a dozen commands pass within one long step")


def command_line(tap, place):
    """QEMU makes the command line's limits before it knows that there is a clock to step, so the host's counts."""
    forms = ((("-drive", "if=none,id=d0,file=DISK,format=raw,throttling.bps-total=%d" % MIB), "drive=d0"),
             (("-object", "throttle-group,id=t,x-bps-total=%d" % MIB, "-blockdev",
               "driver=throttle,node-name=n,throttle-group=t,file.driver=file,file.filename=DISK"), "drive=n"))
    for drive, device in forms:
        results = []
        for program in (engine(), None):
            with Rig(place, program, drive, device) as rig:
                for slot in range(4):
                    rig.issue(slot)
                start = time.monotonic()
                results.append((rig.left(0), 0.3 < time.monotonic() - start))
        tap.equal(results, [(0, True)] * 2, "%s: four commands pass in the host's time" % drive[0])
        with Rig(place, None, drive, device) as rig:
            rig.limit(bps=1000) if "-drive" in drive else rig.m.qmp.must("qom-set", path="/objects/t", property="limits", value={"bps-total": 1000})
            rig.issue(0)
            rig.left(0)
            rig.issue(0)
            tap.equal((rig.left(1), rig.step(300000 * MS, 0)), (1, ("OK", 0)), "%s: and when the clock is stepped" % drive[0])


def long_limits(tap, place):
    """What waits for ever does not keep the program from ending, nor a machine from moving on."""
    data = random.Random(5).randbytes(4096)
    with Rig(place, None) as rig:
        rig.limit(bps_wr=1)
        rig.m.write(rig.memory, data)
        for slot in range(12):
            rig.issue(slot, write=True, size=4096, lba=8 * slot)
        status, seconds = rig.m.close()
        with open(rig.disk, "rb") as f:
            tap.equal((status, seconds < 5, f.read(12 * 4096) == data * 12), (0, True, True), "SIGTERM: the writes end, status 0")


with Tap() as tap, Place() as place:
    for test in (guest_clock, reset, command_line, long_limits):
        test(tap, place)
