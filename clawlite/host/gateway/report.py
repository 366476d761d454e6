"""What a gateway has kept (store.py), read beside one that may run."""

import json
import os
import sqlite3

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.host.gateway.gateway import folder


def devices() -> list[dict]:
    """Return the devices by name.  Keys: device, agent, image, first, last (times), spent
    ({agent: meters}).
    """
    spent = {}
    for row in _read("SELECT device, agent, meters FROM spent"):
        spent.setdefault(row["device"], {})[row["agent"]] = json.loads(row["meters"])
    found = _read(
        "SELECT name AS device, agent, image, first_s AS first, last_s AS last FROM "
        "devices ORDER BY name"
    )
    return [
        {
            **row,
            "first": iso8601(row["first"]),
            "last": iso8601(row["last"]),
            "spent": spent.get(row["device"], {}),
        }
        for row in found
    ]


def history(count: int) -> list[dict]:
    """Return the last *count* requests, the oldest first.  Keys: time, device, agent, provider,
    request, asked, said, outcome, status ("ok" or "error"); of a runner also model, usage and
    tool_trace, which are None of a device.
    """
    found = _read("SELECT * FROM history ORDER BY id DESC LIMIT ?", count)
    names = ("device", "agent", "provider", "request", "asked", "said", "outcome")
    return [
        {
            "time": iso8601(row["time_s"]),
            **{name: row[name] for name in names},
            "status": "ok" if row["outcome"] == "ok" else "error",
            "model": row.get("model"),
            **{name: json.loads(row.get(name) or "null") for name in ("usage", "tool_trace")},
        }
        for row in reversed(found)
    ]


def audit(count: int) -> list[dict]:
    """Return the last *count* events, the oldest first.  Keys: time, device, event, and what the
    event has.
    """
    found = _read(
        "SELECT time_s AS time, device, event, detail FROM audit ORDER BY id DESC LIMIT ?", count
    )
    return [
        {
            "time": iso8601(row["time"]),
            "device": row["device"],
            "event": row["event"],
            **json.loads(row["detail"]),
        }
        for row in reversed(found)
    ]


def _read(question: str, *values) -> list[dict]:
    """Return the rows; none where no gateway has run.  Raises ``ClawError``."""
    path = os.path.join(folder(), "gateway.db")
    if not os.path.exists(path):
        return []
    try:
        db = sqlite3.connect(path, timeout=5)
        try:
            db.execute("PRAGMA query_only = 1")
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(question, values)]
        finally:
            db.close()
    except sqlite3.Error as e:
        raise ClawError(f"{path}: {e}", "choose a folder that you may write") from None
