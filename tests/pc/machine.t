#!/usr/bin/env python3
"""Which machine -accel qtest means, what firmware finds in it, and how test programs are connected."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import Machine, Place, engine  # noqa: E402
from tap import Tap  # noqa: E402

STAND_IN = "#!%s\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"


class Done:
    """What a program that has ended left."""

    def __init__(self, process, lines=()):
        out = ""
        for line in lines:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            out += process.stdout.readline()
        if lines:  # the end of its input does not end it
            process.stdin.close()
            process.stdin = None
            process.send_signal(signal.SIGTERM)
        rest, self.stderr = process.communicate(timeout=30)
        self.stdout, self.returncode = out + rest, process.returncode

    def __repr__(self):
        return "%r, %r, %r" % (self.returncode, self.stdout, self.stderr)


def run(place, *args, env=None, lines=()):
    """Until it ends by itself, or was given the lines on its standard input and has answered each."""
    return Done(subprocess.Popen([place.spindle, "-display", "none", *args], cwd=place.folder, stdin=subprocess.PIPE, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}), lines)


def test_choice(tap, place):
    """QEMU runs what names something that the PC has not, word for word."""
    engine = place.path("stand-in")
    with open(engine, "w", encoding="ascii") as f:
        f.write(STAND_IN % sys.executable)
    os.chmod(engine, 0o755)
    env = {"SPINDLE_QEMU": engine}
    for args in (["-device", "floppy,id=f"], ["-machine", "isapc"], ["-fda", "a.img"], ["-drive", "if=virtio,file=a"], ["-device", "ide-hd,help"],
                 ["-device", '{"driver":"e1000","addr":"04.0"}'], ["-object", "rng-builtin,id=r"], ["-M", "help"], ["-readconfig", "a b.cfg"]):
        args += ["-qtest", "unix:a", "-accel", "qtest"]
        done = run(place, *args, env=env)
        what = " ".join(args[:2])
        tap.ok(done.returncode == 0 and json.loads(done.stdout) == ["-display", "none"] + args and
               "%s: not in Spindle's PC for -accel qtest" % what in done.stderr, "%s is QEMU's, the command line unchanged" % what, done)
    kvm = os.access("/dev/kvm", os.R_OK | os.W_OK)
    for args, own in ((["-accel", "kvm", "-accel", "qtest"], not kvm), (["-accel", "tcg", "-accel", "qtest"], False),
                      (["-accel", "qtest", "-accel", "tcg"], True), (["-machine", "accel=kvm:qtest"], not kvm),
                      (["-machine", "pc,accel=qtest"], True), (["-M", "accel=tcg:qtest"], False)):
        done = run(place, *args, "-qtest", "stdio", env=env, lines=["endianness"] if own else ())
        tap.equal(("OK little" in done.stdout, done.stdout.startswith("[")), (own, not own),
                  "%s: %s" % (" ".join(args), "the PC without a CPU" if own else "a machine with one"))


def cmos_boot(m):
    order = 0
    for i, register in enumerate((0x38, 0x3d)):
        m.outb(0x70, register)
        order |= m.inb(0x71) << 8 * i
    return order


def test_boot_order(tap, place):
    for args, first, later in (([], 0x1230, 0x1230), (["-no-fd-bootchk"], 0x1231, 0x1231), (["-boot", "c"], 0x0200, 0x0200),
                               (["-boot", "nda"], 0x3410, 0x3410), (["-boot", "order="], 0, 0), (["-boot", "once=a,order=c,menu=on"], 0x100, 0x200),
                               (["-boot", "once=d", "-boot", "order=nda"], 0x300, 0x3410)):
        with Machine(place, "-nodefaults", *args) as m:
            at_power_on = cmos_boot(m)
            m.qmp.must("system_reset")
            tap.equal((at_power_on, cmos_boot(m)), (first, later), "boot devices in CMOS: %s" % (" ".join(args) or "by default"))
    for boot, message in (("x", "Invalid boot device 'x'"), ("cc", "given twice"), ("abcd", "Too many"), ("e", "for PC: 'e'"),
                          ("menu=maybe", "menu"), ("nonsense=1", "nonsense"), ("reboot-timeout=70000", "reboot-timeout")):
        done = run(place, "-boot", boot, "-accel", "qtest")
        tap.ok(done.returncode == 1 and message in done.stderr and "-boot %s: " % boot in done.stderr, "-boot %s: %s" % (boot, message), done)


def firmware_items(m):
    """What firmware reads from ports 510h and 511h: some numbers, and the files that -boot makes."""
    def read(item, size):
        m.outw(0x510, item)
        return bytes(m.inb(0x511) for _ in range(size))
    found = {"item %d" % item: read(item, size) for item, size in ((0, 4), (2, 16), (3, 8), (4, 2), (5, 2), (14, 2), (15, 2))}
    directory = read(25, 4 + 64 * int.from_bytes(read(25, 4), "big"))
    for at in range(4, len(directory), 64):
        name = directory[at + 8:at + 64].split(b"\0")[0].decode()
        if name in ("etc/boot-fail-wait", "etc/boot-menu-wait"):
            found[name] = read(int.from_bytes(directory[at + 4:at + 6], "big"), int.from_bytes(directory[at:at + 4], "big"))
    return found


def test_firmware(tap, place):
    for args in ([], ["-uuid", "4600cb32-38ec-4b2f-8acb-81c6ea54f2d8"], ["-boot", "menu=on,splash-time=12"], ["-boot", "reboot-timeout=15", "-m", "1G"],
                 ["-boot", "reboot-timeout=-1", "-boot", "splash-time=65535"]):
        results = []
        for program in (engine(), None):
            with Machine(place, "-nodefaults", *args, program=program) as m:
                results.append(firmware_items(m))
        tap.equal(results[1], results[0], "firmware's items: %s" % (" ".join(args) or "by default"))
    done = run(place, "-uuid", "foo", "-accel", "qtest")
    tap.ok(done.returncode == 1 and "failed to parse UUID" in done.stderr, "-uuid foo is refused", done)


def ask(sock, *lines):
    """The answers to lines that are sent at once."""
    sock.settimeout(20)
    sock.sendall("".join(line + "\n" for line in lines).encode())
    file = sock.makefile("r")
    return [file.readline().rstrip("\n") for _ in lines]


def start(place, *args, **options):
    return subprocess.Popen([place.spindle, "-display", "none", "-nodefaults", *args, "-accel", "qtest"], cwd=place.folder,
                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **options)


def end(process):
    process.send_signal(signal.SIGTERM)
    return process.wait(30), process.stderr.read()


def listener(family, address):
    sock = socket.socket(family)
    sock.bind(address)
    sock.listen(1)
    sock.settimeout(20)
    return sock


def test_connections(tap, place):
    forms = []
    tcp = listener(socket.AF_INET, ("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    unix = listener(socket.AF_UNIX, place.path("q"))
    spaced = listener(socket.AF_UNIX, place.path("a name"))
    forms += [(tcp, ["-qtest", "tcp:127.0.0.1:%d" % port]), (tcp, ["-qtest", "tcp:localhost:%d,nodelay=on" % port]), (unix, ["-qtest", "unix:q"]),
              (spaced, ["-qtest", "unix:%s" % place.path("a name")]), (unix, ["-chardev", "socket,path=q,id=c", "-qtest", "chardev:c"]),
              (tcp, ["-qtest", "chardev:c", "-chardev", "socket,host=127.0.0.1,port=%d,id=c" % port])]
    for sock, args in forms:
        process = start(place, *args)
        client = sock.accept()[0]
        tap.equal(ask(client, "endianness", "inb 0x60"), ["OK little", "OK 0x00ff"], "connects to %s" % " ".join(args))
        tap.equal(end(process)[0], 0, "and ends with status 0")
        client.close()
    ours, theirs = socket.socketpair()
    with theirs:
        process = start(place, "-chardev", "socket,id=c,fd=%d" % theirs.fileno(), "-qtest", "chardev:c", pass_fds=[theirs.fileno()])
    tap.equal(ask(ours, "endianness"), ["OK little"], "a descriptor that was handed over")
    tap.equal(end(process)[0], 0, "and ends with status 0")
    server = listener(socket.AF_UNIX, place.path("fd"))
    process = start(place, "-chardev", "socket,id=c,server=on,wait=off,fd=%d" % server.fileno(), "-qtest", "chardev:c", pass_fds=[server.fileno()])
    for turn in ("first", "second"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(place.path("fd"))
            tap.equal(ask(client, "endianness"), ["OK little"], "a listening descriptor, its %s client" % turn)
    tap.equal(end(process)[0], 0, "and ends with status 0")
    for sock in (tcp, unix, spaced, server):
        sock.close()


def connect(path, process):
    """To a server that is just starting."""
    deadline = time.monotonic() + 20
    while True:
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.connect(path)
            return sock
        except OSError:
            sock.close()
            if time.monotonic() > deadline or process.poll() is not None:
                raise
            time.sleep(0.01)


def test_disconnects(tap, place):
    """Half lines, floods, clients that leave in the midst of an answer: the next one finds all in order."""
    path = place.path("server")
    process = start(place, "-qtest", "unix:%s,server=on,wait=off" % path, "-qtest-log", "none")
    for what, text in (("half a line", b"outb 0x70"), ("a command without its end of line", b"write 0x100000 0x1 0xff"), ("no line", b""),
                       ("bytes that are no text", bytes(range(128, 256)) + b"\0\n"), ("answers that nobody reads", b"read 0x0 0x10000\n" * 200)):
        with connect(path, process) as client:
            client.sendall(text)
        with connect(path, process) as client:
            tap.equal(ask(client, "readb 0x100000", "irq_intercept_in ioapic", "inw 0x1234"), ["OK 0x0000000000000000", "OK", "OK 0xffff"],
                      "after %s the next client is served" % what)
    with connect(path, process) as client:
        answers = ask(client, "", "  ", "inb", "inb 1 2", "outb 0x70 0x100000000000000000", "read 0 -1", "write 0 0x4 0xgg000000", "b64write 0 4 !!!!",
                      "memset 0 0x7fffffffffffffff 1", "readq zz", "clock_set -1", "irq_intercept_in", "x" * 5000)
        tap.ok(all(answer.startswith("FAIL ") for answer in answers), "wrong lines are answered one by one", answers)
        tap.equal(ask(client, "inw 0x1234\r"), ["OK 0xffff"], "a line end of two characters")
    tap.equal(end(process), (0, ""), "nothing is printed, status 0")


def test_log(tap, place):
    run(place, "-qtest", "stdio", "-qtest-log", "q.log", "-accel", "qtest", lines=["inb 0"])
    with open(place.path("q.log"), encoding="ascii") as f:
        tap.ok(re.match(r"\[I .*OPENED\n\[R .*inb 0\n\[S .*OK 0x", f.read()), "-qtest-log FILE tells what goes in and out")
    for args, expected in ((["-qtest-log", "/dev/fd/2"], r"\[R \+\d+\.\d{6}\] endianness\n\[S \+\d+\.\d{6}\] OK little\n"), ([], r"\[S .*OK little"),
                           (["-qtest-log", "none"], r"\A\Z"), (["-qtest-log", "/dev/null"], r"\A\Z")):
        done = run(place, "-qtest", "stdio", "-nodefaults", *args, "-accel", "qtest", lines=["endianness"])
        tap.ok(done.returncode == 0 and done.stdout == "OK little\n" and re.search(expected, done.stderr),
               "%s: over standard input" % (" ".join(args) or "without -qtest-log"), done)
    done = run(place, "-qtest", "stdio", "-qtest-log", "no/where", "-accel", "qtest")
    tap.ok(done.returncode == 1 and "no/where" in done.stderr, "a log that cannot be written is refused", done)
    done = run(place, "-qtest", "unix:first", "-qtest", "stdio", "-nodefaults", "-qtest-log", "none", "-accel", "qtest", lines=["endianness"])
    tap.equal((done.returncode, done.stdout), (0, "OK little\n"), "of two -qtest the last one counts, as on QEMU")
    for text, message in (("unix:nowhere", "nowhere"), ("tcp:127.0.0.1:1", "127.0.0.1:1"), ("tcp:x", "error parsing address"), ("chardev:c", "not found"),
                          ("pigeon", "not a valid char driver"), ("unix:" + "x" * 200, "too long")):
        done = run(place, "-qtest", text, "-accel", "qtest")
        tap.ok(done.returncode == 1 and message in done.stderr, "-qtest %s: %s" % (text[:20], message), done)


def test_first_questions(tap, place):
    """What test programs ask a machine without devices before they choose their tests."""
    with Machine(place, "-machine", "none") as m:
        tap.equal([t["name"] for t in m.qmp.must("query-machines")], ["pc", "q35", "none"], "query-machines")
        tap.equal(m.qmp.must("query-target"), {"arch": "x86_64"}, "query-target")

        def types(**args):
            return {t["name"] for t in m.qmp.must("qom-list-types", **args)}
        tap.equal(types(implements="ide-device"), {"ide-hd", "ide-cd"}, "qom-list-types of what an IDE bus takes")
        tap.equal(types() - types(implements="device"), set(), "all of them are devices")
        tap.equal(types(abstract=True) - types(), {"device", "pci-device", "ide-device"}, "abstract types only when asked for")
        tap.equal(types(implements="nonsense"), set(), "no type of an unknown kind")
    with Machine(place, "-nodefaults", "-blockdev", "null-co,node-name=n") as m:
        cases = ((None, "return"), ("io0", "Cannot find iothread io0"), (5, "Invalid parameter type"))
        for thread, expected in cases:
            answer = m.qmp.run("x-blockdev-set-iothread", node_name="n", iothread=thread, force=True)
            tap.ok(expected in answer or expected in answer.get("error", {}).get("desc", ""), "x-blockdev-set-iothread to %s: %s" % (thread, expected), answer)


TESTS = (test_first_questions, test_firmware, test_choice, test_boot_order, test_connections, test_disconnects, test_log)

with Tap() as tap, Place() as place:
    for test in TESTS:
        test(tap, place)
