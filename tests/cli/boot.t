#!/usr/bin/env python3
"""./boot: what it says of wrong arguments."""

import os
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm", "lib"))
from tap import Tap

# Arguments, exit status, what the message has to hold.
CASES = [
    (["nosuch.iso"], 1, "boot: could not open 'nosuch.iso': No such file or directory"),
    (["/"], 1, "could not open '/': it is a folder"),
    (["--nosuch"], 1, "unknown option '--nosuch' (see ./boot --help"),
    (["/dev/null", "surplus"], 1, "unexpected 'surplus' (options of the emulator stand after '--')"),
    (["--help"], 0, "./boot [ISO | URL | /dev/DRIVE] [-- OPTION...]"),
]

with Tap() as tap:
    for args, status, words in CASES:
        done = subprocess.run([os.path.join(ROOT, "boot")] + args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, cwd="/")
        tap.ok(done.returncode == status and words in done.stdout, "./boot " + " ".join(args),
               "exit status %d" % done.returncode, done.stdout)
