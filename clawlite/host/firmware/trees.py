"""Walks and copies of syntax trees, which take most of the time of a link.

``ast.walk`` asks two generators for each node, and ``copy.deepcopy`` calls Python for each value.
What is found here is the same, in the same order."""

import ast
import collections
import contextlib
import gc
import pickle

# What these fields hold is a text, a number or a context (``Load``), and never looked at as a node.
_PLAIN = frozenset(
    "arg asname attr conversion ctx id is_async kind level module name simple type_comment".split()
)


class _Fields(dict):
    """{kind of node: its fields in which other nodes may lie}"""

    def __missing__(self, kind):
        fields = () if kind is ast.Constant else kind._fields
        self[kind] = tuple(field for field in fields if field not in _PLAIN)
        return self[kind]


_FIELDS = _Fields()


def walk(node):
    """Yield *node* and all that is below it, as ``ast.walk`` does, but for contexts (``Load``),
    which are a third of a tree: what is below a node is looked up before it is handed out.
    """
    todo = collections.deque([node])
    add, take = todo.append, todo.popleft
    while todo:
        node = take()
        for field in _FIELDS[type(node)]:
            value = getattr(node, field, None)
            if type(value) is list:
                for item in value:
                    if isinstance(item, ast.AST):
                        add(item)
            elif isinstance(value, ast.AST):
                add(value)
        yield node


def children(node) -> list:
    """Return the nodes right below *node*, as ``ast.iter_child_nodes`` does, but for contexts."""
    found = []
    for field in _FIELDS[type(node)]:
        value = getattr(node, field, None)
        if type(value) is list:
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


class Visitor(ast.NodeVisitor):
    """Visits no contexts."""

    def generic_visit(self, node):
        for child in children(node):
            self.visit(child)


class Transformer(ast.NodeTransformer):
    """Visits no contexts."""

    def visit_Constant(self, node):
        return node

    def generic_visit(self, node):
        for field in _FIELDS[type(node)]:
            old = getattr(node, field, None)
            if type(old) is list:
                old[:] = [new for value in old for new in self._instead(value)]
            elif isinstance(old, ast.AST):
                new = self.visit(old)
                if new is None:
                    delattr(node, field)
                else:
                    setattr(node, field, new)
        return node

    def _instead(self, value):
        """Return what comes in the place of *value* in a list."""
        new = self.visit(value) if isinstance(value, ast.AST) else value
        if new is value or isinstance(new, ast.AST):
            return (new,)
        return new or ()


def copy_nodes(nodes: list) -> list:
    """Return a deep copy of *nodes*."""
    return pickle.loads(pickle.dumps(nodes, pickle.HIGHEST_PROTOCOL))


@contextlib.contextmanager
def suspend_gc():
    """Collect no garbage meanwhile: a link makes millions of nodes, which live to its end, and
    each collection looks at all of them.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
