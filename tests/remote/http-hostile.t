#!/usr/bin/env python3
"""Servers, proxies and names that people meet and that attackers make: what is slow on purpose, badly written, secret, moved, or
not there at all."""

import fcntl
import hashlib
import os
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib")]
import servers
from faultserver import FaultServer, make_certificate
from ftpserver import FtpServer
from patterns import Places
from servers import IMG, IO, free_port, io, run
from tap import run_tests

CONTENT = random.Random(8).randbytes(3 * 1000 * 1000 + 1)
SUM = hashlib.sha256(CONTENT).hexdigest()
folder = tempfile.mkdtemp(prefix="spindle-hostile-")
os.chmod(folder, 0o755)


def options(url, **more):
    more = dict({"driver": url.split(":")[0], "url": url}, **{k.replace("_", "-"): v for k, v in more.items()})
    return ",".join("%s=%s" % (k, str(v).replace(",", ",,")) for k, v in more.items())


def copy(url, **more):
    return servers.copy(os.path.join(folder, "out"), "--image-opts", options(url, **more))


def timed(command, *args, **more):
    start = time.monotonic()
    result = command(*args, **more)
    return result, time.monotonic() - start


def test_slow(tap):
    """A byte now and then is a stall, too."""
    for name, act, message in (("header", {"slow_header": 0.3}, "No data for 1 seconds"), ("content", {"drip": 0.3}, "Connection timed out")):
        server = FaultServer(CONTENT, lambda n, r: act)
        (got, why), took = timed(copy, server.url(), timeout=1, retries=1, deadline=4)
        tap.ok(got is None and message in why and took < 8, "a %s that comes byte by byte: nobody waits longer than he said" % name, why, took)
        server.stop()
        server = FaultServer(CONTENT, lambda n, r: act if n in (1, 2) else {})
        got, why = copy(server.url(), timeout=1)
        tap.ok(got == SUM, "… and asked for again: " + name, why)
        server.stop()
    # A slow link is none of that.
    server = FaultServer(CONTENT[:100000], lambda n, r: {"pace": 20000})
    got, why = copy(server.url(), timeout=2)
    tap.ok(got == hashlib.sha256(CONTENT[:100000]).hexdigest(), "a link of 20 KB/s is slow only", why)
    server.stop()


def test_connect(tap):
    """Somebody who takes connections and says nothing to TLS."""
    deaf = socket.create_server(("127.0.0.1", 0))
    (got, why), took = timed(copy, "https://127.0.0.1:%d/x" % deaf.getsockname()[1], connect_timeout=2, timeout=1, retries=0)
    tap.ok(got is None and 1.5 < took < 6, "connect-timeout is how long a connection may take", why, took)
    deaf.close()


def test_answers(tap):
    for name, act, more in (
            ("closes after each answer", lambda n, r: {"close": True}, {}),
            ("tags the file as weak at first (as Apache does with a new one)", lambda n, r: {"etag": 'W/"v1"'} if n < 3 else {}, {}),
            ("answers once in several parts", lambda n, r: {"multipart": True} if n == 2 else {}, {}),
            ("says 304 once", lambda n, r: {"status": 304} if n == 2 else {}, {}),
            ("sends 102 and 103 before", lambda n, r: {} if n != 1 else {"raw": b"HTTP/1.1 102 X\r\n\r\nHTTP/1.1 103 X\r\nLink: <a>\r\n\r\n"}, {}),
            ("speaks HTTP/0.9 once", lambda n, r: {"raw": CONTENT[:5000]} if n == 2 else {}, {}),
            ("sends no header once", lambda n, r: {"raw": b"\r\n\r\n" + CONTENT[:5000]} if n == 2 else {}, {}),
            ("sends a NUL in a header once", lambda n, r: {"raw": b"HTTP/1.1 206 X\r\nEx\0tra: 1\r\n\r\n"} if n == 2 else {}, {})):
        server = FaultServer(CONTENT, act)
        got, why = copy(server.url(), **more)
        tap.ok(got == SUM, "a server that " + name, why)
        server.stop()
    for name, act, message in (
            ("several parts", {"multipart": True}, "without saying which range"),
            ("endless 100 Continue", {"raw": b"HTTP/1.1 100 Continue\r\n\r\n" * 20000}, "endless header"),
            ("another total", {"range_text": "bytes 0-65535/7"}, "contradicts itself|without saying which range"),
            ("two lengths", {"raw": b"HTTP/1.1 206 X\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"}, "contradicts itself|Invalid Content-Length"),
            ("a negative length", {"raw": b"HTTP/1.1 200 X\r\nContent-Length: -5\r\n\r\n"}, "contradicts itself|Invalid Content-Length"),
            ("a length beyond 64 bits", {"raw": b"HTTP/1.1 200 X\r\nContent-Length: 99999999999999999999\r\n\r\n"},
             "contradicts itself|too large|Exceeded|exceeded")):
        server = FaultServer(CONTENT, lambda n, r: act)
        (got, why), took = timed(copy, server.url(), retries=0)
        tap.ok(got is None and re.search(message, why) and took < 10, "refused: " + name, why, took)
        server.stop()


def test_http2(tap):
    """nginx ends a connection by GOAWAY after some requests."""
    disc, port = os.path.join(folder, "disc.iso"), free_port()
    with open(disc, "wb") as f:
        f.write(CONTENT)
    certificate, key = make_certificate(folder)
    conf = os.path.join(folder, "nginx.conf")
    temp = "".join("%s_temp_path %s/%s; " % (n, folder, n) for n in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(conf, "w") as f:
        f.write("daemon off; pid %s/pid; error_log %s/error.log; worker_processes 1; events { }\nhttp { log_format l '$server_protocol "
                "$connection $connection_requests'; access_log %s/h2.log l; keepalive_requests 4; %s\nserver { listen 127.0.0.1:%d ssl http2; "
                "ssl_certificate %s; ssl_certificate_key %s; root %s; } }\n" % (folder, folder, folder, temp, port, certificate, key, folder))
    server = servers.Server("/usr/sbin/nginx", "-p", folder, "-c", conf, ready=servers.listening(port))
    text = io("-r", "--image-opts", options("https://localhost:%d/disc.iso" % port, cafile=certificate, readahead=0),
              script=["read -v %d 16" % (i << 17) for i in range(20)])
    server.process.terminate()
    server.process.wait()
    with open(os.path.join(folder, "h2.log")) as f:
        log = [line.split() for line in f]
    shown = [line.split("  ")[1].replace(" ", "") for line in text.splitlines() if re.match(r"[0-9a-f]{8}:", line)]
    tap.equal(shown, [CONTENT[i << 17:(i << 17) + 16].hex() for i in range(20)], "HTTP/2, the connection ended by GOAWAY after each fourth request")
    tap.ok(len(log) > 15 and all(kind == "HTTP/2.0" and int(count) <= 4 for kind, _, count in log) and len({c for _, c, _ in log}) > 3,
           "… as it was", log[:20])


def test_names(tap):
    """URLs as people write them, and where servers point to."""
    server = FaultServer(CONTENT)
    for name, path, asked in (
            ("spaces", "/my disc.iso", "/my%20disc.iso"),
            ("another alphabet", "/dïsk/磁盘.iso", "/" + urllib.parse.quote("dïsk/磁盘.iso")),
            ("what is encoded already", "/a%20b%2Fc%25.iso", "/a%20b%2Fc%25.iso"),
            ("a query with a signature", "/d.iso?X-Sig=a%2Fb%3D&x=1,2", "/d.iso?X-Sig=a%2Fb%3D&x=1,2"),
            ("a fragment", "/d.iso#part", "/d.iso"),
            ("50 KB", "/" + "x" * 50000, "/" + "x" * 50000)):
        server.requests.clear()
        got, why = copy(server.url(path))
        tap.ok(got == SUM and {r.path.lower() for r in server.requests} == {asked.lower()}, "a URL with " + name, why, {r.path[:200] for r in server.requests})
        front = FaultServer(CONTENT, lambda n, r: {"location": path.encode().decode("latin-1")} if r.path == "/start" else {})
        got, why = copy(front.url("/start"))
        tap.ok(got == SUM and front.requests[-1].path.lower() == asked.lower(), "a redirect to one with " + name, why, front.requests[-1].path[:200])
        front.stop()
    cache = os.path.join(folder, "long.cache")
    url = server.url("/" + "y" * 20000)
    for _ in range(2):
        server.sent = 0
        got, why = copy(url, cache_file=cache)
    tap.ok(got == SUM and server.sent < 200000, "a cache file for a URL of 20 KB", why, server.sent)
    server.stop()


def test_secrets(tap):
    """Name and password in the URL: for its own server, and nobody sees them."""
    other = FaultServer(CONTENT)
    server = FaultServer(CONTENT, lambda n, r: {"location": server.url("/moved")} if r.path == "/start" else {"status": 503} if 3 <= n < 18 else {})
    away = FaultServer(CONTENT, lambda n, r: {"location": other.url("/x")})
    basic = "Basic bWU6cEBzcyB3OnJk"  # me:p@ss w:rd
    url = server.url("/start").replace("//", "//me:p%40ss%20w%3Ard@")
    got, why = copy(url, cookie="c=1")
    tap.ok(got == SUM and all(r.headers.get("authorization") == basic and r.headers.get("cookie") == "c=1" for r in server.requests),
           "name, password and cookie go along with a redirect on the same server", why, [r.headers.get("authorization") for r in server.requests])
    tap.ok("retrying" in why and "ss%20w" not in why and "@" not in why, "… and are in no message", why)
    text = run(IMG, "info", url)[1]
    tap.ok("localhost" in text.replace(url, "") and "ss%20w" not in text.replace(url, ""), "… nor in what is shown of the node", text)
    got, why = copy(away.url().replace("//", "//me:pw@"))
    tap.ok(got == SUM and away.requests[0].headers.get("authorization") and not [r for r in other.requests if "authorization" in r.headers],
           "they do not go to another server", why)
    for s in (server, other, away):
        s.stop()


def test_moved(tap):
    """Where a redirect led is dead, and the first URL knows another place."""
    mirrors = [FaultServer(CONTENT), FaultServer(CONTENT)]
    front = FaultServer(CONTENT, lambda n, r: {"location": mirrors[0 if n == 0 else 1].url()})

    def dies(n, request):
        if n == 2:
            mirrors[0].stop()
        return {}
    mirrors[0].act = dies
    got, why = copy(front.url())
    tap.ok(got == SUM and len(mirrors[1].requests) > 0, "a mirror dies: the first URL is asked for another one", why)
    front.stop()
    mirrors[1].act = lambda n, r: {"content": CONTENT + b"more"} if n > 0 else {}
    front = FaultServer(CONTENT, lambda n, r: {"location": mirrors[1].url()})
    mirrors[1].requests.clear()
    got, why = copy(front.url())
    tap.ok(got is None and "File changed on the server" in why, "a redirect to a file of another size later", why)
    front.stop()
    mirrors[1].stop()


def test_nobody(tap):
    """Nothing at all where something should be."""
    env = dict(os.environ, http_proxy="http://127.0.0.1:1")
    done = subprocess.run([IMG, "info", "http://192.0.2.1/x.iso"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    tap.ok(done.returncode == 1 and "127.0.0.1 port 1" in done.stdout, "a proxy that is not there is named", done.stdout)
    proxy = FaultServer(CONTENT, lambda n, r: {"status": 407} if n < 1 else {})
    env["http_proxy"] = proxy.url()
    done = subprocess.run([IMG, "info", "http://192.0.2.1/x.iso"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    tap.ok(done.returncode == 1 and "407" in done.stdout, "a proxy that wants a name", done.stdout)
    done = subprocess.run([IMG, "info", "http://192.0.2.1/x.iso"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=30)
    tap.ok(done.returncode == 0 and proxy.requests[-1].path == "http://192.0.2.1/x.iso", "a proxy that works", done.stdout)
    proxy.stop()
    (_, _, errors), took = timed(run, IMG, "info", "http://no.such.host.invalid/x.iso")
    tap.ok("Could not resolve host: no.such.host.invalid" in errors and took < 20, "a name that is none", errors, took)
    for url in ("http://", "http:///x", "http://host:99999/", "http://[::1/", "http://a b/", "http://%zz/", "http://\x01/"):
        status, _, errors = run(IMG, "info", url)
        tap.ok(status == 1 and errors.count("\n") == 1, "refused in one line: %r" % url, errors)


def test_ipv6(tap):
    try:
        server = FaultServer(CONTENT, host="::1")
    except OSError as why:
        tap.skip("a server with an IPv6 address only", why)
        return
    got, why = copy(server.url(host="[::1]"))
    tap.ok(got == SUM, "a server with an IPv6 address only", why)
    front = FaultServer(CONTENT, lambda n, r: {"location": server.url(host="[::1]")})
    got, why = copy(front.url())
    tap.ok(got == SUM, "a redirect to it", why)
    front.stop()
    server.stop()
    port = free_port()
    server = servers.Server("nbdkit", "-f", "-r", "-p", str(port), "-i", "::1", "pattern", "1M", ready=lambda: listens6(port))
    text = io("-r", "-f", "raw", "nbd://[::1]:%d" % port, script=["read -v 8 8"])
    tap.ok("00 00 00 00 00 00 00 08" in text, "NBD by such an address", text)
    server.stop()


def listens6(port):
    with socket.socket(socket.AF_INET6) as s:
        return s.connect_ex(("::1", port)) == 0


def test_large_ftp(tap):
    """4.7 GB by FTP and by FTPS: places that 32 bits do not hold."""
    size = 4700000000 // 2048 * 2048
    tls = make_certificate(folder)
    for kind, server, more in (("FTP", FtpServer(Places(size)), ""), ("FTPS", FtpServer(Places(size), tls), ",cafile=" + tls[0])):
        url = "%s://localhost:%d/disc.iso" % (kind.lower(), server.port)
        places = (0, (1 << 32) - 4096, (1 << 32) + 2048, size - 2048)
        text = io("-r", "--image-opts", "driver=%s,url=%s%s" % (kind.lower(), url, more), script=["read -v %d 16" % p for p in places])
        lines = [re.sub(r"[: ]", "", line.split("  ")[0] + line.split("  ")[1]) for line in text.splitlines() if re.match(r"[0-9a-f]{8,}:", line)]
        want = [("%08x" % p) + (p.to_bytes(8, "big") + (p + 8).to_bytes(8, "big")).hex() for p in places]
        tap.equal(lines, want, kind + ": 4.7 GB, read here and there")
    tap.ok("certificate" in io("-r", "--image-opts", "driver=ftps,url=" + url, script=["read 0 4k"]), "FTPS with an unknown certificate is refused")


def cache_error(server, path):
    text = io("-r", "--image-opts", options(server.url(), cache_file=path), script=["read 0 4k"])
    return text if "exit" in text else None


def test_cache_paths(tap):
    """What may lie where the cache file should be."""
    server = FaultServer(CONTENT)
    path = os.path.join(folder, "cache")
    got, why = copy(server.url(), cache_file=path)
    tap.ok(got == SUM, "a cache file", why)
    whole = os.stat(path).st_size
    for at in (0, 100, 4095, 4096, 5000, 70000, whole // 2):
        os.truncate(path, at)
        got, why = copy(server.url(), cache_file=path)
        tap.ok(got == SUM, "cut to %d bytes" % at, why)
    os.truncate(path, whole + 100000)
    got, why = copy(server.url(), cache_file=path)
    tap.ok(got == SUM, "grown", why)
    with open(path, "r+b") as f:
        f.write(b"SPINDLE\1" + b"\xff" * 4000)
    got, why = copy(server.url(), cache_file=path)
    tap.ok(got == SUM, "a header full of ones", why)
    with open(path, "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        text, took = timed(cache_error, server, path)
        tap.ok(text and "locked by another program" in text and took < 5, "locked by somebody else", text, took)
    letter = os.path.join(folder, "letter")
    with open(letter, "w") as f:
        f.write("dear reader")
    os.symlink(letter, path + ".link")
    tap.ok("is not a cache file; it was left alone" in (cache_error(server, path + ".link") or "") and open(letter).read() == "dear reader",
           "a link to something else")
    os.mkfifo(path + ".fifo")
    tap.ok("is not a cache file" in (cache_error(server, path + ".fifo") or ""), "a FIFO")
    tap.ok("Is a directory" in (cache_error(server, folder) or ""), "a folder")
    tap.ok("No such file or directory" in (cache_error(server, folder + "/none/cache") or ""), "in a folder that is not there")
    if os.geteuid() == 0:
        os.chown(path, 1234, 1234)
        tap.ok("belongs to another user (1234)" in (cache_error(server, path) or ""), "another user's")
    else:
        tap.skip("another user's cache file", "only root can make one")
    server.stop()


def test_name_service(tap):
    """A name service that never answers: the end does not wait for it."""
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        silent.bind(("127.0.0.53", 53))
    except OSError as why:
        tap.skip("a name service that hangs", why)
        return
    conf = os.path.join(folder, "resolv.conf")
    with open(conf, "w") as f:
        f.write("nameserver 127.0.0.53\noptions timeout:30 attempts:1\n")
    target = FaultServer(CONTENT, lambda n, r: {"location": "http://elsewhere.example.org/x"})
    script = 'mount --bind "$1" /etc/resolv.conf && shift && exec "$@"'
    process = subprocess.Popen(["unshare", "-m", "sh", "-c", script, "sh", conf, IO, "-r", "-c", "read 0 4k", "--image-opts",
                                options(target.url(), connect_timeout=2, retries=0)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    (text, _), took = timed(process.communicate, timeout=60)
    if "unshare" in text or "mount" in text:
        tap.skip("a name service that hangs", text)
    else:
        tap.ok(re.search("Resolving timed out|No data", text) and took < 6, "a name service that hangs ends with connect-timeout", text, took)
    silent.close()
    target.stop()


run_tests(globals(), folder)
