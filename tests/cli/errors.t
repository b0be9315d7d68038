#!/usr/bin/env python3
"""Mistakes on the command line: the message that QEMU has for the same mistake, exit status 1, nothing left behind."""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import Place, engine
from tap import Tap

MACHINE = ["-M", "q35", "-display", "none"]

DISK = ["-blockdev", "driver=file,filename=a.iso,node-name=f"]

# Name, arguments: the engine alone, given the same, is the reference.
AS_QEMU = [
    ("no such file", ["-cdrom", "nofile.iso"]),
    ("no such file: -drive", ["-drive", "file=nofile.iso,media=cdrom"]),
    ("no such file: -drive if=none", ["-drive", "if=none,id=d,file=nofile.iso,format=raw", "-device", "ide-cd,drive=d"]),
    ("no such file: -blockdev", ["-blockdev", "driver=file,filename=nofile.iso,node-name=f", "-device", "ide-cd,drive=f"]),
    ("no such file: JSON", ["-blockdev", '{"driver":"file","filename":"nofile.iso","node-name":"f"}',
                            "-device", '{"driver":"ide-cd","drive":"f"}']),
    ("no such file: a name with a comma", ["-drive", "file=no,,file.iso,media=cdrom"]),
    ("a folder", ["-cdrom", "folder"]),
    ("an unreadable file", ["-cdrom", "secret.iso"]),
    ("a dangling link", ["-cdrom", "dangling.iso"]),
    ("an unknown protocol", ["-cdrom", "foo:bar"]),
    ("an unknown option", ["-cdrom", "a.iso", "-wibble"]),
    ("a missing argument", ["-cdrom", "a.iso", "-m"]),
    ("a size that is none", ["-cdrom", "a.iso", "-m", "lots"]),
    ("-cdrom twice", ["-cdrom", "a.iso", "-cdrom", "b.iso"]),
    ("-cdrom and its place taken", ["-drive", "file=a.iso,media=cdrom,index=2,format=raw", "-cdrom", "b.iso"]),
    ("a drive named twice", ["-drive", "if=none,file=a.iso,id=d,format=raw", "-drive", "if=none,file=b.iso,id=d,format=raw",
                             "-device", "ide-cd,drive=d"]),
    ("a node named twice", ["-blockdev", "driver=file,filename=a.iso,node-name=f,read-only=on",
                            "-blockdev", "driver=file,filename=b.iso,node-name=f,read-only=on", "-device", "ide-cd,drive=f"]),
    ("a drive used twice", ["-drive", "if=none,file=a.iso,id=d,format=raw", "-device", "ide-cd,drive=d", "-device", "ide-cd,drive=d"]),
    ("a drive that the machine uses", ["-drive", "file=a.iso,media=cdrom,id=d,format=raw", "-device", "ide-cd,drive=d"]),
    ("drive= that names nothing", ["-device", "ide-cd,drive=nope"]),
    ("a device named twice", ["-device", "ide-cd,id=a", "-device", "ide-cd,id=a"]),
    ("an unknown driver", ["-blockdev", "driver=nonsense,node-name=f", "-device", "ide-cd,drive=f"]),
    ("an unknown format", ["-drive", "file=a.iso,media=cdrom,format=nonsense"]),
    ("an unknown medium", ["-drive", "file=a.iso,media=nonsense"]),
    ("an unknown interface", ["-drive", "file=a.iso,media=cdrom,if=nonsense"]),
    ("an unknown key of -drive", ["-drive", "file=a.iso,media=cdrom,format=raw,nonsense=1"]),
    ("an unknown key of -blockdev", ["-blockdev", "driver=file,filename=a.iso,node-name=f,nonsense=1", "-device", "ide-cd,drive=f"]),
    ("a missing key of -blockdev", ["-blockdev", "driver=file,node-name=f", "-device", "ide-cd,drive=f"]),
    ("a bad node name", ["-blockdev", "driver=file,filename=a.iso,node-name=0/0,read-only=on", "-device", "ide-cd,drive=0/0"]),
    ("an unknown property", ["-device", "ide-cd,nonsense=1"]),
    ("an unknown property: JSON", ["-device", '{"driver":"ide-cd","nonsense":1}']),
    ("a bus that is not there", ["-device", "ide-cd,bus=nobus.0"]),
    ("a bus that is full", ["-device", "ide-cd,bus=ide.0", "-device", "ide-cd,bus=ide.0"]),
    ("a unit that is not there", ["-device", "ide-cd,unit=7"]),
    ("a bus of -drive that is not there", ["-drive", "file=a.iso,media=cdrom,bus=9,format=raw"]),
    ("a unit of -drive that is not there", ["-drive", "file=a.iso,media=cdrom,bus=0,unit=9,format=raw"]),
    ("a bootindex that is none", ["-device", "ide-cd,bootindex=abc"]),
    ("broken JSON", ["-device", '{"driver":']),
    ("a cache mode that is none", ["-drive", "file=a.iso,media=cdrom,cache=often,format=raw"]),
    ("a mistyped file=", ["-drive", "fil=a.iso,media=cdrom"]),
    ("an unknown key of a -drive without a disc", ["-drive", "media=cdrom,nonsense=1"]),
    *[("a disc: " + key + " that is none", ["-drive", "file=a.iso,media=cdrom,format=raw," + key + "=maybe"])
      for key in ("readonly", "read-only", "auto-read-only", "snapshot")],
    ("a boolean that is none", ["-blockdev", "driver=file,filename=a.iso,node-name=f,read-only=maybe", "-device", "ide-cd,drive=f"]),
    ("a child that is not there", ["-blockdev", "driver=raw,file=nope,node-name=r", "-device", "ide-cd,drive=r"]),
    ("no such file: -hda", ["-hda", "nofile.img"]),
    ("no such file: a bare name", ["nofile.img"]),
    ("no such file: a disk of -drive", ["-drive", "file=nofile.img,format=raw"]),
    ("-hda twice", ["-drive", "file=a.iso,format=raw,index=0", "-hda", "b.iso"]),
    ("a disk on a read-only node", ["-blockdev", "driver=file,filename=a.iso,node-name=f,read-only=on", "-device", "ide-hd,drive=f"]),
    ("a disk on a read-only drive", ["-drive", "if=none,id=d,file=a.iso,format=raw,readonly=on", "-device", "ide-hd,drive=d"]),
    ("a disk on a disc", ["-drive", "if=none,id=d,file=a.iso,format=raw,media=cdrom", "-device", "ide-hd,drive=d"]),
    ("a read-only -drive", ["-drive", "file=a.iso,format=raw,readonly=on"]),
    ("a disk without an image", ["-device", "ide-hd"]),
    ("a disk with nothing in it", ["-drive", "if=ide,media=disk"]),
    ("a disk: drive= that names nothing", ["-device", "ide-hd,drive=nope"]),
    ("a disk: a write policy that is none", ["-drive", "file=a.iso,format=raw,werror=perhaps"]),
    ("a disk: a read policy that is none", ["-drive", "file=a.iso,format=raw,rerror=enospc"]),
    ("a disk: limits that contradict", ["-drive", "file=a.iso,format=raw,throttling.bps-total=1,throttling.bps-read=1"]),
    ("a disk: aio that is none", ["-drive", "file=a.iso,format=raw,cache=none,aio=fast"]),
    ("a disk: aio=native without cache.direct", ["-drive", "file=a.iso,format=raw,aio=native"]),
    ("a disk: discard that is none", ["-drive", "file=a.iso,format=raw,discard=perhaps"]),
    ("a disk: a key that is none", ["-drive", "file=a.iso,format=raw,serial=x"]),
    *[("a disk: " + props, [*DISK, "-device", "ide-hd,drive=f," + props]) for props in (
        "cyls=70000,heads=1,secs=1", "cyls=10", "cyls=10,heads=20,secs=3", "cyls=10,heads=2,secs=300",
        "logical_block_size=1000", "logical_block_size=1024", "physical_block_size=256",
        "logical_block_size=4096,physical_block_size=512", "rotation_rate=70000", "rotation_rate=fast",
        "write-cache=perhaps", "werror=perhaps", "share-rw=maybe", "bios-chs-trans=perhaps", "wwn=abc",
        "discard_granularity=1000", "min_io_size=100", "opt_io_size=100", "nonsense=1", "discard=unmap", "unit=1",
        "bus=ide.9", "account-failed=x", "win2k-install-hack=x")],
    ("a machine that is none", ["-cdrom", "a.iso", "-M", "nonsense"]),
]

# Spindle's own: name, program, arguments, the message.
OWN = [
    # QEMU opens it for writing first: "Could not open 'folder': Is a directory".
    ("a folder: -blockdev", "spindle", ["-blockdev", "driver=file,filename=folder,node-name=f", "-device", "ide-cd,drive=f"],
     "-blockdev driver=file,filename=folder,node-name=f: 'file' driver requires 'folder' to be a regular file"),
    ("a FIFO", "spindle", ["-cdrom", "fifo"], "-cdrom fifo: 'file' driver requires 'fifo' to be a regular file"),
    ("no emulator", "spindle", ["-cdrom", "a.iso"], "Could not run '/nonexistent/qemu': No such file or directory"),
    ("spindled: an unknown option", "spindled", ["--wibble"], "--wibble: invalid option"),
    ("spindled: a missing argument", "spindled", ["--device"], "--device: requires an argument"),
    ("spindled: a stray word", "spindled", ["a.iso"], "Unexpected argument: a.iso"),
    ("spindled: an argument too many", "spindled", ["--daemonize=yes"], "--daemonize=yes: invalid option"),
    ("spindled: no such file", "spindled", ["--blockdev", "driver=file,node-name=f,filename=nofile.iso"],
     "--blockdev driver=file,node-name=f,filename=nofile.iso: Could not open 'nofile.iso': No such file or directory"),
    ("spindled: no node name", "spindled", ["--blockdev", "driver=file,filename=a.iso"],
     "--blockdev driver=file,filename=a.iso: 'node-name' must be specified for the root node"),
    ("spindled: no controller", "spindled", ["--device", "ide-cd"],
     "--device ide-cd: No 'IDE' bus found for device 'ide-cd': give --vfio-user"),
    ("spindled: another device", "spindled", ["--vfio-user", "s", "--device", "ide-drive"],
     "--device ide-drive: 'ide-drive' is not a valid device model name"),
    ("spindled: another controller", "spindled", ["--vfio-user", "s,controller=ich6"],
     "--vfio-user s,controller=ich6: Parameter 'controller' does not accept value 'ich6'"),
    ("spindled: a disk without an image", "spindled", ["--vfio-user", "s", "--device", "ide-hd"],
     "--device ide-hd: No drive specified"),
    ("spindled: a bus with both its units taken", "spindled",
     ["--vfio-user", "s,controller=piix3-ide", *["--device", "ide-cd,bus=ide.1"] * 3],
     "--device ide-cd,bus=ide.1: IDE unit 1 is in use"),
    ("spindled: a unit that is not there", "spindled",
     ["--vfio-user", "s,controller=piix4-ide", "--device", "ide-cd,bus=ide.1,unit=2"],
     "--device ide-cd,bus=ide.1,unit=2: Can't create IDE unit 2, bus supports only 2 units"),
    ("spindled: an image with two writers", "spindled",
     ["--vfio-user", "s", "--blockdev", "driver=file,filename=a.iso,node-name=f", "--device", "ide-hd,drive=f,id=one",
      "--device", "ide-hd,drive=f,id=two"],
     "--device ide-hd,drive=f,id=two: Permission conflict on node 'f': permissions 'write' are both required by block "
     "device 'one' (uses node 'f' as 'root' child) and unshared by block device 'two' (uses node 'f' as 'root' child)."),
    ("spindled: an image with two nodes that write", "spindled",
     ["--vfio-user", "s", "--blockdev", "driver=file,filename=a.iso,node-name=f", "--blockdev",
      "driver=file,filename=a.iso,node-name=g", "--device", "ide-hd,drive=f", "--device", "ide-hd,drive=g"],
     '--device ide-hd,drive=f: Failed to get "write" lock\nIs another process using the image [a.iso]?'),
    ("spindled: another object", "spindled", ["--object", "iothread,id=x"],
     "--object iothread,id=x: Parameter 'qom-type' does not accept value 'iothread'"),
    ("spindled: a taken port", "spindled", ["--vfio-user", "s", "--device", "ide-cd,bus=ide.1", "--device", "ide-cd,bus=ide.1"],
     "--device ide-cd,bus=ide.1: Can't create IDE unit 1, bus supports only 1 units"),
    ("spindled: no such port", "spindled", ["--vfio-user", "s", "--device", "ide-cd,bus=ide.6"],
     "--device ide-cd,bus=ide.6: Bus 'ide.6' not found"),
    ("spindled: drive= names nothing", "spindled", ["--vfio-user", "s", "--device", "ide-cd,drive=nope"],
     "--device ide-cd,drive=nope: Property 'ide-cd.drive' can't find value 'nope'"),
    ("spindled: no path", "spindled", ["--vfio-user", "id=x"], "--vfio-user id=x: Parameter 'path' is missing"),
    ("spindled: two controllers of one name", "spindled", ["--vfio-user", "s,id=a", "--vfio-user", "t,id=a"],
     "--vfio-user t,id=a: Duplicate ID 'a' for controller"),
    ("spindled: a second controller without a name", "spindled", ["--vfio-user", "s", "--vfio-user", "t"],
     "--vfio-user t: Parameter 'id' is missing"),
    ("spindled: an unknown key", "spindled", ["--vfio-user", "s,foo=1"], "--vfio-user s,foo=1: Invalid parameter 'foo'"),
    ("spindled: an unknown DMA mode", "spindled", ["--vfio-user", "s,dma=fast"],
     "--vfio-user s,dma=fast: Parameter 'dma' does not accept value 'fast'"),
    ("spindled: a pidfile in no folder", "spindled", ["--vfio-user", "s", "--pidfile", "none/pid"],
     "cannot create PID file 'none/pid': No such file or directory"),
]

# Without these root may read any file.
UNPRIVILEGED = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []


def plain(text):
    """Messages without the program's name, so that they can be compared whoever printed them."""
    return re.sub(r"^(spindle|spindled|qemu-system-x86_64): ", "", text.strip(), flags=re.M)


def make_files(place):
    for name in ("a.iso", "b.iso"):
        place.write(name, bytes(65536))
    place.write("secret.iso", bytes(65536), 0)
    os.mkdir(place.path("folder"))
    os.mkfifo(place.path("fifo"))
    os.symlink("nowhere", place.path("dangling.iso"))


def run(place, program, args, env=None):
    command = UNPRIVILEGED + [Place.program(program), *args]
    return place.run("/usr/bin/env", *command, env=env)


def check(tap, place, name, got, expected):
    status, out, err = got
    tap.equal((status, plain(err)), (1, plain(expected)), name)
    left = place.leftovers()
    tap.ok(not left, name + ": nothing remains", *left)


with Tap() as tap, Place() as place:
    make_files(place)
    qemu = engine()
    for name, args in AS_QEMU:
        reference = run(place, qemu, MACHINE + args)
        check(tap, place, name, run(place, "spindle", MACHINE + args), reference[2])
    for name, program, args, message in OWN:
        env = {"SPINDLE_QEMU": "/nonexistent/qemu"} if name == "no emulator" else None
        check(tap, place, name, run(place, program, args, env), message)
