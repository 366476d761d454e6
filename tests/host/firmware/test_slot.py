"""What a slot carries is decided by the same function as what a board puts together, and by the
imports that are there.
"""

import ast
from pathlib import Path

import pytest
from sims import needs_mpy_cross

from clawlite.core.base.errors import ClawError
from clawlite.core.image import image as layout
from clawlite.core.policy import ledger
from clawlite.core.providers import gateway
from clawlite.host.boards import boards
from clawlite.host.builder.build import build_beside
from clawlite.host.firmware import firmware, foreign_names, from_sources, slot
from clawlite.host.firmware.board_files import board_files
from clawlite.protocols.image import features

PACKAGE = Path(firmware.clawlite.core.__file__).parents[1]
# Of the core, but in no slot.
IN_NO_SLOT = {
    "dialect": "link.py writes what is imported from it in the place of its name",
    "encoder": "writes what tests of the reader read, on boards too",
}
# {(who imports, what): why it does so only where the part is there}.  A new one is looked at, and
# comes here.
DOORS = {
    ("remote", "limits"): "what means remote means limits",
    ("assemble", "builtin"): "PINS",
    ("assemble", "pins"): "PINS, and no machine.Pin",
    ("assemble", "machinepins"): "PINS, and machine.Pin",
    ("assemble", "stores"): "MEMORY",
    ("assemble", "communication"): "GATEWAY",
    ("communication", "distant"): "GATEWAY",
    ("communication", "lan"): "LAN",
    ("assemble", "guard"): "GUARDS",
    ("assemble", "limits"): "LIMITS",
    ("assemble", "logfile"): "LOG",
    ("assemble", "busing"): "BUSED",
    ("busing", "simulator"): "pins that are simulated",
    ("busing", "machinebuses"): "real pins",
    ("assemble", "auditing"): "AUDIT",
    ("startup", "wifi"): "wifi.json and a radio; without the file there is none",
    ("child", "skillturn"): "a composite tool",
    ("commands", "skill"): "section SKILLS",
    ("more_gates", "skill"): "a tool that is a skill",
    ("taking", "skillturn"): "section SKILLS",
    ("core", "logfile"): "a log is there",
    ("more_gates", "limits"): "agent.calls_per_minute: LIMITS",
    ("counting", "limits"): "limits alone ask for it",
    ("boardrehearsal", "limits"): "the same: a gate that counts asks for it",
    ("counting", "remote"): "requires http: REMOTE",
    ("guard", "injection"): "the first of section GUARD",
    ("guard", "leaks"): "the second",
    ("secretvalues", "leaks"): "an audit, or the second",
    ("lan", "distant"): "an image that requires lan requires gateway",
    ("mediated", "distant"): "the same of mediated",
    ("lan", "secure"): "tls of section NETWORK",
    ("request", "secure"): "https",
    ("broken", "secure"): "https",
    ("taking", "limits"): "device.prepare: REMOTE, which means limits",
    **{("request", api.codec): "kind of the provider" for api in features.APIS},
    ("request", "oauth2"): "auth of the provider",
    ("communication", "mediated"): "requires mediated or mediated-line",
    ("communication", "swarmstop"): "requires stop-of-swarm",
    ("communication", "swarmmember"): "requires swarm",
    ("swarmmember", "swarmstop"): "the same brings it",
    ("communication", "relayed"): "requires relayed",
    ("relayed", "skillturn"): "section SKILLS",
    ("taking", "distant"): "is_behind: GATEWAY",
    ("taking", "reflex"): "its number",
    ("taking", "remote"): "a number of 2 or more, not behind a gateway",
    ("taking", "request"): "the same",
    ("taking", "replay"): "its number",
    ("assemble", "acting"): "requires rules, or the section of what must follow, which does",
    ("acting", "confirm"): "the section, which requires rules",
    ("acting", "boardcron"): "requires cron",
    ("boardcron", "skillturn"): "section SKILLS",
    ("confirm", "reflex"): "the same",
    ("rulesession", "boardrecord"): "boardrules.find_row knows the method",
    ("rules", "reflex"): "parts.py adds it",
    ("acting", "boardteach"): "the section of [teach], and requires rules",
    ("teachrows", "reflex"): "what is taught requires rules",
    ("teachrows", "pins"): "a pin of the image: PINS",
    ("samplehours", "reflex"): "the same",
    ("judging", "reflex"): "the same",
    ("ruling", "reflex"): "the same",
}


def test_every_door_to_what_a_slot_may_lack_is_known():
    there = slot.ways()
    found = {
        (name, other)
        for name, text in firmware.link()[0].items()
        for other in slot.find_imports(ast.parse(text)) & set(slot.GATES)
        if any(not set(slot.GATES[other]) <= set(way) for way in there[name])
    }
    assert found == set(DOORS)
    assert set(there) == set(firmware.link()[0]) and set(slot.GATES) <= set(there)


def test_the_core_is_what_a_slot_can_carry_and_protocols_are_what_none_can():
    core, protocols = (
        {path.stem: path.read_text() for path in (PACKAGE / layer).glob("*/*.py")}
        for layer in ("core", "protocols")
    )
    units = {name for names in firmware.units().values() for name in names}
    carried = set(slot.ways()) | units | set(firmware.entrances())
    assert set(core) - carried == set(IN_NO_SLOT)
    del protocols["__init__"]
    assert set(protocols) and not set(protocols) & set(core)
    of_board = {name: path.read_text() for name, path in firmware.sources().items()}
    assert not set(protocols) & set(of_board)
    for name, text in of_board.items():
        # by name, too: clawlite.protocols.ROOM.NAME, or NAME alone
        assert not from_sources.imports(text, protocols) and "clawlite.protocols." not in text, name


def test_parts_that_are_declared_are_those_of_boards():
    """parts.py counts the APIs of providers behind its own names, by their numbers in images."""
    parts, codecs = slot._firmware(), [api.codec for api in features.APIS]
    names = parts.NAMES.split()
    of_slots = {"communication", "cron", "mediated", "relayed", "swarmstop", "swarmmember"}
    declared = {name for name, part in slot.PARTS.items() if not part.of_board}
    assert declared <= {*names, *codecs} | of_slots
    assert len(names) == parts.REFLEX + min(features.API_NUMBERS.values())
    assert repr(" ".join([*names, *codecs])) in firmware.link()[0]["parts"]
    assert {slot.ability(name) for name in slot.PARTS} <= set(features.BOARDS)


def test_what_is_reached():
    imports = {
        "main": {"a", "sys"},
        "a": {"b", "c"},
        "b": {"d"},
        "c": {"d"},
        "d": {"a"},
        "alone": {"main"},
    }
    assert slot.find_ways(imports, {"b": ("x",), "c": ("y", "z")}) == {
        "main": [[]],
        "a": [[]],
        "b": [["x"]],
        "c": [["y", "z"]],
        "d": [["x"], ["y", "z"]],
    }
    assert slot.find_ways(imports, {"b": ("x",)})["d"] == [[]]
    assert slot.choose(
        ["a.mpy", "d.mpy", "alone.mpy", "sentences"],
        ["x"],
        slot.find_ways(imports, {"b": ("x",), "c": ("y",)}),
    ) == ["a.mpy", "d.mpy", "sentences"]
    assert slot.find_imports(
        ast.parse("import x\ndef f():\n    from y import z\n    return __import__('w').f(1)")
    ) == {"x", "y", "w"}


@pytest.mark.parametrize(
    "board, found, is_packed",
    [
        (None, ["bank", "machine", "wifi"], False),
        ("pico", ["machine"], True),
        ("pico-w", ["machine", "wifi"], True),
        ("pico2", ["machine"], False),
        ("esp32", ["machine", "wifi"], False),
        ("sim", ["bank"], False),
    ],
)
def test_what_a_board_has(board, found, is_packed):
    profile = boards.profile(board) if board else None
    assert slot.of_board(profile) == found and slot.is_packed(profile) is is_packed


CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: sample, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You are a sample.", autonomy: autonomous } }
  providers: [{ inline: { protocol: %s, endpoint: "%s", model: m, auth: { type: none } } }]
  sandbox: { inline: { level: none } }
"""
BLOCKS = "  policies: [{ inline: { rules: [{ id: all, action: allow, scope: all }], %s } }]\n"


def image(folder, claw: str, toml: str = "") -> str:
    folder.mkdir()
    (folder / "claw.yaml").write_text(claw)
    (folder / "clawlite.toml").write_text(toml)
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "By rule."\n')
    return build_beside(str(folder))


@pytest.mark.parametrize(
    "claw, toml, found",
    [
        (CLAW % ("custom", "builtin:reflex"), 'reflex = "reflex.toml"\n', "reflex"),
        (CLAW % ("openai-compatible", "http://127.0.0.1:9"), "", "openai remote limits"),
        (CLAW % ("anthropic-native", "http://127.0.0.1:9"), "", "anthropic remote limits"),
        (CLAW % ("openai-compatible", "https://127.0.0.1:9"), "", "openai remote limits tls"),
        (
            CLAW % ("openai-compatible", "http://127.0.0.1:9"),
            "[gateway]\n",
            "gateway communication",
        ),
        (
            CLAW % ("openai-compatible", "http://127.0.0.1:9"),
            '[gateway]\nwire = "tcp"\naddress = "127.0.0.1:9"\n',
            "gateway lan communication",
        ),
        (
            CLAW % ("custom", "builtin:reflex") + BLOCKS % "secret_scanning: { enabled: true }",
            'reflex = "reflex.toml"\n',
            "reflex guard leaks secrets",
        ),
        (
            CLAW % ("custom", "builtin:reflex")
            + BLOCKS % "prompt_injection: { detection: pattern }",
            'reflex = "reflex.toml"\n',
            "reflex guard injection",
        ),
        (
            CLAW % ("custom", "builtin:reflex")
            + BLOCKS % "rate_limits: { tool_calls_per_minute: 2 }",
            'reflex = "reflex.toml"\n',
            "reflex limits",
        ),
        (
            CLAW
            % ("custom", "builtin:reflex")
            + "  memory: { inline: { stores: [{ name: talk, type: "
            "conversation }] } }\n",
            'reflex = "reflex.toml"\n',
            "reflex memory",
        ),
        (
            CLAW % ("custom", "builtin:reflex"),
            'reflex = "reflex.toml"\n[teach]\n',
            "reflex rules teach",
        ),
    ],
)
def test_the_parts_of_an_image(tmp_path, claw, toml, found):
    data = open(image(tmp_path / "agent", claw, toml), "rb").read()
    opened = layout.Image(lambda offset, length: data[offset : offset + length], len(data))
    assert sorted(slot.parts(opened)) == sorted(found.split())


class Damaged:
    """An image whose section is of another shape."""

    requires, agent = ["guard"], None

    def section(self, number):
        return 5


def test_a_damaged_section_is_an_error_of_the_image():
    from clawlite.core.base.errors import ImageError

    with pytest.raises(ImageError):
        slot.parts(Damaged())


@needs_mpy_cross
def test_code_that_asks_for_what_the_board_lacks_is_in_no_slot(tmp_path, monkeypatch):
    made = image(
        tmp_path / "agent", CLAW % ("custom", "builtin:reflex"), 'reflex = "reflex.toml"\n'
    )
    asked = foreign_names.uses({"line": ast.parse("import machine\nmachine.WDT.kick\n")})
    monkeypatch.setattr(firmware, "uses", lambda: asked)
    with pytest.raises(ClawError, match="kick"):
        board_files(made, str(tmp_path / "built"), boards.profile("pico"))


@needs_mpy_cross
def test_a_slot_says_what_it_carries(tmp_path):
    made = image(
        tmp_path / "agent", CLAW % ("custom", "builtin:reflex"), 'reflex = "reflex.toml"\n'
    )
    files, packed = (
        {
            place: path
            for path, place in board_files(made, str(tmp_path / board), boards.profile(board))
        }
        for board in ("pico2", "pico")
    )
    with open(packed["/claw-a/modules"], "rb") as file:
        index = file.readline().decode()
    names = [one.partition(".")[0] for one in index.split("/")[1:-1]]
    assert [f"/claw-a/{name}.mpy" for name in names] == sorted(
        place for place in files if place.startswith("/claw-a/") and place.endswith(".mpy")
    )
    assert open(files["/claw-a/parts"]).read() == "reflex"
    assert "/claw-a/reflex.mpy" in files and "/claw-a/line.mpy" in files
    assert not {
        f"/claw-a/{name}.mpy"
        for name in (
            "remote",
            "wifi",
            "pins",
            "machinepins",
            "guard",
            "stores",
            "lan",
            "lookup",
            "openai",
        )
    } & set(files)


def test_a_device_behind_a_gateway_knows_the_meters_names():
    assert gateway._METERS == (ledger.DAY_TOKENS, ledger.DAY_COST)
