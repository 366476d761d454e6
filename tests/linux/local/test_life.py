"""When the processes of the local model begin and end, and how few tools of many the model gets."""

import json
import os
import select

import pytest
from agents import Agent, eventually, linux
from local_model import (
    EXAMPLES,
    FOLDER,
    TIMEOUT_MS,
    TOOLS,
    environment,
    in_turn,
    needs_model,
    project,
)

from clawlite.linux.local import model_client
from clawlite.linux.local.engine import Engine
from clawlite.linux.local.understanding import Understanding

IDLE_MS = 600000


def _children(pid: int) -> list:
    """Return the processes below *pid*: the one that reads sentences, and its engine."""
    found = []
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        for child in map(int, file.read().split()):
            found += [child, *_children(child)]
    return found


def _start(tmp_path, more: str = "") -> Agent:
    made = project(tmp_path / "agent", more=more)
    env = {**environment(tmp_path), "TERM": "dumb"}
    return Agent(linux("run", made), tmp_path, terminal=True, env=env, preexec_fn=in_turn)


def _await_end(watched: list):
    for fd in watched:
        assert select.select([fd], [], [], 60)[0]
        os.close(fd)


@needs_model
def test_it_begins_with_the_first_sentence_and_ends_with_the_agent(tmp_path):
    with _start(tmp_path) as agent:
        agent.expect("> ")
        assert not _children(agent.process.pid)
        agent.line("how wet is the soil")
        agent.expect("34")
        below = _children(agent.process.pid)
        assert len(below) == 2
        watched = [os.pidfd_open(pid) for pid in below]
        agent.line("/quit")
        agent.wait()
        _await_end(watched)


@needs_model
def test_a_warm_one_begins_with_the_agent(tmp_path):
    with _start(tmp_path, "warm = true\n") as agent:
        agent.expect("> ")
        eventually(lambda: len(_children(agent.process.pid)) == 2)
        below = _children(agent.process.pid)
        agent.line("how wet is the soil")
        agent.expect("34")
        assert _children(agent.process.pid) == below, "the sentence found it there"


@needs_model
def test_an_idle_one_ends_and_the_next_sentence_starts_it_anew(tmp_path):
    with _start(tmp_path, "idle_s = 1\n") as agent:
        agent.expect("> ")
        agent.line("how wet is the soil")
        agent.expect("34")
        eventually(lambda: not _children(agent.process.pid))
        agent.line("how wet is the soil")
        agent.expect("34")


class Wire:
    """What the loop waits with."""

    def __init__(self):
        self.fds = []

    def wake_by(self, fd: int):
        self.fds.append(fd)

    def sleep_by(self, fd: int):
        self.fds.remove(fd)


def _ask(one, text: str) -> dict:
    """Return what the process of *one* says of *text*."""
    heard = []
    one.ask({"do": "propose", "text": text}, heard.append)
    while not heard:
        assert select.select(one._wire.fds, [], [], 60)[0]
        one.poll()
    [(done, answer)] = heard
    assert done, answer
    return answer


@pytest.mark.parametrize("idle_ms", [IDLE_MS, 0])
def test_idle_time_begins_with_the_last_answer(monkeypatch, idle_ms):
    """Its process is the real one; a negation needs no engine."""
    now = [1000]
    monkeypatch.setattr(model_client, "now_ms", lambda: now[0])
    setup = {"do": "setup", "timeout_ms": TIMEOUT_MS, "tools": TOOLS, "examples": EXAMPLES}
    one = model_client.LocalLink(Wire(), json.dumps(setup).encode(), TIMEOUT_MS, idle_ms)
    try:
        for begun in (1000, 5000):  # a sentence puts it off
            now[0] = begun
            assert _ask(one, "don't water")["kind"] == "refuse"
        first = one._pid
        assert one.deadline() == (5000 + idle_ms if idle_ms else None)
        now[0] = 5000 + IDLE_MS - 1
        one.poll()
        assert one._pid == first
        now[0] += 1
        one.poll()
        if not idle_ms:
            assert one._pid == first
            return
        assert one._pid == 0 and one._wire.fds == [] and one.deadline() is None
        assert not os.path.exists("/proc/%d" % first)
        assert _ask(one, "don't water")["kind"] == "refuse" and one._pid
    finally:
        one.close()


PLACES = "kitchen garage cellar attic hall porch barn stable office library".split()
PLACES += "nursery bathroom workshop greenhouse pantry".split()
THINGS = "lamp heater fan blind radio valve camera speaker lock pump".split()
THINGS += "kettle oven bell siren fountain mirror printer mixer toaster projector".split()


@needs_model
def test_the_right_one_of_300_tools_is_found(tmp_path, monkeypatch):
    """The real model gets the 12 nearest by example, and another set is another process."""
    monkeypatch.setenv("CLAWLITE_LOCAL", str(FOLDER))
    pairs = [(place, thing) for place in PLACES for thing in THINGS]
    names = ["%s-%s" % pair for pair in pairs]
    schema = {"type": "object", "properties": {}, "required": []}
    tools = [
        {"name": name, "description": "Start the %s of the %s" % (thing, place),
         "parameters": schema, "reads": False}
        for name, (place, thing) in zip(names, pairs)
    ]  # fmt: skip
    examples = [
        {"say": "start the %s in the %s" % (thing, place), "tool": name}
        for name, (place, thing) in zip(names, pairs)
    ]
    begun = []

    def make():
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        in_turn()
        try:
            begun.append(Engine(TIMEOUT_MS))
        finally:
            os.sched_setscheduler(0, *before)
        return begun[-1]

    known = Understanding(tools, examples, make, str(tmp_path))
    try:
        known.prepare()
        assert len(tools) == 300 and len(begun) == 1 and known._shown is None
        for said, name, engines in (
            ("start the kettle in the kitchen", "kitchen-kettle", 1),
            ("start the kettle in the kitchen", "kitchen-kettle", 1),
            ("please start the fountain in the greenhouse", "greenhouse-fountain", 2),
            ("start the projector in the attic now", "attic-projector", 3),
        ):
            found = known.propose(said)
            assert [call[0] for call in found.calls] == [name], (said, found.to_json())
            assert len(known._shown) == 12 and name in known._shown
            assert len(begun) == engines and [one.pid != 0 for one in begun].count(True) == 1
    finally:
        known.close()
