"""The guest driver: starts a virtual machine with CD drives, runs scripts inside, cleans up.

A `Guest` is one run of the emulator under test.  It owns a temporary folder (sockets, logs; also the TMPDIR and
XDG_RUNTIME_DIR of the emulator, so that anything left behind is seen) and every process started in it.
All processes carry a mark in their environment, by which they are found even after a double fork.

Two ways to boot: `kernel`, the kernel and RAM disk of mkguest with a control channel that runs scripts
(`run`); and `cd`, whatever the firmware finds on the CD, driven over the serial port (`wait_serial`, `type`).
"""

import base64
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
from marked import MarkedRun

# The shell of the live CD, and of the system that the installer's CD installs, on the serial port.
PROMPT = r"root@spindle:[^#\n]*# "
# Prints what the guest's kernel has to complain of.
KERNEL_ERRORS = ("dmesg | grep -E 'ata[0-9].*(exception|error|failed|timeout|reset)|I/O error|SQUASHFS error|EXT4-fs error'; "
                 "true")


# A test that runs out of its time is told by SIGTERM; leave by way of every `with`, so that all is cleaned up.
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(1))


class GuestError(Exception):
    pass


def output_of(*command):
    """What a helper script prints, without the line's end; its messages go to standard error."""
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise GuestError("%s: exit status %d" % (" ".join(command), done.returncode))
    return done.stdout.strip()


def engine(*args):
    return output_of(os.path.join(ROOT, "scripts", "engine"), *args)


def emulator():
    """The program under test: build/spindle, or what SPINDLE_EMULATOR names (such as the bare engine)."""
    return os.environ.get("SPINDLE_EMULATOR") or os.path.join(ROOT, "build", "spindle")


def is_spindle(program):
    return os.path.basename(program) == "spindle"


def accelerator():
    loaded = any(os.path.exists("/sys/module/" + m) for m in ("kvm_intel", "kvm_amd"))
    return "kvm" if loaded and os.access("/dev/kvm", os.R_OK | os.W_OK) else "tcg"


def maker(name, *args):
    """Path of an image that a script in tests/vm makes or has in its cache."""
    return output_of(os.path.join(ROOT, "tests", "vm", name), *args)


class Channel:
    """A stream socket of the emulator, drained by a thread of its own so that the guest never waits."""

    def __init__(self, folder, name):
        self.path = os.path.join(folder, name + ".sock")
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.path)
        self.server.listen(1)
        self.peer = None
        self.closed = False
        self.data = bytearray()
        self.news = threading.Condition()
        threading.Thread(target=self._drain, daemon=True).start()

    def _drain(self):
        try:
            self.peer, _ = self.server.accept()
            with self.news:
                self.news.notify_all()
            while True:
                got = self.peer.recv(65536)
                if not got:
                    break
                with self.news:
                    self.data += got
                    self.news.notify_all()
        except OSError:
            pass
        with self.news:
            self.closed = True
            self.news.notify_all()

    def wait(self, ready, timeout, what):
        """Wait until ready(data) is neither None nor False; return it."""
        end = time.monotonic() + timeout
        with self.news:
            while True:
                result = ready(self.data)
                if result is not None and result is not False:
                    return result
                left = end - time.monotonic()
                if left <= 0:
                    raise GuestError("no %s within %.0f s" % (what, timeout))
                if self.closed:
                    raise GuestError("the emulator is gone while waiting for %s" % what)
                self.news.wait(min(left, 1))

    def send(self, data, timeout=30):
        self.wait(lambda _: self.peer is not None, timeout, "connection")
        self.peer.sendall(data)

    def take_line(self, timeout, what):
        def line(data):
            end = data.find(b"\n")
            return None if end < 0 else end + 1
        return self.take(self.wait(line, timeout, what), timeout, what).decode(errors="replace").strip()

    def take(self, count, timeout, what):
        self.wait(lambda data: len(data) >= count, timeout, what)
        with self.news:
            got = bytes(self.data[:count])
            del self.data[:count]
        return got

    def close(self):
        for s in (self.peer, self.server):
            if s is not None:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()


class Guest(MarkedRun):
    """args: more options of the emulator.  cds: the CD drives, each a path, None (an empty drive) or a list of
    options.  boot: 'kernel' or 'cd'.  firmware: 'seabios' or 'ovmf'.  append: more words for the kernel."""

    def __init__(self, cds=(), boot="kernel", machine="q35", firmware="seabios", arch="amd64", memory=512,
                 smp=1, append="", args=(), program=None, vga=False):
        self.program = program or emulator()
        if not os.access(self.program, os.X_OK):
            raise GuestError("there is no program '%s'; run scripts/build" % self.program)
        super().__init__("spindle-test-")
        self.process = None
        self.uptime = None
        self.serial = Channel(self.folder, "serial")
        self.monitor = Channel(self.folder, "monitor")
        self.control = Channel(self.folder, "control") if boot == "kernel" else None
        self.command = self._command(cds, boot, machine, firmware, arch, memory, smp, append, args, vga)

    def _command(self, cds, boot, machine, firmware, arch, memory, smp, append, args, vga):
        c = [self.program, "-accel", accelerator(), "-machine", machine, "-m", str(memory), "-smp", str(smp),
             "-display", "none", "-nodefaults", "-no-user-config", "-nic", "none",
             "-vga", "std" if vga else "none",
             "-chardev", "socket,id=serial,path=" + self.serial.path, "-serial", "chardev:serial",
             "-chardev", "socket,id=monitor,path=" + self.monitor.path, "-qmp", "chardev:monitor"]
        if firmware == "ovmf":
            nvram = os.path.join(self.folder, "vars.fd")
            shutil.copyfile(engine("--share", "OVMF_VARS_4M.fd"), nvram)
            c += ["-drive", "if=pflash,format=raw,readonly=on,file=" + engine("--share", "OVMF_CODE_4M.fd"),
                  "-drive", "if=pflash,format=raw,file=" + nvram]
        if boot == "kernel":
            image = maker("mkguest", arch)
            c += ["-kernel", image + "/vmlinuz", "-initrd", image + "/initrd", "-append",
                  "console=ttyS0 panic=-1 quiet mitigations=off " + append,
                  "-device", "virtio-serial-pci", "-chardev", "socket,id=control,path=" + self.control.path,
                  "-device", "virtserialport,chardev=control,name=spindle.ctl"]
        else:
            c += ["-boot", "d"]
        for number, cd in enumerate(cds):
            c += cd if isinstance(cd, list) else self._drive(number, cd, machine)
        return c + list(args)

    def _drive(self, number, path, machine):
        """A drive in the plain form; on `pc` the second IDE channel holds the first two, as in QEMU's defaults."""
        bus = "bus=ide.%d,unit=%d" % (1 - number // 2, number % 2) if machine == "pc" else "bus=ide.%d" % (number + 1)
        if path is None:
            return ["-device", "ide-cd,id=cd%d,%s" % (number, bus)]
        name = path.replace(",", ",,")
        return ["-blockdev", "driver=file,node-name=file%d,read-only=on,filename=%s" % (number, name),
                "-blockdev", "driver=raw,node-name=disc%d,read-only=on,file=file%d" % (number, number),
                "-device", "ide-cd,id=cd%d,drive=disc%d,%s" % (number, number, bus)]

    def start(self, timeout=90):
        """Start the emulator; with boot='kernel' wait for the guest to be ready."""
        self.log = open(os.path.join(self.folder, "emulator.log"), "wb")
        self.began = time.monotonic()
        self.process = subprocess.Popen(self.command, env=self.environment(), stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=self.log, start_new_session=True)
        threading.Thread(target=self._reap, daemon=True).start()
        self._greeting()
        if self.control:
            self.wait_ready(timeout)
        return self

    def _reap(self):
        """A dead emulator never connects: end the waiting for it."""
        self.process.wait()
        for channel in (self.serial, self.monitor, self.control):
            if channel is not None:
                with channel.news:
                    channel.closed = channel.closed or channel.peer is None
                    channel.news.notify_all()

    def _greeting(self):
        self.monitor.take_line(30, "QMP greeting")
        self.qmp("qmp_capabilities")

    def wait_ready(self, timeout=90):
        word, self.uptime, self.release = self.control.take_line(timeout, "READY from the guest").split()
        if word != "READY":
            raise GuestError("the guest said %r" % word)

    def run(self, script, timeout=60):
        """Run a shell script in the guest: (exit status, output of both streams)."""
        self.control.send(base64.b64encode(script.encode()) + b"\n")
        status, size = self.control.take_line(timeout, "end of the script %r" % script[:60]).split()
        return int(status), self.control.take(int(size), timeout, "output").decode(errors="replace")

    def get(self, script, timeout=60):
        """Output of a script that must succeed, without white space around it."""
        status, text = self.run(script, timeout)
        if status:
            raise GuestError("in the guest, %r: exit status %d\n%s" % (script, status, text))
        return text.strip()

    def qmp(self, name, **arguments):
        """Run a QMP command; events that come meanwhile are dropped."""
        command = {"execute": name}
        if arguments:
            command["arguments"] = {k.replace("_", "-"): v for k, v in arguments.items()}
        self.monitor.send(json.dumps(command).encode() + b"\n")
        while True:
            answer = json.loads(self.monitor.take_line(30, "answer to " + name))
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise GuestError("%s: %s" % (name, answer["error"]["desc"]))

    def serial_text(self):
        with self.serial.news:
            return self.serial.data.decode(errors="replace")

    def wait_serial(self, pattern, timeout=90):
        """Wait for a regular expression on the serial port; what came before its end is consumed."""
        seek = re.compile(pattern.encode())
        found = self.serial.wait(seek.search, timeout, "%r on the serial port" % pattern)
        return self.serial.take(found.end(), 5, "text").decode(errors="replace")

    def type(self, text):
        self.serial.send(text.encode())

    def ask(self, command, timeout=120):
        """Type a command at the shell on the serial port: its output, without the echo."""
        # The marks are put together by the shell, so that the echo of the command does not hold them.
        self.type("echo 'BEG''IN'; %s; echo 'END''OF'\n" % command)
        text = self.wait_serial(r"(?s)BEGIN\r?\n.*ENDOF\r?\n", timeout)
        self.wait_serial(PROMPT, 20)
        return re.search(r"(?s)BEGIN\r?\n(.*)ENDOF\r?\n", text).group(1).replace("\r", "").strip()

    def screen(self):
        """The picture on the screen as (width, height, bytes of RGB)."""
        path = os.path.join(self.folder, "screen.ppm")
        self.qmp("screendump", filename=path)
        with open(path, "rb") as f:
            magic, width, height, _, pixels = re.match(rb"(P6)\s(\d+)\s(\d+)\s(\d+)\s(.*)", f.read(), re.S).groups()
        return int(width), int(height), pixels

    def drive_processes(self):
        """The process ids of spindled."""
        return [pid for pid, line in self.processes().items() if os.path.basename(line.split()[0]) == "spindled"]

    def emulator_log(self):
        with open(os.path.join(self.folder, "emulator.log"), errors="replace") as f:
            return f.read()

    def quit(self, timeout=20):
        """End through the monitor, as a user would; the exit status."""
        try:
            self.qmp("quit")
        except (GuestError, OSError):
            pass
        return self.process.wait(timeout)

    def close(self):
        """Whatever the state: no process and no file of this run remains."""
        self.end_all((signal.SIGTERM, signal.SIGKILL))
        if self.process is not None:
            self.process.wait()
            self.log.close()
        for channel in (self.serial, self.monitor, self.control):
            if channel is not None:
                channel.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None and issubclass(kind, Exception):
            print("# emulator: " + " ".join(self.command))
            for name, text in (("log", self.emulator_log() if self.process else ""), ("serial", self.serial_text())):
                for line in text[-2500:].splitlines():
                    print("# %s: %s" % (name, line))
        self.close()
