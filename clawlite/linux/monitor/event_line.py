"""An event of the log as one line for a person.  What a stranger may have written is escaped."""

from clawlite.core.base.instant import from_iso8601
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.core.base.render import canonical
from clawlite.linux.monitor.colour import BOLD, CYAN, DIM, GREEN, RED, YELLOW, paint

_MOST = 200  # characters of arguments, and of each other value
_HIDDEN: tuple = ("event", "timestamp", "claw", "agent", "image", "trace", "why", "request_id")
_OF_CALL: tuple = (
    *_HIDDEN,
    "tool",
    "arguments",
    "caller",
    "status",
    "code",
    "action",
    "rule_id",
    "result",
)
_OF_TURN: tuple = (
    *_HIDDEN,
    "by",
    "status",
    "code",
    "duration_ms",
    "tokens",
    "cost_nano_usd",
    "memory_kib",
)
_COLOURS = {
    "ok": GREEN,
    "approved": GREEN,
    "error": RED,
    "refused": RED,
    "denied": RED,
    "failed": RED,
    "expired": YELLOW,
    "skipped": YELLOW,
}


def show_event(agent: str, event: dict, is_coloured: bool, width: int = 0) -> str:
    """Return the line of *event*.

    agent  whose event it is, or "" where all are of one
    width  of the widest name of an agent
    """

    def mark(text, colour):
        return paint(text, colour, is_coloured)

    name = escape_name(event.get("event", "?"))
    parts = [mark(_clock(event.get("timestamp")), DIM)]
    if agent:
        parts.append(mark(escape_name(agent).ljust(width), BOLD))
    parts.append(mark(name.ljust(11), CYAN))
    if name == "tool.call":
        shown, hidden = _call(event), _OF_CALL
    elif name == "tool.approval":
        shown, hidden = _call(event), (*_OF_CALL, "answer")
    elif name == "turn.ended":
        shown, hidden = _turn(event), _OF_TURN
    else:
        shown, hidden = "", _HIDDEN
    if shown:
        parts.append(shown)
    status = event.get("answer" if name == "tool.approval" else "status")
    if isinstance(status, str) and "status" in hidden:
        parts.append(mark(escape_name(status), _COLOURS.get(status, YELLOW)))
    if "code" in hidden and event.get("code") is not None:
        parts.append(mark(escape_line(event["code"], _MOST), RED))
    rest = [_field(key, event[key]) for key in event if key not in hidden]
    about = _decision(event) if name == "tool.call" else []
    if about + rest:
        parts.append(mark("  ".join(about + rest), DIM))
    return " ".join(parts)


def _clock(stamp) -> str:
    """Return the time of an event here, as the clock on the wall has it."""
    import time

    ms = from_iso8601(stamp) if isinstance(stamp, str) else None
    if ms is None:
        return "-" * 14
    return time.strftime("%m-%d %H:%M:%S", time.localtime(ms // 1000))


def _call(event: dict) -> str:
    arguments = event.get("arguments")
    inside = (
        ", ".join(
            "%s=%s" % (escape_name(key), escape_line(canonical(value), _MOST))
            for key, value in sorted(arguments.items())
        )
        if isinstance(arguments, dict)
        else ""
    )
    return "%s(%s)" % (escape_name(event.get("tool", "?")), escape_line(inside, 3 * _MOST))


def _turn(event: dict) -> str:
    said = ["%s ms" % escape_line(event.get("duration_ms"), _MOST)]
    if event.get("by"):
        said.insert(0, escape_name(event["by"]))
    tokens = event.get("tokens")
    if isinstance(tokens, list) and len(tokens) == 2 and all(type(n) is int for n in tokens):
        said.append("%d + %d tokens" % tuple(tokens))
    if type(event.get("cost_nano_usd")) is int:
        said.append("$%.4f" % (event["cost_nano_usd"] / 1e9))
    if type(event.get("memory_kib")) is int:
        said.append("%.1f MiB" % (event["memory_kib"] / 1024))
    return ", ".join(said)


def _decision(event: dict) -> list:
    about = []
    if event.get("caller"):
        about.append("by " + escape_name(event["caller"]))
    if event.get("action"):
        of = " (%s)" % escape_name(event["rule_id"]) if event.get("rule_id") else ""
        about.append(escape_name(event["action"]) + of)
    return about


def _field(key: str, value) -> str:
    text = value if isinstance(value, str) else canonical(value)
    return "%s=%s" % (escape_name(key), escape_name(text, _MOST))
