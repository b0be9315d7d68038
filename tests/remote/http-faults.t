#!/usr/bin/env python3
"""Whatever a server does wrong: the data is right, or there is an error in words; never other data, never a hang."""

import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [os.path.join(HERE, "lib"), os.path.join(HERE, "..", "vm", "lib")]
from faultserver import FaultServer, make_certificate
from tap import run_tests

BUILD = os.environ.get("SPINDLE_BUILD") or os.path.join(HERE, "..", "..", "build")
IMG = os.path.join(BUILD, "tools", "spindle-img")
IO = os.path.join(BUILD, "tools", "spindle-io")
CONTENT = random.Random(6).randbytes(5 * 1000 * 1000 + 1)
OTHER = random.Random(7).randbytes(len(CONTENT))
SUM = hashlib.sha256(CONTENT).hexdigest()
folder = tempfile.mkdtemp(prefix="spindle-remote-")


def run(*command, timeout=60):
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    start = time.monotonic()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", timeout=timeout, env=env)
    return done.returncode, done.stdout, done.stderr, time.monotonic() - start


def options(url, **more):
    driver = url.split(":")[0]
    more = {k.replace("_", "-"): v for k, v in more.items()}
    return ",".join("%s=%s" % (k, str(v).replace(",", ",,")) for k, v in
                    dict({"driver": driver, "url": url}, **more).items())


def copy(url, **more):
    """(sha256 of what arrived or None, messages, seconds)."""
    out = os.path.join(folder, "out")
    status, text, errors, seconds = run(IMG, "convert", "--image-opts", "-O", "raw", options(url, **more), out)
    if status != 0:
        return None, text + errors, seconds
    with open(out, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest(), text + errors, seconds


def once(number, act):
    """Only request `number` is answered otherwise."""
    return lambda n, request: act if n == number else {}


def some(numbers, act):
    return lambda n, request: act if n in numbers else {}


def later(act):
    """All but the open."""
    return lambda n, request: act if n > 0 else {}


def first_per_range(act):
    """The first request for each place fails, the next is right."""
    seen = set()

    def choose(n, request):
        if n == 0 or request.headers.get("range") in seen:
            return {}
        seen.add(request.headers.get("range"))
        return act
    return choose


# The data arrives all the same.
RECOVERABLE = [
    ("nothing wrong", lambda n, r: {}, {}),
    ("connection cut in the middle", once(2, {"cut": 100000}), {}),
    ("connection cut at every answer's 50000th byte", later({"cut": 50000}), {"readahead": 0}),
    ("connection reset in the middle", some({1, 3, 5}, {"reset": 77777}), {}),
    ("connection reset before the first byte", some({1, 2}, {"reset": 0}), {}),
    ("every range fails once with 503", first_per_range({"status": 503}), {}),
    ("every range fails once with 404", first_per_range({"status": 404}), {}),
    ("every range fails once with 403", first_per_range({"status": 403}), {}),
    ("every range fails once with 416", first_per_range({"status": 416}), {}),
    ("every range fails once with 429", first_per_range({"status": 429, "retry_after": 0}), {}),
    ("503 when opened", some({0, 1}, {"status": 503}), {}),
    ("429 with Retry-After when opened", once(0, {"status": 429, "retry_after": 1}), {}),
    ("503 with a date as Retry-After", once(2, {"status": 503, "retry_after": "Mon, 01 Jan 2024 00:00:00 GMT"}), {}),
    ("stall in the middle", some({2, 4}, {"stall": 60000}), {"timeout": 1}),
    ("no answer", some({1, 3}, {"hang": True}), {"timeout": 1}),
    ("Range ignored now and then", some({2, 4}, {"ignore_range": True}), {}),
    ("Range ignored always", lambda n, r: {"ignore_range": True}, {}),
    ("Range ignored always, cut in the middle", lambda n, r: dict({"ignore_range": True}, **({"cut": 3000000} if n == 1 else {})), {}),
    ("wrong Content-Range once", once(2, {"shift": 4096}), {}),
    ("nonsense as Content-Range once", once(2, {"range_text": "bytes 5-3/x"}), {}),
    ("Content-Range of another unit once", once(2, {"range_text": "pages 0-9/10"}), {}),
    ("length shorter than the range once", once(2, {"length": 5000}), {}),
    ("surplus bytes once", once(2, {"surplus": 5000}), {}),
    ("Content-Encoding once", once(2, {"encoding": "gzip"}), {}),
    ("chunked ranges", lambda n, r: {"chunked": True}, {}),
    ("ranges ended by the connection", lambda n, r: {"length": False}, {}),
    ("chunked without length", lambda n, r: {"chunked": True, "ignore_range": True}, {}),
    ("neither length nor chunks", lambda n, r: {"length": False, "ignore_range": True}, {}),
    ("no validators", lambda n, r: {"etag": None, "modified": None}, {}),
    ("weak ETag", lambda n, r: {"etag": 'W/"1"'}, {}),
    ("slow first byte", lambda n, r: {"delay": 0.2}, {}),
    ("low pace", lambda n, r: {"pace": 3000000}, {}),
    ("endless header once", once(2, {"endless_header": True}), {}),
]

# (name, act, options, message): opening is refused.
REFUSED = [
    ("404", lambda n, r: {"status": 404}, {}, "CURL: Error opening file: The requested URL returned error: 404"),
    ("403", lambda n, r: {"status": 403}, {}, "CURL: Error opening file: The requested URL returned error: 403"),
    ("503 for ever", lambda n, r: {"status": 503}, {"retries": 1}, "CURL: Error opening file: The requested URL returned error: 503"),
    ("no answer", lambda n, r: {"hang": True}, {"timeout": 1, "retries": 0}, "CURL: Error opening file: No data for 1 seconds"),
    ("endless header", lambda n, r: {"endless_header": True}, {}, "CURL: Error opening file: Server sends an endless header"),
    ("gzip", lambda n, r: {"encoding": "gzip"}, {}, "Server encodes the content as 'gzip'"),
    ("wrong range", lambda n, r: {"shift": 1}, {}, "wrong range"),
    ("surplus", lambda n, r: {"surplus": 1}, {}, "wrong range|more than it was asked for|wrong length"),
    ("redirect in a circle", lambda n, r: {"location": "/again"}, {}, "redirects in a circle"),
    ("redirect to file", lambda n, r: {"location": "file:///etc/passwd"}, {}, "another protocol"),
    ("redirect to ftp", lambda n, r: {"location": "ftp://localhost/x"}, {}, "another protocol"),
    ("redirect to gopher", lambda n, r: {"location": "gopher://localhost/x"}, {}, "another protocol"),
    ("no ranges, and the cache too small", lambda n, r: {"ignore_range": True}, {"cache-size": "1M"}, "does not support 'range'"),
    ("no ranges, and the cache off", lambda n, r: {"ignore_range": True}, {"cache-size": 0}, "does not support 'range'"),
    ("no length, and the cache too small", lambda n, r: {"chunked": True, "ignore_range": True}, {"cache-size": "1M"},
     "didn't report file size"),
    ("no length, and the cache off", lambda n, r: {"chunked": True, "ignore_range": True}, {"cache-size": 0},
     "didn't report file size"),
    ("prefetch without room", lambda n, r: {}, {"prefetch": "on", "cache-size": "1M"}, "Parameter 'prefetch' needs"),
    ("cache file without validators", lambda n, r: {"etag": None, "modified": None},
     {"cache-file": os.path.join(folder, "no.cache")}, "cache-file"),
    ("readahead of an odd size", lambda n, r: {}, {"readahead": 1000}, "HTTP_READAHEAD_SIZE 1000 is not a multiple of 512"),
    ("a header that is none", lambda n, r: {}, {"header": "x"}, "Parameter 'header' expects 'Name: value'"),
    ("writing", lambda n, r: {}, {"read-only": "off"}, "curl driver does not support writes"),
]

# The file is not what it was, or cannot be had any more: reads fail, and what came before is right.
BROKEN = [
    ("changed, with another ETag", later({"content": OTHER, "etag": '"v2"'}), "File changed on the server"),
    ("changed, with another date", later({"content": OTHER, "etag": None, "modified": "Tue, 02 Jan 2024 00:00:00 GMT"}),
     "File changed on the server"),
    ("shrunk", later({"content": CONTENT[:3000000]}), "File changed on the server"),
    ("grown", later({"content": CONTENT + b"x"}), "File changed on the server"),
    ("404 for ever", later({"status": 404}), "error: 404"),
    ("503 for ever", later({"status": 503}), "error: 503"),
    ("wrong ranges for ever", later({"shift": 4096}), "wrong range"),
    ("gzip for ever", later({"encoding": "gzip"}), "gzip"),
    ("nothing for ever", later({"cut": 0}), ""),
    ("redirect to file later", later({"location": "file:///etc/passwd"}), "another protocol"),
]


def test_recoverable(tap):
    for name, act, more in RECOVERABLE:
        server = FaultServer(CONTENT, act)
        got, why, _ = copy(server.url(), **more)
        tap.ok(got == SUM, "recovers: " + name, why, "sha256 %s" % got)
        server.stop()


def test_refused(tap):
    for name, act, more, message in REFUSED:
        server = FaultServer(CONTENT, act)
        got, why, seconds = copy(server.url(), **more)
        tap.ok(got is None and re.search(message, why) and seconds < 15, "refuses: " + name, why, "%.1f s" % seconds)
        server.stop()


def test_broken(tap):
    for name, act, message in BROKEN:
        server = FaultServer(CONTENT, act)
        got, why, seconds = copy(server.url(), retries=1)
        tap.ok(got is None and message in why and "rror" in why and seconds < 20, "fails: " + name, why, "%.1f s" % seconds)
        # What was there at the open is the first file's.
        server.stop()
        server = FaultServer(CONTENT, act)
        status, text, errors, _ = run(IO, "-r", "--image-opts", "-c", "read -v 0 16",
                                      options(server.url(), retries=0, read_only="on"))
        want = " ".join("%02x" % b for b in CONTENT[:16])
        tap.ok(want in text, "… and the data of the open is right: " + name, text, errors)
        server.stop()


def test_deadline(tap):
    server = FaultServer(CONTENT, later({"hang": True}))
    status, text, errors, seconds = run(IO, "-r", "--image-opts", "-c", "read 1M 4k",
                                        options(server.url(), deadline=2, read_only="on"))
    tap.ok("timed out" in text + errors and 1.9 < seconds < 4, "a read waits no longer than the deadline", text, errors,
           "%.1f s" % seconds)
    server.stop()


def test_restart(tap):
    """The server is away for a while; reads wait and go on."""
    server = FaultServer(CONTENT, lambda n, r: {"pace": 400000})
    out = os.path.join(folder, "restart")
    process = subprocess.Popen([IMG, "convert", "-O", "raw", server.url(), out], stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    server.stop()
    time.sleep(1.5)
    server.start()
    _, errors = process.communicate(timeout=60)
    with open(out, "rb") as f:
        got = hashlib.sha256(f.read()).hexdigest()
    tap.ok(process.returncode == 0 and got == SUM, "server restarted in the middle", errors)
    tap.ok(": retrying: " in errors and "connected again after" in errors, "both is told", errors)
    server.stop()


def test_redirects(tap):
    target = FaultServer(CONTENT)
    front = FaultServer(CONTENT, lambda n, r: {"location": target.url("/real.iso")})
    got, why, _ = copy(front.url(), username="u", cookie="c=1", header="X-Token: t")
    tap.ok(got == SUM, "redirect to another server", why)
    tap.equal(len(front.requests), 1, "a redirect is followed once and remembered")
    secret = [h for r in target.requests for h in r.headers if h in ("authorization", "cookie", "x-token")]
    tap.equal(secret, [], "secrets do not go where the redirect leads")
    mine = front.requests[0].headers
    tap.ok("authorization" in mine and mine.get("cookie") == "c=1" and mine.get("x-token") == "t",
           "but they go where they belong", mine)
    # The link expires: then the first URL is asked again.
    front.requests, expired = [], []

    def act(n, request):
        if request.path == "/real.iso" and n == 2:
            expired.append(n)
        return {"status": 403} if request.path == "/real.iso" and expired else {}
    target.requests, target.act = [], act
    front.act = lambda n, r: {"location": target.url("/new.iso" if expired else "/real.iso")}
    got, why, _ = copy(front.url())
    tap.ok(got == SUM and len(front.requests) >= 2 and expired, "an expired redirect is followed anew", why)
    for server in (target, front):
        server.stop()


def test_tls(tap):
    good = make_certificate(folder)
    server = FaultServer(CONTENT, tls=good)
    got, why, _ = copy(server.url(), cafile=good[0])
    tap.ok(got == SUM, "https with its authority", why)
    got, why, _ = copy(server.url())
    tap.ok(got is None and "certificate" in why, "https with an unknown certificate is refused", why)
    got, why, _ = copy(server.url(), sslverify="off")
    tap.ok(got == SUM, "… unless that is allowed", why)
    plain = FaultServer(CONTENT)
    down = FaultServer(CONTENT, lambda n, r: {"location": plain.url()}, tls=good)
    got, why, _ = copy(down.url(), cafile=good[0])
    tap.ok(got is None and "from https to http" in why, "https does not redirect to http", why)
    up = FaultServer(CONTENT, lambda n, r: {"location": server.url()})
    got, why, _ = copy(up.url(), cafile=good[0])
    tap.ok(got == SUM, "http redirects to https", why)
    wrong = make_certificate(folder, "elsewhere.example")
    other = FaultServer(CONTENT, tls=wrong)
    got, why, _ = copy(other.url(), cafile=wrong[0])
    tap.ok(got is None and re.search("subject name|certificate", why), "a certificate of another name is refused", why)
    old = make_certificate(folder, days=-1)
    expired = FaultServer(CONTENT, tls=old)
    got, why, _ = copy(expired.url(), cafile=old[0])
    tap.ok(got is None and "expired" in why, "an expired certificate is refused", why)
    for s in (server, plain, down, up, other, expired):
        s.stop()


def test_auth(tap):
    server = FaultServer(CONTENT)
    status, text, errors, _ = run(IO, "-r", "--object", "secret,id=p,data=geheim", "--object", "secret,id=c,data=k=v", "--image-opts",
                                  "-c", "read 0 4k", options(server.url(), username="me", password_secret="p",
                                                            cookie_secret="c", read_only="on"))
    h = server.requests[0].headers
    tap.ok(status == 0 and h.get("authorization") == "Basic bWU6Z2VoZWlt" and h.get("cookie") == "k=v",
           "password and cookie from secrets", text, errors, h)
    text = run(IMG, "info", server.url().replace("//", "//me:pw@"))[1]
    tap.ok("pw@" not in text.replace(server.url().replace("//", "//me:pw@"), "", 1), "a password in the URL is not shown in the node", text)
    server.stop()


run_tests(globals(), folder)
