"""An agent in this process, and operators at lines of their own (linux/tasks/operator_line.py)."""

import json
import os
import select
import socket

from clawlite.core.line.frame import Framer
from clawlite.linux.files.files import open_image
from clawlite.linux.io.stdio import MAX_LINE, Wire
from clawlite.linux.runtime.optional_parts import prepare
from clawlite.linux.runtime.shell import Shell
from clawlite.linux.tasks.operator_line import OperatorLine
from clawlite.linux.tasks.operator_line import Person as Somebody

STEPS = 500  # of the loop, at most, until an answer is there


class House:
    """An agent in this process, and the lines of its operators."""

    def __init__(self, image, state, monkeypatch):
        monkeypatch.setenv("CLAWLITE_STATE", str(state))
        self.stdin, self.stdout = os.pipe(), os.pipe()
        line = Wire(self.stdin[0], self.stdout[1]), Framer(MAX_LINE, True)
        self.shell = Shell(
            open_image(str(image), prepare), os.path.dirname(image), True, None, line
        )
        self.shell.start()
        self.ended = []

    def join(self, role: int, actor: str, login_ms: int = None) -> "Person":
        return Person(self, Somebody(actor, role, login_ms))

    def until(self, holds):
        """Let the loop go on until *holds()*."""
        for _ in range(STEPS):
            if holds():
                return
            self.shell.step()
        raise AssertionError("it does not come")

    def close(self):
        self.shell.leave()
        for fd in (*self.stdin, *self.stdout):
            os.close(fd)


class Person:
    """One operator at the far end of a socket."""

    def __init__(self, house, person: Somebody):
        self.house, (self.near, self.far) = house, socket.socketpair()
        fd = self.far.fileno()
        self.line = OperatorLine(house.shell, fd, fd, person, self._end)
        house.shell.add_part(self.line)
        self.number, self.rest, self.got = 0, b"", []

    def _end(self, line):
        self.house.ended.append(line)
        self.far.close()

    def send(self, method: str, **params) -> int:
        """Send a request; return its id."""
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.near.sendall(json.dumps(message).encode() + b"\n")
        return self.number

    def read(self):
        """Take what has come, without waiting."""
        while select.select([self.near], [], [], 0)[0]:
            data = self.near.recv(65536)
            if not data:
                break
            *lines, self.rest = (self.rest + data).split(b"\n")
            self.got += [json.loads(line.lstrip(b"\x1e")) for line in lines if line]

    def answer(self, id: int) -> dict:
        """Let the loop go on until the answer to *id* is there; return it."""
        for _ in range(STEPS):
            self.read()
            for message in self.got:
                if message.get("id") == id:
                    return message
            self.house.shell.step()
        raise AssertionError(f"no answer to {id}: {self.got}")

    def ask(self, method: str, **params) -> dict:
        return self.answer(self.send(method, **params))

    def call(self, number: int, name: str, **arguments) -> int:
        context = {
            "request_id": request_id(number),
            "identity": self.house.shell.image.agent.identity,
        }
        return self.send("claw.tool.call", name=name, arguments=arguments, context=context)


def request_id(number: int) -> str:
    return "00000000-0000-4000-8000-%012x" % number
