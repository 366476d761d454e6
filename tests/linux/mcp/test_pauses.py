"""The pauses between the starts of an MCP server that fails, and between the subscriptions that one
ends, by a clock that the test hands in (docs/mcp.md, "While the agent runs").
"""

import json
import re
import socket

import pytest

from clawlite.core.base.effect import IS_OK
from clawlite.core.base.errors import ClawError
from clawlite.linux.mcp.servers import CALL_MS, MCPServers
from clawlite.protocols.mcp.mcp_client import STATELESS

PAUSES_S = [1, 2, 4, 8, 16, 32, 60, 60, 60]
ROW = ["t", ["/bin/t"], [], False, [["echo", b""]], [], None, [None, 0, 0, 0]]


class Seam:
    def __init__(self):
        self.said = []

    def asks(self, task):
        return False

    def watches(self, task):
        return False

    def tell(self, task, said):
        pass

    def warn(self, text):
        self.said.append(text)


class Process:
    """A server whose other end the test has: *theirs*, a socket."""

    def __init__(self):
        self.stream, self.theirs = socket.socketpair()
        self.stream.setblocking(False)

    def has_ended(self) -> bool:
        return True

    def errors(self) -> str:
        return ""

    def end(self):
        self.stream.close()
        self.theirs.close()


class World:
    """One server, and how its starts go: *starts* counts them, *process* is the last one.
    *capabilities* are the server's; it ends each subscription at once.
    """

    capabilities = {}

    def __init__(self, can_start: bool):
        self.can_start, self.starts, self.process, self.task = can_start, 0, None, 0
        self.seam = Seam()
        self.servers = MCPServers([ROW], self._begin, None, self.seam)

    def _begin(self, *_):
        self.starts += 1
        if not self.can_start:
            raise ClawError("there is no such program")
        self.process = Process()
        return self.process

    def call(self, now_ms: int):
        self.task += 1
        return self.servers.start(self.task, "t/echo", {}, None, now_ms)

    def fail(self, now_ms: int):
        """Make a call, with which the server ends."""
        outcome = self.call(now_ms)
        if self.can_start:
            assert outcome is None
            ((_, outcome),) = self.hang_up(now_ms)
        assert not outcome[IS_OK], outcome

    def hang_up(self, now_ms: int) -> list:
        """The server ends; return the calls that it had, with their outcomes."""
        self.process.theirs.shutdown(socket.SHUT_RDWR)
        done = []
        while self.servers.is_busy:
            done += self.servers.poll(now_ms)
        return done

    def answer(self, now_ms: int):
        """Make a call, and answer it as a server does."""
        assert self.call(now_ms) is None
        done = []
        while not done:
            done = self.reply(now_ms)
        assert done == [(self.task, (True, "a"))]

    def reply(self, now_ms: int) -> list:
        """Answer what has come; return the calls that end with it."""
        known = {"supportedVersions": [STATELESS], "capabilities": self.capabilities}
        for line in self.process.theirs.recv(65536).splitlines():
            asked = json.loads(line)
            result = {
                "server/discover": known,
                "tools/list": {"tools": [{"name": "echo"}]},
                "tools/call": {"content": [{"type": "text", "text": "a"}]},
                "subscriptions/listen": {},
            }[asked["method"]]
            said = {"jsonrpc": "2.0", "id": asked["id"], "result": result}
            self.process.theirs.sendall(json.dumps(said).encode() + b"\n")
        return self.servers.poll(now_ms)

    def pause_ms(self, now_ms: int, failures: int) -> int:
        """Return how long calls are refused from *now_ms* on; nothing is started meanwhile."""
        before, (done, error) = self.starts, self.call(now_ms)
        assert not done and error.data == {"ran": False}
        assert "the MCP server t has failed %d times in a row" % failures in error.message
        pause_ms = 1000 * int(re.search(r"send it again in (\d+) s", error.hint)[1])
        assert not self.call(now_ms + pause_ms - 1)[IS_OK] and self.starts == before
        return pause_ms


@pytest.mark.parametrize("can_start", [True, False], ids=["it ends", "it cannot be started"])
def test_the_pause_doubles_with_each_failure_in_a_row(can_start):
    world, now_ms, found = World(can_start), 5000, []
    for failures in range(1, len(PAUSES_S) + 1):
        world.fail(now_ms)
        assert world.starts == failures
        found.append(world.pause_ms(now_ms, failures) // 1000)
        now_ms += 1000 * found[-1]
    world.servers.close()
    assert found == PAUSES_S


def test_a_call_that_is_answered_ends_the_row():
    world = World(True)
    for now_ms in (0, 1000, 3000):
        world.fail(now_ms)
    assert world.pause_ms(3000, 3) == 4000
    world.answer(7000)
    assert world.hang_up(7000) == []
    assert world.pause_ms(7000, 1) == 1000
    world.servers.close()


def test_a_server_that_sends_blank_lines_alone_hangs():
    world = World(True)
    world.answer(0)
    for now_ms in (0, CALL_MS):
        assert world.call(now_ms) is None
        world.process.theirs.sendall(b"\n \n")
        ((_, (done, error)),) = world.servers.poll(now_ms + CALL_MS)
        assert not done and "did not answer in time" in error.message
    assert world.pause_ms(2 * CALL_MS, 1) == 1000
    world.servers.close()


def test_a_subscription_that_a_server_ends_is_asked_for_again_and_told_of_once():
    world, now_ms = World(True), 0
    world.capabilities = {"tools": {"listChanged": True}}
    for _ in "it", "the process that follows it":
        found = []
        world.answer(now_ms)
        for _ in PAUSES_S:
            while world.servers.deadline() is None:
                assert world.reply(now_ms) == []
            found.append((world.servers.deadline() - now_ms) // 1000)
            now_ms = world.servers.deadline()
            assert world.servers.poll(now_ms) == []
        assert found == PAUSES_S
        assert world.hang_up(now_ms) == []
        now_ms += 1000
    world.servers.close()
    (said,) = world.seam.said
    assert "the MCP server t has ended 8 subscriptions in a row: it is asked for another" in said
