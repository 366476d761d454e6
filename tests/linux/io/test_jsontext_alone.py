"""The JSON decoder as a device runs it: in a process that has not imported ``json``."""

import pathlib
import subprocess
import sys
from random import Random

import pytest

from clawlite.core.base.errors import ParseError
from clawlite.linux.io import jsontext

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
sys.path[:0] = [{root!r}, {core!r}]
from clawlite.linux.io import jsontext
from clawlite.core.base.errors import ParseError
assert "json" not in sys.modules and "re" not in sys.modules, "importing it is what this module is there to avoid"
assert jsontext.loads(b'[1]') == [1] and "json" not in sys.modules
import json_vectors
refused = 0
for data, verdict, value in json_vectors.VECTORS + json_vectors.depths(32):
    sys.modules.pop("json.decoder", None)
    try:
        jsontext.loads(data)
    except ParseError as e:
        assert not verdict, data
        assert str(e).startswith("JSON byte "), e
        refused += 1
    else:
        assert verdict, data
print(refused)
"""  # noqa: E501


def test_vectors_hold_where_nothing_has_imported_json():
    script = SCRIPT.format(root=str(ROOT), core=str(ROOT / "tests" / "core"))
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


REQUESTS = (
    b'{"jsonrpc":"2.0","id":7,"method":"claw.tool.call","params":{"name":"echo","arguments":%s,"context":{"request_id":"x"}}}',
    b'{"jsonrpc": "2.0", "id": "a:b", "method": "claw.tool.call", "params": {"name": "echo", '
    b'"arguments": %s}}',
    b'{"params":%s}',
    b'{"params":{"a":%s}}',
    b'{"params":{"a":{"b":%s}}}',
    b'{"params":{"a":[{"b":1},%s]}}',
    b'{"params":{"a":{"b":{"c":%s}}}}',
    b"[%s]",
    b" %s ",
)
ARGUMENTS = (
    b"{}",
    b'{"text":"at 12:30","count":1,"loud":false}',
    b'{"a":1,"a":2}',
    b'{"a" :1,"a":2}',
    b'{"a":1,"b":{"c":1,"c":2}}',
    b'{"a":":","b":[{},{"c":[1,2]}]}',
    b'{"a":1.5,"b":1e400}',
    b'{"a":NaN}',
    b'{"a":"\\u003a","\\u0061":1}',
    b'{"a":"\xc3\xa9:"}',
    b'{"a":"x}',
    b'{"a":' + b"1" * 40 + b"}",
    b'{"a":' + b"1" * 41 + b"}",
    b'{"a":' + b"1" * 5000 + b"}",
    b'"a"',
    b"[]",
    b"null",
    b"",
    b"[" * 26 + b"{}" + b"]" * 26,
    b"[" * 27 + b"{}" + b"]" * 27,
    b"[" * 33 + b"]" * 33,
    b'{"a":' * 31 + b"1" + b"}" * 31,
    b'{"a":' * 200 + b"1" + b"}" * 200,
    b'{"a":[1,"[:]"],"b":"]"}',
    b'{"entries":[{"content":"c: d","tags":[]},{"content":"e","content":"f"}]}',
    b'{"content":"c: d","tags":["e"]},{"content":"f"}',
)


def outcome(decode, data: bytes) -> str:
    try:
        return repr(decode(data))
    except jsontext.ParseError as e:
        return "refused: %s" % e


def test_requests_are_read_as_everything_else_is():
    """Also when they are cut, and when a part of them comes twice or in another place."""
    random = Random(4)
    quick = 0
    for frame in REQUESTS:
        for arguments in ARGUMENTS:
            whole = frame.replace(b"%s", arguments)
            for turn in range(40):
                data = whole
                if turn:
                    at, to, end = (random.randrange(len(whole) + 1) for _ in range(3))
                    data = (
                        whole[:at]
                        + whole[min(to, end) : max(to, end)][:40]
                        + whole[at + random.randrange(12) :]
                    )
                expected = outcome(jsontext.loads, data)
                assert outcome(jsontext.request, data) == expected, data
                quick += not expected.startswith("refused")
    assert quick > 250


def test_a_trailing_comma_is_told_the_same_by_every_python():
    """Since 3.13 the scanner names the comma, and no longer what it expected after it."""
    for text, before, since, expected in (
        ('{"a":1 , }', 9, 7, "a property name in double quotes"),
        ("[1,\t]", 4, 2, "a value"),
    ):
        ends = "object" if "{" in text else "array"
        told = jsontext._explain(text, since, "Illegal trailing comma before end of " + ends)
        assert told == (before, expected)
        whole = "byte %d: expected %s, found '%s'" % (*told, text[-1])
        with pytest.raises(ParseError, match=whole):
            jsontext.loads(text.encode())
