"""A rehearsal on Linux (core/rules/rehearsal.py): the record comes from the samples, the log and
the audit of an agent, and its runs are kept to be shown.

A person's answer comes from the record, when the same tool was approved or denied within the time
of the question; else nobody answers, unless the rehearsal is told what to answer.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.core.rules import rehearsal, table
from clawlite.core.rules.rehearsal import (
    MOST_LINES,
    NOTHING_ACTS,
    OF_LINUX,
    first_line,
    line_of,
    lines_of_skipped,
    pick_rule,
)
from clawlite.linux.rules.rules import pins_of

__all__ = ["NOTHING_ACTS", "Rehearsal", "pick_rule"]
_NEAR_S = 15
_AT_S, _YES = 0, 2  # of an answer
MAX_STEPS = 5000000
HERE_S = 86400  # at the console


class Rehearsal(rehearsal.Rehearsal):
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
    lives, habits  as core/rules/rehearsal.py has them
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
        lives=(),
        habits=OF_LINUX,
    ):
        self._answers, self._answer, self._lasted = list(answers), answer, list(lasted)
        self.runs, self.said = [], []
        section = section or image.section(table.SECTION)
        by_name = {record[table.NAME]: [] for record in section[table.READINGS]}
        for at_s, name, value in samples:
            if name in by_name:
                by_name[name].append((at_s, value))
        levels = {name: [] for name in pins_of(section)}
        for at_ms, pin, level in edges:
            if pin in levels:
                levels[pin].append((at_ms, level))
        sources = [_source_of(by_name[record[table.NAME]]) for record in section[table.READINGS]]
        pins = {name: _source_of(levels[name]) for name in levels}
        super().__init__(image, section, from_s, to_s, sources, pins, lives, habits)

    def play(self, reach=None):
        """Play all of it.

        reach  function(milliseconds that are played) for who watches, or None
        """
        for _ in range(MAX_STEPS):
            if not self.step():
                return
            if reach:
                reach(self.now_ms - 1000)
        raise ClawError("the rehearsal has too many steps", "play less of it: --since 1d")

    def say(self, text: str):
        self.said.append((self.now_s(), text))

    def note_run(self, run: dict):
        self.runs.append(run)

    # -- what is on record

    def _find_recorded(self, task):
        """Return the recorded answer to the question of *task*, or None."""
        since_s = self.now_s() - (self.now_ms - task.approval.since_ms) // 1000
        for answer in self._answers:
            at_s, tool, _ = answer
            if tool == task.approval.tool.name and (
                since_s <= at_s <= since_s + task.approval.timeout_s
            ):
                return answer
        return None

    def find_answer_ms(self, task):
        if self._answer is not None:
            return self.now_ms
        found = self._find_recorded(task)
        return found and self.now_ms + (found[_AT_S] - self.now_s()) * 1000

    def answer_question(self, task):
        if self._answer is not None:
            self.agent.answer(task, self._answer, "", self.now_ms)
            return
        found = self._find_recorded(task)
        if found and found[_AT_S] <= self.now_s():
            self._answers.remove(found)
            self.agent.answer(task, found[_YES], "a person said no", self.now_ms)

    def find_lasted(self, tool: str) -> int:
        for one in self._lasted:
            at_s, name, lasted_ms = one
            if name == tool and abs(at_s - self.now_s()) <= _NEAR_S:
                self._lasted.remove(one)
                return lasted_ms
        return 0


def _source_of(rows: list):
    """Return function() -> the next of *rows*, or None."""
    left = iter(rows)
    return lambda: next(left, None)


def lines_of(played, from_s: int, to_s: int, samples: int, pins: list) -> list:
    """Return what a rehearsal says to people; *pins*: rules that were not played."""
    lines = [first_line(from_s, to_s, samples), *(line_of(run) for run in played.runs)]
    lines += lines_of_skipped(played.skipped)
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
    section, lives = pick_rule(rules.section, name), kept.lives_since(from_s)
    played = Rehearsal(image, samples, from_s, to_s, (), None, edges, section, (), lives)
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
