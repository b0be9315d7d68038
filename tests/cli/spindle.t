#!/usr/bin/env python3
"""The emulator command line as a process: what it starts, hands on and leaves, with a stand-in for QEMU and with QEMU."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import Place, engine
from tap import Tap

# Prints its arguments, connects to the sockets named in them, tells its descriptors, and waits.
STAND_IN = r"""#!%s
import json, os, socket, sys, time
if "vfio-user-pci,help" in sys.argv:
    print("vfio-user-pci options:\n  socket=<SocketAddress>" if %r else "no such device")
    sys.exit(0)
peers = []
for argument in sys.argv[1:]:
    if '"vfio-user-pci"' in argument:
        peers.append(socket.socket(socket.AF_UNIX))
        peers[-1].connect(json.loads(argument)["socket"]["path"])
print(json.dumps({"argv": sys.argv[1:], "pid": os.getpid(), "fds": sorted(int(f) for f in os.listdir("/proc/self/fd"))}))
sys.stdout.flush()
time.sleep(60 if peers else 0)
"""


def stand_in(place, name="qemu", has_device=True):
    return place.write(name, (STAND_IN % (sys.executable, has_device)).encode(), 0o755)


def report(process):
    return json.loads(process.stdout.readline())


def drives(place):
    return [pid for pid, line in place.processes().items() if line.startswith("spindled ")]


def check_untouched(tap, place):
    env = {"SPINDLE_QEMU": stand_in(place)}
    for args in (["-drive", "file=a.iso,if=virtio", "-m", "1G"], ["-device", "virtio-rng-pci", "", "-x"], ["-machine", "none", "-cdrom", "a.iso"],
                 ["--version"], ["-cdrom", "a.iso", "-help"], ["-cdrom", "image.qcow2"]):
        status, out, err = place.run("spindle", *args, env=env)
        tap.equal((status, json.loads(out)["argv"], err), (0, args, ""), "reaches QEMU as it is: " + " ".join(args))
    tap.equal(place.leftovers(), [], "and nothing else is started")


def check_processes(tap, place):
    with open(place.path("a.iso")) as extra:
        os.set_inheritable(extra.fileno(), True)
        process = place.start("spindle", "-cdrom", "a.iso", "-device", "ide-cd", env={"SPINDLE_QEMU": stand_in(place)},
                              pass_fds=[extra.fileno()])
        seen = report(process)
        tap.equal(seen["pid"], process.pid, "QEMU is the process that was started")
        tap.ok(extra.fileno() in seen["fds"], "it has the descriptors that were handed to it", seen)
        pids = drives(place)
        tap.equal(len(pids), 1, "one drive process, called spindled")
        opened = [os.readlink("/proc/%d/fd/%s" % (pids[0], f)) for f in os.listdir("/proc/%d/fd" % pids[0])]
        files = [f for f in opened if f.startswith("/") and f != "/dev/null"]
        tap.equal(files, [place.path("a.iso")], "it has the disc open, once, and no other file")
        folders = os.listdir(place.tmp)
        tap.equal(len(folders), 1, "one folder for the sockets")
        mode = os.stat(os.path.join(place.tmp, folders[0])).st_mode & 0o777
        tap.equal(mode, 0o700, "for nobody else")
        with open("/proc/%d/comm" % pids[0]) as f:
            tap.equal(f.read(), "spindled\n", "its name in the process table")
        tap.ok(os.getsid(pids[0]) == pids[0], "no signal of the terminal reaches it")
        process.kill()
        process.wait()
    left = place.leftovers()
    tap.ok(not left, "it ends with QEMU", *left)


def check_killed(tap, place):
    """What nobody was left to remove, the next start removes; and nothing of a machine that lives."""
    env = {"SPINDLE_QEMU": stand_in(place)}
    living = place.start("spindle", "-cdrom", "a.iso", env=env)
    report(living)
    kept = os.listdir(place.tmp)
    killed = place.start("spindle", "-cdrom", "a.iso", env=env)
    report(killed)
    for pid in [p for p in drives(place) if "spindle-%d-" % killed.pid in place.processes()[p]] + [killed.pid]:
        os.kill(pid, signal.SIGKILL)
    killed.wait()
    # Of a machine whose process id is another's, but whose sockets are in use.
    foreign = os.path.join(place.tmp, "spindle-%d-00000000" % killed.pid)
    os.mkdir(foreign)
    with socket.socket(socket.AF_UNIX) as used:
        used.bind(foreign + "/ide.sock")
        used.listen(1)
        tap.equal(len(os.listdir(place.tmp)), 3, "a drive process that was killed leaves its folder")
        following = place.start("spindle", "-cdrom", "a.iso", env=env)
        report(following)
        names = set(os.listdir(place.tmp)) - {os.path.basename(foreign)}
        tap.equal(len([n for n in names if n.startswith("spindle-%d-" % killed.pid)]), 0, "the next start removes it")
        tap.ok(set(kept) <= names, "and not the folder of a machine that lives", names)
        tap.ok(os.path.exists(foreign + "/ide.sock"), "nor one whose sockets are in use")
    os.unlink(foreign + "/ide.sock")
    os.rmdir(foreign)
    for process in (living, following):
        process.kill()
        process.wait()
    tap.equal(place.leftovers(), [], "and they go with their machines")


def check_descriptors(tap, place):
    few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 12))
    for program in ("spindle", "spindled"):
        status, out, err = place.run(program, "--device", "ide-cd", preexec_fn=few)
        tap.ok(status == 1 and not out and err.startswith(program + ": Too few file descriptors"),
               program + ": says that it may open too few files", status, err)
    soft = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (12, 4096))
    got = place.run("spindle", "-cdrom", "nofile.iso", preexec_fn=soft)
    tap.ok(got[0] == 1 and "nofile.iso" in got[2], "a soft limit is raised", got)


def ids_of(pid):
    """Real, effective, saved and file system's; users, then groups, then further groups."""
    with open("/proc/%d/status" % pid) as f:
        return re.findall(r"^(?:Uid|Gid|Groups):[ \t]*(.*?)[ \t]*$", f.read(), re.M)


def check_run_with(tap, place):
    """The drive process gives up root as QEMU does, once the images, which only root may read, are open."""
    status, _, err = place.run("spindle", "-run-with", "user=nosuch", "-cdrom", "a.iso")
    tap.ok(status == 1 and "-run-with user=nosuch: User " in err and "doesn't exist (and is not <uid>:<gid>)" in err,
           "-run-with user=: one that there is not", err)
    if os.geteuid() != 0:
        tap.skip("-run-with user=", "only root can become another user")
        return
    os.chmod(place.path("a.iso"), 0o600)
    os.chmod(place.tmp, 0o1777)
    env = {"SPINDLE_QEMU": stand_in(place)}
    for option, before, user, uid, gid in (("-run-with", "async-teardown=off,user=", "nobody", 65534, 65534),
                                           ("--run-with", "async-teardown=off,user=", "12345:54321", 12345, 54321), ("-runas", "", "nobody", 65534, 65534)):
        process = place.start("spindle", option, before + user, "-cdrom", "a.iso", env=env)
        seen = report(process)
        tap.equal(seen["argv"][:2], [option, before + user], user + ": QEMU gets the option, too")
        ids = ids_of(drives(place)[0])
        tap.equal([line.split() for line in ids], [[str(uid)] * 4, [str(gid)] * 4, [str(gid)]], user + ": the drive process is that")
        process.kill()
        process.wait()
        tap.equal(place.leftovers(), [], user + ": and leaves nothing")
    os.chmod(place.tmp, 0o700)
    os.chmod(place.path("a.iso"), 0o644)


def check_daemonize(tap, place):
    started = time.monotonic()
    got = place.run("spindle", "-cdrom", "a.iso", "-display", "none", "-S", "-daemonize", "-pidfile", "../tmp/pid")
    tap.equal(got, (0, "", ""), "-daemonize returns, with nobody holding its output (%.1f s)" % (time.monotonic() - started))
    tap.equal(len(drives(place)), 1, "-daemonize: the drive process is there")
    before = sorted(os.listdir(place.tmp))
    other = place.start("spindle", "-cdrom", "a.iso", env={"SPINDLE_QEMU": stand_in(place)})
    report(other)
    other.kill()
    other.wait()
    place.wait_for(lambda: len(drives(place)) == 1, "end of the other machine")
    place.wait_for(lambda: sorted(os.listdir(place.tmp)) == before, "end of its folder")
    tap.ok(True, "-daemonize: its folder is left alone, though it has the name of a process that is gone")
    with open(place.tmp + "/pid") as f:
        os.kill(int(f.read()), signal.SIGTERM)
    left = place.leftovers()
    tap.ok(not left, "-daemonize: SIGTERM to QEMU leaves nothing", *left)


def check_engine_fails(tap, place):
    status, _, err = place.run("spindle", "-cdrom", "a.iso", "-display", "none", "-device", "nonsense")
    tap.ok(status == 1 and "'nonsense' is not a valid device model name" in err, "QEMU's own mistakes are QEMU's to tell", err)
    left = place.leftovers()
    tap.ok(not left, "and then nothing is left", *left)


def installed(place):
    """A copy far from the source tree."""
    os.makedirs(place.path("bin"), exist_ok=True)
    return shutil.copy(Place.program("spindle"), place.path("bin/spindle"))


def check_installed(tap, place):
    program = installed(place)
    stand_in(place, "bin/qemu-system-x86_64")
    env = {"SPINDLE_QEMU": None, "PATH": place.path("bin")}
    process = place.start(program, "-cdrom", "a.iso", env=env)
    seen = report(process)
    tap.equal(len(drives(place)), 1, "installed: finds QEMU in PATH, and its drive process")
    tap.ok(any("vfio-user-pci" in a for a in seen["argv"]), "installed: attaches it", seen)
    process.kill()
    process.wait()
    tap.equal(place.leftovers(), [], "installed: nothing is left")
    stand_in(place, "bin/qemu-system-x86_64", has_device=False)
    status, _, err = place.run(program, "-cdrom", "a.iso", env=env)
    tap.ok(status == 1 and "has no vfio-user-pci device" in err and "SPINDLE_QEMU" in err,
           "a QEMU without vfio-user-pci is named, with the remedy", err)
    tap.equal(place.run(program, "-drive", "file=x,if=virtio", env=env)[0], 0, "but it will do where there is no drive to attach")
    os.unlink(place.path("bin/qemu-system-x86_64"))
    os.symlink("spindle", place.path("bin/qemu-system-x86_64"))
    status, _, err = place.run(place.path("bin/qemu-system-x86_64"), "-cdrom", "a.iso", env=env)
    tap.ok(status == 1 and "No qemu-system-x86_64 in PATH" in err, "under QEMU's name it does not find itself", err)
    tap.equal(place.leftovers(), [], "and nothing is left")


def check_folder(tap, place):
    env = {"SPINDLE_QEMU": stand_in(place), "XDG_RUNTIME_DIR": place.tmp + "/" + "x" * 100, "TMPDIR": place.tmp}
    os.mkdir(env["XDG_RUNTIME_DIR"])
    process = place.start("spindle", "-cdrom", "a.iso", env=env)
    tap.ok(report(process), "a runtime folder whose name is too long for a socket is passed over")
    process.kill()
    process.wait()
    os.rmdir(env["XDG_RUNTIME_DIR"])
    tap.equal(place.leftovers(), [], "and nothing is left there")


def check_probe(tap, place):
    """What libvirt asks an emulator before it uses it."""
    path = place.tmp + "/qmp"
    got = place.run("spindle", "-S", "-no-user-config", "-nodefaults", "-nographic", "-machine", "none,accel=kvm:tcg", "-qmp",
                    "unix:%s,server=on,wait=off" % path, "-pidfile", place.tmp + "/pid", "-daemonize")
    tap.equal((got[0], got[1]), (0, ""), "libvirt's probe: starts")
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(10)
        s.connect(path)
        tap.ok(b'"QMP"' in s.recv(4096), "libvirt's probe: QEMU answers")
        s.sendall(b'{"execute":"qmp_capabilities"}{"execute":"quit"}')
        while s.recv(4096):
            pass
    left = place.leftovers()
    tap.ok(not left, "libvirt's probe: nothing is left", *left)


with Tap() as tap, Place() as place:
    engine()
    place.write("a.iso", bytes(1 << 20))
    place.write("image.qcow2", b"QFI\xfb" + bytes(65536))
    check_untouched(tap, place)
    check_processes(tap, place)
    check_killed(tap, place)
    check_descriptors(tap, place)
    check_run_with(tap, place)
    check_daemonize(tap, place)
    check_engine_fails(tap, place)
    check_installed(tap, place)
    check_folder(tap, place)
    check_probe(tap, place)
