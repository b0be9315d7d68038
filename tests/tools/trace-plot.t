#!/usr/bin/env python3
"""spindle-img trace-plot: what was read is where it belongs in the picture, and what cannot be drawn is refused."""

import os
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "vm", "lib")]
from tap import run_tests

BUILD = os.environ.get("SPINDLE_BUILD") or os.path.join(HERE, "..", "..", "build")
IMG = os.path.join(BUILD, "tools", "spindle-img")
folder = tempfile.mkdtemp(prefix="spindle plot ")
AHEAD, NOW, SHORT, LONG, TOO_LONG, FAILED, BAR = 0xb0b0b0, 0x2a9d4a, 0x2266bb, 0xe08a00, 0xd02020, 0xc000c0, 0x2266bb
MIB = 1 << 20


def path(name):
    return os.path.join(folder, name)


def run(*args):
    done = subprocess.run([IMG, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


def picture(name):
    """Rows of 0xRRGGBB of a PNG without filters or of the simple ones."""
    with open(name, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, packed = 8, b""
    while at < len(data):
        size, kind = struct.unpack_from(">I4s", data, at)
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack_from(">IIBB", data, at + 8)
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += 12 + size
    assert (depth, color) == (8, 2)
    raw, rows, before = zlib.decompress(packed), [], bytes(width * 3)
    for y in range(height):
        how, line = raw[y * (width * 3 + 1)], bytearray(raw[y * (width * 3 + 1) + 1:(y + 1) * (width * 3 + 1)])
        for i in range(len(line) if how else 0):
            left, up = line[i - 3] if i >= 3 else 0, before[i]
            line[i] = line[i] + (left if how == 1 else up if how == 2 else 0) & 255
        assert how in (0, 1, 2)
        before = bytes(line)
        rows.append([line[i] << 16 | line[i + 1] << 8 | line[i + 2] for i in range(0, len(line), 3)])
    return rows


def places(rows, color):
    return [(x, y) for y, row in enumerate(rows) if y >= 110 for x, c in enumerate(row) if c == color]


def event(how, at, took, offset, size, result=0, node="n0"):
    return "block_read node %s %s at %d took %d offset %d bytes %d result %d\n" % (node, how, at, took, offset, size, result)


def test_places(tap):
    with open(path("t"), "w") as f:
        f.write("noise\n" + event("now", 1000000, 10, 0, 65536) + event("waited", 2000000, 5000, 25 * MIB, 65536) +
                "block_request_done req 0x1 result 0\n" + event("waited", 3000000, 50000, 50 * MIB, 65536) +
                event("ahead", 4000000, 5, 75 * MIB, MIB) + event("waited", 5000000, 1000000, 99 * MIB, MIB) +
                event("waited", 3500000, 5, 10 * MIB, 65536, -5))
    status, text = run("trace-plot", "-o", path("p.png"), path("t"))
    tap.ok(status == 0, "a trace is drawn", text)
    rows = picture(path("p.png"))
    tap.equal((len(rows[0]), len(rows)), (1280, 860), "its size")
    found = {}
    for name, color in (("at once", NOW), ("10 to 100 ms", LONG), ("over 100 ms", TOO_LONG), ("ahead", AHEAD), ("failed", FAILED)):
        spots = places(rows, color)
        tap.ok(spots, "a read that was: " + name)
        found[name] = (min(x for x, _ in spots), max(y for _, y in spots), max(x for x, _ in spots)) if spots else (0, 0, 0)
    tap.ok(found["at once"][0] < found["10 to 100 ms"][0] < found["failed"][0] < found["ahead"][0] < found["over 100 ms"][0],
           "later ones are further to the right", found)
    tap.ok(found["over 100 ms"][1] < found["ahead"][1] < found["10 to 100 ms"][1] < found["failed"][1] < found["at once"][1],
           "higher places are further up", found)
    legend = [c for row in rows[:110] for c in row]
    tap.ok(all(legend.count(color) == 14 * 14 for color in (AHEAD, NOW, SHORT, LONG, TOO_LONG, FAILED)), "every kind is in the legend")
    tap.ok(all(row[x] == 0xffffff for row in rows for x in range(1256, 1280)), "nothing is cut off at the edge")
    wide = found["over 100 ms"][2] - found["over 100 ms"][0]
    tap.ok(150 < wide < 300, "a second of five is a fifth as wide", wide)


def test_nodes(tap):
    with open(path("two"), "w") as f:
        f.write(event("now", 1, 1, 0, 4096, node="a") + event("now", 2, 1, 0, 4096, node="b") + event("now", 3, 1, 0, 4096, node="b"))
    status, text = run("trace-plot", "-o", path("two.png"), path("two"))
    tap.ok(status == 0 and "drawing node 'b'" in text, "of two nodes the one with more reads", text)
    status, text = run("trace-plot", "-n", "a", "-o", path("two.png"), path("two"))
    tap.ok(status == 0 and not text, "--node chooses", text)
    status, text = run("trace-plot", "-n", "c", "-o", path("two.png"), path("two"))
    tap.ok(status == 1 and "No reads of node 'c'" in text, "a node that is not there", text)


def test_refusals(tap):
    open(path("empty"), "w").close()
    huge = event("now", 1, 1, 2 ** 63 - 1, 2 ** 63 - 1) + event("now", -5, 1, 0, 1) + event("now", 2 ** 63 - 1, 2 ** 63 - 1, 0, 1)
    with open(path("huge"), "w") as f:
        f.write(huge + "block_read node \n" + "block_read node " + "x" * 5000 + "\n")
    for name, args, message in (("a trace without reads", ["-o", path("x.png"), path("empty")], "holds no reads"),
                                ("numbers that overflow", ["-o", path("x.png"), path("huge")], "holds no reads"),
                                ("no such trace", ["-o", path("x.png"), path("none")], "No such file or directory"),
                                ("no picture", [path("two")], "Expecting one trace file, and -o PICTURE"),
                                ("no such folder", ["-o", "/nonexistent/x.png", path("two")], "Could not open '/nonexistent/x.png'")):
        status, text = run("trace-plot", *args)
        tap.ok(status == 1 and message in text, "refused: " + name, text)


def test_recording(tap):
    with open(path("disc"), "wb") as f:
        f.truncate(8 * MIB)
    status, text = run("-T", "enable=block_read,file=" + path("own"), "bench", "-f", "raw", "-c", "100", "-s", "64k", "-d", "1", path("disc"))
    status, text = run("trace-plot", "-o", path("own.png"), path("own"))
    with open(path("own")) as f:
        count = f.read().count("block_read node ")
    tap.ok(status == 0 and count == 100, "a recording of our own: every read is in it", text, count)


run_tests(globals(), folder)
