#!/usr/bin/env python3
"""The live CD boots under each firmware on each machine, runs from the squashfs on the CD, and reads the whole
CD back as it is."""

import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from guest import KERNEL_ERRORS, PROMPT, Guest, is_spindle, maker
from tap import Tap

def boots(tap, iso, digest, machine, firmware):
    name = "%s on %s" % (firmware, machine)
    with Guest(cds=[iso], boot="cd", machine=machine, firmware=firmware) as guest:
        guest.start()
        text = guest.wait_serial(PROMPT, 120)
        tap.ok("Live CD found in /dev/sr0" in text, name + ": boots from the CD to a shell", text)
        if is_spindle(guest.program):
            tap.equal(guest.ask("cat /sys/block/sr0/device/vendor"), "SPINDLE", name + ": the drive is Spindle's")
        mounts = guest.ask("cat /proc/mounts")
        tap.match(mounts, re.compile(r"^/dev/sr0 /run/live/cd iso9660 ro", re.M), name + ": the CD is mounted")
        tap.match(mounts, re.compile(r"^root / overlay .*lowerdir=/run/live/squash", re.M),
                  name + ": the root is the squashfs")
        tap.equal(guest.ask("sha256sum </dev/sr0 | cut -c1-64"), digest, name + ": sha256 of /dev/sr0")
        errors = guest.ask(KERNEL_ERRORS)
        tap.ok(not errors, name + ": no error in the kernel's log", errors)


with Tap() as tap:
    iso = maker("mklive")
    with open(iso, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    for machine in ("q35", "pc"):
        for firmware in ("seabios", "ovmf"):
            boots(tap, iso, digest, machine, firmware)
