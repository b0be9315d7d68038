#!/usr/bin/env python3
"""The block layer against the engine's own: the same options and commands through spindle-io and qemu-io.

Refusals have to read alike, but for the program's name; rules of blkdebug have to give the same results.
"""

import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
OURS = os.path.join(ROOT, "build", "tools", "spindle-io")

# What --image-opts gets. IMG is an image of 100000 bytes, DIR a folder.
REFUSALS = [
    "driver=file,filename=nofile",
    "driver=file,filename=",
    "driver=file,filename=/dev/null",
    "driver=file,filename=IMG,read-only=zork",
    "driver=file,filename=IMG,cache.direct=zork",
    "driver=file,filename=IMG,detect-zeroes=unmap",
    "driver=file,filename=IMG,node-name=1f",
    "driver=file,filename=IMG,node-name=a123456789012345678901234567890123456789",
    "driver=file,filename=IMG,aio=native",
    "driver=host_device,filename=/dev/nonexistent",
    "driver=blurb",
    "driver=raw,file=zork",
    "driver=raw,file.driver=blurb",
    "driver=raw,file.driver=file,file.filename=nofile",
    "driver=raw,file.driver=file,file.filename=IMG,size=1000",
    "driver=raw,file.driver=null-co,file.size=1M,offset=2M",
    "driver=blkdebug,config=nofile,image.driver=null-co",
    "driver=blkdebug,image.driver=null-co,align=3",
    "driver=throttle,throttle-group=zork,file.driver=null-co",
]

# Where Spindle means to say something else than the engine: the option, and the words. QEMU's tools say many of these
# in two ways, by what reads the options; Spindle says all as QEMU's -blockdev does.
INTENDED = {
    "driver=file": "Parameter 'filename' is missing",
    "driver=raw": "Parameter 'file' is missing",
    "driver=file,filename=IMG,zork=1": "Parameter 'zork' is unexpected",
    "driver=file,filename=IMG,locking=zork": "Parameter 'locking' does not accept value 'zork'",
    "driver=file,filename=IMG,discard=zork": "Parameter 'discard' does not accept value 'zork'",
    # QEMU says this when it opens for reading, and "Is a directory" when for writing.
    "driver=file,filename=DIR": "'file' driver requires 'DIR' to be a regular file",
    "driver=raw,file.driver=file,file.filename=DIR": "'file' driver requires 'DIR' to be a regular file",
    # A character device is nothing to read a disc from.
    "driver=host_device,filename=/dev/null": "'host_device' driver requires '/dev/null' to be a block device",
    "driver=host_device,filename=IMG": "'host_device' driver requires 'IMG' to be a block device",
    # Here the image ends at its last byte, not at the sector's end. (And QEMU has two blanks in the second.)
    "driver=raw,file.driver=file,file.filename=IMG,offset=1M":
        "Offset (1048576) cannot be greater than size of the containing file (100000)",
    "driver=raw,file.driver=file,file.filename=IMG,offset=512,size=102400":
        "The sum of offset (512) and size (102400) has to be smaller or equal to the actual size of the containing file"
        " (100000)",
}

COMMANDS = {
    "r": "read 0 512", "R": "read 512 512", "L": "read 0 4096", "w": "write -P 1 0 512", "W": "write 512 512",
    "z": "write -z 0 512", "d": "discard 0 512", "f": "flush",
}

E0 = "inject-error.0."
SCRIPTS = [
    ("no rules", "rwzdf", []),
    ("each time", "wrr", [E0 + "event=read_aio"]),
    ("once", "rr", [E0 + "event=read_aio", E0 + "once=on"]),
    ("active for all", "rwfr", [E0 + "event=read_aio", E0 + "errno=28"]),
    ("from the start", "rwfr", [E0 + "event=none", E0 + "iotype=write"]),
    ("sector", "rRLWw", [E0 + "event=none", E0 + "sector=1"]),
    ("write_aio", "wrw", [E0 + "event=write_aio", E0 + "once=on"]),
    ("pwritev", "rw", [E0 + "event=pwritev", E0 + "once=on"]),
    ("pwritev_done", "wwr", [E0 + "event=pwritev_done", E0 + "once=on"]),
    ("pwritev_zero", "wzw", [E0 + "event=pwritev_zero", E0 + "iotype=write-zeroes"]),
    ("discard", "wdw", [E0 + "event=none", E0 + "iotype=discard"]),
    ("flush_to_disk", "wffw", [E0 + "event=flush_to_disk", E0 + "once=on"]),
    ("flush_to_os", "wfw", [E0 + "event=flush_to_os", E0 + "iotype=flush"]),
    ("clean flush", "ff", [E0 + "event=none", E0 + "iotype=flush"]),
    ("clean flush to disk", "fw", [E0 + "event=flush_to_disk"]),
    ("state", "rwrr", [E0 + "event=read_aio", E0 + "state=2", E0 + "once=on", "set-state.0.event=write_aio",
                       "set-state.0.state=1", "set-state.0.new_state=2"]),
    ("state after event", "rr", [E0 + "event=read_aio", E0 + "state=2", "set-state.0.event=read_aio",
                                 "set-state.0.new_state=2"]),
    ("two states at once", "rwr", ["set-state.0.event=read_aio", "set-state.0.new_state=2",
                                   "set-state.1.event=read_aio", "set-state.1.new_state=3",
                                   E0 + "event=write_aio", E0 + "state=2"]),
    ("two errors at once", "rrr", [E0 + "event=read_aio", E0 + "once=on", "inject-error.1.event=read_aio",
                                   "inject-error.1.errno=28", "inject-error.1.once=on"]),
    ("no error", "r", [E0 + "event=read_aio", E0 + "errno=0"]),
    ("an event of qcow2", "rw", [E0 + "event=l2_load"]),
]


def run(program, options, commands):
    argv = [program]
    for command in commands:
        argv += ["-c", command]
    result = subprocess.run(argv + ["--image-opts", options], capture_output=True, text=True, timeout=60, check=False)
    return result.returncode, result.stdout + "\n" + result.stderr


def refusal(program, options):
    """The message, without the program's name."""
    code, output = run(program, options, ["quit"])
    found = re.search(r"can't open[^:]*: (.*)", output, re.S)
    return (code, found.group(1).strip()) if found else (code, output.strip())


def results(program, options, operations):
    """One letter a read, write or discard (a flush says nothing), and the exit status."""
    code, output = run(program, options, [COMMANDS[o] for o in operations])
    letters = ""
    for line in output.splitlines():
        if re.match(r"(read|wrote|discard) \d+/\d+", line):
            letters += "."
        elif re.match(r"(read|write|discard) failed: Input/output error", line):
            letters += "E"
        elif re.match(r"(read|write|discard) failed: No space left on device", line):
            letters += "S"
    return letters, code


def main():
    engine = subprocess.run([os.path.join(ROOT, "scripts", "engine"), "qemu-io"], stdout=subprocess.PIPE, text=True,
                            check=True).stdout.strip()
    print("1..%d" % (len(REFUSALS) + len(INTENDED) + len(SCRIPTS)))
    number = failed = 0

    def tell(name, got, expected):
        nonlocal number, failed
        number += 1
        good = got == expected
        failed += not good
        print("%sok %d - %s" % ("" if good else "not ", number, name.replace("#", "")))
        if not good:
            print("#  spindle: %r\n# expected: %r" % (got, expected))

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.mkdir("DIR")
        with open("IMG", "wb") as image:
            image.truncate(100000)
        for options in REFUSALS:
            tell("refuse " + options, refusal(OURS, options), refusal(engine, options))
        for options, words in INTENDED.items():
            tell("refuse " + options, refusal(OURS, options), (1, words))
        with open("IMG", "wb") as image:
            image.truncate(1 << 20)
        for name, operations, rules in SCRIPTS:
            options = ("driver=raw,discard=unmap,file.driver=blkdebug,file.discard=unmap,file.image.driver=file,"
                       "file.image.filename=IMG,file.image.discard=unmap")
            options += "".join(",file." + rule for rule in rules)
            tell("blkdebug, %s: %s" % (name, operations), results(OURS, options, operations),
                 results(engine, options, operations))
        os.chdir(ROOT)
    return 1 if failed else 0


sys.exit(main())
