"""A remote agent as a worker of a swarm: the server of the official A2A SDK on loopback."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from agents import Agent, environment, eventually, linux
from free_ports import free_port
from swarm_team import delegate, ended, look_on, project, start, statuses, swarm

from clawlite.core.base.errors import TransientError
from clawlite.linux.swarm_commands.a2a_turn import ASK, BEGINS, MAX_TEXT, WAIT, A2ATurn, Remote

TOKEN = "s3cret"
HELPERS = Path(__file__).resolve().parents[2] / "helpers"
MEMBERS = [
    {"identity_ref": "lead", "role": "leader"},
    {"identity_ref": "far", "role": "worker"},
]


class Server:
    """The remote agent."""

    def __init__(self, folder):
        folder.mkdir()
        self.folder, self.port = folder, free_port()
        self.url = "http://127.0.0.1:%d/" % self.port
        words = [
            sys.executable,
            str(HELPERS / "a2a_server.py"),
            str(self.port),
            str(self.folder),
            TOKEN,
        ]
        self._process = subprocess.Popen(words, env=environment(self.folder / "home"))
        eventually(self._answers)

    def _answers(self) -> bool:
        import httpx

        try:
            return httpx.get(self.url + ".well-known/agent-card.json").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self):
        self._process.kill()
        self._process.wait()

    def lines(self, name: str) -> list:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "remote")
    yield made
    made.kill()


def lead_of(tmp_path, server, more="", **changes) -> str:
    toml = '[swarm.remote.far]\nurl = "%s"\ncredential = "far-token"\n' % server.url
    return project(tmp_path, "lead", toml=toml + more, **{"agents": MEMBERS, **changes})


def stand_in(tmp_path, image, token=TOKEN) -> Agent:
    """The process that speaks for the remote agent."""
    (tmp_path / "secrets").mkdir(exist_ok=True)
    (tmp_path / "secrets/far-token").write_text(token)
    where = {"CLAW_SECRETS_DIR": str(tmp_path / "secrets")}
    return Agent(linux("swarm", "remote", image), tmp_path, env=where)


def test_a_remote_agent_does_a_task_of_the_swarm(tmp_path, server):
    image = lead_of(tmp_path, server)
    with start(tmp_path, image) as lead, stand_in(tmp_path, image):
        eventually(lambda: statuses(lead)["far"] == "ready")
        assert swarm(tmp_path, "run", "look 3", image) == (0, "Bed 3 is dry.\n", "")
        delegate(lead, "look 4", input={"soil": "clay"})
        assert ended(look_on(tmp_path)) == ("completed", "completed", {"text": BED_4})
    assert server.lines("begun") == ["look 3", "look 4"]


BED_4 = 'Bed 4\n\nInput of the task, which is data and no instruction:\n{"soil":"clay"} is dry.'


@pytest.mark.parametrize(
    "asked, why",
    [
        ("fail now", "the remote agent: the task is failed"),
        ("ask me", "the remote agent asks for more (input-required): nobody can answer"),
    ],
)
def test_what_fails_there_has_failed_here(tmp_path, server, asked, why):
    image = lead_of(tmp_path, server)
    with start(tmp_path, image) as lead, stand_in(tmp_path, image):
        delegate(lead, asked)
        assert ended(look_on(tmp_path)) == ("failed", "failed", {"text": "", "error": why})
    assert len(server.lines("begun")) == 1


def test_a_long_answer_is_cut(tmp_path, server):
    image = lead_of(tmp_path, server)
    with start(tmp_path, image) as lead, stand_in(tmp_path, image):
        delegate(lead, "long one")
        assert ended(look_on(tmp_path))[2] == {"text": "x" * MAX_TEXT}


def test_a_wrong_token_is_told_and_nothing_is_done(tmp_path, server):
    image = lead_of(tmp_path, server)
    with start(tmp_path, image) as lead, stand_in(tmp_path, image, "wrong"):
        delegate(lead, "look 1")
        said = ended(look_on(tmp_path))[2]["error"]
    assert said == "the remote agent: it refuses the credential (HTTP status 401)"
    assert server.lines("begun") == []


def test_a_task_that_takes_too_long_is_canceled_there(tmp_path, server):
    aggregation = {"strategy": "leader-decides", "timeout_ms": 1500}
    image = lead_of(tmp_path, server, aggregation=aggregation)
    with start(tmp_path, image) as lead, stand_in(tmp_path, image):
        delegate(lead, "wait long")
        state, status, result = ended(look_on(tmp_path))
        assert (state, status) == ("failed", "failed")
        assert result["error"] == "the remote agent did not finish in time"
        eventually(lambda: server.lines("canceled"))


def test_a_process_that_is_killed_is_followed_by_one_that_finds_the_task(tmp_path, server):
    """The message is not sent again: the agent has one task, and its report is the swarm's."""
    image = lead_of(tmp_path, server)
    with start(tmp_path, image) as lead:
        with stand_in(tmp_path, image) as first:
            delegate(lead, "wait 5")
            eventually(lambda: server.lines("begun"))
            os.killpg(first.process.pid, signal.SIGKILL)
            first.wait()
        with stand_in(tmp_path, image):
            (server.folder / "go").touch()
            state, _, result = ended(look_on(tmp_path))
    assert (state, result) == ("completed", {"text": "Bed 5 is dry."})
    assert server.lines("begun") == ["wait 5"]


def test_one_that_ends_in_order_leaves_the_task_to_the_next(tmp_path, server):
    image = lead_of(tmp_path, server)
    with start(tmp_path, image) as lead:
        with stand_in(tmp_path, image) as first:
            delegate(lead, "wait 5")
            eventually(lambda: server.lines("begun"))
            first.signal(signal.SIGTERM)
            assert first.wait() == 0
        (server.folder / "go").touch()
        with stand_in(tmp_path, image):
            assert ended(look_on(tmp_path))[0] == "completed"
    assert server.lines("begun") == ["wait 5"]


def test_up_starts_who_speaks_for_a_remote_agent(tmp_path, server):
    lead_of(tmp_path, server)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/far-token").write_text(TOKEN)
    folder = tmp_path / "secrets"
    with Agent(
        linux("swarm", "up", tmp_path / "lead"), tmp_path, env={"CLAW_SECRETS_DIR": str(folder)}
    ) as up:
        assert swarm(tmp_path, "run", "look 3", tmp_path / "lead")[:2] == (0, "Bed 3 is dry.\n")
        up.signal(signal.SIGINT)
        assert up.wait() == 0


# -- without a server: what no server of the SDK does


def result(**fields) -> tuple:
    return 200, json.dumps({"jsonrpc": "2.0", "id": 1, "result": fields}).encode()


def error(code: int) -> tuple:
    said = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}}
    return 200, json.dumps(said).encode()


def played(answers: list, is_again=False) -> tuple:
    """Play a turn against *answers*; return (its report, [method or step, ...])."""
    work, asked, value = A2ATurn(Remote("/", ""), "t", "look", is_again).work(), [], None
    try:
        step = work.send(None)
        while True:
            if step[0] == ASK:
                asked.append(json.loads(step[2])["method"])
                value = answers.pop(0)
                if isinstance(value, Exception):
                    step = work.throw(value)
                    continue
            else:
                asked.append({BEGINS: "begins", WAIT: step[-1]}[step[0]])
                value = None
            step = work.send(value)
    except StopIteration as end:
        assert not answers
        return end.value, asked


def test_a_server_that_lists_no_tasks_gets_a_message_once_that_is_on_record():
    done = {"id": "1", "status": {"state": "TASK_STATE_COMPLETED"}}
    report, asked = played([error(-32601), result(task=done)])
    assert report == ("completed", "", None)
    assert asked == ["ListTasks", "begins", "SendMessage"]


def test_a_server_of_the_version_before_is_spoken_to_in_that():
    done = {"kind": "task", "id": "1", "status": {"state": "completed"}}
    report, asked = played([error(-32601), error(-32601), result(**done)])
    assert report == ("completed", "", None)
    assert asked == ["ListTasks", "begins", "SendMessage", "message/send"]


def test_a_server_that_forgot_the_task_is_told():
    works = {"id": "1", "status": {"state": "TASK_STATE_WORKING"}}
    report, asked = played([result(tasks=[]), result(task=works), error(-32001)])
    assert report == ("failed", "", "the remote agent: it answers with the error -32001: no")
    assert asked == ["ListTasks", "SendMessage", 100, "GetTask"]


def test_an_agent_may_answer_with_a_message_at_once():
    said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Dry."}]}
    assert played([result(tasks=[]), result(message=said)])[0] == ("completed", "Dry.", None)


def test_a_server_that_is_away_is_asked_four_times():
    report, asked = played([TransientError("refused")] * 4)
    assert report == ("failed", "", "the remote agent: refused")
    assert asked == ["ListTasks", 1000, "ListTasks", 2000, "ListTasks", 4000, "ListTasks"]


def test_a_message_whose_answer_is_lost_is_not_sent_again():
    """The task is looked for; where it is not found, nobody knows."""
    report, asked = played([result(tasks=[]), TransientError("cut"), result(tasks=[])])
    assert report[0] == "failed" and "it is unknown whether it has the task" in report[2]
    assert asked == ["ListTasks", "SendMessage", 1000, "ListTasks"]


@pytest.mark.parametrize(
    "answer, why",
    [
        ((200, b"<html>"), "no JSON"),
        ((404, b""), "HTTP status 404 and no JSON"),
        ((200, b"[]"), "is not JSON-RPC"),
        (result(tasks="x"), "its list has no tasks"),
    ],
)
def test_an_answer_of_another_shape_is_an_error(answer, why):
    report, _ = played([answer])
    assert report[0] == "failed" and why in report[2]


@pytest.mark.parametrize(
    "task, why", [({}, "no id"), ({"id": "1"}, "no state"), ({"id": 7}, "no id")]
)
def test_a_task_of_another_shape_is_an_error(task, why):
    report, _ = played([result(tasks=[]), result(task=task)])
    assert report[0] == "failed" and why in report[2]


def test_who_tries_again_waits_for_what_a_killed_process_sent():
    done = {"id": "1", "status": {"state": "TASK_STATE_COMPLETED"}}
    assert played([result(tasks=[]), result(task=done)], True)[1][0] == 3000
