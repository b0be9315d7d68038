#!/usr/bin/env python3
"""Every way of writing a <disk> of a CD or an IDE/SATA disk: the domain starts (or is refused) with Spindle as with QEMU, and
query-block and the live XML are the same.

data/variants.json holds what QEMU's own drives gave; `--record` makes it anew. Names on the command line choose variants."""

import json
import os
import random
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
import host as libvirt_host

libvirt_host.enter()
from domain import Domain
from host import ENGINE, IMAGES, ROOT, SPINDLE, Host, run
from tap import Tap
from variants import SECRET, all_variants

sys.path.insert(0, os.path.join(ROOT, "tests", "remote", "lib"))
from faultserver import FaultServer, make_certificate

DATA = os.path.join(os.path.dirname(os.path.realpath(__file__)), "data", "variants.json")
# What QEMU and Spindle are free to tell each in its own way.
LEFT_OUT = {"actual-size", "format-specific", "limits", "children", "active"}
PASSPHRASE = "libvirt's passphrase"


class Sources:
    """Images, loop devices and servers; text(xml) puts their names in."""

    def __init__(self, host):
        self.host, self.loops, self.processes = host, [], []
        self.random = random.Random(1)
        for name, size in (("one.iso", 5 << 20), ("two.iso", 3 << 20), ("disk.raw", 8 << 20)):
            self.noise(name, size)
        os.mkdir(IMAGES + "/folder")
        run(self.engine("qemu-img"), "create", "-q", "-f", "qcow2", self.path("cd.qcow2"), "8M")
        self.host.give_to_qemu(self.path("cd.qcow2"))
        self.make_luks()
        self.values = {"LOOP-RO": self.loop("loop-ro", True), "LOOP-RW": self.loop("loop-rw", False)}
        self.serve()

    @staticmethod
    def engine(name):
        return run(os.path.join(ROOT, "scripts", "engine"), name)

    @staticmethod
    def path(name):
        return IMAGES + "/" + name

    def noise(self, name, size):
        with open(self.path(name), "wb") as f:
            f.write(self.random.randbytes(size))
        return self.host.give_to_qemu(self.path(name))

    def make_luks(self):
        key = "/mnt/key"
        with open(key, "w") as f:
            f.write(PASSPHRASE)
        run(self.engine("qemu-img"), "create", "-q", "-f", "luks", "--object", "secret,id=s,file=" + key,
            "-o", "key-secret=s,iter-time=10", self.path("luks.img"), "8M")
        run(self.engine("qemu-img"), "create", "-q", "-f", "qcow2", "--object", "secret,id=s,file=" + key,
            "-o", "encrypt.format=luks,encrypt.key-secret=s,encrypt.iter-time=10", self.path("luks.qcow2"), "8M")
        for name in ("luks.img", "luks.qcow2"):
            self.host.give_to_qemu(self.path(name))
        with open("/mnt/secret.xml", "w") as f:
            f.write("<secret ephemeral='no' private='yes'><uuid>%s</uuid></secret>" % SECRET)
        self.host.get("secret-define", "/mnt/secret.xml")
        self.host.get("secret-set-value", SECRET, "--file", key, "--plain")

    def loop(self, name, read_only):
        self.noise(name, 4 << 20)
        device = run(*["losetup", "--find", "--show"] + ["--read-only"] * read_only + [self.path(name)])
        self.loops.append(device)
        return device

    def serve(self):
        with open(self.path("one.iso"), "rb") as f:
            content = f.read()
        certificate = make_certificate("/mnt")
        self.http, self.https = FaultServer(content), FaultServer(content, tls=certificate)
        self.values["HTTP-PORT"] = str(self.http.port)
        self.values["HTTPS-PORT"] = str(self.https.port)
        self.values["NBD-PORT"] = str(self.free_port())
        for where in (["-p", self.values["NBD-PORT"], "-i", "127.0.0.1"], ["-U", self.path("nbd.sock")]):
            self.processes.append(subprocess.Popen(["nbdkit", "-f", "-e", "iso"] + where + ["memory", "4M"],
                                                   stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        while not os.path.exists(self.path("nbd.sock")):
            time.sleep(0.05)
        self.host.give_to_qemu(self.path("nbd.sock"))

    @staticmethod
    def free_port():
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def text(self, xml):
        for name, value in self.values.items():
            xml = xml.replace(name, value)
        return xml

    def general(self, text):
        """The other way, so that two runs can be compared."""
        for name, value in self.values.items():
            text = re.sub(re.escape(value) + r"\b", name, text)
        return text

    def close(self):
        for process in self.processes:
            process.kill()
        for device in self.loops:
            subprocess.run(["losetup", "--detach", device])


def trimmed(value):
    if isinstance(value, dict):
        return {k: trimmed(v) for k, v in sorted(value.items()) if k not in LEFT_OUT}
    return [trimmed(v) for v in value] if isinstance(value, list) else value


def message(text):
    """An error without times, program names and paths of helpers."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z ", "", text)
    return re.sub(r"^\S*(qemu-system-x86_64|spindle): ", "PROGRAM: ", re.sub(r" \S*(qemu-system-x86_64|spindle): ", " PROGRAM: ",
                                                                             text), flags=re.M)


def observe(host, sources, name, variant, emulator):
    """What a user sees: {start, block, live}."""
    try:
        domain = Domain(host, "v", [sources.text(d) for d in variant.disks], variant.machine, emulator, 64, guest=False,
                        extra=variant.extra)
    except libvirt_host.HostError as error:
        return {"start": "define: " + message(str(error))}
    try:
        status, text = host.virsh("start", "v", "--paused")
        if status:
            return {"start": sources.general(message(text))}
        answer = json.loads(host.get("qemu-monitor-command", "v", '{"execute":"query-block"}'))["return"]
        live = host.get("dumpxml", "v", "--xpath", "//disk")
        block = json.loads(sources.general(json.dumps(trimmed(answer))))
        block.sort(key=lambda b: b.get("qdev", ""))
        return {"start": "ok", "block": block, "live": sources.general(live).splitlines()}
    finally:
        domain.close()


def main():
    record = "--record" in sys.argv
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    host = Host()
    sources = Sources(host)
    table = all_variants()
    try:
        if record:
            with open(DATA) as f:
                seen = json.load(f) if names else {}
            for name in names or table:
                seen[name] = observe(host, sources, name, table[name], ENGINE)
                print("# %s: %s" % (name, seen[name]["start"].splitlines()[-1]), flush=True)
            with open(DATA, "w") as f:
                json.dump({n: seen[n] for n in table if n in seen}, f, indent=1, sort_keys=False)
                f.write("\n")
            return
        with open(DATA) as f:
            expected = json.load(f)
        with Tap() as tap:
            for name in names or table:
                check(tap, name, observe(host, sources, name, table[name], SPINDLE), expected[name], host)
    finally:
        sources.close()


def essence(seen):
    """What has to agree. Of a refusal: who refuses, and the last line of why. QEMU's json: names of images are Spindle's plain
    ones, its generated node names differ anyway."""
    seen = dict(seen)
    lines = seen["start"].splitlines()
    seen["start"] = lines[0], lines[-1].split("PROGRAM: ")[-1]
    for block in seen.get("block", []):
        inserted = block.get("inserted", {})
        for where, key in ((inserted, "file"), (inserted.get("image", {}), "filename")):
            if where.get(key, "").startswith("json:"):
                where[key] = innermost(json.loads(where[key][5:]))
        if inserted.get("node-name", "").startswith("#"):
            inserted["node-name"] = "#"
    return seen


def innermost(node):
    while isinstance(node.get("file"), dict):
        node = node["file"]
    return node.get("filename") or node.get("url")


# Where Spindle is to differ: whether the domain starts, and why it is not as with QEMU.
INTENDED = {
    "https-verified": (False, "libcurl's own words for a certificate that is not known"),
    "nbd-tls-no-credentials": (False, "the message names the option, too"),
    "blockio": (True, "discard_granularity means nothing for a disc that is read only"),
    "file-no-driver-qcow2": (True, "the size of a raw image that is no multiple of 512 bytes is told as it is"),
    "qemu-drive": (True, "a node that -drive makes has the drive's name"),
}


def check(tap, name, got, expected, host):
    got, expected = essence(got), essence(expected)
    if name in INTENDED:
        starts, why = INTENDED[name]
        tap.equal(got["start"][0], "ok" if starts else "error: Failed to start domain 'v'", "%s (differs: %s)" % (name, why))
        return
    if got == expected:
        tap.ok(True, name)
        return
    why = ["%s: got      %s\n%s: expected %s" % (k, json.dumps(got.get(k), indent=1), k, json.dumps(expected.get(k), indent=1))
           for k in ("start", "block", "live") if got.get(k) != expected.get(k)]
    tap.ok(False, name, *why + ([host.domain_log("v")[-800:]] if got["start"][0] != "ok" else []))


main()
