"""Schemas, their check programs and what they say of values; tests/host/schema/test_schemas.py
compiles them again.
"""

# name, schema (JSON), program, [(value, the violation or None)]
PROGRAMS = [
    (
        "web-fetch",
        '{"type":"object","properties":{"url":{"type":"string","format":"uri"},"headers":{"type":"object","ad'
        'ditionalProperties":{"type":"string"}}},"required":["url"]}',
        [16, 0, [1, 127, 0, "url", [1, 10, [0, "an absolute URI"]], "headers", [16, 0, [0, 1, 0]]]],
        [
            ({"url": "http://x.org/a?b=%20#c"}, None),
            ({"url": "http://x.org/a?b=%20#c", "headers": {"a": "b"}}, None),
            ({}, "at arguments.url: expected a value, got nothing"),
            ({"url": "no uri"}, 'at arguments.url: expected an absolute URI, got "no uri"'),
            ({"url": 5}, "at arguments.url: expected a string, got 5"),
            (
                {"url": "http://x.org/a?b=%20#c", "headers": {"b": 1, "a": 2}},
                "at arguments.headers.a: expected a string, got 2",
            ),
            ({"url": "http://x.org/a?b=%20#c", "more": 1}, None),
            ([], "at arguments: expected an object, got an array of 0"),
        ],
    ),
    (
        "closed",
        '{"type":"object","properties":{"seconds":{"type":"integer","minimum":1,"maximum":60},"unit":{"enum":'
        '["s","ms"]}},"required":["seconds"],"additionalProperties":false}',
        [16, 0, [1, 0, 0, "seconds", [4, 13, 1, 14, 60], "unit", [127, 18, ["s", "ms"]]]],
        [
            ({"seconds": 60}, None),
            ({"seconds": 1.0}, None),
            ({"seconds": 90}, "at arguments.seconds: expected at most 60, got 90"),
            ({"seconds": 0}, "at arguments.seconds: expected at least 1, got 0"),
            ({"seconds": 1.5}, "at arguments.seconds: expected an integer, got 1.5"),
            ({"seconds": True}, "at arguments.seconds: expected an integer, got true"),
            ({"unit": "s"}, "at arguments.seconds: expected a value, got nothing"),
            ({"seconds": 5, "unit": "h"}, 'at arguments.unit: expected one of "s", "ms", got "h"'),
            (
                {"seconds": 5, "sceonds": 1, "z": 2},
                'at arguments: expected one of "seconds", "unit", got the name "sceonds"',
            ),
            ({"seconds": "5"}, 'at arguments.seconds: expected an integer, got "5"'),
        ],
    ),
    (
        "empty",
        '{"type":"object"}',
        16,
        [
            ({}, None),
            ({"a": 1}, None),
            (None, "at arguments: expected an object, got null"),
            (
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                'at arguments: expected an object, got "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx..."',
            ),
            ([1, 2], "at arguments: expected an object, got an array of 2"),
            (True, "at arguments: expected an object, got true"),
            (0.1, "at arguments: expected an object, got 0.1"),
            (-2.5e-09, "at arguments: expected an object, got -2.5e-9"),
            (1e300, "at arguments: expected an object, got 1.0e300"),
            (123456.789, "at arguments: expected an object, got 123457.0"),
            (100000.0, "at arguments: expected an object, got 100000.0"),
            (1000000000000000.0, "at arguments: expected an object, got 1.0e15"),
            (1e16, "at arguments: expected an object, got 1.0e16"),
            (-0.0, "at arguments: expected an object, got 0.0"),
            (0.001, "at arguments: expected an object, got 0.001"),
            (0.00012, "at arguments: expected an object, got 0.00012"),
            (0.3333333333333333, "at arguments: expected an object, got 0.333333"),
        ],
    ),
    (
        "text",
        '{"type":"string","minLength":2,"maxLength":4,"pattern":"^[a-z\\u00e9]+$"}',
        [1, 11, 2, 12, 4, 10, [1, "text like ^[a-z\xe9]+$"]],
        [
            ("ab", None),
            ("\xe9\xe9\xe9\xe9", None),
            ("a", "at arguments: expected at least 2 characters, got 1"),
            ("abcde", "at arguments: expected at most 4 characters, got 5"),
            (
                "\U0001f600\U0001f600",
                'at arguments: expected text like ^[a-z\xe9]+$, got "\U0001f600\U0001f600"',
            ),
            ("AB", 'at arguments: expected text like ^[a-z\xe9]+$, got "AB"'),
            ("a\n", 'at arguments: expected text like ^[a-z\xe9]+$, got "a\\u000a"'),
            ('a"\\\u202e\x07', "at arguments: expected at most 4 characters, got 5"),
        ],
    ),
    (
        "numbers",
        '{"type":["number","null"],"exclusiveMinimum":-1.5,"exclusiveMaximum":100,"multipleOf":0.01}',
        [76, 15, -1.5, 16, 100, 17, [1, 2]],
        [
            (None, None),
            (99.99, None),
            (4.02, None),
            (0.3, None),
            (-1.5, "at arguments: expected more than -1.5, got -1.5"),
            (-1, None),
            (100, "at arguments: expected less than 100, got 100"),
            (0.005, "at arguments: expected a multiple of 0.01, got 0.005"),
            (0.015, "at arguments: expected a multiple of 0.01, got 0.015"),
            (1e-30, "at arguments: expected a multiple of 0.01, got 1.0e-30"),
            ("1", 'at arguments: expected a number or null, got "1"'),
        ],
    ),
    (
        "even",
        '{"multipleOf":2}',
        [127, 17, 2],
        [
            (4, None),
            (5, "at arguments: expected a multiple of 2, got 5"),
            (4.0, None),
            (4.5, "at arguments: expected a multiple of 2, got 4.5"),
            ("x", None),
            (-6, None),
            (9007199254740993, "at arguments: expected a multiple of 2, got 9007199254740993"),
        ],
    ),
    (
        "list",
        '{"type":"array","prefixItems":[{"type":"string"},{"type":"boolean"}],"items":{"type":"integer"},"min'
        'Items":1,"maxItems":4}',
        [32, 8, 1, 9, 4, 5, [4, 1, 2]],
        [
            (["a", True, 1], None),
            (["a"], None),
            ([], "at arguments: expected at least 1 item, got 0"),
            (["a", 1], "at arguments[1]: expected a boolean, got 1"),
            ([1], "at arguments[0]: expected a string, got 1"),
            (["a", True, "x"], 'at arguments[2]: expected an integer, got "x"'),
            (["a", True, 1, 2, 3], "at arguments: expected at most 4 items, got 5"),
        ],
    ),
    (
        "set",
        '{"type":"array","uniqueItems":true,"contains":{"type":"string"},"minContains":1,"maxContains":2}',
        [32, 6, [1, 2, 1], 7, 1],
        [
            (["a", 1, True], None),
            (["a", 1, 1.0], "at arguments[2]: expected an item unlike those before it, got 1.0"),
            (["a", True, 1, False, 0], None),
            (
                [{"a": 1, "b": 2}, {"b": 2, "a": 1.0}, "x"],
                "at arguments[1]: expected an item unlike those before it, got an object of 2",
            ),
            ([[1], [True], "x"], None),
            ([], "at arguments: expected at least 1 matching item, got 0"),
            (["a", "b", "c"], "at arguments: expected at most 2 matching items, got 3"),
        ],
    ),
    (
        "constants",
        '{"enum":[1,true,null,"a",[1,{"b":2.0}],{"c":[]}]}',
        [127, 18, [1, True, None, "a", [1, {"b": 2}], {"c": []}]],
        [
            (1, None),
            (1.0, None),
            (True, None),
            (
                False,
                'at arguments: expected one of 1, true, null, "a", an array of 2, an object of '
                "1, got false",
            ),
            (
                0,
                'at arguments: expected one of 1, true, null, "a", an array of 2, an object of 1, '
                "got 0",
            ),
            (None, None),
            ("a", None),
            (
                "b",
                'at arguments: expected one of 1, true, null, "a", an array of 2, an object of 1, '
                'got "b"',
            ),
            ([1, {"b": 2}], None),
            (
                [True, {"b": 2}],
                'at arguments: expected one of 1, true, null, "a", an array of 2, an object of 1, '
                "got "
                "an array of 2",
            ),
            ({"c": []}, None),
            (
                {"c": {}},
                'at arguments: expected one of 1, true, null, "a", an array of 2, an object of 1, '
                "got "
                "an object of 1",
            ),
            (
                2.5,
                'at arguments: expected one of 1, true, null, "a", an array of 2, an object of 1, '
                "got 2.5",
            ),
        ],
    ),
    (
        "const",
        '{"const":false}',
        [127, 18, [False]],
        [
            (False, None),
            (0, "at arguments: expected false, got 0"),
            (None, "at arguments: expected false, got null"),
            ("false", 'at arguments: expected false, got "false"'),
            ([], "at arguments: expected false, got an array of 0"),
        ],
    ),
    (
        "members",
        '{"minProperties":1,"maxProperties":2,"propertyNames":{"maxLength":3},"patternProperties":{"^x":{"typ'
        'e":"integer"},"y$":{"minimum":5}},"additionalProperties":{"type":"null"},"properties":{"ab":{}}}',
        [127, 3, 1, 4, 2, 0, [0, 64, [2, 4, 3, [127, 13, 5]], "ab", 127], 2, [127, 12, 3]],
        [
            ({"x": 1}, None),
            ({"xy": 7}, None),
            ({"xy": 3}, "at arguments.xy: expected at least 5, got 3"),
            ({"xy": "a"}, 'at arguments.xy: expected an integer, got "a"'),
            ({"ab": []}, None),
            ({"q": 1}, "at arguments.q: expected null, got 1"),
            ({"q": None}, None),
            ({}, "at arguments: expected at least 1 member, got 0"),
            ({"a": None, "b": None, "c": None}, "at arguments: expected at most 2 members, got 3"),
            (
                {"long": None, "longer": None},
                "at arguments.long: in the name: expected at most 3 characters, got 4",
            ),
        ],
    ),
    (
        "names",
        '{"patternProperties":{"^x-":true},"additionalProperties":false}',
        [127, 0, [0, 0, [4, 127]]],
        [
            ({"x-a": 1}, None),
            ({"y": 1, "b": 2}, 'at arguments: expected no such name, got the name "b"'),
            ({"a b\x00": 1}, 'at arguments: expected no such name, got the name "a b\\u0000"'),
        ],
    ),
    (
        "dependent",
        '{"type":"object","dependentRequired":{"card":["name","address"]},"dependentSchemas":{"zip":{"require'
        'd":["city"],"properties":{"zip":{"type":"string"}}}},"required":["id"]}',
        [
            16,
            1,
            ["id"],
            23,
            [[16, 1, ["zip"]], [127, 0, [0, 127, 0, "zip", 1], 1, ["city"]], 127],
            23,
            [[16, 1, ["card"]], [127, 1, ["name", "address"]], 127],
        ],
        [
            ({"id": 1}, None),
            ({"id": 1, "card": 1, "name": 1, "address": 1}, None),
            (
                {"id": 1, "card": 1, "name": 1},
                "at arguments.address: expected a value, got nothing",
            ),
            ({"id": 1, "zip": "1", "city": 1}, None),
            ({"id": 1, "zip": 1, "city": 1}, "at arguments.zip: expected a string, got 1"),
            ({"card": 1}, "at arguments.id: expected a value, got nothing"),
        ],
    ),
    (
        "any",
        '{"anyOf":[{"type":"string","maxLength":3},{"type":"null"},{"type":"object","required":["a"]},{"type"'
        ':"object","required":["b"]}]}',
        [127, 20, [64, [1, 12, 3], [16, 1, ["a"]], [16, 1, ["b"]]]],
        [
            ("abc", None),
            ("abcd", "at arguments: expected at most 3 characters, got 4"),
            (None, None),
            ({"b": 1}, None),
            (
                {"c": 1},
                "at arguments: expected a match of one of 4 alternatives, got an object of 1",
            ),
            (5, "at arguments: expected a match of one of 4 alternatives, got 5"),
        ],
    ),
    (
        "one",
        '{"oneOf":[{"type":"integer"},{"minimum":2}]}',
        [127, 21, [4, [127, 13, 2]]],
        [
            (1, None),
            (2.5, None),
            (3, "at arguments: expected exactly one of 2 alternatives to match, got 2"),
            (1.5, "at arguments: expected at least 2, got 1.5"),
            ("x", None),
        ],
    ),
    (
        "masks",
        '{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}],"not":{"type":"null"},"oneOf":[{"typ'
        'e":"integer"},{"type":"string"}]}',
        5,
        [
            ("a", None),
            (1, None),
            (1.0, None),
            (None, "at arguments: expected a string or an integer, got null"),
            (1.5, "at arguments: expected a string or an integer, got 1.5"),
        ],
    ),
    (
        "not",
        '{"not":{"type":"object","required":["root"]},"allOf":[{"maxProperties":1}]}',
        [127, 4, 1, 22, [16, 1, ["root"]]],
        [
            ({}, None),
            (
                {"root": 1},
                "at arguments: expected no match of the schema under `not`, got an object of 1",
            ),
            ({"a": 1, "b": 2}, "at arguments: expected at most 1 member, got 2"),
            (3, None),
        ],
    ),
    (
        "if",
        '{"if":{"properties":{"kind":{"const":"pin"}},"required":["kind"]},"then":{"required":["pin"]},"else"'
        ':{"required":["bus"]}}',
        [
            127,
            23,
            [
                [127, 0, [1, 127, 0, "kind", [127, 18, ["pin"]]]],
                [127, 1, ["pin"]],
                [127, 1, ["bus"]],
            ],
        ],
        [
            ({"kind": "pin", "pin": 1}, None),
            ({"kind": "pin"}, "at arguments.pin: expected a value, got nothing"),
            ({"kind": "bus"}, "at arguments.bus: expected a value, got nothing"),
            ({"bus": 1}, None),
            ({}, "at arguments.bus: expected a value, got nothing"),
        ],
    ),
    (
        "tree",
        '{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"value":{"type":"number"},"chi'
        'ldren":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["value"],"additionalProperties"'
        ":false}}}",
        [None, -2, [16, 0, [1, 0, 0, "value", 12, "children", [32, 5, [-2]]]]],
        [
            ({"value": 1}, None),
            ({"value": 1, "children": [{"value": 2}, {"value": 3, "children": []}]}, None),
            (
                {
                    "value": 1,
                    "children": [{"value": 2}, {"value": 3, "children": [{"value": "x"}]}],
                },
                'at arguments.children[1].children[0].value: expected a number, got "x"',
            ),
            (
                {"value": 1, "child": []},
                'at arguments: expected one of "value", "children", got the name "child"',
            ),
        ],
    ),
    (
        "formats",
        '{"properties":{"a":{"format":"date-time"},"b":{"format":"ipv4"},"c":{"format":"uuid"},"d":{"format":'
        '"hostname"},"e":{"format":"email"}}}',
        [
            127,
            0,
            [
                0,
                127,
                0,
                "a",
                [127, 10, [5, "a date-time like 2025-01-31T12:00:00Z"]],
                "b",
                [127, 10, [6, "an IPv4 address"]],
                "c",
                [127, 10, [7, "a UUID"]],
                "d",
                [127, 12, 253, 10, [8, "a host name"]],
                "e",
                [127, 12, 254, 10, [9, "an e-mail address"]],
            ],
        ],
        [
            ({"a": "2024-02-29T23:59:60Z"}, None),
            (
                {"a": "2023-02-29T00:00:00Z"},
                "at arguments.a: expected a date-time like 2025-01-31T12:00:00Z, got "
                '"2023-02-29T00:00:00Z"',
            ),
            ({"a": "1998-12-31t15:59:59.123-08:00"}, None),
            ({"b": "255.0.0.1"}, None),
            ({"b": "256.0.0.1"}, 'at arguments.b: expected an IPv4 address, got "256.0.0.1"'),
            ({"b": "01.0.0.1"}, 'at arguments.b: expected an IPv4 address, got "01.0.0.1"'),
            ({"c": "2EB8AA08-aa98-11ea-b4aa-73b441d16380"}, None),
            (
                {"c": "2EB8AA08aa9811eab4aa73b441d16380"},
                'at arguments.c: expected a UUID, got "2EB8AA08aa9811eab4aa73b441d16380"',
            ),
            ({"d": "a-b.example"}, None),
            ({"d": "-a.example"}, 'at arguments.d: expected a host name, got "-a.example"'),
            (
                {"d": "a.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"},
                "at arguments.d: expected a host name, got "
                '"a.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb..."',
            ),
            (
                {
                    "d": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.abcd"  # noqa: E501
                },
                "at arguments.d: expected at most 253 characters, got 254",
            ),
            ({"e": "a.b+c@example.org"}, None),
            (
                {"e": "a..b@example.org"},
                'at arguments.e: expected an e-mail address, got "a..b@example.org"',
            ),
            ({"a": 5}, None),
        ],
    ),
    (
        "odd paths",
        '{"additionalProperties":{"items":{"additionalProperties":{"type":"string"}}}}',
        [127, 0, [0, [127, 5, [[127, 0, [0, 1, 0]]]], 0]],
        [
            ({"a b": [{"": 1}]}, 'at arguments["a b"][0][""]: expected a string, got 1'),
            ({"k": [{}, {"x_1-y": 2}]}, "at arguments.k[1].x_1-y: expected a string, got 2"),
            (
                {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": [{"\u202e": 3}]},
                'at arguments["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."][0]["\\u202e"]: expected a '
                "string, got 3",
            ),
            ({"\xe9": [{"q": 4}]}, 'at arguments["\xe9"][0].q: expected a string, got 4'),
        ],
    ),
    (
        "never",
        "false",
        0,
        [
            (None, "at arguments: expected no value here, got null"),
            (1, "at arguments: expected no value here, got 1"),
        ],
    ),
    (
        "always",
        "true",
        127,
        [
            (None, None),
            ({"a": [1]}, None),
        ],
    ),
]

# pattern by index, and its automaton
PATTERNS = [
    "^([A-Za-z][A-Za-z0-9+.-]*:(//(([A-Za-z0-9._~!$&'()*+,;=\\-:]|%[0-9A-Fa-f]{2})*@)?(\\[([0-9A-Fa-f:.]+|["
    "Vv][0-9A-Fa-f]+\\.[A-Za-z0-9._~!$&'()*+,;=\\-:]+)\\]|([A-Za-z0-9._~!$&'()*+,;=\\-]|%[0-9A-Fa-f]{2})*)(:["
    "0-9]*)?(/([A-Za-z0-9._~!$&'()*+,;=\\-:@]|%[0-9A-Fa-f]{2})*)*|/(([A-Za-z0-9._~!$&'()*+,;=\\-:@]|%[0-9A-"
    "Fa-f]{2})+(/([A-Za-z0-9._~!$&'()*+,;=\\-:@]|%[0-9A-Fa-f]{2})*)*)?|([A-Za-z0-9._~!$&'()*+,;=\\-:@]|%[0-"
    "9A-Fa-f]{2})+(/([A-Za-z0-9._~!$&'()*+,;=\\-:@]|%[0-9A-Fa-f]{2})*)*|)(\\?(([A-Za-z0-9._~!$&'()*+,;=\\-:@"
    "]|%[0-9A-Fa-f]{2})|[/?])*)?(#(([A-Za-z0-9._~!$&'()*+,;=\\-:@]|%[0-9A-Fa-f]{2})|[/?])*)?)$",
    "^[a-z\xe9]+$",
    "^x",
    "y$",
    "^x-",
    "^(([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|"
    "1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)[Tt]((["
    "01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])|23:59:60(\\"
    ".[0-9]+)?([Zz]|[+-]00:00)))$",
    "^((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])(\\.(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3})"
    "$",
    "^([0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$",
    "^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*)$",
    "^([A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@([A-Za-z0-9]([A-Za-z0-9-]*[A-Z"
    "a-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|\\[(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
    "(\\.(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])){3}\\]))$",
]
TABLES = [
    "0101010101010101010101020202010101010101010101010101010101010101010101010202010214010102020201010101"
    "0101010101050101010501010101010101010101010601010106010101010101010101010115010101150101010101010101"
    "0101011601010116010101010101010101010109010101090101010101010101010d010d0d01010d010e0101010101010101"
    "01190101011901010101010a010b0a0a010a0a011b0a0a0a0101010101010101010f0101010f010101010101010101010110"
    "010101100101010101010101010d010d0d01010d0101011e01010101010101110101011101010101010101010101010a0101"
    "010a01010101010101010101011c0101011c0101010101010101011201110101011101010101011301011313011313010113"
    "131301010113010113130113130101131313011e011516031515171515151515151501010115160315151515151515151515"
    "0101011601041616161616161616161601010115160315151815151515151515010101191607191915191a151b1919190801"
    "01191607191915191a151b1919190101010a160b0a0a151a0a151b0a0a0a0101011c160c1c1c151c1d15011c1c1c0801011c"
    "160c1c1c151c1d15011c1c1c0101010116010101151d011501010101010101011601010115011d1501010101010100000000"
    "0000000000000000000000000000000000000000000000000000000000010002010301010101010401040506070707070707"
    "070707070801000100090a0b0b0b0b0b0b0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0d0c0c0c0c0e000f0001000b0b0b0b0b0b0c"
    "0c0c0c0c0c0c0c0c0c0c0c0c0c0c0d0c0c0c0c00000001000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000fa11f0000001400",
    "0103010201010101010103010103010200000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000001010101010101010101010101010101010101010101010101010000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000"
    "0000000000000000000000030000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000003a1040000000300",
    "0102010102020000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000010000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000001a1030000000200",
    "0001000100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000001000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000001a1020000000100",
    "0101020101010103010303030000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000000002a1040000000300",
    "0101010102030203020302030203010101010101010101010101010101010101010101010101040505050405050504050101"
    "0101010101050504050505040505050101010101010106070607060706070607010101010101010807060706070607060701"
    "010101010101090a0a0a090a0a0a090a010101010101010a0a090a0a0a090a0a0a010101010101010a0a0a0a090a0a0a090a"
    "01010101010b010101010101010101010101010101010c0101010101010101010101010101010101010d0e01010101010101"
    "01010101010101010f0e01010101010101010101010101010101101110121012101012010101010101011012100101010101"
    "0101010101010101010110131012101210101201010101011401010101010101010101010101010101150101010101010101"
    "01010101010101011601010101010101010101010101010101170101010101010101010101010101010101011819191a0101"
    "010101010101010101010118191901010101010101010101010101011819191b0101010101010101010101010118191c0101"
    "010101010101010101010101011d1d1d1d1d1d1d1d1d010101010101011d1d1d1d1d1d1d1d1d1d010101010101011d1d0101"
    "010101010101010101010101011d010101010101010101010101010101011d1d1d1d1d1d1d1d1d0101010101010101010101"
    "01010101010101011e01010101011f1f20010101010101010101010101010121212121212121212121010101010101012121"
    "2122010101010101010101010101010101010101010101010123010101010101010101010101010101012401010101010125"
    "2525252525010101010101010101010125252525252601010101010101010101012727272727272727272701010101010101"
    "27272727272727272728010101010101010101010101010101010129010101010101010101010101010101012a0101010101"
    "012b2b2b2b2b2b01010101010101010101012b2b2b2b2b2b2c010101010101010101012d2d2d2d2d2d2d2d2d2d0101010101"
    "01012e010101010101010101010101012f2f300101010101010101010101013e013131320101010101010101010101013e01"
    "0101013333340101010101010101010101010101353535353535353535350101010101010136010101010101010101010101"
    "0101010137373737373737373737010101010101013838383838383838383801010101010101383838380101010101010101"
    "01012f2f013535353535353535353501013e0101010139010101010101010101010101013131013737373737373737373701"
    "013e01010101010101010101010101013a010101010101010101010101010101013b0101010101013c3c3c3c3c3c01010101"
    "010101010101013d010101010101010101010101010101013e3e3e3e3e3e3e3e3e3e010101010101013e0101010101010101"
    "0101010101010101010101010101010101010101010000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000001000203000405060708090a0b0c0d0e0000000000000000000000000000000000000000"
    "00000000000f000000000010000000000000000000000000000000000000000000000000000f000000000010000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000000000000000000000000010a13f0000003e00",
    "0101020304050505010101010101010101060101010101010106050505050505010605050505070201060202020202020101"
    "08090a0b0b0b0106020202020201010c010101010101010c0b0b0b0b0b0b010c0b0b0b0b0d08010c08080808080801010e0f"
    "10111111010c08080808080101120101010101010112111111111111011211111111130e01120e0e0e0e0e0e010114151617"
    "171701120e0e0e0e0e0101010101010101010101171717171717010117171717181401011414141414140101141414141401"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001000203"
    "0405050607070707000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000007a1190000001400",
    "010102010101010103010104010105010106010107010108010109010a0101010b01010c01010d01010e010f010101100101"
    "1101011201011301140101011501011601011701011801190101011a01011b01011c01011d01011e01011f01012001012101"
    "0122010123010124010125010101000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000100000202020202020202020200000000000000020202020202000000000000000000000000000000"
    "0000000000000000000000020202020202000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000002a1260000002500",
    "0101013f0101010101030141010401420105014301060144010701450108014601090147010a0148010b0149010c014a010d"
    "014b010e014c010f014d0110014e0111014f0112015001130151011401520115015301160154011701550118015601190157"
    "011a0158011b0159011c015a011d015b011e015c011f015d0120015e0121015f012201600123016101240162012501630126"
    "0164012701650128016601290167012a0168012b0169012c016a012d016b012e016c012f016d0130016e0131016f01320170"
    "01330171013401720135017301360174013701750138017601390177013a0178013b0179013c017a013d017b013e017c0101"
    "017d0102004001030041010400420105004301060044010700450108004601090047010a0048010b0049010c004a010d004b"
    "010e004c010f004d0110004e0111004f0112005001130051011400520115005301160054011700550118005601190057011a"
    "0058011b0059011c005a011d005b011e005c011f005d0120005e0121005f0122006001230061012400620125006301260064"
    "012700650128006601290067012a0068012b0069012c006a012d006b012e006c012f006d0130006e0131006f013200700133"
    "0071013400720135007301360074013700750138007601390077013a0078013b0079013c007a013d007b013e007c0101007d"
    "0101000100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000001"
    "0200030303030303030303030000000000000003030303030303030303030303030303030303030303030303030000000000"
    "0003030303030303030303030303030303030303030303030303030000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000003a17e0000003f00",
    "010202010202020202020102010101010101010101010101010101010102020002020202020203020101010101011e1e1e1e"
    "1e1e011e0401010101010708090a0a0a01010101010105011e1e1e1e1e1e011e0101010101011e1e1e1e1e1e011e01010101"
    "010b010101010101010101010101010b0a0a0a0a0a0a010101010101010b0a0a0a0a0c07010101010101010b070707070707"
    "01010101010101010d0e0f101010010101010101010b07070707070101010101010101110101010101010101010101010111"
    "101010101010010101010101011110101010120d01010101010101110d0d0d0d0d0d01010101010101011314151616160101"
    "0101010101110d0d0d0d0d010101010101010117010101010101010101010101011716161616161601010101010101171616"
    "1616181301010101010101171313131313130101010101010101191a1b1c1c1c010101010101011713131313130101010101"
    "010101010101010101010101011f010101011c1c1c1c1c1c0101011f010101011c1c1c1c1d190101011f0101010119191919"
    "19190101011f010101011919191919010101011f010105061e1e1e1e1e1e011e010101010101010101010101010101010000"
    "0000000000000000000000000000000000000000000000000000000000000001000101010101000001010002030104050607"
    "0708090909090000000100010a0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0c000d0101010b0b0b0b0b"
    "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0101010100000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "000000000da1200000001e00",
]
