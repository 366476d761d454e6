"""A rehearsal: the rules of an image are played against recorded readings, in simulated time,
through the real engine and the one pipeline; so are the edges of pins.  Nothing acts: what a call
would have changed is not simulated.

A person's answer comes from the record, when the same tool was approved or denied within the time
of the question; else nobody answers, unless the rehearsal is told what to answer.
"""

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.core.base.render import call_text
from clawlite.core.policy.ledger import CALLS, ENTRY_AMOUNT, ENTRY_KEY, Ledger, add
from clawlite.core.rules import table
from clawlite.core.rules.engine import Times
from clawlite.linux.rules.rules import Rules

NOT_RUN = "(not run: this is a rehearsal)"
_FRESH_S = 90  # a sample holds for two periods of its reading, and at least for so long
_NEAR_S = 15
_AT_S, _VALUE = 0, 1  # of a sample; an answer has _AT_S, too
_YES = 2  # of an answer
_UNTIL, _TASK = 0, 1  # of a call that runs
MAX_STEPS = 5000000
HERE_S = 86400  # at the console
MOST_LINES = 40
NOTHING_ACTS = "Nothing acted, and what an act would have changed is not simulated."


class _Pins:
    """The levels of pins, as they are on record: in place of ``edges.Edges``.

    edges   [(ms, pin, level), ...], the earliest first
    now_ms  function -> ms
    """

    def __init__(self, edges: list, now_ms):
        self._edges, self._now_ms = edges, now_ms
        self._at = 0  # the place of the next one
        self._levels = {}
        for _, pin, level in edges:  # before the first one, a pin has the other level
            self._levels.setdefault(pin, 1 - level)

    def value(self, name: str) -> int:
        return self._levels.get(name, 0)

    def step(self):
        """Go on to the present, by one edge at most: each level is seen."""
        at_ms = self.next_ms()
        if at_ms is not None and at_ms <= self._now_ms():
            _, pin, self._levels[pin] = self._edges[self._at]
            self._at += 1

    def next_ms(self):
        """Return when the next edge comes, or None."""
        return self._edges[self._at][0] if self._at < len(self._edges) else None

    def read(self) -> list:
        return []


class _Player(Rules):
    """``Rules`` whose readings come from the record.

    section  the readings and rules that are played
    """

    def __init__(self, agent, now_ms, times, value_of, pins, section):
        super().__init__(agent, now_ms, times, None, pins.value, pins, section)
        self._value_of, self._begun = value_of, []

    def _read(self, number: int):
        self._begun.append(number)

    def _ask_model(self, name: str, prompt: str, to_admins: bool):
        self.tell("[rule %s] (asks a model: %s)" % (name, prompt), to_admins)

    def end_reads(self):
        """End the readings that have begun: a tool takes some time, too."""
        begun, self._begun = self._begun, []
        for number in begun:
            value = self._value_of(number)
            wrong = ClawError("nothing on record", "play a time that has samples")
            self._sample(number, value, wrong if value is None else None)

    def await_samples(self, next_ms):
        """Let each reading be due when its next sample was taken; *next_ms*: function(number) ->
        that time, or None when that is too late.
        """
        for number, reading in enumerate(self.engine.readings if self.engine else ()):
            at_ms = None if reading.is_under_way else next_ms(number)
            if at_ms is not None:
                reading.due_ms = at_ms


class Rehearsal:
    """One rehearsal.

    image    ``image.Image``
    samples  [(at_s, reading, value), ...], the earliest first
    from_s, to_s   the time that is played
    answers  [(at_s, tool, is approved), ...] of people, the earliest first
    answer   True or False: what a person answers at once, whatever is on record; or None
    edges    [(at_ms, pin, level), ...], the earliest first
    section  the readings and rules that are played (table.py), or None: those of the image
    lasted   [(begun_s, tool, ms), ...] of calls, the earliest first: one that is played near such a
             time takes so long, and others no time
    ``runs``: [{at, rule, tool, arguments, action, rule_id, status, values}, ...] afterwards;
    ``skipped``: {rule: {reason: count}}; ``said``: [(at_s, text), ...]
    """

    def __init__(
        self,
        image,
        samples: list,
        from_s: int,
        to_s: int,
        answers=(),
        answer=None,
        edges=(),
        section=None,
        lasted=(),
    ):
        self._samples = {}
        for at_s, name, value in samples:
            self._samples.setdefault(name, []).append((at_s, value))
        self._places = dict.fromkeys(self._samples, 0)
        self._from_s, self._to_s = from_s, to_s
        self._answers, self._answer = list(answers), answer
        self._lasted, self._running = list(lasted), []  # _running: [(until ms, task, tool), ...]
        self._ms, self._spent = 1000, {}
        self.runs, self.skipped, self.said, self._calls = [], {}, [], {}
        self._agent = Agent(Setup(image), self._ms)
        self._ledger = Ledger(lambda: (self._ms, self._now_s()), lambda: self._spent)
        section = section or image.section(table.SECTION)
        self._records = section[table.READINGS]
        edges = [(at_ms - from_s * 1000 + 1000, pin, level) for at_ms, pin, level in edges]
        self._pins = _Pins([edge for edge in edges if edge[0] >= 1000], lambda: self._ms)
        self._rules = _Player(
            self._agent, lambda: self._ms, self._times, self._value_of, self._pins, section
        )

    def play(self, reach=None):
        """Play all of it.

        reach  function(milliseconds that are played) for who watches, or None
        """
        agent, end_ms = self._agent, 1000 + (self._to_s - self._from_s) * 1000
        agent.start(self._ms)
        for _ in range(MAX_STEPS):
            self._rules.poll()
            self._settle()
            self._rules.end_reads()
            self._rules.await_samples(self._next_ms)
            due = [self._rules.deadline(), agent.deadline(), self._pins.next_ms()]
            due = [at for at in due if at is not None]
            due += [until_ms for until_ms, _, _ in self._running]
            due += [at for at in (self._answer_ms(task) for task in agent.waiting) if at]
            self._ms = max(self._ms + 1, min([*due, end_ms]))
            if self._ms >= end_ms:
                return
            if reach:
                reach(self._ms - 1000)
            self._pins.step()
            agent.tick(self._ms)
            for one in [one for one in self._running if one[_UNTIL] <= self._ms]:
                self._running.remove(one)
                _, task, tool = one
                self._end_call(task, tool)
            for task in list(agent.waiting):
                self._answer_question(task)
            self._settle()
        raise ClawError("the rehearsal has too many steps", "play less of it: --since 1d")

    def _now_s(self) -> int:
        return self._from_s + (self._ms - 1000) // 1000

    def _times(self) -> Times:
        return Times(self._ms, self._now_s())

    def _value_of(self, number: int):
        """Return what the reading had on record at this time, None for nothing."""
        record = self._records[number]
        name, now_s = record[table.NAME], self._now_s()
        kept, place = self._samples.get(name, ()), self._places.get(name, 0)
        while place + 1 < len(kept) and kept[place + 1][_AT_S] <= now_s:
            place += 1
        self._places[name] = place
        if not kept or not now_s - _fresh_s(record) <= kept[place][_AT_S] <= now_s:
            return None
        return kept[place][_VALUE]

    def _next_ms(self, number: int):
        """Return when the next sample of a reading was taken, None when the last one does not hold
        until then.
        """
        record, now_s = self._records[number], self._now_s()
        name = record[table.NAME]
        kept, place = self._samples.get(name, ()), self._places.get(name, 0)
        while place < len(kept) and kept[place][_AT_S] <= now_s:
            place += 1
        if place == len(kept) or kept[place][_AT_S] - now_s > _fresh_s(record):
            return None
        return 1000 + (kept[place][_AT_S] - self._from_s) * 1000

    # -- people

    def _find_recorded(self, task):
        """Return the recorded answer to the question of *task*, or None."""
        since_s = self._from_s + (task.approval.since_ms - 1000) // 1000
        for answer in self._answers:
            at_s, tool, _ = answer
            if tool == task.approval.tool.name and (
                since_s <= at_s <= since_s + task.approval.timeout_s
            ):
                return answer
        return None

    def _answer_ms(self, task):
        if self._answer is not None:
            return self._ms
        found = self._find_recorded(task)
        return found and 1000 + (found[_AT_S] - self._from_s) * 1000

    def _answer_question(self, task):
        if task.approval is None:
            return
        if self._answer is not None:
            self._agent.answer(task, self._answer, "", self._ms)
            return
        found = self._find_recorded(task)
        if found and found[_AT_S] <= self._now_s():
            self._answers.remove(found)
            self._agent.answer(task, found[_YES], "a person said no", self._ms)

    # -- effects

    def _settle(self):
        effect = self._agent.next_effect()
        while effect:
            self._carry_out(*effect)
            effect = self._agent.next_effect()

    def _carry_out(self, kind: int, subject, what=None, *_):
        """Carry out one effect; *subject* is its task's number, or what it says."""
        agent = self._agent
        if kind == E.RUN:
            lasted_ms = self._find_lasted(what.name)
            if lasted_ms:
                self._running.append((self._ms + lasted_ms, subject, what))
            else:
                self._end_call(subject, what)
        elif kind == E.CANCEL:
            self._running = [one for one in self._running if one[_TASK] != subject]
        elif kind == E.RESOLVE:
            agent.done(subject, (True, what), self._ms)
        elif kind == E.STORE:
            agent.done(subject, (True, self._store(what)), self._ms)
        elif kind == E.KEEP:
            agent.done(subject, (True, []), self._ms)
        elif kind == E.TELL:
            self.said.append((self._now_s(), subject))
        elif kind == E.LOG:
            self._note(subject)

    def _find_lasted(self, tool: str) -> int:
        """Return how many ms a call of *tool* took that began about now, 0 when none did."""
        for one in self._lasted:
            at_s, name, lasted_ms = one
            if name == tool and abs(at_s - self._now_s()) <= _NEAR_S:
                self._lasted.remove(one)
                return lasted_ms
        return 0

    def _end_call(self, task: int, tool):
        output, tool.output = tool.output, None  # what is said here has no shape
        try:
            self._agent.done(task, (True, NOT_RUN), self._ms)
        finally:
            tool.output = output

    def _store(self, entries: list):
        if not entries:
            return self._ledger.today()
        if entries[0][ENTRY_KEY] == CALLS:
            entries = self._ledger.call(entries[0][ENTRY_AMOUNT])
        return add(self._spent, entries)

    def _note(self, event: dict):
        what = event["event"]
        if what == "tool.call":
            self._calls[event["caller"]] = event
        elif what == "rule.run":
            made = self._calls.pop("rule/" + event["rule"], {})
            self.runs.append(
                {
                    "at": self._now_s(),
                    "rule": event["rule"],
                    "tool": made.get("tool"),
                    "arguments": made.get("arguments"),
                    "action": made.get("action"),
                    "rule_id": made.get("rule_id"),
                    "approval": made.get("approval"),
                    "status": event["status"],
                    "reason": event.get("reason", ""),
                    "values": event["values"],
                }
            )
        elif what in ("rule.skipped", "rule.missed", "rule.off"):
            reasons = self.skipped.setdefault(event["rule"], {})
            reasons[event["reason"]] = reasons.get(event["reason"], 0) + 1


def _fresh_s(record: list) -> int:
    """Return how long a sample of a reading holds."""
    return max(_FRESH_S, 2 * record[table.EVERY_MS] // 1000)


def lines_of(played, from_s: int, to_s: int, samples: int, pins: list) -> list:
    """Return what a rehearsal says to people; *pins*: rules that were not played."""
    lines = ["%s to %s, %d samples" % (iso8601(from_s), iso8601(to_s), samples)]
    for run in played.runs:
        called = call_text(run["tool"] or "?", run["arguments"] or {})
        why = {"ok": "would run", "denied": "asks, and is denied", "expired": "asks"}
        said = why.get(run["status"], run["status"])
        if run["approval"] == "approved":
            said = "asks, is approved, and would run"
        by = " (rule %s)" % escape_name(run["rule_id"]) if run["rule_id"] else ""
        values = ", ".join("%s=%s" % (name, run["values"][name]) for name in run["values"])
        lines.append(
            "%s  %s: %s %s%s%s"
            % (
                iso8601(run["at"]),
                escape_name(run["rule"]),
                escape_line(called, 200),
                said,
                by,
                "; " + escape_line(values, 200) if values else "",
            )
        )
    for name in sorted(played.skipped):
        for reason in sorted(played.skipped[name]):
            lines.append("%s left out: %s" % (escape_name(name), escape_line(reason, 200)))
    if pins:
        lines.append("Not played, because no edges are on record: %s" % ", ".join(pins))
    return [*lines, NOTHING_ACTS]


def rehearse_day(rules, name: str) -> tuple:
    """Return (the ``Rehearsal`` of the rule *name* of *rules* (``Rules``) and the last day, its
    begin, its end, how many samples): more than a day would hold up the loop.  Raises
    ``ClawError``.
    """
    image, kept, to_s = rules.agent.image, rules.samples, rules.times().wall_s
    kept.write(to_s, True)
    from_s = to_s - HERE_S
    samples, edges = kept.since(from_s), kept.spread_edges(from_s)
    section = pick_rule(rules.section, name)
    played = Rehearsal(image, samples, from_s, to_s, (), None, edges, section)
    played.play()
    return played, from_s, to_s, len(samples)


def rehearse_here(rules, name: str) -> list:
    """Return the lines about the rule *name* of *rules* (``Rules``) and the last day."""
    try:
        played, from_s, to_s, samples = rehearse_day(rules, name)
        lines = lines_of(played, from_s, to_s, samples, [])
    except ClawError as e:
        return [e.message]
    return lines if len(lines) <= MOST_LINES else lines[: MOST_LINES - 2] + ["...", lines[-1]]


def describe(played, from_s: int, to_s: int, samples: int, pins: list) -> dict:
    """Return what ``lines_of`` says, as data."""
    return {
        "from": iso8601(from_s),
        "to": iso8601(to_s),
        "samples": samples,
        "runs": [dict(run, at=iso8601(run["at"])) for run in played.runs],
        "said": [{"at": iso8601(at_s), "text": text} for at_s, text in played.said],
        "skipped": played.skipped,
        "not_played": pins,
    }


def pick_rule(section: list, name: str) -> list:
    """Return *section* with the one rule *name*."""
    rules = [rule for rule in section[table.RULES] if rule[table.NAME] == name]
    return [section[table.READINGS], rules, section[table.CLOCK]]
