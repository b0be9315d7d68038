"""Servers that a test starts, the tools under test, and what they print."""

import atexit
import hashlib
import os
import random
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests", "vm", "lib")]
BUILD = os.environ.get("SPINDLE_BUILD") or os.path.join(ROOT, "build")
IMG = os.path.join(BUILD, "tools", "spindle-img")
IO = os.path.join(BUILD, "tools", "spindle-io")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listening(port):
    def ready():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    return ready


class Server:
    """A program that serves once ready() is true."""

    def __init__(self, *command, ready, env=None):
        self.command, self.ready, self.env = command, ready, env
        self.process = None
        atexit.register(self.stop)
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, env=self.env)
        end = time.monotonic() + 15
        while not self.ready() and self.process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Nbdkit(Server):
    """nbdkit on the UNIX socket `path`."""

    def __init__(self, path, *args):
        self.path = path
        super().__init__("nbdkit", "-f", "-U", path, *args, ready=lambda: os.path.exists(path))

    def vanish(self):
        """Ends it, and nothing is left at its place."""
        self.stop()
        os.unlink(self.path)

    def restart(self, away=0):
        """Is not there for so many seconds."""
        self.vanish()
        time.sleep(away)
        self.start()


def nbdkit(folder, *args, path=None, read_only=True):
    """The server of a plugin and its arguments; options, wherever they stand among them, go before it."""
    path = path or os.path.join(folder, "n%d.sock" % random.randrange(1 << 30))
    first = [a for a in args if a.startswith("-")]
    return Nbdkit(path, *["-r"] * read_only, *first, *[a for a in args if not a.startswith("-")])


class Background:
    """A tool that runs while the test does something else."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.began = time.monotonic()

    def end(self, timeout=60):
        """(exit status, all that it said); `took` is then how long it ran since mark()."""
        text, _ = self.process.communicate(timeout=timeout)
        self.took = time.monotonic() - self.began
        return self.process.returncode, text

    def mark(self):
        self.began = time.monotonic()


def run(*command, timeout=120):
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=timeout, env=env)
    return done.returncode, done.stdout, done.stderr


def io(*args, script, timeout=60):
    """All that spindle-io says to the commands, one after the other."""
    words = []
    for command in script:
        words += ["-c", command]
    status, text, errors = run(IO, *words, *args, timeout=timeout)
    return text + errors + ("" if status == 0 else "\nexit %d" % status)


def file_sum(path, size=-1):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read(size)).hexdigest()


def copy(out, *image):
    """(sha256 of what the image holds, what was said); None when it cannot be copied."""
    status, text, errors = run(IMG, "convert", "-O", "raw", *image, out)
    return None if status else file_sum(out), text + errors
