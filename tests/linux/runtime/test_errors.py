"""CKP 0.2.0, section 8, ERROR: what fails on Linux, how it is told, and the ways out, with real
processes and real faults.
"""

import json
import resource

import pytest
from agents import BENCH, INITIALIZE, UUID, Agent, clawlite, eventually, linux, tool_call

from clawlite.host.builder.build import build_beside

REQUEST, INTERNAL = -32600, -32603
NO_SENSOR = """
if not os.path.exists(os.getenv("MARKS") + "/sensor"):
    raise OSError("no sensor on the bus")
"""
SABOTAGE = '''

def sabotage() -> str:
    """Break the session of the agent that runs this, once."""
    from clawlite.core.protocol.session import Session
    deadline = Session.deadline

    def broken(self):
        Session.deadline = deadline
        raise ValueError("nobody expected this")
    Session.deadline = broken
    return "done"
'''
AUDIT = BENCH["claw.yaml"].replace(
    '{ id: "all", action: "allow", scope: "all" }',
    '{ id: "all", action: "audit-only", scope: "all" }',
)


@pytest.fixture
def serving(tmp_path, marks):
    """Return a function that builds the bench agent with other files, and serves it."""

    def start(more: dict, **popen):
        project = tmp_path / "project"
        if not project.exists():
            project.mkdir()
            for name, text in dict(BENCH, **more).items():
                (project / name).write_text(text)
            build_beside(str(project))
        return Agent(
            linux("serve", project / "claw.cbor", "--stdio"),
            tmp_path / "home",
            env={"MARKS": marks},
            **popen,
        )

    return start


def events(tmp_path, kind=None) -> list:
    path = tmp_path / "home/state/bench/log.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [event for event in found if kind is None or event["event"] == kind]


def transitions(tmp_path) -> list:
    return [event["to"] for event in events(tmp_path, "lifecycle.transition")]


def state(agent) -> str:
    return agent.call("claw.status")["result"]["state"]


def test_8_a_tools_py_that_fails_is_an_error_and_is_tried_again(serving, marks, tmp_path):
    with serving({"tools.py": BENCH["tools.py"] + NO_SENSOR}) as agent:
        error = agent.call("claw.initialize", INITIALIZE)["error"]
        assert (
            error["code"] == REQUEST
            and "the agent is ERROR" in error["message"]
            and "OSError: no sensor on the bus" in error["message"]
        )
        assert (
            error["data"]["state"] == "ERROR"
            and error["data"]["hint"]
            and 0 <= error["data"]["attempt_in_ms"] <= 1000
        )
        assert agent.call("claw.status")["result"] == {"state": "ERROR", "uptime_ms": 0}
        agent.line(json.dumps(tool_call("quick")))
        assert agent.message()["error"]["code"] == REQUEST
        (marks / "sensor").touch()
        eventually(lambda: state(agent) == "READY")
        agent.initialize()
        agent.line(json.dumps(tool_call("quick")))
        assert agent.message()["result"]["content"][0]["text"] == "quick ran"
        agent.end()
        assert agent.wait() == 0
        assert (
            agent.errors().count("clawlite: ERROR: ") == 1
            and "trying again in 1 s" in agent.errors()
        )
    assert transitions(tmp_path)[:4] == ["STARTING", "ERROR", "STARTING", "READY"]
    failed = events(tmp_path, "lifecycle.transition")[1]
    assert "no sensor" in failed["details"]["error"] and failed["details"]["failures"] == 1


def test_8_the_end_of_input_in_an_error_ends_it_with_1(serving):
    with serving({"tools.py": BENCH["tools.py"] + NO_SENSOR}) as agent:
        agent.call("claw.initialize", INITIALIZE)
        agent.end()
        assert agent.wait() == 1


def test_8_a_person_is_told_of_a_start_that_fails_at_once(tmp_path, marks):
    for name, text in dict(BENCH, **{"tools.py": BENCH["tools.py"] + NO_SENSOR}).items():
        (tmp_path / name).write_text(text)
    for words in (("run",), ("ask", "hello")):
        done = clawlite(*words, cwd=tmp_path, MARKS=marks)
        assert (
            done.returncode == 2
            and len(done.stderr.splitlines()) == 1
            and "no sensor on the bus" in done.stderr
        )


def test_8_what_nobody_expected_switches_all_off_and_is_got_over(serving, marks, tmp_path):
    with serving({"tools.py": BENCH["tools.py"] + SABOTAGE}) as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("pump", {"ms": 60000}, 5)))
        eventually((marks / "pump-on").exists)
        agent.line(json.dumps(tool_call("sabotage", number=6)))
        answers = {answer["id"]: answer for answer in (agent.message(), agent.message())}
        assert answers[6]["result"]["content"][0]["text"] == "done"
        assert (
            answers[5]["error"]["code"] == INTERNAL
            and "nobody expected this" in answers[5]["error"]["message"]
        )
        assert (marks / "pump-off").exists()
        assert state(agent) == "ERROR"
        agent.line(json.dumps(tool_call("quick", number=7)))
        refused = agent.message()["error"]
        assert (
            refused["code"] == REQUEST
            and "ValueError: nobody expected this" in refused["message"]
            and refused["data"]["hint"]
        )
        eventually(lambda: state(agent) == "READY")
        agent.line(json.dumps(tool_call("quick", number=8)))
        assert agent.message()["result"]["isError"] is False
        agent.end()
        assert agent.wait() == 0 and "Traceback" not in agent.errors()
    assert transitions(tmp_path)[:5] == ["STARTING", "READY", "ERROR", "STARTING", "READY"]
    assert "nobody expected this" in events(tmp_path, "agent.error")[0]["traceback"]


def test_8_an_operator_may_stop_an_agent_in_error(serving, marks):
    with serving({"tools.py": BENCH["tools.py"] + SABOTAGE}) as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("sabotage", number=6)))
        agent.message()
        eventually(lambda: state(agent) == "ERROR")
        assert agent.call("claw.shutdown")["result"] == {"drained": True}
        assert state(agent) == "STOPPED"
        agent.initialize()
        assert agent.is_serving()


def test_8_a_log_that_a_policy_demands_and_a_disk_that_is_full(serving, tmp_path):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))

    with serving({"claw.yaml": AUDIT}, preexec_fn=limited) as agent:
        agent.initialize()
        number = 0
        while state(agent) == "READY":
            number += 1
            assert number < 40
            agent.line(json.dumps(tool_call("quick", number=number)))
            agent.message()
        agent.line(json.dumps(tool_call("quick", number=100)))
        refused = agent.message()["error"]
        assert (
            refused["code"] == REQUEST
            and "audit-only" in refused["message"]
            and "make room" in refused["data"]["hint"]
        )
        resource.prlimit(
            agent.process.pid,
            resource.RLIMIT_FSIZE,
            (resource.RLIM_INFINITY, resource.RLIM_INFINITY),
        )
        eventually(lambda: state(agent) == "READY")
        agent.line(json.dumps(tool_call("quick", number=101)))
        assert agent.message()["result"]["isError"] is False
        agent.end()
        assert agent.wait() == 0
    assert len(events(tmp_path, "tool.call")) == number + 1  # none is lost, none is cut
    assert transitions(tmp_path)[:5] == ["STARTING", "READY", "ERROR", "STARTING", "READY"]


def test_8_a_state_folder_that_cannot_be_written(serving, tmp_path):
    (tmp_path / "home/state").mkdir(parents=True)
    (tmp_path / "home/state/bench").write_text("a file stands where the folder belongs")
    with serving({"claw.yaml": AUDIT}) as agent:
        assert "the log " in agent.call("claw.initialize", INITIALIZE)["error"]["message"]
        assert state(agent) == "ERROR"
        (tmp_path / "home/state/bench").unlink()
        eventually(lambda: state(agent) == "READY")
        agent.initialize()
        agent.end()
        assert agent.wait() == 0
    assert transitions(tmp_path)[:4] == ["STARTING", "ERROR", "STARTING", "READY"]


def test_a_log_that_nobody_demands_is_no_error(serving, tmp_path):
    (tmp_path / "home/state").mkdir(parents=True)
    (tmp_path / "home/state/bench").write_text("a file stands where the folder belongs")
    with serving({}) as agent:
        agent.initialize()
        assert agent.is_serving()
        (tmp_path / "home/state/bench").unlink()
        agent.line(json.dumps(tool_call("quick", number=1)))
        assert agent.message()["result"]["isError"] is False
        agent.end()
        assert agent.wait() == 0 and len(agent.errors().splitlines()) == 1
    # it waited for the folder
    assert len(events(tmp_path, "tool.call")) == 1 and transitions(tmp_path)[:2] == [
        "STARTING",
        "READY",
    ]


def test_a_path_with_a_nul_is_no_error_of_the_agent(serving, marks):
    policy = (
        '- { id: "inside", action: "allow", scope: "tool", match: { name: "note" }, conditions: { '
        'path_within: "/workspace" } }\n'
        '          - { id: "all"'
    )
    tool = (
        '\n\ndef note(path: str) -> str:\n    """Write a note."""\n    return open(path).read()\n'
    )
    with serving(
        {
            "claw.yaml": BENCH["claw.yaml"].replace('- { id: "all"', policy),
            "tools.py": BENCH["tools.py"] + tool,
        }
    ) as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("note", {"path": "/workspace/a\0b"})))
        assert agent.message()["id"] == 1
        assert agent.is_serving()


@pytest.mark.soak
def test_8_what_is_unrecoverable_stops_with_1(serving, tmp_path):
    """1 + 2 + 4 + 8 s; tests/core/test_lifecycle.py has the same on a clock of its own."""
    with serving({"tools.py": BENCH["tools.py"] + NO_SENSOR}) as agent:
        agent.call("claw.initialize", INITIALIZE)
        assert agent.wait(120) == 1
        assert (
            "stopped: too many failures" in agent.errors()
            and "no sensor on the bus" in agent.errors()
        )
    assert transitions(tmp_path) == ["STARTING", "ERROR"] * 5 + ["STOPPING", "STOPPED"]


def test_9_3_1_a_call_under_way_is_answered_once(serving, marks):
    """Whatever ends it, here a shutdown in the middle of its recovery."""
    with serving({"tools.py": BENCH["tools.py"] + SABOTAGE}) as agent:
        agent.initialize()
        agent.line(json.dumps(tool_call("careful", number=5)))
        agent.line(json.dumps(tool_call("sabotage", number=6)))
        agent.call("claw.shutdown", id=7)
        assert agent.call("claw.tool.approve", {"request_id": UUID % 5}, id=8)["id"] in (5, 6, 7, 8)
        agent.end()
        agent.wait()
        ids = [json.loads(line)["id"] for line in agent.text().splitlines()]
        assert sorted(map(str, ids)) == ["1", "5", "6", "7", "8"]


def test_a_failing_disk_is_not_told_to_make_room():
    import errno

    from clawlite.linux.files.files import mend

    said = {
        code: mend(OSError(code, ""))
        for code in (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EMFILE)
    }
    assert "room" not in said[errno.EIO] and "disk" in said[errno.EIO]
    assert (
        said[errno.ENOSPC] == "make room for it"
        and said[errno.EROFS] == "make its folder writable"
        and "ulimit" in said[errno.EMFILE]
    )


def test_a_memory_on_a_failing_disk_is_not_told_to_make_room():
    """SQLite names the operation that failed; a write that failed may also be a limit of bytes,
    which it does not tell apart.
    """
    import errno
    import sqlite3

    from clawlite.linux.memory.database import failure

    for name, is_room in (
        ("SQLITE_IOERR_READ", False),
        ("SQLITE_IOERR_FSYNC", False),
        ("SQLITE_IOERR_WRITE", True),
        ("SQLITE_FULL", True),
    ):
        error = sqlite3.OperationalError("x")
        error.sqlite_errorname = name
        hint = failure(error, "p").hint
        assert ("make room" in hint) == is_room and ("look at the disk" in hint) == (
            "IOERR" in name
        ), (name, hint)
    assert "look at the disk" in failure(OSError(errno.EIO, "Input/output error"), "p").hint
