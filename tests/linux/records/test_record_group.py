"""What operators beyond stdio read of an agent: calls, previews, audit, memory, pins."""

import json
from pathlib import Path

import pytest
from agents import INITIALIZE, UUID, Agent, clawlite, linux, make_greenhouse
from ckp.test_methods import line
from operator_lines import House
from rules_world import ALLOW, RULE, project

from clawlite.core.policy.access import ADMIN, USER, VIEWER
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.records import record_group
from clawlite.linux.records.record_group import RecordGroup
from clawlite.linux.tasks.watch_group import WatchGroup

PAGE = Path(__file__).parents[3] / "docs/methods.md"
UNKNOWN, PARAMS, DENIED = -32601, -32602, -32011
AUDIT = {"log_inputs": True, "log_outputs": True, "log_approvals": True, "destination": "file"}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    return make_greenhouse(tmp_path_factory.mktemp("projects") / "g")


@pytest.fixture
def house(image, tmp_path, monkeypatch):
    house = House(image, tmp_path / "state", monkeypatch)
    for kind in (WatchGroup, RecordGroup):
        house.shell.serve(house.shell.add_part(kind(house.shell)))
    yield house
    house.close()


def join_as(house, role: int, name: str, login_ms=None):
    person = house.join(role, name, login_ms)
    assert "result" in person.ask("claw.initialize", **INITIALIZE)
    return person


def ask(person, method: str, **params):
    """Return the result, or the code of the error."""
    answer = person.ask("claw." + method, **params)
    return answer["error"]["code"] if "error" in answer else answer["result"]


def test_the_page_has_each_method():
    rows = [row.split() for row in record_group.ROWS.split("\n")[1:-1]]
    tables = PAGE.read_text().split("|---|---|---|---|---|---|\n")[1:]
    assert "\n".join(map(line, rows)) in [one.split("\n\n")[0] for one in tables]


def test_a_call_tells_its_gates_and_rules(house):
    ada, bea = join_as(house, ADMIN, "ada"), join_as(house, USER, "bea")
    assert "result" in bea.answer(bea.call(1, "read-soil"))
    assert "error" in ada.answer(ada.call(2, "water", seconds="no"))
    refused, read = ask(ada, "call.list")["calls"]
    assert (read["tool"], read["status"], read["caller"]) == ("read-soil", "ok", "operator/bea")
    assert {state for _, state in read["gates"]} == {"passed"}
    (winner,) = [rule for rule in read["rules"] if rule["decides"]]
    assert winner["action"] == "allow" and winner["id"] == read["rule_id"]
    assert refused["gates"][0] == ["arguments", "stopped"]
    assert {state for _, state in refused["gates"][1:]} == {"not reached"}
    assert [one["caller"] for one in ask(bea, "call.list")["calls"]] == ["operator/bea"]
    assert len(ask(ada, "call.list", last=1)["calls"]) == 1
    assert ask(ada, "call.list", last=0) == ask(ada, "call.list", last=501) == PARAMS


def test_another_call_is_only_thought_of(house):
    ada = join_as(house, ADMIN, "ada")
    asks = ask(ada, "call.preview", name="water", arguments={"seconds": 5})
    assert asks["asks"] and asks["action"] == "require-approval" and asks["status"] == "preview"
    assert asks["gates"][4:] == [
        ["approval", "asks"],
        ["sandbox", "passed"],
        ["run", "not reached"],
    ]
    reads = ask(ada, "call.preview", name="read-soil", arguments={})
    assert reads["action"] == "allow" and not reads["asks"]
    wrong = ask(ada, "call.preview", name="water", arguments={"seconds": -1})
    assert wrong["gates"][0] == ["arguments", "stopped"]
    assert ask(ada, "call.preview", name="rocket", arguments={})["gates"][0][1] == "stopped"
    assert ask(ada, "call.preview", name="water", arguments=5) == PARAMS
    assert not house.shell.agent.waiting and ask(ada, "call.list")["calls"] == []


def test_roles_and_what_is_not_there(house):
    old_ms = now_ms() - 400000
    ada, vic = join_as(house, ADMIN, "ada", old_ms), join_as(house, VIEWER, "vic")
    bea = join_as(house, USER, "bea")
    pins = ask(vic, "pin.list")["pins"]
    assert {one["name"] for one in pins} == {"pump", "soil"} and pins[0]["value"] is not None
    assert ask(vic, "call.list") == ask(vic, "call.preview", name="x", arguments={}) == DENIED
    for method in ("audit.list", "audit.verify", "audit.export"):
        assert ask(bea, method) == DENIED
    assert ask(ada, "audit.export") == ask(ada, "memory.forget", store="m", id="x") == DENIED
    assert ask(vic, "memory.list") == ask(vic, "swarm.list") == UNKNOWN


@pytest.mark.parametrize("kind", ["file", "sqlite"])
def test_the_audit_is_found_checked_and_exported(tmp_path, monkeypatch, kind):
    folder = tmp_path / "p"
    audit = {**AUDIT, "destination": kind}
    project(
        folder, RULE + 'every = "1h"\n', policies=[{"inline": {"rules": ALLOW, "audit": audit}}]
    )
    made = clawlite("build", "-o", "claw.cbor", cwd=folder)
    assert made.returncode == 0, made
    house = House(str(folder / "claw.cbor"), tmp_path / "state", monkeypatch)
    for one in (WatchGroup, RecordGroup):
        house.shell.serve(house.shell.add_part(one(house.shell)))
    try:
        ada = join_as(house, ADMIN, "ada")
        assert ask(ada, "log.subscribe") == {"subscribed": True}
        for number in range(3):
            assert "result" in ada.answer(ada.call(number + 1, "water", seconds=number))
        told = [one["params"] for one in ada.got if one.get("method") == "claw.log.event"]
        assert [one["gates"][-1] for one in told if one["event"] == "tool.call"] == 3 * [
            ["run", "passed"]
        ]
        thought = ask(ada, "call.preview", name="water", arguments={"seconds": 1})
        assert thought["gates"][-1] == ["run", "not reached"]
        said = ask(ada, "audit.list")
        numbers = [one["n"] for one in said["records"]]
        assert numbers == sorted(numbers, reverse=True) and "truncated" not in said
        found, begun = ask(ada, "audit.list", filter=(UUID % 2)[-4:])["records"]
        assert (found["event"], begun["event"]) == ("tool.call", "tool.begin")
        assert json.loads(found["arguments"]) == {"seconds": 1}
        assert ask(ada, "audit.list", filter="OPERATOR/ADA", last=1)["truncated"]
        older = ask(ada, "audit.list", before=found["n"], last=1)
        assert older["records"][0]["n"] == found["n"] - 1
        assert ask(ada, "audit.list", before=0) == ask(ada, "audit.verify", anchor="x") == PARAMS
        checked = ask(ada, "audit.verify")
        assert checked["ok"] and checked["last"] == numbers[0]
        lines = ask(ada, "audit.export")["lines"]
        assert [json.loads(one)["n"] for one in lines] == numbers[::-1]
        assert len(ask(ada, "audit.export", after=2)["lines"]) == len(lines) - 2
    finally:
        house.close()


def test_a_person_lets_the_memory_forget(tmp_path):
    folder = tmp_path / "p"
    stores = [
        {"name": "notes", "type": "semantic", "backend": "sqlite", "scope": "global"},
        {"name": "facts", "type": "key-value", "backend": "sqlite", "scope": "global"},
    ]
    project(folder, RULE + 'every = "1h"\n', memory={"inline": {"name": "m", "stores": stores}})
    made = clawlite("build", "-o", "claw.cbor", cwd=folder)
    assert made.returncode == 0, made
    words = linux("serve", folder / "claw.cbor", "--stdio", "--socket")
    with Agent(words, tmp_path).initialize() as agent:

        def call(method: str, **params):
            answer = agent.call("claw." + method, params)
            return answer["error"]["code"] if "error" in answer else answer["result"]

        listed = call("memory.list")["stores"]
        assert [(one["name"], one["type"]) for one in listed] == [
            ("notes", "semantic"),
            ("facts", "key-value"),
        ]
        entries = [{"content": "the basil likes shade"}, {"content": "tomatoes like sun"}]
        context = {"request_id": UUID % 1, "identity": "t"}
        ids = call("memory.store", store="notes", entries=entries, context=context)["ids"]
        for wrong in (("x", ids[0]), ("notes", "5"), ("notes", "")):
            assert call("memory.forget", store=wrong[0], id=wrong[1]) == PARAMS
        assert call("memory.forget", store="facts", id=ids[0]) == {"forgotten": 0}
        for one in ids:
            assert call("memory.forget", store="notes", id=one) == {"forgotten": 1}
        query = {"type": "semantic", "text": "basil tomatoes"}
        left = call("memory.query", store="notes", query=query)["entries"]
        assert [one["content"] for one in left] in ([], [""])
    log = next(tmp_path.rglob("log.jsonl"))
    assert log.read_text().count("memory.forgotten") == 3
