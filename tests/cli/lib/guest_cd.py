"""The guest of a drive that spindled serves: tests/lib/cd-client on its socket."""

import os
import subprocess

from program import ROOT


class Guest:
    """cd-client on the socket."""

    def __init__(self, socket, kind="0"):
        self.process = subprocess.Popen([os.path.join(ROOT, "build", "tests", "lib", "cd-client"), socket, kind],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.pending = 0
        while not self.process.stdout.readline().split(" ", 1)[1].startswith(("ready", "capacity")):
            pass

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.pending += 1

    def answers(self):
        """The words of each line that is due, without the time."""
        out = []
        while self.pending:
            words = self.process.stdout.readline().split()
            if words[1] in ("cdb", "sum", "reads", "places", "reg", "up", "write"):
                out.append(words[1:])
                self.pending -= 1
        return out

    def run(self, line):
        self.send(line)
        return self.answers()[-1]

    def ready(self):
        """What TEST UNIT READY says once what changed has been told."""
        last = None
        for _ in range(8):
            sense = self.run("cdb 0 00")[1]
            if sense == last:
                return sense
            last = sense
        return "unstable " + last

    def close(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()
