#!/usr/bin/env python3
"""The drive process by itself: its help, start, daemon, pidfile, sockets, and its end."""

import os
import re
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import ROOT, Place, engine
from tap import Tap


def check_help(tap, place):
    status, text, err = place.run("spindled", "--help")
    tap.equal((status, err), (0, ""), "--help: exit status, no message")
    with open(os.path.join(ROOT, "system", "drive-options.c")) as f:
        names = re.findall(r'\{"([\w-]+)", DRIVE_OPTION_', f.read())
    helped = set(re.findall(r"(?:^  |, )--?([\w-]+)", text, re.M))
    missing = [name for name in names if name not in helped]
    tap.ok(names and not missing, "--help has every option", missing)
    with open(os.path.join(ROOT, "docs", "spindled.rst")) as f:
        page = f.read()
    shown = set(re.findall(r"``--?([\w-]+)", page))
    tap.equal(sorted(set(names) - shown), [], "the manual page has every option")
    tap.equal(sorted(n for n in re.findall(r"^``--?([\w-]+)", page, re.M) if n not in names), [],
              "the manual page has no other option")
    status, text, err = place.run("spindled", "--version")
    tap.ok(status == 0 and re.fullmatch(r"spindled version [\d.]+\n", text), "--version", text, err)
    tap.equal(place.run("spindled", "-h")[1], place.run("spindled", "--help")[1], "-h is --help")


def check_device_help(tap, place):
    status, text, err = place.run("spindled", "--device", "help")
    tap.equal((status, re.findall(r'^name "([\w-]+)", bus IDE', text, re.M), err), (0, ["ide-cd", "ide-hd"], ""), "--device help")
    more = {"ide-cd": {("bus", "str"), ("passthrough", "str")}, "ide-hd": {("bus", "str")}}
    for driver in ("ide-cd", "ide-hd"):
        status, text, err = place.run("spindled", "--device", driver + ",help")
        reference = place.run(engine(), "-machine", "none", "-device", driver + ",help")[1]
        ours, theirs = (re.findall(r"^  ([\w-]+)=<(\w+)>(?:.*\(default: (.*)\))?", t, re.M) for t in (text, reference))
        extra = {(name, kind) for name, kind, _ in set(ours) - set(theirs)}
        tap.ok(status == 0 and len(theirs) > 15 and set(theirs) <= set(ours) and extra == more[driver],
               "--device %s,help: QEMU's properties with their defaults, and Spindle's own" % driver, text, reference)
    status, text, err = place.run("spindled", "--device", "scsi-cd,help")
    tap.equal((status, text, "'scsi-cd' is not a valid device model name" in err), (1, "", True), "--device scsi-cd,help: refused")


def connects(path):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(path)
            return True
        except OSError:
            return False


def check_end(tap, place, number):
    name = signal.Signals(number).name
    process = place.start("spindled", "--blockdev", "driver=file,filename=a.iso,node-name=cd,read-only=on",
                          "--vfio-user", "path=" + place.tmp + "/s", "--device", "ide-cd,drive=cd",
                          "--pidfile", place.tmp + "/pid")
    place.wait_for(lambda: os.path.exists(place.tmp + "/pid"), "pidfile")
    with open(place.tmp + "/pid") as f:
        tap.equal(f.read(), "%d\n" % process.pid, name + ": the pidfile before")
    tap.ok(connects(place.tmp + "/s"), name + ": the socket takes connections before")
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    tap.equal((process.returncode, out, err), (0, "", ""), name + ": ends with status 0, silent")
    left = place.leftovers()
    tap.ok(not left, name + ": socket and pidfile are gone", *left)


def check_daemon(tap, place):
    got = place.run("spindled", "--daemonize", "--pidfile", "../tmp/pid", "--vfio-user", "../tmp/s", "--device", "ide-cd")
    tap.equal(got, (0, "", ""), "--daemonize: returns with status 0")
    # No waiting: readiness is what the return means.
    tap.ok(connects(place.tmp + "/s"), "--daemonize: the socket takes connections")
    with open(place.tmp + "/pid") as f:
        pid = int(f.read())
    tap.equal(list(place.processes()), [pid], "--daemonize: the pidfile names the process")
    tap.equal(os.readlink("/proc/%d/cwd" % pid), "/", "--daemonize: it keeps no folder in use")
    tap.equal({os.readlink("/proc/%d/fd/%d" % (pid, fd)) for fd in range(3)}, {"/dev/null"}, "--daemonize: standard streams")
    tap.equal(os.getsid(pid), pid, "--daemonize: a session of its own")
    os.kill(pid, signal.SIGTERM)
    left = place.leftovers()
    tap.ok(not left, "--daemonize: SIGTERM leaves nothing, with paths relative to the folder it started in", *left)
    status, _, err = place.run("spindled", "--daemonize", "--vfio-user", "../tmp/s", "--blockdev",
                               "driver=file,filename=none,node-name=x")
    tap.equal((status, err), (1, "spindled: --blockdev driver=file,filename=none,node-name=x: Could not open 'none': "
                                 "No such file or directory\n"), "--daemonize: a mistake is told and returned")
    tap.ok(not place.leftovers(), "--daemonize: after a mistake nothing is left")


def check_pidfile(tap, place):
    path = place.write("pid", b"4711 and more text\n")
    process = place.start("spindled", "--pidfile", path, "--vfio-user", place.tmp + "/s", "--device", "ide-cd")
    place.wait_for(lambda: connects(place.tmp + "/s"), "socket")
    place.wait_for(lambda: os.path.getsize(path) < 10, "pidfile")
    status, _, err = place.run("spindled", "--pidfile", path, "--vfio-user", place.tmp + "/t", "--device", "ide-cd")
    tap.equal((status, err), (1, "spindled: cannot lock PID file '%s': Resource temporarily unavailable\n" % path),
              "--pidfile: another process's is refused")
    with open(path) as f:
        tap.equal(f.read(), "%d\n" % process.pid, "--pidfile: and stays as it is")
    os.unlink(path)
    place.write("pid", b"of another program")
    process.terminate()
    process.wait(10)
    tap.ok(os.path.exists(path), "--pidfile: a file that took its place stays")
    os.unlink(path)

    # What is no file, such as /dev/null, was there before and has to stay.
    os.mkfifo(path)
    status, _, err = place.run("spindled", "--pidfile", path, "--vfio-user", place.tmp + "/s", timeout=10)
    tap.equal((status, err), (1, "spindled: cannot create PID file '%s': No such device or address\n" % path),
              "--pidfile: a FIFO that nobody reads is not waited for")
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    process = place.start("spindled", "--pidfile", path, "--vfio-user", place.tmp + "/s", "--device", "ide-cd")
    place.wait_for(lambda: connects(place.tmp + "/s"), "socket")
    place.wait_for(lambda: status_of(process.pid)["Seccomp"] == "2", "start")
    process.terminate()
    process.wait(10)
    tap.equal(os.read(reader, 100), b"%d\n" % process.pid, "--pidfile: a FIFO gets the text")
    tap.ok(os.path.exists(path), "--pidfile: and is not removed")
    os.close(reader)
    os.unlink(path)
    tap.ok(not place.leftovers(), "--pidfile: nothing is left", *place.leftovers())


def check_modules(tap, place):
    """Built programs find the modules that were built with them: opening gets as far as the source."""
    status, _, err = place.run("spindled", "--blockdev", "driver=http,node-name=h,read-only=on,url=http://127.0.0.1:1/x.iso")
    tap.ok(status == 1 and "Failed to connect" in err or "refused" in err, "the module for URLs is found", err)
    status, _, err = place.run("spindled", "--object", "secret,id=s,data=x", "--blockdev",
                               "driver=luks,node-name=l,key-secret=s,file.driver=file,file.filename=a.iso,read-only=on")
    tap.ok(status == 1 and "module" not in err and "LUKS" in err, "the module for encrypted images is found", err)
    status, _, err = place.run("spindle", "-cdrom", "http://127.0.0.1:1/x.iso")
    tap.ok(status == 1 and "module" not in err, "the emulator command line's drive process finds it", err)


def check_sockets(tap, place):
    path = os.path.join(place.tmp, "s")
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(path)
    process = place.start("spindled", "--vfio-user", path, "--device", "ide-cd")
    place.wait_for(lambda: connects(path), "connection")
    tap.ok(True, "a stale socket is replaced")
    status, _, err = place.run("spindled", "--vfio-user", path)
    tap.ok(status == 1 and path in err and err.startswith("spindled: --vfio-user " + path + ": "),
           "a live socket is refused, with its name", err)
    tap.ok(connects(path), "and stays its owner's")
    process.terminate()
    process.wait(10)
    plain = place.write("plain", b"text")
    status, _, err = place.run("spindled", "--vfio-user", plain)
    with open(plain, "rb") as f:
        tap.ok(status == 1 and plain in err and f.read() == b"text", "a file that is no socket stays", err)
    long = os.path.join(place.tmp, "x" * 120)
    status, _, err = place.run("spindled", "--vfio-user", long)
    tap.ok(status == 1 and long in err, "a path that is too long is refused", err)
    left = place.leftovers()
    tap.ok(not left, "no socket is left", *left)


def check_lifeline(tap, place):
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    os.mkdir(place.tmp + "/own")
    process = place.start("spindled", "--lifeline", "fd=%d,folder=%s/own" % (fd, place.tmp),
                          "--vfio-user", place.tmp + "/own/s", "--device", "ide-cd", pass_fds=[fd])
    theirs.close()
    ours.settimeout(10)
    tap.equal(ours.recv(100), b"ready\n", "--lifeline: says when it is ready")
    tap.ok(connects(place.tmp + "/own/s"), "--lifeline: and is")
    ours.close()
    tap.equal(process.wait(10), 0, "--lifeline: the process ends with the other end")
    tap.ok(not place.leftovers(), "--lifeline: socket and folder are gone", *place.leftovers())
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    process = place.start("spindled", "--lifeline", "fd=%d" % fd, "--vfio-user", "path=", pass_fds=[fd])
    theirs.close()
    tap.equal(ours.recv(100), b"error 3 Parameter 'path' is missing", "--lifeline: says which option is wrong")
    out, err = process.communicate(timeout=10)
    tap.equal((process.returncode, out, err), (1, "", ""), "--lifeline: and leaves the message to the other end")
    ours.close()


def check_sandbox(tap, place):
    for choice, seccomp in (("on", "2"), ("off", "0")):
        process = place.start("spindled", "--sandbox", choice, "--vfio-user", place.tmp + "/s", "--device", "ide-cd",
                              "--pidfile", place.tmp + "/pid")
        place.wait_for(lambda: connects(place.tmp + "/s"), "socket")
        place.wait_for(lambda: status_of(process.pid)["Seccomp"] == seccomp, "--sandbox %s in force" % choice)
        tap.equal(status_of(process.pid)["NoNewPrivs"], "1" if choice == "on" else "0", "--sandbox " + choice)
        process.terminate()
        process.wait(10)
    status, _, err = place.run("spindled", "--sandbox", "perhaps")
    tap.equal((status, err), (1, "spindled: --sandbox perhaps: Parameter 'sandbox' expects 'on' or 'off'\n"),
              "--sandbox with another word")


def status_of(pid):
    with open("/proc/%d/status" % pid) as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def check_trace(tap, place):
    status, text, _ = place.run("spindled", "-d", "help")
    tap.ok(status == 0 and "block_open" in text, "-d help lists trace points", text)
    process = place.start("spindled", "-d", "trace:block_open", "-D", "trace.log", "--blockdev",
                          "driver=file,filename=a.iso,node-name=cd,read-only=on", "--vfio-user", place.tmp + "/s",
                          "--device", "ide-cd,drive=cd")
    place.wait_for(lambda: os.path.exists(place.tmp + "/s"), "socket")
    process.terminate()
    process.wait(10)
    with open(place.path("trace.log")) as f:
        text = f.read()
    tap.ok(re.search(r"block_open .*cd", text), "-d trace:PATTERN -D FILE: the trace is there", text)


with Tap() as tap, Place() as place:
    place.write("a.iso", bytes(1 << 20))
    check_help(tap, place)
    check_device_help(tap, place)
    check_end(tap, place, signal.SIGTERM)
    check_end(tap, place, signal.SIGINT)
    check_daemon(tap, place)
    check_pidfile(tap, place)
    check_modules(tap, place)
    check_sockets(tap, place)
    check_lifeline(tap, place)
    check_sandbox(tap, place)
    check_trace(tap, place)
