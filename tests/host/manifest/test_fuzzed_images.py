r"""`inspect` and `tools` refuse or show an image of somebody else, and never end in a traceback.

Its CRC and its digest are right, so what decides is the shape of what is in it.  A slice of each
kind is played here; ``make soak`` plays 100,000 variants.  One kind alone:

    CLAWLITE_SEED=7 .venv/bin/pytest -m soak -k many-values
    tests/host/manifest/test_fuzzed_images.py
"""

import contextlib
import hashlib
import io
import json
import os
import random
import struct
import traceback
import zlib
from pathlib import Path

import cbor2
import pytest
from mutations import flipped, reshape

from clawlite import command
from clawlite.core.base.errors import ImageError
from clawlite.core.formats import cbor
from clawlite.core.image import image as layout
from clawlite.host.compiler import compiler
from clawlite.host.image.image_file import RAW, table, write
from clawlite.host.manifest import manifest
from clawlite.linux.files import files

SEED = int(os.environ.get("CLAWLITE_SEED", "1"))
COUNT = int(os.environ.get("CLAWLITE_SOAK", "100000"))  # variants of each kind
TESTS = Path(__file__).resolve().parents[2]
TABLES = (layout.RULES, layout.PROVIDERS)  # their rows are CBOR


@pytest.fixture(scope="module")
def images():
    """Return the images that are broken: the golden ones, and one with every section."""
    found = [path.read_bytes() for path in sorted((TESTS / "golden").glob("*/claw.cbor"))]
    return [*found, compiler.build(manifest.load(TESTS / "host" / "fuzzed")).data]


def sealed(data: bytes) -> bytes:
    """Return *data*, an image up to its seal, with a seal that is right."""
    data += b"\x44" + struct.pack(">I", zlib.crc32(data))
    return data + b"\x58\x20" + hashlib.sha256(data).digest() + b"\xf6"


def opened(data: bytes) -> layout.Image:
    return layout.Image(lambda offset, length: data[offset : offset + length], len(data), 1024)


def with_bytes(data: bytes, draw) -> bytes:
    """Return the image *data* with some of its bytes flipped, moved, or lost."""
    return sealed(flipped(data[: opened(data).seal_at], draw))


def with_values(data: bytes, draw) -> bytes:
    """Return the image *data* with values of one of its sections replaced, dropped or moved."""
    image = opened(data)
    sections = {number: image.part(number, 0, image.size_of(number)) for number in image.sections()}
    number = draw.choice(list(sections))
    if number in TABLES:
        sections[number] = table(broken_rows(rows(image, number), draw))
    elif number == layout.RECORDS and image.names:
        name = draw.choice(image.names)
        at, length = image.row(name)[1:3]
        record = broken(sections[number][at : at + length], draw)
        index = [cbor.decode(sections[layout.TOOLS])[image.names.index(name)]]
        index[0][1:3] = len(sections[number]), len(record)
        sections[number] += record
        others = [row for row in cbor.decode(sections[layout.TOOLS]) if row[0] != name]
        sections[layout.TOOLS] = cbor2.dumps(index + others, canonical=True)
    elif number in RAW:
        sections[number] = flipped(sections[number], draw)
    else:
        sections[number] = broken(sections[number], draw)
    kept = {key: value if key in RAW else cbor2.loads(value) for key, value in sections.items()}
    return write(kept, image.compiler, image.requires, image.sources, image.companions)


def rows(image, number: int) -> list:
    count = int.from_bytes(image.part(number, 0, 4), "big") // 4 - 1
    read = {layout.RULES: image.rule, layout.PROVIDERS: image.provider}[number]
    return [cbor2.dumps(read(row), canonical=True) for row in range(count)]


def broken_rows(found: list, draw) -> list:
    at = draw.randrange(len(found)) if found else 0
    return [broken(row, draw) if index == at else row for index, row in enumerate(found)]


def broken(item: bytes, draw) -> bytes:
    root = [cbor2.loads(item)]
    reshape(root, draw)
    return cbor2.dumps(root[0], canonical=True)


KINDS = {"bytes": with_bytes, "values": with_values}


def play(images: list, folder: Path, kind: str, seeds) -> int:
    """Show each variant; return how many were taken.  Fails with each place that gave way."""
    path, taken, found = folder / "claw.cbor", 0, {}
    for seed in seeds:
        draw = random.Random(f"{kind} {seed}")
        data = KINDS[kind](draw.choice(images), draw)
        path.write_bytes(data)
        try:
            taken += played(str(path), data, draw)
        except Exception:
            said = traceback.format_exc().rstrip().split("\n  File ")
            found.setdefault(said[-1].split(", in ")[0], "\n".join([f"seed {seed}:", *said[-4:]]))
    assert not found, "\n\n".join([f"{len(found)} places gave way", *found.values()])
    return taken


def played(path: str, data: bytes, draw) -> bool:
    """Show the image in the file *path*; return whether it was taken.  *draw* says how."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        options = draw.choice(([], ["--json"]))
        codes = [command.run([verb, path, *options]) for verb in ("inspect", "tools")]
    assert set(codes) <= {0, 2}, codes
    try:
        files.image_of(data, path)
    except ImageError:
        assert codes == [2, 2], codes  # what a device refuses is shown by nobody
    return codes[0] == 0


@pytest.mark.parametrize("kind", KINDS)
def test_no_image_ends_in_a_traceback(images, tmp_path, kind):
    first = SEED * 1_000_000
    assert 0 < play(images, tmp_path, kind, range(first, first + 400)) < 400


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS, ids=["many-" + kind for kind in KINDS])
def test_no_image_of_many_ends_in_a_traceback(images, tmp_path, kind):
    first = SEED * 1_000_000
    assert play(images, tmp_path, kind, range(first, first + COUNT)) > 0


def with_section(data: bytes, number: int, change) -> bytes:
    """Return the image *data*, its section *number* being what *change* makes of it."""
    image = opened(data)
    kept = {key: image.part(key, 0, image.size_of(key)) for key in image.sections()}
    kept = {key: value if key in RAW else cbor2.loads(value) for key, value in kept.items()}
    return write(
        {**kept, number: change(kept[number])},
        image.compiler,
        image.requires,
        image.sources,
        image.companions,
    )


def test_what_is_local_is_checked(images, tmp_path, capsys):
    path = tmp_path / "claw.cbor"
    for local in ({}, [], [5], "x"):
        path.write_bytes(with_section(images[-1], layout.LOCAL, lambda _: local))
        assert command.run(["tools", str(path)]) == 2
        assert "what is local has another shape" in capsys.readouterr().err


def test_a_built_in_tool_that_is_not_known_here_has_no_schema(images, tmp_path, capsys):
    """It may be a newer version's; and a name in an image is no path."""
    data = (TESTS / "golden" / "greenhouse" / "claw.cbor").read_bytes()
    for name in (b"new-tool", b"../../a."):
        path = tmp_path / "claw.cbor"
        other = with_section(data, layout.RECORDS, lambda all_: all_.replace(b"adc-read", name))
        path.write_bytes(
            with_section(
                other,
                layout.TOOLS,
                lambda index: [
                    [row[0].replace("adc-read", name.decode()), *row[1:]] for row in index
                ],
            )
        )
        assert command.run(["tools", str(path), "--json"]) == 0
        (row,) = [
            row for row in json.loads(capsys.readouterr().out) if row["name"] == name.decode()
        ]
        assert row["input_schema"] is None and row["handler"] == "built in: " + name.decode()


@pytest.mark.parametrize(
    "change",
    [
        lambda wire: wire.replace(b'"tools":[', b'"tools":{'),
        lambda wire: wire.replace(b'"tools":[', b'"tools":\xff'),
        lambda wire: wire.replace(b'"function":{', b'"functiom":{'),
    ],
)
def test_what_a_provider_is_sent_is_checked(images, tmp_path, capsys, change):
    path = tmp_path / "claw.cbor"
    path.write_bytes(with_section(images[-1], layout.WIRE, change))
    assert command.run(["tools", str(path)]) == 2
    assert "sends to a provider has another shape" in capsys.readouterr().err
