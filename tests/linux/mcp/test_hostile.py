"""Whatever an MCP server sends, in both eras, the agent lives and the calls of others end right."""

import json
import os
import socket
import sys
from types import SimpleNamespace

import mcp_agents
import pytest
from agents import Agent, clawlite, linux, tool_call
from mcp_hostile_http import HostileRemote

from clawlite.core.base.effect import ASKS_PERSON
from clawlite.core.base.errors import ClawError
from clawlite.host.builder.build import build_beside
from clawlite.linux.mcp.servers import MCPServers
from clawlite.linux.terminal import console_view
from clawlite.protocols.mcp.mcp_pin import pin_of

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../core"))
from hostile_mcp import ECHO, Hostile  # noqa: E402
from line_wire import Dice  # noqa: E402

SERVER = mcp_agents.SERVER.with_name("mcp_hostile_server.py")
ROUNDS = 12
ERAS = ("stateless", "handshake")
SEEDS = 60
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}
SEED = int(os.environ.get("CLAWLITE_SEED", "1"))


@pytest.fixture(params=ERAS)
def era(request):
    return request.param


def image_of(tmp_path, era: str, *what, seed: int = SEED) -> str:
    """Return the image of an agent with the tools odd, of a hostile server, and echo."""
    tools = [mcp_agents.tool("odd", "echo", "h"), mcp_agents.tool("echo", "echo")]
    hostile = [str(SERVER), str(tmp_path / "marks"), str(seed), era, *what]
    more = "[mcp.h]\nargs = %s\n" % json.dumps(hostile)
    folder = mcp_agents.write(tmp_path, tools=tools, more=more)
    with (folder / "reflex.toml").open("a") as file:
        file.write('[[rule]]\nwhen = "odd"\ncall = "odd"\nthen = [{ say = "{result}" }]\n')
    image = build_beside(str(folder))
    (tmp_path / "marks/now").touch()
    return image


def answers(agent, wanted: set) -> dict:
    """Return {id: answer} of all requests *wanted*."""
    found = {}
    while set(found) != wanted:
        message = agent.message()
        if "id" in message and "method" not in message:
            found[message["id"]] = message
    return found


def text_of(answer: dict) -> str:
    assert "result" in answer, answer
    return answer["result"]["content"][0]["text"]


@pytest.mark.parametrize("what", ["", "results", "all"])
def test_an_operators_agent_lives(tmp_path, era, what):
    image = image_of(tmp_path, era, *what.split())
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        for number in range(10, 10 + 2 * ROUNDS, 2):
            agent.line(json.dumps(tool_call("odd", {}, number)))
            agent.line(json.dumps(tool_call("echo", {"text": "x%d" % number}, number + 1)))
            found = answers(agent, {number, number + 1})
            assert text_of(found[number + 1]) == "x%d" % number
            if not what:
                assert text_of(found[number]) == "fine", found
            assert agent.is_serving()
        agent.end()
        assert agent.wait() == 0


@pytest.mark.parametrize("what", ["", "results", "all"])
def test_an_operators_agent_lives_over_http(tmp_path, era, what):
    with HostileRemote(SEED, "", era == "stateless") as server:
        image = build_beside(str(mcp_agents.remote(tmp_path, server.url)))
        server.hostile.breaks = what
        with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
            for number in range(10, 10 + ROUNDS):
                agent.line(json.dumps(tool_call("echo", {}, number)))
                found = answers(agent, {number})
                assert what or text_of(found[number]) == "fine", found
                assert agent.is_serving()
            agent.end()
            assert agent.wait() == 0


@pytest.mark.parametrize("words", [("run",), ("ask",)])
def test_a_console_lives(tmp_path, era, words):
    image = image_of(tmp_path, era)
    lines = ["odd", "say hello"] * 3
    if words == ("ask",):
        done = clawlite("ask", "odd", image, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "fine\n"), done
        return
    for is_terminal in (False, True):
        env = {"TERM": "xterm"}
        with Agent(linux("run", image), tmp_path, terminal=is_terminal, env=env) as agent:
            for line in lines:
                agent.line(line)
                agent.expect("fine" if line == "odd" else "hello")
                if is_terminal:
                    agent.expect("> ")
            agent.line("/status")
            agent.expect("READY")


def test_a_client_of_the_agent_is_served(tmp_path, era):
    """The progress of odd, which the client wants, is any number."""
    image = image_of(tmp_path, era)
    with Agent(linux("mcp", "serve", image), tmp_path) as agent:
        agent.call("initialize", HELLO, 1)
        for number in range(10, 10 + 2 * ROUNDS, 2):
            odd = {"name": "odd", "arguments": {}, "_meta": {"progressToken": "p"}}
            echo = {"name": "echo", "arguments": {"text": "x"}}
            for id, params in ((number, odd), (number + 1, echo)):
                request = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
                agent.line(json.dumps(request))
            found = answers(agent, {number, number + 1})
            assert (text_of(found[number]), text_of(found[number + 1])) == ("fine", "x")


class Watched:
    """The seam of an agent whose progress is wanted for every second call."""

    def __init__(self):
        self.asking, self.bugs = False, []

    def asks(self, task) -> bool:
        return self.asking

    def watches(self, task) -> bool:
        return bool(task % 2)

    def tell(self, task: int, progress):
        assert task % 2
        console_view.progress_text("odd", *progress) if progress else None

    def warn(self, text: str):
        assert "this is a bug" not in text, text


class Process:
    """A server in this process: *stream* is the agent's end, ``step`` lets it answer."""

    def __init__(self, server):
        self.stream, self._theirs = socket.socketpair()
        for end in (self.stream, self._theirs):
            end.setblocking(False)
        self._server, self._heard = server, b""

    def step(self):
        try:
            self._heard += self._theirs.recv(1 << 20)
        except OSError:
            pass
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            for message in self._server.replies(json.loads(line)):
                try:
                    self._theirs.sendall(json.dumps(message).encode() + b"\n")
                except OSError:  # the agent has ended it
                    return

    def has_ended(self) -> bool:
        return True

    def errors(self) -> str:
        return ""

    def end(self):
        self.stream.close()
        self._theirs.close()


def decide(question, dice):
    """Let a person answer *question*, read in every way that there is."""
    question.put(SimpleNamespace(name="odd"), {})
    question._tool = "odd"
    assert all(question.text(60, by).isprintable() for by in ()) or question.how is not None
    json.dumps(question.to_json())
    for by in ("/show", None):
        assert "\x1b" not in question.text(60, by)
    try:
        question.fill({} if dice.below(2) else {"a": "x"})
    except ClawError:
        pass
    event = question.event({"answer": ("approved", "denied", "expired")[dice.below(3)]})
    assert "reason" in event
    return True, question.result


def play(seed: int, breaks: str, asks: bool, calls: int = 6) -> int:
    """Let an agent's servers make calls of a hostile one; return how many were answered well."""
    server, dice, seam = Hostile(seed, breaks), Dice(seed), Watched()
    seam.asking, now, fine = asks, 0, 0
    server.asks = asks
    running = []

    def begin(*_):
        running.append(Process(server))
        return running[-1]

    pin = pin_of(ECHO)
    row = ["h", ["/h"], [], not server.is_stateless, [["echo", pin]], [], None, [None, 0, 0, 0]]
    servers = MCPServers([row], begin, None, seam)
    try:
        for task in range(1, calls + 1):
            now += 60001  # a server that failed may be begun again
            outcome = servers.start(task, "h/echo", {}, now + 5000, now)
            steps = 0
            while outcome is None:
                for one in running[-1:]:
                    one.step()
                for number, found in servers.poll(now):
                    if found[0] == ASKS_PERSON:
                        servers.resume(number, decide(found[1], dice), now)
                    else:
                        assert number == task
                        outcome = found
                steps += 1
                server.is_quiet = steps > 50
                now += 0 if steps < 60 else 1000  # then it is too late
            server.is_quiet = False
            is_ok, value = outcome
            assert is_ok or isinstance(value, ClawError), (seed, outcome)
            assert is_ok or "this is a bug" not in value.message + value.hint, (seed, value.message)
            fine += outcome == (True, "fine")
    finally:
        servers.close()
    return fine


@pytest.mark.parametrize("breaks", ["", "results", "all"])
def test_servers_of_an_agent(breaks):
    fine = 0
    for seed in range(SEED * 1000, SEED * 1000 + SEEDS):
        fine += play(seed, breaks, asks=False)
        play(seed, breaks, asks=True)
    assert fine == 6 * SEEDS if not breaks else 0 < fine < 6 * SEEDS


@pytest.mark.soak
@pytest.mark.parametrize("breaks", ["", "results", "all"])
def test_servers_of_an_agent_for_long(breaks):
    for seed in range(SEED * 1000000, SEED * 1000000 + 100 * SEEDS):
        for asks in (False, True):
            play(seed, breaks, asks)
