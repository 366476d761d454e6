"""A type of store is declared once, and everything that lists types lists the same."""

import re
from pathlib import Path

import pytest

from clawlite.core.image import memories
from clawlite.host.memory.store_type import TYPES

GRAMMAR = Path(__file__).parents[3] / "clawlite/host/image/image.cddl"


def test_the_compiler_and_images_know_the_same_types():
    assert tuple(TYPES) == memories.TYPES
    last, names = re.search(
        r"^  type: 0\.\.(\d+), +; ([\w -]+)$",
        GRAMMAR.read_text().partition("store = [")[2],
        re.MULTILINE,
    ).groups()
    assert int(last) == len(TYPES) - 1 and tuple(names.split()) == memories.TYPES


def test_what_all_types_do_is_a_small_number_on_a_board():
    assert memories.DOES < 1 << 30 and memories.DOES >> 4 * len(TYPES) == 0


@pytest.mark.parametrize("one", TYPES.values(), ids=list(TYPES))
def test_a_type_is_one_of_these(one):
    """Entries are searched, or have a key: with one value, or several."""
    assert [
        one.does(what) for what in (memories.SEARCHED, memories.SINGLE, memories.SNAPSHOTS)
    ].count(True) == 1
    assert one.backends and not (one.embeds and not one.does(memories.SEARCHED))
    assert one.does(memories.FILES) <= one.does(memories.SINGLE)
