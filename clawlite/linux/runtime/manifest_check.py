"""Checks the manifest in a ``claw.initialize`` where an agent has an image already.

1. The image stays the authority over what this agent is (docs/adr/0006).  Nothing of the manifest
   is taken over.
2. The compiler takes a second and may not be installed.  What the types of its models say is
   checked here: ``make reference`` writes it into manifest_schemas.json, as JSON Schemas, and for
   each pattern its words and its automaton.  A line of it is parsed when a manifest needs it: most
   manifests name files, and an agent waits for this until READY.  The rest is left to the compiler.
3. ``claw`` may be missing, as in the example of CKP 0.2.0, 9.3.1.  A null is not an absent field:
   the schema refuses it, and so does the compiler.  Source  CKP 0.2.0, 6; claw.schema.json 0.3.0.
"""

import os
from binascii import a2b_base64

from clawlite.core.base.errors import ImageError
from clawlite.core.base.printable import escape_line
from clawlite.core.formats.automaton import search
from clawlite.linux.io.jsontext import dumps, loads_own

_SHOWN = 60  # characters of a peer's own words in an error
_REFERENCE = 'a file, a claw:// URI or {"inline": {...}}'
_TYPES: dict = {  # type in a schema -> (its words, types of Python)
    "string": ("text", str),
    "boolean": ("true or false", bool),
    "integer": ("a whole number", int),
    "number": ("a number", int, float),
    "object": ("an object", dict),
    "array": ("a list", list),
}
_BOUNDS = (
    ("minLength", " that is not empty"),
    ("minItems", " of at least one entry"),
    ("minimum", " of at least {}"),
    ("maximum", " and at most {}"),
)
with open(os.path.join(os.path.dirname(__file__), "manifest_schemas.json"), "rb") as _file:
    _TEXT = _file.read()
_parsed: dict = {}  # name -> what its line has


def check(manifest: dict):
    """Return None when *manifest* has the shape of a Claw manifest.

    manifest  has passed ``handshake.agree``, so kind, metadata, its name and spec have their types
    Raises ``ImageError`` (-32060) for the first problem; its data has the keys that a problem of
    the compiler has.
    """
    found = _find_problem(_load("root"), manifest, "")
    if found:
        raise _make_error(*found)


def _load(name: str) -> dict:
    if name not in _parsed:
        key = b'\n"%s": ' % name.encode()
        begin = _TEXT.index(key) + len(key)
        _parsed[name] = loads_own(_TEXT[begin : _TEXT.index(b"\n", begin)].rstrip(b","))
    return _parsed[name]


def _resolve(schema: dict) -> dict:
    return _load(schema["$ref"]) if "$ref" in schema else schema


def _find_problem(schema: dict, value, path: str):
    """Return (path, what is expected, what was found) of the first problem in *value*, or None."""
    schema = _resolve(schema)
    if not schema:
        return None
    if not _is_right(schema, value):
        return path, _describe(schema), _show(value)
    inner: list = []
    if isinstance(value, list):
        item = schema.get("items", {})
        inner = [(item, one, "%s[%d]" % (path, at)) for at, one in enumerate(value)]
    elif isinstance(value, dict):
        path = path and path + "."
        fields, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name in _list_required(schema, value):
            if name not in value:
                return path + name, _describe(_resolve(fields.get(name, {}))), "nothing"
        for name, one in value.items():
            if name not in fields and others is False:
                return path + name, "one of " + ", ".join(fields), _show(name)
            inner.append((fields.get(name, others), one, path + name))
    for part in inner:
        found = _find_problem(*part)
        if found:
            return found
    return None


def _list_required(schema: dict, value: dict) -> list:
    names = schema.get("required", [])
    for rule in schema.get("allOf", ()):
        branch = "else" if _find_problem(rule["if"], value, "") else "then"
        names = names + rule.get(branch, {}).get("required", [])
    return names


def _is_right(schema: dict, value) -> bool:
    """Return whether *value* fits, but for what is in it."""
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if types and not any(type(value) in _TYPES[one] for one in types):
        return False
    if "enum" in schema:
        return any(one == value and type(one) is type(value) for one in schema["enum"])
    if isinstance(value, str):
        _, table = _load("patterns").get(schema.get("pattern", ""), ("", ""))
        is_alike = not table or search(a2b_base64(table), value.encode())
        return is_alike and len(value) >= schema.get("minLength", 0)
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0)
    if isinstance(value, (int, float)):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)
    return True


def _describe(schema: dict) -> str:
    """Return what *schema* expects."""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if "pattern" in schema:
        expected, _ = _load("patterns")[schema["pattern"]]
        return expected
    if isinstance(schema.get("type"), list):
        return _REFERENCE
    expected, *_ = _TYPES[schema.get("type", "object")]
    bounds = [words.format(schema[bound]) for bound, words in _BOUNDS if bound in schema]
    return expected + "".join(bounds)


def _show(value) -> str:
    """Return *value* as an error shows it; what a peer wrote is cut and made printable."""
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    return escape_line(dumps(value), _SHOWN)


def _make_error(path: str, expected: str, found: str) -> ImageError:
    path = escape_line(path, _SHOWN)
    problem = {"file": "", "line": 0, "path": path, "message": "", "hint": ""}
    return ImageError(
        f"manifest.{path}: expected {expected}, found {found}",
        "check the manifest with: clawlite check",
        {"problems": [{**problem, "expected": expected, "found": found}]},
    )
