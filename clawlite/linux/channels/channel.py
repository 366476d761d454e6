"""One channel (CKP 0.2.0, 5.3): it checks each message, queues it, and begins a turn, whose answer
goes back to the sender.

A source (cron.py, webhook.py, telegram.py, mqtt.py) has ``poll``, ``deadline``, ``reply`` and
``close``.  A source that the tool ``message`` can write to also has ``send`` and ``recipient``, and
one whose questions have buttons has ``ask`` and ``end_question``.  A source whose messages are on
record (delivery.py) also has ``begins``, which is called before the effects of a message's turn,
``put_back``, when the turn was cut off, and ``is_sending``.
protocols/image/features.py lists the kinds of channels."""

import importlib
from typing import Any

from clawlite.core.base.effect import LOG, TELL
from clawlite.core.base.errors import ClawError, InvalidParams, PolicyDenied
from clawlite.core.base.printable import escape_line, join_lines
from clawlite.core.image.image import SKILLS
from clawlite.core.policy.access import ADMIN, ANSWERS, OPEN, PAIRING, VIEWER, Access
from clawlite.core.protocol.console import error_text
from clawlite.core.turns.gates import PERSON
from clawlite.core.turns.history import History
from clawlite.core.turns.turn import turn
from clawlite.core.turns.turn_output import TurnOutput, call_for, keep_output, refuse_for
from clawlite.linux.channels.overlap import QUEUE, Overlap
from clawlite.linux.files.files import check_step
from clawlite.linux.io.state_file import StateFile
from clawlite.protocols.image.features import CLI, KINDS

_ROLE, _ACTOR, _TEXT, _TO, _TALK = range(5)  # of a job

MAX_ACTOR = 128  # characters of an id
MAX_SPOKE = 1000  # actors of an open channel whom the tool message may write to
MAX_TALKS = 64  # conversations of one channel that stay in memory
# limits for people's messages: turns at once, messages of one actor that wait, all that wait
AT_ONCE, IN_LINE, ROOM = 4, 8, 256
_GREETED = ("/start", "/help")  # Telegram sends the first for a person who opens a chat
TRY_AGAIN_MS = 30000  # after a channel could not be opened


class Channel:
    """One channel.

    channels  ``channels.Channels``
    record    [name, kind, access, processing, [max_parallel, overlap], own, ...] of the image
    """

    def __init__(self, channels, record: list, draw):
        self.name, self.kind, access, self.processing, (most, self.policy), self._own, *_ = record
        check_step(self.name, "a channel")  # its files have it
        self.channels, self.agent = channels, channels.agent
        self.now_ms, self.wall_ms, self.wake = channels.now_ms, channels.wall_ms, channels.wake
        self.state = StateFile(channels.folder if self.kind != CLI else None, self.name)
        paired = self.state.data.get("paired")
        self.access = self._make_access(
            access,
            draw,
            [one for one in paired if isinstance(one, str)] if isinstance(paired, list) else (),
        )
        self.is_trigger = KINDS[self.kind].triggers
        self._overlap = (
            Overlap(most, self.policy) if self.is_trigger else Overlap(AT_ONCE, QUEUE, ROOM)
        )
        self._spoke = {}  # in mode open: the last MAX_SPOKE actors that have written
        self._talks = {}  # conversation -> History; the most recently used is last
        self._source: Any = None  # made at the first poll: READY does not wait for it
        self._open_ms = 0  # monotonic time of the next try to open it
        self._told = self._is_beginning = False
        self._wrong, self._wrong_ms = "", 0  # the last failure, and when it was

    def _make_access(self, access: list, draw, paired) -> Access:
        return Access(access, self.processing, draw, paired)

    def takes_up(self, item) -> bool:
        """Return whether the turn of *item*, which is on record, may be under way elsewhere, so
        that it does not begin again here.
        """
        return False

    def now_s(self) -> int:
        return self.wall_ms() // 1000

    def set_ms(self) -> int:
        """Return how far the calendar is ahead of the time since the machine was switched on: it
        changes only when the clock is set, not while the machine sleeps.  0 where that is unknown.
        """
        return self.channels.set_ms() if self.channels.set_ms else 0

    def poll(self):
        if self._source is None and self.now_ms() >= self._open_ms and not self.is_draining:
            self._open()
        if self._source is not None:
            self._source.poll()

    def _open(self):
        try:
            self._source = source_of(self.kind)(self, self._own)
            self._told = False
        except ClawError as e:
            self._open_ms = self.now_ms() + TRY_AGAIN_MS
            if not self._told:
                self._told = True
                self.trouble(e.message, e.hint)

    def deadline(self):
        if self.kind == CLI:
            return None
        return self._source.deadline() if self._source else self._open_ms

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent here."""
        return self._source is not None

    @property
    def is_draining(self) -> bool:
        """Whether the source takes no more messages, because the process is about to end."""
        return self.channels.is_draining

    def is_sending(self) -> bool:
        """Return whether answers are on their way."""
        return hasattr(self._source, "is_sending") and self._source.is_sending()

    def close(self):
        if self._source:
            self._source.close()

    def status_lines(self) -> str:
        """Return a line about this channel for a person, and a second line about its last failure
        when there was one.
        """
        mode = ("open", "allowlist", "pairing", "role-based")[self.access.mode]
        waits = (
            ", %d wait to be paired" % self.access.waiting(self.now_s())
            if self.access.mode == PAIRING
            else ""
        )
        closed = "" if self.kind == CLI or self._source else ", not open"
        lines = ["%-20s %s, %s%s%s" % (self.name, KINDS[self.kind].type, mode, waits, closed)]
        if self.state.data.get("rests"):
            lines.append("  it rests: %s; /channels on %s" % (self.state.data["rests"], self.name))
        if self._wrong:
            ago = (self.now_ms() - self._wrong_ms) // 1000
            lines.append("  %d s ago: %s" % (ago, escape_line(self._wrong)))
        return join_lines(lines)

    # -- what sources tell

    def log(self, what: str, **more):
        self.agent.effects.append(
            (LOG, dict({"event": "channel." + what, "channel": self.name}, **more))
        )

    def tell(self, text: str):
        """Show *text* on the console, with this channel's name, when a person reads the console."""
        if self.channels.tells:
            guard = self.agent.setup.guard
            self.agent.effects.append(
                (TELL, "[%s] %s" % (self.name, guard.text(text) if guard else text))
            )

    def trouble(self, what: str, hint: str = ""):
        """Report a failure of this channel: in the log, on the console and in ``status_lines``."""
        self._wrong, self._wrong_ms = what, self.now_ms()
        self.log("trouble", reason=what)
        self.tell("%s.%s" % (what.rstrip("."), " Next: %s." % hint if hint else ""))

    def keep(self, lasting: bool) -> bool:
        """Write the state of this channel."""
        wrong = self.state.save(lasting)
        if wrong:
            self.trouble(wrong, self.state.mend)
        return not wrong

    def rest(self, why: str):
        """Begin no run, over restarts, until a person resumes this channel."""
        self.state.data["rests"] = why[:300]
        self.keep(True)
        self.log("rests", reason=why)

    def resume(self):
        """Begin runs again."""
        if self.state.data.pop("rests", None) is not None:
            self.keep(True)
            self.log("resumed")

    def trigger(self, text: str, to=None) -> bool:
        """Begin a run for an event that has no actor, or log why it is refused or skipped; return
        whether it will run.
        """
        if self.state.data.get("rests"):
            self.log("refused", reason="rests")
        elif len(text) > self.processing[0]:
            self.log("refused", reason="length")
        elif self.access.admit(self.now_ms()):
            self.log("refused", reason="rate")
        elif self._overlap.offer(None, (None, "", text, to, "")):
            self._begin_turns()
            return True
        else:
            self.log("skipped")
        return False

    def take_message(self, actor: str, text: str, to) -> str:
        """Check a message of *actor*, and queue it.  Return why it is refused (``Verdict.why``, or
        "busy"), or "".

        to  the address that the source's ``reply`` gets
        When the sender may know why, that reply was sent before this returns.
        """
        role, why = self.judge(actor, text, to)
        return why if role is None else self.queue_message(role, actor, text, to)

    def judge(self, actor: str, text: str, to) -> tuple:
        """Return (role, "") for a message that may begin a turn, else (None, why).  *why* is "" for
        an answer to an approval and for a command: it was handled here.
        """
        if len(actor) > MAX_ACTOR:
            return None, "stranger"
        if text.startswith(ANSWERS) and self._answer(actor, text.split(None, 2), to):
            return None, ""
        verdict = self.access.judge(actor, text, self.now_ms(), self.now_s())
        if verdict.role is None:
            self._refuse(actor, verdict.why, verdict.said, to)
            return None, verdict.why
        if self.access.mode == OPEN and actor:
            self._spoke[actor] = None
            if len(self._spoke) > MAX_SPOKE:
                del self._spoke[next(iter(self._spoke))]
        lines = self.channels.answer_command(text.split(), verdict.role)
        if text.strip() in _GREETED and not self._is_skill(text):
            lines = self._greet(verdict.role)
        if lines is None:
            return verdict.role, ""
        guard = self.agent.setup.guard
        lines = [guard.text(line) for line in lines] if guard else lines
        self._source.reply(to, join_lines(lines))
        return None, ""

    def _is_skill(self, text: str) -> bool:
        from clawlite.core.agent.skillturn import parse

        return bool(self.agent.image.size_of(SKILLS) and parse(self.agent.image, text))

    def _greet(self, role: int) -> list:
        """Return the lines that say what somebody with *role* can do here."""
        lines = ["This is %s. Write to it in your own words." % self.agent.image.agent.name]
        if not self.is_trigger:
            lines.append("/new begins a conversation afresh.")
        if role == ADMIN:
            lines.append("/approve N and /deny N answer a question, and /show N shows all of it.")
        return lines

    def queue_message(
        self, role: int, actor: str, text: str, to, talk: str = "", is_kept: bool = False
    ) -> str:
        """Queue a message that ``judge`` has admitted; return "busy" when it is dropped, else
        "".

        talk     the conversation that it belongs to, when it is not the actor's only one
        is_kept  it was on record before, and is not dropped now
        """
        talk = talk or actor
        job = role, actor, text, to, talk
        if self.is_trigger:
            if not self._overlap.offer(None, job, is_kept and self.policy == QUEUE):
                self.log("skipped", actor=actor)
                return "busy"
        elif (not is_kept and self._overlap.waits(talk) >= IN_LINE) or not self._overlap.offer(
            talk, job, is_kept
        ):
            self._refuse(actor, "busy", "Too many messages wait already. Nothing was done.", to)
            return "busy"
        self._begin_turns()
        return ""

    def _refuse(self, actor: str, why: str, said: str, to):
        self.log("refused", actor=actor, reason=why)
        if said:
            self._source.reply(to, said)

    def path(self, suffix: str):
        """Return the path of this channel's file with *suffix*, or None when the agent has no state
        folder.
        """
        folder = self.channels.folder
        return folder and folder + "/" + self.name + suffix

    def source_reply(self, to, text: str):
        """Send *text* to *to*, not as the answer of a turn.  The console has no source, so nothing
        is sent there.
        """
        if self._source:
            self._source.reply(to, text)

    def write(self, chat: str, text: str) -> str:
        """Send *text* to *chat* for the tool ``message``; return "shown" or "queued".  Raises
        ``ClawError``: nothing was sent.
        """
        if len(text) > self.processing[0]:
            raise InvalidParams(
                "content: it has %d characters; channel %s carries at most %d"
                % (len(text), self.name, self.processing[0]),
                "shorten it, or send it in parts",
            )
        if self.kind == CLI:
            if not self.channels.tells:
                raise ClawError(
                    "nobody reads the console %s" % self.name, "write to another channel"
                )
            self.tell(text)
            return "shown"
        if not KINDS[self.kind].carries:
            raise InvalidParams(
                "channel: %s is of type %s, which cannot send messages"
                % (self.name, KINDS[self.kind].type),
                "write to another channel",
            )
        if self._source is None:
            owner = self.channels.owner
            raise ClawError(
                "channel %s is not open%s"
                % (self.name, ": it belongs to %s" % owner if owner else ""),
                "look for channel.trouble in the log",
            )
        to = self._source.recipient(chat)
        if to is None:
            known = (
                chat in self._spoke
                if self.access.mode == OPEN
                else self.access.role(chat) is not None
            )
            if not known:
                raise PolicyDenied(
                    "chat_id: channel %s does not know %s" % (self.name, chat[:60]),
                    "its access_control lists the chats that it knows"
                    if self.access.mode != OPEN
                    else "in mode open it knows those who have written since the agent started",
                    {"channel": self.name, "chat_id": chat[:60]},
                )
            to = chat
        guard = self.agent.setup.guard
        wrong = self._source.send(to, guard.text(text) if guard else text)
        if wrong:
            raise ClawError("channel %s: %s" % (self.name, wrong), "try again later")
        self._guard_questions(text)
        return "queued"

    # -- turns

    def _begin_turns(self):
        """Begin all jobs that may begin now."""
        # a turn without tools ends before ``begin`` returns, and would call this again
        if self._is_beginning or self.channels.is_draining:
            return
        self._is_beginning = True
        while not self.channels.is_draining:
            ready = self._overlap.next()
            if ready is None:
                break
            self._begin_turn(*ready)
        self._is_beginning = False

    def _begin_turn(self, key, job: tuple):
        agent, (role, actor, text, to, talk) = self.agent, job
        caller = "%s/%s" % (self.name, actor) if actor else self.name
        into, number, done = TurnOutput(), None, []

        def handle_end(value, error, now_ms):
            done.append(True)
            self.channels.runs.pop(number, None)
            self._overlap.release(key)
            if error and agent.lifecycle.is_cutting() and hasattr(self._source, "put_back"):
                self._source.put_back(to)
            else:
                self._reply_end(job, into, error)
            self._begin_turns()

        self.log("turn", actor=actor)
        try:
            history = History(agent.setup.keep_bytes) if self.is_trigger else self._history(talk)
            work = self._make_turn(role, text, caller, history)
            if agent.setup.lasting:
                work = agent.setup.lasting(
                    work,
                    history,
                    self.is_trigger,
                    "" if self.is_trigger else "%s/%s" % (self.name, talk),
                )
            begins = self._begins(to) if hasattr(self._source, "begins") else None
            number = agent.begin(
                keep_output(work, caller, into, begins),
                handle_end,
                self.now_ms(),
                agent.image.agent.turn_ms,
            )
        except Exception as e:
            if not done:
                handle_end(None, e, 0)
            return
        if not done:
            self.channels.runs[number] = (self, key, job)

    def _begins(self, to):
        return lambda effect: self._source.begins(to, effect)

    def _make_turn(self, role, text: str, caller: str, history: History):
        """Return the generator of a turn, with a skill when *text* names one (docs/skills.md).
        Raises ``ClawError``.
        """
        agent = self.agent
        if text.strip() == "/new" and not self.is_trigger:
            return history.renew()
        is_person = KINDS[self.kind].personal and role not in (None, VIEWER)
        history.speaker = (caller, role == ADMIN) if is_person else None
        chain, run = agent.chain(), refuse_for(caller) if role == VIEWER else call_for(caller)
        if text.startswith("/") and agent.image.size_of(SKILLS):
            from clawlite.core.agent.skillturn import begin, parse

            asked = parse(agent.image, text)
            if asked and role == VIEWER:
                raise PolicyDenied(
                    "%s: %s is a viewer, and a viewer begins no skill" % (asked[0].name, caller),
                    "",
                    {"role": "viewer"},
                )
            if asked:
                return begin(agent.setup, asked, chain, history, run, "%s (%s)" % (PERSON, caller))
        return turn(agent.setup, text, chain, history, run)

    def _history(self, talk: str) -> History:
        history = self._talks.pop(talk, None) or History(self.agent.setup.keep_bytes)
        while len(self._talks) >= MAX_TALKS:
            del self._talks[next(iter(self._talks))]
        self._talks[talk] = history
        return history

    def _reply_end(self, job: tuple, into: TurnOutput, error):
        text = into.text()
        if error:
            said = error_text(error)
            text = text + "\n" + said if text else said
            self.log("failed", actor=job[_ACTOR], reason=said)
        guard = self.agent.setup.guard
        self._source.reply(job[_TO], guard.text(text) if guard else text, True, error is not None)
        self._guard_questions(text)

    def _guard_questions(self, text: str):
        """After *text*, which a model has written: where it may pass for a question, those that
        wait in this channel are put again, below it.
        """
        for task in self.agent.waiting if any(word in text for word in ANSWERS) else ():
            if self.find_asked(task.approval.number):
                self.put_question(task, self.channels.job_in(self, task))

    # -- approvals

    def tell_waits(self, job: tuple):
        """Tell the sender of the message of *job* that it waits, unless an admin has sent it."""
        if job[_ROLE] is not None and job[_ROLE] != ADMIN:
            self._source.reply(job[_TO], "This waits for approval.", False)

    def put_question(self, task, job, first: str = ""):
        """Put the approval of *task* to the admins, to one who has written the message of *job*
        where that came from; *first* stands before it.
        """
        from clawlite.core.protocol.channel_answers import describe

        asked, more = describe(task, self.now_ms())
        text = first + self._without_secrets(asked)
        if not task.approval.asker:
            text += "\n  asked for at the console or by an operator"
        for admin in self.access.admins() if self._source else ():
            to = job[_TO] if job and job[_ACTOR] == admin else admin
            if hasattr(self._source, "ask"):
                self._source.ask(to, text, more, task)
            else:
                self._source.reply(to, text + more, False)

    def end_question(self, approval, text: str):
        """Tell the admins by *text* how *approval* has ended, but for the one who has answered."""
        text = self._without_secrets(text)
        if hasattr(self._source, "end_question"):
            self._source.end_question(approval, text)
            return
        for admin in self.access.admins():
            if approval.by != self._name_of(admin):
                self.source_reply(admin, text)

    def tell_admins(self, text: str):
        """Send *text*, whose lines are this agent's own, without secrets, to the admins."""
        for admin in self.access.admins():
            self.source_reply(admin, self._without_secrets(text))

    def _without_secrets(self, text: str) -> str:
        guard = self.agent.setup.guard
        return guard.text(text) if guard else text

    def _name_of(self, actor: str) -> str:
        return "%s/%s" % (self.name, actor)

    def find_asked(self, number: int):
        """Return the task that waits for an answer to the question *number*, when the admins here
        give it, else None.
        """
        return self.channels.find_asked(number, self)

    def show(self, task) -> str:
        """Return the whole call that waits, for an admin."""
        from clawlite.core.protocol.channel_answers import show

        return show(self.agent, task)

    def show_below(self, task, actor: str, chat: str):
        """Send the whole call of *task* to *chat*, where *actor* has touched the button for it."""
        self._source.ask(chat, self.show(task), "", task)

    def _answer(self, actor: str, words: list, to) -> bool:
        """Handle /approve N, /deny N or /show N of *actor*.  Return False for any other text, and
        when *actor* is a stranger.
        """
        role = self.access.role(actor)
        if role is None or words[0] not in ANSWERS:
            return False
        from clawlite.core.protocol.channel_answers import find

        by, now_ms = self._name_of(actor), self.now_ms()
        task, text = find(self.agent, words, role == ADMIN, self.find_asked, now_ms, by)
        if task is not None:
            text = self.decide(task, actor, words[0] == "/approve", text)
        self._source.reply(to, text)
        return True

    def note_ignored(self, actor: str, why: str):
        """Put an answer of *actor* on record that did nothing."""
        from clawlite.core.protocol.channel_answers import note_ignored

        note_ignored(self.agent, self._name_of(actor), why)

    def decide(self, task, actor: str, approves: bool, rest: str = "") -> str:
        """Answer the approval of *task* for the admin *actor*, with the values *rest* for a form;
        return the text of the reply.
        """
        if approves and task.approval.form:
            try:
                task.approval.form.fill_text(rest)
            except ClawError as e:
                return "Not that: " + error_text(e)
        by, answer = self._name_of(actor), "approve" if approves else "deny"
        self.log("approval", actor=actor, tool=task.approval.tool.name, answer=answer)
        self.agent.answer(task, approves, by + " said no", self.now_ms(), by)
        return "Approved." if approves else "Denied."


def source_of(kind: int):
    """Return the class ``Source`` of the module for a kind of channel.  Only the modules of kinds
    that an image declares are loaded.
    """
    module = importlib.import_module("clawlite.linux.channels." + KINDS[kind].ability)
    return module.Source
