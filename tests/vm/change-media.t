#!/usr/bin/env python3
"""Media of a running guest changed through the drive process's monitor, as libvirt does it; the guest's lock and its own eject."""

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import patterned
from guest import ROOT, Guest, engine
from qmp import Qmp
from tap import Tap

# Linux refuses what was opened before or while it noticed the change, once: what it may never do is read the old disc.
SHA256 = "sha256sum </dev/sr0 2>&1 | cut -c1-64"
REFUSED = "sha256sum: can't read '-': Input/output error"
# GET EVENT STATUS NOTIFICATION, polled, media class: the event code is the low half of byte 4. By /dev/sg0, as opening /dev/sr0
# takes the event away.
EVENT = "sg_raw -r 8 /dev/sg0 4a 01 00 00 10 00 00 00 08 00 2>&1"
EJECT_REQUEST = "1"


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def media_event(guest):
    text = guest.get(EVENT)
    found = re.search(r"^\s*00\s+(?:[0-9a-f]{2}\s+){4}[0-9a-f]([0-9a-f])", text, re.M)
    return found.group(1) if found else text


def read_new(guest):
    """The sha256 of a disc that was just put in."""
    first = guest.get(SHA256)
    return guest.get(SHA256) if first == REFUSED else first


def change_as_libvirt(qmp, path, number, old):
    """The steps of `virsh change-media --update`; the name of the new node."""
    qmp.command("blockdev-open-tray", id="cd0", force=False)
    qmp.command("blockdev-remove-medium", id="cd0")
    for layer in ("format", "storage"):
        qmp.command("blockdev-del", node_name="libvirt-%d-%s" % (old, layer))
    qmp.command("blockdev-add", driver="file", filename=path, node_name="libvirt-%d-storage" % number, auto_read_only=True,
                discard="unmap")
    qmp.command("blockdev-add", node_name="libvirt-%d-format" % number, read_only=True, driver="raw",
                file="libvirt-%d-storage" % number)
    qmp.command("blockdev-insert-medium", id="cd0", node_name="libvirt-%d-format" % number)
    qmp.command("blockdev-close-tray", id="cd0")


def check_changes(tap, guest, qmp, discs):
    for number in range(2, 8):
        disc = discs[number % len(discs)]
        change_as_libvirt(qmp, disc, number, number - 1)
        tap.equal(read_new(guest), sha256(disc), "change %d, step by step: the guest reads the new disc" % (number - 1))
        tap.equal(guest.get("blockdev --getsize64 /dev/sr0"), str(os.path.getsize(disc)), "and sees its size")
    qmp.command("blockdev-change-medium", id="cd0", filename=discs[1])
    qmp.command("blockdev-del", node_name="libvirt-7-format")
    qmp.command("blockdev-del", node_name="libvirt-7-storage")
    tap.equal(read_new(guest), sha256(discs[1]), "blockdev-change-medium: the guest reads the new disc")
    qmp.command("eject", id="cd0")
    status, text = guest.run("dd if=/dev/sr0 of=/dev/null count=1")
    tap.ok(status != 0 and "No medium found" in text, "eject: the guest finds no medium", text)


def check_lock(tap, guest, qmp, discs):
    qmp.command("blockdev-change-medium", id="cd0", filename=discs[0])
    read_new(guest)
    guest.get("eject -i on /dev/sr0")
    tap.equal(qmp.command("query-block")[0]["locked"], True, "the guest locks the tray: query-block tells")
    while media_event(guest) != "0":  # what has happened so far
        pass
    qmp.take_events()
    tap.equal(qmp.failure("eject", id="cd0"),
              ("GenericError", "Device 'cd0' is locked and force was not specified, wait for tray to open and try again"),
              "eject of a locked drive is refused")
    tap.equal(media_event(guest), EJECT_REQUEST, "and the guest gets an eject request")
    tap.equal(media_event(guest), "0", "just once")
    tap.equal(qmp.command("blockdev-open-tray", id="cd0", force=False), {}, "open-tray of a locked drive asks the guest, too")
    tap.equal(media_event(guest), EJECT_REQUEST, "with an eject request")
    tap.equal(qmp.take_events(), [], "the tray has not moved")
    tap.equal(guest.get(SHA256), sha256(discs[0]), "the guest still reads its disc")
    guest.get("eject -i off /dev/sr0; eject /dev/sr0")
    tap.equal(qmp.wait_event("DEVICE_TRAY_MOVED"), {"device": "", "id": "cd0", "tray-open": True},
              "the guest follows the request: DEVICE_TRAY_MOVED")
    guest.get("eject -t /dev/sr0; eject -i on /dev/sr0")
    qmp.take_events()
    tap.equal(qmp.command("query-block")[0]["locked"], True, "locked again")
    tap.equal(qmp.command("eject", id="cd0", force=True), {}, "eject by force")
    tap.equal(qmp.wait_event("DEVICE_TRAY_MOVED")["tray-open"], True, "moves the tray")
    drive = qmp.command("query-block")[0]
    tap.equal(("inserted" in drive, drive["locked"]), (False, False), "takes the disc out, and the lock off")
    guest.get("eject -i off /dev/sr0")


def check_guest_moves(tap, guest, qmp, discs):
    qmp.command("blockdev-change-medium", id="cd0", filename=discs[1])
    tap.equal(read_new(guest), sha256(discs[1]), "before the guest ejects")
    qmp.take_events()
    guest.get("eject /dev/sr0")
    tap.equal(qmp.wait_event("DEVICE_TRAY_MOVED"), {"device": "", "id": "cd0", "tray-open": True}, "the guest opens the tray: an event")
    drive = qmp.command("query-block")[0]
    tap.equal((drive["tray_open"], drive["inserted"]["file"]), (True, discs[1]), "the disc lies in it")
    guest.get("eject -t /dev/sr0")
    tap.equal(qmp.wait_event("DEVICE_TRAY_MOVED")["tray-open"], False, "the guest closes it: an event")
    tap.equal(read_new(guest), sha256(discs[1]), "and reads the disc")


def check_under_load(tap, guest, qmp, discs, rounds):
    """Changes while the guest reads: whole discs in the end, and nothing is left behind."""
    pid = DAEMON.pid
    guest.get("while :; do dd if=/dev/sr0 of=/dev/null bs=64k 2>/dev/null; done >/dev/null 2>&1 & echo $! >/tmp/reader")
    files = len(os.listdir("/proc/%d/fd" % pid))
    for number in range(rounds):
        qmp.command("blockdev-change-medium", id="cd0", filename=discs[number % len(discs)], force=True)
        time.sleep(0.02)
    guest.get("kill $(cat /tmp/reader); wait; sleep 0.3")
    disc = discs[(rounds - 1) % len(discs)]
    tap.equal(read_new(guest), sha256(disc), "%d changes under load: the guest reads the last disc" % rounds)
    end = time.monotonic() + 5
    while len(os.listdir("/proc/%d/fd" % pid)) > files and time.monotonic() < end:
        time.sleep(0.1)
    tap.ok(len(os.listdir("/proc/%d/fd" % pid)) <= files, "and no descriptor is left open")
    tap.equal(len(qmp.command("query-named-block-nodes")), 2, "nor a node")


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-change-") as folder:
    discs = [os.path.join(folder, name) for name in ("one.iso", "two.iso", "three.iso")]
    for number, disc in enumerate(discs):
        patterned(disc, (6 + 2 * number) << 20, 50 + number)
    paths = {name: os.path.join(folder, name) for name in ("drive.sock", "qmp.sock")}
    DAEMON = subprocess.Popen(
        [os.path.join(ROOT, "build", "spindled"), "--chardev", "socket,id=m,server=on,wait=off,path=" + paths["qmp.sock"],
         "--monitor", "m", "--blockdev", "driver=file,node-name=libvirt-1-storage,read-only=on,filename=" + discs[0],
         "--blockdev", "driver=raw,node-name=libvirt-1-format,read-only=on,file=libvirt-1-storage",
         "--vfio-user", paths["drive.sock"], "--device", "ide-cd,drive=libvirt-1-format,id=cd0"])
    try:
        end = time.monotonic() + 10
        while not os.path.exists(paths["drive.sock"]) and time.monotonic() < end:
            time.sleep(0.05)
        device = {"driver": "vfio-user-pci", "socket": {"type": "unix", "path": paths["drive.sock"]}}
        args = ["-object", "memory-backend-memfd,id=ram0,size=512M,share=on", "-machine", "q35,memory-backend=ram0",
                "-device", json.dumps(device)]
        with Guest(args=args, program=engine()) as guest, Qmp(paths["qmp.sock"]) as qmp:
            guest.start()
            tap.equal(guest.get(SHA256), sha256(discs[0]), "the first disc")
            check_changes(tap, guest, qmp, discs)
            check_lock(tap, guest, qmp, discs)
            check_guest_moves(tap, guest, qmp, discs)
            check_under_load(tap, guest, qmp, discs, 50)
            guest.quit()
            qmp.command("quit")
        tap.equal(DAEMON.wait(10), 0, "quit ends the drive process")
        tap.equal([n for n, p in paths.items() if os.path.exists(p)], [], "which leaves no socket")
    finally:
        DAEMON.kill()
        DAEMON.wait()
