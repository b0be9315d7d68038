#!/usr/bin/env python3
"""The live CD boots under each firmware on each machine, runs from the squashfs on the CD, and reads the whole
CD back as it is."""

import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from guest import Guest, is_spindle, maker
from tap import Tap

PROMPT = r"root@spindle:[^#\n]*# "


def ask(guest, command, timeout=60):
    """Type a command at the shell on the serial port: its output, without the echo."""
    # The marks are put together by the shell, so that the echo of the command does not hold them.
    guest.type("echo 'BEG''IN'; %s; echo 'END''OF'\n" % command)
    text = guest.wait_serial(r"(?s)BEGIN\r?\n.*ENDOF\r?\n", timeout)
    guest.wait_serial(PROMPT, 20)
    return re.search(r"(?s)BEGIN\r?\n(.*)ENDOF\r?\n", text).group(1).replace("\r", "").strip()


def boots(tap, iso, digest, machine, firmware):
    name = "%s on %s" % (firmware, machine)
    with Guest(cds=[iso], boot="cd", machine=machine, firmware=firmware) as guest:
        guest.start()
        text = guest.wait_serial(PROMPT, 120)
        tap.ok("Live CD found in /dev/sr0" in text, name + ": boots from the CD to a shell", text)
        if is_spindle(guest.program):
            tap.equal(ask(guest, "cat /sys/block/sr0/device/vendor"), "SPINDLE", name + ": the drive is Spindle's")
        mounts = ask(guest, "cat /proc/mounts")
        tap.match(mounts, re.compile(r"^/dev/sr0 /run/live/cd iso9660 ro", re.M), name + ": the CD is mounted")
        tap.match(mounts, re.compile(r"^root / overlay .*lowerdir=/run/live/squash", re.M),
                  name + ": the root is the squashfs")
        tap.equal(ask(guest, "sha256sum </dev/sr0 | cut -c1-64"), digest, name + ": sha256 of /dev/sr0")
        errors = ask(guest, "dmesg | grep -E 'ata[0-9].*(exception|error|failed|reset)|I/O error|SQUASHFS error'; true")
        tap.ok(not errors, name + ": no error in the kernel's log", errors)


with Tap() as tap:
    iso = maker("mklive")
    with open(iso, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    for machine in ("q35", "pc"):
        for firmware in ("seabios", "ovmf"):
            boots(tap, iso, digest, machine, firmware)
