#!/usr/bin/env python3
"""The table of QEMU's options is the engine's own: every option of its help is there, and takes an argument or not
as the table says."""

import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.realpath(__file__)), "lib"))
from program import ROOT, engine
from tap import Tap

# In the engine's table for the sake of other processors.
FOREIGN = {"g", "prom-env", "semihosting", "semihosting-config"}
# Of older QEMUs (from 10.1 on), all with an argument.
OLD = {"runas"}


def our_table():
    with open(os.path.join(ROOT, "system", "qemu-options.c")) as f:
        return {name: takes == "true" for name, takes in re.findall(r'\{"([^"]+)", (true|false)\}', f.read())}


def help_names(text):
    names = set()
    for line in text.splitlines():
        found = re.match(r"--?([A-Za-z][\w-]*)(?:/-([\w-]+)| or -([\w-]+))?", line)
        if found:
            names.update(filter(None, found.groups()))
    return names


def complaint(program, *args):
    return subprocess.run([program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, timeout=30).stdout


with Tap() as tap:
    program = engine()
    table = our_table()
    tap.ok(len(table) > 100, "the table is read", len(table))
    text = complaint(program, "-help")
    missing = sorted(help_names(text) - set(table))
    tap.ok(not missing, "every option of the engine's help is in the table", *missing)
    wrong = []
    for name, takes in sorted(table.items()):
        if name in OLD and takes:
            continue
        # The first pass over the command line stops at either, before anything is started.
        got = complaint(program, "-" + name) if takes else complaint(program, "-" + name, "-no-such-option")
        expected = "-%s: requires an argument" % name if takes else "-no-such-option: invalid option"
        if expected not in got and not (name in FOREIGN and "not supported" in got):
            wrong.append("%s: %s" % (name, got.strip()[-200:]))
    tap.ok(not wrong, "each takes an argument or not as the engine says", *wrong)
