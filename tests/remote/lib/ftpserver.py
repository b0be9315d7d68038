"""A small FTP server."""

import socket
import ssl
import threading


class FtpServer:
    """As much of an FTP server (RFC 959, 2428, 3659; with `tls`, a certificate and a key, FTPS from the first byte on) as a
    client needs to read a file from a place. `content` is bytes, or something that can be cut as they can."""

    PART = 1 << 20

    def __init__(self, content, tls=None):
        self.content = content
        self.context = None
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*tls)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            peer, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _secure(self, peer):
        return self.context.wrap_socket(peer, server_side=True) if self.context else peer

    def _send(self, out, start):
        try:
            out = self._secure(out)
            while start < len(self.content):
                part = self.content[start:start + self.PART]
                out.sendall(part)
                start += len(part)
            if self.context:
                out.unwrap()
        except (OSError, ValueError):
            pass
        out.close()

    def _serve(self, peer):
        try:
            peer = self._secure(peer)
        except OSError:
            return
        say = lambda text: peer.sendall((text + "\r\n").encode())
        data, start = None, 0
        say("220 ready")
        for line in peer.makefile():
            verb, _, word = line.strip().partition(" ")
            if verb == "USER":
                say("331 password")
            elif verb in ("PASS", "CWD", "TYPE", "PBSZ", "PROT"):
                say("200 good")
            elif verb == "PWD":
                say('257 "/"')
            elif verb == "EPSV":
                data = socket.create_server(("127.0.0.1", 0))
                say("229 here (|||%d|)" % data.getsockname()[1])
            elif verb == "SIZE":
                say("213 %d" % len(self.content))
            elif verb == "MDTM":
                say("213 20240101000000")
            elif verb == "REST":
                start = int(word)
                say("350 from there")
            elif verb == "RETR":
                say("150 coming")
                out, _ = data.accept()
                self._send(out, start)
                data.close()
                say("226 done")
                start = 0
            elif verb == "QUIT":
                say("221 bye")
                return
            else:
                say("502 no")
