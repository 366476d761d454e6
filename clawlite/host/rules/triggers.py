"""Compile the readings of a reflex file, and those of its rules that begin by themselves
(docs/rules.md), to the section of clawlite/core/rules/table.py.

    [[reading]]
    name = "soil"
    tool = "read-soil"                      # a tool that only reads; or pin = "soil"
    field = "percent"
    every = "60s"

    [[rule]]
    name = "morning-water"
    at = "07:00"                            # or every, cron, pin, on
    if = ["soil < 30", "age(soil) < 10m"]
    call = "water"
    arguments = { seconds = 3 }
    at_most = "2/day"
    then = [ { say = "Watered: {result}", to = "admins" } ]

A rule with ``when`` is none of them: reflexes.py compiles those.
"""

import dataclasses
import re

from clawlite.core.image.pins import KINDS
from clawlite.core.providers.reflex import FAILED
from clawlite.core.rules import table
from clawlite.core.teach import cron_fields
from clawlite.core.teach.row_text import (
    parse_comparison,
    parse_condition,
    parse_duration,
    parse_minute,
    parse_sun,
    reading_of,
    show_duration,
)
from clawlite.host.base.problems import Problem, did_you_mean, enquote, one_of, value_text
from clawlite.host.base.toml_text import TOMLDocument
from clawlite.host.providers.reflexes import PART, is_triggered, text_parts
from clawlite.host.providers.rule_calls import find_called

READING_KEYS = ("name", "tool", "pin", "field", "every", "keep", "keep_hourly")
TRIGGERS = ("when", "at", "every", "cron", "pin", "on")
OF_TRIGGER = {
    "at": ("missed",),
    "cron": ("missed",),
    "every": (),
    "pin": ("edge", "debounce"),
    "on": ("below", "above", "again_above", "again_below", "for"),
}
_OF_ANY = tuple({key: 0 for keys in OF_TRIGGER.values() for key in keys})
RULE_KEYS = ("name", "if", "call", "arguments", "at_most", "least_pause", "then")
STEP_KEYS = ("if", "say", "ask", "to")
MISSED = ("skip", "once", "all")
EDGES = {"fall": 1, "rise": 2, "both": 3}
MAX_READINGS, MAX_RULES, MAX_CONDITIONS, MAX_COUNT = 64, 256, 16, 10000
_PERIODS = {"minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_RULE_NAME = re.compile(r"[a-z][a-z0-9-]{0,62}")
_READING_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_COUNT = re.compile(r"([0-9]{1,5})\s*/\s*([a-z]+)")
DAY_MS, YEAR_MS = 86400000, 366 * 86400000


@dataclasses.dataclass
class World:
    """What a manifest has that readings and rules name.

    tools  {name that a rule calls it by: ``rule_calls.Callable``}
    reads  names of the tools that only read
    pins   {name: its kind in clawlite.toml}
    has_place  bool, clawlite.toml says where the agent is
    has_model  bool, some provider is a model, which a rule may ask
    """

    tools: dict
    reads: set
    pins: dict
    has_place: bool = False
    has_model: bool = True


def compile_triggers(text: str, file: str, world: World) -> tuple[list, list, list[Problem]]:
    """Return (readings, rules, problems) of the reflex file *text*.  A file that is no TOML has
    none: reflexes.py reports it.
    """
    try:
        document = TOMLDocument(text.encode(), file)
    except Exception:
        return [], [], []
    return _Compiler(document, world).run()


class _Compiler:
    def __init__(self, document: TOMLDocument, world: World):
        self.document, self.world = document, world
        self.problems = []
        self.readings = {}  # name -> its table
        self.knows_readings = True

    def run(self) -> tuple[list, list, list]:
        readings = self.tables("reading", MAX_READINGS)
        for path, reading in readings:
            name = self.name(path, reading, self.readings, _READING_NAME, 'such as "soil"')
            if name:
                self.readings[name] = reading
        rules, names = [], {}
        compiled = [self.reading(path, reading) for path, reading in readings]
        for path, rule in self.tables("rule", MAX_RULES):
            if is_triggered(rule):
                name = self.name(path, rule, names, _RULE_NAME, 'such as "morning-water"')
                names[name] = rule
                rules.append(self.rule(path, rule))
        return compiled, rules, self.problems

    def report(
        self, path: tuple, message: str, expected: str = "", found: str = "", hint: str = ""
    ):
        file, line = self.document.where(path)
        self.problems.append(Problem(path, message, file, line, expected, found, hint))

    def tables(self, key: str, most: int) -> list:
        """Return [(path, table), ...] of the tables [[*key*]]."""
        found = self.document.data.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            if key == "reading":
                self.knows_readings = False
                self.report((key,), "", f"[[{key}]] tables", value_text(found))
            return []
        if len(found) > most:
            self.report((key,), "", f"at most {most} of them", str(len(found)))
        return [((key, number), one) for number, one in enumerate(found[:most])]

    def keys(self, path: tuple, value: dict, keys: tuple):
        for key in value:
            if key not in keys:
                hint = did_you_mean(key, keys) or "known here: " + ", ".join(keys)
                self.report(path + (key,), "unknown field", hint=hint)

    def name(self, path: tuple, value: dict, known: dict, pattern, example: str) -> str:
        name = value.get("name")
        if not isinstance(name, str) or not pattern.fullmatch(name):
            if "name" in value or not self.means(value, "name", RULE_KEYS):
                self.report(
                    path + ("name",),
                    "",
                    f"a name of lower-case letters, {example}",
                    value_text(name) if "name" in value else "none",
                )
            return ""
        if name in known:
            self.report(
                path + ("name",), f"there is another {path[0]} {enquote(name)}", hint="rename one"
            )
        return name

    @staticmethod
    def means(value: dict, name: str, keys: tuple) -> bool:
        """Return whether a key of *value* that is unknown is *name*, misspelt."""
        return any(
            did_you_mean(key, keys) == f"did you mean {enquote(name)}?"
            for key in value
            if key not in keys
        )

    def duration(
        self, path: tuple, value: dict, key: str, default: int, least: int, most: int
    ) -> int:
        """Return the ms of the field *key*, *default* without it."""
        if key not in value:
            return default
        ms = parse_duration(value[key])
        if ms is None or not least <= ms <= most:
            self.report(
                path + (key,),
                "",
                f'a time such as "60s" or "2h", from {show_duration(least)} to '
                + show_duration(most),
                value_text(value[key]),
            )
            return default or least
        return ms

    # -- readings

    def reading(self, path: tuple, reading: dict) -> list:
        self.keys(path, reading, READING_KEYS)
        tool, pin, field = (reading.get(key) for key in ("tool", "pin", "field"))
        if (tool is None) == (pin is None):
            if not (self.means(reading, "tool", READING_KEYS)):
                self.report(
                    path,
                    "a reading has one source",
                    "tool or pin",
                    "both" if tool is not None else "neither",
                    'add tool = "NAME" of a tool that only reads, or pin = "NAME"',
                )
            tool = pin = field = None
        elif pin is not None:
            self.pin(path + ("pin",), pin, None)
        else:
            tool = self.reading_tool(path + ("tool",), tool)
        if field is not None and (not isinstance(field, str) or pin is not None):
            self.report(
                path + ("field",),
                "a pin has one value, and no fields" if pin is not None else "",
                "" if pin is not None else "the name of a field",
                "" if pin is not None else value_text(field),
            )
            field = None
        known = self.world.tools[tool].fields if tool in self.world.tools else None
        if isinstance(field, str) and known is not None and field not in known:
            self.report(
                path + ("field",),
                f"{tool} returns no field {enquote(field)}",
                hint=did_you_mean(field, known)
                or "it returns: " + (", ".join(sorted(known)) or "no fields"),
            )
        elif "field" not in reading and known and not self.means(reading, "field", READING_KEYS):
            self.report(
                path,
                f"{tool} returns several fields",
                "field",
                "none",
                "add field = " + " or ".join(enquote(name) for name in sorted(known)),
            )
        if "every" not in reading and not self.means(reading, "every", READING_KEYS):
            self.report(path, "nothing says how often it is read", hint='add every = "60s"')
        return [
            reading.get("name") if isinstance(reading.get("name"), str) else "",
            tool,
            pin,
            field,
            self.duration(path, reading, "every", 60000, 100, DAY_MS),
            self.duration(path, reading, "keep", DAY_MS, 3600000, YEAR_MS) // 1000,
            self.duration(path, reading, "keep_hourly", 0, 0, 10 * YEAR_MS) // 1000,
        ]

    def reading_tool(self, path: tuple, tool):
        tool = self.tool(path, tool)
        if tool and tool not in self.world.reads:
            self.report(
                path,
                f"{tool} may have side effects, and nobody is asked before a reading",
                "a tool with annotations: { readOnlyHint: true }",
                hint=f"add that to {tool} if it only reads, or name another tool",
            )
            return None
        for _, message, _ in self.world.tools[tool].refusals({}) if tool else ():
            self.report(
                path,
                f"a reading passes no arguments: {message}",
                hint="give them defaults, or name another tool",
            )
        return tool

    def tool(self, path: tuple, name):
        """Return the tool that *name* means, None when there is none."""
        tools = self.world.tools
        known = find_called(name, tools)
        if known is None:
            self.report(
                path,
                f"unknown tool {value_text(name)}",
                hint=did_you_mean(name, tools) or "tools here: " + (", ".join(tools) or "none"),
            )
        return known

    def pin(self, path: tuple, name, kinds):
        """Check that *name* is a pin, of one of *kinds* where these are given."""
        pins = self.world.pins
        if not isinstance(name, str) or name not in pins:
            self.report(
                path,
                f"clawlite.toml has no pin {value_text(name)}",
                hint=did_you_mean(name, pins) or "pins there: " + (", ".join(pins) or "none"),
            )
        elif kinds and pins[name] not in kinds:
            self.report(
                path,
                "a rule that begins with a pin that the agent itself sets would fire itself"
                if pins[name] in ("output", "pwm")
                else "an analog pin has no edges",
                "a pin of kind " + one_of(kinds),
                f"{name} is {pins[name]}",
                "" if pins[name] != "adc" else "make it a reading, and begin the rule with on = ",
            )

    # -- rules

    def rule(self, path: tuple, rule: dict) -> list:
        triggers = [key for key in TRIGGERS if key in rule]
        kind = triggers[-1] if triggers else None
        if len(triggers) > 1:
            self.report(
                path,
                "a rule begins in one way",
                "one of " + ", ".join(TRIGGERS),
                " and ".join(triggers),
                "make two rules of it",
            )
        if not triggers and not any(
            self.means(rule, key, TRIGGERS + RULE_KEYS) for key in TRIGGERS
        ):
            self.report(
                path, "nothing says when it begins", "one of " + ", ".join(TRIGGERS), "none"
            )
        own = OF_TRIGGER.get(kind, ()) if kind else _OF_ANY
        self.keys(path, rule, RULE_KEYS + TRIGGERS + own)
        call = self.call(path, rule)
        fields = self.world.tools[call].fields if call else None
        for name in sorted(set(fields or ()) & set(self.readings)):
            self.report(
                path,
                f"{enquote(name)} is a reading and also a field of what {call} returns",
                hint="give the reading another name",
            )
        trigger = getattr(self, "begin_" + kind)(path, rule) if kind and kind != "when" else []
        missed = rule.get("missed", "once")
        if "missed" in rule and kind in ("at", "cron") and missed not in MISSED:
            self.report(path + ("missed",), "", one_of(MISSED), value_text(missed))
        return [
            rule.get("name") if isinstance(rule.get("name"), str) else "",
            trigger,
            self.conditions(path + ("if",), rule.get("if", [])),
            call,
            self.arguments(path, rule, call),
            self.at_most(path, rule),
            self.duration(path, rule, "least_pause", 0, 1000, YEAR_MS) // 1000,
            MISSED.index(missed) if missed in MISSED else 0,
            self.then(path + ("then",), rule.get("then", []), fields),
        ]

    def call(self, path: tuple, rule: dict):
        if "call" not in rule:
            if not self.means(rule, "call", RULE_KEYS):
                self.report(
                    path,
                    "a rule that begins by itself calls a tool",
                    "call",
                    "none",
                    'add call = "NAME"; what it says stands in then',
                )
            return None
        return self.tool(path + ("call",), rule["call"])

    def arguments(self, path: tuple, rule: dict, call) -> list:
        arguments = rule.get("arguments", {})
        if not isinstance(arguments, dict):
            self.report(path + ("arguments",), "", "a table", value_text(arguments))
            return []
        pairs = []
        for name in sorted(arguments):
            value = arguments[name]
            slot = PART.fullmatch(value) if isinstance(value, str) else None
            if slot and slot[1] not in self.readings:
                self.unknown_reading(path + ("arguments", name), slot[1])
            elif not slot and not isinstance(value, (str, int, float, bool)):
                self.report(
                    path + ("arguments", name),
                    "",
                    "a constant, or one {reading} alone",
                    value_text(value),
                )
            pairs.append([name, [slot[1]] if slot else value])
        is_misspelt = self.means(rule, "arguments", RULE_KEYS)
        refusals = self.world.tools[call].refusals(dict(pairs)) if call else ()
        for name, message, hint in () if is_misspelt else refusals:
            place = path + ("arguments", name) if name else path + ("arguments",)
            self.report(place, message, hint=hint)
        return pairs

    def at_most(self, path: tuple, rule: dict):
        if "at_most" not in rule:
            return None
        text = rule["at_most"]
        found = _COUNT.fullmatch(text) if isinstance(text, str) else None
        if not found or found[2] not in _PERIODS or not 0 < int(found[1]) <= MAX_COUNT:
            self.report(
                path + ("at_most",),
                "",
                'a number for each minute, hour, day or week, such as "2/day"',
                value_text(text),
            )
            return None
        return [int(found[1]), _PERIODS[found[2]]]

    def conditions(self, path: tuple, written) -> list:
        texts = [written] if isinstance(written, str) else written
        if not isinstance(texts, list) or len(texts) > MAX_CONDITIONS:
            self.report(
                path, "", f"one comparison, or a list of up to {MAX_CONDITIONS}", value_text(texts)
            )
            return []
        places = [path if isinstance(written, str) else path + (n,) for n in range(len(texts))]
        found = [self.condition(place, text) for place, text in zip(places, texts)]
        return [condition for condition in found if condition]

    def condition(self, path: tuple, text):
        condition = parse_condition(text)
        if condition is None:
            self.report(
                path,
                "",
                'a comparison such as "soil < 30", "age(soil) < 10m" or "between 06:00-10:00"',
                value_text(text),
            )
        elif reading_of(condition) not in (None, *self.readings):
            self.unknown_reading(path, reading_of(condition))
        return condition

    def unknown_reading(self, path: tuple, name):
        if not self.knows_readings:
            return
        known = ", ".join(self.readings) or "none"
        self.report(
            path,
            f"there is no reading {value_text(name)}",
            hint=did_you_mean(name, self.readings)
            or f"readings here: {known}; [[reading]] declares one",
        )

    # -- what a rule begins with

    def begin_at(self, path: tuple, rule: dict) -> list:
        times = rule["at"] if isinstance(rule["at"], list) else [rule["at"]]
        suns = [parse_sun(text) for text in times]
        if None not in suns and 0 < len(times) <= 24:
            if not self.world.has_place:
                self.report(
                    path + ("at",),
                    "where the sun rises is not known",
                    hint="add place = [latitude, longitude] to clawlite.toml",
                )
            return [table.ON_SUN, suns]
        minutes = [parse_minute(text) for text in times]
        if not times or None in minutes or len(times) > 24:
            self.report(
                path + ("at",),
                "",
                'a time of the day in quotes, such as "07:00" or "sunset-30m", or a list of up to '
                "24 times of one kind",
                value_text(times[minutes.index(None)] if None in minutes else rule["at"]),
            )
            return [table.AT, []]
        return [
            table.AT,
            [
                cron_fields.parse("%d %d * * *" % (one % 60, one // 60))
                for one in sorted({one for one in minutes if one is not None})
            ],
        ]

    def begin_cron(self, path: tuple, rule: dict) -> list:
        text = rule["cron"]
        try:
            return [table.AT, [cron_fields.parse(text if isinstance(text, str) else "")]]
        except ValueError as e:
            self.report(
                path + ("cron",),
                str(e),
                found=value_text(text),
                hint="write five fields for minute, hour, day of the month, month and weekday",
            )
        return [table.AT, []]

    def begin_every(self, path: tuple, rule: dict) -> list:
        return [table.EVERY, self.duration(path, rule, "every", 0, 1000, YEAR_MS)]

    def begin_pin(self, path: tuple, rule: dict) -> list:
        self.pin(path + ("pin",), rule["pin"], ("input",))
        edge = rule.get("edge", "both")
        if not isinstance(edge, str) or edge not in EDGES:
            self.report(path + ("edge",), "", one_of(EDGES), value_text(edge))
        return [
            table.ON_PIN,
            rule["pin"],
            EDGES.get(edge, 0) if isinstance(edge, str) else 0,
            self.duration(path, rule, "debounce", 50, 0, 60000),
        ]

    def begin_on(self, path: tuple, rule: dict) -> list:
        if not isinstance(rule["on"], str) or rule["on"] not in self.readings:
            self.unknown_reading(path + ("on",), rule["on"])
        sides = [key for key in ("below", "above") if key in rule]
        if len(sides) != 1:
            if sides or not any(
                self.means(rule, side, OF_TRIGGER["on"]) for side in ("below", "above")
            ):
                self.report(
                    path,
                    "a threshold has one side",
                    "below or above",
                    "both" if sides else "neither",
                    "make two rules of it" if sides else "add below = 30, for example",
                )
            return [table.ON_READING, rule["on"], True, 0, None, 0]
        is_below, limit = sides == ["below"], rule[sides[0]]
        again_key = "again_above" if is_below else "again_below"
        other = "again_below" if is_below else "again_above"
        again = rule.get(again_key)
        for key in (sides[0], again_key):
            if key in rule and (
                isinstance(rule[key], bool) or not isinstance(rule[key], (int, float))
            ):
                self.report(path + (key,), "", "a number", value_text(rule[key]))
                return [table.ON_READING, rule["on"], is_below, 0, None, 0]
        if other in rule:
            self.report(
                path + (other,),
                f"it goes with {'above' if is_below else 'below'}",
                again_key,
                other,
            )
        elif again is not None and (again < limit if is_below else again > limit):
            self.report(
                path + (again_key,),
                "the rule would be ready again while its threshold is still passed",
                f"a number {'from' if is_below else 'up to'} {limit}",
                str(again),
            )
        for_ms = self.duration(path, rule, "for", 0, 0, YEAR_MS)
        return [table.ON_READING, rule["on"], is_below, limit, again, for_ms]

    # -- what a rule says afterwards

    def then(self, path: tuple, steps, fields) -> list:
        if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
            self.report(path, "", "a list of tables such as { say = ... }", value_text(steps))
            return []
        return [
            [self.branch(path + (n, "if"), step, fields), self.step(path + (n,), step, fields)]
            for n, step in enumerate(steps)
        ]

    def branch(self, path: tuple, step: dict, fields):
        text = step.get("if")
        if text is None or text == "failed":
            return None if text is None else [FAILED]
        comparison = parse_comparison(text)
        if comparison is None:
            self.report(
                path, "", '"failed" or a comparison such as "percent < 30"', value_text(text)
            )
            return None
        name = comparison[0]
        if fields is not None and name not in fields | {"result"}:
            self.report(
                path,
                f"the tool returns no field {enquote(name)}",
                hint=did_you_mean(name, fields)
                or (
                    "readings stand in the if of the rule itself"
                    if name in self.readings
                    else "it returns: " + (", ".join(sorted(fields)) or "no fields")
                ),
            )
        return comparison

    def step(self, path: tuple, step: dict, fields) -> list:
        if "call" in step:
            self.report(
                path + ("call",),
                "what follows a rule that begins by itself says or asks, and calls nothing",
                hint="make a rule of its own for that call",
            )
        self.keys(path, {key: 0 for key in step if key != "call"}, STEP_KEYS)
        key, to = "ask" if "ask" in step else "say", step.get("to")
        say = step.get(key)
        if "ask" in step and "say" in step:
            self.report(
                path, "a step says, or asks a model and says its answer", key, "say and ask"
            )
        elif "ask" in step and not self.world.has_model:
            self.report(
                path + ("ask",),
                "this agent has no model that it could ask",
                hint="add a provider that is a model, or say something",
            )
        if not isinstance(say, str) or not say:
            is_meant = any(self.means(step, one, STEP_KEYS) for one in ("say", "ask"))
            if "call" not in step and not is_meant:
                self.report(path + (key,), "", "text", value_text(say) if key in step else "none")
            say = ""
        known = {"result", *(fields or ()), *self.readings}
        for name in PART.findall(say) if fields is not None and self.knows_readings else ():
            if name not in known:
                self.report(
                    path + (key,),
                    f"there is no field and no reading {enquote(name)}",
                    hint=did_you_mean(name, known) or "known here: " + ", ".join(sorted(known)),
                )
        if to is not None and to != "admins":
            self.report(path + ("to",), "", '"admins"', value_text(to))
        return [text_parts(say), "admins" if to else "", key == "ask"]


def pins_of(settings) -> dict:
    """Return {name: kind} of the pins of clawlite.toml."""
    return {pin.name: pin.kind for pin in settings.pins if pin.kind in KINDS}
