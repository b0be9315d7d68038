#!/usr/bin/env python3
"""Two monitors and the guest move tray and media of one drive, all at once and at random: its state stays legal.  And 500 changes of
the disc of a guest that reads: nothing stale, nothing lost, nothing left behind.

  media-storm.t [--seed SEED] [--long]
"""

import hashlib
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from guest_cd import Guest  # noqa: E402
from program import Place, ROOT  # noqa: E402
from tap import Tap  # noqa: E402
from qmp import Qmp  # noqa: E402

IMAGES = 4
SECTORS = 512
MIB = 1 << 20
BATCH = 40
# What a monitor may be told: everything else is a fault.
REFUSALS = ("is locked and force was not specified", "is not open", "There already is a medium", "is already in use", "not found",
            "Duplicate nodes")
MOVED = "DEVICE_TRAY_MOVED"


class Drive:
    """spindled with two monitors, two drives and IMAGES discs, and the guest."""

    def __init__(self, place, build):
        self.place, self.socket = place, os.path.join(place.tmp, "s")
        self.paths = [os.path.join(place.tmp, "q%d" % i) for i in (1, 2)]
        words = []
        for i in range(IMAGES):
            place.write("%d.iso" % i, bytes([65 + i]) * (SECTORS * 2048))
            words += ["--blockdev", "driver=raw,node-name=n%d,read-only=on,file.driver=file,file.filename=%d.iso" % (i, i)]
        for i, path in enumerate(self.paths):
            words += ["--chardev", "socket,id=c%d,server=on,wait=off,path=%s" % (i, path), "--monitor", "c%d" % i]
        self.process = place.start(os.path.join(ROOT, build, "spindled"), *words, "--vfio-user", self.socket,
                                   "--device", "ide-cd,drive=n0,id=cd0", "--device", "ide-cd,id=cd1",
                                   env={"ASAN_OPTIONS": "detect_leaks=1"})
        place.wait_for(lambda: os.path.exists(self.socket) or self.process.poll() is not None, "start")
        self.monitors = [Qmp(path) for path in self.paths]
        self.guest = Guest(self.socket)

    def file(self, i):
        return self.place.path("%d.iso" % i)

    def end(self):
        self.guest.close()
        for qmp in self.monitors:
            qmp.close()
        self.process.terminate()
        _, err = self.process.communicate(timeout=20)
        return self.process.returncode, err

    def facts(self):
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as f:
            rss = next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))
        return len(os.listdir("/proc/%d/fd" % self.process.pid)), rss


def sums():
    return {"%d.iso" % i: hashlib.sha1(bytes([65 + i]) * (4 * 2048)).hexdigest() for i in range(IMAGES)}


def monitor_command(dice, drive):
    device = "cd0" if dice.random() < 0.85 else "cd1"
    name = dice.choice(["blockdev-open-tray", "blockdev-close-tray", "blockdev-remove-medium", "blockdev-insert-medium", "eject",
                        "blockdev-change-medium", "query-block"])
    args = {} if name == "query-block" else {"id": device}
    if name in ("blockdev-open-tray", "eject", "blockdev-change-medium") and dice.random() < 0.5:
        args["force"] = True
    if name == "blockdev-insert-medium":
        args["node-name"] = "n%d" % dice.randrange(IMAGES)
    if name == "blockdev-change-medium":
        args["filename"] = drive.file(dice.randrange(IMAGES))
    return json.dumps({"execute": name, "arguments": args})


def guest_command(dice):
    return dice.choice(["cdb 0 00", "cdb 0 1e0000000100", "cdb 0 1e0000000000", "cdb 0 1b0000000200", "cdb 0 1b0000000300",
                        "cdb 0 1b0000000200", "cdb 0 1b0000000300", "sum %d 4" % dice.randrange(SECTORS - 4), "reads 3 16",
                        "cdb 8 4a010000100000000800"])


def legal(drive, expected):
    """What is not as it must be, now that all stand still."""
    bad, states = [], []
    for qmp in drive.monitors:
        events = [e["data"] for e in qmp.take_events() if e["event"] == MOVED]
        states.append(([(e["id"], e["tray-open"]) for e in events], [{k: v for k, v in d.items() if k != "io-status"}
                                                                     for d in qmp.command("query-block")]))
    (moves, drives), other = states
    if (moves, drives) != other:
        bad.append("the monitors differ: %s" % (states,))
    for d in drives:
        mine = [open_ for name, open_ in moves if name == d["qdev"]]
        for state in mine:
            if state == expected[d["qdev"]]:
                bad.append("%s: told twice that it is %s" % (d["qdev"], "open" if state else "closed"))
            expected[d["qdev"]] = state
        if expected[d["qdev"]] != d["tray_open"]:
            bad.append("%s: tray_open is %s, told was %s" % (d["qdev"], d["tray_open"], mine))
    names = [d["inserted"]["node-name"] for d in drives if "inserted" in d]
    if len(names) != len(set(names)):
        bad.append("a node in two drives: %s" % names)
    return bad + guest_view(drive, drives[0])


def guest_view(drive, d):
    wanted = "023a02" if d["tray_open"] else "000000" if "inserted" in d else "023a01"
    sense = drive.guest.ready()
    if sense != wanted:
        return ["the guest sees %s, not %s: %s" % (sense, wanted, d)]
    if wanted == "000000":
        got = drive.guest.run("sum 8 4")
        if got[1:] != ["000000", sums()[os.path.basename(d["inserted"]["file"])]]:
            return ["the guest reads %s of %s" % (got, d["inserted"]["file"])]
    return []


def check_answers(answers):
    bad = []
    for answer in answers:
        text = answer.get("error", {}).get("desc", "")
        if "return" not in answer and not any(part in text for part in REFUSALS):
            bad.append("answer %s" % answer)
    return bad


def storm(tap, place, build, count, seed):
    dice, drive = random.Random(seed), Drive(place, build)
    expected, bad, done = {"cd0": False, "cd1": False}, [], 0
    while done < count and not bad:
        sent = [0, 0]
        for _ in range(BATCH):
            who = dice.randrange(3)
            if who < 2:
                drive.monitors[who].send(monitor_command(dice, drive))
                sent[who] += 1
            else:
                drive.guest.send(guest_command(dice))
        for qmp, n in zip(drive.monitors, sent):
            bad += check_answers([qmp.answer() for _ in range(n)])
        drive.guest.answers()
        done += BATCH
        bad += legal(drive, expected)
    status, err = drive.end()
    tap.ok(not bad, "%s: %d commands of two monitors and the guest leave the drive in a legal state" % (build, done),
           "seed %d, within %d commands" % (seed, done), *bad)
    tap.ok(status == 0 and "Sanitizer" not in err, "%s: and the process ends well" % build, status, err[-3000:])


def change(drive, i):
    drive.monitors[i % 2].command("blockdev-change-medium", id="cd0", filename=drive.file(i % IMAGES), force=True)


def changes(tap, place, build, count):
    """Reads are under way whenever the disc is changed."""
    drive = Drive(place, build)
    stale, wanted, before = [], sums(), None
    for i in range(count):
        drive.guest.send("reads 6 32")
        change(drive, i)
        drive.guest.answers()
        sense = drive.guest.ready()
        got = drive.guest.run("sum %d 4" % (i % (SECTORS - 4)))
        if sense != "000000" or got[1:] != ["000000", wanted["%d.iso" % (i % IMAGES)]]:
            stale.append("change %d: %s %s" % (i, sense, got))
        if i == min(50, count // 2):
            before = drive.facts()
    after = drive.facts()
    nodes = drive.monitors[0].command("query-named-block-nodes")
    status, err = drive.end()
    tap.ok(not stale, "%s: after each of %d changes the guest reads the new disc" % (build, count), *stale[:5])
    tap.ok(after[0] <= before[0] + 2, "%s: no descriptor is left behind: %d, then %d" % (build, before[0], after[0]))
    if build == "build":
        tap.ok(after[1] < before[1] + 4096, "%s: no memory is left behind: %d, then %d KiB" % (build, before[1], after[1]))
    tap.equal(len(nodes), 2 * IMAGES + 2, "%s: the old discs' nodes are gone" % build)
    tap.ok(status == 0 and "Sanitizer" not in err, "%s: the process ends well, nothing leaked" % build, status, err[-3000:])


if __name__ == "__main__":
    seed = int(sys.argv[sys.argv.index("--seed") + 1]) if "--seed" in sys.argv else random.randrange(1 << 31)
    factor = 10 if "--long" in sys.argv else 1
    with Tap() as tap:
        tap.note("seed %d" % seed)
        for build in ("build", "build-asan"):
            if not os.path.exists(os.path.join(ROOT, build, "spindled")):
                tap.skip(build, "%s is not built: scripts/build --asan" % build)
                continue
            with Place() as place:
                storm(tap, place, build, 10000 * factor, seed)
            with Place() as place:
                changes(tap, place, build, (500 if build == "build" else 100) * factor)
