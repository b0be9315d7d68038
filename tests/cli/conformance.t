#!/usr/bin/env python3
"""The same QMP session with the engine and with spindled: answers, errors and events are the same, but for what is listed here."""

import json
import os
import re
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from program import Place, engine  # noqa: E402
from tap import Tap  # noqa: E402
from qmp import Qmp  # noqa: E402
from qmp_session import IGNORED, INTENDED, SESSION  # noqa: E402

MIB = 1 << 20
NODES = [{"driver": "file", "node-name": "f0", "read-only": True, "filename": "a.iso"},
         {"driver": "raw", "node-name": "n0", "read-only": True, "file": "f0"},
         {"driver": "file", "node-name": "fd", "filename": "d.img", "discard": "unmap"},
         {"driver": "raw", "node-name": "nd", "file": "fd", "detect-zeroes": "on"}]
DEVICES = ["ide-cd,drive=n0,id=cd0,bus=ide.0", "ide-cd,bus=ide.1", "ide-hd,drive=nd,id=hd0,bus=ide.2"]


def command_line(place, program):
    """The program with two CD drives, the second one empty and without an id, and a disk."""
    common = [w for node in NODES for w in ("-blockdev", json.dumps(node))] + [w for d in DEVICES for w in ("-device", d)]
    path = os.path.join(place.tmp, "qmp")
    chardev = ["-chardev", "socket,id=c,server=on,wait=off,path=" + path]
    if program == "spindled":
        return path, [program, *chardev, "--monitor", "c", "--vfio-user", os.path.join(place.tmp, "s"), *common]
    return path, [program, "-machine", "q35", "-nodefaults", "-S", "-display", "none", "-accel", "qtest", *chardev,
                  "-mon", "c,mode=control", *common]


def make_files(place):
    place.write("a.iso", b"a" * MIB)
    place.write("b.iso", b"b" * MIB)
    place.write("d.img", b"d" * (4 * MIB))


def clean(value, names):
    """Without what is never the same: numbers of generated nodes, counters of time."""
    if isinstance(value, dict):
        return {k: clean(v, names) for k, v in value.items() if k not in IGNORED}
    if isinstance(value, list):
        cleaned = [clean(v, names) for v in value]
        # Properties come in no order.
        return sorted(cleaned, key=lambda v: v["name"]) if cleaned and all(isinstance(v, dict) and "name" in v for v in cleaned) else cleaned
    if isinstance(value, str):
        return re.sub(r"#block\d+", lambda m: names.setdefault(m.group(0), "#%d" % len(names)), value)
    return value


def run_session(place, program):
    """[(answer, events)] of the steps, and the schema."""
    make_files(place)
    path, words = command_line(place, program)
    process = place.start(*words)
    place.wait_for(lambda: os.path.exists(path) or process.poll() is not None, "start")
    out, names = [], {}
    with Qmp(path) as qmp:
        if program != "spindled":
            qmp.command("cont")
        schema = qmp.command("query-qmp-schema")
        qmp.take_events()
        for _, name, arguments in SESSION:
            qmp.send(json.dumps({"execute": name, "arguments": arguments} if arguments is not None else {"execute": name}))
            answer = clean(qmp.answer(), names)
            if name == "quit":
                events, qmp.events = qmp.events, []
            else:
                events = qmp.take_events()
            out.append((answer, [clean({k: v for k, v in e.items() if k != "timestamp"}, names) for e in events]))
    process.wait(10)
    process.communicate()
    if os.path.exists(path):
        os.unlink(path)
    return out, schema


def differences(theirs, ours, path=""):
    """[(path, theirs, ours)] of what is not the same."""
    if isinstance(theirs, dict) and isinstance(ours, dict):
        return [d for k in sorted(set(theirs) | set(ours)) for d in
                differences(theirs.get(k, "(none)"), ours.get(k, "(none)"), "%s/%s" % (path, k))]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        return [d for i, (a, b) in enumerate(zip(theirs, ours)) for d in differences(a, b, "%s/%d" % (path, i))]
    return [] if theirs == ours and type(theirs) is type(ours) else [(path, theirs, ours)]


def check(tap, theirs, ours):
    seen = set()
    for (label, name, arguments), their, our in zip(SESSION, theirs, ours):
        title = "%s %s" % (name, json.dumps(arguments) if arguments else "")
        bad = []
        for path, a, b in differences(list(their), list(our)):
            for reason, (step, pattern) in INTENDED.items():
                if step in (label, "*") and re.fullmatch(pattern, path):
                    seen.add(reason)
                    break
            else:
                bad.append("%s: QEMU %s, here %s" % (path, json.dumps(a)[:600], json.dumps(b)[:600]))
        tap.ok(not bad, title[:150], *bad)
    for reason in INTENDED:
        tap.ok(reason in seen, "meant to differ, and does: " + reason)


def arguments(schema):
    """{command: the names of its arguments}, without those of commands whose arguments depend on one of them."""
    named = {info["name"]: info for info in schema}
    types = {name: named[info["arg-type"]] for name, info in named.items() if info["meta-type"] == "command"}
    return {name: {m["name"] for m in t["members"]} for name, t in types.items() if "variants" not in t}


def check_arguments(tap, theirs, ours):
    """A user of QEMU's schema, such as libvirt, gives an argument as soon as QEMU has it."""
    theirs, ours = arguments(theirs), arguments(ours)
    both = set(theirs) & set(ours)
    tap.ok(len(both) > 30, "commands that both have", len(both))
    tap.equal({name: theirs[name] - ours[name] for name in both if theirs[name] - ours[name]}, {}, "with all arguments that QEMU's have")


if __name__ == "__main__":
    with Tap() as tap, Place() as place:
        (theirs, their_schema), (ours, our_schema) = run_session(place, engine()), run_session(place, "spindled")
        check(tap, theirs, ours)
        check_arguments(tap, their_schema, our_schema)
