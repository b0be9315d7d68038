"""A small FTP server."""

import socket
import threading


class FtpServer:
    """As much of an FTP server (RFC 959, 2428, 3659) as a client needs to read a file from a place."""

    def __init__(self, content):
        self.content = content
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
                say("213 %d" % len(self.content))
            elif verb == "MDTM":
                say("213 20240101000000")
            elif verb == "REST":
                start = int(word)
                say("350 from there")
            elif verb == "RETR":
                say("150 coming")
                out, _ = data.accept()
                try:
                    out.sendall(memoryview(self.content)[start:])
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
