#!/usr/bin/env python3
"""Boot order.  Each disc and disk says its letter on the serial port and lets the firmware go on to the next; the engine
with drives of its own, given the same options, is the reference."""

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from guest import emulator, engine
from tap import Tap

SECTOR = 2048


def boot_code(letter):
    """mov dx, 3f8h; for each of "<LETTER>": mov al, …; out dx, al; then int 18h (to the next device)."""
    return b"\xba\xf8\x03" + b"".join(bytes([0xB0, ord(c), 0xEE]) for c in "<%s>" % letter) + b"\xcd\x18"


def write_disk(path, letter):
    with open(path, "wb") as f:
        f.write(boot_code(letter).ljust(510, b"\0") + b"\x55\xaa")
        f.truncate(1 << 20)


def write_disc(path, letter):
    """The least that El Torito asks for: two volume descriptors, the end of the set, a catalogue, an image."""
    descriptor = b"\1CD001\1".ljust(SECTOR, b"\0")
    record = b"\0CD001\1" + b"EL TORITO SPECIFICATION".ljust(64, b"\0") + (19).to_bytes(4, "little")
    entry = bytearray(32)
    entry[0], entry[30], entry[31] = 1, 0x55, 0xAA
    entry[28:30] = ((-sum(int.from_bytes(entry[i:i + 2], "little") for i in range(0, 32, 2))) & 0xFFFF).to_bytes(2, "little")
    default = b"\x88\0" + (0x7C0).to_bytes(2, "little") + b"\0\0" + (4).to_bytes(2, "little") + (20).to_bytes(4, "little")
    parts = [bytes(16 * SECTOR), descriptor, record, b"\xffCD001\1", bytes(entry) + default, boot_code(letter)]
    with open(path, "wb") as f:
        f.write(b"".join(p.ljust(max(SECTOR, len(p)), b"\0") for p in parts))
        f.truncate(1 << 20)


def write_uefi(folder, letter):
    """LETTER.disc and LETTER.disk: GRUB, which says its letter and ends."""
    with tempfile.TemporaryDirectory() as work:
        at = functools.partial(os.path.join, work)
        with open(at("grub.cfg"), "w") as f:
            f.write("serial --unit=0\nterminal_output serial\necho -n \"<%s>\"\nexit\n" % letter)
        disk = os.path.join(folder, letter + ".disk")
        for command in (["grub-mkimage", "-O", "x86_64-efi", "-p", "/", "-c", at("grub.cfg"), "-o", at("bootx64.efi"),
                         "serial", "terminal", "echo", "minicmd"],
                        ["mformat", "-C", "-f", "1440", "-i", disk],
                        ["mmd", "-i", disk, "::EFI", "::EFI/BOOT"],
                        ["mcopy", "-i", disk, at("bootx64.efi"), "::EFI/BOOT"]):
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        os.mkdir(at("tree"))
        shutil.copy(disk, at("tree/esp.img"))
        subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-e", "esp.img", "-no-emul-boot", "-o",
                        os.path.join(folder, letter + ".disc"), at("tree")], check=True, stderr=subprocess.DEVNULL)


def read(path):
    with open(path, errors="replace") as f:
        return f.read()


def booted(program, folder, args, expected):
    """The letters, in order. SeaBIOS says on its debug port when it has nothing more to boot; UEFI does not: what comes there
    after the expected letters, if anything, comes at once."""
    serial, log = os.path.join(folder, "serial"), os.path.join(folder, "log")
    for path in (serial, log):
        with open(path, "wb"):
            pass
    process = subprocess.Popen([program, "-accel", "tcg", "-m", "128", "-display", "none", "-nodefaults", "-serial", "file:" + serial,
                                "-chardev", "file,id=log,path=" + log, "-device", "isa-debugcon,iobase=0x402,chardev=log", *args],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder)
    end, text, quiet = time.monotonic() + 60, "", 0
    try:
        while time.monotonic() < end and process.poll() is None and quiet < 16:
            time.sleep(0.05)
            told, now = read(log), "".join(re.findall("<([ABGH])>", read(serial)))
            quiet = quiet + 1 if now == text == expected and "SeaBIOS" not in told else 0
            text = now
            if "No bootable device." in told:
                break
    finally:
        process.terminate()
        text += process.communicate(timeout=20)[0].decode() if process.returncode not in (None, 0) else ""
        process.wait(20)
    return text


def drive(name, bootindex=None, bus=None, suffix=""):
    extra = "".join(",%s=%s" % (key, value) for key, value in (("bootindex", bootindex), ("bus", bus)) if value is not None)
    return ["-drive", "if=none,format=raw,readonly=on,id=%s,file=%s" % (name, name + suffix), "-device", "ide-cd,drive=" + name + extra]


def disk(bootindex=None, suffix=""):
    extra = "" if bootindex is None else ",bootindex=%d" % bootindex
    return ["-drive", "if=none,format=raw,id=H,file=H" + suffix, "-device", "virtio-blk-pci,drive=H" + extra]


def hard_disk(name="H", bootindex=None, bus=None):
    extra = "".join(",%s=%s" % (key, value) for key, value in (("bootindex", bootindex), ("bus", bus)) if value is not None)
    return ["-drive", "if=none,format=raw,id=%s,file=%s" % (name, name), "-device", "ide-hd,drive=" + name + extra]


# Name, options, the letters.
ROWS = [
    ("a disc and no disk", drive("A"), "A"),
    ("no order: the disk first", drive("A") + disk(), "HA"),
    ("-boot d", drive("A") + disk() + ["-boot", "d"], "AH"),
    ("-boot order=c", drive("A") + disk() + ["-boot", "order=c"], "HA"),
    ("-boot once=d", drive("A") + disk() + ["-boot", "once=d"], "AH"),
    ("bootindex: the disc first", drive("A", 1) + disk(2), "AH"),
    ("bootindex: the disk first", drive("A", 2) + disk(1), "HA"),
    ("bootindex of the disc only", drive("A", 1) + disk(), "AH"),
    ("bootindex of the disk only", drive("A") + disk(1), "HA"),
    ("strict, the disc first", drive("A", 1) + disk(2) + ["-boot", "strict=on"], "AH"),
    ("strict, the disk first", drive("A", 2) + disk(1) + ["-boot", "strict=on"], "HA"),
    ("strict, the disk only", drive("A") + disk(1) + ["-boot", "strict=on"], "H"),
    ("bootindex goes before -boot order", drive("A", 1) + disk(2) + ["-boot", "order=c"], "AH"),
    ("two discs, the second port first", drive("A", 2, "ide.0") + drive("B", 1, "ide.1"), "BA"),
    ("two discs, one without a bootindex", drive("A", None, "ide.0") + drive("B", 1, "ide.1"), "BA"),
    ("two discs about a disk", drive("A", 1, "ide.0") + disk(2), "AH"),
    ("ide-hd: no order: the disk first", drive("A", None, "ide.0") + hard_disk("H", None, "ide.1"), "HA"),
    ("ide-hd: -boot d", drive("A", None, "ide.0") + hard_disk("H", None, "ide.1") + ["-boot", "d"], "AH"),
    ("ide-hd: bootindex, the disc first", drive("A", 1, "ide.0") + hard_disk("H", 2, "ide.1"), "AH"),
    ("ide-hd: bootindex, the disk first", drive("A", 2, "ide.0") + hard_disk("H", 1, "ide.1"), "HA"),
    ("ide-hd: strict", hard_disk("H", 1, "ide.1") + ["-boot", "strict=on"], "H"),
    # SeaBIOS tries one hard disk only.
    ("two disks of ide-hd: the first", hard_disk("H", None, "ide.0") + hard_disk("G", None, "ide.1"), "H"),
    ("two disks of ide-hd: bootindex of the second", hard_disk("H", None, "ide.0") + hard_disk("G", 1, "ide.1"), "G"),
    ("-hda and -cdrom", ["-drive", "file=H,format=raw,index=0", "-cdrom", "A"], "HA"),
]

# GRUB that ends well ends the search: only the first is seen.
UEFI = [
    ("the disc first", drive("A", 1, suffix=".disc") + disk(2, ".disk"), "A"),
    ("the disk first", drive("A", 2, suffix=".disc") + disk(1, ".disk"), "H"),
    ("two discs about a disk", drive("A", 3, "ide.0", ".disc") + disk(2, ".disk") + drive("B", 1, "ide.1", ".disc"), "B"),
]


def check(tap, folder, args, expected, name):
    tap.equal(booted(emulator(), folder, args, expected), expected, name)


def check_against_engine(tap, folder, args, expected, name):
    check(tap, folder, args, expected, name)
    tap.equal(booted(engine(), folder, args, expected), expected, name + " (as the engine)")


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-boot-order-") as folder:
    write_disk(os.path.join(folder, "H"), "H")
    write_disk(os.path.join(folder, "G"), "G")
    write_disc(os.path.join(folder, "A"), "A")
    write_disc(os.path.join(folder, "B"), "B")
    for number, (name, args, expected) in enumerate(ROWS):
        check_against_engine(tap, folder, ["-M", "q35"] + args, expected, "SeaBIOS, q35: " + name)
        if number % 2:
            check(tap, folder, ["-M", "pc"] + args, expected, "SeaBIOS, pc: " + name)
    for letter in "ABH":
        write_uefi(folder, letter)
    shutil.copy(engine("--share", "OVMF_VARS_4M.fd"), os.path.join(folder, "vars"))
    firmware = ["-M", "q35", "-drive", "if=pflash,format=raw,readonly=on,file=" + engine("--share", "OVMF_CODE_4M.fd"),
                "-drive", "if=pflash,format=raw,snapshot=on,file=vars"]
    for name, args, expected in UEFI:
        check_against_engine(tap, folder, firmware + args, expected, "UEFI: " + name)
