#!/usr/bin/env python3
"""A server that hangs for ever: the guest and the monitor go on, and reset and quit take no time. By itself (testrules.yml),
since it measures that."""

import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "..", "remote", "lib")]
from faultserver import FaultServer
from guest import Guest
from tap import Tap

SIZE = 16 << 20


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
    hangs(tap, os.urandom(SIZE))
