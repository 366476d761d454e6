"""What operators see beside their own requests: approvals of others, and the log."""

import pytest
from agents import INITIALIZE, make_greenhouse
from operator_lines import House

from clawlite.core.policy.access import ADMIN, USER, VIEWER
from clawlite.linux.tasks.watch_group import WatchGroup


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return make_greenhouse(tmp_path_factory.mktemp("projects") / "g")


@pytest.fixture
def house(image, tmp_path, monkeypatch):
    house = House(image, tmp_path / "state", monkeypatch)
    house.group = house.shell.add_part(WatchGroup(house.shell))
    house.shell.serve(house.group)
    yield house
    house.close()


def join_as(house, role: int, name: str):
    person = house.join(role, name)
    assert "result" in person.ask("claw.initialize", **INITIALIZE)
    return person


def read_told(person, method: str) -> list:
    person.read()
    return [one["params"] for one in person.got if one.get("method") == method]


def test_an_admin_sees_and_answers_what_another_person_asked_for(house):
    ada, bea = join_as(house, ADMIN, "ada"), join_as(house, USER, "bea")
    assert ada.ask("claw.approval.subscribe")["result"] == {"approvals": []}
    number = bea.call(1, "water", seconds=5)
    house.until(lambda: read_told(ada, "claw.approval.updated"))
    (one,) = read_told(ada, "claw.approval.updated")
    assert (
        one["state"] == "waiting" and one["tool"] == "water" and one["arguments"] == {"seconds": 5}
    )
    assert "asks first" in one["why"] and 0 < one["left_ms"] <= one["timeout_ms"]
    late = join_as(house, ADMIN, "eve").ask("claw.approval.subscribe")["result"]["approvals"]
    assert [each["number"] for each in late] == [one["number"]]
    assert 100000 <= one["number"] < 1000000, "no number of the process before"
    answer = {"number": one["number"], "is_approved": False, "reason": "not today"}
    # another question has another number, and was asked at another time
    other = {**answer, "number": one["number"] + 1}
    assert ada.ask("claw.approval.answer", **other)["result"] == {"acknowledged": False}
    stale = {**answer, "asked_ms": one["asked_ms"] - 1}
    assert ada.ask("claw.approval.answer", **stale)["result"] == {"acknowledged": False}
    answer["asked_ms"] = one["asked_ms"]
    assert ada.ask("claw.approval.answer", **answer)["result"] == {"acknowledged": True}
    assert ada.ask("claw.approval.answer", **answer)["result"] == {"acknowledged": False}
    house.until(lambda: len(read_told(ada, "claw.approval.updated")) == 2)
    ended = read_told(ada, "claw.approval.updated")[1]
    assert (ended["state"], ended["by"], ended["number"]) == ("denied", "ada", one["number"])
    error = bea.answer(number)["error"]
    assert error["code"] == -32013 and "not today" in error["message"]


def test_who_is_no_admin_neither_sees_nor_answers(house):
    for role, name in ((USER, "bea"), (VIEWER, "vic")):
        person = join_as(house, role, name)
        for method, params in (
            ("claw.approval.subscribe", {}),
            ("claw.approval.answer", {"number": 1, "is_approved": True}),
        ):
            assert person.ask(method, **params)["error"]["code"] == -32011, (name, method)


@pytest.mark.parametrize(
    "params, wanted",
    [
        ({}, "number"),
        ({"number": "1", "is_approved": True}, "number"),
        ({"number": 1}, "is_approved"),
        ({"number": 1, "is_approved": "yes"}, "is_approved"),
        ({"number": 1, "is_approved": True, "reason": 5}, "reason"),
        ({"number": 1, "is_approved": True, "asked_ms": "5"}, "asked_ms"),
    ],
)
def test_an_answer_of_another_shape_is_refused(house, params, wanted):
    error = join_as(house, ADMIN, "ada").ask("claw.approval.answer", **params)["error"]
    assert error["code"] == -32602 and wanted in error["message"]


def test_the_log_is_told_to_each_as_their_role_permits(house):
    ada, bea, cat = (
        join_as(house, ADMIN, "ada"),
        join_as(house, USER, "bea"),
        join_as(house, USER, "cat"),
    )
    for one in (ada, bea, cat):
        assert one.ask("claw.log.subscribe")["result"] == {"subscribed": True}
    assert "result" in bea.answer(bea.call(1, "read-soil"))
    house.until(lambda: read_told(ada, "claw.log.event"))
    (mine,) = read_told(bea, "claw.log.event")
    assert mine["tool"] == "read-soil" and mine["status"] == "ok" and "timestamp" in mine
    assert mine["caller"] == "operator/bea" and any(line.strip()[:1] == "*" for line in mine["why"])
    assert mine in read_told(ada, "claw.log.event") and read_told(cat, "claw.log.event") == []
    ada.near.close()
    house.until(lambda: len(house.ended) == 1)
    assert "result" in cat.answer(cat.call(2, "read-soil"))
    assert len(read_told(bea, "claw.log.event")) == 1


def test_nobody_who_left_is_told(house):
    ada = join_as(house, ADMIN, "ada")
    ada.ask("claw.log.subscribe")
    ada.ask("claw.approval.subscribe")
    ada.near.close()
    house.until(lambda: house.ended)
    assert "result" in (bea := join_as(house, USER, "bea")).answer(bea.call(3, "read-soil"))
    assert ada.line not in house.shell.parts and ada.got[-1]["id"] == 3


def test_what_the_agent_uses_is_told_to_whoever_may_look(house):
    vic, bea = join_as(house, VIEWER, "vic"), join_as(house, USER, "bea")
    used = vic.ask("claw.usage.get")["result"]
    assert used["agent"] == "g" and used["state"] == "READY" and used["uptime_ms"] >= 0
    assert used["memory_bytes"] > 1 << 20 and used["limits"] == [] and used["last_turn"] is None
    assert (used["calls_last_minute"], used["waiting"], used["turns"]) == (0, 0, 0)
    assert "result" in bea.answer(bea.call(1, "read-soil"))
    bea.call(2, "water", seconds=5)
    house.until(lambda: house.shell.agent.waiting)
    used = vic.ask("claw.usage.get")["result"]
    assert (used["calls_last_minute"], used["waiting"], used["under_way"]) == (1, 1, 1)
    said = {"role": "user", "content": "is the soil dry"}
    task = bea.ask("claw.task.create", task_id="soil", message=said)
    assert "result" in task
    house.until(lambda: len(house.shell.agent.waiting) == 2)
    for one in list(house.shell.agent.waiting):
        house.shell.agent.answer(one, False, "no", 0)
    house.until(lambda: vic.ask("claw.usage.get")["result"]["turns"])
    used = vic.ask("claw.usage.get")["result"]
    assert (
        used["last_turn"]["by"] == "tasks/operator/bea" and used["last_turn"]["status"] == "refused"
    )
