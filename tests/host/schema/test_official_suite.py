"""The official JSON Schema test suite, for the core's checker: draft 2020-12, which tools here use,
and draft 7, which many schemas of others are written in and which is read as 2020-12.

What a schema of a tool may not have the compiler refuses by name; every other answer must be the
suite's.  ``make schemas`` takes the suite from the sources of jsonschema.
"""

import json
from collections import Counter
from importlib.resources import files as files_of
from pathlib import Path

import pytest
from schema_program import violation

from clawlite.host.schema.values import SchemaError
from clawlite.host.schema.vocabulary import FORMATS

SUITE = Path(__file__).parents[3] / "build/schema-suite"
pytestmark = pytest.mark.skipif(not SUITE.is_dir(), reason="no json-schema-test-suite here")
OLD, NEW = "draft7", "draft2020-12"
EARLIER = "of an earlier draft"
TUPLE = 'in 2020-12 that is "prefixItems"'
REST = 'in 2020-12 it is "items", beside "prefixItems"'
ELSEWHERE = "other documents are not read"
BELOW_ROOT = "only the root of a schema may have one"
UNEVALUATED = "not supported; list the members in one schema"
DYNAMIC = "dynamic scopes are not supported"
DIALECT = "expected https://json-schema.org/draft/2020-12/schema"
BIG = "expected a number within 64 bits"
# {draft: {file: sentences with which schemas of it are refused}}; those of all other files are
# taken
REFUSED = {
    OLD: {
        "additionalItems": (REST, TUPLE),
        "definitions": (ELSEWHERE,),
        "dependencies": (EARLIER,),
        "items": (REST, TUPLE),
        "uniqueItems": (REST, TUPLE),
        "ref": (TUPLE, ELSEWHERE, "unknown keyword", BELOW_ROOT),
        "refRemote": (ELSEWHERE, BELOW_ROOT),
        "optional/bignum": (BIG,),
    },
    NEW: {
        "anchor": (ELSEWHERE,),
        "defs": (ELSEWHERE,),
        "dynamicRef": (DYNAMIC, ELSEWHERE, BELOW_ROOT),
        "not": (UNEVALUATED,),
        "ref": (ELSEWHERE, BELOW_ROOT, UNEVALUATED),
        "refRemote": (ELSEWHERE, BELOW_ROOT),
        "unevaluatedItems": (UNEVALUATED, ELSEWHERE),
        "unevaluatedProperties": (UNEVALUATED, ELSEWHERE),
        "vocabulary": (DIALECT,),
        "optional/anchor": (ELSEWHERE,),
        "optional/bignum": (BIG,),
        "optional/cross-draft": (ELSEWHERE,),
        "optional/dependencies-compatibility": (EARLIER,),
        "optional/dynamicRef": (ELSEWHERE,),
        "optional/format-assertion": (DIALECT,),
        "optional/id": (ELSEWHERE,),
        "optional/refOfUnknownKeyword": ("unknown keyword",),
        "optional/unknownKeyword": (ELSEWHERE,),
    },
}
# files of whose schemas each is refused
NOTHING_ANSWERED = {
    OLD: {"additionalItems", "definitions", "dependencies", "refRemote"},
    NEW: set(REFUSED[NEW]) - {"not", "ref", "optional/bignum", "optional/refOfUnknownKeyword"},
}
# Python's parser reads patterns (docs/adr/0003), so what ECMA 262 has beyond it is refused.
ELSEWHERE_TESTED = {"optional/ecmascript-regex"}


def is_otherwise(draft: str, name: str, test: dict) -> bool:
    """Whether the answer to a test is the other one, as docs/adr/0003 has it."""
    told = test["description"]
    if draft == OLD:
        # it passes over keywords beside $ref; 2020-12 (10.2, 8.2.3) does not
        return told == "ref valid, maxItems ignored"
    # formats are asserted, which 2020-12 (validation, 7.2.1) allows as well
    asserted = {"invalid %s string is only an annotation by default" % one for one in FORMATS}
    return name == "format" and told in asserted


# what a checked format does not take, and ``description``s of those tests (docs/adr/0003)
STRICTER = {
    "optional/format/email": ("quoted", "IPv4-address-literal", "IPv6-address-literal"),
    "optional/format/date-time": ("leap second",),
    "optional/format/time": ("leap second",),
}


def played(draft: str, name: str) -> Counter:
    """Return how many tests of a file were answered, and how many schemas were refused."""
    told = Counter()
    for group in json.loads((SUITE / draft / (name + ".json")).read_text("utf-8")):
        for test in group["tests"]:
            try:
                found = violation(group["schema"], test["data"])
            except SchemaError as e:
                assert any(said in str(e) for said in REFUSED[draft].get(name, ())), e
                told["refused"] += 1
                continue
            agrees = (found is None) == test["valid"]
            if not agrees and test["valid"] and name in STRICTER:
                assert any(word in test["description"] for word in STRICTER[name]), (test, found)
                told["stricter"] += 1
                continue
            assert agrees != is_otherwise(draft, name, test), (group, test, found)
            told["answered"] += 1
    return told


def files(draft: str, folder: str = "") -> list:
    found = sorted(path.stem for path in (SUITE / draft / folder).glob("*.json"))
    return [folder + name for name in found if folder + name not in ELSEWHERE_TESTED]


@pytest.mark.parametrize(
    "draft, name",
    [(draft, name) for draft in (OLD, NEW) for name in files(draft)]
    + [(OLD, "optional/bignum")]
    + [(NEW, name) for name in files(NEW, "optional/")],
)
def test_keywords(draft, name):
    told = played(draft, name)
    assert bool(told["answered"]) != (name in NOTHING_ANSWERED[draft])
    assert bool(told["refused"]) == (name in REFUSED[draft])


@pytest.mark.parametrize(
    "draft, name",
    [
        (draft, name)
        for draft in (OLD, NEW)
        for name in files(draft, "optional/format/")
        if Path(name).name in FORMATS
    ],
)
def test_formats_that_are_checked(draft, name):
    """Other formats describe a value, and nothing is checked (2020-12, validation, 7.2.1)."""
    assert played(draft, name)["answered"]


@pytest.mark.parametrize("draft", [OLD, NEW])
def test_every_format_is_known_or_says_nothing(draft):
    names = {Path(name).name for name in files(draft, "optional/format/")} - set(FORMATS)
    assert names
    for name in names:
        assert violation({"format": name}, "\\") is None


VOCABULARIES = files_of("jsonschema_specifications") / "schemas/draft202012/vocabularies"
NOT_SUPPORTED = {
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$vocabulary",
    "unevaluatedItems",
    "unevaluatedProperties",
}
DIALECT_ID = "https://json-schema.org/draft/2020-12/schema"
VALUES = ("#/$defs/a", DIALECT_ID, "string", "a", 1, True, [], ["a"], {}, {"a": {}}, [{}])


@pytest.mark.parametrize(
    "keyword",
    sorted(
        {
            key
            for file in VOCABULARIES.iterdir()
            for key in json.loads(file.read_text())["properties"]
        }
    ),
)
def test_each_keyword_of_the_draft_is_taken_or_refused_by_its_name(keyword):
    taken, beside = 0, {} if keyword == "$defs" else {"$defs": {"a": {}}}
    for value in VALUES:
        try:
            violation({keyword: value, **beside}, None)
            taken += 1
        except SchemaError as e:
            assert str(e).startswith("/" + keyword), e
    assert bool(taken) == (keyword not in NOT_SUPPORTED)
