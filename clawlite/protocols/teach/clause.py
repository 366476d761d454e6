"""The clause of a sentence that says what a rule does, as the call of a tool: by the agent's own
patterns (reflex rules), or by the names of its tools and of their arguments.

``propose(clause, image)`` is the seam: a local model has a function of the same form.
"""

from collections import namedtuple

from clawlite.core.formats.schema import check
from clawlite.core.image.image import HANDLER_KIND, REFLEX, SKILL
from clawlite.core.providers.reflex import ABSTAINS, Reflex
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import Message
from clawlite.protocols.mcp.tool_definitions import schema_of
from clawlite.protocols.teach.sentence_words import read_words, split_words
from clawlite.protocols.teach.time_words import DURATIONS, read_duration, read_number

# ms of a unit that the name of an argument ends with
_NAMED = (
    ("milliseconds", 1),
    ("millis", 1),
    ("ms", 1),
    ("seconds", 1000),
    ("secs", 1000),
    ("minutes", 60000),
    ("mins", 60000),
    ("hours", 3600000),
    ("s", 1000),
)
_ON = ("on", "open", "start", "an", "ein", "auf", "enable", "activate", "high", "lock")
_OFF = ("off", "close", "shut", "stop", "aus", "zu", "disable", "deactivate", "low", "unlock")
_LITTLE = (
    "the a an my our to of for in at by with it me please some up and all den die das der le la el"
).split()


_JOINS = ("and", "then", "und", "et", "y", ";")


class Proposal(namedtuple("Proposal", "tool arguments confidence question", defaults=("",))):
    """A call that a clause may mean.

    tool, arguments   the call; without a tool it is only a question
    confidence        0 to 1
    question          what has to be asked before, or ""
    """


def propose(clause: str, image, names=None) -> "Proposal | None":
    """Return the ``Proposal`` for *clause*, None when no tool of *image* fits it.

    names  of the tools that may be proposed, None for all
    """
    known = [name for name in image.names if names is None or name in names]
    found = _by_patterns(clause, image, known)
    if found is None:
        found = _by_switch(clause, image, known) or _by_names(clause, image, known)
    if found and found.tool and not found.question:
        tool = image.tool(found.tool)
        wrong = check(tool.schema, found.arguments, image.automaton)
        if wrong:
            return found._replace(question="%s: %s. What shall it be?" % (tool.name, wrong))
    return found


def _by_patterns(clause: str, image, known: list) -> "Proposal | None":
    rules = image.section(REFLEX)
    if not rules:
        return None
    history = History(0)
    history.begin(Message("user", clause))
    reply = Reflex(rules).reply(history)
    if reply.stop == ABSTAINS or len(reply.calls) != 1:
        return None
    _, name, arguments, _ = reply.calls[0]
    tool = image.tool(name)
    if tool is None or tool.name not in known or not _is_grounded(clause, arguments):
        return None
    return Proposal(tool.name, arguments, 1.0)


def _is_grounded(clause: str, arguments: dict) -> bool:
    """Return whether each number of *clause* is the value of an argument."""
    words = read_words(clause)
    values = [arguments[name] for name in arguments]
    at = 0
    while at < len(words):
        found = read_number(words, at)
        if found and words[at].text not in ("couple", "dozen"):
            lasts = read_duration(words, at)
            if found.value not in values and str(found.value) not in values:
                return False
            if lasts and not _has_unit(words[found.end].text, arguments, found.value):
                return False
            at = found.end
        else:
            at += 1
    return True


def _has_unit(unit: str, arguments: dict, value) -> bool:
    """Return whether an argument that is *value* may have *unit*: its name says no other one."""
    for name in arguments:
        own = unit_of(name)
        if arguments[name] == value and (not own or own == DURATIONS.get(unit)):
            return True
    return False


def unit_of(name: str) -> int:
    """Return the ms of the unit that the name of an argument ends with, 0 for none."""
    last = name.replace("-", "_").split("_")[-1]
    for unit, ms in _NAMED:
        if last in (unit, unit[:-1] if len(unit) > 2 else unit):
            return ms
    return 0


def _stem(word: str) -> str:
    for end in ("ing", "es", "s", "e"):
        if word.endswith(end) and len(word) - len(end) > 2:
            return word[: -len(end)]
    return word


def _by_switch(clause: str, image, known: list) -> "Proposal | None":
    """Return the call of digital-write that "turn the pump on" means, or None."""
    if "digital-write" not in known:
        return None
    words = [word.text for word in split_words(clause)]
    if not words or words[0] not in ("turn", "switch", "set", "schalte", "put", "pull", "drive"):
        return None
    from clawlite.core.image.pins import OPEN_DRAIN, OUTPUT
    from clawlite.core.teach.draft import rows_of_pins

    pins = [row for row in rows_of_pins(image) if row[1] in (OUTPUT, OPEN_DRAIN)]
    meant = [row for row in pins if row[0].replace("_", "-") in words or row[0] in words]
    state = [word in _ON for word in words if word in _ON + _OFF]
    if len(meant) != 1 or len(state) != 1:
        return None
    if [word for word in words if "0" <= word[0] <= "9"]:
        return None
    pin, _, safe = meant[0]
    return Proposal("digital-write", {"pin": pin, "value": state[0] != bool(safe)}, 0.9)


def _by_names(clause: str, image, known: list) -> "Proposal | None":
    said = [word.text for word in split_words(clause)]
    stems = [_stem(word) for word in said]
    best, fitting = 0, []
    for name in known:
        tool = image.tool(name)
        if tool.handler[HANDLER_KIND] == SKILL:
            continue
        parts = [_stem(part) for part in name.replace(".", "-").replace("_", "-").split("-")]
        hits = [part for part in parts if part in stems]
        if len(hits) < len(parts) and not (len(parts) > 1 and hits and parts[0] not in hits):
            continue
        if len(hits) < len(parts) and parts[0] not in ("read", "get", "show", "check", "measure"):
            continue
        score = 2 * len(hits) - len(parts)
        if score > best or not fitting:
            best, fitting = score, [tool]
        elif score == best:
            fitting.append(tool)
    if not fitting:
        return None
    if len(fitting) > 1:
        names = " or ".join([tool.name for tool in fitting[:4]])
        return Proposal(None, {}, 0.0, "Which tool is meant: %s?" % names)
    tool = fitting[0]
    return _fill(tool, clause)


def _fill(tool, clause: str) -> "Proposal":
    """Return the proposal of *tool* with arguments that *clause* says, or with a question."""
    schema = schema_of(tool.schema)
    properties, needed = schema.get("properties", {}), schema.get("required", [])
    words, used, arguments = read_words(clause), [], {}
    name_parts = [_stem(part) for part in tool.name.split("-")]
    for name in sorted(properties):
        found = _find_value(name, properties[name], words, used, properties)
        if found is not None:
            arguments[name] = found
    texts = [
        name
        for name in needed
        if name not in arguments and properties.get(name, {}).get("type") == "string"
    ]
    if len(texts) == 1 and "enum" not in properties[texts[0]]:
        text = _rest_of(clause, words, used, name_parts)
        if text:
            arguments[texts[0]] = text
            used += range(len(words))
    if [word for word in words if word.text in _JOINS] and len(used) < len(words):
        asked = "One rule calls one tool: make two rules of it."
        return Proposal(tool.name, arguments, 0.3, asked)
    missing = [name for name in sorted(needed) if name not in arguments]
    if missing:
        return Proposal(tool.name, arguments, 0.5, _ask_for(tool.name, missing[0], properties))
    for at in range(len(words)):
        if at not in used and read_number(words, at) and words[at].text not in _LITTLE:
            asked = 'What is "%s" of %s?' % (words[at].text, tool.name)
            return Proposal(tool.name, arguments, 0.4, asked)
    return Proposal(tool.name, arguments, 0.8)


def _ask_for(tool: str, name: str, properties: dict) -> str:
    schema = properties.get(name, {})
    if unit_of(name):
        return "For how many %s?" % name.replace("_", " ")
    if "enum" in schema:
        return "%s: which %s: %s?" % (tool, name, ", ".join([str(one) for one in schema["enum"]]))
    return "%s: which %s?" % (tool, name)


def _find_value(name: str, schema: dict, words: list, used: list, properties: dict):
    """Return the value of the argument *name* that *words* say, None for none."""
    kind = schema.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    if "enum" in schema:
        places = [
            (at, one)
            for at in range(len(words))
            for one in schema["enum"]
            if isinstance(one, str) and _same(one, words, at)
        ]
        if len(places) != 1:
            return None
        for at, one in places:
            used += range(at, at + len(one.replace("-", " ").replace("_", " ").split()))
            return one
    if "boolean" in kinds:
        for at in range(len(words)):
            if words[at].text in _ON + _OFF:
                used.append(at)
                return words[at].text in _ON
        return None
    if "integer" in kinds or "number" in kinds:
        return _find_number(name, "number" in kinds, words, used, properties)
    return None


def _same(one: str, words: list, at: int) -> bool:
    parts = one.lower().replace("-", " ").replace("_", " ").split()
    return [word.text for word in words[at : at + len(parts)]] == parts


def _find_number(name: str, may_break: bool, words: list, used: list, properties: dict):
    unit = unit_of(name)
    for at in range(len(words)):
        if at in used:
            continue
        lasts = read_duration(words, at) if unit else None
        if lasts and (lasts.value % unit == 0 or may_break):
            used += range(at, lasts.end)
            return lasts.value // unit if lasts.value % unit == 0 else lasts.value / unit
    numbers = [
        one
        for one in properties
        if properties[one].get("type") in ("integer", "number")
        or isinstance(properties[one].get("type"), list)
    ]
    for at in range(len(words)):
        found = None if at in used or words[at].text in _LITTLE else read_number(words, at)
        if found and not read_duration(words, at):
            after = words[found.end].text if found.end < len(words) else ""
            if (
                len(numbers) == 1
                or _stem(after) == _stem(name)
                or after == "%"
                and name == "percent"
            ):
                if not unit or len(numbers) == 1:
                    used += range(at, found.end + (_stem(after) == _stem(name) or after == "%"))
                    value = found.value
                    return int(value) if value == int(value) else value
    return None


def _rest_of(clause: str, words: list, used: list, name_parts: list) -> str:
    """Return what *clause* says beside the name of the tool, or between quotes."""
    for quote in '"\u201c\u201e':
        if quote in clause:
            inner = clause.split(quote, 1)[1]
            for end in '"\u201d\u201c':
                inner = inner.split(end)[0]
            return inner.strip()
    at = 0
    while at < len(words) and (
        _stem(words[at].text) in name_parts or words[at].text in [*_LITTLE, "that", ":", "say"]
    ):
        at += 1
    return clause[words[at].start :].strip(" .,;:!") if at < len(words) else ""
