#!/usr/bin/env python3
"""./boot, as a newcomer types it: from nothing to a shell on the terminal, and out again."""

import os
import pty
import re
import select
import subprocess
import sys
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm", "lib"))
from guest import accelerator
from tap import Tap


class Terminal:
    """A command on a terminal of its own."""

    def __init__(self, *command):
        self.seen = b""
        self.screen, terminal = pty.openpty()
        self.process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
        os.close(terminal)

    def wait_for(self, pattern, timeout):
        """Whether the pattern comes in time; what came before is forgotten."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return True
            if select.select([self.screen], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.screen, 65536)
                except OSError:
                    return bool(re.search(pattern, self.seen))
        return False

    def type(self, text):
        os.write(self.screen, text)

    def end(self, timeout):
        """The exit status, or None; the screen is read meanwhile, so that no output blocks."""
        end = time.monotonic() + timeout
        while self.process.poll() is None and time.monotonic() < end:
            self.wait_for(rb"(?!)", 0.2)
        status = self.process.poll()
        if status is None:
            self.process.terminate()
            self.process.wait(10)
        return status


PROMPT = rb"root@spindle:[^#\n]*# "

with Tap() as tap:
    terminal = Terminal(os.path.join(ROOT, "boot"))
    tap.ok(terminal.wait_for(b"KVM" if accelerator() == "kvm" else b"TCG", 300), "it says how the processor runs", terminal.seen)
    tap.ok(terminal.wait_for(rb"Live CD found in /dev/sr0", 120), "the live CD is found", terminal.seen[-2000:])
    tap.ok(terminal.wait_for(PROMPT, 60), "a shell prompt is on the terminal", terminal.seen[-2000:])
    terminal.type(b"sg_inq /dev/sr0 | grep Vendor\n")
    tap.ok(terminal.wait_for(rb"Vendor identification: SPINDLE", 30), "the drive is Spindle's", terminal.seen[-2000:])
    terminal.type(b"poweroff\n")
    tap.equal(terminal.end(60), 0, "power-off ends it")

    terminal = Terminal(os.path.join(ROOT, "boot"))
    terminal.wait_for(b"GRUB", 300)
    terminal.type(b"\x01x")
    tap.equal(terminal.end(30), 0, "Ctrl-A X ends it")
