"""What ``clawlite top`` shows: a row for each agent, and one for each board of the gateway."""

import time

from clawlite.core.base.instant import from_iso8601
from clawlite.core.base.printable import escape_line, escape_name
from clawlite.linux.monitor.colour import BOLD, DIM, RED, YELLOW, paint
from clawlite.linux.terminal.terminal_row import cells

_AGENTS = (
    "AGENT",
    "STATE",
    "UP",
    "CALLS/MIN",
    "UNDER WAY",
    "WAITING",
    "TURNS",
    "LAST TURN",
    "TOKENS",
    "MONEY",
    "MEMORY",
    "LIMIT",
)
_BOARDS = ("BOARD", "AGENT", "LAST SEEN", "TOKENS", "MONEY", "HEAP")
_STATE, _WAITING, _LIMIT = 1, 5, 11
_LEFT = (0, 1)  # columns of words; numbers end at the right
_TIGHT = 0.8  # of a limit: from here on it stands out
_NANO = 1000000000
_DAY = 86400


def lines_of(found: dict, columns: int, is_coloured: bool) -> list:
    """Return the lines of the table, each at most *columns* cells wide.

    found  {"agents": [...], "boards": [...]}, as ``--json`` has it
    """
    rows = [_agent_row(one) for one in found["agents"]]
    lines = _table(_AGENTS, rows, columns, is_coloured) if rows else ["No agent was started here."]
    if found["boards"]:
        rows = [_board_row(one) for one in found["boards"]]
        lines += ["", *_table(_BOARDS, rows, columns, is_coloured)]
    return lines


def _agent_row(one: dict) -> list:
    """Return (text, colour) of each cell."""
    name = (escape_name(one["agent"], 60), BOLD)
    if not one["reachable"]:
        return [name, ("no socket", DIM)] + [("", "")] * (len(_AGENTS) - 2)
    used, last = one["tokens"]["read"] + one["tokens"]["written"], one["last_turn"]
    limit, share = _tightest(one["limits"])
    state, waiting = escape_name(one["state"]), one["waiting"]
    is_failed = last and last.get("status") == "error"
    return [
        name,
        (state, "" if state == "READY" else RED),
        (show_span(one["uptime_ms"] / 1000), ""),
        (str(one["calls_last_minute"]), ""),
        (str(one["under_way"]), ""),
        (str(waiting), YELLOW if waiting else ""),
        (str(one["turns"]), ""),
        (show_span(last["duration_ms"] / 1000) if last else "-", RED if is_failed else ""),
        (show_count(used), ""),
        ("$%.2f" % one["cost_usd"], ""),
        (show_bytes(one["memory_bytes"]), ""),
        (limit, YELLOW if share >= _TIGHT else ""),
    ]


def _tightest(limits: list) -> tuple:
    """Return the limit of which most is used, as words, and that share."""
    shares = [(one["used"] / one["max"] if one["max"] else 1.0, one) for one in limits]
    if not shares:
        return "-", 0.0
    share, one = max(shares, key=lambda pair: pair[0])
    of = " " + escape_name(one["provider"], 60) if one.get("provider") else ""
    return "%d %% %s%s" % (share * 100, escape_name(one["limit"], 60), of), share


def _board_row(one: dict) -> list:
    tokens, nano = _sum_today(one.get("spent") or {})
    heap = one.get("heap_bytes")
    return [
        (escape_name(one["device"], 60), BOLD),
        (escape_name(one.get("agent") or "-", 60), ""),
        (_since(one.get("last")), ""),
        (show_count(tokens), ""),
        ("$%.2f" % (nano / _NANO), ""),
        (show_bytes(heap) if heap else "-", ""),
    ]


def _sum_today(spent: dict) -> tuple:
    """Return (tokens, nano-dollars) of today (UTC) in the meters of a board's agents; of tokens
    only what some limit counts.
    """
    day, tokens, nano = int(time.time()) // _DAY, 0, 0
    for meters in spent.values():
        today = {
            key: amount
            for key, (period, amount, *_) in _pairs(meters)
            if period == day and key not in (".tokens", ".calls")
        }
        nano += today.pop(".cost", 0)
        tokens += today.pop(".day", None) or sum(today.values())
    return tokens, nano


def _pairs(meters) -> list:
    rows = meters.items() if isinstance(meters, dict) else ()
    return [(key, row) for key, row in rows if isinstance(row, list) and len(row) > 1]


def _since(at) -> str:
    ms = from_iso8601(at or "")
    return "-" if ms is None else show_span(max(0, time.time() - ms / 1000)) + " ago"


def _table(heads: tuple, rows: list, columns: int, is_coloured: bool) -> list:
    texts = [[text for text, _ in row] for row in rows]
    widths = [max(map(cells, column)) for column in zip(heads, *texts, strict=True)]
    lines = [_line([(head, DIM) for head in heads], widths, columns, is_coloured)]
    return lines + [_line(row, widths, columns, is_coloured) for row in rows]


def _line(row: list, widths: list, columns: int, is_coloured: bool) -> str:
    """Return one row; what does not fit into *columns* is left out, whole cells at a time."""
    parts, left = [], columns
    for number, ((text, colour), width) in enumerate(zip(row, widths, strict=True)):
        if width > left:
            if not parts:
                parts.append(escape_line(text)[:left])
            break
        space = " " * (width - cells(text))
        shown = paint(text, colour, is_coloured)
        parts.append(shown + space if number in _LEFT else space + shown)
        left -= width + 2
    return "  ".join(parts).rstrip()


def show_span(seconds: float) -> str:
    """Return a time in the unit that suits it."""
    if 1 <= seconds < 10:
        return "%.1f s" % seconds
    for most, unit, size in (
        (1, "ms", 0.001),
        (120, "s", 1),
        (7200, "min", 60),
        (172800, "h", 3600),
    ):
        if seconds < most:
            return "%d %s" % (seconds / size, unit)
    return "%d d" % (seconds / _DAY)


def show_count(number: int) -> str:
    """Return a number with its thousands apart."""
    return "{:,}".format(number).replace(",", " ")


def show_bytes(count: int) -> str:
    """Return an amount of memory."""
    return "%.1f MiB" % (count / 1048576) if count >= 1048576 else "%d KiB" % (count / 1024)
