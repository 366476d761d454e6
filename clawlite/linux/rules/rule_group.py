"""What a machine with an operating system answers about rules beside core/rules/rule_commands.py:
the samples that are on record, and what a rule would have done with them.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import InvalidParams
from clawlite.core.protocol.rpc import field
from clawlite.core.rules import table
from clawlite.core.rules.rule_commands import ROWS, RuleCommands

MORE_ROWS = """
rule.rehearse ready  rules  -  -  name
"""
_DAY = 86400
_LONGEST = 366 * _DAY
_MOST_POINTS = 1000


class RuleGroup(RuleCommands):
    """``RuleCommands`` with the samples of ``samples.Samples``."""

    rows = ROWS + MORE_ROWS[1:]

    def begin(self, method: str, params: dict) -> dict:
        """Return the result of a request.  Raises ``ClawError``."""
        if self._rules.engine is not None and method == "claw.reading.history":
            return self._list_samples(params)
        if self._rules.engine is not None and method == "claw.rule.rehearse":
            return self._play(params)
        return super().begin(method, params)

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


def commands_of(rules, rehearses) -> RuleGroup:
    """Return the ``RuleGroup`` of *rules*, which the console of its agent asks from now on."""
    return attach(rules, RuleGroup(rules, rehearses))


def attach(rules, made):
    """Let the console of the agent of *rules*, and its channels, ask *made*; return it."""
    rules.agent.commands.append(made.command)
    if rules.agent.setup.channels:
        rules.agent.setup.channels.add_command(made.command)
    return made


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
