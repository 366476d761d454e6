"""JSON Schemas (2020-12) of what a maker writes, for editors: ``clawlite schema``.

1. They are made from the types that ``check`` walks, so an editor completes and refuses by the same
   fields.  What needs more than one place of a file (names of tools, pins of a board) is told by
   ``check`` alone.
2. A null is refused, as the models do: ``None`` there means absent.
"""

import json
import re

import msgspec

from clawlite.host.base.kinds import KINDS
from clawlite.host.base.without_links import Below
from clawlite.host.boards.profile import Profile
from clawlite.host.documents.references import INLINE_ONLY
from clawlite.host.manifest import settings
from clawlite.host.manifest.features import MODELS
from clawlite.host.models.claw import ClawSpec
from clawlite.host.models.common import Metadata, ProtocolVersion, Strict
from clawlite.host.providers import reflexes
from clawlite.host.rules import triggers

# what is asked for -> the name of its file below FOLDER of a project
FILES = {
    "claw": "claw.json",
    "clawlite": "clawlite.json",
    "rules": "rules.json",
    "board": "board.json",
}
FOLDER = ".schema"
OF_PROJECT = [f"{FOLDER}/{FILES[what]}" for what in ("claw", "clawlite", "rules")]
# the first line of a file, from which YAML and TOML language servers take its schema
_LINES = {".yaml": "# yaml-language-server: $schema=", ".toml": "#:schema "}
_OF_NAMES = {"clawlite.toml": "clawlite", "reflex.toml": "rules"}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TEXT, _NUMBER, _OBJECT = {"type": "string"}, {"type": "number"}, {"type": "object"}
_LIST = {"oneOf": [_TEXT, {"type": "array", "items": _TEXT, "minItems": 1}]}
_ROOT = "#/$defs/"
# fields of [[reading]], [[rule]] and their steps; the others are text
_TYPES = {
    "when": _LIST,
    "if": _LIST,
    "arguments": _OBJECT,
    "edge": {"enum": list(triggers.EDGES)},
    "missed": {"enum": list(triggers.MISSED)},
    **{key: _NUMBER for key in ("below", "above", "again_above", "again_below")},
}


def make(what: str) -> dict:
    """Return the schema of *what*, a key of ``FILES``."""
    return {"claw": _claw, "clawlite": _clawlite, "rules": _rules, "board": _board}[what]()


def write(root: str) -> list:
    """Write the schemas of a project below the folder *root*, and return their names."""
    below = Below(root)
    below.make_folders(FOLDER)
    for name, what in zip(OF_PROJECT, FILES):
        with open(below.create(name), "w", encoding="utf-8") as file:
            json.dump(make(what), file, indent=1)
            file.write("\n")
    return list(OF_PROJECT)


def first_line(name: str) -> str:
    """Return the line with which the file *name* of a project, relative to it, names its schema; or
    "" where it has none.
    """
    plain = re.sub(r"\.digital\.", ".", name.rpartition("/")[2])
    end = plain[plain.rfind(".") :]
    what = "claw" if end == ".yaml" else _OF_NAMES.get(plain)
    if end not in _LINES or what is None:
        return ""
    return f"{_LINES[end]}{'../' * name.count('/')}{FOLDER}/{FILES[what]}\n"


def _components(*types) -> tuple:
    """Return ([schema of each type], {name: schema that they refer to})."""
    schemas, named = msgspec.json.schema_components(types, ref_template=_ROOT + "{name}")
    named = {key: _clean(one) for key, one in named.items()}
    for struct in Strict.__subclasses__():
        if struct.needs and struct.__name__ in named:
            named[struct.__name__]["allOf"] = [_require(need) for need in struct.needs]
    return [_clean(one) for one in schemas], named


def _require(need) -> dict:
    """Return the schema of an object that meets *need*."""
    beside, then = {"required": [need.beside]}, {"required": [need.field]}
    if need.value is msgspec.UNSET:
        return {"if": beside, "else": then}
    return {"if": {"properties": {need.beside: {"enum": [need.value]}}, **beside}, "then": then}


def _clean(value):
    """Return *value* without nulls, with ECMA's spelling of patterns, and only what is checked."""
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if not isinstance(value, dict):
        return value
    found = {key: _clean(one) for key, one in value.items() if (key, type(one)) != ("title", str)}
    if found.get("default", 0) is None:
        del found["default"]
    if isinstance(found.get("pattern"), str):
        found["pattern"] = re.sub(r"\\Z$", "$", found["pattern"])
    kinds = [one for one in found.get("anyOf", ()) if one != {"type": "null"}]
    if "anyOf" in found and len(kinds) == 1:
        del found["anyOf"]
        found = {**found, **kinds[0]}
    return found


def _claw() -> dict:
    """Every document of CKP: a root, or one primitive."""
    types = (ClawSpec, Metadata, ProtocolVersion, *(MODELS[kind] for kind in KINDS))
    (root, metadata, version, *specs), named = _components(*types)
    kinds = dict(zip(KINDS, specs))
    for kind, schema in kinds.items():
        named["Inline" + kind] = _inline(named[schema["$ref"].removeprefix(_ROOT)], metadata)
    for kind, (slot, _) in KINDS.items():
        entry = {
            "type": ["string", "object"],
            "minLength": 1,
            "properties": {"inline": {"$ref": _ROOT + "Inline" + kind}},
            "required": ["inline"],
            "additionalProperties": False,
        }
        fields = named[root["$ref"].removeprefix(_ROOT)]["properties"]
        is_list = fields[slot].get("type") == "array"
        fields[slot] = {**fields[slot], "items": entry} if is_list else entry
    return {
        "$schema": _DIALECT,
        "title": "claw.yaml (CKP 0.3)",
        "type": "object",
        "properties": {
            "claw": version,
            "kind": {"enum": ["Claw", *KINDS]},
            "metadata": metadata,
            "spec": _OBJECT,
        },
        "required": ["claw", "kind", "metadata", "spec"],
        "additionalProperties": False,
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": kind}}, "required": ["kind"]},
                "then": {"properties": {"spec": spec}},
            }
            for kind, spec in {"Claw": root, **kinds}.items()
        ],
        "$defs": named,
    }


def _inline(spec: dict, metadata: dict) -> dict:
    """Return what stands below ``inline:``: the fields of *spec*, and a name or metadata."""
    extra = {"name": _TEXT, "metadata": metadata}
    assert set(extra) == set(INLINE_ONLY)
    return {**spec, "properties": {**extra, **spec["properties"]}}


def _clawlite() -> dict:
    (file, reflex), named = _components(settings.WholeFile, settings.Reflex)
    fields = named[file["$ref"].removeprefix(_ROOT)]["properties"]
    for one in fields.values():
        if one.get("default") in ([], {}):  # an empty list or table says nothing
            del one["default"]
    fields["reflex"] = {"oneOf": [{"type": "string", "minLength": 1}, reflex]}
    return {"$schema": _DIALECT, "title": settings.FILE, **file, "$defs": named}


def _board() -> dict:
    (profile,), named = _components(Profile)
    return {"$schema": _DIALECT, "title": "a board profile", **profile, "$defs": named}


def _table(keys, **more) -> dict:
    fields = {key: _TYPES.get(key, _TEXT) for key in keys}
    return {"type": "object", "properties": {**fields, **more}, "additionalProperties": False}


def _rules() -> dict:
    steps = {"type": "array", "items": {"$ref": _ROOT + "step"}}
    keys = dict.fromkeys(reflexes.RULE_KEYS + triggers.RULE_KEYS + triggers.TRIGGERS)
    of_trigger = dict.fromkeys(key for keys in triggers.OF_TRIGGER.values() for key in keys)
    step = _table(dict.fromkeys(reflexes.STEP_KEYS + triggers.STEP_KEYS), then=steps)
    tables = {
        "reading": _table(triggers.READING_KEYS),
        "rule": {**_table({**keys, **of_trigger}, then=steps), **_one_trigger()},
    }
    return {
        "$schema": _DIALECT,
        "title": "rules and readings",
        "type": "object",
        "properties": {
            key: {"type": "array", "items": one, "minItems": 1} for key, one in tables.items()
        },
        "additionalProperties": False,
        "$defs": {"step": step},
    }


def _one_trigger() -> dict:
    return {"oneOf": [{"required": [key]} for key in triggers.TRIGGERS]}
