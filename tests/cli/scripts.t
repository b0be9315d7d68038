#!/usr/bin/env python3
"""./boot, ./check, ./bench: what they say of wrong arguments."""

import os
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm", "lib"))
from tap import Tap

# Script, arguments, exit status, what the message has to hold.
CASES = [
    ("boot", ["nosuch.iso"], 1, "boot: could not open 'nosuch.iso': No such file or directory"),
    ("boot", ["/"], 1, "could not open '/': it is a folder"),
    ("boot", ["--nosuch"], 1, "unknown option '--nosuch' (see ./boot --help"),
    ("boot", ["/dev/null", "surplus"], 1, "unexpected 'surplus' (options of the emulator stand after '--')"),
    ("boot", ["--help"], 0, "./boot [ISO | URL | /dev/DRIVE] [-- OPTION...]"),
    ("check", ["nosuch"], 1, "check: no test is named 'nosuch' (see ./check --list)"),
    ("check", ["tree", "--nosuch"], 1, "check: no test is named '--nosuch' (see ./check --list)"),
    ("check", ["--help"], 0, "./check [--times] [NAME...]"),
    ("bench", ["nosuch"], 1, "bench: no benchmark is named 'nosuch' (see ./bench --list)"),
    ("bench", ["--help"], 0, "./bench [NAME...]"),
]

with Tap() as tap:
    for script, args, status, words in CASES:
        done = subprocess.run([os.path.join(ROOT, script)] + args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, cwd="/")
        # A refusal is the last word: nothing is run after it.
        last = status == 0 or words in done.stdout.strip().splitlines()[-1]
        tap.ok(done.returncode == status and words in done.stdout and last, "./%s %s" % (script, " ".join(args)),
               "exit status %d" % done.returncode, done.stdout)
