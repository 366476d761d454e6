"""What a machine with an operating system answers about rules beside core/rules/rule_commands.py:
the samples that are on record, what a rule would have done with them, and the rules that people
teach.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.base.render import canonical
from clawlite.core.protocol.rpc import field
from clawlite.core.rules import table
from clawlite.core.rules.rule_commands import ROWS, RuleCommands
from clawlite.protocols.image.features import CLI
from clawlite.protocols.session.group_session import Group

MORE_ROWS = """
rule.rehearse ready  rules  -  -  name
rule.draft    ready  rules  -  -  row? text? actor?
rule.teach    ready  rules  -  -  draft actor?
rule.forget   ready  rules  -  -  name actor?
"""
HELP = "  /teach    teach it a rule, by a sentence or as a row; /rules taught, /rules forget NAME"
MOST_DRAFTS = 8  # that wait for ``claw.rule.teach``
_OPERATOR = "operator"
_DAY = 86400
_LONGEST = 366 * _DAY
_MOST_POINTS = 1000


def group_of(rules, lessons, rehearses):
    """Return the ``RuleGroup`` of *rules*, which the console of its agent, and its channels, ask
    from now on.

    lessons  function() -> ``lessons.Lessons``
    """
    made = RuleGroup(rules, lessons, rehearses)
    rules.agent.commands.append(made.command)
    if rules.agent.setup.channels:
        rules.agent.setup.channels.add_command(made.command)
    return made


class RuleGroup(RuleCommands, Group):
    """The commands and methods of one agent; ``group_of`` says what it is made of."""

    rows = ROWS + MORE_ROWS[1:]

    def __init__(self, rules, lessons, rehearses):
        super().__init__(rules, rehearses)
        self._lessons = lessons
        self._drafts, self._last = {}, 0

    def command(self, words: list, is_admin: bool = True):
        if words[0] == "/help":
            return [HELP, *super().command(words, is_admin)]
        if words[:2] == ["/rules", "taught"]:
            return self._run(lambda: self._lessons().list_lines())
        if words[:2] == ["/rules", "forget"] and len(words) == 3:
            if not is_admin:
                return ["Only an admin forgets rules."]
            return self._run(lambda: self._forget(words[2], "a person said so"))
        return super().command(words, is_admin)

    def _run(self, work):
        from clawlite.core.protocol.console import error_text

        try:
            return work()
        except ClawError as e:
            return [error_text(e)]

    def _forget(self, name: str, why: str) -> list:
        from clawlite.linux.rules.taught_store import forget

        forget(self._lessons().rules(), name, why)
        return ["Rule %s is forgotten." % name]

    # -- methods

    def begin(self, method: str, params: dict) -> dict:
        """Return the result of a request.  Raises ``ClawError``."""
        if self._rules.engine is not None and method == "claw.reading.history":
            return self._list_samples(params)
        if self._rules.engine is not None and method == "claw.rule.rehearse":
            return self._play(params)
        if method not in ("claw.rule.draft", "claw.rule.teach", "claw.rule.forget"):
            return super().begin(method, params)
        actor, channels = params.get("actor"), self._rules.agent.setup.channels
        if actor is not None and channels:
            channels.permit(actor, method != "claw.rule.draft")
        by = params.get("caller") or _name_of(actor, channels)
        if method == "claw.rule.draft":
            return self._draft(params, by)
        if method == "claw.rule.teach":
            return self._teach(params.get("draft"))
        name = params.get("name")
        self._forget(name if isinstance(name, str) else canonical(name, 40), "%s said so" % by)
        return {"name": name}

    def _describe_readings(self) -> list:
        fields = [reading.record[table.FIELD] for reading in self._rules.engine.readings]
        found = super()._describe_readings()
        return [dict(one, field=field) for one, field in zip(found, fields, strict=True)]

    def _list_samples(self, params: dict) -> dict:
        names = [reading.name for reading in self._rules.engine.readings]
        name = _choose(params, names, "reading")
        seconds = _number(params, "seconds", _DAY, _LONGEST)
        points = _number(params, "points", 120, _MOST_POINTS)
        to_s = self._rules.times().wall_s
        samples = self._rules.samples.spread(name, to_s - seconds, to_s, points)
        return {
            "name": name,
            "from": iso8601(to_s - seconds),
            "to": iso8601(to_s),
            "samples": [[at_s, value] for at_s, value in samples],
        }

    def _play(self, params: dict) -> dict:
        from clawlite.linux.rules.rehearsal import describe, rehearse_day

        name = _choose(params, self._names, "rule")
        played, from_s, to_s, samples = rehearse_day(self._rules, name)
        return {"name": name, **describe(played, from_s, to_s, samples, [])}

    def _draft(self, params: dict, by: str) -> dict:
        made, question = self._lessons().draft(params.get("row"), params.get("text"), by)
        if question:
            return {"question": question}
        self._last += 1
        self._drafts[self._last] = made
        while len(self._drafts) > MOST_DRAFTS:
            del self._drafts[min(self._drafts)]
        return {
            "draft": self._last,
            "name": made.name,
            "row": made.entry["row"],
            "sentence": made.lines[0],
            "rehearsal": made.lines[1],
        }

    def _teach(self, number) -> dict:
        made = self._drafts.pop(number, None) if type(number) is int else None
        if made is None:
            raise InvalidParams(
                "draft: there is no draft %s" % canonical(number, 40),
                "claw.rule.draft makes one; the last %d are kept" % MOST_DRAFTS,
            )
        self._lessons().finish(made)
        return {"name": made.name}

    def _describe_rules(self) -> list:
        taught, found = self._rules.taught, super()._describe_rules()
        for one in found:
            entry = taught.find(one["name"]) if taught else None
            if entry:
                one["taught_by"] = entry["by"]
                if "call" not in entry["row"]:
                    one["call"] = "a reminder"
        return found


def _name_of(actor, channels) -> str:
    """Return who teaches: the *actor* whom an operator names, as one of the console's channel."""
    for channel in channels.all if actor and channels else ():
        if channel.kind == CLI:
            return "%s/%s" % (channel.name, actor)
    return _OPERATOR


def _choose(params: dict, names: list, what: str) -> str:
    name = field(params, "name", str, "")
    if name not in names:
        raise InvalidParams(
            "name: there is no %s %s" % (what, name[:40]),
            "%ss here: %s" % (what, ", ".join(names) or "none"),
        )
    return name


def _number(params: dict, key: str, default: int, most: int) -> int:
    number = field(params, key, int, "", False)
    if number is None:
        return default
    if not 2 <= number <= most:
        raise InvalidParams("%s: expected 2 to %d, got %d" % (key, most, number))
    return number
