"""Rare functions leave the modules of a board, and are loaded when they are called."""

import ast
import sys
import types

import pytest

from clawlite.host.firmware import firmware, link, rename
from clawlite.host.firmware.outline import RareError, split

WORK = """
import binascii
from clawlite.core.room.words import shout
SIZE = [3]


class Machine:

    def __init__(self, name):
        self.name = name

    def work(self, count):
        return self.repair(count) if count > SIZE[0] else self.name

    def repair(self, count, tool="hammer"):
        self.broken = helper(count)
        return shout(self.name) + tool + self.tell()

    def tell(self):
        return str(self.broken)

    @property
    def is_new(self):
        return True


def helper(count):
    return binascii.hexlify(b"x" * count)


def odd(number, *rest):
    return number % 2, rest


class Oddity(Exception):
    pass


def check(number):
    if odd(number)[0]:
        raise Oddity(number)
    return number
"""
WORDS = """
def shout(text):
    return text.upper()
"""
OTHER = """
from clawlite.core.room.work import Oddity, check, odd


def tries(number):
    try:
        return check(number)
    except Oddity as e:
        return e.args


def both(number):
    from clawlite.core.room.work import helper
    return odd(number), helper(number)
"""


def board(tmp_path, monkeypatch, groups, renamed=True, plain=(), **modules):
    """Return {module: what it defines}, linked as a board's are; groups by source module, as
    firmware.RARE has them.
    """
    sources = {}
    for name, text in (modules or {"work": WORK, "words": WORDS, "other": OTHER}).items():
        sources[name] = tmp_path / f"{name}.py"
        sources[name].write_text(text)
    linker = link.Linker(
        sources,
        {"unit": [name for name in ("words", "work") if name in sources]}
        if "work" in sources
        else {},
    )
    trees = {name: ast.parse(text) for name, text in linker.link().items()}
    split(
        trees,
        {
            group: [
                linker.place(module, name) for module, names in of.items() for name in names.split()
            ]
            for group, of in groups.items()
        },
        plain,
    )
    if renamed:
        rename.rename(trees, ("other", *plain))
    for name, tree in trees.items():
        (tmp_path / f"{name}.py").write_text(ast.unparse(tree))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in trees:
        monkeypatch.delitem(sys.modules, name, raising=False)
    return trees


def test_a_function_is_loaded_when_it_is_called(tmp_path, monkeypatch):
    board(tmp_path, monkeypatch, {"seldom": {"work": "odd helper"}})
    import other

    assert "seldom" not in sys.modules
    assert other.both(3) == ((1, ()), b"787878") and "seldom" in sys.modules


def test_a_method_of_one_class_goes_and_one_that_is_handed_on_stays(tmp_path, monkeypatch):
    trees = board(
        tmp_path,
        monkeypatch,
        {"mending": {"work": "Machine.repair Machine.tell"}},
        renamed=False,
        words=WORDS,
        work=WORK + "\n\ndef later(machine):\n    return machine.tell\n",
    )
    assert not any(
        isinstance(node, ast.FunctionDef) and node.name == "repair"
        for node in ast.walk(trees["unit"])
    )
    import unit

    machine = unit.Machine("pump")
    assert machine.work(1) == "pump" and "mending" not in sys.modules
    assert machine.work(4) == "PUMPhammerb'78787878'" and unit.later(machine)() == "b'78787878'"


def test_names_stay_apart_when_they_are_shortened(tmp_path, monkeypatch):
    """What only a method sets that was taken out is an attribute of its class all the same."""
    trees = board(
        tmp_path,
        monkeypatch,
        {"mending": {"work": "Pump.mend"}},
        plain=("unit",),
        work="""
class Pump:
    def __init__(self):
        self.parts = 1

    def run(self):
        self.mend()
        return self.parts, self.mended


    def mend(self):
        self.mended = 2


class Valve:
    def __init__(self):
        self.mended = 3


def run():
    return Pump().run()
""",
    )
    import unit

    assert unit.run() == (1, 2)
    assert "mended" not in ast.unparse(trees["mending"])


@pytest.mark.parametrize(
    "more, stays",
    [("", False), ("\n\nKINDS = (Pump,)\n", True), ("\n\nclass Valve(Pump):\n    pass\n", True)],
)
def test_the_init_of_a_class_goes_when_every_place_that_names_it_calls_it(
    tmp_path, monkeypatch, more, stays
):
    trees = board(
        tmp_path,
        monkeypatch,
        {"making": {"work": "Pump.__init__"}},
        renamed=False,
        other="""
from clawlite.core.room.work import Pump as Made


def pumps():
    from clawlite.core.room.work import Pump
    return Made(1), Pump(2, parts=3), [Pump(number) for number in (4,)]
""",
        work="""
class Pump:

    def __init__(self, number, parts=2):
        self.number = number
        self.parts = parts

    def told(self):
        return self.number, self.parts


def one():
    return Pump(5)
"""
        + more,
    )
    kept = [
        node
        for node in ast.walk(trees["unit"])
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
    ]
    assert len(kept) == stays
    import other
    import unit

    first, second, third = other.pumps()
    assert "making" in sys.modules and isinstance(first, unit.Pump)
    assert [pump.told() for pump in (first, second, *third, unit.one())] == [
        (1, 2),
        (2, 3),
        (4, 2),
        (5, 2),
    ]


def test_a_class_goes_too_and_is_the_same_for_all(tmp_path, monkeypatch):
    board(tmp_path, monkeypatch, {"faults": {"work": "Oddity"}})
    import other

    assert other.tries(2) == 2 and "faults" not in sys.modules
    assert other.tries(3) == (3,)


def test_a_module_that_others_ask_by_name_keeps_a_function_of_that_name(tmp_path, monkeypatch):
    trees = board(tmp_path, monkeypatch, {"seldom": {"other": "both"}}, plain=("other",))
    import other

    assert other.both(2) == ((0, ()), b"7878") and isinstance(other.both, types.FunctionType)
    assert "__import__('seldom')" in ast.unparse(trees["other"])


def test_a_function_hides_no_name_of_another_module(tmp_path, monkeypatch):
    board(
        tmp_path,
        monkeypatch,
        {"seldom": {"one": "f", "two": "g"}},
        one="KEY = ['one']\n\n\ndef f():\n    return KEY\n\n\ndef ask():\n    return f()\n",
        two="KEY = ['two']\n\n\ndef g():\n    return KEY\n\n\ndef ask():\n    return g()\n",
        other="from clawlite.core.room.one import ask\nfrom clawlite.core.room.two import ask as "
        "asks\n",
    )
    import other

    assert other.ask() == ["one"] and other.asks() == ["two"]


@pytest.mark.parametrize(
    "names, why",
    [
        ("Machine.fly", "there is no Machine.fly"),
        ("fly", "there is no fly"),
        ("Machine.is_new", "no decorator"),
    ],
)
def test_what_cannot_go_is_told(tmp_path, monkeypatch, names, why):
    with pytest.raises(RareError, match=why):
        board(tmp_path, monkeypatch, {"seldom": {"work": names}})


def test_a_group_needs_no_unit_that_its_callers_may_lack():
    """Code of two units in one group would load both."""
    texts, _ = firmware.link()
    for group in firmware.RARE:
        needs = {
            node.module for node in ast.parse(texts[group]).body if isinstance(node, ast.ImportFrom)
        }
        units = (needs & set(firmware.UNITS)) - {"base", "core"}
        # remote needs the others
        assert len(units) < 2 or units <= {"remote", "limits", "talk", "tcp"}, f"{group}: {units}"


def test_every_module_of_a_board_is_one_that_another_asks_for():
    """What nobody loads takes flash all the same."""
    trees = {name: ast.parse(text) for name, text in firmware.link()[0].items()}
    asked = {"main"}
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                asked.add(node.module)
            elif isinstance(node, ast.Import):
                asked |= {alias.name for alias in node.names}
            elif (
                isinstance(node, ast.Call)
                and len(node.args) == 1
                and isinstance(node.args[0], ast.Constant)
            ):
                asked |= {node.args[0].value} & (
                    set(trees)
                    if getattr(node.func, "id", "") == "__import__"
                    else set(firmware.STAGES)
                )
    assert set(trees) <= asked
