#!/usr/bin/env python3
"""Hard disks in a real guest: a file system that is filled, restarted and checked, NCQ under fio with verification, the
old IDE controller, and what is on the disk when the machine is killed.

    tests/vm/disk.t [--long]     fio for two minutes, not twenty seconds
"""

import hashlib
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from disk import disk_options, mount_tools, tools_options
from guest import Guest, is_spindle
from tap import Tap

COPY = 244141 * 2048  # sectors of a disc, 500 MB
FIO_SECONDS = 120 if "--long" in sys.argv[1:] else 20
RECORD = 64 * 1024


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def noise(path, size):
    with open(path, "wb") as f:
        while size:
            f.write(os.urandom(min(size, 1 << 20)))
            size -= min(size, 1 << 20)


def sparse(path, size):
    with open(path, "wb") as f:
        f.truncate(size)
    return path


def no_errors(tap, guest, name):
    text = guest.get("dmesg | grep -E 'ata[0-9].*(exception|failed|timeout)|I/O error|EXT4-fs error'; true")
    tap.ok(not text, name + ": no error in the kernel's log", text)


def served(tap, guest, name):
    model = guest.get("cat /sys/block/sda/device/model")
    expected = "SPINDLE HARDDISK" if is_spindle(guest.program) else "QEMU HARDDISK"
    tap.equal(model, expected, name + ": the disk is the one that is under test")


def make_file_system(guest):
    guest.get("echo 'label: gpt\nsize=+, type=L' | sfdisk -q /dev/sda; n=0; "
              "while [ ! -b /dev/sda1 ] && [ $n -lt 50 ]; do sleep 0.1; n=$((n + 1)); done; "
              "/bin/mke2fs -q -t ext4 /dev/sda1 && mount -t ext4 /dev/sda1 /mnt", 180)


def restart(guest):
    guest.get("umount /mnt; sync")
    guest.control.send(b"reboot\n")
    guest.wait_ready(180)
    mount_tools(guest)


def check_file_system(tap, guest, expected, size, name):
    status, text = guest.run("e2fsck -f -n /dev/sda1", 180)
    tap.ok(status == 0, name + ": fsck finds nothing after a restart", text)
    guest.get("mount -t ext4 -o ro /dev/sda1 /mnt")
    tap.equal(guest.get("stat -c %s /mnt/copy; sha256sum </mnt/copy | cut -c1-64", 400).split(), [str(size), expected],
              name + ": the file is the same after a restart")
    guest.get("umount /mnt")


def check_copy(tap, folder):
    """From a disc at the same controller."""
    source, image = os.path.join(folder, "source.iso"), sparse(os.path.join(folder, "disk.img"), 1 << 30)
    noise(source, COPY)
    cd = ["-drive", "if=none,id=cd,media=cdrom,format=raw,file=" + source, "-device", "ide-cd,drive=cd,bus=ide.3"]
    with Guest(args=disk_options(image, extra=",serial=CHECK") + cd + tools_options()) as guest:
        guest.start(180)
        mount_tools(guest)
        served(tap, guest, "copy")
        tap.match(guest.get("dmesg"), re.compile(r"NCQ \(depth 32\)"), "copy: the guest uses NCQ")
        make_file_system(guest)
        guest.get("dd if=/dev/sr0 of=/mnt/copy bs=1M iflag=fullblock && sync", 400)
        restart(guest)
        check_file_system(tap, guest, sha256(source), COPY, "copy")
        no_errors(tap, guest, "copy")
        guest.quit()
        left = guest.leftovers()
        tap.ok(not left, "copy: nothing is left", *left)


def check_fio(tap, folder):
    image = sparse(os.path.join(folder, "fio.img"), 512 << 20)
    with Guest(args=disk_options(image) + tools_options()) as guest:
        guest.start(180)
        mount_tools(guest)
        status, text = guest.run("fio --name=x --filename=/dev/sda --size=256M --direct=1 --ioengine=libaio --rw=randrw "
                                 "--bsrange=4k-128k --iodepth=32 --verify=crc32c --verify_fatal=1 --verify_backlog=64 "
                                 "--runtime=%d --time_based" % FIO_SECONDS, FIO_SECONDS + 180)
        done = re.search(r"err= *0:.*write: IOPS=([\d.k]+)", text, re.S)
        tap.ok(status == 0 and done, "fio: random reads and writes at depth 32, verified, for %d s" % FIO_SECONDS, text)
        no_errors(tap, guest, "fio")


def check_ide(tap, folder):
    """PIIX3 on pc, in native mode, for all of the machine's own drives."""
    image = sparse(os.path.join(folder, "ide.img"), 128 << 20)
    args = ["-global", "spindle.controller=piix3-ide"] + disk_options(image, bus="ide.0") + tools_options()
    with Guest(args=args, machine="pc") as guest:
        guest.start(180)
        mount_tools(guest)
        served(tap, guest, "piix3-ide")
        tap.equal(guest.get("d=$(readlink -f /sys/block/sda/device); while [ ! -e $d/class ]; do d=${d%/*}; done; "
                            "cat $d/vendor $d/device; readlink $d/driver").split()[:2],
                  ["0x8086", "0x7010"], "piix3-ide: the disk's controller")
        make_file_system(guest)
        expected = guest.get("dd if=/dev/urandom of=/mnt/copy bs=1M count=24 && sync && sha256sum </mnt/copy | cut -c1-64", 300)
        restart(guest)
        check_file_system(tap, guest, expected.split()[-1], 24 << 20, "piix3-ide")
        no_errors(tap, guest, "piix3-ide")


def record(number):
    return (("%08d" % number) * (RECORD // 8)).encode()


def check_kill(tap, folder):
    """The guest says of each record when it is flushed; the machine is killed between two of them, while others are
    written."""
    image = sparse(os.path.join(folder, "kill.img"), 256 << 20)
    writer = ("i=0; while :; do i=$((i + 1)); n=$(printf %08d $i); "
              "yes $n | tr -d '\\n' | head -c 65536 | dd of=/dev/sda bs=64k seek=$i iflag=fullblock conv=fsync,notrunc 2>/dev/null && "
              "echo flushed $n >/dev/ttyS0; done")
    noisy = "while :; do dd if=/dev/urandom of=/dev/sda bs=1M seek=128 count=64 conv=notrunc 2>/dev/null; done"
    with Guest(args=disk_options(image)) as guest:
        guest.start(180)
        guest.get("(%s) >/dev/null 2>&1 & (%s) >/dev/null 2>&1 & true" % (noisy, writer))
        guest.wait_serial("flushed 00000020", 180)
        guest.process.kill()
        guest.process.wait(20)
        last = max(int(n) for n in re.findall(r"flushed (\d{8})\r?\n", "flushed 00000020\n" + guest.serial_text()))
        left = guest.leftovers(15)
        tap.ok(not left, "kill: the drive process ends with the machine, its socket is gone", *left)
        with open(image, "rb") as f:
            f.seek(RECORD)
            lost = [n for n in range(1, last + 1) if f.read(RECORD) != record(n)]
        tap.ok(last >= 20 and not lost, "kill: all %d records that the guest was told to be flushed are there" % last, lost)


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-disk-") as folder:
    check_copy(tap, folder)
    check_fio(tap, folder)
    check_ide(tap, folder)
    check_kill(tap, folder)
