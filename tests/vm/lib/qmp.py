"""A QMP client on a UNIX socket: commands with their answers, and the events that come between them."""

import json
import socket
import time


class QmpError(Exception):
    def __init__(self, error):
        super().__init__("%s: %s" % (error["class"], error["desc"]))
        self.error_class = error["class"]
        self.desc = error["desc"]


class Qmp:
    def __init__(self, path, negotiate=True, timeout=20):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rb")
        self.events = []
        self.greeting = self.read()
        if negotiate:
            self.command("qmp_capabilities")

    def send(self, text):
        self.socket.sendall(text if isinstance(text, bytes) else text.encode())

    def read(self):
        """The next message; None at the end."""
        line = self.stream.readline()
        return json.loads(line) if line else None

    def answer(self):
        """The next message that is no event."""
        while True:
            message = self.read()
            if message is None or "event" not in message:
                return message
            self.events.append(message)

    def command(self, name, **arguments):
        """Its value; keys may be written with `_` for `-`."""
        message = {"execute": name}
        if arguments:
            message["arguments"] = {k.replace("_", "-"): v for k, v in arguments.items()}
        self.send(json.dumps(message))
        answer = self.answer()
        if answer is None:
            raise EOFError("%s: the monitor has gone" % name)
        if "error" in answer:
            raise QmpError(answer["error"])
        return answer["return"]

    def failure(self, name, **arguments):
        """(class, description) of the error, or the value when there is none."""
        try:
            return self.command(name, **arguments)
        except QmpError as error:
            return error.error_class, error.desc

    def take_events(self):
        """All that came before now."""
        self.command("query-name")
        events, self.events = self.events, []
        return events

    def wait_event(self, name, timeout=20):
        """The data of the next such event; others before it are dropped."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            while self.events:
                event = self.events.pop(0)
                if event["event"] == name:
                    return event["data"]
            message = self.read()
            if message is None:
                raise EOFError("the monitor has gone")
            self.events.append(message)
        raise TimeoutError("no event %s within %d s" % (name, timeout))

    def close(self):
        self.stream.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
