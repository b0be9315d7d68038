"""An HTTP and HTTPS server that does whatever a test wants done wrong.

`FaultServer(content)` serves one file under every path.  `act(number, request)` is asked at each request (numbered from
0) for a dictionary that says what is different about the answer:

    status, reason       an answer without content; retry_after: seconds or a date
    location             of a redirect (status 302 unless given)
    content, etag, modified      another file than at first
    ignore_range         the whole file, with 200
    shift                Content-Range and content that many bytes further on
    range_text           this Content-Range, whatever is sent
    length               this Content-Length; False: none, the end of the connection is the end of the content
    chunked              in chunks, without a length
    encoding             Content-Encoding, and the content gzipped
    surplus              so many bytes more than announced by the range
    cut, reset, stall    after so many bytes of the content: close, reset, or send nothing more
    delay                seconds before the answer;  pace: bytes a second
    endless_header       header lines for ever
    hang                 no answer at all
    slow_header          so many seconds after each byte of the header
    drip                 so many seconds after each byte of the content
    close                the connection ends after the answer
    multipart            the range as multipart/byteranges
    raw                  these bytes are the answer, and its end

`host` is the address to listen at.

`link` is what all connections together may send in a second; None: no limit.
"""

import gzip
import os
import re
import socket
import ssl
import struct
import subprocess
import threading
import time


class Request:
    def __init__(self, head):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.path = lines[0].split(" ")[:2]
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()

    def span(self, size):
        """(first, last) of the Range header, or None."""
        found = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", ""))
        if not found:
            return None
        return int(found.group(1)), min(int(found.group(2) or size), size - 1)


class FaultServer:
    def __init__(self, content, act=None, etag='"v1"', modified="Mon, 01 Jan 2024 00:00:00 GMT", tls=None, port=0,
                 link=None, host="127.0.0.1"):
        self.content, self.etag, self.modified, self.tls = content, etag, modified, tls
        self.act = act or (lambda number, request: {})
        self.host = host
        self.requests = []
        self.sent = 0
        self.connections = 0
        self.lock = threading.Lock()
        self.open_sockets = set()
        self.listener = None
        self.port = port
        self.link = link
        self.link_free = 0.0
        self.answering = 0
        self.cut = 0
        self.news = threading.Condition()
        self.start()

    def start(self):
        self.running = True
        self.listener = socket.socket(socket.AF_INET6 if ":" in self.host else socket.AF_INET)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((self.host, self.port))
        self.listener.listen(64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def stop(self):
        """As when the server dies: every connection ends. `cut` is how many answers were under way."""
        self.running = False
        self.cut = self.answering
        with self.lock:
            sockets, self.open_sockets = self.open_sockets, set()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def wait_answering(self, timeout):
        """Waits for an answer to be under way; False: there was none."""
        with self.news:
            return self.news.wait_for(lambda: self.answering > 0, timeout)

    def url(self, path="/disc.iso", host="localhost"):
        return "%s://%s:%d%s" % ("https" if self.tls else "http", host, self.port, path)

    def _accept(self, listener):
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.lock:
                self.connections += 1
                self.open_sockets.add(peer)
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, raw):
        peer = raw
        try:
            if self.tls:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*self.tls)
                peer = context.wrap_socket(raw, server_side=True)
            data = b""
            while self.running:
                while b"\r\n\r\n" not in data:
                    more = peer.recv(65536)
                    if not more:
                        return
                    data += more
                head, _, data = data.partition(b"\r\n\r\n")
                request = Request(head)
                with self.lock:
                    number = len(self.requests)
                    self.requests.append(request)
                if not self._answer(peer, raw, request, self.act(number, request)):
                    return
        except (OSError, ValueError):
            pass
        finally:
            with self.lock:
                self.open_sockets.discard(raw)
            peer.close()

    def _sleep(self, seconds):
        end = time.monotonic() + seconds
        while self.running and time.monotonic() < end:
            time.sleep(0.02)

    def _wait_for_link(self, size):
        """Takes its turn on the link."""
        with self.lock:
            if not self.link:
                return
            turn = max(self.link_free, time.monotonic())
            self.link_free = turn + size / self.link
        self._sleep(turn - time.monotonic())

    def _answer(self, peer, raw, request, act):
        """True: the connection goes on."""
        if act.get("hang"):
            self._sleep(3600)
            return False
        self._sleep(act.get("delay", 0))
        if act.get("endless_header"):
            peer.sendall(b"HTTP/1.1 206 Partial Content\r\n")
            while self.running:
                peer.sendall(b"X-More: %s\r\n" % (b"x" * 1000))
            return False
        if "raw" in act:
            peer.sendall(act["raw"])
            return False
        content = act.get("content", self.content)
        size = len(content)
        headers = []
        if "location" in act:
            act.setdefault("status", 302)
            headers.append("Location: %s" % act["location"])
        if "status" in act:
            if "retry_after" in act:
                headers.append("Retry-After: %s" % act["retry_after"])
            body = b"no\n"
            self._head(peer, act["status"], headers + ["Content-Length: %d" % len(body)])
            peer.sendall(body)
            return True
        for name, value in (("ETag", act.get("etag", self.etag)), ("Last-Modified", act.get("modified", self.modified))):
            if value:
                headers.append("%s: %s" % (name, value))
        if not act.get("ignore_range"):
            headers.append("Accept-Ranges: bytes")
        span = None if act.get("ignore_range") else request.span(size)
        condition = request.headers.get("if-range")
        if condition and condition not in (act.get("etag", self.etag), act.get("modified", self.modified)):
            span = None
        if span and span[0] >= size:
            self._head(peer, 416, ["Content-Range: bytes */%d" % size, "Content-Length: 0"])
            return True
        first, last = span or (0, size - 1)
        first, last = first + act.get("shift", 0), min(last + act.get("shift", 0), size - 1)
        body = content[first:last + 1] + b"S" * act.get("surplus", 0)
        if span and act.get("multipart"):
            headers.append("Content-Type: multipart/byteranges; boundary=B")
            body = b"--B\r\nContent-Range: bytes %d-%d/%d\r\n\r\n%s\r\n--B--\r\n" % (first, last, size, body)
        elif span:
            headers.append("Content-Range: %s" % act.get("range_text", "bytes %d-%d/%d" % (first, last, size)))
        if act.get("encoding"):
            headers.append("Content-Encoding: %s" % act["encoding"])
            body = gzip.compress(body)
        if act.get("chunked"):
            headers.append("Transfer-Encoding: chunked")
            body = b"".join(b"%x\r\n%s\r\n" % (len(body[i:i + 50000]), body[i:i + 50000])
                            for i in range(0, len(body), 50000)) + b"0\r\n\r\n"
        elif act.get("length") is False:
            headers.append("Connection: close")
        else:
            headers.append("Content-Length: %d" % act.get("length", len(body)))
        if act.get("close"):
            headers.append("Connection: close")
        self._head(peer, 206 if span else 200, headers, act.get("slow_header", 0))
        if request.method == "HEAD":
            return True
        with self.news:
            self.answering += 1
            self.news.notify_all()
        try:
            return self._body(peer, raw, body, act) and act.get("length") is not False and not act.get("close")
        finally:
            with self.news:
                self.answering -= 1

    def _head(self, peer, status, headers, pause=0):
        text = ("HTTP/1.1 %d X\r\n%s\r\n\r\n" % (status, "\r\n".join(headers))).encode("latin-1")
        self._send(peer, text, pause)

    def _send(self, peer, data, pause):
        """At once, or a byte at a time."""
        if not pause:
            peer.sendall(data)
            return
        for at in range(len(data)):
            if not self.running:
                return
            peer.sendall(data[at:at + 1])
            time.sleep(pause)

    def _body(self, peer, raw, body, act):
        ends = [act[k] for k in ("cut", "reset", "stall") if k in act]
        end = min(ends + [len(body)])
        start = time.monotonic()
        at = 0
        while at < end:
            part = body[at:min(at + 16384, end)]
            self._wait_for_link(len(part))
            self._send(peer, part, act.get("drip", 0))
            at += len(part)
            with self.lock:
                self.sent += len(part)
            if "pace" in act:
                self._sleep(max(0, start + at / act["pace"] - time.monotonic()))
        if "stall" in act:
            self._sleep(3600)
        if "reset" in act:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return not ends


def make_certificate(folder, name="localhost", days=2, ca=True):
    """(certificate, key): self-signed; negative days make it one that has expired."""
    base = os.path.join(folder, "%s%d" % (name, days))
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
               base + ".key", "-out", base + ".pem", "-subj", "/CN=" + name, "-addext", "subjectAltName=DNS:" + name,
               "-days", str(abs(days))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if days < 0:
        # Made anew with dates of the past, by the same key.
        conf = base + ".conf"
        with open(conf, "w") as f:
            f.write("[ca]\ndefault_ca=d\n[d]\ndatabase=%s.db\nnew_certs_dir=%s\nserial=%s.srl\ndefault_md=sha256\npolicy=p\n"
                    "[p]\ncommonName=supplied\n[x]\nsubjectAltName=DNS:%s\n" % (base, folder, base, name))
        open(base + ".db", "w").close()
        with open(base + ".srl", "w") as f:
            f.write("01\n")
        subprocess.run(["openssl", "req", "-new", "-key", base + ".key", "-subj", "/CN=" + name, "-out", base + ".csr"],
                       check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["openssl", "ca", "-batch", "-config", conf, "-selfsign", "-keyfile", base + ".key", "-in", base + ".csr",
                        "-out", base + ".pem", "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-extensions",
                        "x", "-notext"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return base + ".pem", base + ".key"
