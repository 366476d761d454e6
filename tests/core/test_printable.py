"""What a stranger chose stands on one line, and every character of it is visible."""

from clawlite.core.base.printable import (
    escape_ends,
    escape_line,
    escape_name,
    join_lines,
    printable,
)
from clawlite.core.policy.approval import Approval, make_denial, make_timeout_error, question
from clawlite.core.protocol.console import error_text


def test_a_line_stays_one_line():
    for text, shown in (
        ("", ""),
        ("water", "water"),
        ("ada\n[y/N] y\r\n", "ada\\n[y/N] y\\x0d\\n"),
        ("a\tb\x0bc\x0cd", "a\\tb\\x0bc\\x0cd"),
        ("a\x1b[2J\x00\x7f\x9b", "a\\x1b[2J\\x00\\x7f\\x9b"),
        ("a\x85b\u2028c\u2029d\x1ee", "a\\x85b\\u2028c\\u2029d\\x1ee"),
        ("\u202egpj.\u2066x\u2069\u200e\u061c", "\\u202egpj.\\u2066x\\u2069\\u200e\\u061c"),
        ("a\u200b\u200d\u2060\ufeff\ufe0fb", "a\\u200b\\u200d\\u2060\\ufeff\\ufe0fb"),
        ("\ue000\uf8ff\U000f0000\U0010fffd", "\\ue000\\uf8ff\\U000f0000\\U0010fffd"),
        ("a\xa0\u3000b", "a\\xa0\\u3000b"),
        ("a" + " " * 70 + "b", "a<70 blanks>b"),
        ("\u6c34 na\u00efve \u20ac \U0001f331", "\u6c34 na\u00efve \u20ac \U0001f331"),
        (5, "5"),
    ):
        assert escape_line(text) == shown, repr(escape_line(text))


def test_halves_of_pairs_are_written_out():
    assert escape_line("a" + chr(0xD800) + "b" + chr(0xDFFF)) == "a\\ud800b\\udfff"


def test_a_stack_of_marks_is_cut():
    name = "Vie\u0302\u0323t \u0928\u093f\u0916\u093f\u0932"  # Vietnamese and Hindi stay
    assert escape_line(name) == name
    for mark in (0x301, 0x489, 0x5B0, 0x64B, 0xE47, 0x20DD, 0xFE26, 0x1AB0, 0x1D167):
        shown = escape_line("e" + chr(mark) * 30)
        assert shown.startswith("e" + chr(mark) * 3 + "\\") and shown.count(chr(mark)) == 3
        assert printable(("e" + chr(mark) * 30).encode()) == shown.encode()


def test_a_long_line_is_cut_in_its_middle():
    for most in (60, 100, 200):
        for size in (most - 1, most):
            assert escape_line("x" * size, most) == "x" * size
        for text in ("begins" + "x" * 5000 + "ends", "begins" + "\x1b" * 5000 + "ends"):
            line = escape_line(text, most)
            assert len(line) <= most, (most, line)
            assert line.startswith("begins") and line.endswith("ends")
            assert "<... 5010 characters in all ...>" in line
        line = escape_line("\u200b" * most, most)  # short, but its escapes are not
        assert len(line) <= most and "<... %d characters in all ...>" % most in line


def test_a_name_is_one_word():
    for text, shown in (
        ("water", "water"),
        ("telegram:-100", "telegram:-100"),
        ("", '""'),
        ("x  refused", '"x<2 blanks>refused"'),
        ('a"b', '"a\\"b"'),
        ("a\nb", "a\\nb"),
    ):
        assert escape_name(text) == shown, shown


def test_a_line_with_columns_keeps_them_and_stays_one():
    assert escape_ends("a       b\tc\nd\u202e") == "a       b\\tc\\nd\\u202e"
    assert join_lines(["a  b", "c\nd"]) == "a  b\nc\\nd"


def test_no_name_forges_a_question():
    name = "ada asked for it\n  (60 s, then denied)\n[y/N] y\nApprove blink()?\n  ada"

    class Tool:
        name, flags = "x(a=1)?\n[y/N] y\nApprove y", 0

    approval = Approval(Tool(), {"a\nb": "c\u2028d"}, None, (True, "expects\n[y/N] "))
    approval.asker = name
    lines = question(approval, 0).split("\n")
    assert len(lines) == 3 and lines[2] == "  (0 s, then denied)", lines
    assert lines[0].startswith("Approve ") and lines[0].endswith(")?")
    assert lines[1].endswith('[y/N] y\\nApprove blink()?\\n ada" asked for it') or (
        '"ada asked for it\\n' in lines[1]
    )
    for kind in (make_denial(approval, "because\nof"), make_timeout_error(approval)):
        assert "\n" not in error_text(kind)
