"""``clawlite rehearse``: what the rules of an image would have done with the readings that are on
record (linux/rules/rehearsal.py).
"""

import os
import re
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.base.instant import from_iso8601
from clawlite.core.rules import table
from clawlite.core.rules.rehearsal import BEGUN_S, OF_BOARD, OF_LINUX
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.admin.trace import mending, open_image_of
from clawlite.linux.audit.files import read as read_audit
from clawlite.linux.files import files
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io.jsontext import document, loads
from clawlite.linux.io.printing import print_line
from clawlite.linux.terminal.progress import Progress

_SINCE = re.compile(r"([0-9]{1,6})(m|h|d|w)")
_UNITS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}
_ANSWERS = {"approved": True, "denied": False}


def show(manifest, since: str, readings, answer, as_json: bool, board) -> int:
    """Show what the rules would have done; return the exit code.  Raises ``ClawError``.

    since     how long ago it begins, "2d"
    readings  a file of samples, edges and answers, or None: those of this machine
    answer    "yes" or "no" to each question; None: as it is on record
    board     what fetches the records of a board (host/board_console/board_records.py), or None
    """
    from clawlite.linux.rules.rehearsal import Rehearsal, describe, lines_of

    long_s = seconds_of(since)
    image = open_image_of(manifest)
    section = image.section(table.SECTION)
    if not section or not section[table.RULES]:
        raise ClawError(
            "this agent has no rules that begin by themselves",
            "give a [[rule]] of its reflex file at, every, cron or on, and build it",
        )
    if readings and board:
        raise BadUsage("--readings names a file, --port a board", "name one of the two")
    if readings:
        folder, record = files.state_folder(image.agent.name), read_record(readings)
    elif board:
        folder = board.fetch(image.agent.name, True)[0]
        record = read_board(folder)
    else:
        folder = files.state_folder(image.agent.name)
        record = read_here(folder, int(time.time()) - long_s)
    samples, edges, answers, lives = record
    to_s = int(time.time())
    if readings or board:
        ends = [rows[-1][0] for rows in (samples, answers) if rows]
        ends += [at_ms // 1000 for at_ms, _, _ in edges[-1:]]
        to_s = max(ends) + 1 if ends else to_s
    from_s = to_s - long_s
    samples = [sample for sample in samples if sample[0] >= from_s]
    edges = [edge for edge in edges if edge[0] >= from_s * 1000]
    answers = sorted(answers + _list_answers(folder, from_s))
    is_yes = None if answer is None else answer == "yes"
    lasted = list_calls(folder, from_s)
    lives = [life for life in lives if life[BEGUN_S] >= from_s]
    habits = OF_BOARD if board else OF_LINUX
    played = Rehearsal(
        image, samples, from_s, to_s, answers, is_yes, edges, None, lasted, lives, habits
    )
    with Progress("Rehearsing", (to_s - from_s) * 1000) as progress:
        played.play(progress.reach)
    known = {pin for _, pin, _ in edges}
    pins = [
        rule[table.NAME]
        for rule in section[table.RULES]
        if rule[table.TRIGGER][table.KIND] == table.ON_PIN
        and rule[table.TRIGGER][table.WHAT] not in known
    ]
    if as_json:
        print(document(describe(played, from_s, to_s, len(samples), pins)))
    else:
        print_line(*lines_of(played, from_s, to_s, len(samples), pins))
    return 0


def seconds_of(since: str) -> int:
    """Return how long ago *since* is, such as 12h.  Raises ``BadUsage``."""
    found = _SINCE.fullmatch(since)
    if not found:
        raise BadUsage("--since: expected a time such as 12h or 2d, got %s" % since, "--since 2d")
    return int(found[1]) * _UNITS[found[2]]


def read_here(folder: str, from_s: int) -> tuple:
    """Return what ``read_record`` does, of the agent whose state is in *folder*; its answers are in
    its log.
    """
    from clawlite.linux.rules.samples import Samples

    kept = Samples(folder, {})
    found = [], [], [], []
    if kept.exists():
        found = kept.since(from_s), kept.spread_edges(from_s), [], kept.lives_since(from_s)
    kept.close()
    return found


def read_board(folder: str) -> tuple:
    """Return what ``read_record`` does, of what has come from a board into *folder*."""
    from clawlite.linux.rules.board_samples import read_samples
    from clawlite.linux.rules.samples import spread

    samples, edges, lives = read_samples(os.path.join(folder, "readings"))
    if not samples and not edges:
        raise ClawError(
            "the board has no samples on record",
            "a [[reading]] of its reflex file is measured and kept",
        )
    return samples, spread(edges), [], lives


def read_record(path: str) -> tuple:
    """Return (samples, edges, answers, lives) of a file of lines: [(at_s, reading, value), ...],
    [(at_ms, pin, level), ...], [(at_s, tool, is approved), ...], each the earliest first; lives as
    core/rules/rehearsal.py has them: none.
    """
    found = [], [], [], []
    with mending("the readings cannot be read"):
        with open(path, "rb", opener=open_regular) as file:
            lines = file.read().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = _row(loads(line))
        except ClawError:
            row = None
        if row is None:
            raise ClawError(
                '%s:%d: expected {"at": "2026-02-20T14:30:00Z", "reading": "soil", "value": 21}, '
                'or instead of the last two "pin": "door", "level": 1, or "tool": "water", '
                '"approved": true' % (path, number),
                "mend that line",
            )
        kind, row = row
        found[kind].append(row)
    for rows in found:
        rows.sort(key=lambda row: row[:2] if rows is found[0] else row[0])
    return found


def _row(line):
    """Return (0, sample), (1, edge) or (2, answer) of a decoded *line*, None for something else."""
    if not isinstance(line, dict):
        return None
    at = line.get("at")
    ms = from_iso8601(at) if isinstance(at, str) else at * 1000 if type(at) is int else None
    name = next((line[key] for key in ("reading", "pin", "tool") if key in line), None)
    if ms is None or not isinstance(name, str):
        return None
    if "reading" in line:
        value = line.get("value")
        return (0, (ms // 1000, name, value)) if isinstance(value, (int, float, str)) else None
    if "pin" in line:
        return (1, (ms, name, int(line["level"]))) if line.get("level") in (0, 1) else None
    said = line.get("approved")
    return (2, (ms // 1000, name, said)) if isinstance(said, bool) else None


def _list_answers(folder: str, from_s: int) -> list:
    """Return [(at_s, tool, is approved), ...] of the log of the agent in *folder*."""
    found = []
    for event in _events(folder, b'"tool.approval"'):
        ms = from_iso8601(event.get("timestamp") or "")
        if ms is not None and ms // 1000 >= from_s and event.get("answer") in _ANSWERS:
            found.append((ms // 1000, event.get("tool"), _ANSWERS[event["answer"]]))
    return found


def list_calls(folder: str, from_s: int) -> list:
    """Return [(begun_s, tool, ms), ...] of the calls of rules in the log in *folder*, and where it
    has none, in its audit; the earliest first.
    """
    calls = _events(folder, b'"tool.call"') or [
        event for event in map(_decode, read_audit(folder)[0]) if event
    ]
    found = set()
    for event in calls:
        at = event.get("timestamp") or event.get("time")
        at_ms, ms = from_iso8601(at if isinstance(at, str) else ""), event.get("duration_ms")
        if at_ms is not None and isinstance(ms, int) and str(event.get("caller"))[:5] == "rule/":
            found.add(((at_ms - ms) // 1000, event.get("tool"), ms))
    return sorted(one for one in found if one[0] >= from_s)


def _events(folder: str, mark: bytes) -> list:
    """Return the events of the log in *folder* whose lines have *mark*."""
    found = []
    for name in ("log.jsonl.1", "log.jsonl"):
        try:
            with open(os.path.join(folder, name), "rb", opener=open_regular) as file:
                lines = file.read().split(b"\n")
        except OSError:
            continue
        found += [event for event in (_decode(line) for line in lines if mark in line) if event]
    return found


def _decode(line: bytes):
    """Return the object of a *line*, None for a damaged one."""
    try:
        event = loads(line)
    except ClawError:
        return None
    return event if isinstance(event, dict) else None
