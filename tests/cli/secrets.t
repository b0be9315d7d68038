#!/usr/bin/env python3
"""Passphrases given as data= on command lines: nobody reads them in /proc/PID/cmdline, and none is in what a core dump of a
program of ours would hold."""

import json
import os
import re
import secrets
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import Place, engine
from tap import Tap

IMG = os.path.join(os.path.dirname(Place.program("spindled")), "tools", "spindle-img")
KDF = "version=1,pbkdf-iterations=1000"
# Tells what the secrets on its command line hold, as QEMU reads them.
STAND_IN = r"""#!%s
import json, re, socket, sys, time
if "vfio-user-pci,help" in sys.argv:
    print("vfio-user-pci options:\n  socket=<SocketAddress>")
    sys.exit(0)
peers = []
for argument in sys.argv[1:]:
    if '"vfio-user-pci"' in argument:
        peers.append(socket.socket(socket.AF_UNIX))
        peers[-1].connect(json.loads(argument)["socket"]["path"])
texts = [open(f).read() for f in re.findall("file=(/proc/self/fd/[0-9]+)", " ".join(sys.argv))]
print(json.dumps({"argv": sys.argv[1:], "texts": texts}))
sys.stdout.flush()
time.sleep(60)
"""


def core_has(pid, text):
    """Whether memory that a core dump takes has the text (core(5): private mappings without "dd")."""
    found, keep = False, None
    with open("/proc/%d/smaps" % pid) as smaps, open("/proc/%d/mem" % pid, "rb", 0) as memory:
        for line in smaps:
            head = re.match(r"([0-9a-f]+)-([0-9a-f]+) (r\S+) .*?(\[v\w+\])?$", line)
            if head:
                keep = None if head.group(4) else (int(head.group(1), 16), int(head.group(2), 16))
            elif line.startswith("VmFlags:") and keep and " dd" not in line:
                memory.seek(keep[0])
                try:
                    found = found or text.encode() in memory.read(keep[1] - keep[0])
                except OSError:
                    pass
    return found


def shown(place, text):
    return [line for line in place.processes().values() if text in line]


def object_forms(text):
    data = json.dumps({"qom-type": "secret", "id": "s", "data": text})
    return {"key=value": ["--object", "secret,id=s,data=" + text], "one word": ["--object=secret,id=s,data=" + text],
            "JSON": ["--object", data]}


def luks(place, text):
    status, _, err = place.run(IMG, "create", "-q", "--object", "secret,id=s,data=" + text, "-f", "luks", "-o",
                               "key-secret=s," + KDF, "a.luks", "8M")
    if status:
        raise RuntimeError(err)


NODE = "driver=luks,node-name=disc,key-secret=s,file.driver=file,file.filename=a.luks"


def check_daemon(tap, place, sanitized):
    for form in object_forms(""):
        text = secrets.token_hex(12)
        luks(place, text)
        status, _, err = place.run("spindled", "--daemonize", "--pidfile", "pid", *object_forms(text)[form], "--blockdev", NODE)
        tap.equal((status, err), (0, ""), "spindled --daemonize with a secret as " + form)
        with open(place.path("pid")) as f:
            pid = int(f.read())
        tap.equal((shown(place, text), len(shown(place, "id=s" if form != "JSON" else '"s"'))), ([], 1), "its command line shows no data: " + form)
        if sanitized:
            tap.skip("nothing of it in a core dump: " + form, "AddressSanitizer keeps freed memory")
        elif form == "JSON":
            tap.skip("nothing of it in a core dump: " + form, "the JSON parser's freed memory is not ours to wipe; spindle hands on key=value")
        else:
            tap.equal(core_has(pid, text), False, "nothing of it in a core dump: " + form)
            tap.equal(core_has(pid, "node-name=disc"), True, "which the search would have found: " + form)
        os.kill(pid, 15)
        tap.equal(place.leftovers(), [], "it ends: " + form)


def check_emulator(tap, place, sanitized):
    """The secret is for both: a drive of Spindle's and, it may be, a disk of QEMU's."""
    text = secrets.token_hex(12)
    luks(place, text)
    stand_in = place.write("qemu", (STAND_IN % sys.executable).encode(), 0o755)
    process = place.start("spindle", "-object", "secret,id=s,data=" + text, "-blockdev", NODE + ",read-only=on", "-device",
                          "ide-cd,drive=disc", env={"SPINDLE_QEMU": stand_in})
    seen = json.loads(process.stdout.readline())
    tap.equal(seen["texts"], [text], "QEMU reads the secret from a descriptor")
    tap.equal(shown(place, text), [], "no command line shows it")
    drives = [pid for pid, line in place.processes().items() if line.startswith("spindled ")]
    tap.equal(len(drives), 1, "the drive process has the encrypted disc")
    if sanitized:
        tap.skip("nothing of it in a core dump of the drive process", "AddressSanitizer keeps freed memory")
    else:
        tap.equal(core_has(drives[0], text), False, "nothing of it in a core dump of the drive process")
    process.kill()
    process.wait()
    tap.equal(place.leftovers(), [], "both end")


def check_engine(tap, place):
    """QEMU unlocks a disk of its own with it; a long one and one in base64 come through, too."""
    for name, text, form in (("short", secrets.token_hex(12), ""), ("long", secrets.token_hex(5000), ""),
                             ("base64", "c3BpbmRsZQ==", ",format=base64")):
        status, _, err = place.run(IMG, "create", "-q", "--object", "secret,id=s,data=%s%s" % (text, form), "-f",
                                   "luks", "-o", "key-secret=s," + KDF, name, "1M")
        process = place.start("spindle", "-S", "-display", "none", "-monitor", "none", "-m", "32", "-pidfile", "pid-" + name,
                              "-object", "secret,id=s,data=%s%s" % (text, form), "-blockdev",
                              "driver=luks,node-name=disk,key-secret=s,file.driver=file,file.filename=" + name,
                              "-device", "virtio-blk-pci,drive=disk", "-nodefaults", env={"SPINDLE_QEMU": engine()})
        place.wait_for(lambda: process.poll() is not None or os.path.exists(place.path("pid-" + name)), "pidfile", 60)
        tap.equal((process.poll(), process.stderr.read() if process.poll() is not None else ""), (None, ""),
                  "QEMU opens an encrypted disk of its own: " + name)
        tap.equal(shown(place, "data="), [], "and its command line has no data: " + name)
        process.kill()
        process.wait()


def check_qtest(tap, place):
    text = secrets.token_hex(12)
    process = place.start("spindle", "-accel", "qtest", "-qtest", "unix:qtest.sock,server=on,wait=off", "-pidfile", "pid-qtest", "-object",
                          "secret,id=s,data=" + text)
    place.wait_for(lambda: process.poll() is not None or os.path.exists(place.path("pid-qtest")), "pidfile")
    tap.equal((process.poll(), shown(place, text)), (None, []), "the machine behind -accel qtest shows no data")
    process.kill()
    process.wait()


def check_tool(tap, place, sanitized):
    text = secrets.token_hex(12)
    luks(place, text)
    place.write("b.raw", b"\1" * (8 << 20))
    process = place.start(IMG, "convert", "-n", "-r", "1M", "--object", "secret,id=s,data=" + text,
                          "--target-image-opts", "b.raw", NODE.replace("node-name=disc,", ""))
    place.wait_for(lambda: process.poll() is not None or not shown(place, text), "hidden data")
    time.sleep(0.5)  # into the copy
    tap.equal((process.poll(), shown(place, text)), (None, []), "spindle-img shows no data while it copies")
    if sanitized:
        tap.skip("nothing of it in a core dump of spindle-img", "AddressSanitizer keeps freed memory")
    else:
        tap.equal(core_has(process.pid, text), False, "nothing of it in a core dump of spindle-img")
    process.kill()
    process.wait()


def main():
    sanitized = "asan" in Place.program("spindled")
    with Tap() as tap:
        for check, more in ((check_daemon, [sanitized]), (check_emulator, [sanitized]), (check_engine, []), (check_qtest, []),
                            (check_tool, [sanitized])):
            with Place() as place:
                check(tap, place, *more)


main()
