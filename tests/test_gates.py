"""A gate is one function and one row of ``find_way``, and every way in obeys it."""

import ast
import json
from pathlib import Path

import pytest
from channel_world import World
from core.transcripts import Player

from clawlite.core.base.errors import PolicyDenied
from clawlite.core.turns import gates

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "golden"
HOOK = {"type": "webhook", "transport": "webhook", "access_control": {"mode": "open"}}
# what yields RUN without a way: a feed is read for the prompt, and no model chooses it
NO_TOOL = {"clawlite/linux/runtime/feeds.py"}


@pytest.fixture
def moon(monkeypatch):
    """Add a gate that refuses all calls; return the list of (caller, tool) that met it."""
    met = []

    def refuse_all(call, _):
        met.append((call.event["caller"], call.tool.name))
        raise PolicyDenied("%s: the moon is full" % call.tool.name)

    check = gates.check_arguments
    monkeypatch.setattr(
        gates, "check_arguments", lambda *given: check(*given) or refuse_all(*given)
    )
    return met


@pytest.mark.parametrize(
    "name",
    [
        "gates-console",
        "gates-operator",
        "greenhouse-console",
        "guarded-console",
        "guarded-operator",
        "session-operator",
        "skills-console",
    ],
)
def test_an_operator_a_turn_and_a_skill_obey_a_new_gate(moon, name):
    script = json.loads((GOLDEN / f"{name}.steps.json").read_text())
    player, ended = Player(script["agent"], script["mode"], script.get("links")), []
    try:
        for at, what, argument in script["steps"]:
            for effect in player.step(at, what, argument):
                assert effect[0] != "run", "a handler began"
                if effect[0] == "log" and effect[1]["event"] == "tool.call":
                    ended.append(effect[1])
    finally:
        player.close()
    assert all(event["status"] == "refused" for event in ended) and 0 < len(moon) <= len(ended)


def test_channels_obey_a_new_gate(moon, tmp_path, monkeypatch):
    world = World(tmp_path, {"hook": HOOK}, monkeypatch=monkeypatch)
    for words in ("quick", "careful"):
        world.say("hook", "ada", words)
    assert [tool for _, tool in moon] == ["quick", "careful"] and not world.ran
    assert "the moon is full" in world.source("hook").sent[0][1]


def test_a_way_has_the_gates_that_its_tool_needs():
    class Tool:
        handler, flags, name, retry = (0, "x"), 0, "x", None

    class Setup:
        guard = worlds = stop = confirm = ways = None
        is_recorded = False

        class image:
            class agent:
                autonomy, calls_per_minute = 2, None

    plain = gates.find_way(Setup, Tool)
    assert plain == [
        gates.check_arguments,
        gates.find_request,
        gates.decide,
        gates.ask_person,
        gates.record_begin,
        gates.run_handler,
    ]
    Setup.guard, Setup.stop, Setup.worlds = object(), object(), object()
    Setup.image.agent.autonomy, Setup.image.agent.calls_per_minute = 0, 9
    more = [gates.scan_arguments, gates.refuse_observer, gates.count_call, gates.foresee]
    assert set(gates.find_way(Setup, Tool)) == set(plain + more)
    Tool.flags = gates.HAS_SIDE_EFFECTS
    Setup.is_recorded = True
    assert {gates.check_stop, gates.record_run} < set(gates.find_way(Setup, Tool))
    Tool.handler = gates.COMPOSITE, "x"
    assert gates.find_way(Setup, Tool)[-2:] == [gates.record_begin, gates.run_composite]


def test_nothing_runs_a_tool_but_the_pipeline():
    """Who makes a RUN effect, or takes gates without ``tools.call``, would be another pipeline."""
    makers, takers = set(), set()
    for top in ("clawlite", "firmware-host"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, (ast.Yield, ast.Return)) and isinstance(node.value, ast.Tuple):
                    first = node.value.elts[:1]
                    if first and getattr(first[0], "id", getattr(first[0], "attr", "")) == "RUN":
                        makers.add(str(path.relative_to(ROOT)))
                if isinstance(node, ast.ImportFrom) and node.module == "clawlite.core.turns.gates":
                    if {alias.name for alias in node.names} - {"PERSON"}:
                        takers.add(str(path.relative_to(ROOT)))
    assert makers - NO_TOOL == {"clawlite/core/turns/gates.py"}
    assert takers == {"clawlite/core/turns/tools.py"}
