"""The shell around the core on MicroPython: one loop over stdin, stdout and the clock
(select.poll).

It performs effects (clawlite/core/base/effect.py) and decides nothing.  The counterpart on Linux is
clawlite/linux/runtime/shell.py.  A part that the image does not need is not loaded: the console for
an operator's line, the operator's session for a person's, pins, the log.  Nor is the reliable line
(reliable.py), before a host sends a hello."""

import gc
import os
import sys
import time

from clawlite.core.base import effect as E
from clawlite.core.line.frame import TEXT, TOO_LONG
from clawlite.core.base.text import decode_utf8
from jsontext import loads
from unload import drop
from oom_unwind import end_round, unwind
from stdio import MAX_LINE

# positions in RUN, RESUME and RESOLVE, STORE, KEEP and REMEMBER; in an event of the line
_TOOL, _ARGUMENTS, _DUE_MS = 2, 3, 4
_OUTCOME = _PATH = _ENTRIES = 2
_KIND, _KEY, _PAYLOAD = 2, 3, 4
_VERB, _STORE, _PART, _DETAILS = 2, 3, 4, 5
_EVENT, _DATA = 0, 1
_CODE = 1  # of EXIT

_LEAVE_MS = 2000
# the longest wait of the loop, 3 days: two values of ticks_ms more than 6.2 days apart cannot be
# compared
_LONGEST_MS = 1 << 28
_MOST_SHORT = 4  # rounds of the loop in a row that ran out of memory
_MOST_FAILURES = 8  # rounds in a row that each raised a different error


class Device:
    """One agent on this board's console.

    image      ``image.Image``, whose abilities have been compared with this board's
    maker      {name: function} of tools.py
    folder     where the log goes
    operator   True: every line is a record (a program is at the other end)
    session    None until a record comes;  guarding: scans texts (guarding.py), or None
    net        reaches providers: net.Net, or uplink.Uplink, which is ``uplink``, too
    listener   hears what a gateway says by itself: ``swarmstop.SwarmStop``,
               ``swarmmember.SwarmMember`` or ``relayed.Relayed``, or None
    rules      ``boardrules.BoardRules``, or None
    beside     tuple of parts beside the loop: ``tick(now_ms)``, ``deadline()``
    before     list of parts that see an effect first: ``take(effect)`` returns whether it is done
    watchdog_ms  set by boot/bootwindow.py: how long the loop may stand still
    short      how many rounds of the loop in a row ran out of memory
    doing      the effect that is being performed, or None;  heard: the kind of the line that is
               being processed, or None
    _asked     the approval whose question was asked last;  _open: the last line is a piece of a
               provider's answer, without its end
    """

    # as of core/agent/agent_setup.py
    guard = worlds = workspace = stop = confirm = ways = emit = run_tool = on_start = prepare = None
    meter = teach = None
    dialects = repetition = memories = lasting = adopt = channels = hears_done = None
    keep_bytes = 0
    remembered = 64
    first_question = 1
    make_local = None
    is_behind = is_recorded = False
    conditions = ()
    pins = log = console = guarding = session = net = uplink = listener = watchdog = wifi = code = (
        doing
    ) = heard = rules = _asked = None
    beside = ()
    watchdog_ms = short = 0
    _open = False

    def __init__(self, image, maker: dict, folder: str, operator: bool):
        self.image = image
        if operator:  # the largest module comes first, while there is room
            from clawlite.core.protocol.session import Session as first
        else:
            from clawlite.core.protocol.console import Console as first
        # with a provider on the network, it is a stage of a turn (unload.py)
        wanted = image.requires
        if "tools" in wanted and "http" not in wanted and "https" not in wanted:
            from clawlite.core.turns.tools import call

            first = call  # noqa: F841
        from assemble import assemble

        assemble(self, image, maker, folder, operator)
        if operator:
            self.begin_session()

    def begin_session(self):
        """Make the operator's session."""
        self.session = self.new_session()
        epoch = self.epoch_s()
        if epoch is not None:
            self.session.set_clock(epoch, self.now_ms())

    def new_session(self):
        """Return a new session; a member of a swarm has its own kind (swarmmember.py)."""
        session = self.listener and self.listener.new_session()
        if not session and self.rules:
            session = self.rules.new_session()
        if session:
            return session
        from clawlite.core.protocol.session import Session

        return Session(self.agent, loads)

    def place_of(self, e) -> str:
        """Return where in tools.py *e* was raised, " (tools.py:12)"; "" where that is not known."""
        from io import StringIO

        try:
            trace = StringIO()
            sys.print_exception(e, trace)
            trace.seek(0)
            said = trace.read().split('"tools.py", line ')
            return " (tools.py:%d)" % int(said[-1].split("\n", 1)[0].split(",", 1)[0])
        except (MemoryError, ValueError):
            return ""

    def run(self, ready) -> int:
        """Serve until the end; return the exit code.  Every running handler is closed, however this
        ends.

        ready  function() or None: called once, when the agent is READY for the first time
        """
        try:
            from startup import start

            start(self)
            del start
            drop()
            # sooner than when memory is full: then the objects in use lie closer together
            gc.threshold(gc.mem_free() // 3)
            error, failures = None, 0
            while self.code is None:
                if ready and self.agent.is_ready:
                    ready()
                    ready = None
                try:
                    if self.short:
                        # not further down the stack, where references to the dropped objects
                        # remain, also after an unwinding that itself ran out of memory
                        gc.collect()
                        unwind(self)
                        gc.collect()
                    if self.short or error:
                        end_round(self, error)
                    error = None
                    # called from here: a turn needs most of a board's stack, so no other call may
                    # stand between this loop and it
                    self.step()
                    self.short = failures = 0
                except MemoryError:
                    self.short += 1
                    error = None
                    if self.short > _MOST_SHORT:  # too little memory to recover
                        raise
                except (Exception, KeyboardInterrupt) as e:
                    failures += 1
                    if e is error or failures > _MOST_FAILURES:  # recovery fails
                        raise
                    error = e
        except KeyboardInterrupt:  # a second one, during recovery
            self.code = 130
        finally:
            self.safe()
            if self.stdio.line:
                self.stdio.line.leave()
        return self.code

    def recover(self, error):
        """Make *error*, which a step raised, an ERROR of the agent, which recovers from it (CKP
        0.2.0, section 8).  Raise it when the agent cannot go on.
        """
        if self.agent.lifecycle.state in ("INIT", "ERROR", "STOPPED"):
            raise error
        self.agent.lifecycle.fail(error, self.now_ms())
        self.settle()

    def on_failure(self, error, pause_ms):
        """Switch all outputs off, and report *error*."""
        self.safe()
        from clawlite.core.base.printable import escape_ends

        sys.stderr.write(
            "clawlite: ERROR: %s%s; %s\n"
            % (
                escape_ends(error.message),
                " - " + escape_ends(error.hint) if error.hint else "",
                "stopped: too many failures"
                if pause_ms is None
                else "trying again in %d s" % (pause_ms // 1000),
            )
        )

    def safe(self):
        """End every handler, and switch every output off: before that, and again after it, because
        a handler may switch one on when it ends.
        """
        if self.pins:
            self.pins.off()
        self.handlers.close()
        if self.pins:
            self.pins.off()

    def press(self):
        """Ctrl-C: end the turn; without a turn, leave."""
        if not self.console or not self.console.interrupt(self.now_ms()):
            self.code = 130

    def step(self):
        """Handle what has arrived, do what is due, and wait for the next event."""
        if self.stdio.line:
            self.check_line(self.stdio.line)
            self.stdio.line.tick()
            self.stdio.feed(b"")
        event = self.stdio.next_event()
        while event:
            self.heard = event[_EVENT]
            if event[_EVENT] == TEXT:
                self.person_typed(event[_DATA], self.now_ms(), False)
            else:
                self.event(event[_EVENT], event[_DATA], self.now_ms())
            self.heard = None
            self.settle()
            drop()
            event = self.stdio.next_event()
        if self.stdio.line:
            self.check_line(self.stdio.line)
        if self.stdio.at_end:
            self.end_of_input()
        now = self.now_ms()
        self.agent.tick(now)
        if self.session:
            self.session.tick(now)
        if self.net:
            self.net.tick()
        for part in self.beside:
            part.tick(now)
        self.settle()
        self.stdio.pump()
        if self.code is not None:
            return
        wait = -1
        for at in [
            self.agent.deadline(),
            self.session.deadline() if self.session else None,
            self.handlers.deadline(),
            self.stdio.deadline(),
            self.net.deadline() if self.net else None,
        ] + [part.deadline() for part in self.beside]:
            if at is not None and (wait < 0 or at - self.clock.now < wait):
                wait = at - self.clock.now if at > self.clock.now else 0
        if self.watchdog:
            self.watchdog.feed()
            if wait < 0 or wait > self.watchdog_ms // 3:
                wait = self.watchdog_ms // 3
        if self.stdio.at_end and not self.net:
            if wait > 0:
                time.sleep_ms(wait)
        else:
            for polled in self.stdio.poll.poll(wait if 0 <= wait < _LONGEST_MS else _LONGEST_MS):
                if polled[0] is self.stdio.input:
                    self.stdio.feed(self.stdio.read())
                else:
                    self.net.ready(polled[0])

    def take_early(self, data: bytes):
        """Handle input that came before a question was asked, and so does not answer it."""
        self.stdio.feed(data)
        event = self.stdio.next_event()
        while event:
            if event[_EVENT] == TEXT:
                self.person_typed(event[_DATA], self.now_ms(), True)
            else:
                self.event(event[_EVENT], event[_DATA], self.now_ms())
            event = self.stdio.next_event()
        if self.stdio.line:
            self.check_line(self.stdio.line)

    def check_line(self, line):
        """Act on the state of the reliable line: a new host, three Ctrl-C in a row, or a single
        one.
        """
        if line.is_new:
            line.is_new = False
            self.clock.ask(self.stdio, True)
        if line.left:
            self.code = 130
        elif line.pressed:
            line.pressed = False  # a single one, which noise may have forged
            if self.console:
                self.console.interrupt(self.now_ms())

    def end_of_input(self):
        if self.console:
            self.console.close(self.now_ms())
        elif self.agent.is_ready:
            self.agent.stop(_LEAVE_MS, self.on_stop, self.now_ms())
        elif self.agent.lifecycle.state == "ERROR":
            self.code = 1
        elif self.agent.lifecycle.state == "STOPPED":
            self.code = 0

    def event(self, kind: int, data: bytes, now: int):
        """Handle a record, or a line that is too long."""
        if kind == TOO_LONG:
            self.too_long(data)
        else:
            if b'"claw.clock"' in data:
                from settime import take

                if take(self, data):
                    return
            if self.uplink and self.uplink.record(data):
                self.clock.ask(self.stdio)
                return
            if self.session is None:
                self.begin_session()
            self.session.record(data, now)

    def too_long(self, data: bytes):
        """Refuse a line; *data*: its length in ASCII digits."""
        if self.uplink and self.stdio.line and self.uplink.on_loss(data):
            return  # the waiting tasks report it
        for by in (self.session, None if self.session and self.stdio.line else self.console):
            if by:  # it may have been a record or a person's line
                by.too_long(int(str(data, "utf-8")), MAX_LINE)

    def person_typed(self, data: bytes, now: int, early: bool):
        """Handle a person's line."""
        self.stdio.prompt = b""  # the person's Enter has ended the prompt's line
        if self.prepare and data[:1] != b"/":
            self.prepare()
        if self.rules and data[:1] == b"/":
            self.rules.load_commands()  # not deeper, where the stack would not be enough
        try:
            self.console.line(decode_utf8(data), now, early)
        except ValueError:
            self.console.not_text()

    def on_stop(self, drained: bool, now_ms: int):
        self.code = 0

    def settle(self):
        """Perform effects and step handlers, until nothing is left to do now."""
        agent = self.agent
        while True:
            while True:
                # driven from here, where little stack is in use: a turn needs most of it
                while agent.later:
                    task, value, error = agent.later.pop(0)
                    agent.drive(task, value, error, self.now_ms())
                    task = value = error = None
                effect = self.doing = agent.next_effect()
                if not effect:
                    break
                for part in self.before:
                    if part.take(effect):
                        break
                else:
                    self.carry_out(effect)
            ended = self.handlers.poll(self.now_ms())
            self.hand_in(ended)
            if not ended and not agent.effects and not agent.later:
                return

    def hand_in(self, ended: list):
        """Pass on outcomes of handlers.  A Ctrl-C in one of them ends the turn first; otherwise the
        turn would go on.

        When a handler failed, all outputs are switched off: nobody knows which ones it had switched
        on, and what would have come next."""
        if self.handlers.interrupted:
            self.handlers.interrupted = False
            self.press()
        for task, outcome in ended:
            if outcome[E.IS_OK] is False and self.pins:
                self.pins.off()
            self.agent.complete(task, outcome, self.now_ms())

    def carry_out(self, effect: tuple):
        kind = effect[E.KIND]
        if kind == E.RUN:
            outcome = self.handlers.start(
                effect[E.TASK], effect[_TOOL], effect[_ARGUMENTS], effect[_DUE_MS], self.now_ms()
            )
            if outcome is not None:
                self.hand_in([(effect[E.TASK], outcome)])
        elif kind == E.SEND:
            self.stdio.record(effect[E.MESSAGE])
        elif kind == E.LOG:
            if self.log:
                self.keep(effect[E.EVENT])
        elif kind <= E.PROMPT:
            if kind != E.VOID:  # what was shown stays
                self.show_person(kind, effect[E.TEXT])
        elif kind == E.CANCEL:
            if self.pins and self.handlers.is_busy:
                self.pins.off()
            self.handlers.cancel(effect[E.TASK])
            if self.net:
                self.net.close(effect[E.TASK])
        elif kind == E.RESOLVE:  # the file systems of boards have no links
            self.agent.complete(effect[E.TASK], (True, effect[_PATH]), self.now_ms())
        elif kind == E.STORE:
            if self.meter is None:
                self.prepare()
            self.agent.complete(
                effect[E.TASK], (True, self.meter.add(effect[_ENTRIES])), self.now_ms()
            )
        elif kind == E.OPEN or kind == E.CLOSE or kind == E.SECRET:
            if self.net:
                self.net.carry_out(effect)
        elif kind == E.EXIT:  # handled here, so that leaving needs no other module
            self.code = effect[_CODE]
        else:
            self.carry_out_more(effect)

    def carry_out_more(self, effect: tuple):
        """Perform the effects that few calls and turns need."""
        kind = effect[E.KIND]
        if kind == E.RECORD:  # the audit has written it (Auditing.take)
            self.agent.complete(effect[E.TASK], (True, None), self.now_ms())
        elif kind == E.KEEP:
            from call_journal import keep

            self.agent.complete(
                effect[E.TASK],
                keep(self.folder, effect[_KIND], effect[_KEY], effect[_PAYLOAD], self.epoch_s()),
                self.now_ms(),
            )
        elif kind == E.REMEMBER:
            self.agent.complete(
                effect[E.TASK],
                self.stores.run(effect[_VERB], effect[_STORE], effect[_PART], effect[_DETAILS]),
                self.now_ms(),
            )
        elif kind == E.RESUME:
            self.handlers.resume(effect[E.TASK], effect[_OUTCOME], self.now_ms())

    def show_person(self, kind: int, text: str):
        """Show *text* to the person, for an effect of *kind* SAY, TELL, WRITE or PROMPT.  Without a
        console, the text of a TELL goes to the log.
        """
        if self.guarding and kind != E.PROMPT:
            text = self.guarding.show_part(kind, text)
        if not text and kind == E.WRITE:
            return  # the guard holds the text until its line ends
        if kind == E.TELL and not self.console:
            if self.log:
                self.keep({"event": "notice", "text": text})
        elif kind == E.WRITE:
            self.stdio.write(self.printable(text.encode()), b"")
            self._open = not text.endswith("\n")
        elif kind == E.PROMPT:
            self.ask_anew()
            self.clock.ask(self.stdio)
            self.stdio.write(b"", text.encode())
        else:
            data = self.printable(text.encode())
            if kind == E.TELL:  # one line, whatever strangers wrote into it
                data = data.replace(b"\n", b"\\n")
            self.stdio.write((b"\n" if self._open else b"") + data + b"\n", b"")
            self._open = False

    def name_server(self):
        """Return (address, port) of the name server, or None while there is no radio."""
        return self.wifi.name_server() if self.wifi else None

    def kept(self, key=None):
        """Return the bounds and all records, or the record of *key* (the argument *kept* of
        ``Idempotency``).
        """
        # without a journal its code is not loaded
        if "calls.journal" not in os.listdir(self.folder):
            from clawlite.core.idempotency.idempotency import nothing

            return nothing(key)
        from call_journal import find

        return find(self.folder, self.epoch_s(), key)

    def ask_anew(self):
        """Before a new question to a person: handle the lines that were typed before it, which do
        not answer it.
        """
        asking = self.agent.waiting[0].approval if self.agent.waiting else None
        if self.terminal and asking is not self._asked:
            self._asked = asking
            while asking and self.stdio.has_more():
                self.take_early(self.stdio.read())

    def keep(self, event: dict):
        from clawlite.core.base.clock import iso8601

        epoch = self.epoch_s()
        event["timestamp"] = "unset" if epoch is None else iso8601(epoch)
        if not self.log.write(event):
            self.agent.lifecycle.fail(self.log.problem(), self.now_ms())
