"""The modules that a module imports while it is loaded, in an order in which imports do not nest.

A board's linker gives its modules such an order; what tests load on MicroPython is not linked.
"""

import ast
from pathlib import Path

from run_core_micropython import ROOMS, ROOT


def order(path: Path) -> list[str]:
    """Return the names of the modules of the core, of boards and beside *path* that the module at
    *path* needs, each after what it imports itself, and then its own.
    """
    seen, found = set(), []

    def visit(name: str):
        source = _source(name, path.parent)
        if source is None or name in seen:
            return
        seen.add(name)
        for imported in _imports(ast.parse(source.read_text(encoding="utf-8")).body):
            visit(imported)
        found.append(name)

    visit(path.stem)
    return found


def _source(name: str, folder: Path) -> "Path | None":
    if name.startswith(("clawlite.core.", "clawlite.scan.")):
        places = [ROOT / (name.replace(".", "/") + ".py")]
    else:
        places = [place / (name + ".py") for place in (folder, *ROOMS)]
    return next((place for place in places if place.is_file()), None)


def _imports(body: list):
    """Yield the names that statements import when they run, but for those in functions."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Try):
            for part in (node.body, *(handler.body for handler in node.handlers)):
                yield from _imports(part)
        elif isinstance(node, ast.If):
            yield from _imports(node.body)
            yield from _imports(node.orelse)
