"""Schemas against the ``jsonschema`` package, and every refusal."""

import importlib.util
import json
from pathlib import Path

import cbor2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schema_program import Pool, violation

from clawlite.core.formats import cbor
from clawlite.core.formats.encoder import encode
from clawlite.core.formats.schema import check
from clawlite.host.schema.compile import compile_schema
from clawlite.host.schema.values import SchemaError, height

jsonschema = pytest.importorskip("jsonschema")
CORE = Path(__file__).parents[2] / "core"


def refusal(schema):
    with pytest.raises(SchemaError) as caught:
        compile_schema(schema, Pool())
    return str(caught.value)


# The oracle runs with formats off; what both can say alike is generated: its multipleOf divides
# floats, its patterns are Unicode ones.
names = st.sampled_from(["a", "b", "ab", "x", "\u00e9", ""])
numbers = st.one_of(st.integers(-3, 6), st.sampled_from([0.5, 1.0, -2.0, 2.5, 1e30, 2**60]))
texts = st.text("ab1\u00e9\U0001f600", max_size=4)
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=8,
)
kinds = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
sizes = st.integers(0, 3)
some_patterns = st.sampled_from(["^a", "b$", "[ab]{2}", "^.$", "\u00e9|1", "^$"])


def schemas_over(inner):
    some = st.lists(inner, min_size=1, max_size=3)
    keyword = st.one_of(
        st.tuples(
            st.just("type"), st.one_of(kinds, st.lists(kinds, min_size=1, max_size=3, unique=True))
        ),
        st.tuples(st.just("enum"), st.lists(values, min_size=1, max_size=4)),
        st.tuples(st.just("const"), values),
        st.tuples(
            st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]), numbers
        ),
        st.tuples(st.just("multipleOf"), st.sampled_from([1, 2, 3, 0.5, 2.0])),
        st.tuples(
            st.sampled_from(
                [
                    "minLength",
                    "maxLength",
                    "minItems",
                    "maxItems",
                    "minProperties",
                    "maxProperties",
                    "minContains",
                    "maxContains",
                ]
            ),
            sizes,
        ),
        st.tuples(st.just("pattern"), some_patterns),
        st.tuples(st.just("uniqueItems"), st.booleans()),
        st.tuples(
            st.sampled_from(
                [
                    "items",
                    "contains",
                    "additionalProperties",
                    "propertyNames",
                    "not",
                    "if",
                    "then",
                    "else",
                ]
            ),
            inner,
        ),
        st.tuples(st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems"]), some),
        st.tuples(
            st.sampled_from(["properties", "dependentSchemas"]),
            st.dictionaries(names, inner, max_size=3),
        ),
        st.tuples(st.just("patternProperties"), st.dictionaries(some_patterns, inner, max_size=2)),
        st.tuples(st.just("required"), st.lists(names, max_size=3, unique=True)),
        st.tuples(
            st.just("dependentRequired"),
            st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        ),
        st.tuples(st.just("$ref"), st.sampled_from(["#/$defs/one", "#/$defs/two"])),
    )
    return st.lists(keyword, max_size=4).map(dict)


schemas = st.recursive(
    st.one_of(st.booleans(), schemas_over(st.booleans())), schemas_over, max_leaves=6
)
documents = st.tuples(schemas_over(schemas), schemas_over(st.booleans()), schemas).map(
    lambda parts: dict(parts[0], **{"$defs": {"one": parts[1], "two": parts[2]}})
)


@pytest.mark.parametrize("examples", [300, pytest.param(1500, marks=pytest.mark.soak)])
def test_same_answer_as_jsonschema(examples):
    @settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(documents, st.lists(values, min_size=1, max_size=5))
    def holds(schema, instances):
        pool = Pool()
        try:
            program = compile_schema(schema, pool)
        except SchemaError as error:
            assert "leads back to itself" in error.message
            return
        data = encode(program)
        program = cbor.decode(data)
        assert cbor2.loads(data) == program
        oracle = jsonschema.Draft202012Validator(schema)
        for value in instances:
            found = check(program, value, pool.tables.__getitem__)
            assert (found is None) == oracle.is_valid(value), (schema, value, found)
            assert (
                found is None
                or found.startswith("at arguments")
                and ": expected " in found
                or "in the name: " in found
            )

    holds()


def test_programs_of_the_core_tests_are_fresh():
    spec = importlib.util.spec_from_file_location("schema_vectors", CORE / "schema_vectors.py")
    vectors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(vectors)
    pool = Pool(vectors.PATTERNS)
    for name, schema, program, _ in vectors.PROGRAMS:
        assert compile_schema(json.loads(schema), pool) == program, name
    assert pool.patterns == vectors.PATTERNS
    assert [table.hex() for table in pool.tables] == vectors.TABLES


def test_programs_are_small():
    assert compile_schema({"type": "object"}, Pool()) == 16
    schema = {
        "type": "object",
        "required": ["url"],
        "additionalProperties": False,
        "properties": {
            "url": {"type": "string", "maxLength": 200},
            "method": {"enum": ["GET", "POST"]},
            "seconds": {"type": "integer", "minimum": 1, "maximum": 60},
        },
    }
    assert len(encode(compile_schema(schema, Pool()))) - len("urlmethodsecondsGETPOST") == 29


@pytest.mark.parametrize(
    "schema, message",
    [
        ({"requried": ["a"]}, '/requried: unknown keyword - did you mean "required"?'),
        (
            {"properties": {"a": {"typ": "string"}}},
            '/properties/a/typ: unknown keyword - did you mean "type"?',
        ),
        ({"zzz": 1}, "/zzz: unknown keyword"),
        ({"type": "objet"}, 'did you mean "object"?'),
        ({"type": ["string", "any"]}, "/type/1: expected one of string"),
        ({"type": []}, "/type: expected at least one type"),
        ({"type": ["string", "string"]}, '/type/1: "string" is there twice'),
        ({"enum": []}, "/enum: expected at least one value"),
        ({"enum": "a"}, '/enum: expected an array of values, got "a"'),
        ({"minimum": "1"}, '/minimum: expected a number, got "1"'),
        ({"minimum": True}, "/minimum: expected a number, got true"),
        ({"maximum": float("inf")}, "/maximum: expected a finite number"),
        ({"maximum": 1 << 63}, "/maximum: expected a number within 64 bits"),
        ({"multipleOf": 0}, "/multipleOf: expected a number above 0, got 0"),
        ({"multipleOf": 1e-16}, "/multipleOf: expected at most 15 decimal places"),
        ({"minLength": -1}, "/minLength: expected a whole number"),
        ({"minItems": 1.5}, "/minItems: expected a whole number, 0 .. 2147483647, got 1.5"),
        ({"maxItems": 1 << 31}, "/maxItems: expected a whole number"),
        ({"pattern": "(a"}, "/pattern: missing ), unterminated subpattern, at position 0"),
        (
            {"pattern": "a(?=b)"},
            "/pattern: look-ahead or look-behind has no automaton, at position 1",
        ),
        ({"patternProperties": {"(": True}}, "/patternProperties/(: missing )"),
        ({"format": 1}, "/format: expected the name of a format, got 1"),
        (
            {"items": [True]},
            '/items: expected a schema, got an array; in 2020-12 that is "prefixItems"',
        ),
        ({"prefixItems": []}, "/prefixItems: expected at least one schema"),
        ({"properties": []}, "/properties: expected an object of schemas, got an array of 0"),
        (
            {"properties": {"a": 1}},
            "/properties/a: expected a schema (an object, true or false), got 1",
        ),
        ({"required": "a"}, '/required: expected an array of names, got "a"'),
        ({"required": ["a", "a"]}, '/required/1: "a" is there twice'),
        ({"dependentRequired": {"a": "b"}}, "/dependentRequired/a: expected an array of names"),
        ({"allOf": []}, "/allOf: expected at least one schema"),
        ({"uniqueItems": 1}, "/uniqueItems: expected true or false, got 1"),
        (
            {"$ref": "other.json"},
            '/$ref: expected "#" or "#/...", got "other.json": other documents are not read',
        ),
        ({"$ref": "#name"}, '/$ref: expected "#" or "#/..."'),
        ({"$ref": "#/$defs/a"}, '/$ref: "#/$defs/a" leads nowhere'),
        ({"$ref": 1}, "/$ref: expected text, got 1"),
        ({"$ref": "#"}, "/$ref: this $ref leads back to itself"),
        (
            {
                "anyOf": [{"$ref": "#/$defs/a"}],
                "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"if": {"$ref": "#/$defs/a"}}},
            },
            "/$defs/b/if/$ref: this $ref leads back to itself without looking into the value",
        ),
        ({"$dynamicRef": "#a"}, "/$dynamicRef: dynamic scopes are not supported"),
        ({"$anchor": "a"}, "/$anchor: not supported"),
        ({"$vocabulary": {}}, "/$vocabulary: meta-schemas are not supported"),
        (
            {"items": {"unevaluatedProperties": False}},
            "/items/unevaluatedProperties: not supported; list the members",
        ),
        ({"unevaluatedItems": False}, "/unevaluatedItems: not supported"),
        ({"dependencies": {}}, "/dependencies: of an earlier draft"),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#"},
            "/$schema: expected https://json-schema.org/draft/2020-12/schema",
        ),
        ({"items": {"$id": "x"}}, "/items/$id: only the root"),
        ({"const": [[[[[[[[[1]]]]]]]]]}, "expected a value that nests at most 8 deep"),
        ("string", '/: expected a schema (an object, true or false), got "string"'),
        (None, "/: expected a schema"),
    ],
)
def test_refused_with_its_path(schema, message):
    assert message in refusal(schema)


def test_a_refusal_carries_its_path():
    with pytest.raises(SchemaError) as caught:
        compile_schema({"properties": {"a": {"allOf": [True, {"typ": 1}]}}}, Pool())
    assert caught.value.path == ["properties", "a", "allOf", 1, "typ"]


def test_annotations_say_nothing():
    assert (
        compile_schema(
            {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "$id": "https://example.org/x",
                "title": "t",
                "description": "d",
                "default": 1,
                "examples": [1],
                "$comment": "c",
                "deprecated": True,
                "readOnly": True,
                "writeOnly": False,
                "contentMediaType": "text/plain",
                "contentEncoding": "base64",
                "x-order": 3,
                "format": "colour",
                "$defs": {},
                "definitions": {},
            },
            Pool(),
        )
        == 127
    )


def test_references_by_pointer():
    schema = {
        "$id": "https://example.org/x",
        "properties": {
            "a": {"$ref": "https://example.org/x#/$defs/a~1b%25"},
            "b": {"$ref": "#/allOf/0"},
        },
        "$defs": {"a/b%": {"type": "integer"}},
        "allOf": [{"minProperties": 1}],
    }
    assert violation(schema, {"a": "x"}) == 'at arguments.a: expected an integer, got "x"'
    assert violation(schema, {"b": {}}) == "at arguments.b: expected at least 1 member, got 0"


def deep(levels, schema):
    for _ in range(levels):
        schema = {"items": schema}
    return schema


def test_programs_stay_flat_however_deep_the_schema():
    for levels in (1, 5, 6, 7, 31):
        schema = deep(levels, {"type": "string", "enum": [["x"], [[[[[[[[1]]]]]]]]]})
        program = compile_schema(schema, Pool())
        assert height(program) <= 11
        value = "y"
        for _ in range(levels):
            value = [value]
        assert violation(schema, value).startswith(
            "at arguments" + "[0]" * levels + ": expected one of"
        )


def test_size_of_a_schema_at_its_bounds():
    compile_schema(deep(128, True), Pool())
    assert "the schema is too large" in refusal(deep(129, True))
    compile_schema({"prefixItems": [True] * 4999}, Pool())
    assert "the schema is too large" in refusal({"prefixItems": [True] * 5000})


@pytest.mark.parametrize(
    "schema, good, bad",
    [
        (
            "date-time",
            ["2025-01-31T12:00:00Z", "2024-02-29t23:59:60.5z", "0000-12-31T00:00:00+23:59"],
            [
                "2025-01-31",
                "2025-01-31T24:00:00Z",
                "2025-01-31T12:00:00",
                "2025-01-31T12:00:60Z",
                "2025-1-31T12:00:00Z",
                "2100-02-29T00:00:00Z",
            ],
        ),
        (
            "date",
            ["2000-02-29", "2023-04-30"],
            ["1900-02-29", "2023-04-31", "2023-13-01", "2023-00-01", "2023-01-01\n"],
        ),
        (
            "time",
            ["00:00:00Z", "23:59:59.999-01:30"],
            ["24:00:00Z", "12:00Z", "12:00:00", "12:00:00+24:00"],
        ),
        (
            "uri",
            [
                "http://a",
                "urn:a:b",
                "mailto:a@b.c",
                "http://[::1]:80/",
                "a:",
                "http://u:p@h:1/p?q#f",
            ],
            ["", "a", "/a", "http:// a", "http://a/%zz", "http://a/\u00e9", "1a:b", "http://a#b#c"],
        ),
        ("email", ["a@b", "a.b+c@d.example"], ["a", "@b", "a@", ".a@b", "a..b@c", "a b@c", "a@-b"]),
        ("hostname", ["a", "a-b.c1", "a" * 63], ["", "-a", "a-", "a..b", "a.", "a_b", "a" * 64]),
        (
            "ipv4",
            ["0.0.0.0", "255.255.255.255"],
            ["256.0.0.0", "1.2.3", "1.2.3.4.5", "01.2.3.4", "0x1.2.3.4"],
        ),
        (
            "ipv6",
            [
                "::",
                "::1",
                "1:2:3:4:5:6:7:8",
                "1::8",
                "::ffff:1.2.3.4",
                "1:2:3:4:5:6:1.2.3.4",
                "1:2:3:4:5:6:7::",
            ],
            [
                "1:2:3:4:5:6:7",
                "1::2::3",
                "12345::",
                ":1",
                "1:2:3:4:5:6:7:8:9",
                "::1.2.3",
                "fe80::1%eth0",
            ],
        ),
        (
            "uuid",
            ["2EB8AA08-AA98-11EA-b4aa-73b441d16380"],
            ["2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638"],
        ),
    ],
)
def test_formats(schema, good, bad):
    assert [text for text in good if violation({"format": schema}, text)] == []
    assert [text for text in bad if not violation({"format": schema}, text)] == []
    assert violation({"format": schema}, 5) is None
