"""Requests that come twice, approvals and kill -9, with real processes: nothing that was
acknowledged is forgotten, nothing runs twice.

The tools write their own ledger: a line each time that they run.
"""

import json
import os
import random
import select
import time
import tracemalloc

import pytest
from agents import UUID, Agent, eventually, linux, tool_call

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: "once", version: "1.0.0" }
spec:
  identity: { inline: { name: "once", personality: "You are under test.", autonomy: "autonomous" } }
  providers:
    - inline: { name: "reflex", protocol: "custom", endpoint: "builtin:reflex", model: "reflex", auth: { type: "none" } }
  tools:
    - inline: { name: "asked", metadata: { labels: { category: "asks" } }, description: "Asks", input_schema: { type: object, additionalProperties: false } }
    - inline: { name: "lenient", metadata: { labels: { category: "lenient" } }, description: "Asks", input_schema: { type: object, additionalProperties: false } }
    - inline: { name: "denied", metadata: { labels: { category: "no" } }, description: "No", input_schema: { type: object, additionalProperties: false } }
    - inline:
        name: "asked-read"
        metadata: { labels: { category: "asks" } }
        description: "Asks, and reads"
        input_schema: { type: object }
        annotations: { readOnlyHint: true }
    - inline: { name: "look", description: "Reads", input_schema: { type: object }, annotations: { readOnlyHint: true } }
    - inline: { name: "set", description: "Sets", input_schema: { type: object }, annotations: { idempotentHint: true } }
  sandbox: { inline: { name: "in-process", level: "none" } }
  policies:
    - inline:
        name: "rules"
        rules:
          - { id: "no", action: "deny", scope: "category", match: { category: "no" } }
          - { id: "ask", action: "require-approval", scope: "category", match: { category: "asks" },
              approval: { timeout_seconds: 60, default_if_timeout: "deny" } }
          - { id: "lenient", action: "require-approval", scope: "category", match: { category: "lenient" },
              approval: { timeout_seconds: 1, default_if_timeout: "allow" } }
          - { id: "all", action: "allow", scope: "all" }
"""  # noqa: E501
TOOLS = '''\
"""Each writes a line when it runs."""
import os


def _run(name: str) -> str:
    fd = os.open(os.getenv("LEDGER"), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (name + "\\n").encode())
    number = os.fstat(fd).st_size
    os.close(fd)
    return "%s ran, %d" % (name, number)


def water(who: str = "water") -> str:
    """Water."""
    return _run(who)


def slow(ms: int, who: str = "slow") -> str:
    """Water for long."""
    said = _run(who)
    yield ms
    return said
''' + "".join(
    '\n\ndef %s() -> str:\n    """It."""\n    return _run("%s")\n' % (name, name.replace("_", "-"))
    for name in ("asked", "lenient", "denied", "asked_read", "look", "set")
)
FILES = {
    "claw.yaml": CLAW,
    "tools.py": TOOLS,
    "clawlite.toml": 'reflex = "reflex.toml"\n',
    "reflex.toml": '[[rule]]\nwhen = "asked"\ncall = "asked"\n',
}
ACK, NOT_ACK = {"acknowledged": True}, {"acknowledged": False}


@pytest.fixture(scope="session")
def once_image(tmp_path_factory):
    from clawlite.host.builder.build import build_beside

    folder = tmp_path_factory.mktemp("once")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    return build_beside(str(folder))


class World:
    """The folder of one agent, its ledger, and processes over it."""

    def __init__(self, image, folder):
        self.image, self.home, self.ledger = image, folder / "home", folder / "ledger"
        self.state = self.home / "state" / "once"

    def serve(self) -> Agent:
        return Agent(linux("serve", self.image, "--stdio"), self.home, env={"LEDGER": self.ledger})

    def run(self, terminal=False) -> Agent:
        return Agent(linux("run", self.image), self.home, terminal, env={"LEDGER": self.ledger})

    def ran(self) -> list:
        return self.ledger.read_text().split() if self.ledger.exists() else []

    def log(self, event: str) -> list:
        found = []
        for line in (self.state / "log.jsonl").read_text().splitlines():
            found += [json.loads(line)] if json.loads(line)["event"] == event else []
        return found


@pytest.fixture
def world(once_image, tmp_path):
    return World(once_image, tmp_path)


def ask(agent, name: str, number: int, arguments=None, id=1):
    """Call a tool; return what its answer says: a text or an error."""
    begin(agent, name, number, arguments, id)
    return said(agent.message())


def begin(agent, name: str, number: int, arguments=None, id=1):
    agent.line(json.dumps(dict(tool_call(name, arguments, number), id=id)))


def said(answer: dict):
    return answer["error"] if "error" in answer else answer["result"]["content"][0]["text"]


def decide(agent, how: str, number: int):
    return agent.call(
        "claw.tool." + how, {"request_id": UUID % number, "reason": "because"}, id="decided"
    )["result"]


def kill(agent):
    agent.process.kill()
    agent.process.wait()


def test_again_gives_the_same_and_runs_nothing(world):
    with world.serve() as agent:
        agent.initialize()
        for number, name in enumerate(("water", "look", "set"), 1):
            assert ask(agent, name, number) == ask(agent, name, number)
        assert world.ran() == ["water", "look", "set"]
        assert ask(agent, "water", 4) != ask(agent, "water", 1)


def test_other_parameters_are_refused_and_nothing_runs(world):
    with world.serve() as agent:
        agent.initialize()
        ask(agent, "water", 1, {"who": "a"})
        for name, arguments in (
            ("water", {"who": "b"}),
            ("water", {}),
            ("look", {"who": "a"}),
            ("look", {}),
        ):
            assert ask(agent, name, 1, arguments)["code"] == -32602
        assert world.ran() == ["a"]


def test_a_refusal_before_the_arguments_fit_is_not_remembered(world):
    with world.serve() as agent:
        agent.initialize()
        assert ask(agent, "nope", 1)["code"] == ask(agent, "water", 1, {"who": 5})["code"] == -32602
        assert ask(agent, "water", 1) == "water ran, 6"


def test_the_second_waits_for_the_first(world):
    with world.serve() as agent:
        agent.initialize()
        for id in (1, 2, 3):
            begin(agent, "slow", 1, {"ms": 200}, id)
        answers = [agent.message() for _ in range(3)]
        assert [answer["id"] for answer in answers] == [1, 2, 3] and len(
            {said(answer) for answer in answers}
        ) == 1
        assert world.ran() == ["slow"]


def test_denied_by_policy_twice_is_the_same_error(world):
    with world.serve() as agent:
        agent.initialize()
        assert ask(agent, "denied", 1) == ask(agent, "denied", 1)
        assert world.ran() == []


def test_read_only_calls_write_no_record(world):
    with world.serve() as agent:
        agent.initialize()
        for number in range(20):
            ask(agent, "look", number)
        agent.end()
        assert agent.wait() == 0
    assert sorted(os.listdir(world.state)) == ["log.jsonl"]


def test_after_kill_9_the_answer_is_the_same(world):
    with world.serve() as agent:
        agent.initialize()
        first = ask(agent, "water", 1)
        kill(agent)
    for _ in range(2):
        with world.serve() as agent:
            agent.initialize()
            assert ask(agent, "water", 1) == first
            assert ask(agent, "water", 1, {"who": "b"})["code"] == -32602
            kill(agent)
    assert world.ran() == ["water"]


def test_after_kill_9_what_had_begun_is_told_and_not_run_again(world):
    with world.serve() as agent:
        agent.initialize()
        begin(agent, "slow", 1, {"ms": 60000})
        eventually(world.ran)
        kill(agent)
    with world.serve() as agent:
        agent.initialize()
        error = ask(agent, "slow", 1, {"ms": 60000})
        assert (
            error["code"] == -32014
            and "may have run" in error["message"]
            and error["data"]["request_id"] == UUID % 1
        )
    assert world.ran() == ["slow"]


def test_after_kill_9_a_tool_that_may_run_twice_runs_again(world):
    """Nothing of it is on record: it costs no write."""
    with world.serve() as agent:
        agent.initialize()
        first = ask(agent, "set", 1)
        kill(agent)
    with world.serve() as agent:
        agent.initialize()
        assert ask(agent, "set", 1) != first
    assert world.ran() == ["set", "set"]


# -- approvals (5.8, 9.3.2)


def test_an_approval_is_bound_to_its_request_and_used_once(world):
    """9.3.2: nothing runs before its approval; the approval of one releases no other."""
    with world.serve() as agent:
        agent.initialize()
        begin(agent, "asked", 1, id=1)
        begin(agent, "asked", 2, id=2)
        assert (
            decide(agent, "approve", 3) == decide(agent, "deny", 3) == NOT_ACK and world.ran() == []
        )
        assert ask(agent, "water", 1)["code"] == -32602
        assert decide(agent, "approve", 1) == ACK
        assert agent.message()["id"] == 1 and world.ran() == ["asked"]
        assert decide(agent, "approve", 1) == decide(
            agent, "deny", 1
        ) == NOT_ACK and world.ran() == ["asked"]
        assert decide(agent, "deny", 2) == ACK
        answer = agent.message()
        assert (
            answer["id"] == 2
            and answer["error"]["code"] == -32013
            and "because" in answer["error"]["message"]
        )
        assert ask(agent, "asked", 2) == answer["error"] and world.ran() == ["asked"]


def test_an_approval_that_runs_out_may_allow(world):
    """5.8: ``default_if_timeout: allow``; -32012 after ``deny`` is in tests/golden, on a clock
    of its own.
    """
    with world.serve() as agent:
        agent.initialize()
        assert ask(agent, "lenient", 1) == "lenient ran, 8"
        assert (
            ask(agent, "lenient", 1) == "lenient ran, 8" and decide(agent, "approve", 1) == NOT_ACK
        )


@pytest.mark.parametrize("tool", ["asked", "asked-read"])
def test_a_denial_that_was_acknowledged_outlives_kill_9(world, tool):
    with world.serve() as agent:
        agent.initialize()
        begin(agent, tool, 1)
        assert decide(agent, "deny", 1) == ACK
        kill(agent)
    with world.serve() as agent:
        agent.initialize()
        assert ask(agent, tool, 1)["code"] == -32013 and world.ran() == []


def test_what_waited_at_kill_9_is_told_once_and_asked_anew(world):
    with world.serve() as agent:
        agent.initialize()
        begin(agent, "asked", 1)
        begin(agent, "asked-read", 2)
        assert agent.is_serving()
        kill(agent)
    with world.run(terminal=True) as agent:
        before = agent.expect("> ")
        assert (
            before.count("waited for approval when this agent ended: it was not run.\n") == 2
            and "asked() waited" in before
        )
        kill(agent)
    assert [
        (event["tool"], event["arguments"])
        for event in world.log("tool.approval")
        if event["answer"] == "restart"
    ] == [("asked", {}), ("asked-read", {})]
    with world.serve() as agent:
        agent.initialize()
        begin(agent, "asked", 1)
        assert decide(agent, "approve", 1) == ACK and said(agent.message()) == "asked ran, 6"
    with world.run(terminal=True) as agent:
        assert "waited" not in agent.expect("> ")


def test_a_question_of_a_turn_that_waited_at_kill_9_is_told(world):
    with world.run(terminal=True) as agent:
        agent.expect("> ")
        agent.line("asked")
        agent.expect("[y/N] ")
        kill(agent)
    with world.run(terminal=True) as agent:
        assert (
            agent.expect("> ")
            .replace("\x1b[?2004h", "")
            .startswith("asked() waited for approval when this agent ended: it was not run.\n")
        )
        agent.line("asked")
        agent.expect("[y/N] ")
        agent.line("y")
        agent.expect("> ")
    assert (
        world.ran() == ["asked"]
        and len([event for event in world.log("tool.approval") if event["answer"] == "restart"])
        == 1
    )


def test_what_waited_at_a_shutdown_is_asked_anew(world):
    with world.serve() as agent:
        agent.initialize()
        begin(agent, "asked", 1)
        agent.line('{"jsonrpc":"2.0","id":6,"method":"claw.shutdown","params":{"timeout_ms":0}}')
        assert {agent.message()["id"], agent.message()["id"]} == {1, 6}
        agent.initialize()
        begin(agent, "asked", 1)
        assert decide(agent, "approve", 1) == ACK and said(agent.message()) == "asked ran, 6"
        agent.end()
        assert agent.wait() == 0
    assert [event for event in world.log("tool.approval") if event["answer"] == "restart"] == []


# -- the journal


def test_two_processes_run_an_id_once(world):
    with world.serve() as one, world.serve() as two:
        one.initialize(), two.initialize()
        first = ask(one, "water", 1)
        assert ask(two, "water", 1) == first
        begin(one, "slow", 2, {"ms": 60000})
        eventually(lambda: "slow" in world.ran())
        assert ask(two, "slow", 2, {"ms": 60000})["code"] == -32014
        assert ask(two, "water", 3) == ask(one, "water", 3)
    assert world.ran() == ["water", "slow", "water"]


def test_a_process_that_starts_does_not_take_what_waits_in_another(world):
    with world.serve() as one:
        one.initialize()
        begin(one, "asked", 1)
        assert one.is_serving()
        with world.run(terminal=True) as two:
            assert "waited" not in two.expect("> ")
        assert decide(one, "approve", 1) == ACK and said(one.message()) == "asked ran, 6"


def test_a_torn_last_line_is_dropped_and_nothing_said(world):
    with world.serve() as agent:
        agent.initialize()
        first = ask(agent, "water", 1)
        kill(agent)
    with open(world.state / "calls.journal", "ab") as file:
        file.write(b"0123abcd 2 18")
    with world.serve() as agent:
        agent.initialize()
        assert (
            ask(agent, "water", 1) == first
            and ask(agent, "water", 2) != first
            and agent.errors() == ""
        )
        kill(agent)
    with world.serve() as agent:
        agent.initialize()
        assert ask(agent, "water", 2) != first
    assert world.ran() == ["water", "water"]


def test_a_damaged_file_is_set_aside_and_said(world):
    with world.serve() as agent:
        agent.initialize()
        answers = [ask(agent, "water", number) for number in (1, 2, 3)]
        kill(agent)
    path = world.state / "calls.journal"
    lines = path.read_bytes().split(b"\n")
    lines[1:3] = [b"\x00" * 90, b"garbage"]  # both records of the first call
    path.write_bytes(b"\n".join(lines))
    with world.serve() as agent:
        agent.initialize()
        assert [ask(agent, "water", number) for number in (2, 3)] == answers[1:]
        # what is damaged and shorter is not the file that the agent wrote, either
        assert agent.errors().count("is an older copy, or not the file") == 1
        assert (
            agent.errors().count("\n") == 2
            and "2 lines of" in agent.errors()
            and "calls.journal.damaged" in agent.errors()
        )
    assert (world.state / "calls.journal.damaged").read_bytes() == b"\n".join(lines)


def test_without_a_journal_nothing_runs_that_may_not_run_twice(world):
    world.state.mkdir(parents=True)
    (world.state / "calls.lock").mkdir()
    with world.serve() as agent:
        agent.initialize()
        error = ask(agent, "water", 1)
        assert (
            error["code"] == -32603
            and "on record" in error["message"]
            and ask(agent, "look", 2) == "look ran, 5"
        )
        assert agent.errors().count("\n") == 1
        agent.end()
        assert agent.wait() == 0
    assert world.ran() == ["look"]


def test_the_journal_stays_small(world, monkeypatch):
    from clawlite.core.idempotency.idempotency import BEGIN, END
    from clawlite.linux.runtime import call_journal as journal

    monkeypatch.setenv("CLAWLITE_STATE", str(world.home / "state"))
    monkeypatch.setattr(journal, "MAX_GROWTH", 20000)
    it = journal.Journal("once")
    for number in range(300):
        for kind, payload in ((BEGIN, ["f"]), (END, ["f", "x" * 40, False, 0])):
            assert it.keep(kind, UUID % number, payload) == (True, [])
        assert it.last_record(UUID % number) == (END, ["f", "x" * 40, False, 0])
    largest = (world.state / "calls.journal").stat().st_size
    assert largest < 100000 and len(it.calls()) == 300
    monkeypatch.setattr(
        journal, "_up_s", lambda: int(time.clock_gettime(time.CLOCK_BOOTTIME)) + 300
    )
    assert it.calls() == [] and (world.state / "calls.journal").stat().st_size < 200
    it.close()


def test_a_large_journal_takes_no_memory_for_what_is_over(world, monkeypatch):
    from clawlite.core.idempotency.idempotency import BEGIN, END, WAIT, line
    from clawlite.linux.runtime import call_journal as journal

    monkeypatch.setenv("CLAWLITE_STATE", str(world.home / "state"))
    it = journal.Journal("once")
    assert it.waiting() == []
    old = int(time.time()) - 1000
    with open(world.state / "calls.journal", "ab") as file:
        file.write(line(WAIT, old, 0, UUID % 1, '["t",null,null]'))
        for number in range(2, 4000):
            for kind, payload in ((BEGIN, '["f"]'), (END, '["f","%s",false,0]' % ("x" * 2000))):
                file.write(line(kind, old, 0, UUID % number, payload))
        file.write(line(BEGIN, old, 0, UUID % 2, '["g"]'))  # once more, and its process has ended
    assert (world.state / "calls.journal").stat().st_size > 8_000_000
    tracemalloc.start()
    try:
        assert it.waiting() == [(UUID % 1, ["t", None, None])]
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert it.last_record(UUID % 2) == (END, ["g"]) and it.last_record(UUID % 3) is None
    it.close()


@pytest.fixture
def past(world, monkeypatch):
    """The module of the journal, whose clock is the attribute ``up`` of this fixture's result."""
    from clawlite.linux.runtime import call_journal as journal

    monkeypatch.setenv("CLAWLITE_STATE", str(world.home / "state"))
    monkeypatch.setattr(journal, "up", int(time.clock_gettime(time.CLOCK_BOOTTIME)), raising=False)
    monkeypatch.setattr(journal, "_up_s", lambda: journal.up)
    return journal


def slot(past, number: int):
    """Return a journal as the process in the slot *number* has it."""
    found = past.Journal("once")
    found._open()
    found._slot = number
    return found


def counted_reads(monkeypatch):
    """Return a list that gets the length of each piece of a file that is read from now on."""
    read, pread = [], os.pread

    def counted(fd, size, at):
        data = pread(fd, size, at)
        read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    return read


def test_a_start_reads_a_large_journal_from_its_end(past, monkeypatch):
    from clawlite.core.idempotency.idempotency import BEGIN, END, WAIT

    first = past.Journal("once")
    first.keep(WAIT, UUID % 1, ["t", None, None])
    first.keep(BEGIN, UUID % 2, ["f"])
    for number in range(10, 1800):
        first.keep(BEGIN, UUID % number, ["f"])
        first.keep(END, UUID % number, ["f", "x" * 300, False, 300])
    first.close()
    past.up += 301
    second, read = past.Journal("once"), counted_reads(monkeypatch)
    assert second.waiting() == [(UUID % 1, ["t", None, None])]
    assert sum(read) < 5 * past.CHECKPOINT
    assert second.calls() == [(UUID % 2, 0, len('["f"]'))]
    assert second.last_record(UUID % 2) == (END, ["f"]) and second.last_record(UUID % 1799) is None
    assert os.path.getsize(second._path) < 1000
    second.close()


def test_what_ended_in_the_last_five_minutes_is_read_before_a_checkpoint_too(past):
    from clawlite.core.idempotency.idempotency import BEGIN, END

    first = past.Journal("once")
    for number in range(1000):
        first.keep(BEGIN, UUID % number, ["f"])
        first.keep(END, UUID % number, ["f", "x" * 300, False, 300])
    first.close()
    past.up += 299
    second = past.Journal("once")
    assert len(second.calls()) == 1000
    second.close()


def test_a_journal_is_read_alike_from_its_end_and_whole(past, monkeypatch):
    """Two processes' calls of any state, at any time; a copy of the file is read whole."""
    from clawlite.core.idempotency.idempotency import BEGIN, END, GONE, WAIT

    chance = random.Random(SEED)
    monkeypatch.setattr(past, "CHECKPOINT", 600)
    from_end, used = past._checkpoint, []

    def checkpoint(*asked):
        found = from_end(*asked)
        used.append(found[0])
        return found

    for _ in range(60):
        journals = [slot(past, 1), slot(past, 2)]
        for _ in range(chance.randrange(1, 80)):
            past.up += chance.choice((0, 1, 20, 200))
            kind = chance.choice((WAIT, BEGIN, END, END, GONE))
            payload = ["f", "x" * chance.randrange(90), False, 0] if kind == END else ["f"]
            it = chance.choice(journals)
            assert it.keep(kind, UUID % chance.randrange(12), payload)[0]
        path = journals[0]._path
        for it in journals:
            it.close()
        with open(path, "rb") as file:
            before = file.read()
        found = []
        for reader in (lambda *_: (0, []), checkpoint):
            with open(path, "wb") as file:
                file.write(before)
            monkeypatch.setattr(past, "_checkpoint", reader)
            it = past.Journal("once")
            found.append((sorted(it.waiting()), sorted(it.calls())))
            it.close()
        assert found[0] == found[1]
        if chance.random() < 0.3:
            os.unlink(path)
    assert any(used)


@pytest.mark.parametrize("what", [b" open [", b" 1 "])
def test_behind_a_damaged_checkpoint_or_open_record_all_is_read(past, what):
    from clawlite.core.idempotency.idempotency import BEGIN, END, WAIT

    first = past.Journal("once")
    first.keep(WAIT, UUID % 1, ["t", None, None])
    for number in range(2, 300):
        first.keep(BEGIN, UUID % number, ["f"])
        first.keep(END, UUID % number, ["f", "x" * 300, False, 300])
    first.keep(WAIT, UUID % 300, ["t", None, None])
    first.close()
    past.up += 301
    with open(first._path, "r+b") as file:
        data = file.read()
        assert what in data
        file.seek(data.index(what) if what == b" 1 " else data.rindex(what))
        file.write(b"?")
    second = past.Journal("once")
    waiting = [(UUID % number, ["t", None, None]) for number in (1, 300)]
    assert second.waiting() == (waiting[1:] if what == b" 1 " else waiting)
    assert os.path.exists(first._path + ".damaged")
    second.close()


def test_what_a_tool_returned_is_looked_at_once_for_a_checkpoint(past, monkeypatch):
    """Its text may hold what a checkpoint begins with, and the id of a call, many times."""
    from clawlite.core.idempotency.idempotency import BEGIN, END

    first = past.Journal("once")
    first.keep(BEGIN, UUID % 1, ["f"])
    text = " open [ %s " % (UUID % 1) * 1000
    first.keep(END, UUID % 2, ["f", text, False, len(text)])
    first.keep(END, UUID % 1, ["f", "x", False, 1])
    first.close()
    parse, tried = past.parse, []
    monkeypatch.setattr(past, "parse", lambda data: tried.append(len(data)) or parse(data))
    second = past.Journal("once")
    assert len(second.calls()) == 2 and second.last_record(UUID % 1) == (END, ["f", "x", False, 1])
    assert sum(size > len(text) for size in tried) == 3, "a checkpoint, all records, one"
    second.close()


def test_a_call_that_another_process_ended_long_ago_is_none_that_has_begun(past):
    from clawlite.core.idempotency.idempotency import BEGIN, END

    one, two = slot(past, 1), slot(past, 2)
    assert one.keep(BEGIN, UUID % 1, ["f"]) == (True, [])
    for number in (2, 3):
        two.keep(BEGIN, UUID % number, ["f"])
    two.keep(END, UUID % 2, ["f", "x", False, 1])
    past.up += 301
    assert one.keep(BEGIN, UUID % 4, ["f"]) == (True, [(UUID % 3, 0, len('["f"]'))])
    assert one.keep(BEGIN, UUID % 2, ["f"]) == (True, []), "it is forgotten, and may run"
    one.close()
    two.close()


def test_a_record_of_another_process_that_was_damaged_is_told_of_at_a_start(past, monkeypatch):
    """No checkpoint behind it hides it."""
    from clawlite.core.idempotency.idempotency import BEGIN, END

    monkeypatch.setattr(past, "CHECKPOINT", 600)
    one, two = slot(past, 1), slot(past, 2)
    one.keep(BEGIN, UUID % 1, ["f"])
    two.keep(BEGIN, UUID % 2, ["f"])
    with open(one._path, "r+b") as file:
        file.seek(file.read().rindex(b'["f"]'))
        file.write(b"?")
    for number in range(3, 9):
        one.keep(BEGIN, UUID % number, ["f"])
        one.keep(END, UUID % number, ["f", "x" * 300, False, 300])
    one.close()
    two.close()
    past.up += 301
    third = past.Journal("once")
    assert third.waiting() == [] and os.path.exists(one._path + ".damaged")
    third.close()


def test_arguments_of_a_waiting_call_are_measured_in_bytes(past):
    from clawlite.core.idempotency.idempotency import WAIT

    empty = len('["t",{"a":""},null]')
    for size, is_kept in ((past.MAX_ARGUMENTS, True), (past.MAX_ARGUMENTS + 1, False)):
        text = "\N{SEEDLING}" * ((size - empty) // 4) + "x" * ((size - empty) % 4)
        it = past.Journal("once")
        it.keep(WAIT, UUID % 1, ["t", {"a": text}, None])
        it.close()
        it = past.Journal("once")
        kept = {"a": text} if is_kept else None
        assert it.waiting() == [(UUID % 1, ["t", kept, None])]
        it.close()


def test_a_file_that_is_written_anew_hides_no_call_of_another_process(past, monkeypatch):
    from clawlite.core.idempotency.idempotency import BEGIN, END

    monkeypatch.setattr(past, "MAX_GROWTH", 2000)
    monkeypatch.setattr(past.Journal, "_is_running", lambda self, owner: True)
    one, two = slot(past, 1), slot(past, 2)
    one.keep(BEGIN, UUID % 1, ["f"])
    two.keep(BEGIN, UUID % 2, ["f"])
    inode = os.stat(one._path).st_ino
    assert one.keep(END, UUID % 1, ["f", "x" * 3000, False, 3000]) == (True, [])
    assert os.stat(one._path).st_ino != inode
    assert one.keep(BEGIN, UUID % 2, ["f"]) == (True, [(UUID % 2, 0, len('["f"]'))])
    one.close()
    two.close()


def test_a_record_behind_a_torn_one_is_a_line_of_its_own(past):
    from clawlite.core.idempotency.idempotency import BEGIN

    it = past.Journal("once")
    it.keep(BEGIN, UUID % 1, ["f"])
    with open(it._path, "ab") as file:
        file.write(b"0123abcd 2 18")
    it.keep(BEGIN, UUID % 2, ["f"])
    it.keep(BEGIN, UUID % 3, ["f"])
    assert it.last_record(UUID % 2) == (BEGIN, ["f"]) and it.last_record(UUID % 3) == (BEGIN, ["f"])
    it.close()


@pytest.mark.parametrize("jump", [-(10**8), -1000, 0, 1000, 10**8])
def test_in_one_boot_the_clock_may_jump(world, monkeypatch, jump):
    from clawlite.core.idempotency.idempotency import END
    from clawlite.linux.runtime import call_journal as journal

    monkeypatch.setenv("CLAWLITE_STATE", str(world.home / "state"))
    first = journal.Journal("once")
    first.keep(END, UUID % 1, ["f", "x", False, 0])
    first.close()
    real = time.time()
    monkeypatch.setattr(journal.time, "time", lambda: real + jump)
    again = journal.Journal("once")
    assert again.waiting() == [] and [about[:2] for about in again.calls()] in (
        [(UUID % 1, 0)],
        [(UUID % 1, 1)],
    )
    again.close()


@pytest.mark.parametrize("jump", [-(10**9), -1000, 200, 1000, 10**9])
def test_after_another_boot_a_clock_that_was_set_forgets_nothing(world, monkeypatch, jump):
    """Also when it was behind in the boot before: a record may be younger than it says."""
    from clawlite.core.idempotency.idempotency import END
    from clawlite.linux.runtime import call_journal as journal

    monkeypatch.setenv("CLAWLITE_STATE", str(world.home / "state"))
    up = [40]
    monkeypatch.setattr(journal, "_up_s", lambda: up[0])
    first = journal.Journal("once")
    first.keep(END, UUID % 0, ["f", "x", False, 0])
    up[0] += 301  # that one is over
    first.keep(END, UUID % 1, ["f", "x", False, 0])
    first.close()
    real, up[0] = time.time(), 40
    monkeypatch.setattr(journal.time, "time", lambda: real + jump)
    monkeypatch.setattr(journal, "_boot", lambda: '"another"')
    for age_s in (0, 200):
        again = journal.Journal("once")
        assert again.waiting() == []
        found = {key: age for key, age, _ in again.calls()}
        assert UUID % 1 in found
        if jump >= 1000:
            assert found == {UUID % 1: age_s}
        again.close()
        up[0] += 200


# -- kill -9 wherever it is


def campaign(world, seed: int, kills: int):
    """Kill an agent *kills* times at random while it works; hold what it acknowledged against
    what it says afterwards.
    """
    random_ = random.Random(seed)
    most = min(60, 6000 // kills)  # fewer in all than an agent remembers in 5 minutes
    number, known, denied, open_ = 0, {}, {}, {}
    for _ in range(kills):
        with world.serve() as agent:
            agent.initialize()
            for again in random_.sample(sorted(known), min(3, len(known))):
                assert ask(agent, "water", again, {"who": "w%d" % again}) == known[again], (
                    seed,
                    again,
                )
            for again in random_.sample(sorted(denied), min(2, len(denied))):
                assert ask(agent, "asked", again) == denied[again], (seed, again)
            for again in sorted(open_):  # it had begun, or not: never twice
                answer = ask(agent, "water", again, {"who": "w%d" % again})
                assert isinstance(answer, str) or answer["code"] == -32014, (seed, answer)
                if isinstance(answer, str):
                    known[again] = answer
            open_.clear()
            batch, asked = (
                range(number + 1, number + 1 + random_.randint(1, most)),
                number + 1000000,
            )
            number += len(batch)
            begin(agent, "asked", asked, id="asked")
            agent.line(
                json.dumps(
                    {
                        "jsonrpc": "2.0",
                        "id": "decided",
                        "method": "claw.tool.deny",
                        "params": {"request_id": UUID % asked},
                    }
                )
            )
            for each in batch:
                open_[each] = True
                begin(agent, "water", each, {"who": "w%d" % each}, each)
            select.select([], [], [], random_.random() * 0.006)
            kill(agent)
            agent.wait()
            answers = (
                {
                    answer["id"]: answer
                    for answer in map(json.loads, agent.unread.splitlines(True))
                    if "id" in answer
                }
                if agent.unread.endswith("\n") or not agent.unread
                else _whole(agent.unread)
            )
            for id, answer in answers.items():
                if isinstance(id, int):
                    known[id] = said(answer)
                    del open_[id]
            if "decided" in answers and answers["decided"]["result"] == ACK:
                denied[asked] = said(answers["asked"]) if "asked" in answers else None
        # acknowledged, but the call's own answer did not leave
        if denied and denied.get(asked, 0) is None:
            with world.serve() as agent:
                agent.initialize()
                denied[asked] = ask(agent, "asked", asked)
                assert denied[asked]["code"] == -32013
    ran = world.ran()
    assert len(ran) == len(set(ran)), (
        seed,
        sorted(name for name in ran if ran.count(name) > 1)[:5],
    )
    assert set(ran) >= {"w%d" % id for id in known} and "asked" not in ran
    return number, len(known), len(denied)


def _whole(text: str) -> dict:
    return {
        answer["id"]: answer for answer in map(json.loads, text.split("\n")[:-1]) if "id" in answer
    }


def test_kill_9_at_random(world):
    calls, known, denied = campaign(world, SEED, 15)
    print("seed %d: %d calls, %d answers held, %d denials held" % (SEED, calls, known, denied))
    assert calls > 75 and known > 10


def test_a_thousand_approvals_wait_in_2_kib_each(world):
    def rss(agent):
        with open("/proc/%d/status" % agent.process.pid) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))

    with world.serve() as agent:
        agent.initialize()
        for number in range(20):
            begin(agent, "asked", number)
        # what reading and refusing as many lines takes is no part of it
        agent.send(
            "".join(
                json.dumps(tool_call("asked", {"no": []}, number)) + "\n"
                for number in range(100, 1100)
            )
        )
        assert all("error" in agent.message() for _ in range(1000)) and agent.is_serving()
        before = rss(agent)
        agent.send(
            "".join(
                json.dumps(tool_call("asked", {}, number)) + "\n" for number in range(100, 1100)
            )
        )
        assert agent.is_serving()
        each = (rss(agent) - before) * 1024 / 1000
        print("an approval that waits: %d bytes" % each)
        assert each <= 2048
