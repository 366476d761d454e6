"""``clawlite rules``: the rules that people have taught an agent (linux/rules/taught_store.py)."""

import json
import os

from clawlite.core.base.clock import iso8601
from clawlite.core.teach.row_words import describe
from clawlite.linux.admin.trace import open_image_of
from clawlite.linux.files.files import state_folder
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_line, print_note
from clawlite.linux.rules.taught_store import TaughtRules

_THEN = '[ { say = "{result}" }, { if = "failed", say = "{result}" } ]'
_ORDER = (
    "at cron every pin edge debounce on below above again_above again_below for if call".split()
)


def show(manifest, as_json: bool) -> int:
    """List the taught rules, with who taught them; return the exit code.  Raises ``ClawError``."""
    entries = _read(manifest)
    if as_json:
        rows = [
            dict(one, at=iso8601(one["at_s"]), sentence=describe(one["row"])) for one in entries
        ]
        print(
            document(
                [{k: v for k, v in one.items() if k not in ("at_s", "is_known")} for one in rows]
            )
        )
        return 0
    for one in entries:
        print_line("%s: %s" % (one["name"], describe(one["row"])))
        print_line("  taught by %s at %s: %s" % (one["by"], iso8601(one["at_s"]), one["said"]))
    if not entries:
        print_note("Nothing was taught yet.")
    return 0


def export(manifest) -> int:
    """Write the taught rules as TOML for the rules file; return the exit code.  Raises
    ``ClawError``.
    """
    entries = _read(manifest)
    for one in entries:
        print_line(*export_rule(one))
    if not entries:
        print_note("Nothing was taught yet.")
    return 0


def export_rule(entry: dict) -> list:
    """Return the lines of one taught rule: a table, or a comment for what no table of the rules
    file can say.
    """
    row = entry["row"]
    lines = ["# taught by %s at %s: %s" % (entry["by"], iso8601(entry["at_s"]), entry["said"])]
    if row.get("once") or "call" not in row:
        why = "it runs once" if row.get("once") else "it is a reminder, which calls nothing"
        return [*lines, "# not a rule of the file, because %s: %s" % (why, describe(row)), ""]
    lines += ["[[rule]]", "name = %s" % write_value(entry["name"])]
    keys = [key for key in _ORDER if key in row]
    keys += [key for key in sorted(row) if key not in _ORDER and key not in ("once", "say")]
    lines += ["%s = %s" % (key, write_value(row[key])) for key in keys]
    then = "[ { say = %s } ]" % write_value(row["say"]) if "say" in row else _THEN
    return [*lines, "then = " + then, ""]


def write_value(value) -> str:
    """Return a value as TOML: JSON has the same texts, numbers and lists."""
    if isinstance(value, dict):
        pairs = ["%s = %s" % (json.dumps(key), write_value(value[key])) for key in sorted(value)]
        return "{ %s }" % ", ".join(pairs) if pairs else "{}"
    if isinstance(value, list):
        return "[%s]" % ", ".join(write_value(one) for one in value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(manifest) -> list:
    image = open_image_of(manifest)
    return TaughtRules(os.path.join(state_folder(image.agent.name), "rules")).entries
