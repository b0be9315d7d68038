#!/usr/bin/env python3
"""A machine with Spindle's drives saved and restored through QEMU's monitor as libvirt does it, and by QEMU's own options: the disc, the
tray, the guest's lock, and reading that goes on."""

import array
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import patterned
from guest import Guest
from qmp import Qmp
from tap import Tap

HEADER = b"the user's own header\n"
SHA256 = "sha256sum </dev/sr0 | cut -c1-64"


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def machine(folder, name, disc, *args):
    """A guest with a monitor of its own for the test."""
    options = ["-blockdev", "driver=file,node-name=f,read-only=on,filename=" + disc, "-blockdev", "driver=raw,node-name=n,read-only=on,file=f",
               "-device", "ide-cd,drive=n,id=cd0,bus=ide.1"]
    return Guest(cds=[options], memory=256, args=["-qmp", "unix:%s,server=on,wait=off" % os.path.join(folder, name), *args])


def wait_migration(qmp):
    while True:
        status = qmp.wait_event("MIGRATION")["status"]
        if status in ("completed", "failed"):
            return status


def save(tap, qmp, target):
    """virsh save: to a descriptor that comes along, behind a header of the user's own."""
    qmp.command("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
    failed = qmp.failure("migrate", uri="file:" + target)
    tap.ok("only while it stands still" in failed[1] and not os.path.exists(target), "a machine that runs is not saved", failed)
    qmp.command("stop")
    tap.equal(qmp.failure("migrate", uri="tcp:localhost:1")[0], "GenericError", "nor by a way that the drives' state cannot go")
    reader, fd = os.pipe()
    with open(target, "wb") as f:
        f.write(HEADER)
        f.flush()
        writer = subprocess.Popen(["cat"], stdin=reader, stdout=f)
    os.close(reader)
    message = json.dumps({"execute": "getfd", "arguments": {"fdname": "migrate"}}).encode()
    qmp.socket.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    os.close(fd)
    tap.equal(qmp.answer(), {"return": {}}, "getfd")
    tap.equal(qmp.command("migrate", uri="fd:migrate"), {}, "migrate")
    tap.equal(wait_migration(qmp), "completed", "saved")
    tap.equal(writer.wait(20), 0, "nobody keeps the way open")


def restored(folder, name, disc, path, *args):
    """QEMU with a descriptor of the file, which stands behind the user's header. (QEMU by itself takes a pipe only.)"""
    fd = os.open(path, os.O_RDONLY)
    os.lseek(fd, len(HEADER), os.SEEK_SET)
    os.set_inheritable(fd, True)
    return fd, machine(folder, name, disc, *args)


def start_again(guest, fd):
    """As Guest.start(), for a machine that has booted before."""
    guest.log = open(os.path.join(guest.folder, "emulator.log"), "wb")
    guest.process = subprocess.Popen(guest.command, env=guest.environment(), stdin=subprocess.DEVNULL, stdout=guest.log, stderr=guest.log,
                                     start_new_session=True, pass_fds=[fd] if fd >= 0 else [])
    threading.Thread(target=guest._reap, daemon=True).start()
    guest._greeting()


def drive(qmp):
    return {d["qdev"]: d for d in qmp.command("query-block")}["cd0"]


def check_libvirt(tap, folder, discs):
    path = os.path.join(folder, "save")
    with machine(folder, "q1", discs[0]) as guest:
        guest.start()
        tap.equal(guest.get(SHA256), sha256(discs[0]), "before: the disc")
        guest.get("eject -i on /dev/sr0")
        with Qmp(os.path.join(folder, "q1")) as qmp:
            tap.equal(drive(qmp)["locked"], True, "the guest has locked the tray")
            save(tap, qmp, path)
            tap.equal(qmp.command("query-status")["status"], "postmigrate", "the machine stands still")
        guest.quit()
    fd, guest = restored(folder, "q2", discs[0], path, "-S", "-incoming", "defer")
    with guest:
        start_again(guest, fd)
        with Qmp(os.path.join(folder, "q2")) as qmp:
            qmp.command("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
            tap.equal(qmp.command("migrate-incoming", uri="fd:%d" % fd), {}, "migrate-incoming")
            os.close(fd)
            tap.equal(wait_migration(qmp), "completed", "loaded")
            tap.equal(qmp.command("cont"), {}, "cont")
            tap.equal(drive(qmp)["locked"], True, "the lock is there")
            tap.equal(guest.get(SHA256), sha256(discs[0]), "after: the guest goes on and reads its disc")
            tap.equal(qmp.failure("eject", id="cd0")[1], "Device 'cd0' is locked and force was not specified, wait for tray to open and try again",
                      "and has it locked")
            guest.get("eject -i off /dev/sr0")
            qmp.command("blockdev-change-medium", id="cd0", filename=discs[1], force=True)
            guest.run(SHA256)
            tap.equal(guest.get(SHA256), sha256(discs[1]), "a change of the medium reaches it")
        guest.quit()
        left = guest.leftovers()
        tap.ok(not left, "nothing remains", *left)


def check_options(tap, folder, discs):
    """migrate to a file, -incoming from it, without -S; the tray is open and the guest reads it on."""
    path = os.path.join(folder, "file")
    with machine(folder, "q3", discs[0]) as guest:
        guest.start()
        guest.get("eject /dev/sr0")
        with Qmp(os.path.join(folder, "q3")) as qmp:
            qmp.command("migrate-set-capabilities", capabilities=[{"capability": "events", "state": True}])
            qmp.command("stop")
            tap.equal(qmp.command("migrate", uri="file:" + path), {}, "migrate to a file")
            tap.equal(wait_migration(qmp), "completed", "saved")
        guest.quit()
    with machine(folder, "q4", discs[0], "-incoming", "file:" + path) as guest:
        start_again(guest, -1)
        with Qmp(os.path.join(folder, "q4")) as qmp:
            tap.equal(guest.get("echo there"), "there", "-incoming: the guest goes on by itself")
            tap.equal((drive(qmp)["tray_open"], "inserted" in drive(qmp)), (True, True), "the tray is open, the disc in it")
            guest.get("eject -t /dev/sr0")
            tap.equal(guest.get(SHA256), sha256(discs[0]), "closed by the guest: it reads the disc")
        guest.quit()
    with open(path, "rb") as f:
        f.read(100)
        rest = f.read()
    with open(path, "wb") as f:
        f.write(rest)
    with machine(folder, "q5", discs[0], "-incoming", "file:" + path) as guest:
        start_again(guest, -1)
        with Qmp(os.path.join(folder, "q5")) as qmp:
            tap.equal(qmp.failure("cont"), ("GenericError", "The machine was not saved with Spindle's drives in it: their state is missing"), "a file without the drives' state is refused")
        guest.quit()


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-save-") as folder:
    discs = [os.path.join(folder, name) for name in ("one.iso", "two.iso")]
    for number, disc in enumerate(discs):
        patterned(disc, (6 + 2 * number) << 20, 70 + number)
    check_libvirt(tap, folder, discs)
    check_options(tap, folder, discs)
