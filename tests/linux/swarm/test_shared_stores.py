"""``message_passing: shared-memory``: a store of the Memory that all agents of a swarm share."""

import os
import signal
import sqlite3

import pytest
from swarm_memory import MEMORY, UUID, found, keep
from swarm_team import SWARM, delegate, ended, look_on, project, start

SHARED = dict(SWARM["coordination"], message_passing="shared-memory")


def team(tmp_path, backend="sqlite-wal") -> list:
    coordination = dict(SHARED, backend=backend)
    return [
        project(tmp_path, name, spec=MEMORY, coordination=coordination) for name in ("lead", "hand")
    ]


@pytest.mark.parametrize("backend", ["sqlite-wal", "in-process"])
def test_what_one_agent_keeps_the_others_find(tmp_path, backend):
    lead, hand = team(tmp_path, backend)
    with start(tmp_path, lead) as one, start(tmp_path, hand) as two, start(tmp_path, hand) as three:
        keep(one, "notes", 1, key="bed 3", content="dry")
        assert found(two, "notes", 1, type="key", key="bed 3") == ["dry"]
        keep(two, "notes", 2, key="bed 3", content="watered")
        for number, agent in enumerate((one, two, three), 10):
            assert found(agent, "notes", number, type="key", key="bed 3") == ["watered"]
        keep(one, "own", 3, key="bed 3", content="mine")
        assert found(two, "own", 3, type="key", key="bed 3") == [], "the others are each one's own"
        if backend == "sqlite-wal":
            delegate(one, "look at 7")
            assert ended(look_on(tmp_path))[0] == "completed", "tasks go to who is free"
    path = tmp_path / "state/swarms/team/memory.db"
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_many_write_at_once_and_nothing_is_lost(tmp_path):
    lead, hand = team(tmp_path)
    with start(tmp_path, lead) as one, start(tmp_path, hand) as two:
        for number in range(1, 41):
            for agent, name in ((one, "lead"), (two, "hand")):
                entry = {"content": "%s saw bed %d" % (name, number), "key": name + str(number)}
                params = {
                    "store": "notes",
                    "entries": [entry],
                    "context": {"request_id": UUID % (number * 2 + (agent is two))},
                }
                record = {"jsonrpc": "2.0", "method": "claw.memory.store", "id": number}
                agent.record(dict(record, params=params))
        for agent in (one, two):
            answers = [agent.message() for _ in range(40)]
            assert all(answer["result"]["stored"] == 1 for answer in answers)
        for agent in (one, two):
            names = {
                content
                for number in (1, 20, 40)
                for name in ("lead", "hand")
                for content in found(
                    agent, "notes", 100 + number, type="key", key=name + str(number)
                )
            }
            assert len(names) == 6
    with sqlite3.connect(tmp_path / "state/swarms/team/memory.db") as db:
        assert db.execute("select count(*) from entries").fetchone() == (80,)
    db.close()


def test_a_request_is_remembered_for_all_and_survives_a_kill(tmp_path):
    lead, hand = team(tmp_path)
    with start(tmp_path, lead) as one:
        keep(one, "notes", 1, key="a", content="first")
        os.killpg(one.process.pid, signal.SIGKILL)
        one.wait()
    with start(tmp_path, hand) as two:
        assert found(two, "notes", 1, type="key", key="a") == ["first"]
        keep(two, "notes", 1, key="a", content="first")
        path = tmp_path / "state/swarms/team/memory.db"
        with sqlite3.connect(path) as db:
            assert db.execute("select count(*) from entries").fetchone() == (1,)
        db.close()


def test_words_that_one_agent_kept_are_found_by_another(tmp_path):
    lead, hand = team(tmp_path)
    with start(tmp_path, lead) as one, start(tmp_path, hand) as two:
        keep(one, "said", 1, content="the tomatoes in bed 3 are dry")
        assert found(two, "said", 2, type="semantic", text="tomatoes") == [
            "the tomatoes in bed 3 are dry"
        ]


def test_a_damaged_file_of_the_swarm_is_told_and_own_stores_go_on(tmp_path):
    lead, _ = team(tmp_path)
    folder = tmp_path / "state/swarms/team"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    (folder / "memory.db").write_bytes(b"x" * 4096)
    with start(tmp_path, lead) as one:
        params = {"store": "notes", "query": {"type": "key", "key": "a"}}
        error = one.call("claw.memory.query", params, 1)["error"]
        assert "damaged" in error["message"] and "swarms/team/memory.db" in error["message"]
        keep(one, "own", 2, key="a", content="mine")
