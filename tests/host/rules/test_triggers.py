"""Readings, and rules that begin by themselves, as a reflex file has them: what is compiled, and
one clear message for each mistake.
"""

import datetime
import pathlib
import re
import tomllib
import zoneinfo

import cddl_verifier
import pytest
import tomli_w
from host.manifest.test_single_mistakes import mistakes
from rules_world import ALLOW, READING, RULE, project

from clawlite.core.base.clock import days_of
from clawlite.core.rules import table
from clawlite.core.rules.schedule import Sun, Zone
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.boards import boards, profile
from clawlite.host.channels import zone_changes
from clawlite.host.compiler import compiler, lint
from clawlite.host.fit import board_fit
from clawlite.host.providers.rule_calls import Callable
from clawlite.host.rules import sun_table, triggers
from clawlite.linux.files.files import image_of

GRAMMAR = (
    pathlib.Path(__file__).parents[3] / "clawlite" / "host" / "image" / "image.cddl"
).read_text()
PINS = """
[[pins]]
name = "pump"
pin = 5
kind = "output"
[[pins]]
name = "probe"
pin = 26
kind = "adc"
"""


def check(rule: str, data: bytes):
    """Validate *data* as *rule* of the grammar of images."""
    result = cddl_verifier.validate(GRAMMAR, data, root_type=rule)
    assert result.valid, (rule, [str(diagnostic) for diagnostic in result.diagnostics])


def load(folder, rules: str, settings: str = "", autonomy: str = "autonomous", approval=None):
    policy = [dict(ALLOW[0], action="require-approval", approval=approval)] if approval else None
    return project(folder, rules, policy, autonomy, settings + PINS)


def section(tmp_path, rules: str, settings: str = "") -> list:
    data = compiler.build(load(tmp_path, rules, settings)).data
    image = image_of(data, "test")
    assert "rules" in image.requires
    return image.section(table.SECTION)


def test_a_reading_and_each_kind_of_rule(tmp_path):
    written = (
        READING
        + 'keep = "2d"\nkeep_hourly = "30d"\n[[reading]]\nname = "probe"\npin = "probe"\n'
        + 'every = "1s"\n'
        + RULE
        + 'at = ["07:00", "19:30"]\nif = ["soil < 30", "age(soil) < 10m", "between 22:00-06:00"]\n'
        + 'at_most = "2/day"\nleast_pause = "1h"\nmissed = "skip"\n'
        + 'then = [{ if = "failed", say = "no" }, { say = "{soil}: {result}", to = "admins" }]\n'
        + RULE.replace('"r"', '"c"')
        + 'cron = "*/5 * * * *"\n'
        + RULE.replace('"r"', '"e"')
        + 'every = "90s"\n'
        + RULE.replace('"r"', '"p"')
        + 'pin = "door"\nedge = "rise"\ndebounce = "20ms"\n'
        + RULE.replace('"r"', '"o"')
        + 'on = "soil"\nbelow = 30\nagain_above = 35\nfor = "5m"\n'
    )
    readings, rules, clock = section(tmp_path, written)
    assert readings == [
        ["soil", "read-soil", None, "percent", 60000, 172800, 2592000],
        ["probe", None, "probe", None, 1000, 86400, 0],
    ]
    at = rules[0]
    assert [one[:2] for one in at[table.TRIGGER][1]] == [[1, 1 << 7], [1 << 30, 1 << 19]]
    assert at[table.IF] == [["soil", "<", 30], [1, "soil", "<", 600], [2, 1320, 360]]
    assert at[table.CALL : table.THEN] == ["water", [["seconds", 3]], [2, 86400], 3600, 0]
    assert at[table.THEN] == [
        [[3], [["no"], "", False]],
        [None, [[["soil"], ": ", ["result"]], "admins", False]],
    ]
    assert [rule[table.TRIGGER] for rule in rules[2:]] == [
        [table.EVERY, 90000],
        [table.ON_PIN, "door", 2, 20],
        [table.ON_READING, "soil", True, 30, 35, 300000],
    ]
    assert clock == ["UTC", [[0, 0]], "", None]


def test_an_image_without_them_has_no_section_and_needs_nothing(tmp_path):
    built = compiler.build(load(tmp_path, '[[rule]]\nwhen = "hello"\nsay = "hi"\n'))
    image = image_of(built.data, "test")
    assert table.SECTION not in image.sections() and "rules" not in image.requires


@pytest.mark.parametrize(
    "written, place, said",
    [
        (READING + RULE + 'every = "1m"\nif = "soill < 3"\n', "rule[0].if", "no reading"),
        (READING + RULE + 'every = "1m"\nif = "soill < 3"\n', "rule[0].if", 'did you mean "soil"?'),
        (RULE + 'every = "1m"\nat = "07:00"\n', "rule[0]", "begins in one way"),
        (RULE + 'when = "x"\nat = "07:00"\n', "rule[0]", "when and at"),
        (RULE + 'evry = "1m"\n', "rule[0].evry", 'did you mean "every"?'),
        (RULE + 'every = "1 fortnight"\n', "rule[0].every", "a time such as"),
        (RULE + 'every = "0s"\n', "rule[0].every", "from 1s"),
        (RULE + "every = 60\n", "rule[0].every", "found 60"),
        (RULE + 'at = "7:00"\n', "rule[0].at", 'such as "07:00"'),
        (RULE + 'at = "24:00"\n', "rule[0].at", 'found "24:00"'),
        (RULE + "at = 07:00:00\n", "rule[0].at", "in quotes"),
        (RULE + "at = []\n", "rule[0].at", "found a list"),
        (RULE + 'cron = "0 0 30 2 *"\n', "rule[0].cron", "would never run"),
        (RULE + 'pin = "window"\n', "rule[0].pin", "no pin"),
        (RULE + 'pin = "pump"\n', "rule[0].pin", "fire itself"),
        (RULE + 'pin = "probe"\n', "rule[0].pin", "no edges"),
        (RULE + 'pin = "door"\nedge = "up"\n', "rule[0].edge", '"fall", "rise" or "both"'),
        (RULE + 'on = "soil"\nbelow = 3\n', "rule[0].on", "no reading"),
        (READING + RULE + 'on = "soil"\n', "rule[0]", "below or above"),
        (READING + RULE + 'on = "soil"\nbelow = 1\nabove = 2\n', "rule[0]", "two rules"),
        (READING + RULE + 'on = "soil"\nbelow = "1"\n', "rule[0].below", "a number"),
        (
            READING + RULE + 'on = "soil"\nbelow = 30\nagain_above = 20\n',
            "rule[0].again_above",
            "from 30",
        ),
        (
            READING + RULE + 'on = "soil"\nbelow = 30\nagain_below = 20\n',
            "rule[0].again_below",
            "goes with above",
        ),
        (RULE + 'every = "1m"\nat_most = "2/fortnight"\n', "rule[0].at_most", '"2/day"'),
        (RULE + 'every = "1m"\nat_most = "0/day"\n', "rule[0].at_most", '"2/day"'),
        (RULE + 'every = "1m"\nmissed = "once"\n', "rule[0].missed", "unknown field"),
        (RULE + 'at = "07:00"\nmissed = "never"\n', "rule[0].missed", '"skip", "once" or "all"'),
        (RULE + 'every = "1m"\nif = "between 6-7"\n', "rule[0].if", "between 06:00-10:00"),
        (RULE + 'every = "1m"\nif = "age(x) < 10"\n', "rule[0].if", "age(soil) < 10m"),
        (READING + RULE + 'every = "1m"\nif = [3]\n', "rule[0].if[0]", "found 3"),
        (
            RULE + 'every = "1m"\nthen = [{ say = "x", call = "water" }]\n',
            "rule[0].then[0].call",
            "",
        ),
        (
            RULE + 'every = "1m"\nthen = [{ ask = "x" }]\n',
            "rule[0].then[0].ask",
            "no model that it could ask",
        ),
        (
            RULE + 'every = "1m"\nthen = [{ ask = "x", say = "y" }]\n',
            "rule[0].then[0]",
            "a step says, or asks a model",
        ),
        (
            RULE + 'every = "1m"\nthen = [{ say = "x", to = "bob" }]\n',
            "rule[0].then[0].to",
            "admins",
        ),
        (RULE + 'every = "1m"\nthen = [{ say = "{percnt}" }]\n', "rule[0].then[0].say", "no field"),
        (
            READING + RULE + 'every = "1m"\nthen = [{ if = "soil < 3", say = "x" }]\n',
            "rule[0].then[0].if",
            "if of the rule itself",
        ),
        ('[[rule]]\nname = "r"\nevery = "1m"\n', "rule[0]", "calls a tool"),
        (RULE.replace('"water"', '"watr"') + 'every = "1m"\n', "rule[0].call", '"water"?'),
        (
            RULE.replace("seconds = 3", "seconds = 300") + 'every = "1m"\n',
            "rule[0].arguments.seconds",
            "refuses it",
        ),
        (RULE.replace("seconds = 3", "") + 'every = "1m"\n', "rule[0].arguments", '"seconds"'),
        (RULE.replace('name = "r"', "") + 'every = "1m"\n', "rule[0].name", "found none"),
        (RULE + 'every = "1m"\n' + RULE + 'every = "1m"\n', "rule[1].name", "another rule"),
        (READING + READING, "reading[1].name", "another reading"),
        (READING.replace("read-soil", "water"), "reading[0].tool", "side effects"),
        (READING.replace("percent", "percnt"), "reading[0].field", '"percent"?'),
        (READING.replace('field = "percent"\n', ""), "reading[0]", "several fields"),
        (READING.replace('every = "60s"\n', ""), "reading[0]", "how often"),
        (READING + 'pin = "door"\n', "reading[0]", "found both"),
        (READING + 'evey = "door"\n', "reading[0].evey", "unknown field"),
        (
            READING.replace('"soil"', '"percent"')
            + RULE.replace("water", "read-soil").replace("seconds = 3", "")
            + 'every = "1m"\n',
            "rule[0]",
            "is a reading and also a field",
        ),
        (
            '[[rule]]\nname = "r"\ncall = "water"\n',
            "rule[0]",
            "one of when, at, every, cron, pin, on",
        ),
    ],
)
def test_one_message_for_each_mistake(tmp_path, written, place, said):
    with pytest.raises(ManifestErrors) as raised:
        compiler.build(load(tmp_path, written))
    found = [
        p for p in raised.value.problems if said in p.text() and ": " + place + ":" in p.text()
    ]
    assert found, raised.value.lines
    problem = found[0]
    assert problem.file.endswith("reflex.toml") and problem.line
    assert not re.search(r"\bNone\b", problem.text())
    assert len(raised.value.problems) <= 2, raised.value.lines


def test_a_board_takes_them(tmp_path):
    pico = profile.read(boards.files()["pico"])
    assert board_fit.board_problems(load(tmp_path, READING), pico) == []


def test_a_supervised_agent_is_told_that_each_run_asks(tmp_path):
    loaded = load(tmp_path, READING + RULE + 'every = "1m"\n', autonomy="supervised")
    compiler.build(loaded)
    said = [one["message"] for one in lint.find(loaded)["warnings"]]
    assert any("asked before each run of r" in text for text in said), said


def test_an_observer_is_told_that_none_runs(tmp_path):
    loaded = load(tmp_path, RULE + 'every = "1m"\n', autonomy="observer")
    compiler.build(loaded)
    said = [one["message"] for one in lint.find(loaded)["warnings"]]
    assert any("none of its rules" in text for text in said), said


def test_allow_on_timeout_is_told_to_hold_for_no_rule(tmp_path):
    approval = {"timeout_seconds": 5, "default_if_timeout": "allow"}
    loaded = load(tmp_path, RULE + 'every = "1m"\n', approval=approval)
    compiler.build(loaded)
    said = [one["message"] for one in lint.find(loaded)["warnings"]]
    assert any("never lets a call of a rule through" in text for text in said), said


@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC"]
)
def test_compiled_changes_are_those_of_the_zone(name):
    zone = Zone(zone_changes.changes_of(name, 2026))
    own = zoneinfo.ZoneInfo(name)
    start = int(datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc).timestamp())
    for at in range(start, start + 10 * 365 * 86400, 1800 * 7):
        offset = datetime.datetime.fromtimestamp(at, own).utcoffset()
        assert zone.offset(at) == offset.total_seconds(), at
    edges = [change[0] for change in zone_changes.changes_of(name, 2026)[1:]]
    for at in edges:
        assert zone.offset(at) != zone.offset(at - 1)


def test_the_image_names_zone_and_version(tmp_path):
    clock = section(tmp_path, READING, 'time_zone = "Europe/Berlin"\n')[table.CLOCK]
    assert clock[0] == "Europe/Berlin" and len(clock[1]) == 21
    assert clock[2] == zone_changes.tzdata_version() != ""


def test_the_year_of_a_build_can_be_set(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert zone_changes.first_year() == 2023


@pytest.mark.parametrize(
    "place, day, rise, sets",  # as almanacs have them, in UTC
    [
        ((52.52, 13.41), "2026-06-21", 2 * 60 + 43, 19 * 60 + 33),
        ((52.52, 13.41), "2026-12-21", 7 * 60 + 15, 14 * 60 + 54),
        ((52.52, 13.41), "2026-03-20", 5 * 60 + 9, 17 * 60 + 19),
        ((0, 0), "2026-03-20", 6 * 60 + 4, 18 * 60 + 10),
        ((-33.87, 151.21), "2026-01-01", 18 * 60 + 47 - 1440, 9 * 60 + 9),
    ],
)
def test_sunrise_and_sunset_are_those_of_almanacs(place, day, rise, sets):
    weeks = sun_table.table_of(*place)
    number = (datetime.date.fromisoformat(day) - datetime.date(2026, 1, 1)).days
    near = [weeks[number // 7], weeks[(number // 7 + 1) % 53]]
    for which, expected in ((0, rise), (1, sets)):
        begin, end = near[0][which], near[1][which]
        assert abs(begin + (end - begin) * (number % 7) / 7 - expected) <= 3


def test_a_rule_begins_at_sunset_each_day_and_never_in_a_polar_summer():
    start = int(datetime.datetime(2026, 6, 1, tzinfo=datetime.timezone.utc).timestamp())
    sun = Sun(sun_table.table_of(52.52, 13.41), 1, -1800)
    at, found = start, []
    while at is not None and at < start + 20 * 86400:
        at = sun.after(at)
        found.append(at)
    steps = [b - a for a, b in zip(found, found[1:])]
    assert all(86400 - 120 <= step <= 86400 + 120 for step in steps) and len(found) == 21
    north = Sun(sun_table.table_of(69.65, 18.96), 0, 0).after(start)
    assert datetime.datetime.fromtimestamp(north, datetime.timezone.utc).month in (7, 8)
    for year in (2027, 2028, 2029):  # the last days of a year have their place, too
        new_year = int(datetime.datetime(year, 1, 1, tzinfo=datetime.timezone.utc).timestamp())
        assert days_of(year, 1, 1) * 86400 == new_year
        assert 0 < sun.after(new_year - 86400) - new_year + 86400 < 86400


def test_sunset_is_compiled_with_its_place(tmp_path):
    written = RULE + 'at = ["sunrise", "sunset-30m"]\n'
    _, rules, clock = section(tmp_path / "a", written, "place = [52.5, 13.4]\n")
    assert rules[0][table.TRIGGER] == [table.ON_SUN, [[0, 0], [1, -1800]]]
    assert len(clock[table.SUN]) == 53
    for text, settings, said in (
        (written, "", "place = [latitude, longitude]"),
        (written, "place = [91, 0]\n", "in degrees"),
        (written, "place = [1]\n", "in degrees"),
        (written.replace("30m", "30"), "place = [1, 1]\n", "a time of the day"),
        (written.replace("sunrise", "07:00"), "place = [1, 1]\n", "of one kind"),
    ):
        with pytest.raises(ManifestErrors, match=re.escape(said)):
            compiler.build(load(tmp_path / "b", text, settings))


def test_each_section_fits_the_grammar_of_images(tmp_path):
    written = (
        READING
        + RULE
        + 'at = "sunset"\nif = ["soil < 30", "age(soil) < 10m", "between 22:00-06:00"]\n'
        + 'then = [{ if = "failed", say = "no" }, { say = "{soil}", to = "admins" }]\n'
        + RULE.replace('"r"', '"p"')
        + 'pin = "door"\n'
        + RULE.replace('"r"', '"o"')
        + 'on = "soil"\nabove = 30.5\nat_most = "1/week"\n'
    )
    data = compiler.build(load(tmp_path, written, 'place = [1, 2]\ntime_zone = "Europe/Rome"\n'))
    image = image_of(data.data, "test")
    check("image", data.data)
    check("triggers", image.part(table.SECTION, 0, image.size_of(table.SECTION)))


def test_times_without_a_zone_are_told_to_be_utc(tmp_path):
    loaded = load(tmp_path, RULE + 'at = "07:00"\n')
    compiler.build(loaded)
    said = [one["message"] for one in lint.find(loaded)["warnings"]]
    assert any("times of r are UTC" in text for text in said), said


ALL = (
    READING
    + 'keep = "2d"\nkeep_hourly = "30d"\n'
    + RULE
    + 'at = ["07:00", "19:30"]\nmissed = "all"\nat_most = "2/day"\nleast_pause = "1h"\n'
    + 'if = ["soil < 30", "age(soil) < 10m", "between 22:00-06:00"]\n'
    + 'then = [{ if = "failed", say = "no" }, { say = "{soil}", to = "admins" }]\n'
    + RULE.replace('"r"', '"c"')
    + 'cron = "*/5 * * * *"\n'
    + RULE.replace('"r"', '"e"')
    + 'every = "90s"\nif = "soil == 3"\n'
    + RULE.replace('"r"', '"p"')
    + 'pin = "door"\nedge = "rise"\ndebounce = "20ms"\n'
    + RULE.replace('"r"', '"o"')
    + 'on = "soil"\nbelow = 30\nagain_above = 35\nfor = "5m"\n'
)


def test_a_single_mistake_is_one_problem(tmp_path):
    """Each key misspelt or left out, and each value another one."""
    data, several, count = tomllib.loads(ALL), [], 0
    assert "rule" in data
    for what, path, wrong in mistakes(data):
        if path in (("reading",), ("reading", 0, "name")) or len(path) == 1:
            continue  # rules refer to what would stand there
        try:
            compiler.build(load(tmp_path, tomli_w.dumps(wrong)))
        except ManifestErrors as e:
            count += 1
            if len(e.problems) > 1:
                several.append((what, path, e.lines))
    assert several == [] and count > 150


def test_the_example_of_the_page_is_right():
    page = (pathlib.Path(__file__).parents[3] / "docs/rules.md").read_text()
    text = page.partition("```toml\n")[2].partition("```")[0]
    one = Callable({"type": "object"}, None)
    tools = {"read-soil": Callable({"type": "object"}, {"percent"}), "water": one, "notify": one}
    world = triggers.World(tools, {"read-soil"}, {})
    readings, rules, problems = triggers.compile_triggers(text, "reflex.toml", world)
    assert problems == [] and len(readings) == 1 and len(rules) == 2


def test_what_is_for_admins_is_told_to_reach_none(tmp_path):
    loaded = load(tmp_path, RULE + 'every = "1m"\nthen = [{ say = "x", to = "admins" }]\n')
    compiler.build(loaded)
    said = [one["message"] for one in lint.find(loaded)["warnings"]]
    assert any("no channel has admins" in text for text in said), said


def test_a_board_says_how_long_its_flash_keeps_samples(tmp_path):
    """At the build, when the size of the agent is known."""
    pico = profile.read(boards.files()["pico"])

    def said(reading: str) -> list:
        loaded = load(tmp_path, reading + RULE + 'every = "1m"\n')
        _, need = board_fit.demand(loaded, pico, lambda: compiler.build(loaded))
        return [one for one in board_fit.notes(loaded, pico, need) if "keep" in one["message"]]

    assert said(READING + 'keep = "2d"\n') == []
    (note,) = said(READING.replace("60s", "1s") + 'keep = "30d"\n')
    assert note["file"].endswith("clawlite.toml") and note["line"] == 1
    assert re.search(
        r"take about 30,\d{3},\d{3} bytes of flash, and pico has [\d,]+ for them: it keeps some "
        r"[01]\.\d days, and the oldest go first",
        note["message"],
    )
    (hourly,) = said(READING + 'keep_hourly = "3650d"\n')
    assert "keep_hourly" in hourly["message"]
