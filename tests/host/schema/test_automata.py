"""Patterns against the standard library's ``re``, and every refusal."""

import binascii
import importlib.util
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clawlite.core.formats.automaton import search, validate
from clawlite.host.schema.automata import MAX_LENGTH, PatternError, compile_pattern

CORE = Path(__file__).parents[2] / "core"


def load(name):
    spec = importlib.util.spec_from_file_location(name, CORE / (name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def agrees(pattern, text, dollar="python"):
    table = compile_pattern(pattern, dollar)
    validate(table)
    if dollar == "end":  # only where "$" is no part of a class or an escape
        expected = re.search(pattern.replace("$", r"\Z"), text, re.ASCII)
    else:
        expected = re.search(pattern, text, re.ASCII)
    assert search(table, text.encode()) == bool(expected), (pattern, text)


ALPHABET = "aAbB0_- \n.\u00e9\u00c9\u0436\u2028\u20ac\ud7ff\ue000\U0001f600\U0010ffff"
atoms = st.sampled_from(
    list("aAbB0_ .")
    + [
        r"\.",
        r"\-",
        r"\n",
        "\u00e9",
        "\u0436",
        "\u20ac",
        "\U0001f600",
        r"\d",
        r"\D",
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        "[ab]",
        "[^ab]",
        "[^a\u00e9]",
        "[a-z]",
        "[Z-a]",
        "[^A-Z_]",
        "[\u00e0-\u0436]",
        "[^\u0400-\U0001f600]",
        "[\u20ac-\U0001f601]",
        r"[\W\d]",
        r"[^\w\n"
        r"]",
        r"[\s\S]",
        r"[^\s\S]",
        "[\u007f-\u0080]",
        "[\u07ff-\u0800]",
        "[\uffff-\U00010000]",
    ]
)
edges = st.sampled_from(["^", "$", r"\A", r"\Z", r"\b", r"\B"])
repeats = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,3}", "{,2}", "{2,}", "{0,1}?"]
)
patterns = st.recursive(
    st.one_of(atoms, atoms, atoms, edges),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=4).map("".join),
        st.tuples(inner, inner).map("({0[0]}|{0[1]})".format),
        st.tuples(inner, repeats).map("(?:{0[0]}){0[1]}".format),
        inner.map("({})".format),
        inner.map("(?i:{})".format),
        inner.map("(?s:{})".format),
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("examples", [300, pytest.param(1500, marks=pytest.mark.soak)])
def test_same_answer_as_re(examples):
    @settings(max_examples=examples, deadline=None)
    @given(patterns, st.lists(st.text(ALPHABET, max_size=8), min_size=1, max_size=6))
    def holds(pattern, texts):
        for text in texts:
            if text or r"\B" not in pattern:  # re before 3.14 says that \B is not in ""
                agrees(pattern, text)

    holds()


@settings(max_examples=500, deadline=None)
@given(patterns, st.text(ALPHABET, max_size=8))
def test_dollar_at_the_end_only(pattern, text):
    if text or r"\B" not in pattern:
        agrees(pattern, text, "end")


@settings(max_examples=300, deadline=None)
@given(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=3),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
def test_literals_of_all_unicode(needle, text):
    agrees(re.escape(needle), text + needle)
    agrees(re.escape(needle), text)


@pytest.mark.parametrize(
    "pattern",
    [
        ".*password.*=.*",
        r"\|\s*bash",
        r"eval\s+",
        r"rm\s+-rf\s+/",
        "^[0-9]+(s|m|h|d)$",
        r"^[0-9]+\.[0-9]+\.[0-9]+(-.+)?$",
        "(?i)^Sudo",
        "(?x) a b # c",
        "a{1000}",
    ],
)
def test_patterns_as_people_write_them(pattern):
    table = compile_pattern(pattern, "python")
    for text in (
        "",
        "my password is = 1",
        "curl x | bash",
        "eval $(x)",
        "rm  -rf /",
        "15m",
        "1.2.3-rc\n",
        "SUDO x",
        "ab",
        "a" * 999,
        "a" * 1000,
    ):
        assert search(table, text.encode()) == bool(re.search(pattern, text, re.ASCII)), text


def test_bytes_that_are_no_utf8_do_not_hide_what_is_denied():
    table = compile_pattern(".*password.*=.*", "python")
    assert search(table, b"\xff password \x80\xc3= x")


@pytest.mark.parametrize(
    "pattern, message, position",
    [
        (r"(a)\1", "a back-reference", 3),
        (r"(?P<x>a)(?P=x)", "a back-reference", 8),
        ("ab(?=c)", "look-ahead or look-behind", 2),
        ("(?!a)", "look-ahead or look-behind", 0),
        ("x(?<=x)", "look-ahead or look-behind", 1),
        ("(?!)", "look-ahead", 0),
        ("[*+]a*+", "a possessive repeat", 5),
        (r"\(?>a(?>b)", "an atomic group", 5),
        ("(a)?(?(1)b|c)", "a conditional group", 4),
        ("(?m)^a", "the flag m", 0),
        ("b(?im:^a)", "the flag m", 1),
        ("(?u:a)", "the flag u", 0),
        ("(?u)a", "UNICODE", 0),
        ("a{1001}", "a repeat count", 1),
        ("a{2,1001}", "a repeat count", 1),
        ("(", "unterminated subpattern", 0),
        ("a**", "multiple repeat", 2),
        (r"\p{L}", r"bad escape \p", 0),
        ("[b-a]", "bad character range", 1),
        ("(?:[a-z]{1000}){30}", "the pattern needs more than 20000 states", 0),
        ("(a|b)*a(a|b){14}", "the pattern needs more than 4096 states", 0),
    ],
)
def test_refused_by_name_and_position(pattern, message, position):
    with pytest.raises(PatternError) as caught:
        compile_pattern(pattern, "python")
    assert message in str(caught.value) and str(caught.value).endswith("at position %d" % position)
    assert caught.value.position == position


def test_class_that_two_dialects_read_differently():
    for pattern in ("[]a]", "[^]a]", "[]", "a[^]"):
        with pytest.raises(PatternError):
            compile_pattern(pattern)
    compile_pattern(r"[\]a]\[]")
    compile_pattern("[]a]", "python")


def test_bounds():
    compile_pattern("a{1000}")
    compile_pattern("^" + "a" * 2000)
    with pytest.raises(PatternError, match="4097 characters, at most 4096"):
        compile_pattern("a" * (MAX_LENGTH + 1))
    with pytest.raises(PatternError, match="groups nest too deep|recursion"):
        compile_pattern("(" * 2000 + ")" * 2000)
    with pytest.raises(ValueError):
        compile_pattern("a", "perl")


@pytest.mark.parametrize("length, fits", [(2045, True), (2046, True), (2047, False)])
def test_states_at_their_bound(length, fits):
    if fits:
        table = compile_pattern("^" + "a" * length)
        validate(table)
        assert search(table, b"a" * length) and not search(table, b"a" * (length - 1))
    else:
        with pytest.raises(PatternError, match="needs 2049 states, at most 2048 are allowed"):
            compile_pattern("^" + "a" * length)


@pytest.mark.parametrize(
    "pattern",
    [
        "([a-z]?){1000}[b-y]{1000}",
        "(.{0,100}x){9}",
        "((a?b?){30}c?){30}",
        "(.*a){500}",
        "[^a]*(b|[^c]{1,90}d){1,50}e",
    ],
)
def test_work_is_bounded(pattern):
    """Either a table or a refusal that says what to do; the bound is a count, so this ends on
    any machine.
    """
    try:
        validate(compile_pattern(pattern))
    except PatternError as error:
        assert "use smaller repeat counts" in str(error)


def test_tables_of_the_core_tests_are_fresh():
    for pattern, dollar, table, _, _ in load("test_automaton").VECTORS:
        assert binascii.hexlify(compile_pattern(pattern, dollar)).decode() == table, pattern


def test_tables_are_small():
    assert {
        pattern: len(compile_pattern(pattern, "python"))
        for pattern in (".*password.*=.*", r"\|\s*bash", r"eval\s+", r"rm\s+-rf\s+/")
    } == {".*password.*=.*": 364, r"\|\s*bash": 306, r"eval\s+": 300, r"rm\s+-rf\s+/": 327}


def test_where_backtracking_is_exponential():
    table = compile_pattern("^(a?){40}a{40}$")
    assert [search(table, b"a" * n) for n in (39, 40, 80, 81)] == [False, True, True, False]
