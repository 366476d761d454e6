"""What tests of the gateway share: a project whose device has no network, a virtual board that
runs it, and a wire with noise.
"""

import asyncio
import hmac
import json
import os
import pty
import random
import select
import shutil
import threading
import time
import tty
from pathlib import Path

from agents import DEADLINE_S, Agent, clawlite, eventually, linux
from line_host import SEED, noisy

from clawlite.core.line.frame import RECORD
from clawlite.core.line.line import Line
from clawlite.host.builder.build import build_beside
from clawlite.host.firmware.board_files import board_files
from clawlite.host.sim.sim import Sim

HEAP = "192k"  # 64-bit words, which take twice the room that they take on a board
KEY = "k-canary-7f3a-never-on-the-line"
CLAW = """claw: "0.3.0"
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
"""  # noqa: E501
TOOLS = (
    'def look(where: str) -> dict:\n    """Look somewhere."""\n    return {"where": where, '
    '"seen": 3}\n'
)


def project(
    folder: Path,
    endpoint: str,
    name: str = "garden",
    protocol: str = "openai-compatible",
    stream: str = "true",
    limits: str = "",
    gateway: str = "",
    tools: str = TOOLS,
) -> str:
    """Write a project and build it; return its image.  gateway: more lines of [gateway], and
    what follows it
    """
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "claw.yaml").write_text(
        CLAW.format(name=name, protocol=protocol, endpoint=endpoint, stream=stream, limits=limits)
    )
    (folder / "tools.py").write_text(tools)
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n[gateway]\n' + gateway)
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "*"\nsay = "By rule."\n')
    return build_beside(str(folder))


def flashed(image: str, flash: Path, firmware: Path) -> Path:
    """Put what a board needs to run *image* into *flash*, a folder that ``clawlite sim --fs``
    takes; return it.

    firmware  a folder that is compiled into
    """
    for source, target in board_files(image, str(firmware)):
        path = flash / target.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, path)
    (flash / "boot.json").write_text('{"window_ms": 100}')
    return flash


def gateway(tmp_path, *words, key: str = KEY, popen=None, **more) -> Agent:
    env = {"CLAWLITE_STATE": tmp_path / "state", "GARDEN_KEY": key, **more}
    words = linux("gateway", *words)
    return Agent(words, tmp_path / "home", cwd=tmp_path, env=env, **(popen or {}))


def says(running: Agent, text: str, count: int = 1) -> bool:
    """Return whether the gateway has noted *text* so often."""
    try:
        return eventually(lambda: running.errors().count(text) >= count, 30)
    except AssertionError:
        raise AssertionError("%r did not come; this did: %s" % (text, running.errors())) from None


def script(tmp_path, id: str, *lines: str):
    """Type *lines* on the console of the device *id*, each when the board's prompt is back."""
    done = clawlite(
        "console",
        "--port",
        "gateway:" + id,
        "--timeout",
        DEADLINE_S,
        cwd=tmp_path,
        stdin="".join(line + "\n" for line in lines).encode(),
        CLAWLITE_STATE=tmp_path / "state",
    )
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout


def process_of(sim: Sim) -> int:
    """Return the id of the MicroPython process of a virtual board."""
    for path in Path("/proc/self/task").glob("*/children"):
        for pid in map(int, path.read_text().split()):
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
            # a gateway may name that folder, too
            if sim.folder.encode() in words and b"heapsize=" in words:
                return pid
    raise AssertionError("it does not run")


class NoisyWire:
    """A terminal, ``path``, that leads to another one, *port*, through noise: one byte in *odds* is
    hit, each way.

    Public: ``seen``, all bytes that went either way, before the noise; ``cost``: [bytes of frames,
    bytes of records in them]; ``is_cut``: nothing passes; ``cut_at(words)``: from the moment on
    when *words* come, which do not pass either, ``has_cut`` is set then."""

    def __init__(self, port: str, odds: int):
        self._random = random.Random(SEED)
        self.odds, self.seen, self.is_cut = odds, bytearray(), False
        self.cost, self._open = [0, 0], {}
        self._trap, self.has_cut = None, threading.Event()
        self._board = os.open(port, os.O_RDWR | os.O_NOCTTY)
        self._master, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        os.close(slave)  # it is free for who serves it
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
            ready = select.select(
                [*ends, self._wake[0]] if is_open else [self._board, self._wake[0]],
                [],
                [],
                None if is_open else 0.02,
            )[0]
            if self._wake[0] in ready:
                return
            is_open = True
            for fd in ready:
                try:
                    data = os.read(fd, 4096)
                except OSError:  # nobody has opened it
                    is_open = False
                    continue
                self.seen += data
                self._count(fd, data)
                cuts = self._trap and self._trap in self.seen[self._from :]
                if cuts:
                    self.is_cut, self._trap = True, None
                if not self.is_cut:
                    os.write(ends[fd], noisy(self._random, data, self.odds))
                if cuts:
                    self.has_cut.set()

    def cut_at(self, words: bytes):
        self._from = len(self.seen)
        self._trap = words

    def _count(self, fd: int, data: bytes):
        """Add up what the frames in *data* take; text beside them is people's."""
        *items, self._open[fd] = (self._open.get(fd, b"") + data).split(b"\n")
        for item in items:
            frame = item[item.rfind(b"\x1e") :]
            if len(frame) > 9 and frame[1] in b"~dma":
                self.cost[0] += len(frame) + 1
                self.cost[1] += len(frame) - 10 if frame[1] in b"dm" else 0


class Peer:
    """A device on the LAN as a program of a few lines: what a board with Wi-Fi would be.

    image  digest of the image that it says it runs, 64 hex digits
    """

    def __init__(self, name: str, token: str, image: str, boot: str = "00c0ffee"):
        self.name, self._token, self.image, self.boot = name, token, image, boot
        self.seen = b""  # all that came
        self.texts, self._count = {}, 0
        self._reader = self._writer = None

    async def connect(self, address: str, **options):
        host, _, port = address.rpartition(":")
        self._reader, self._writer = await asyncio.open_connection(host, int(port), **options)
        asked = await self.read()
        assert asked["method"] == "claw.gateway.auth"
        mac = hmac.new(
            self._token.encode(), asked["params"]["nonce"].encode(), "sha256"
        ).hexdigest()
        self.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"name": self.name, "mac": mac}})
        hello = await self.read()
        assert hello["method"] == "claw.gateway.hello" and hello["params"]["version"] == 1
        self.send(
            {
                "jsonrpc": "2.0",
                "id": hello["id"],
                "result": {
                    "version": 1,
                    "boot": self.boot,
                    "agent": "garden",
                    "record": 8192,
                    "image": self.image,
                },
            }
        )
        return self

    def send(self, message):
        self._writer.write(
            b"\x1e"
            + (message if isinstance(message, bytes) else json.dumps(message).encode())
            + b"\n"
        )

    async def read(self) -> dict:
        line = await asyncio.wait_for(self._reader.readline(), 20)
        assert line, "the gateway has hung up"
        self.seen += line
        return json.loads(line.removeprefix(b"\x1e"))

    def note(self, name: str, **params):
        self.send({"jsonrpc": "2.0", "method": "claw.gateway." + name, "params": params})

    def begin(self, text: str, id: str = None, provider: str = "remote", seen: int = 0) -> str:
        """Ask *text*; return the request's id."""
        self._count += 1
        id = id or "%s-%d" % (self.boot, self._count)
        self.note("message", id=id, role="user", text=text[:500])
        for at in range(500, len(text), 500):
            self.note("message", id=id, text=text[at : at + 500])
        self.send(
            {
                "jsonrpc": "2.0",
                "id": id,
                "method": "claw.gateway.provider",
                "params": {"provider": provider, "max_tokens": 0, "seen": seen},
            }
        )
        return id

    async def end(self, id: str) -> dict:
        """Return the answer to request *id*, its result or error; its text is in ``texts``."""
        while True:
            message = await self.read()
            if message.get("method") == "claw.gateway.text":
                one = message["params"]["id"]
                self.texts[one] = self.texts.get(one, "") + message["params"]["text"]
            elif message.get("id") == id:
                return message

    def close(self):
        self._writer.transport.abort()


class LineBoard:
    """A board on a terminal, ``path``, as a program of a few lines: the reliable line, and what a
    device says to a gateway.

    To be stepped by ``serve`` with others; each asks *question* once, when a gateway has said
    hello."""

    def __init__(self, image: str, question: str):
        self.fd, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave = slave  # kept, or reading would fail before the gateway comes
        os.set_blocking(self.fd, False)
        self._line = Line(
            int.from_bytes(os.urandom(4), "big") or 1, 2048, 208, limit=65536, backlog=65536
        )
        self._image, self._question = image, question
        self.text, self.result = "", None

    def release(self):
        """Give the terminal's end to who serves it."""
        fd, self._slave = self._slave, -1
        os.close(fd)

    def step(self):
        """Take what has come, and answer."""
        try:
            self._line.feed(os.read(self.fd, 4096), self._now())
        except OSError:  # nothing, or nobody
            pass
        self._line.tick(self._now())
        while event := self._line.next_event():
            if event[0] == RECORD:
                self._take(json.loads(event[1]))
        while data := self._line.output():
            os.write(self.fd, data)

    def _take(self, message: dict):
        if message.get("method") == "claw.gateway.hello":
            self._send(
                {
                    "jsonrpc": "2.0",
                    "id": message["id"],
                    "result": {
                        "version": 1,
                        "boot": "0badcafe",
                        "agent": "garden",
                        "record": 8192,
                        "image": self._image,
                    },
                }
            )
            self._send(
                {
                    "jsonrpc": "2.0",
                    "method": "claw.gateway.message",
                    "params": {"id": "a", "role": "user", "text": self._question},
                }
            )
            self._send(
                {
                    "jsonrpc": "2.0",
                    "id": "a",
                    "method": "claw.gateway.provider",
                    "params": {"provider": "remote", "max_tokens": 0, "seen": 0},
                }
            )
        elif message.get("method") == "claw.gateway.text":
            self.text += message["params"]["text"]
        elif message.get("id") == "a":
            self.result = message

    def _send(self, message):
        self._line.send(json.dumps(message).encode(), self._now())

    def _now(self) -> int:
        return time.monotonic_ns() // 1000000

    def close(self):
        fd, self.fd = self.fd, -1
        os.close(fd)


def serve(boards: list, until, seconds: float = 60):
    """Step *boards* until the function says so."""
    end = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < end, [board.result for board in boards][:3]
        select.select([board.fd for board in boards], [], [], 0.02)
        for board in boards:
            board.step()
