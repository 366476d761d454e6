"""Several operators of one agent at once, each on a line of their own with the rights of a role."""

import json
import os
import select
import socket

import pytest
from agents import INITIALIZE

from clawlite.core.line.frame import Framer
from clawlite.linux.channels.access import ADMIN, USER, VIEWER
from clawlite.linux.files.files import open_image
from clawlite.linux.io.stdio import MAX_LINE, Wire
from clawlite.linux.runtime.optional_parts import prepare
from clawlite.linux.runtime.shell import Shell
from clawlite.linux.tasks.operator_line import OperatorLine

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

    def join(self, role: int, actor: str) -> "Person":
        return Person(self, role, actor)

    def close(self):
        self.shell.leave()
        for fd in (*self.stdin, *self.stdout):
            os.close(fd)


class Person:
    """One operator at the far end of a socket."""

    def __init__(self, house, role: int, actor: str):
        self.house, (self.near, self.far) = house, socket.socketpair()
        fd = self.far.fileno()
        self.line = OperatorLine(house.shell, fd, fd, role, actor, self._end)
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


@pytest.fixture
def house(greenhouse_image, tmp_path, monkeypatch):
    made = House(greenhouse_image, tmp_path, monkeypatch)
    yield made
    made.close()


def test_two_operators_have_their_own_answers_and_their_own_rights(house):
    admin, user = house.join(ADMIN, "ada"), house.join(USER, "bea")
    for one in (admin, user):
        assert one.ask("claw.initialize", **INITIALIZE)["result"]["agentInfo"]
    # both use the same ids of requests at the same time
    waiting = user.call(1, "water", seconds=3)
    assert "result" in admin.answer(admin.call(2, "read-soil"))
    # a user may not approve, and the call waits on
    refused = user.ask("claw.tool.approve", request_id=request_id(1))["error"]
    assert refused["code"] == -32011 and "bea has the role user" in refused["message"]
    assert house.shell.agent.waiting
    assert not any(message.get("id") == waiting for message in user.got)
    approved = admin.ask("claw.tool.approve", request_id=request_id(1))
    assert approved["result"] == {"acknowledged": True}
    assert user.answer(waiting)["result"]["isError"] is False
    # what one was told, the other was not
    assert {message["id"] for message in user.got if "id" in message} == {1, 2, 3}
    admin.read()
    assert {message["id"] for message in admin.got if "id" in message} == {1, 2, 3}


def test_what_a_role_may_not_do_is_refused_and_changes_nothing(house):
    viewer, user = house.join(VIEWER, "vic"), house.join(USER, "bea")
    for one in (viewer, user):
        one.ask("claw.initialize", **INITIALIZE)
    assert viewer.answer(viewer.call(1, "water", seconds=1))["error"]["code"] == -32011
    assert not house.shell.agent.tasks
    for method in ("claw.shutdown", "claw.tool.deny", "claw.tool.approve", "claw.of.tomorrow"):
        assert user.ask(method, request_id=request_id(1))["error"]["code"] == -32011, method
    assert house.shell.agent.is_ready
    assert viewer.ask("claw.status")["result"]["state"] == "READY"


def test_an_operator_who_goes_leaves_the_others_and_their_call_in_peace(house):
    admin, user = house.join(ADMIN, "ada"), house.join(USER, "bea")
    for one in (admin, user):
        one.ask("claw.initialize", **INITIALIZE)
    user.call(1, "water", seconds=1)
    for _ in range(STEPS):
        if house.shell.agent.waiting:
            break
        house.shell.step()
    user.near.close()
    for _ in range(STEPS):
        if house.ended:
            break
        house.shell.step()
    assert house.ended == [user.line] and user.line not in house.shell.parts
    denied = admin.ask("claw.tool.deny", request_id=request_id(1))
    assert denied["result"] == {"acknowledged": True}
    assert admin.ask("claw.status")["result"]["state"] == "READY"
