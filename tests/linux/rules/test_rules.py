"""Rules that begin by themselves on Linux: each act goes through the one pipeline, questions and
cut runs survive a restart, and nothing runs twice.
"""

import json
import random

import pytest
from channel_world import Source
from rules_world import ALLOW, ASK, EPOCH_S, READING, RULE, World, project

from clawlite.core.base.errors import ClawError
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest
from clawlite.linux.channels import channel
from clawlite.linux.files.files import image_of


def test_a_rule_acts_through_the_pipeline_with_its_name_as_the_caller(tmp_path):
    world = World(
        tmp_path,
        READING + RULE + 'every = "5m"\nif = "soil < 30"\n'
        'then = [{ say = "Watered at {soil}: {result}", to = "admins" }]\n',
    )
    world.move(301)
    assert world.acted == [("water", {"seconds": 3}, world.now_s() - 1)]
    calls = [one for one in world.events("tool.call") if one["tool"] == "water"]
    assert [(one["caller"], one["status"], one["rule_id"]) for one in calls] == [
        ("rule/r", "ok", "all")
    ]
    assert world.events("rule.run")[0]["values"] == {"soil": 20}
    assert world.told == ["[rule r] Watered at 20: done"]


def test_a_condition_that_does_not_hold_calls_nothing(tmp_path):
    world = World(tmp_path, READING + RULE + 'every = "5m"\nif = "soil < 10"\n')
    world.move(3600)
    assert world.acted == [] and len(world.events("rule.skipped")) == 1


def test_arguments_may_be_the_value_of_a_reading(tmp_path):
    rule = RULE.replace("seconds = 3", 'seconds = "{soil}"') + 'every = "5m"\n'
    world = World(tmp_path, READING + rule)
    world.move(301)
    assert world.acted[0][1] == {"seconds": 20}
    world.soil = 99  # the schema refuses it now: CKP 5.4, arguments are checked
    world.move(301)
    assert len(world.acted) == 1
    assert world.events("rule.run")[-1]["status"] == "error"


def test_a_policy_that_denies_refuses_the_run_and_people_are_told(tmp_path):
    """CKP 5.8: what no rule allows is denied, whoever calls."""
    deny = [{"id": "no", "action": "deny", "scope": "tool", "match": {"name": "water"}}, *ALLOW]
    world = World(tmp_path, RULE + 'every = "5m"\n', deny)
    world.move(301)
    assert world.acted == []
    assert world.events("rule.run")[0]["status"] == "refused"
    assert "rule no blocks water" in world.told[0]


def test_a_supervised_agent_asks_for_each_run_with_side_effects(tmp_path):
    """CKP 5.1: supervised."""
    rules = (
        RULE
        + 'every = "5m"\n'
        + RULE.replace('"r"', '"look"').replace('"water"', '"read-soil"').replace("seconds = 3", "")
        + 'every = "5m"\n'
    )
    world = World(tmp_path, rules, autonomy="supervised")
    world.move(301)
    assert world.acted == [] and len(world.agent.waiting) == 1
    assert [one["rule"] for one in world.events("rule.run")] == ["look"]
    world.answer(True)
    assert len(world.acted) == 1
    world.move(301)
    assert len(world.acted) == 1 and len(world.agent.waiting) == 1


def test_an_observer_runs_none(tmp_path):
    """CKP 5.1: observer."""
    world = World(tmp_path, READING + RULE + 'every = "5m"\n', autonomy="observer")
    world.move(3600)
    assert world.acted == []
    assert {one["status"] for one in world.events("rule.run")} == {"refused"}


def test_nobody_who_answers_never_lets_a_rule_through(tmp_path):
    """CKP 5.8, ``default_if_timeout``: our rules are held to deny."""
    policy = [dict(ASK[0], approval={"timeout_seconds": 60, "default_if_timeout": "allow"}), *ALLOW]
    world = World(tmp_path, RULE + 'every = "5m"\n', policy)
    world.move(301)
    assert len(world.agent.waiting) == 1 and not world.agent.waiting[0].approval.allows_on_timeout
    world.move(61)
    assert world.acted == []
    assert world.events("rule.run")[0]["status"] == "expired"
    assert world.events("tool.call")[-1]["status"] == "refused"


def test_a_question_waits_over_restarts_with_the_time_that_is_left(tmp_path):
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    assert world.agent.waiting[0].approval.timeout_s == 600
    world.reset(200)
    approval = world.agent.waiting[0].approval
    assert 395 <= approval.timeout_s <= 400 and approval.asker == "rule/r"
    world.reset(100)
    assert 290 <= world.agent.waiting[0].approval.timeout_s <= 300
    assert world.kept == []  # the journal of calls does not say that it was not run
    world.answer(True)
    assert [one[0] for one in world.acted] == ["water"]
    world.reset(1)
    world.move(60)
    assert len(world.acted) == 1 and world.agent.waiting == []


def test_a_question_that_ran_out_while_the_agent_was_off_is_told(tmp_path):
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    world.reset(700)
    assert world.agent.waiting == [] and world.acted == []
    assert "nobody approved it within 600 s" in world.told[-1]


def test_an_image_that_changed_voids_the_question(tmp_path):
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    world.rebuild(RULE.replace("3", "4") + 'at = "08:01"\n', ASK)
    assert world.agent.waiting == [] and "question is void" in world.told[-1]
    world.move(600)
    assert world.acted == []


def test_a_rule_that_left_the_image_voids_its_question(tmp_path):
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    world.rebuild(RULE.replace('"r"', '"other"') + 'at = "09:00"\n', ASK)
    assert "what it asked is void" in world.told[-1]


def test_the_condition_is_looked_at_again_when_the_answer_comes(tmp_path):
    world = World(tmp_path, READING + RULE + 'at = "08:01"\nif = "soil < 30"\n', ASK)
    world.move(61)
    world.soil = 80
    world.move(120)
    world.answer(True)
    assert world.acted == []
    assert "by now soil < 30 does not hold" in world.told[-1]
    assert world.events("tool.call")[-1]["status"] == "refused"


def test_a_denied_question_runs_nothing(tmp_path):
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    world.answer(False)
    world.reset(10)
    assert world.acted == [] and world.agent.waiting == []
    assert world.events("rule.run")[0]["status"] == "denied"


def test_a_question_lets_other_rules_run_and_waits_its_turn(tmp_path):
    rules = (
        RULE
        + 'at = "08:01"\n'
        + RULE.replace('"r"', '"s"').replace('"water"', '"repeatable"')
        + 'every = "2m"\n'
    )
    world = World(tmp_path, rules, ASK)
    world.move(121)
    assert [one[0] for one in world.acted] == ["repeatable"]
    world.hold = True
    world.move(120)
    world.answer(True)  # another run is under way
    world.move(5)
    assert [one[0] for one in world.acted] == ["repeatable"] * 2
    world.hold = False
    world.finish()
    world.move(1)
    assert [one[0] for one in world.acted][-1] == "water"


def test_a_run_that_was_cut_is_told_and_not_repeated(tmp_path):
    world = World(tmp_path, RULE + 'at = "08:01"\n', hold=True)
    world.move(61)
    assert len(world.acted) == 1
    for _ in range(3):
        world.reset(5)
        world.move(30)
    assert len(world.acted) == 1
    assert len([text for text in world.told if "is not known" in text]) == 1
    assert world.events("rule.run")[0]["status"] == "cut"


@pytest.mark.parametrize("limit", ['at_most = "1/day"', 'least_pause = "1h"'])
def test_limits_count_a_run_once_that_was_cut_and_is_repeated(tmp_path, limit):
    rule = RULE.replace("water", "repeatable") + f'every = "5m"\n{limit}\n'
    world = World(tmp_path, rule, hold=True)
    world.move(310)
    world.reset()
    world.move(30)
    world.finish()
    assert [one[0] for one in world.acted] == ["repeatable"] * 2
    assert [one["status"] for one in world.events("rule.run")] == ["ok"]
    world.move(1200)
    assert len(world.acted) == 2


def test_a_run_that_was_cut_is_repeated_when_its_tool_may_run_twice(tmp_path):
    world = World(tmp_path, RULE.replace("water", "repeatable") + 'at = "08:01"\n', hold=True)
    world.move(61)
    world.hold = False
    world.reset(5)
    world.move(30)
    world.reset(5)
    world.move(30)
    assert [one[0] for one in world.acted] == ["repeatable"] * 2


def test_nothing_runs_whose_beginning_cannot_be_put_on_record(tmp_path, monkeypatch):
    world = World(tmp_path, RULE + 'every = "5m"\n')

    from clawlite.linux.io.state_file import StateFile

    monkeypatch.setattr(StateFile, "mend", "make room", raising=False)
    monkeypatch.setattr(StateFile, "save", lambda *_: "rules.json cannot be written: disk full")
    world.move(301)
    assert world.acted == [] and any("disk full" in text for text in world.told)
    monkeypatch.undo()
    world.move(301)
    assert len(world.acted) == 1


def test_a_failed_call_is_told(tmp_path):
    world = World(
        tmp_path,
        RULE
        + 'every = "5m"\nthen = [{ say = "well" }, { if = "failed", say = "ill: {result}" }]\n',
        hold=True,
    )
    world.move(301)
    world.finish(True)
    assert world.told == ["[rule r] ill: water failed: broken"]
    assert world.events("rule.run")[0]["status"] == "error"


def test_readings_are_logged_when_their_state_changes_alone(tmp_path):
    world = World(tmp_path, READING)
    world.move(600)
    assert len(world.events("tool.call")) == 1
    world.soil = ClawError("no wire")
    world.move(600)
    world.soil = 30
    world.move(600)
    assert [one["status"] for one in world.events("tool.call")] == ["ok", "error", "ok"]
    assert len(world.events("reading.failed")) == len(world.events("reading.back")) == 1
    assert {one["caller"] for one in world.events("tool.call")} == {"reading/soil"}


def test_each_call_of_a_reading_is_logged_where_a_policy_says_audit_only(tmp_path):
    """CKP 5.8, ``audit-only``."""
    policy = [{"id": "all", "action": "audit-only", "scope": "all"}]
    world = World(tmp_path, READING, policy)
    world.move(600)
    assert len(world.events("tool.call")) == 11


def test_a_reading_asks_nobody(tmp_path):
    policy = [{"id": "ask", "action": "require-approval", "scope": "all"}]
    world = World(tmp_path, READING, policy)
    world.move(600)
    assert world.agent.waiting == []
    refused = [one for one in world.events("tool.call") if one["status"] == "refused"]
    assert len(refused) == 1
    assert "a reading asks nobody" in world.events("reading.failed")[0]["reason"]


def test_a_pin_begins_a_rule(tmp_path):
    world = World(tmp_path, RULE + 'pin = "door"\nedge = "rise"\n')
    world.pins["door"] = 1
    world.move(1, 10)
    assert len(world.acted) == 1
    world.pins["door"] = 0
    world.move(1, 10)
    assert len(world.acted) == 1


def test_samples_last_and_are_thinned_to_hours(tmp_path):
    world = World(tmp_path, READING + 'keep = "1h"\nkeep_hourly = "1d"\n')
    world.move(3 * 3600, 10000)
    world.rules.close()
    world.reset(60)
    reading = world.rules.engine.readings[0]
    assert reading.value == 20 and reading.at_ms is not None
    rows = world.rules.samples.since(0)
    assert 55 <= len(rows) <= 125 and {row[1] for row in rows} == {"soil"}
    import sqlite3

    with sqlite3.connect(tmp_path / "state" / "readings.db") as db:
        hours = db.execute("SELECT least, mean, most, count FROM hourly").fetchall()
    assert (20.0, 20.0, 20.0, 60) in hours


def test_commands_list_switch_and_explain(tmp_path):
    world = World(tmp_path, READING + RULE + 'at = "09:00"\nif = "soil < 10"\n')
    run = world.commands.command
    assert run(["/help"])[1].startswith("  /rules")
    assert run(["/tools"]) is None
    assert run(["/rules"]) == ["r                    by the clock (1 schedule): water(seconds=3)"]
    assert "2027-01-15T09:00:00+00:00" in run(["/rules", "next"])[0]
    assert run(["/rules", "last"])[0].endswith("not yet")
    assert "soil < 10 does not hold: it is 20" in " ".join(run(["/rules", "why", "r"]))
    assert "does not hold" in " ".join(run(["/rules", "why", "not", "r"]))
    assert run(["/rules", "off", "x"])[0].startswith("There is no rule x")
    assert run(["/rules", "off", "r"], False) == ["Only an admin switches rules."]
    assert run(["/rules", "off", "r"]) == ["Rule r is off."]
    world.reset(1)
    assert "switched it off" in " ".join(world.commands.command(["/rules", "why", "r"]))
    assert world.commands.command(["/readings"])[0].startswith("soil                 20")


def test_switching_a_rule_off_withdraws_its_question(tmp_path):
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    world.commands.command(["/rules", "off", "r"])
    world.settle()
    assert world.agent.waiting == []
    world.reset(5)
    assert world.agent.waiting == []


def test_methods_of_an_operator(tmp_path):
    world = World(tmp_path, READING + RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    begin = world.commands.begin
    listed = begin("claw.rule.list", {})
    assert listed["is_clock_set"] and listed["rules"][0]["waits"]
    number = listed["rules"][0]["number"]
    assert number == world.agent.waiting[0].approval.number
    assert begin("claw.reading.list", {})["readings"][0]["value"] == 20
    assert "approve" in begin("claw.rule.why", {"name": "r"})["text"]
    for params in ({"name": "r"}, {"name": "x", "is_approved": True}, {}):
        with pytest.raises(ClawError) as raised:
            begin("claw.rule.answer", params)
        assert raised.value.code == -32602
    answer = {"name": "r", "is_approved": True}
    for late in (number - 1, number + 1):  # of a question that is over, or of another
        with pytest.raises(ClawError, match="waits for no approval"):
            begin("claw.rule.answer", dict(answer, number=late))
    assert world.agent.waiting and not world.acted
    assert begin("claw.rule.answer", dict(answer, number=number))["is_approved"]
    world.settle()
    assert len(world.acted) == 1 and begin("claw.rule.list", {})["rules"][0]["number"] is None
    with pytest.raises(ClawError):
        begin("claw.rule.answer", {"name": "r", "is_approved": True})
    begin("claw.rule.switch", {"name": "r", "is_on": False})
    assert not begin("claw.rule.list", {})["rules"][0]["is_on"]
    json.dumps(begin("claw.rule.list", {}))


def test_a_damaged_state_is_set_aside_and_rules_go_on(tmp_path, capfd):
    world = World(tmp_path, RULE + 'every = "5m"\n')
    world.move(301)
    path = tmp_path / "state" / "rules" / "rules.json"
    path.write_text("{no json")
    world.reset(1)
    world.move(301)
    assert len(world.acted) == 2
    assert "the state of rules" in capfd.readouterr().err


PEOPLE = [
    {
        "inline": {
            "name": "bot",
            "type": "telegram",
            "transport": "polling",
            "auth": {"secret_ref": "BOT"},
            "access_control": {
                "mode": "role-based",
                "roles": [
                    {"id": "1", "role": "viewer"},
                    {"id": "2", "role": "user"},
                    {"id": "3", "role": "admin"},
                ],
            },
        }
    }
]


def peopled(tmp_path, monkeypatch, rules: str, policy=None):
    monkeypatch.setattr(channel, "source_of", lambda kind: Source)
    world = World(tmp_path, rules, policy, channels=PEOPLE)
    source = world.channels.all[0]._source

    def say(actor: str, text: str) -> list:
        before = len(source.sent)
        source.channel.take_message(actor, text, actor)
        world.settle()
        world.poll()
        return source.sent[before:]

    return world, source, say


def test_admins_of_channels_are_asked_and_told(tmp_path, monkeypatch):
    written = RULE + 'at = "08:01"\nthen = [{ say = "Watered", to = "admins" }]\n'
    world, source, say = peopled(tmp_path, monkeypatch, written, ASK)
    world.move(61)
    [(to, text, _)] = source.sent
    number = world.agent.waiting[0].approval.number
    assert to == "3" and "Approve water(seconds=3)?" in text and "/approve %d" % number in text
    assert say("2", "/approve %d" % number)[0][1] == "Only an admin approves."
    assert world.acted == []
    said = [text for _, text, _ in say("3", "/approve %d" % number)]
    world.move(1)
    assert "Approved." in said and len(world.acted) == 1
    assert ("3", "[rule r] Watered") in [one[:2] for one in source.sent]


def test_people_of_channels_see_rules_and_admins_switch_them(tmp_path, monkeypatch):
    world, source, say = peopled(tmp_path, monkeypatch, READING + RULE + 'at = "09:00"\n')
    for actor in ("1", "2", "3"):
        assert "by the clock" in say(actor, "/rules")[0][1]
        assert "soil" in say(actor, "/readings")[0][1]
    assert say("2", "/rules off r")[0][1] == "Only an admin switches rules."
    assert say("3", "/rules off r")[0][1] == "Rule r is off."
    assert "by the clock" not in " ".join(text for _, text, _ in say("9", "/rules"))  # a stranger
    assert [one for one in say("3", "/pair X") if "paired" in one[1]] == []
    world.move(3700, 10000)
    assert world.acted == []


@pytest.mark.parametrize("seed", range(6))
def test_a_week_with_resets_loses_no_run_and_repeats_none(tmp_path, seed):
    """50 resets at random moments, some while a tool runs or a question waits: each time of the
    schedule ends once, whatever way.
    """
    dice = random.Random(seed)
    policy = ASK if seed % 2 else ALLOW
    written = READING + RULE + 'cron = "0 */2 * * *"\nmissed = "all"\nif = "soil < 30"\n'
    world = World(tmp_path, written, policy)
    for _ in range(50):
        world.hold = dice.random() < 0.3
        world.move(dice.randint(1, 150) * 60, 30000)
        if world.agent.waiting and dice.random() < 0.6:
            world.answer(dice.random() < 0.7)
        if world.held and dice.random() < 0.5:
            world.finish(dice.random() < 0.3)
        world.reset(dice.choice((2, 30, 600, 7200, 30000)))
    world.hold = False
    world.move(2 * 3600, 30000)
    ended = {}
    for event in world.events("rule.run"):
        ended.setdefault(event["at"], []).append(event["status"])
    assert all(len(statuses) == 1 for statuses in ended.values()), ended
    left_out = len(world.events("rule.skipped")) + len(world.agent.waiting)
    expected = [at for at in range(EPOCH_S, world.now_s() + 1) if at % 7200 == 0 and at > EPOCH_S]
    if policy is ALLOW:
        assert sorted(ended) == expected
        acted = [status for statuses in ended.values() for status in statuses]
        assert len(world.acted) == len(expected) == len(acted)
        assert {"ok", "cut"} <= set(acted)
    else:  # a run whose rule has a question is left out, and said to be
        assert set(ended) <= set(expected) and left_out
        assert len(world.acted) == sum(
            status in ("ok", "error", "cut") for one in ended.values() for status in one
        )
    calls = [one for one in world.events("tool.call") if one["caller"] == "rule/r"]
    done = [status for one in ended.values() for status in one if status in ("ok", "error")]
    ran_out = [one for one in world.events("task.cancelled") if one["tool"] == "water"]
    ended_calls = [one for one in calls if one["status"] in ("ok", "error")]
    assert len(ended_calls) + len(ran_out) == len(done)


@pytest.mark.parametrize(
    "damage",
    [
        {"rules": []},
        {"rules": {"r": 3}},
        {"rules": {"r": {"queue": "x", "count": 3, "asks": [1], "began": "x", "at_s": "y"}}},
        {"rules": {"r": {"asks": {"a": 1}, "done_s": [], "last": 7, "ran_s": None, "off": []}}},
        {"rules": {"gone": {"asks": 3, "began": []}}, "wall_s": "soon", "ran_s": []},
    ],
)
def test_a_state_that_somebody_wrote_by_hand_stops_no_rule(tmp_path, damage):
    world = World(tmp_path, RULE + 'every = "5m"\nat_most = "9/day"\nleast_pause = "1m"\n')
    world.rules.close()
    folder = tmp_path / "state" / "rules"
    (folder / "rules.json").write_text(json.dumps(damage))
    world.reset(1)
    world.move(301)
    assert len(world.acted) == 1
    assert world.commands.command(["/rules", "last"])
    assert world.commands.begin("claw.rule.list", {})["rules"][0]["is_on"]


def test_a_condition_about_a_value_that_moves_floods_no_log_and_wears_no_card(tmp_path):
    written = READING.replace("60s", "1s") + RULE + 'every = "1s"\nif = "soil < 10"\n'
    world = World(tmp_path, written)
    world.move(120)
    path = tmp_path / "state" / "rules" / "rules.json"
    before = path.stat().st_mtime_ns if path.exists() else 0
    for value in range(20, 90):
        world.soil = value
        world.move(10)
    assert len(world.events("rule.skipped")) == 1
    assert "it is 89" in world.rules.engine.find("r").why
    assert (path.stat().st_mtime_ns if path.exists() else 0) == before


@pytest.mark.parametrize("value, known", [("21.5", 21.5), (" 7 ", 7), ("dry", "dry"), (True, True)])
def test_a_reading_that_is_a_number_in_a_text_is_a_number(tmp_path, value, known):
    world = World(tmp_path, READING)
    world.soil = value
    world.move(61)
    assert world.rules.engine.readings[0].value == known


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -float("inf"), 10**400, -(2**70), 1e16, "x" * 201],
    ids=["nan", "inf", "-inf", "huge", "large", "float", "text"],
)
def test_a_sensor_that_answers_nonsense_is_told_once_and_acts_on_nothing(tmp_path, value):
    rules = READING + RULE + 'on = "soil"\nbelow = 30\nfor = "90s"\n'
    world = World(tmp_path, rules)
    world.soil = value
    world.move(300)
    assert world.acted == []
    (event,) = world.events("reading.failed")
    assert "it returned " in event["reason"] and "which no sensor measures" in event["reason"]
    (line,) = world.commands.command(["/readings"])
    assert "which no sensor measures" in line
    json.dumps(world.commands.begin("claw.reading.list", {}), allow_nan=False)
    world.rules.samples.write(world.now_s(), True)
    world.soil = 50
    world.reset(1)
    world.move(61)
    assert world.rules.engine.readings[0].value == 50


def test_an_approval_holds_for_the_rule_of_the_policy_that_asked(tmp_path):
    """The policy is looked at again: when another rule of it asks by then, it asks again."""
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    other = [dict(ASK[0], id="another"), *ALLOW]
    loaded = project(tmp_path / "other", RULE + 'at = "08:01"\n', other)
    world.agent.setup.image = image_of(compiler.build(loaded).data, "test")
    world.answer(True)
    assert world.acted == [] and len(world.agent.waiting) == 1
    world.answer(True)
    assert len(world.acted) == 1


@pytest.mark.parametrize(
    "rules, policy, said",
    [
        (None, [{"id": "no", "action": "deny", "scope": "all"}], "rule no blocks water"),
        ("seconds = 3", None, "at most 2"),
    ],
    ids=["policy", "schema"],
)
def test_policy_and_schema_are_looked_at_again_when_the_answer_comes(tmp_path, rules, policy, said):
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    folder = tmp_path / "other"
    project(folder, RULE + 'at = "08:01"\n', policy or ASK)
    if rules:  # what the question asked for is no more what the tool takes
        path = folder / "claw.yaml"
        path.write_text(path.read_text().replace('"maximum": 60', '"maximum": 2'))
        (folder / "reflex.toml").write_text(
            (RULE + 'at = "08:01"\n').replace("seconds = 3", "seconds = 2")
        )
    image = image_of(compiler.build(manifest.load(folder)).data, "test")
    world.agent.setup.image = image
    world.answer(True)
    assert world.acted == [] and world.agent.waiting == []
    assert said in world.told[-1], world.told
    assert world.events("rule.run")[-1]["status"] in ("refused", "error")


def test_the_role_of_a_person_is_looked_at_when_they_answer(tmp_path, monkeypatch):
    world, source, say = peopled(tmp_path, monkeypatch, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    number = world.agent.waiting[0].approval.number
    assert [to for to, _, _ in source.sent] == ["3"]
    source.channel.access._roles["3"] = 1  # who was asked as an admin is a user by now
    assert say("3", "/approve %d" % number)[0][1] == "Only an admin approves."
    assert world.acted == [] and len(world.agent.waiting) == 1


def test_one_process_runs_the_rules_and_another_takes_over(tmp_path):
    first = World(tmp_path, RULE + 'every = "5m"\nat_most = "3/day"\n')
    first.move(301)
    second = World(tmp_path, RULE + 'every = "5m"\nat_most = "3/day"\n')
    second.move(900)
    assert second.acted == [] and "belong to process" in second.told[0]
    assert second.commands.command(["/rules"])[0].startswith("The rules of this agent run in proc")
    with pytest.raises(ClawError):
        second.commands.begin("claw.rule.list", {})
    first.rules.close()
    second.move(1000)
    assert len(second.acted) == 2  # what the first has counted counts
    second.rules.close()


def test_an_agent_that_failed_goes_on_with_its_rules(tmp_path):
    world = World(tmp_path, RULE + 'at = "08:01"\n', ASK)
    world.move(61)
    assert len(world.agent.waiting) == 1
    world.agent.lifecycle.fail(ClawError("the disk failed", "mend it"), world.ms)
    world.settle()
    assert world.agent.waiting == []
    world.move(120)  # it starts again by itself
    assert world.agent.is_ready and len(world.agent.waiting) == 1
    world.answer(True)
    assert len(world.acted) == 1


def test_the_first_step_that_fits_is_said(tmp_path):
    written = (
        RULE
        + 'every = "5m"\n'
        + 'then = [{ if = "failed", say = "ill" }, { if = "result == \\"done\\"", say = "fine" }, '
        + '{ say = "odd" }]\n'
    )
    world = World(tmp_path, written)
    world.move(301)
    assert world.told == ["[rule r] fine"]


def test_samples_are_written_together(tmp_path):
    world = World(tmp_path, READING.replace("60s", "1s"))
    writes, run = [], world.rules.samples._run
    world.rules.samples._run = lambda work: writes.append(1) or run(work)
    world.move(300)
    assert 9 <= len(writes) <= 11
    assert len(world.rules.samples.since(0)) == 301


@pytest.mark.parametrize("missed", ["skip", "once"])
def test_a_run_that_was_cut_before_its_tool_began_begins_again(tmp_path, missed):
    limits = {"inline": {"rules": ALLOW, "rate_limits": {"tool_calls_per_minute": 9}}}
    written = RULE + 'at = "08:01"\nmissed = "%s"\n' % missed
    world = World(tmp_path, written, policies=[limits])
    world.hold_stores = True
    world.move(61)
    world.agent.lifecycle.fail(ClawError("the disk failed", "mend it"), world.ms)
    world.settle()
    world.hold_stores = False
    world.move(120)
    assert len(world.acted) == 1 and len(world.events("rule.run")) == 1


class Noted:
    """Edges that the kernel has noted: [(ms ago, pin, level), ...]."""

    def __init__(self):
        self.waiting = []

    def read(self) -> list:
        found, self.waiting = self.waiting, []
        return found

    def fileno(self) -> int:
        return -1


def test_edges_that_the_kernel_noted_begin_a_rule_and_nothing_is_polled(tmp_path):
    edges = Noted()
    world = World(tmp_path, RULE + 'pin = "door"\nedge = "rise"\n', edges=edges)
    world.move(1)
    assert world.rules.deadline() is None or world.rules.deadline() - world.ms > 1000
    edges.waiting = [(100, "door", 1), (20, "door", 0)]  # pressed for 80 ms, while nobody looked
    world.poll()
    assert len(world.acted) == 1
    edges.waiting = [(100, "door", 1), (80, "door", 0)]  # shorter than the debounce
    world.poll()
    world.move(1)
    assert len(world.acted) == 1
    edges.waiting = [(10, "door", 1)]  # it lasts
    world.pins["door"] = 1
    world.poll()
    assert 0 < world.rules.deadline() - world.ms <= 40
    world.move(0.1, 50)
    assert len(world.acted) == 2


def test_a_thousand_edges_a_second_are_few_runs_and_the_agent_goes_on(tmp_path):
    edges = Noted()
    world = World(
        tmp_path,
        READING + RULE + 'pin = "door"\n' + RULE.replace('"r"', '"e"') + 'every = "1s"\n',
        edges=edges,
    )
    for _ in range(50):
        edges.waiting = [(20 - n, "door", n % 2) for n in range(20)]
        world.move(0.02, 20)
    ran = [event["rule"] for event in world.events("rule.run")]
    assert ran.count("e") == 1 and ran.count("r") <= 1, ran


def test_two_people_who_answer_at_once_get_one_answer_each(tmp_path):
    world = World(tmp_path, RULE + 'every = "1m"\n', ASK)
    world.move(61)
    answer = {"name": "r", "reason": ""}
    world.commands.begin("claw.rule.answer", dict(answer, is_approved=True))
    with pytest.raises(ClawError) as raised:
        world.commands.begin("claw.rule.answer", dict(answer, is_approved=False))
    assert "r" in raised.value.message and raised.value.hint
    world.settle()
    world.poll()
    assert len(world.acted) == 1
    assert [event["answer"] for event in world.events("tool.approval")] == ["approved"]


def test_a_disk_that_is_full_is_told_once_and_rules_go_on(tmp_path, monkeypatch, capfd):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("clawlite.linux.rules.samples.own_file", full)
    world = World(tmp_path, READING + RULE + 'every = "10m"\nif = "soil < 30"\n')
    world.move(3600)
    assert len(world.acted) == 6
    assert capfd.readouterr().err.count("No space left on device") == 1
