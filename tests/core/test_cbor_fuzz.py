"""Every decoder, given damaged input: it decodes or raises its own error, nothing else, and all
runtimes agree.

Damage: every truncation, every single bit, and seeded random bytes (an own generator: all runtimes
see the same)."""

from json_vectors import VECTORS
from test_json import CODECS, same

from clawlite.core.base.errors import CBORError, ParseError
from clawlite.core.formats import cbor
from clawlite.core.formats.encoder import encode
from clawlite.core.line.frame import RECORD, TEXT, TOO_LONG, Framer

RECORDS = (
    [
        1,
        "greenhouse",
        "0.2.0",
        [["read-file", "Read a file", 3, [0, 1, 1000], True, None, b"\x01\x02" * 5, -5]],
    ],
    {
        1: [1.5, -0.0, 0.1, 100000.0, 65504.0],
        2: {"type": "object", "required": ["path"], "caf\u00e9": "\u20ac\U0001f600"},
        -1: 18446744073709551615,
        -300: -18446744073709551616,
        "k": b"",
        "kk": [[], {}, [[[{0: 65536}]]]],
    },
    ["x" * 30, b"y" * 300, list(range(-30, 30)), "\u00e9" * 130],
)
TEXTS = (
    b'{"jsonrpc":"2.0","id":17,"method":"claw.tool.call","params":{"name":"read_file","n":[0,-1,2.5e3,true,null]}}',
    b' [ "caf\xc3\xa9 \\u20ac \\ud83d\\ude00 \\"q\\"\\n" , { "a" : { "" : [ ] } , "b\\\\" : '
    b"-0.5E-2 } ]\r\n",
)
SEED = 20260117


class Random:
    """Numerical Recipes' LCG, whose products fit in 64 bits; the upper bits are the good ones."""

    def __init__(self, seed: int):
        self.state = seed & 0xFFFFFFFF

    def below(self, n: int) -> int:
        self.state = (self.state * 1664525 + 1013904223) & 0xFFFFFFFF
        return (self.state >> 8) % n


def damaged(data: bytes):
    """Yield every truncation of *data*, then *data* with every single bit flipped."""
    for end in range(len(data)):
        yield data[:end]
    copy = bytearray(data)
    for i in range(len(data)):
        for bit in range(8):
            copy[i] ^= 1 << bit
            yield bytes(copy)
            copy[i] ^= 1 << bit


def check_cbor(data: bytes) -> bool:
    """Return whether *data* is accepted; what is accepted has no other encoding."""
    try:
        value = cbor.decode(data)
    except CBORError:
        return False
    assert encode(value) == data, data
    return True


def check_json(data: bytes) -> bool:
    """Return whether *data* is accepted; all decoders of this runtime must agree on it and on
    the value.
    """
    results = []
    for codec in CODECS:
        try:
            results.append((True, codec.loads(data)))
        except ParseError as error:
            assert "byte" in error.message
            results.append((False, None))
    for accepted, value in results[1:]:
        assert accepted == results[0][0] and same(value, results[0][1]), data
    return results[0][0]


def test_damaged_cbor():
    for record in RECORDS:
        data = encode(record)
        assert check_cbor(data)
        accepted = 0
        for bad in damaged(data):
            accepted += check_cbor(bad)
        assert 0 < accepted < 8 * len(data)  # flips within strings and numbers go unseen


def test_random_cbor():
    random = Random(SEED)
    accepted = 0
    for _ in range(1500):
        accepted += check_cbor(bytes([random.below(256) for _ in range(random.below(12))]))
    data = encode(RECORDS[1])
    for _ in range(1000):
        copy = bytearray(data)
        for _ in range(1 + random.below(4)):
            copy[random.below(len(copy))] = random.below(256)
        accepted += check_cbor(bytes(copy))
    assert accepted > 0


def test_damaged_json():
    for data in TEXTS:
        assert check_json(data)
        accepted = 0
        for bad in damaged(data):
            accepted += check_json(bad)
        assert 0 < accepted < 8 * len(data)


def test_random_json():
    """Vectors with parts of other vectors in them, and random tokens."""
    random = Random(SEED + 1)
    short = [text for text, _, _ in VECTORS if len(text) < 60]
    tokens = (
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b'"',
        b"\\",
        b"\\u",
        b"d83d",
        b"de00",
        b"0",
        b"1",
        b"-",
        b".",
        b"e",
        b"true",
        b" ",
        b"\n",
        b'"a"',
        b'"a":',
        b"\xc3",
        b"\xa9",
        b"\xed\xa0\x80",
        b"\x00",
        b"1" * 30,
    )
    for _ in range(1200):
        data = short[random.below(len(short))]
        pos = random.below(len(data) + 1)
        other = short[random.below(len(short))]
        check_json(
            data[:pos] + other[random.below(len(other) + 1) :] + data[pos + random.below(2) :]
        )
        check_json(
            b"".join([tokens[random.below(len(tokens))] for _ in range(1 + random.below(8))])
        )


def test_random_frames():
    """Any portions give the same events, nothing raises, and no more than the limit is held."""
    random = Random(SEED + 2)
    alphabet = b"ab{}\n\n\r\x1e\x00\xff"
    for _ in range(150):
        data = bytes([alphabet[random.below(len(alphabet))] for _ in range(random.below(300))])
        limit = 1 + random.below(12)
        for plain_json in (False, True):
            whole = drain(Framer(limit, plain_json), data, len(data) or 1)
            assert drain(Framer(limit, plain_json), data, 1 + random.below(7)) == whole
            assert drain(Framer(limit, plain_json), data, 1) == whole
            for kind, payload in whole:
                assert kind == TOO_LONG or kind == RECORD or (kind == TEXT and not plain_json)
                assert (
                    int(payload) > limit
                    if kind == TOO_LONG
                    else len(payload) <= limit and b"\n" not in payload
                )


def drain(framer, data: bytes, portion: int) -> list:
    events = []
    for pos in range(0, len(data), portion):
        framer.feed(data[pos : pos + portion])
        event = framer.next_event()
        while event is not None:
            events.append(event)
            event = framer.next_event()
        # compiled, it is not to be seen
        assert len(getattr(framer, "_open", b"")) <= framer.limit
        assert not getattr(framer, "_chunk", b"")
    framer.finish()
    event = framer.next_event()
    while event is not None:
        events.append(event)
        event = framer.next_event()
    return events


def test_framed_garbage_reaches_the_decoder_as_lines():
    """The way of the wire: a framer, then the decoder, over bytes that mean nothing."""
    random = Random(SEED + 3)
    framer = Framer(200, True)
    for _ in range(40):
        framer.feed(bytes([random.below(256) for _ in range(100)]))
        event = framer.next_event()
        while event is not None:
            if event[0] == RECORD:
                check_json(event[1])
            event = framer.next_event()
