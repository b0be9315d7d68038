#!/usr/bin/env python3
"""A machine boots from `-cdrom http://…`, and a server that is restarted meanwhile takes no more from it than time."""

import hashlib
import os
import re
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "..", "remote", "lib")]
from faultserver import FaultServer
from guest import KERNEL_ERRORS, PROMPT, Guest, maker
from tap import Tap

AWAY = 4


def restart_after(server, requests):
    """Stops the server once so many requests have come, for some seconds."""
    def wait():
        while len(server.requests) < requests:
            time.sleep(0.05)
        server.stop()
        time.sleep(AWAY)
        server.start()
    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def boots(tap, content, digest, firmware):
    server = FaultServer(content, lambda n, r: {"pace": 8000000})
    restart = restart_after(server, 15)
    with Guest(boot="cd", firmware=firmware, args=["-cdrom", server.url()]) as guest:
        guest.start()
        text = guest.wait_serial(PROMPT, 180)
        restart.join(1)
        tap.ok("Live CD found in /dev/sr0" in text and not restart.is_alive(),
               firmware + ": boots from the URL, with the server away for %d s" % AWAY, text)
        restart = restart_after(server, len(server.requests) + 3)
        tap.equal(guest.ask("sha256sum </dev/sr0 | cut -c1-64", 240), digest, firmware + ": sha256 of /dev/sr0, the same")
        restart.join(1)
        tap.ok(not restart.is_alive(), firmware + ": it was away again meanwhile")
        errors = guest.ask(KERNEL_ERRORS)
        tap.ok(not errors, firmware + ": no error in the kernel's log", errors)
        fetched = server.sent / len(content)
        tap.ok(fetched < 2.2, firmware + ": all of it fetched twice at most", "%.2f times" % fetched)
        resident = [int(re.search(r"VmHWM:\s+(\d+)", open("/proc/%d/status" % p).read()).group(1)) // 1024
                    for p in guest.drive_processes()]
        tap.ok(resident and max(resident) < 110, firmware + ": the drive process stayed below 110 MiB", resident)
    server.stop()


with Tap() as tap:
    with open(maker("mklive"), "rb") as f:
        content = f.read()
    digest = hashlib.sha256(content).hexdigest()
    for firmware in ("seabios", "ovmf"):
        boots(tap, content, digest, firmware)
