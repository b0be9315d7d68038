#!/usr/bin/env python3
"""Several drives, an empty one, a guest that restarts, and what the drive process takes of memory."""

import hashlib
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import patterned
from guest import Guest, is_spindle
from tap import Tap

# What a drive process may hold for itself, in KiB: idle with one drive, and while it reads.
IDLE_KIB = 12 * 1024
BUSY_KIB = 32 * 1024


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def own_memory(pid):
    """Resident KiB without the pages of the guest's memory, which the process shares with QEMU."""
    with open("/proc/%d/status" % pid) as f:
        status = dict(re.findall(r"^(\w+):\s+(\d+) kB", f.read(), re.M))
    return int(status["VmRSS"]) - int(status["RssShmem"])


def check_memory(tap, guest, name, limit):
    drives = guest.drive_processes()
    tap.ok(len(drives) >= 1, name + ": the drive process is there", guest.processes())
    for pid in drives:
        size = own_memory(pid)
        tap.ok(size < limit, "%s: %d KiB resident are under %d KiB" % (name, size, limit))


def check_one(tap, path):
    with Guest(cds=[path]) as guest:
        guest.start()
        if is_spindle(guest.program):
            check_memory(tap, guest, "idle", IDLE_KIB)
        tap.equal(guest.get("sha256sum </dev/sr0 | cut -c1-64"), sha256(path), "one drive: sha256")
        guest.control.send(b"reboot\n")
        guest.wait_ready()
        tap.equal(guest.get("sha256sum </dev/sr0 | cut -c1-64"), sha256(path), "the same after the guest restarted")
        guest.qmp("system_reset")
        guest.wait_ready()
        tap.equal(guest.get("sha256sum </dev/sr0 | cut -c1-64"), sha256(path), "the same after system_reset")
        # Reset in the middle of a read.
        guest.get("while dd if=/dev/sr0 of=/dev/null bs=1M iflag=direct 2>/dev/null; do :; done >/dev/null 2>&1 & sleep 0.2")
        guest.qmp("system_reset")
        guest.wait_ready()
        tap.equal(guest.get("sha256sum </dev/sr0 | cut -c1-64"), sha256(path), "the same after a reset during a read")


def check_two(tap, first, second):
    with Guest(cds=[first, second, None], smp=2) as guest:
        guest.start()
        if is_spindle(guest.program):
            guest.get("for d in 0 1; do dd if=/dev/sr$d of=/dev/null bs=1M iflag=direct 2>/dev/null & done >/dev/null")
            check_memory(tap, guest, "while reading", BUSY_KIB)
        script = "for d in 0 1; do { sha256sum </dev/sr$d | cut -c1-64 >/tmp/sum$d; } & done; wait; cat /tmp/sum0 /tmp/sum1"
        tap.equal(guest.get(script, 120).split(), [sha256(first), sha256(second)], "two drives read at once: sha256 of each")
        if is_spindle(guest.program):
            check_memory(tap, guest, "after reading", BUSY_KIB)
        check_empty(tap, guest, "/dev/sr2")
        errors = guest.get("dmesg | grep -E 'ata[0-9].*(exception|failed|timeout)|I/O error'; true")
        tap.ok(not errors, "no error in the kernel's log", errors)


def check_empty(tap, guest, device):
    status, text = guest.run("sg_inq %s" % device)
    tap.ok(status == 0, "an empty drive answers INQUIRY", text)
    status, text = guest.run("sg_turs -v %s 2>&1" % device)
    tap.ok(status == 2 and "Medium not present" in text, "an empty drive is not ready", text)
    status, text = guest.run("sg_get_config --current %s" % device)
    tap.ok(status == 0 and "No current profile" in text, "an empty drive has no current profile", text)
    status, text = guest.run("dd if=%s of=/dev/null bs=2048 count=1 2>&1" % device)
    tap.ok(status == 1 and "No medium found" in text, "reading an empty drive says so", text)
    tap.equal(guest.run("eject %s && eject -t %s" % (device, device))[0], 0, "the tray of an empty drive opens and closes")


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-drives-") as folder:
    paths = [os.path.join(folder, name) for name in ("a.iso", "b, with a comma.iso")]
    for number, path in enumerate(paths):
        patterned(path, (24 + number) << 20, number)
    check_one(tap, paths[0])
    check_two(tap, *paths)
