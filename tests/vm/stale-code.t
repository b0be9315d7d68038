#!/usr/bin/env python3
"""Programs run from the CD do what they should, although the pages that they are read into held other code before.

An emulated processor keeps translations of the code that it ran.  A drive that changes the guest's memory behind its
back leaves the old translations in force, and a program freshly read from the CD runs as a mixture of both.
Debian's kernels hide this by clearing pages before use (`init_on_alloc`); a checksum of data never shows it.
"""

import os
import shutil
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from discs import iso
from guest import Guest, maker
from tap import Tap

RUNS = 40
# Programs of the disc, with what they are run on; each is a program of its own with different code.
COMMANDS = [
    "sha1sum /job/input", "sha224sum /job/input", "sha256sum /job/input", "sha384sum /job/input", "sha512sum /job/input",
    "md5sum /job/input", "b2sum /job/input", "cksum /job/input", "base64 /job/input", "od -An -tx8 /job/input",
    "sort -k 2 /job/input", "tac /job/input", "factor 600851475143 99999999977 18446744073709551557", "seq 1 3000",
    "tr a-z n-za-m </job/input", "fold -w 7 /job/input", "pr -l 30 -h x /job/input", "numfmt --to=iec 123456 987654321",
    "wc /job/input", "nl /job/input",
]

# Runs each command from the CD, the caches dropped before, and compares with what the same program did from RAM.
SCRIPT = """
mkdir -p /job /mnt/cd
/usr/bin/seq -f '%%06g some words of text' 1 400 >/job/input
mount -t iso9660 -o ro /dev/sr0 /mnt/cd
right=0; n=0
while [ $n -lt %d ]; do
    while read -r name rest; do
        [ $n -lt %d ] || break
        n=$((n + 1))
        expected=$(eval "/mnt/ram/usr/bin/$name $rest" 2>&1 | busybox md5sum)
        sync; echo 3 >/proc/sys/vm/drop_caches
        got=$(eval "/mnt/cd/lib64/ld-linux-x86-64.so.2 --library-path /mnt/cd/usr/lib/x86_64-linux-gnu /mnt/cd/usr/bin/$name $rest" 2>&1 | busybox md5sum)
        if [ "$expected" = "$got" ]; then right=$((right + 1)); else echo "run $n: $name went wrong"; fi
    done </tmp/commands
done
echo "$right of $n"
"""


def programs_tree(folder):
    """The guest's programs with their libraries, as a folder to put on a disc."""
    tree = os.path.join(folder, "tree")
    shutil.copytree(maker("mkguest", "--programs"), tree, symlinks=True)
    return tree


with Tap() as tap, tempfile.TemporaryDirectory(prefix="spindle-stale-") as folder:
    path = iso(os.path.join(folder, "programs.iso"), programs_tree(folder))
    with Guest(cds=[path], append="init_on_alloc=0 init_on_free=0", memory=256) as guest:
        guest.start()
        guest.get("mkdir -p /mnt/ram; ln -s /usr /mnt/ram/usr; cat >/tmp/commands <<'X'\n%s\nX" % "\n".join(COMMANDS))
        text = guest.get(SCRIPT % (RUNS, RUNS), 240)
        tap.ok(text.endswith("%d of %d" % (RUNS, RUNS)), "%d programs run from the CD, all right" % RUNS, text)
        # That the runs read from the CD at all.
        reads = int(guest.get("awk '{ print $1 }' /sys/block/sr0/stat"))
        tap.ok(reads > 10 * RUNS, "they were read from the CD each time (%d reads)" % reads)
