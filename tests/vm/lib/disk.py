"""Hard disks for the guest tests: options of a disk, and the tools that a guest needs to use one."""

import os
import subprocess

from guest import ROOT, maker

TOOLS = "/tools"


def disk_options(path, more="", device="ide-hd", bus="ide.0", extra=""):
    """A disk on a raw image. more: further keys of -drive; extra: of the device."""
    return ["-drive", "if=none,id=disk,format=raw,file=%s%s" % (path.replace(",", ",,"), more),
            "-device", "%s,drive=disk,bus=%s%s" % (device, bus, extra)]


def luks_image(path, size, passphrase):
    """An encrypted image of so many bytes, whose passphrase costs the host no time."""
    secret = path + ".key"
    with open(secret, "w") as f:
        f.write(passphrase)
    subprocess.run([os.path.join(ROOT, "build", "tools", "spindle-img"), "create", "-q", "--object",
                    "secret,id=key,file=" + secret, "-f", "luks", "-o", "key-secret=key,iter-time=10", path, str(size)], check=True)
    return path


def luks_options(path, bus="ide.0", extra=""):
    """A disk on the image of luks_image()."""
    return ["-object", "secret,id=disk-key,file=%s.key" % path,
            "-blockdev", "driver=file,node-name=disk-file,filename=" + path,
            "-blockdev", "driver=luks,node-name=disk,file=disk-file,key-secret=disk-key",
            "-device", "ide-hd,drive=disk,bus=%s%s" % (bus, extra)]


def tools_options():
    """fio and its like, as a disk of QEMU's own."""
    return ["-drive", "if=none,id=tools,format=raw,readonly=on,file=" + maker("mkdisktools"),
            "-device", "virtio-blk-pci,drive=tools"]


def mount_tools(guest):
    """Puts the tools in /bin of what runs now, and waits for the disk. The shell has an mke2fs of its own: /bin/mke2fs."""
    guest.get("modprobe -a virtio_blk squashfs ext4; mkdir -p {0}; n=0; "
              "while [ ! -b /dev/vda -o ! -b /dev/sda ] && [ $n -lt 50 ]; do sleep 0.2; n=$((n + 1)); done; "
              "mount -t squashfs -o ro /dev/vda {0}; "
              "for t in fio sfdisk e2fsck mke2fs; do rm -f /bin/$t /sbin/$t /usr/bin/$t /usr/sbin/$t; "
              "printf '#!/bin/sh\\nLD_LIBRARY_PATH={0}/lib exec {0}/bin/%s \"$@\"\\n' $t >/bin/$t; chmod +x /bin/$t; done"
              .format(TOOLS))
