"""The channels of an agent beside its console (CKP 0.2.0, 5.3): who speaks there, the turns that begin there, and where answers go.

    source (cron.py, ...) -> Channel: access, overlap -> a turn, heard (hearing.py) -> the source's reply

1. The loop asks ``deadline`` and calls ``poll`` and ``settled``; nothing here waits.  2. A conversation is one actor's of one channel; a
trigger's run has none.  3. What asks first is put to the console and to the admins of the channel that it came by; only they approve.
4. The console's channel is here for its rate, and for the actors that an operator names (docs/adr/0044).
"""
from clawlite.core.effect import LOG, TELL
from clawlite.core.errors import ClawError, InvalidParams, PolicyDenied
from clawlite.core.history import History
from clawlite.core.image import CHANNELS
from clawlite.core.turn import turn
from clawlite.linux.access import ADMIN, OPEN, PAIRING, ROLE_NAMES, VIEWER, Access
from clawlite.linux.channel_state import State
from clawlite.linux.hearing import Heard, barred, calling, heard
from clawlite.linux.overlap import QUEUE, Overlap

CLI, CRON, WEBHOOK, TELEGRAM, MQTT = range(5)
MAX_ACTOR = 128                 # characters of an id
MAX_TALKS = 64                  # conversations of one channel that stay in memory
AT_ONCE, IN_LINE, ROOM = 4, 8, 256      # messages of people: under way, of one actor that wait, of all that wait
TRY_AGAIN_MS = 30000            # after a channel could not be opened


class Channels:
    """All of one agent's channels.

    agent    ``agent.Agent``
    now_ms, wall_ms    functions -> monotonic ms, ms since 1970
    draw     function(count) -> that many random bytes
    folder   where channels keep what they must know after a restart, or None
    wake     descriptor of a pipe that ends the loop's wait
    tells    bool, a person reads a console
    """

    def __init__(self, agent, now_ms, wall_ms, draw, folder=None, wake=None, tells: bool = False):
        self.agent, self.now_ms, self.wall_ms, self.folder, self.wake, self.tells = agent, now_ms, wall_ms, folder, wake, tells
        self.all = [Channel(self, record, draw) for record in agent.image.section(CHANNELS)]
        self._consoles = [channel for channel in self.all if channel.kind == CLI]
        self.runs = {}                  # number of a task -> (channel, key, job)
        self.lasts = len(self._consoles) < len(self.all)
        self._announced = set()
        agent.channels = self

    def poll(self):
        """Take what has come, and begin what is due."""
        for channel in self.all:
            if channel.kind != CLI and self.agent.is_ready:
                channel.poll()

    def settled(self):
        """Put what waits for approval to those who may approve it."""
        waiting = [task for task in self.agent.waiting if task.number in self.runs]
        for task in waiting:
            if id(task.approval) not in self._announced:
                channel, _, job = self.runs[task.number]
                channel.announce(task, job)
        self._announced = {id(task.approval) for task in waiting}

    def deadline(self):
        """Return the monotonic time of the next ``poll`` that matters, or None."""
        times = [channel.deadline() for channel in self.all] if self.agent.is_ready else []
        return min([at for at in times if at is not None], default=None)

    def close(self):
        for channel in self.all:
            channel.close()

    # -- what the core asks

    def admit(self, now_ms: int) -> str:
        """Count a message at the console; return what its person is told when it is too much, else ""."""
        for channel in self._consoles:
            verdict = channel.access.admit(now_ms)
            if verdict:
                return verdict.said
        return ""

    def permit(self, actor, approves: bool):
        """Let *actor*, whom an operator names, call a tool, or answer an approval.  Raises ``InvalidParams``, ``PolicyDenied``."""
        if not isinstance(actor, str) or not 0 < len(actor) <= MAX_ACTOR:
            raise InvalidParams("actor: expected a string of 1 to %d characters" % MAX_ACTOR)
        for channel in self._consoles:
            if channel.access.mode == OPEN:
                continue
            role = channel.access.role(actor)
            if role is None:
                raise PolicyDenied("channel %s: it does not admit %s" % (channel.name, actor[:60]), "", {"actor": actor})
            if role == VIEWER or approves and role != ADMIN:
                raise PolicyDenied("channel %s: %s is a %s, and %s" % (channel.name, actor[:60], ROLE_NAMES[role],
                                   "only an admin approves" if approves else "a viewer triggers no tool"), "",
                                   {"actor": actor, "role": ROLE_NAMES[role]})

    def command(self, words: list):
        """Return lines for a command of the console that is the channels', None for another."""
        if words[0] == "/channels":
            return [channel.about() for channel in self.all]
        if words[0] != "/pair":
            return None
        for channel in self.all if len(words) == 2 else ():
            actor = channel.access.pair(words[1], self.wall_ms() // 1000)
            if actor is not None:
                channel.state.data["paired"] = list(channel.access.paired)
                channel.keep(True)
                channel.log("paired", actor=actor)
                channel.source_reply(actor, "You are paired with this agent now.")
                return ["%s is paired with channel %s." % (actor, channel.name)]
        return ["/pair CODE: there is no such code, or it is too old. Whoever wants in sends a message to get another."]


class Channel:
    """One channel.

    record  [name, kind, access, processing, [max_parallel, overlap], own] of the image
    """

    def __init__(self, channels: Channels, record: list, draw):
        self.name, self.kind, access, self.processing, (most, policy), self._own = record
        self.channels, self.agent = channels, channels.agent
        self.now_ms, self.wall_ms, self.wake = channels.now_ms, channels.wall_ms, channels.wake
        self.state = State(channels.folder if self.kind != CLI else None, self.name)
        paired = self.state.data.get("paired")
        self.access = Access(access, self.processing, draw, [one for one in paired if isinstance(one, str)] if isinstance(paired, list) else ())
        self.is_trigger = self.kind in (CRON, MQTT)
        self._overlap = Overlap(most, policy) if self.is_trigger else Overlap(AT_ONCE, QUEUE, ROOM)
        self._talks = {}                # actor -> History, the one that was used last at the end
        self._source = None             # made at the first poll: READY does not wait for it
        self._open_ms = 0               # not before
        self._told = self._pumps = False

    def now_s(self) -> int:
        return self.wall_ms() // 1000

    def poll(self):
        if self._source is None and self.now_ms() >= self._open_ms:
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

    def close(self):
        if self._source:
            self._source.close()

    def about(self) -> str:
        """Return a line for a person."""
        mode = ("open", "allowlist", "pairing", "role-based")[self.access.mode]
        waits = ", %d wait to be paired" % self.access.waiting(self.now_s()) if self.access.mode == PAIRING else ""
        return "%-20s %s, %s%s" % (self.name, ("cli", "cron", "webhook", "telegram", "queue")[self.kind], mode, waits)

    # -- what sources tell

    def log(self, what: str, **more):
        self.agent.effects.append((LOG, dict({"event": "channel." + what, "channel": self.name}, **more)))

    def tell(self, text: str):
        """Say to whoever sits at the console what is this channel's."""
        if self.channels.tells:
            guard = self.agent.image.guard
            self.agent.effects.append((TELL, "[%s] %s" % (self.name, guard.text(text) if guard else text)))

    def trouble(self, what: str, hint: str = ""):
        """Something of this channel does not work now."""
        self.log("trouble", reason=what)
        self.tell("%s.%s" % (what.rstrip("."), " Next: %s." % hint if hint else ""))

    def keep(self, lasting: bool) -> bool:
        """Write the state of this channel."""
        wrong = self.state.save(lasting)
        if wrong:
            self.trouble(wrong, "make room for it, or make its folder writable")
        return not wrong

    def trigger(self, text: str):
        """An event that begins a run; it has no actor."""
        if len(text) > self.processing[0]:
            self.log("refused", reason="length")
        elif self.access.admit(self.now_ms()):
            self.log("refused", reason="rate")
        elif self._overlap.offer(None, (None, "", text, None)):
            self._pump()
        else:
            self.log("skipped")

    def message(self, actor: str, text: str, to) -> str:
        """A message of *actor*; *to*: what the source's ``reply`` is called with.  Return why it is refused (``Verdict.why``, or "busy"), or "".

        What its sender may know of that has been sent then.
        """
        if len(actor) > MAX_ACTOR:
            return "stranger"
        if text.startswith(("/approve", "/deny")) and self._answer(actor, text.split(), to):
            return ""
        verdict = self.access.judge(actor, text, self.now_ms(), self.now_s())
        if verdict.role is not None and (self._overlap.waits(actor) >= IN_LINE or not self._overlap.offer(actor, (verdict.role, actor, text, to))):
            verdict.role, verdict.why, verdict.said = None, "busy", "Too many messages wait already. Nothing was done."
        if verdict.role is None:
            self.log("refused", actor=actor, reason=verdict.why)
            if verdict.said:
                self._source.reply(to, verdict.said)
            return verdict.why
        self._pump()
        return ""

    def source_reply(self, to, text: str):
        """Say something that nobody has asked for; the console has no source."""
        if self._source:
            self._source.reply(to, text)

    # -- turns

    def _pump(self):
        """Begin what may begin now."""
        if self._pumps:                 # a turn without tools ends before ``begin`` returns: no recursion per message
            return
        self._pumps = True
        while True:
            ready = self._overlap.next()
            if ready is None:
                break
            self._begin(*ready)
        self._pumps = False

    def _begin(self, key, job: tuple):
        agent, (role, actor, text, _) = self.agent, job
        caller = "%s/%s" % (self.name, actor) if actor else self.name
        into, number, done = Heard(), None, []

        def ended(value, error, now_ms):
            done.append(True)
            self.channels.runs.pop(number, None)
            self._overlap.ended(key)
            self._ended(job, into, error)
            self._pump()
        self.log("turn", actor=actor)
        try:
            chain = agent.chain()
            history = self._history(actor) if actor else History(agent.keep_bytes)
            work = turn(agent.image, text, chain, history, barred(caller) if role == VIEWER else calling(caller))
            if agent.lasting:
                work = agent.lasting(work, history, not actor, caller if actor else "")
            number = agent.begin(heard(work, caller, into), ended, self.now_ms(), agent.image.agent.turn_ms)
        except Exception as e:
            if not done:
                ended(None, e, 0)
            return
        if not done:
            self.channels.runs[number] = (self, key, job)

    def _history(self, actor: str) -> History:
        history = self._talks.pop(actor, None) or History(self.agent.keep_bytes)
        while len(self._talks) >= MAX_TALKS:
            del self._talks[next(iter(self._talks))]
        self._talks[actor] = history
        return history

    def _ended(self, job: tuple, into: Heard, error):
        text = into.text()
        if error:
            said = "%s.%s" % (error.message.rstrip("."), " Next: %s." % error.hint if error.hint else "") if isinstance(error, ClawError) else \
                "%s: %s" % (type(error).__name__, error)
            text = text + "\n" + said if text else said
            self.log("failed", actor=job[1], reason=said)
        guard = self.agent.image.guard
        self._source.reply(job[3], guard.text(text) if guard else text, True, error is not None)

    # -- approvals

    def announce(self, task, job: tuple):
        """Say to the admins, and to whoever asked, that *task* waits."""
        from clawlite.core.approval import question
        asked = question(task.approval, self.now_ms())
        guard = self.agent.image.guard
        for admin in self.access.admins():
            self.source_reply(admin, "%s\nAnswer with /approve %d or /deny %d" % (guard.text(asked) if guard else asked, task.number, task.number))
        if job[0] is not None and job[0] != ADMIN:
            self._source.reply(job[3], "This waits for somebody's approval.", False)

    def _answer(self, actor: str, words: list, to) -> bool:
        """Take /approve N or /deny N of *actor*; return False for what is neither, and for a stranger's."""
        role = self.access.role(actor)
        if role is None or words[0] not in ("/approve", "/deny"):
            return False
        run = self.channels.runs.get(int(words[1])) if len(words) > 1 and words[1].isascii() and words[1].isdigit() and len(words[1]) < 12 else None
        task = self.agent.tasks.get(int(words[1])) if run and run[0] is self else None
        if role != ADMIN:
            said = "Only an admin approves."
        elif task is None or task.approval is None:
            said = "Nothing waits under that number."
        else:
            self.log("approval", actor=actor, tool=task.approval.tool.name, answer=words[0][1:])
            said = "Approved." if words[0] == "/approve" else "Denied."
            self.agent.answer(task, words[0] == "/approve", "%s/%s said no" % (self.name, actor), self.now_ms())
        self._source.reply(to, said)
        return True


def source_of(kind: int):
    """Return the class of a kind of channel; only what an image declares is loaded."""
    if kind == CRON:
        from clawlite.linux.cron import Cron
        return Cron
    if kind == WEBHOOK:
        from clawlite.linux.webhook import Webhook
        return Webhook
    from clawlite.linux.telegram import Telegram
    return Telegram
