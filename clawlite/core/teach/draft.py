"""The row of a rule that a person teaches, checked and compiled to the engine's record
(core/rules/table.py).  Its fields are those of a ``[[rule]]`` of the rules file that begins by
itself, and two more:

    once = true          it is forgotten after its first run
    say = "..."          what it says in place of a call, to the one who taught it

Each thing that is wrong is one sentence: ``InvalidParams``.
"""

from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.base.render import canonical
from clawlite.core.formats.schema import check
from clawlite.core.image.image import HANDLER_KIND, OBSERVER, PINS, SKILL
from clawlite.core.image.pins import INPUT, PULL_DOWN, PULL_UP
from clawlite.core.providers.reflex import FAILED
from clawlite.core.rules import table
from clawlite.core.teach.row_text import (
    parse_condition,
    parse_duration,
    parse_minute,
    parse_sun,
    read_count,
    reading_of,
    show_duration,
)

TEACH = 32  # the section of an image: [tools or null, [count, seconds] or null], of [teach]
TRIGGERS = ("at", "cron", "every", "pin", "on")
_OF_TRIGGER = {
    "at": ("missed",),
    "cron": ("missed",),
    "every": (),
    "pin": ("edge", "debounce"),
    "on": ("below", "above", "again_above", "again_below", "for"),
}
KEYS = ("name", "if", "call", "arguments", "at_most", "least_pause", "once", "say")
PERIODS = {"minute": 60, "hour": 3600, "day": 86400, "week": 604800}
EDGES = {"fall": 1, "rise": 2, "both": 3}
MISSED = ("skip", "once", "all")
MOST_RUNS = 999  # of a taught rule in a day
MOST_ROW = 2000  # characters of a row as JSON
MOST_SAID = 500
MOST_CONDITIONS = 16
MOST_TEXT = 500
YEAR_MS = 31622400000
_OWN = ("add-rule", "forget-rule", "list-rules", "remind")
_NAME = "abcdefghijklmnopqrstuvwxyz0123456789-"
_FORM = "say it in other words; /teach shows how a rule is written"


class World:
    """What the rules of one agent may name.

    image     ``image.Image``
    section   its readings, rules and clock (table.py)
    limits    what ``[teach]`` says: (names of the tools that a taught rule may call, None for all;
              [count, seconds]: how often each may run, or None)
    taken     names that other rules have
    values    {reading: value}, the present ones
    """

    def __init__(self, image, section: list, limits=(None, None), taken=(), values=None):
        self.image, self.section = image, section
        self.tools, self.at_most = limits
        self.taken, self.values = taken, values or {}
        self.readings = {row[table.NAME]: row for row in section[table.READINGS]}
        self.pins = {name: kind for name, kind, _ in rows_of_pins(image)}


def rows_of_pins(image) -> list:
    """Return [(name, kind, safe), ...] of the pins of *image*."""
    return [(name, kind, safe) for name, _, kind, _, _, _, _, safe, _ in image.section(PINS) or ()]


def find_name(row: dict, taken: list) -> str:
    """Return a name for *row*, which has none, that is not *taken*."""
    call = row.get("call")
    call = call if isinstance(call, str) else "reminder"
    base = "".join([c if c in _NAME else "-" for c in call])[:40]
    number = 1
    while "%s-%d" % (base, number) in taken:
        number += 1
    return "%s-%d" % (base, number)


def compile_row(row: dict, world) -> list:
    """Return the record of *row*.  Raises ``InvalidParams``."""
    if not isinstance(row, dict):
        _refuse("a rule is a table of fields, and not %s" % canonical(row, 40))
    kinds = [key for key in TRIGGERS if key in row]
    if len(kinds) != 1:
        _refuse(
            "a rule begins in one way, with one of %s; found %s"
            % (", ".join(TRIGGERS), " and ".join(kinds) or "none")
        )
    kind = kinds[0]
    for key in sorted(row):
        if key not in KEYS + kinds_of(kind):
            known = ", ".join(KEYS + kinds_of(kind))
            _refuse("unknown field %s; known here: %s" % (canonical(key, 40), known))
    if world.image.agent.autonomy == OBSERVER:
        _refuse("this agent only observes, and runs no tools: no rule of it would run")
    call, arguments = _read_call(row, world)
    record = [
        _read_name(row, world),
        _READERS[kind](row, world),
        _read_conditions(row, world),
        call,
        arguments,
        _read_at_most(row, world),
        _read_ms(row, "least_pause", 0, 1000) // 1000,
        _choose(row, "missed", MISSED, "once"),
        _read_say(row, world),
    ]
    if "once" in row and not isinstance(row["once"], bool):
        _refuse("once: expected true or false, got %s" % canonical(row["once"], 40))
    _refuse_loop(record, world)
    if not row.get("once"):
        _refuse_often(record)
    return record


def kinds_of(kind: str) -> tuple:
    """Return the fields that a rule has that begins with *kind*."""
    return (kind,) + _OF_TRIGGER[kind]


def _refuse(message: str, hint: str = _FORM):
    raise InvalidParams("the rule: " + message, hint)


def _refuse_unknown(what: str, name, known):
    names = ", ".join(sorted(known)) or "none"
    _refuse("there is no %s %s here; known: %s" % (what, canonical(name, 60), names))


def _read_name(row: dict, world) -> str | None:
    name = row.get("name")
    if (
        not isinstance(name, str)
        or not 0 < len(name) < 64
        or not "a" <= name[0] <= "z"
        or [c for c in name if c not in _NAME]
    ):
        _refuse("name: expected lower-case letters, digits and -, got %s" % canonical(name, 40))
    if name in world.taken:
        _refuse("name: there is another rule %s" % name)
    return name


def _read_ms(row: dict, key: str, default: int, least: int, most: int = YEAR_MS) -> int:
    if key not in row:
        return default
    ms = parse_duration(row[key])
    if ms is None or not least <= ms <= most:
        _refuse(
            '%s: expected a time such as "60s" or "2h", from %s to %s, got %s'
            % (key, show_duration(least), show_duration(most), canonical(row[key], 40))
        )
    return ms


def _choose(row: dict, key: str, known: tuple, default: str) -> int:
    value = row.get(key, default)
    if value not in known:
        _refuse("%s: expected %s, got %s" % (key, " or ".join(known), canonical(value, 40)))
    return known.index(value)


# -- what it begins with


def _begin_at(row: dict, world) -> list:
    from clawlite.core.teach.cron_fields import parse

    times = row["at"] if isinstance(row["at"], list) else [row["at"]]
    suns = [parse_sun(text) for text in times]
    if times and None not in suns and len(times) < 25:
        if not world.section[table.CLOCK][table.SUN]:
            _refuse("where the sun rises is not known here: its image has no place for rules")
        return [table.ON_SUN, suns]
    minutes = [parse_minute(text) for text in times]
    if not times or None in minutes or len(times) > 24:
        _refuse(
            'at: expected a time such as "07:00" or "sunset-30m", or up to 24 of one kind, got %s'
            % canonical(row["at"], 60)
        )
    return [table.AT, [parse("%d %d * * *" % (n % 60, n // 60)) for n in sorted(set(minutes))]]


def _begin_cron(row: dict, world) -> list:
    from clawlite.core.teach.cron_fields import parse

    try:
        return [table.AT, [parse(row["cron"] if isinstance(row["cron"], str) else "")]]
    except ValueError as e:
        _refuse("cron: %s" % e)


def _begin_every(row: dict, world) -> list:
    return [table.EVERY, _read_ms(row, "every", 0, 1000)]


def _begin_pin(row: dict, world) -> list:
    name = row["pin"]
    inputs = [pin for pin in world.pins if world.pins[pin] in (INPUT, PULL_UP, PULL_DOWN)]
    if name not in world.pins:
        _refuse_unknown("pin", name, inputs)
    if name not in inputs:
        from clawlite.core.image.pins import KINDS

        kind = KINDS[world.pins[name]]
        _refuse(
            "an analog pin has no edges; make %s a reading" % name
            if kind == "adc"
            else "it would fire itself: %s is an %s, which the agent sets" % (name, kind)
        )
    edge = ("fall", "rise", "both")[_choose(row, "edge", ("fall", "rise", "both"), "both")]
    return [table.ON_PIN, name, EDGES[edge], _read_ms(row, "debounce", 50, 0, 60000)]


def _begin_on(row: dict, world) -> list:
    name = row["on"]
    if not isinstance(name, str) or name not in world.readings:
        _refuse_unknown("reading", name, world.readings)
    sides = [key for key in ("below", "above") if key in row]
    if len(sides) != 1:
        _refuse("a threshold has one side: below or above")
    is_below, limit = sides == ["below"], row[sides[0]]
    key, other = ("again_above", "again_below") if is_below else ("again_below", "again_above")
    again = row.get(key)
    for one in (sides[0], key):
        if one in row and (isinstance(row[one], bool) or not isinstance(row[one], (int, float))):
            _refuse("%s: expected a number, got %s" % (one, canonical(row[one], 40)))
    if other in row:
        _refuse("%s goes with %s" % (key, sides[0]))
    if again is not None and (again < limit if is_below else again > limit):
        _refuse("%s: it would be ready again while %s is still passed" % (key, limit))
    return [table.ON_READING, name, is_below, limit, again, _read_ms(row, "for", 0, 0)]


_READERS = {
    "at": _begin_at,
    "cron": _begin_cron,
    "every": _begin_every,
    "pin": _begin_pin,
    "on": _begin_on,
}


# -- what it does


def _read_call(row: dict, world) -> tuple:
    call, arguments = row.get("call"), row.get("arguments", {})
    if call is None:
        if not isinstance(row.get("say"), str):
            _refuse("nothing says what it does: call names a tool, or say has a text")
        return None, []
    if not isinstance(arguments, dict):
        _refuse("arguments: expected a table, got %s" % canonical(arguments, 40))
    tool = world.image.tool(call) if isinstance(call, str) else None
    may = [name for name in world.image.names if world.tools is None or name in world.tools]
    if tool is None:
        _refuse_unknown("tool", call, may)
    if tool.name in _OWN or tool.handler[HANDLER_KIND] == SKILL:
        _refuse("a rule calls a tool that acts or reads, and not %s" % tool.name)
    if tool.name not in may:
        _refuse(
            "%s is none of the tools that a taught rule may call here: %s"
            % (tool.name, ", ".join(may) or "none")
        )
    pairs, known = [], {}
    for name in sorted(arguments):
        value = arguments[name]
        slot = value[1:-1] if isinstance(value, str) and value[:1] + value[-1:] == "{}" else None
        if slot is not None and slot not in world.readings:
            _refuse_unknown("reading", slot, world.readings)
        if not isinstance(value, (str, int, float, bool)):
            _refuse("arguments.%s: expected a constant, or one {reading} alone" % name)
        pairs.append([name, value if slot is None else [slot]])
        known[name] = value if slot is None else world.values.get(slot)
    _refuse_call(tool, known, world)
    return tool.name, pairs


def _refuse_call(tool, arguments: dict, world):
    """Refuse a call that the tool's schema or the policy would never let through."""
    if None in [arguments[name] for name in arguments]:
        return  # a value that is not known yet: it is looked at when the rule runs
    wrong = check(tool.schema, arguments, world.image.automaton)
    if wrong:
        _refuse("%s refuses it: %s" % (tool.name, wrong))
    denied = find_refusal(world.image, tool.name, arguments)
    if denied:
        _refuse(denied)


def find_refusal(image, name: str, arguments: dict) -> str:
    """Return why the pipeline would refuse this call of a rule now, "" when it would not, or would
    ask a person.
    """
    from clawlite.core.agent.agent_setup import Setup
    from clawlite.core.base import effect as E
    from clawlite.core.rules.act import advance, close
    from clawlite.core.turns.tools import call

    work, value = [call(Setup(image), name, arguments, "rule/draft")], None
    try:
        for _ in range(64):
            effect = advance(work, value, None)
            value = None
            kind, what = effect[:2]
            if kind == E.STORE:  # nothing is used up
                value = (True, True if what else (0, 0))
            elif kind == E.RESOLVE:
                value = (True, what)
            elif kind != E.LOG:
                return ""
    except ClawError as e:
        return e.message
    except StopIteration:
        return ""
    finally:
        close(work)
    return ""


def _read_conditions(row: dict, world) -> list:
    written = row.get("if", [])
    texts = [written] if isinstance(written, str) else written
    if not isinstance(texts, list) or len(texts) > MOST_CONDITIONS:
        _refuse("if: expected one comparison, or a list of up to %d" % MOST_CONDITIONS)
    found = []
    for text in texts:
        condition = parse_condition(text)
        if condition is None:
            _refuse(
                'if: expected a comparison such as "soil < 30" or "between 06:00-10:00", got %s'
                % canonical(text, 60)
            )
        name = reading_of(condition)
        if name is not None and name not in world.readings:
            _refuse_unknown("reading", name, world.readings)
        found.append(condition)
    return found


def read_at_most(text):
    """Return [count, seconds] of "2/day", None for another text."""
    count, slash, period = text.partition("/") if isinstance(text, str) else ("", "", "")
    count, period = read_count(count.strip()), PERIODS.get(period.strip())
    return [count, period] if count and count <= 10000 and period and slash else None


def _read_at_most(row: dict, world):
    limit = world.at_most
    if "at_most" not in row:
        return limit
    found = read_at_most(row["at_most"])
    if found is None:
        _refuse(
            'at_most: expected a number for each minute, hour, day or week, such as "2/day", got %s'
            % canonical(row["at_most"], 40)
        )
    if limit and _a_day(found) > _a_day(limit):
        _refuse(
            "at_most: %s is more than a taught rule may run here (%d times in %s)"
            % (
                row["at_most"],
                limit[table.COUNT],
                show_duration(limit[table.PERIOD_S] * 1000),
            )
        )
    return found


def _a_day(most: list) -> float:
    return most[table.COUNT] * 86400 / most[table.PERIOD_S]


def _read_say(row: dict, world) -> list:
    say, failed = row.get("say"), [[FAILED], [[["result"]], "", False]]
    if say is None:
        return [[None, [[["result"]], "", False]], failed]
    if not isinstance(say, str) or not 0 < len(say) <= MOST_TEXT:
        _refuse("say: expected a text of 1 to %d characters" % MOST_TEXT)
    parts, rest = [], say
    while "{" in rest:
        before, _, after = rest.partition("{")
        name, brace, behind = after.partition("}")
        known = sorted(world.readings) + ["result"] * bool(row.get("call"))
        if not brace or name not in known:
            _refuse_unknown("reading", name, known)
        parts += [before, [name]]
        rest = behind
    return [[None, [[part for part in parts + [rest] if part], "", False]], failed]


# -- what it would come to


def _refuse_loop(record: list, world):
    """Refuse a rule that begins with what its own call sets."""
    trigger, call = record[table.TRIGGER], record[table.CALL]
    if call is None or trigger[table.KIND] != table.ON_READING:
        return
    pin = world.readings[trigger[table.WHAT]][table.PIN]
    if pin is None:
        return
    sets = [value for name, value in record[table.ARGUMENTS] if name == "pin"]
    if pin in sets:
        _refuse("it would fire itself: its call sets the pin %s that it begins with" % pin)


def _refuse_often(record: list):
    runs = count_runs(record)
    if runs is not None and runs > MOST_RUNS:
        _refuse(
            "it would run %d times a day; a taught rule runs at most %d times" % (runs, MOST_RUNS),
            "let it begin less often, or add at_most",
        )


def count_runs(record: list):
    """Return how often the rule of *record* runs in a day at most, None when that is not known."""
    trigger, most, pause_s = (
        record[table.TRIGGER],
        record[table.AT_MOST],
        record[table.LEAST_PAUSE_S],
    )
    runs = []
    if trigger[table.KIND] == table.EVERY:
        runs.append(86400000 // trigger[table.WHAT])
    elif trigger[table.KIND] == table.AT:
        masks = [mask[:2] for mask in trigger[table.WHAT]]
        runs.append(sum([_ones(minutes) * _ones(hours) for minutes, hours in masks]))
    elif trigger[table.KIND] == table.ON_SUN:
        runs.append(len(trigger[table.WHAT]))
    if most:
        runs.append(int(_a_day(most)))
    if pause_s:
        runs.append(86400 // pause_s)
    return min(runs) if runs else None


def _ones(mask: int) -> int:
    count = 0
    while mask:
        count += mask & 1
        mask >>= 1
    return count
