import ast
import gc
from pathlib import Path

import pytest

from clawlite.host.firmware import firmware, trees

SOURCE = Path(firmware.__file__).read_text(encoding="utf-8")


def test_a_walk_finds_what_that_of_the_library_finds_but_contexts():
    tree = ast.parse(SOURCE)
    wanted = [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    assert list(trees.walk(tree)) == wanted and len(wanted) > 1000


def test_what_is_put_below_a_node_when_it_is_handed_out_is_not_walked():
    tree = ast.parse("f(x)")
    for node in trees.walk(tree):
        assert not isinstance(node, ast.Constant)
        if isinstance(node, ast.Call):
            node.args = [ast.Constant(1)]


def test_a_copy_is_equal_and_shares_nothing():
    body = ast.parse(SOURCE).body
    copy = trees.copied(body)
    assert [ast.dump(node) for node in copy] == [ast.dump(node) for node in body]
    of = {id(node) for part in body for node in ast.walk(part)}
    assert not of & {id(node) for part in copy for node in ast.walk(part)}


@pytest.mark.parametrize("was_on", [True, False])
def test_garbage_is_collected_afterwards_as_before(was_on):
    (gc.enable if was_on else gc.disable)()
    try:
        with pytest.raises(RuntimeError), trees.uncollected():
            assert not gc.isenabled()
            raise RuntimeError
        assert gc.isenabled() == was_on
    finally:
        gc.enable()
