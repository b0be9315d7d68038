#!/usr/bin/env python3
"""A machine boots from `-cdrom http://…`, and neither a server that is restarted meanwhile nor one that hangs for ever
takes more from it than time."""

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


def timed(guest, name, **arguments):
    start = time.monotonic()
    guest.qmp(name, **arguments)
    return time.monotonic() - start


def hangs(tap, content):
    hanging = threading.Event()
    server = FaultServer(content, lambda n, r: {"hang": True} if hanging.is_set() else {})
    with Guest(cds=[["-blockdev", "driver=http,node-name=disc,read-only=on,deadline=3,readahead=0,url=" + server.url(),
                     "-device", "ide-cd,id=cd0,drive=disc,bus=ide.0"]]) as guest:
        guest.start()
        guest.get("dd if=/dev/sr0 of=/dev/null bs=2048 count=20 2>&1")
        hanging.set()
        guest.get("(dd if=/dev/sr0 of=/dev/null bs=2048 skip=5000 count=1 2>/tmp/dd; echo done >>/tmp/dd) & true")
        time.sleep(0.5)
        slowest = max(timed(guest, "query-status") for _ in range(20))
        tap.ok(slowest < 0.1, "a hung server: the monitor answers at once", "%.0f ms" % (slowest * 1000))
        start = time.monotonic()
        guest.get("echo alive")
        tap.ok(time.monotonic() - start < 1, "a hung server: the guest runs")
        took = timed(guest, "system_reset")
        tap.ok(took < 0.1, "a hung server: reset", "%.0f ms" % (took * 1000))
        time.sleep(0.3)
        start = time.monotonic()
        guest.quit()
        took = time.monotonic() - start
        tap.ok(took < 1.0, "a hung server: quit", "%.0f ms" % (took * 1000))
        tap.equal(guest.leftovers(), [], "a hung server: nothing is left behind")
    server.stop()


with Tap() as tap:
    with open(maker("mklive"), "rb") as f:
        content = f.read()
    digest = hashlib.sha256(content).hexdigest()
    hangs(tap, content)
    for firmware in ("seabios", "ovmf"):
        boots(tap, content, digest, firmware)
