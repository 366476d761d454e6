"""Annotations and defaults of a tool's parameters, as syntax trees, to JSON Schema.

Only forms that mean the same to a model, to JSON and to Python are taken: there is no guess and no
import.  Classes of the same file may be named: those are in ``own_types.py``."""

import ast
import math

from clawlite.host.base.problems import enquote

_TYPES = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}
_KNOWN = (
    "int, float, str, bool, list, list[T], dict, dict[str, T], T | None, Literal[...], "
    'Annotated[T, "text"], or an Enum, TypedDict or dataclass of this file'
)


class Unsupported(Exception):
    """An annotation or default that has no JSON Schema: (message, hint)."""


def annotation_schema(node: ast.expr, classes: dict | None = None) -> dict:
    """Return the JSON Schema of an annotation; raises Unsupported.

    classes  {name: JSON Schema} of the classes that it may name
    """
    classes = classes or {}
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = _parse_quoted(node.value)
    word = name_of(node)
    if word in classes:
        return dict(classes[word])
    if isinstance(node, ast.Name) and word in _TYPES:
        return {"type": _TYPES[word]}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union(node, [node.left, node.right], classes)
    if isinstance(node, ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        found = _generic(node, name_of(node.value), items, classes)
        if found is not None:
            return found
    raise Unsupported(
        f"the annotation {enquote(ast.unparse(node))} has no JSON Schema here", f"use {_KNOWN}"
    )


def name_of(node: ast.expr) -> str:
    """Return the last word of a name: Literal for ``typing.Literal``; "" for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _parse_quoted(text: str) -> ast.expr:
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        raise Unsupported(f"the annotation {enquote(text)} is no type", f"use {_KNOWN}") from None
    assert isinstance(tree, ast.Expression)
    return tree.body


def _generic(node: ast.expr, word: str, items: list, classes: dict) -> dict | None:
    """Return the schema of ``word[items]``, None when it has none."""
    if word == "Literal":
        return _literal(items)
    if word in ("list", "List") and len(items) == 1:
        return {"type": "array", "items": annotation_schema(items[0], classes)}
    if word in ("dict", "Dict") and len(items) == 2 and name_of(items[0]) == "str":
        return {"type": "object", "additionalProperties": annotation_schema(items[1], classes)}
    if word == "Optional" and len(items) == 1:
        return _or_null(annotation_schema(items[0], classes))
    if word == "Union":
        return _union(node, items, classes)
    if word == "Annotated" and len(items) > 1:
        found = annotation_schema(items[0], classes)
        texts = [
            part.value
            for part in items[1:]
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        return found | {"description": " ".join(texts)} if texts else found
    return None


def _union(node: ast.expr, sides: list, classes: dict) -> dict:
    """Return the schema of a union: one type, and None at most."""
    kept = [side for side in sides if not (isinstance(side, ast.Constant) and side.value is None)]
    if len(kept) != 1:
        raise Unsupported(
            f"the annotation {enquote(ast.unparse(node))} is a union of types",
            "use one type, or T | None",
        )
    found = annotation_schema(kept[0], classes)
    return _or_null(found) if len(kept) < len(sides) else found


def _or_null(found: dict) -> dict:
    if isinstance(found["type"], str):
        found["type"] = [found["type"], "null"]
        if "enum" in found:
            found["enum"] = found["enum"] + [None]
    return found


def _literal(items: list) -> dict:
    values = [item.value if isinstance(item, ast.Constant) else ... for item in items]
    kinds = {type(value) for value in values}
    names = {str: "string", int: "integer", bool: "boolean"}
    if len(kinds) != 1 or kinds.isdisjoint(names):
        raise Unsupported(
            "Literal takes texts, or whole numbers, or True and False, of one kind", ""
        )
    return {"type": names[kinds.pop()], "enum": list(dict.fromkeys(values))}


def default_value(node: ast.expr, schema: dict):
    """Return the value of a default, which is a literal of the annotated type; raises
    Unsupported.
    """
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise Unsupported(
            f"the default {enquote(ast.unparse(node))} is no literal", "write the value itself"
        ) from None
    if not _fits(value, schema):
        hint = "write the type as T | None" if value is None else ""
        raise Unsupported(
            f"the default {enquote(ast.unparse(node))} is not of the annotated type", hint
        )
    return value


def _fits(value, schema: dict) -> bool:
    """Return whether *value* is of a schema that ``annotation_schema`` made."""
    if "enum" in schema:
        return any(type(value) is type(known) and value == known for known in schema["enum"])
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return all(name in value for name in schema.get("required", ())) and all(
            name in known and _fits(item, known[name]) for name, item in value.items()
        )
    if isinstance(value, (list, dict)):
        inner = schema.get("items" if isinstance(value, list) else "additionalProperties")
        items = value if isinstance(value, list) else value.values()
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
            return False
        whole = all(_fits(item, inner) for item in items) if inner else _is_json(value)
        return whole and ("array" if isinstance(value, list) else "object") in kinds
    word = {
        type(None): "null",
        bool: "boolean",
        int: "integer",
        float: "number",
        str: "string",
    }.get(type(value))
    return (word in kinds or word == "integer" and "number" in kinds) and _is_json(value)


def _is_json(value) -> bool:
    if isinstance(value, list):
        return all(_is_json(item) for item in value)
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -(1 << 63) <= value < 1 << 63  # what an image holds
    return value is None or isinstance(value, str)
