#!/usr/bin/env python3
"""virt-install, unattended: an operating system from an ISO on an HTTP server onto a LUKS-encrypted disk, and the machine boots
from that; then the same with QEMU's own drives from a local ISO, for the time it takes."""

import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
import host as libvirt_host

libvirt_host.enter()
from guest import maker
from host import ENGINE, IMAGES, ROOT, SPINDLE, URI, Host, run
from tap import Tap

sys.path.insert(0, os.path.join(ROOT, "tests", "remote", "lib"))
from faultserver import FaultServer

SECRET = "22222222-3333-4444-5555-666666666666"
SIZE = "512M"
INSTALLED = re.compile(r"runs from /dev/sda3, where it was installed")
MINUTES = 5


def define_secret(host):
    with open("/mnt/passphrase", "w") as f:
        f.write("the passphrase of the disk")
    with open("/mnt/secret.xml", "w") as f:
        f.write("<secret ephemeral='no' private='yes'><uuid>%s</uuid></secret>" % SECRET)
    host.get("secret-define", "/mnt/secret.xml")
    host.get("secret-set-value", SECRET, "--file", "/mnt/passphrase", "--plain")


def make_disk(host, name):
    path = "%s/%s.luks" % (IMAGES, name)
    run(os.path.join(ROOT, "build", "tools", "spindle-img"), "create", "-q", "-f", "luks", "--object",
        "secret,id=s,file=/mnt/passphrase", "-o", "key-secret=s,iter-time=10", path, SIZE)
    return host.give_to_qemu(path)


def command(host, name, cdrom, emulator):
    luks = "./devices/disk[1]/source/encryption"
    return ["virt-install", "--connect", URI, "--name", name, "--memory", "512", "--virt-type", "qemu", "--osinfo",
            "detect=off,require=off", "--network", "none", "--graphics", "none", "--noautoconsole", "--wait", str(MINUTES),
            "--serial", "file,path=%s/%s.serial" % (IMAGES, name), "--cdrom", cdrom,
            "--disk", "path=%s,format=raw,bus=sata" % make_disk(host, name),
            "--xml", "./devices/emulator=" + emulator, "--xml", "./devices/serial[1]/source/@append=on",
            "--xml", luks + "/@format=luks", "--xml", luks + "/secret/@type=passphrase", "--xml", luks + "/secret/@uuid=" + SECRET]


def serial_text(name):
    try:
        with open("%s/%s.serial" % (IMAGES, name), errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def install(tap, host, name, cdrom, emulator):
    """Seconds from the command to the end of the installation, and to the installed system's prompt."""
    began = time.monotonic()
    done = subprocess.run(command(host, name, cdrom, emulator), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=60 * (MINUTES + 1))
    finished = time.monotonic() - began
    good = done.returncode == 0 and "installer: finished" in serial_text(name)
    tap.ok(good, name + ": virt-install ends well", done.stdout, serial_text(name)[-1500:], host.domain_log(name)[-1500:])
    end = time.monotonic() + 60
    while good and not INSTALLED.search(serial_text(name)) and time.monotonic() < end:
        time.sleep(0.2)
    booted = time.monotonic() - began
    tap.match(serial_text(name), INSTALLED, name + ": and the machine boots from the encrypted disk")
    return finished, booted


def check_drives(tap, host, name):
    live = host.get("dumpxml", name)
    tap.match(live, re.compile(r'<encryption format="luks"|<encryption format=\'luks\''), name + ": its disk is encrypted")
    text = host.virsh("qemu-monitor-command", name, "--hmp", "info block")[1]
    tap.match(text, re.compile(r"\(luks, encrypted\)"), name + ": by the drive's own LUKS layer")
    with open("%s/%s.luks" % (IMAGES, name), "rb") as f:
        image = f.read()
    tap.ok(image.startswith(b"LUKS\xba\xbe") and b"EFI PART" not in image, name + ": nothing of it is in the clear")


with Tap() as tap:
    host = Host()
    define_secret(host)
    iso = maker("mkinstaller")
    with open(iso, "rb") as f:
        server = FaultServer(f.read())
    ours = install(tap, host, "spindle", server.url("/debian.iso"), SPINDLE)
    check_drives(tap, host, "spindle")
    host.virsh("destroy", "spindle")
    server.stop()
    local = host.give_to_qemu(shutil.copy(iso, IMAGES + "/debian.iso"))
    stock = install(tap, host, "qemu", local, ENGINE)
    host.virsh("destroy", "qemu")
    tap.note("installed after %.1f s (from the server), QEMU's own drives %.1f s (from a local file); booted after %.1f s and %.1f s"
             % (ours[0], stock[0], ours[1], stock[1]))
