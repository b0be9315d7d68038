#!/usr/bin/env python3
"""Discs of every size: capacity, profile, last sector, and reads at random places, byte for byte."""

import base64
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import SECTOR, patterned, read_sectors, sectors
from guest import Guest
from tap import Tap

GB = 1000 ** 3
# Name, bytes, profile (MMC-6 table 92): more than a CD's 99 minutes of sectors is a DVD, more than a DVD's two layers
# a Blu-ray disc.
DISCS = [
    ("100 bytes", 100, "CD-ROM"),
    ("a short last sector", 400 * SECTOR + 700, "CD-ROM"),
    ("3 MB", 3 * 1024 ** 2, "CD-ROM"),
    ("700 MB", 700 * 1024 ** 2, "CD-ROM"),
    ("4.7 GB", 4707319808, "DVD-ROM"),
    ("8.5 GB", 8543666176, "DVD-ROM"),
    ("25 GB", 25025314816, "BD-ROM"),
]
READS = 24


def check_disc(tap, guest, device, name, path, profile, rng):
    count = sectors(path)
    text = guest.get("sg_readcap %s" % device)
    tap.ok("Last LBA=%d " % (count - 1) in text and "block length=2048 " in text, name + ": READ CAPACITY", text)
    size = guest.get("blockdev --getsize64 " + device)
    tap.equal(int(size), count * SECTOR, name + ": size in the kernel")
    text = guest.get("sg_get_config --current %s | grep '^Current profile'" % device)
    tap.equal(text.strip(), "Current profile: " + profile, name + ": profile")

    last = guest.get("dd if=%s bs=2048 skip=%d iflag=direct status=none | base64 -w0" % (device, count - 1))
    tap.ok(base64.b64decode(last) == read_sectors(path, count - 1, 2), name + ": last sector")
    status, text = guest.run("sg_raw -r 2048 %s 28 00 %s 00 00 01 00 2>&1" %
                             (device, " ".join("%02x" % b for b in count.to_bytes(4, "big"))))
    tap.ok(status != 0 and "Logical block address out of range" in text, name + ": no sector after the last", text)

    # The places with noise, and any others: (first sector, sectors).
    spots = []
    for _ in range(READS):
        length = rng.choice([1, 1, 2, 7, 16, 31, 64])
        spots.append((rng.randrange(max(1, count - length)), min(length, count)))
    for offset, length in path_places[path][: READS]:
        spots.append((offset // SECTOR, min(32, count - offset // SECTOR)))
    rng.shuffle(spots)
    script = "".join("dd if=%s bs=2048 skip=%d count=%d iflag=direct status=none\n" % (device, lba, n)
                     for lba, n in spots)
    data = base64.b64decode(guest.get("{ %s } | base64 -w0" % script))
    wrong = []
    at = 0
    for lba, n in spots:
        expected = read_sectors(path, lba, n)
        if data[at:at + len(expected)] != expected:
            wrong.append("sector %d, %d sectors" % (lba, n))
        at += len(expected)
    tap.ok(not wrong and at == len(data), name + ": %d reads at random places" % len(spots), *wrong)


path_places = {}
seed = random.randrange(1 << 32)
with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-sizes-") as folder:
    tap.note("seed %d" % seed)
    rng = random.Random(seed)
    discs = []
    for number, (name, size, profile) in enumerate(DISCS):
        path = os.path.join(folder, "disc%d.iso" % number)
        path_places[path] = patterned(path, size, seed + number)
        discs.append((name, path, profile))
    # The controller of q35 has six ports.
    for group in (discs[:4], discs[4:]):
        with Guest(cds=[path for _, path, _ in group]) as guest:
            guest.start()
            for number, (name, path, profile) in enumerate(group):
                check_disc(tap, guest, "/dev/sr%d" % number, name, path, profile, rng)
