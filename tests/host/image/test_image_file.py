"""Damaged, foreign and hostile images: each is one clear error, on every way into a machine."""

import hashlib
import os
import random
import shutil
import struct
import zlib
from pathlib import Path

import cbor2
import pytest
from agents import Agent, clawlite, linux

from clawlite.core.base.errors import ClawError, ImageError, ImageMismatch
from clawlite.core.image import image as layout
from clawlite.core.image.image import Image
from clawlite.host.builder import build, inspection
from clawlite.host.image import image_file
from clawlite.linux.files import files

GOLDEN = Path(__file__).parents[2] / "golden"
NAMES = ("greenhouse", "gates")
MAGIC = b"\xd9\xd9\xf7"  # tag 55799
MAX_IMAGE = 16 << 20
SEED = 20240229


def _load(data: bytes) -> Image:
    return Image(lambda offset, length: data[offset : offset + length], len(data))


def _golden(name: str) -> bytes:
    return (GOLDEN / name / "claw.cbor").read_bytes()


def _sealed(data: bytes) -> bytes:
    """Return an image's bytes up to its seal, sealed again: what a hostile author could make."""
    data += b"\x44" + struct.pack(">I", zlib.crc32(data))
    return data + b"\x58\x20" + hashlib.sha256(data).digest() + b"\xf6"


def _rewritten(name: str, **changes) -> bytes:
    """Return a golden image written again; *changes* name sections (AGENT=...) or parts of the
    head (requires=...).
    """
    data = _golden(name)
    image = Image(lambda offset, length: data[offset : offset + length], len(data), 1)
    sections = {
        number: image.part(number, 0, image.size_of(number))
        if number in image_file.RAW
        else image.section(number)
        for number in image.sections()
    }
    head = {
        "compiler": image.compiler,
        "requires": image.requires,
        "sources": image.sources,
        "companions": image.companions,
    }
    for key, value in changes.items():
        if key in head:
            head[key] = value
        else:
            sections[getattr(layout, key)] = value
    return image_file.write(sections, **head)


@pytest.mark.parametrize("name", NAMES)
def test_writing_a_golden_image_again_gives_the_same_bytes(name):
    assert _rewritten(name) == _golden(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_truncation_is_refused(name, tmp_path):
    data, path = _golden(name), tmp_path / "cut.cbor"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ImageError) as caught:
            files.open_image(str(path))
        assert "cut.cbor: image: " in caught.value.message and caught.value.code == -32060, size


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("extra", [b"\x00", b"\xf6", b"\n", b"x" * 33])
def test_bytes_after_the_end_are_refused(name, extra):
    with pytest.raises(ImageError):
        _load(_golden(name) + extra)


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_is_refused_at_load_or_by_the_digest(name):
    data, dice = _golden(name), random.Random(SEED)
    seal_at, loaded = _load(data).seal_at, 0
    flips = {dice.randrange(8 * len(data)) for _ in range(300)} | {
        8 * at + dice.randrange(8) for at in range(seal_at - 3, len(data))
    }
    for flip in sorted(flips):
        bad = bytearray(data)
        bad[flip // 8] ^= 1 << flip % 8
        try:
            _load(bytes(bad))
            loaded += 1
            assert seal_at + 7 <= flip // 8 < seal_at + 39, "byte %d of %d: not seen at load" % (
                flip // 8,
                len(data),
            )
        except ImageError:
            pass
        with pytest.raises(ImageError):
            inspection.inspect(bytes(bad))
    # the bytes of the digest, which a boot does not check
    assert loaded >= 32


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_under_a_good_seal_is_shown_or_an_image_error(name):
    """Whoever may build an image may fill it with anything; nothing but an ImageError may come
    of it.
    """
    data, dice = _golden(name), random.Random(SEED)
    end = _load(data).seal_at
    for _ in range(1500):
        bad = bytearray(data[:end])
        for _ in range(dice.choice((1, 1, 2, 5))):
            bad[dice.randrange(5, end)] ^= 1 << dice.randrange(8)
        try:
            inspection.inspect(_sealed(bytes(bad)))
        except ImageError as e:
            assert e.message


def _head(length: bytes, rest: bytes = b"") -> bytes:
    return MAGIC + b"\x86\x01" + length + rest


HUGE = [
    b"\x5b\x80" + bytes(7),
    b"\x5b" + b"\xff" * 8,
    b"\x5b\x7f" + b"\xff" * 7,
    b"\x5a\xff\xff\xff\xff",
    b"\x59\xff\xff",
    b"\x58\xff",
]
FOREIGN = (
    [
        (b"", "expected the bytes d9 d9 f7 at its start, got nothing"),
        (b"\xd9", "expected the bytes d9 d9 f7"),
        (b"\x7fELF" + bytes(100), "got 7f 45 4c"),
        (b'claw: "0.3.0"\n', "got 63 6c 61"),
        (b"\xd9\xd9\xf8\x86\x01" + bytes(99), "got d9 d9 f8"),
        (MAGIC, "wants format 1"),
        (MAGIC + b"\x86", "wants format 1"),
        (MAGIC + b"\x86\x02" + bytes(99), "wants format 1, got 86 02"),
        (MAGIC + b"\x86\x00" + bytes(99), "wants format 1"),
        (MAGIC + b"\x86\x18\xff" + bytes(99), "wants format 1"),
        (MAGIC + b"\x85\x01" + bytes(99), "wants format 1"),
        (MAGIC + b"\x9f\x01" + bytes(99), "wants format 1"),
        (_head(b"\x82\x01\x02" + bytes(99)), "expected a byte string at byte 5"),
        (_head(b"\x5f\x41\x00\xff" + bytes(99)), "image: "),
        (_head(b"\x5c" + bytes(99)), "image: "),
        (_head(b"\xff" * 9), "image: "),
        (_head(b"\x59\x20\x01" + bytes(8193)), "a head of at most 8192 bytes, got 8193"),
        (_head(b"\x59\x20\x00" + bytes(8192)), "expected"),
        (_head(b"\x59\x20\x00" + b"\x81" * 8192), "expected"),
    ]
    + [(_head(length + bytes(99)), "image: ") for length in HUGE]
    + [(_head(b"\x41\x80" + length + bytes(99)), "image: ") for length in HUGE]
)


@pytest.mark.parametrize("data, said", FOREIGN, ids=[str(n) for n in range(len(FOREIGN))])
def test_a_foreign_file_is_refused_in_words(data, said):
    with pytest.raises(ImageError) as caught:
        _load(data)
    assert said in caught.value.message and len(caught.value.message) < 300, caught.value.message


def test_a_file_of_more_than_16_mib_is_refused(tmp_path):
    path = tmp_path / "big.cbor"
    for size, refused in ((MAX_IMAGE, "truncated"), (MAX_IMAGE + 1, "at most 16777216")):
        with open(path, "wb") as file:
            file.write(
                _head(b"\x5a\x00\xff\xff\xff")
                if size > MAX_IMAGE
                else _head(b"\x5a\xff\xff\xff\xff")
            )
            file.truncate(size)
        with pytest.raises(ImageError) as caught:
            files.open_image(str(path))
        assert refused in caught.value.message


# What a hostile or confused author writes, under a good seal; the process must say it in one line
# and exit 2 ...
REFUSED = [
    ({"requires": ["levitation", "pins"]}, "needs levitation, which this machine does not have"),
    ({"requires": 5}, "image: "),
    ({"requires": [["a"]]}, "image: "),
    ({"companions": 5}, "image: "),
    ({"companions": [["tools.py"]]}, "image: "),
    ({"companions": [["tools.py", b"short"]]}, "tools.py is not the file"),
    ({"AGENT": []}, "image: "),
    ({"AGENT": None}, "image: "),
    ({"AGENT": "text"}, "image: "),
    ({"AGENT": [None] * 12}, "image: "),
    ({"TOOLS": 5}, "image: "),
    ({"TOOLS": None}, "image: "),
    ({"TOOLS": [["water"]]}, "image: "),
    ({"PINS": [["soil"]]}, "image: "),
    ({"PINS": 5}, "image: "),
]
# ... or, where only a part of it is looked at when it is needed, say it there and go on.
LATER = [
    {"REFLEX": 5},
    {"REFLEX": [[5]]},
    {"REFLEX": [[[["soil", 7]], 5]]},
    {"REFLEX": None},
    {"RULES": b""},
    {"RULES": b"\xff" * 40},
    {"PROSE": b""},
    {"PROSE": b"\xff" * 600},
    {"RECORDS": b""},
    {"RECORDS": b"\xff" * 408},
    {"RECORDS": b"\x80" * 408},
    {"AUTOMATA": b"\xff"},
    {"TOOLS": [["water", 0, 1 << 40, 0]]},
    {"TOOLS": [["water", -1, -1, 0]]},
    {"TOOLS": []},
    {"TOOLS": [[5, 0, 0, 0]]},
    {"PINS": [["soil", 26, 9, "x", 7, 7]]},
]


def _project(tmp_path, data: bytes, name: str = "greenhouse") -> Path:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/claw.cbor").write_bytes(data)
    if (GOLDEN / name / "tools.py").exists():
        shutil.copy(GOLDEN / name / "tools.py", tmp_path / "p")
    return tmp_path / "p"


@pytest.mark.parametrize("changes, said", REFUSED, ids=[str(n) for n in range(len(REFUSED))])
def test_an_image_that_cannot_run_here_is_one_line_and_exit_2(tmp_path, changes, said):
    done = clawlite("run", "claw.cbor", cwd=_project(tmp_path, _rewritten("greenhouse", **changes)))
    assert "Traceback" not in done.stderr and done.returncode == 2 and done.stdout == "", (
        done.stderr
    )
    assert said in done.stderr and len(done.stderr.splitlines()) == 1 and len(done.stderr) < 400


@pytest.mark.parametrize("changes", LATER, ids=[str(n) for n in range(len(LATER))])
def test_an_image_that_is_damaged_where_few_look_leaves_the_agent_running(tmp_path, changes):
    folder = _project(tmp_path, _rewritten("greenhouse", **changes))
    with Agent(linux("run", "claw.cbor"), tmp_path / "home", cwd=folder) as agent:
        agent.send(
            "/status\nis the soil dry?\nn\n/tools\nwater the plants for 1 seconds\nn\n/help\n"
        )
        agent.end()
        code = agent.wait()
        assert "Traceback" not in agent.errors()
        if code == 2:  # refused at load is as good
            assert agent.text() == "" and len(agent.errors().splitlines()) == 1
        else:
            assert (
                code == 0 and agent.text().count("READY, level") == 1 and "/quit" in agent.text()
            ), agent.errors()


def test_what_an_image_needs_is_refused_with_all_its_names():
    with pytest.raises(ImageMismatch) as caught:
        _load(_rewritten("greenhouse", requires=["a", "pins", "z"])).require(
            ("pins",), "this machine"
        )
    assert (
        "needs a, z, which this machine does not have" in caught.value.message
        and caught.value.code == -32060
    )


def test_damage_in_processes(tmp_path):
    """The shell and inspect, once each way: the details are above."""
    data = _golden("greenhouse")
    end = _load(data).seal_at
    digest = data[: end + 10] + bytes([data[end + 10] ^ 1]) + data[end + 11 :]
    cases = [
        (data[:100], 2, 2),
        (data[:-1], 2, 2),
        (data[:50] + b"\x00" + data[51:], 2, 2),
        (digest, 2, 2),
        (data, 0, 0),
    ]
    folder = _project(tmp_path, data)
    for number, (damaged, run, inspect) in enumerate(cases):
        (folder / "claw.cbor").write_bytes(damaged)
        for verb, code in (("run", run), ("inspect", inspect)):
            done = clawlite(verb, "claw.cbor", cwd=folder)
            assert done.returncode == code and "Traceback" not in done.stderr, (
                number,
                verb,
                done.stderr,
            )
            assert bool(done.stdout) == (code == 0) and len(done.stderr.splitlines()) == (
                code == 2
            ), (number, verb, done.stderr)
            if code:
                assert "claw.cbor" in done.stderr and " - " in done.stderr, done.stderr


def test_tools_py_must_be_the_one_that_was_built(tmp_path):
    folder = _project(tmp_path, _golden("greenhouse"))
    tools = folder / "tools.py"
    source = tools.read_text()
    for change, said in (
        (
            lambda: tools.write_text(source + "\n"),
            "is not the file that the image was built with - build again",
        ),
        (
            tools.unlink,
            "tools.py: No such file or directory - the image needs its tools.py beside it",
        ),
        (tools.mkdir, "tools.py: Is a directory"),
    ):
        change()
        for words in (["run"], ["serve", "--stdio"], ["ask", "hello"]):
            done = clawlite(
                *words[:1],
                *words[1:] if words[0] == "ask" else [],
                "claw.cbor",
                *words[1:] if words[0] != "ask" else [],
                cwd=folder,
            )
            assert (
                done.returncode == 2
                and done.stdout == ""
                and said in done.stderr
                and len(done.stderr.splitlines()) == 1
            ), done


@pytest.mark.parametrize(
    "source, said",
    [
        ("def water(:", "SyntaxError"),
        ("1/0\n", "ZeroDivisionError"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("import sys\nsys.exit(7)\n", "SystemExit"),
        ("raise KeyboardInterrupt\n", "KeyboardInterrupt"),
        ("x = '\x00'\n", "null byte"),
        ("def f(): f()\nf()\n", "RecursionError"),
        ("(" * 300, "SyntaxError"),
    ],
)
def test_a_tools_py_that_fails_as_it_is_loaded_is_one_line_and_exit_2(tmp_path, source, said):
    folder = _project(
        tmp_path,
        _rewritten(
            "greenhouse", companions=[["tools.py", hashlib.sha256(source.encode()).digest()]]
        ),
    )
    (folder / "tools.py").write_text(source)
    done = clawlite("run", "claw.cbor", cwd=folder)
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1, (
        done.stderr
    )
    assert "tools.py cannot be loaded: " in done.stderr and said in done.stderr


def test_signed_images(tmp_path):
    from clawlite.host.projects.new import new

    new(str(tmp_path / "g"), offline=True)
    for name, text in (
        ("right", "0123456789abcdef-right\n"),
        ("wrong", "0123456789abcdef-wrong\n"),
        ("none", ""),
        ("long", "k" * 200),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)
    words = ["build", "g", "-o"]
    for name, key in (("signed", "right"), ("long-signed", "long"), ("unsigned", None)):
        done = clawlite(
            *words, "g/%s.cbor" % name, *(["--key-file", key] if key else []), cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    cases = [
        ("signed", "right", None),
        ("signed", None, None),
        ("long-signed", "long", None),
        ("signed", "wrong", "signed with another key"),
        ("long-signed", "right", "signed with another key"),
        ("unsigned", "right", "not signed, and this device runs signed images only"),
        ("signed", "none", "the device key"),
        ("signed", "missing", "the device key"),
        ("signed", "g", "the device key"),
    ]
    for image, key, said in cases:
        env = {"CLAWLITE_DEVICE_KEY_FILE": tmp_path / key} if key else {}
        done = clawlite("ask", "hello", "g/%s.cbor" % image, cwd=tmp_path, **env)
        assert done.returncode == (2 if said else 0), (image, key, done.stderr)
        if said:
            assert (
                done.stdout == "" and said in done.stderr and len(done.stderr.splitlines()) == 1
            ), (image, key, done.stderr)
    assert ", signed\n" in clawlite("inspect", "g/signed.cbor", cwd=tmp_path).stdout


def test_one_flipped_bit_of_a_signed_image_is_found_with_the_key(tmp_path, monkeypatch):
    image = _load(_golden("greenhouse"))
    sections = {
        number: image.part(number, 0, image.size_of(number))
        if number in image_file.RAW
        else image.section(number)
        for number in image.sections()
    }
    key = b"0123456789abcdef"
    data = image_file.write(
        sections, image.compiler, image.requires, image.sources, image.companions, key
    )
    (tmp_path / "key").write_bytes(key + b"\n")
    (tmp_path / "key").chmod(0o600)
    monkeypatch.setenv("CLAWLITE_DEVICE_KEY_FILE", str(tmp_path / "key"))
    path, dice = tmp_path / "signed.cbor", random.Random(SEED)
    path.write_bytes(data)
    files.open_image(str(path))
    for at in [dice.randrange(len(data)) for _ in range(100)] + list(
        range(len(data) - 75, len(data))
    ):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
        with pytest.raises(ImageError):
            files.open_image(str(path))


@pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
def test_a_device_key_that_others_may_read_protects_nothing(tmp_path, monkeypatch, mode):
    path = tmp_path / "key"
    path.write_bytes(b"0123456789abcdef")
    path.chmod(0o600)
    assert build.read_key(str(path)) == b"0123456789abcdef"
    path.chmod(mode)
    with pytest.raises(ClawError, match="mode %03o" % mode) as caught:
        build.read_key(str(path))
    assert "chmod 600" in caught.value.hint
    monkeypatch.setenv("CLAWLITE_DEVICE_KEY_FILE", str(path))
    image = tmp_path / "a.cbor"
    image.write_bytes(_golden("greenhouse"))
    with pytest.raises(ImageError, match="mode %03o" % mode):
        files.open_image(str(image))


@pytest.mark.parametrize("key", [b"", b"  \n", b"0123456789abcde"])
def test_a_device_key_that_is_blank_or_short_is_none(tmp_path, monkeypatch, key):
    (tmp_path / "key").write_bytes(key)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "a.cbor").write_bytes(_golden("greenhouse"))
    monkeypatch.setenv("CLAWLITE_DEVICE_KEY_FILE", str(tmp_path / "key"))
    with pytest.raises(ImageError, match="expected 16 bytes or more, got %d" % len(key.strip())):
        files.open_image(str(tmp_path / "a.cbor"))


def test_an_image_whose_digest_is_another_is_not_loaded(tmp_path):
    """The CRC finds accidents; who changes an image on purpose writes a CRC that fits."""
    data = bytearray(_golden("greenhouse"))
    image = layout.Image(lambda offset, length: bytes(data[offset : offset + length]), len(data), 0)
    data[image.seal_at + 7] ^= 1  # the digest itself, which no CRC covers
    (tmp_path / "a.cbor").write_bytes(data)
    with pytest.raises(ImageError, match="bad digest"):
        files.open_image(str(tmp_path / "a.cbor"))


def test_an_image_is_what_cbor_says_it_is():
    """Another decoder reads the whole of it: tag, array of six, nothing after it."""
    for name in NAMES:
        data = _golden(name)
        found = cbor2.loads(data)
        assert len(found) == 6 and found[0] == 1 and len(found[4]) == 32 and found[5] is None
        assert cbor2.dumps(cbor2.CBORTag(55799, found)) == data
