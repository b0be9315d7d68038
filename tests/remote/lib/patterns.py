"""Recorded reads, and content that is made when it is asked for."""

import os
import re

# A word of a recording: how far the first sector is from the end of the read before (nothing: it goes on there), the number
# of sectors, how many such reads in a row, and the milliseconds that the reader let pass after the one before.
WORD = re.compile(r"(-?\d+)?\+(\d+)(?:\*(\d+))?(?:~(\d+))?")


def recording(name):
    """(first sector, number of sectors, milliseconds before it) of each read that data/NAME.reads holds."""
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "data", name + ".reads")
    with open(path) as f:
        words = " ".join(line for line in f if not line.startswith("#")).split()
    reads, at = [], 0
    for word in words:
        distance, count, times, pause = (int(n or 0) for n in WORD.fullmatch(word).groups())
        at += distance
        for _ in range(max(times, 1)):
            reads.append((at, count, pause))
            at, pause = at + count, 0
    return reads


def recorded_words(reads):
    """The words for such reads."""
    at, last = 0, None
    for first, count, pause in reads:
        if last and (first, count, pause) == (at, last[1], 0):
            last[2] += 1
        else:
            if last:
                yield _word(*last)
            last = [first - at, count, 1, pause]
        at = first + count
    yield _word(*last)


def _word(distance, count, times, pause):
    return "%s+%d%s%s" % (distance or "", count, "*%d" % times if times > 1 else "", "~%d" % pause if pause else "")


class Places:
    """As bytes of that size, of which each 8 hold their place, big endian; a slice is made when it is taken."""

    BLOCK = 1 << 20

    def __init__(self, size):
        self.size = size
        self.low = b"".join(place.to_bytes(8, "big") for place in range(0, self.BLOCK, 8))
        # The byte that holds bits of the place in the block and bits of the block's.
        self.mixed = [bytes(b | high << 4 for b in self.low[5::8]) for high in range(16)]

    def __len__(self):
        return self.size

    def block(self, number):
        data, words = bytearray(self.low), self.BLOCK // 8
        data[5::8] = self.mixed[number % 16]
        for at, value in enumerate((number >> 4).to_bytes(5, "big")):
            if value:
                data[at::8] = bytes([value]) * words
        return data

    def __getitem__(self, part):
        first, end, _ = part.indices(self.size)
        if first >= end:
            return b""
        start = first // self.BLOCK
        data = b"".join(self.block(n) for n in range(start, (end - 1) // self.BLOCK + 1))
        return data[first - start * self.BLOCK:end - start * self.BLOCK]
