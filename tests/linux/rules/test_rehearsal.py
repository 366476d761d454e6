"""A rehearsal says what happened, and nothing acts in it."""

import json

import pytest
from agents import clawlite
from rules_world import ALLOW, ASK, EPOCH_S, READING, RULE, World, project

from clawlite.linux.files.files import image_of
from clawlite.linux.rules.rehearsal import NOTHING_ACTS, Rehearsal

WEEK = 7 * 86400
RULES = (
    READING.replace("60s", "10m")
    + 'keep = "14d"\n'
    + RULE
    + 'at = ["07:00", "19:00"]\nif = ["soil < 30", "age(soil) < 30m"]\nat_most = "1/day"\n'
    + RULE.replace('"r"', '"wet"')
    + 'on = "soil"\nabove = 60\nagain_below = 40\nfor = "1h"\n'
    + RULE.replace('"r"', '"night"')
    + 'cron = "30 2 * * MON"\n'
)


def played(world, answers=(), answer=None) -> Rehearsal:
    samples = world.rules.samples.since(0)
    one = Rehearsal(image_of(world.data, "test"), samples, EPOCH_S, world.now_s(), answers, answer)
    one.play()
    return one


def week(world):
    for hour in range(7 * 24):
        world.soil = 20 + (hour * 37 % 97) * (hour % 30 > 12)
        world.move(3600, 60000)


def test_a_rehearsal_of_a_week_is_what_happened(tmp_path):
    world = World(tmp_path, RULES)
    week(world)
    happened = [(one["rule"], one.get("at"), one["values"]) for one in world.events("rule.run")]
    assert len(happened) > 8 and {one[0] for one in happened} == {"r", "wet", "night"}
    one = played(world)
    assert [(run["rule"], run["values"]) for run in one.runs] == [
        (name, values) for name, _, values in happened
    ]
    acted = [at for _, _, at in world.acted]
    assert all(abs(a - run["at"]) <= 60 for a, run in zip(acted, one.runs))
    assert {run["rule_id"] for run in one.runs} == {"all"}


def test_people_answer_as_it_is_on_record(tmp_path):
    world = World(tmp_path, RULE + 'at = "09:00"\n', ASK)
    world.move(3601)
    asked_s = world.now_s()
    assert [run["status"] for run in played(world).runs] == []  # it still waits
    world.move(700)
    assert [run["status"] for run in played(world).runs] == ["expired"]
    said = [(asked_s + 60, "water", True)]
    [run] = played(world, said).runs
    assert (run["status"], run["approval"]) == ("ok", "approved")
    assert abs(run["at"] - asked_s - 60) <= 1
    assert [run["status"] for run in played(world, [(asked_s, "water", False)]).runs] == ["denied"]
    assert [run["status"] for run in played(world, answer=True).runs] == ["ok"]
    assert world.acted == []


@pytest.mark.parametrize("as_json", [True, False])
def test_the_command_plays_a_file(tmp_path, as_json):
    project(tmp_path / "p", READING + RULE + 'on = "soil"\nbelow = 30\n', ALLOW)
    assert clawlite("build", "-o", "claw.cbor", cwd=tmp_path / "p").returncode == 0
    lines = [
        {"at": "2026-02-20T%02d:%02d:00Z" % (hour, minute), "reading": "soil", "value": 60 - hour}
        for hour in range(24)
        for minute in range(0, 60, 2)
    ] + [
        {"at": "2026-02-21T%02d:00:00Z" % hour, "reading": "soil", "value": 10}
        for hour in range(24)
    ]
    (tmp_path / "p/s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    words = ["rehearse", "--readings", "s.jsonl", "--since", "2d"] + ["--json"] * as_json
    said = clawlite(*words, cwd=tmp_path / "p")
    assert said.returncode == 0, said
    if as_json:
        [run] = json.loads(said.stdout)["runs"]
        assert run["at"].startswith("2026-02-21T00:00") and run["rule"] == "r"
    else:
        assert "r: water(seconds=3) would run (rule all); soil=10" in said.stdout
        assert said.stdout.rstrip().endswith(NOTHING_ACTS)


@pytest.mark.parametrize(
    "words, said",
    [
        (["--since", "soon"], "12h or 2d"),
        (["--readings", "none.jsonl"], "none.jsonl"),
        (["--readings", "bad.jsonl"], "bad.jsonl:1"),
        (["--answer", "perhaps"], "yes"),
    ],
)
def test_what_cannot_be_played(tmp_path, words, said):
    project(tmp_path / "p", READING + RULE + 'every = "1h"\n', ALLOW)
    assert clawlite("build", "-o", "claw.cbor", cwd=tmp_path / "p").returncode == 0
    (tmp_path / "p/bad.jsonl").write_text('{"at": true, "reading": "soil", "value": 1}\n')
    found = clawlite("rehearse", *words, cwd=tmp_path / "p")
    assert found.returncode in (1, 2) and said in found.stderr, found


def test_a_value_that_is_old_is_none(tmp_path):
    world = World(tmp_path, READING + RULE + 'every = "1h"\nif = "soil < 30"\n')
    image, to_s = image_of(world.data, "test"), EPOCH_S + 5 * 3600 + 1
    samples = [(EPOCH_S + at, "soil", 20) for at in range(0, 2 * 3600 + 1, 60)]
    one = Rehearsal(image, samples, EPOCH_S, to_s)
    one.play()
    assert [run["at"] - EPOCH_S for run in one.runs] == [3600, 7200]
    assert "there is no value" in " ".join(one.skipped["r"])


DOOR = RULE + 'pin = "door"\nedge = "rise"\n'


def test_edges_of_pins_are_recorded_and_played(tmp_path):
    world = World(tmp_path, DOOR)
    for length in (100, 20, 200, 300):  # ms; the second one is shorter than the debounce
        world.pins["door"] = 1
        world.move(length / 1000, 10)
        world.pins["door"] = 0
        world.move(1, 10)
        world.move(7200, 60000)
    happened = [at for _, _, at in world.acted]
    assert len(happened) == 3
    world.rules.samples.write(world.now_s(), True)
    edges = world.rules.samples.spread_edges(0)
    assert [level for _, _, level in edges] == [1, 0] * 3
    image = image_of(world.data, "test")
    one = Rehearsal(image, [], EPOCH_S, world.now_s(), edges=edges)
    one.play()
    assert all(abs(a - run["at"]) <= 1 for a, run in zip(happened, one.runs))
    assert len(one.runs) == 3


def test_the_command_plays_edges_and_answers_of_a_file(tmp_path):
    project(tmp_path / "p", DOOR + RULE.replace('"r"', '"bell"') + 'pin = "door"\n', ASK)
    assert clawlite("build", "-o", "claw.cbor", cwd=tmp_path / "p").returncode == 0
    day = "2026-02-20T"
    lines = [
        {"at": day + "10:00:00Z", "pin": "door", "level": 1},
        {"at": day + "10:01:00Z", "tool": "water", "approved": True},
        {"at": day + "10:02:00Z", "tool": "water", "approved": False},
        {"at": day + "11:00:00Z", "reading": "none", "value": 1},
    ]
    (tmp_path / "p/s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    said = clawlite("rehearse", "--readings", "s.jsonl", "--json", cwd=tmp_path / "p")
    assert said.returncode == 0, said
    found = json.loads(said.stdout)
    assert found["not_played"] == []
    assert sorted((run["rule"], run["status"]) for run in found["runs"]) == [
        ("bell", "denied"),
        ("r", "ok"),
    ]


def test_the_console_plays_one_rule(tmp_path):
    world = World(
        tmp_path,
        READING
        + RULE
        + 'every = "6h"\n'
        + RULE.replace('"r"', '"o"')
        + 'on = "soil"\nbelow = 30\n',
    )
    world.move(3600 * 12, 60000)
    (head, *runs, end) = world.commands.command(["/rehearse", "r"])
    assert "samples" in head and end == NOTHING_ACTS
    assert runs and all(" r: water(seconds=3) would run (rule all)" in run for run in runs)
    assert "There is no rule x" in world.commands.command(["/rehearse", "x"])[0]
    assert "rules here: r, o" in world.commands.command(["/rehearse"])[0]
    acted = len(world.acted)
    world.poll()
    assert len(world.acted) == acted


def test_samples_are_spread_over_a_day(tmp_path):
    world = World(tmp_path, RULES)
    week(world)
    samples, now_s = world.rules.samples, world.now_s()
    whole = {(at, value) for at, name, value in samples.since(now_s - WEEK) if name == "soil"}
    few = samples.spread("soil", now_s - WEEK, now_s, 40)
    assert 20 <= len(few) <= 80 and few == sorted(few) and set(few) <= whole
    values = [value for _, value in whole]
    assert min(few, key=lambda one: one[1])[1] == min(values)
    assert max(few, key=lambda one: one[1])[1] == max(values)
    assert samples.spread("x", now_s - WEEK, now_s, 40) == []


def test_a_clock_that_is_set_late(tmp_path):
    """Samples from before that are on record, and so is that no schedule ran."""

    class Late(World):
        is_set = False

        def now_s(self) -> int:
            return super().now_s() if self.is_set else self.ms // 1000

    rules = (
        READING.replace("60s", "10m")
        + RULE
        + 'at = "10:00"\nmissed = "skip"\n'
        + RULE.replace('"r"', '"dry"')
        + 'on = "soil"\nbelow = 30\nagain_above = 40\n'
        + RULE.replace('"r"', '"each"')
        + 'every = "1h"\nat_most = "5/day"\n'
    )
    world = Late(tmp_path, rules)
    for step in range(12):
        world.is_set = step >= 6  # at 11:00
        world.soil = 20 if step % 4 == 1 else 50
        world.move(1800, 60000)
    happened = [(one["rule"], one["values"]) for one in world.events("rule.run")]
    assert {name for name, _ in happened} == {"dry", "each"} and len(happened) >= 8
    record = world.rules.samples
    samples, lives = record.since(0), record.lives_since(0)
    assert samples[0][0] < EPOCH_S + 700, "from the beginning"
    assert lives[0][2] >= EPOCH_S + 3 * 3600, "and its clock was set three hours later"
    end_s = world.now_s()
    one = Rehearsal(image_of(world.data, "test"), samples, EPOCH_S, end_s, lives=lives)
    one.play()
    assert [(run["rule"], run["values"]) for run in one.runs] == happened
