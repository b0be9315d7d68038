#!/usr/bin/env python3
"""The drive process by itself: started as a daemon, used by plain QEMU over its socket, one machine after the other."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import patterned
from guest import ROOT, Guest, engine
from tap import Tap

SPINDLED = os.path.join(ROOT, "build", "spindled")


class Daemon:
    def __init__(self, folder, disc):
        self.socket = os.path.join(folder, "drive.sock")
        self.pidfile = os.path.join(folder, "drive.pid")
        self.command = [SPINDLED, "--blockdev", "driver=file,node-name=disc,read-only=on,filename=" + disc,
                        "--vfio-user", "path=" + self.socket, "--device", "ide-cd,drive=disc,id=cd0",
                        "--daemonize", "--pidfile", self.pidfile]

    def start(self):
        return subprocess.run(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=20)

    def pid(self):
        with open(self.pidfile) as f:
            return int(f.read())

    def gone(self, pid, timeout=5):
        end = time.monotonic() + timeout
        while os.path.exists("/proc/%d" % pid):
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def stop(self):
        """At the end of the test, whatever happened before."""
        try:
            os.kill(self.pid(), signal.SIGKILL)
        except (OSError, ValueError):
            pass


def attached(daemon):
    """Options of plain QEMU for the drive at the daemon's socket."""
    device = {"driver": "vfio-user-pci", "id": "drive0", "socket": {"type": "unix", "path": daemon.socket}}
    return ["-object", "memory-backend-memfd,id=ram0,size=512M,share=on", "-machine", "q35,memory-backend=ram0",
            "-device", json.dumps(device)]


def check_machine(tap, daemon, digest, name):
    with Guest(args=attached(daemon), program=engine()) as guest:
        guest.start()
        tap.equal(guest.get("sha256sum </dev/sr0 | cut -c1-64"), digest, name + ": sha256 of /dev/sr0")
        guest.quit()
    tap.ok(os.path.exists("/proc/%d" % daemon.pid()), name + ": the daemon outlives it")


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-daemon-") as folder:
    disc = os.path.join(folder, "disc.iso")
    patterned(disc, 20 << 20, 9)
    with open(disc, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    daemon = Daemon(folder, disc)
    try:
        done = daemon.start()
        tap.ok(done.returncode == 0 and not done.stdout, "spindled --daemonize returns in silence", done.returncode, done.stdout)
        tap.ok(os.path.exists(daemon.socket), "the socket is there when it returns")
        check_machine(tap, daemon, digest, "first machine")
        check_machine(tap, daemon, digest, "second machine")

        pid = daemon.pid()
        done = daemon.start()
        tap.ok(done.returncode == 1 and done.stdout, "a second daemon on the same socket is refused", done.stdout)
        tap.ok(os.path.exists("/proc/%d" % pid) and os.path.exists(daemon.socket), "and the first is not disturbed")

        os.kill(pid, signal.SIGTERM)
        tap.ok(daemon.gone(pid), "SIGTERM ends it")
        left = [f for f in os.listdir(folder) if f != "disc.iso"]
        tap.ok(not left, "no socket and no pid file remain", *left)

        daemon.start()
        pid = daemon.pid()
        os.kill(pid, signal.SIGKILL)
        daemon.gone(pid)
        done = daemon.start()
        tap.ok(done.returncode == 0, "what a killed daemon left does not stop the next", done.stdout)
        pid = daemon.pid()
        os.kill(pid, signal.SIGTERM)
        tap.ok(daemon.gone(pid), "and it ends like the first")
    finally:
        daemon.stop()
