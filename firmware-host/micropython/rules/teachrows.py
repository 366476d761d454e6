"""The rows that a board is taught, checked and shown.  Loaded for one look, and dropped."""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ClawError, InvalidParams, InvalidRequest
from clawlite.core.base.render import canonical
from clawlite.core.rules import table
from clawlite.core.teach.draft import (
    MOST_ROW,
    MOST_SAID,
    TEACH,
    World,
    compile_row,
    find_name,
)
from clawlite.core.teach.row_words import describe
from jsontext import loads

MOST = const(8)  # each takes some 700 bytes of the heap
_LETTERS = b"abcdefghijklmnopqrstuvwxyz_"
_QUOTE, _BACKSLASH, _EQUALS, _COLON = const(34), const(92), const(61), const(58)


def read_form(text: str) -> dict:
    """Return the row of ``at = "07:00", call = "water"``.  Raises ``ParseError``."""
    if text.startswith("{"):
        return loads(text.encode())
    made, word, is_text, before = bytearray(b"{"), bytearray(), False, 0
    for byte in text.encode() + b"}":
        if not is_text and byte in _LETTERS:
            word.append(byte)
            continue
        if word:
            said = bytes(word)
            made += said if said in (b"true", b"false") else b'"' + said + b'"'
            word = bytearray()
        if byte == _QUOTE and not (is_text and before == _BACKSLASH):
            is_text = not is_text
        made.append(_COLON if byte == _EQUALS and not is_text else byte)
        before = 0 if before == _BACKSLASH else byte
    return loads(bytes(made))


def make_entry(rules, teaching, row: dict, by: str, said: str) -> tuple:
    """Return (what is kept of *row*, its record, the sentence that it obeys).  Raises
    ``ClawError``.
    """
    engine, times = rules.engine, rules.times()
    if len(teaching.entries) >= MOST:
        raise InvalidRequest(
            "%d rules are taught already, and more have no room" % MOST, "/rules forget NAME"
        )
    taken = [rule.name for rule in engine.rules] + list(teaching.entries)
    if isinstance(row, dict) and "name" not in row:
        row = dict(row)
        row["name"] = find_name(row, taken)
    record = compile_row(row, _world(rules.agent.image, rules.section, taken, engine.values(times)))
    if len(canonical(row)) > MOST_ROW:
        raise InvalidParams(
            "the rule: it has more than %d characters" % MOST_ROW, "say it more shortly"
        )
    entry = {
        "row": {key: row[key] for key in row if key != "name"},
        "by": by,
        "said": said[:MOST_SAID],
        "at_s": times.wall_s,
    }
    return entry, record, describe(entry["row"], rules.section[table.CLOCK][table.ZONE_NAME])


def _world(image, section: list, taken: list, values=None):
    return World(image, section, image.section(TEACH) or (None, None), taken, values)


def compile_all(teaching, rules):
    """Add the records of the taught rules to those of *rules*; what does not fit the image any more
    rests.
    """
    records = rules.section[table.RULES]
    for name in sorted(teaching.entries):
        entry = teaching.entries[name]
        try:
            row, taken = dict(entry["row"]), [record[table.NAME] for record in records]
            row["name"], entry["by"] = name, str(entry["by"])
            records.append(compile_row(row, _world(rules.agent.image, rules.section, taken)))
        except ClawError as e:
            teaching.resting[name] = e.message
        except (KeyError, TypeError, ValueError):  # what no version of this writes
            del teaching.entries[name]


def list_lines(teaching, rules) -> list:
    """Return the lines that say what was taught."""
    zone, lines = rules.section[table.CLOCK][table.ZONE_NAME], []
    for name in sorted(teaching.entries):
        off = rules.engine.row(name).get("off") if rules.engine.find(name) else ""
        state = " It is off: %s." % off if off else ""
        if name in teaching.resting:
            state = " It rests: %s." % teaching.resting[name]
        lines.append("%s: %s%s" % (name, describe(teaching.entries[name]["row"], zone), state))
    return lines or ["Nothing was taught yet."]
