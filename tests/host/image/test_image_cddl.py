"""The image's grammar (clawlite/host/image/image.cddl) holds for real images, part by part, and
refuses others.
"""

import pathlib
import re
import struct

import cbor2
import mcp_agents
import pytest
from cddl_verifier import validate
from channel_world import project

from clawlite.core.image import header
from clawlite.core.image import image as layout
from clawlite.host.compiler import compiler
from clawlite.host.image import image_file
from clawlite.host.manifest import manifest
from clawlite.protocols.image import features
from clawlite.protocols.image.features import APPROVALS
from clawlite.protocols.mcp.tool_definitions import SCHEMAS

ROOT = pathlib.Path(__file__).parents[2]
GRAMMAR = (ROOT.parent / "clawlite" / "host" / "image" / "image.cddl").read_text()
BOT = {
    "type": "telegram",
    "transport": "polling",
    "access_control": {"mode": "allowlist", "allowed_ids": ["7"]},
}
IMAGES = sorted(ROOT.glob("golden/*/claw.cbor"))


def check(rule: str, data: bytes):
    """Validate *data* as *rule* of the grammar."""
    result = validate(GRAMMAR, data, root_type=rule)
    assert result.valid, (rule, [str(diagnostic) for diagnostic in result.diagnostics])


def opened(path):
    data = path.read_bytes()
    return data, layout.Image(lambda offset, length: data[offset : offset + length], len(data), 1)


def rows(section: bytes) -> list[bytes]:
    count = struct.unpack(">I", section[:4])[0] // 4
    at = struct.unpack(f">{count}I", section[: 4 * count])
    return [section[a:b] for a, b in zip(at, at[1:])]


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.parent.name)
def test_every_part_of_an_image_fits_its_rule(path):
    data, image = opened(path)
    check("image", data)
    check("image-head", cbor2.loads(data[3:])[1])

    def part(number):
        return image.part(number, 0, image.size_of(number))

    for number, rule in (
        (layout.AGENT, "agent"),
        (layout.TOOLS, "tools"),
        (layout.REFLEX, "reflex"),
        (layout.REPLAY, "replay"),
        (layout.PINS, "pins"),
        (SCHEMAS, "schemas"),
    ):
        if number in image.sections():
            check(rule, part(number))
    for _, offset, size, _ in map(image.row, image.names):
        check("tool", image.part(layout.RECORDS, offset, size))
    assert rows(part(layout.RULES)) or not image.names
    for row in rows(part(layout.RULES)):
        check("rule", row)


def test_mcp_servers_fit_their_rule(tmp_path):
    _, image = opened(pathlib.Path(mcp_agents.build(tmp_path)))
    check("mcp", image.part(layout.MCP, 0, image.size_of(layout.MCP)))
    for _, offset, size, _ in map(image.row, image.names):
        check("tool", image.part(layout.RECORDS, offset, size))


@pytest.mark.parametrize(
    "rule, wrong",
    [
        ("image", lambda image: cbor2.CBORTag(55799, [2, *image[1:]])),
        ("image", lambda image: cbor2.CBORTag(55799, image[:5])),
        ("image", lambda image: cbor2.CBORTag(55798, image)),
        ("agent", lambda image: ["x", "1.0.0", "x", 7, 1, 1, [0], 1, 1, "", [0, 0], ">"]),
        ("rule", lambda image: ["id", 4, "", 0, 0, None, "p"]),
    ],
)
def test_the_grammar_refuses_what_is_no_image(rule, wrong):
    image = cbor2.loads(IMAGES[0].read_bytes()[3:])
    assert not validate(GRAMMAR, cbor2.dumps(wrong(image)), root_type=rule).valid


def test_images_are_deterministic():
    folder = ROOT / "golden" / "gates"
    assert (
        compiler.build(manifest.load(folder)).data
        == compiler.build(manifest.load(str(folder))).data
    )
    data = (folder / "claw.cbor").read_bytes()
    assert header.MAGIC + cbor2.dumps(cbor2.loads(data[3:]), canonical=True) == data


@pytest.mark.parametrize(
    "settings",
    [
        'to = ["bot"]',
        "to = []",
        '[approvals.notify]\nurl = "https://ntfy.sh/x"',
        'to = ["bot"]\n[approvals.notify]\nurl = "https://ntfy.sh/x"\ncredential = "A"\n'
        'link = "https://claw.example.com/"',
    ],
)
def test_who_is_asked_fits_its_rule(tmp_path, settings):
    made = project(tmp_path / "p", {"bot": BOT}, "[approvals]\n" + settings)
    data = compiler.build(made).data
    image = layout.Image(lambda offset, length: data[offset : offset + length], len(data), 1)
    check("approvals", image.part(APPROVALS, 0, image.size_of(APPROVALS)))


def test_the_grammar_has_every_section():
    told = re.findall(r"(?:^; |; )(\d+)  [a-z-]+:?", GRAMMAR, re.M)
    assert sorted(map(int, told)) == sorted(image_file.SECTION_NAMES)


def test_the_grammar_has_every_row_of_features():
    """What a new row brings stands in the grammar, too: people read images by it."""
    abilities = sorted({ability.name for ability in features.ABILITIES})
    numbers = features.API_NUMBERS
    lines = [
        "ability = " + " / ".join(f'"{name}"' for name in abilities),
        f"kind: 0..{len(features.KINDS) - 1},   ; "
        + " ".join(kind.type for kind in features.KINDS),
        f"kind: {min(numbers.values())}..{max(numbers.values())},   ; " + ", ".join(numbers),
        f"exporters: [+ [type: 0..{len(features.EXPORTERS) - 1}, ",
        ";   " + ", ".join(exporter.name for exporter in features.EXPORTERS),
    ]
    grammar = " ".join(GRAMMAR.split())
    assert [line for line in lines if " ".join(line.split()) not in grammar] == []
