"""What a person reads has nothing in it that cannot be seen: the table of the core against
Python's own, and what ``check`` prints.
"""

import unicodedata

from agents import clawlite

from clawlite.core.base.escapes import escaped
from clawlite.host.projects.new import new


def test_whatever_is_unseen_for_unicode_is_written_out():
    for c in range(0x110000):
        if 0xD800 <= c <= 0xDFFF or c in (9, 10):
            continue
        category = unicodedata.category(chr(c))
        unseen = category in ("Cc", "Cf", "Zl", "Zp") or "VARIATION SELECTOR" in unicodedata.name(
            chr(c), ""
        )
        done = escaped(chr(c).encode(), True) != chr(c).encode()
        assert done or not unseen and (category != "Zs" or c == 32), hex(c)
        # fillers, of which Unicode says that they are letters
        if done and not unseen and category not in ("Zs", "Cn", "Mn"):
            assert (
                "FILLER" in unicodedata.name(chr(c)) or c in (0x2800,) or 0x13430 <= c <= 0x1345F
            ), hex(c)


def test_a_rule_id_drives_no_terminal(tmp_path):
    new(str(tmp_path / "p"), offline=True)
    policy = tmp_path / "p/policy.yaml"
    policy.write_text(
        policy.read_text() + '    - { id: "late\\x1b[2J\\u202e\\u200b\\U000e0041", '
        'action: "deny", scope: "all" }\n'
    )
    for verb in ("check", "build"):
        done = clawlite(verb, "p", cwd=tmp_path)
        assert done.returncode == 0
        assert "rule late\\x1b[2J\\u202e\\u200b\\U000e0041 never decides" in done.stderr
