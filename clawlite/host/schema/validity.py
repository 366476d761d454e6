"""Is this a JSON Schema at all?  (CKP 5.4: input_schema MUST be a valid JSON Schema object.)

Only well-formedness, of the 2020-12 vocabulary: which keywords this version can enforce is the
schema compiler's answer. Unknown keywords are annotations, as the standard says.
"""

import re
import warnings

from clawlite.host.base.problems import did_you_mean, enquote, one_of, value_text

TYPES = ("object", "string", "number", "integer", "boolean", "array", "null")
_SCHEMA = (
    "additionalProperties",
    "items",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_SCHEMA_LIST = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMA_MAP = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_COUNT = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
)
_NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_TEXT = ("title", "description", "format", "$ref", "$id", "$schema", "$anchor", "$comment")
_FLAG = ("uniqueItems", "deprecated", "readOnly", "writeOnly")


def pattern_error(pattern: str) -> str:
    """Return why *pattern* is no regular expression, or "" when it is one."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as e:
        return str(e) or "too deeply nested"
    return ""


def check_arguments(schema: dict, report) -> None:
    """Report what is wrong with the schema of a tool's or skill's arguments, which are always an
    object.

    report(path, message, expected="", found="", hint="", key=False), path below *schema*
    """
    kind = schema.get("type", "object")
    if isinstance(kind, str) and kind in TYPES and kind != "object":
        report(
            ("type",),
            "",
            '"object"',
            enquote(kind),
            "arguments are always an object; put this below properties",
        )
    check(schema, report)


def check(schema: object, report, path: tuple = ()) -> None:
    """Report everything in *schema* that JSON Schema does not allow."""
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        report(path, "", "a schema (a mapping, true or false)", value_text(schema))
        return
    for key, value in schema.items():
        _keyword(key, value, path + (key,), report)


def _keyword(key: str, value, path: tuple, report) -> None:
    if key in _SCHEMA:
        check(value, report, path)
    elif key in _SCHEMA_LIST:
        _each(value, path, report)
    elif key in _SCHEMA_MAP:
        _schema_map(key, value, path, report)
    elif key == "type":
        _type(value, path, report)
    elif key in ("required", "enum", "examples", "dependentRequired", "pattern"):
        _ENTRIES[key](value, path, report)
    elif key in _COUNT and (not _is_number(value) or value % 1 or value < 0):
        report(path, "", "a whole number, at least 0", value_text(value))
    elif key in _NUMBER and (not _is_number(value) or key == "multipleOf" and value <= 0):
        report(
            path, "", "a number above 0" if key == "multipleOf" else "a number", value_text(value)
        )
    elif key in _TEXT and not isinstance(value, str):
        report(path, "", "text", value_text(value))
    elif key in _FLAG and not isinstance(value, bool):
        report(path, "", "true or false", value_text(value))


def _is_number(value) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _each(value, path, report) -> None:
    if not isinstance(value, list) or not value:
        report(
            path,
            "",
            "a list of at least one schema",
            value_text(value) if value != [] else "an empty list",
        )
        return
    for index, item in enumerate(value):
        check(item, report, path + (index,))


def _schema_map(key: str, value, path, report) -> None:
    if not isinstance(value, dict):
        report(path, "", "a mapping of names to schemas", value_text(value))
        return
    for name, item in value.items():
        wrong = pattern_error(name) if key == "patternProperties" else ""
        if wrong:
            report(
                path + (name,),
                f"{enquote(name)} is no regular expression: {wrong}",
                hint="mend the pattern",
                key=True,
            )
        check(item, report, path + (name,))


def _type(value, path, report) -> None:
    names = value if isinstance(value, list) else [value]
    if not names:
        report(path, "", "at least one type", "an empty list")
    for index, name in enumerate(names):
        if not isinstance(name, str) or name not in TYPES:
            spot = path + (index,) if isinstance(value, list) else path
            near = did_you_mean(name, TYPES)
            report(
                spot,
                "",
                near[len("did you mean ") : -1] if near else one_of(TYPES),
                value_text(name),
                near,
            )
        elif name in names[:index]:
            report(path + (index,), f"{enquote(name)} is in the list twice", hint="remove one")


def _names(value, path, report) -> None:
    if not isinstance(value, list):
        hint = (
            "in JSON Schema, required is a list beside properties"
            if isinstance(value, bool)
            else ""
        )
        report(path, "", "a list of names", value_text(value), hint)
        return
    for index, name in enumerate(value):
        if not isinstance(name, str):
            report(path + (index,), "", "a name", value_text(name))
        elif name in value[:index]:
            report(path + (index,), f"{enquote(name)} is in the list twice", hint="remove one")


def _name_lists(value, path, report) -> None:
    if not isinstance(value, dict):
        report(path, "", "a mapping of names to lists of names", value_text(value))
        return
    for name, names in value.items():
        _names(names, path + (name,), report)


def _values(value, path, report) -> None:
    if not isinstance(value, list) or not value and path[-1] == "enum":
        report(
            path,
            "",
            "a list of at least one value" if path[-1] == "enum" else "a list",
            value_text(value),
        )


def _pattern(value, path, report) -> None:
    wrong = pattern_error(value) if isinstance(value, str) else ""
    if not isinstance(value, str):
        report(path, "", "a regular expression", value_text(value))
    elif wrong:
        report(path, f"{enquote(value)} is no regular expression: {wrong}", hint="mend the pattern")


_ENTRIES = {
    "required": _names,
    "enum": _values,
    "examples": _values,
    "dependentRequired": _name_lists,
    "pattern": _pattern,
}
