"""Take sentences out of modules for a board: an error message of 40 characters costs 112 bytes of
heap, even if it is never shown.

A sentence is a text of more than 12 bytes in a ``raise``, in the making of a ``ClawError``, or in a
message of the console (``self._say``).  It goes into one file, and in the module it is replaced by
``sentence(where)`` (firmware-host/micropython/base/sentence.py).  Texts of other kinds stay in the
modules, because a protocol or a log needs them all the time."""

import ast

from clawlite.host.firmware.trees import Transformer, walk

HOME = "sentence"  # the module that reads the file
_ROOT = "ClawError"
_SAYS = "_say"
# bytes: such a text is a name for MicroPython, which it keeps only once
_SHORT = 12


def take_out(trees: dict, kept: tuple) -> bytes:
    """Replace sentences in *trees*, {module: ``ast.Module``}, in place; return the file that holds
    them.

    kept  modules that keep their sentences, which are needed when memory is short or the file
          cannot be read
    """
    errors = _family(trees)
    file, known = bytearray(), {}
    for name, tree in trees.items():
        if name not in kept and name != HOME:
            taker = _Taker(errors, file, known)
            taker.visit(tree)
            if taker.took:
                tree.body.insert(0, ast.ImportFrom(HOME, [ast.alias(HOME)], 0))
    return bytes(file)


def _family(trees: dict) -> set:
    """Return the names of all classes that come from ``ClawError``, wherever they are."""
    classes = [
        node for tree in trees.values() for node in walk(tree) if isinstance(node, ast.ClassDef)
    ]
    names, before = {_ROOT}, 0
    while len(names) > before:
        before = len(names)
        names |= {
            node.name
            for node in classes
            if any(isinstance(base, ast.Name) and base.id in names for base in node.bases)
        }
    return names


class _Taker(Transformer):
    """Takes the sentences out of one module.

    errors  names of error classes
    file    what is written so far; known: {sentence: where it is in there}
    """

    def __init__(self, errors: set, file: bytearray, known: dict):
        self._errors, self._file, self._known = errors, file, known
        self._inside = 0  # statements and calls around, that make a text a sentence
        self.took = False

    def _within(self, node):
        self._inside += 1
        self.generic_visit(node)
        self._inside -= 1
        return node

    visit_Raise = _within

    def visit_Call(self, node):
        called = node.func
        says = (
            isinstance(called, ast.Attribute)
            and called.attr == _SAYS
            or isinstance(called, ast.Name)
            and called.id in self._errors
        )
        return self._within(node) if says else self.generic_visit(node)

    def visit_Dict(self, node):
        """Keys are names, and values beside them are seldom sentences."""
        return node

    def visit_Constant(self, node):
        data = node.value.encode() if self._inside and isinstance(node.value, str) else b""
        if not _SHORT < len(data) < 256:
            return node
        where = self._known.get(data)
        if where is None:
            where = self._known[data] = len(self._file)
            self._file += bytes([len(data)]) + data
        self.took = True
        return ast.Call(ast.Name(HOME, ast.Load()), [ast.Constant(where)], [])
