#!/usr/bin/env python3
"""The QMP server: negotiation, errors, malformed and endless input, clients that do not read; and the qtest protocol's answers."""

import os
import re
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from qtestpc import Ahci, Machine, Place, Qmp, engine  # noqa: E402
from tap import Tap  # noqa: E402

MIB = 1 << 20


def test_protocol(tap, place):
    with Machine(place, "-m", "384", "-nodefaults") as m:
        cases = [("endianness", "OK little"), ("nonsense", "FAIL Unknown command 'nonsense'"), ("inb", None), ("inb zz", None),
                 ("inw 0x1234", "OK 0xffff"), ("irq_intercept_in nobody", "FAIL Unknown device"), ("irq_intercept_in ioapic", "OK"),
                 ("write 0x100000 0x4 0x01020304", "OK"), ("read 0x100000 0x4", "OK 0x01020304"),
                 ("write 0x100000 0x4 0x0506", "OK"), ("readq 0x100000", "OK 0x0000000000000605"),
                 ("memset 0x100000 0x3 0x7", "OK"), ("memset 0x100000 0x0 0x7", "OK"), ("b64read 0x100000 0x4", "OK BwcHAA=="),
                 ("b64write 0x100000 0x4 AQIDBA==", "OK"), ("b64write 0x100000 0x8 AQIDBA==", None),
                 ("readl 0x100000", "OK 0x0000000004030201"), ("readq 0xf0000000000", "OK 0x0000000000000000"),
                 ("read 0x100000 0xffffffffffff", None), ("clock_step 100", "OK 100"), ("clock_set 1000", "OK 1000"),
                 ("clock_set 5", "FAIL 1000"), ("clock_step 0", "FAIL could not advance time"), ("", "FAIL Unknown command ''")]
        for line, expected in cases:
            answer = m.raw(line)
            if expected is None:
                tap.ok(answer.startswith("FAIL "), "'%s' fails: %s" % (line[:40], answer))
            else:
                tap.equal(answer, expected, "'%s' answers %s" % (line[:40], expected))
        m.outw(0x510, 3)
        tap.equal(sum(m.inb(0x511) << 8 * i for i in range(8)), 384 * MIB, "fw_cfg item 3 is the size of -m")
        data = os.urandom(256 * 1024)
        m.write(0x200000, data)
        tap.ok(m.read(0x200000, len(data)) == data, "256 KiB of base64 there and back")
        status, seconds = m.close()
        tap.ok(status == 0 and seconds < 2, "SIGTERM ends it with status 0 at once", status, seconds)


def client(place, path, *args):
    m = Machine(place, "-nodefaults", "-qmp", "unix:%s,server=on,wait=off" % path, *args)
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(20)
    sock.connect(path)
    return m, sock


def test_messages(tap, place):
    m, sock = client(place, place.path("a.sock"))
    with m, sock:
        qmp = Qmp(sock)
        tap.ok("QMP" in qmp.greeting, "the greeting")

        def say(text):
            sock.sendall(text.encode())
            answer = qmp.answer()
            return answer.get("error", {}).get("class", "return"), answer
        cases = [('{"execute":"query-status"}', "CommandNotFound"), ('{"execute":"qmp_capabilities","arguments":{"enable":["oob"]}}',
                 "GenericError"), ('{"execute":"qmp_capabilities"}', "return"), ('{"execute":"qmp_capabilities"}', "CommandNotFound"),
                 ('{"execute":"query-status"}{"execute":"query-name"}', "return"), ("", "return"), ("{'execute':'query-status'}", "return"),
                 ("[1]", "GenericError"), ("42\n", "GenericError"), ("}", "GenericError"), ('{"execute":5}', "GenericError"),
                 ('{"a":1}', "GenericError"), ('{"execute":"query-status","arguments":[]}', "GenericError"),
                 ('{"execute":"query-status","x":1}', "GenericError"), ('{"execute":"nothing"}', "CommandNotFound"),
                 ('{"execute":"query-status","arguments":{"a":1}}', "GenericError"), ('{"execute":"a\n', "GenericError"),
                 ('{"execute":"query-status",}', "GenericError"), ('{"execute":"blockdev-open-tray","arguments":{"id":5}}', "GenericError"),
                 ('{"execute":"blockdev-open-tray","arguments":{"id":"x"}}', "DeviceNotFound"), ("[" * 3000 + "]" * 3000, "GenericError"),
                 ('{"execute":"query-status"}', "return")]
        for text, expected in cases:
            got = say(text)
            tap.equal(got[0], expected, "%s: %s" % (text[:60].replace("\n", "\\n") or "the second of two", expected))
        tap.equal(say('{"execute":"nothing","id":[1,{"a":null}]}')[1].get("id"), [1, {"a": None}], "any id comes back")


def rss(process):
    with open("/proc/%d/status" % process.pid, encoding="ascii") as f:
        return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1)) // 1024


def test_floods(tap, place):
    m, sock = client(place, place.path("b.sock"))
    with m, sock:
        first = rss(m.process)
        chunk = b'{"execute":"' + b"a" * 65536
        ended = False
        try:
            for _ in range(4096):
                sock.sendall(chunk[12:] if _ else chunk)
        except OSError:
            ended = True
        tap.ok(ended, "a value without an end is broken off")
        tap.ok(rss(m.process) < first + 64, "it cost no more than 64 MiB", rss(m.process), first)
    m, sock = client(place, place.path("c.sock"))
    with m, sock:
        first = rss(m.process)
        sock.sendall(b'{"execute":"qmp_capabilities"}')
        sock.settimeout(1)
        sent = 0
        try:
            while sent < 64 * MIB:
                sent += sock.send(b'{"execute":"query-commands"}' * 100)
        except OSError:
            pass
        for _ in range(2000):
            m.qmp.must("stop")
            m.qmp.must("cont")
        tap.ok(sent < 64 * MIB, "a client that does not read is not listened to either")
        tap.ok(rss(m.process) < first + 64, "it cost no more than 64 MiB", rss(m.process), first)
        tap.equal(m.inb(0x1f7), 0, "others are served")


def test_console(tap, place):
    done = subprocess.run([place.spindle, "-display", "none", "-nodefaults", "-accel", "qtest", "-monitor", "stdio"], cwd=place.folder, timeout=20,
                          input="info status\nstop\ninfo status\nsystem_reset\nquit\n", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tap.ok(done.returncode == 0 and not done.stderr and "VM status: running\n" in done.stdout and "VM status: paused\n" in done.stdout,
           "-monitor stdio: the human monitor", done)


def test_refusals(tap, place):
    place.image("x.qcow2", 65536, b"QFI\xfb\0\0\0\3")
    cases = [(("-drive", "file=x.qcow2,if=ide,format=qcow2"), "qcow2.*raw"), (("-hda", "x.qcow2"), "qcow2.*raw"),
             (("-hda", "nowhere.img"), "Could not open 'nowhere.img': No such file"), (("-device", "ide-hd"), "No drive specified|empty"),
             (("-device", "ide-hd,drive=zz"), "can't find value 'zz'"), (("-machine", "microvm"), "unsupported machine type"),
             (("-device", "virtio-blk-pci"), "virtio-blk-pci"), (("-bogus",), "invalid option"),
             (("-drive", "file=null-co://,if=virtio"), "if=virtio")]
    for args, pattern in cases:
        done = subprocess.run([place.spindle, "-display", "none", *args, "-accel", "qtest"], cwd=place.folder, timeout=20,
                              env={**os.environ, "SPINDLE_QEMU": place.path("no-qemu")}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        tap.ok(done.returncode == 1 and re.search(pattern, done.stdout), "%s is refused: %s" % (" ".join(args), pattern), done.stdout)


DRIVE_LINES = ("drive_add 0 if=none,id=drive0", "drive_del drive0", "drive_del drive0", "drive_add 0 if=ide,id=x", "drive_add 0 if=scsi",
               "drive_add 0 if=none,id=drive0,file=null-co://,file.read-zeroes=on,format=raw", "drive_del drive0", "drive_add 0", "drive_add",
               "drive_add 0 if=none,file=/nowhere,format=raw,id=zz", "drive_add 0 if=none,id=g,file=NEW,format=raw", "drive_del g",
               "drive_add -n 0 driver=null-co,node-name=nn", "drive_del nn", "drive_del node", "drive_del hd", "drive_del d0", "drive_del d0",
               "drive_del c0", "info block", "drive_add 0 if=none,id=again,file=DISK,format=raw", "drive_del again")


def drive_commands(place, program, disk, iso, new):
    """What the lines answer, and what the guest finds where its drives' images were taken away."""
    with Machine(place, "-M", "q35", "-nodefaults", "-blockdev", "driver=null-co,node-name=node", "-drive", "if=none,id=d0,file=%s,format=raw,werror=stop" %
                 disk, "-device", "ide-hd,drive=d0,id=hd,bus=ide.0", "-drive", "if=none,id=c0,media=cdrom,format=raw,file=%s" % iso, "-device",
                 "ide-cd,drive=c0,id=cd,bus=ide.1", program=program) as m:
        answers = [(line, m.qmp.hmp(line.replace("NEW", new).replace("DISK", disk))) for line in DRIVE_LINES]
        ahci = Ahci(m, 0)
        memory = m.alloc(4096)
        answers += [("%s afterwards: error" % name, ahci.run(code, [(memory, 512)], code == 0x35, 0, 1)[0] & 0x81)
                    for name, code in (("READ DMA EXT", 0x25), ("WRITE DMA EXT", 0x35))]
        answers.append(("the machine runs on", m.qmp.must("query-status")["status"]))
        answers.append(("query-block has no image", [("inserted" in b, b["qdev"]) for b in m.qmp.must("query-block")]))
        return answers


def test_drive_add(tap, place):
    images = place.image("a.img", MIB), place.image("c.iso", MIB), place.image("n.img", MIB)
    theirs, ours = drive_commands(place, engine(), *images), drive_commands(place, None, *images)
    for (line, expected), (_, got) in zip(theirs, ours):
        tap.equal(got, expected, line)
    with Machine(place, "-machine", "none", "-drive", "if=none,id=drive0") as m:
        tap.equal([m.qmp.hmp(line) for line in ("drive_del drive0", "drive_add 0 if=none,id=drive0", "drive_add 0 if=none,id=drive0")],
                  ["", "OK\r\n", "Error: Duplicate ID 'drive0' for drive\r\n"], "a drive of the command line goes, and its name is free")


TESTS = (test_drive_add, test_protocol, test_messages, test_floods, test_console, test_refusals)

with Tap() as tap, Place() as place:
    for test in TESTS:
        test(tap, place)
