#!/usr/bin/env python3
"""However a machine ends, no process, socket or temporary file of it remains."""

import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import patterned
from guest import Guest
from tap import Tap


def by_quit(guest):
    return guest.quit() == 0


def by_power_off(guest):
    guest.control.send(b"quit\n")
    return guest.process.wait(20) == 0


def by_term(guest):
    guest.process.send_signal(signal.SIGTERM)
    return guest.process.wait(20) is not None


def by_kill(guest):
    guest.process.kill()
    return guest.process.wait(20) is not None


def by_interrupt(guest):
    """Ctrl-C at a terminal reaches every process of the group."""
    os.killpg(guest.process.pid, signal.SIGINT)
    return guest.process.wait(20) is not None


# Name, how, whether the guest reads meanwhile.
ENDS = [
    ("QMP quit", by_quit, True),
    ("the guest's power-off", by_power_off, False),
    ("SIGTERM to QEMU", by_term, True),
    ("SIGKILL to QEMU", by_kill, True),
    ("SIGINT to the process group", by_interrupt, False),
]

READING = "while :; do dd if=/dev/sr0 of=/dev/null bs=128k iflag=direct 2>/dev/null; done >/dev/null 2>&1 &"


def check_end(tap, path, name, end, reading):
    with Guest(cds=[path, None]) as guest:
        guest.start()
        if reading:
            guest.get(READING)
        tap.ok(end(guest), name + ": the emulator ends", guest.emulator_log())
        left = guest.leftovers()
        tap.ok(not left, name + ": nothing remains", *left)


def check_drive_ends(tap, path):
    """The drive process gets SIGTERM: a machine without its drive would abort at its next reset, so both end."""
    with Guest(cds=[path]) as guest:
        guest.start()
        guest.get(READING)
        drives = guest.drive_processes()
        tap.ok(len(drives) == 1, "there is one drive process", guest.processes())
        for pid in drives:
            os.kill(pid, signal.SIGTERM)
        try:
            status = guest.process.wait(20)
        except subprocess.TimeoutExpired:
            status = None
        tap.ok(status is not None and status >= 0, "SIGTERM to the drive process: the emulator ends, too, by itself",
               "exit status %s" % status, guest.emulator_log())
        left = guest.leftovers()
        tap.ok(not left, "SIGTERM to the drive process: nothing remains", *left)


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-ending-") as folder:
    path = os.path.join(folder, "disc.iso")
    patterned(path, 16 << 20, 5)
    for row in ENDS:
        check_end(tap, path, *row)
    check_drive_ends(tap, path)
