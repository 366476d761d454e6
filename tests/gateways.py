"""What tests of the gateway share: a project whose device has no network, a virtual board that runs it, and a wire with noise."""
import os
import pty
import random
import select
import shutil
import threading
import tty
from pathlib import Path

from line_host import SEED, noisy

from clawlite.host.board_files import board_files
from clawlite.host.build import build_beside

KEY = "k-canary-7f3a-never-on-the-line"
CLAW = '''claw: "0.3.0"
kind: Claw
metadata: {{ name: {name}, version: "1.0.0" }}
spec:
  identity: {{ inline: {{ personality: "You keep a garden.", autonomy: autonomous }} }}
  providers:
    - inline: {{ name: remote, protocol: {protocol}, endpoint: "{endpoint}", model: test-model, streaming: {stream},
                auth: {{ type: bearer, secret_ref: GARDEN_KEY }}, retry: {{ max_attempts: 2, initial_delay_ms: 1 }},
                {limits}fallback: [{{ provider_ref: rules }}] }}
    - inline: {{ name: rules, protocol: custom, endpoint: "builtin:reflex", model: reflex, auth: {{ type: none }} }}
  sandbox: {{ inline: {{ level: none }} }}
  policies: [{{ inline: {{ rules: [{{ id: all, action: allow, scope: all }}] }} }}]
'''
_FIRMWARE = {}
TOOLS = 'def look(where: str) -> dict:\n    """Look somewhere."""\n    return {"where": where, "seen": 3}\n'


def project(folder: Path, endpoint: str, name: str = "garden", protocol: str = "openai-compatible", stream: str = "true", limits: str = "") -> str:
    """Write a project and build it; return its image."""
    folder.mkdir(exist_ok=True)
    (folder / "claw.yaml").write_text(CLAW.format(name=name, protocol=protocol, endpoint=endpoint, stream=stream, limits=limits))
    (folder / "tools.py").write_text(TOOLS)
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n[gateway]\n')
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "By rule."\n')
    return build_beside(str(folder))


def flashed(image: str, flash: Path, firmware: Path) -> Path:
    """Put what a board needs to run *image* into *flash*, a folder that ``clawlite sim --fs`` takes; return it.

    firmware  a folder that is compiled into once, empty before
    """
    if firmware not in _FIRMWARE:
        _FIRMWARE[firmware] = board_files(image, str(firmware))
    beside = {".cbor": image, "tools.py": os.path.join(os.path.dirname(image), "tools.py")}
    for source, target in _FIRMWARE[firmware]:
        source = next((path for end, path in beside.items() if target.endswith(end)), source)
        path = flash / target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)
    (flash / "boot.json").write_text('{"window_ms": 100}')
    return flash


class NoisyWire:
    """A terminal, ``path``, that leads to another one, *port*, through noise: one byte in *odds* is hit, each way.

    Public: ``seen``, all bytes that went either way, before the noise; ``is_cut``: nothing passes.
    """

    def __init__(self, port: str, odds: int):
        self._random = random.Random(SEED)
        self.odds, self.seen, self.is_cut = odds, bytearray(), False
        self._board = os.open(port, os.O_RDWR | os.O_NOCTTY)
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        os.close(slave)                 # it is free for who serves it
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.write(self._wake[1], b"x")
        self._thread.join()
        for fd in (self._board, self._master, *self._wake):
            os.close(fd)

    def _run(self):
        ends = {self._board: self._master, self._master: self._board}
        is_open = True
        while True:
            ready = select.select([*ends, self._wake[0]] if is_open else [self._board, self._wake[0]], [], [], None if is_open else 0.02)[0]
            if self._wake[0] in ready:
                return
            is_open = True
            for fd in ready:
                try:
                    data = os.read(fd, 4096)
                except OSError:         # nobody has opened it
                    is_open = False
                    continue
                self.seen += data
                if not self.is_cut:
                    os.write(ends[fd], noisy(self._random, data, self.odds))
