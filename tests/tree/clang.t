#!/usr/bin/env python3
"""The second compiler has nothing to say: every C file of the build, with its own options, warnings as errors. Like the build it
passes over what is as it was when it was found good: PASSED has the digests of file, headers, options and compiler."""

import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
BUILD = os.path.join(ROOT, "build")
PASSED = os.path.join(BUILD, "clang-passed")
CLANG = "clang"


def command(entry):
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
    return [CLANG, "-fsyntax-only", "-fno-color-diagnostics", *keep]


def output_of(*words):
    return subprocess.run(words, cwd=BUILD, stdout=subprocess.PIPE, text=True, check=True).stdout


def dependencies():
    """For each object the files that it was made of, as the compiler told ninja."""
    found, files = {}, None
    for line in output_of("ninja", "-t", "deps").splitlines():
        if line.startswith("    "):
            files.append(line.strip())
        elif ": #deps " in line:
            files = found[line.split(": #deps ")[0]] = []
    return found


@functools.lru_cache(maxsize=None)
def content(path):
    with open(os.path.join(BUILD, path), "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def digest(entry, files, version):
    """None where it is not known what the file includes."""
    if not files:
        return None
    text = "\0".join([version, *command(entry), *("%s %s" % (path, content(path)) for path in files)])
    return hashlib.sha256(text.encode()).hexdigest()


def check(entry):
    done = subprocess.run(command(entry), cwd=entry["directory"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    return entry["file"], done.returncode, done.stdout


def passed_before():
    try:
        with open(PASSED) as f:
            return set(f.read().split())
    except FileNotFoundError:
        return set()


with open(os.path.join(BUILD, "compile_commands.json")) as f:
    entries = {entry["file"]: entry for entry in json.load(f) if entry["file"].endswith(".c")}
known, version, before = dependencies(), output_of(CLANG, "--version"), passed_before()
digests = {name: digest(entry, known.get(entry["output"]), version) for name, entry in entries.items()}
new = [entry for name, entry in entries.items() if digests[name] not in before]
with concurrent.futures.ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // 2)) as pool:
    results = list(pool.map(check, new))
failed = [(name, text) for name, status, text in results if status]
good = [digests[name] for name in entries if digests[name] and name not in dict(failed)]
with open(PASSED + ".new", "w") as f:
    f.write("\n".join(good) + "\n")
os.replace(PASSED + ".new", PASSED)
print("1..2")
print("%sok 1 - the build has C files (%d, of which %d are as they were)" %
      ("" if entries else "not ", len(entries), len(entries) - len(new)))
print("%sok 2 - clang compiles them without a warning" % ("not " if failed else ""))
for name, text in failed:
    for line in [l for l in text.splitlines() if re.search("error|warning", l)][:10]:
        print("# " + line)
sys.exit(1 if failed or not entries else 0)
