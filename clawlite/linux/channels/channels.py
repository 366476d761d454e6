"""The channels of an agent beside its console (CKP 0.2.0, 5.3): who speaks there, the turns that
begin there, and where answers go.

    source (telegram.py, ...) -> Channel: access, overlap -> ``_begin_turn``, whose output is kept
    (core/turns/turn_output.py) -> the source's reply

1. The loop asks ``deadline`` and calls ``poll`` and ``update``; nothing here waits.
2. A conversation is one actor's of one channel; a trigger's run has none.
3. An approval is shown on the console, and put to the admins of channels (approvals/approvers.py).
4. An orderly end takes no more messages and begins no more turns (``drain``).  What is on record
   goes on in the next process.
5. When several processes share a state folder, only one of them runs the channels, until it ends or
   the folder is removed (lock.py).
6. The console's channel is here for its rate limit, and for the actors that an operator names
   (docs/adr/0044).
"""

import os
import time

from clawlite.core.base.effect import TELL
from clawlite.core.base.errors import InvalidParams, PolicyDenied
from clawlite.core.base.printable import escape_ends, escape_name
from clawlite.core.image.image import CHANNELS
from clawlite.core.policy.access import ADMIN, OPEN, ROLE_NAMES, VIEWER
from clawlite.linux.approvals.approvers import approvers_of
from clawlite.linux.channels.channel import MAX_ACTOR, TRY_AGAIN_MS, Channel
from clawlite.linux.files.files import state_folder
from clawlite.linux.files.process_lock import ProcessLock
from clawlite.linux.files.rollback_marks import UP
from clawlite.linux.io import signals, stdio
from clawlite.linux.io.stdio import Part
from clawlite.linux.memory.memory import wall_ms
from clawlite.protocols.image.features import CLI, KINDS

_HELP = [
    """  /channels who may speak to it elsewhere; /channels on NAME resumes one that rests
  /pair CODE admit who was given this code"""
]


def channels_of(agent, tells: bool):
    """Return the ``Channels`` of a shell's *agent*, with the clocks, the folder and the wake pipe
    of this machine; *tells*: a person reads its console.
    """
    folder = os.path.join(state_folder(agent.image.agent.name), "channels")
    clocks = stdio.now_ms, wall_ms
    return Channels(agent, *clocks, os.urandom, folder, signals.waker(), tells, _set_ms)


def _set_ms() -> int:
    """Return wall-clock ms less the ms since the machine was switched on, asleep or not."""
    return wall_ms() - time.clock_gettime_ns(UP) // 1000000


class Channels(Part):
    """All of one agent's channels.

    agent    ``agent.Agent``
    now_ms, wall_ms    functions -> monotonic ms, ms since 1970
    draw     function(count) -> that many random bytes
    folder   for the state that channels need after a restart, or None
    wake     descriptor of a pipe that ends the loop's wait
    tells    bool, a person reads a console
    set_ms   function -> ms that change only when the clock is set (``Channel.set_ms``), or None
    """

    def __init__(
        self,
        agent,
        now_ms,
        wall_ms,
        draw,
        folder=None,
        wake=None,
        tells: bool = False,
        set_ms=None,
    ):
        self.set_ms = set_ms
        self.agent, self.now_ms, self.wall_ms, self.folder, self.wake, self.tells = (
            agent,
            now_ms,
            wall_ms,
            folder,
            wake,
            tells,
        )
        self.draw = draw
        self.all = self._make_channels()
        self._consoles = [channel for channel in self.all if channel.kind == CLI]
        self._lock, self._is_ours, self._try_ms = ProcessLock(folder), False, 0
        self.owner = ""  # the process that runs the channels when this one does not
        # number of a task -> (channel, key, job); of a rule's run: (None, None, None)
        self.runs = {}
        self.is_draining = False
        self.lasts = len(self._consoles) < len(self.all)
        self._commands = []  # of the console, that people of channels may use too
        self._approvers = approvers_of(agent.image, self)
        if agent.setup.confirm:
            agent.setup.confirm.on_failure.append(self.let_rest)
        agent.commands.append(self.command)

    def _make_channels(self) -> list:
        section = self.agent.image.section(CHANNELS)
        return [Channel(self, record, self.draw) for record in section]

    def poll(self):
        """Receive messages, and begin the turns that are due."""
        if not self.lasts or not self.agent.is_ready and not self.is_draining:
            return
        if self._lock.is_lost():
            self._lock.release()
            self._is_ours, self._try_ms = False, 0
        if not self._is_ours and not self._take():
            return
        for channel in self.all:
            if channel.kind != CLI:
                channel.poll()

    def _take(self) -> bool:
        """Try to become the process that runs the channels; return whether it succeeded.  The
        state that the previous owner left is read again.
        """
        if self.now_ms() < self._try_ms:
            return False
        self._try_ms = self.now_ms() + TRY_AGAIN_MS
        try:
            owner, why = self._lock.take(), ""
        except OSError as e:
            owner, why = "nobody", str(e)
        if owner:
            if owner != self.owner:
                self.owner = owner
                for channel in self.all:  # open only when another process took them over
                    if channel.kind != CLI:
                        channel.close()
                self._say_not_ours(owner, why)
            return False
        if self.owner:  # another process has changed the state that was read at the start
            self.owner = ""
            self.all = [
                old if old.kind == CLI else new for old, new in zip(self.all, self._make_channels())
            ]
        self._is_ours = True
        return True

    def _say_not_ours(self, owner: str, why: str):
        """Report once, in the log and on the console, which process runs the channels, or *why*
        none can.
        """
        first = [channel for channel in self.all if channel.kind != CLI][0]
        if why:
            first.trouble(
                "the lock of this agent's channels cannot be taken, so none of them runs: " + why,
                "make the state folder writable",
            )
            return
        first.trouble(
            "the channels of this agent belong to %s, which uses the same state folder; "
            "they start here when it ends" % owner,
            "end it, or give this one another folder with CLAWLITE_STATE",
        )

    def update(self):
        """Tell the people who may approve about each new approval that waits, and about each form
        that nobody may answer any more, because its call has ended.
        """
        self._approvers.update(self.now_ms())

    def remote(self) -> list:
        """Return the channels beside the console."""
        return [channel for channel in self.all if channel.kind != CLI]

    def add_command(self, command):
        """Let people of all channels use *command(words, is_admin)*, a command of the console."""
        self._commands.append(command)

    def answer_command(self, words: list, role: int):
        """Return the lines that answer a command of somebody with *role*, None for another text."""
        for command in self._commands if words and words[0] != "/help" else ():
            lines = command(words, role == ADMIN)
            if lines is not None:
                return lines
        return None

    def add_run(self, number: int):
        """A rule has begun the task *number*, whose forms are put to all admins, too."""
        self.runs[number] = None, None, None

    def end_run(self, number: int):
        self.runs.pop(number, None)

    def tell_admins(self, text: str):
        """Send *text* to the admins of every channel."""
        for channel in self.remote():
            channel.tell_admins(text)

    def let_rest(self, caller: str, text: str) -> bool:
        """Let the schedule rest that is the *caller*: what must follow its call did not.  Return
        whether it is one.
        """
        for channel in self.all:
            if channel.name == caller and KINDS[channel.kind].type == "cron":
                channel.rest(text)
                said = "[%s] it rests now: %s. Once that is mended: /channels on %s" % (
                    caller,
                    text,
                    caller,
                )
                self.agent.effects.append((TELL, escape_ends(said)))
                self.tell_admins(escape_ends(said))
                return True
        return False

    def find_asked(self, number: int, channel):
        """Return the task that waits for an answer to the question *number*, when the admins of
        *channel* may give it, else None.
        """
        for task in self.agent.waiting:
            if task.approval.number == number and channel in self._approvers.channels_of(task):
                return task
        return None

    def job_in(self, channel, task):
        """Return the message of *channel* that *task* began with, or None."""
        own, _, job = self.runs.get(task.number, (None, None, None))
        return job if own is channel else None

    def can_ask(self, task) -> bool:
        """Return whether the channel of *task* has an admin who can be asked.

        task  number of a task; None: return whether any channel has an admin
        """
        if task is None:
            return any(channel.access.admins() for channel in self.all)
        channel = self.runs[task][0] if task in self.runs else None
        return channel is not None and bool(channel.access.admins())

    def deadline(self):
        """Return the monotonic time at which ``poll`` has something to do, or None."""
        if self.lasts and self.agent.is_ready and not self._is_ours:
            return self._try_ms
        times = [channel.deadline() for channel in self.all] if self.agent.is_ready else []
        times.append(self._approvers.deadline())
        return min([at for at in times if at is not None], default=None)

    def drain(self):
        """Take no more messages, and begin no more turns: the process is about to end."""
        self.is_draining = True

    def is_busy(self) -> bool:
        """Return whether a turn is under way that waits for nobody, or an answer is being sent."""
        tasks = self.agent.tasks
        return any(
            number in tasks and tasks[number].approval is None for number in self.runs
        ) or any(channel.is_sending() for channel in self.all)

    def close(self):
        self._approvers.close()
        for channel in self.all:
            channel.close()
        self._lock.release()

    # -- what the core asks

    def admit(self, now_ms: int) -> str:
        """Count a message at the console.  Return the text for its sender when it exceeds the rate,
        else "".
        """
        for channel in self._consoles:
            verdict = channel.access.admit(now_ms)
            if verdict:
                return verdict.said
        return ""

    def permit(self, actor, approves: bool):
        """Check that *actor*, whom an operator names, may call a tool or answer an approval.
        Raises ``InvalidParams``, ``PolicyDenied``.
        """
        if not isinstance(actor, str) or not 0 < len(actor) <= MAX_ACTOR:
            raise InvalidParams("actor: expected a string of 1 to %d characters" % MAX_ACTOR)
        for channel in self._consoles:
            if channel.access.mode == OPEN:
                continue
            role = channel.access.role(actor)
            if role is None:
                raise PolicyDenied(
                    "channel %s: it does not admit %s" % (channel.name, actor[:60]),
                    "",
                    {"actor": actor},
                )
            if role == VIEWER or approves and role != ADMIN:
                raise PolicyDenied(
                    "channel %s: %s is a %s, and %s"
                    % (
                        channel.name,
                        actor[:60],
                        ROLE_NAMES[role],
                        "only an admin approves" if approves else "a viewer triggers no tool",
                    ),
                    "",
                    {"actor": actor, "role": ROLE_NAMES[role]},
                )

    def write(self, channel: str, chat_id: str, content: str) -> dict:
        """The tool ``message``: write *content* to *chat_id* of the Channel *channel*.  Raises
        ``ClawError``: nothing was sent.
        """
        for one in self.all:
            if one.name == channel:
                return {
                    "channel": channel,
                    "chat_id": chat_id,
                    "status": one.write(chat_id, content),
                }
        raise InvalidParams(
            "channel: there is no %s" % channel[:60],
            "this agent has: %s" % ", ".join([one.name for one in self.all]),
        )

    def command(self, words: list):
        """Return the output lines of the console commands /channels and /pair, None for another."""
        if words[0] == "/help":
            return _HELP
        if words[:2] == ["/channels", "on"] and len(words) == 3:
            for channel in self.all:
                if channel.name == words[2]:
                    channel.resume()
                    return ["Channel %s is on." % channel.name]
            known = ", ".join(channel.name for channel in self.all)
            return ["There is no channel %s; channels: %s." % (escape_name(words[2]), known)]
        if words[0] == "/channels":
            return [channel.status_lines() for channel in self.all]
        if words[0] != "/pair":
            return None
        for channel in self.all if len(words) == 2 else ():
            actor = channel.access.pair(words[1], self.wall_ms() // 1000)
            if actor is not None:
                channel.state.data["paired"] = list(channel.access.paired)
                channel.keep(True)
                channel.log("paired", actor=actor)
                channel.source_reply(actor, "You are paired with this agent now.")
                return ["%s is paired with channel %s." % (escape_name(actor), channel.name)]
        return [
            "/pair CODE: this code is unknown or has expired. Anyone who sends the agent "
            "a message gets a new one."
        ]
