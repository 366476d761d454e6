"""The calls of a board for ``clawlite trace --port``.  A board has a log only when a policy demands
one, so its audit is converted to a log here.
"""

import os
import struct

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import RULE_ACTION, RULE_ID, RULE_POLICY, RULES
from clawlite.core.policy.policy import ACTIONS
from clawlite.linux.audit.files import read
from clawlite.linux.io.jsontext import dumps, loads


def fetch_trace(board, image) -> str:
    """Return a folder with the log of a board that runs *image*, in the form that a Pi has.

    board  as in ``audit.main``
    """
    folder = board.fetch(image.agent.name)[0]
    path = os.path.join(folder, "log.jsonl")
    if not os.path.exists(path):
        rules = [
            image.rule(number)
            for number in range(struct.unpack(">I", image.part(RULES, 0, 4))[0] // 4 - 1)
        ]
        with open(path, "w", encoding="utf-8") as file:
            for line in read(folder)[0]:
                try:
                    event = event_of(loads(line), rules, image.id)
                except (ClawError, KeyError, TypeError, ValueError):
                    continue  # damaged: ``audit verify`` reports it
                if event:
                    file.write(dumps(event) + "\n")
    return folder


def event_of(record: dict, rules: list, image_id: str):
    """Return the log's event of a record of the audit; None for one of another kind.

    rules  those of the image (``Image.rule``), of which a record has ids and an event numbers
    """
    if record["event"] != "tool.call":
        return None
    event = dict(
        record,
        timestamp=record["time"],
        arguments=_arguments(record.get("arguments")),
        caller=record.get("caller", ""),
    )
    if "trace" in record and record.get("image") == image_id:
        ids = [name for name, _ in record["trace"]]
        event["trace"] = [
            [number, matched]
            for number, (_, matched) in zip(
                _numbers(ids, record.get("action"), rules), record["trace"]
            )
        ]
    return event


def _numbers(ids: list, action: str, rules: list) -> list:
    """Return the numbers of the rules *ids*, which are those of one policy if one has them all,
    and its last one this action.
    """
    for policy in dict.fromkeys(rule[RULE_POLICY] for rule in rules):
        of = {
            rule[RULE_ID]: number
            for number, rule in enumerate(rules)
            if rule[RULE_POLICY] == policy
        }
        if all(name in of for name in ids) and (
            not ids or ACTIONS[rules[of[ids[-1]]][RULE_ACTION]] == action
        ):
            return [of[name] for name in ids]
    of = {rule[RULE_ID]: number for number, rule in reversed(list(enumerate(rules)))}
    return [of[name] for name in ids]


def _arguments(text) -> dict:
    """Return the arguments that a record has; one that was cut has the beginning of them, and a
    policy may want none.
    """
    try:
        value = loads(text.encode()) if text is not None else {}
        return value if isinstance(value, dict) else {"...": text}
    except ClawError:
        return {"...": text}
