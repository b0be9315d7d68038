"""Hard disks for the guest tests: options of a disk, and the tools that a guest needs to use one."""

from guest import maker

TOOLS = "/tools"


def disk_options(path, more="", device="ide-hd", bus="ide.0", extra=""):
    """A disk on a raw image. more: further keys of -drive; extra: of the device."""
    return ["-drive", "if=none,id=disk,format=raw,file=%s%s" % (path.replace(",", ",,"), more),
            "-device", "%s,drive=disk,bus=%s%s" % (device, bus, extra)]


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
