"""An agent on Linux is put together here: its parts in the order in which they are made, and what
each is given.  shell.py is the loop over them.

1. A part that another one needs is given to it, or read from here.  Nobody else sets a field.
2. READY waits for no part that only a later step needs: those are made by ``prepare_turns``, at
   the first turn, and by ``join``, after READY.
"""

import os
import time

from clawlite.core.agent.agent import Agent
from clawlite.core.image.image import (
    CHANNELS,
    CONTEXT,
    LOCAL,
    MEMORY,
    PROVIDERS,
    SERVICES,
    SWARM,
    TELEMETRY,
)
from clawlite.linux.files import workspace
from clawlite.linux.files.files import Log, state_folder
from clawlite.linux.hardware.handlers import running
from clawlite.linux.io import signals
from clawlite.linux.io.jsontext import dumps, loads, request
from clawlite.linux.io.stdio import now_ms, open_line
from clawlite.linux.runtime import optional_parts
from clawlite.linux.runtime.fast_path import FastPath
from clawlite.linux.runtime.persistence import MAX_IDS, Persistence
from clawlite.linux.runtime.startup import Startup
from clawlite.linux.tasks.task_group import TaskGroup
from clawlite.linux.terminal.screen import Screen
from clawlite.protocols.image.features import LINUX
from clawlite.protocols.session.group_session import GroupSession

MAX_TASKS = 1024
_RULES, _CONFIRMS = 27, 31  # the sections of core/rules/table.py


class AgentParts:
    """The parts of one agent; ``shell.Shell`` says what the arguments are."""

    # as of core/agent/agent_setup.py: READY does not wait for that
    _lessons = rules = None
    worlds = stop = confirm = emit = run_tool = later = prepare = meter = dialects = repetition = (
        None
    )
    memories = lasting = channels = hears_done = None
    has_joined = False
    keep_bytes, is_behind, is_recorded, conditions = 0, False, True, ()
    member = None
    telemetry = console = people = remote = swarm = stop_gate = log_watch = turns = None
    spent_nano_usd = 0  # by all providers, since this process began

    def __init__(
        self, image, folder: str, operator: bool, wake: int, line, session, answers, memory, adopts
    ):
        image.require(LINUX, "this machine")
        state, profile = state_folder(image.agent.name), optional_parts.read_profile(image)
        self.state = state
        self.operator, self.answers, self.memory = operator, answers, memory
        self.terminal = not operator and line is None and os.isatty(0)
        # what tools, policies and scans need of this machine
        self.image, self.guard, self.ways = image, optional_parts.make_guard(image), {}
        self.worlds = optional_parts.make_worlds(image)
        self.workspace = workspace.folder(profile, state, image)
        self.stop = (lambda tool: self.stop_gate(tool)) if image.size_of(SWARM) else None
        # the records: the log, the audit, and what exporters carry away
        self.log = Log(image.agent.name, optional_parts.choose_log_line(self.guard))
        self.audit = optional_parts.make_audit(image, self.guard)
        if image.size_of(TELEMETRY):
            self.telemetry = optional_parts.make_telemetry(self)
            self.hears_done = self.telemetry.hear_done
        # what outlives the process: calls and approvals, memories, conversations
        self.persistence = Persistence(self, folder)
        self.kept, self.remembered = self.persistence.records, MAX_IDS
        # of another process of this agent, a late answer may name questions
        self.first_question = 100000 + int.from_bytes(os.urandom(4), "big") % 900000
        if image.size_of(MEMORY):
            self.memories = self.persistence.memories
        if image.size_of(MEMORY) or image.size_of(CONTEXT):
            self.lasting = self.persistence.lasting
        # the agent; an operator's calls may run at once, where nobody looks at each effect
        is_quick = operator and not self.telemetry
        if is_quick:
            self.emit, self.run_tool = self._emit, self._run_tool
        self.prepare = self.prepare_turns
        self.codecs, self.adopt = (loads, dumps), adopts or optional_parts.keep_agent
        self.agent = Agent(self, now_ms(), MAX_TASKS)
        # the line: of an operator's records, or of a person with records between
        self.wire, self.framer = line or open_line(operator, wake)
        self.screen = Screen(self.wire, self.terminal)
        # where tools run: in this process, and where the image wants it, outside of it
        functions = {}
        self.startup = Startup(self, folder, None if image.agent.isolation else functions)
        self.on_start, self.on_failure = self.startup.start, self.startup.report_failure
        self.decided = workspace.DecidedPaths(self.agent.tasks)
        self.handlers = running(self, functions, lambda e: optional_parts.find_place(e, folder))
        if image.size_of(_CONFIRMS):
            self.confirm = optional_parts.make_confirms(self)
        self.fast_path = FastPath(self)
        if profile is not None:
            self.handlers = optional_parts.make_dispatcher(
                self, profile, state, image.section(LOCAL)
            )
            self.wire.watch_others(self.handlers.descriptors)
        # who gives it work
        self.session = (session or GroupSession)(
            self.agent, request, self.fast_path.answer if is_quick else None
        )
        self.session.set_clock(int(time.time()), now_ms())
        if not operator:
            self.console, self.people = optional_parts.make_console(self)
        self.groups = []  # of methods that need no image, as ``GroupSession`` has them
        # beside the loop, in the order in which it asks them; it closes them in reverse order, so
        # that the audit, which is last, has all records before the answers leave
        self.parts = [part for part in (self.audit, self.persistence, self.people) if part]

    def prepare_turns(self):
        """Make what the first turn needs."""
        if self.image.size_of(PROVIDERS):
            self.prepare_providers()
        from clawlite.linux.tasks.turn_log import TurnLog

        self.turns = TurnLog(self)
        self.lasting = self.turns.lasting

    def prepare_providers(self):
        """Make the meters, and the way to remote providers."""
        from clawlite.linux.runtime.providers import Remote

        self.get_meter()
        self.remote = self.add_part(Remote(self, signals.waker()))
        self.keep_bytes, self.repetition = self.remote.keep_bytes, self.remote.repetition
        self.dialects = self.remote.dialects
        if self.image.size_of(SERVICES):
            from clawlite.linux.runtime.feeds import Feeds

            self.lasting = Feeds(self, now_ms).lasting
        if self.people:
            self.people.think()

    def make_local(self, row: list):
        """Return the provider builtin:local of *row*, a row of the image's PROVIDERS."""
        return self.remote.make_local(row)

    def get_meter(self):
        """Return the meter of this agent, made when something is counted first."""
        if self.meter is None:
            from clawlite.linux.runtime.meters import meter_of

            self.meter = meter_of(self.image, now_ms, self._hear_spent)
        return self.meter

    def _hear_spent(self, provider, read: int, written: int):
        self.spent_nano_usd += read * provider.prices[0] + written * provider.prices[1]
        if self.telemetry:
            self.telemetry.hear_spent(provider, read, written)

    def join(self):
        """Make what speaks with others, after READY: channels, the swarm, tasks, systemd."""
        self.has_joined = True
        if self.image.size_of(CHANNELS):
            self.wire.flush(0)  # the message of READY goes out first
            from clawlite.linux.channels.channels import channels_of

            self.channels = self.add_part(channels_of(self.agent, self.console is not None))
        if self.image.size_of(SWARM):
            from clawlite.linux.swarm.member import member_of, share_stores

            member = self.add_part(member_of(self.agent, self.memory))
            self.swarm, self.stop_gate, self.member = member.methods, member.gate, member
            self.serve(member.methods)
            self.persistence.share(share_stores(member, self.persistence.remember_here))
        if self.image.size_of(_RULES) or optional_parts.is_taught(self.state):
            self.make_rules()
        optional_parts.warm_local(self)
        self.serve(TaskGroup(self.agent, self.add_part))
        if "NOTIFY_SOCKET" in os.environ:
            from clawlite.linux.io.systemd import Notifier

            self.add_part(Notifier(now_ms)).ready()

    @property
    def teach(self):
        """What people teach this agent, made for the first turn."""
        if self._lessons is None and self.has_joined:
            self._lessons = optional_parts.make_lessons(self)
        return self._lessons

    def make_rules(self):
        """Return the readings and rules of this agent, made when they are first asked for."""
        if self.rules is None:
            from clawlite.linux.rules.rule_group import group_of
            from clawlite.linux.rules.rules import rules_of

            self.rules = self.add_part(rules_of(self.agent, self.handlers))
            rehearse = optional_parts.make_rehearsal(self.rules)
            self.serve(group_of(self.rules, lambda: self.teach, rehearse))
        return self.rules

    def watch_log(self, watch):
        """Call *watch(event)* for each event of the log from now on; None: nobody."""
        self.log_watch = watch

    def serve(self, group):
        """Answer the methods of *group* on stdin, and on each line that an operator opens."""
        self.session.serve(group)
        self.groups.append(group)

    def obey_stop(self):
        """Obey a stop of the swarm without joining it, for ``clawlite ask``."""
        if self.image.size_of(SWARM):
            from clawlite.linux.swarm.member import no_shared_stores
            from clawlite.linux.swarm.stop_gate import Watcher

            self.stop_gate = self.add_part(Watcher(self)).gate
            self.persistence.share(no_shared_stores(self.agent))

    def add_part(self, part):
        """Let *part* live beside the loop; return it."""
        self.parts.append(part)
        if part.fileno() >= 0:
            self.wire.wake_by(part.fileno())
        return part

    def remove_part(self, part):
        """Let *part* go, which is over."""
        self.parts.remove(part)
        if part.fileno() >= 0:
            self.wire.sleep_by(part.fileno())
        part.close()

    def _emit(self, effect: tuple):
        self.fast_path.emit(effect)

    def _run_tool(self, *call):
        return self.fast_path.start(*call)
