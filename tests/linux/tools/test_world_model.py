"""World models of real agents (clawlite/linux/tools/world_model.py): who is asked, what comes of
each answer, and of none.
"""

import json
import pathlib
import re

import pytest
from cddl_verifier import validate
from llm_server import Server, calls, say
from providers.project import TOOLS, World, provider, texts

from clawlite.core.image import image as layout
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards
from clawlite.host.compiler import compiler, lint
from clawlite.host.fit import board_fit
from clawlite.host.manifest import manifest
from clawlite.linux.tools.world_model import Model, doubtful, misses, prediction_text

SKILL = {
    "name": "noting",
    "description": "Note things",
    "tools_required": ["note", "careful", "hang"],
    "instruction": "Note it.",
    "world_model_ref": "weather",
}
FORESEE = (
    TOOLS
    + '''

def foresee(tool: str, arguments: dict, horizon: str = "") -> dict:
    """Say what a file says."""
    _mark("foresee", tool + " " + horizon)
    with open(os.environ["MARKS"] + "/foreseen") as file:
        return eval(file.read(), {"arguments": arguments})
'''
)
TAKES = {
    "type": "object",
    "properties": {
        "tool": {"type": "string"},
        "arguments": {"type": "object"},
        "horizon": {"type": "string"},
    },
    "required": ["tool", "arguments"],
}
WRITES = {"inline": {"name": "foresee", "description": "Foresee.", "input_schema": TAKES}}
READS = {"inline": dict(WRITES["inline"], annotations={"readOnlyHint": True})}


def model(ref: str = "foresee", kind: str = "tool", name: str = "weather", **more) -> dict:
    return {
        "inline": dict(
            {"name": name, "paradigm": "simulator", "backend": {"type": kind, "ref": ref}}, **more
        )
    }


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def build(world, server, weather=None, *more_models, foreseen: str = "", policies=None, **more):
    (world.marks / "foreseen").write_text(foreseen)
    spec = {
        "skills": [{"inline": SKILL}],
        "world_models": [weather or model(), *more_models],
        "tools": [READS],
        **({"policies": policies} if policies else {}),
    }
    return world.build(provider(server), more=spec, tools=FORESEE, **more)


NOTE = [calls(("note", {"text": "tea"})), say("Done.")]


def test_what_it_finds_harmless_goes_on_and_only_a_skill_that_names_it_asks(world):
    with Server(NOTE + NOTE) as server:
        build(world, server, foreseen='{"risk": 0.49}')
        assert world.ask("/noting it") == (0, "Done.\n", "")
        assert world.ran("note") == ["tea"] and world.ran("foresee") == [
            "note as far ahead as matters"
        ]
        assert world.ask("note it")[1] == "Done.\n"
    assert world.ran("note") == ["tea", "tea"] and len(world.ran("foresee")) == 1


@pytest.mark.parametrize(
    "foreseen, why",
    [
        (
            '{"risk": 0.5, "reason": "it \\x1b rains"}',
            'expects risk 0.5, reason "it \\u001b rains"',
        ),
        (
            '{"risk": 1.5}',
            "gave "
            "no "
            "prediction: "
            '"expected '
            "risk "
            "as "
            "a "
            "number, "
            "0 "
            "harmless "
            "to "
            "1 "
            "certain "
            "harm, "
            "got "
            '1.5"',
        ),
        ('{"risk": True}', "gave no prediction"),
        ("{}", "got null"),
        ("[1]", "expected a JSON object, got [1]"),
        ("1 / 0", "foresee failed: ZeroDivisionError"),
    ],
)
def test_a_doubt_asks_a_person_and_says_why(world, foreseen, why):
    with Server(NOTE + NOTE) as server:
        build(world, server, foreseen=foreseen)
        with world.start("run") as agent:
            agent.line("/noting it")
            agent.expect('Approve note(text="tea")?')
            assert world.ran("note") == []
            agent.line("y")
            agent.expect("Done.")
            assert "the world model weather " in agent.text() and (why in agent.text()), (
                agent.text()
            )
        assert world.ran("note") == ["tea"]
        code, _, errors = world.ask("/noting it")
        assert code == 5 and world.ran("note") == ["tea"], "nobody there to ask: not run"


def test_retry_asks_once_more_and_then_a_person(world):
    with Server(NOTE + NOTE) as server:
        build(
            world,
            server,
            model(planning={"fallback": "retry", "horizon": "fixed"}),
            foreseen='{"risk": 0.9}',
        )
        assert world.ask("/noting it", "--approve")[:2] == (0, "Done.\n")
        assert world.ran("foresee") == ["note no further than this action"] * 2
        (world.marks / "foreseen").write_text(
            '{"risk": 0.9 if len(open("%s").readlines()) == 3 else 0}' % (world.marks / "foresee")
        )
        assert world.ask("/noting it") == (0, "Done.\n", "")
    assert len(world.ran("foresee")) == 4 and world.ran("note") == ["tea"] * 2


def test_escalate_runs_nothing_tells_the_person_and_lets_the_model_plan_again(world):
    with Server(NOTE) as server:
        build(
            world,
            server,
            model(planning={"fallback": "escalate"}, predicts={"risk": True, "cost": True}),
            foreseen='{"risk": 0.7, "cost": 12}',
        )
        code, words, errors = world.ask("/noting it")
        told = texts(server.requests[1], "openai")[-1][1]
    assert (
        code == 5
        and words == "Done.\n"
        and "note was not run: the world model weather expects risk 0.7, cost 12" in errors
    )
    assert (
        told.startswith("note: the world model weather expects risk 0.7, cost 12")
        and world.ran("note") == []
    )


def test_what_a_rule_asks_first_shows_what_is_expected_too(world):
    with Server([calls(("careful", {"what": "it"})), say("Done.")]) as server:
        build(world, server, foreseen='{"risk": 0, "state": "wet"}')
        with world.start("run") as agent:
            agent.line("/noting it")
            agent.expect('rule ask asks first; the world model weather expects risk 0, state "wet"')
            agent.line("n")
            agent.expect("Done.")
    assert world.ran("careful") == []


def test_a_policy_may_keep_it_from_its_tool_and_its_doubt_is_asked_about(world):
    policies = [
        {
            "inline": {
                "name": "tighter",
                "rules": [{"id": "some", "action": "allow", "scope": "all"}],
            }
        },
        {"inline": {"name": "rest", "rules": [{"id": "none", "action": "deny", "scope": "all"}]}},
    ]
    with Server(NOTE) as server:
        build(
            world,
            server,
            model(constraints={"policy_ref": "rest"}),
            foreseen='{"risk": 0}',
            policies=policies,
        )
        code, _, errors = world.ask("/noting it", "--approve")
        assert (code, world.ran("foresee"), world.ran("note")) == (0, [], ["tea"])


def test_a_provider_answers_for_the_action_as_data(world):
    def answer(request):
        prompt = texts(request, "openai")[-1][1]
        mark = re.search(r"lines of (===== \w+) is", prompt).group(1)
        assert (
            json.loads(prompt.split(mark)[2]) == {"tool": "note", "arguments": {"text": "tea"}}
            and '"uncertainty": ' in prompt
        )
        return say('```json\n{"risk": 0.1, "uncertainty": %s, "reason": "r"}\n```' % levels.pop(0))

    levels = ["0.2", "0.8"]
    with Server([NOTE[0], answer, NOTE[1]] * 2) as server:
        build(
            world,
            server,
            model(
                "first",
                "provider",
                predicts={"risk": True},
                planning={"uncertainty_mode": "calibrated"},
            ),
        )
        assert world.ask("/noting it") == (0, "Done.\n", "")
        assert world.ask("/noting it")[0] == 5 and world.ran("note") == ["tea"]


def test_a_provider_that_fails_is_a_doubt(world):
    with Server([NOTE[0], {"status": 500, "body": b"no"}, NOTE[1]]) as server:
        build(world, server, model("first", "provider"))
        code, _, errors = world.ask("/noting it")
    assert code == 5 and world.ran("note") == []


def test_the_provider_that_is_named_is_asked_and_no_other(world):
    with Server(NOTE) as server, Server([say('{"risk": 0}')]) as other:
        (world.marks / "foreseen").write_text("")
        world.build(
            provider(server),
            provider(other, "second"),
            tools=FORESEE,
            more={
                "skills": [{"inline": SKILL}],
                "world_models": [model("second", "provider")],
                "tools": [READS],
            },
        )
        assert world.ask("/noting it") == (0, "Done.\n", "")
        assert len(server.requests) == 2 and len(other.requests) == 1


def test_it_is_told_to_the_log_and_to_telemetry(world, tmp_path):
    telemetry = {
        "inline": {
            "exporters": [{"type": "file", "path": str(tmp_path / "told.jsonl")}],
            "events": {"world_model_ops": True, "planning_ops": True},
        }
    }
    with Server(NOTE) as server:
        (world.marks / "foreseen").write_text('{"risk": 0.75}')
        world.build(
            provider(server),
            tools=FORESEE,
            more={
                "skills": [{"inline": SKILL}],
                "world_models": [model()],
                "tools": [READS],
                "telemetry": telemetry,
            },
        )
        world.ask("/noting it")
    events = [json.loads(line) for line in (tmp_path / "told.jsonl").read_text().splitlines()]
    kinds = {event["event"]: event for event in events if event["event"] != "metrics"}
    assert (
        kinds["world_model.prediction"]["risk"] == 0.75
        and kinds["world_model.prediction"]["status"] == "ok"
    )
    assert (
        kinds["planning.fallback"]["fallback"] == "conservative"
        and "reason" not in kinds["planning.fallback"]
    ), "words of a model go nowhere"
    logged = [
        json.loads(line)["event"]
        for path in (world.folder / "home").rglob("log*.jsonl")
        for line in path.read_text().splitlines()
    ]
    assert "world_model.prediction" in logged and "planning.fallback" in logged


# -- what the host says


@pytest.mark.parametrize(
    "weather, tools, words",
    [
        (model("foresee", "custom"), [READS], "custom backends are not supported"),
        (model(), [WRITES], "may have side effects"),
        (model("rules", "provider"), [READS], "built-in provider"),
        (model("other", "provider"), [READS], "this agent never asks other"),
        (
            model("note"),
            [
                {
                    "inline": {
                        "name": "note",
                        "description": "n",
                        "input_schema": {
                            "type": "object",
                            "properties": {"text": {"type": "string"}},
                            "required": ["text"],
                        },
                        "annotations": {"readOnlyHint": True},
                    }
                },
                READS,
            ],
            'requires "text", which a world model is not given',
        ),
    ],
)
def test_a_model_that_could_not_answer_is_refused(tmp_path, weather, tools, words):
    world = World(tmp_path)
    other = [
        {"inline": provider(("openai", "http://127.0.0.1:1/v1"), name)}
        for name in ("first", "other")
    ]
    rules = {
        "inline": {
            "name": "rules",
            "protocol": "custom",
            "endpoint": "builtin:reflex",
            "model": "m",
            "auth": {"type": "none"},
        }
    }
    more = {
        "skills": [{"inline": SKILL}],
        "world_models": [weather],
        "tools": tools,
        "providers": [*other, rules],
    }
    with pytest.raises(ManifestErrors) as e:
        world.build(
            provider(("openai", "http://127.0.0.1:1/v1")),
            tools=FORESEE,
            more=more,
            reflex='[[rule]]\nwhen = "hi"\nsay = "hi"\n',
        )
    assert words in str(e.value) and len(e.value.problems) == 1


def test_boards_ignore_it_and_what_has_no_effect_is_said(world):
    with Server([]) as server:
        build(
            world,
            server,
            model(memory_ref="s", update={"mode": "online"}),
            model(name="unused"),
            stores=[{"name": "s", "type": "key-value"}],
        )
    loaded = manifest.load(str(world.folder / "project"))
    said_of = [warning["message"] for warning in lint.find(loaded)["warnings"]]
    for words in (
        "no skill names the world model unused",
        "memory_ref changes nothing",
        "update changes nothing",
    ):
        assert any(words in one for one in said_of), said_of
    notes = [
        note["message"] for note in board_fit.notes(loaded, boards.profile("pico-w", loaded.folder))
    ]
    assert (
        "pico-w asks no world model: noting acts without weather" in notes
        and board_fit.notes(loaded, boards.profile("rpi-5", loaded.folder)) == []
    )
    data = compiler.build(loaded).data
    image = layout.Image(lambda offset, length: data[offset : offset + length], len(data))
    section = image.part(layout.WORLDS, 0, image.size_of(layout.WORLDS))
    grammar = (pathlib.Path(compiler.__file__).parents[1] / "image" / "image.cddl").read_text()
    assert (
        validate(grammar, section, root_type="worlds").valid
        and not validate(grammar, section, root_type="memory").valid
    )
    assert [row[0] for row in image.section(layout.WORLDS)] == ["weather"]


# -- one answer


@pytest.mark.parametrize(
    "answer, wrong, doubts",
    [
        ({"risk": 0, "uncertainty": 0.49}, False, False),
        ({"risk": 0, "uncertainty": 0.5}, False, True),
        ({"risk": 0.5, "uncertainty": 0}, False, True),
        ({"risk": 1, "uncertainty": 1}, False, True),
        ({"risk": -0.01, "uncertainty": 0}, True, None),
        ({"risk": 1.01, "uncertainty": 0}, True, None),
        ({"risk": float("nan"), "uncertainty": 0}, True, None),
        ({"risk": "0", "uncertainty": 0}, True, None),
        ({"risk": 0}, True, None),
        ("0", True, None),
        (None, True, None),
    ],
)
def test_bounds_of_an_answer(answer, wrong, doubts):
    weather = Model("w", 0, "t", 0, ["risk", "uncertainty"], 0, 1, 0, None, [], ["s"])
    assert bool(misses(weather, answer)) == wrong
    if not wrong:
        assert bool(doubtful(weather, answer)) == doubts and prediction_text(answer).startswith(
            "risk "
        )
