"""Several operators of one agent at once, each on a line of their own with the rights of a role."""

import json

import pytest
from agents import INITIALIZE
from operator_lines import House, request_id

from clawlite.core.policy.access import ADMIN, USER, VIEWER
from clawlite.core.protocol.rights import FRESH_MS
from clawlite.linux.io.stdio import now_ms


def states_told(person) -> set:
    person.read()
    return {one.get("params", {}).get("state") for one in person.got}


@pytest.fixture
def house(greenhouse_image, tmp_path, monkeypatch):
    made = House(greenhouse_image, tmp_path, monkeypatch)
    yield made
    made.close()


def test_two_operators_have_their_own_answers_and_their_own_rights(house):
    admin, user = house.join(ADMIN, "ada"), house.join(USER, "bea")
    for one in (admin, user):
        assert one.ask("claw.initialize", **INITIALIZE)["result"]["agentInfo"]
    # both use the same ids of requests at the same time
    waiting = user.call(1, "water", seconds=3)
    assert "result" in admin.answer(admin.call(2, "read-soil"))
    # a user may not approve, and the call waits on
    refused = user.ask("claw.tool.approve", request_id=request_id(1))["error"]
    assert refused["code"] == -32011 and "bea has the role user" in refused["message"]
    assert house.shell.agent.waiting
    assert not any(message.get("id") == waiting for message in user.got)
    approved = admin.ask("claw.tool.approve", request_id=request_id(1))
    assert approved["result"] == {"acknowledged": True}
    house.shell.log.flush()
    assert '"operator/ada"' in open(house.shell.log._path).read()  # who answered
    assert user.answer(waiting)["result"]["isError"] is False
    # what one was told, the other was not
    assert {message["id"] for message in user.got if "id" in message} == {1, 2, 3}
    admin.read()
    assert {message["id"] for message in admin.got if "id" in message} == {1, 2, 3}


def test_what_a_role_may_not_do_is_refused_and_changes_nothing(house):
    viewer, user = house.join(VIEWER, "vic"), house.join(USER, "bea")
    for one in (viewer, user):
        one.ask("claw.initialize", **INITIALIZE)
    assert viewer.answer(viewer.call(1, "water", seconds=1))["error"]["code"] == -32011
    assert not house.shell.agent.tasks
    for method in ("claw.shutdown", "claw.tool.deny", "claw.tool.approve", "claw.of.tomorrow"):
        assert user.ask(method, request_id=request_id(1))["error"]["code"] == -32011, method
    assert house.shell.agent.is_ready
    assert viewer.ask("claw.status")["result"]["state"] == "READY"


def test_an_operator_who_goes_leaves_the_others_and_their_call_in_peace(house):
    admin, user = house.join(ADMIN, "ada"), house.join(USER, "bea")
    for one in (admin, user):
        one.ask("claw.initialize", **INITIALIZE)
    user.call(1, "water", seconds=1)
    house.until(lambda: house.shell.agent.waiting)
    user.near.close()
    house.until(lambda: house.ended)
    assert house.ended == [user.line] and user.line not in house.shell.parts
    denied = admin.ask("claw.tool.deny", request_id=request_id(1))
    assert denied["result"] == {"acknowledged": True}
    assert admin.ask("claw.status")["result"]["state"] == "READY"


def test_nobody_acts_in_the_name_of_another_person(house):
    ada, bea = house.join(ADMIN, "ada"), house.join(USER, "bea")
    for one in (ada, bea):
        one.ask("claw.initialize", **INITIALIZE)
    context = {"request_id": request_id(1), "identity": house.shell.image.agent.identity}
    call = dict(name="read-soil", arguments={}, context=context)
    assert bea.ask("claw.tool.call", actor="ada", **call)["error"]["code"] == -32011
    assert "result" in bea.ask("claw.tool.call", actor="bea", **call)
    refused = ada.ask("claw.tool.deny", actor="bea", request_id=request_id(1))
    assert refused["error"]["code"] == -32011
    house.shell.log.flush()
    log = open(house.shell.log._path).read()
    assert '"caller":"operator/bea"' in log and '"caller":"operator"' not in log


def test_tasks_belong_to_who_gave_them(house):
    ada, bea, cyn = house.join(ADMIN, "ada"), house.join(USER, "bea"), house.join(USER, "cyn")
    for one in (ada, bea, cyn):
        one.ask("claw.initialize", **INITIALIZE)
    message = {"role": "user", "content": "water for 2 s"}
    # whatever name is given
    given = bea.ask("claw.task.create", task_id="t", message=message, caller="operator/cyn")
    assert given["result"]["task_id"] == "t"
    for method in ("claw.task.get", "claw.task.cancel", "claw.task.subscribe"):
        assert "unknown task t" in cyn.ask(method, task_id="t")["error"]["message"], method
    assert cyn.ask("claw.task.list")["result"]["tasks"] == []
    for one in (ada, bea):
        assert [task["task_id"] for task in one.ask("claw.task.list")["result"]["tasks"]] == ["t"]
        assert one.ask("claw.task.subscribe", task_id="t")["result"]["subscribed"]
    house.until(lambda: house.shell.agent.waiting)
    # a user's word approves nothing, neither their own nor that of somebody else
    approve = {"role": "user", "content": "approve"}
    for one, more in ((bea, {}), (cyn, {}), (bea, {"is_answer": True})):
        assert "error" in one.ask("claw.task.create", task_id="t", message=approve, **more)
    assert house.shell.agent.waiting
    ada.ask("claw.task.create", task_id="t", message=approve)
    house.until(lambda: "completed" in states_told(bea))
    for one in (ada, bea, cyn):
        one.read()
        states = {m["params"]["state"] for m in one.got if m.get("method") == "claw.task.updated"}
        assert ("completed" in states) is (one is not cyn), states


def test_the_last_who_watches_a_task_hears_of_its_end_when_another_cancels_it(house):
    ada, bea = house.join(ADMIN, "ada"), house.join(USER, "bea")
    for one in (ada, bea):
        one.ask("claw.initialize", **INITIALIZE)
    bea.ask("claw.task.create", task_id="t", message={"role": "user", "content": "water for 2 s"})
    for one in (ada, bea):
        one.ask("claw.task.subscribe", task_id="t")
    assert ada.ask("claw.task.cancel", task_id="t")["result"]["state"] == "canceled"
    house.until(lambda: "canceled" in states_told(bea))
    ada.read()
    assert not any(one.get("params", {}).get("state") == "canceled" for one in ada.got)


def test_a_shutdown_takes_an_admin_who_has_just_logged_in(house):
    late = house.join(ADMIN, "ada", now_ms() - FRESH_MS - 1)
    fresh = house.join(ADMIN, "ada", now_ms())
    for one in (late, fresh):
        one.ask("claw.initialize", **INITIALIZE)
    for method in ("claw.shutdown", "claw.of.tomorrow"):
        refused = late.ask(method)["error"]
        assert refused["code"] == -32011 and "log" in refused["message"], refused
    assert late.ask("claw.tool.deny", request_id=request_id(9))["result"]["acknowledged"] is False
    assert fresh.ask("claw.of.tomorrow")["error"]["code"] == -32601
    assert fresh.ask("claw.shutdown")["result"]["drained"] is True
    # whoever starts it again has the same right
    assert late.ask("claw.initialize", **INITIALIZE)["error"]["code"] == -32011
    assert fresh.ask("claw.status")["result"]["state"] == "STOPPED"
    assert "result" in fresh.ask("claw.initialize", **INITIALIZE)


def test_a_manifest_is_checked_and_starts_nothing(house):
    ada = house.join(ADMIN, "ada")
    wrong = dict(INITIALIZE, manifest={"kind": "Claw"})
    assert "error" in ada.ask("claw.initialize", **wrong)
    other = dict(INITIALIZE["manifest"], metadata={"name": "another"})
    answer = ada.ask("claw.initialize", **dict(INITIALIZE, manifest=other))["result"]
    assert answer["agentInfo"]["name"] == house.shell.image.agent.identity
    assert house.shell.code is None


def test_a_notification_of_who_may_not_send_it_reaches_nobody(house):
    class Group:
        capability, rows, got = "", "", []

        def begin(self, method, params):
            raise AssertionError(method)

        def notify(self, message):
            self.got.append(message)

    house.shell.groups.append(Group())
    vic, bea = house.join(VIEWER, "vic"), house.join(USER, "bea")
    for one in (vic, bea):
        one.ask("claw.initialize", **INITIALIZE)
        for said in (
            {"jsonrpc": "2.0", "method": "claw.swarm.broadcast", "params": {"swarm": one.line}},
            {"jsonrpc": "2.0", "method": "claw.of.tomorrow", "params": {}},
            {"jsonrpc": "2.0", "id": "t", "result": {"acknowledged": True}},
        ):
            said = dict(said, params={"from": "vic" if one is vic else "bea"})
            one.near.sendall(json.dumps(said).encode() + b"\n")
        one.ask("claw.status")
    assert [message["params"] for message in Group.got] == [{"from": "bea"}]
