"""A function that only the functions of a group mention is loaded with them."""

import ast

import pytest

from clawlite.host.firmware import firmware
from clawlite.host.firmware.outlined import with_companions

WORK = '''
"""What deep, texted and spare do is not said by these words."""
def entrance(x):
    return helper(x) + Box().open_it(x) + named(x) + shared(x) + texted(x)
def helper(x):
    return deep(x)
def deep(x):
    return deep(x - 1)
def named(x, by=1):
    return by
def shared(x):
    return x
def texted(x):
    return x
def spare():
    pass
def held(x):
    return shared(x), "texted"
class Box:
    def open_it(self, x):
        return x
'''


def companions(work: str, **more: str) -> dict:
    trees = {name: ast.parse(text) for name, text in {"work": work, **more}.items()}
    units = {"work": "core", "other": "apart"}
    groups = {"seldom": {"work": ["entrance"]}}
    return with_companions(groups, trees, units, ("base", "core"), ("plain",))["seldom"]


def test_what_only_a_group_mentions_goes_with_it():
    assert companions(WORK) == {"work": ["entrance", "helper", "Box.open_it", "deep"]}


@pytest.mark.parametrize(
    "more",
    [
        {"user": "def far(x):\n    return x.helper(1)\n"},
        {"user": "from work import helper as mine\n"},
        {"user": "NAMES = 'one helper two'\n"},
        {"user": "def helper(x):\n    return helper(2)\n"},
    ],
)
def test_what_another_place_may_mean_stays(more):
    assert companions(WORK, **more) == {"work": ["entrance", "Box.open_it"]}


def test_a_group_gets_nothing_of_a_unit_that_it_does_not_need():
    work = "from other import far\nfrom plain import by_name\n"
    work += "def entrance(x):\n    return far(x), by_name(x)\n"
    more = {"other": "def far(x):\n    pass\n", "plain": "def by_name(x):\n    pass\n"}
    assert companions(work, **more) == {"work": ["entrance"]}


def test_the_helpers_of_rare_functions_follow_from_the_sources():
    found = firmware.outlined()
    assert "_dollars" in found["request"]["meter"] and "_write" in found["writing"]["render"]
    assert "know" in found["opening"]["unload"]


def test_a_helper_of_a_function_in_a_group_needs_no_entry(monkeypatch, tmp_path):
    """What somebody adds to the core comes into the right file."""
    path = tmp_path / "policy.py"
    text = firmware.sources()["policy"].read_text(encoding="utf-8")
    call = "def strictest("
    path.write_text(
        text.replace(call, "def _weighed(one):\n    return one\n\n\n" + call)
        + "\n\ndef normalise(path):\n    return _weighed(path)\n"
    )
    sources = {**firmware.sources(), "policy": path}
    monkeypatch.setattr(firmware, "sources", lambda: sources)
    found = firmware.outlined.__wrapped__()
    assert "_weighed" in found["conditions"]["policy"]
