"""Small parts of the core: versions, ids, time, text for people, pins, the lifecycle, errors."""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import (
    ClawError,
    InvalidParams,
    InvalidRequest,
    SandboxDenied,
    VersionError,
)
from clawlite.core.base.printable import printable
from clawlite.core.base.render import call_text, canonical, quote
from clawlite.core.image.pins import ADC, INPUT, OUTPUT, PWM, SimulatedPins
from clawlite.core.protocol import rpc
from clawlite.core.protocol.calls import is_uuid
from clawlite.core.protocol.handshake import negotiate, parse_version


def raised(kind, function, *args):
    try:
        function(*args)
    except kind as e:
        return e
    return None


def test_versions_are_negotiated():
    """CKP 0.2.0, 1.4: any 0.x is accepted; 9.3.1: the answer is equal to or lower than what was
    asked.
    """
    for asked, spoken in (
        ("0.1.0", "0.1.0"),
        ("0.2.0", "0.2.0"),
        ("0.2.5", "0.2.5"),
        ("0.3.0", "0.3.0"),
        ("0.9.0", "0.3.0"),
        ("0.3.0-rc.1", "0.3.0-rc.1"),
        ("0.3.1", "0.3.0"),
    ):
        assert negotiate(asked) == spoken


def test_another_major_is_refused_with_what_is_supported():
    """CKP 0.2.0, 9.3.1: -32001 with data.supported."""
    for asked in ("1.0.0", "99.0.0", "2.0.0-beta"):
        e = raised(VersionError, negotiate, asked)
        assert e.code == -32001 and e.data == {"supported": ["0.2.0", "0.3.0"]}


def test_what_is_no_version_is_refused():
    for asked in (
        None,
        "",
        "banana",
        "0.3",
        "0.3.0.0",
        "01.0.0",
        "0.03.0",
        "0.3.0-",
        "0.3.0-a..b",
        "0.3.0-ü",
        3,
        ["0.3.0"],
        "v0.3.0",
        "0.3.x",
        "1234567890.0.0",
        "0.3.0-" + "a" * 60,
        " 0.3.0",
    ):
        assert raised(InvalidParams, negotiate, asked), asked
    assert parse_version("0.3.0-" + "a" * 58)[3] == "a" * 58


def test_time_stamps_are_iso_8601():
    for epoch, text in (
        (0, "1970-01-01T00:00:00Z"),
        (951782399, "2000-02-28T23:59:59Z"),
        (951782400, "2000-02-29T00:00:00Z"),
        (1772192400, "2026-02-27T11:40:00Z"),
        (4107542400, "2100-03-01T00:00:00Z"),
        (1735689599, "2024-12-31T23:59:59Z"),
    ):
        assert iso8601(epoch) == text


def test_uuids():
    assert is_uuid("c1a00000-0000-4000-8000-00000000FFf0")
    for wrong in (
        "",
        "c1a00000-0000-4000-8000-00000000fff",
        "c1a00000-0000-4000-8000-00000000fff0a",
        "c1a0000000004000800000000000fff0",
        "g1a00000-0000-4000-8000-00000000fff0",
        "c1a00000-0000-4000-80000-0000000fff0",
    ):
        assert not is_uuid(wrong), wrong


def test_requests_are_parsed():
    assert rpc.parse(
        {"jsonrpc": "2.0", "id": "", "method": "m", "params": {"a": 1}, "more": True}
    ) == ("", "m", {"a": 1})
    assert rpc.parse({"jsonrpc": "2.0", "id": None, "method": "m"}) == (None, "m", {})


def test_what_nobody_answers():
    for message in (
        {"jsonrpc": "2.0", "method": "m"},
        {"jsonrpc": "2.0", "method": "m", "params": 5},
        {"jsonrpc": "2.0", "id": 1, "result": 1},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}},
        {"result": None},
        {"error": None, "id": True},
    ):
        assert rpc.parse(message) is None, message


def test_wrong_requests_are_refused():
    for message in (
        5,
        None,
        "x",
        [],
        {},
        {"jsonrpc": "1.0", "method": "m"},
        {"jsonrpc": "2.0", "method": 5},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": True, "method": "m"},
        {"jsonrpc": "2.0", "id": [1], "method": "m"},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": 5},
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": None},
    ):
        assert raised(InvalidRequest, rpc.parse, message), message


def test_ids_of_wrong_requests():
    assert (
        rpc.id_of({"id": 7}) == 7
        and rpc.id_of({"id": "a"}) == "a"
        and rpc.id_of({"id": 1.5}) == 1.5
    )
    for message in (5, {}, {"id": True}, {"id": {}}, {"id": [1]}):
        assert rpc.id_of(message) is None


def test_a_batch_is_whole_at_its_last_answer():
    sent = []
    batch = rpc.Batch(3, sent.append)
    for reply in ({"id": 1}, None, {"id": 2}):
        assert sent == []
        batch.add(reply)
    assert sent == [[{"id": 1}, {"id": 2}]]


def test_a_batch_without_an_answer_is_not_answered():
    sent = []
    batch = rpc.Batch(2, sent.append)
    batch.add(None)
    batch.add(None)
    assert sent == []


def test_values_are_written_alike_everywhere():
    value = {"b": [1, 2.5, None, True, False, -7.0], "a": 'ä\n"\\\x01', "c": {}}
    assert canonical(value) == '{"a":"ä\\n\\"\\\\\\u0001","b":[1,2.5,null,true,false,-7],"c":{}}'
    assert canonical("x" * 50, 10) == '"xxxxxxxxx...' and canonical(b"\0") == "<bytes>"
    assert canonical({2: 1, 10: 2}) == '{"10":2,"2":1}'
    assert quote("\x7f") == '"\\u007f"'
    deep = []
    for _ in range(100):
        deep = [deep]
    assert canonical(deep).count("[") == 33
    assert call_text("water", {"seconds": 5, "a": "x"}) == 'water(a="x", seconds=5)'


def test_a_call_is_shown_whole_while_it_fits_a_screen():
    command = "x" * 1000 + "; rm -rf /"
    assert call_text("exec", {"command": command}) == 'exec(command="%s")' % command
    assert call_text("t", {"a": "x" * 1193}).count(
        "x"
    ) == 1193 and "characters in all" in call_text("t", {"a": "x" * 1194})


def test_of_a_longer_call_both_ends_and_the_length_are_shown():
    said = call_text("exec", {"command": "ls" + "x" * 5000 + "; rm -rf /", "z": "short"}, "/show")
    assert said.startswith('exec(command="lsxxx') and said.endswith('x; rm -rf /", z="short")')
    assert "<... 5022 characters in all, shown by /show ...>" in said and len(said) < 1300
    many = {"k%03d" % i: "x" * 100 for i in range(200)}
    assert len(call_text("t", many)) < 2500
    everything = call_text("t", many, None)
    assert everything.count("x") == 20000 and "characters in all" not in everything


def test_nothing_hides_in_what_a_person_decides_about():
    assert call_text("e", {"c": "ls" + " " * 60 + "; rm"}) == 'e(c="ls<60 blanks>; rm")'
    assert call_text("e", {"c": "a b   c\n\n\td\r"}) == 'e(c="a b   c\\n\\n\\td\\r")'
    for c, said in (
        ("\u200b", "\\u200b"),
        ("\u2060", "\\u2060"),
        ("\ufe0f", "\\ufe0f"),
        ("\u00a0", "\\xa0"),
        ("\u3000", "\\u3000"),
        ("\U000e0041", "\\U000e0041"),
        ("\u061c", "\\u061c"),
        ("\u202e", "\\u202e"),
        ("\u2028", "\\u2028"),
    ):
        assert call_text("e", {"c": "l" + c + "s"}) == 'e(c="l' + said + 's")'
    assert call_text("e", {'a="1", c': "x"}) == 'e("a=\\"1\\", c"="x")'
    assert call_text("e", {"c": "\u6c34 na\u00efve \u20ac"}) == 'e(c="\u6c34 na\u00efve \u20ac")'


def test_no_text_drives_a_terminal():
    for plain in (
        "",
        "21 \u00b0C, na\u00efve \u2014 \u6c34 \U0001f331\n\tdone\n",
        "~",
        "\u00a0",
        "\u202f",
        "\u2600\ufe0f \U0001f468\u200d\U0001f33e \U0001f3f3\ufe0f\u200d\U0001f308",
    ):
        assert printable(plain.encode()) == plain.encode()
    for text, shown in (
        ("a\x1b[2Jb\r\x00\x7f\u009b\u0080\u009fz", "a\\x1b[2Jb\\x0d\\x00\\x7f\\x9b\\x80\\x9fz"),
        ('\x1e{"jsonrpc":"2.0"}\n', '\\x1e{"jsonrpc":"2.0"}\n'),
        ("a\u200db\ufe0f", "a\\u200db\\ufe0f"),
        ("\U0001f331\u200d\u200d", "\U0001f331\u200d\\u200d"),
        (
            "\U0001f331\u6c34\u202a\u202egpj.\u2066x\u2069",
            "\U0001f331\u6c34\\u202a\\u202egpj.\\u2066x\\u2069",
        ),
    ):
        assert printable(text.encode()) == shown.encode()


def test_each_range_of_what_cannot_be_seen_is_written_out():
    for first, last in (
        (0x200B, 0x200F),
        (0x2028, 0x202E),
        (0x2060, 0x206F),
        (0x61C, 0x61C),
        (0xFEFF, 0xFEFF),
        (0xE0000, 0xE007F),
        (0xAD, 0xAD),
        (0x34F, 0x34F),
        (0x180B, 0x180F),
        (0x3164, 0x3164),
        (0xFE00, 0xFE0F),
        (0xE0100, 0xE01EF),
        (0x80, 0x9F),
        (0xFFF9, 0xFFFB),
    ):
        for c in range(first, last + 1):
            said = printable(("a" + chr(c) + "b").encode())
            assert said.startswith(b"a\\") and said.endswith(b"b"), c
        for c in (first - 1, last + 1):
            if c not in (0xFE10, 0x7F, 0xE00FF, 0xDFFFF, 0x180A, 0xE01F0, 0xE0080, 0xFFF8):
                assert printable(("a" + chr(c) + "b").encode()) == ("a" + chr(c) + "b").encode(), c


def test_errors_carry_a_hint_in_their_data():
    assert ClawError("m").to_json() == {"code": -32603, "message": "m"}
    assert ClawError("m", "do it", {"a": 1}).to_json() == {
        "code": -32603,
        "message": "m",
        "data": {"a": 1, "hint": "do it"},
    }


NOW = [0]
BANK = [
    ["soil", 26, ADC, 1000, None, 0, 0, 0, 0],
    ["pump", 15, OUTPUT, 0, "soil", 500, 0, 0, 0],
    ["fan", 3, PWM, 0, None, 0, 0, 0, 0],
    ["door", 4, INPUT, 1, None, 0, 0, 0, 0],
]


def bank():
    NOW[0] = 0
    return SimulatedPins(BANK, lambda: NOW[0])


def test_pins_are_read_and_written_by_name():
    pins = bank()
    assert pins.read("soil") == 1000 and pins.read("door") == 1
    pins.write("fan", 65535)
    pins.write("pump", True)
    assert pins.read("fan") == 65535 and pins.read("pump") == 1
    assert [pin["name"] for pin in pins.describe()] == ["soil", "pump", "fan", "door"]


def test_a_relay_that_is_on_while_its_pin_is_low():
    NOW[0] = 0
    rows = [BANK[0], ["relay", 15, OUTPUT, 1, "soil", 500, 0, 1, 0]]
    pins = SimulatedPins(rows, lambda: NOW[0])
    NOW[0] = 2000
    assert pins.read("soil") == 1000 and pins.safe_level("relay") == 1
    pins.write("relay", 0)
    NOW[0] = 4000
    pins.off()
    NOW[0] = 6000
    assert pins.read("soil") == 2000 and pins.read("relay") == 1


def test_an_output_that_is_on_moves_what_it_raises():
    pins = bank()
    pins.write("pump", 1)
    NOW[0] = 4000
    assert pins.read("soil") == 3000
    pins.write("pump", 0)
    NOW[0] = 9000
    assert pins.read("soil") == 3000
    pins.write("pump", 1)
    NOW[0] = 10000000
    assert pins.read("soil") == 65535


def test_a_pin_that_is_not_declared_or_of_another_kind_is_refused():
    pins = bank()
    assert raised(SandboxDenied, pins.read, "valve").hint
    for name, value in (("soil", 1), ("door", 0), ("pump", 2), ("pump", -1), ("fan", 65536)):
        assert raised(SandboxDenied, pins.write, name, value), name
