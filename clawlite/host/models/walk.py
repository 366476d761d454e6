"""Check plain data against a Struct, and report every mistake in it.

``msgspec.convert`` stops at the first mistake; this module walks the same type information and
reports all mistakes, each with its path.  The data that it returns can always be converted:
integral floats have become integers (5.0 is an integer in JSON Schema)."""

import functools
import re

import msgspec
from msgspec import inspect

from clawlite.host.base.problems import did_you_mean, enquote, one_of, value_text


def convert(value: object, struct: type, report):
    """Return *value* as a *struct*, or None when it has a mistake.

    report(path, message, expected="", found="", hint="", key=False) is called for every mistake;
    path is a tuple below *value*."""
    wrong = []

    def note(path, message, expected="", found="", hint="", key=False):
        wrong.append(path)
        report(path, message, expected, found, hint, key)

    clean = _walk(value, _info(struct), (), note)
    return None if wrong else msgspec.convert(clean, struct)


@functools.lru_cache(maxsize=None)
def _info(struct: type):
    return inspect.type_info(struct)


@functools.lru_cache(maxsize=None)
def _fields(struct: type) -> dict:
    return {field.encode_name: field for field in _info(struct).fields}


def _walk(value, info, path: tuple, report):
    extra = {}
    if isinstance(info, inspect.Metadata):
        info, extra = info.type, info.extra or {}
    # only X | None is used: None means absent, never null
    if isinstance(info, inspect.UnionType):
        info = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)][0]
        return _walk(value, info, path, report)
    return _CHECKS[type(info)](value, info, path, report, extra)


def _struct(value, info, path, report, extra):
    if not isinstance(value, dict):
        report(path, "", "a mapping", value_text(value), _bare_hint(value))
        return value
    fields = _fields(info.cls)
    strict = info.forbid_unknown_fields
    hints = {key: _hint(key, fields, value, strict) for key in value if key not in fields}
    unknown = [key for key in hints if strict and not hints[key].startswith("did you mean")]
    missing = [name for name, field in fields.items() if field.required and name not in value]
    if len(unknown) == len(missing) == 1:  # one mistake: another word for what is missing
        hints[unknown[0]] = f"did you mean {enquote(missing[0])}?"
    meant = set(hints.values())
    clean = value
    for key, item in value.items():
        if key in fields:
            found = _but_for(report, path + (key,), meant) if meant else report
            walked = _walk(item, fields[key].type, path + (key,), found)
            if walked is not item:  # most are as they were: of thousands of rules no second copy
                clean = dict(clean) if clean is value else clean
                clean[key] = walked
        elif strict or hints[key]:
            report(path + (key,), "unknown field", hint=hints[key], key=True)
    for name, field in fields.items():
        # misspelt, or a field of it is one level too high: which has been said
        near = (f'did you mean "{name}"', f'did you mean "{name}.')
        if field.required and name not in value and not any(h.startswith(near) for h in meant):
            report(path, f"the field {enquote(name)} is missing", hint=_choice(field.type))
    # of a field that is misspelt they would say that it is absent
    if not any(hint.startswith("did you mean") for hint in meant):
        for need in getattr(info.cls, "needs", ()):
            if need.is_unmet(value):
                report(path, f"{enquote(need.field)} is missing{need.why}", hint=need.hint)
        if hasattr(info.cls, "check_rules"):
            info.cls.check_rules(
                value, lambda below, *args, **kw: report(path + below, *args, **kw)
            )
    return clean


def _hint(key: str, fields: dict, value: dict, strict: bool) -> str:
    """Return what an unknown field may mean, "" for nothing.  It is an error where the schema is
    closed; elsewhere only a near miss of an absent field is.
    """
    hint = did_you_mean(
        key, [name for name in fields if name not in value] if not strict else fields
    )
    called = _CALLED.get(key.replace("-", "_").lower(), "")
    if strict and called in fields and called not in value:
        hint = f"did you mean {enquote(called)}?"
    if strict and not hint:
        places = [name for name in fields if key in _below(fields[name].type)]
        if len(places) == 1:
            hint = f'did you mean "{places[0]}.{key}"?'
    if strict and not hint:
        hint = "known here: " + ", ".join(fields)
    return hint


def _but_for(report, path: tuple, meant: set):
    """Return *report* without the fields that are missing at *path* because they are one level too
    high: the hints *meant* name them.
    """
    start = f'did you mean "{path[-1]}.'
    high = tuple(f'"{h[len(start) : -2]}" is missing' for h in meant if h.startswith(start))

    def only(at, message, *args, **named):
        if at != path or not message.removeprefix("the field ").startswith(high):
            report(at, message, *args, **named)

    return only if high else report


def _below(info) -> dict:
    """Return the fields of what a field holds, where that is an object with fields."""
    if isinstance(info, inspect.Metadata):
        info = info.type
    if isinstance(info, inspect.UnionType):
        info = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)][0]
    return _fields(info.cls) if isinstance(info, inspect.StructType) else {}


def _choice(info) -> str:
    """Return what to give a field that is missing: "" unless it has one of a few values."""
    if isinstance(info, inspect.Metadata):
        info = info.type
    return "give it " + one_of(info.values) if isinstance(info, inspect.LiteralType) else ""


def _literal(value, info, path, report, extra):
    known = [name for name in info.values if type(name) is type(value) and name == value]
    if not known:
        meant = [
            name
            for name in _MEANT.get(value.lower() if isinstance(value, str) else "", ())
            if name in info.values
        ]
        report(
            path,
            "",
            one_of(info.values),
            value_text(value),
            f"did you mean {enquote(meant[0])}?" if meant else did_you_mean(value, info.values),
        )
    return value


# What other programs call a field, and a value.
_CALLED = {
    "apiversion": "claw",
    "system_prompt": "personality",
    "prompt": "personality",
    "instructions": "personality",
    "url": "endpoint",
    "base_url": "endpoint",
    "api_base": "endpoint",
    "api_key": "secret_ref",
    "apikey": "secret_ref",
    "key": "secret_ref",
    "parameters": "input_schema",
    "schema": "input_schema",
    "timeout": "timeout_ms",
    "memory": "memory_mb",
    "hosts": "allowed_hosts",
    "allow": "allowed_hosts",
    "mounts": "mount_paths",
    "paths": "mount_paths",
    "effect": "action",
    "name": "id",
}
_MEANT = {
    word: meant
    for words, *meant in (
        ("docker podman", "container"),
        ("off disabled no false", "none", "deny"),
        ("sandbox isolated", "process"),
        ("openai ollama llama.cpp vllm", "openai-compatible"),
        ("anthropic claude", "anthropic-native"),
        ("auto full full-auto yolo", "autonomous"),
        ("manual ask confirm", "supervised", "require-approval"),
        ("read-only readonly", "observer", "read-only", "ro"),
        ("write read-write readwrite rwx w", "rw"),
        ("read r", "ro"),
        ("token api_key apikey key", "bearer"),
        ("console terminal tty", "cli"),
        ("block forbid reject refuse", "deny"),
        ("approve approval prompt", "require-approval"),
        ("permit accept yes", "allow"),
        ("log audit", "audit-only"),
        ("any everything", "all", "allow-all"),
        ("whitelist allow-list", "allowlist"),
    )
    for word in words.split()
}


def _str(value, info, path, report, extra):
    if not isinstance(value, str):
        plain = isinstance(value, (int, float))
        example = extra.get("example") or (str(value) if plain else "")
        report(
            path,
            "",
            extra.get("expected", "text"),
            value_text(value),
            f'put it in quotes: "{example}"' if plain else "",
        )
    elif info.min_length and len(value) < info.min_length:
        report(path, "", extra.get("expected", "text that is not empty"), '""')
    elif info.pattern and not re.search(info.pattern, value):
        suggest = extra.get("suggest")
        report(path, "", extra["expected"], value_text(value), suggest(value) if suggest else "")
    return value


def _number(value, info, path, report, extra):
    whole = isinstance(info, inspect.IntType)
    expected = _range("a whole number" if whole else "a number", info)
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or whole
        and isinstance(value, float)
        and not value.is_integer()
    ):
        hint = _number_hint(value, path) if isinstance(value, str) else ""
        report(path, "", expected, value_text(value), hint)
        return value
    if info.ge is not None and value < info.ge or info.le is not None and value > info.le:
        report(path, "", expected, value_text(value))
    return int(value) if whole else value


_UNITS = {"ms": 1, "s": 1000, "sec": 1000, "m": 60000, "min": 60000, "h": 3600000}
_SIZES = {
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "kib": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "mib": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "gib": 1 << 30,
}


def _number_hint(text: str, path: tuple) -> str:
    """Return what to write in place of *text*, which should be a number: the field's name has
    the unit.
    """
    if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", text):
        return "remove the quotes"
    amount = re.fullmatch(r"([0-9]+) ?([A-Za-z]+)", text)
    field = path[-1] if path and isinstance(path[-1], str) else ""
    for end, units, one in (
        ("_ms", _UNITS, 1),
        ("_seconds", _UNITS, 1000),
        ("_mb", _SIZES, 1 << 20),
        ("_bytes", _SIZES, 1),
    ):
        if (
            amount
            and field.endswith(end)
            and amount[2].lower() in units
            and int(amount[1]) * units[amount[2].lower()] % one == 0
        ):
            return (
                f"write {int(amount[1]) * units[amount[2].lower()] // one}: the number alone, "
                f"the field's name has the unit"
            )
    return "write the number alone" if amount or re.match(r"[0-9]+ ?/", text) else ""


def _range(noun: str, info) -> str:
    if info.ge is not None and info.le is not None:
        return f"{noun} from {info.ge} to {info.le}"
    return noun if info.ge is None else f"{noun}, at least {info.ge}"


def _bool(value, info, path, report, extra):
    if not isinstance(value, bool):
        report(
            path, "", "true or false", value_text(value), _BOOL_WORDS.get(str(value).lower(), "")
        )
    return value


_BOOL_WORDS = {
    word: f"write {meant}"
    for meant, words in (("true", "yes on true"), ("false", "no off false"))
    for word in words.split()
}


def _list(value, info, path, report, extra):
    if not isinstance(value, list):
        report(
            path,
            "",
            "a list",
            value_text(value),
            "write it as a list item: - ..." if isinstance(value, (str, dict)) else "",
        )
        return value
    if info.min_length and len(value) < info.min_length:
        report(path, "the list is empty", hint="at least one entry is needed")
    return [
        _walk(item, info.item_type, path + (index,), report) for index, item in enumerate(value)
    ]


def _dict(value, info, path, report, extra):
    if not isinstance(value, dict):
        report(path, "", "a mapping", value_text(value), _bare_hint(value))
        return value
    return {key: _walk(item, info.value_type, path + (key,), report) for key, item in value.items()}


def _bare_hint(value) -> str:
    return "remove the key, or give it fields" if value is None else ""


def _any(value, info, path, report, extra):
    return value


_CHECKS = {
    inspect.StructType: _struct,
    inspect.LiteralType: _literal,
    inspect.StrType: _str,
    inspect.IntType: _number,
    inspect.FloatType: _number,
    inspect.BoolType: _bool,
    inspect.ListType: _list,
    inspect.DictType: _dict,
    inspect.AnyType: _any,
}
