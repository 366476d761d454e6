"""Linking modules for a board: what they mean does not change, and what is not understood is
refused.
"""

import ast

import pytest

from clawlite.host.firmware import firmware
from clawlite.host.firmware.link import Linker, LinkError
from clawlite.protocols.image import features


def link(tmp_path, units=None, entrances=(), **modules):
    sources = {}
    for name, text in modules.items():
        sources[name] = tmp_path / f"{name}.py"
        sources[name].write_text(text)
    units = {"all": list(modules)} if units is None else units
    return Linker(sources, units, (), entrances).link()


def run(text, **modules):
    space = {}
    exec(text, space)
    return space


def test_imports_within_a_unit_go(tmp_path):
    linked = link(
        tmp_path,
        a="def double(x):\n    return 2 * x\n",
        b="from clawlite.core.room.a import double\n\n\ndef four(x):\n    return "
        "double(double(x))\n",
    )
    assert "import" not in linked["all"] and run(linked["all"])["four"](3) == 12


def test_a_module_used_by_its_name_becomes_its_names(tmp_path):
    linked = link(
        tmp_path,
        a="LIMIT = 3\n\n\ndef f(x):\n    return x + LIMIT\n",
        b="from clawlite.core.room import a\n\n\ndef g(x):\n    return a.f(x) * a.LIMIT\n",
    )
    assert run(linked["all"])["g"](1) == 12


def test_two_modules_may_share_a_name(tmp_path):
    linked = link(
        tmp_path,
        a="_SIZE = [1]\n\n\ndef check(x):\n    return x + _SIZE[0]\n",
        b="from clawlite.core.room import a\n_SIZE = [10]\n\n\ndef check(x):\n    return "
        "a.check(x) + _SIZE[0]\n",
    )
    space = run(linked["all"])
    assert space["check"](0) == 1 and space["b_check"](0) == 11


def test_numbers_in_capitals_are_written_out(tmp_path):
    linked = link(
        tmp_path,
        a="from clawlite.core.base.dialect import const\n_BIG = const(1 << 4)\n"
        "LOW, HIGH = const(0), const(1)\nDEEP = _BIG + HIGH\n",
        b="from clawlite.core.room.a import DEEP, HIGH\n\n\ndef f():\n    return [HIGH, DEEP]\n",
    )
    assert linked["all"].replace(" ", "").replace("\n", "") == "deff():return[1,17]"


def test_a_module_of_numbers_alone_is_no_module_on_a_board(tmp_path):
    linked = link(
        tmp_path,
        {"all": ["b"]},
        a="FIRST, SECOND = range(2)\n",
        b="from clawlite.core.room.a import SECOND\n\n\ndef second(x):\n    return x[SECOND]\n",
    )
    assert list(linked) == ["all"] and run(linked["all"])["second"]("ab") == "b"


def test_an_entrance_is_no_module_on_a_board(tmp_path):
    """Each import is led to where the name is, within the unit, in another module, or a number."""
    linked = link(
        tmp_path,
        {"all": ["b", "c"]},
        ("door",),
        a="def half(x):\n    return x // 2\n",
        b="LIMIT = 7\n\n\ndef double(x):\n    return 2 * x\n",
        door='"""The entrance."""\nfrom clawlite.core.room.a import half\n'
        "from clawlite.core.room.b import LIMIT, double\n",
        c="from clawlite.core.room.door import LIMIT, double, half as less\n\n\n"
        "def f(x):\n    return less(double(x)) + LIMIT\n",
    )
    assert sorted(linked) == ["a", "all"] and "door" not in linked["all"]
    assert linked["all"].count("import") == 1 and "from a import half as less" in linked["all"]
    whole = linked["all"].replace("from a import half as less", linked["a"] + "\nless = half")
    assert run(whole)["f"](3) == 10
    door = "def quarter(x):\n    return x // 4\n"
    asks = "from clawlite.core.room.door import quarter\n"
    with pytest.raises(LinkError, match="asks: no board has quarter of door"):
        link(tmp_path, {}, ("door",), door=door, asks=asks)


def test_what_is_no_number_keeps_its_name(tmp_path):
    linked = link(
        tmp_path,
        a="WORDS = ('a', 'b')\nFLAG = True\nTWO = 2\n\n\ndef f():\n    return "
        "WORDS[TWO - 1], FLAG\n",
    )
    assert run(linked["all"])["f"]() == ("b", True)


def test_locals_and_attributes_hide_names_of_the_unit(tmp_path):
    linked = link(
        tmp_path,
        a="def rule():\n    return 'a'\n",
        b="""
def rule():
    return "b"


class Box:
    rule = 1

    def __init__(self, rule):
        self.rule = rule

    def ask(self):
        return [rule(), self.rule, [rule for rule in (1, 2)]]


def f(rule):
    return rule
""",
    )
    space = run(linked["all"])
    assert space["f"](5) == 5 and space["Box"].rule == 1 and space["b_rule"]() == "b"
    assert space["Box"](3).rule == 3


def test_a_local_name_does_not_hide_what_stood_behind_a_module(tmp_path):
    linked = link(
        tmp_path,
        a="def error(x):\n    return 'a' + x\n",
        b="from clawlite.core.room import a\n\n\ndef f(error):\n    def g():\n        return "
        "a.error(error)\n    return g()\n",
    )
    assert run(linked["all"])["f"]("b") == "ab"


def test_a_builtin_is_never_hidden(tmp_path):
    linked = link(
        tmp_path,
        a="def compile(x):\n    return x\n",
        b="def f():\n    return compile('1', '', 'eval')\n",
    )
    assert eval(run(linked["all"])["f"]()) == 1


def test_a_module_outside_the_units_imports_from_them(tmp_path):
    linked = link(
        tmp_path,
        {"all": ["a", "b"]},
        a="def f():\n    return 1\n",
        b="def f():\n    return 2\n",
        alone="from clawlite.core.room.a import f\nfrom clawlite.core.room.b import f as g\n",
    )
    assert linked["alone"] == "from all import f\nfrom all import b_f as g"


def test_an_import_inside_a_function_stays_one(tmp_path):
    linked = link(
        tmp_path,
        {"all": ["a"]},
        a="def f():\n    from clawlite.core.room.late import g\n   "
        " return g()\n\n\n"
        "def h():\n    from clawlite.core.room import late\n    return late.g()\n",
        late="def g():\n    return 1\n",
    )
    assert "    from late import g" in linked["all"] and "    import late" in linked["all"]


@pytest.mark.parametrize(
    "text",
    [
        "from clawlite.core.room import a\nx = [a]\n",
        "import clawlite.core.room.a\n",
        "from clawlite.core.base.dialect import const\nx = const('a')\n",
    ],
)
def test_what_is_not_understood_is_refused(tmp_path, text):
    with pytest.raises(LinkError):
        link(tmp_path, a="def f():\n    return 1\n", b=text)


def test_a_name_behind_a_module_of_another_unit_is_refused(tmp_path):
    with pytest.raises(LinkError, match="lies in another unit"):
        link(
            tmp_path,
            {"one": ["a"], "two": ["b"]},
            a="def f():\n    return 1\n",
            b="from clawlite.core.room import a\n\n\ndef g():\n    return a.f()\n",
        )


def test_a_module_of_a_board_has_not_the_name_of_a_unit_that_it_is_no_part_of():
    """Its source would stand in the place of the unit's."""
    assert [
        unit
        for unit, parts in firmware.units().items()
        if unit in firmware.sources() and unit not in parts
    ] == []


def test_what_boards_forget_is_there():
    """A name that no module has would be kept in memory, and nobody would notice."""
    tree = ast.parse(firmware.sources()["unload"].read_text())
    texts = {
        node.targets[0].id: node.value.value.split()
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value.value, str)
    }
    known = {*firmware.sources(), *firmware.UNITS, *firmware.RARE}
    assert len(texts["_OCCASIONAL"]) > 20 and len(texts["REMOTE"]) > 3
    assert {*texts["_OCCASIONAL"], *texts["REMOTE"]} - known == set()
    linked = "\n".join(firmware.link()[0].values())
    told = [
        {*node.value.split()}
        for node in ast.walk(ast.parse(linked))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and {*texts["REMOTE"]} <= {*node.value.split()}
    ]
    assert told == [{*texts["REMOTE"], *[api.codec for api in features.APIS]}]
