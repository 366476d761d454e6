"""Real engines of swarms on loopback: those of this machine, or what ``make redis nats`` put into
build/.
"""

import os
import signal
import socket
import subprocess
import time

import pytest
import unpacked
from free_ports import free_port

WAIT_S = 60


class Server:
    """One server, with what it keeps in *folder*: ``kill`` (as ``kill -9``) and ``start`` again."""

    name = program = ""

    @property
    def scheme(self) -> str:
        """Of its address."""
        return self.name

    def __init__(self, folder):
        self.folder, self.port, self._process = folder, free_port(), None
        folder.mkdir(parents=True)
        self._program, self._environment = unpacked.find(self.program, self.name)
        if self._program is None:
            pytest.skip("no %s: make %s fetches it" % (self.program, self.name))
        try:
            self.start()
        except AssertionError:  # somebody else had the port first
            self.port, self._process = free_port(), None
            self.start()

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self):
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [self._program, *self.words()], env=self._environment, stdout=log, stderr=log
            )
        end = time.monotonic() + WAIT_S
        while not self.answers():
            said = (self.folder / "log").read_text()
            assert self._process.poll() is None and time.monotonic() < end, said

    def kill(self):
        if self._process:
            self._process.kill()
            self._process.wait(WAIT_S)
            self._process = None

    def pause(self):
        """Let it answer nothing, while its connections stay (``go_on``)."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)  # all of its threads have stopped

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def words(self) -> list:
        raise NotImplementedError

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    @property
    def place(self) -> tuple:
        return False, "127.0.0.1", self.port, ""


class Redis(Server):
    name, program = "redis", "redis-server"
    more = ("--appendonly", "yes", "--appendfsync", "always")

    def words(self) -> list:
        words = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        return [*words, "--save", "", *self.more]

    def answers(self) -> bool:
        """It listens before it has read what is on disk."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as line:
                line.sendall(b"PING\r\n")
                said = line.recv(64)
        except OSError:
            return False
        return said.startswith((b"+PONG", b"-NOAUTH"))


class NATS(Server):
    name, program = "nats", "nats-server"
    more = ""

    def words(self) -> list:
        file = self.folder / "nats.conf"
        file.write_text(
            "listen: 127.0.0.1:%d\njetstream { store_dir: %s }\n%s"
            % (self.port, self.folder, self.more)
        )
        return ["-c", str(file)]


SERVERS = {"redis": Redis, "nats": NATS}
