"""Text that is no Unicode, on every runtime the same."""

from clawlite.core.base.mended import mended_json, mended_text


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
        assert mended_text(data) == text, data


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
        assert mended_json(data) == expected, data
    same = b'{"a":"\\n"}'
    assert mended_json(same) is same
