#!/usr/bin/env python3
"""The second compiler has nothing to say: every C file of the build, with its own options, warnings as errors."""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))


def check(entry):
    words = shlex.split(entry["command"])
    words = words[2 if os.path.basename(words[0]) == "ccache" else 1:]
    keep, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in ("-o", "-MF", "-MQ"):
            skip = True
        elif word not in ("-MD", "-c", "-fdiagnostics-color=always"):
            keep.append(word)
    done = subprocess.run(["clang", "-fsyntax-only", "-fno-color-diagnostics", *keep], cwd=entry["directory"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    return entry["file"], done.returncode, done.stdout


with open(os.path.join(ROOT, "build", "compile_commands.json")) as f:
    entries = {entry["file"]: entry for entry in json.load(f) if entry["file"].endswith(".c")}
with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
    results = list(pool.map(check, entries.values()))
failed = [(name, text) for name, status, text in results if status]
print("1..2")
print("%sok 1 - the build has C files (%d)" % ("" if results else "not ", len(results)))
print("%sok 2 - clang compiles them without a warning" % ("not " if failed else ""))
for name, text in failed:
    for line in [l for l in text.splitlines() if re.search("error|warning", l)][:10]:
        print("# " + line)
sys.exit(1 if failed or not results else 0)
