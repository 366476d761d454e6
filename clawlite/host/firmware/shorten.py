"""Shorten parameters for a board: their names are strings that MicroPython keeps for ever, and
nobody reads them there.

A positional parameter of a function gets the name of its place (``p0``, ``p1``; ``q0`` in a
function within) unless somebody passes it by name.  Functions that are called with ``**`` must not
be shortened at all."""

import ast

from clawlite.host.firmware.trees import Transformer, walk

_LETTERS = "pqrst"  # by depth: an inner function sees the outer one's parameters


def find_keywords(trees) -> set[str]:
    """Return every name that a call in *trees* passes by keyword, and what must keep its name."""
    names = {"self"}
    for tree in trees:
        names |= {
            keyword.arg
            for node in walk(tree)
            if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg
        }
    return names


class Shortener(Transformer):
    """Shortens the parameters in one module.

    kept  names that stay
    """

    def __init__(self, kept: set):
        self._kept = kept
        self._depth = 0

    def visit_FunctionDef(self, node):
        self._depth += 1
        # inner functions first: what they call their own is known then
        node = self.generic_visit(node)
        self._depth -= 1
        names = {}
        for place, argument in enumerate(node.args.args):
            if argument.arg not in self._kept and not _bound_inside(node, argument.arg):
                names[argument.arg] = f"{_LETTERS[self._depth]}{place}"
                argument.arg = names[argument.arg]
        if names:
            for part in node.body:
                for inner in walk(part):
                    if isinstance(inner, ast.Name):
                        inner.id = names.get(inner.id, inner.id)
                    elif isinstance(inner, ast.ExceptHandler) and inner.name:
                        inner.name = names.get(inner.name, inner.name)
        return node


def _bound_inside(function, name: str) -> bool:
    """Return whether a function within has a parameter *name* of its own, or says ``nonlocal``
    of it.
    """
    for node in walk(function):
        if node is not function and isinstance(node, (ast.FunctionDef, ast.Lambda)):
            if name in [argument.arg for argument in node.args.args]:
                return True
            if isinstance(node, ast.FunctionDef) and any(
                isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
                for n in walk(node)
            ):
                return True
        if isinstance(node, ast.Nonlocal) and name in node.names:
            return True
    return False
