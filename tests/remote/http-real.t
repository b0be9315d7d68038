#!/usr/bin/env python3
"""A real HTTP server (nginx), an FTP server, and the cache file between processes; memory while much is read."""

import hashlib
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "..", "vm", "lib")]
from faultserver import FaultServer
from tap import Tap

BUILD = os.environ.get("SPINDLE_BUILD") or os.path.join(HERE, "..", "..", "build")
IMG = os.path.join(BUILD, "tools", "spindle-img")
folder = tempfile.mkdtemp(prefix="spindle-real-")
os.chmod(folder, 0o755)
DISC = os.path.join(folder, "disc.iso")
CONTENT = random.Random(9).randbytes(20 * 1000 * 1000 + 7)
SUM = hashlib.sha256(CONTENT).hexdigest()
with open(DISC, "wb") as f:
    f.write(CONTENT)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nginx:
    def __init__(self, more=""):
        self.port = free_port()
        self.conf = os.path.join(folder, "nginx%d.conf" % self.port)
        self.log = os.path.join(folder, "access%d.log" % self.port)
        temp = "".join("%s_temp_path %s/%s%d; " % (n, folder, n, self.port)
                       for n in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        with open(self.conf, "w") as f:
            f.write("daemon off; pid %s/pid%d; error_log %s/error.log; worker_processes 1; events { }\n"
                    "http { access_log %s; %s server { listen 127.0.0.1:%d; root %s; %s } }\n" %
                    (folder, self.port, folder, self.log, temp, self.port, folder, more))
        self.start()

    def start(self):
        self.process = subprocess.Popen(["/usr/sbin/nginx", "-p", folder, "-c", self.conf], stderr=subprocess.DEVNULL)
        for _ in range(100):
            with socket.socket() as s:
                if s.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def requests(self):
        with open(self.log) as f:
            return len(f.readlines())

    def url(self, name="disc.iso"):
        return "http://127.0.0.1:%d/%s" % (self.port, name)


class Ftp:
    """As much of an FTP server (RFC 959, 2428, 3659) as a client needs to read a file from a place."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            peer, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer):
        say = lambda text: peer.sendall((text + "\r\n").encode())
        data, start = None, 0
        say("220 ready")
        for line in peer.makefile():
            verb, _, word = line.strip().partition(" ")
            if verb == "USER":
                say("331 password")
            elif verb in ("PASS", "CWD", "TYPE"):
                say("200 good")
            elif verb == "PWD":
                say('257 "/"')
            elif verb == "EPSV":
                data = socket.create_server(("127.0.0.1", 0))
                say("229 here (|||%d|)" % data.getsockname()[1])
            elif verb == "SIZE":
                say("213 %d" % len(CONTENT))
            elif verb == "MDTM":
                say("213 20240101000000")
            elif verb == "REST":
                start = int(word)
                say("350 from there")
            elif verb == "RETR":
                say("150 coming")
                out, _ = data.accept()
                try:
                    out.sendall(CONTENT[start:])
                except OSError:
                    pass
                out.close()
                data.close()
                say("226 done")
                start = 0
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("502 no")


def run(*command, timeout=120):
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=timeout, env=env)
    return done.returncode, done.stdout, done.stderr


def copy(name, *image):
    out = os.path.join(folder, name)
    status, text, errors = run(IMG, "convert", "-O", "raw", *image, out)
    if status:
        return None, text + errors
    with open(out, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest(), text + errors


def test_nginx(tap):
    server = Nginx()
    got, why = copy("a", server.url())
    tap.ok(got == SUM, "nginx", why)
    status, text, errors = run(IMG, "info", server.url())
    tap.ok("(%d bytes)" % len(CONTENT) in text, "info tells the size", text, errors)
    status, text, errors = run(IMG, "info", server.url("none.iso"))
    tap.ok(status == 1 and "error: 404" in errors, "a file that is not there", errors)
    server.stop()
    server = Nginx("max_ranges 0;")
    got, why = copy("a", server.url())
    tap.ok(got == SUM, "nginx without ranges", why)
    server.stop()
    server = Nginx("limit_rate 3m;")
    process = subprocess.Popen([IMG, "convert", "-O", "raw", server.url(), os.path.join(folder, "b")], stderr=subprocess.PIPE,
                               text=True)
    time.sleep(0.7)
    server.stop()
    time.sleep(1)
    server.start()
    _, errors = process.communicate(timeout=60)
    with open(os.path.join(folder, "b"), "rb") as f:
        tap.ok(hashlib.sha256(f.read()).hexdigest() == SUM, "nginx restarted in the middle", errors)
    server.stop()


def test_ftp(tap):
    server = Ftp()
    got, why = copy("ftp", "ftp://127.0.0.1:%d/disc.iso" % server.port)
    tap.ok(got == SUM, "FTP", why)


def test_cache_file(tap):
    server = Nginx()
    cache = os.path.join(folder, "kept.cache")
    image = ["--image-opts", "driver=http,url=%s,cache-file=%s" % (server.url(), cache)]
    processes = [threading.Thread(target=lambda n=n: results.append(copy("c%d" % n, *image))) for n in range(3)]
    results = []
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    tap.ok([r[0] for r in results] == [SUM] * 3, "three processes with one cache file at once", results)
    before = server.requests()
    got, why = copy("d", *image)
    tap.ok(got == SUM and server.requests() - before == 1, "a later process asks only whether the file is still the same",
           why, server.requests() - before)
    other = bytearray(CONTENT)
    other[5000000] ^= 1
    with open(DISC, "wb") as f:
        f.write(other)
    os.utime(DISC, (1, 1))
    got, why = copy("e", *image)
    tap.equal(got, hashlib.sha256(other).hexdigest(), "a file that changed meanwhile is fetched anew")
    with open(DISC, "wb") as f:
        f.write(CONTENT)
    server.stop()


def test_memory(tap):
    """Reading far more than the cache holds."""
    with open(os.path.join(folder, "large.iso"), "wb") as f:
        f.truncate(3 << 30)
    server = Nginx()
    script = ("import resource, subprocess, sys; status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode; "
              "print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
    status, text, errors = run(sys.executable, "-c", script, IMG, "bench", "-f", "raw", "-d", "1", "-s", "1048576", "-c", "3072",
                               server.url("large.iso"))
    found = re.match(r"(\d+) (\d+)", text)
    tap.ok(found and found.group(1) == "0" and int(found.group(2)) < 120 * 1024, "3 GiB read with at most 120 MiB of memory", text,
           errors)
    server.stop()


with Tap() as tap:
    try:
        for test in [v for k, v in list(globals().items()) if k.startswith("test_")]:
            test(tap)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
