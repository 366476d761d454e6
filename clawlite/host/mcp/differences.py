"""What an MCP server's list of tools has that the pinned one had not, as a person reads it: tool by
tool, and its texts line by line.  All of it is a stranger's, so what cannot be seen is written out.
"""

import json
import textwrap
from difflib import unified_diff

MAX_LINES = 200
_WIDTH = 90


def difference(old: dict, new: dict) -> list[str]:
    """Return the lines that show how *new* differs from *old*: what ``pinned`` keeps of a list."""
    lines: list[str] = []
    before, after = old.get("tools", {}), new.get("tools", {})
    for name in sorted({*before, *after}):
        if name not in after:
            lines.append(f"- the tool {_visible(name)} is gone")
        elif name not in before:
            lines.append(f"+ the tool {_visible(name)} is new")
            lines += [f"    + {line}" for line in _lines(after[name])]
        elif before[name] != after[name]:
            lines.append(f"~ the tool {_visible(name)} has changed")
            lines += _show_change(before[name], after[name])
    for field in sorted({*old, *new} - {"tools"}):
        if old.get(field) != new.get(field):
            lines.append(f"~ {_visible(field)} has changed")
            lines += _compare(old.get(field), new.get(field))
    more = len(lines) - MAX_LINES
    return lines[:MAX_LINES] + ([f"... and {more} lines more"] if more > 0 else [])


def _show_change(before, after) -> list[str]:
    """Return how one definition has changed, field by field."""
    lines = []
    for field in sorted({*before, *after}):
        if before.get(field) != after.get(field):
            lines.append(f"  {_visible(field)}:")
            lines += _compare(before.get(field), after.get(field))
    return lines


def _compare(before, after) -> list[str]:
    found = unified_diff(_lines(before), _lines(after), lineterm="", n=1)
    return [f"    {line[0]} {line[1:]}" for line in list(found)[2:] if not line.startswith("@@")]


def _lines(value) -> list[str]:
    """Return *value* in lines that a diff can compare: a text wrapped, all else as JSON."""
    if value is None:
        return []
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)
    lines = []
    for line in value.split("\n"):
        line = _visible(line)
        indent = line[: len(line) - len(line.lstrip())]
        lines += textwrap.wrap(line, _WIDTH, subsequent_indent=indent) or [""]
    return lines


def _visible(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
