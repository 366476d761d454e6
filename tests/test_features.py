"""A feature of a manifest has a home: what walks the features names none of them, few files name a
given one, and a new type of channel is written in five files."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

from clawlite.host.base.kinds import KINDS
from clawlite.host.builder.inspection import PARTS
from clawlite.host.manifest.features import FEATURES, MODELS

ROOT = Path(__file__).resolve().parents[1]
HOST = ROOT / "clawlite/host"
# {room of a feature: how many files of other rooms may import something of it}; most are features
# that rest on it, and the Structs of clawlite.toml (manifest/settings.py)
NAMED_BY = {
    "channels": 4,
    "hardware": 8,
    "identity": 1,
    "mcp": 9,
    "memory": 4,
    "policy": 13,
    "providers": 19,
    "rules": 3,
    "sandbox": 10,
    "services": 5,
    "skills": 5,
    "swarm": 4,
    "telemetry": 1,
    "tools": 10,
    "world_models": 2,
}


def rooms_of(path: Path) -> set:
    """Return the rooms of the host that the module at *path* imports, but for its own."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("clawlite.host"):
            for alias in node.names:
                found.add(f"{node.module}.{alias.name}".split(".")[2])
    return found - {path.parent.name}


def test_each_room_of_a_feature_is_listed_and_named_by_few():
    homes = {path.parent.name for path in HOST.glob("*/feature.py")} - {"models"}
    assert homes == set(NAMED_BY)
    assert len(FEATURES) == len(homes)
    found = dict.fromkeys(NAMED_BY, 0)
    for path in HOST.rglob("*.py"):
        for room in rooms_of(path) & homes:
            found[room] += 1
    assert {room: count for room, count in found.items() if count > NAMED_BY[room]} == {}


def test_what_walks_the_features_names_none_of_them():
    rooms = set(NAMED_BY)
    assert not rooms_of(HOST / "compiler/compiler.py") & rooms
    assert not any(rooms_of(path) & rooms for path in (HOST / "documents").glob("*.py"))
    assert rooms_of(HOST / "compiler/lint.py") & rooms == {"policy"}  # dead and shadowed rules
    assert rooms_of(HOST / "fit/board_fit.py") & rooms == {"providers"}  # the heap of a handshake


def test_the_model_of_each_primitive_and_what_is_shown_of_it_stand_in_its_room():
    assert set(MODELS) == set(KINDS)
    assert {model.__module__.split(".")[2] for model in MODELS.values()} < set(NAMED_BY)
    rooms = {show.__module__ for _, show in PARTS.values()}
    assert rooms == {f"clawlite.host.{path.parent.name}.show" for path in HOST.glob("*/show.py")}


# The files of a type of channel: these three, the grammar of images (host/image/image.cddl) and
# docs/channels.md, which tests/host/image and tests/test_docs.py hold.
ROW = '    Kind("custom", "pigeon", False, True),\n'
ON_THE_HOST = '''"""Channels of type custom: pigeons."""

from clawlite.host.channels.channel_type import ChannelType, Via
from clawlite.host.models.common import Strict


class Pigeon(Strict):
    loft: str = "roof"
    via: Via = None


def record(manifest, channel) -> list:
    return [manifest.settings.channels["pigeon"].loft]


TYPE = ChannelType(
    "custom", ("polling",), is_remote=True, settings=Pigeon, record=record, relays="keep pigeons"
)
'''
MANIFEST = """claw: 0.2.0
kind: Claw
metadata: { name: loft, version: 1.0.0 }
spec:
  identity: { inline: { personality: You keep pigeons. } }
  providers:
    - inline:
        protocol: custom
        endpoint: "builtin:reflex"
        model: rules
        auth: { type: none }
  channels:
    - inline:
        type: custom
        transport: polling
        auth: { secret_ref: GRAIN }
        access_control: { mode: open }
"""
BUILD = """
from clawlite.core.image import image as layout
from clawlite.host.boards import boards
from clawlite.host.compiler import compiler
from clawlite.host.fit import board_fit
from clawlite.host.manifest import manifest

loaded = manifest.load(".")
data = compiler.build(loaded).data
image = layout.Image(lambda at, length: data[at : at + length], len(data), 1024)
print(compiler.requires(loaded))
print(image.section(layout.CHANNELS)[0][5])
for board, known in (("pico", boards.load_all(".")), ("linux", [])):
    print(*[one.text() for one in board_fit.board_problems(loaded, boards.profile(board), known)])
"""


def test_a_new_type_of_channel_is_a_row_and_two_modules(tmp_path):
    """The second module, of linux/channels, is loaded by its name when an agent starts."""
    shutil.copytree(
        ROOT / "clawlite",
        tmp_path / "clawlite",
        ignore=shutil.ignore_patterns("__pycache__", "*.so"),
    )
    shutil.copytree(ROOT / "boards", tmp_path / "boards")
    rows = tmp_path / "clawlite/protocols/image/features.py"
    text = rows.read_text()
    assert text.count(")\nAPPROVALS = ") == 1
    rows.write_text(text.replace(")\nAPPROVALS = ", f"{ROW})\nAPPROVALS = "))
    (tmp_path / "clawlite/host/channels/custom.py").write_text(ON_THE_HOST)
    (tmp_path / "claw.yaml").write_text(MANIFEST)
    (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n[pigeon]\nloft = "tower"\n')
    (tmp_path / "reflex.toml").write_text('[[rule]]\nwhen = "coo"\nsay = "coo"\n')
    ran = subprocess.run(
        [sys.executable, "-c", BUILD], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    needs, record, on_pico, on_linux = ran.stdout.splitlines()
    assert needs == "['pigeon', 'reflex']" and record == "['tower']" and on_linux == ""
    assert on_pico.startswith(
        "claw.yaml:14: spec.channels[0].inline.type: this needs pigeon, which pico does not have - "
        'let its gateway keep pigeons: [pigeon] via = "gateway", and [gateway], or another board: '
        "linux, rpi-3b-plus"
    )
