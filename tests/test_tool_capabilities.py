"""What the sources of the tool part ask for stands in one table, and each row names a test that is
there (tests/tool_capabilities.toml).
"""

import re
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = tomllib.loads((TESTS / "tool_capabilities.toml").read_text())


def rows() -> list:
    """Return (source, section, capability, file, name of the test)."""
    found = []
    for source, sections in TABLE.items():
        for section, capabilities in sections.items():
            for capability, test in capabilities.items():
                found.append((source, section, capability, *test.split("::")))
    return found


def test_each_capability_names_a_test_that_is_there():
    lacking = []
    for source, section, capability, file, name in rows():
        path = TESTS / file
        text = path.read_text() if path.is_file() else ""
        if not re.search(r"^(async )?def %s\(" % re.escape(name), text, re.MULTILINE):
            lacking.append(f"{source}, {section}, {capability}: {file}::{name}")
    assert not lacking, "\n".join(lacking)


def test_one_test_holds_one_capability():
    tests = [row[3:] for row in rows()]
    assert len(set(tests)) == len(tests), sorted(one for one in tests if tests.count(one) > 1)
