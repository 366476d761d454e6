"""A board with slots in a folder: what a flash really writes, booted by MicroPython's unix port."""

import dataclasses
import hashlib
import os
import subprocess

import pico_stack

from clawlite.host.builder import build
from clawlite.host.flash import flash
from clawlite.host.flash.folder import Folder
from clawlite.host.flash.plan import newest, plan

START = """
import sys
ROOT = sys.argv[1]
sys.path.insert(0, ROOT + "/lib")
import bootwindow
agent = bootwindow.start(ROOT)
del bootwindow
def ready():
    import slots
    del sys.modules["slots"]
    slots.ready(ROOT)
if agent:
    agent[0](agent[1], ready)
"""
MANIFEST = """\
claw: "0.3.0"
kind: Claw
metadata: {{ name: "agent", version: "{version}" }}
spec:
  identity: {{ inline: {{ name: "agent", personality: "You are under test.", autonomy: "autonomous" }} }}
  providers:
    - inline: {{ name: "reflex", protocol: "custom", endpoint: "builtin:reflex", model: "reflex", auth: {{ type: "none" }} }}
  sandbox: {{ inline: {{ name: "in-process", level: "none" }} }}
  policies: [{{ inline: {{ name: "p", rules: [{{ id: "all", action: "allow", scope: "all" }}] }} }}]
"""  # noqa: E501
TOOLS = 'def look() -> str:\n    """Look."""\n    return "seen"\n'


def project(folder, version: str, tools: str = TOOLS, key: bytes = None):
    """Build an agent in *folder*, unless that was done; return its image."""
    if (folder / "claw.cbor").exists():
        return str(folder / "claw.cbor")
    folder.mkdir()
    for name, text in {
        "claw.yaml": MANIFEST.format(version=version),
        "tools.py": tools,
        "clawlite.toml": 'reflex = "reflex.toml"\n',
        "reflex.toml": '[[rule]]\nwhen = "*"\nsay = "By rule."\n',
    }.items():
        (folder / name).write_text(text)
    if key:
        (folder / "key").write_bytes(key)
        (folder / "key").chmod(0o600)
    return build.build(str(folder), None, str(folder / "key") if key else None)["file"]


def contents_of_any(folder, board: str = None) -> tuple:
    """Return what ``Board`` wants; *folder* is for projects; *board*: whose slot it is, as this
    computer can run it.
    """
    return flash.contents(project(folder / "any", "0.0.1"), board, None, True), folder


class Board:
    """A board below *tmp_path*.

    whole  (``flash.contents`` of any image, a folder for others): linking the firmware takes
           seconds, once is enough
    """

    def __init__(self, whole, tmp_path):
        (self.whole, self.projects), self.tmp_path = whole, tmp_path
        self.root = tmp_path / "board"
        self.root.mkdir()
        (self.root / "boot.json").write_text('{"window_ms": 100}')
        self.folder = Folder(str(self.root))

    def contents(self, version: str, tools: str = TOOLS, key: bytes = None):
        name = hashlib.sha256(repr((version, tools, key)).encode()).hexdigest()
        image = project(self.projects / name, version, tools, key)
        with open(image, "rb") as file:
            return dataclasses.replace(
                self.whole, slot={**self.whole.slot, "tools.py": tools.encode()}, image=file.read()
            )

    def flash(self, *what, **more):
        flash.carry_out(
            self.folder,
            plan(self.folder.read_state(), self.contents(*what, **more)),
            lambda size: None,
        )

    def words(self, *options) -> tuple:
        """Return (command line, environment) of a boot, in the stack of a Pico (agents.board)."""
        words = [pico_stack.micropython(), *options, pico_stack.script(START), str(self.root)]
        return words, {"MICROPYPATH": ".frozen"}

    def boot(self, *options, stdin: bytes = b"hello\n") -> str:
        """Return what a boot says, with the end of input after its first turn."""
        words, env = self.words(*options)
        done = subprocess.run(
            words,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=300,
            env=dict(os.environ, **env),
        )
        return done.stdout.decode()

    def record(self) -> tuple:
        """Return (slot, trials, checked)."""
        return newest(self.folder.read_state().records)[1:]

    def image(self, slot: str):
        return self.root / f"claw-{slot}.cbor"


WINDOW = "clawlite: Ctrl-C within 100 ms keeps the agent from starting\n"


def ready(version: str) -> str:
    return f"agent {version} is ready. /help lists the commands.\n> By rule.\n> "
