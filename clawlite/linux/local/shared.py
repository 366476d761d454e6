"""The local models of a gateway's boards: a board sends a sentence, the gateway's machine reads it.

1. At most ``MOST`` engines run at once, one for each set of tools; a board with other tools takes
   the place of the one that was asked least lately.
2. What comes back is a call, a question or nothing.  The board judges the call as any other.
3. The gateway belongs to the host, which may not import this: command.py hands it ``SharedModels``.
"""

import os
import signal
import socket
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

from clawlite.core.base.errors import ParseError, ProviderError
from clawlite.core.image.image import WIRE
from clawlite.core.providers.provider_order import PASSES
from clawlite.core.rules import table
from clawlite.core.rules.schedule import Zone
from clawlite.core.teach.draft import TEACH
from clawlite.core.turns.turn import Reply
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.local import confined
from clawlite.linux.local.model_client import SLACK_MS, spawn
from clawlite.linux.local.provider import LocalProvider
from clawlite.protocols.teach.clause import propose
from clawlite.protocols.teach.reader import ADD, ALL, Reader

MOST = 2
_QUESTIONS = 16  # that wait for their answers, of one board
_PREFIX = 21  # of a row of PROVIDERS


class SharedModels:
    """What runs the engines.  ``submit`` may be called from any thread."""

    def __init__(self):
        # an engine ends with the thread that started it, and these end with the gateway
        self._pool = ThreadPoolExecutor(MOST, "local")
        self._lock = threading.Lock()
        self._minds: dict = {}  # setup -> _Mind, the one that was asked last at the end
        self._timer: threading.Timer | None = None

    def make_provider(self, image, row: list, is_last: bool) -> "BoardProvider":
        """Return the provider of *row* of *image*; *is_last*: none is asked after it."""
        offset, length, _ = row[_PREFIX]
        setup = image.part(WIRE, offset, length)
        submit = lambda what: self.submit(setup, what)
        return BoardProvider(row[0], loads(setup)["say"], submit, is_last, image)

    def submit(self, setup: bytes, what: dict) -> Future:
        """Ask *what* (model_process.py) of the model with this *setup*; return the future of (True,
        answer) or (False, ``ProviderError``).
        """
        return self._pool.submit(self._ask, setup, what)

    def close(self):
        """End all engines."""
        with self._lock:
            for mind in self._minds.values():
                mind.kill()
            if self._timer is not None:
                self._timer.cancel()
        self._pool.shutdown(cancel_futures=True)
        for mind in self._minds.values():
            mind.close()
        self._minds.clear()

    def _ask(self, setup: bytes, what: dict) -> tuple:
        mind = self._take(setup)
        with mind.turn:
            try:
                return True, mind.ask(what)
            except ProviderError as e:
                return False, e
            finally:
                with self._lock:
                    mind.users -= 1
                    mind.idle_s = time.monotonic() + mind.keep_s
                self._tidy()

    def _take(self, setup: bytes) -> "_Mind":
        """Return the process for *setup*; one that nobody waits for makes room for it."""
        with self._lock:
            mind = self._minds.pop(setup, None) or _Mind(setup)
            # there are as many threads as engines: of others, one at least is not in use
            idle = [one for one, other in self._minds.items() if not other.users]
            for one in idle[: len(self._minds) + 1 - MOST]:
                self._minds.pop(one).close()
            self._minds[setup] = mind
            mind.users += 1
            return mind

    def _tidy(self):
        """End what was not asked for a while, and look again when the next one may have been."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            now, due = time.monotonic(), []
            for mind in self._minds.values():
                if mind.keep_s and not mind.users and mind.pid:
                    if now >= mind.idle_s:
                        mind.close()
                    else:
                        due.append(mind.idle_s - now)
            self._timer = _Timer(min(due), self._tidy) if due else None
            if self._timer is not None:
                self._timer.start()


class _Timer(threading.Timer):
    def __init__(self, seconds: float, function):
        super().__init__(seconds, function)
        self.daemon = True  # no gateway stays for it


class _Mind:
    """One process with its engine.

    setup  bytes of JSON for model_process.py
    Public, of ``SharedModels``: ``turn``, the lock of who asks; ``users``, who asks or waits;
    ``idle_s``, until when it is kept.
    """

    def __init__(self, setup: bytes):
        settings = loads(setup)
        self._setup = setup
        self._wait_s = (settings["timeout_ms"] + SLACK_MS) / 1000
        self.keep_s = settings["idle_ms"] / 1000
        self.turn, self.users, self.idle_s, self.pid = threading.Lock(), 0, 0.0, 0
        self._line: socket.socket | None = None

    def ask(self, what: dict) -> dict:
        """Return model_process.py's answer.  Raises ``ProviderError``."""
        try:
            line = self._line or self._start()
            line.sendall(confined.frame(dumps(what).encode("utf-8", "replace")))
            data = confined.receive(line.recv)
        except TimeoutError:
            raise self._fail("did not answer within %d s, and was killed" % self._wait_s) from None
        except (OSError, ValueError) as e:
            raise self._fail("cannot be started or asked: %s" % e) from None
        if data is None:
            raise self._fail("ended without an answer")
        try:
            answer = loads(data)
        except ParseError:
            answer = None
        if not isinstance(answer, dict):
            raise self._fail("answered nonsense")
        if "error" in answer:
            raise ProviderError(str(answer["error"]), str(answer.get("hint", "")))
        return answer

    def _start(self) -> socket.socket:
        self.pid, line = spawn()
        self._line = line
        line.settimeout(self._wait_s)
        line.sendall(confined.frame(self._setup))
        return line

    def _fail(self, what: str) -> ProviderError:
        self.close()
        hint = "say it again; when it stays so, see clawlite doctor at the gateway"
        return ProviderError("the local model of the gateway %s" % what, hint)

    def kill(self):
        """End the process: whoever asks it gets no answer."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)

    def close(self):
        """End the process, and with it its engine."""
        if self.pid:
            self.kill()
            os.waitpid(self.pid, 0)
        if self._line is not None:
            self._line.close()
        self.pid, self._line = 0, None


class BoardProvider:
    """The local model as one board has it: its questions wait here for that person's answer.  A
    sentence that teaches a rule becomes a call of ``add-rule``, where the *image* has [teach].

    submit   function(what) -> future, as ``SharedModels.submit`` has it
    is_last  no provider comes after it: what it does not understand, it says
    """

    def __init__(self, name: str, say: dict, submit, is_last: bool, image=None):
        self.name, self.submit, self._is_last = name, submit, is_last
        self._provider = LocalProvider(name, say, lambda: time.monotonic_ns() // 1000000)
        self._questions: dict = {}  # speaker -> provider.Question
        self._reader = (
            _make_reader(image, self._provider) if image and image.section(TEACH) else None
        )
        self._open: dict = {}  # speaker -> the sentence that teaches, whose question was asked

    def ask(self, history, meter, most=None):
        """A generator of effects that returns a ``Reply``.  Raises ``ProviderError``."""
        speaker = history.speaker
        if history.turn[-1].role == "tool":
            _restore(history.turn)
        else:
            reply = yield from self._learn(history.turn[-1].text.strip(), speaker)
            if reply is not None:
                return reply
            history.question = self._questions.pop(speaker, None)
        reply = yield from self._provider.ask(history, meter, most)
        if history.question is not None:
            _put(self._questions, speaker, history.question)
        if reply.stop == PASSES and not self._is_last:
            return Reply("", [], False, PASSES)
        return reply

    def _learn(self, text: str, speaker):
        """Return the ``Reply`` to a sentence that teaches, None for another; a generator of
        effects.
        """
        if self._reader is None or speaker is None:
            return None
        is_form = text.startswith("/teach ")
        text = text[6:].strip() if is_form else text
        row, said, whole = yield from self._reader.hear(
            text, self._open.pop(speaker, None), is_form
        )
        if whole:
            _put(self._open, speaker, whole)
        if row is not None:
            return Reply("", [("", ADD, row, "")])
        said = said or ("That teaches no rule: say when, and what to do." if is_form else "")
        return Reply(said, []) if said else None


def _put(waiting: dict, speaker, value):
    """Let *value* wait for what *speaker* says next."""
    while len(waiting) >= _QUESTIONS:
        waiting.pop(next(iter(waiting)))
    waiting[speaker] = value


def _make_reader(image, model) -> Reader:
    """Return what reads the sentences that teach the board of *image*."""
    limits, section = image.section(TEACH), image.section(table.SECTION)
    zone = Zone(section[table.CLOCK][table.CHANGES])

    def now() -> tuple:
        at_s = int(time.time())
        local_s = at_s + zone.offset(at_s)
        return local_s // 86400, local_s // 60 % 1440

    def suggest(clause: str):
        return propose(clause, image, limits[0])

    return Reader(image, suggest, ALL, lambda: section[table.READINGS], now, lambda: model)


def _restore(turn: list):
    """Give the results of *turn*, which came as texts, their tools and values back."""
    names: dict = {}
    for message in turn:
        for id, name, _ in message.calls:
            names[id] = name
        if message.role == "tool":
            message.tool = names.get(message.id, "")
            message.result.value = _read_value(message.text)


def _read_value(text: str):
    if not text.startswith("{"):
        return text
    try:
        return loads(text.encode())
    except ParseError:
        return text
