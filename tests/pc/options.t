#!/usr/bin/env python3
"""Command lines of test programs, on Spindle and on the engine: what starts with the same drives, and what is refused in the same words."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import Ide, Machine, Place, engine  # noqa: E402
from tap import Tap  # noqa: E402

MIB = 1 << 20
Q35 = "-M q35 "
DISK = "-drive if=none,id=d0,file=DISK,format=raw "
HD = DISK + "-device ide-hd,drive=d0,"

# DISK, MORE, DISC and RULES are files.
STARTS = (
    # Machines and places
    "", Q35, "-M pc-i440fx-7.2", "-M pc-q35-7.2", "-machine type=q35,usb=off", "-M pc,smm=off,vmport=off", "-m 512,slots=2,maxmem=1G", "-m 0",
    "-boot strict=on,menu=on", "-smp 2", HD + "bus=ide.0", HD + "bus=ide.1,unit=1", HD + "unit=0", HD + "bootindex=-2", HD + "rerror=enospc,werror=stop",
    HD + "write-cache=off,share-rw=on,rotation_rate=1", HD + "cyls=16,heads=4,secs=8", HD + "physical_block_size=4096", Q35 + HD + "bus=ide.5",
    Q35 + HD + "id=hd0,serial=S,model=M,ver=V,wwn=0x5000c50015ea71ac", "-device ide-cd,id=cd", Q35 + "-device ide-cd,bus=ide.3",
    "-drive if=none,id=c0,media=cdrom,format=raw,file=DISC -device ide-cd,drive=c0,bus=ide.1",
    # Controllers
    DISK + "-device ahci,id=a1 -device ide-hd,drive=d0,bus=a1.5", DISK + "-device ich9-ahci,id=a1,addr=05.0 -device ide-hd,drive=d0,bus=a1.0",
    DISK + "-device ahci,id=a1,addr=1f.2,multifunction=on -device ide-hd,drive=d0,bus=a1.0", DISK + "-device piix4-ide,id=p -device ide-hd,drive=d0,bus=p.1,unit=1",
    Q35 + DISK + "-device ahci,id=a1 -device ahci,id=a2,addr=10 -device ide-hd,drive=d0,bus=a2.3", "-device ahci,bus=pci.0,romfile=",
    # -drive and its short forms
    "-hda DISK -hdb MORE -cdrom DISC", Q35 + "-hda DISK -hdd MORE", "-drive file=DISK,format=raw,if=ide,bus=1,unit=1", "-drive if=ide,media=cdrom",
    "-drive file=DISK,format=raw,index=3,id=mine,node-name=n", "-drive file=DISK,format=raw,cache=unsafe,aio=threads,discard=unmap,detect-zeroes=unmap",
    "-drive file=DISK,format=raw,detect-zeroes=unmap", "-drive file=DISK,format=raw,bps_rd=1000,iops=5", "-drive file=DISK,format=raw,size=4096,offset=512",
    "-drive file=DISK,format=raw,throttling.group=g,throttling.iops-total=5", "-drive file.filename=DISK,format=raw", "-drive file=file:DISK,format=raw",
    "-drive file.filename=DISK,file.locking=off,format=raw", "-drive driver=raw,file.driver=null-co,file.size=1M", "-drive driver=null-co,size=1M",
    "-drive driver=null-co,read-zeroes=on", "-drive driver=null-aio,size=1M", "-drive file=null-aio://,format=raw", "-drive file=null-co://,format=raw",
    "-drive file=blkdebug::DISK,format=raw", "-drive file=blkdebug:RULES:DISK,format=raw", "-drive driver=blkdebug,image.driver=file,image.filename=DISK",
    "-drive file.driver=blkdebug,file.image.filename=DISK,file.inject-error.0.event=read_aio,file.inject-error.0.once=on,format=raw",
    "-drive driver=blkdebug,image.filename=DISK,align=512",
    "-blockdev driver=file,filename=DISK,node-name=n,read-only=on -device ide-cd,drive=n",
    "-blockdev file,node-name=f,filename=DISK -blockdev raw,node-name=r,file=f -device ide-hd,drive=r",
    "-blockdev driver=blkdebug,node-name=b,image.driver=file,image.filename=DISK -device ide-hd,drive=b",
    "-machine none -drive if=none,id=a,file=DISK,format=raw", "-global ide-hd.serial=abc -hda DISK")

REFUSED = (
    HD + "bus=ide.0,unit=2", HD + "bus=ide.9", HD + "bus=foo", Q35 + HD + "unit=1", HD + "cyls=16", HD + "cyls=70000,heads=4,secs=8",
    HD + "heads=20,cyls=16,secs=8", HD + "heads=4,cyls=16,secs=300", HD + "logical_block_size=4096", HD + "physical_block_size=1000", HD + "rerror=foo",
    HD + "bios-chs-trans=foo", HD + "nosuch=1", HD + "bootindex=x", HD + "rotation_rate=70000", HD + "min_io_size=1000", HD + "discard_granularity=5",
    "-device ide-hd,drive=nosuch", "-device ide-hd", "-drive if=none,id=e -device ide-hd,drive=e", "-device ahci,id=a -device ahci,id=a",
    "-device ahci,addr=40", "-device ahci,addr=1f.8", "-device ahci,bus=pcie.0", Q35 + "-device ahci,bus=pci.0", "-device ahci,nosuch=1",
    "-device ahci,multifunction=x", DISK + DISK, DISK + "-device ide-hd,drive=d0 -device ide-hd,drive=d0",
    "-drive if=none,id=c0,media=cdrom,format=raw,file=DISC -device ide-hd,drive=c0", "-drive file=DISK,format=raw,if=ide,index=4",
    "-drive file=DISK,format=raw,if=ide,unit=2", "-drive file=DISK,format=raw,if=ide,bus=0,unit=0,index=0", "-drive file=DISK,format=raw,cache=foo",
    "-drive file=DISK,format=raw,aio=native", "-drive file=DISK,format=raw,node-name=#nn", "-drive file=/nosuch,format=raw", "-drive file=/,format=raw",
    "-drive file=DISK,format=raw,throttling.bps-total=1000,throttling.bps-read=10", "-drive file=DISK,format=nosuch", "-hda DISK -hda MORE",
    "-uuid foo", "-blockdev driver=file,filename=DISK,node-name=n,read-only=on -device ide-hd,drive=n", "-blockdev driver=file,filename=DISK",
    "-blockdev driver=raw,file=nosuch,node-name=n")


def drives(m):
    """What query-block says of each drive, without names that were made up."""
    found = []
    for drive in m.qmp.must("query-block"):
        inserted = drive.pop("inserted", None)
        if inserted:
            drive["inserted"] = [inserted[key] for key in ("drv", "ro", "cache", "detect_zeroes", "bps", "bps_rd", "iops")] + [inserted["image"]["virtual-size"]]
        found.append(drive)
    return sorted(found, key=str)


def words(place, line, files):
    for name, path in files.items():
        line = line.replace(name, path)
    return ["-nodefaults"] + line.split()


def test_starts(tap, place, files):
    for line in STARTS:
        results = []
        for program in (engine(), None):
            try:
                with Machine(place, *words(place, line, files), program=program, stderr=subprocess.DEVNULL) as m:
                    results.append(drives(m))
            except (EOFError, OSError) as error:
                results.append(repr(error))
        tap.ok(results[0] == results[1] and isinstance(results[1], list), "starts: %s" % (line or "nothing"), *results)


def refusal(place, program, args):
    done = subprocess.run([program, "-display", "none", *args, "-accel", "qtest"], cwd=place.folder, timeout=20, stdin=subprocess.DEVNULL, check=False,
                          env={**os.environ, "SPINDLE_QEMU": place.path("no-qemu")}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    last = [text for text in done.stderr.splitlines() if not re.search("info: Image format|^Use |^Identifiers", text)][-1]
    return done.returncode, re.sub("^.*?qemu-system-x86_64[^ ]*: ", "", last)


def test_refused(tap, place, files):
    for line in REFUSED:
        args = words(place, line, files)
        tap.equal(refusal(place, place.spindle, args), refusal(place, engine(), args), "refused: %s" % line)


def test_passthrough(tap, place, files):
    """A property of Spindle's own; an image is no drive that it could be for."""
    for policy in ("off", "safe", "burn"):
        with Machine(place, "-nodefaults", "-drive", "if=none,id=c,media=cdrom,format=raw,file=%s" % files["DISC"], "-device",
                     "ide-cd,drive=c,bus=ide.0,unit=0,passthrough=%s" % policy, stderr=subprocess.DEVNULL) as m:
            _, status, error = Ide(m).packet_pio([0x55, 0x10])
            tap.equal((status & 1, error & 0xf0), (0, 0), "passthrough=%s: the drive works" % policy)
    args = words(place, "-device ide-cd,passthrough=maybe", files)
    tap.equal(refusal(place, place.spindle, args), (1, "-device ide-cd,passthrough=maybe: Parameter 'passthrough' does not accept value 'maybe'"),
              "passthrough=maybe is refused")


with Tap() as tap, Place() as place:
    files = {"DISK": place.image("disk.img", 64 * MIB), "MORE": place.image("more.img", 8 * MIB), "DISC": place.image("disc.iso", MIB),
             "RULES": place.path("rules")}
    with open(files["RULES"], "w", encoding="ascii") as f:
        f.write('[inject-error]\nevent = "read_aio"\n')
    for test in (test_starts, test_refused, test_passthrough):
        test(tap, place, files)
