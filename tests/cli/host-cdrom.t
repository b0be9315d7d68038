#!/usr/bin/env python3
"""The data path of a host drive: what the drive process asks of the kernel, and of the drive, for 1,000 reads of a
guest.  The drive is a loop device; needs root."""

import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import ROOT, Place
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from slow_drive import SlowDrive
from tap import Tap

READS = 1000
SECTORS = 16
SIZE = READS * SECTORS * 2048


class Client:
    """cd-client on the socket: the guest."""

    def __init__(self, place, socket, errors=None):
        self.process = subprocess.Popen([os.path.join(ROOT, "build", "tests", "lib", "cd-client"), socket, "0"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                                        env=place.environment())

    def wait(self, word):
        for line in self.process.stdout:
            if line.split()[1] == word:
                return line.split()[2:]
        raise RuntimeError("the client ended before it said '%s'" % word)

    def send(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def do(self, command):
        self.send(command)
        return self.wait(command.split()[0])


def options(path, place, more=""):
    return ["--blockdev", "driver=host_cdrom,node-name=disc,read-only=on,filename=" + path + more,
            "--vfio-user", os.path.join(place.tmp, "cd"), "--device", "ide-cd,drive=disc"]


def traced(tap, place, drive, more, name):
    """By strace: which system calls the reads cost."""
    trace, socket = place.path("trace"), os.path.join(place.tmp, "cd")
    server = place.start("/usr/bin/strace", "-f", "-qq", "-o", trace, "-y", place.program("spindled"), *options(drive.path, place, more))
    place.wait_for(lambda: os.path.exists(socket), "socket")
    client = Client(place, socket)
    client.wait("capacity")
    time.sleep(0.5)  # the look at the start, which may ask what it likes
    before = os.path.getsize(trace)
    sense, ms = client.do("reads %d %d" % (READS, SECTORS))
    time.sleep(0.2)
    with open(trace) as f:
        f.seek(before)
        lines = [line.split(None, 1)[1] for line in f.read().splitlines() if len(line.split(None, 1)) == 2]
    client.process.stdin.close()
    for pid, line in place.processes().items():
        if line.startswith(place.program("spindled")):
            os.kill(pid, signal.SIGTERM)
    server.wait(10)
    tap.equal(sense, "000000", "%s: %d reads under strace succeed" % (name, READS))
    bad = [line for line in lines if re.match(r"(ioctl|lseek|_llseek|f?stat(fs|x)?(64)?|newfstatat|open(at)?)\(", line)]
    tap.ok(not bad, "%s: no ioctl, lseek, stat or open among %d calls" % (name, len(lines)), *bad[:10])
    reads = [line for line in lines if re.match(r"(?:preadv2?|pread64)\(\d+<%s>" % re.escape(drive.path), line)]
    good = [line for line in reads if not re.search(r"= -1 |unfinished|RWF_NOWAIT", line)]
    tap.note("%d reads of the drive, of them %d that began to wait, did not wait or were refused, in %s ms" %
             (len(reads), len(reads) - len(good), ms))
    tap.ok(SIZE >> 20 <= len(reads) <= READS, "%s: at most one read call for a request" % name, len(reads))


def served(place, drive, *client_errors):
    """The drive behind the library that answers as one does: the process that serves it, and a client that sees its disc."""
    socket = os.path.join(place.tmp, "cd")
    server = place.start("spindled", *options(drive.path, place), env=drive.environment())
    place.wait_for(lambda: os.path.exists(socket), "socket")
    client = Client(place, socket, *client_errors)
    client.wait("capacity")
    return server, client


def counted(tap, place, drive):
    """By the library that answers as a drive does: its status is never asked."""
    server, client = served(place, drive)
    time.sleep(0.5)
    tap.ok(drive.get("status") > 0, "the library stands between: the status was asked when it was opened")
    drive.reset()
    sense, _ = client.do("reads %d %d" % (READS, SECTORS))
    tap.equal(sense, "000000", "%d reads of a drive succeed" % READS)
    asked = {name: drive.get(name) for name in ("status", "ioctls", "seeks", "stats")}
    tap.equal(asked, {"status": 0, "ioctls": 0, "seeks": 0, "stats": 0}, "the drive was asked nothing on the way")
    tap.equal(drive.get("bytes") >= SIZE, True, "and gave all bytes")
    client.process.stdin.close()
    server.terminate()
    tap.equal(server.wait(10), 0, "the process ends")
    tap.equal(place.leftovers(), [], "nothing is left")


def hanging(tap, place, drive):
    """A command of the guest's hangs in the drive: the process ends when it is told to, all the same."""
    drive.set(format_us=20 * 1000000)
    server, client = served(place, drive, subprocess.DEVNULL)  # the client will lose its drive
    client.send("cdb 252 23000000000000fc000000")
    time.sleep(0.3)  # there is nothing to be seen of a command that hangs
    began = time.monotonic()
    server.terminate()
    status = server.wait(10)
    ms = (time.monotonic() - began) * 1000
    tap.note("the end of a process in whose drive a command hangs: %.0f ms" % ms)
    tap.equal(status, 0, "a process in whose drive a command hangs ends")
    tap.ok(ms < 1000, "at once", "%.0f ms" % ms)
    client.process.kill()
    client.process.wait()
    drive.set(format_us=0)
    tap.equal(place.leftovers(), [], "nothing is left of it")


def asleep(tap, place, drive):
    """A drive that takes its time for everything: the guest's registers, reset and eject, and the end, wait for nothing."""
    server, client = served(place, drive)
    drive.set(status_us=20 * 1000000, rate=100)
    busy, slowest, reset = (int(word) for word in client.do("stuck 16 16"))
    tap.note("a read that hangs in the drive: a register within %d us, a reset %d ms" % (slowest, reset))
    tap.equal(busy, 1, "a sleeping drive: a read waits for it")
    tap.ok(slowest < 100000, "a sleeping drive: the guest's registers answer", "%d us" % slowest)
    tap.ok(reset < 500, "a sleeping drive: and a reset is over at once", "%d ms" % reset)
    began = time.monotonic()
    tap.equal(client.do("cdb 36 120000002400")[0], "000000", "a sleeping drive: INQUIRY")
    tap.equal(client.do("cdb 0 000000000000")[0], "062900", "a sleeping drive: the reset's attention")
    tap.equal(client.do("cdb 0 1b0000000200")[0], "000000", "a sleeping drive: the guest's eject")
    tap.equal(client.do("cdb 0 000000000000")[0], "023a02", "a sleeping drive: has opened the guest's tray")
    ms = (time.monotonic() - began) * 1000
    tap.ok(ms < 500, "a sleeping drive: and these are answered at once", "%.0f ms" % ms)
    client.process.stdin.close()
    client.process.wait()
    began = time.monotonic()
    server.terminate()
    tap.equal(server.wait(10), 0, "a sleeping drive: the process ends")
    ms = (time.monotonic() - began) * 1000
    tap.ok(ms < 1000, "a sleeping drive: at once", "%.0f ms" % ms)
    drive.set(status_us=0, rate=0)
    tap.equal(place.leftovers(), [], "a sleeping drive: nothing is left")


def refused(tap, place, drive):
    """What may be said of passed commands."""
    start = ["--blockdev", "driver=file,node-name=disc,read-only=on,filename=" + drive.disc, "--vfio-user", place.tmp + "/cd"]
    status, _, err = place.run("spindled", *start, "--device", "ide-cd,drive=disc,passthrough=all")
    tap.equal((status, err), (1, "spindled: --device ide-cd,drive=disc,passthrough=all: Parameter 'passthrough' does not "
                                 "accept value 'all'\n"), "a policy that there is not")
    status, _, err = place.run("spindled", *start, "--device", "ide-hd,drive=disc,passthrough=safe")
    tap.equal((status, err), (1, "spindled: --device ide-hd,drive=disc,passthrough=safe: Property 'ide-hd.passthrough' not found\n"),
              "a disk passes no commands")
    server = place.start("spindled", *start, "--device", "ide-cd,drive=disc,passthrough=burn")
    place.wait_for(lambda: os.path.exists(place.tmp + "/cd"), "socket")
    server.terminate()
    err = server.communicate(timeout=10)[1]
    tap.equal(err, "spindled: warning: passthrough=burn has no effect: 'disc' is no CD/DVD drive of the host\n",
              "burning needs a drive")


def main():
    with Tap() as tap, Place() as place:
        if os.geteuid() != 0:
            tap.skip("reads of a host drive", "loop devices need root")
            return
        with SlowDrive(place.files, SIZE // 65536 * 65536) as drive:
            traced(tap, place, drive, "", "buffered")
            traced(tap, place, drive, ",cache.direct=on", "direct")
            counted(tap, place, drive)
            hanging(tap, place, drive)
            asleep(tap, place, drive)
            refused(tap, place, drive)


main()
