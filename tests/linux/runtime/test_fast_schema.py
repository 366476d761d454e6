"""Members in one loop: what it proves, ``check`` would have said; what it cannot prove is left
to ``check``.
"""

from random import Random

from schema_vectors import PROGRAMS, TABLES

from clawlite.core.base.errors import ImageError
from clawlite.core.formats.automaton import search
from clawlite.core.formats.schema import check
from clawlite.host.schema.automata import compile_pattern
from clawlite.linux.runtime.fast_schema import proof

STRING, BOOLEAN, INTEGER, NUMBER, ANY, OBJECT = 1, 2, 4, 12, 127, 16
MEMBERS = [
    STRING,
    BOOLEAN,
    INTEGER,
    NUMBER,
    ANY,
    64,
    [STRING, 11, 1],
    [STRING, 12, 3],
    [STRING, 11, 1, 12, 3],
    [INTEGER, 13, 0, 14, 100],
    [NUMBER, 13, 0.5],
    [NUMBER, 14, 2],
    [STRING, 18, ["a", "bb"]],
    [ANY, 18, ["abc", 100, None]],
    [INTEGER, 13, -1],
    [INTEGER, 13, 1 << 70],
    [NUMBER, 15, 0],
    [NUMBER, 15, 0.5, 16, 2.5],
    [INTEGER, 15, 0, 16, 101],
    [INTEGER, 13, 0, 15, 0],
    [NUMBER, 14, 1, 16, 1],
    [STRING, 10, [0, "text"]],
    [STRING, 12, 3, 10, [1, "letters"]],
]
VALUES = [
    "",
    "a",
    "bb",
    "abc",
    "abcd",
    "\u00e9\u00e9\u00e9",
    True,
    False,
    0,
    1,
    100,
    101,
    -1,
    0.5,
    1.0,
    2.5,
    None,
    [],
    {},
    [1],
    {"a": 1},
    1 << 64,
    1 << 71,
]


PLAIN_TEXT = compile_pattern("^[^\\x00]*$")  # of exec-shell
PATTERNS = [
    PLAIN_TEXT,
    compile_pattern("^[a-z]*$"),
    compile_pattern("^[a-z]+$"),
    compile_pattern("a.b"),
]


def automata(index):
    return PATTERNS[index]


def test_what_is_proven_fits():
    random = Random(3)
    proven = refused = 0
    for _ in range(4000):
        names = ["a", "b", "c", "d"][: random.randrange(5)]
        members = []
        for name in names:
            members += [name, random.choice(MEMBERS)]
        program = [
            OBJECT,
            0,
            [random.randrange(len(names) + 1), random.choice([0, ANY]), 0] + members,
        ]
        fits = proof(program, automata)
        for _ in range(20):
            value = {
                name: random.choice(VALUES)
                for name in ["a", "b", "c", "d", "e"]
                if random.random() < 0.6
            }
            wrong = check(program, value, automata)
            if fits(value):
                assert wrong is None, (program, value)
                proven += 1
            # an integer that is written 1.0, one of several values that is no string, and nothing
            # else
            elif wrong is None:
                assert any(type(item) is float or item in (100, None) for item in value.values()), (
                    program,
                    value,
                )
            else:
                refused += 1
    assert proven > 10000 and refused > 10000


def test_each_bound_one_below_at_and_above():
    for member, good, bad in (
        ([STRING, 11, 2], "ab", "a"),
        ([STRING, 12, 2], "ab", "abc"),
        ([INTEGER, 13, 5], 5, 4),
        ([INTEGER, 14, 5], 5, 6),
        ([NUMBER, 13, 0.5], 0.5, 0.4),
        ([NUMBER, 15, 0], 5e-324, 0),
        ([NUMBER, 15, 0], 1, 0.0),
        ([INTEGER, 15, 5], 6, 5),
        ([NUMBER, 16, 300], 299.99999999999994, 300),
        ([INTEGER, 16, 1 << 53], (1 << 53) - 1, 1 << 53),
        ([STRING, 10, [0, "x"]], "rm -rf *", "a\0b"),
        ([STRING, 10, [0, "x"]], "", "\ud800"),
        ([STRING, 10, [1, "x"]], "az", "a-"),
        ([STRING, 18, ["a"]], "a", "b"),
        (BOOLEAN, True, 1),
        (INTEGER, 1, True),
        (NUMBER, 1.5, True),
    ):
        fits = proof([OBJECT, 0, [1, 0, 0, "x", member]], automata)
        assert (
            fits({"x": good})
            and not fits({"x": bad})
            and not fits({})
            and not fits({"x": good, "y": 1})
        ), member
        assert proof([OBJECT, 0, [0, ANY, 0, "x", member]], automata)({"y": 1})


def test_what_is_not_plain_has_no_proof():
    for node in (
        -1,
        [STRING, 10, [2, "x"]],
        [STRING, 10, [3, "x"]],
        [INTEGER, 17, 2],
        [INTEGER, 15, (1 << 53) + 1],
        3,
        0,
        32,
        [OBJECT, 0, [0, 127, 0]],
        [STRING, 18, ["a"], 11, 1],
        [32, 8, 1],
        [127, 11, 1],
    ):
        assert proof([OBJECT, 0, [0, 0, 0, "x", node]], automata) is None, node
    for program in (
        127,
        16,
        [127, 0, [0, 0, 0]],
        [OBJECT, 1, ["a"]],
        [OBJECT, 0, [0, 0, [0, 1]]],
        [OBJECT, 0, [0, 1, 0]],
        [OBJECT, 0, [0, 0, 0], 3, 1],
        [None, [OBJECT, 0, [0, 0, 0]]],
    ):
        assert proof(program, automata) is None, program


def test_vectors_of_check():
    """Compiled schemas: where one is plain, nothing is proven that ``check`` refuses."""
    tables = [bytes.fromhex(table) for table in TABLES]
    plain = 0
    for name, _, program, cases in PROGRAMS:
        fits = proof(program, tables.__getitem__)
        for value, expected in cases:
            if fits and type(value) is dict:
                plain += 1
                assert not fits(value) or expected is None, (name, value)
    assert plain


def test_a_text_that_starts_where_it_ends_is_what_the_automaton_matches():
    """The bytes that leave an automaton in its first state prove a match, for each automaton
    that has such bytes, and nothing else.
    """
    random = Random(4)
    fits = proof([OBJECT, 0, [1, 0, 0, "x", [STRING, 10, [0, "text"]]]], automata)
    proven = 0
    for _ in range(3000):
        text = "".join(random.choice("ab\0\n é~\x7f") for _ in range(random.randrange(6)))
        if fits({"x": text}):
            proven += 1
            assert search(PLAIN_TEXT, text.encode()), text
        else:
            assert "\0" in text or not text.isascii(), text
    assert proven > 500


def test_a_damaged_automaton_proves_nothing():
    def damaged(index):
        raise ImageError("automaton %d" % index)

    assert proof([OBJECT, 0, [1, 0, 0, "x", [STRING, 10, [0, "text"]]]], damaged) is None
