"""Runs the programs from a private folder, and finds whatever they leave behind."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm", "lib"))

MARK = "SPINDLE_TEST_RUN"


def engine(*args):
    return subprocess.run([os.path.join(ROOT, "scripts", "engine"), *args], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


class Place:
    """A folder with `files` (the current one of the programs) and `tmp` (their runtime and temporary one)."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="spindle-cli-")
        os.chmod(self.folder, 0o755)
        self.files = os.path.join(self.folder, "files")
        self.tmp = os.path.join(self.folder, "tmp")
        os.mkdir(self.files)
        os.mkdir(self.tmp, 0o700)
        self.mark = uuid.uuid4().hex

    def path(self, name):
        return os.path.join(self.files, name)

    def write(self, name, data, mode=0o644):
        with open(self.path(name), "wb") as f:
            f.write(data)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def environment(self, **more):
        env = dict(os.environ, TMPDIR=self.tmp, XDG_RUNTIME_DIR=self.tmp, **{MARK: self.mark})
        env.update(more)
        return {k: v for k, v in env.items() if v is not None}

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

    def processes(self):
        found = {}
        mark = ("%s=%s" % (MARK, self.mark)).encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as f:
                    if mark not in f.read().split(b"\0"):
                        continue
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    line = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if line:
                found[int(pid)] = line
        return found

    def leftovers(self, timeout=5):
        end = time.monotonic() + timeout
        while True:
            left = ["process %d: %s" % p for p in self.processes().items()]
            left += [os.path.join(d, f) for d, folders, files in os.walk(self.tmp) for f in files + folders]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.05)

    def wait_for(self, ready, what, timeout=10):
        end = time.monotonic() + timeout
        while not ready():
            if time.monotonic() > end:
                raise TimeoutError("no %s within %d s" % (what, timeout))
            time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        shutil.rmtree(self.folder, ignore_errors=True)
