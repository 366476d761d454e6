"""JSON text to a Document: RFC 8259, strict, with the line of everything.

A JSON manifest is nearly YAML, but not quite: tabs as indentation and ``\\ud83d\\ude00`` are fine
in JSON and errors in YAML. The same refusals and bounds as ``yamltext``: duplicate keys, NaN, 32
levels, 64-bit integers."""

import json
import re

from clawlite.host.base.document import (
    LIST,
    MAP,
    MAX_DEPTH,
    SCALAR,
    Document,
    Node,
    decode,
    refuse,
    repeated,
)
from clawlite.host.base.problems import quoted

_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z0-9_+.-]+")
_WORDS = {"true": True, "false": False, "null": None}
MAX_INT = 1 << 63


def read(source: bytes, file: str) -> Document:
    """Return the Document in *source*.  Raises ManifestErrors with exactly one problem."""
    return Document(file, source, _Scanner(decode(source, file), file).document())


class _Scanner:
    def __init__(self, text: str, file: str):
        self.text, self.file, self.pos = text, file, 0
        self.line, self.line_start, self.counted = 1, 0, 0

    def document(self) -> Node:
        self._space()
        if self.pos == len(self.text):
            return Node(SCALAR, None, 1, 1)
        node = self._value((), 0)
        self._space()
        if self.pos < len(self.text):
            self._refuse("there is text after the end of the document")
        return node

    def _spot(self) -> tuple:
        """Return (line, column) of the position; lines are counted once, as the scan goes on."""
        last = self.text.rfind("\n", self.counted, self.pos)
        if last >= 0:
            self.line += self.text.count("\n", self.counted, self.pos)
            self.line_start = last + 1
        self.counted = max(self.counted, self.pos)
        return self.line, self.pos - self.line_start + 1

    def _refuse(self, message: str, path: tuple = (), hint: str = ""):
        refuse(self.file, self._spot()[0], message, path, hint)

    def _space(self) -> None:
        self.pos = _SPACE.match(self.text, self.pos).end()

    def _peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def _expect(self, char: str, path: tuple) -> None:
        if self._peek() != char:
            found = quoted(self._peek()) if self._peek() else "the end of the file"
            self._refuse(f'expected "{char}", found {found}', path)
        self.pos += 1

    def _value(self, path: tuple, depth: int) -> Node:
        line, column = self._spot()
        char = self._peek()
        if char in ("{", "["):
            if depth >= MAX_DEPTH:
                self._refuse(f"nested deeper than {MAX_DEPTH} levels")
            self.pos += 1
            if char == "{":
                return Node(MAP, self._members(path, depth), line, column)
            return Node(LIST, self._items(path, depth), line, column)
        if char == '"':
            return Node(SCALAR, self._string(path), line, column)
        return Node(SCALAR, self._atom(path), line, column)

    def _members(self, path: tuple, depth: int) -> dict:
        members = {}
        self._space()
        if self._peek() == "}":
            self.pos += 1
            return members
        while True:
            self._space()
            line, column = self._spot()
            if self._peek() != '"':
                self._refuse("expected a key in double quotes", path)
            key = self._string(path)
            if key in members:
                repeated(self.file, line, path + (key,), key, members[key][1])
            self._space()
            self._expect(":", path + (key,))
            self._space()
            members[key] = (self._value(path + (key,), depth + 1), line, column)
            self._space()
            if self._peek() == "}":
                self.pos += 1
                return members
            self._expect(",", path)

    def _items(self, path: tuple, depth: int) -> list:
        items = []
        self._space()
        if self._peek() == "]":
            self.pos += 1
            return items
        while True:
            self._space()
            items.append(self._value(path + (len(items),), depth + 1))
            self._space()
            if self._peek() == "]":
                self.pos += 1
                return items
            self._expect(",", path)

    def _string(self, path: tuple) -> str:
        try:
            value, end = json.decoder.scanstring(self.text, self.pos + 1, True)
        except json.JSONDecodeError as e:
            self._refuse(f"not JSON: {e.msg[:1].lower()}{e.msg[1:]}", path)
        if any("\ud800" <= c <= "\udfff" for c in value):
            self._refuse("half of a surrogate pair in a string", path)
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
                f"expected a value, found {quoted(text) if text else 'the end of the file'}", path
            )
        if number.group(2) or number.group(3):
            value = float(text)
            fits = abs(value) != float("inf")
        else:
            value = int(text) if len(text) <= 24 else MAX_INT
            fits = -MAX_INT <= value < MAX_INT
        if not fits:
            self._refuse("a number too large for 64 bits", path)
        self.pos += len(text)
        return value
