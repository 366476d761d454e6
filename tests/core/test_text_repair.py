"""Text that is no Unicode, on every runtime the same."""

from clawlite.core.base.text_repair import mend_json, mend_text, mend_value

try:  # MicroPython takes such a str for bytes that it is made of
    "\udce9".encode()
    _MAKES_HALVES = False
except UnicodeError:
    _MAKES_HALVES = True


def test_bytes_that_belong_to_no_character_are_replaced():
    for data, text in (
        (b"caf\xe9.txt", "caf\ufffd.txt"),
        (b"a\xc3", "a\ufffd"),
        (b"\xf0\x9f\x8cX", "\ufffd\ufffd\ufffdX"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xc0\x80", "\ufffd\ufffd"),
        (b"\xff", "\ufffd"),
        ("Gr\u00fc\u00dfe \U0001f331".encode(), "Gr\u00fc\u00dfe \U0001f331"),
        (b"", ""),
    ):
        assert mend_text(data) == text, data


def test_half_of_a_pair_is_replaced_and_nothing_else():
    for data, expected in (
        (b'"\\ud83c"', b'"\\ufffd"'),
        (b'"\\udf31"', b'"\\ufffd"'),
        (b'"\\ud83c\\udf31"', b'"\\ud83c\\udf31"'),
        (b'"\\ud83c\\ud83c\\udf31"', b'"\\ufffd\\ud83c\\udf31"'),
        (b'"\\\\ud83c"', b'"\\\\ud83c"'),
        (b'"\\\\\\uD83C"', b'"\\\\\\ufffd"'),
        (b'"\\ud83', b'"\\ud83'),
        (b'"\\u"', b'"\\u"'),
        (b'"a\xff"', '"a\ufffd"'.encode()),
    ):
        assert mend_json(data) == expected, data
    same = b'{"a":"\\n"}'
    assert mend_json(same) is same


def test_texts_in_a_value_are_mended():
    plain = {"a": ["b", 1, None, 2.5, True], "\u00e9": {"c": "\U0001f331"}}
    assert mend_value(plain) == plain
    half = b"\xed\xb3\xa9".decode("utf-8", "surrogatepass") if _MAKES_HALVES else ""
    assert mend_value({"n": ["caf" + half], half: 1}) == (
        {"n": ["caf\ufffd"], "\ufffd": 1} if half else {"n": ["caf"], "": 1}
    )
