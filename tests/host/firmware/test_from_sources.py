"""What the linker reads in the sources: which modules a board has, which of them hand on what
others define, and whose generators are for loops.
"""

import ast

import pytest

from clawlite.host.firmware import firmware, from_sources
from clawlite.host.firmware.from_sources import Import
from clawlite.host.firmware.link import LinkError, plain

TEXT = """
from clawlite.core.room import far  # from clawlite.core.room import remark
from near import (
    one,
    two as second,  # from near import three
)
import sys, near
def later():
    from clawlite.core.room.far import name
    return __import__("own").f(), stage("own").g(), other("own")
"""
# What a loop iterates, and what is iterated by way of a variable; ``driven`` is for Agent.drive.
SAMPLE = """
def listed(value):
    yield from listed(value[1:])
def kept(value):
    yield from listed(value)
def starred(value):
    yield from kept(value)
def driven(value):
    answer = yield from starred(value)
    return answer
def plain(value):
    yield value
def use(value):
    later = kept(value)
    later = driven(value) if value else driven(0)
    return [one for one in listed(value)], (*starred(value),), sum(plain(value))
def loop(value):
    later = kept(value)
    for one in later:
        return one
"""


def test_imports_are_found_where_they_stand():
    assert from_sources.imports(TEXT, {"far", "near", "own"}) == [
        Import(True, "far"),
        Import(True, "near", "one"),
        Import(True, "near", "two", "second"),
        Import(True, "near"),
        Import(False, "far", "name"),
        Import(False, "own"),
        Import(False, "own"),
    ]


def by_syntax(text: str, modules) -> set:
    """Return {(module, name)} of what *text* imports, as Python sees it."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                whole = plain(f"{node.module}.{alias.name}")
                is_module = whole in modules
                found.add((whole, "") if is_module else (plain(node.module), alias.name))
        elif isinstance(node, ast.Import):
            found.update((alias.name, "") for alias in node.names)
    return {one for one in found if one[0] in modules}


def test_no_import_of_the_sources_is_missed():
    for name, path in firmware.sources().items():
        text = path.read_text(encoding="utf-8")
        found = {(one.module, one.name) for one in from_sources.imports(text, firmware.sources())}
        assert by_syntax(text, firmware.sources()) <= found, name


def test_a_board_has_what_its_start_comes_to_load():
    texts = {
        "main": "def f():\n    from a import g\n",
        "alone": "from main import f\n",
        "b": "",
        "a": "import b\n",
    }
    assert from_sources.find_loaded(texts, ["main"]) == ["main", "b", "a"]
    assert {"main", "sentence", "oom_recover", "openai", "tools"} <= set(firmware.sources())


def test_an_entrance_is_what_others_import_from_and_does_not_define_it():
    texts = {
        "user": "from door import work, KEY\n",
        "door": "from behind import work\nKEY = 1\n",
        "behind": "from base import Error\n",
        "child": "from base import Error as _Error\nclass Error(_Error): pass\n",
        "its": "from child import Error\n",
        "base": "",
    }
    assert from_sources.entrances(texts) == ["door"]
    assert firmware.entrances() == ("idempotency",)


UNITS = {
    "main": "def f():\n    import one\n",
    "one": "import below, lazy\nfrom door import work\n",
    "below": "import deep\nclass Below: pass\n",
    "deep": "",
    "lazy": "import one\n",
    "door": "from behind import work\n",
    "behind": "import below\nwork = 1\n",
    "two": "import far\ndef f():\n    import shared, alone\n",
    "three": "import shared, deep\n",
    "far": "",
    "shared": "",
    "alone": "",
}


def test_what_only_a_unit_imports_is_loaded_with_it():
    found = from_sources.complete(UNITS, {"core": ["one"], "more": ["two"]}, ("core",))
    # deep comes along although others import it: every board loads it; shared is of two
    assert found == {"core": ["deep", "below", "lazy", "behind", "one"], "more": ["far", "two"]}


def test_the_order_of_a_unit_is_that_of_its_imports():
    found = from_sources.complete(UNITS, {"core": ["one", "behind", "deep", "below"]}, ("core",))
    assert found == {"core": ["deep", "below", "behind", "lazy", "one"]}
    assert firmware.units()["line"][-1] == "reliable" and "policy" in firmware.units()["core"]


def test_a_new_module_of_the_core_needs_no_entry():
    """One that policy.py imports at its top is loaded with it, by every board."""
    texts = {**firmware._texts(), "weights": "def weighed(one):\n    return one\n"}
    texts["policy"] += "\nfrom clawlite.core.policy.weights import weighed\n"
    assert "weights" in from_sources.find_loaded(texts, ["main"])
    found = from_sources.complete(texts, firmware.UNITS, firmware.FIRST)["core"]
    assert found.index("weights") < found.index("policy")


def test_the_scan_tells_what_a_loop_goes_through_from_what_is_driven():
    found, others = from_sources.split_generators({"sample": ast.parse(SAMPLE)})
    assert {name for _, name in found} == {"listed", "kept", "starred"} and {
        name for _, name in others
    } == {"driven"}
    found, others = from_sources.split_generators(
        {
            "one": ast.parse("def far(x):\n    yield from x.near()\n"),
            "two": ast.parse("for x in y.far(1): pass"),
        }
    )
    assert found == {("one", "far")} and not others


def test_what_a_board_drives_is_delegated_and_what_loops_go_through_is_not():
    trees = {name: ast.parse(path.read_text()) for name, path in firmware.sources().items()}
    found, others = from_sources.split_generators(trees)
    assert {module for module, _ in found} == {"known_secrets"}
    assert ("tools", "call") in others and ("turn", "turn") in others
    firmware.delegate(trees)
    assert [
        name
        for name, tree in trees.items()
        if any(isinstance(node, ast.YieldFrom) for node in ast.walk(tree))
    ] == ["known_secrets"]


def test_a_module_with_both_kinds_is_told():
    with pytest.raises(LinkError, match="sample: a loop goes through"):
        firmware.delegate({"sample": ast.parse(SAMPLE)})
