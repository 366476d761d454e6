"""The shell around the core on MicroPython: one loop over stdin, stdout and the clock (select.poll).

It carries effects out (clawlite/core/effect.py) and decides nothing; clawlite/linux/shell.py is its like on Linux.
stdin is read one byte at a time: ``read(n)`` on a board blocks until n bytes have come.
"""
import gc
import os
import select
import sys
import time

from clawlite.core import effect as E
from clawlite.core.agent import Agent
from clawlite.core.builtin import HANDLERS
from clawlite.core.clock import iso8601
from clawlite.core.errors import ImageMismatch
from clawlite.core.frame import TEXT, TOO_LONG, Framer
from clawlite.core.handlers import Handlers
from clawlite.core.image import PINS, Image
from clawlite.core.pins import SimulatedPins
from clawlite.core.session import Session
from jsontext import dumps, loads

ABILITIES = ("log", "pins", "reflex", "replay", "tools", "tools.py")
MAX_LINE = 8192
MAX_TASKS = 8
LEAVE_MS = 2000
_LOG_BYTES = 16384              # two files of this size are kept
_EPOCH_2000 = 946684800         # esp32 counts from 2000, the other ports from 1970


class Clock:
    """Monotonic milliseconds that never wrap: ``ticks_ms`` does, after 12 days or 6 minutes short of 300 hours."""

    def __init__(self):
        self._ticks = time.ticks_ms()
        self._ms = 0

    def now_ms(self) -> int:
        ticks = time.ticks_ms()
        self._ms += time.ticks_diff(ticks, self._ticks)
        self._ticks = ticks
        return self._ms


def epoch_s():
    """Return seconds since 1970, or None while nobody has set the clock."""
    now = time.time() + (_EPOCH_2000 if time.gmtime(0)[0] == 2000 else 0)
    return now if now > 1700000000 else None


class Device:
    """One agent on this board's console.

    path      the image
    folder    where tools.py lies, and where the log goes
    operator  True: every line is a record (a program is at the other end)
    Raises ``ImageError``, ``ImageMismatch``.
    """

    def __init__(self, path: str, folder: str, operator: bool = False):
        self.file = open(path, "rb")
        size = self.file.seek(0, 2)
        image = Image(self._read, size)
        image.require(ABILITIES, "this board")
        self.clock = Clock()
        now = self.clock.now_ms()
        maker = load_maker(image, folder)
        self.handlers = Handlers(HANDLERS, maker, SimulatedPins(image.section(PINS) or [], self.clock.now_ms))
        self.agent = Agent(image, now, MAX_TASKS)
        self.session = Session(self.agent, loads)
        epoch = epoch_s()
        if epoch is not None:
            self.session.set_clock(epoch, now)
        self.console = None
        if not operator:
            from clawlite.core.console import Console
            self.console = Console(self.agent)
        self.framer = Framer(MAX_LINE, operator)
        self.log = Log(folder)
        self.input = getattr(sys.stdin, "buffer", sys.stdin)
        self.output = getattr(sys.stdout, "buffer", sys.stdout)
        self.poll = select.poll()
        self.poll.register(self.input, select.POLLIN)
        self.code = None
        self.at_end = False
        self._prompt = b""              # what stands on the console's last line
        self._return = False            # the last byte was a carriage return

    def _read(self, offset: int, length: int) -> bytes:
        self.file.seek(offset)
        return self.file.read(length)

    def run(self) -> int:
        """Serve until the end; return the exit code.  Every handler under way is closed, however it ends."""
        try:
            self.agent.start(self.clock.now_ms())
            if self.console:
                self.console.greet()
            self.settle()
            while self.code is None:
                try:
                    self.step()
                except KeyboardInterrupt:
                    if not self.console or not self.console.interrupt(self.clock.now_ms()):
                        return 130
        finally:
            self.handlers.close()
            self.file.close()
        return self.code

    def step(self):
        deadlines = [at for at in (self.agent.deadline(), self.session.deadline(), self.handlers.deadline()) if at is not None]
        wait = -1
        if deadlines:
            wait = min(deadlines) - self.clock.now_ms()
            wait = 0 if wait < 0 else wait
        if self.at_end:
            if wait > 0:
                time.sleep_ms(wait)
        elif self.poll.poll(wait):
            self.take(self.input.read(1))
        now = self.clock.now_ms()
        self.agent.tick(now)
        self.session.tick(now)
        self.settle()

    def take(self, data: bytes):
        """Hand in what has come; an empty read is the end of input."""
        if data == b"\r" and self.console:      # the Enter key of most terminals; a line feed after it adds nothing
            self._return = True
            self.framer.feed(b"\n")
        elif data == b"\n" and self._return:
            self._return = False
        elif data:
            self._return = False
            self.framer.feed(data)
        else:
            self.at_end = True
            self.framer.finish()
        event = self.framer.next_event()
        while event:
            self.event(event[0], event[1])
            self.settle()
            event = self.framer.next_event()
        if self.at_end and self.console:
            self.console.close(self.clock.now_ms())
        elif self.at_end and self.agent.is_ready:
            self.agent.stop(LEAVE_MS, self.stopped, self.clock.now_ms())
        elif self.at_end:
            self.code = 0

    def event(self, kind: int, data: bytes):
        now = self.clock.now_ms()
        if kind == TOO_LONG:
            (self.console or self.session).too_long(int(str(data, "utf-8")), MAX_LINE)
        elif kind == TEXT:
            from clawlite.core.text import decode_utf8
            try:
                text = decode_utf8(data)
            except ValueError:
                self.console.not_text()
                return
            self._prompt = b""          # the person's Enter has ended the prompt's line
            self.console.line(text, now)
        else:
            self.session.record(data, now)

    def stopped(self, drained: bool, now_ms: int):
        self.code = 0

    def settle(self):
        """Carry out effects, and step handlers, until nothing is left to do now."""
        while True:
            effect = self.agent.next_effect()
            while effect:
                self.carry_out(effect)
                effect = self.agent.next_effect()
            ended = self.handlers.poll(self.clock.now_ms())
            for task, outcome in ended:
                self.agent.done(task, outcome, self.clock.now_ms())
            if not ended and not self.agent.effects:
                return

    def carry_out(self, effect: tuple):
        kind = effect[0]
        if kind == E.SEND:
            prompt = self._prompt
            self.write((b"\n" if prompt else b"") + self.framer.send(dumps(effect[1]).encode()))
            if prompt:
                self.prompt(prompt)
        elif kind == E.LOG:
            epoch = epoch_s()
            effect[1]["time"] = "unset" if epoch is None else iso8601(epoch)
            self.log.write(effect[1])
        elif kind == E.SAY:
            self.write((effect[1] + "\n").encode())
        elif kind == E.PROMPT:
            self.prompt(effect[1].encode())
        elif kind == E.RUN:
            outcome = self.handlers.start(effect[1], effect[2], effect[3], effect[4], self.clock.now_ms())
            if outcome is not None:
                self.agent.done(effect[1], outcome, self.clock.now_ms())
        elif kind == E.CANCEL:
            self.handlers.cancel(effect[1])
        elif kind == E.RESOLVE:         # the file systems of boards have no links
            self.agent.done(effect[1], (True, effect[2]), self.clock.now_ms())
        elif kind == E.EXIT:
            self.code = effect[1]

    def prompt(self, text: bytes):
        self.write(text)
        self._prompt = text

    def write(self, data: bytes):
        self._prompt = b""
        self.output.write(data)
        if hasattr(self.output, "flush"):
            self.output.flush()


class Log:
    """The agent's log: JSON lines in ``log.jsonl``, at most two files of 16 KiB; a full or read-only flash ends it."""

    def __init__(self, folder: str):
        self._path = folder + "/log.jsonl"
        try:
            self._size = os.stat(self._path)[6]
        except OSError:
            self._size = 0

    def write(self, event: dict):
        if self._path is None:
            return
        line = dumps(event) + "\n"
        try:
            if self._size + len(line) > _LOG_BYTES:
                os.rename(self._path, self._path + ".1")
                self._size = 0
            with open(self._path, "a") as file:
                file.write(line)
            self._size += len(line)
        except OSError as e:
            self._path = None
            sys.stderr.write("clawlite: no log: %s\n" % e)


def load_maker(image, folder: str) -> dict:
    """Return {name: function} of ``tools.py`` in *folder*, when *image* was built with that very file."""
    for name, digest in image.companions:
        if name == "tools.py":
            path = folder + "/" + name
            check_file(path, digest)
            space = {"__name__": "tools"}
            try:
                # not imported: a folder "tools" beside it would win, and no module of ours may be replaced
                with open(path) as file:
                    exec(file.read(), space)
            except Exception as e:
                raise ImageMismatch("tools.py cannot be loaded: %s: %s" % (type(e).__name__, e), "mend it and flash again")
            gc.collect()
            return space
    return {}


def check_file(path: str, digest: bytes):
    """Raise ``ImageMismatch`` unless the file at *path* has this SHA-256."""
    import hashlib
    sha = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            data = file.read(512)
            while data:
                sha.update(data)
                data = file.read(512)
    except OSError:
        raise ImageMismatch("%s is missing" % path, "the image needs its tools.py beside it")
    if sha.digest() != digest:
        raise ImageMismatch("%s is not the file that the image was built with" % path, "flash both again")
