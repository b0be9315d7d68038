#!/usr/bin/env python3
"""What people do with a libvirt domain's CD drive, by virsh, with Spindle as the emulator: every result as QEMU's own, and the
guest reads the disc before and after each change.

SPINDLE_LIBVIRT_EMULATOR=engine runs the same against QEMU's own drive."""

import hashlib
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
import host as libvirt_host

libvirt_host.enter()
from domain import Domain, disk, give_to_qemu
from host import ENGINE, IMAGES, SPINDLE, Host
from tap import Tap

EMULATOR = ENGINE if os.environ.get("SPINDLE_LIBVIRT_EMULATOR") == "engine" else SPINDLE
CDROM = '//disk[@device="cdrom"]'
SHA256 = "sha256sum </dev/sr0 2>&1 | cut -c1-64"
REFUSED = "sha256sum: can't read '-': Input/output error"
TUNE = """total_bytes_sec: %d
read_bytes_sec : 0
write_bytes_sec: 0
total_iops_sec : 0
read_iops_sec  : 0
write_iops_sec : 0
total_bytes_sec_max: 0
read_bytes_sec_max: 0
write_bytes_sec_max: 0
total_iops_sec_max: 0
read_iops_sec_max: 0
write_iops_sec_max: 0
size_iops_sec  : 0
group_name     : %s
total_bytes_sec_max_length: 0
read_bytes_sec_max_length: 0
write_bytes_sec_max_length: 0
total_iops_sec_max_length: 0
read_iops_sec_max_length: 0
write_iops_sec_max_length: 0"""


def make(name, size, seed):
    path = "%s/%s" % (IMAGES, name)
    with open(path, "wb") as f:
        f.write(random.Random(seed).randbytes(size))
    return give_to_qemu(path)


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def read_disc(domain):
    """The sha256 that the guest reads. Linux refuses once what was put in while it looked away."""
    first = domain.get(SHA256)
    return domain.get(SHA256) if first == REFUSED else first


class Steps:
    """virsh commands with what they must answer; after each the guest must see `disc` (a path, or None for no medium)."""

    def __init__(self, tap, domain):
        self.tap, self.domain = tap, domain

    def virsh(self, args, expected, status=0, disc=False):
        words = args.split(" ")
        got, text = self.domain.virsh(words[0], *words[1:])
        name = "virsh " + args
        good = got == status and (text == expected if isinstance(expected, str) else expected.search(text))
        self.tap.ok(good, name, "status %d, expected %d" % (got, status), "got:      " + text,
                    "expected: " + (expected if isinstance(expected, str) else expected.pattern))
        if disc is not False:
            self.check_disc(disc, name)
        return text

    def check_disc(self, disc, after):
        if disc is None:
            status, text = self.domain.run("dd if=/dev/sr0 of=/dev/null bs=2048 count=1 2>&1")
            self.tap.ok(status and "No medium" in text, "the guest has no medium after " + after, text)
        else:
            self.tap.equal(read_disc(self.domain), sha256(disc), "the guest reads the right disc after " + after)


def live_cdrom(domain):
    return domain.host.get("dumpxml", domain.name, "--xpath", CDROM)


def check_change_media(steps, one, two):
    ejected, inserted, updated = ("Successfully %s media." % what for what in ("ejected", "inserted", "updated"))
    steps.check_disc(one, "start")
    steps.virsh("domblklist --details", re.compile(r"file +cdrom +sda +%s\n *file +disk +sdb +" % one))
    steps.virsh("change-media sda --eject", ejected, disc=None)
    steps.virsh("domblklist", re.compile(r"^ *sda +-$", re.M))
    steps.virsh("change-media sda %s --insert" % two, inserted, disc=two)
    steps.virsh("change-media sda %s --update" % one, updated, disc=one)
    steps.virsh("change-media sda %s --insert" % two, "error: The disk device 'sda' already has media", 1, disc=one)
    steps.virsh("change-media sda --eject --force", ejected, disc=None)
    steps.virsh("change-media sda %s --insert --force" % two, inserted, disc=two)
    steps.virsh("change-media sda %s --update --force" % one, updated, disc=one)
    steps.virsh("change-media sda /nonexistent.iso --update",
                "error: Failed to complete action update on media\n"
                "error: Cannot access storage file '/nonexistent.iso': No such file or directory", 1)
    steps.tap.match(live_cdrom(steps.domain), re.compile("<source file=\"%s\"" % one), "the live XML has the old disc still")


def check_queries(steps, one):
    size = os.path.getsize(one)
    steps.virsh("domblkinfo sda", re.compile(r"Capacity: +%d\nAllocation: +\d+\nPhysical: +%d$" % (size, size)))
    steps.virsh("domblkinfo --all", re.compile(r"sda +%d +\d+ +%d\n *sdb +67108864 +\d+ +67108864" % (size, size)))
    text = steps.virsh("domblkstat sda", re.compile(r"^sda rd_req [1-9]\d*\nsda rd_bytes [1-9]\d*\nsda wr_req 0\nsda wr_bytes 0\n"
                                                    r"sda flush_operations 0\nsda rd_total_times [1-9]\d*\n"))
    steps.virsh("domblkstat sdb", re.compile(r"^sdb rd_req \d+\nsdb rd_bytes \d+\nsdb wr_req "))
    before = int(re.search(r"rd_bytes (\d+)", text).group(1))
    steps.domain.get("echo 3 >/proc/sys/vm/drop_caches; " + SHA256)
    after = int(re.search(r"rd_bytes (\d+)", steps.domain.virsh("domblkstat", "sda")[1]).group(1))
    steps.tap.ok(size <= after - before < 2 * size, "what the guest reads is counted", "%d bytes for %d" % (after - before, size))
    steps.virsh("domblkstat", re.compile(r"rd_req [1-9]\d*\n *rd_bytes [1-9]"))
    steps.virsh("domblkerror", "No errors found")
    for more in ("", " --backing"):
        steps.virsh("domstats --block" + more, re.compile(
            r"block\.count=2\n +block\.0\.name=sda\n +block\.0\.path=%s\n +block\.0\.backingIndex=\d+\n(?s:.*)"
            r"block\.0\.capacity=%d\n +block\.0\.physical=\d+\n +block\.1\.name=sdb\n(?s:.*)block\.1\.capacity=67108864"
            % (one, size)))
    steps.virsh("domstats", re.compile(r"block\.0\.rd\.reqs=[1-9]"))
    text = steps.domain.virsh("qemu-monitor-command", "--hmp", "info block")[1]
    steps.tap.match(text, re.compile(r"libvirt-\d+-format: %s \(raw, read-only\)\s+Attached to: +sata0-0-0\s+"
                                     r"Removable device: (not )?locked, tray closed" % one), "info block through libvirt")
    steps.virsh("domblkthreshold sdb 1048576", "")


def check_tune(steps, one):
    steps.virsh("blkdeviotune sda", TUNE % (0, ""))
    steps.virsh("blkdeviotune sda --total-bytes-sec 1000000 --live", "")
    steps.virsh("blkdeviotune sda", TUNE % (1000000, "sata0-0-0"))
    steps.domain.get("echo 3 >/proc/sys/vm/drop_caches")
    began = time.monotonic()
    steps.domain.get("dd if=/dev/sr0 of=/dev/null bs=64k count=48 2>/dev/null")
    took = time.monotonic() - began
    steps.tap.ok(took > 1.5, "3 MiB at a million bytes a second take their time", "%.2f s" % took)
    steps.virsh("change-media sda %s --update" % one, "Successfully updated media.", disc=one)
    steps.virsh("blkdeviotune sda --total-bytes-sec 0 --live", "")
    steps.virsh("blkdeviotune sda", TUNE % (0, ""))


def update_device(steps, xml, expected="", status=0, disc=False, name="", command="update-device"):
    path = "/mnt/update.xml"
    with open(path, "w") as f:
        f.write(xml)
    got, text = steps.domain.virsh(command, path, "--live")
    text = text.replace(path, "FILE")
    name = "virsh %s: %s" % (command, name)
    good = got == status and (text == expected if isinstance(expected, str) else expected.search(text))
    steps.tap.ok(good, name, "status %d" % got, text)
    if disc is not False:
        steps.check_disc(disc, name)


def check_devices(steps, one, two):
    refused = "error: Failed to update device from FILE\nerror: Operation not supported: cannot modify field '%s' of the disk"
    update_device(steps, disk(two), disc=two, name="another file")
    update_device(steps, disk(), disc=None, name="no medium")
    update_device(steps, disk(target="<target dev='sda' bus='sata' tray='open'/>"), refused % "tray", 1, name="tray")
    update_device(steps, disk(two, extra="<serial>S</serial>"), refused % "serial", 1, name="serial")
    update_device(steps, disk(one), disc=one, name="the first file")
    no_hotplug = re.compile(r"unable to execute QEMU command 'device_add': Bus 'ide\.2' does not support hotplugging")
    if EMULATOR == ENGINE:
        update_device(steps, disk(two, target="sdc"), no_hotplug, 1, name="a new drive", command="attach-device")
    else:
        update_device(steps, disk(two, target="sdc"), "", name="a new drive", command="attach-device")
        found = steps.domain.get("n=0; while [ ! -b /dev/sr1 ] && [ $n -lt 50 ]; do sleep 0.2; n=$((n + 1)); done; "
                                 + SHA256.replace("sr0", "sr1"), timeout=90)
        steps.tap.equal(found, sha256(two), "the guest reads the disc of a drive that was plugged in")
    detach = re.compile("error: Operation not supported: disk device type 'cdrom' cannot be detached")
    update_device(steps, disk(one), detach, 1, name="the drive", command="detach-device")
    steps.virsh("detach-disk sda --live", detach, 1, disc=one)


def check_guest_tray(steps, one, two):
    domain = steps.domain
    domain.get("eject -i on /dev/sr0 >/dev/null")
    steps.virsh("change-media sda --eject", "error: Failed to complete action eject on media\n"
                "error: operation failed: timed out waiting to open tray of 'sda'", 1, disc=one)
    steps.virsh("change-media sda --eject --force", "Successfully ejected media.", disc=None)
    steps.virsh("change-media sda %s --insert --force" % two, "Successfully inserted media.")
    domain.get("eject -i off /dev/sr0 >/dev/null")
    steps.check_disc(two, "a forced insert")
    domain.get("eject /dev/sr0")
    end = time.monotonic() + 10
    while 'tray="open"' not in live_cdrom(domain) and time.monotonic() < end:
        time.sleep(0.1)
    steps.tap.match(live_cdrom(domain), re.compile('tray="open"'), "a tray that the guest opened is open in the live XML")
    steps.virsh("change-media sda %s --update" % one, "Successfully updated media.", disc=one)


def check_lifecycle(steps, one):
    domain = steps.domain
    steps.virsh("suspend", "")
    steps.virsh("domstate --reason", "paused (user)")
    steps.virsh("resume", "", disc=one)
    domain.listen_again = domain.control
    domain.get("(sleep 0.3; reboot -f) >/dev/null 2>&1 &")
    domain.wait_ready(120)
    steps.check_disc(one, "a reboot of the guest")
    steps.virsh("reset", "")
    domain.wait_ready(120)
    steps.check_disc(one, "virsh reset")
    before = domain.pids()
    domain.host.restart_libvirtd()
    steps.tap.equal(domain.pids(), before, "a restart of libvirtd leaves the domain's processes")
    steps.tap.match(live_cdrom(domain), re.compile("<source file=\"%s\"" % one), "and its disc known")
    steps.virsh("change-media sda --eject", "Successfully ejected media.", disc=None)
    steps.virsh("change-media sda %s --insert" % one, "Successfully inserted media.", disc=one)


def check_save(steps, one, two):
    domain, path = steps.domain, IMAGES + "/saved"
    domain.get("echo kept >/tmp/mark; dd if=/dev/sr0 of=/dev/null bs=2048 count=4 2>/dev/null; eject -i on /dev/sr0 >/dev/null")
    steps.virsh("save %s" % path, re.compile("^Domain '%s' saved|^$" % domain.name))
    domain.wait_off()
    domain.listen()
    status, text = domain.host.virsh("restore", path)
    steps.tap.equal((status, text), (0, ""), "virsh restore")
    steps.tap.equal(domain.get("cat /tmp/mark"), "kept", "the guest goes on after a restore")
    steps.check_disc(one, "a restore")
    steps.virsh("change-media sda %s --update" % two, re.compile("timed out waiting to open tray"), 1)
    domain.get("eject -i off /dev/sr0 >/dev/null")
    steps.virsh("change-media sda %s --update" % two, "Successfully updated media.", disc=two)


def check_ends(tap, steps):
    domain = steps.domain
    processes = domain.pids()
    domain.control.send(b"quit\n")
    domain.wait_off()
    tap.ok(True, "a guest that powers off ends the domain")
    end = time.monotonic() + 5
    while domain.pids() and time.monotonic() < end:
        time.sleep(0.1)
    tap.equal(domain.pids(), {}, "and every process of it (%s)" % ", ".join(processes))


def check_crash(tap, host, domain):
    domain.start()
    pid = domain.pids().get("spindled")
    os.kill(pid, 9)
    end = time.monotonic() + 10
    status, text = host.virsh("domblkinfo", domain.name, "sda", timeout=30)
    tap.note("domblkinfo after the drive process was killed: %d %s" % (status, text))
    status, text = host.virsh("domstate", domain.name, timeout=30)
    tap.equal(status, 0, "libvirt still answers after the drive process was killed")
    domain.host.virsh("destroy", domain.name, timeout=60)
    while domain.pids() and time.monotonic() < end:
        time.sleep(0.1)
    tap.equal(domain.pids(), {}, "and destroys what is left")


def main():
    with Tap() as tap:
        host = Host()
        one, two = make("one.iso", 5 << 20, 1), make("two.iso", (3 << 20) + 2048, 2)
        hard = IMAGES + "/disk.raw"
        with open(hard, "wb") as f:
            f.truncate(64 << 20)
        give_to_qemu(hard)
        domain = Domain(host, "ops", [disk(one), disk(hard, "sdb", device="disk")], emulator=EMULATOR)
        domain.start()
        steps = Steps(tap, domain)
        check_change_media(steps, one, two)
        check_queries(steps, one)
        check_tune(steps, one)
        check_devices(steps, one, two)
        check_guest_tray(steps, one, two)
        check_lifecycle(steps, one)
        check_save(steps, one, two)
        check_ends(tap, steps)
        if EMULATOR == SPINDLE:
            check_crash(tap, host, domain)
        domain.close()


main()
