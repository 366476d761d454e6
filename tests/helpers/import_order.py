"""What a module imports, and in which order, so that imports do not nest.  What a module *may*
import is held by test_layers.py.

A board's linker gives its modules such an order; what tests load on MicroPython is not linked.
"""

import ast
from collections import namedtuple
from pathlib import Path

from run_core_micropython import ROOMS, ROOT

# its source, and the names that it imports itself
Module = namedtuple("Module", "path imports")


def modules(path: Path, before: tuple = (), root: Path = ROOT) -> dict[str, Module]:
    """Return {name: module} of the core, of boards and beside *path* for all that the module at
    *path* imports, or a function does as it is called, and for itself.

    before  folders of modules that stand before a board's own
    root    where they are looked for before this checkout, which it is laid out as
    """
    rooms = (root / room.relative_to(ROOT) for room in ROOMS)
    places = (*before, path.parent, *rooms, *ROOMS)
    found, left = {}, [path.stem]
    while left:
        name = left.pop()
        source = None if name in found else _source(name, places, root)
        if source:
            body = ast.parse(source.read_text(encoding="utf-8")).body
            found[name] = Module(source, list(_imports(body, called=False)))
            left += _imports(body, called=True)
    return found


def needs(modules: dict[str, Module]) -> dict[str, list]:
    """Return {name: the modules that it needs to be loaded, each after those that it needs}."""

    def visit(name: str, seen: dict):
        for other in modules[name].imports:
            if other in modules and other not in seen:
                visit(other, seen)
                seen[other] = True

    found = {}
    for name in modules:
        seen = {}
        visit(name, seen)
        if seen:
            found[name] = list(seen)
    return found


def order(path: Path) -> list[str]:
    """Return the modules that the one at *path* needs to be loaded, each after those that it needs,
    and its own name.
    """
    return [*needs(modules(path)).get(path.stem, ()), path.stem]


def _source(name: str, places: tuple, root: Path) -> "Path | None":
    if name.startswith(("clawlite.core.", "clawlite.scan.")):
        files = [place / (name.replace(".", "/") + ".py") for place in (root, ROOT)]
    else:
        files = [place / (name + ".py") for place in places]
    return next((file for file in files if file.is_file()), None)


def _imports(body: list, called: bool):
    """Yield the names that statements import when they run, and the functions in them when
    *called*.
    """
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif called or not isinstance(node, ast.FunctionDef):
            yield from _imports(list(ast.iter_child_nodes(node)), called)
