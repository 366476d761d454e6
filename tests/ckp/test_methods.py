"""Each row of the tables of methods is what a session does, and what documents say."""

import re
import tomllib
from pathlib import Path

import pytest
from ckp.book import HERE
from ckp.process import AGENT, CONF, INITIALIZE, Operator, World

from clawlite.core.protocol import method_table
from clawlite.linux.tasks import task_group
from clawlite.protocols.swarm import swarm_methods

PAGE = Path(__file__).parents[2] / "docs/methods.md"
REQUEST, UNKNOWN, PARAMS, VERSION = -32600, -32601, -32602, -32001
ROWS = [
    row.split()
    for rows in (method_table.own(), swarm_methods.ROWS, task_group.ROWS)
    for row in rows.split("\n")[1:-1]
]
TAKEN = {name: taken for name, taken, *_ in ROWS}
ID = "c1a00000-0000-4000-8000-00000000000%d"
CONTEXT = {"request_id": ID % 1, "identity": AGENT}
ENTRIES = [{"content": "first", "key": "a"}]
# of each request, parameters that are right, the optional ones too
GOOD = {
    "initialize": INITIALIZE["params"],
    "status": {},
    "shutdown": {"reason": "over", "timeout_ms": 100},
    "tool.call": {"name": "echo", "arguments": {"text": "a"}, "context": CONTEXT, "actor": "mia"},
    "tool.approve": {"request_id": ID % 9, "reason": "good", "actor": "mia", "content": {}},
    "tool.deny": {"request_id": ID % 9, "reason": "bad", "actor": "mia"},
    "memory.query": {"store": "kv", "query": {"type": "key", "key": "a"}, "context": {}},
    "memory.store": {"store": "kv", "entries": ENTRIES, "context": CONTEXT},
    "memory.compact": {"store": "sem", "context": {}},
    "swarm.delegate": {
        "task_id": ID % 2,
        "task": {"description": "Look."},
        "context": {"request_id": ID % 3, "swarm": "test-team"},
    },
    "swarm.report": {
        "task_id": ID % 4,
        "status": "completed",
        "result": {},
        "token_usage": 1,
        "duration_ms": 1,
    },
    "swarm.discover": {"swarm": "test-team"},
    "task.create": {
        "task_id": "soil",
        "message": {"role": "user", "content": "Dry?"},
        "caller": "mia",
        "is_answer": False,
    },
    "task.get": {"task_id": "soil", "with_number": True},
    "task.list": {"state": "failed", "page_size": 1, "page_token": "9", "with_number": True},
    "task.cancel": {"task_id": "soil", "reason": "over"},
    "task.subscribe": {"task_id": "soil"},
}
INSTEAD = {"messages": "message"}  # one of the two
ANSWERING = {"number"}  # only right where a task waits: tests/linux/tasks
OTHER = {  # content under a key that had another
    "tool.call": {"arguments": {"text": "b"}},
    "memory.store": {"entries": [{"content": "second", "key": "a"}]},
    "swarm.delegate": {"task": {"description": "Listen."}},
    "task.create": {"message": {"role": "user", "content": "Wet?"}},
}


def code(operator, method: str, params) -> int:
    """Return the code of the error that answers, 0 for a result."""
    answer = operator.call("claw." + method, params)
    return answer["error"]["code"] if "error" in answer else 0


@pytest.fixture
def operator(tmp_path):
    with Operator(World({"setup": {"manifest": "conf-allow-all"}, "input": {}}, tmp_path)) as one:
        yield one


def line(row: list) -> str:
    name, taken, needs, key, section, *parameters = row
    said = ", ".join("`%s`" % one for one in parameters)
    key = "-" if key == "-" else "`%s`" % key
    return f"| `claw.{name}` | {taken} | {needs} | {key} | {section} | {said} |"


def test_each_row_is_whole_and_there_once():
    names = [row[0] for row in ROWS]
    assert len(set(names)) == len(names)
    assert set(TAKEN.values()) <= {"first", "start", "open", "ready", "-"}
    assert {name for name in names if TAKEN[name] != "-"} == set(GOOD)
    for row in ROWS:
        if TAKEN[row[0]] != "-":
            key = [] if row[3] == "-" else [row[3].partition(".")[0]]
            said = {one.rstrip("?") for one in row[5:] + key}
            assert said - ANSWERING == set(GOOD[row[0]]) | set(INSTEAD) & said, row[0]


def test_the_page_has_each_row():
    table = PAGE.read_text().partition("|---|---|---|---|---|---|\n")[2].split("\n\n")[0].rstrip()
    assert table == "\n".join(map(line, ROWS))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_method_of_the_specification_has_a_clause(row):
    name, section = row[0].rpartition(".")[2], row[4]
    clauses = tomllib.loads((HERE / "clauses.toml").read_text())["clause"]
    titles = [one["title"] for one in clauses if one["id"].rpartition("-")[0] == section]
    assert section == "-" or any(re.search(r"\b%s\b" % name, title) for title in titles)


def test_each_method_is_taken_in_the_states_that_its_row_names(operator):
    requests = [name for name in GOOD if name not in ("initialize", "shutdown")]
    for name in [*requests, "shutdown"]:
        assert code(operator, name, GOOD[name]) == REQUEST, name
    bad = dict(GOOD["initialize"], protocolVersion="9.0.0")
    assert code(operator, "initialize", bad) == VERSION
    for name in [*requests, "shutdown"]:
        assert code(operator, name, GOOD[name]) == (0 if TAKEN[name] == "start" else REQUEST), name
    assert code(operator, "initialize", GOOD["initialize"]) == 0
    for name in requests:
        params = {key: value for key, value in GOOD[name].items() if key != "actor"}
        assert code(operator, name, params) == 0, name
    for name in TAKEN:
        if TAKEN[name] == "-":
            assert code(operator, name, {}) == REQUEST, name
    assert code(operator, "nothing", {}) == UNKNOWN
    assert code(operator, "shutdown", GOOD["shutdown"]) == 0
    for name in [*requests, "shutdown"]:
        assert code(operator, name, GOOD[name]) == (0 if TAKEN[name] == "start" else REQUEST), name
    assert code(operator, "initialize", GOOD["initialize"]) == 0


def test_each_parameter_is_needed_or_may_be_left_out(operator):
    needed = {row[0]: [one for one in row[5:] if not one.endswith("?")] for row in ROWS}
    for name in needed["initialize"]:
        assert code(operator, "initialize", without(GOOD["initialize"], name)) == PARAMS, name
    assert code(operator, "initialize", GOOD["initialize"]) == 0
    for method in GOOD:
        if TAKEN[method] == "ready":
            for name in needed[method] + [INSTEAD["messages"]] * (method == "task.create"):
                found = code(operator, method, without(GOOD[method], name))
                assert found == PARAMS, (method, name)
            least = {key: GOOD[method][key] for key in GOOD[method] if key in needed[method]}
            for key in ("context", "task_id", "message"):
                if key in GOOD[method]:
                    least[key] = GOOD[method][key]
            assert code(operator, method, least) == 0, method
    assert code(operator, "shutdown", {}) == 0


def test_a_key_that_came_before_runs_nothing_else(operator):
    assert code(operator, "initialize", GOOD["initialize"]) == 0
    keys = {row[0]: row[3] for row in ROWS if row[3] != "-"}
    assert set(keys) == set(OTHER)
    for method, other in OTHER.items():
        params = without(GOOD[method], "actor")
        assert code(operator, method, params) == 0
        assert code(operator, method, params) == 0
        assert code(operator, method, dict(params, **other)) == PARAMS, method
        path, key = keys[method].rpartition(".")[::2]
        holder = without(params[path], key) if path else without(params, key)
        least = dict(params, **{path: holder}) if path else holder
        assert code(operator, method, least) == PARAMS, method


def test_what_the_image_does_not_need_is_unknown(tmp_path):
    with Operator(World({"setup": {"manifest": "min-l1"}, "input": {}}, tmp_path)) as operator:
        assert code(operator, "initialize", dict(GOOD["initialize"], manifest=CONF)) == 0
        for name, _, needs, *_ in ROWS:
            if name in GOOD and needs != "-":
                assert code(operator, name, GOOD[name]) == UNKNOWN, name


def without(params: dict, name: str) -> dict:
    return {key: value for key, value in params.items() if key != name}
