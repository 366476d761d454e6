"""Check programs on every runtime; the vectors come from the compiler, see
tests/host/schema/test_schemas.py.
"""

import binascii
import sys

from schema_vectors import PROGRAMS, TABLES

from clawlite.core.base.errors import ImageError
from clawlite.core.formats.schema import MAX_STEPS, check
from clawlite.core.formats.schemarare import MAX_NESTED

# a board's stack ends before these bounds, which is an error of its own
ONLY_ON_HOSTS = (
    "test_alternatives_within_recursion_end",
    "test_depth_of_a_value_at_its_bound",
)
READ_BY_BOARDS = 16  # levels of a JSON text
TOO_DEEP_HERE = "at arguments: expected a value that nests no deeper than this device can follow"

ANY, STRING, INTEGER, OBJECT, ARRAY = 127, 1, 4, 16, 32


def automata(index):
    return binascii.unhexlify(TABLES[index])


def nested(depth, leaf):
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def test_vectors():
    for name, _, program, cases in PROGRAMS:
        for value, expected in cases:
            found = check(program, value, automata)
            assert found == expected, (name, value, found)


def test_the_root_has_a_name():
    assert check(STRING, 1, automata, "result") == "at result: expected a string, got 1"
    assert (
        check([OBJECT, 0, [1, ANY, 0, "a", ANY]], {}, automata, "result")
        == "at result.a: expected a value, got nothing"
    )


def test_no_order_of_a_dict_shows():
    program = [OBJECT, 0, [0, STRING, 0, "b", STRING, "a", STRING]]
    for names in (("zeta", "alpha", "mid"), ("mid", "zeta", "alpha")):
        value = {}
        for name in names:
            value[name] = 1
        assert check(program, value, automata) == "at arguments.alpha: expected a string, got 1"
    assert check(program, {"a": 1, "b": 1}, automata) == "at arguments.b: expected a string, got 1"


def test_what_no_decoder_gives_is_refused():
    for value in (b"a", (), 1j):
        assert check(ANY, value, automata) is not None


def test_numbers_out_of_range():
    huge = float("1e400")
    assert (
        check(INTEGER, huge, automata)
        == "at arguments: expected an integer, got a number out of range"
    )
    assert (
        check([12, 14, 5], huge, automata)
        == "at arguments: expected at most 5, got a number out of range"
    )
    assert (
        check([12, 17, 2], huge, automata)
        == "at arguments: expected a multiple of 2, got a number out of range"
    )
    assert (
        check([12, 13, 5], huge - huge, automata)
        == "at arguments: expected at least 5, got a number out of range"
    )
    assert (
        check(STRING, 1 << 64, automata)
        == "at arguments: expected a string, got an integer beyond 64 bits"
    )
    assert (
        check(STRING, (1 << 64) - 1, automata)
        == "at arguments: expected a string, got 18446744073709551615"
    )


def test_a_value_as_deep_as_a_board_reads_is_checked_and_one_too_deep_never_fits():
    tree = [None, [ARRAY, 5, [-1]]]
    for depth in range(READ_BY_BOARDS - 1, READ_BY_BOARDS + 1):
        assert check(tree, nested(depth - 1, []), automata) is None
        assert check(
            tree, nested(depth, 5), automata
        ) == "at arguments%s: expected an array, got 5" % ("[0]" * depth)
    for depth in (33, 40, 200):
        assert check(tree, nested(depth, []), automata) in (
            TOO_DEEP_HERE,
            "at arguments: expected at most 32 levels of nesting, got more",
        )


def test_depth_of_a_value_at_its_bound():
    tree = [None, [ARRAY, 5, [-1]]]
    assert (
        check(tree, nested(31, []), automata) is None
        and check(tree, nested(30, []), automata) is None
    )
    problem = "at arguments: expected at most 32 levels of nesting, got more"
    assert check(tree, nested(32, []), automata) == problem
    for program in ([ANY, 7, 1], [ANY, 18, [1]]):
        assert check(program, nested(31, []), automata) != problem
        assert check(program, nested(33, []), automata) == problem


def test_steps_at_their_bound():
    program = [ARRAY, 5, [[INTEGER, 13, 0]]]  # one step for the array, one for each item
    fits = [1] * (MAX_STEPS - 1)
    assert check(program, fits, automata) is None
    fits.append(1)
    assert (
        check(program, fits, automata)
        == "at arguments: expected a value that is checked in 50000 steps, got more"
    )


def test_alternatives_within_recursion_never_fit():
    tree = [None, [ANY, 20, [[ARRAY, 5, [-1], 8, 1], [ARRAY, 5, [-1], 9, 1], 1]]]
    for depth in (READ_BY_BOARDS, 30):
        assert check(tree, nested(depth, 5), automata) in (
            TOO_DEEP_HERE,
            "at arguments: expected a value that is checked in 50000 steps, got more",
        )


def test_alternatives_within_recursion_end():
    tree = [None, [ANY, 20, [[ARRAY, 5, [-1], 8, 1], [ARRAY, 5, [-1], 9, 1], 1]]]
    problem = check(tree, nested(30, 5), automata)
    assert problem == "at arguments: expected a value that is checked in 50000 steps, got more", (
        problem
    )


def test_combined_schemas_at_their_bound():
    for count, fits in ((MAX_NESTED - 1, True), (MAX_NESTED, True), (MAX_NESTED + 1, False)):
        table = [None]
        for at in range(1, count + 1):
            table.append([ANY, 19, [-at - 1]])
        table.append(STRING)
        problem = check(table, "a", automata)
        # A runtime with a small stack may end sooner, but never says yes.
        assert (problem is None) == fits or "no deeper than this device" in problem, (
            count,
            problem,
        )


def test_half_of_a_surrogate_pair_fits_no_pattern_and_no_denial_of_one():
    try:
        half = "\ud800"
        half.encode()
    except UnicodeError:
        match = [ANY, 10, [0, "text"]]
        for program in (match, [ANY, 22, match], [OBJECT, 0, [0, ANY, [0, ANY]]]):
            value = {half: 1} if program[0] == OBJECT else half
            assert (
                check(program, value, automata)
                == "at arguments: expected text, got half of a surrogate pair"
            )


def test_a_damaged_automaton_is_an_error_and_no_answer():
    try:
        check([STRING, 10, [0, "text"]], "a", lambda index: b"\x00")
    except ImageError:
        pass
    else:
        raise AssertionError("no ImageError")


def test_what_only_messages_need_is_loaded_for_them_and_can_be_dropped():
    names = ("clawlite.core.formats.violation", "clawlite.core.base.jsonvalue")
    program = [OBJECT, 0, [1, 0, 0, "a", [INTEGER, 13, 1]]]
    for _ in range(2):
        assert check(program, {"a": 0}, automata) == "at arguments.a: expected at least 1, got 0"
        for name in names:
            del sys.modules[name]
            package, _, short = name.rpartition(".")
            delattr(sys.modules[package], short)
        assert check(program, {"a": 1}, automata) is None
        assert not [name for name in names if name in sys.modules]
