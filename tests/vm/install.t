#!/usr/bin/env python3
"""An operating system is installed from `-cdrom http://…` onto a plain and onto an encrypted disk, while the server goes away
and comes back, and boots from there."""

import os
import re
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "..", "remote", "lib")]
from disk import disk_options, luks_image, luks_options
from faultserver import FaultServer
from guest import KERNEL_ERRORS, PROMPT, Guest, is_spindle, maker
from tap import Tap

SIZE = 512 << 20
AWAY = 6
# Bytes a second: so that not everything is here when the server goes.
LINK = 6000000
SLOW_LINK = 1000000
# What the installer puts in place of the system's own.
OTHERS = r" \./etc/\(rc\|fstab\)$"


def plain_image(path):
    with open(path, "wb") as f:
        f.truncate(SIZE)
    return path


def install(tap, name, server, firmware, disk):
    with Guest(boot="cd", firmware=firmware, args=["-cdrom", server.url()] + disk) as guest:
        guest.start()
        guest.wait_serial("installer: copying the system", 180)
        server.link = SLOW_LINK
        server.wait_answering(60)
        server.stop()
        sent = server.sent
        time.sleep(AWAY)
        server.link = None
        server.start()
        text = guest.wait_serial("installer: (finished|FAILED).*\n", 240)
        tap.ok("finished" in text, name + ": installs, with the server away for %d s" % AWAY, text)
        tap.ok(server.cut and server.sent > sent + (2 << 20), name + ": it was away in the middle",
               "%d answers cut, %d bytes sent before, %d in all" % (server.cut, sent, server.sent))
        guest.process.wait(30)
        tap.equal(guest.leftovers(), [], name + ": the installer switches the machine off, nothing is left behind")


def boots(tap, name, server, firmware, disk):
    with Guest(boot="cd", firmware=firmware, args=["-cdrom", server.url()] + disk + ["-boot", "c"]) as guest:
        guest.start()
        text = guest.wait_serial(PROMPT, 180)
        tap.match(text, re.compile(r"runs from /dev/sda3, where it was installed"), name + ": the installed disk boots")
        if is_spindle(guest.program):
            tap.equal(guest.ask("cat /sys/block/sda/device/model"), "SPINDLE HARDDISK", name + ": the disk is Spindle's")
        tap.equal(guest.ask("ls -d /sys/firmware/efi 2>/dev/null"), "/sys/firmware/efi" if firmware == "ovmf" else "",
                  name + ": by its own firmware")
        sums = guest.ask("mount -o ro /dev/sr0 /mnt && cd / && grep -v '%s' /mnt/live/root.sha256 >/run/sums && "
                         "sha256sum --check --strict --quiet /run/sums && wc -l </run/sums" % OTHERS, 150)
        tap.ok(re.fullmatch(r"\d{4,}", sums), name + ": every file of it is the source's", sums)
        errors = guest.ask(KERNEL_ERRORS)
        tap.ok(not errors, name + ": no error in the kernel's log", errors)


def starts_with(path, offset, magic):
    with open(path, "rb") as f:
        f.seek(offset)
        return f.read(len(magic)) == magic


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-install-") as folder:
    with open(maker("mkinstaller"), "rb") as f:
        content = f.read()
    plain = plain_image(os.path.join(folder, "plain.img"))
    encrypted = luks_image(os.path.join(folder, "encrypted.img"), SIZE, "a passphrase")
    for firmware, name, disk in (("seabios", "SeaBIOS, plain disk", disk_options(plain, extra=",bootindex=0")),
                                 ("ovmf", "UEFI, encrypted disk", luks_options(encrypted, extra=",bootindex=0"))):
        server = FaultServer(content, link=LINK)
        install(tap, name, server, firmware, [a.replace(",bootindex=0", "") for a in disk])
        boots(tap, name, server, firmware, disk)
        server.stop()
    tap.ok(starts_with(plain, 512, b"EFI PART"), "the plain image is what the guest wrote")
    tap.ok(starts_with(encrypted, 0, b"LUKS") and b"EFI PART" not in open(encrypted, "rb").read(64 << 20),
           "the encrypted one holds nothing of it in the clear")
