"""TOML as plain data, with the line of each key: tomllib reads, a scan of the keys finds the
lines.
"""

import re
import tomllib

from clawlite.host.base.document import MAX_DEPTH, SHALLOWER, decode, refuse
from clawlite.host.base.problems import ManifestErrors, Problem


class TOMLDocument:
    """TOML as plain data, with the line of each key.  Same face as ``document.Document``.

    The scan knows tables, arrays of tables, dotted and quoted keys and multi-line strings; what
    stands inside an inline table or an array has the line of its key.
    """

    _KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
    _DOTTED = rf"{_KEY}(?:[ \t]*\.[ \t]*{_KEY})*"
    _TABLE = re.compile(rf"[ \t]*(\[\[?)[ \t]*({_DOTTED})[ \t]*\]\]?[ \t]*(?:#.*)?\Z")
    _PAIR = re.compile(rf"[ \t]*({_DOTTED})[ \t]*=")
    _QUOTES = re.compile(r'"""|\'\'\'')

    def __init__(self, source: bytes, file: str):
        self.file = file
        text = decode(source, file)
        try:
            self.data = read_toml(text)
        except TooDeep as e:
            refuse(file, 0, str(e), hint=SHALLOWER)
        # TOMLDecodeError is a ValueError; so is int() of 5,000 digits
        except ValueError as e:
            raise ManifestErrors([not_toml(e, text, file)]) from None
        self._lines = {(): 1}
        self._scan(text.replace("\r\n", "\n").split("\n"))

    def where(self, path: tuple, key: bool = False) -> tuple:
        """Return (file, line) of the nearest key on *path*."""
        while path not in self._lines:
            path = path[:-1]
        return self.file, self._lines[path]

    def _scan(self, lines: list) -> None:
        table, counts, inside = (), {}, ""
        for number, line in enumerate(lines, 1):
            start = inside
            for quotes in self._QUOTES.findall(line):
                inside = "" if inside == quotes else inside or quotes
            if start:
                continue
            found = self._TABLE.match(line)
            if found:
                table = self._table(self._split(found.group(2)), found.group(1) == "[[", counts)
                self._note(table, number)
                continue
            found = self._PAIR.match(line)
            if found:
                self._note(table + self._split(found.group(1)), number)

    def _table(self, keys: tuple, repeated: bool, counts: dict) -> tuple:
        """Return the path of a table header; *counts* {path of an array of tables: entries so
        far}.
        """
        path = ()
        for index, key in enumerate(keys):
            path += (key,)
            if repeated and index == len(keys) - 1:
                counts[path] = counts.get(path, 0) + 1
            if path in counts:
                path += (counts[path] - 1,)
        return path

    def _split(self, dotted: str) -> tuple:
        return tuple(key.strip("\"'") for key in re.findall(self._KEY, dotted))

    def _note(self, path: tuple, number: int) -> None:
        for end in range(1, len(path) + 1):
            self._lines.setdefault(path[:end], number)


class TooDeep(ValueError):
    """Its tables or lists are nested deeper than anybody means."""


def read_toml(text: str) -> dict:
    """Return what *text* says.  Raises ``ValueError``, ``TooDeep`` among them: nothing that walks
    its tables afterwards runs out of stack.
    """
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise TooDeep(f"nested deeper than {MAX_DEPTH} levels") from None
    if depth_of(data) > MAX_DEPTH:
        raise TooDeep(f"nested deeper than {MAX_DEPTH} levels")
    return data


def not_toml(error, text: str, file: str) -> Problem:
    """Return the problem of what tomllib says of *text*, which is in *file*."""
    at = re.search(r" \(at line (\d+), column \d+\)\Z", str(error))
    said = str(error)[: at.start()] if at else str(error).removesuffix(" (at end of document)")
    line = int(at.group(1)) if at else text.count("\n") + 1
    written = (text.split("\n")[line - 1 : line] or [""])[0]
    hint = _hint_of(written)
    if said.startswith(("Cannot overwrite", "Cannot declare")):
        said, hint = "this name is here twice; the first stands above", "remove one, or rename it"
        name = written.strip(" \t\r[]")
        earlier = re.search(rf"^[ \t]*\[[ \t]*{re.escape(name)}[ \t]*\]", text, re.M)
        if written.lstrip().startswith("[") and earlier:
            first = text.count("\n", 0, earlier.start()) + 1
            said = f"[{name}] on line {first} is one table, and here is another of its name"
            hint = f"write [[{name}]] for each of them"
    return Problem((), f"not TOML: {said[:1].lower()}{said[1:]}", file, line, hint=hint)


def _hint_of(line: str) -> str:
    """Return what most likely mends a *line* that is no TOML."""
    curly = re.search("[\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb]", line)
    if curly:
        return f'{curly[0]} is a quote of a word processor: write " in its place'
    word = re.search(r"=[ \t]*(yes|no|on|off|true|false)\b", line, re.IGNORECASE)
    if word:
        is_true = word[1].lower() in ("yes", "on", "true")
        return f"TOML has true and false: write {'true' if is_true else 'false'}"
    return "check this line: a text needs quotes, a list or a table its closing bracket"


def depth_of(data) -> int:
    """Return how deep *data* is nested, without recursion: one dotted key can hold 100,000 dots."""
    deepest, todo = 0, [(data, 1)]
    while todo:
        item, depth = todo.pop()
        deepest = max(deepest, depth)
        if isinstance(item, (dict, list)):
            todo += [
                (below, depth + 1) for below in (item.values() if isinstance(item, dict) else item)
            ]
    return deepest
