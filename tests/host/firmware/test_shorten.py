"""Shortened parameters: what a function does stays, what is passed by name keeps its name."""

import ast

from clawlite.host.firmware.shorten import Shortener, find_keywords


def shortened(text, *calls):
    tree = ast.parse(text)
    return ast.unparse(Shortener(find_keywords([tree, *map(ast.parse, calls)])).visit(tree))


def test_parameters_are_named_by_their_place():
    text = shortened(
        "class A:\n    def f(self, number, text):\n        return [number for _ in text]\n"
    )
    assert "def f(self, p1, p2):" in text and "return [p1 for _ in p2]" in text


def test_what_is_passed_by_name_keeps_its_name():
    text = shortened("def f(left, right=2):\n    return left - right\n", "f(1, right=3)")
    assert "def f(p0, right=2):" in text
    space = {}
    exec(text, space)
    assert space["f"](5, right=1) == 4


def test_inner_functions_see_the_outer_ones():
    text = (
        "def f(a, b):\n    def g(b, c):\n        return a + b + c\n    return g(b, 1) + "
        "sum((lambda a: a)(x) for x in [a])\n"
    )
    short, plain = {}, {}
    exec(shortened(text), short)
    exec(text, plain)
    assert short["f"](2, 30) == plain["f"](2, 30)


def test_an_assigned_parameter_and_an_exception_keep_their_meaning():
    text = (
        "def f(x, e):\n    x = x + 1\n    try:\n        raise ValueError(x)\n    except "
        "ValueError as e:\n        return str(e), x\n"
    )
    space = {}
    exec(shortened(text), space)
    assert space["f"](1, None) == ("2", 2)
