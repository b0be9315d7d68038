"""Runs the programs from a private folder, and finds whatever they leave behind."""

import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests", "vm", "lib"), os.path.join(ROOT, "tests", "lib")]
from marked import MarkedRun


def engine(*args):
    return subprocess.run([os.path.join(ROOT, "scripts", "engine"), *args], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


class Place(MarkedRun):
    """A folder with `files` (the current one of the programs) and `tmp` (their runtime and temporary one)."""

    def __init__(self):
        super().__init__("spindle-cli-")
        os.chmod(self.folder, 0o755)
        self.files = os.path.join(self.folder, "files")
        os.mkdir(self.files)

    def path(self, name):
        return os.path.join(self.files, name)

    def write(self, name, data, mode=0o644):
        with open(self.path(name), "wb") as f:
            f.write(data)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def run(self, program, *args, timeout=30, env=None, **options):
        """(exit status, standard output, standard error)."""
        done = subprocess.run([self.program(program), *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, errors="replace", timeout=timeout,
                              cwd=self.files, env=self.environment(**(env or {})), **options)
        return done.returncode, done.stdout, done.stderr

    def start(self, program, *args, env=None, **options):
        return subprocess.Popen([self.program(program), *args], stdin=subprocess.DEVNULL, cwd=self.files,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment(**(env or {})), **options)

    @staticmethod
    def program(name):
        return name if "/" in name else os.path.join(os.environ.get("SPINDLE_BUILD") or os.path.join(ROOT, "build"), name)

    def wait_for(self, ready, what, timeout=10):
        end = time.monotonic() + timeout
        while not ready():
            if time.monotonic() > end:
                raise TimeoutError("no %s within %d s" % (what, timeout))
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end_all()
