"""Images, whole and damaged.  A damaged one is an ImageError, never another exception."""

import struct
from binascii import crc32

import transcripts

from clawlite.core.base.errors import ImageError, ImageMismatch
from clawlite.core.formats import encoder
from clawlite.core.image import image_signature
from clawlite.core.image.header import FORMAT, MAX_HEAD
from clawlite.core.image.image import Image


def data_of(name):
    with open(transcripts.FOLDER + name + "/claw.cbor", "rb") as file:
        return file.read()


def load(data, keep=0):
    return Image(lambda offset, length: data[offset : offset + length], len(data), keep)


def use(data):
    """Load an image and read everything that it holds."""
    image = load(data)
    for name in image.names:
        tool = image.tool(name)
        image.prose(tool.about)
        if isinstance(tool.entry, int):
            image.rule(tool.entry)
    for number in image.sections():
        if number not in (3, 4, 5, 6):
            image.section(number)
    return image


def refused(function, *args):
    """Return the message of the ImageError, or None."""
    try:
        function(*args)
    except ImageError as e:
        return e.message
    return None


def test_a_whole_image_loads():
    image = use(data_of("greenhouse"))
    assert image.names == ["read-soil", "water", "adc-read", "board-info"]
    assert image.agent.name == "greenhouse" and image.agent.level == 2
    assert image.requires == ["pins", "reflex", "tools", "tools.py"]
    assert image.tool("nope") is None


def test_snake_case_names_the_same_tool():
    image = load(data_of("greenhouse"), 10)
    assert image.tool("read_soil").name == "read-soil"
    assert image.tool("read_soil") is image.tool("read-soil")


def test_abilities_are_compared():
    image = load(data_of("greenhouse"))
    image.require(("tools.py", "pins", "reflex", "tools", "more"), "a board")
    try:
        image.require(("reflex", "tools"), "a board")
    except ImageMismatch as e:
        assert e.message == "image: needs pins, tools.py, which a board does not have"
    else:
        assert False


def test_every_truncation_is_refused():
    data = data_of("greenhouse")
    for size in range(0, len(data), 1 if len(data) < 3000 else 7):
        message = refused(use, data[:size])
        assert message and message.startswith("image: "), size


def test_every_byte_that_is_flipped_is_found():
    """By the shape, by the CRC, or, behind the CRC, by the digest."""
    data = data_of("greenhouse")
    crc_at = len(data) - 40
    for at in range(0, len(data), 3):
        broken = bytearray(data)
        broken[at] ^= 1 << at % 8
        broken = bytes(broken)
        if at >= crc_at + 7:  # the digest and what follows it
            assert refused(use, broken) or refused(sealed, broken), at
        else:
            assert refused(use, broken), at


def sealed(data, key=None):
    image = load(data)
    image_signature.check(
        lambda offset, length: data[offset : offset + length], len(data), image.seal_at, key
    )


def test_the_digest_is_checked():
    data = data_of("gates")
    sealed(data)
    assert (
        refused(sealed, data, b"a device key")
        == "image: not signed, and this device runs signed images only"
    )


def test_a_signature_is_checked():
    data = data_of("gates")[:-1]
    for key in (b"k", b"k" * 64, b"k" * 65):
        signed = (
            data
            + b"\x58\x20"
            + image_signature.sign(
                lambda offset, length: data[offset : offset + length], len(data), key
            )
        )
        sealed(signed, key)
        sealed(signed)
        assert (
            refused(sealed, signed, b"another")
            == "image: signed with another key than this device's"
        )


def test_hmac_is_rfc_2104s():
    """RFC 4231, test cases 1, 2 and 6."""
    for key, text, digest in (
        (
            b"\x0b" * 20,
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            b"\xaa" * 131,
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ):
        got = image_signature.sign(
            lambda offset, length: text[offset : offset + length], len(text), key
        )
        assert "".join(["%02x" % b for b in got]) == digest


def resealed(head=None, body=b"", version=b"\x01", magic=b"\xd9\xd9\xf7\x86"):
    """Return an image with a right CRC around any head and body."""
    head = encoder.encode(["c", [], b"\0" * 32, [], []]) if head is None else head
    data = magic + version + encoder.encode(head) + encoder.encode(body)
    return (
        data
        + encoder.encode(struct.pack(">I", crc32(data) & 0xFFFFFFFF))
        + b"\x58\x20"
        + b"\0" * 32
        + b"\xf6"
    )


def test_what_is_no_image_is_said():
    assert refused(load, b"") == "image: expected the bytes d9 d9 f7 at its start, got nothing"
    assert refused(load, b"claw: 1\n").startswith("image: expected the bytes d9 d9 f7")


def test_another_format_version_is_refused_and_the_wanted_one_named():
    message = refused(load, resealed(version=b"\x02"))
    assert message == "image: this runtime wants format %d, got 86 02" % FORMAT


def test_a_head_has_a_bound():
    assert "at most 8192" in refused(load, resealed(head=b"\0" * (MAX_HEAD + 1)))
    assert "at most 8192" not in refused(load, resealed(head=b"\0" * MAX_HEAD))


def test_huge_lengths_are_refused():
    for length in (
        b"\x5b" + b"\xff" * 8,
        b"\x5b\x80" + b"\0" * 7,
        b"\x5a\xff\xff\xff\xff",
        b"\x59\xff\xff",
    ):
        assert refused(load, b"\xd9\xd9\xf7\x86\x01" + length + b"\0" * 100).startswith("image: ")
        good = resealed()
        cut = good[:5] + encoder.encode(encoder.encode(["c", [], b"", [], []])) + length
        assert refused(load, cut).startswith("image: ")


def test_crafted_heads_are_refused():
    digest = b"\0" * 32
    for head in (
        0,
        [],
        ["c"],
        ["c", [], digest, [], [[1]]],
        ["c", [], digest, [], [[1, "x"]]],
        ["c", [], digest, [], [[1, 5]]],
        ["c", [], digest, [], [[1, -1], [2, 1]]],
        ["c", [], digest, [], 7],
    ):
        assert refused(load, resealed(encoder.encode(head))), head
    assert refused(load, resealed(b"\xff"))
    body = encoder.encode(["a"])
    assert refused(load, resealed(encoder.encode(["c", [], digest, [], [[1, len(body)]]]), body))


AGENT = ["a", "", "a", 2, 1, 30000, [0], 20, 4096, "", 0, [0, 0], "> ", 600000, None, None, None, 0]


def of_sections(*sections):
    """Return an image, under a right CRC, of (number, value) each."""
    body, directory = b"", []
    for number, value in sections:
        data = encoder.encode(value)
        directory.append([number, len(data)])
        body += data
    return resealed(encoder.encode(["c", [], b"", [], directory]), body)


def test_the_shape_of_the_agent_and_the_tools_is_checked():
    assert load(of_sections((1, AGENT), (2, [["t", 0, 5, [0, 1]], ["u", 5, 0, None]]))).names == [
        "t",
        "u",
    ]
    for at, wrong in (
        (0, 1),
        (0, None),
        (3, -1),
        (3, 3),
        (3, True),
        (4, 0),
        (5, 0),
        (5, 1 << 32),
        (6, 5),
        (6, ["x"]),
        (10, [0]),
        (10, [0, "x"]),
        (11, b"> "),
    ):
        agent = list(AGENT)
        agent[at] = wrong
        assert (
            refused(load, of_sections((1, agent), (2, [])))
            == "image: section 1 has another shape than this runtime knows"
        ), wrong
    for agent in (None, [], AGENT + [0], AGENT[:-1], "text"):
        assert refused(load, of_sections((1, agent), (2, [])))
    for tools in (
        None,
        5,
        [5],
        [None],
        [["t", 0, 5, 0], None],
        [["t"]],
        [["a\nb", 0, 5, 0]],
        [["t", 0, 5, "x"]],
        [["t", -1, 5, 0]],
        [[5, 0, 5, 0]],
        [["t", 0, 5, [None]]],
    ):
        assert (
            refused(load, of_sections((1, AGENT), (2, tools)))
            == "image: section 2 has another shape than this runtime knows"
        ), tools
    assert refused(load, of_sections((1, AGENT)))
    assert refused(load, of_sections((2, [])))


def test_the_shape_of_pins_is_checked():
    pin = ["soil", 26, 0, 14000, None, 0, 0, 0, 0]
    assert load(of_sections((1, AGENT), (2, []))).section(9) is None
    assert load(of_sections((1, AGENT), (2, []), (9, [pin]))).section(9) == [pin]
    assert load(
        of_sections((1, AGENT), (2, []), (9, [["soil", 26, 6, 0, None, 0, 9, 1, 0]]))
    ).section(9)
    for pins in (
        5,
        None,
        [["soil"]],
        [pin + [0]],
        [["soil", 26, 7, 0, None, 0, 0, 0, 0]],
        [["soil", 26, 0, 65536, None, 0, 0, 0, 0]],
        [["soil", 26, 0, 0, 7, 0, 0, 0, 0]],
        [["soil", 26, 0, 0, None, 0, 65536, 0, 0]],
        [["soil", 26, 1, 0, None, 0, 0, 65536, 0]],
        [["soil", 26, 1, 0, None, 0, 0, -1, 0]],
        [["soil", 26, 0, 14000, None, 0, 0]],  # as older versions wrote it
    ):
        try:
            load(of_sections((1, AGENT), (2, []), (9, pins))).section(9)
        except ImageError as e:
            assert "section 9" in e.message
        else:
            assert pins is None  # null is as good as none


def test_text_that_is_none_is_refused():
    image = load(of_sections((1, AGENT), (2, []), (6, b"\xff\xfe")))
    assert refused(image.prose, [1, 2]).startswith("image: the text at byte 1 of section 6: ")
    assert refused(image.prose, [1, 200])


def test_a_part_outside_its_section_is_refused():
    image = load(data_of("greenhouse"))
    for offset, length in ((0, 1 << 40), (-1, 1), (1 << 40, 1), (5, -1)):
        assert refused(image.part, 6, offset, length)
    assert refused(image.part, 99, 0, 1)
    assert refused(image.rule, 1000)
