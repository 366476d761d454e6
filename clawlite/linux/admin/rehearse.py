"""``clawlite rehearse``: what the rules of an image would have done with the readings that are on
record (linux/rules/rehearsal.py).
"""

import os
import re
import time

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.core.base.instant import from_iso8601
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.core.base.render import call_text
from clawlite.core.rules import table
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.admin.trace import mending, open_image_of
from clawlite.linux.files import files
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.jsontext import document, loads
from clawlite.linux.io.printing import print_line

_SINCE = re.compile(r"([0-9]{1,6})(m|h|d|w)")
_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}
_ANSWERS = {"approved": True, "denied": False}
NOTHING_ACTS = "Nothing acted, and what an act would have changed is not simulated."


def show(manifest, since: str, readings, answer, as_json: bool) -> int:
    """Show what the rules would have done; return the exit code.  Raises ``ClawError``.

    since     how long ago it begins, "2d"
    readings  a file of samples, or None: those of this machine
    answer    "yes" or "no" to each question; None: as it is on record
    """
    from clawlite.linux.rules.rehearsal import Rehearsal
    from clawlite.linux.rules.samples import Samples

    found = _SINCE.fullmatch(since)
    if not found:
        raise BadUsage("--since: expected a time such as 12h or 2d, got %s" % since, "--since 2d")
    image = open_image_of(manifest)
    section = image.section(table.SECTION)
    if not section or not section[table.RULES]:
        raise ClawError(
            "this agent has no rules that begin by themselves",
            "give a [[rule]] of its reflex file at, every, cron or on, and build it",
        )
    folder = files.state_folder(image.agent.name)
    to_s = int(time.time())
    if readings:
        samples = read_samples(readings)
        to_s = samples[-1][0] + 1 if samples else to_s
    else:
        kept = Samples(folder, {})
        samples = kept.since(to_s - int(found[1]) * _UNITS[found[2]]) if kept.exists() else []
        kept.close()
    from_s = to_s - int(found[1]) * _UNITS[found[2]]
    samples = [sample for sample in samples if sample[0] >= from_s]
    is_yes = None if answer is None else answer == "yes"
    played = Rehearsal(image, samples, from_s, to_s, _recorded_answers(folder, from_s), is_yes)
    played.play()
    pins = [r[table.NAME] for r in section[table.RULES] if r[table.TRIGGER][0] == table.ON_PIN]
    if as_json:
        print(document(_as_json(played, from_s, to_s, len(samples), pins)))
    else:
        print_line(*_lines(played, from_s, to_s, len(samples), pins))
    return 0


def _as_json(played, from_s: int, to_s: int, samples: int, pins: list) -> dict:
    return {
        "from": iso8601(from_s),
        "to": iso8601(to_s),
        "samples": samples,
        "runs": [dict(run, at=iso8601(run["at"])) for run in played.runs],
        "said": [{"at": iso8601(at_s), "text": text} for at_s, text in played.said],
        "skipped": played.skipped,
        "not_played": pins,
    }


def _lines(played, from_s: int, to_s: int, samples: int, pins: list) -> list:
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
        lines.append("Not played, because edges are not recorded: %s" % ", ".join(pins))
    return [*lines, NOTHING_ACTS]


def read_samples(path: str) -> list:
    """Return [(at_s, reading, value), ...] of a file of lines {"at", "reading", "value"}."""
    samples = []
    with mending("the readings cannot be read"):
        with open(path, "rb", opener=open_regular) as file:
            lines = file.read().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = loads(line)
            at, name, value = found["at"], found["reading"], found["value"]
        except (ClawError, KeyError, TypeError):
            at = name = value = None
        ms = from_iso8601(at) if isinstance(at, str) else None
        at_s = ms // 1000 if ms is not None else at
        is_value = isinstance(value, (int, float, str))
        if type(at_s) is not int or not isinstance(name, str) or not is_value:
            raise ClawError(
                '%s:%d: expected {"at": "2026-02-20T14:30:00Z", "reading": "soil", "value": 21}'
                % (path, number),
                "mend that line",
            )
        samples.append((at_s, name, value))
    return sorted(samples, key=lambda sample: sample[:2])


def _recorded_answers(folder: str, from_s: int) -> list:
    """Return [(at_s, tool, is approved), ...] of the log of the agent in *folder*."""
    found = []
    for name in ("log.jsonl.1", "log.jsonl"):
        try:
            with open(os.path.join(folder, name), "rb", opener=open_regular) as file:
                lines = file.read().split(b"\n")
        except OSError:
            continue
        for line in lines:
            if b'"tool.approval"' not in line:
                continue
            try:
                event = loads(line)
            except ClawError:
                continue
            ms = from_iso8601(event.get("timestamp") or "")
            if ms is not None and ms // 1000 >= from_s and event.get("answer") in _ANSWERS:
                found.append((ms // 1000, event.get("tool"), _ANSWERS[event["answer"]]))
    return found
