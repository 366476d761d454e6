"""JSON texts with the one verdict and the one value that they have on every runtime.

(text, verdict, value): verdict True = accepted, and then the value.  RFC 8259, made stricter: no duplicate keys, no
lone surrogates, no byte order mark, at most 32 levels, numbers of at most 40 characters, no number beyond a double.
"""


def _bad(*texts) -> tuple:
    return tuple([(text, False, None) for text in texts])


LITERALS = (
    (b"null", True, None), (b"true", True, True), (b"false", True, False),
) + _bad(b"", b" ", b"\n", b"nul", b"nulll", b"True", b"NULL", b"tru", b"truth", b"falsey", b"none", b"undefined",
         b"nope",
         b"true false", b"truefalse", b"'a'", b"a", b"\x00", b"null\x00", b"\x00null", b"[null\x00]", b"[\x00]", b"&",
         b"\\", b"*")

SPACES = (
    (b" 1", True, 1), (b"1 ", True, 1), (b"\t\r\n 1\n\r\t ", True, 1), (b"[ ]", True, []), (b"{ }", True, {}),
    (b"[ 1 , 2 ]", True, [1, 2]), (b'\n{\t"a"\r:\n1 ,\t"b" : [ ] }\r\n', True, {"a": 1, "b": []}),
) + _bad(b"\x0b1", b"1\x0c", b"\xc2\xa01", b"1\xc2\xa0", b"[\xe2\x80\xa8]", b"[1\x0b]", b"\xef\xbb\xbf1",
         b"\xef\xbb\xbf", b"\xef\xbb\xbf{}",
         b"\xff\xfe1\x00", b"\x1e{}", b"[1,\xe3\x80\x802]")

NUMBERS = (
    (b"0", True, 0), (b"-0", True, 0), (b"7", True, 7), (b"-7", True, -7), (b"10", True, 10),
    (b"1234567890", True, 1234567890),
    (b"2147483648", True, 2147483648), (b"-9223372036854775809", True, -9223372036854775809),
    (b"18446744073709551616", True, 18446744073709551616),
    (b"1" * 40, True, int("1" * 40)), (b"-" + b"1" * 39, True, -int("1" * 39)),
    (b"0.0", True, 0.0), (b"-0.0", True, -0.0), (b"1.5", True, 1.5), (b"-1.25", True, -1.25), (b"1e2", True, 100.0),
    (b"1E2", True, 100.0), (b"1e+2", True, 100.0), (b"25e-2", True, 0.25), (b"0e1", True, 0.0), (b"0E+1", True, 0.0),
    (b"0e-999", True, 0.0), (b"1.0e0", True, 1.0), (b"-1.5E-1", True, -0.15),
    (b"1e0000000000000000000000000000000000001", True, 10.0),
    (b"0." + b"0" * 38, True, 0.0), (b"0.1", True, 0.1), (b"123.456", True, 123.456), (b"[1,1.0]", True, [1, 1.0]),
    (b"1e22", True, 1e22), (b"1e-400", True, 0.0),
) + _bad(b"01", b"-01", b"00", b"-", b"--1", b"+1", b"-+1", b"1.", b"-1.", b".5", b"-.5", b"1.e1", b".e1", b"1e",
         b"1e+", b"1E-",
         b"1.5e", b"0e", b"1ee2", b"1e2.5", b"1.2.3", b"1-", b"1+1", b"1 000", b"1,000", b"1_000", b"0x10", b"0b1",
         b"1a", b"1f",
         b"- 1", b"1 .5", b"NaN", b"-NaN", b"Infinity", b"-Infinity", b"inf", b"nan", b"[NaN]", b"[-Infinity]",
         b'{"a":Infinity}',
         b"1e400", b"-1e400", b"1e999999", b"[1e309]", b"1" * 41, b"-" + b"1" * 40, b"0." + b"0" * 39,
         b"1e" + b"0" * 39,
         b"[" + b"1" * 5000 + b"]", b"1" * 5000, b"\xd9\xa1", b"1\xd9\xa1", b"\xef\xbc\x91", b"1\xc2\xb2", b"[01]",
         b"[1.]", b"[-]", b"{\"a\":.5}")

ARRAYS = (
    (b"[]", True, []), (b"[[]]", True, [[]]), (b"[1]", True, [1]), (b"[1,2]", True, [1, 2]),
    (b"[null,true]", True, [None, True]),
    (b'["a",["b",[{}]]]', True, ["a", ["b", [{}]]]), (b'["[","{","]","}"]', True, ["[", "{", "]", "}"]),
) + _bad(b"[", b"]", b"[[]", b"[]]", b"[1 2]", b"[1,]", b"[,1]", b"[,]", b"[1,,2]", b"[1", b"[1,", b"[1;2]", b"[1:2]",
         b"[1}", b"(1)",
         b"[1] 2", b"[][]", b"[1],", b"[a]", b'["a" "b"]', b'["a"', b"[1,//x\n2]", b"[1,/*x*/2]", b"[1]#", b"/**/1",
         b"//\n1", b"[true false]")

OBJECTS = (
    (b"{}", True, {}), (b'{"a":1}', True, {"a": 1}), (b'{"":0}', True, {"": 0}),
    (b'{"a":{"a":{}}}', True, {"a": {"a": {}}}),
    (b'{"a":1,"A":2}', True, {"a": 1, "A": 2}), (b'[{"a":1},{"a":2}]', True, [{"a": 1}, {"a": 2}]),
    (b'{"a":[{"a":1},{"b":{"a":2}}],"b":3}', True, {"a": [{"a": 1}, {"b": {"a": 2}}], "b": 3}),
    (b'{"\\u0061":1,"b":2}', True, {"a": 1, "b": 2}), (b'{"a:b":"c:d,{"}', True, {"a:b": "c:d,{"}),
    (b'{"\xc3\xa9":1}', True, {"\u00e9": 1}), (b'{"\\n":1}', True, {"\n": 1}),
) + _bad(b"{", b"}", b"{]", b"{}}", b'{"a"}', b'{"a":}', b'{"a":1', b'{"a":1,', b'{"a":1,}', b'{,}', b'{,"a":1}',
         b'{"a" 1}', b'{"a",1}',
         b'{"a"::1}', b'{"a":1 "b":2}', b'{"a":1;"b":2}', b'{"a":1]', b"{a:1}", b"{'a':1}", b"{1:2}", b"{null:1}",
         b"{[]:1}", b'{"a":1,,"b":2}',
         b'{"a":1}{"b":2}', b'{"a":1} {"b":2}', b'{"a":1}\n{"b":2}', b'{"a":1}x', b'{"a":1}"', b'{"a":1}//', b'{"a"',
         b'{"', b'{"a":', b'{:1}',
         b'{"a":1,"a":1}', b'{"a":1,"a":2}', b'{"a":1,"\\u0061":2}', b'{"\\u0061":1,"a":2}', b'{"":0,"":0}',
         b'{"a":1,"b":2,"c":3,"a":4}',
         b'{"x":{"a":1,"a":2}}', b'[[[{"a":[],"b":{},"a":null}]]]', b'{"\xc3\xa9":1,"\\u00e9":2}',
         b'{"\\n":1,"\\u000A":2}',
         b'{"/":1,"\\/":2}', b'{"\xf0\x9f\x98\x80":1,"\\ud83d\\uDE00":2}', b'{"a":{"b":1},"a":{"b":1}}')

STRINGS = (
    (b'""', True, ""), (b'"a"', True, "a"), (b'" "', True, " "), (b'"\x7f"', True, "\x7f"), (b'"\\\\"', True, "\\"),
    (b'"\\""', True, '"'),
    (b'"\\"\\\\\\/\\b\\f\\n\\r\\t"', True, '"\\/\b\f\n\r\t'), (b'"/"', True, "/"), (b'"\\u0000"', True, "\x00"),
    (b'"\\u0041\\u00e9"', True, "A\u00e9"),
    (b'"\\u20AC\\u20ac"', True, "\u20ac\u20ac"), (b'"\\uFFFF\\ufffe"', True, "\uffff\ufffe"),
    (b'"\\u005c\\u0022"', True, '\\"'),
    (b'"\\\\u0041"', True, "\\u0041"), (b'"\\\\\\u0041"', True, "\\A"), (b'"\\\\ud800"', True, "\\ud800"),
    (b'"\\\\\\\\ud800"', True, "\\\\ud800"),
    (b'"\\ud83d\\ude00"', True, "\U0001f600"), (b'"\\uD83D\\uDE00x"', True, "\U0001f600x"),
    (b'"\\ud800\\udc00\\udbff\\udfff"', True, "\U00010000\U0010ffff"),
    (b'"\\ud7ff\\ue000"', True, "\ud7ff\ue000"), (b'"\xf0\x9f\x98\x80"', True, "\U0001f600"),
    (b'"caf\xc3\xa9 \xe2\x82\xac"', True, "caf\u00e9 \u20ac"),
    (b'"\xef\xbb\xbf"', True, "\ufeff"), (b'"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85"', True, "\u2028\u2029\x85"),
    (b'"\xf4\x8f\xbf\xbf"', True, "\U0010ffff"),
    (b'"\xed\x9f\xbf\xee\x80\x80"', True, "\ud7ff\ue000"), (b'"a\\nb\xc3\xa9\\u00e9\\"c"', True, 'a\nb\u00e9\u00e9"c'),
    (b'["\\\\","\\\\\\\\"]', True, ["\\", "\\\\"]), (b'["a\\\\",2]', True, ["a\\", 2]),
    (b'"' + b"x" * 3000 + b'"', True, "x" * 3000),
    (b'"' + b"\\n\xe2\x82\xac" * 500 + b'"', True, "\n\u20ac" * 500), (b'"' + b"\\\\" * 1001 + b'"', True, "\\" * 1001),
) + _bad(b'"', b'"a', b'a"', b'"\\"', b'"\\', b'"""', b'"a"b"', b'"a" "b"', b'"\n"', b'"\r"', b'"\t"', b'"\x00"',
         b'"\x1f"', b'"a\x1e"', b'{"\n":1}',
         b'\n{"a":"b\tc"}', b'"\\a"', b'"\\v"', b'"\\x41"', b'"\\0"', b'"\\\'"', b'"\\ "', b'"\\N"', b'"\\\n"',
         b'"\\U0041"', b'"\\\xc3\xa9"', b'"\\\x00"',
         b'"\\u"', b'"\\u1"', b'"\\u12"', b'"\\u123"', b'"\\u123', b'"\\u12', b'"\\u', b'"\\u123g"', b'"\\u 041"',
         b'"\\u+041"', b'"\\u-041"', b'"\\u0_41"',
         b'"\\u{41}"', b'"\\u00\xc3\xa9"', b'"\\u0x41"', b'"\\ud83d\\u 041"', b'"\\u004"1"',
         b'"\\ud800"', b'"\\udbff"', b'"\\udc00"', b'"\\uDFFF"', b'"\\ud83dx"', b'"\\ud83d\\n"', b'"\\ud83d\\u0041"',
         b'"\\ud83d\\ud83d"',
         b'"\\ude00\\ud83d"', b'"\\ud83d\\ud83d\\ude00"', b'"\\ud83d\\ude00\\ude00"', b'"\\ud83d\\\\ude00"',
         b'"\\\\\\ud800"', b'"\\ud83d\\ude0"',
         b'"\\ud83d\\u"', b'"\\ud83d', b'"\\ud83d\\', b'{"\\ud800":1}', b'["ok","\\udead"]', b'"\\ud83d\xed\xb8\x80"',
         b'"\xed\xa0\x80"', b'"\xed\xa0\xbd\xed\xb8\x80"', b'"\xc0\x80"', b'"\xc0\xa2"', b'"\xe0\x80\x80"',
         b'"\xf0\x80\x80\x80"', b'"\xf4\x90\x80\x80"',
         b'"\xf8\x88\x80\x80\x80"', b'"\x80"', b'"\xc3"', b'"\xc3', b'"\xe2\x82"', b'"\xff"', b'"\xfe\xff"',
         b'"a\\n\xed\xa0\x80"', b'{"\xff":1}', b"\xff", b"[\xff]",
         b'"\xc3\\u0041"', b'["\xe2","\x82\xac"]')


def _deep(depth: int, opening: bytes, core: bytes, closing: bytes) -> bytes:
    return opening * depth + core + closing * depth


def _nested(depth: int, core, is_map: bool):
    for _ in range(depth):
        core = {"a": core} if is_map else [core]
    return core


DEPTHS = (
    (_deep(31, b"[", b"1", b"]"), True, _nested(31, 1, False)),
    (_deep(32, b"[", b"1", b"]"), True, _nested(32, 1, False)),
    (_deep(31, b'{"a":', b"{}", b"}"), True, _nested(31, {}, True)),
    (_deep(31, b'{"a":', b"[]", b"}"), True, _nested(31, [], True)),
    (_deep(32, b'{"a":', b'"[{[{\\"["', b"}"), True, _nested(32, '[{[{"[', True)),
    (_deep(2, b'[{"a":', b"1", b"}]") + b" " * 99, True, [{"a": [{"a": 1}]}]),
    (b"[" + b"[]," * 60 + b"{}]", True, [[]] * 60 + [{}]),
    (b'["' + b"[{" * 60 + b'","\\\\",{"]":"\\"["}]', True, ["[{" * 60, "\\", {"]": '"['}]),
    (_deep(31, b"[", b"[],[],{}", b"]"), True, _nested(30, [[], [], {}], False)),
) + _bad(_deep(33, b"[", b"1", b"]"), _deep(33, b"[", b"", b"]"), _deep(32, b"[", b"{}", b"]"),
         _deep(32, b'{"a":', b"[]", b"}"), _deep(33, b'{"a":', b"1", b"}"),
         _deep(32, b"[", b'"]]",[]', b"]"), _deep(32, b"[", b'"\\"]\\\\",[]', b"]"), _deep(100, b"[", b"", b"]"),
         _deep(17, b'[{"a":', b"1", b"}]"),
         b"[" * 33, b"[" * 50000, _deep(50000, b"[", b"", b"]"), _deep(10000, b'{"a":', b"1", b"}"), b"[" * 32,
         b"]" * 40)

VECTORS = LITERALS + SPACES + NUMBERS + ARRAYS + OBJECTS + STRINGS + DEPTHS
