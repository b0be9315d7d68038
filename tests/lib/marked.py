"""What a test has started: processes that carry a mark in their environment, by which they are found even after a double
fork, and the folder that they use for temporary files."""

import os
import shutil
import signal
import tempfile
import time
import uuid

MARK = "SPINDLE_TEST_RUN"


class MarkedRun:
    """Owns `folder`, in it `tmp` (TMPDIR and XDG_RUNTIME_DIR of the programs), and every process that was started with
    environment()."""

    def __init__(self, prefix):
        self.folder = tempfile.mkdtemp(prefix=prefix)
        self.mark = uuid.uuid4().hex
        self.tmp = os.path.join(self.folder, "tmp")
        os.mkdir(self.tmp, 0o700)

    def environment(self, **more):
        """more: further variables; None removes one."""
        env = dict(os.environ, TMPDIR=self.tmp, XDG_RUNTIME_DIR=self.tmp, **{MARK: self.mark})
        env.update(more)
        return {k: v for k, v in env.items() if v is not None}

    def processes(self):
        """Every process of this run that is alive, as {pid: command line}."""
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
        """What is still there after the end: processes, and files in the temporary folder."""
        end = time.monotonic() + timeout
        while True:
            left = ["process %d: %s" % p for p in self.processes().items()]
            left += [os.path.join(d, f) for d, folders, files in os.walk(self.tmp) for f in files + folders]
            if not left or time.monotonic() > end:
                return left
            time.sleep(0.05)

    def end_all(self, signals=(signal.SIGKILL,), timeout=3):
        """Whatever the state: no process and no file of this run remains. Each signal gets `timeout` seconds."""
        for number in signals:
            for pid in self.processes():
                try:
                    os.kill(pid, number)
                except OSError:
                    pass
            end = time.monotonic() + timeout
            while self.processes() and time.monotonic() < end:
                time.sleep(0.05)
        shutil.rmtree(self.folder, ignore_errors=True)
