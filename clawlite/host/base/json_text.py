"""JSON text to a Document: RFC 8259, strict, with the line of everything.

A JSON manifest is nearly YAML, but not quite: tabs as indentation and ``\\ud83d\\ude00`` are fine
in JSON and errors in YAML. The same refusals and bounds as ``yamltext``: duplicate keys, NaN, 32
levels, 64-bit integers."""

import json
import re

from clawlite.host.base.document import (
    MAX_DEPTH,
    MAX_INT,
    SHALLOWER,
    SURROGATE,
    Document,
    Lines,
    decode,
    refuse,
    refuse_repeated,
)
from clawlite.host.base.problems import enquote

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9_+.-]+")
_WORDS = {"true": True, "false": False, "null": None}


def read(source: bytes, file: str) -> Document:
    """Return the Document in *source*.  Raises ManifestErrors with exactly one problem."""
    scanner = _Scanner(decode(source, file), file)
    data, number = scanner.document()
    return Document(file, source, data, scanner.lines, number)


class _Scanner:
    def __init__(self, text: str, file: str):
        self.text, self.file, self.pos = text, file, 0
        self.line, self.counted = 1, 0
        self.lines = Lines()

    def document(self) -> tuple:
        """Return (data, its number)."""
        self._space()
        if self.pos == len(self.text):
            return None, self.lines.add(1)
        found = self._value((), 0)
        self._space()
        if self.pos < len(self.text):
            self._refuse(
                "there is text after the end of the document",
                hint="remove it, or close the last bracket further down",
            )
        return found

    def _line(self) -> int:
        """Return the line of the position; lines are counted once, as the scan goes on."""
        if self.pos > self.counted:
            self.line += self.text.count("\n", self.counted, self.pos)
            self.counted = self.pos
        return self.line

    def _refuse(self, message: str, path: tuple = (), hint: str = ""):
        refuse(self.file, self._line(), message, path, hint)

    def _space(self) -> None:
        self.pos = _SPACE.match(self.text, self.pos).end()

    def _peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def _expect(self, char: str, path: tuple) -> None:
        if self._peek() != char:
            found = enquote(self._peek()) if self._peek() else "the end of the file"
            self._refuse(
                f'expected "{char}", found {found}',
                path,
                f'add the "{char}", or look for a missing quotation mark or bracket above',
            )
        self.pos += 1

    def _value(self, path: tuple, depth: int) -> tuple:
        number = self.lines.add(self._line())
        char = self._peek()
        if char in ("{", "["):
            if depth >= MAX_DEPTH:
                self._refuse(f"nested deeper than {MAX_DEPTH} levels", hint=SHALLOWER)
            self.pos += 1
            if char == "{":
                return self._members(number, path, depth), number
            return self._items(number, path, depth), number
        return self._string(path) if char == '"' else self._atom(path), number

    def _members(self, number: int, path: tuple, depth: int) -> dict:
        data: dict = {}
        members: dict = {}  # key -> (key, its line, number)
        self._space()
        if self._peek() == "}":
            self.pos += 1
            return data
        while True:
            self._space()
            line = self._line()
            if self._peek() != '"':
                self._refuse(
                    "expected a key in double quotes",
                    path,
                    "put the key in double quotes, or remove the comma before it",
                )
            key = self._string(path)
            if key in data:
                refuse_repeated(self.file, line, path + (key,), key, members[key][1])
            self._space()
            self._expect(":", path + (key,))
            self._space()
            data[key], member = self._value(path + (key,), depth + 1)
            members[key] = (key, line, member)
            self._space()
            if self._peek() == "}":
                self.pos += 1
                self.lines.close(number, list(members.values()))
                return data
            self._expect(",", path)

    def _items(self, number: int, path: tuple, depth: int) -> list:
        items: list = []
        members: list = []
        self._space()
        if self._peek() == "]":
            self.pos += 1
            return items
        while True:
            self._space()
            item, member = self._value(path + (len(items),), depth + 1)
            items.append(item)
            members.append((None, 0, member))
            self._space()
            if self._peek() == "]":
                self.pos += 1
                self.lines.close(number, members)
                return items
            self._expect(",", path)

    def _string(self, path: tuple) -> str:
        try:
            value, end = json.decoder.scanstring(self.text, self.pos + 1, True)
        except json.JSONDecodeError as e:
            self._refuse(
                f"not JSON: {e.msg[:1].lower()}{e.msg[1:]}",
                path,
                "a string ends with a quotation mark on its line; a line break in it is \\n, "
                "a backslash is \\\\",
            )
        if any("\ud800" <= c <= "\udfff" for c in value):
            self._refuse("half of a surrogate pair in a string", path, SURROGATE)
        self.pos = end
        return value

    def _atom(self, path: tuple):
        word = _WORD.match(self.text, self.pos)
        text = word.group() if word else self._peek()
        if text in _WORDS:
            self.pos += len(text)
            return _WORDS[text]
        number = _NUMBER.fullmatch(text)
        if not number:
            self._refuse(
                f"expected a value, found {enquote(text) if text else 'the end of the file'}",
                path,
                "a value is a text in double quotes, a number, true, false, null, [...] or {...}",
            )
        if number.group(2) or number.group(3):
            value = float(text)
            fits = abs(value) != float("inf")
        else:
            value = int(text) if len(text) <= 24 else MAX_INT
            fits = -MAX_INT <= value < MAX_INT
        if not fits:
            self._refuse("a number too large for 64 bits", path, "put it in quotes if it is text")
        self.pos += len(text)
        return value
