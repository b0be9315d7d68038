#!/usr/bin/env python3
"""Images that fail under a running guest, with a policy to stop: the machine stops, somebody repairs the image, and the guest
that goes on has noticed nothing. All by QMP on `spindle`, as libvirt would do it."""

import base64
import hashlib
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import patterned
from guest import Guest, GuestError
from tap import Tap

MIB = 1 << 20
DISC = 24 * MIB
CUT = 11 * MIB + 512
WRITTEN = 24 * MIB
QUIET = "dmesg | grep -E 'ata[0-9].*(exception|failed|timeout|reset)|I/O error|critical'; true"


def sha256(path, size=-1):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read(size)).hexdigest()


def sparse(path, size):
    with open(path, "wb") as f:
        f.truncate(size)
    return path


def disk_named(guest, serial):
    """Its device in the guest, whose kernel looks at disks in no certain order."""
    return guest.get("d=$(grep -l %s /sys/block/sd*/device/vpd_pg80) && d=${d#/sys/block/} && echo /dev/${d%%%%/*}" % serial)


class Script:
    """Runs in the guest while the test does something else."""

    def __init__(self, guest, text):
        self.guest = guest
        guest.control.send(base64.b64encode(text.encode()) + b"\n")

    def result(self, timeout=120):
        status, size = self.guest.control.take_line(timeout, "end of the script").split()
        return int(status), self.guest.control.take(int(size), timeout, "output").decode().strip()


def wait_status(guest, wanted, timeout=60):
    """(running, status of the drives that are not well) once query-status says so."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        got = guest.qmp("query-status")
        if got["status"] == wanted:
            return got["running"], {d["qdev"]: d["io-status"] for d in guest.qmp("query-block") if d.get("io-status", "ok") != "ok"}
        time.sleep(0.1)
    raise GuestError("the machine is not in state %s but %s" % (wanted, got))


def check_disc(tap, guest, disc):
    """The ISO is cut short on the host, and then whole again."""
    with open(disc, "rb") as f:
        f.seek(CUT)
        tail = f.read()
    whole = sha256(disc)
    os.truncate(disc, CUT)
    script = Script(guest, "sha256sum </dev/sr0 | cut -c1-64")
    tap.equal(wait_status(guest, "io-error"), (False, {"cd0": "failed"}), "rerror=stop: the machine stops where the disc ends")
    guest.qmp("cont")
    tap.equal(wait_status(guest, "io-error"), (False, {"cd0": "failed"}), "cont without a repair: it stops again")
    with open(disc, "r+b") as f:
        f.seek(CUT)
        f.write(tail)
    guest.qmp("cont")
    tap.equal(script.result(), (0, whole), "repaired: the guest reads all of the disc")
    tap.equal(wait_status(guest, "running"), (True, {}), "and all is well")


def check_full(tap, guest, folder, image):
    """The file system that the image lies on is full, and then larger."""
    script = Script(guest, "dd if=/dev/urandom of=/noise bs=1M count=%d 2>/dev/null; dd if=/noise of=%s bs=1M conv=fsync 2>&1 && "
                    "sha256sum </noise | cut -c1-64" % (WRITTEN // MIB, disk_named(guest, "FULL")))
    tap.equal(wait_status(guest, "io-error"), (False, {"full": "nospace"}), "werror=enospc, the default: a full file system stops the machine")
    subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
    guest.qmp("cont")
    status, text = script.result()
    tap.equal((status, text.split("\n")[-1]), (0, sha256(image, WRITTEN)), "enlarged: what the guest wrote is in the image")
    tap.equal(wait_status(guest, "running"), (True, {}), "and all is well again")


def check_disk(tap, guest, image):
    """A write of the disk fails three times."""
    script = Script(guest, "dd if=/dev/urandom of=/noise bs=1M count=4 2>/dev/null; dd if=/noise of=%s bs=1M oflag=direct 2>&1 && "
                    "sha256sum </noise | cut -c1-64" % disk_named(guest, "BAD"))
    for turn in ("first", "second", "third"):
        tap.equal(wait_status(guest, "io-error"), (False, {"bad": "failed"}), "werror=stop: the %s time" % turn)
        guest.qmp("cont")
    status, text = script.result()
    tap.equal((status, text.split("\n")[-1]), (0, sha256(image, 4 * MIB)), "then what the guest wrote is in the image")


def run(tap, folder):
    disc, full, bad = (os.path.join(folder, name) for name in ("disc.iso", "full/disk.img", "bad.img"))
    patterned(disc, DISC, 77)
    sparse(bad, 64 * MIB)
    root = os.geteuid() == 0
    args = ["-blockdev", "driver=file,node-name=cd,read-only=on,filename=" + disc, "-device", "ide-cd,drive=cd,id=cd0,bus=ide.1,rerror=stop"]
    if root:
        os.mkdir(os.path.dirname(full))
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", os.path.dirname(full)], check=True)
        args += ["-drive", "if=none,id=d0,format=raw,file=" + sparse(full, 64 * MIB), "-device", "ide-hd,drive=d0,id=full,bus=ide.2,serial=FULL"]
    faults = ",".join("inject-error.%d.event=none,inject-error.%d.iotype=write,inject-error.%d.once=on,inject-error.%d.sector=4096" % (4 * (n,))
                      for n in range(3))
    args += ["-blockdev", "driver=blkdebug,node-name=d1,image.driver=file,image.filename=%s,%s" % (bad, faults),
             "-device", "ide-hd,drive=d1,id=bad,bus=ide.3,werror=stop,serial=BAD"]
    try:
        with Guest(args=args) as guest:
            guest.start(120)
            tap.equal(len(guest.drive_processes()), 1, "the drives are Spindle's")
            check_disc(tap, guest, disc)
            if root:
                check_full(tap, guest, os.path.dirname(full), full)
            else:
                tap.skip("a full file system", "mounting one needs root")
            check_disk(tap, guest, bad)
            text = guest.get(QUIET)
            tap.ok(not text, "the guest's kernel has noticed nothing", text)
            guest.quit()
            left = guest.leftovers()
            tap.ok(not left, "nothing is left", *left)
    finally:
        if root:
            subprocess.run(["umount", os.path.dirname(full)], check=True)


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-errors-") as place:
    run(tap, place)
