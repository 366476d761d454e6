"""No test starts MicroPython with more stack than a Pico has (docs/adr/0080)."""

import ast
import re
import subprocess
from pathlib import Path

import pico_stack
import pytest

TESTS = Path(__file__).resolve().parents[1]
ADR = TESTS.parent / "docs/adr/0080-stack.md"
SAID = " ".join(ADR.read_text().split())
FINDS = ("command", "program", "which")  # functions that return the path of a command
NAME = "micropython"
DEEP = """
def deep(n):
    global most
    most = n
    deep(n + 1)
try:
    deep(1)
except RuntimeError:
    print(most)
"""


def starts(text: str) -> list[int]:
    """Return the lines of a source that make a command of ``micropython`` themselves: by a function
    that finds it, unless what that returns is only compared, or by its bare name in a list.
    """
    tree = ast.parse(text)
    compared = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        for inner in ast.walk(node)
    }
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args and id(node) not in compared:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in FINDS and getattr(node.args[0], "value", None) == NAME:
                found.append(node.lineno)
        if isinstance(node, ast.List) and node.elts:
            if getattr(node.elts[0], "value", None) == NAME:
                found.append(node.lineno)
    return found


def sources() -> dict[str, str]:
    return {str(path.relative_to(TESTS)): path.read_text() for path in TESTS.rglob("*.py")}


def test_no_test_starts_micropython_by_itself():
    found = {name: starts(text) for name, text in sources().items() if starts(text)}
    assert list(found) == ["helpers/pico_stack.py"], (
        f"{found}: start it with pico_stack.micropython()"
    )


@pytest.mark.parametrize(
    "text, lines",
    [
        ("run([command('micropython'), 'x.py'])", [1]),
        ("import shutil\nwords = [shutil.which('micropython')]", [2]),
        ("run(['micropython', 'x.py'])", [1]),
        ("missing = command('micropython') is None", []),
        ("if None in (command('micropython'), command('mpy-cross')): skip()", []),
        ("words = [pico_stack.micropython(), 'x.py']", []),
    ],
)
def test_a_start_is_found(text, lines):
    assert starts(text) == lines


def test_no_test_has_all_of_the_unix_ports_stack():
    assert [name for name, text in sources().items() if "_unlimited(" in text] == [
        "helpers/pico_stack.py",
        "device/test_pico_stack.py",
    ]
    with pytest.raises(AssertionError, match="unix port's stack"):
        pico_stack.started("print(1)")
    done = subprocess.run(
        [pico_stack.micropython(), pico_stack.script(DEEP)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    # 30 on an RP2040 (test_stack.py), of which a quarter stays free
    assert done.returncode == 0 and 20 <= int(done.stdout) <= 23, done


def test_tests_of_the_core_that_only_hosts_run_are_on_the_list():
    listed = set()
    for path in (TESTS / "core").glob("test_*.py"):
        tree = ast.parse(path.read_text())
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ONLY_ON_HOSTS":
                names = {name.value for name in node.value.elts}
                assert names <= {getattr(one, "name", "") for one in tree.body}, path
                listed |= {f"{path.stem}.{name}" for name in names}
    assert listed == set(re.findall(r"`(test_\w+\.test_\w+)`", SAID))
