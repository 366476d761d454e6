"""What the templates with rules must have done in a simulated week with resets at random moments,
on Linux and on a virtual board: a *week* is either.

    now_s()              seconds since 1970
    live(seconds, off_s) let time pass; then it is reset, and off for so long
    told                 what people were told, as one text
    acts(tool)           [seconds since 1970, ...] at which a tool began
    audit_folder()       where its audit is
    chain()              the records of its audit, once that is verified
    list_samples(name)   [(seconds since 1970, value), ...] of the samples that it has

A rehearsal of that week is what happened, with its resets: the same runs, times and decisions.
"""

import random

from rules_world import EPOCH_S

from clawlite.core.base.instant import from_iso8601
from clawlite.linux.admin.rehearse import list_calls
from clawlite.linux.files.files import image_of
from clawlite.linux.rules.rehearsal import Rehearsal

DAY_S, HOUR_S = 86400, 3600
WEEK_S = 7 * DAY_S + 600
RESETS = 50
# tools with side effects; those that may run twice begin again when a reset has cut them
CHANGES = {
    "weather": [],
    "freezer": ["sound-alarm"],
    "door": ["ring", "open-door"],
    "thermostat": ["heat"],
}
REPEATED = ("sound-alarm", "ring")
# the button of the door is pressed at the end of each hour, for 400 ms
DOOR_RESTS = [HOUR_S * 1000, 1800, HOUR_S * 1000 - 600]
_OPEN_S = 2  # around a press
NOT_KNOWN = "how it ended is not known, and it is not repeated"


def live_a_week(week, seed: int, more=()) -> list:
    """Let a week pass with RESETS resets, at random moments and *more* seconds after its begin;
    return [(from, to), ...], between which seconds since 1970 it was on.
    """
    chance, began, spans = random.Random(seed), week.now_s(), []
    for at in sorted([*chance.sample(range(1, WEEK_S), RESETS - len(more)), *more]):
        seconds = began + at - week.now_s()
        if seconds > 0:
            spans.append((week.now_s(), began + at))
            week.live(seconds, chance.choice((0, 0, 30, 900)))
    spans.append((week.now_s(), began + WEEK_S))
    week.live(began + WEEK_S - week.now_s(), 0)
    return spans


def judge(name: str, week, spans: list):
    """Fail unless the template *name* did in *week* what it must."""
    chain = week.chain()
    _judge_chain(name, week, chain)
    JUDGES[name](week, spans, [one for one in chain if one["event"] == "tool.call"])


def _judge_chain(name: str, week, chain: list):
    """Each act is in the chain: that it began, and how it ended unless a reset has cut it; then it
    began again, or people were told.
    """
    for tool in CHANGES[name]:
        records = [one for one in chain if one["tool"] == tool]
        begun = [one for one in records if one["event"] == "tool.begin"]
        assert len(begun) == len(week.acts(tool)), (tool, len(begun), len(week.acts(tool)))
        cut = sum(
            one["event"] == other["event"] == "tool.begin"
            for one, other in zip(records, records[1:])
        )
        if tool not in REPEATED:
            assert week.told.count(NOT_KNOWN) in (cut, cut + 1), (tool, cut)
    assert {one["status"] for one in chain if "status" in one} <= {"ok"}
    if name != "thermostat":
        assert NOT_KNOWN not in week.told


def _times(calls: list, caller: str) -> list:
    """Return at which seconds since 1970 calls of *caller* ended."""
    return [from_iso8601(one["time"]) // 1000 for one in calls if one["caller"] == caller]


def _judge_weather(week, spans: list, calls: list):
    mornings = _times(calls, "rule/morning")
    assert len({at // DAY_S for at in mornings}) == len(mornings) == 7, mornings
    assert week.told.count("Good morning") == 7
    # 12 degrees, 11 of swing: below 2 once in each of the seven nights
    frosts = [float(text.split(" ")[0]) for text in week.told.split("Frost: ")[1:]]
    assert 6 <= len(frosts) <= 8 and all(degrees < 2 for degrees in frosts), frosts


def _judge_freezer(week, spans: list, calls: list):
    warm = [(at, degrees) for at, degrees in week.list_samples("freezer") if degrees > -15]
    hourly = _times(calls, "rule/still-warm")
    assert warm and week.acts("sound-alarm")[0] > spans[0][0] + 30 * HOUR_S
    assert all(after - before > HOUR_S - 60 for before, after in zip(hourly, hourly[1:])), hourly
    assert len(hourly) > 24
    # each hour in which it was warm, and on for most of the time
    for before, after in zip(hourly, hourly[1:]):
        if after - before > 1.5 * HOUR_S and before > warm[0][0]:
            between = [value for at, value in week.list_samples("freezer") if before <= at <= after]
            assert min(between) <= -15, (before, after)
    assert "The freezer is at -1" in week.told and "does not answer" not in week.told


def _judge_door(week, spans: list, calls: list):
    began, sure, perhaps = spans[0][0], 0, 0
    visits = _times(calls, "rule/visitor")
    for hour in range(1, 7 * 24 + 1):
        at = began + hour * HOUR_S
        sure += any(a <= at - _OPEN_S and at + _OPEN_S <= b for a, b in spans)
        perhaps += any(a <= at + _OPEN_S and at - _OPEN_S <= b for a, b in spans)
    assert sure <= len(visits) <= perhaps and sure > 150, (sure, len(visits), perhaps)
    assert len({(at - began + 10) // HOUR_S for at in visits}) == len(visits)  # none twice
    assert week.told.count("Somebody is at the door") == len(visits)
    assert week.acts("open-door") == []


def _judge_thermostat(week, spans: list, calls: list):
    degrees = [value for _, value in week.list_samples("room")]
    assert 18.0 < min(degrees) and max(degrees) < 21.6, (min(degrees), max(degrees))
    # about 2.4 hours to cool by 2 degrees and half an hour to heat: no relay that chatters
    assert 30 < len(week.acts("heat")) < 120


JUDGES = {
    "weather": _judge_weather,
    "freezer": _judge_freezer,
    "door": _judge_door,
    "thermostat": _judge_thermostat,
}


def compare_rehearsal(data: bytes, record: tuple, week, from_s: int, within_s: int, habits):
    """Fail unless a rehearsal of the image *data* from *from_s* on with *record*, (samples, edges,
    lives), is what the audit of *week* says that rules did; *within_s*: how exact its times are,
    *habits*: of core/rules/rehearsal.py.
    """
    to_s, (samples, edges, lives), chain = week.now_s(), record, week.chain()
    image, lasted = image_of(data, "test"), list_calls(week.audit_folder(), from_s)
    played = Rehearsal(image, samples, from_s, to_s, (), None, edges, None, lasted, lives, habits)
    played.play()
    runs = [
        (run["at"], run["rule"], run["tool"], run["action"], run["rule_id"], run["status"])
        for run in played.runs
        if run["status"] != "cut"  # how it ended is on record nowhere
    ]
    happened = [
        (
            from_iso8601(one["time"]) // 1000,
            one["caller"][len("rule/") :],
            *(one[key] for key in ("tool", "action", "rule_id", "status")),
        )
        for one in chain
        if one["event"] == "tool.call" and one["caller"].startswith("rule/")
    ]
    # what was just kept, or is under way at the end
    last_s = max([at_s for at_s, _, _ in samples] + [at // 1000 for at, _, _ in edges]) - 60
    # a press before the first record may be on record by its end alone
    first_s = from_s if from_s == EPOCH_S else from_s + 60
    runs, happened = [
        [one for one in all if first_s <= one[0] < last_s] for all in (runs, happened)
    ]
    assert [one[1:] for one in runs] == [one[1:] for one in happened], _differ(runs, happened)
    times = [abs(one[0] - other[0]) for one, other in zip(runs, happened)]
    assert max(times) <= within_s, _differ(runs, happened, within_s)


def _differ(runs: list, happened: list, within_s: int = 0) -> tuple:
    """Return the first two that differ."""
    for one, other in zip(runs, happened):
        if one[1:] != other[1:] or abs(one[0] - other[0]) > within_s:
            return one, other
    return len(runs), len(happened), runs[len(happened) :][:1], happened[len(runs) :][:1]
