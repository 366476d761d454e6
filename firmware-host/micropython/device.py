"""The shell around the core on MicroPython: one loop over stdin, stdout and the clock (select.poll).

It carries effects out (clawlite/core/effect.py) and decides nothing; clawlite/linux/shell.py is its like on Linux.
stdin is read byte by byte: ``read(n)`` on a board blocks until n bytes have come.  What an image does not need is
not loaded: the console for an operator's line, the operator's session for a person's, pins, the log.
"""
import gc
import os
import select
import sys
import time

from clawlite.core import effect as E
from clawlite.core.agent import Agent
from clawlite.core.frame import TEXT, TOO_LONG, Framer
from clawlite.core.handlers import Handlers
from clawlite.core.image import PINS
from jsontext import dumps, loads
from memory import drop

MAX_LINE = 8192
_MAX_TASKS = 8
_LEAVE_MS = 2000
_PIECE = 128                    # bytes that are read at once
_EPOCH_2000 = 946684800         # esp32 counts from 2000, the other ports from 1970


class Device:
    """One agent on this board's console.

    image      ``image.Image``, its abilities compared with this board's
    maker      {name: function} of tools.py
    folder     where the log goes
    operator   True: every line is a record (a program is at the other end)
    """

    def __init__(self, image, maker: dict, folder: str, operator: bool):
        self._ticks = time.ticks_ms()
        self._now = 0
        builtin, pins, self.log, self.console = {}, None, None, None
        if "pins" in image.requires:
            from clawlite.core.builtin import HANDLERS as builtin
            from clawlite.core.pins import SimulatedPins
            pins = SimulatedPins(image.section(PINS) or [], self.now_ms)
        self.handlers = Handlers(builtin, maker, pins)
        self.agent = Agent(image, 0, _MAX_TASKS)
        self.agent.kept = self.kept
        self.folder = folder
        self.session = None             # until a record comes
        if "log" in image.requires:
            from logfile import Log
            self.log = Log(folder, dumps)
            self.agent.lifecycle.starting = self.log.check
        self.agent.lifecycle.on_failure = self.failed
        self.terminal = not operator and is_terminal()
        if operator:
            self.begin_session()
        else:
            from clawlite.core.console import Console
            from clawlite.core.printable import printable
            self.console = Console(self.agent, not self.terminal)
            self.printable = printable
        self.framer = Framer(MAX_LINE, operator)
        self.input = getattr(sys.stdin, "buffer", sys.stdin)
        self.output = getattr(sys.stdout, "buffer", sys.stdout)
        self.typed = select.poll()      # the console alone: is there more to read at once?
        self.typed.register(self.input, select.POLLIN)
        self.poll = select.poll()       # all that may wake the loop
        self.poll.register(self.input, select.POLLIN)
        self.net = None

        def clock():
            return self.now_ms(), epoch_s()
        if "http" in image.requires or image.agent.counts:
            from meters import Meters
            Meters(self.agent, folder, clock)
        if "http" in image.requires:
            from net import Net
            self.net = Net(self.agent, self.poll, folder, clock)
        self.code = None
        self.at_end = False
        self._asked = None              # the task whose question was put last
        self._prompt = b""              # what stands on the console's last line
        self._return = False            # the last byte was a carriage return
        self._open = False              # what a provider says piece by piece stands on the last line

    def begin_session(self):
        """Make the operator's session, if there is none."""
        if self.session is None:
            from clawlite.core.session import Session
            self.session = Session(self.agent, loads)
            epoch = epoch_s()
            if epoch is not None:
                self.session.set_clock(epoch, self.now_ms())

    def now_ms(self) -> int:
        """Return monotonic milliseconds that never wrap: ``ticks_ms`` does, on a board after 12 days."""
        ticks = time.ticks_ms()
        self._now += time.ticks_diff(ticks, self._ticks)
        self._ticks = ticks
        return self._now

    def run(self, ready) -> int:
        """Serve until the end; return the exit code.  Every handler under way is closed, however it ends.

        ready  function() or None: called once, when the agent is READY for the first time
        """
        try:
            gc.collect()
            gc.threshold(gc.mem_free() // 3)    # sooner than when all is full: what lives then lies closer together
            self.agent.start(self.now_ms())
            if "calls.journal" in os.listdir(self.folder):
                from journal import recover
                recover(self.agent, self.folder, epoch_s(), self.console is not None)
                drop()
            if self.console:
                self.console.greet()
            self.settle()
            while self.code is None:
                if ready and self.agent.is_ready:
                    ready()
                    ready = None
                try:
                    self.step()
                except KeyboardInterrupt:
                    self.interrupt()
                    self.settle()
                except MemoryError:     # nothing is left to get over it with
                    raise
                except Exception as e:
                    self.stumbled(e)
        except KeyboardInterrupt:       # another one at once
            self.code = 130
        finally:
            self.handlers.close()
        return self.code

    def stumbled(self, error):
        """What a step raised is an ERROR of the agent, which is got over (CKP 0.2.0, section 8), but not again and again at once."""
        if self.agent.lifecycle.state in ("INIT", "ERROR", "STOPPED"):
            raise error
        self.agent.lifecycle.fail(error, self.now_ms())
        self.settle()

    def failed(self, error, pause_ms):
        """Switch everything off, and say it."""
        self.handlers.close()
        sys.stderr.write("clawlite: ERROR: %s%s; %s\n" % (error.message, " - " + error.hint if error.hint else "",
                         "stopped: one failure too many" if pause_ms is None else "trying again in %d s" % (pause_ms // 1000)))

    def interrupt(self):
        """Ctrl-C: end the turn; with none under way, leave."""
        if not self.console or not self.console.interrupt(self.now_ms()):
            self.code = 130

    def step(self):
        wait = -1
        for at in (self.agent.deadline(), self.session.deadline() if self.session else None, self.handlers.deadline()):
            if at is not None and (wait < 0 or at - self._now < wait):
                wait = at - self._now if at > self._now else 0
        if self.at_end and not self.net:
            if wait > 0:
                time.sleep_ms(wait)
        else:
            for polled in self.poll.poll(wait):
                if polled[0] is self.input:
                    self.take(self.read(), False)
                else:
                    self.net.ready(polled[0])
        if self.at_end:
            self.end_of_input()
        now = self.now_ms()
        self.agent.tick(now)
        if self.session:
            self.session.tick(now)
        self.settle()

    def read(self) -> bytes:
        """Return what has come, at most to the end of a line; b"" at the end of input.

        In one piece: byte by byte through the framer, a line of 340 bytes made 99 KB of garbage.
        """
        data = bytearray()
        byte = self.input.read(1)
        while byte:
            if byte == b"\r" and self.console:  # the Enter key of most terminals; a line feed after it adds nothing
                data.extend(b"\n")
            elif byte != b"\n" or not self._return:
                data.extend(byte)
            self._return = byte == b"\r" and self.console is not None
            if byte in b"\r\n" or len(data) == _PIECE or not self.typed.poll(0):
                return bytes(data)
            byte = self.input.read(1)
        self.at_end = True
        self.poll.unregister(self.input)
        return bytes(data)

    def take(self, data: bytes, early: bool):
        """Hand in what has come; early: before a question was put, which it does not answer then."""
        self.framer.feed(data)
        if self.at_end:                 # it ends an open line
            self.framer.finish()
        event = self.framer.next_event()
        while event:
            self.event(event[0], event[1], early)
            if not early:
                self.settle()
                drop()
            event = self.framer.next_event()

    def end_of_input(self):
        if self.console:
            self.console.close(self.now_ms())
        elif self.agent.is_ready:
            self.agent.stop(_LEAVE_MS, self.stopped, self.now_ms())
        elif self.agent.lifecycle.state == "ERROR":
            self.code = 1
        elif self.agent.lifecycle.state == "STOPPED":
            self.code = 0

    def event(self, kind: int, data: bytes, early: bool):
        now = self.now_ms()
        if kind == TOO_LONG:
            (self.console or self.session).too_long(int(str(data, "utf-8")), MAX_LINE)
        elif kind == TEXT:
            from clawlite.core.text import decode_utf8
            self._prompt = b""          # the person's Enter has ended the prompt's line
            try:
                self.console.line(decode_utf8(data), now, early)
            except ValueError:
                self.console.not_text()
            except MemoryError:
                self.console.too_long(len(data), MAX_LINE)
        else:
            try:
                self.begin_session()
            except MemoryError:
                self.console.too_long(len(data), MAX_LINE)
                return
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
            ended = self.handlers.poll(self.now_ms())
            self.hand_in(ended)
            if not ended and not self.agent.effects:
                return

    def hand_in(self, ended: list):
        """Hand in outcomes of handlers; Ctrl-C in one of them ends the turn first, or it would go on."""
        if self.handlers.interrupted:
            self.handlers.interrupted = False
            self.interrupt()
        for task, outcome in ended:
            self.agent.done(task, outcome, self.now_ms())

    def carry_out(self, effect: tuple):
        kind = effect[0]
        if kind == E.RUN:
            outcome = self.handlers.start(effect[1], effect[2], effect[3], effect[4], self.now_ms())
            if outcome is not None:
                self.hand_in([(effect[1], outcome)])
        elif kind == E.SEND:
            prompt = self._prompt
            self.write((b"\n" if prompt else b"") + self.framer.send(dumps(effect[1]).encode()), prompt)
        elif kind == E.LOG:
            if self.log:
                self.keep(effect[1])
        elif kind == E.TELL and not self.console:
            if self.log:
                self.keep({"event": "notice", "text": effect[1]})
        elif kind == E.SAY or kind == E.TELL:
            self.write((b"\n" if self._open else b"") + self.printable(effect[1].encode()) + b"\n", b"")
            self._open = False
        elif kind == E.WRITE:
            self.write(self.printable(effect[1].encode()), b"")
            self._open = not effect[1].endswith("\n")
        elif kind == E.PROMPT:
            self.ask_anew()
            self.write(b"", effect[1].encode())
        elif kind == E.RESUME:
            self.handlers.resume(effect[1], effect[2], self.now_ms())
        elif kind == E.CANCEL:
            self.handlers.cancel(effect[1])
            if self.net:
                self.net.close(effect[1])
        elif kind == E.RESOLVE:         # the file systems of boards have no links
            self.agent.done(effect[1], (True, effect[2]), self.now_ms())
        elif kind == E.STORE:
            self.agent.done(effect[1], (True, self.agent.meter.add(effect[2])), self.now_ms())
        elif kind == E.KEEP:
            from journal import keep
            self.agent.done(effect[1], keep(self.folder, effect[2], effect[3], effect[4], epoch_s()), self.now_ms())
        elif kind == E.EXIT:
            self.code = effect[1]
        else:
            self.net.carry_out(effect)

    def kept(self, key=None):
        """Return the bounds and what is on record, or what is on record of *key* (``recall.Recall``)."""
        from journal import kept
        return kept(self.folder, epoch_s(), key)

    def ask_anew(self):
        """Before a question is put to a person: what was typed before it waits its turn, and answers nothing."""
        asking = self.agent.waiting[0] if self.agent.waiting else None
        if self.terminal and asking is not self._asked:
            self._asked = asking
            while asking and not self.at_end and self.typed.poll(0):
                self.take(self.read(), True)

    def keep(self, event: dict):
        from clawlite.core.clock import iso8601
        epoch = epoch_s()
        event["timestamp"] = "unset" if epoch is None else iso8601(epoch)
        if not self.log.write(event):
            self.agent.lifecycle.fail(self.log.problem(), self.now_ms())

    def write(self, data: bytes, prompt: bytes):
        """Write *data*, then the prompt, which stands there until something else is written."""
        self.output.write(data + prompt)
        self._prompt = prompt
        if hasattr(self.output, "flush"):
            self.output.flush()


def is_terminal() -> bool:
    """Return whether a person may type: always on a board; on the unix port unless stdin is a pipe or a file."""
    try:
        return os.stat("/proc/self/fd/0")[0] & 0xf000 == 0x2000        # S_IFCHR
    except OSError:
        return True


def epoch_s():
    """Return seconds since 1970, or None while nobody has set the clock."""
    now = time.time() + (_EPOCH_2000 if time.gmtime(0)[0] == 2000 else 0)
    return now if now > 1700000000 else None
