"""The agent's side of the local model: it starts the process that understands sentences with the
first of them, kills it when it hangs, and ends it after idle time.

It imports neither ``json`` nor ``re``: an agent grows by little more than this file.
"""

import _socket
import os
import struct
import sys

from clawlite.core.base import effect as E
from clawlite.core.base.errors import ParseError, ProviderError
from clawlite.core.image.image import WIRE
from clawlite.core.providers.provider_order import LOCAL
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.linux.local.provider import LocalProvider

# for its start, vectors of examples that were never computed, and a few clauses
SLACK_MS = 60000
_LARGEST = 16 << 20
_HEAD = 4
_KILL = 9  # SIGKILL: the module signal would bring enum and what that imports
# positions in a row of PROVIDERS (host/image/image.cddl)
_NAME, _PREFIX = 0, 21


class LocalLink(Part):
    """The process of one agent's local model.

    wire      what the loop waits with: ``wake_by(fd)``, ``sleep_by(fd)``
    setup     bytes of JSON for model_process.py: tools, examples, times
    idle_ms   without a sentence, after which it ends; 0: never
    timeout_ms  of one answer of the engine, which model_process.py keeps; this side waits
                ``SLACK_MS`` more
    """

    def __init__(self, wire, setup: bytes, timeout_ms: int, idle_ms: int):
        self._wire, self._setup = wire, setup
        self._wait_ms, self._idle_ms = timeout_ms + SLACK_MS, idle_ms
        self._pid = 0
        self._line: _socket.socket = None  # type: ignore[assignment]
        self._due: int | None = None
        self._idle_due: int | None = None
        self._waiting: list = []  # (what is asked, function(outcome)); the first one has been sent
        self._data = bytearray()

    def ask(self, what: dict, done):
        """Ask *what* (model_process.py); *done(outcome)* is called from ``poll``: (True, answer),
        or (False, ``ProviderError``).
        """
        self._waiting.append((what, done))
        if len(self._waiting) == 1:
            self._send()

    def forget(self, done):
        """Nobody waits any more for the outcome of which *done* would hear."""
        self._waiting = [(what, _ignore if each is done else each) for what, each in self._waiting]

    def deadline(self):
        return self._due if self._due is not None else self._idle_due

    def poll(self):
        now = now_ms()
        if self._due is not None and now >= self._due:
            self._fail("did not answer within %d s, and was killed" % (self._wait_ms // 1000))
        elif self._due is None and self._idle_due is not None and now >= self._idle_due:
            self.close()
        if self._pid:
            self._read()

    def is_busy(self) -> bool:
        return bool(self._waiting)

    def close(self):
        """End the process, and with it its engine."""
        if self._pid:
            self._wire.sleep_by(self._line.fileno())
            self._line.close()
            os.kill(self._pid, _KILL)
            os.waitpid(self._pid, 0)
        self._pid, self._due, self._idle_due = 0, None, None
        self._data = bytearray()

    def _send(self):
        try:
            if not self._pid:
                self._start()
            self._write(dumps(self._waiting[0][0]).encode("utf-8", "replace"))
            self._due = now_ms() + self._wait_ms
        except OSError as e:
            self._fail("cannot be started or asked: %s" % e.strerror)

    def _start(self):
        self._pid, self._line = spawn()
        self._wire.wake_by(self._line.fileno())
        self._write(self._setup)
        self._line.setblocking(False)

    def _write(self, data: bytes):
        self._line.setblocking(True)
        self._line.sendall(struct.pack(">I", len(data)) + data)
        self._line.setblocking(False)

    def _read(self):
        try:
            more = self._line.recv(16384)
        except BlockingIOError:
            return
        except OSError:
            more = b""
        if not more:
            self._fail("ended without an answer")
            return
        self._data += more
        if len(self._data) < _HEAD:
            return
        (size,) = struct.unpack(">I", self._data[:_HEAD])
        if size > _LARGEST or not self._waiting:
            self._fail("answered nonsense")
        elif len(self._data) >= _HEAD + size:
            self._take(bytes(self._data[_HEAD : _HEAD + size]))

    def _take(self, data: bytes):
        self._data = bytearray()
        try:
            answer = loads(data)
            if not isinstance(answer, dict):
                raise ParseError("no object")
        except ParseError:
            self._fail("answered nonsense")
            return
        self._due = None
        self._idle_due = now_ms() + self._idle_ms if self._idle_ms else None
        if "error" in answer:
            said = ProviderError(str(answer["error"]), str(answer.get("hint", "")))
            self._end((False, said))
        else:
            self._end((True, answer))

    def _fail(self, what: str):
        self.close()
        if self._waiting:
            hint = "say it again; when it stays so, see clawlite doctor"
            self._end((False, ProviderError("the local model %s" % what, hint)))

    def _end(self, outcome: tuple):
        _, done = self._waiting.pop(0)
        done(outcome)
        if self._waiting and self._due is None:
            self._send()


def spawn() -> tuple:
    """Start the process that understands sentences (model_process.py); return its id and the
    socket to it.  It ends with the thread that calls this.
    """
    ours, theirs = _socket.socketpair()
    package = os.path.dirname(PACKAGE)
    path = [package] + [one for one in sys.path if one and one != package]
    code = (
        "import sys; sys.path[:0] = %r; from clawlite.linux.local.model_process import main; main()"
    )
    names = ("CLAWLITE_LOCAL", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HOME")
    env = {name: os.environ[name] for name in names if name in os.environ}
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-B", "-c", code % path],
            dict(env, LANG="C.UTF-8"),
            file_actions=[
                (os.POSIX_SPAWN_DUP2, theirs.fileno(), 0),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return pid, ours


def _ignore(outcome):
    pass


class LocalPart:
    """The local models of one agent, by the names of their providers.

    parts  ``agent_parts.AgentParts``
    """

    def __init__(self, parts):
        self._parts, self._offer = parts, None
        if parts.terminal:
            from clawlite.linux.local.offer import Offer

            self._offer = parts.add_part(Offer(parts.wire, parts.agent))
        self._links, self._waiting = {}, {}  # task -> (link, function that hears of its outcome)

    def make_provider(self, row: list) -> LocalProvider:
        """Return the provider of *row*, whose process starts with the first sentence; all who ask
        share it.
        """
        offset, length, _ = row[_PREFIX]
        data = self._parts.image.part(WIRE, offset, length)
        settings = loads(data)
        if row[_NAME] in self._links:
            return LocalProvider(row[_NAME], settings["say"], now_ms, self._offer)
        link = LocalLink(self._parts.wire, data, settings["timeout_ms"], settings["idle_ms"])
        self._links[row[_NAME]] = self._parts.add_part(link)
        if settings["warm"]:
            link.ask({"do": "prepare"}, lambda outcome: None)
        return LocalProvider(row[_NAME], settings["say"], now_ms, self._offer)

    def carry_out(self, effect: tuple) -> bool:
        """Carry out *effect* if it is one of this provider's; return whether it was."""
        kind, task = effect[E.KIND], effect[E.TASK]
        if kind == E.OPEN and effect[2] == LOCAL:
            link, agent = self._links[effect[3]], self._parts.agent
            done = lambda outcome: agent.receive(task, outcome, now_ms())
            self._waiting[task] = link, done
            link.ask(effect[5][0], done)
            return True
        if kind in (E.CLOSE, E.CANCEL) and task in self._waiting:
            link, done = self._waiting.pop(task)
            link.forget(done)
            return kind == E.CLOSE
        return False
