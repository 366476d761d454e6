"""Readings and rules on a board: the same engine and pipeline as on Linux, in the board's loop, and
what must survive is in its flash.
"""

import json
import random
import shutil

import pytest
from agents import INITIALIZE, clawlite
from rules_world import ALLOW, ASK, EPOCH_S, READING, RULE

from clawlite.core.base.instant import from_iso8601
from clawlite.core.rules import table
from clawlite.core.rules.rehearsal import NOTHING_ACTS, OF_BOARD, pick_rule
from clawlite.linux.files.files import image_of
from clawlite.linux.rules.board_samples import read_samples
from clawlite.linux.rules.rehearsal import Rehearsal, lines_of
from clawlite.linux.rules.samples import spread

# each call is in the log
LOGGED = [{"id": "all", "action": "audit-only", "scope": "all"}]


def test_a_rule_acts_through_the_pipeline_with_its_name_as_the_caller(make_rule_board):
    board = make_rule_board(
        READING + RULE + 'every = "5m"\nif = "soil < 30"\n'
        'then = [{ say = "Watered at {soil}: {result}", to = "admins" }]\n',
        LOGGED,
    )
    board.run(310)
    assert board.acted == [(EPOCH_S + 300, "begin"), (EPOCH_S + 303, "end")]
    calls = [one for one in board.events("tool.call") if one["tool"] == "water"]
    assert [(one["caller"], one["status"]) for one in calls] == [("rule/r", "ok")]
    assert board.events("rule.run")[0]["values"] == {"soil": 20}
    assert "[rule r] Watered at 20: done" in board.told


@pytest.mark.parametrize("seed", range(2))
def test_a_week_with_resets_loses_no_run_and_repeats_none(make_rule_board, seed):
    """50 resets at random moments, some while the tool runs: each time of the schedule ends once,
    whatever way.
    """
    dice = random.Random(seed)
    board = make_rule_board(
        READING.replace("60s", "10m")
        + RULE
        + 'cron = "0 */2 * * *"\nmissed = "all"\nif = "soil < 30"\n',
        LOGGED,
    )
    for _ in range(50):
        seconds = dice.randint(1, 150) * 60
        if dice.random() < 0.5:  # in the middle of a run
            seconds = 7200 - board.wall_s % 7200 + dice.randint(0, 3)
        board.run(seconds, dies=True, off_s=dice.choice((2, 30, 600, 7200, 30000)))
    board.run(2 * 3600)
    ended = {}
    for event in board.events("rule.run"):
        ended.setdefault(event["at"], []).append(event["status"])
    assert all(len(statuses) == 1 for statuses in ended.values()), ended
    wanted = [at for at in range(EPOCH_S, board.wall_s) if at % 7200 == 0 and at > EPOCH_S]
    begun = [at for at, what in board.acted if what == "begin"]
    assert sorted(ended) == wanted and len(begun) == len(wanted)
    statuses = [status for one in ended.values() for status in one]
    assert {"ok", "cut"} == set(statuses)
    assert statuses.count("ok") <= len([1 for _, what in board.acted if what == "end"])
    assert board.told.count("how it ended is not known, and it is not repeated") == (
        statuses.count("cut")
    )


def test_what_must_follow_a_call_is_looked_at_while_it_runs(make_rule_board):
    board = make_rule_board(
        READING.replace("60s", "1h") + RULE + 'every = "1m"\n',
        LOGGED,
        settings='[[pins]]\nname = "pump"\npin = 5\nkind = "output"\n[confirm.water]\n'
        'reading = "soil"\nabove = 50\nwithin = "2s"\npins = ["pump"]\n',
        heap="240k",
    )
    board.run(200)
    assert board.acted == [(EPOCH_S + 60, "begin")]  # it was ended, and the rule rests
    why = "soil above 50 within 2000 ms is not confirmed: it is 20"
    assert "it is off now: water failed: " + why in board.told
    assert (board.world / "set").read_text().count("5=0") >= 1
    (event,) = [one for one in board.events("tool.call") if one["tool"] == "water"]
    assert event["status"] == "error" and why in event["confirm"]
    board.run(200)
    assert len(board.acted) == 1
    board.write("soil", "60")
    board.run(100, [(1, "/rules on r")])
    board.run(100)
    assert [what for _, what in board.acted][:3] == ["begin", "begin", "end"]
    assert "was 60" in board.events("tool.call")[-1]["confirm"]


def test_commands_and_questions_at_the_console(make_rule_board):
    board = make_rule_board(READING + RULE + 'every = "5m"\n', ASK)
    said = board.run(700, [(310, "/rules"), (320, "/readings"), (330, "y"), (350, "/rules last")])
    assert "water(seconds=3)  (waits for a person)" in said and "soil                 20, " in said
    assert "rule/r asked for it" in said and "2027-01-15T08:05:33+00:00 ok" in said
    assert board.acted[0] == (EPOCH_S + 330, "begin")
    said = board.run(700, [(310, "n"), (320, "/rules off r"), (330, "/rules why r")])
    assert "It does not run: a person switched it off. /rules on r" in said
    assert len(board.acted) == 2
    assert "(off)" in board.run(700, [(10, "/rules")]) and len(board.acted) == 2  # it lasts


def test_a_question_waits_over_resets_with_the_time_that_is_left(make_rule_board):
    board = make_rule_board(RULE + 'at = "08:01"\n', ASK)
    board.run(70, dies=True, off_s=200)
    said = board.run(20, dies=True, off_s=300)
    assert "Approve water(seconds=3)?" in said
    board.run(100)
    assert "nobody approved it within" in board.told and board.acted == []


@pytest.mark.parametrize("value", ["float('nan')", "-1e300", "-(1 << 70)", "'x' * 300"])
def test_a_sensor_that_answers_nonsense_is_told_once_and_acts_on_nothing(make_rule_board, value):
    board = make_rule_board(READING + RULE + 'on = "soil"\nbelow = 30\n', LOGGED)
    board.write("soil", value)
    said = board.run(1300, [(1250, "/readings")], dies=True)
    assert "which no sensor measures" in said and board.acted == []
    assert len(board.events("reading.failed")) == 1
    board.write("soil", "20")
    board.run(61)
    assert [what for _, what in board.acted] == ["begin", "end"]


def test_flash_that_is_full_is_told_once_and_readings_go_on(make_rule_board):
    """Nothing acts whose beginning cannot be put on record."""
    look = RULE.replace('"r"', '"look"').replace('"water"', '"read-soil"')
    look = look.replace("seconds = 3", "") + 'every = "5m"\nthen = [{ say = "It is {percent}" }]\n'
    board = make_rule_board(READING + RULE + 'every = "5m"\n' + look, LOGGED)
    (board.flash / "rules").write_text("")  # no folder can be made: as when no block is free
    said = board.run(1300, [(1250, "/readings")])
    assert said.count("what must be kept of the rules cannot be written") == 1, said
    assert board.acted == [] and said.count("It is 20") == 4
    assert "that it begins cannot be put on record, so it does not" in said
    (board.flash / "rules").unlink()
    board.run(310)
    assert [what for _, what in board.acted] == ["begin", "end"]


def test_what_is_approved_is_looked_at_again(make_rule_board):
    board = make_rule_board(READING + RULE + 'at = "08:01"\nif = "soil < 30"\n', ASK)
    board.write("soil", "20 if now < %d else 80" % (EPOCH_S + 100))
    said = board.run(300, [(200, "y")])
    assert "Approve water(seconds=3)?" in said and "by now soil < 30 does not hold" in said, said
    assert board.acted == []


MORNING = RULE + 'at = "08:01"\n'
NO_MORE = [{"id": "no", "action": "deny", "scope": "tool", "match": {"name": "water"}}, *ASK]


@pytest.mark.parametrize(
    "rules, policy, more",
    [
        (MORNING.replace("3", "4"), ASK, {}),  # its arguments
        (MORNING, ALLOW, {}),  # the policy: it need not ask any more
        (MORNING, NO_MORE, {}),
        (MORNING, ASK, {"autonomy": "supervised"}),
        (MORNING, ASK, {"more_code": "\n\ndef _more():\n    pass\n"}),
    ],
    ids=["arguments", "allowed", "denied", "autonomy", "code"],
)
def test_an_image_that_changed_voids_the_question(make_rule_board, rules, policy, more):
    board = make_rule_board(MORNING, ASK)
    board.run(70, dies=True, off_s=5)
    board.build(rules, policy, **more)
    said = board.run(60, [(30, "y")])
    assert "its question is void" in said and board.acted == []


@pytest.mark.parametrize("first", [True, False])
def test_of_two_answers_the_first_counts_and_the_other_is_told(make_rule_board, first):
    """Two people, by an operator each, approve and deny what a rule asks."""
    board = make_rule_board(RULE + 'every = "5m"\n', ASK, heap="240k")
    begin = {"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE}
    lines = [(1, json.dumps(begin))]
    for number, approved in ((10, first), (11, not first)):
        params = {"name": "r", "is_approved": approved}
        request = {"jsonrpc": "2.0", "id": number, "method": "claw.rule.answer", "params": params}
        lines.append((310, json.dumps(request)))
    said = board.run(320, lines, line=["--stdio"])
    found = {one["id"]: one for one in map(json.loads, said.splitlines()) if "id" in one}
    assert found[10]["result"] == {"name": "r", "is_approved": first}
    assert "rule r: it waits for no approval" in found[11]["error"]["message"], found[11]
    assert [what for _, what in board.acted] == (["begin", "end"] if first else [])


def test_an_unset_clock_lets_periods_run_and_a_day_is_running_time(make_rule_board):
    board = make_rule_board(
        RULE + 'every = "1h"\nat_most = "2/day"\n' + RULE.replace('"r"', '"t"') + 'at = "07:00"\n'
    )
    board.wall_s = 0
    said = board.run(6 * 3600, [(3600 * 5, "/rules next")], dies=True)
    assert "The clock of this machine is not set" in said
    begun = [what for _, what in board.acted if what == "begin"]
    assert len(begun) == 2
    for _ in range(2):
        board.run(12 * 3600, dies=True)
    assert len([what for _, what in board.acted if what == "begin"]) == 4


def test_a_pin_that_changes_a_thousand_times_a_second_is_no_storm(make_rule_board):
    rule = RULE + 'pin = "door"\nedge = "rise"\nthen = [{ say = "Open: {result}" }]\n'
    # A look that finds no memory is left out, and the next one would see the level that it saw
    # before: what stands in for a pin takes some for each look.
    board = make_rule_board(rule, heap="240k")
    board.write("pin-4", "now // 60000 % 2")
    said = board.run(2 * 60 + 10)
    assert said.count("Open: done") == 1 and len(board.acted) == 2
    board.write("pin-4", "looks % 2")
    board.run(60)
    assert len(board.acted) == 2
    board.build(rule + 'debounce = "0ms"\n')  # then each look that differs is an edge
    said = board.run(120, [(100, "/rules why r")])
    assert "it seems to fire itself" in said and said.count("it is off now") == 1


@pytest.mark.parametrize("by_s", [366 * 86400 + 5, 3600, -3600, -400 * 86400])
def test_a_clock_that_jumps_runs_nothing_twice(make_rule_board, by_s):
    board = make_rule_board(RULE + 'cron = "*/10 * * * *"\nmissed = "all"\n', LOGGED)
    board.run(1210, dies=True)
    board.wall_s += by_s
    board.run(1210)
    at = [event["at"] for event in board.events("rule.run")]
    assert len(at) == len(set(at)) and len(at) <= 4 + max(0, min(by_s // 600, 100))


def ask_operator(board, seconds: int, asked: list) -> list:
    """Return the answers to [(seconds after the start, method, params), ...]."""
    begin = {"jsonrpc": "2.0", "id": 1, "method": "claw.initialize", "params": INITIALIZE}
    lines = [(1, json.dumps(begin))]
    for number, (at, method, params) in enumerate(asked):
        request = {"jsonrpc": "2.0", "id": number + 10, "method": method, "params": params}
        lines.append((at, json.dumps(request)))
    said = board.run(seconds, lines, line=["--stdio"])
    found = {one["id"]: one for one in map(json.loads, said.splitlines()) if "id" in one}
    return [found[number + 10] for number in range(len(asked))]


def test_samples_on_record_are_thinned_for_an_operator(make_rule_board):
    """Of files of whole days, of hours, and of what waits in memory; also without a clock."""
    board = make_rule_board(READING + 'keep = "1d"\nkeep_hourly = "30d"\n', heap="240k")
    board.write("soil", "now // 60 % 50 + 0.5")
    board.run(3 * 86400)
    known, _, _ = read_samples(str(board.flash / "readings"))
    begun_s = board.wall_s
    history = "claw.reading.history"
    asked = [
        (300, history, {"name": "soil"}),
        (310, history, {"name": "soil", "seconds": 7200, "points": 20}),
        (320, history, {"name": "soil", "seconds": 86400 * 30, "points": 1000}),
        (330, history, {"name": "soil", "seconds": 200}),
        (340, history, {"name": "air"}),
        (350, history, {"name": "soil", "points": 1}),
    ]
    day, hours, month, last, *wrong = ask_operator(board, 400, asked)
    day, hours, month, last = (one["result"] for one in (day, hours, month, last))
    assert [one["error"]["code"] for one in wrong] == [-32602] * 2
    assert "readings here: soil" in json.dumps(wrong[0]["error"])
    for found, at, seconds, most in (
        (day, 300, 86400, 60),
        (hours, 310, 7200, 20),
        (month, 320, 86400 * 30, 60),
        (last, 330, 200, 60),
    ):
        times = [at_s for at_s, _ in found["samples"]]
        from_s, to_s = (from_iso8601(found[key]) // 1000 for key in ("from", "to"))
        assert found["name"] == "soil" and to_s - from_s == seconds
        assert abs(to_s - begun_s - at) <= 1 and times == sorted(times)
        assert from_s <= times[0] and times[-1] <= to_s and len(times) <= most
    # they are samples, with the least and the most; of old days means of hours
    kept = {(at_s, value) for at_s, _, value in known}
    assert {tuple(one) for one in day["samples"] if one[0] < begun_s} <= kept
    values = [value for _, value in day["samples"]]
    assert len(values) > 50 and (min(values), max(values)) == (0.5, 49.5)
    assert month["samples"][0][0] < begun_s - 2 * 86400
    waits = [one for one in last["samples"] if one[0] > begun_s]
    assert len(waits) >= 2
    board.wall_s = 0
    (unset,) = ask_operator(board, 100, [(50, history, {"name": "soil"})])
    assert len(unset["result"]["samples"]) > 10


def test_a_history_of_damaged_files_is_what_can_be_read(make_rule_board):
    board = make_rule_board(READING, heap="240k")
    board.run(3600)
    (path,) = (board.flash / "readings").iterdir()
    whole = path.read_bytes()
    damage = b'["soil",1,[0,\n["soil"]\n["soil","x",[1]]\n' + b"\x00" * 5000 + b"\n"
    path.write_bytes(damage + whole)
    path.with_name(path.name + ".h").write_bytes(b'["soil",20833,[[1]]]\n')
    path.with_name(f"{int(path.name) - 1}.h").write_bytes(b'["soil",20832,[[23,1],3]]\n')
    asked = [(5, "claw.reading.history", {"name": "soil"}), (10, "claw.reading.list", {})]
    found, listed = ask_operator(board, 60, asked)
    assert len(found["result"]["samples"]) > 1 and "result" in listed
    assert {value for _, value in found["result"]["samples"]} == {20}
    path.write_bytes(b"\xff\xfe\xc3" * 2000)
    (found,) = ask_operator(board, 60, [(5, "claw.reading.history", {"name": "soil"})])
    assert len(found["result"]["samples"]) <= 1


def test_an_operator_sees_the_pins_of_a_board(make_rule_board):
    pins = '[[pins]]\nname = "pump"\npin = 15\nkind = "output"\n'
    board = make_rule_board(READING, settings=pins, heap="240k")
    (board.world / "pin-15").write_text("1")
    (found,) = ask_operator(board, 20, [(5, "claw.pin.list", {})])
    assert found["result"] == {
        "pins": [
            {"name": "pump", "kind": "output", "value": 1, "of": 1},
            {"name": "door", "kind": "input", "value": 0, "of": 1},
        ]
    }
    (board.world / "pin-15").unlink()
    (found,) = ask_operator(board, 20, [(5, "claw.pin.list", {})])
    assert [one["value"] for one in found["result"]["pins"]] == [None, 0]


def test_methods_of_an_operator(make_rule_board):
    board = make_rule_board(READING + RULE + 'every = "5m"\n', ASK, heap="240k")
    asked = [
        ("claw.rule.list", {}),
        ("claw.rule.answer", {"name": "r", "is_approved": True}),
        ("claw.reading.list", {}),
        ("claw.rule.why", {"name": "r"}),
        ("claw.rule.switch", {"name": "nobody", "is_on": False}),
    ]
    found = ask_operator(board, 340, [(310 + 5 * number, *one) for number, one in enumerate(asked)])
    assert "result" in found[0], found
    assert found[0]["result"]["rules"][0]["waits"] is True
    assert found[1]["result"] == {"name": "r", "is_approved": True}
    assert found[2]["result"]["readings"][0]["value"] == 20
    assert "r begins every 5m" in found[3]["result"]["text"]
    assert found[4]["error"]["code"] == -32602
    assert [what for _, what in board.acted] == ["begin", "end"]


def test_samples_are_kept_in_days_and_become_hours(make_rule_board):
    board = make_rule_board(
        READING.replace("60s", "10m")
        + 'keep = "1d"\nkeep_hourly = "30d"\n'
        + RULE
        + 'at = "07:00"\n'
    )
    board.write("soil", "now // 600 % 6")
    board.run(4 * 86400)
    names = sorted(path.name for path in (board.flash / "readings").iterdir())
    first = EPOCH_S // 86400
    assert [f"{first + day}.h" for day in range(3)] == [
        name for name in names if name.endswith(".h")
    ]
    assert len([name for name in names if not name.endswith(".h")]) == 2
    row = json.loads((board.flash / "readings" / f"{first + 1}.h").read_text())
    assert row[:2] == ["soil", first + 1] and len(row[2]) == 24
    assert [one[1:] for one in row[2][1:-1]] == [[0, 2.5, 5, 6]] * 22, board.told[-3000:]


@pytest.mark.parametrize("name", ["r", "_"])
@pytest.mark.parametrize("data", [b"", b"damage", b'00000000{"off": "x"}', b"\xff" * 5000])
def test_damaged_files_are_told_and_rules_go_on(make_rule_board, name, data):
    board = make_rule_board(RULE + 'every = "5m"\n')
    board.run(310, dies=True)
    (board.flash / "rules" / name).write_bytes(data)
    said = board.run(310)
    assert "was damaged and is dropped: " + name in said
    assert [what for _, what in board.acted].count("begin") == 2


REHEARSED = (
    READING.replace("60s", "10m")
    + 'keep = "2d"\n'
    + RULE
    + 'on = "soil"\nbelow = 2\nagain_above = 3\nfor = "5m"\n'
    + RULE.replace('"r"', '"d"')
    + 'pin = "door"\nedge = "rise"\nif = "soil < 3"\n'
    + RULE.replace('"r"', '"h"')
    + 'every = "1h"\nat_most = "3/day"\n'
)


def test_a_board_plays_what_it_has_on_record_as_linux_does(make_rule_board):
    board = make_rule_board(REHEARSED, heap="240k")
    board.write("soil", "now // 1200 % 6")
    board.write("pin-4", "now // 1800000 % 2")
    board.write("rests", "[600000, 200, 599900]")
    for seconds, off_s in ((9000, 0), (1234, 5000), (40, 0), (10000, 300)):
        board.run(seconds, dies=True, off_s=off_s)
    board.write("rests", "[null, 0, 0]")
    for name in ("r", "d", "h"):
        said = board.run(90, [(70, "/rehearse " + name)])
        begin = said.index("the answer comes below.\n")
        lines = [line.removeprefix("> ") for line in said[begin:].splitlines()[1:]]
        head = lines[0].split(" ")
        from_s, to_s = [from_iso8601(head[place].strip(",")) // 1000 for place in (0, 2)]
        rows, edges, lives = read_samples(str(board.flash / "readings"))
        rows = [row for row in rows if row[0] <= to_s]
        assert len(lives) >= 5 and to_s == board.wall_s - 20
        image = image_of((board.flash / "claw.cbor").read_bytes(), "test")
        section = pick_rule(image.section(table.SECTION), name)
        edges = [edge for edge in spread(edges) if edge[0] <= to_s * 1000]
        played = Rehearsal(image, rows, from_s, to_s, (), None, edges, section, (), lives, OF_BOARD)
        played.play()
        assert lines == lines_of(played, from_s, to_s, len(rows), []), name
        assert len(lines) > 4 and lines[-1] == NOTHING_ACTS
    acted = len(board.acted)
    said = board.run(90, [(10, "/rehearse x"), (20, "/rehearse")])
    assert "There is no rule x; rules here: r, d, h." in said and "/rehearse NAME" in said
    assert len(board.acted) <= acted + 4  # what was played acted on nothing


def test_a_heap_without_room_for_a_rehearsal_is_told(make_rule_board):
    board = make_rule_board(REHEARSED, heap="155k")
    board.run(90, dies=True)
    said = board.run(90, [(70, "/rehearse r"), (80, "/readings")])
    assert "The heap has no room for a rehearsal (" in said, said
    assert "clawlite rehearse --port PORT plays it" in said and "soil  " in said


def test_samples_and_edges_of_a_board_are_played_on_a_computer(make_rule_board, tmp_path):
    """``clawlite rehearse`` of a board, here of the folder that its flash is."""
    board = make_rule_board(
        READING.replace("60s", "10m")
        + 'keep = "2d"\n'
        + RULE
        + 'on = "soil"\nbelow = 2\nagain_above = 3\n'
        + RULE.replace('"r"', '"d"')
        + 'pin = "door"\nedge = "rise"\n',
        LOGGED,
    )
    board.write("soil", "now // 600 % 6")
    board.write("pin-4", "now // 1800000 % 2")
    board.write("rests", "[600000, 200, 599900]")
    board.run(6 * 3600 - 900)
    happened = [(one["rule"], one["timestamp"]) for one in board.events("rule.run")]
    assert len(happened) > 10
    state = tmp_path / "copy/state"
    shutil.copytree(board.flash / "readings", state / "readings")
    words = ["rehearse", "--dir", str(tmp_path / "copy"), "--since", "6h", "--json"]
    said = clawlite(*words, str(board.flash / "claw.cbor"), cwd=tmp_path)
    assert said.returncode == 0, said
    found = json.loads(said.stdout)
    assert found["samples"] >= 32 and found["not_played"] == []
    runs = [(run["rule"], run["at"]) for run in found["runs"] if run["status"] == "ok"]
    assert [name for name, _ in runs] == [name for name, _ in happened[: len(runs)]]
    assert len(runs) >= len(happened) - 1
    said = clawlite(*words, "--readings", "x", str(board.flash / "claw.cbor"), cwd=tmp_path)
    assert said.returncode == 2 and "name one of the two" in said.stderr
