#!/usr/bin/env python3
"""What `meson install` puts on a host: programs that find their modules there, a systemd unit and AppArmor rules that their own
tools accept."""

import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm", "lib"))
from tap import Tap

PROGRAMS = ["spindle", "spindled", "spindle-img", "spindle-io"]


def run(*command, **more):
    done = subprocess.run(command, env=dict(os.environ, **more), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def check_programs(tap, prefix):
    engine = run(os.path.join(ROOT, "scripts", "engine"))[1].strip()
    for name in PROGRAMS:
        status, text = run(os.path.join(prefix, "bin", name), "--version", SPINDLE_QEMU=engine)
        tap.ok(status == 0 and "version" in text, name + " runs from where it is installed", text)
    # An encrypted image needs a module; a plain file is refused by what is in it.
    image = os.path.join(prefix, "image")
    with open(image, "wb") as f:
        f.write(bytes(4096))
    status, text = run(os.path.join(prefix, "bin", "spindle-img"), "info", "--object", "secret,id=s,data=x", "--image-opts",
                       "driver=luks,key-secret=s,file.driver=file,file.filename=" + image)
    tap.ok(status == 1 and "module" not in text and "LUKS" in text, "the LUKS module is found beside the installed programs", text)


def check_unit(tap, prefix, folder):
    unit = os.path.join(prefix, "lib", "systemd", "system", "spindled@.service")
    # The instance that is looked at, with the program where it is here.
    with open(unit) as f:
        text = f.read()
    tap.ok("ExecStart=/usr/local/bin/spindled $OPTIONS" in text, "the unit starts the installed program", text)
    mine = os.path.join(folder, "spindled@a.service")
    with open(mine, "w") as f:
        f.write(text.replace("/usr/local/bin/spindled", os.path.join(ROOT, "build", "spindled").replace(" ", "\\x20"))
                .replace("file:/usr/local", "file:" + prefix))
    status, text = run("systemd-analyze", "verify", "--man=no", mine)
    tap.ok(status == 0 and "spindled@a" not in text, "systemd accepts the unit", text)


def check_apparmor(tap, prefix, folder):
    profile = os.path.join(folder, "profile")
    with open(os.path.join(prefix, "share", "spindle", "libvirt-qemu.apparmor")) as f:
        rules = f.read()
    with open(profile, "w") as f:
        f.write("#include <tunables/global>\nprofile spindle-test {\n%s}\n" % rules)
    status, text = run("apparmor_parser", "--skip-kernel-load", "--skip-cache", profile)
    tap.ok(status == 0, "AppArmor accepts the rules", text)


with Tap() as tap:
    folder = tempfile.mkdtemp(prefix="spindle-test-")
    try:
        status, text = run("meson", "install", "-C", os.path.join(ROOT, "build"), "--no-rebuild", "--destdir", folder)
        tap.ok(status == 0, "meson install", text)
        prefix = os.path.join(folder, "usr", "local")
        check_programs(tap, prefix)
        check_unit(tap, prefix, folder)
        check_apparmor(tap, prefix, folder)
    finally:
        shutil.rmtree(folder)
