#!/usr/bin/env python3
"""QEMU's human monitor on `spindle`: at a terminal, on sockets, and as QEMU's own options name it. What people type must show
Spindle's drives and QEMU's."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from peer import Peer  # noqa: E402
from program import Place, engine  # noqa: E402
from tap import Tap  # noqa: E402
from qmp import Qmp  # noqa: E402

PROMPT = "(qemu) "
GREETING = re.compile(r"^QEMU \d+\.\d+\.\d+ monitor - type 'help' for more information\r?\n$")
MACHINE = ["-machine", "q35", "-accel", "tcg", "-smp", "2", "-m", "64", "-display", "none", "-nodefaults", "-S", "-device", "virtio-scsi-pci,id=scsi0",
           "-blockdev", "driver=null-co,node-name=null0", "-device", "scsi-hd,drive=null0,id=disk0",
           "-drive", "if=none,id=disc,format=raw,media=cdrom,file=a.iso", "-device", "ide-cd,drive=disc,id=cd0"]


def lines(text):
    """Without the echo of the command."""
    return text.replace("\r", "").split("\n", 1)[-1]


def check_commands(tap, peer, name):
    """What a prompt has to do, wherever it is."""
    say = lambda line: lines(peer.say(line + "\r", PROMPT))
    text = say("info block")
    tap.ok("disc (disc): a.iso (raw, read-only)" in text and "Attached to:      cd0" in text and "null0" in text and "disk0" in text,
           name + ": info block shows the drives of both", text)
    tap.ok("disc (disc): a.iso" in say("info block disc") and "null0" not in say("info block disc"), name + ": info block of one")
    text = say("info blockstats")
    tap.ok("disc:" in text and text.count("Read:") == 2, name + ": info blockstats of both", text)
    tap.equal(say("block_set_io_throttle disc 1000000 0 0 0 0 0"), "", name + ": block_set_io_throttle")
    tap.equal(say("change disc b.iso"), "", name + ": change")
    tap.ok("b.iso" in say("info block disc"), name + ": the other disc is in")
    tap.equal(say("eject disc"), "", name + ": eject")
    tap.ok("[not inserted]" in say("info block disc") and "tray open" in say("info block disc"), name + ": then it is out")
    tap.equal(say("change disc none.iso"), "Error: Could not open 'none.iso': No such file or directory\n", name + ": a mistake is told")
    tap.equal(say("change disc a.iso"), "", name + ": change of an open drive")
    tap.ok("I/O throttling:   bps=1000000" in say("info block disc"), name + ": the limit is the drive's", say("info block disc"))
    tap.equal(say("commit disc"), "Error: Spindle's drives and their nodes do not support 'commit'\n", name + ": what the drives have not is refused")
    tap.ok("migrate to a file instead" in say("savevm x"), name + ": as are snapshots")
    tap.equal(say("device_add ide-cd,bus=ide.3,id=hot"), "", name + ": device_add for Spindle's controller")
    tap.ok("hot" in say("info block"), name + ": the drive is there")
    tap.equal(say("device_del hot"), "", name + ": device_del")
    tap.ok("hot" not in say("info block"), name + ": and gone")
    tap.equal(say("object_add secret,id=sec0,data=abc"), "", name + ": object_add")
    tap.ok("sec0" in say("object_add secret,id=sec0,data=abc"), name + ": a name twice")
    tap.equal(say("object_del sec0"), "", name + ": object_del")
    tap.ok("* CPU #0" in say("info cpus") and say("cpu 1") == "" and "* CPU #1" in say("info cpus"), name + ": the chosen CPU stays", say("info cpus"))
    tap.equal(say("cpu 0"), "", name + ": cpu back")
    tap.ok("invalid CPU index" in say("cpu 7"), name + ": one that there is not")
    tap.equal(say("nonsense x"), "unknown command: 'nonsense'\n", name + ": what is no command is QEMU's to say")
    tap.equal((say(""), say("   ")), ("", ""), name + ": empty lines")
    tap.equal(say("info status"), "VM status: paused (prelaunch)\n", name + ": info status")
    tap.equal((say("c"), say("info status"), say("stop"), say("info status")), ("", "VM status: running\n", "", "VM status: paused\n"), name + ": c, stop")


def start(place, *args, **options):
    return subprocess.Popen([place.program("spindle"), *MACHINE, *args], cwd=place.files, env=place.environment(TERM="dumb"), text=True,
                            stderr=subprocess.PIPE, **options)


def ended(tap, place, process, name):
    """After `quit`."""
    err = process.communicate(timeout=20)[1]
    err = re.sub(r".*'-mon' is deprecated.*\n", "", err)
    tap.equal((process.returncode, err), (0, ""), name + ": quit ends all, and nothing was said")
    tap.equal(place.leftovers(), [], name + ": nothing is left")


def check_terminal(tap, place):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    process = start(place, "-monitor", "stdio", stdin=slave, stdout=slave)
    peer = Peer(master)
    tap.match(peer.until(PROMPT, 30), GREETING, "terminal: QEMU's greeting")
    check_commands(tap, peer, "terminal")
    tap.ok("eject cd0" in peer.say("ej\tcd\t\n", PROMPT), "terminal: commands and drives are completed")
    tap.ok("info version" in peer.say("inf\tversi\t\n", PROMPT), "terminal: and what info has")
    tap.ok("change disc b.iso" in peer.say("change disc b.i\t\n", PROMPT), "terminal: and files")
    tap.ok("b.iso" in peer.say("info block disc\n", PROMPT), "terminal: the right ones")
    tap.ok("info block disc" in peer.say("\x10\n", PROMPT), "terminal: the last line comes back")
    os.write(master, b"\x04")
    peer.until(PROMPT)
    tap.equal(process.poll(), None, "terminal: the end of the input ends nothing")
    os.write(master, b"quit\n")
    ended(tap, place, process, "terminal")
    place.wait_for(lambda: termios.tcgetattr(slave)[:4] == before[:4], "terminal as it was")
    os.close(slave)
    rest = ""
    try:
        peer.until("never", 1)
    except (EOFError, TimeoutError) as error:
        rest = str(error)
    tap.ok(PROMPT not in rest, "terminal: no prompt behind quit", rest)
    os.close(master)


def check_interrupted(tap, place):
    """Killed by the terminal's own key."""
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    process = start(place, "-monitor", "stdio", stdin=slave, stdout=slave)
    Peer(master).until(PROMPT, 30)
    process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=20)[1]
    tap.ok(process.returncode == 0 and "terminating on signal 2" in err, "SIGINT ends QEMU as ever", process.returncode, err)
    place.wait_for(lambda: termios.tcgetattr(slave)[:4] == before[:4], "terminal as it was")
    tap.equal(place.leftovers(), [], "SIGINT: nothing is left, the terminal is as it was")
    os.close(slave)
    os.close(master)


def connect(place, name):
    path = os.path.join(place.tmp, name)
    place.wait_for(lambda: os.path.exists(path), "socket")
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    return sock, Peer(sock.fileno())


def check_sockets(tap, place):
    """A server, two users one after the other; beside it another in the long form, and QMP."""
    process = start(place, "-monitor", "unix:%s/one,server=on,wait=off" % place.tmp, "-chardev", "socket,id=c2,server=on,wait=off,path=%s/two" % place.tmp,
                    "-mon", "chardev=c2,mode=readline", "-qmp", "unix:%s/q,server=on,wait=off" % place.tmp, stdin=subprocess.DEVNULL)
    sock, peer = connect(place, "one")
    with sock:
        tap.match(peer.until(PROMPT, 30), GREETING, "socket: QEMU's greeting")
        check_commands(tap, peer, "socket")
        tap.ok("eject cd0" in peer.say("ej\tcd\t\r", PROMPT), "socket: keys are echoed, Tab completes")
        tap.ok("eject cd0" in peer.say("\x1b[A\r", PROMPT), "socket: the cursor keys bring back what was typed")
        os.write(sock.fileno(), b"info name\ninfo uuid\ninfo kvm\n")
        tap.ok("00000000-0000" in peer.until(PROMPT) + peer.until(PROMPT) + peer.until(PROMPT), "socket: lines that come together, in order")
    sock, peer = connect(place, "one")
    with sock:
        tap.match(peer.until(PROMPT), GREETING, "socket: the next user")
        other, second = connect(place, "two")
        with other, Qmp(os.path.join(place.tmp, "q")) as qmp:
            second.until(PROMPT)
            second.say("change disc b.iso\r", PROMPT)
            tap.ok("b.iso" in peer.say("info block\r", PROMPT), "socket: what one does the others see")
            tap.equal([e["event"] for e in qmp.take_events()], ["DEVICE_TRAY_MOVED"], "QMP has the events")
            tap.equal(sorted(c["label"] for c in qmp.command("query-chardev")), ["c2", "compat_monitor0", "compat_monitor1"], "and the chardevs by their names")
            os.write(other.fileno(), b"quit\r")
            ended(tap, place, process, "socket")


def check_waiting(tap, place):
    """QEMU waits for the first user of a server that says nothing else."""
    process = start(place, "-monitor", "unix:%s/w,server=on" % place.tmp, "-qmp", "unix:%s/q,server=on,wait=off" % place.tmp, stdin=subprocess.DEVNULL)
    path = os.path.join(place.tmp, "q")
    place.wait_for(lambda: os.path.exists(path), "socket")
    with socket.socket(socket.AF_UNIX) as early:
        early.connect(path)
        early.settimeout(1)
        try:
            got = early.recv(1000)
        except socket.timeout:
            got = b""
        tap.equal(got, b"", "server=on: QEMU has not begun")
        sock, peer = connect(place, "w")
        with sock:
            tap.match(peer.until(PROMPT, 30), GREETING, "server=on: it begins with the first user")
            early.settimeout(20)
            tap.ok(early.recv(1000).startswith(b'{"QMP"'), "server=on: for all")
            os.write(sock.fileno(), b"q\r")
            process.communicate(timeout=20)
    tap.equal(place.leftovers(), [], "server=on: nothing is left")


def wait_migration(peer, wanted="completed"):
    for _ in range(100):
        text = peer.say("info migrate\r", PROMPT)
        if wanted in text:
            return True
        time.sleep(0.1)
    return text


def save(tap, place, uri, during=lambda: None):
    """A machine with an open tray, which is then written there."""
    process = start(place, "-monitor", "unix:%s/m,server=on,wait=off" % place.tmp, stdin=subprocess.DEVNULL)
    sock, peer = connect(place, "m")
    with sock:
        peer.until(PROMPT, 30)
        peer.say("eject disc\r", PROMPT)
        peer.say("c\r", PROMPT)
        tap.ok("only while it stands still" in peer.say('migrate "%s"\r' % uri, PROMPT), uri + ": migrate of a machine that runs is refused")
        peer.say("stop\r", PROMPT)
        tap.equal(lines(peer.say('migrate "%s"\r' % uri, PROMPT)), "", uri + ": migrate of one that stands")
        tap.equal(wait_migration(peer), True, uri + ": it is written")
        os.write(sock.fileno(), b"q\r")
        during()
        ended(tap, place, process, uri)


def load(tap, place, uri, during=lambda: None):
    process = start(place, "-monitor", "unix:%s/m,server=on,wait=off" % place.tmp, "-incoming", "defer", stdin=subprocess.DEVNULL)
    sock, peer = connect(place, "m")
    with sock:
        peer.until(PROMPT, 30)
        os.write(sock.fileno(), ('migrate_incoming "%s"\r' % uri).encode())
        during()
        peer.until(PROMPT)
        tap.equal(wait_migration(peer), True, uri + ": it is read")
        tap.equal(lines(peer.say("c\r", PROMPT)), "", uri + ": the machine that has it goes on")
        tap.ok("tray open" in peer.say("info block disc\r", PROMPT), uri + ": its tray is as it was")
        os.write(sock.fileno(), b"q\r")
        ended(tap, place, process, uri)


def check_saving(tap, place):
    """migrate writes the drives' state, too: a machine that is loaded from it has the tray as it was."""
    for there, back in (("file:state", "file:state"), ("exec:cat >state", "exec:cat state")):
        save(tap, place, there)
        load(tap, place, back)
    process = start(place, "-monitor", "unix:%s/m,server=on,wait=off" % place.tmp, stdin=subprocess.DEVNULL)
    sock, peer = connect(place, "m")
    with sock:
        peer.until(PROMPT, 30)
        text = peer.say("migrate tcp:127.0.0.1:1\r", PROMPT)
        tap.ok("Failed to connect to '127.0.0.1:1': Connection refused" in text, "tcp: nobody there", text)
        tap.ok("error parsing address" in peer.say("migrate tcp:nowhere\r", PROMPT), "tcp: no address")
        tap.ok("rdma" in peer.say("migrate rdma:host:1\r", PROMPT), "another kind of address is refused")
        tap.equal(lines(peer.say("c\r", PROMPT)), "", "and the machine runs on")
        os.write(sock.fileno(), b"q\r")
        ended(tap, place, process, "migrate that fails")


def check_saving_by_tcp(tap, place):
    """To somebody who keeps it, and from there."""
    kept = bytearray()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def keep():
            peer, _ = server.accept()
            with peer:
                while data := peer.recv(1 << 20):
                    kept.extend(data)
        keeper = threading.Thread(target=keep)
        keeper.start()
        save(tap, place, "tcp:127.0.0.1:%d" % port, keeper.join)
    tap.ok(kept.startswith(b"SPINDLE-STATE-1\n"), "tcp: the drives' state is ahead of QEMU's")

    def bring():
        for _ in range(100):
            try:
                sender = socket.create_connection(("127.0.0.1", port))
                break
            except ConnectionRefusedError:
                time.sleep(0.1)
        sender.sendall(kept)
        sender.close()
    load(tap, place, "tcp:127.0.0.1:%d" % port, bring)


def check_plain(tap, place):
    """Standard input that is no terminal."""
    process = start(place, "-monitor", "stdio", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, err = process.communicate("info block disc\nquit\n", timeout=30)
    tap.ok(process.returncode == 0 and "a.iso" in out and out.startswith("QEMU ") and not err, "commands from a pipe", out, err)
    tap.equal(place.leftovers(), [], "pipe: nothing is left")


# A boot sector that sends back the letter behind the one that it gets: no interrupts, in which firmware would look at the line, too; wait
# for the line status register's first bit, read, inc, write.
ECHO = bytes.fromhex("fabafd03eca80174fbbaf803ec40eeebf0")


def start_terminal(place, *args):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    command = [place.program("spindle"), "-machine", "q35", "-accel", "tcg", "-m", "64", "-nic", "none", "-drive", "file=echo.img,format=raw,id=hd",
               "-drive", "if=none,id=disc,format=raw,media=cdrom,file=a.iso", "-device", "ide-cd,drive=disc,id=cd0,bus=ide.3", *args]
    process = subprocess.Popen(command, cwd=place.files, env=place.environment(TERM="dumb"), stdin=slave, stdout=slave, stderr=subprocess.PIPE, text=True)
    return master, slave, process, before


def check_mux(tap, place, name, *args):
    """A terminal that the serial line and the monitor share."""
    place.write("echo.img", ECHO + bytes(510 - len(ECHO)) + b"\x55\xaa" + bytes(1 << 20))
    master, slave, process, before = start_terminal(place, *args)
    peer = Peer(master)
    place.wait_for(lambda: not termios.tcgetattr(slave)[3] & termios.ECHO, "raw terminal")
    end = time.monotonic() + 60
    while True:  # firmware takes its time, drops keys, and says much but that
        os.write(master, b"~")
        try:
            peer.until("\x7f", 1)
            break
        except TimeoutError:
            if time.monotonic() > end or process.poll() is not None:
                raise
            peer.text = ""
    tap.ok(True, name + ": keys reach the guest by its serial line, and its answer the terminal")
    os.write(master, b"\x03")
    peer.until("\x04")
    tap.equal(process.poll(), None, name + ": Ctrl-C is the guest's")
    os.write(master, b"\x01\x01")
    peer.until("\x02")
    tap.equal(process.poll(), None, name + ": Ctrl-A twice is one")
    os.write(master, b"\x01h")
    tap.ok("C-a x    exit emulator" in peer.until("sends C-a"), name + ": Ctrl-A h is help")
    os.write(master, b"\x01c")
    tap.match(peer.until(PROMPT), re.compile(r"QEMU \d+\.\d+\.\d+ monitor - type 'help' for more information"), name + ": Ctrl-A c is the monitor")
    tap.ok("a.iso" in peer.say("info block disc\r", PROMPT), name + ": which has Spindle's drives")
    tap.equal(lines(peer.say("change disc b.iso\r", PROMPT)), "", name + ": and changes their discs")
    tap.ok("eject cd0" in peer.say("ej\tcd\t\r", PROMPT), name + ": and completes words")
    os.write(master, b"\x01cp")
    peer.until("q")
    tap.ok(True, name + ": Ctrl-A c again, and the guest has the keys")
    os.write(master, b"\x01c")
    peer.until(PROMPT)
    tap.ok("not inserted" in peer.say("info block disc\r", PROMPT), name + ": and back, all is as it was left")
    return master, slave, process, peer, before


def check_mux_end(tap, place, name, keys, said, *args):
    master, slave, process, peer, before = check_mux(tap, place, name, *args)
    os.write(master, keys)
    peer.until(said)
    tap.equal(process.wait(20), 0, name + ": the end")
    tap.equal(process.stderr.read(), "", name + ": nothing on standard error")
    place.wait_for(lambda: termios.tcgetattr(slave)[:4] == before[:4], "terminal as it was")
    tap.equal(place.leftovers(), [], name + ": nothing is left, the terminal is as it was")
    tap.ok(os.get_blocking(slave), name + ": nor does the terminal not block")
    os.close(slave)
    os.close(master)


def check_no_terminal(tap, place):
    """-nographic where nobody sits: all is QEMU's."""
    process = subprocess.Popen([place.program("spindle"), "-accel", "tcg", "-m", "64", "-nographic", "-S", "-cdrom", "a.iso"], cwd=place.files,
                               env=place.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate("\x01cquit\n", timeout=30)
    tap.ok(process.returncode == 0 and "QEMU" in out and not err, "-nographic in a pipe", out, err)
    tap.equal(place.leftovers(), [], "-nographic in a pipe: nothing is left")


with Tap() as tap, Place() as place:
    for name, size in (("a.iso", 100), ("b.iso", 200)):
        place.write(name, bytes(2048 * size))
    engine()
    for check in (check_terminal, check_interrupted, check_sockets, check_waiting, check_saving, check_saving_by_tcp, check_plain):
        check(tap, place)
    check_mux_end(tap, place, "-nographic", b"\x01x", "QEMU: Terminated", "-nographic")
    check_mux_end(tap, place, "-serial mon:stdio", b"quit\r", "quit", "-display", "none", "-serial", "mon:stdio")
    check_no_terminal(tap, place)
