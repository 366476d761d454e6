"""``make board-profile`` counts what really runs on MicroPython."""

import ast
import json

import board_profile
import pytest
from run_core_micropython import command

from clawlite.host.firmware import cache, firmware
from clawlite.host.firmware.rare_functions import functions


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Return ({number: (module, name, tree)}, {transcript: (numbers, modules)}) of all."""
    if missing := [name for name in ("micropython", "mpy-cross") if command(name) is None]:
        pytest.skip(f"no {missing[0]} command")
    tree = tmp_path_factory.mktemp("profile")
    numbered = board_profile.instrument(tree)
    return numbered, board_profile.play_all(tree)


@pytest.fixture
def played(everything):
    """Return what ``everything`` returns, of one transcript."""
    numbered, found = everything
    return numbered, {"least-operator": found["least-operator"]}


def test_functions_that_ran_are_counted(played):
    numbered, found = played
    ran = {numbered[number][:2] for number in found["least-operator"][0]}
    assert {("main", "main"), ("session", "Session.__init__"), ("agent", "Agent.__init__")} <= ran
    assert not ran & {("console", "Console.greet"), ("line", "Line.hello")}


def test_the_report_names_groups_and_what_nobody_calls(played):
    numbered, found = played
    text = board_profile.report(numbered, found)
    assert "Played: least-operator\n" in text
    held, groups = text.split("\n\n")[1:]
    # ends what runs when memory is at an end: never outlined, and never called here
    assert "  oom_unwind.unwind" in held and " line.Line" not in held
    assert (
        "\n     1  opening\n" in groups
        and "     0  spending             meter.Meter.count_answer" in groups
    )


def test_no_heartbeat_is_counted_on_a_busy_machine(tmp_path):
    numbered = board_profile.instrument(tmp_path)
    number = next(n for n, of in numbered.items() if of[:2] == board_profile.BY_THE_CLOCK)
    text = (tmp_path / "clawlite/core/protocol/session.py").read_text()
    assert f"_ran.add({number})\n\n    def " in text and "self._beat(" not in text


def test_an_agent_that_no_board_runs_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(board_profile.pico_stack, "program", lambda *_, **more: ["false"])
    assert board_profile.play(tmp_path, "least-operator") == ""


def test_what_is_written_is_what_ran(played, tmp_path):
    path = tmp_path / "groups.json"
    path.write_text(firmware.GROUPS.read_text())
    board_profile.write(*played, path)
    before, after = json.loads(firmware.GROUPS.read_text()), json.loads(path.read_text())
    for table in ("units", "rare", "kept"):
        assert after[table] == before[table]
    assert after["played"] == ["least-operator"]
    assert after["calls"]["opening"][0] == 1 and "main.attempt" not in after["calls"]["opening"]
    assert after["calls"]["spending"] == [0, "meter.Meter.count_answer"]
    # once is enough: what becomes seldom is no longer held, and is counted as a group
    moved = {f"{module}.{name}" for module, names in after["seldom"].items() for name in names}
    assert moved and not moved & {*after["idle"]} and after["calls"]["seldom"][0] == 0
    assert "seldom" not in firmware.RARE


def test_what_every_board_would_hold_and_nobody_calls_becomes_seldom(everything):
    """With one transcript, much is never called; what is too short, or must be there, stays."""
    numbered, found = everything
    one = {"least-operator": found["least-operator"]}
    table = board_profile.seldom(numbered, one, {"errors.wrap_error": "a reason"})
    assert "oom_unwind" in table and "errors" not in table
    assert "unwind" in table["oom_unwind"] and "boardclock" not in table  # 49 bytes
    assert table == dict(sorted(table.items()))


def test_what_is_kept_is_there_and_has_a_reason(everything):
    numbered, found = everything
    tables = json.loads(firmware.GROUPS.read_text())
    never = [f"{module}.{name}" for module, name, _ in board_profile.idle(numbered, found)]
    for name, why in tables["kept"].items():
        assert name in never, f"kept: {name} is gone or a transcript calls it; take it out"
        assert why.endswith(".")


def test_what_is_checked_in_is_what_the_command_makes(everything, tmp_path):
    numbered, found = everything
    path = tmp_path / "groups.json"
    path.write_text(firmware.GROUPS.read_text())
    board_profile.write(numbered, found, path)
    now, then = json.loads(path.read_text()), json.loads(firmware.GROUPS.read_text())
    for table in now:
        assert now[table] == then[table], f"{table}: run make board-profile"


def test_what_is_forgotten_after_use_is_never_kept_without_having_run(everything):
    """The list in unload.py is kept by hand; a module in it that stays loaded is held by another
    one, and the list would say what is not so."""
    numbered, found = everything
    tree = ast.parse(firmware.sources()["unload"].read_text())
    listed = next(
        node.value.value.split()
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "_OCCASIONAL"
    )
    modules = board_profile.alone(numbered, found)
    assert [name for name in listed if name not in modules] == []
    assert [name for name in listed if modules[name][1] > modules[name][0]] == []


def test_the_tables_and_the_sources_agree():
    """A name that is in no source would be outlined nowhere, and a group without a count was added
    after the last ``make board-profile``."""
    tables = json.loads(firmware.GROUPS.read_text())
    assert firmware.GROUPS.read_text() == board_profile.as_text(tables)
    names = {}
    for module, path in firmware.sources().items():
        body = ast.parse(path.read_text()).body
        classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
        names[module] = classes | {name for name, _ in functions(body)}
    for unit, of in tables["units"].items():
        for module in of:
            assert module in names, f"units: {unit}: no board has a module {module}"
    for table in ("rare", "seldom"):
        of_table = tables[table].values() if table == "rare" else [tables[table]]
        for module, listed in [row for of in of_table for row in of.items()]:
            for name in listed:
                assert name in names.get(module, ()), f"{table}: there is no {module}.{name}"
    assert list(tables["calls"]) == list(firmware.RARE)
    assert set(tables["played"]) <= set(board_profile.transcripts())
    for loads, *idle in tables["calls"].values():
        assert loads <= len(tables["played"])
        for name in idle:
            module, _, function = name.partition(".")
            assert function in names[module], f"{name} is gone: run make board-profile"


def test_linked_modules_are_not_kept_when_the_tables_change(tmp_path, monkeypatch):
    (tmp_path / "groups.json").write_text("{}")
    monkeypatch.setattr(cache, "__file__", str(tmp_path / "cache.py"))
    before = cache.key({})
    (tmp_path / "groups.json").write_text('{"rare": {}}')
    assert cache.key({}) != before
