"""A text file as plain data, with the line of everything in it.

1. A reader (``yamltext``, ``jsonnodes``, ``settings``) makes nodes; this file turns nodes into data
   and back into lines.
2. Bounds hold after aliases are followed, so that a file does not become larger than it is:
   MAX_VALUES, or a value for each of its bytes where it has more of them, and MAX_DEPTH.
3. A ``Place`` is a document and a path in it: what a problem is reported against.
"""

from clawlite.host.base.problems import ManifestErrors, Problem, quoted

MAX_BYTES = 64 << 20  # a manifest of 200 tools is about 100 KiB, a rule about 100 bytes
MAX_VALUES = 200_000
MAX_DEPTH = 32  # the deepest CKP document with a JSON Schema in it is about 14

MAP, LIST, SCALAR = "map", "list", "scalar"


class Node:
    """value: MAP {key: (Node, key line, key column)}, LIST [Node], SCALAR plain data; line and
    column from 1.
    """

    __slots__ = ("kind", "value", "line", "column")

    def __init__(self, kind: str, value, line: int, column: int):
        self.kind, self.value, self.line, self.column = kind, value, line, column


class Document:
    """data: dict, list, str, int, float, bool or None; file: the name for messages; source: its
    bytes.
    """

    def __init__(self, file: str, source: bytes, root: Node):
        self.file = file
        self.source = source
        self.root = root
        self._left = self._most = max(MAX_VALUES, len(source))
        self.data = self._plain(root, 1)

    def _plain(self, node: Node, depth: int):
        self._left -= 1
        if self._left < 0:
            refuse(
                self.file, node.line, f"more than {self._most:,} values after aliases are followed"
            )
        if node.kind is SCALAR:
            return node.value
        if depth > MAX_DEPTH:
            refuse(self.file, node.line, f"nested deeper than {MAX_DEPTH} levels")
        if node.kind is LIST:
            return [self._plain(item, depth + 1) for item in node.value]
        return {key: self._plain(entry[0], depth + 1) for key, entry in node.value.items()}

    def where(self, path: tuple, key: bool = False) -> tuple:
        """Return (file, line, column) of the value at *path*, or of its key; of the nearest
        parent when it is missing.
        """
        node, spot = self.root, None
        for step in path:
            spot = None
            if node.kind is MAP and step in node.value:
                node, *spot = node.value[step]
            elif node.kind is LIST and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
            else:
                break
        if key and spot:
            return self.file, spot[0], spot[1]
        return self.file, node.line, node.column


class Place:
    """A path in a document; paths of problems are below it."""

    def __init__(self, document: Document, path: tuple = ()):
        self.document, self.path = document, path

    def where(self, path: tuple = (), key: bool = False) -> tuple:
        """Return (file, line)."""
        return self.document.where(self.path + path, key)[:2]

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


def refuse(file: str, line: int, message: str, path: tuple = (), hint: str = ""):
    """Raise ManifestErrors with one problem: a file that cannot be read at all."""
    raise ManifestErrors([Problem(path, message, file, line, hint=hint)])


def decode(source: bytes, file: str) -> str:
    """Return the text of *source* without a byte order mark; refuse what is too long or not
    UTF-8.
    """
    if len(source) > MAX_BYTES:
        refuse(file, 0, f"{len(source):,} bytes; a file may have at most {MAX_BYTES:,}")
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


def repeated(file: str, line: int, path: tuple, key: str, first_line: int):
    refuse(
        file, line, f"the key {quoted(key)} is here twice; the first is on line {first_line}", path
    )
