"""Recorded reads, and content that is made when it is asked for."""

import os


def live_boot():
    """(first sector, number of sectors) of each read."""
    name = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "data", "live-boot.reads")
    with open(name) as f:
        words = " ".join(line for line in f if not line.startswith("#")).split()
    return [tuple(int(n) for n in word.split("+")) for word in words]


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
