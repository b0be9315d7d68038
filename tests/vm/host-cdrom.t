#!/usr/bin/env python3
"""A host's own CD drive: spindled inside a Linux guest that has a real /dev/sr0 (the engine's ide-cd), whose media,
tray and button are moved from outside by QMP.  What a guest of spindled sees is printed by cd-client and checked step
by step, with the kernel's polling of the drive on, off, and impossible.  Times run from the action outside."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import iso, read_sectors, sectors
from guest import ROOT, Guest, GuestError, engine
from tap import Tap

CLIENT = os.path.join(ROOT, "build", "tests", "lib", "cd-client")
DAEMON = os.path.join(ROOT, "build", "spindled")
# The setting before spindled starts, whether sysfs can be written to, and what spindled has to say and leave.
MODES = [
    ("polling on", "200", True, None, "200"),
    ("polling off", "-1", True, r"the kernel looks for media changes every 1000 ms .*events_poll_msecs was -1", "-1"),
    ("polling impossible", "-1", False, r"may not be told to; looking for a change of the medium every 1 s", "-1"),
]
NOT_READY = r"ready 02(3a0[0-2]|0401)"
ATTENTION = "ready 062800"
READY = "ready 000000"


def pack(path, programs):
    """Programs and their libraries, in one folder."""
    files = {}
    for program in programs:
        files[os.path.basename(program)] = program
        text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
        for library in re.findall(r"/\S+", text):
            files[os.path.basename(library)] = os.path.realpath(library)
    with tarfile.open(path, "w") as tar:
        for name, source in sorted(files.items()):
            tar.add(source, name)
    with open(path, "ab") as f:
        f.truncate((os.path.getsize(path) + 1048575) // 1048576 * 1048576)


class Inner:
    """spindled and cd-client inside the guest."""

    RUN = "/opt/ld-linux-x86-64.so.2 --library-path /opt /opt/"

    def __init__(self, guest, more="", device=""):
        self.guest = guest
        self.at = 0
        guest.get("rm -f /tmp/in /tmp/out /tmp/log /tmp/cd /tmp/qmp; mkfifo /tmp/in\n"
                  "%sspindled --blockdev driver=host_cdrom,node-name=d,read-only=on,filename=/dev/sr0%s "
                  "--vfio-user /tmp/cd --device ide-cd,id=cd7,drive=d%s "
                  "--chardev socket,id=m,host=127.0.0.1,port=4711,server=on,wait=off --monitor m "
                  "-T 'host_cdrom_*' -T 'mmc_tray' -D /tmp/trace >/tmp/log 2>&1 &\n"
                  "echo $! >/tmp/pid; while [ ! -e /tmp/cd ]; do sleep 0.05; done\n"
                  "sleep 100000 >/tmp/in & echo $! >/tmp/pids\n"
                  "(echo '{\"execute\":\"qmp_capabilities\"}'; exec sleep 100000) | nc 127.0.0.1 4711 >/tmp/qmp 2>&1 & echo $! >>/tmp/pids\n"
                  "%scd-client /tmp/cd </tmp/in >/tmp/out 2>&1 & echo $! >>/tmp/pids" % (self.RUN, more, device, self.RUN))

    def now(self):
        return float(self.guest.get("cut -d' ' -f1 /proc/uptime"))

    def look(self, patterns, timeout=15):
        """Waits for lines that match the patterns in order, skipping others; returns (times, texts).  What comes
        behind the last one is left for the next look."""
        end = time.monotonic() + timeout
        while True:
            output, times, texts, want, used = self.guest.run("tail -c +%d /tmp/out" % (self.at + 1))[1], [], [], list(patterns), 0
            for line in output.splitlines(True):
                if not want or not line.endswith("\n"):
                    break
                at, text = line.strip().split(" ", 1)
                texts.append(text)
                used += len(line)
                if re.fullmatch(want[0], text):
                    times.append(float(at))
                    want.pop(0)
            if not want:
                self.at += used
                return times, texts
            if time.monotonic() > end:
                return None, texts
            time.sleep(0.1)

    def do(self, command):
        self.guest.get("echo '%s' >/tmp/in" % command)
        word = command.split()[0]
        times, texts = self.look([word + " .*"])
        if times is None:
            raise GuestError("no answer to '%s': %s" % (command, texts))
        return [text for text in texts if text.startswith(word + " ")][-1].split()[1:]

    def log(self):
        return self.guest.get("cat /tmp/log")

    def stop(self, number="TERM"):
        self.guest.get("pid=$(cat /tmp/pid); kill -%s $pid; while [ -e /proc/$pid ]; do sleep 0.05; done; "
                       "kill $(cat /tmp/pids) 2>/dev/null; true" % number)


class Steps:
    def __init__(self, tap, guest, inner, mode, discs):
        self.tap, self.guest, self.inner, self.mode, self.discs = tap, guest, inner, mode, discs

    def see(self, name, patterns, began=None, once=ATTENTION):
        times, texts = self.inner.look(patterns)
        good = times is not None and texts.count(once) <= 1
        if not good:
            self.tap.note(self.guest.run("tail -n 20 /tmp/trace; tail -c 1000 /tmp/out")[1])
        self.tap.ok(good, "%s: %s" % (self.mode, name), "wanted: %r" % (patterns,), "seen: %r" % (texts,))
        if good and began is not None:
            self.tap.note("%s: %s: %s" % (self.mode, name, ", ".join(
                "%s after %.2f s" % (re.sub(r"[\\(].*", "", p), t - began) for p, t in zip(patterns, times))))

    def new_disc(self, name, disc, action):
        began = self.inner.now()
        action()
        self.see(name, [NOT_READY, ATTENTION, READY, "capacity %d" % sectors(self.discs[disc])], began)
        self.contents(name, disc)

    def contents(self, name, disc):
        wanted = hashlib.sha1(read_sectors(self.discs[disc], 16, 20)).hexdigest()
        self.tap.equal(self.inner.do("sum 16 20"), ["000000", wanted], "%s: %s: the new disc's data" % (self.mode, name))

    def change(self, disc):
        return lambda: self.guest.qmp("blockdev-change-medium", id="cd0", filename=self.discs[disc], format="raw")

    def device(self):
        return next(d for d in self.guest.qmp("query-block") if d.get("qdev", "").endswith("cd0"))

    def wait_device(self, key, value, name, timeout=8):
        end = time.monotonic() + timeout
        while self.device().get(key) != value and time.monotonic() < end:
            time.sleep(0.05)
        self.tap.equal(self.device().get(key), value, "%s: %s" % (self.mode, name))

    def outside(self):
        self.new_disc("change from outside", "b", self.change("b"))
        began = self.inner.now()
        self.guest.qmp("eject", id="cd0", force=True)
        self.see("eject from outside", [NOT_READY], began)
        began = self.inner.now()
        self.change("a")()
        self.see("insert from outside", [ATTENTION, READY, "capacity %d" % sectors(self.discs["a"])], began)
        self.contents("insert from outside", "a")

    def tray(self):
        began = self.inner.now()
        self.tap.equal(self.inner.do("cdb 0 1b0000000200")[:1], ["000000"], "%s: the guest's eject" % self.mode)
        self.wait_device("tray_open", True, "opens the drive's tray")
        self.see("the guest's tray is open", ["ready 023a02"], None)
        self.see_event("DEVICE_TRAY_MOVED", r'"tray-open": *true', "and the monitor hears of it")
        self.tap.equal(self.inner.do("cdb 0 1b0000000300")[:1], ["000000"], "%s: the guest's load" % self.mode)
        self.wait_device("tray_open", False, "closes it")
        self.see("the disc is back", [ATTENTION, READY, "capacity .*"], began)
        self.contents("the disc is back", "a")

    def lock(self):
        self.tap.equal(self.inner.do("cdb 0 1e0000000100")[:1], ["000000"], "%s: the guest's lock" % self.mode)
        self.wait_device("locked", True, "locks the drive's door")
        self.tap.equal(self.inner.do("cdb 0 1b0000000200")[:1], ["055302"], "%s: the guest cannot eject then" % self.mode)
        began = self.inner.now()
        try:
            self.guest.qmp("eject", id="cd0", force=False)
            self.tap.ok(False, "%s: the button of a locked drive opens nothing" % self.mode)
        except GuestError as e:
            self.tap.ok("locked" in str(e), "%s: the button of a locked drive opens nothing" % self.mode, e)
        self.see("the button of a locked drive is an eject request", ["event 1"], began)
        self.see_event("SPINDLE_EJECT_REQUEST", r'"id": *"cd7"', "and an event of the monitor")
        self.tap.equal(self.inner.do("cdb 0 1e0000000000")[:1], ["000000"], "%s: the guest's unlock" % self.mode)
        self.wait_device("locked", False, "unlocks the drive's door")

    def see_event(self, event, pattern, name):
        events = self.guest.get("for i in $(seq 50); do grep %s /tmp/qmp && break; sleep 0.1; done; true" % event)
        self.tap.match(events, re.compile(pattern), "%s: %s" % (self.mode, name))

    def unplug(self):
        descriptors = "ls /proc/$(cat /tmp/pid)/fd | wc -l"
        before = self.guest.get(descriptors)
        began = self.inner.now()
        self.guest.get("echo 'reads 1000000 16' >/tmp/in; sleep 0.2; echo 1 >/sys/block/sr0/device/delete")
        self.see("the drive is unplugged in the middle of a read, which ends", ["reads 02(3a0[0-2]|0401) .*"], began)
        self.see("and is gone", [NOT_READY], began)
        time.sleep(1)  # nobody is faster by hand, and the old name has to be free
        began = self.inner.now()
        self.guest.get("for h in /sys/class/scsi_host/host*; do echo '- - -' >$h/scan; done")
        self.see("and plugged in", [ATTENTION, READY, "capacity .*"], began)
        self.tap.equal(self.guest.get("ls /sys/block | grep sr"), "sr0", "%s: under its old name" % self.mode)
        self.contents("and plugged in", "a")
        time.sleep(1)  # for looks that are under way
        after = self.guest.get(descriptors)
        self.tap.equal(after, before, "%s: with as many descriptors as before" % self.mode)


def run_mode(tap, guest, discs, mode):
    name, setting, writable, said, left = mode
    guest.get("echo %s >/sys/block/sr0/events_poll_msecs" % setting)
    guest.get("mount -o remount,%s /sys" % ("rw" if writable else "ro"))
    inner = Inner(guest, "" if writable else ",check-interval=1")
    steps = Steps(tap, guest, inner, name, discs)
    steps.see("the disc that was in", [READY, "capacity %d" % sectors(discs["a"])])
    steps.outside()
    steps.tray()
    log = inner.log()
    if said:
        tap.match(log, re.compile(said), "%s: spindled says how it learns of changes" % name)
    else:
        tap.equal(log, "", "%s: spindled has nothing to say" % name)
    if writable:  # without the kernel's events there is no word of the button
        steps.lock()
        steps.unplug()
        left = "-1"  # the drive that came back is a new one to the kernel: its default
        tap.equal(guest.get("cat /sys/block/sr0/events_poll_msecs"), "1000", "%s: the kernel looks after it too" % name)
    inner.stop()
    tap.equal(guest.get("cat /sys/block/sr0/events_poll_msecs"), left, "%s: the kernel's setting is as before" % name)
    guest.get("mount -o remount,rw /sys")


POLL = "cat /sys/block/sr0/events_poll_msecs"


def wait_poll(tap, guest, value, name):
    """The setting of the kernel's polling becomes `value`."""
    seen = guest.get("for i in $(seq 100); do [ $(%s) = %s ] && break; sleep 0.1; done; %s" % (POLL, value, POLL))
    tap.equal(seen, value, name)


def run_kill(tap, guest, discs):
    """Killed, with the door locked, the kernel's polling switched on, and somebody else who has the drive open."""
    guest.get("echo -1 >/sys/block/sr0/events_poll_msecs")
    inner = Inner(guest)
    steps = Steps(tap, guest, inner, "killed", discs)
    steps.see("the disc that was in", [READY, "capacity .*"])
    tap.equal(guest.get(POLL), "1000", "killed: the kernel looks after the drive")
    for other in (False, True):
        if other:
            guest.get("exec 9</dev/sr0; sleep 100000 <&9 & echo $! >/tmp/other")
            inner = Inner(guest)
            steps = Steps(tap, guest, inner, "killed, the drive open elsewhere", discs)
            steps.see("the disc that was in", [READY, "capacity .*"])
        inner.do("cdb 0 1e0000000100")
        steps.wait_device("locked", True, "the door is locked")
        inner.stop("KILL")
        steps.wait_device("locked", False, "and open when the process was killed")
        wait_poll(tap, guest, "-1", "%s: the kernel's setting is as before" % steps.mode)
    guest.get("kill $(cat /tmp/other)")


def run_two(tap, guest, discs):
    """Two nodes of one process and a node of another on one drive: the last one to go restores the polling."""
    guest.get("echo 0 >/sys/block/sr0/events_poll_msecs")
    inner = Inner(guest, " --blockdev driver=host_cdrom,node-name=e,read-only=on,filename=/dev/sr0")
    Steps(tap, guest, inner, "three holders", discs).see("the disc that was in", [READY, "capacity .*"])
    wait_poll(tap, guest, "1501", "three holders: two nodes of one process count")
    guest.get("%sspindled --blockdev driver=host_cdrom,node-name=d,read-only=on,filename=/dev/sr0 --vfio-user /tmp/third "
              ">/dev/null 2>&1 & echo $! >/tmp/other" % Inner.RUN)
    wait_poll(tap, guest, "1502", "three holders: another process too")
    inner.stop()
    wait_poll(tap, guest, "1500", "three holders: two are gone, and it still looks")
    guest.get("kill $(cat /tmp/other)")
    wait_poll(tap, guest, "0", "three holders: the last one restored it")
    guest.get("echo -1 >/sys/block/sr0/events_poll_msecs")


def run_passthrough(tap, guest, discs):
    """Commands to the real drive, which is QEMU's: it has some of them, and refuses the others itself."""
    for policy in ("off", "safe", "burn"):
        inner = Inner(guest, device=",passthrough=" + policy)
        steps = Steps(tap, guest, inner, "passthrough=" + policy, discs)
        steps.see("the disc that was in", [READY, "capacity %d" % sectors(discs["a"])])
        traced = int(guest.get("stat -c %s /tmp/trace"))
        tap.equal(inner.do("cdb 34 5100000000000022000000"), inner.do("cdb 34 5100000000000022000000"),
                  "passthrough=%s: READ DISC INFORMATION" % policy)
        tap.equal(inner.do("cdb 252 23000000000000fc000000")[0], "052000", "passthrough=%s: READ FORMAT CAPACITIES" % policy)
        tap.equal(inner.do("cdb 0 a10100000000000000000000")[0], "052000", "passthrough=%s: BLANK" % policy)
        tap.equal(inner.do("cdb 0 3b0500000000000000000000")[0], "052000", "passthrough=%s: WRITE BUFFER" % policy)
        wanted = hashlib.sha1(read_sectors(discs["a"], 16, 200)).hexdigest()
        tap.equal(inner.do("sum 16 200"), ["000000", wanted], "passthrough=%s: 400 KB in one command" % policy)
        passed = re.findall(r"host_cdrom_packet opcode (\w\w) bytes (\d+)", guest.get("tail -c +%d /tmp/trace" % (traced + 1)))
        opcodes = {opcode for opcode, _ in passed}
        expected = {"off": set(), "safe": {"51", "23"}, "burn": {"51", "23", "a1", "28"}}[policy]
        tap.ok(expected <= opcodes and (policy == "burn" or opcodes == expected),
               "passthrough=%s: what went to the drive" % policy, "wanted: %r" % expected, "seen: %r" % passed)
        if policy == "burn":
            sizes = [int(size) for opcode, size in passed if opcode == "28"]
            limit = 512 * int(guest.get("cat /sys/block/sr0/queue/max_sectors_kb")) * 2
            tap.ok(sum(sizes) >= 200 * 2048 and max(sizes) <= limit, "passthrough=burn: in commands of what the host passes",
                   "limit %d: %r" % (limit, sizes))
        inner.stop()


def bench(guest, command, requests):
    """(MB/s, commands to the drive for each request) of an image tool inside; 32 KiB requests."""
    before = int(guest.get("cat /sys/block/sr0/device/iorequest_cnt"), 0)
    text = guest.get("echo 3 >/proc/sys/vm/drop_caches; TIMEFORMAT=%R; " + command + " 2>&1", 120)
    asked = int(guest.get("cat /sys/block/sr0/device/iorequest_cnt"), 0) - before
    seconds = float(re.search(r"Run completed in ([\d.]+) seconds", text).group(1))
    return requests * 32768 / seconds / 1e6, asked / requests


def run_bench(tap, guest, discs):
    """The same reads by qemu-img and by spindle-img, past the page cache: what they ask of the drive."""
    requests = sectors(discs["big"]) * 2048 // 32768
    guest.qmp("blockdev-change-medium", id="cd0", filename=discs["big"], format="raw")
    guest.get("while [ $(blockdev --getsize64 /dev/sr0) != %d ]; do sleep 0.1; : </dev/sr0; done" % (sectors(discs["big"]) * 2048))
    rates = {"qemu-img": [], "spindle-img": []}
    for _ in range(3):
        for program, found in rates.items():
            found.append(bench(guest, "%s%s bench -c %d -d 1 -s 32768 --image-opts driver=host_cdrom,filename=/dev/sr0,cache.direct=on,"
                               "read-only=on" % (Inner.RUN, program, requests), requests))
    (peer, peer_asked), (ours, ours_asked) = (sorted(found)[1] for found in (rates["qemu-img"], rates["spindle-img"]))
    tap.note("32K reads of /dev/sr0: spindle-img %.2f MB/s, %.2f commands a request; qemu-img %.2f MB/s, %.2f commands a request" %
             (ours, ours_asked, peer, peer_asked))
    tap.ok(ours_asked < 1.5, "a read of the drive is one command", ours_asked)
    tap.ok(peer_asked > 2, "QEMU's block layer makes more of it", peer_asked)


def main():
    with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-host-cdrom-") as folder:
        discs = {}
        for name, size in (("a", 3000000), ("b", 5000000), ("big", 40000000)):
            tree = os.path.join(folder, name)
            os.mkdir(tree)
            with open(os.path.join(tree, name), "wb") as f:
                f.write(os.urandom(size))
            discs[name] = iso(os.path.join(folder, name + ".iso"), tree, name.upper())
        tools = os.path.join(folder, "tools.tar")
        pack(tools, [DAEMON, CLIENT, os.path.join(ROOT, "build", "tools", "spindle-img"), shutil.which("qemu-img")])
        args = ["-drive", "if=virtio,format=raw,readonly=on,file=" + tools]
        with Guest(cds=[discs["a"]], program=engine(), memory=1024, args=args) as guest:
            guest.start()
            guest.get("ifconfig lo 127.0.0.1 up; modprobe virtio_blk; while [ ! -e /dev/vda ]; do sleep 0.1; done; mkdir -p /opt; tar xf /dev/vda -C /opt")
            for mode in MODES:
                run_mode(tap, guest, discs, mode)
            run_kill(tap, guest, discs)
            run_two(tap, guest, discs)
            run_passthrough(tap, guest, discs)
            run_bench(tap, guest, discs)


main()
