"""Which function of which source file a short name in a board's traceback stands for.

1. A map belongs to one build, and its number stands in the file name that the module ``main`` has
   in tracebacks (``File "main-1f3a9c02"``): its frame is the outermost one of every crash.
2. Maps stay on this computer, in the cache folder.  A traceback of a build without a map here is
   told to be one, and is never decoded with the map of another build.
3. Classes that have nothing to do with each other share names of methods (rename.py), so a name may
   stand for several functions: all of them are shown.
"""

import ast
import hashlib
import json
import os
import pathlib
import re

from clawlite.host.firmware import cache
from clawlite.host.firmware.trees import children

_ROOT = pathlib.Path(__file__).resolve().parents[3]
_FRAME = re.compile(r'  File "([^"]+)", line \d+, in (\S+)')
_BUILD = re.compile(r"main-([0-9a-f]{8})")
_FIRST = "Traceback (most recent call last):"
_MOST = 200  # bytes; a longer line is no frame


def mark(trees: dict, linker) -> None:
    """Write into each function of *trees*, what *linker* made, from where it comes: ``origin``, a
    (file, qualified name, line).
    """
    found = {}
    for name, module in linker.modules.items():
        for path, node in _functions(module.tree):
            new = linker.new_names.get((name, path[0]), path[0])
            key = (linker.unit_of.get(name, name), new, *path[1:])
            found[key] = (_relative(module.path), ".".join(path), node.lineno)
    for unit, tree in trees.items():
        for path, node in _functions(tree):
            node.origin = found.get((unit, *path))


def _functions(node, path: tuple = ()):
    """Yield ((name, ...) from the outermost one, the function) of all functions in *node*."""
    for child in children(node):
        if isinstance(child, ast.expr):
            continue
        if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
            inner = (*path, child.name)
            if isinstance(child, ast.FunctionDef):
                yield inner, child
            yield from _functions(child, inner)
        else:
            yield from _functions(child, path)


def _relative(path: pathlib.Path) -> str:
    path = path.resolve()
    return path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else path.name


def names(trees: dict) -> dict[str, dict[str, list]]:
    """Return {module: {name on the board: [origin, ...]}} of *trees*, which have their short
    names.
    """
    found = {}
    for unit, tree in trees.items():
        for _, node in _functions(tree):
            if origin := getattr(node, "origin", None):
                origins = found.setdefault(unit, {}).setdefault(node.name, [])
                if list(origin) not in origins:
                    origins.append(list(origin))
    return found


def build_of(texts: dict[str, str]) -> str:
    """Return the number of the build that has these linked modules: 8 hexadecimal digits."""
    return hashlib.sha256(json.dumps(sorted(texts.items())).encode()).hexdigest()[:8]


def keep(build: str, found: dict) -> None:
    """Keep the map *found* of *build*; where that cannot be written, tracebacks stay as they
    are.
    """
    try:
        path = _path(build)
        new = "%s.%d" % (path, os.getpid())
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(new, "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(new, path)
    except OSError:
        pass


def fetch(build: str):
    """Return the map that was kept of *build*, or None."""
    try:
        with open(_path(build), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def _path(build: str) -> str:
    return os.path.join(cache.folder(), "maps", build + ".json")


class Tracebacks:
    """Adds the source functions behind the frames of tracebacks to a board's text, as it comes."""

    def __init__(self):
        self._line = b""  # the open one
        self._map = None  # of the traceback that is under way

    def feed(self, text: bytes) -> bytes:
        """Return *text*, with a line behind each frame whose function the build's map knows."""
        found = []
        for part in text.splitlines(True):
            found.append(part)
            self._line = (self._line + part)[: _MOST + 1]
            if part.endswith(b"\n"):
                found += [
                    b"    = %s\n" % line.encode()
                    for line in self._meaning(self._line.decode("utf-8", "replace").rstrip())
                ]
                self._line = b""
        return b"".join(found)

    def _meaning(self, line: str) -> list[str]:
        if line == _FIRST:
            self._map = None
        frame = _FRAME.fullmatch(line)
        if not frame:
            return []
        unit, name = frame.groups()
        if build := _BUILD.fullmatch(unit):
            unit, self._map = "main", fetch(build[1])
            if self._map is None:
                return [f"no map for build {build[1]} here: it is where that build was made"]
        origins = (self._map or {}).get(unit, {}).get(name, ())
        return [f'File "{path}", line {number}, in {of}' for path, of, number in origins]
