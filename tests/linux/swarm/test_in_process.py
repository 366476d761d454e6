"""The agents of a swarm in one process: ``backend: in-process``."""

import json
import os
import queue
import select
import signal
import socket
import threading

import pytest
from agents import Agent, eventually, linux
from swarm_team import SWARM, UUID, delegate, project, start, swarm
from swarm_world import wall_ms

from clawlite.core.image.image import SWARM as SWARM_SECTION
from clawlite.linux.files.files import open_image, swarm_folder
from clawlite.linux.swarm.shared_memory import SharedMemory
from clawlite.linux.swarm_commands.in_process_socket import MOST_ASKED, CommandSocket
from clawlite.protocols.swarm.swarm import DEAD, Swarm, Task

INSIDE = {"coordination": dict(SWARM["coordination"], backend="in-process")}
ROLES = [
    {"identity_ref": "lead", "role": "leader"},
    {"identity_ref": "ada", "role": "worker"},
    {"identity_ref": "bob", "role": "worker", "count": 2},
]
PARTS = ("ada", "bob", "bob")


def team(tmp_path, names=("lead", "hand"), **changes) -> list:
    return [project(tmp_path, name, **INSIDE, **changes) for name in names]


def logged(tmp_path, name: str) -> list:
    log = tmp_path / "state" / name / "log.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()]


def test_a_task_is_done_by_another_agent_of_the_process(tmp_path):
    team(tmp_path)
    words = ("run", "look at 7", tmp_path / "lead", "--json")
    code, said, _ = swarm(tmp_path, *words)
    report = json.loads(said)
    assert code == 0 and (report["by"], report["result"]) == ("hand", {"text": "Bed 7 is dry."})
    assert not os.path.exists(tmp_path / "state/swarms"), "nothing of the swarm is on disk"
    calls = [one for one in logged(tmp_path, "hand") if one["event"] == "tool.call"]
    assert [(one["tool"], one["caller"]) for one in calls] == [("look", "team/operator")]
    assert not [one for one in logged(tmp_path, "lead") if one["event"] == "tool.call"]


def test_each_agent_keeps_its_own_autonomy(tmp_path):
    project(tmp_path, "lead", **INSIDE)
    project(tmp_path, "hand", autonomy="observer", **INSIDE)
    code, said, _ = swarm(tmp_path, "run", "water 7", tmp_path / "lead", "--json")
    assert code == 1 and json.loads(said)["status"] == "partial"


@pytest.mark.parametrize("strategy", ["merge", "majority-vote"])
def test_a_task_is_divided_among_agents_of_one_process(tmp_path, strategy):
    """Also among as many tasks at once as an agent has processes elsewhere."""
    inside = {"coordination": dict(INSIDE["coordination"], message_passing="event-bus")}
    for name in ("lead", "ada", "bob"):
        project(tmp_path, name, agents=ROLES, aggregation={"strategy": strategy}, **inside)
    code, said, errors = swarm(tmp_path, "run", "look at 7", tmp_path / "ada", "--json")
    report = json.loads(said)
    assert (code, report["by"]) == (0, "lead"), errors
    result = report["result"]
    if strategy == "merge":
        assert result["text"] == "".join("%s: Bed 7 is dry.\n" % one for one in PARTS).strip()
    else:
        assert (result["text"], result["votes"], result["of"]) == ("Bed 7 is dry.", 3, 3)


def test_up_has_all_agents_in_one_process_that_is_started_again(tmp_path):
    team(tmp_path)
    with Agent(linux("swarm", "up", "lead", "hand"), tmp_path) as up:
        up.expect("[lead] lead is ready")
        up.expect("[hand] hand is ready")
        [pid] = _children(up.process.pid)
        os.kill(pid, signal.SIGKILL)
        up.expect("ended with -9; it starts again in 1 s")
        up.expect("[hand] hand is ready")
        [pid] = _children(up.process.pid)
        up.signal(signal.SIGINT)
        assert up.wait() == 0
        eventually(lambda: not os.path.exists("/proc/%d" % pid))


def _children(pid: int) -> list:
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


def test_ctrl_c_ends_a_task_and_the_agents(tmp_path):
    (tmp_path / "bed").mkdir()
    team(tmp_path)
    with Agent(linux("swarm", "run", "look at bed", "lead"), tmp_path) as command:
        eventually(lambda: os.listdir(tmp_path / "bed"))
        command.signal(signal.SIGINT)
        assert command.wait() == 130
        assert "the task ended with its agents" in command.errors()


def test_an_agent_that_is_missing_is_named(tmp_path):
    team(tmp_path, ("lead",))
    for words in (("up", "lead"), ("run", "look at 7", "lead")):
        code, _, errors = swarm(tmp_path, *words)
        assert code == 1 and "the swarm team is one process (backend in-process), and" in errors
        assert "hand is not here" in errors and "Traceback" not in errors


def test_an_agent_that_runs_alone_divides_nothing(tmp_path):
    aggregation = {"strategy": "majority-vote"}
    image, _ = team(tmp_path, aggregation=aggregation)
    with start(tmp_path, image) as alone:
        error = delegate(alone, "look at 7")["error"]
    assert "this process runs alone (backend in-process)" in error["message"]


# -- commands of a person


def test_a_person_sees_what_a_swarm_in_one_process_does(tmp_path):
    team(tmp_path)
    with Agent(linux("swarm", "up", "lead", "hand"), tmp_path) as up:
        up.expect("[hand] hand is ready")
        found = json.loads(swarm(tmp_path, "status", "lead", "--json")[1])
        assert {one["identity"]: one["status"] for one in found["members"]} == {
            "lead": "ready",
            "hand": "ready",
        }
        assert found["stopped"] is None and found["tasks"] == []
        code, _, errors = swarm(tmp_path, "trace", "00", "lead")
        assert code == 1 and "0 tasks have an id that begins with 00" in errors
        assert swarm(tmp_path, "dead", "lead")[:2] == (0, "")
        up.signal(signal.SIGINT)
        assert up.wait() == 0
    assert "does not run" in swarm(tmp_path, "status", "lead")[2]


def test_a_stop_holds_in_one_process_and_in_the_next_one(tmp_path):
    team(tmp_path)
    with Agent(linux("swarm", "up", "lead", "hand"), tmp_path) as up:
        up.expect("[hand] hand is ready")
        code, said, _ = swarm(tmp_path, "stop", "hand")
        assert code == 0 and "2 of 2 processes of its agents are running and know it now" in said
        assert "stopped by a person at" in swarm(tmp_path, "status", "hand")[1]
        eventually(lambda: [one for one in logged(tmp_path, "hand") if "stopped" in one["event"]])
        [pid] = _children(up.process.pid)
        os.kill(pid, signal.SIGKILL)
        up.expect("it starts again in 1 s")
        up.expect("[hand] hand is ready")
        assert "stopped by a person at" in swarm(tmp_path, "status", "hand")[1]
    code, said, _ = swarm(tmp_path, "run", "water 7", "lead", "--json")
    assert json.loads(said)["status"] == "partial", "the process of one task heeds it, too"
    code, said, _ = swarm(tmp_path, "resume", "lead")
    assert code == 0 and "is resumed" in said
    report = json.loads(swarm(tmp_path, "run", "water 7", "lead", "--json")[1])
    assert report["result"] == {"text": "Watered 7"}


def test_an_agent_alone_heeds_the_stop_of_its_swarm(tmp_path):
    image = project(tmp_path, "hand", **INSIDE)
    assert swarm(tmp_path, "stop", image)[0] == 0
    with start(tmp_path, image) as alone:
        delegate(alone, "water 7")
        calls = eventually(
            lambda: [one for one in logged(tmp_path, "hand") if one["event"] == "tool.call"]
        )
        assert calls[0]["status"] != "ok"


def test_a_second_process_of_the_swarm_is_refused(tmp_path):
    team(tmp_path)
    with Agent(linux("swarm", "together", "lead", "hand"), tmp_path) as one:
        one.expect("[hand] hand is ready")
        code, _, errors = swarm(tmp_path, "together", "lead", "hand")
        assert code == 1 and "the swarm team runs already, in another process" in errors
        one.signal(signal.SIGTERM)
        one.wait()
    assert not os.path.exists(tmp_path / "state/swarms/team/socket")


def test_who_asks_the_process_anything_else_gets_an_error(tmp_path, monkeypatch):
    team(tmp_path)
    with Agent(linux("swarm", "together", "lead", "hand"), tmp_path) as one:
        one.expect("[hand] hand is ready")
        monkeypatch.chdir(tmp_path / "state/swarms/team")
        for asked, why in ((b'["leave"]', "expected"), (b"x", "JSON"), (b'["state"]', "values")):
            with socket.socket(socket.AF_UNIX) as line:
                line.connect("socket")
                line.sendall(asked + b"\n")
                assert why in json.loads(line.makefile().readline())["error"]
        with socket.socket(socket.AF_UNIX) as line:
            line.connect("socket")
            line.sendall(b" " * (MOST_ASKED + 1))
            try:
                assert line.recv(1) == b""
            except ConnectionResetError:
                pass
        assert swarm(tmp_path, "status", "lead")[0] == 0
        one.signal(signal.SIGTERM)
        one.wait()


@pytest.fixture
def inside(tmp_path, monkeypatch):
    """A swarm in one process, whose door a thread serves: (image of an agent, what calls its bus in
    that thread).
    """
    image = project(tmp_path, "hand", **INSIDE)
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    wake, asked, answers = os.pipe(), queue.Queue(), queue.Queue()

    def serve():
        bus = SharedMemory(wall_ms, os.urandom, swarm_folder("team")).end()
        door = CommandSocket(Swarm(open_image(image).section(SWARM_SECTION)), bus)
        answers.put(True)
        while True:
            poll = select.poll()
            poll.register(wake[0], select.POLLIN)
            door.watch(poll)
            ready = [fd for fd, _ in poll.poll()]
            if wake[0] in ready:
                os.read(wake[0], 1)
                name, values = asked.get()
                if not name:
                    break
                answers.put(getattr(bus, name)(*values))
            door.serve(ready)
        door.close()

    def call(name: str, *values):
        asked.put((name, values))
        os.write(wake[1], b"x")
        return answers.get() if name else None

    thread = threading.Thread(target=serve)
    thread.start()
    assert answers.get()
    yield image, call
    call("")
    thread.join()
    for fd in wake:
        os.close(fd)


def test_a_person_traces_a_task_in_one_process_and_decides_what_was_given_up(tmp_path, inside):
    image, call = inside
    for number in (1, 2):
        call("put", Task(UUID % number, "look at 7", None, "lead", "hand"))
        eventually(
            lambda number=number: call("expire", 1, True) or call("state", UUID % number) == DEAD
        )
    code, said, errors = swarm(tmp_path, "trace", UUID % 1, image)
    assert code == 0 and said.startswith(UUID % 1 + "  dead\n"), (said, errors)
    assert "delegated    lead" in said and "nobody took it within 1 ms" in said
    assert swarm(tmp_path, "dead", image)[1].count(" dead ") == 2
    told = "Task %s begins again.\n" % (UUID % 1)
    assert swarm(tmp_path, "dead", "retry", UUID % 1, image) == (0, told, "")
    assert call("state", UUID % 1) == "waiting"
    told = "Task %s is dropped.\n" % (UUID % 2)
    assert swarm(tmp_path, "dead", "drop", UUID % 2, image) == (0, told, "")
    assert call("state", UUID % 2) == "failed"
    code, _, errors = swarm(tmp_path, "dead", "retry", UUID % 2, image)
    assert code == 1 and "is failed: it was not given up" in errors
    assert json.loads(swarm(tmp_path, "trace", UUID % 2, image, "--json")[1])["state"] == "failed"
