"""core/text: what is UTF-8 and what is not is the same on every runtime (RFC 3629)."""

from clawlite.core.base.text import decode_utf8

GOOD = (
    (b"", ""),
    (b"abc", "abc"),
    (b"\x00\x7f", "\x00\x7f"),
    (b"\xc2\x80", "\u0080"),
    (b"\xdf\xbf", "\u07ff"),
    (b"\xe0\xa0\x80", "\u0800"),
    (b"\xe0\xbf\xbf", "\u0fff"),
    (b"\xe1\x80\x80", "\u1000"),
    (b"\xed\x80\x80", "\ud000"),
    (b"\xed\x9f\xbf", "\ud7ff"),
    (b"\xee\x80\x80", "\ue000"),
    (b"\xef\xbf\xbf", "\uffff"),
    (b"\xef\xbb\xbfa", "\ufeffa"),
    (b"\xf0\x90\x80\x80", "\U00010000"),
    (b"\xf3\xbf\xbf\xbf", "\U000fffff"),
    (b"\xf4\x80\x80\x80", "\U00100000"),
    (b"\xf4\x8f\xbf\xbf", "\U0010ffff"),
    (b"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\u00e9 \u20ac \U0001f600"),
    # a lead byte's pattern across two characters, and lead bytes one after the other
    (b"\xe3\x83\xad\xed\x95\x9c", "\u30ed\ud55c"),
    (b"\xe0\xa4\x85\xe0\xa4\x86", "\u0905\u0906"),
)
BAD = (
    b"\x80",
    b"\xbf",
    b"a\x80",
    b"\xc3",
    b"\xc3a",
    b"\xc3\xc3\xa9",
    b"\xe2\x82",
    b"\xe2\x82a",
    b"\xf0\x9f\x98",
    b"\xc0\x80",
    b"\xc0\xaf",
    b"\xc1\xbf",
    b"\xe0\x80\x80",
    b"\xe0\x9f\xbf",
    b"\xf0\x80\x80\x80",
    b"\xf0\x8f\xbf\xbf",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xed\xa0\xbd\xed\xb8\x80",
    b"\xf4\x90\x80\x80",
    b"\xf5\x80\x80\x80",
    b"\xf6\x80\x80\x80",
    b"\xf7\xbf\xbf\xbf",
    b"\xf8\x88\x80\x80\x80",
    b"\xfc\x84\x80\x80\x80\x80",
    b"\xfe",
    b"\xff",
    b"ok \xe0\xa0\x80 then \xe0\x9f\xbf",
    b"\xed\x9f\xbf\xed\xa0\x80",
    b"\xf0\x90\x80\x80\xf0\x8f\xbf\xbf",
)


def _decodes(data) -> bool:
    try:
        decode_utf8(data)
    except ValueError:
        return False
    return True


def test_text_is_decoded_from_every_kind_of_buffer():
    for data, text in GOOD:
        assert decode_utf8(data) == text, data
        assert decode_utf8(bytearray(data)) == text, data
        assert decode_utf8(memoryview(b"\xff" + data + b"\xff")[1:-1]) == text, data


def test_what_is_not_utf8_is_refused():
    for data in BAD:
        assert not _decodes(data), data
        assert not _decodes(memoryview(b"a" + data)), data


def test_every_lead_byte_with_every_second_byte():
    """Against the table of RFC 3629, 4."""
    for lead in range(0x80, 0x100):
        for second in range(0x70, 0x100):
            if lead < 0xE0:
                data, low, high = bytes((lead, second)), 0x80, 0xBF
            elif lead < 0xF0:
                data = bytes((lead, second, 0x80))
                low, high = 0xA0 if lead == 0xE0 else 0x80, 0x9F if lead == 0xED else 0xBF
            else:
                data = bytes((lead, second, 0x80, 0x80))
                low, high = 0x90 if lead == 0xF0 else 0x80, 0x8F if lead == 0xF4 else 0xBF
            assert _decodes(data) == (0xC2 <= lead <= 0xF4 and low <= second <= high), data
