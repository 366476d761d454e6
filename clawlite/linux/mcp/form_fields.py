"""The fields of a form that an MCP server wants filled in: text, numbers, yes or no, a choice, some
of several choices.

A schema is a server's, and so a stranger's: it is read for what is known here, and a pattern in it
is not run.  The server checks what it gets by itself.
"""

import math
import re
from datetime import date, datetime

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line
from clawlite.core.base.render import canonical

MAX_SHOWN = 300  # characters of one text of a server
MAX_CHOICES = 50
_YES, _NO = ("y", "yes", "true", "1"), ("n", "no", "false", "0")
_KINDS = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "y or n",
    "array": "some of them, with commas between",
}
_FORMATS = {
    "email": ("an e-mail address", lambda text: re.fullmatch(r"[^@\s]+@[^@\s]+", text)),
    "uri": ("a URI", lambda text: re.match(r"[A-Za-z][A-Za-z0-9+.-]*:\S+$", text)),
    "date": ("a date such as 2026-01-31", date.fromisoformat),
    "date-time": ("a time such as 2026-01-31T12:00:00Z", datetime.fromisoformat),
}


def quote_text(words, most: int = MAX_SHOWN) -> str:
    """Return a server's *words* as a person may see them: quoted, on one line, and cut."""
    return escape_line(canonical(words, most))


class Field:
    """One field.

    kind     "string", "integer", "number", "boolean" or "array"
    choices  [(value, title), ...], or None where anything of its kind goes
    schema   as the server gave it
    """

    def __init__(self, name: str, schema: dict, kind: str, choices, is_required: bool):
        self.name, self.schema, self.kind, self.choices = name, schema, kind, choices
        self.is_required = is_required
        form = schema.get("format")
        self.format = form if isinstance(form, str) else ""
        self.default = None
        if schema.get("default") is not None:
            try:
                self.default = self.check(schema["default"])
            except ValueError:  # a default that the form does not allow is none
                pass

    @property
    def words(self) -> str:
        """All that the server says of it."""
        texts = [self.name, self.schema.get("title"), self.schema.get("description")]
        return " ".join(text for text in texts if isinstance(text, str))

    def text(self) -> str:
        """Return what a person is told of it."""
        wanted = _FORMATS.get(self.format, (_KINDS[self.kind],))[0]
        if self.choices:
            each = [
                "%d %s" % (at + 1, quote_text(title)) for at, (_, title) in enumerate(self.choices)
            ]
            wanted = "%s: %s" % (
                "one of" if self.kind == "string" else "some of, with commas between",
                ", ".join(each),
            )
        if self.default is not None:
            wanted += "; Enter takes %s" % quote_text(self.default)
        elif not self.is_required:
            wanted += "; Enter leaves it out"
        words = [self.schema.get(name) for name in ("title", "description")]
        about = ", ".join(quote_text(one) for one in words if isinstance(one, str) and one)
        return "%s (%s)%s" % (quote_text(self.name), wanted, ": " + about if about else "")

    def read(self, text: str):
        """Return the value of what a person typed; None leaves the field out.  Raises
        ``ValueError``.
        """
        if not text:
            if self.default is None and self.is_required:
                raise ValueError("this field has to be filled in")
            return self.default
        if self.kind == "array":
            return self.check([self._choice(one.strip()) for one in text.split(",") if one.strip()])
        if self.choices:
            return self._choice(text)
        if self.kind == "string":
            return self.check(text)
        if self.kind == "boolean":
            if text.lower() not in _YES + _NO:
                raise ValueError("expected y or n")
            return text.lower() in _YES
        try:
            return self.check(int(text) if self.kind == "integer" else float(text))
        except ValueError as e:
            number = "a whole number" if self.kind == "integer" else "a number"
            is_ours = str(e).startswith("expected")
            raise ValueError(str(e) if is_ours else "expected " + number) from None

    def _choice(self, text: str):
        for value, title in self.choices:
            if text in (value, title):
                return value
        if text.isascii() and text.isdigit() and 0 < int(text[:9]) <= len(self.choices):
            return self.choices[int(text[:9]) - 1][0]
        raise ValueError("expected one of the choices, by its number or its words")

    def check(self, value):
        """Return the JSON *value* when the field may have it.  Raises ``ValueError``."""
        kind = self.kind
        if kind == "array":
            values = [one for one, _ in self.choices]
            if not isinstance(value, list) or any(one not in values for one in value):
                raise ValueError("expected a list of its choices")
            self._check_size(len(value), "minItems", "maxItems", "choices")
        elif kind == "boolean":
            if not isinstance(value, bool):
                raise ValueError("expected true or false")
        elif kind == "string":
            if not isinstance(value, str):
                raise ValueError("expected a text")
            if self.choices and value not in [one for one, _ in self.choices]:
                raise ValueError("expected one of its choices")
            self._check_size(len(value), "minLength", "maxLength", "characters")
            self._check_format(value)
        else:
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not is_number or isinstance(value, float) and not math.isfinite(value):
                raise ValueError("expected a number")
            if kind == "integer" and value != int(value):
                raise ValueError("expected a whole number")
            self._check_size(value, "minimum", "maximum", "")
            value = int(value) if value == int(value) else value
        return value

    def _check_size(self, size, least: str, most: str, unit: str):
        for name, word in ((least, "at least"), (most, "at most")):
            bound = self.schema.get(name)
            if not isinstance(bound, (int, float)) or isinstance(bound, bool):
                continue
            if size < bound if name == least else size > bound:
                raise ValueError(("expected %s %s %s" % (word, bound, unit)).strip())

    def _check_format(self, text: str):
        if self.format not in ("email", "uri", "date", "date-time"):
            return
        wanted, fits = _FORMATS[self.format]
        try:
            good = fits(text)
        except ValueError:
            good = None
        if not good:
            raise ValueError("expected " + wanted)


def field_of(name: str, schema, is_required: bool) -> Field:
    """Return the field *name*.  Raises ``ClawError`` for a schema that is none of the known."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if kind not in tuple(_KINDS):
        raise ClawError("requestedSchema: the field %s is of no known type" % quote_text(name))
    choices = None
    if kind == "array":
        items = schema.get("items")
        choices = _choices(items if isinstance(items, dict) else {}, name)
    elif kind == "string":
        choices = _choices(schema, name)
    if kind == "array" and not choices:
        raise ClawError("requestedSchema: the field %s has no choices" % quote_text(name))
    return Field(name, schema, kind, choices, is_required)


def _choices(schema: dict, name: str):
    """Return [(value, title), ...], or None where the schema has no choices."""
    titled = schema.get("oneOf", schema.get("anyOf"))
    if titled is not None:
        each = titled if isinstance(titled, list) else [None]
        found = [
            (one.get("const"), one.get("title", one.get("const")))
            if isinstance(one, dict)
            else (0,) * 2
            for one in each
        ]
    elif "enum" in schema:
        values = schema["enum"] if isinstance(schema["enum"], list) else [0]
        titles = schema.get("enumNames")
        if not isinstance(titles, list) or len(titles) != len(values):
            titles = values
        found = list(zip(values, titles))
    else:
        return None
    is_text = all(isinstance(value, str) and isinstance(title, str) for value, title in found)
    if not is_text or not 0 < len(found) <= MAX_CHOICES:
        raise ClawError(
            "requestedSchema: the choices of %s are not 1 to %d texts"
            % (quote_text(name), MAX_CHOICES)
        )
    return found
