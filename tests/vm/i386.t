#!/usr/bin/env python3
"""A 32-bit kernel (Debian i386) finds the drive and reads a disc."""

import hashlib
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import patterned
from guest import Guest
from tap import Tap

with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-i386-") as folder:
    path = os.path.join(folder, "disc.iso")
    patterned(path, 48 << 20, 386)
    with open(path, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    for machine in ("q35", "pc"):
        with Guest(cds=[path], arch="i386", machine=machine) as guest:
            guest.start()
            tap.equal(guest.get("uname -m"), "i686", machine + ": a 32-bit kernel runs")
            tap.equal(guest.get("sha256sum </dev/sr0 | cut -c1-64"), digest, machine + ": sha256 of /dev/sr0")
            errors = guest.get("dmesg | grep -E 'ata[0-9].*(exception|failed)|I/O error'; true")
            tap.ok(not errors, machine + ": no error in the kernel's log", errors)
