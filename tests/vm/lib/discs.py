"""Discs for the guest tests: files with known contents, and ISOs made by xorriso."""

import os
import random
import subprocess

SECTOR = 2048


def patterned(path, size, seed):
    """A sparse file of `size` bytes with noise in its first and last MiB and in 64 places between, so that
    a sector read from the wrong place shows.  Returns the places as (offset, length)."""
    rng = random.Random(seed)
    piece = 1 << 20
    places = [(0, min(piece, size)), (max(0, size - piece), min(piece, size))]
    places += [(rng.randrange(size), 96 * 1024) for _ in range(64) if size > 4 * piece]
    with open(path, "wb") as f:
        f.truncate(size)
        for offset, length in places:
            f.seek(offset)
            f.write(rng.randbytes(min(length, size - offset)))
    return places


def sectors(path):
    """How many sectors the disc has: a short last one counts."""
    return (os.path.getsize(path) + SECTOR - 1) // SECTOR


def read_sectors(path, lba, count):
    """What a drive has to return: a short last sector is filled up with zeros."""
    with open(path, "rb") as f:
        f.seek(lba * SECTOR)
        data = f.read(count * SECTOR)
    return data + bytes(min(count, sectors(path) - lba) * SECTOR - len(data))


def iso(path, tree, label="SPINDLE_TEST"):
    """An ISO 9660 image with Rock Ridge of a folder.  The dates are fixed, so that two runs give the same file."""
    done = subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-R", "-J", "-V", label,
                           "--modification-date=2024010100000000", "-o", path, tree],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError("xorriso: " + done.stdout)
    return path
