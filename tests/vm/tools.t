#!/usr/bin/env python3
"""What users ask a drive with: the tools of sg3-utils, libcdio, genisoimage, wodim and eject, run in a guest from
Debian's packages, and their output against the values that this disc and drive have to give."""

import hashlib
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import iso, sectors
from guest import Guest
from tap import Tap

HELLO = b"Hello from the disc\n" * 100


def msf(lba):
    lba += 150
    return "%02d:%02d:%02d" % (lba // 4500, lba // 75 % 60, lba % 75)


def cases(count):
    """Command: the patterns that its output has to hold, each at the start of a line.  All must exit with 0."""
    digest = hashlib.sha256(HELLO).hexdigest()
    return [
        ("sg_inq /dev/sr0", [
            r"standard INQUIRY:", r" +PQual=0  PDT=5  RMB=1 ", r" +length=\d+ \(0x[0-9a-f]+\)   Peripheral device type: cd/dvd",
            r" Vendor identification: SPINDLE ", r" Product identification: CD/DVD Drive", r" Product revision level: 1\.0"]),
        ("sg_readcap /dev/sr0", [
            r" +Last LBA=%d \(0x%x\), Number of logical blocks=%d" % (count - 1, count - 1, count),
            r" +Logical block length=2048 bytes", r" +Device size: %d bytes" % (count * 2048)]),
        ("sg_modes --all /dev/sr0", [
            r".*SPINDLE .*CD/DVD Drive.*peripheral_type: cd/dvd \[0x5\]",
            # Each page's code and length stand first in its bytes (MMC-6 7, SPC-4 7.5).
            r">> Read-Write error recovery, page_control: current\n 00     01 0a ",
            r">> CD device parameters.*current\n 00     0d 06 00 .. 00 3c 00 4b$",
            r">> CD audio, page_control: current\n 00     0e 0e ",
            r">> Power condition.*current\n 00     1a 0a ",
            r">> Timeout and protect.*current\n 00     1d 08 ",
            # Reads CD-R and CD-RW, DVD-ROM; Mode 2 forms and sessions; lock, eject, tray.
            r">> MM capabilities.*current\n 00     2a [0-9a-f]{2} [0-9a-f][b37f] "]),
        ("sg_modes --page=0x2a /dev/sr0", [r">> MM capabilities.*current\n 00     2a "]),
        ("sg_modes --page=0x2a --control=1 /dev/sr0", [r">> MM capabilities.*changeable\n 00     2a [0-9a-f]{2} 00 00 00 00 00 00"]),
        ("sg_modes --six --page=0x1 /dev/sr0", [r".*MODE SENSE\(6\)", r">> Read-Write error recovery.*current\n 00     01 0a "]),
        ("sg_get_config /dev/sr0", [
            r"Current profile: CD-ROM", r" +Profile list feature", r" +profile: CD-ROM , currentP=1",
            r" +profile: DVD-ROM , currentP=0", r" +profile: BD-ROM , currentP=0",
            r" +Core feature", r" +Morphing feature", r" +Removable media feature", r" +Random readable feature",
            r" +Multi-read feature", r" +CD read feature"]),
        ("sg_get_config --current /dev/sr0", [r"Current profile: CD-ROM", r" +CD read feature"]),
        ("cd-info --no-cddb /dev/sr0", [
            r"Vendor +: SPINDLE", r"Model +: CD/DVD Drive", r"Revision +: 1\.0",
            r"Hardware +: CD-ROM or DVD", r"Can eject +: Yes", r"Can close tray +: Yes",
            r"Disc mode is listed as: CD-DATA \(Mode 1\)",
            r"CD-ROM Track List \(1 - 1\)", r" +1: 00:02:00  000000 data   false  no",
            r"170: %s  %06d leadout" % (msf(count), count),
            r"Last CD Session LSN: 0", r"CD-ROM with ISO 9660 filesystem", r"Volume     : SPINDLE_TEST"]),
        ("isoinfo -d -i /dev/sr0", [
            r"CD-ROM is in ISO 9660 format", r"Volume id: SPINDLE_TEST", r"Logical block size is: 2048",
            r"Volume size is: %d$" % count, r"Rock Ridge signatures version 1 found"]),
        ("isoinfo -l -R -i /dev/sr0", [r"-rw-r--r-- .* 2000 .* hello\.txt", r"Directory listing of /sub/", r"-rw-r--r-- .* 25600 .* b\.bin"]),
        ("isoinfo -R -x /hello.txt -i /dev/sr0 | sha256sum", [digest]),
        ("iso-info -l /dev/sr0", [r".*hello.txt", r"Volume +: SPINDLE_TEST"]),
        ("/usr/bin/cdrom_id /dev/sr0", [
            r"ID_CDROM=1$", r"ID_CDROM_CD=1$", r"ID_CDROM_DVD=1$", r"ID_CDROM_BD=1$", r"ID_CDROM_MEDIA=1$", r"ID_CDROM_MEDIA_CD=1$",
            r"ID_CDROM_MEDIA_SESSION_COUNT=1$", r"ID_CDROM_MEDIA_TRACK_COUNT=1$", r"ID_CDROM_MEDIA_TRACK_COUNT_DATA=1$"]),
        ("wodim dev=/dev/sr0 -prcap", [
            r"Vendor_info    : 'SPINDLE ", r"Identification : 'CD/DVD Drive", r"  Does read CD-R media", r"  Does support ejection of CD"]),
        ("sg_turs /dev/sr0", []),
    ]


def check_tools(tap, guest, path):
    for command, patterns in cases(sectors(path)):
        status, text = guest.run(command)
        missing = [p for p in patterns if not re.search("^(%s)" % p, text, re.M)]
        tap.ok(status == 0 and not missing, command, "exit status %d" % status, *(["missing: " + p for p in missing] + [text]))


def check_mount(tap, guest):
    guest.get("mkdir -p /mnt/cd && mount -t iso9660 -o ro /dev/sr0 /mnt/cd")
    tap.equal(guest.get("cat /mnt/cd/hello.txt"), HELLO.decode().strip(), "a mounted disc's file")
    guest.get("umount /mnt/cd")


def check_lock(tap, guest):
    """Through /dev/sg0: the kernel's CD driver unlocks the door by itself when /dev/sr0 is closed."""
    tap.equal(guest.run("sg_prevent --prevent=1 /dev/sg0")[0], 0, "the door locks")
    status, text = guest.run("sg_start -v --eject /dev/sg0 2>&1")
    tap.ok(status != 0 and "Medium removal prevented" in text, "a locked door does not open", text)
    tap.equal(guest.run("sg_turs /dev/sg0")[0], 0, "and the disc is still there")
    tap.equal(guest.run("sg_prevent --allow /dev/sg0")[0], 0, "the door unlocks")


def check_eject(tap, guest):
    """Open and close, and what the drive says meanwhile."""
    status, text = guest.run("eject -v /dev/sr0")
    tap.ok(status == 0 and "CD-ROM eject command succeeded" in text, "eject", text)
    status, text = guest.run("sg_turs -v /dev/sr0 2>&1")
    tap.ok(status == 2 and re.search("Medium not present - tray open", text), "an open tray says so", text)
    status, text = guest.run("eject -t -v /dev/sr0")
    tap.ok(status == 0, "eject -t", text)
    # The first command after a medium came gets a unit attention.
    status, text = guest.run("sg_turs /dev/sr0; sg_turs /dev/sr0")
    tap.ok(status == 0, "the disc is ready again", text)
    tap.equal(guest.get("isoinfo -R -x /hello.txt -i /dev/sr0 | sha256sum").split()[0], hashlib.sha256(HELLO).hexdigest(),
              "the disc reads as before")
    for number in range(3):
        status, text = guest.run("eject /dev/sr0 && eject -t /dev/sr0 && sleep 0.2; sg_turs /dev/sr0; sg_turs /dev/sr0")
        tap.ok(status == 0, "open and close again, %d" % (number + 1), text)


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-tools-") as folder:
    tree = os.path.join(folder, "tree")
    os.makedirs(os.path.join(tree, "sub"))
    with open(os.path.join(tree, "hello.txt"), "wb") as f:
        f.write(HELLO)
    with open(os.path.join(tree, "sub", "b.bin"), "wb") as f:
        f.write(bytes(range(256)) * 100)
    os.chmod(os.path.join(tree, "hello.txt"), 0o644)
    os.chmod(os.path.join(tree, "sub", "b.bin"), 0o644)
    path = iso(os.path.join(folder, "disc.iso"), tree)
    with Guest(cds=[path]) as guest:
        guest.start()
        check_tools(tap, guest, path)
        check_mount(tap, guest)
        check_lock(tap, guest)
        check_eject(tap, guest)
        errors = guest.get("dmesg | grep -E 'ata[0-9].*(exception|failed|timeout)|I/O error'; true")
        tap.ok(not errors, "no error in the kernel's log", errors)
