#!/usr/bin/env python3
"""A disc of several tracks, from a CUE sheet: its table of contents, its files and its sound in a guest."""

import hashlib
import os
import random
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import iso, sectors
from guest import Guest
from tap import Tap

HELLO = b"Hello from the first track\n" * 50


def make_disc(folder):
    """A data track, and two of audio, the first behind a pause that is in no file."""
    tree = os.path.join(folder, "tree")
    os.makedirs(tree)
    with open(os.path.join(tree, "hello.txt"), "wb") as f:
        f.write(HELLO)
    path = iso(os.path.join(folder, "data.iso"), tree)
    data = sectors(path)
    with open(path, "r+b") as f:
        f.truncate(data * 2048)
    sound = random.Random(1).randbytes(300 * 2352)
    with open(os.path.join(folder, "sound.bin"), "wb") as f:
        f.write(sound)
    sheet = os.path.join(folder, "disc.cue")
    with open(sheet, "w") as f:
        f.write('CATALOG 4006408000000\nFILE "data.iso" BINARY\n  TRACK 01 MODE1/2048\n    INDEX 01 00:00:00\n'
                'FILE "sound.bin" BINARY\n  TRACK 02 AUDIO\n    PREGAP 00:02:00\n    INDEX 01 00:00:00\n'
                '  TRACK 03 AUDIO\n    FLAGS DCP\n    INDEX 01 00:01:25\n')
    return sheet, data, sound


def check_toc(tap, guest, data):
    second, third, end = data + 150, data + 250, data + 450
    text = guest.get("cd-info --no-cddb /dev/sr0")
    for pattern in ("CD-ROM Track List (1 - 3)", "000000 data", "%06d audio" % second, "%06d audio" % third, "%06d leadout" % end):
        tap.ok(pattern in text, "cd-info: " + pattern, text)
    text = guest.get("/usr/bin/cdrom_id /dev/sr0")
    for pattern in ("ID_CDROM_MEDIA_TRACK_COUNT=3", "ID_CDROM_MEDIA_TRACK_COUNT_AUDIO=2", "ID_CDROM_MEDIA_TRACK_COUNT_DATA=1"):
        tap.ok(pattern in text, "cdrom_id: " + pattern, text)


def read_sound(guest, start, count):
    """READ CD of audio sectors, by pieces that every driver lets through; the sha256 of it."""
    script = "rm -f /tmp/sound\n"
    for at in range(start, start + count, 20):
        now = min(20, start + count - at)
        script += "sg_raw -r %d -o /tmp/piece /dev/sr0 be 04 %s 00 00 %02x 10 00 00 2>/dev/null && cat /tmp/piece >>/tmp/sound || exit 1\n" % (
            now * 2352, " ".join("%02x" % byte for byte in at.to_bytes(4, "big")), now)
    return guest.get(script + "sha256sum </tmp/sound | cut -c1-64")


def check_sound(tap, guest, start, sound):
    """All sectors of a track, and the last ones of it."""
    count = len(sound) // 2352
    for first in (0, count - 3):
        tap.equal(read_sound(guest, start + first, count - first), hashlib.sha256(sound[first * 2352:]).hexdigest(),
                  "%d sectors of sound from %d" % (count - first, start + first))


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-cue-") as folder:
    sheet, data, sound = make_disc(folder)
    drive = ["-blockdev", "driver=cue,node-name=disc,read-only=on,file.driver=file,file.filename=" + sheet,
             "-device", "ide-cd,id=cd0,drive=disc,bus=ide.0"]
    with Guest(cds=[drive]) as guest:
        guest.start()
        check_toc(tap, guest, data)
        guest.get("mkdir -p /mnt/cd && mount -t iso9660 -o ro /dev/sr0 /mnt/cd")
        tap.equal(guest.get("cat /mnt/cd/hello.txt"), HELLO.decode().strip(), "a file of the data track")
        guest.get("umount /mnt/cd")
        check_sound(tap, guest, data + 150, sound[:100 * 2352])
        check_sound(tap, guest, data + 250, sound[100 * 2352:])
