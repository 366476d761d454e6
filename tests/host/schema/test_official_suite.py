"""The official JSON Schema test suite (draft 7 is the newest that Debian packs), for the core's
checker.

Draft 7 and 2020-12, which tools here use, differ in a few keywords.  Those, and what a schema of a
tool may not have, the compiler refuses by name; every other answer must be the suite's.
"""

import json
from collections import Counter
from pathlib import Path

import pytest
from schema_program import violation

from clawlite.host.schema.values import SchemaError
from clawlite.host.schema.vocabulary import FORMATS

ROOT = Path(__file__).parents[3]
PLACE = "usr/share/json-schema-test-suite/tests/draft7"
SUITE = next(
    (path for path in (Path("/") / PLACE, ROOT / "build/schemas" / PLACE) if path.is_dir()), None
)
pytestmark = pytest.mark.skipif(not SUITE, reason="no json-schema-test-suite here")
EARLIER = "of an earlier draft"
TUPLE = 'in 2020-12 that is "prefixItems"'
ELSEWHERE = "other documents are not read"
# {file: sentences with which schemas of it are refused}; those of all other files are taken
REFUSED = {
    "additionalItems": (EARLIER, TUPLE),
    "definitions": (ELSEWHERE,),
    "dependencies": (EARLIER,),
    "items": (TUPLE,),
    "ref": (TUPLE, ELSEWHERE, "unknown keyword"),
    "refRemote": (ELSEWHERE, "only the root of a schema may have one"),
    "bignum": ("expected a number within 64 bits",),
}
# draft 7 passes over keywords beside $ref; 2020-12 (10.2, 8.2.3) does not
OTHERWISE = ["ref valid, maxItems ignored"]


def groups(file: Path) -> list:
    return json.loads(file.read_text("utf-8"))


def played(name: str) -> Counter:
    """Return how many tests of a file were answered, and how many schemas were refused."""
    told = Counter()
    for group in groups(SUITE / (name + ".json")):
        for test in group["tests"]:
            try:
                found = violation(group["schema"], test["data"])
            except SchemaError as e:
                assert any(said in str(e) for said in REFUSED.get(Path(name).name, ())), e
                told["refused"] += 1
                continue
            is_otherwise = test["description"] in OTHERWISE
            assert ((found is None) == test["valid"]) != is_otherwise, (group, test, found)
            told["answered"] += 1
    return told


def files(folder: str = "") -> list:
    return sorted(path.stem for path in (SUITE / folder).glob("*.json")) if SUITE else []


@pytest.mark.parametrize("name", files())
def test_keywords(name):
    told = played(name)
    assert told["answered"] or name in (
        "additionalItems",
        "definitions",
        "dependencies",
        "refRemote",
    )
    assert bool(told["refused"]) == (name in REFUSED)


@pytest.mark.parametrize("name", ["bignum", "zeroTerminatedFloats"])
def test_numbers(name):
    assert played("optional/" + name)["answered"]


@pytest.mark.parametrize("name", sorted(set(FORMATS) & set(files("optional/format"))))
def test_formats_that_are_checked(name):
    """Other formats describe a value, and nothing is checked (2020-12, validation, 7.2.1)."""
    assert played("optional/format/" + name)["answered"]


def test_every_format_is_known_or_says_nothing():
    for name in set(files("optional/format")) - set(FORMATS):
        assert violation({"format": name}, "\\") is None
