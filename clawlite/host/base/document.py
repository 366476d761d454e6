"""A text file as plain data, with the line of everything in it.

1. A reader (``yaml_text``, ``json_text``) makes plain data, and notes the line of each value.
2. Bounds hold after aliases are followed, so that a file does not become larger than it is:
   MAX_VALUES, or a value for each of its bytes where it has more of them, and MAX_DEPTH.
3. A ``Place`` is a document and a path in it: what a problem is reported against.
"""

from array import array
from typing import NoReturn

from clawlite.host.base.problems import ManifestErrors, Problem, enquote

MAX_BYTES = 64 << 20  # a manifest of 200 tools is about 100 KiB, a rule about 100 bytes
MAX_VALUES = 200_000
MAX_DEPTH = 32  # the deepest CKP document with a JSON Schema in it is about 14
MAX_INT = 1 << 63  # the first number that is too large
SHALLOWER = "move inner values up, or split the file"
SURROGATE = "write the whole character, or both halves of the pair"


FEW_KEYS = 64  # a map of so many is searched through


class Lines:
    """The lines of the values and keys of a file.  A number stands for each value.

    The lines are kept in arrays, not in objects: a file of 100,000 rules has a million values, and
    one object for each would take six times as much memory.
    """

    def __init__(self):
        self._values = array("I")  # the line of each value
        self._starts = array("I")  # for each value: where its members begin in the next three
        self._ends = array("I")
        self._keys: list = []  # the key of each member; None in a list
        self._key_lines = array("I")
        self._members = array("I")  # the number of each member
        self._places: dict = {}  # of each large map that was asked about: key -> where it stands

    def add(self, line: int) -> int:
        """Return the number of a value on *line*."""
        self._values.append(line)
        self._starts.append(0)
        self._ends.append(0)
        return len(self._values) - 1

    def close(self, number: int, members: list) -> None:
        """Set the members of a value to *members*, [(key or None, its line, number)]."""
        self._starts[number] = len(self._keys)
        for key, line, member in members:
            self._keys.append(key)
            self._key_lines.append(line)
            self._members.append(member)
        self._ends[number] = len(self._keys)

    def of(self, number: int) -> int:
        """Return the line of a value."""
        return self._values[number]

    def member(self, number: int, step):
        """Return (number, line of its key; 0 in a list) of the member *step*, a key or an index;
        None where there is none.
        """
        start, end = self._starts[number], self._ends[number]
        if start == end:
            return None
        if self._keys[start] is None:
            if not isinstance(step, int) or not 0 <= step < end - start:
                return None
            at = start + step
        else:
            at = self._place(number, step)
            if at is None:
                return None
        return self._members[at], self._key_lines[at]

    def _place(self, number: int, key):
        """Return where the member *key* of a map stands, None where there is none."""
        start, end = self._starts[number], self._ends[number]
        if end - start <= FEW_KEYS:
            return next((at for at in range(start, end) if self._keys[at] == key), None)
        if number not in self._places:
            self._places[number] = {self._keys[at]: at for at in range(start, end)}
        return self._places[number].get(key)


class Document:
    """data: dict, list, str, int, float, bool or None; file: the name for messages; source: its
    bytes; lines: of *data*, whose number is *root*.
    """

    def __init__(self, file: str, source: bytes, data, lines: Lines, root: int):
        self.file, self.source, self.data = file, source, data
        self._lines, self._root = lines, root

    def where(self, path: tuple, key: bool = False) -> tuple:
        """Return (file, line) of the value at *path*, or of its key; of the nearest parent when it
        is missing.
        """
        number, key_line = self._root, 0
        for step in path:
            found = self._lines.member(number, step)
            if not found:
                key_line = 0
                break
            number, key_line = found
        return self.file, key_line if key and key_line else self._lines.of(number)


class Place:
    """A path in a document; paths of problems are below it."""

    def __init__(self, document: Document, path: tuple = ()):
        self.document, self.path = document, path

    def where(self, path: tuple = (), key: bool = False) -> tuple:
        """Return (file, line)."""
        return self.document.where(self.path + path, key)

    def full(self, path: tuple) -> tuple:
        return self.path + path

    def below(self, *path) -> "Place":
        return Place(self.document, self.path + path)


class LinePlace:
    """One line of a file that is no tree (``tools.py``), or line 0: the file itself."""

    def __init__(self, file: str, line: int = 0, path: tuple = ()):
        self.file, self.line, self.path = file, line, path

    def where(self, path: tuple = (), key: bool = False) -> tuple:
        return self.file, self.line

    def full(self, path: tuple) -> tuple:
        return self.path + path


def refuse(file: str, line: int, message: str, path: tuple = (), hint: str = "") -> NoReturn:
    """Raise ManifestErrors with one problem: a file that cannot be read at all."""
    raise ManifestErrors([Problem(path, message, file, line, hint=hint)])


def decode(source: bytes, file: str) -> str:
    """Return the text of *source* without a byte order mark; refuse what is too long or not
    UTF-8.
    """
    if len(source) > MAX_BYTES:
        refuse(
            file,
            0,
            f"{len(source):,} bytes; a file may have at most {MAX_BYTES:,}",
            hint="split the file, or take out what is not needed",
        )
    try:
        text = source.decode("utf-8")
    except UnicodeDecodeError as e:
        line = source.count(b"\n", 0, e.start) + 1
        refuse(
            file,
            line,
            f"not UTF-8: byte 0x{source[e.start]:02x} at offset {e.start}",
            hint="save the file as UTF-8",
        )
    return text[1:] if text.startswith("\ufeff") else text


def refuse_repeated(file: str, line: int, path: tuple, key: str, first_line: int):
    refuse(
        file,
        line,
        f"the key {enquote(key)} is here twice; the first is on line {first_line}",
        path,
        "remove one of them, or rename it",
    )
