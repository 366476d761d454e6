"""``clawlite audit``: what is on record of an agent, and whether all of it is; with the standard
library alone.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.linux.admin.commands import BadUsage
from clawlite.linux.admin.trace import mending, open_image_of
from clawlite.linux.audit.chain import Head, verify
from clawlite.linux.io.jsontext import document, dumps, loads
from clawlite.linux.io.printing import print_line
from clawlite.linux.records.audit_record import copies_of, open_audit, parse_anchor
from clawlite.linux.terminal.progress import Progress

_UNREAD = "the audit cannot be read, or taken"
_WIDEST = 100  # characters of a column


def show_records(manifest, last: int, as_json: bool, board) -> int:
    """Show the *last* records, 0 for all; return the exit code.  Raises ``ClawError``, as the
    others.

    board  what fetches the audit of a board (host/board_console/board_records.py), or None: that of
           an agent here
    """
    with mending(_UNREAD):
        lines, _, _, _, _ = _open(manifest, board, last)
        return _print_records(lines, last, as_json)


def show_verdict(manifest, anchor, as_json: bool, board) -> int:
    """Show whether the records are as they were written; return the exit code."""
    anchor = _parse_anchor(anchor)
    with mending(_UNREAD):
        lines, head, folder, agent, image = _open(manifest, board)
        copies = copies_of(image, folder) if board is None else {}
        with Progress("Verifying", 0 if board else _size(folder)) as progress:
            found = dict(verify(progress.count(lines), head, agent, anchor), **copies)
        return _print_verdict(found, folder, as_json)


def take(manifest, anchor, as_json: bool, board) -> int:
    """Move the records of a board to a file; return the exit code."""
    if board is None:
        raise BadUsage("take: for the audit of a board", "add --port PORT")
    anchor = _parse_anchor(anchor)
    with mending(_UNREAD):
        lines, head, _, agent, _ = _open(manifest, board)
        return _take_from_board(list(lines), head, agent, anchor, board, as_json)


def _open(manifest, board, newest: int = 0) -> tuple:
    """Return (lines, head, folder, name of the agent, image or None) of an audit."""
    image = open_image_of(manifest) if manifest or board is None else None
    if board is not None:
        return (*fetch_audit(board, image), image)
    return (*open_audit(image, newest), image.agent.name, image)


def _size(folder: str) -> int:
    """Return the bytes of the records in *folder*, 0 where there is none."""
    if not os.path.isdir(folder):
        return 0
    with os.scandir(folder) as entries:
        return sum(one.stat().st_size for one in entries if one.name.startswith("audit"))


def _parse_anchor(text):
    """Return (number of a record, its hash), None for None.  Raises ``BadUsage``."""
    try:
        return parse_anchor(text)
    except ClawError as e:
        raise BadUsage("--" + e.message, e.hint) from None


def fetch_audit(board, image) -> tuple:
    """Return (lines, head, where they come from, the agent's name) of a board's audit.  Raises
    ``ClawError`` when there is none.
    """
    from clawlite.linux.audit.files import read

    folder, agent = board.fetch(image.agent.name if image else None)
    lines, head, is_there = read(folder)
    if not is_there:
        raise ClawError(
            "the board has no audit of %s" % agent,
            "let the agent start first; if it has, somebody removed it",
        )
    return lines, head, "audit-" + agent, agent


def _take_from_board(lines: list, head, agent: str, anchor, board, as_json: bool) -> int:
    """Write *lines* to a file here, and let the board forget them; nothing of that where they
    are not as they were written.
    """
    found = verify(lines, head, agent, anchor)
    if not found["ok"] or not lines:
        return _print_verdict(found, "audit-" + agent, as_json)
    path = "%s-audit-%d-%d.jsonl" % (agent, found["first"], found["last"])
    with open(path, "xb", opener=lambda name, how: os.open(name, how, 0o600)) as file:
        file.write(b"".join([line + b"\n" for line in lines]))
        file.flush()
        os.fsync(file.fileno())
    board.forget(
        Head(found["last"] + 1, found["hash"], found["last"], found["hash"])
        .text()
        .encode()
        .ljust(255)
        + b"\n"
    )
    if as_json:
        print(document(dict(found, file=path)))
        return 0
    print_line(
        "%d records, %s to %s, all as they were written, are in %s and no longer on the board"
        % (found["records"], found["first"], found["last"], path)
    )
    print_line("keep this elsewhere: --anchor %d:%s" % (found["last"], found["hash"]))
    return 0


def _print_verdict(found: dict, folder: str, as_json: bool) -> int:
    if as_json:
        print(document(found))
    elif found["ok"]:
        print_line(
            "%d records, %s to %s, all as they were written"
            % (found["records"], found["first"], found["last"])
            if found["records"]
            else "no records yet"
        )
        if found["records"]:
            print_line("keep this elsewhere: --anchor %d:%s" % (found["last"], found["hash"]))
    else:
        print_line(
            "%d records in %s; they are not as they were written:" % (found["records"], folder)
        )
        for problem in found["problems"][:20]:
            print_line("  " + problem)
        if len(found["problems"]) > 20:
            print_line("  and %d more" % (len(found["problems"]) - 20))
    if not as_json and "sent" in found:
        print_line("copies up to record %d were taken by %s" % (found["sent"], found["sent_to"]))
    return 0 if found["ok"] else 1


def _print_records(lines, last: int, as_json: bool) -> int:
    from collections import deque

    kept = deque(lines, last or None)
    records = []
    for data in kept:
        try:
            records.append(loads(data))
        except ClawError:
            records.append({"damaged": data.decode("utf-8", "replace")})
    if as_json:
        print(document(records))
        return 0
    for record in records:
        print_line(_record_text(record))
    return 0


def _record_text(record: dict) -> str:
    """Return one record as a line for a person: its columns are two blanks apart, and no name and
    no text has two blanks in a row.
    """
    if not isinstance(record, dict) or "damaged" in record or type(record.get("n")) is not int:
        damaged = record.get("damaged", record) if isinstance(record, dict) else record
        return "   ? damaged: %s" % escape_line(damaged, _WIDEST)
    about = record.get("problem") or record.get("removed")
    tool = record.get("tool")
    parts = [_column(about) if about else escape_name(tool) if tool else ""]
    if record.get("server"):
        parts.append(
            "by %s of %s" % (escape_name(record.get("server_tool")), escape_name(record["server"]))
        )
        parts.append("(%s, %s)" % (_column(record.get("mode")), _column(record.get("protocol"))))
    if record.get("arguments"):
        parts.append(_column(record["arguments"]))
    decided = record.get("action")
    if decided:
        parts.append(
            "%s by %s"
            % (
                escape_name(decided),
                "rule %s" % escape_name(record["rule_id"]) if record.get("rule_id") else "no rule",
            )
        )
    for name in ("approval", "answer", "limit", "reason", "status"):
        if record.get(name):
            said = _column(record[name])
            parts.append(said if name == "status" else "%s: %s" % (name, said))
    if record.get("code"):
        parts.append("(%s)" % escape_name(record["code"]))
    if record.get("found"):
        parts.append("found: " + _column(record["found"]))
    if record.get("result_bytes") is not None:
        parts.append("%s bytes" % escape_name(record["result_bytes"]))
    if record.get("duration_ms") is not None:
        parts.append("%s ms" % escape_name(record["duration_ms"]))
    return "%4d %s %-13s %s" % (
        record["n"],
        escape_name(record.get("time", "-")),
        escape_name(record.get("event", "?")),
        "  ".join(parts),
    )


def _column(value) -> str:
    """Return *value*, which a stranger may have chosen, as one column."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = ", ".join(value)
    elif not isinstance(value, str):
        value = dumps(value)
    return escape_line(value, _WIDEST).replace("  ", "<2 blanks>")
