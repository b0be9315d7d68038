"""What people do with a libvirt domain's CD drive, by virsh, and what must come of it: every result as QEMU's own, and the guest
reads the disc before and after each change.

SPINDLE_LIBVIRT_EMULATOR=engine runs the same against QEMU's own drive."""

import hashlib
import os
import random
import re
import time

from domain import Domain, disk
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


def make(host, name, size, seed):
    path = "%s/%s" % (IMAGES, name)
    with open(path, "wb") as f:
        f.write(random.Random(seed).randbytes(size))
    return host.give_to_qemu(path)


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
            r"block\.0\.capacity=%d\n +block\.0\.physical=\d+\n(?s:.*)block\.1\.name=sdb\n(?s:.*)block\.1\.capacity=67108864"
            % (one, size)))
    steps.virsh("domstats", re.compile(r"block\.0\.rd\.reqs=[1-9]"))
    text = steps.domain.virsh("qemu-monitor-command", "--hmp", "info block")[1]
    steps.tap.match(text, re.compile(r"libvirt-\d+-(format: %s \(raw|storage: %s \(file), read-only\)\s+Attached to: +sata0-0-0\s+"
                                     r"Removable device: (not )?locked, tray closed" % (one, one)), "info block through libvirt")
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
    no_hotplug = re.compile(r"unable to execute QEMU command 'device_add': Bus 'ide\.2' does not support hotplugging|"
                            r"Operation not supported: disk bus 'sata' cannot be hotplugged")
    if EMULATOR == ENGINE or steps.domain.host.newer:  # libvirt 12 does not even ask
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


def check_disk(steps, hard):
    """A SATA disk beside the CD: its size, limits, marks."""
    domain = steps.domain
    steps.virsh("blockresize sdb 80M", "")
    steps.virsh("domblkinfo sdb", re.compile(r"Capacity: +83886080\n"))
    steps.tap.equal(os.path.getsize(hard), 80 << 20, "the image has grown")
    steps.virsh("blockresize sda 10M", re.compile("can't resize empty or readonly disk 'sda'"), 1)
    steps.virsh("blkdeviotune sda --total-iops-sec 500 --live --config", "")
    steps.tap.equal(domain.host.get("dumpxml", domain.name, "--inactive", "--xpath", CDROM + "/iotune/*"),
                    "<total_iops_sec>500</total_iops_sec>", "limits in the configuration, too")
    steps.virsh("blkdeviotune sda --total-iops-sec 0 --live --config", "")
    steps.virsh("blkdeviotune sdb --read-bytes-sec 50000000 --read-bytes-sec-max 60000000 --group-name g1 --live", "")
    steps.virsh("blkdeviotune sdb", re.compile(r"read_bytes_sec : 50000000\n(?s:.*)read_bytes_sec_max: 60000000\n(?s:.*)group_name     : g1\n"))
    def write():
        steps.domain.host.get("domblkthreshold", domain.name, "sdb", "4096")
        domain.get("dd if=/dev/zero of=/dev/sda bs=4096 count=4 seek=64 conv=fsync 2>/dev/null")

    text = domain.host.event(domain.name, "block-threshold", write)
    steps.tap.match(text, re.compile(r"'block-threshold' .*: dev: sdb\(%s\) 4096 \d+" % hard), "a write past the mark is an event")
    steps.virsh("domblkstat sdb --human", re.compile(r"number of bytes written: +[1-9]\d*\n"))
    text = domain.virsh("qemu-monitor-command", "--hmp", "info blockstats")[1]
    steps.tap.match(text, re.compile(r"sata0-0-1:?\s(?s:.*)Write: +[1-9]\d* +[1-9]"), "info blockstats through libvirt")


def check_jobs(steps, one):
    """Block jobs on a disk of Spindle's: refused in words, and nothing of them is left."""
    before = steps.domain.virsh("domblklist")
    unsupported = "unable to execute QEMU command '%s': Spindle's drives and their nodes do not support '%s'$"
    file = "/srv/images/%s"
    for args, command, action in (
            ("blockcopy sdb %s --format raw --wait --pivot --transient-job" % (file % "copy.raw"), "blockdev-mirror", None),
            ("blockpull sdb --wait", "block-stream", None), ("backup-begin", "transaction", "blockdev-backup"),
            ("snapshot-create-as s1 --disk-only --diskspec sdb,snapshot=external,file=" + file % "s1.qcow2", "transaction", "blockdev-snapshot"),
            ("snapshot-create-as s2 --memspec file=%s,snapshot=external --diskspec sdb,snapshot=external,file=%s"
             % (file % "s2.memory", file % "s2.qcow2"), "transaction", "blockdev-snapshot")):
        steps.virsh(args, re.compile(unsupported % (command, action or command)), 1)
    steps.virsh("domjobinfo", re.compile("^Job type: +None"))
    steps.virsh("blockjob sdb --info", "")
    steps.virsh("snapshot-list", "")
    steps.virsh("domstate --reason", re.compile(r"^running \((booted|unpaused|restored)\)"))
    steps.tap.equal(steps.domain.virsh("domblklist"), before, "the disks are as before")
    steps.check_disc(one, "what is refused")


def check_memory(steps, one, two):
    """A snapshot of the memory, with a disc in; managed saves; pictures of the screen."""
    domain = steps.domain
    domain.get("echo memory >/tmp/mark")
    steps.virsh("snapshot-create-as s3 --memspec file=/srv/images/s3.memory,snapshot=external --diskspec sdb,snapshot=no",
                re.compile("^$|^Domain snapshot s3 created$"), disc=one)
    steps.virsh("snapshot-list", re.compile(r"^ *s3 .* running$"))
    steps.virsh("snapshot-delete s3 --metadata", re.compile("^$|^Domain snapshot s3 deleted$"))
    domain.get("echo managed >/tmp/mark")
    steps.virsh("managedsave", re.compile("^$|^Domain '%s' state saved by libvirt$" % domain.name))
    domain.wait_off()
    domain.listen()
    steps.virsh("start", "", disc=one)
    steps.tap.equal(domain.get("cat /tmp/mark"), "managed", "the guest goes on after a managed save")
    domain.host.get("destroy", domain.name)
    domain.listen()
    status, text = domain.host.virsh("restore", "/srv/images/s3.memory")
    steps.tap.equal((status, text), (0, ""), "virsh restore of the snapshot's memory")
    steps.tap.equal(domain.get("cat /tmp/mark"), "memory", "the guest goes on from there")
    steps.virsh("change-media sda %s --update" % two, "Successfully updated media.", disc=two)
    update_device(steps, disk("<source file='%s' startupPolicy='optional'/>" % one), disc=one, name="a disc that may be missing")
    steps.tap.match(live_cdrom(domain), re.compile('startupPolicy="optional"'), "as the live XML says")
    steps.virsh("screenshot /mnt/screen", re.compile("^$|^Screenshot saved to /mnt/screen"))
    with open("/mnt/screen", "rb") as f:
        steps.tap.ok(f.read(4) in (b"\x89PNG", b"P6\n7", b"P6\n6"), "is a picture")
    steps.virsh("dompmsuspend mem", re.compile("QEMU guest agent is not configured"), 1)


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


def prepare(host, name):
    """(a running domain with a CD drive and a SATA disk, two discs, the disk's image)"""
    one, two = make(host, "one.iso", 5 << 20, 1), make(host, "two.iso", (3 << 20) + 2048, 2)
    hard = IMAGES + "/disk.raw"
    with open(hard, "wb") as f:
        f.truncate(64 << 20)
    host.give_to_qemu(hard)
    disks = [disk(one), disk(hard, "sdb", device="disk"), "<video><model type='vga'/></video>"]
    return Domain(host, name, disks, emulator=EMULATOR).start(), one, two, hard


def run_operations(everything, **host_options):
    """The whole test: all operations, or those where the libvirt and the user of QEMU make a difference."""
    with Tap() as tap:
        host = Host(**host_options)
        domain, one, two, hard = prepare(host, "ops")
        tap.note(host.versions())
        steps = Steps(tap, domain)
        check_change_media(steps, one, two)
        check_queries(steps, one)
        if everything:
            check_tune(steps, one)
        check_devices(steps, one, two)
        if everything:
            check_guest_tray(steps, one, two)
            check_lifecycle(steps, one)
        if everything or host.newer:
            check_disk(steps, hard)
            if EMULATOR == SPINDLE:
                check_jobs(steps, one)
            check_memory(steps, one, two)
        check_save(steps, one, two)
        check_ends(tap, steps)
        if everything and EMULATOR == SPINDLE:
            check_crash(tap, host, domain)
        domain.close()
