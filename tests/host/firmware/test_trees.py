"""Walks of syntax trees find what Python's own find, in the same order
(clawlite/host/firmware/trees.py).
"""

import ast
import copy

import pytest

from clawlite.host.firmware import firmware
from clawlite.host.firmware.trees import Transformer, Visitor, children, walk

SOURCES = sorted(firmware.sources().items())


def without_contexts(nodes) -> list:
    return [node for node in nodes if not isinstance(node, ast.expr_context)]


@pytest.fixture(scope="module")
def trees():
    return [ast.parse(path.read_text(encoding="utf-8")) for _, path in SOURCES]


def test_walks_find_the_same(trees):
    for tree in trees:
        assert list(walk(tree)) == without_contexts(ast.walk(tree))
        for node in walk(tree):
            assert children(node) == without_contexts(ast.iter_child_nodes(node))


def test_visitors_visit_the_same(trees):
    class Names:
        def visit_Name(self, node):
            self.found.append(node.id)

        def visit_FunctionDef(self, node):
            self.found.append(node.name)
            self.generic_visit(node)

    for tree in trees:
        both = [type("Both", (Names, base), {"found": []})() for base in (Visitor, ast.NodeVisitor)]
        for one in both:
            one.visit(tree)
        assert both[0].found == both[1].found


def test_transformers_make_the_same(trees):
    class Changes:
        """Removes, doubles and replaces."""

        def visit_Pass(self, node):
            return None

        def visit_Assert(self, node):
            return []

        def visit_Expr(self, node):
            return [self.generic_visit(node), ast.Pass()]

        def visit_Return(self, node):
            node.value = None
            return node

        def visit_arg(self, node):
            node.annotation = None
            return node

        def visit_Name(self, node):
            return ast.Constant(1) if node.id == "const" else node

    for tree in trees:
        made = []
        for base in (Transformer, ast.NodeTransformer):
            changed = type("Both", (Changes, base), {})().visit(copy.deepcopy(tree))
            made.append(ast.dump(changed, include_attributes=True))
        assert made[0] == made[1]
