"""yamltext.read: the YAML 1.2 core schema with positions, and one clear sentence for everything
else.
"""

import json
import random
import tracemalloc

import pytest
import yaml

from clawlite.host.base import document, yaml_text
from clawlite.host.base.problems import ManifestErrors

MANIFEST = b"""\
claw: "0.3.0"
kind: Claw
metadata: { name: greenhouse, labels: { room: "4" } }  # a comment
spec:
  identity:
    inline:
      personality: |
        You water plants: gently.
        "Never" more than once.
  tools:
    - &soil
      inline: {name: soil, description: 'it''s dry', input_schema: {type: object}}
    - *soil
"""


def read(text, name="claw.yaml"):
    return yaml_text.read(text if isinstance(text, bytes) else text.encode(), name)


def refused(text, name="claw.yaml"):
    with pytest.raises(ManifestErrors) as caught:
        read(text, name)
    assert len(caught.value.problems) == 1
    return caught.value.problems[0]


@pytest.mark.parametrize(
    "text, value",
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("y", "y"),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("FALSE", "FALSE"),
        ("null", None),
        ("~", None),
        ("", None),
        ("nil", "nil"),
        ("0777", 777),
        ("0o17", 15),
        ("0xfF", 255),
        ("-12", -12),
        ("+3", 3),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("5.", 5.0),
        ("1.0.0", "1.0.0"),
        ("'true'", "true"),
        ('"12"', "12"),
        ("0b1", "0b1"),
        ("=", "="),
        ("!!str 12", "12"),
        ("!!int 12", 12),
        ("! 12", "12"),
        ("!!float 1", 1.0),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_scalars_of_the_core_schema(text, value):
    found = read(f"a: {text}\n").data["a"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    "text, line, words",
    [
        ("a: 1\nb: 2\na: 3\n", 3, 'the key "a" is here twice; the first is on line 1'),
        ("a:\n\t- b\n", 2, "a tab stands where YAML wants spaces"),
        ("a: b: c\n", 1, 'a ":" is not allowed here'),
        ("a: [1, 2\n", 2, 'expected "," or "]"'),
        ("a: 'x\n", 2, "not closed"),
        ("a: @x\n", 1, "starts with a character that means something in YAML"),
        ("a: 1\n---\nb: 2\n", 2, "a second document begins here"),
        (
            "a: !!python/object:os.system x\n",
            1,
            'the tag "!!python/object:os.system" is not allowed',
        ),
        ("a: !mine x\n", 1, "is not allowed"),
        ("a: !!timestamp 2026-01-01\n", 1, "is not allowed"),
        ("a: !!int x\n", 1, "is no !!int"),
        ("a: !!map [x]\n", 1, "is not allowed"),
        ("a: *b\n", 1, "has no anchor"),
        ("a: &a [*a]\n", 1, "contains itself"),
        ("a: &x {b: 1}\nc:\n  <<: *x\n", 3, "merge keys"),
        ("1: x\n", 1, "keys are text"),
        ("true: x\n", 1, "keys are text"),
        ("? [a]\n: x\n", 1, "keys are text"),
        ("~: x\n", 1, "keys are text"),
        ("a: .nan\n", 1, "no number that JSON has"),
        ("a: -.inf\n", 1, "no number that JSON has"),
        ("a: 1e999\n", 1, "too large"),
        ("a: 9223372036854775808\n", 1, "too large for 64 bits"),
        ("a: " + "9" * 5000 + "\n", 1, "too large for 64 bits"),
        ("a: b\n c\x07\n", 2, "control character"),
        ("a: x\ufeffy\n", 1, "control character"),
    ],
)
def test_one_sentence_with_its_line(text, line, words):
    problem = refused(text)
    assert words in problem.text() and problem.line == line and problem.hint


def test_bytes_that_are_not_utf8():
    assert (
        refused(b"a: 1\nb: \xff\n").text()
        == "claw.yaml:2: not UTF-8: byte 0xff at offset 8 - save the file as UTF-8"
    )
    assert refused("a: 1".encode("utf-16")).line == 1


def test_positions_of_values_and_keys():
    found = read(MANIFEST)
    assert found.where(("metadata", "labels", "room")) == ("claw.yaml", 3)
    assert found.where(("metadata", "labels", "room"), key=True) == ("claw.yaml", 3)
    assert found.where(("spec", "tools", 0, "inline", "name"))[1] == 12
    assert found.where(("spec", "tools", 1, "inline", "name"))[1] == 12, (
        "an alias shows where it was written"
    )
    assert found.where(("spec", "nope", 3)) == found.where(("spec",)), (
        "what is missing has the place of its parent"
    )
    assert found.data["spec"]["identity"]["inline"]["personality"].endswith(
        '"Never" more than once.\n'
    )


def test_json_is_strict_and_has_positions():
    found = read('{"a": [1, {"b":\t"\\ud83d\\ude00"}],\n "c": 1.5e1}', "claw.json")
    assert found.data == {"a": [1, {"b": "\U0001f600"}], "c": 15.0}
    assert found.where(("c",)) == ("claw.json", 2)
    assert found.where(("a", 1, "b"), True) == ("claw.json", 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        "{a: 1}",
        '{"a": 1,}',
        "[1,]",
        '{"a": NaN}',
        '{"a": 01}',
        '{"a": "\\ud83d"}',
        '{"a" 1}',
        "[1",
        "{",
        '"x',
        "nope",
        '{"a": 1} x',
        "[1e999]",
        "[9223372036854775808]",
        '["\t"]',
        "[-]",
        "[" * 33 + "]" * 33,
        '{"a": tru}',
        "[,]",
    ],
)
def test_json_that_is_none(text):
    problem = refused(text, "claw.json")
    assert problem.line == 1 and problem.hint


@pytest.mark.parametrize("opened, closed", [("[", "]"), ("{a: ", "}"), ("[&x ", "]")])
def test_depth_is_bounded(opened, closed):
    for depth, fits in ((31, True), (32, True), (33, False)):
        text = opened * depth + "1" + closed * depth
        assert fits == (read_or_none(text) is not None)
    assert refused("[" * 100_000).message == "nested deeper than 32 levels"


def test_depth_counts_through_aliases():
    halves = "a: &a " + "[" * 20 + "]" * 20 + "\nb: " + "[" * 15 + "*a" + "]" * 15
    assert refused(halves).message == "nested deeper than 32 levels"


def read_or_none(text):
    try:
        return read(text)
    except ManifestErrors:
        return None


def test_the_number_of_values_is_bounded_after_aliases():
    laughs = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"a{i}: &a{i} [" + ",".join([f"*a{i - 1}"] * 10) + "]\n" for i in range(1, 9)
    )
    assert "200,000" in refused(laughs).message
    tens = "a: &a [1,1,1,1,1,1,1,1,1]\nb: ["  # a list and its nine
    for aliases, fits in ((19_998, True), (19_999, False)):
        text = tens + "*a," * aliases + "]"  # of fewer bytes than values
        assert fits == (read_or_none(text) is not None)


def test_a_file_may_have_as_many_values_as_bytes():
    many = document.MAX_VALUES + 1
    assert len(read("[" + "1," * many + "]").data) == many
    assert len(read("[" + ",".join("1" * many) + "]", "a.json").data) == many


def test_the_size_is_bounded(monkeypatch):
    assert document.MAX_BYTES == 64 << 20
    monkeypatch.setattr(document, "MAX_BYTES", 1 << 16)
    head = "a: x #"
    for size, fits in (
        (document.MAX_BYTES - 1, True),
        (document.MAX_BYTES, True),
        (document.MAX_BYTES + 1, False),
    ):
        assert fits == (read_or_none(head + "-" * (size - len(head))) is not None)


def _damaged(seed: int, count: int):
    numbers = random.Random(seed)
    bits = [
        b"\t",
        b'"',
        b"'",
        b":",
        b"- ",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b"#",
        b"&a ",
        b"*a",
        b"!",
        b"|",
        b"?",
        b"\n",
        b"\r",
        b"---\n",
        b"\xe2\x80\xa8",
        b"\xc2\x85",
        b"\xef\xbb\xbf",
        b"<<",
    ]
    for _ in range(count):
        data = bytearray(MANIFEST)
        for _ in range(numbers.randint(1, 4)):
            spot, how = numbers.randrange(len(data) + 1), numbers.random()
            if how < 0.2:
                data = data[:spot] or bytearray(b"a")
            elif how < 0.5:
                data[spot % len(data)] ^= 1 << numbers.randrange(8)
            else:
                data[spot:spot] = numbers.choice(bits)
        yield bytes(data)


def _outcome(data: bytes, name: str):
    try:
        found = yaml_text.read(data, name)
        return found.data, [
            found.where(path) for path in (("spec",), ("metadata", "name"), ("spec", "tools", 1))
        ]
    except ManifestErrors as e:
        assert len(e.problems) == 1
        return str(e)


def test_damage_gives_a_result_or_one_problem_and_the_same_from_both_parsers(monkeypatch):
    cases = list(_damaged(1, 1500)) + [MANIFEST[:end] for end in range(len(MANIFEST))]
    fast = [_outcome(data, "claw.yaml") for data in cases]
    monkeypatch.setattr(yaml, "CSafeLoader", None, raising=False)
    assert [_outcome(data, "claw.yaml") for data in cases] == fast


def test_damaged_json_gives_a_result_or_one_problem():
    numbers, text = random.Random(3), json.dumps(yaml_text.read(MANIFEST, "a.yaml").data).encode()
    for end in range(len(text)):
        _outcome(text[:end], "a.json")
    for _ in range(2000):
        data = bytearray(text)
        for _ in range(3):
            data[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
        _outcome(bytes(data), "a.json")


@pytest.mark.parametrize(
    "text, line, said",
    [
        (
            "a:\n  b: 1\n c: 2\n",
            3,
            "the indentation does not fit the lines above: expected 2 spaces "
            "(line 2) or 0 (line 1), found 1",
        ),
        (
            "a:\n   b: 1\n\n  # more\n  c: 2\n",
            5,
            "the indentation does not fit the lines above: "
            "expected 3 spaces (line 2) or 0 (line 1), found 2",
        ),
        (
            "a:\n  - b: 1\n   c: 2\n",
            3,
            "the indentation does not fit the lines above: expected 4 "
            "spaces (line 2) or 2 (line 2), found 3",
        ),
        (
            "a:\n  b:\n    c: 1\n   d: 2\n",
            4,
            "the indentation does not fit the lines above: expected "
            "4 spaces (line 3) or 2 (line 2), found 3",
        ),
        ("a:\n  - 1\n  b: 2\n", 3, "the indentation does not fit the lines above"),
    ],
)
def test_an_indentation_that_does_not_fit_is_told_with_those_that_do(text, line, said):
    problem = refused(text)
    assert (problem.line, problem.message) == (line, said)


def test_what_is_open_is_told_with_its_line():
    assert (
        refused("a: { b: 1\nc: 2\nd: 3\n").hint == 'close the "{" of line 1'
        and refused("a:\n  - [1, 2\nc: 2\n").hint == 'close the "[" of line 2'
    )


def test_a_rule_takes_little_memory_beside_its_data():
    rule = '    - { id: "rule-%d", action: allow, scope: tool, match: { name: "tool-%d" } }\n'
    text = "spec:\n  rules:\n" + "".join(rule % (number, number) for number in range(2000))
    read("a: 1")  # imports
    tracemalloc.start()
    try:
        found = read(text)
        with_lines = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert with_lines < 2000 * 1100  # 900 here; a file may have 100,000 rules
    assert found.where(("spec", "rules", 1999, "match", "name")) == ("claw.yaml", 2002)
