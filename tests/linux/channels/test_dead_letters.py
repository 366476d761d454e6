"""Messages that were given up: what is kept of them, and ``clawlite channels dead``."""

import json
import os

import pytest
from agents import clawlite
from channel_world import project

from clawlite.host.compiler import compiler
from clawlite.linux.channels import dead_letters
from clawlite.linux.channels.dead_letters import DeadLetters

JOBS = {
    "type": "queue",
    "transport": "polling",
    "access_control": {"mode": "open"},
    "trigger": {"queue_name": "t/jobs", "overlap_policy": "queue"},
}
AT_S = 1_800_000_000


def put(box: DeadLetters, text: str, actor: str = "ann") -> int:
    return box.put(actor, text, b"\0c", "it was started 3 times", AT_S)


def test_a_letter_is_there_as_it_was(tmp_path):
    path = str(tmp_path / "jobs.dead")
    assert DeadLetters(path).all() == []
    put(DeadLetters(path), "thr\u00e9e\n")
    put(DeadLetters(path), "two")
    one, two = DeadLetters(path).all()
    assert (
        one.number,
        one.actor,
        one.text,
        one.correlation,
        one.why,
        one.at_s,
        one.is_asked,
        one.is_damaged,
    ) == (1, "ann", "thr\u00e9e\n", b"\0c", "it was started 3 times", AT_S, False, False)
    assert two.number == 2 and (tmp_path / "jobs.dead/1.json").stat().st_mode & 0o777 == 0o600


def test_the_oldest_makes_room_and_that_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(dead_letters, "MOST", 3)
    box = DeadLetters(str(tmp_path / "jobs.dead"))
    assert [put(box, str(number)) for number in range(5)] == [0, 0, 0, 1, 2]
    assert [letter.text for letter in box.all()] == ["2", "3", "4"]


def test_each_flipped_bit_is_seen(tmp_path):
    box = DeadLetters(str(tmp_path / "jobs.dead"))
    put(box, "water the beds")
    path = tmp_path / "jobs.dead/1.json"
    data = path.read_bytes()
    for at in range(8 * (len(data) - 1)):  # all but the line feed
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        assert [(one.is_damaged, one.text) for one in box.all()] == [(True, "")], at


@pytest.fixture
def agent(tmp_path):
    """A folder with an image, and a function that runs the command on it."""
    folder = tmp_path / "p"
    made = project(folder, {"jobs": JOBS}, '[mqtt]\naddress = "mqtt://127.0.0.1:1"\n')
    (folder / "claw.cbor").write_bytes(compiler.build(made).data)
    state = tmp_path / "state"

    def run(*args):
        return clawlite("channels", "dead", *args, cwd=folder, CLAWLITE_STATE=state)

    run.channels = state / "channelled/channels"
    return run


def test_the_command_shows_runs_again_and_drops(agent):
    assert (agent().returncode, agent().stdout, json.loads(agent("--json").stdout)) == (0, "", [])
    assert agent().stderr == "No message was given up.\n" and agent("--json").stderr == ""
    jobs = DeadLetters(str(agent.channels / "jobs.dead"))
    put(jobs, "water"), put(jobs, "\x1b[31mred", "bob")
    shown = agent().stdout.splitlines()
    assert shown[0] == 'jobs/1  2027-01-15T08:00:00Z  ann  it was started 3 times  "water"'
    assert "\x1b" not in shown[1]
    for _ in range(2):
        done = agent("retry", "1")
        assert done.returncode == 0 and "Message 1 begins again within 10 s" in done.stderr
    found = json.loads(agent("--json").stdout)
    assert [(one["number"], one["retry"]) for one in found] == [(1, True), (2, False)]
    assert found[1] == {
        "channel": "jobs",
        "number": 2,
        "time": "2027-01-15T08:00:00Z",
        "actor": "bob",
        "text": "\x1b[31mred",
        "reason": "it was started 3 times",
        "retry": False,
        "damaged": False,
    }
    assert (
        agent("drop", "jobs/1").returncode == agent("drop", "2").returncode == 0
        and agent().stdout == ""
    )


def test_what_cannot_be_done_is_said(agent):
    for args, code, words in (
        ((), 0, ""),
        (("retry",), 2, "NUMBER"),
        (("retry", "x"), 2, "NUMBER"),
        (("retry", "\u00b2"), 2, "NUMBER"),
        (("--all",), 2, "unknown option --all"),
        (("retry", "7"), 1, "no message 7"),
        (("drop", "jobs/7"), 1, "no message jobs/7"),
    ):
        done = agent(*args)
        assert done.returncode == code and words in done.stderr, (args, done.stderr)
    for channel in ("jobs", "others"):
        put(DeadLetters(str(agent.channels / (channel + ".dead"))), "text")
    assert "jobs/1, others/1" in agent("retry", "1").stderr
    assert agent("retry", "others/1").returncode == 0 and os.path.exists(
        agent.channels / "others.dead/1.retry"
    )
    path = agent.channels / "jobs.dead/1.json"
    path.write_bytes(path.read_bytes().replace(b"text", b"next"))
    assert "damaged" in agent("retry", "jobs/1").stderr and "damaged" in agent().stdout
