"""A loop device that programs started with environment() take for a slow optical drive: see slow-drive.c.  Needs root."""

import mmap
import os
import struct
import subprocess

HERE = os.path.dirname(os.path.realpath(__file__))
LIBRARY = os.path.join(HERE, "..", "..", "build", "tests", "lib", "libslow-drive.so")
FIELDS = ("rate", "ahead", "status_us", "format_us", "status", "ioctls", "seeks", "stats", "reads", "now", "bytes")
COUNTS = FIELDS[4:]


class SlowDrive:
    """folder: for its files.  size: bytes of the disc, which is noise and lies in the host's page cache."""

    def __init__(self, folder, size):
        self.disc = os.path.join(folder, "disc")
        with open(self.disc, "wb") as f:
            for _ in range(size // 65536):
                f.write(os.urandom(65536))
        self.state = os.path.join(folder, "state")
        with open(self.state, "wb") as f:
            f.truncate(4096)
        with open(self.state, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 4096)
        self.path = subprocess.run(["losetup", "--read-only", "--find", "--show", self.disc], check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.strip()

    def environment(self):
        library = os.path.realpath(LIBRARY)
        if not os.path.exists(library):
            raise SystemExit("there is no %s; run scripts/build" % library)
        link = os.path.join(os.path.dirname(self.state), "library.so")  # LD_PRELOAD knows no way to write a space
        if not os.path.lexists(link):
            os.symlink(library, link)
        return {"LD_PRELOAD": link, "SLOW_DRIVE": self.path, "SLOW_DRIVE_SHARED": self.state}

    def set(self, **values):
        for name, value in values.items():
            struct.pack_into("<q", self.map, FIELDS.index(name) * 8, value)

    def get(self, name):
        return struct.unpack_from("<q", self.map, FIELDS.index(name) * 8)[0]

    def reset(self):
        self.set(**{name: 0 for name in COUNTS})

    def close(self):
        subprocess.run(["losetup", "--detach", self.path], check=False)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()
