"""Recorded reads."""

import os


def live_boot():
    """(first sector, number of sectors) of each read."""
    name = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "data", "live-boot.reads")
    with open(name) as f:
        words = " ".join(line for line in f if not line.startswith("#")).split()
    return [tuple(int(n) for n in word.split("+")) for word in words]
