"""Each gate of the pipeline is declared, so that the way around the queue cannot miss one."""

import ast
from pathlib import Path

import clawlite.core.turns.tools
from clawlite.core.turns.gates import GATES

MARK = "    # gate "


def gates(source: str) -> list[str]:
    """Return the names of the gates in ``_gated``, in their order.  A gate is an ``if`` statement:
    each has its name in the line before it.
    """
    lines = source.splitlines()
    pipeline = next(
        node for node in ast.parse(source).body if getattr(node, "name", None) == "_gated"
    )
    found = []
    for node in pipeline.body:
        if isinstance(node, (ast.Assign, ast.Return)):
            inner = [n for n in ast.walk(node) if isinstance(n, (ast.Yield, ast.YieldFrom))]
            assert not inner, f"line {node.lineno}: a gate that waits is an if statement"
            continue
        before = lines[node.lineno - 2]
        assert isinstance(node, ast.If) and before.startswith(MARK), (
            f"tools.py:{node.lineno}: expected a line {MARK.strip()} NAME before this statement, "
            "and NAME in gates.py, where it says whether a settled call passes"
        )
        found.append(before.removeprefix(MARK))
    return found


def test_each_gate_is_declared_in_its_order():
    found = gates(Path(clawlite.core.turns.tools.__file__).read_text())
    assert list(dict.fromkeys(found)) == list(GATES)


def test_a_gate_without_its_name_is_found():
    source = "def _gated(image, tool):\n    if tool.moon:\n        raise ValueError\n"
    try:
        gates(source)
    except AssertionError as e:
        assert "tools.py:2" in str(e)
    else:
        raise AssertionError("it was not")
