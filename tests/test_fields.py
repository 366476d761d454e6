"""Fields have names: ``rule[RULE_ROOT]``, not ``rule[5]``.

A subscript by a bare integer stands for a field, with two exceptions: the first and the last item
of a sequence (``words[0]``, ``parts[-1]``), as long as nothing else in the same function picks
another item of the same value by its number: then it is a record, and each of its items counts.
What Python's own library returns without names (``text.partition(":")[2]``, ``error.args[1]``) does
not count.  Some are left, where the number is no field: a byte at its place in a line, say.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST = 5  # in 1,000 lines
LAYERS = (
    "clawlite/core",
    "clawlite/protocols",
    "clawlite/scan",
    "clawlite/linux",
    "clawlite/host",
    "firmware-host/micropython",
)
ENDS = (0, -1)
CALLS_OF_PYTHON = {"partition", "rpartition", "getsockname", "getrlimit", "waitpid", "exc_info"}
ATTRIBUTES_OF_PYTHON = {"args", "parents"}


def fields(source: str) -> list[int]:
    """Return the lines of *source* with subscripts by a bare integer that stand for a field; a line
    with two of them comes twice.
    """
    found = {}
    for scope in ast.walk(ast.parse(source)):
        if isinstance(scope, (ast.Module, ast.FunctionDef, ast.Lambda)):
            numbers = {}
            for node in ast.walk(scope):
                if (
                    isinstance(node, ast.Subscript)
                    and (number := _integer(node.slice)) is not None
                    and not _is_pythons(node.value)
                ):
                    numbers.setdefault(ast.unparse(node.value), []).append((number, node))
            for picked in numbers.values():
                is_record = not isinstance(scope, ast.Module) and any(
                    number not in ENDS for number, _ in picked
                )
                for number, node in picked:
                    if is_record or number not in ENDS:
                        found[node] = node.lineno
    return sorted(found.values())


def _is_pythons(value) -> bool:
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        return value.func.attr in CALLS_OF_PYTHON
    return isinstance(value, ast.Attribute) and value.attr in ATTRIBUTES_OF_PYTHON


def _integer(index):
    try:
        value = ast.literal_eval(index)
    except ValueError:
        return None
    return value if type(value) is int else None


@pytest.mark.parametrize(
    "source, lines",
    [
        ("a = words[0] + words[-1]", []),
        ("a = rule[5]", [1]),
        ("a = rule[-2]", [1]),
        ("def f(rule):\n    a = rule[0]\n    return rule[2]", [2, 3]),
        ("def f(rule):\n    return rule[0]\ndef g(rule):\n    return rule[-1]", []),
        ("a = rule[ROOT] + text[2:] + table['x'] + table[True]", []),
        ("a = f(x)[1][0]", [1]),
        ("a = x.partition(':')[2] + x.split(':')[2] + e.args[1]", [1]),
    ],
)
def test_what_counts(source, lines):
    assert fields(source) == lines


@pytest.mark.parametrize("layer", LAYERS)
def test_fields_have_names(layer):
    texts = {path: path.read_text() for path in sorted((ROOT / layer).rglob("*.py"))}
    found = {path.relative_to(ROOT): fields(text) for path, text in texts.items()}
    lines = sum(text.count("\n") for text in texts.values())
    count = sum(map(len, found.values()))
    assert 1000 * count <= MOST * lines, {path: at for path, at in found.items() if at}
