"""Channels that the gateway carries: people speak to this board on Telegram, by a webhook or a
queue, and the board decides who may and what they may (docs/gateway.md).

1. Loaded for images that require ``relayed``.  The gateway says who has spoken, and where.  The
   board judges each message (core/policy/access.py), and runs a turn for it, at most ``_AT_ONCE``
   at the same time.
2. The gateway could lie about who spoke.  So nobody who comes by it is more than a user, unless
   the image lets the gateway speak for admins ([gateway] roles).
3. A message is known by its id and begins one turn: the gateway keeps it until it has the answer,
   and sends it again when it does not know whether the board has it.  Before the first tool with
   side effects of a turn, the gateway puts on record that it begins, so that no reset makes it run
   again.
4. Answers, and texts for admins, wait here until the gateway has confirmed them, one after the
   other.  Beyond ``_KEPT`` characters, of which each has ``_EACH`` more, the oldest are dropped.
"""

from binascii import hexlify

from clawlite.core.base.effect import KIND, LOG, RUN, SLEEP, TOOL
from clawlite.core.base.errors import ClawError, InvalidRequest, PolicyDenied, wrap_error
from clawlite.core.base.printable import join_lines
from clawlite.core.image.image import CHANNELS, HAS_SIDE_EFFECTS
from clawlite.core.policy.access import ADMIN, ANSWERS, USER, VIEWER, Access
from random_bytes import random_bytes
from unload import drop

_RARE = "pairing channel_answers"  # loaded when they are needed, and dropped
_AT_ONCE = 2  # turns
_ROOM = 7  # messages that have come in one round of the loop, less one
_TALKS = 3  # conversations that stay in memory
_KEPT = 6144  # characters of what the gateway has not confirmed
_EACH = 128  # bytes that a text takes beside its characters, with words of 32 bits
_MOST = 4096  # characters of an answer
_MAX_ACTOR = 128  # characters of an id
_LOOK_MS = 20  # between checks whether the gateway has answered
_APPROVALS = 28  # the section of protocols/image/features.py
_REMINDED_FROM_S = 20  # a shorter wait needs no reminder
_MAY_ADMIN = 6  # position in a record of a channel that the gateway carries; others are shorter
_NAME, _ACCESS, _PROCESSING = 0, 2, 3


class _Channel:
    """One channel.  *may_admin*: the gateway may speak for its admins."""

    def __init__(self, record: list, paired: list):
        self.name, self.may_admin = record[_NAME], record[_MAY_ADMIN]
        self.access = Access(record[_ACCESS], record[_PROCESSING], _draw, paired)

    def cap(self, role):
        """Return *role*, or what is left of it for somebody of whom the gateway tells."""
        return USER if role == ADMIN and not self.may_admin else role

    def admins(self) -> list:
        return self.access.admins() if self.may_admin else []


class _Run:
    """A message whose turn is under way."""

    tool = None  # the first one with side effects
    may = None  # "" when the gateway has put on record that it begins, or why it must not

    def __init__(self, channel, id: str, actor: str, role: int):
        self.channel, self.id, self.actor, self.role = channel, id, actor, role


class _Question:
    """An approval that was put to admins.  *id*: what a button below it sends back."""

    def __init__(self, approval, id: str):
        self.approval, self.id = approval, id
        self.is_reminded = approval.timeout_s < _REMINDED_FROM_S

    def half_ms(self) -> int:
        """Return when it is put once more."""
        return self.approval.since_ms + (self.approval.due_ms - self.approval.since_ms) // 2


class Relayed:
    """The channels of *device*; *swarm*: the listener of its swarm, or None.  It stands where
    linux/channels/channels.py does on Linux (``agent_setup.Setup.channels``).
    """

    def __init__(self, device, swarm):
        from pairing import read

        self.device, self._uplink, self._swarm = device, device.net, swarm
        self._agent = device.agent
        paired = read(device)
        del read
        drop(_RARE)
        self.all = [
            _Channel(record, paired.get(record[_NAME], []))
            for record in self._agent.image.section(CHANNELS)
            if len(record) > _MAY_ADMIN
        ]
        self._boot, self._count = str(hexlify(random_bytes()), "utf-8"), 0
        self._come, self._taken, self._changed = [], None, False
        self._runs = {}  # number of a task -> _Run
        self._put = []  # ``_Question``s
        said = self._agent.image.section(_APPROVALS)
        self._to = said[0] if said else None  # names of the channels that are asked; None: all
        self._waiting = []  # (name, params) that the gateway has not confirmed, oldest first
        self._is_sent = False  # the first of them is on its way
        self._talks = []  # (channel's name, conversation, History), the last used one is last
        self._commands = []
        self._agent.on_wait.append(self._note_change)
        self._agent.commands.append(self._command)

    # -- what Setup.channels has

    def admit(self, now_ms: int) -> str:
        """The console has no rate on a board."""
        return ""

    def permit(self, actor, approves: bool):
        """The console of a board has no mode, so whomever an operator names is permitted."""

    def add_command(self, command):
        """Let people of all channels use *command(words, is_admin)*, a command of the console."""
        self._commands.append(command)

    def add_run(self, number: int):
        """A rule has begun the task *number*: its approvals are put to all admins anyway."""

    def end_run(self, number: int):
        """The task *number* of a rule has ended."""

    def tell_admins(self, text: str):
        """Send *text* to the admins of every channel; it waits while there is no gateway."""
        for channel in self.all:
            for admin in channel.admins():
                self._say(channel, admin, self._without_secrets(text))

    # -- from the gateway

    def new_session(self):
        """Return the session of a member of a swarm, or None for the usual one."""
        return self._swarm and self._swarm.new_session()

    def hear(self, method: str, params: dict) -> bool:
        """Handle a message of the gateway, whose *params* have a text; return False when it is
        about something else.
        """
        id = params.get("id")
        if method == "claw.gateway.channels":
            self._is_sent = False
            for number in self._runs:
                if self._runs[number].tool and self._runs[number].may is None:
                    self._tell_act(self._runs[number])
        elif method == "claw.gateway.spoke":
            if isinstance(id, str):
                self._come = self._come[-_ROOM:] + [params]
        elif method == "claw.gateway.acted":
            for number in self._runs:
                if self._runs[number].id == id:
                    self._runs[number].may = params["text"]
        elif method == "claw.gateway.heard":
            if self._waiting and self._waiting[0][1]["id"] == id:
                self._waiting.pop(0)
                self._is_sent = False
        else:
            return self._swarm is not None and self._swarm.hear(method, params)
        return True

    # -- the loop

    def deadline(self):
        sends = self._waiting and not self._is_sent and self._uplink.is_up
        if self._come or self._changed or sends:
            return self.device.now_ms()
        first = None
        for question in self._put:
            if not question.is_reminded and (first is None or question.half_ms() < first):
                first = question.half_ms()
        return first

    def tick(self, now_ms: int):
        """Take the messages that have come, tell the admins what has changed, and send what waits:
        here, because deeper in the loop the stack would not be enough.
        """
        if self._taken:  # memory ran out
            id, self._taken = self._taken, None
            self._answer(id, "This board has too little memory for that. Ask for less.", "failed")
        while self._come:
            params = self._come.pop(0)
            self._taken = params["id"]
            self._take(params["id"], params)
            self._taken = None
        if self._changed:
            self._changed = False
            self._announce(now_ms)
        for question in self._put:
            if not question.is_reminded and now_ms >= question.half_ms():
                question.is_reminded = True
                self._remind(question, now_ms)
        if self._waiting and not self._is_sent:
            self._is_sent = self._uplink.notify(*self._waiting[0])

    def _take(self, id: str, params: dict):
        """Judge a message, and begin its turn or answer it."""
        for number in self._runs:
            if self._runs[number].id == id:
                return
        for _, waiting in self._waiting:
            if waiting["id"] == id:
                return
        if params.get("again") is True:
            self._uplink.notify("unknown", {"id": id})
            return
        name, actor, talk = params.get("channel"), params.get("actor"), params.get("talk")
        channel = [one for one in self.all if one.name == name]
        if not channel or not isinstance(actor, str) or not isinstance(talk, str):
            self._answer(id, "This board has no such channel, or nobody is named.", "stranger")
        elif len(actor) > _MAX_ACTOR:
            self._answer(id, "", "stranger")
        else:
            self._judge(channel[0], id, actor, talk, params["text"], params.get("asks"))

    def _judge(self, channel, id: str, actor: str, talk: str, text: str, asks):
        now = self.device.now_ms()
        role, words = channel.cap(channel.access.role(actor)), text.split(None, 2)
        if role is not None and words and words[0] in ANSWERS:
            from clawlite.core.protocol.channel_answers import find

            asking = lambda number: self._asking(channel, number, asks)
            by = "%s/%s" % (channel.name, actor)
            task, said = find(self._agent, words, role == ADMIN, asking, now, by)
            del find
            drop(_RARE)
            if task is None:
                self._answer(id, said, "")
            else:
                approves = words[0] == "/approve"
                self._answer(id, "Approved." if approves else "Denied.", "")
                self._log("approval", channel, actor, words[0][1:])
                self._agent.answer(task, approves, by + " said no", now, by)
            return
        # a board may not know the time of day, and a code expires by the time since it has begun
        verdict = channel.access.judge(actor, text, now, now // 1000)
        if verdict.role is None:
            self._log("refused", channel, actor, verdict.why)
            self._answer(id, verdict.said, verdict.why)
            return
        for command in self._commands if words else ():
            lines = command(words, role == ADMIN)
            if lines is not None:
                self._answer(id, join_lines([self._without_secrets(line) for line in lines]), "")
                return
        if len(self._runs) >= _AT_ONCE:
            self._answer(id, "Too many messages wait already. Nothing was done.", "busy")
            return
        self._begin(_Run(channel, id, actor, role), talk, text)

    # -- turns

    def _begin(self, run, talk: str, text: str):
        from clawlite.core.turns.turn_output import TurnOutput, keep_output

        agent, channel = self._agent, run.channel
        into, done = TurnOutput(_MOST), []

        def finish(_, error, now_ms: int):
            done.append(True)
            for number in list(self._runs):
                if self._runs[number] is run:
                    del self._runs[number]
            said = into.text()
            if error:
                why = _text_of(error)
                said = said + "\n" + why if said else why
                self._log("failed", channel, run.actor, why)
            self._answer(run.id, self._without_secrets(said), "failed" if error else "")

        self._log("turn", channel, run.actor)
        try:
            caller = "%s/%s" % (channel.name, run.actor) if run.actor else channel.name
            work = self._work(run, talk, text, caller)
            work = keep_output(work, caller, into, lambda effect: self._begins(run, effect))
            number = agent.begin(work, finish, self.device.now_ms(), agent.image.agent.turn_ms)
        except Exception as e:
            if not done:
                finish(None, e, 0)
            return
        if not done:
            self._runs[number] = run

    def _work(self, run, talk: str, text: str, caller: str):
        """Return the generator of a turn, with a skill when *text* names one."""
        from clawlite.core.turns.turn_output import call_for, refuse_for
        from clawlite.core.turns.turn import turn
        from clawlite.core.image.image import SKILLS

        agent, history = self._agent, self._history(run.channel.name, talk)
        if text.strip() == "/new":
            return history.renew()
        if talk and run.role != VIEWER:
            history.speaker = caller, run.role == ADMIN
        how = refuse_for(caller) if run.role == VIEWER else call_for(caller)
        if text.startswith("/") and agent.image.size_of(SKILLS):
            from clawlite.core.agent.skillturn import begin, parse
            from clawlite.core.turns.gates import PERSON

            asked = parse(agent.image, text)
            if asked and run.role == VIEWER:
                raise PolicyDenied("%s is a viewer, and a viewer begins no skill" % caller)
            if asked:
                person = "%s (%s)" % (PERSON, caller)
                return begin(agent.setup, asked, agent.chain(), history, how, person)
        return turn(agent.setup, text, agent.chain(), history, how)

    def _history(self, name: str, talk: str):
        """Return the ``History`` of the conversation *talk*; "": of an event, which has none."""
        from clawlite.core.turns.history import History

        for at in range(len(self._talks)):
            if self._talks[at][:2] == (name, talk):
                self._talks.append(self._talks.pop(at))
                return self._talks[-1][2]
        history = History(self._agent.setup.keep_bytes)
        if talk:
            self._talks = self._talks[1 - _TALKS :] + [(name, talk, history)]
        return history

    def _begins(self, run, effect: tuple):
        """The turn of *run* comes to *effect* (``turn_output.keep_output``)."""
        if run.may == "":
            return True
        if effect[KIND] != RUN or not effect[TOOL].flags & HAS_SIDE_EFFECTS:
            return False
        return self._act(run, effect[TOOL].name)

    def _act(self, run, tool: str):
        """A generator: wait until the gateway has put on record that *tool* begins."""
        run.tool, run.may = tool, None
        self._tell_act(run)
        while run.may is None:
            yield (SLEEP, _LOOK_MS)
        if run.may:
            raise InvalidRequest(run.may)

    def _tell_act(self, run):
        self._uplink.notify("acts", {"id": run.id, "tool": run.tool})

    # -- approvals

    def _note_change(self, _, now_ms: int):
        """Another approval waits, or waits no more."""
        self._changed = True

    def _announce(self, now_ms: int):
        """Put each new approval that waits to the admins, and tell them how it has ended."""
        put, self._put = self._put, []
        for task in self._agent.waiting:
            known = [one for one in put if one.approval is task.approval]
            if known:
                self._put.append(known[0])
                put.remove(known[0])
            else:
                self._count += 1
                question = _Question(task.approval, "%s-q%d" % (self._boot, self._count))
                self._put.append(question)
                self._put_question(task, question, now_ms)
        for question in put:
            self._say_end(question)

    def _remind(self, question, now_ms: int):
        for task in self._agent.waiting:
            if task.approval is question.approval:
                self._put_question(task, question, now_ms, "Reminder. ")

    def _find_admins(self) -> list:
        """Return [(channel, admin)] of those who are asked."""
        found = []
        for channel in self.all:
            if self._to is None or channel.name in self._to:
                found += [(channel, admin) for admin in channel.admins()]
        return found

    def _put_question(self, task, question, now_ms: int, first: str = ""):
        from clawlite.core.protocol.channel_answers import describe

        run = self._runs.get(task.number)
        said, more = describe(task, now_ms)
        del describe
        drop(_RARE)
        said = first + self._without_secrets(said) + more
        for channel, admin in self._find_admins():
            is_here = run and run.channel is channel and run.actor == admin
            self._say(channel, admin, said, run.id if is_here else None, "asks", question.id)
        if run and run.role != ADMIN and not first:
            self._say(run.channel, run.actor, "This waits for approval.", run.id)

    def _say_end(self, question):
        """Tell how *question* has ended; a channel also to take its buttons away."""
        from clawlite.core.protocol.channel_answers import end_text

        said, by = self._without_secrets(end_text(question.approval)), question.approval.by
        del end_text
        drop(_RARE)
        for channel, admin in self._find_admins():
            actor = "" if by == "%s/%s" % (channel.name, admin) else admin
            self._say(channel, actor, said, None, "ended", question.id)

    def _asking(self, channel, number: int, asks):
        """Return the task that waits for the question *number*, which admins of *channel* answer,
        else None; *asks*: the id of the question that a button was below, or None.
        """
        is_here = self._to is None or channel.name in self._to
        for task in self._agent.waiting if is_here else ():
            if task.approval.number == number:
                known = [one.id for one in self._put if one.approval is task.approval]
                return task if asks is None or asks in known else None
        return None

    # -- to the gateway

    def _answer(self, id: str, text: str, why: str):
        self._send("reply", {"id": id, "text": text, "why": why})

    def _say(self, channel, actor: str, text: str, of=None, about="", question=""):
        """Send *text* to *actor*; of: the id of the message where they read it, or None.  It
        "asks" the *question* with that id, or tells how that has "ended", or is *about* neither.
        """
        self._count += 1
        params = {"id": "%s-s%d" % (self._boot, self._count), "channel": channel.name}
        params["actor"], params["text"] = actor, text
        if of:
            params["of"] = of
        if about:
            params[about] = question
        self._send("say", params)

    def say(self, name: str, actor: str, text: str):
        """Send *text* to *actor* of the channel *name*."""
        for channel in self.all:
            if channel.name == name:
                self._say(channel, actor, text)

    def _send(self, name: str, params: dict):
        """Let ``tick`` send what the gateway has to confirm."""
        self._waiting.append((name, params))
        size = 0
        for _, waiting in self._waiting:
            size += _EACH + len(waiting["text"])
        while size > _KEPT and len(self._waiting) > 1:
            size -= _EACH + len(self._waiting[0][1]["text"])
            self._waiting.pop(0)
            self._is_sent = False

    def _without_secrets(self, text: str) -> str:
        return self.device.guard.text(text) if self.device.guard else text

    def _log(self, what: str, channel, actor: str, reason: str = ""):
        event = {"event": "channel." + what, "channel": channel.name, "actor": actor}
        if reason:
            event["reason"] = reason
        self._agent.emit((LOG, event))

    def _command(self, words: list):
        """Return the lines of the console's commands /channels and /pair, None for another."""
        if words[0] not in ("/help", "/channels", "/pair"):
            return None
        from pairing import command

        lines = command(self, words)
        del command
        drop(_RARE)
        return lines


def _text_of(error) -> str:
    error = error if isinstance(error, ClawError) else wrap_error(error)
    return "%s.%s" % (error.message.rstrip("."), " Next: %s." % error.hint if error.hint else "")


def _draw(count: int) -> bytes:
    """Return *count* random bytes."""
    data = b""
    while len(data) < count:
        data += random_bytes()
    return data[:count]
