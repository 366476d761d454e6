"""Classes of tools.py that annotations may name, as syntax trees, to JSON Schema: an Enum becomes
its values, a TypedDict or a dataclass an object.

Read like the rest of tools.py, never imported.  What a function gets at run time is in
clawlite/linux/maker/typed_values.py: members and instances, not texts and dicts.
"""

import ast
import dataclasses

from clawlite.host.base.problems import enquote
from clawlite.host.schema.annotations import (
    Unsupported,
    annotation_schema,
    default_value,
    name_of,
)

_ENUMS = ("Enum", "StrEnum", "IntEnum")
_KINDS = {str: "string", int: "integer"}


@dataclasses.dataclass
class OwnTypes:
    """The classes at the top of a file.

    schemas  {name: JSON Schema}
    members  {(name of an Enum, name of a member): its value}
    wrong    {name: (line, message, hint)} of those that have no schema
    """

    schemas: dict
    members: dict
    wrong: dict


def read_types(tree: ast.Module) -> OwnTypes:
    """Return the Enums, TypedDicts and dataclasses of *tree*; one may name those before it."""
    found = OwnTypes({}, {}, {})
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            try:
                schema = _schema(node, found)
            except Unsupported as e:
                found.wrong[node.name] = (node.lineno, *e.args)
                continue
            if schema is not None:
                found.schemas[node.name] = schema
    return found


def _schema(node: ast.ClassDef, found: OwnTypes) -> dict | None:
    bases = [name_of(base) for base in node.bases]
    if any(base in _ENUMS for base in bases):
        return _enum(node, found)
    if "TypedDict" in bases:
        total = next((one.value for one in node.keywords if one.arg == "total"), None)
        is_total = not (isinstance(total, ast.Constant) and not total.value)
        return _object(node, found.schemas, is_total)
    marks = [one.func if isinstance(one, ast.Call) else one for one in node.decorator_list]
    if any(name_of(mark) == "dataclass" for mark in marks):
        return _object(node, found.schemas, True)
    return None


def _enum(node: ast.ClassDef, found: OwnTypes) -> dict:
    members = [part for part in node.body if isinstance(part, ast.Assign)]
    values = [part.value.value if isinstance(part.value, ast.Constant) else ... for part in members]
    kinds = {type(value) for value in values}
    if len(kinds) != 1 or kinds.isdisjoint(_KINDS):
        raise Unsupported(
            f"the values of the Enum {enquote(node.name)} are not all texts, or all whole numbers",
            'write each value: DRY = "dry"',
        )
    for part, value in zip(members, values):
        found.members[node.name, name_of(part.targets[0])] = value
    return {"type": _KINDS[kinds.pop()], "enum": list(dict.fromkeys(values))}


def _object(node: ast.ClassDef, classes: dict, is_total: bool) -> dict:
    """Return the schema of a TypedDict or dataclass; its fields are its annotated names."""
    properties, required = {}, []
    for part in node.body:
        if not isinstance(part, ast.AnnAssign) or not isinstance(part.target, ast.Name):
            continue
        annotation, is_needed = part.annotation, is_total
        word = name_of(annotation.value) if isinstance(annotation, ast.Subscript) else ""
        if word == "ClassVar":
            continue
        if isinstance(annotation, ast.Subscript) and word in ("Required", "NotRequired"):
            annotation, is_needed = annotation.slice, word == "Required"
        found = annotation_schema(annotation, classes)
        if part.value is not None:
            is_needed = False
            default = _default(part.value)
            if default is not None:
                found["default"] = default_value(default, found)
        properties[part.target.id] = found
        if is_needed:
            required.append(part.target.id)
    made: dict = {"type": "object", "properties": properties, "additionalProperties": False}
    return made | {"required": required} if required else made


def _default(value: ast.expr) -> ast.expr | None:
    """Return the default of a field; None for what only runs can tell (``field(...)``)."""
    if isinstance(value, ast.Call) and name_of(value.func) == "field":
        return next((one.value for one in value.keywords if one.arg == "default"), None)
    return None if isinstance(value, ast.Attribute) else value
