"""What a person reads has nothing in it that cannot be seen: the table of the core against
Python's own, and what ``check`` prints.
"""

import json
import unicodedata

import pytest
from agents import clawlite

from clawlite.core.base.escapes import escape, is_mark
from clawlite.host.base.problems import enquote
from clawlite.host.projects.new import new
from clawlite.linux.io.jsontext import document, dumps


def characters():
    """Yield (code, category, name) of every character; of letters without case, of private use and
    of what is not assigned, a million, those at the edges of their blocks, and fillers.
    """
    categories = [unicodedata.category(chr(c)) for c in range(0x110000)] + [""]
    for c, category in enumerate(categories[:-1]):
        name = unicodedata.name(chr(c), "")
        inside = categories[c - 1] == category == categories[c + 1]
        if inside and category in ("Lo", "Co", "Cn", "Cs") and "FILLER" not in name:
            continue
        yield c, category, name


def test_whatever_is_unseen_for_unicode_is_written_out():
    for c, category, name in characters():
        if category == "Cs" or c in (9, 10):
            continue
        unseen = category in ("Cc", "Cf", "Co", "Zl", "Zp") or "VARIATION SELECTOR" in name
        done = escape(chr(c).encode(), True) != chr(c).encode()
        assert done or not unseen and (category != "Zs" or c == 32), hex(c)
        # fillers, of which Unicode says that they are letters
        if done and not unseen and category not in ("Zs", "Cn", "Mn", "Co"):
            assert "FILLER" in name or c in (0x2800,) or 0x13430 <= c <= 0x1345F, hex(c)


def test_marks_are_those_of_unicode():
    missing = 0
    for c, category, _ in characters():
        if category in ("Mn", "Me") and not is_mark(c):
            missing += 1  # newer than the table, which is of Unicode 14
        assert not is_mark(c) or category in ("Mn", "Me", "Mc", "Cn", "Cf", "Sk"), hex(c)
    assert missing == 0 or unicodedata.unidata_version > "14.0.0" and missing < 100


def test_a_rule_id_drives_no_terminal(tmp_path):
    new(str(tmp_path / "p"), offline=True)
    policy = tmp_path / "p/policy.yaml"
    policy.write_text(
        policy.read_text() + '    - { id: "late\\x1b[2J\\u202e\\u200b\\U000e0041", '
        'action: "deny", scope: "all" }\n'
    )
    done = clawlite("check", "p", "--json", cwd=tmp_path)
    assert "\u202e" not in done.stdout and "\u200b" not in done.stdout
    assert json.loads(done.stdout)["shadowed"][0]["id"] == "late\x1b[2J\u202e\u200b\U000e0041"
    for verb in ("check", "build"):
        done = clawlite(verb, "p", cwd=tmp_path)
        assert done.returncode == 0
        assert "rule late\\x1b[2J\\u202e\\u200b\\U000e0041 never decides" in done.stderr


@pytest.mark.parametrize(
    "verb", ["check", "inspect", "run", "ask", "trace", "audit", "boards", "logs"]
)
def test_a_word_of_the_command_drives_no_terminal(tmp_path, verb):
    done = clawlite(verb, *["hello"] * (verb == "ask"), "no\x1b[31m\u202e", cwd=tmp_path)
    assert done.returncode and "\\x1b[31m\\u202e" in done.stderr
    assert "\x1b" not in done.stderr and "\u202e" not in done.stderr


def test_a_document_for_a_person_hides_nothing_and_means_the_same():
    value = {"\u202e": ["\x9b2J", "\u200b\U000e0041\ufeff", "\U0001f600 \u00e4", 5, None]}
    text = document(value)
    assert text == (
        '{"\\u202e":["\\u009b2J","\\u200b\\udb40\\udc41\\ufeff","\U0001f600 \u00e4",5,null]}'
    )
    assert json.loads(text) == json.loads(dumps(value)) == value
    assert document([1, "plain"]) == dumps([1, "plain"])


def test_what_was_found_is_written_out_as_python_would():
    assert enquote("a\x1b\u202e\U000e0041b") == '"a\\x1b\\u202e\\U000e0041b"'
