"""The shell around the core on Linux: one loop over stdio, signals and the clock.

It carries out effects (core/base/effect.py) and decides nothing.  Ctrl-C ends the turn, and a
second one the program.  SIGTERM, SIGHUP and the end of input end the program in order: an
operator's calls may take another ``LEAVE_MS``, and each is answered; turns that channels and tasks
have begun may take ``DRAIN_MS``, and no more begin.  However the program ends, every running
handler is closed (pump off, valve shut)."""

import gc
import time

from clawlite.core.base import effect as E
from clawlite.core.base.clock import iso8601
from clawlite.core.base.text import decode_utf8
from clawlite.core.line.frame import TEXT, TOO_LONG
from clawlite.linux.files import workspace
from clawlite.linux.io import signals
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.io.package_check import TEXT as REPLACED
from clawlite.linux.io.stdio import MAX_LINE, now_ms
from clawlite.linux.runtime.agent_parts import AgentParts

INTERRUPT = 2  # the number of SIGINT on every Linux
# time for calls and output to end when the program leaves
LEAVE_MS = 2000
# time for turns of channels and tasks, and for their answers, to end after a signal.  systemd waits
# 90 s, docker stop 10 s, and swarm up 5 s before they kill
DRAIN_MS = 4000
# reads of an operator's line after a signal, at most, for the input that came before it
_LAST_READS = 64

# what people type who want to leave; it goes to the agent all the same
LEAVING = ("quit", "exit", "q", ":q", "bye", "logout")


class Shell(AgentParts):
    """The loop over the parts of one agent.

    image     ``image.Image``, its abilities not yet compared with this machine's
    folder    where the image lies, with tools.py beside it
    operator  True: every line is a record (``serve``); False: a console with records on the same
              line
    wake      int, a descriptor that is readable when a signal has come (signals.catch)
    line      (wire, framer) instead of stdio, or None.  It is the line of an earlier session
              (bootstrap_session.py), or that of an agent that shares its process
              (swarm_commands/in_process.py)
    session   function(agent, loads, answer) -> a session that is used instead of an operator's
    answers   as of ``Console``, for ``clawlite ask``, which does one turn; or None
    memory    ``SharedMemory`` when the agents of a swarm share one process, or None
    leave     function() that ends everything when a maker's code hangs; None: ``leave``
    package   ``package_check.Watch``, where the package may be replaced meanwhile, or None
    adopts    function(manifest, is_free), as ``Setup.adopt``; None: the image's agent stays
    outlasts_input  True: clients come by another way than stdin
    Raises ``ImageError`` when this machine lacks an ability that the image needs, or when its
    tools.py or pins are not as declared."""

    _is_replaced = False

    def __init__(
        self,
        image,
        folder: str,
        operator: bool,
        wake: int,
        line=None,
        session=None,
        answers=None,
        memory=None,
        leave=None,
        package=None,
        outlasts_input: bool = False,
        adopts=None,
    ):
        super().__init__(image, folder, operator, wake, line, session, answers, memory, adopts)
        self._package, self._outlasts_input = package, outlasts_input
        self._carry = self._table()
        self._guard = signals.interruptible(leave or self.leave)
        self.code = None  # the exit code, once it is known
        self._interrupts = 0
        self.ending = 0  # the exit code that a signal asked for
        # after a signal: when a drain that an operator began must be over
        self._leave_ms = None
        self._second, self._stamp = 0, ""
        self._told: list = []  # lines of operators with something to send
        if not operator:
            self.startup.start()  # at a console, a person sees at once what fails, and can fix it

    def asks(self, task=None) -> bool:
        """Return whether a person can be asked for more than yes or no during the call *task*.

        task  number; None: return whether that is possible during any call
        """
        at_console = self.console is not None and self.terminal and not self.wire.at_end
        others = (self.channels, self.session)
        return at_console or any(one is not None and one.can_ask(task) for one in others)

    def watches(self, task: int) -> bool:
        """Return whether the progress of the call *task* is shown to somebody."""
        return self.session.watches if self.people is None else self.terminal

    def tell(self, task: int, progress):
        """Show the progress of the call *task*: (progress, total or None, message), None at its
        end.
        """
        if self.guard and progress and progress[-1]:  # a server may have been given secrets
            progress = (*progress[:-1], self.guard.text(progress[-1]))
        if self.people is None:
            self.session.tell(task, progress)
        elif self.terminal:
            self.people.tell_progress(task, progress)

    def warn(self, text: str):
        """Write to the log what whoever looks after this agent should know."""
        self.log_event((E.LOG, {"event": "notice", "text": text}))

    # -- the loop

    def run(self, first: bytes = None) -> int:
        """Serve until the end; return the exit code.  *first*: a record that has come already."""
        try:
            self.start()
            self.startup.run_until_exit(first)
        finally:
            self.leave()
        return self.code

    def leave(self):
        """End everything that is running, and write all output that waits."""
        self.handlers.close()
        for part in reversed(self.parts):
            part.close()
        self.screen.close()
        self.wire.flush(LEAVE_MS)
        self.log.close()
        if self.telemetry:
            self.telemetry.close()

    def start(self):
        """Go to READY.  Then freeze all objects, so that the garbage collector skips them."""
        self.agent.start(now_ms())
        self.persistence.start(self.console is not None)
        if self.console:
            self.console.greet()
        self.settle()
        self.join()
        gc.freeze()
        gc.enable()

    def edit_lines(self, editor):
        """From now on *editor* (terminal.py) is both the screen and the framer."""
        self.screen = self.framer = editor

    def end(self, code: int):
        """Leave the loop with the exit *code*."""
        self.code = code

    def step(self):
        """Wait for the next event, and handle it."""
        self.startup.flush()  # records are written before results are sent
        told, self._told = self._told, []
        for line in told:
            line.flush()
        if self.ending and not self.operator and self.code is None and not self._drains():
            self.code = self.ending
        due = self.deadline()
        data = self.wire.wait(
            0 if self.agent.effects or told else None if due is None else max(0, due - now_ms())
        )
        self.screen.adapt()
        if self._package and not self.ending and self._package.is_replaced(now_ms()):
            self._end_replaced()
        if data:
            self._interrupts = 0
            if self.operator:
                self.fast_path.feed(data)
            else:
                self.framer.feed(data)
                self.take()
        for part in list(self.parts):  # one that is over leaves
            part.poll()
        self.check_interrupt()
        if signals.end_signal() and not self.ending:
            self.end_by(signals.end_signal())
        if self.ending and self.operator and not self.wire.at_end:
            self._take_last()
        if due is not None:
            now = now_ms()
            if now >= due:
                self.agent.tick(now)
                self.session.tick(now)
        # after the tick, which may end an agent that stops: then nothing else is due
        if self.wire.broken:
            self.code = self.ending or 1
        elif self.wire.at_end and self.code is None:
            self.end_of_input()
        self.settle()

    def deadline(self):
        """Return the monotonic time at which the loop has something to do, or None."""
        agent, first = self.agent, self.session.deadline()
        for at in (
            agent.deadline() if agent.tasks or not agent.is_ready else None,
            self.handlers.deadline(),
            self._leave_ms,
            *[part.deadline() for part in self.parts],
        ):
            if at is not None and (first is None or at < first):
                first = at
        return first

    def take(self, early: bool = False):
        """Handle the lines that have come, one by one, each with all of its effects.

        early  bool, they were typed before a question was shown, so that none of them answers it
        """
        while self.code is None:
            event = self.framer.next_event()
            if event is None:
                break
            kind, data = event
            if kind == TOO_LONG:
                (self.console or self.session).too_long(int(str(data, "utf-8")), MAX_LINE)
            elif kind == TEXT:
                self.text(data, early)
            else:
                self.session.record(data, now_ms())
            if not early and (self.people or self.agent.effects):
                self.settle()
        if self.screen.at_end:
            self.wire.end()

    def text(self, data: bytes, early: bool):
        try:
            text = decode_utf8(data)
        except ValueError:
            self.console.not_text()
            return
        self.screen.end_line()
        if self.terminal and text.strip().lower() in LEAVING and not self.agent.waiting:
            self.agent.effects.append((E.SAY, "To leave: /quit, or Ctrl-D."))
        self.console.line(text, now_ms(), early)

    def end_of_input(self):
        if self._outlasts_input and not self.ending:
            return  # its clients do not use stdin: SIGTERM ends it
        self.framer.finish()  # the last line may have no line feed
        self.take()
        if self.console:
            # else its channels and its swarm go on: SIGTERM ends it
            if self.terminal or not any(part.lasts for part in self.parts):
                self.console.close(now_ms())
        elif self.agent.is_ready:
            self.agent.stop(DRAIN_MS if self._is_busy() else LEAVE_MS, self._on_stop, now_ms())
        elif self.agent.lifecycle.state == "ERROR":
            self.code = self.ending or 1
        elif self.agent.lifecycle.state == "STOPPED":
            self.code = self.ending
        elif self._leave_ms is not None and now_ms() >= self._leave_ms:
            self.agent.lifecycle.fail(None, now_ms())  # the time for a drain is over

    def _on_stop(self, drained: bool, _):
        self.code = self.ending

    def end_by(self, number: int):
        """End because signal *number* came: an operator's line ends as at the end of its input,
        a console as soon as channels and tasks have nothing under way.
        """
        self._end(128 + number)

    def _end_replaced(self):
        """End because the package was replaced: what is under way may end, nothing else begins."""
        self.warn(REPLACED)
        self._is_replaced = True
        self._end(1)

    def _end(self, code: int):
        self.ending = code
        for part in self.parts:
            part.drain()
        is_busy = self._is_replaced or self._is_busy()
        self._leave_ms = now_ms() + (DRAIN_MS if is_busy else LEAVE_MS)

    def _is_busy(self) -> bool:
        """Return whether a turn that a channel or a task has begun goes on, or an answer is being
        sent.
        """
        return any(part.is_busy() for part in self.parts)

    def _drains(self) -> bool:
        """Return whether the program still waits, after a signal, for what is under way."""
        is_turn = self._is_replaced and self.console and self.console.turn is not None
        return now_ms() < self._leave_ms and (is_turn or self._is_busy())

    def _take_last(self):
        """Read the requests that an operator sent before a signal, so that each is answered.  Calls
        among them are refused.
        """
        for _ in range(_LAST_READS):
            data = self.wire.ready()
            if not data or self.code is not None:
                break
            self.fast_path.feed(data)
        self.wire.end()

    def interrupt(self):
        """Handle Ctrl-C.  At a console, end the turn; without a turn, say how to leave.  On an
        operator's line, drain.  A second Ctrl-C ends the program.
        """
        self._interrupts += 1
        self.screen.interrupt()
        if self._interrupts > 1:
            self.code = 130
        elif self.operator:
            self.end_by(INTERRUPT)
        elif self.console.interrupt(now_ms()):
            self._interrupts = 0
        else:
            self.screen.remind(b"Press Ctrl-C again to leave, or Ctrl-D.\n")

    def check_interrupt(self):
        """Handle a Ctrl-C that came while a maker's code ran.  This is done before the outcome of
        that code is used, or else the turn would go on.
        """
        if signals.state["interrupts"] and signals.interrupts():
            self.interrupt()

    # -- effects

    def settle(self):
        """Carry out effects, and step handlers, until nothing is left to do now."""
        effects = self.agent.effects
        while effects or self.handlers.is_busy and self.step_handlers():
            while effects:
                effect = effects.pop(0)
                if self.telemetry:
                    self.telemetry.observe(effect)
                self._carry.get(effect[E.KIND], self._reach)(effect)
        for part in self.parts:
            part.update()

    def step_handlers(self) -> bool:
        """Step the handlers that are due; return whether there are results or effects."""
        with self._guard:
            ended = self.handlers.poll(now_ms())
        self.check_interrupt()
        for task, outcome in ended:
            self.agent.complete(task, outcome, now_ms())
        return bool(ended or self.agent.effects)

    def _table(self) -> dict:
        """Return {kind of effect: function(effect)}.  ``Remote`` carries out all other kinds."""
        table = self.people.table() if self.people else {E.TELL: self._note}
        return {
            **table,
            E.SEND: self.send,
            E.LOG: self.log_event,
            E.SEND_TO: self._send_to,
            E.RECORD: self._record,
            E.RUN: self._run,
            E.CANCEL: self._cancel,
            E.RESOLVE: self._resolve,
            E.RESUME: lambda effect: self.handlers.resume(*effect[E.TASK :], now_ms()),
            E.STORE: self._store,
            E.KEEP: self.persistence.carry_out,
            E.REMEMBER: self.persistence.remember,
            E.EXIT: self._exit,
        }

    def _reach(self, effect: tuple):
        self.remote.carry_out(effect)

    def log_event(self, effect: tuple):
        event = effect[E.EVENT]
        second = int(time.time())
        if second != self._second:
            self._second, self._stamp = second, iso8601(second)
        event["timestamp"] = self._stamp
        if self.audit:
            self.audit.write(event)
            event.pop("output", None)  # only for the audit
        self.log.write(event)
        if self.people and event["event"] == "tool.print":
            self.people.show_print(event)
        if self.log_watch:
            self.log_watch(event)

    def _note(self, effect: tuple):
        """Write a notice for a person to the log, because an operator has the line."""
        self.warn(effect[E.TEXT])

    def _cancel(self, effect: tuple):
        self.handlers.cancel(effect[E.TASK])
        if self.remote:
            self.remote.carry_out(effect)

    def _resolve(self, effect: tuple):
        _, task, path, opens = effect
        real = workspace.resolve(path, self.workspace)
        if opens:
            self.decided.note_path(task, path, real)
        self.agent.complete(task, (True, real), now_ms())

    def _store(self, effect: tuple):
        _, task, entries = effect
        self.agent.complete(task, (True, self.get_meter().add(entries)), now_ms())

    def _exit(self, effect: tuple):
        _, self.code = effect

    def _run(self, effect: tuple):
        outcome, now = self.fast_path.start(*effect[1:])
        if outcome is not None:
            self.agent.complete(effect[E.TASK], outcome, now)

    def _record(self, effect: tuple):
        _, task, tool, arguments = effect
        if self.startup.may_begin(task, tool, arguments):
            self.agent.complete(task, (True, None), now_ms())

    def send(self, effect: tuple):
        """Send a message to the operator on the shell's line."""
        data = self.framer.send(self._encode(effect[E.MESSAGE]))
        if self.console:
            self.screen.record(data)
        else:
            self.wire.write(data)

    def _send_to(self, effect: tuple):
        effect[E.LINE].write(self._encode(effect[E.MESSAGE]))
        self._told.append(effect[E.LINE])

    def _encode(self, message) -> bytes:
        if self.audit:
            message = self.startup.flush_answer(message)
        try:
            data = dumps(message).encode()
        # a handler returned a value that JSON does not have; the caller must still get an answer
        except ValueError as e:
            message = {
                "jsonrpc": "2.0",
                "id": message.get("id"),
                "error": {"code": -32603, "message": "no JSON: %s" % e},
            }
            data = dumps(message).encode()
        return data
