"""What a person at a prompt does."""

import os
import select
import time


class Peer:
    """Types on a descriptor, and reads up to what is to come."""

    def __init__(self, fd):
        self.fd, self.text = fd, ""

    def until(self, end, timeout=10):
        stop = time.monotonic() + timeout
        while end not in self.text:
            left = stop - time.monotonic()
            if left <= 0 or not select.select([self.fd], [], [], left)[0]:
                raise TimeoutError("no %r in %r" % (end, self.text))
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                raise EOFError(self.text)
            self.text += data.decode(errors="replace")
        part, self.text = self.text.split(end, 1)
        return part

    def say(self, line, end):
        os.write(self.fd, line.encode())
        return self.until(end)
