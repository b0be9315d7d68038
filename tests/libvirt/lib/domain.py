"""A libvirt domain with a guest inside that runs scripts (the guest of tests/vm/mkguest)."""

import os
import shutil
import subprocess
import time

from guest import Channel, Guest, GuestError, accelerator, maker
from host import IMAGES, SPINDLE, HostError


def disk(source="", target="sda", bus="sata", device="cdrom", kind="file", driver="<driver name='qemu' type='raw'/>", extra="",
         attributes=""):
    """XML of one <disk>; source: a path, or the whole <source> element(s)."""
    if source and not source.startswith("<"):
        source = "<source %s='%s'/>" % ({"file": "file", "block": "dev"}[kind], source)
    return "<disk type='%s' device='%s'%s>%s%s%s%s%s</disk>" % (
        kind, device, attributes, driver, source,
        target if target.startswith("<") else "<target dev='%s' bus='%s'/>" % (target, bus), extra,
        "<readonly/>" if device == "cdrom" else "")


class Domain:
    """Defined on a Host; its disks are given as XML. guest: whether a Linux guest is booted in it."""

    def __init__(self, host, name, disks, machine="q35", emulator=SPINDLE, memory=256, guest=True, os_xml="", extra="",
                 kernel_words=""):
        self.host, self.name, self.guest = host, name, guest
        self.folder = "%s/%s" % (IMAGES, name)
        os.makedirs(self.folder, exist_ok=True)
        host.give_to_qemu(self.folder)
        self.control = self.boot = None
        self.channel = ""
        boot = os_xml
        if guest:
            self.copy_kernel()
            boot += ("<kernel>{0}/vmlinuz</kernel><initrd>{0}/initrd</initrd><cmdline>console=ttyS0 panic=-1 quiet mitigations=off "
                     "{1}</cmdline>").format(IMAGES, kernel_words)
            self.channel = ("<channel type='unix'><source mode='connect' path='%s/control.sock'/>"
                            "<target type='virtio' name='spindle.ctl'/></channel>" % self.folder)
        self.xml = (
            "<domain type='%s' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>%s</name>"
            "<memory unit='MiB'>%d</memory><vcpu>1</vcpu><os><type arch='x86_64' machine='%s'>hvm</type>%s</os>"
            "<features><acpi/></features><on_reboot>restart</on_reboot><devices><emulator>%s</emulator>%s%s"
            "<serial type='file'><source path='%s/serial.log'/></serial>%s"
            "<memballoon model='none'/></devices>%s</domain>") % (
                {"tcg": "qemu"}.get(accelerator(), "kvm"), name, memory, machine, boot, emulator, "".join(disks),
                self.channel, self.folder, "" if "bus='usb'" in "".join(disks) else "<controller type='usb' model='none'/>", extra)
        status, text = host.define(self.xml)
        if status:
            raise HostError(text)

    @staticmethod
    def copy_kernel():
        image = maker("mkguest", "amd64")
        for name in ("vmlinuz", "initrd"):
            if not os.path.exists(IMAGES + "/" + name):
                shutil.copy(image + "/" + name, IMAGES)

    def listen(self):
        """A new control channel; QEMU connects to it at its start."""
        if self.control:
            self.control.close()
        path = self.folder + "/control.sock"
        if os.path.exists(path):
            os.unlink(path)
        self.control = Channel(self.folder, "control")
        self.host.give_to_qemu(path)

    def start(self, command=("start",), timeout=120):
        if self.guest:
            self.listen()
        self.host.get(*(command if len(command) > 1 else command + (self.name,)))
        if self.guest:
            self.wait_ready(timeout)
        return self

    # What a script in the guest needs is a control channel only.
    wait_ready = Guest.wait_ready
    run = Guest.run
    get = Guest.get

    def virsh(self, command, *args, **more):
        return self.host.virsh(command, self.name, *args, **more)

    def pids(self):
        """Of the emulator and of what it started: {name: pid}."""
        found = {}
        listing = subprocess.run(["ps", "-e", "-o", "pid=,comm=,args="], stdout=subprocess.PIPE, text=True).stdout
        for line in listing.splitlines():
            pid, name, args = line.split(None, 2)
            if "guest=%s," % self.name in args or name == "spindled":
                found[name] = int(pid)
        return found

    def serial_text(self):
        try:
            with open(self.folder + "/serial.log", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def wait_off(self, timeout=30):
        end = time.monotonic() + timeout
        while "shut off" not in self.host.get("domstate", self.name):
            if time.monotonic() > end:
                raise GuestError("the domain does not end")
            time.sleep(0.1)

    def close(self):
        self.host.virsh("destroy", self.name)
        self.host.virsh("undefine", self.name, "--managed-save", "--snapshots-metadata")
        if self.control:
            self.control.close()
