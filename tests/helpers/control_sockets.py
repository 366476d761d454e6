"""The far end of an agent's control socket, where the page's process is
(linux/tasks/control_socket.py).
"""

import json
import os
import socket
import time

from agents import INITIALIZE, eventually


def connect(folder) -> socket.socket:
    """Return a connection to the agent whose state *folder* it is, once it listens."""
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.settimeout(60)

    def connects():
        try:
            inside = os.open(folder, os.O_RDONLY)  # the path of a socket has at most 107 bytes
        except FileNotFoundError:
            return False
        try:
            return not line.connect_ex("/proc/self/fd/%d/control.sock" % inside)
        finally:
            os.close(inside)

    eventually(connects)
    return line


class Line:
    """One session there."""

    def __init__(self, folder, name: str, role: str, greeting=None):
        self.socket = connect(folder)
        self._file = self.socket.makefile("rwb", 0)
        login_ms = time.monotonic_ns() // 1000000
        self.say(greeting or {"person": name, "role": role, "login_ms": login_ms})
        self._number = 0

    def say(self, message):
        self._file.write(json.dumps(message).encode() + b"\n")

    def read(self):
        """Return the next message, None at the end."""
        data = self._file.readline()
        return json.loads(data) if data else None

    def ask(self, method: str, **params) -> dict:
        """Return the answer to a request."""
        self._number += 1
        self.say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            message = self.read()
            assert message is not None, "the line has ended"
            if message.get("id") == self._number:
                return message

    def initialize(self) -> "Line":
        assert "result" in self.ask("claw.initialize", **INITIALIZE)
        return self

    def close(self):
        self._file.close()
        self.socket.close()
