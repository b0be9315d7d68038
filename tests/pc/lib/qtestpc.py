"""A client of the qtest protocol: starts a program the way test programs do, and drives its devices by register.

The program is Spindle, by a link with another name, or the engine (QEMU): the same calls work on both.
"""

import base64
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
ROOT = os.path.realpath(os.path.join(HERE, "..", "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "vm", "lib"))

BUILD = os.environ.get("SPINDLE_BUILD") or os.path.join(ROOT, "build")

BSY, DRDY, DF, DRQ, ERR = 0x80, 0x40, 0x20, 0x08, 0x01
MAX_WAIT = 20  # s


def engine():
    return subprocess.run([os.path.join(ROOT, "scripts", "engine")], stdout=subprocess.PIPE, text=True,
                          check=True).stdout.strip()


class Place:
    """A folder for images and sockets, and a link to the program with the name that test programs expect."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="spindle-pc-")
        self.spindle = os.path.join(self.folder, "qemu-system-x86_64")
        os.symlink(os.path.join(BUILD, "spindle"), self.spindle)

    def path(self, name):
        return os.path.join(self.folder, name)

    def image(self, name, size, data=b""):
        with open(self.path(name), "wb") as f:
            f.write(data)
            f.truncate(size)
        return self.path(name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)


class Qmp:
    def __init__(self, sock):
        self.sock = sock
        self.file = sock.makefile("rb")
        self.events = []
        self.greeting = self.read()

    def read(self):
        line = self.file.readline()
        if not line:
            raise EOFError("the monitor is closed")
        return json.loads(line)

    def send(self, name, **args):
        self.sock.sendall(json.dumps({"execute": name, "arguments": args} if args else {"execute": name}).encode())

    def answer(self):
        while True:
            message = self.read()
            if "event" not in message:
                return message
            self.events.append(message)

    def run(self, name, **args):
        """The answer, an error too."""
        self.send(name, **{k.replace("_", "-"): v for k, v in args.items()})
        return self.answer()

    def must(self, name, **args):
        answer = self.run(name, **args)
        assert "return" in answer, "%s: %s" % (name, answer)
        return answer["return"]

    def hmp(self, line):
        return self.must("human-monitor-command", command_line=line)

    def wait_event(self, name, timeout=MAX_WAIT):
        end = time.monotonic() + timeout
        while True:
            for i, event in enumerate(self.events):
                if event["event"] == name:
                    return self.events.pop(i)
            self.sock.settimeout(max(0.01, end - time.monotonic()))
            message = self.read()
            self.sock.settimeout(MAX_WAIT)
            assert "event" in message, message
            self.events.append(message)

    def take_events(self):
        """Names of the events that have come, up to the answer of a query."""
        self.must("query-status")
        names = [e["event"] for e in self.events]
        self.events.clear()
        return names


class Machine:
    """A running program, its qtest and QMP connections."""

    def __init__(self, place, *args, program=None, stderr=None, negotiate=True):
        self.place = place
        self.irqs = {}
        self.intercepts = False
        self.spare = 0x100000  # next free byte of guest memory
        name = tempfile.mkdtemp(dir=place.folder)
        listeners = []
        for end in ("qtest", "monitor"):
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(os.path.join(name, end))
            listener.listen(1)
            listener.settimeout(MAX_WAIT)
            listeners.append(listener)
        self.process = subprocess.Popen(
            [program or place.spindle, "-qtest", "unix:%s/qtest" % name, "-qtest-log", "/dev/null", "-chardev",
             "socket,path=%s/monitor,id=char0" % name, "-mon", "chardev=char0,mode=control", "-display", "none", "-audio",
             "none", *args, "-accel", "qtest"], stdin=subprocess.DEVNULL, cwd=place.folder,
            stderr=stderr if stderr is not None else (subprocess.DEVNULL if program else None), stdout=subprocess.DEVNULL)
        self.sock = self.accept(listeners[0])
        self.file = self.sock.makefile("rb")
        self.qmp = Qmp(self.accept(listeners[1]))
        if negotiate:
            assert self.qmp.run("qmp_capabilities") == {"return": {}}

    def accept(self, listener):
        with listener:
            sock = listener.accept()[0]
            sock.settimeout(MAX_WAIT)
            return sock

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Ends it as test programs do; the exit status and how long it took."""
        start = time.monotonic()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.sock.close()
        return status, time.monotonic() - start

    def raw(self, line):
        self.sock.sendall(line.encode() + b"\n")
        while True:
            answer = self.file.readline().decode()
            if not answer:
                raise EOFError("the program has ended: %s" % self.process.wait(5))
            if not answer.startswith("IRQ "):
                return answer.rstrip("\n")
            _, change, number = answer.split()
            self.irqs[int(number)] = change == "raise"

    def command(self, line):
        answer = self.raw(line)
        assert answer.split()[0] == "OK", "%s -> %s" % (line[:80], answer)
        return answer.split()[1] if " " in answer else None

    def inb(self, port):
        return int(self.command("inb 0x%x" % port), 16)

    def inw(self, port):
        return int(self.command("inw 0x%x" % port), 16)

    def inl(self, port):
        return int(self.command("inl 0x%x" % port), 16)

    def outb(self, port, value):
        self.command("outb 0x%x 0x%x" % (port, value))

    def outw(self, port, value):
        self.command("outw 0x%x 0x%x" % (port, value))

    def outl(self, port, value):
        self.command("outl 0x%x 0x%x" % (port, value))

    def readl(self, addr):
        return int(self.command("readl 0x%x" % addr), 16)

    def writel(self, addr, value):
        self.command("writel 0x%x 0x%x" % (addr, value))

    def read(self, addr, size):
        return base64.b64decode(self.command("b64read 0x%x 0x%x" % (addr, size))) if size else b""

    def write(self, addr, data):
        if data:
            self.command("b64write 0x%x 0x%x %s" % (addr, len(data), base64.b64encode(data).decode()))

    def memset(self, addr, size, value):
        self.command("memset 0x%x 0x%x 0x%x" % (addr, size, value))

    def alloc(self, size, align=4096):
        self.spare = (self.spare + align - 1) & -align
        at, self.spare = self.spare, self.spare + size
        return at

    # PCI configuration, with the byte offset in the low bits of the address register
    def config(self, slot, function, offset, size=4, value=None):
        self.outl(0xcf8, 0x80000000 | slot << 11 | function << 8 | offset)
        letter = {1: "b", 2: "w", 4: "l"}[size]
        if value is None:
            return int(self.command("in%s 0xcfc" % letter), 16)
        self.command("out%s 0xcfc 0x%x" % (letter, value))
        return None

    def enable(self, slot, function, bar, address):
        """Places a BAR and turns the function on; its size."""
        offset = 0x10 + 4 * bar
        self.config(slot, function, offset, 4, 0xffffffff)
        mask = self.config(slot, function, offset)
        io = mask & 1
        size = (~(mask & (0xfffffffc if io else 0xfffffff0)) & 0xffffffff) + 1
        self.config(slot, function, offset, 4, address | io)
        command = self.config(slot, function, 4, 2)
        self.config(slot, function, 4, 2, command | 7)
        return size

    def wait(self, ready, what):
        end = time.monotonic() + MAX_WAIT
        while True:
            value = ready()
            if value is not None:
                return value
            assert time.monotonic() < end, "no %s within %d s" % (what, MAX_WAIT)


class Ide:
    """The PIIX3 function of `pc` through its ports: one channel at a time."""

    BM = 0xc000

    def __init__(self, machine, channel=0):
        self.m = machine
        self.base, self.alt, self.irq = ((0x1f0, 0x3f6, 14), (0x170, 0x376, 15))[channel]
        self.bm = self.BM + 8 * channel
        machine.raw("irq_intercept_in ioapic")
        assert machine.config(1, 1, 0) == 0x70108086
        machine.enable(1, 1, 4, self.BM)
        self.prdt = machine.alloc(4096, 4096)

    def reg(self, number, value=None):
        if value is None:
            return self.m.inb(self.base + number)
        self.m.outb(self.base + number, value)
        return None

    def status(self):
        return self.m.inb(self.alt)

    def wait_clear(self, bits):
        def ready():
            status = self.status()
            return status if not status & bits else None
        return self.m.wait(ready, "end of status %02x" % bits)

    def irq_is(self, level):
        return self.m.irqs.get(self.irq, False) == level

    def wait_irq(self):
        def ready():
            if self.irq_is(True):
                return True
            self.m.inb(0)
            return None
        return self.m.wait(ready, "interrupt")

    def lba(self, lba, count, device=0):
        self.reg(6, 0xe0 | device << 4 | (lba >> 24 & 15))
        self.reg(2, count & 0xff)
        for i in range(3):
            self.reg(3 + i, lba >> 8 * i & 0xff)

    def table(self, entries):
        """entries: (address, bytes), the last one gets the end mark; bytes 0 stands for 64 KiB."""
        data = b"".join(struct.pack("<II", a, n & 0xffff | (0x80000000 if i + 1 == len(entries) else 0))
                        for i, (a, n) in enumerate(entries))
        self.m.write(self.prdt, data)

    def dma(self, command, to_memory, entries, setup, packet=None, table=True):
        """Starts a DMA command and waits for its end: (status, bus-master status)."""
        self.m.outb(self.bm, 0)
        self.m.outb(self.bm + 2, 6)
        if table:
            self.table(entries)
        self.m.outl(self.bm + 4, self.prdt)
        setup()
        self.reg(7, command)
        if packet is not None:
            self.wait_clear(BSY)
            self.send_packet(packet)
        self.m.outb(self.bm, 8 * to_memory)
        self.m.outb(self.bm, 8 * to_memory | 1)

        def ready():
            bm = self.m.inb(self.bm + 2)
            return bm if bm & 6 or not bm & 1 else None
        self.m.wait(ready, "end of DMA")
        status = self.wait_clear(BSY)
        bm = self.m.inb(self.bm + 2)
        self.m.outb(self.bm, 0)
        return status, bm

    def send_packet(self, cdb):
        cdb = bytes(cdb) + bytes(12 - len(cdb))
        for i in range(0, 12, 2):
            self.m.outw(self.base, cdb[i] | cdb[i + 1] << 8)

    def pio_in(self, words):
        return b"".join(struct.pack("<H", self.m.inw(self.base)) for _ in range(words))

    def pio_out(self, data):
        for i in range(0, len(data), 2):
            self.m.outw(self.base, data[i] | data[i + 1] << 8)

    def end(self):
        """Status (read last: it lowers the interrupt) and error."""
        error = self.reg(1)
        return self.reg(7), error

    def identify(self, device=0, packet=False):
        self.reg(6, 0xa0 | device << 4)
        self.reg(7, 0xa1 if packet else 0xec)
        status = self.wait_clear(BSY)
        if not status & DRQ:
            self.end()
            return None
        self.wait_irq()
        assert self.reg(7) & DRQ
        return self.pio_in(256)

    def packet_pio(self, cdb, limit=0xfffe, device=0):
        """(data, status, error) of a packet command that reads by PIO."""
        self.reg(6, device << 4)
        self.reg(1, 0)
        self.reg(4, limit & 0xff)
        self.reg(5, limit >> 8)
        self.reg(7, 0xa0)
        status = self.wait_clear(BSY)
        assert status & DRQ, "no packet wanted: %02x" % status
        self.send_packet(cdb)
        data = b""
        while True:
            self.wait_clear(BSY)
            self.wait_irq()
            status, error = self.end()
            if not status & DRQ:
                return data, status, error
            data += self.pio_in((self.reg(4) | self.reg(5) << 8) // 2)


CMD_NAMES = {0x25: "READ DMA EXT", 0x35: "WRITE DMA EXT", 0x24: "READ SECTORS EXT", 0x34: "WRITE SECTORS EXT",
             0xc8: "READ DMA", 0xca: "WRITE DMA", 0x20: "READ SECTORS", 0x30: "WRITE SECTORS", 0x60: "READ FPDMA QUEUED",
             0x61: "WRITE FPDMA QUEUED"}


class Ahci:
    """The ICH9 function of `q35`: one command at a time on a port."""

    def __init__(self, machine, port=None, base=0xe0000000):
        self.m = machine
        self.base = base
        self.list = machine.alloc(1024, 1024)
        self.fis = machine.alloc(256, 256)
        self.tables = machine.alloc(32 * 0x1000, 128)
        assert machine.config(31, 2, 0) == 0x29228086
        machine.enable(31, 2, 5, base)
        machine.config(31, 2, 0x92, 1, machine.config(31, 2, 0x92, 1) | 0x3f)
        machine.writel(base + 4, machine.readl(base + 4) | 1 << 31)
        if port is None:  # the first one with a device
            port = next(p for p in range(6) if machine.readl(base + 0x128 + 0x80 * p) & 15 == 3)
        self.port = base + 0x100 + 0x80 * port
        self.start()

    def px(self, offset, value=None):
        if value is None:
            return self.m.readl(self.port + offset)
        self.m.writel(self.port + offset, value)
        return None

    def start(self):
        self.px(0x18, self.px(0x18) & ~0x11)
        self.m.wait(lambda: None if self.px(0x18) & 0xc000 else True, "idle port")
        self.px(0x00, self.list)
        self.px(0x04, 0)
        self.px(0x08, self.fis)
        self.px(0x0c, 0)
        self.px(0x30, 0xffffffff)
        self.px(0x10, 0xffffffff)
        self.px(0x18, self.px(0x18) | 0x12)  # FRE, SUD
        self.px(0x18, self.px(0x18) | 1)

    @staticmethod
    def register_fis(command, lba=0, count=0, features=0, device=0x40):
        return struct.pack("<BBBB3sB3sBHBBI", 0x27, 0x80, command, features & 0xff, (lba & 0xffffff).to_bytes(3, "little"),
                           device, (lba >> 24 & 0xffffff).to_bytes(3, "little"), features >> 8, count & 0xffff, 0, 0, 0)

    def prepare(self, slot, fis, entries, write=False, packet=None):
        """entries: (address, bytes)."""
        table = self.tables + slot * 0x1000
        self.m.write(table, fis + bytes(64 - len(fis)) + (packet or b"").ljust(16, b"\0") + bytes(48) +
                     b"".join(struct.pack("<QII", a, 0, (n - 1) & 0x3fffff) for a, n in entries))
        flags = 5 | (0x40 if write else 0) | (0x20 if packet is not None else 0)
        self.m.write(self.list + 32 * slot, struct.pack("<IIQ16x", flags | len(entries) << 16, 0, table))

    def issue(self, slot=0, queued=False):
        self.px(0x10, 0xffffffff)
        if queued:
            self.px(0x34, 1 << slot)
        self.px(0x38, 1 << slot)

    def done(self, slot=0):
        """Waits for the end: (PxTFD, PxIS, bytes moved)."""
        def ready():
            busy = (self.px(0x38) | self.px(0x34)) & 1 << slot  # before the status, which is then the final one
            tfd = self.px(0x20)
            return tfd if not busy or (tfd & ERR and not tfd & BSY) else None
        tfd = self.m.wait(ready, "end of a command")
        moved = struct.unpack("<I", self.m.read(self.list + 32 * slot + 4, 4))[0]
        status = self.px(0x10)
        self.px(0x10, status)
        if tfd & ERR:
            self.start()
        return tfd & 0xffff, status, moved

    def run(self, command, entries=(), write=False, lba=0, count=0, features=0, packet=None, slot=0, device=0x40):
        if packet is not None:
            features = 1  # DMA
        queued = command in (0x60, 0x61)
        if queued:
            count, features = slot << 3, count
        self.prepare(slot, self.register_fis(command, lba, count, features, device), list(entries), write, packet)
        self.issue(slot, queued)
        return self.done(slot)
