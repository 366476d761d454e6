"""The runtime's table of inline primitives says what the compiler's models say."""

import pytest
from msgspec import inspect

from clawlite.host.models import KINDS
from clawlite.linux.runtime import manifest_fields as table

SLOTS = {slot: spec for slot, _, spec in KINDS.values()}
# lists of words, whose entries no row of the table looks into
UNCHECKED = {"providers.capabilities", "channels.trigger.events"}


def words_of(kind) -> dict:
    """Return {path: (is required, words, or None)} of the fields below a msgspec type."""
    found = {}
    for option in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if isinstance(option, inspect.ListType):
            found.update(words_of(option.item_type))
        if isinstance(option, inspect.StructType):
            for field in option.fields:
                inner = words_of(field.type)
                found[field.name] = (field.required, inner.pop("", (0, None))[1])
                found.update((field.name + "." + path, row) for path, row in inner.items())
        if isinstance(option, inspect.LiteralType):
            found[""] = (False, set(option.values))
    return found


def rows_of(rows: list) -> dict:
    """Return the same of rows; what depends on other fields is not required."""
    found = {}
    for name, is_needed, expected in rows:
        found[name] = (
            is_needed is True,
            set(expected) if isinstance(expected, tuple) else None,
        )
        inner = expected.rows if isinstance(expected, table.Several) else expected
        if isinstance(inner, list):
            found.update((name + "." + path, row) for path, row in rows_of(inner).items())
    return found


@pytest.mark.parametrize("slot", sorted(SLOTS))
def test_the_table_of_inline_primitives_is_what_the_models_say(slot):
    model = words_of(inspect.type_info(SLOTS[slot]))
    rows = rows_of(table.INLINE[slot])
    own = {"providers": {"name"}}.get(slot, set())  # a field of the primitive, not of its spec
    assert set(rows) - set(model) == own
    for path, (is_required, words) in model.items():
        if (is_required or words) and "%s.%s" % (slot, path) not in UNCHECKED:
            assert rows.get(path) == (is_required, words), path


def test_every_slot_has_rows():
    assert set(table.INLINE) == set(SLOTS)
