#!/usr/bin/env python3
"""The human monitor: on a socket, and typed at a terminal with completion and history."""

import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, "lib"))
from peer import Peer  # noqa: E402
from program import Place  # noqa: E402
from tap import Tap  # noqa: E402

PROMPT = "(spindle) "
DRIVE = ["--blockdev", "driver=raw,node-name=disc,read-only=on,file.driver=file,file.filename=a.iso",
         "--device", "ide-cd,drive=disc,id=cdrom0"]


def drives(place):
    return ["--vfio-user", os.path.join(place.tmp, "s"), *DRIVE]


def say(peer, line, end=PROMPT):
    return peer.say(line, end)


def test_socket(tap, place):
    path = os.path.join(place.tmp, "h")
    process = place.start("spindled", *drives(place), "--chardev", "socket,id=h,server=on,wait=off,path=" + path, "--monitor", "h,mode=readline")
    place.wait_for(lambda: os.path.exists(path), "socket")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        peer = Peer(sock.fileno())
        tap.ok(re.match(r"Spindle [\d.]+ monitor - type 'help' for more information\n$", peer.until(PROMPT)), "a greeting and a prompt")
        tap.equal(say(peer, "info status\n"), "VM status: running\n", "info status")
        tap.equal(say(peer, "info block\n"), "disc: a.iso (raw, read-only)\n    Attached to:      cdrom0\n"
                  "    Removable device: not locked, tray closed\n    Cache mode:       writeback\n", "info block")
        tap.equal(say(peer, "change cdrom0 b.iso raw\n"), "", "change, which takes its time")
        tap.ok("b.iso" in say(peer, "info block\r\n"), "has changed it; a line may end with CR and LF")
        os.write(sock.fileno(), b"eject cdrom0\ninfo block cdrom0\nnonsense\n")
        tap.equal([peer.until(PROMPT) for _ in range(3)], ["", "cdrom0: [not inserted]\n    Attached to:      cdrom0\n"
                  "    Removable device: not locked, tray open\n", "unknown command: 'nonsense'\n"], "lines that come together, in order")
        tap.ok("block_resize device size -- resize a block image\n" in say(peer, "help\n"), "help")
        sock.sendall(b"x" * 100000)
        try:
            told = peer.until("\nnever")
        except EOFError as error:
            told = str(error)
        tap.ok("the line is too long" in told, "a line without an end is broken off", told)
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(path)
        peer = Peer(sock.fileno())
        peer.until(PROMPT)
        tap.equal(say(peer, "info version\n")[:6], "10.0.0", "the next client")
        sock.sendall(b"quit\n")
        tap.equal(process.wait(10), 0, "quit")
    process.communicate()


def test_terminal(tap, place):
    master, slave = pty.openpty()
    before = termios.tcgetattr(slave)
    process = subprocess.Popen([place.program("spindled"), *drives(place), "--monitor", "stdio"], cwd=place.files, stdin=slave, stdout=slave,
                               stderr=subprocess.PIPE, env=place.environment(TERM="dumb"), text=True)
    peer = Peer(master)
    tap.ok("type 'help'" in peer.until(PROMPT), "at a terminal: a greeting")
    tap.ok("info status" in say(peer, "inf\tstat\t\n", "VM status: running"), "commands and subcommands are completed")
    peer.until(PROMPT)
    tap.ok("eject cdrom0" in say(peer, "ej\tcdr\t\n"), "and drives")
    tap.ok("tray open" in say(peer, "info block\n"), "the drive was meant")
    tap.ok("change cdrom0 a.iso" in say(peer, "change cd\ta.i\t\n"), "and files")
    tap.ok("a.iso" in say(peer, "info block\n", "writeback"), "the disc is in")
    peer.until(PROMPT)
    tap.ok("blockdev" not in say(peer, "info \t\t", "version"), "what may follow is listed")
    tap.ok("VM status" in say(peer, "status\n", "running"), "and the line goes on")
    peer.until(PROMPT)
    tap.ok("info status" in say(peer, "\x10\n", "running"), "the last line comes back")
    peer.until(PROMPT)
    os.write(master, b"\x04")
    time.sleep(0.2)
    tap.equal(process.poll(), None, "the end of the input does not end the process")
    process.send_signal(signal.SIGTERM)
    tap.equal(process.wait(10), 0, "SIGTERM does")
    tap.equal(termios.tcgetattr(slave)[:4], before[:4], "the terminal is as it was")
    tap.equal(process.communicate()[1], "", "nothing on standard error")
    os.close(master)
    os.close(slave)


with Tap() as tap:
    for test in (test_socket, test_terminal):
        with Place() as place:
            place.write("a.iso", b"a" * (1 << 20))
            place.write("b.iso", b"b" * (1 << 20))
            test(tap, place)
