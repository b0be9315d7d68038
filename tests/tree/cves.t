#!/usr/bin/env python3
"""tests/cves.map: every fault is in it, and every test that it names is there, runs and passes."""

import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm", "lib"))
from tap import Tap  # noqa: E402

BUILD = os.path.join(ROOT, os.environ.get("SPINDLE_BUILD") or "build")
LIMIT = 300  # s
ID = r"CVE-\d{4}-\d{4,}|GL\d{2,5}|LP\d{6,}"

# What the table has to hold at least: the published faults of QEMU's IDE, ATAPI and AHCI code, those without a number by their fix
# or what happened, and of emulated SCSI disks and CDs.
IDE = """CVE-2014-2894 CVE-2015-5154 CVE-2015-6855 CVE-2015-5158 CVE-2014-9718 CVE-2016-1568 CVE-2013-4526 CVE-2020-29443 CVE-2019-12067
CVE-2020-25743 CVE-2019-20175 CVE-2023-5088 GL62 LP1911075 GL342 GL2777 GL2778 LP1884693 9ef2e93f9b 61f52e06f0 5f81724d80 a71754e5b0
9a41826f38 3bcbe4aa80 58ac321135 tiny-medium stale-mode-page truncated-file""".split()
SCSI = "CVE-2011-3346 CVE-2013-4344 CVE-2023-42467 CVE-2020-1711 CVE-2024-42416 CVE-2024-43110 CVE-2024-8178".split()


def read_table():
    rows = []
    with open(os.path.join(ROOT, "tests", "cves.map"), encoding="utf-8") as f:
        for line in f:
            if line.strip() and not line.startswith("#"):
                rows.append(line.split(None, 2))
    return [(fault, program, test.strip()) for fault, program, test in rows]


def mentioned():
    """The faults that names and comments of tests speak of, with one of the places."""
    found = {}
    for folder, _, names in os.walk(os.path.join(ROOT, "tests")):
        for name in names:
            if name.endswith((".c", ".h", ".t", ".py")) and not os.path.samefile(os.path.join(folder, name), __file__):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as f:
                    for fault in re.findall(ID, f.read()):
                        found[fault] = os.path.relpath(os.path.join(folder, name), ROOT)
    return found


def run(*command):
    env = {**os.environ, "SPINDLE_BUILD": BUILD}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, text=True, timeout=LIMIT, env=env,
                          check=False).stdout


def results_of_program(program, tests):
    """TAP lines of the tests that are named, or whose names begin so."""
    path = os.path.join(BUILD, "tests", program)
    wanted = [name for name in run(path, "-l").splitlines() if name.startswith("/") and name.startswith(tuple(tests))]
    return run(path, "--tap", *[arg for name in wanted for arg in ("-p", name)]).splitlines() if wanted else []


def judge(tap, row, lines):
    fault, program, test = row
    if program.endswith(".t"):
        mine = [line for line in lines if re.match(r"(not )?ok \d+ - ", line) and test in line]
    else:
        mine = [line for line in lines if re.match(r"(not )?ok \d+ ", line) and line.split("ok ", 1)[1].split(None, 1)[1].startswith(test)]
    skipped = [line for line in mine if "# SKIP" in line]
    text = "%s: %s %s" % (fault, program, test)
    if mine and skipped == mine:
        tap.skip(text, skipped[0].split("# SKIP", 1)[1].strip())
    else:
        tap.ok(mine and all(line.startswith("ok ") for line in mine), text, "\n".join(mine) or "no such test ran")


with Tap() as tap:
    table = read_table()
    faults = {row[0] for row in table}
    tap.equal([fault for fault in IDE + SCSI if fault not in faults], [], "every published fault is in the table")
    tap.equal({fault: place for fault, place in mentioned().items() if fault not in faults}, {}, "and every one that a test speaks of")
    tap.equal(sorted({row[0] for row in table if table.count(row) > 1}), [], "no line is there twice")
    for program in sorted({row[1] for row in table}):
        rows = [row for row in table if row[1] == program]
        if program == "-":
            for row in rows:
                tap.ok(len(row[2].split()) > 3, "%s: there is a reason why it has no test" % row[0], row)
            continue
        if program.endswith(".t"):
            lines = run(os.path.join(ROOT, "tests", program)).splitlines()
        else:
            lines = results_of_program(program, [row[2] for row in rows])
        for row in rows:
            judge(tap, row, lines)
