"""Walks and copies of syntax trees, which take most of the time of a link.

``ast.walk`` asks two generators for each node, and ``copy.deepcopy`` calls Python for each value.
What is found here is the same, in the same order."""

import ast
import collections
import contextlib
import gc
import pickle


def walk(node):
    """Yield *node* and all that is below it, as ``ast.walk`` does, but for contexts (``Load``),
    which are a third of a tree: what is below a node is looked up before it is handed out.
    """
    todo = collections.deque([node])
    add, take = todo.append, todo.popleft
    while todo:
        node = take()
        for field in node._fields:
            if field == "ctx":
                continue
            value = getattr(node, field, None)
            if type(value) is list:
                for item in value:
                    if isinstance(item, ast.AST):
                        add(item)
            elif isinstance(value, ast.AST):
                add(value)
        yield node


def copied(nodes: list) -> list:
    """Return a deep copy of *nodes*."""
    return pickle.loads(pickle.dumps(nodes, pickle.HIGHEST_PROTOCOL))


@contextlib.contextmanager
def uncollected():
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
