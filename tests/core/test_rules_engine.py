"""The engine of readings and rules: what is due, and what survives, over restarts, clocks that
jump, changes of the clocks and leap days.
"""

import json
import random

from clawlite.core.rules.engine import Engine, Times

DAY, HOUR = 86400, 3600
START_S = 1800000000 - 1800000000 % DAY  # 2027-01-15 00:00 UTC, a Friday
BERLIN = [
    [START_S - 365 * DAY, 3600],
    [1806195600, 7200],  # 2027-03-28 01:00 UTC
    [1824944400, 3600],  # 2027-10-31 01:00 UTC
]
SKIP, ONCE, ALL = 0, 1, 2


def at(hour: int, minute: int = 0) -> list:
    return [0, [[1 << minute, 1 << hour, 0xFFFFFFFE, 0x1FFE, 0x7F, False, False]]]


def rule(name: str, trigger: list, **more) -> list:
    return [
        name,
        trigger,
        more.get("when", []),
        "act",
        [],
        more.get("most"),
        more.get("pause", 0),
        more.get("missed", ONCE),
        [],
    ]


def reading(name: str, every_ms: int = 1000) -> list:
    return [name, "look", None, None, every_ms, DAY, 0]


class Device:
    """What a shell does: it keeps the state, runs what is due, and may be cut at any time.

    acted   [(rule, time of its schedule, wall time), ...]
    """

    def __init__(self, rules: list, readings=(), changes=None, wall_s: int = START_S):
        self.section = [list(readings), rules, ["UTC", changes or [[0, 0]], "", None]]
        self.up_ms, self.shift_s = 5000, wall_s - 5
        self.saved, self.acted, self.cut = "{}", [], []
        self.values = {}
        self.start()

    def start(self):
        self.engine = Engine(self.section, json.loads(self.saved), self.times())

    def times(self):
        return Times(self.up_ms, self.up_ms // 1000 + self.shift_s)

    def save(self):
        self.saved = json.dumps(self.engine.state)
        self.engine.changed = 0

    def reset(self, off_s: int = 0):
        """Lose what was not kept; *off_s*: the clock goes on meanwhile."""
        self.shift_s += self.up_ms // 1000 + off_s
        self.up_ms = 0
        self.start()

    def poll(self, cuts=None):
        """Do what is due; *cuts*: function -> whether the power fails now."""
        engine = self.engine
        for record, slot in engine.cut_runs():
            self.cut.append((record[0], slot))
            from clawlite.core.rules.engine import Run

            engine.end(Run(record, slot, {}), "cut", "", self.times())
            self.save()
        engine.poll(self.times())
        if engine.changed == 2:
            self.save()
        number = engine.next_reading(self.times())
        while number is not None:
            name = engine.readings[number].name
            engine.sample(number, self.values.get(name), self.times())
            number = engine.next_reading(self.times())
        while True:
            run = engine.next_run(self.times())
            if run is None:
                break
            engine.active = run
            if cuts and cuts():
                return True
            engine.begin(run, self.times(), True)
            self.save()
            self.acted.append((run.name, run.at_s, self.times().wall_s))
            if cuts and cuts():
                return True
            engine.end(run, "ok", "", self.times())
            self.save()
        return False

    def pass_s(self, seconds: int, step_s: int = 30, cuts=None):
        end = self.up_ms + seconds * 1000
        while self.up_ms < end:
            self.up_ms += step_s * 1000
            if self.poll(cuts):
                return

    def slots(self, name: str) -> list:
        return [slot for one, slot, _ in self.acted if one == name]


def test_a_time_of_the_day_runs_once_a_day():
    device = Device([rule("r", at(7))])
    device.pass_s(3 * DAY)
    assert device.slots("r") == [START_S + day * DAY + 7 * HOUR for day in range(3)]


def test_a_reset_in_the_minute_of_a_run_runs_it_once():
    device = Device([rule("r", at(7))])
    device.pass_s(7 * HOUR + 10, 10)
    for _ in range(5):
        device.reset(3)
        device.pass_s(20, 5)
    assert len(device.acted) == 1


def test_missed_runs_are_made_up_as_the_rule_says():
    device = Device(
        [
            rule("skip", at(7), missed=SKIP),
            rule("once", at(7), missed=ONCE),
            rule("all", at(7), missed=ALL),
        ]
    )
    device.pass_s(HOUR)
    device.reset(3 * DAY + 7 * HOUR)  # 2027-01-18 08:00
    device.pass_s(60)
    third = START_S + 3 * DAY + 7 * HOUR
    assert device.slots("skip") == []
    assert device.slots("once") == [third]
    assert device.slots("all") == [third - 3 * DAY, third - 2 * DAY, third - DAY, third]


def test_after_a_year_without_a_look_nothing_is_made_up():
    device = Device([rule("r", at(7), missed=ALL)])
    device.pass_s(HOUR)
    device.save()
    device.reset(400 * DAY)
    device.pass_s(HOUR)
    assert device.acted == []
    device.pass_s(DAY)
    assert len(device.acted) == 1


def test_a_clock_that_jumps_a_year_runs_nothing_for_it_and_nothing_twice_when_it_is_back():
    device = Device([rule("r", at(7), missed=ALL)])
    device.pass_s(8 * HOUR)
    device.shift_s += 370 * DAY
    device.pass_s(60)
    device.shift_s -= 370 * DAY
    device.pass_s(60)
    assert len(device.acted) == 1
    device.pass_s(DAY)
    assert device.slots("r") == [START_S + 7 * HOUR, START_S + DAY + 7 * HOUR]


def test_a_year_too_much_is_no_record_for_the_next_start():
    device = Device([rule("r", at(7), missed=ALL)])
    device.pass_s(8 * HOUR)
    device.shift_s += 370 * DAY
    device.pass_s(HOUR)
    device.save()
    device.reset()
    device.shift_s -= 370 * DAY
    device.start()
    device.pass_s(60)
    assert device.engine.is_set and len(device.acted) == 1
    device.pass_s(DAY)
    assert device.slots("r") == [START_S + 7 * HOUR, START_S + DAY + 7 * HOUR]


def test_a_year_too_much_is_believed_after_a_day():
    device = Device([rule("r", at(7), missed=ALL)])
    device.pass_s(8 * HOUR)
    device.shift_s += 370 * DAY
    device.pass_s(3 * DAY)
    assert len(device.acted) == 4
    device.save()
    device.reset(2 * DAY)
    device.pass_s(60)
    assert len(device.acted) == 6, "what was missed is made up for again"


def test_a_clock_that_is_set_before_the_first_run_has_missed_nothing():
    for by_s, runs in ((200 * DAY, 0), (10 * HOUR, 1)):
        device = Device([rule("r", at(7), missed=ALL)])
        device.pass_s(HOUR)
        device.reset(0)
        device.pass_s(60)
        device.shift_s += by_s
        device.pass_s(60)
        assert len(device.acted) == runs
        device.pass_s(DAY)
        assert len(device.acted) == runs + 1


def test_a_clock_that_is_put_back_an_hour_runs_nothing_twice():
    device = Device([rule("r", at(7))])
    device.pass_s(7 * HOUR + 60)
    device.shift_s -= 2 * HOUR
    device.pass_s(4 * HOUR)
    assert len(device.acted) == 1


def test_a_clock_that_is_not_set_runs_no_schedule_until_it_is():
    device = Device([rule("r", at(7)), rule("e", [1, 600000])], wall_s=1000)
    device.pass_s(10 * HOUR)
    assert device.slots("r") == [] and len(device.slots("e")) == 60
    assert not device.engine.is_set
    device.shift_s += START_S
    device.pass_s(DAY)
    assert len(device.slots("r")) == 1


def test_a_machine_that_boots_in_the_past_makes_up_once_its_clock_is_set():
    device = Device([rule("r", at(7))])
    device.pass_s(8 * HOUR)
    device.save()
    device.reset(2 * DAY)
    device.shift_s -= 5 * DAY
    device.start()
    device.pass_s(HOUR)
    assert len(device.acted) == 1 and not device.engine.is_set
    device.shift_s += 5 * DAY
    device.pass_s(60)
    assert device.slots("r") == [START_S + 7 * HOUR, START_S + 2 * DAY + 7 * HOUR]


def test_changes_of_the_clocks():
    spring = 1806195600 - 1806195600 % DAY  # the night in which 02:00 becomes 03:00
    device = Device([rule("r", at(2, 30))], changes=BERLIN, wall_s=spring - DAY)
    device.pass_s(3 * DAY)
    hours = [(slot + device.engine.zone.offset(slot)) % DAY / HOUR for slot in device.slots("r")]
    assert hours == [2.5, 3.0, 2.5]
    autumn = 1824944400 - 1824944400 % DAY  # 03:00 becomes 02:00
    device = Device([rule("r", at(2, 30))], changes=BERLIN, wall_s=autumn - DAY)
    device.pass_s(3 * DAY)
    assert device.slots("r") == [autumn + 1800 - DAY, autumn + 1800, autumn + DAY + 5400]


def test_a_leap_day_comes_after_four_years_of_looking():
    leap = [0, [[1, 1, 1 << 29, 1 << 2, 0x7F, False, False]]]
    device = Device([rule("r", leap)])
    device.pass_s(3 * 366 * DAY, 6 * HOUR)
    assert device.slots("r") == [1835395200]  # 2028-02-29


def test_at_most_holds_over_resets_and_begins_anew_with_the_day():
    device = Device([rule("e", [1, 60000], most=[3, DAY])])
    for _ in range(20):
        device.pass_s(300)
        device.reset(10)
    assert len(device.acted) == 3
    device.pass_s(DAY)
    assert len(device.acted) == 6


def test_at_most_is_no_more_when_the_clock_goes_back_a_day_or_was_not_set():
    device = Device([rule("e", [1, 60000], most=[2, DAY])], wall_s=START_S + 3 * DAY)
    device.pass_s(HOUR)
    device.shift_s -= 2 * DAY
    device.pass_s(HOUR)
    assert len(device.acted) == 2
    device = Device([rule("e", [1, 60000], most=[2, DAY])], wall_s=1000)
    device.pass_s(HOUR)
    device.shift_s += START_S
    device.pass_s(HOUR)
    assert len(device.acted) == 2


def test_a_least_pause_holds_over_resets_and_a_clock_that_goes_back():
    device = Device([rule("e", [1, 60000], pause=HOUR)])
    device.pass_s(120)
    for _ in range(5):
        device.reset(5)
        device.pass_s(600)
    assert len(device.acted) == 1
    device.shift_s -= 30 * DAY
    device.pass_s(HOUR + 60)
    assert len(device.acted) == 2
    device.pass_s(HOUR)
    assert len(device.acted) == 3


def test_a_threshold_fires_once_until_it_is_passed_back():
    device = Device(
        [rule("t", [3, "soil", True, 30, 35, 300000])], [reading("soil")], wall_s=START_S
    )
    device.values["soil"] = 40
    device.pass_s(60, 1)
    device.values["soil"] = 29
    device.pass_s(200, 1)
    device.values["soil"] = 31  # not for long enough
    device.pass_s(10, 1)
    device.values["soil"] = 20
    device.pass_s(299, 1)
    assert device.acted == []
    device.pass_s(3, 1)
    assert len(device.acted) == 1
    for value in (31, 34, 35, 20):
        device.values["soil"] = value
        device.reset(1)
        device.pass_s(400, 1)
    assert len(device.acted) == 1
    device.values["soil"] = 36
    device.pass_s(2, 1)
    device.values["soil"] = 1
    device.pass_s(301, 1)
    assert len(device.acted) == 2


def test_a_missing_value_breaks_the_time_for_which_a_threshold_is_passed():
    device = Device([rule("t", [3, "soil", False, 30, None, 60000])], [reading("soil")])
    device.values["soil"] = 50
    device.pass_s(40, 1)
    device.values["soil"] = None
    device.pass_s(1, 1)
    device.values["soil"] = 50
    device.pass_s(40, 1)
    assert device.acted == []
    device.pass_s(30, 1)
    assert len(device.acted) == 1


def test_edges_are_debounced_and_a_thousand_of_them_are_few_runs():
    device = Device([rule("d", [2, "door", 2, 50])])
    engine = device.engine

    def see(level, ms):
        device.up_ms += ms
        engine.see_level("door", level, device.times())
        device.poll()

    see(1, 1)  # the first look is no edge
    for _ in range(1000):
        see(0, 1)
        see(1, 1)
    assert device.acted == []
    see(0, 10)
    see(0, 60)  # it falls: not this rule's edge
    see(1, 10)
    see(1, 49)
    assert device.acted == []
    see(1, 1)
    assert len(device.acted) == 1
    see(1, 1000)
    assert len(device.acted) == 1


def test_a_rule_that_fires_itself_rests_until_a_person_resumes_it():
    device = Device([rule("d", [2, "door", 3, 0])])
    engine, level = device.engine, 0
    engine.see_level("door", 0, device.times())
    engine.see_level("door", 1, device.times())
    runs = 0
    while runs < 50:
        device.up_ms += 1000
        engine.poll(device.times())
        run = engine.next_run(device.times())
        if run is None:
            break
        engine.active = run
        engine.begin(run, device.times(), True)
        engine.see_level("door", level, device.times())  # what the call does moves the pin
        level = 1 - level
        engine.end(run, "ok", "", device.times())
        runs += 1
    assert runs == 10
    assert engine.events[-1]["event"] == "rule.off" and "fire itself" in engine.row("d")["off"]
    engine.switch("d", True)
    engine.see_level("door", level, device.times())
    assert engine.next_run(device.times()) is not None


def test_conditions_age_and_hours():
    device = Device(
        [
            rule("low", [1, 60000], when=[["soil", "<", 30]]),
            rule("fresh", [1, 60000], when=[[1, "soil", "<", 10]]),
            rule("night", [1, 60000], when=[[2, 22 * 60, 6 * 60]]),
        ],
        [reading("soil", 3600000)],
    )
    device.values["soil"] = 40
    device.pass_s(60)
    assert [one[0] for one in device.acted] == ["night"]
    assert "soil < 30 does not hold: it is 40" in device.engine.find("low").why
    assert "age(soil) < 10s" in device.engine.find("fresh").why
    device.values["soil"] = None
    device.pass_s(HOUR)
    device.acted = []
    device.pass_s(600)
    assert {one[0] for one in device.acted} == {"night"}
    assert "there is no value" in device.engine.find("low").why
    device.pass_s(6 * HOUR)
    device.acted = []
    device.pass_s(HOUR)
    assert device.acted == []


def test_a_run_that_is_made_up_waits_for_the_first_value():
    device = Device([rule("r", at(7), when=[["soil", "<", 30]])], [reading("soil")])
    device.values["soil"] = 10
    device.pass_s(HOUR)
    device.reset(8 * HOUR)
    device.engine.poll(device.times())
    assert device.engine.next_run(device.times()) is None
    device.poll()
    assert len(device.acted) == 1


def test_off_survives_and_what_was_due_meanwhile_is_not_made_up():
    device = Device([rule("r", at(7), missed=ALL)])
    device.engine.switch("r", False)
    device.save()
    device.pass_s(2 * DAY)
    device.reset(10)
    device.pass_s(DAY)
    assert device.acted == []
    device.engine.switch("r", True)
    device.pass_s(DAY)
    assert len(device.acted) == 1


def _slots_between(first: int, last: int, hours) -> list:
    return [
        day * DAY + hour * HOUR
        for day in range(first // DAY, last // DAY + 1)
        for hour in hours
        if first < day * DAY + hour * HOUR <= last
    ]


def test_over_random_resets_no_run_is_lost_and_none_comes_twice():
    """*all* runs each time once, whatever happens; a run that was cut had begun."""
    for seed in range(30):
        random.seed(seed)
        trigger = [0, at(7)[1] + at(19)[1]]
        device = Device([rule("all", trigger, missed=ALL), rule("once", trigger)])
        device.poll()
        device.save()
        outages = []
        for _ in range(50):
            device.pass_s(random.randint(1, 40) * 600, 30, lambda: random.randint(0, 5) == 0)
            before = device.times().wall_s
            device.reset(random.choice((1, 20, HOUR, DAY, 3 * DAY)))
            outages.append((before, device.times().wall_s))
        device.pass_s(DAY)
        expected = _slots_between(START_S, device.times().wall_s, (7, 19))
        assert sorted(device.slots("all")) == expected, seed
        once = device.slots("once")
        assert sorted(set(once)) == once and set(once) <= set(expected), seed
        for slot in expected:  # while it ran, and the last one of each outage
            # a cut in the minute of a run makes it one of the outage
            later = [end for begin, end in outages if begin - 60 <= slot <= end]
            if not later:
                assert slot in once, (seed, slot)
        for begin, end in outages:
            missed = [slot for slot in expected if begin + 60 < slot <= end]
            if missed and not [b for b, _ in outages if end <= b < end + 60]:
                assert missed[-1] in once, (seed, missed)


def test_over_random_jumps_of_the_clock_no_time_runs_twice():
    """Jumps to and fro within a day, and resets: each time runs at most once."""
    for seed in range(30):
        random.seed(seed)
        trigger = [0, [[1, 0xFFFFFF, 0xFFFFFFFE, 0x1FFE, 0x7F, False, True]]]
        device = Device([rule("r", trigger, missed=random.choice((SKIP, ONCE, ALL)))])
        drift = 0
        for _ in range(60):
            device.pass_s(random.randint(1, 20) * 300, 30, lambda: random.randint(0, 9) == 0)
            jump = random.randint(-12, 12) * 1800
            if abs(drift + jump) <= 12 * HOUR:
                drift += jump
                device.shift_s += jump
            if random.randint(0, 3) == 0:
                device.reset(random.randint(0, 7200))
        slots = device.slots("r")
        assert len(set(slots)) == len(slots) > 10, seed


def test_a_clock_that_passes_the_last_record_is_believed():
    device = Device([rule("r", at(7))])
    device.pass_s(8 * HOUR)
    device.save()
    device.reset()
    device.shift_s -= 3 * HOUR
    device.start()
    device.pass_s(2 * HOUR)
    assert not device.engine.is_set
    device.pass_s(HOUR + 60)
    assert device.engine.is_set
    device.pass_s(DAY)
    assert device.slots("r") == [START_S + 7 * HOUR, START_S + DAY + 7 * HOUR]


def test_the_time_in_which_it_was_off_counts_for_a_pause():
    device = Device([rule("e", [1, 60000], pause=HOUR)])
    device.pass_s(120)
    device.reset(2 * HOUR)
    device.pass_s(120)
    assert len(device.acted) == 2


def test_one_run_of_a_period_waits_at_most():
    device = Device([rule("e", [1, 60000])])
    engine = device.engine
    device.up_ms += 60000
    engine.poll(device.times())
    engine.active = run = engine.next_run(device.times())
    engine.begin(run, device.times(), True)
    for _ in range(10):
        device.up_ms += 60000
        engine.poll(device.times())
        assert engine.next_run(device.times()) is None
    engine.end(run, "ok", "", device.times())
    device.poll()
    assert len(device.acted) == 1
