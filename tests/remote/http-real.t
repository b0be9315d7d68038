#!/usr/bin/env python3
"""Real HTTP servers (nginx, Apache, lighttpd), FTP; the cache file between processes, kills and restarts; memory while much
is read."""

import hashlib
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from faultserver import make_certificate
from ftpserver import FtpServer
from servers import IMG, IO, Server, free_port, io, listening, run
from tap import run_tests

folder = tempfile.mkdtemp(prefix="spindle-real-")
os.chmod(folder, 0o755)
DISC = os.path.join(folder, "disc.iso")
CONTENT = random.Random(9).randbytes(20 * 1000 * 1000 + 7)
SUM = hashlib.sha256(CONTENT).hexdigest()
with open(DISC, "wb") as f:
    f.write(CONTENT)


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


def copy(name, *image):
    return servers.copy(os.path.join(folder, name), *image)


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


def test_apache(tap):
    """Apache, in the clear and by TLS and HTTP/2."""
    modules, port, secure = "/usr/lib/apache2/modules", free_port(), free_port()
    certificate, key = make_certificate(folder)
    conf = os.path.join(folder, "apache.conf")
    with open(conf, "w") as f:
        f.write('ServerRoot "%s"\nServerName localhost\nPidFile "%s/apache.pid"\nErrorLog "%s/apache.log"\nDocumentRoot "%s"\n'
                "User www-data\nGroup www-data\nListen 127.0.0.1:%d\nListen 127.0.0.1:%d\n" % (*[folder] * 4, port, secure))
        for name in ("mpm_event", "authz_core", "http2", "ssl"):
            f.write("LoadModule %s_module %s/mod_%s.so\n" % (name, modules, name))
        f.write('LogFormat "%%H %%>s" kind\nCustomLog "%s/apache-access.log" kind\n<VirtualHost 127.0.0.1:%d>\nSSLEngine on\n'
                'SSLCertificateFile "%s"\nSSLCertificateKeyFile "%s"\nProtocols h2 http/1.1\n</VirtualHost>\n' %
                (folder, secure, certificate, key))
    server = Server("/usr/sbin/apache2", "-DFOREGROUND", "-f", conf, ready=listening(secure))
    got, why = copy("apache", "http://127.0.0.1:%d/disc.iso" % port)
    tap.ok(got == SUM, "Apache", why)
    got, why = copy("apache", "--image-opts", "driver=https,cafile=%s,url=https://localhost:%d/disc.iso" % (certificate, secure))
    with open(os.path.join(folder, "apache-access.log")) as f:
        kinds = f.read()
    tap.ok(got == SUM and "HTTP/2.0 206" in kinds, "Apache, by TLS and HTTP/2", why, kinds[:300])
    server.process.terminate()
    server.process.wait()


def test_lighttpd(tap):
    port, conf = free_port(), os.path.join(folder, "lighttpd.conf")
    with open(conf, "w") as f:
        f.write('server.document-root = "%s"\nserver.port = %d\nserver.bind = "127.0.0.1"\n' % (folder, port))
    server = Server("/usr/sbin/lighttpd", "-D", "-f", conf, ready=listening(port))
    got, why = copy("lighttpd", "http://127.0.0.1:%d/disc.iso" % port)
    tap.ok(got == SUM, "lighttpd", why)
    server.stop()


def test_ftp(tap):
    server = FtpServer(CONTENT)
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


def test_cache_killed(tap):
    """Processes that fill one cache file are killed at any time: what it holds afterwards is right."""
    server = Nginx("limit_rate 30m;")
    cache = os.path.join(folder, "killed.cache")
    image = "driver=http,url=%s,cache-file=%s" % (server.url(), cache)
    dice = random.Random(6)
    for _ in range(6):
        both = [subprocess.Popen([IMG, "convert", "-O", "raw", "--image-opts", image, os.path.join(folder, "k%d" % n)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for n in range(2)]
        time.sleep(0.05 + dice.random() * 0.3)
        for process in both:
            process.kill()
            process.wait()
    held = os.stat(cache).st_blocks * 512
    tap.ok(held > 1 << 20, "the cache file holds something after six kills", held)
    got, why = copy("after", "--image-opts", image)
    tap.ok(got == SUM, "the image through the cache file that was left", why)
    # Noise where data lies is found out, and fetched anew.
    with open(cache, "r+b") as f:
        size = f.seek(0, 2)
        for _ in range(50):
            f.seek(dice.randrange(size - 4096))
            f.write(dice.randbytes(100))
    got, why = copy("noise", "--image-opts", image)
    tap.ok(got == SUM, "a damaged cache file gives no wrong data", why)
    server.stop()


def test_prefetch(tap):
    server = Nginx()
    cache = os.path.join(folder, "fill.cache")
    image = "driver=http,url=%s,cache-file=%s" % (server.url(), cache)
    process = subprocess.Popen([IO, "-r", "-c", "read 0 4k", "-c", "sleep 60000", "--image-opts", image + ",prefetch=on"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 20
    while time.monotonic() < end and not (os.path.exists(cache) and os.stat(cache).st_blocks * 512 >= len(CONTENT)):
        time.sleep(0.05)
    process.kill()
    process.wait()
    before = server.requests()
    got, why = copy("filled", "--image-opts", image)
    tap.ok(got == SUM and server.requests() - before <= 2, "prefetch=on fetches the rest while nobody reads", why, server.requests() - before)
    text = io("-r", "--image-opts", "driver=http,prefetch=on,cache-size=1M,url=" + server.url(), script=("read 0 4k",))
    tap.ok("'prefetch' needs 'cache-file'" in text, "prefetch without room for it is refused", text)
    server.stop()


def test_progress(tap):
    """convert -p tells how far it is; a slow server shows that it is not made up."""
    server = Nginx("limit_rate 4m;")
    start = time.monotonic()
    status, text, errors = run(IMG, "convert", "-p", "-O", "raw", server.url(), os.path.join(folder, "progress"))
    took = time.monotonic() - start
    shares = [float(n) for n in re.findall(r"\(([\d.]+)/100%\)", text)]
    tap.ok(status == 0 and shares == sorted(shares) and shares[-1] == 100 and len(shares) >= max(2, took / 3),
           "convert -p: lines with the share that is done", text, errors, took)
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


run_tests(globals(), folder)
