"""JSON for a terminal: the same value, and nothing that drives the terminal or covers its lines."""

from clawlite.protocols.base.json_escapes import escape_json


def test_what_hides_is_escaped_and_all_else_stays():
    for text, shown in (
        ("", ""),
        ('{\n "a": 1}', '{\n "a": 1}'),
        ('"na\u00efve \u6c34 \U0001f331"', '"na\u00efve \u6c34 \U0001f331"'),
        (
            '"\x7f\x9b\x85\u2028\u202e\u200b\ue000"',
            '"\\u007f\\u009b\\u0085\\u2028\\u202e\\u200b\\ue000"',
        ),
        ('"\U000e0041"', '"\\udb40\\udc41"'),
        ('"e' + "\u0301" * 5 + '"', '"e' + "\u0301" * 3 + "\\u0301" * 2 + '"'),
    ):
        assert escape_json(text) == shown, (text, escape_json(text))
