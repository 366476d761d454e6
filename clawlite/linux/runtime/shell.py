"""The shell around the core on Linux: one loop over stdio, signals and the clock.

It carries out effects (core/base/effect.py) and decides nothing.  Ctrl-C ends the turn, and a
second one the program.  SIGTERM, SIGHUP and the end of input end the program in order: an
operator's calls may take another ``LEAVE_MS``, and each is answered; turns that channels and tasks
have begun may take ``DRAIN_MS``, and no more begin.  However the program ends, every running
handler is closed (pump off, valve shut)."""

import gc
import os
import time

from clawlite.core.agent.agent import Agent
from clawlite.core.agent.agent_setup import Setup
from clawlite.core.base import effect as E
from clawlite.core.base.clock import iso8601
from clawlite.core.base.text import decode_utf8
from clawlite.core.image.features import LINUX
from clawlite.core.image.image import (
    CHANNELS,
    GUARD,
    LOCAL,
    PROVIDERS,
    SERVICES,
    SWARM,
    TELEMETRY,
    WORLDS,
)
from clawlite.core.line.frame import TEXT, TOO_LONG
from clawlite.core.protocol.group_session import GroupSession
from clawlite.linux.files import workspace
from clawlite.linux.files.files import Log, state_folder
from clawlite.linux.hardware.handlers import running
from clawlite.linux.io import signals
from clawlite.linux.io.jsontext import dumps, loads, request
from clawlite.linux.io.logline import line as log_line
from clawlite.linux.io.replaced import TEXT as REPLACED
from clawlite.linux.io.stdio import MAX_LINE, now_ms, open_line
from clawlite.linux.maker.maker_run import place_of
from clawlite.linux.runtime.fast_path import FastPath
from clawlite.linux.runtime.persistence import Persistence
from clawlite.linux.runtime.startup import Startup
from clawlite.linux.tasks.task_group import TaskGroup
from clawlite.linux.terminal.screen import Screen

MAX_TASKS = 1024
INTERRUPT = 2  # the number of SIGINT on every Linux
# time for calls and output to end when the program leaves
LEAVE_MS = 2000
# time for turns of channels and tasks, and for their answers, to end after a signal.  systemd waits
# 90 s, docker stop 10 s, and swarm up 5 s before they kill
DRAIN_MS = 4000
# reads of an operator's line after a signal, at most, for the input that came before it
_LAST_READS = 64
_RULES = 27  # the section of core/rules/table.py


class Shell:
    """One agent on stdio.

    image     ``image.Image``, its abilities not yet compared with this machine's
    folder    where the image lies, with tools.py beside it
    operator  True: every line is a record (``serve``); False: a console with records on the same
              line
    wake      int, a descriptor that is readable when a signal has come (signals.catch)
    line      (wire, framer) instead of stdio, or None.  It is the line of an earlier session
              (bootstrap_session.py), or that of an agent that shares its process
              (swarm_commands/together.py)
    session   function(agent, loads, short) -> a session that is used instead of an operator's
    Raises ``ImageError`` when this machine lacks an ability that the image needs, or when its
    tools.py or pins are not as declared."""

    package = None  # ``replaced.Watch``, where the package may be replaced meanwhile
    _is_replaced = False

    def __init__(self, image, folder: str, operator: bool, wake: int, line=None, session=None):
        image.require(LINUX, "this machine")
        now = now_ms()
        functions = {}
        profile = _profile_of(image)
        self.stop_gate = None  # of the swarm, once it is joined
        setup = _setup_of(image, profile, self._stop if image.size_of(SWARM) else None)
        guard = setup.guard
        self.agent = Agent(setup, now, MAX_TASKS)
        self.handlers = running(self.agent, functions, lambda e: place_of(e, folder))
        self.agent.codecs = (loads, dumps)
        self.agent.adopt = _adopt
        self.decided = workspace.DecidedPaths(self.agent.tasks)
        self.fast_path = FastPath(self)
        watched = image.size_of(TELEMETRY) > 0
        # The fast path queues no effects.  Telemetry looks at effects, and a person who may press
        # Ctrl-C must see what begins, so both need the queue.
        if operator and not watched:
            self.agent.run, self.agent.emit = self.fast_path.start, self.fast_path.emit
        self.session = (session or GroupSession)(
            self.agent, request, self.fast_path if operator and not watched else None
        )
        self.session.set_clock(int(time.time()), now)
        self.operator = operator
        self.terminal = not operator and line is None and os.isatty(0)
        # stdout is only for the answer; notices go to stderr
        self.answer_only = False
        self.console = self.people = self.channels = None
        self.members = []  # of the swarm, and of tasks
        self.memory: object = None  # ``SharedMemory`` when the agents of a swarm share one process
        if not operator:
            from clawlite.core.protocol.console import Console
            from clawlite.linux.terminal.console_view import ConsoleView

            self.console = Console(self.agent, not self.terminal)
            self.people = ConsoleView(self)
        self.log = Log(
            image.agent.name, log_line if guard is None else lambda event: guard.text(dumps(event))
        )
        self.audit = None
        if guard is not None and guard.audit:
            from clawlite.linux.audit.audit import Audit

            self.audit = Audit(image, guard)
        self.persistence = Persistence(self.agent, now_ms, folder)
        self._carry = self._table()
        self.telemetry = None
        if watched:
            from clawlite.linux.telemetry.telemetry import telemetry_of

            self.telemetry = telemetry_of(self.agent, now_ms)
            self._carry = self.telemetry.tapped(self._carry, self._reached)
        self._guard = signals.interruptible(self.leave)
        self.wire, self.framer = line or open_line(operator, wake)
        self.screen = Screen(self.wire, self.terminal)
        self.code = None  # the exit code, once it is known
        self.outlasts_input = False  # True: clients come by another way than stdin
        self._interrupts = 0
        self.ending = 0  # the exit code that a signal asked for
        # after a signal: when a drain that an operator began must be over
        self._leave_ms = None
        self._second, self._stamp = 0, ""
        self.remote = self.notifier = None
        if image.size_of(PROVIDERS):
            self.agent.prepare = self.reach
        self.startup = Startup(self, folder, None if image.agent.isolation else functions)
        if profile is not None:
            self._isolate(profile)
        if not operator:
            self.startup.start()  # at a console, a person sees at once what fails, and can fix it

    def reach(self):
        """Load the modules for remote providers.  The first turn calls this, so that READY does not
        wait for it.
        """
        from clawlite.linux.runtime.providers import Remote

        self.remote = Remote(self.agent, signals.waker(), now_ms)
        if self.agent.image.size_of(SERVICES):
            from clawlite.linux.runtime.feeds import Feeds

            Feeds(self.agent, now_ms)
        if self.people:
            self.people.think()
        if self.telemetry:
            self.telemetry.watch(self.agent.meter)

    def _isolate(self, profile):
        """Load the dispatcher, which runs tools outside of this process."""
        from clawlite.linux.tools.dispatch import Dispatcher

        image = self.agent.image
        self.handlers = Dispatcher(
            self.handlers,
            self.agent.setup,
            profile,
            state_folder(image.agent.name),
            signals.waker(),
            now_ms,
            self.decided,
            self.startup.source,
            image.section(LOCAL),
            lambda event: self.log_event((E.LOG, event)),
        )
        self.wire.others = self.handlers.descriptors
        self.handlers.seam = self

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
        guard = self.agent.setup.guard
        if guard and progress and progress[-1]:  # it may contain a secret that a server was given
            progress = (*progress[:-1], guard.text(progress[-1]))
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
        if self.notifier:
            self.notifier.stopping()
        self.handlers.close()
        if self.channels:
            self.channels.close()
        for member in self.members:
            member.close()
        if self.remote:
            self.remote.close()
        if self.people and self.people.thinking:
            self.people.thinking.wipe()
        self.screen.close()
        if self.audit:  # the records are written before the answers
            self.audit.close()
        self.wire.flush(LEAVE_MS)
        self.log.close()
        self.persistence.close()
        if self.telemetry:
            self.telemetry.close()

    def start(self):
        """Go to READY.  Then freeze all objects, so that the garbage collector skips them."""
        self.agent.start(now_ms())
        self.persistence.start(self.console is not None)
        if self.console:
            self.console.greet()
        self.settle()
        if self.agent.image.size_of(CHANNELS):
            self.wire.flush(0)  # the message of READY goes out first
            from clawlite.linux.channels.channels import channels_of

            self.channels = channels_of(self.agent, self.console is not None)
        if not self.answer_only:  # ``clawlite ask`` does one turn, and ends
            self._join()
        if "NOTIFY_SOCKET" in os.environ:
            from clawlite.linux.runtime.systemd import Notifier

            self.notifier = Notifier(now_ms)
            self.notifier.ready()
        gc.freeze()
        gc.enable()

    def heed_stop(self):
        """Obey a stop of the swarm without joining it, for ``clawlite ask``."""
        if self.agent.image.size_of(SWARM):
            from clawlite.linux.swarm.member import no_shared_stores
            from clawlite.linux.swarm.stop_gate import Watcher

            self.members.append(Watcher(self.agent))
            self.stop_gate = self.members[-1].gate
            self.persistence.shared = no_shared_stores(self.agent)

    def _stop(self, tool):
        """See ``Setup.stop``."""
        return self.stop_gate(tool)

    def _join(self):
        """Join the swarm, and serve the tasks of an operator."""
        groups = []
        if self.agent.image.size_of(SWARM):
            from clawlite.linux.swarm.member import member_of, share_stores

            member = self.add_member(member_of(self.agent, self.memory))
            self.stop_gate = member.gate
            groups.append(member.methods)
            self.persistence.shared = share_stores(member, self.persistence.remember_here)
        if self.agent.image.size_of(_RULES):
            from clawlite.linux.rules.commands import commands_of
            from clawlite.linux.rules.rules import rules_of

            rules = self.add_member(rules_of(self.agent, self.handlers))
            groups.append(commands_of(rules))
        groups.append(TaskGroup(self.agent, self.add_member))
        # other kinds of sessions ignore these fields
        self.session.groups, self.session.turns = groups, groups[-1].has

    def add_member(self, member):
        """Let the loop serve *member*, which has fileno, poll, deadline and close; return it."""
        self.members.append(member)
        if member.fileno() >= 0:
            self.wire.wake_by(member.fileno())
        return member

    def step(self):
        """Wait for the next event, and handle it."""
        self.startup.flush()  # records are written before results are sent
        if self.ending and not self.operator and self.code is None and not self._drains():
            self.code = self.ending
        due = self.deadline()
        data = self.wire.wait(
            0 if self.agent.effects else None if due is None else max(0, due - now_ms())
        )
        self.screen.heed()
        if self.package and not self.ending and self.package.is_replaced(now_ms()):
            self._end_replaced()
        if data:
            self._interrupts = 0
            if self.operator:
                self.fast_path.feed(data)
            else:
                self.framer.feed(data)
                self.take()
        if self.remote:
            self.remote.poll()
        self.persistence.poll()
        if self.channels:
            self.channels.poll()
        for member in self.members:
            member.poll()
        if self.notifier:
            self.notifier.poll()
        self.heed()
        if signals.terminated() and not self.ending:
            self.end_by(signals.terminated())
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
            self.channels.deadline() if self.channels else None,
            *[member.deadline() for member in self.members],
            self._leave_ms,
            self.people.thinking.deadline() if self.people and self.people.thinking else None,
            self.notifier.deadline() if self.notifier else None,
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
            self.wire.at_end = True

    def text(self, data: bytes, early: bool):
        try:
            text = decode_utf8(data)
        except ValueError:
            self.console.not_text()
            return
        self.screen.entered()
        self.console.line(text, now_ms(), early)

    def end_of_input(self):
        if self.outlasts_input and not self.ending:
            return  # its clients do not use stdin: SIGTERM ends it
        self.framer.finish()  # the last line may have no line feed
        self.take()
        if self.console:
            # else its channels and its swarm go on: SIGTERM ends it
            if self.terminal or not (
                any(member.lasts for member in self.members)
                or self.channels
                and self.channels.lasts
            ):
                self.console.close(now_ms())
        elif self.agent.is_ready:
            self.agent.stop(DRAIN_MS if self._is_busy() else LEAVE_MS, self._stopped, now_ms())
        elif self.agent.lifecycle.state == "ERROR":
            self.code = self.ending or 1
        elif self.agent.lifecycle.state == "STOPPED":
            self.code = self.ending
        elif self._leave_ms is not None and now_ms() >= self._leave_ms:
            self.agent.lifecycle.fail(None, now_ms())  # the time for a drain is over

    def _stopped(self, drained: bool, _):
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
        for part in (self.channels, *self.members):
            if hasattr(part, "drain"):
                part.drain()
        is_busy = self._is_replaced or self._is_busy()
        self._leave_ms = now_ms() + (DRAIN_MS if is_busy else LEAVE_MS)

    def _is_busy(self) -> bool:
        """Return whether a turn that a channel or a task has begun goes on, or an answer is being
        sent.
        """
        parts = (self.channels, *self.members)
        return any(hasattr(part, "is_busy") and part.is_busy() for part in parts)

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
        self.wire.at_end = True

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

    def heed(self):
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
                self._carry.get(effect[E.KIND], self._reached)(effect)
        if self.people:
            self.people.settled()
        if self.channels:
            self.channels.announce_changes()

    def step_handlers(self) -> bool:
        """Step the handlers that are due; return whether there are results or effects."""
        with self._guard:
            ended = self.handlers.poll(now_ms())
        self.heed()
        for task, outcome in ended:
            self.agent.done(task, outcome, now_ms())
        return bool(ended or self.agent.effects)

    def _table(self) -> dict:
        """Return {kind of effect: function(effect)}.  ``Remote`` carries out all other kinds."""
        table = self.people.table() if self.people else {E.TELL: self._note}
        return {
            **table,
            E.SEND: self.send,
            E.LOG: self.log_event,
            E.RUN: self._run,
            E.CANCEL: self._cancel,
            E.RESOLVE: self._resolve,
            E.RESUME: lambda effect: self.handlers.resume(*effect[E.TASK :], now_ms()),
            E.STORE: self._store,
            E.KEEP: self.persistence.carry_out,
            E.REMEMBER: self.persistence.remember,
            E.EXIT: self._exit,
        }

    def _reached(self, effect: tuple):
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

    def _note(self, effect: tuple):
        """Write a notice for a person to the log, because an operator has the line."""
        self.warn(effect[E.TEXT])

    def _cancel(self, effect: tuple):
        self.handlers.cancel(effect[E.TASK])
        if self.remote:
            self.remote.carry_out(effect)

    def _resolve(self, effect: tuple):
        _, task, path, opens = effect
        real = workspace.resolve(path, self.agent.setup.workspace)
        if opens:
            self.decided.note_path(task, path, real)
        self.agent.done(task, (True, real), now_ms())

    def _store(self, effect: tuple):
        from clawlite.linux.runtime.meters import meter

        _, task, entries = effect
        self.agent.done(task, (True, meter(self.agent, now_ms).add(entries)), now_ms())

    def _exit(self, effect: tuple):
        _, self.code = effect

    def _run(self, effect: tuple):
        outcome, now = self.fast_path.start(*effect[1:])
        if outcome is not None:
            self.agent.done(effect[E.TASK], outcome, now)

    def send(self, effect: tuple):
        _, message = effect
        if self.audit:
            message = self.startup.flushed_answer(message)
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
        data = self.framer.send(data)
        if self.console:
            self.screen.record(data)
        else:
            self.wire.write(data)


def prepare(image, tool):
    """Prepare *tool* of *image* for quick calls, as an image that is opened for a shell does."""
    from clawlite.linux.runtime import fast_schema

    fast_schema.prepare(image, tool)


def _setup_of(image, profile, stop) -> Setup:
    guard = worlds = None
    if image.size_of(GUARD):
        from clawlite.linux.tools.scan_support import guard_of

        guard = guard_of(image)
    if image.size_of(WORLDS):
        from clawlite.linux.tools.world_model import WorldModels

        worlds = WorldModels(image)
    folder = workspace.folder(profile, state_folder(image.agent.name), image)
    return Setup(image, guard, worlds, folder, stop)


def _profile_of(image):
    """Return the ``profile.Profile`` of *image*, or None where no tool runs outside of this
    process.
    """
    outside = {"files", "mcp", "mediated", "services", "shell", "web"}
    if not image.agent.isolation and outside.isdisjoint(image.requires):
        return None
    from clawlite.core.image.profile import profile_of

    return profile_of(image)


def _adopt(manifest, is_free: bool) -> bool:
    """Check the *manifest* of a ``claw.initialize``.  Return False: the agent of an image stays.

    Raises ``ImageError``.  Source  docs/adr/0006
    """
    if not isinstance(manifest, str):
        from clawlite.linux.runtime.manifest_check import check

        check(manifest)
    return False
