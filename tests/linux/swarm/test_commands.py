"""``clawlite swarm``: its verbs over agents that really run."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from agents import Agent, eventually, linux
from swarm_team import MEMBERS, SWARM, UUID, delegate, ended, look_on, project, start, swarm

from clawlite.core.base.errors import ClawError
from clawlite.host.builder.build import build_beside
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm_commands import commands
from clawlite.protocols.swarm.swarm import Task


@pytest.fixture
def images(tmp_path):
    return project(tmp_path, "lead"), project(tmp_path, "hand")


def listed(tmp_path) -> dict:
    return json.loads(swarm(tmp_path, "status", tmp_path / "lead", "--json")[1])


def test_the_folder_where_swarm_up_works_stands_for_the_swarm(tmp_path, images):
    """Each verb takes the folder of the agents' folders, which is the current one by default."""
    (tmp_path / "notes").mkdir()  # no agent
    with start(tmp_path, images[1]):
        code, said, errors = swarm(tmp_path, "run", "look at 7")
        assert (code, said, errors) == (0, "Bed 7 is dry.\n", "")
        rows = json.loads(swarm(tmp_path, "status", "--json")[1])
        assert rows == listed(tmp_path) and len(rows["tasks"]) == 1
        task = rows["tasks"][0]["task_id"]
        assert swarm(tmp_path, "trace", task[:8])[1].startswith(task + "  completed\n")
        assert swarm(tmp_path, "trace", task[:8], tmp_path)[1].startswith(task)
        assert swarm(tmp_path, "stop")[0] == 0 and listed(tmp_path)["stopped"]
        assert swarm(tmp_path, "resume")[0] == 0 and not listed(tmp_path)["stopped"]
    assert swarm(tmp_path, "dead")[::2] == (0, "No task was given up.\n")
    assert swarm(tmp_path, "dead", "drop", "ffff")[0] == 1


def test_agents_of_two_swarms_in_one_folder_are_told_apart(tmp_path, images):
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "hand", other)
    text = (other / "claw.yaml").read_text().replace("name: team", "name: bees")
    (other / "claw.yaml").write_text(text)
    assert build_beside(str(other))
    code, said, errors = swarm(tmp_path, "status")
    assert (code, said) == (1, "")
    assert errors.startswith("clawlite: .: the agents in this folder are in more than one swarm - ")
    assert "other (swarm bees)" in errors
    assert swarm(tmp_path, "status", "other")[0] == 0


def test_an_image_that_is_damaged_keeps_no_other_agent_of_the_folder_out(tmp_path, images):
    Path(images[1]).write_bytes(b"x")
    assert swarm(tmp_path, "status")[0] == 0
    Path(images[0]).write_bytes(b"x")
    code, said, errors = swarm(tmp_path, "status")
    assert (code, said) == (1, "") and "claw.cbor" in errors


def test_a_person_gives_a_task_and_gets_its_report(tmp_path, images):
    with start(tmp_path, images[1]):
        code, said, errors = swarm(tmp_path, "run", "look at 7", images[0])
        assert (code, said, errors) == (0, "Bed 7 is dry.\n", "")
        words = ("run", "look at 8", images[0], "--to", "hand", "--input", '{"a": 1}', "--json")
        report = json.loads(swarm(tmp_path, *words)[1])
        assert (report["status"], report["by"]) == ("completed", "hand")
        code, said, _ = swarm(tmp_path, "trace", report["task_id"][:8], images[0])
        assert code == 0 and said.startswith(report["task_id"] + "  completed\n")
        for word in ("delegated    operator", "taken        hand", "completed    hand"):
            assert word in said
        found = json.loads(swarm(tmp_path, "trace", report["task_id"], images[0], "--json")[1])
        assert [event["what"] for event in found["events"]] == ["delegated", "taken", "completed"]


def test_the_words_of_a_task_forge_no_row(tmp_path, images):
    words = "look\n%s  2026-01-01T00:00:00Z  completed forged\x1b[2J\u202e\r" % (UUID % 9)[:8]
    bus = Bus(str(tmp_path / "state/swarms/team"), lambda: 0, os.urandom)
    bus.put(Task(UUID % 1, words, None, "lead\nb", ""))
    bus.leave()
    code, said, _ = swarm(tmp_path, "status", images[0])
    assert code == 0 and said.count("\n") == len(MEMBERS) + 2, said
    assert "look\\n" in said and not set("\x1b\u202e\r") & set(said)
    for verb in ("status", "trace"):
        words = [verb, UUID % 1] if verb == "trace" else [verb]
        code, said, _ = swarm(tmp_path, *words, images[0], "--json")
        assert code == 0 and json.loads(said) and not set("\x1b\u202e\r") & set(said)
    code, said, _ = swarm(tmp_path, "trace", UUID % 1, images[0])
    assert code == 0 and len(said.splitlines()) == 2, said


def test_a_task_waits_until_somebody_is_there(tmp_path, images):
    with Agent(linux("swarm", "run", "look at 2", images[0]), tmp_path) as command:
        eventually(lambda: "no agent that could do it is running yet" in command.errors())
        assert listed(tmp_path)["tasks"][0]["state"] == "waiting"
        with start(tmp_path, images[1]):
            assert command.wait() == 0 and command.text() == "Bed 2 is dry.\n"


def test_more_processes_of_one_identity_than_are_declared_are_told(tmp_path, images):
    """Two agents that have one name, or one agent that was started twice."""
    with start(tmp_path, images[0]):
        assert "declares count" not in swarm(tmp_path, "status", images[0])[1]
        with start(tmp_path, images[0]):
            said = swarm(tmp_path, "status", images[0])[1]
            assert "2 of 1\n2 processes are there as lead, and its swarm declares count 1: " in said
            assert "rename one of two agents" in said


def test_a_swarm_whose_leader_is_missing_says_so_and_gives_the_task_up_in_time(tmp_path):
    """A task that is to be divided waits for who divides it; workers go on with their own."""
    aggregation = {"strategy": "merge", "timeout_ms": 2000}
    bus = dict(SWARM["coordination"], message_passing="event-bus")
    more = {"aggregation": aggregation, "coordination": bus}
    image = project(tmp_path, "hand", **more)
    with start(tmp_path, image) as hand:
        code, said, errors = swarm(tmp_path, "run", "look at 7", image)
        assert code == 1 and said == "nobody took it within 2000 ms\n", (said, errors)
        assert "no agent that could do it is running yet" in errors
        members = json.loads(swarm(tmp_path, "status", image, "--json")[1])["members"]
        found = {one["identity"]: (one["status"], one["processes"]) for one in members}
        assert found == {"lead": ("unavailable", 0), "hand": ("ready", 1)}
        assert "result" in delegate(hand, "look at 8", 8)
        assert ended(look_on(tmp_path), 8)[0] == "completed"


def test_ctrl_c_leaves_the_task_to_the_swarm(tmp_path, images):
    with Agent(linux("swarm", "run", "look at 2", images[0]), tmp_path) as command:
        eventually(lambda: listed(tmp_path)["tasks"])
        command.signal(signal.SIGINT)
        assert command.wait() == 130 and "it goes on" in command.errors()
    assert listed(tmp_path)["tasks"][0]["state"] == "waiting"


def test_a_task_that_failed_is_exit_code_1(tmp_path):
    (tmp_path / "bed").mkdir()
    aggregation = {"strategy": "leader-decides", "timeout_ms": 300}
    image = project(tmp_path, "lead", aggregation=aggregation)
    code, said, errors = swarm(tmp_path, "run", "look at 1", image)
    assert code == 1 and said == "nobody took it within 300 ms\n"
    assert "the task was not completed: dead" in errors


def test_what_was_given_up_waits_for_a_person(tmp_path, images):
    (tmp_path / "bed").mkdir()
    with start(tmp_path, images[0]) as lead:
        for number in (1, 2):
            with start(tmp_path, images[1]) as hand:
                delegate(lead, "water bed", number)
                eventually(lambda: os.listdir(tmp_path / "bed"))
                os.killpg(hand.process.pid, signal.SIGKILL)
                assert ended(look_on(tmp_path), number)[0] == "dead"
            for name in os.listdir(tmp_path / "bed"):
                os.unlink(tmp_path / "bed" / name)
        code, said, _ = swarm(tmp_path, "dead", images[0])
        assert code == 0 and said.count(" dead ") == 2
        code, said, _ = swarm(tmp_path, "dead", images[0], "--json")
        assert [row["task_id"] for row in json.loads(said)] == [UUID % 2, UUID % 1]
        told = '{"task_id":"%s","state":"failed"}\n' % (UUID % 2)
        assert swarm(tmp_path, "dead", "drop", UUID % 2, images[0], "--json") == (0, told, "")
        assert look_on(tmp_path).state(UUID % 2) == "failed"
        code, _, errors = swarm(tmp_path, "dead", "retry", UUID % 2, images[0])
        assert code == 1 and "is failed: it was not given up" in errors
        (tmp_path / "bed/go").touch()
        told = "Task %s begins again.\n" % (UUID % 1)
        assert swarm(tmp_path, "dead", "retry", UUID % 1, images[0]) == (0, told, "")
        with start(tmp_path, images[1]):
            eventually(lambda: look_on(tmp_path).state(UUID % 1) == "completed")


def test_a_report_that_comes_while_a_person_decides_is_told(tmp_path, images, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    bus, state, seen = look_on(tmp_path), Bus.state, []
    bus.put(Task(UUID % 1, "look at 1", None, "lead", ""))
    bus.report(UUID % 1, "completed", {}, None, 1, "hand")
    bus.leave()

    def looked(bus, task_id: str):
        seen.append(task_id)
        return "dead" if len(seen) == 1 else state(bus, task_id)

    monkeypatch.setattr(Bus, "state", looked)
    with pytest.raises(ClawError, match="is completed: it was not given up"):
        commands.retry(UUID % 1, str(images[0]), False)
    assert len(seen) == 2


def test_up_starts_all_again_when_they_end_and_one_ctrl_c_ends_them(tmp_path, images):
    def processes():
        return {one["identity"]: one["processes"] for one in listed(tmp_path)["members"]}

    with Agent(linux("swarm", "up", "lead", "hand"), tmp_path) as command:
        eventually(lambda: processes() == {"lead": 1, "hand": 2})
        command.expect("[hand 1] ")
        pids = _children(command.process.pid)
        assert len(pids) == 3
        os.kill(pids[-1], signal.SIGKILL)
        command.expect("ended with -9; it starts again in 1 s")
        eventually(lambda: len(_children(command.process.pid)) == 3)
        eventually(lambda: processes() == {"lead": 1, "hand": 2})
        assert swarm(tmp_path, "run", "look at 3", "lead")[1] == "Bed 3 is dry.\n"
        command.signal(signal.SIGINT)
        assert command.wait() == 0
    assert processes() == {"lead": 0, "hand": 0}


def test_a_second_up_on_a_folder_says_that_its_processes_run_already(tmp_path, images):
    with Agent(linux("swarm", "up", "lead", "hand"), tmp_path) as command:
        command.expect(" is ready")
        code, said, errors = swarm(tmp_path, "up", "hand")
        assert (code, said) == (1, "") and "hand: its processes run already, by another " in errors
        assert "end that one with Ctrl-C, or look at them: clawlite swarm status hand" in errors
        command.signal(signal.SIGKILL)
        command.wait()
    with Agent(linux("swarm", "up", "hand"), tmp_path) as command:
        command.expect(" is ready")


def test_up_leaves_out_what_is_behind_a_gateway(tmp_path, images):
    members = [*MEMBERS, {"identity_ref": "far", "role": "worker"}]
    project(tmp_path, "far", toml="[gateway]\n", agents=members)
    with Agent(linux("swarm", "up", "far", "hand"), tmp_path) as command:
        command.expect("far: a board behind a gateway, which speaks for it: clawlite gateway")
        command.expect("[hand")
        assert len(_children(command.process.pid)) == 2


def test_agents_end_when_up_is_killed(tmp_path, images):
    def processes():
        return [one["processes"] for one in listed(tmp_path)["members"]]

    with Agent(linux("swarm", "up", "lead", "hand"), tmp_path) as command:
        eventually(lambda: sorted(processes()) == [1, 2])
        command.signal(signal.SIGKILL)
        command.wait()
        eventually(lambda: processes() == [0, 0])


def _children(pid: int) -> list:
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(word) for word in file.read().split()]


@pytest.mark.parametrize(
    "words, code, said",
    [
        ([], 2, "usage: clawlite swarm COMMAND"),
        (
            ["dance"],
            2,
            'there is no command "swarm dance" - commands: up, run, status, trace, dead, stop,',
        ),
        (["run"], 2, "clawlite swarm run: expected TASK - usage: clawlite swarm run TASK"),
        (["run", "x", "lead", "--to", "lead"], 1, "--to lead: no member does tasks under that"),
        (["run", "x", "lead", "--input", "{"], 1, "--input: "),
        (["run", "\udcff", "lead"], 1, "the task: expected UTF-8 text, found other bytes"),
        (["run", "x", "lead", "--input", '"\udcff"'], 1, "--input: expected UTF-8 text"),
        (["run", "x", "--to"], 2, "--to: expected IDENTITY"),
        (["status", "--to", "x"], 2, "unknown option --to"),
        (["status", "nowhere"], 1, "nowhere"),
        (["trace"], 2, "swarm trace: expected ID - usage: clawlite swarm trace ID"),
        (["trace", "ffff", "lead"], 1, "0 tasks have an id that begins with ffff"),
        (["dead", "drop", "ffff", "lead"], 1, "0 tasks have an id"),
        (["stand-in", "x"], 2, 'unexpected "x" - usage: clawlite swarm stand-in'),
        (
            ["together"],
            2,
            "swarm together: expected FOLDER - usage: clawlite swarm together FOLDER...",
        ),
        (["acl"], 2, "swarm acl: expected ENGINE - usage: clawlite swarm acl ENGINE"),
        (
            ["acl", "zenoh", "lead"],
            2,
            'ENGINE: expected redis or nats, found "zenoh"',
        ),
        (["up", "nowhere"], 1, "there is no folder nowhere"),
    ],
)
def test_bad_usage_is_one_clear_error(tmp_path, images, words, code, said):
    found = swarm(tmp_path, *words)
    assert found[0] == code and said in found[2] and "Traceback" not in found[2], found


def test_what_an_engine_is_told_of_logins_is_printed(tmp_path, images):
    code, said, _ = swarm(tmp_path, "acl", "redis", images[0])
    assert code == 0 and said.startswith("ACL SETUSER team on >PASSWORD ~claw:{team}:* ")
    code, said, _ = swarm(tmp_path, "acl", "nats", "lead")
    assert code == 0 and said.count('user: "') == 3
    for name in ("lead", "hand", "operator"):
        assert '"claw.v1.team.log.%s"' % name in said


def test_a_swarm_in_one_process_that_does_not_run_is_told_so(tmp_path):
    image = project(tmp_path, "hand", coordination={**ALONE})
    code, _, errors = swarm(tmp_path, "status", image)
    assert code == 1 and "the swarm team does not run: with backend in-process its" in errors
    code, _, errors = swarm(tmp_path, "watch", image)
    assert code == 1 and "runs in one process (backend in-process)" in errors


ALONE = {"message_passing": "queue", "backend": "in-process", "concurrency": {}}
