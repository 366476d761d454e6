"""The text of a record of a board's audit, as on a Pi: clawlite/scan/auditrecord.py makes the
record of an effect.  Loaded for a record, and dropped.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.effect import EVENT, KIND, LOG, RUN_ARGUMENTS, RUN_TOOL, TASK
from clawlite.core.image.scan_config import AUDIT_APPROVALS
from clawlite.scan.auditrecord import begin_record, record
from jsontext import dumps

_LONG = ("arguments", "output", "trace")


def text_of(audit, effect: tuple, short: bool):
    """Return the record of *effect* as JSON, with secrets; None when it needs no record.

    short  leave out the fields that may be long, and say so in the record: a short record is better
           than none, and than an agent that ends
    """
    pairs = _pairs(
        audit, effect, (False, False, audit.wants[AUDIT_APPROVALS]) if short else audit.wants
    )
    if pairs is None:
        return None
    return json_of(
        [pair for pair in pairs if pair[0] not in _LONG] + [("cut", True)] if short else pairs
    )


def problem_of(audit, problem: str) -> str:
    return json_of([("time", _time(audit)), ("event", "audit.problem"), ("problem", problem)])


def _pairs(audit, effect: tuple, wants):
    """Return the record of *effect*, or None."""
    if effect[KIND] == LOG:
        effect[EVENT]["timestamp"] = _time(audit)
        return record(effect[EVENT], wants, audit.image)
    task = audit.device.agent.tasks.get(effect[TASK])
    return begin_record(
        _time(audit),
        wants,
        effect[RUN_TOOL].name,
        effect[RUN_ARGUMENTS],
        task.once.id if task and task.once else None,
    )


def _time(audit) -> str:
    now = audit.device.epoch_s()
    return "unset" if now is None else iso8601(now)


def json_of(pairs: list) -> str:
    return "{" + ",".join(['"%s":%s' % (name, _value(value)) for name, value in pairs]) + "}"


def _value(value) -> str:
    """Return *value* as JSON, with the same bytes as on a Pi: MicroPython lacks the short escapes
    of two characters, and accepts surrogates in text.
    """
    if isinstance(value, str):
        for c, escape in (("\b", "\\b"), ("\f", "\\f")):
            if c in value:
                return '"%s"' % escape.join([_value(part)[1:-1] for part in value.split(c)])
        for c in value:
            if 0xD800 <= ord(c) < 0xE000:
                return _value("".join(["?" if 0xD800 <= ord(c) < 0xE000 else c for c in value]))
    return dumps(value)
