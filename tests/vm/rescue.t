#!/usr/bin/env python3
"""The bootable CDs that Debian packages reach their first screen: GRUB's rescue CD, iPXE, memtest86+."""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from guest import Guest, maker
from tap import Tap

# File, what its first screen says, machines.
CDS = [
    ("grub-rescue.iso", r"GNU GRUB +version 2\.\d+.*Press enter to boot"),
    ("ipxe.iso", r"iPXE \d+\.\d+\.\d+.*Open Source Network Boot Firmware"),
    ("memtest86+.iso", r"Memtest86\+ v?\d.*CLK/Temp"),
]


def text_screen(guest):
    """The characters of the VGA text screen, 80 by 25, read from its memory."""
    path = os.path.join(guest.folder, "text")
    guest.qmp("pmemsave", val=0xB8000, size=4000, filename=path)
    with open(path, "rb") as f:
        cells = f.read()[::2]
    rows = [cells[i:i + 80].decode("cp437").rstrip() for i in range(0, 2000, 80)]
    return "\n".join(rows)


def reaches(tap, folder, name, pattern, machine):
    wanted = re.compile(pattern, re.S)
    with Guest(cds=[os.path.join(folder, name)], boot="cd", machine=machine, vga=True) as guest:
        guest.start()
        end = time.monotonic() + 60
        while True:
            text = text_screen(guest)
            if wanted.search(text) or time.monotonic() > end:
                break
            time.sleep(0.3)
        tap.match(text, wanted, "%s on %s" % (name, machine))


with Tap() as tap:
    folder = maker("mkrescue")
    for name, pattern in CDS:
        for machine in ("q35", "pc"):
            reaches(tap, folder, name, pattern, machine)
