"""How well sentences become rules: ``python tests/helpers/taught_sentences.py [dev|held]`` plays a
set of benchmarks/teach against the agents of ``SCENES`` and prints what was wrong, and one row.

A line of a set: ``say``; ``row``, the wanted one, null for a sentence that teaches nothing; or
``asks``, where only a question is right; or ``refused``, where one sentence says why not.  A
question in place of the right row is honest; a row that is not the wanted one is wrong.
"""

import json
import sys
import tempfile
from pathlib import Path
from unittest import mock

import rules_world
from taught_world import PATTERNS, Pupil

from clawlite.core.teach.draft import World as DraftWorld
from clawlite.core.teach.draft import compile_row

SETS = Path(__file__).parents[2] / "benchmarks/teach"
WRITE = "claw://registry/clawlite/digital-write@1.0.0"
_OF = '[[reading]]\nname = "%s"\ntool = "read-%s"\nfield = "%s"\nevery = "60s"\n'


def _tool(name: str, properties: dict) -> dict:
    schema = {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"inline": {"name": name, "description": name, "input_schema": schema}}


def _sensor(name: str) -> dict:
    tool = _tool("read-" + name, {})
    tool["inline"]["annotations"] = {"readOnlyHint": True}
    return tool


def _code(names: list) -> str:
    lines = []
    for name, arguments in names:
        lines.append(
            '\n\ndef %s(%s):\n    """Do it."""\n    return {"value": 1}\n'
            % (name.replace("-", "_"), arguments)
        )
    return "".join(lines)


_SENSORS = {
    "greenhouse": (("air_temp", "air"), ("outside_temp", "outside")),
    "coop": (("light", "light"), ("water_level", "tank")),
}
_ACTS = {
    "greenhouse": (("open-window", {}, ""), ("close-window", {}, "")),
    "coop": (
        ("open-coop", {}, ""),
        ("close-coop", {}, ""),
        ("feed", {"grams": {"type": "integer", "minimum": 1, "maximum": 100}}, "grams: int"),
        (
            "set-lamp",
            {"color": {"type": "string", "enum": ["red", "green", "white"]}},
            "color: str",
        ),
    ),
}


def pupil_of(scene: str, folder) -> Pupil:
    """Return the agent of *scene*: "greenhouse" or "coop"."""
    sensors, acts = _SENSORS[scene], _ACTS[scene]
    rules = "".join(_OF % (name, tool, "value") for name, tool in sensors)
    rules += rules_world.READING + PATTERNS if scene == "greenhouse" else ""
    tools = [_sensor(tool) for _, tool in sensors] + [_tool(name, part) for name, part, _ in acts]
    code = _code(
        [("read-" + tool, "") for _, tool in sensors]
        + [(name, arguments) for name, _, arguments in acts]
    )
    pins = '[[pins]]\nname = "door"\npin = 4\nkind = "input"\npull = "up"\n'
    pins += '[[pins]]\nname = "button"\npin = 5\nkind = "input"\npull = "up"\n'
    pins += '[[pins]]\nname = "heater"\npin = 6\nkind = "output"\n'
    with mock.patch.object(rules_world, "PINS", pins):
        return Pupil(
            folder,
            rules,
            settings="place = [52.5, 13.4]\n[teach]\n",
            more_tools=[*tools, WRITE],
            more_code=code,
        )


def play(pupil: Pupil, say: str) -> dict:
    """Return what becomes of a sentence: {"row"}, {"asked"}, {"refused"} or {}."""
    before = len(pupil.rows())
    text = pupil.say(say)
    waiting = list(pupil.agent.waiting)
    if waiting or len(pupil.rows()) > before:
        if waiting:
            row = dict(waiting[0].approval.arguments)
            pupil.answer(False)
        else:
            row = dict(pupil.rules.taught.entries[-1]["row"], name="")
            pupil.say("/rules forget " + pupil.rules.taught.entries[-1]["name"])
        row.pop("name")
        return {"row": row}
    if text.startswith("the rule:"):
        return {"refused": text}
    return {"asked": text} if "no rule for that" not in text and not pupil.acted else {}


def judge(line: dict, got: dict) -> str:
    """Return "right", "asked" (a question where a row was wanted) or "wrong"."""
    if line.get("asks") or line.get("refused"):
        return "right" if "asked" in got or "refused" in got else "wrong"
    if line["row"] is None:
        return "wrong" if got.get("row") is not None else "right"
    if "row" in got:
        return "right" if _plain(got["row"]) == _plain(line["row"]) else "wrong"
    return "asked" if "asked" in got else "wrong"


def _plain(row: dict) -> dict:
    return {key: value for key, value in row.items() if value != {}}


def is_beyond(pupil: Pupil, row: dict) -> bool:
    """Return whether *row* is one that policy would never let through."""
    world = DraftWorld(pupil.agent.image, pupil.rules.own_section)
    try:
        compile_row(dict(row, name="x"), world)
    except Exception:
        return True
    return False


def measure(name: str, shows: bool = False) -> dict:
    """Return the row of a set."""
    lines = [json.loads(one) for one in (SETS / (name + ".jsonl")).read_text().splitlines()]
    counts = {"set": name, "sentences": len(lines), "right": 0, "asked": 0, "wrong": 0, "beyond": 0}
    with tempfile.TemporaryDirectory() as folder:
        pupils = {}
        for line in lines:
            scene = line["scene"]
            if scene not in pupils:
                pupils[scene] = pupil_of(scene, Path(folder) / scene)
            pupil = pupils[scene]
            pupil.acted.clear()
            pupil.lessons._open.clear()
            got = play(pupil, line["say"])
            verdict = judge(line, got)
            counts[verdict] += 1
            counts["beyond"] += "row" in got and is_beyond(pupil, got["row"])
            if shows and verdict != "right":
                print(verdict, line["say"], "\n    ", got)
    return counts


if __name__ == "__main__":
    print(json.dumps(measure((sys.argv[1:] or ["dev"])[0], True)))
