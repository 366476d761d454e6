"""A function that only the functions of a group mention is loaded with them."""

import ast

import pytest

from clawlite.host.firmware import firmware
from clawlite.host.firmware.rare_functions import with_classes, with_companions

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


def test_a_word_of_a_sentence_means_no_function():
    more = {"user": "SENTENCE = 'No helper is deep, /pair %s.'\n"}
    assert companions(WORK, **more) == companions(WORK)


def test_a_group_gets_nothing_of_a_unit_that_it_does_not_need():
    work = "from other import far\nfrom plain import by_name\n"
    work += "def entrance(x):\n    return far(x), by_name(x)\n"
    more = {"other": "def far(x):\n    pass\n", "plain": "def by_name(x):\n    pass\n"}
    assert companions(work, **more) == {"work": ["entrance"]}


def test_the_helpers_of_rare_functions_follow_from_the_sources():
    found = firmware.rare_functions()
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
    monkeypatch.setattr(firmware, "_trees", firmware._trees.__wrapped__)
    found = firmware.rare_functions.__wrapped__()
    assert "_weighed" in found["conditions"]["policy"]


@pytest.mark.parametrize(
    "use, stays",
    [
        ("try: pass\nexcept Box: pass\n", True),
        ("try: pass\nexcept (OSError, Box): pass\n", True),
        ("isinstance(1, (int, work.Box))\n", True),
        ("class Small(Box): pass\n", True),
        ("Box().open_it(1)\n", False),
    ],
)
def test_a_group_with_a_class_that_others_name_stays(use, stays):
    trees = {"work": ast.parse(WORK), "user": ast.parse(use)}
    groups = {"boxes": {"work": ["Box"]}, "seldom": {"work": ["entrance"]}}
    assert with_classes(groups, trees) == ({"boxes"} if stays else set())


def test_groups_of_errors_stay():
    found = with_classes(firmware.rare_functions(), firmware._trees())
    assert {"denials", "damage"} <= found
    # the others are stages, of which one at a time is there
    assert found - {"denials", "damage"} <= {*firmware.STAGES, *firmware.WITH_A_STAGE}


def dropped(tree) -> set:
    """Return the names in the texts that ``know`` and ``drop`` get."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("know", "drop")
    ]
    texts = [
        node.value
        for call in calls
        for node in ast.walk(call)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return {name for text in texts for name in text.split()}


def test_every_name_in_a_table_of_the_linker_is_there():
    """These tables follow from nothing: each says what a person decided.  A name that is gone
    would be left alone without a word."""
    modules, groups = {*firmware.sources()}, {*firmware.RARE}
    asked = set().union(*(dropped(tree) for tree in firmware._trees().values()))
    assert "header" in asked and "oom_recover" in asked
    for table, names, there in (
        ("STAY", firmware.STAY, groups),
        ("STAGES", firmware.STAGES, groups),
        ("WITH_A_STAGE", firmware.WITH_A_STAGE, groups),
        ("FIRST", firmware.FIRST, {*firmware.UNITS}),
        ("CALLED_BY_NAME", firmware.CALLED_BY_NAME, modules),
        ("ENTRIES", firmware.ENTRIES, modules),
        ("KEEP_SENTENCES", firmware.KEEP_SENTENCES, modules),
        ("SEEN_BY_MAKERS", firmware.SEEN_BY_MAKERS, modules),
        ("WRITTEN_OUT", firmware.WRITTEN_OUT, {"dialect"}),
        ("know() and drop()", asked, modules | groups),
    ):
        gone = sorted({*names} - there)
        assert not gone, f"{table}: {gone[0]} is no longer there: take it out or rename it"
