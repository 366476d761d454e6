"""What people and operators ask of rules and readings: the commands /rules and /readings, and
clawlite's own methods ``claw.rule.*`` and ``claw.reading.*``.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import InvalidParams, InvalidRequest, PolicyDenied
from clawlite.core.base.printable import escape_line
from clawlite.core.base.render import call_text, canonical
from clawlite.core.rules import table
from clawlite.core.rules.condition import text_of

HELP = """  /rules    what it does by itself; /rules next, last, why NAME, on NAME, off NAME
  /rehearse NAME  what that rule would have done by now, with the readings on record
  /readings what it measures by itself"""
ROWS = """
rule.list     ready  rules  -  -
rule.why      ready  rules  -  -  name
rule.switch   ready  rules  -  -  name is_on actor?
rule.answer   ready  rules  -  -  name is_approved reason? actor? number?
reading.list  ready  rules  -  -
reading.history ready  rules  -  -  name seconds? points?
"""
_MAX_REASON = 1000


class RuleCommands:
    """The commands and methods of one agent.

    rules      ``runs.Runs``
    rehearses  function(name) -> lines that say what the rule would have done
    """

    def __init__(self, rules, rehearses):
        self._rules = rules
        self._rehearses = rehearses

    # -- commands

    def command(self, words: list, is_admin: bool = True):
        """Return the lines that answer a command, None for a command of others."""
        if words[0] == "/help":
            return [HELP]
        if words[0] not in ("/rules", "/readings", "/rehearse"):
            return None
        if self._rules.engine is None:
            return [
                "The rules of this agent run in %s."
                % (self._rules.owner or "no process yet: ask again in a second")
            ]
        if words[0] == "/readings":
            return self._list_readings()
        what, name = (words[1:] + ["", ""])[:2]
        if words[0] == "/rehearse":
            return self._rehearse(what)
        if what == "why" and name == "not" and len(words) > 3:
            name = words[3]
        if what in ("on", "off", "why") and name:
            if name not in self._names:
                return self._refuse_name(name)
            if what == "why":
                return self._explain(name)
            if not is_admin:
                return ["Only an admin switches rules."]
            self._switch(name, what == "on")
            return ["Rule %s is %s." % (name, what)]
        if what in ("", "next", "last"):
            return self._list_rules(what)
        if what in ("taught", "forget") and self._rules.agent.setup.teach:
            return None  # who teaches answers
        return ["/rules, /rules next, /rules last, /rules why NAME, /rules on NAME or off NAME"]

    def _refuse_name(self, name: str) -> list:
        known = ", ".join(self._names) or "none"
        return ["There is no rule %s; rules here: %s." % (escape_line(name, 40), known)]

    def _rehearse(self, name: str) -> list:
        if not name:
            return ["/rehearse NAME; rules here: " + (", ".join(self._names) or "none")]
        return self._rehearses(name) if name in self._names else self._refuse_name(name)

    @property
    def _names(self) -> list:
        return [rule.name for rule in self._rules.engine.rules]

    def _list_rules(self, what: str) -> list:
        lines = []
        for one in self._describe_rules():
            text = {
                "": "%s: %s" % (one["begins"], one["call"]),
                "next": one["next"] or "not by the clock",
                "last": "%s %s" % (one["last"]["at"] or "", one["last"]["status"])
                if one["last"]
                else "not yet",
            }[what]
            state = "" if one["is_on"] else "  (off)"
            state += "  (waits for a person)" if one["waits"] else ""
            lines.append("%-20s %s%s" % (one["name"], text, state))
        if not self._rules.engine.is_set:
            lines.append(
                "The clock of this machine is not set: rules with at or cron wait for that, and a "
                "day is 24 h of running time."
            )
        return lines or ["This agent has no rules that begin by themselves."]

    def _list_readings(self) -> list:
        lines = []
        for one in self._describe_readings():
            value = "no value" if one["value"] is None else canonical(one["value"], 60)
            age = "" if one["age_s"] is None else ", %d s ago" % one["age_s"]
            wrong = "  (%s)" % escape_line(one["wrong"], 200) if one["wrong"] else ""
            lines.append("%-20s %s%s%s" % (one["name"], value, age, wrong))
        return lines or ["This agent has no readings."]

    def _explain(self, name: str) -> list:
        engine, times = self._rules.engine, self._rules.times()
        rule = engine.find(name)
        row = engine.row(name)
        does = "calls %s" if rule.record[table.CALL] else "begins %s"
        does %= describe_call(rule.record)
        lines = ["%s begins %s, and %s." % (name, begins(rule), does)]
        if row.get("off"):
            lines.append("It does not run: %s. /rules on %s" % (row["off"], name))
        elif row.get("asks"):
            lines.append("It waits for a person to approve its call.")
        elif rule.is_timed and not engine.is_set:
            lines.append("It does not run: the clock of this machine is not set.")
        else:
            why = engine.find_obstacle(rule.record, engine.values(times), times)
            lines.append("It would not run now: %s." % why if why else "It would run now.")
        if rule.why:
            lines.append("When it was due last, it did not run: %s." % rule.why)
        return [escape_line(line, 400) for line in lines]

    # -- methods

    def begin(self, method: str, params: dict) -> dict:
        """Return the result of a request.  Raises ``ClawError``."""
        if self._rules.engine is None:
            raise InvalidRequest(
                "the rules of this agent run in %s" % (self._rules.owner or "no process yet"),
                "ask that process, or send this again",
            )
        if method == "claw.rule.list":
            return {"is_clock_set": self._rules.engine.is_set, "rules": self._describe_rules()}
        if method == "claw.reading.list":
            return {"readings": self._describe_readings()}
        name = params.get("name")
        if not isinstance(name, str) or name not in self._names:
            raise InvalidParams(
                "name: there is no rule %s" % canonical(name, 40),
                "rules here: %s" % (", ".join(self._names) or "none"),
            )
        if method == "claw.rule.why":
            return {"name": name, "text": "\n".join(self._explain(name))}
        key = "is_on" if method == "claw.rule.switch" else "is_approved"
        if not isinstance(params.get(key), bool):
            raise InvalidParams("%s: expected true or false" % key)
        actor = params.get("actor")
        channels = self._rules.agent.setup.channels  # a board has none, and the linker sees it here
        if actor is not None and channels:
            channels.permit(actor, True)
        if key == "is_on":
            self._switch(name, params[key])
            return {"name": name, "is_on": params[key]}
        return self._answer(name, params)

    def _answer(self, name: str, params: dict) -> dict:
        reason = params.get("reason", "")
        if not isinstance(reason, str) or len(reason) > _MAX_REASON:
            raise InvalidParams("reason: expected a text of at most %d characters" % _MAX_REASON)
        task, channels = self._rules.question_of(name), self._rules.agent.setup.channels
        number = params.get("number")  # of the question that was shown, where one was
        if task is None or number not in (None, task.approval.number):
            raise PolicyDenied(
                "rule %s: it waits for no approval" % name, "claw.rule.list says which rules wait"
            )
        self._rules.agent.answer(
            task,
            params["is_approved"],
            reason or "the operator said no",
            self._rules.now_ms(),
            params["actor"]
            if params.get("actor") and channels
            else params.get("caller") or "operator",
        )
        return {"name": name, "is_approved": params["is_approved"]}

    def _switch(self, name: str, is_on: bool):
        rules = self._rules
        rules.engine.switch(name, is_on)
        rules.log({"event": "rule.switched", "rule": name, "is_on": is_on})
        rules.save(True)
        if not is_on:
            rules.withdraw(name, "its rule was switched off")

    def _describe_rules(self) -> list:
        engine, found = self._rules.engine, []
        for rule in engine.rules:
            row, next_s = engine.row(rule.name), rule.next_s if engine.is_set else None
            asks = self._rules.question_of(rule.name)
            if rule.kind == table.EVERY and engine.is_set:
                next_s = self._rules.times().wall_s + rule_rest_s(rule, self._rules.times())
            last = row.get("last")
            found.append(
                {
                    "name": rule.name,
                    "begins": begins(rule),
                    "if": [text_of(condition) for condition in rule.record[table.IF]],
                    "call": describe_call(rule.record),
                    "is_on": not row.get("off"),
                    "waits": bool(row.get("asks")),
                    "number": asks and asks.approval.number,
                    "why": row.get("off") or rule.why,
                    "next": None if next_s is None or row.get("off") else self._local(next_s),
                    "last": last
                    and {
                        "at": last[0] and self._local(last[0]) or None,
                        "status": last[1],
                        "text": last[2],
                    },
                }
            )
        return found

    def _describe_readings(self) -> list:
        engine, times, found = self._rules.engine, self._rules.times(), []
        for reading, known in zip(engine.readings, self._rules.statuses):
            age_s = None if reading.at_ms is None else (times.up_ms - reading.at_ms) // 1000
            found.append(
                {
                    "name": reading.name,
                    "value": reading.value,
                    "age_s": age_s,
                    "wrong": known.get("wrong", ""),
                }
            )
        return found

    def _local(self, at_s: int) -> str:
        """Return *at_s* in the time zone of the rules, as ``2026-02-22T07:00:00+01:00``."""
        offset_s = self._rules.engine.zone.offset(at_s)
        minutes = abs(offset_s) // 60
        sign = "+" if offset_s >= 0 else "-"
        text = iso8601(at_s + offset_s)[:-1]
        return "%s%s%02d:%02d" % (text, sign, minutes // 60, minutes % 60)


def rule_rest_s(rule, times) -> int:
    """Return the seconds until the period of *rule* is over."""
    return max(0, rule.due_ms - times.up_ms) // 1000


def begins(rule) -> str:
    """Return how *rule* begins, for people."""
    trigger = rule.trigger
    if rule.kind == table.AT:
        masks = trigger[table.WHAT]
        return "by the clock (%d %s)" % (len(masks), "times" if len(masks) > 1 else "schedule")
    if rule.kind == table.ON_SUN:
        said = []
        for is_set, offset_s in trigger[table.WHAT]:
            later = "%s%s" % ("+" if offset_s > 0 else "-", duration(abs(offset_s) * 1000))
            said.append(("sunset" if is_set else "sunrise") + (later if offset_s else ""))
        return "at " + ", ".join(said)
    if rule.kind == table.EVERY:
        return "every %s" % duration(trigger[table.WHAT])
    if rule.kind == table.ON_PIN:
        edge = ("", "falls", "rises", "changes")[trigger[table.EDGES]]
        return "when the pin %s %s" % (trigger[table.WHAT], edge)
    for_ms = trigger[table.FOR_MS]
    return "when %s is %s %s%s" % (
        trigger[table.WHAT],
        "below" if trigger[table.IS_BELOW] else "above",
        trigger[table.LIMIT],
        " for %s" % duration(for_ms) if for_ms else "",
    )


def duration(ms: int) -> str:
    """Return *ms* as a rule has it: ``90s``."""
    for unit, name in ((86400000, "d"), (3600000, "h"), (60000, "m"), (1000, "s")):
        if ms and ms % unit == 0:
            return "%d%s" % (ms // unit, name)
    return "%dms" % ms


def describe_call(record: list) -> str:
    """Return the call of a rule, or that a Channel begins a turn, for people."""
    if record[table.CALL] is None:
        return "a turn"
    arguments = {
        name: "{%s}" % value[0] if isinstance(value, list) else value
        for name, value in record[table.ARGUMENTS]
    }
    return escape_line(call_text(record[table.CALL], arguments))
