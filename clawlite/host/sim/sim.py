"""``clawlite sim``: a virtual board, real MicroPython on a pseudo-terminal, with a folder for its
flash.

While it runs it is registered (registry.py).
"""

import os
import pty
import re
import shutil
import signal
import tempfile
import threading
import tty

from clawlite.core.base.errors import ClawError
from clawlite.host.base.programs import program
from clawlite.host.base.without_links import Below
from clawlite.host.boards import boards
from clawlite.host.fit.stack import scale
from clawlite.host.sim.registry import forget, register, running
from clawlite.host.sim.relay import Relay

LEAST_HEAP = 16384  # bytes
_HEAP = re.compile(r"[1-9][0-9]{0,9}[kKmM]?\Z")
_START_S = 10


def _check_links(folder: str) -> None:
    """Raise ``ClawError`` for a link in the file system of a board, which could have none:
    MicroPython would follow it.
    """
    try:
        Below(folder).check_tree()
    except OSError as e:
        raise ClawError(
            f"{e.filename}: {e.strerror}", "remove it, or name another folder"
        ) from None


def serve(board: str, heap, link, folder, told) -> int:
    """Run a virtual board until Ctrl-C or SIGTERM; return the exit code.

    told  function(facts), called once it runs
    Raises what ``Sim`` does.
    """
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def end(number, frame):
        for other in numbers:  # a second one must not interrupt the clearing away
            signal.signal(other, signal.SIG_IGN)
        raise _Ended(number)

    for number in numbers:
        signal.signal(number, end)
    try:
        with Sim(board, heap, link, folder) as running:
            told(running.facts)
            running.wait()
    except _Ended as e:
        return 130 if e.args[0] == signal.SIGINT else 0


class _Ended(BaseException):
    """A signal asks for the end."""


def _bytes(size: str) -> int:
    """Return the bytes of *size*, such as "96k"."""
    factor = {"k": 1 << 10, "m": 1 << 20}.get(size[-1].lower(), 1)
    return int(size.rstrip("kKmM")) * factor


class Sim:
    """One virtual board: ``with Sim() as board:`` it runs, and ``board.path`` is its port.

    board   a profile whose runtime is micropython; its ``heap_bytes``, if it has one, is the heap's
            size its ``stack_bytes``, less a quarter, is what boot.py and main.py have of stack,
            else all that the unix port has
    heap    size of the heap, "96k" or "2M", or None; a word has 64 bits here, on a board 32
    link    path of a symbolic link to the port, the same over runs, or None
    folder  the board's file system, kept; None: a temporary one, removed at the end
    Raises ``ClawError``: no micropython, a bad size, *link* or *folder* in use.
    """

    def __init__(self, board: str = "sim", heap: str = None, link: str = None, folder: str = None):
        profile = boards.load(board)
        if profile["runtime"] != "micropython":
            raise ClawError(
                f"the board {board} runs {profile['runtime']}, which clawlite sim "
                f"does not simulate",
                "choose a board with MicroPython, or talk to the agent here: clawlite run",
            )
        if heap is not None and not _HEAP.match(heap):
            raise ClawError(
                f"--heap: expected a size as 96k or 2M, got {heap}",
                "give a number, and k or M after it",
            )
        if heap is not None and _bytes(heap) < LEAST_HEAP:
            raise ClawError(
                f"--heap: expected at least {LEAST_HEAP >> 10}k, got {heap}",
                "MicroPython does not start with less; an agent needs what clawlite build says",
            )
        size = heap or profile.get("heap_bytes")
        self._options = ["-X", f"heapsize={size}"] if size else []
        self._stack = scale(profile["stack_bytes"]) if profile.get("stack_bytes") else None
        self.board = board
        self.link = os.path.abspath(link) if link else None
        self.folder = os.path.abspath(folder) if folder else None
        self._is_kept = bool(folder)
        self.path = ""
        self.error = None  # why it ended by itself
        self._thread = self._file = None

    @property
    def facts(self) -> dict:
        """What ``clawlite sim --json`` shows and the registry holds: port, link, board, id,
        folder, pid.
        """
        name = (
            self.link or self.folder
            if self._is_kept or self.link
            else f"{os.getpid()}-{os.path.basename(self.path)}"
        )
        return {
            "port": self.path,
            "link": self.link,
            "board": self.board,
            "id": "sim:" + name,
            "folder": self.folder,
            "pid": os.getpid(),
        }

    def __enter__(self):
        self._check_free()
        self._command = program("micropython")
        self._ends = pty.openpty()
        self._wake = os.pipe()
        self.path = os.ttyname(self._ends[1])
        tty.setraw(self._ends[1])
        self._up = threading.Event()
        try:
            if self._is_kept:
                os.makedirs(self.folder, exist_ok=True)
                _check_links(self.folder)
            else:
                self.folder = tempfile.mkdtemp(prefix="clawlite-sim-")
            self._file = register(self.facts)
            relay = Relay(
                self._command,
                self.folder,
                self._options,
                *self._ends,
                self._wake[0],
                self._on_start,
                self._stack,
            )
            self._thread = threading.Thread(target=self._serve, args=(relay,), daemon=True)
            self._thread.start()
            if not self._up.wait(_START_S):
                raise ClawError(
                    f"MicroPython did not start within {_START_S} s",
                    "try it again when this machine has less to do",
                )
            if self.error:
                raise self.error
            self._make_link()
        except OSError as e:
            self.__exit__()
            raise ClawError(
                f"{self.link if e.filename2 else e.filename or 'the virtual board'}: {e.strerror}",
                "name a place where this user may make one",
            ) from None
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """End the board; nothing of it is left."""
        if self.link and os.path.islink(self.link) and os.readlink(self.link) == self.path:
            os.remove(self.link)
        if self._thread:
            os.write(self._wake[1], b"x")
            self._thread.join()
        if self._file:
            forget(self._file)
        for fd in (*self._ends, *self._wake):
            os.close(fd)
        if not self._is_kept and self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def wait(self):
        """Return when the board has ended by itself.  Raises ``ClawError`` that says why."""
        self._thread.join()
        if self.error:
            raise self.error

    def _serve(self, relay: Relay):
        try:
            relay.run()
        finally:
            self._up.set()

    def _on_start(self, error):
        self.error = self.error or error
        self._up.set()

    def _check_free(self):
        for other in running():
            if self.link and other["link"] == self.link:
                raise ClawError(
                    f"{self.link} is the port of another virtual board (pid {other['pid']})",
                    "end it, or name another link",
                )
            if self.folder and other["folder"] == self.folder:
                raise ClawError(
                    f"{self.folder} is the flash of another virtual board (pid {other['pid']})",
                    "end it, or name another folder",
                )
        if self.link and os.path.lexists(self.link) and not os.path.islink(self.link):
            raise ClawError(
                f"{self.link} exists and is no link", "name another one with --pty-link"
            )

    def _make_link(self):
        if self.link:
            new = f"{self.link}.{os.getpid()}"
            os.symlink(self.path, new)
            os.replace(new, self.link)
