"""``clawlite channels relay``: one process that speaks to the platforms of channels of boards
behind a gateway.  The gateway starts it, and speaks to it in lines of JSON; ``device`` is in each.

    to it    {"here": path of the device's image}: the board is connected, now or again
             {"gone": true}: it is not any more
             {"reply": id, "text", "why"}   {"acts": id, "tool"}   {"unknown": id}
             {"say": id, "channel", "actor", "text", "of", "asks", "ended"}: as the board has sent
             them
             {"refused": id, "why": sentence}: the board cannot take this message
    from it  {"send": name of a record, "params"} for the board   {"event": of the log}
             {"note": for who runs the gateway}   {"unable": why, "hint"}: nothing is carried

1. Platforms are asked only while the board is there, so messages wait there, as they do for an
   agent on Linux that does not run.  Keys stay here.
2. The board judges who may speak.  Strangers of a fixed list are refused here already, and texts
   that are too long.
3. A message that is on record (delivery.py) is sent to the board again until its answer has come.
   A board that does not know it any more was reset: then it begins again, or is given up.
"""

import os
import re
import select
import sys
from binascii import crc32
from collections import deque
from functools import partial
from types import SimpleNamespace
from typing import Any

from clawlite.core.base.effect import KIND, LOG, OPEN, RUN, TEXT
from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import CHANNELS, HAS_SIDE_EFFECTS
from clawlite.core.policy.access import ALLOWLIST, ANSWERS, ROLES, USER, Access
from clawlite.core.policy.access import OPEN as EVERYBODY
from clawlite.linux.approvals.buttons import MAX_QUESTIONS
from clawlite.linux.channels.channel import Channel
from clawlite.linux.channels.channels import Channels
from clawlite.linux.channels.inbox import Item
from clawlite.linux.files.files import image_of, state_folder
from clawlite.linux.io.jsontext import document, loads
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.memory.memory import wall_ms

AT_ONCE = 2  # messages whose turns are under way on one board: as many as it takes
MAX_EARLY = 64  # answers to messages that were not read from the disk yet
_PIECE, _MOST = 1 << 20, 1 << 28
_EVENT = 1  # of LOG
_CARRIED = 6  # position in the record of a channel that a gateway carries: may it name admins
_ACTOR, _TEXT, _TO, _TALK = range(1, 5)  # of a job
_ANSWERS = re.compile(r"\nAnswer with /approve ([0-9]{1,12})[^\n]*\Z")  # ends a question
_SAY_ID = re.compile(r"([0-9a-f]{8})-s([1-9][0-9]{0,9})")
RESET = "The board was restarted: what it had begun for this message is not known."


class Run:
    """A message that the board has, or is to get.

    key       of its channel's overlap;  is_queued: it has one
    is_again  the board may know it
    """

    is_sent = is_again = False
    question: Any = None  # the ``BoardQuestion`` that a button of this run is about

    def __init__(self, channel, id: str, job: tuple, key=None, is_queued: bool = False):
        self.channel, self.id, self.job = channel, id, job
        self.key, self.is_queued = key, is_queued


class BoardQuestion:
    """A question of a board that was put with buttons: it stands for the task that waits there, and
    for its approval.

    id      of the question, as the board has it
    answer  the words of the command, "/approve 3" without the verb: "3"
    """

    form = None

    def __init__(self, id: str, number: int, answer: str):
        self.id, self.number, self.answer, self.approval = id, number, answer, self


class RelayedChannel(Channel):
    """A channel whose messages go to a board.  channels: ``BoardChannels``."""

    def __init__(self, channels, record: list, draw):
        self._may_admin = record[_CARRIED]
        super().__init__(channels, record, draw)
        self._lost = set()  # numbers of items that the board does not know
        self._questions: dict = {}  # id -> BoardQuestion, that was put first is first
        self._put: deque = deque(maxlen=MAX_QUESTIONS)  # marks of questions that were put

    def _make_access(self, access: list, draw, paired) -> Access:
        length, *_ = self.processing
        mode, details = access
        if mode == ROLES and not self._may_admin:
            details = [[actor, min(role, USER)] for actor, role in details]
        known = [mode, details] if mode in (ALLOWLIST, ROLES) else [EVERYBODY, None]
        return Access(known, [length, None, None], draw)

    def takes_up(self, item) -> bool:
        if item.number in self._lost or not (item.begun or item.acted):
            return False
        job = None, item.actor, item.text, item, ""
        self.channels.take_up(Run(self, _id_of(self, item), job))
        return True

    def _begin_turn(self, key, job: tuple):
        to = job[_TO]
        is_kept = isinstance(to, Item) and to.number
        id = _id_of(self, to) if is_kept else self.channels.new_id(self)
        if is_kept:
            self._lost.discard(to.number)
        self.log("turn", actor=job[_ACTOR])
        self.channels.send(Run(self, id, job, key, True))

    def _answer(self, actor: str, words: list, to) -> bool:
        if self.access.role(actor) is None or words[0] not in ANSWERS:
            return False
        job = None, actor, " ".join(words), to, actor
        self.channels.send(Run(self, self.channels.new_id(self), job), True)
        return True

    def counts_try(self, run: Run):
        """Put on record that the board gets *run*."""
        if hasattr(self._source, "begins") and isinstance(run.job[_TO], Item):
            self._source.begins(run.job[_TO], (OPEN,))

    def acts(self, run: Run, tool: str) -> str:
        """Put on record that *tool* begins for *run*; return "", or why it must not."""
        to = run.job[_TO]
        if self._source is None:
            return "the channel %s is closed" % self.name
        if not hasattr(self._source, "begins") or not isinstance(to, Item):
            return ""
        effect = RUN, SimpleNamespace(name=tool, flags=HAS_SIDE_EFFECTS)
        try:
            self._source.begins(to, effect)
        except ClawError as e:
            return e.message
        return ""

    def end(self, run: Run, text: str, why: str):
        """The board has answered *run*; *why*: "", "failed", or why it is refused."""
        if run.is_queued:
            self._overlap.release(run.key)
        if why:
            self.log("failed" if why == "failed" else "refused", actor=run.job[_ACTOR], reason=why)
        if self._source is None:
            return
        if run.question:
            self._end_tap(run, text)
        elif why not in ("", "failed") and hasattr(self._source, "refuse"):
            self._source.refuse(run.job[_TO], why, text)
        else:
            self._source.reply(run.job[_TO], text, True, why == "failed")
        self._begin_turns()

    def lose(self, run: Run):
        """The board does not know *run*: it was reset."""
        to = run.job[_TO]
        if isinstance(to, Item) and to.number and hasattr(self._source, "put_back"):
            if run.is_queued:
                self._overlap.release(run.key)
            self._lost.add(to.number)
            self._source.put_back(to, False)
        else:
            self.end(run, RESET, "failed")

    # -- questions

    def _ask(self, actor: str, text: str, mark: tuple, run, id: str) -> bool:
        """Put the question *id* of the board with buttons, once for each *mark*; return False where
        there are none.
        """
        number = _ANSWERS.search(text)
        if not number or not hasattr(self._source, "ask"):
            return False
        if mark not in self._put:
            self._put.append(mark)
            question = self._questions.get(id)
            if question is None:
                question = BoardQuestion(id, self.channels.count_question(), number[1])
                self._questions[id] = question
                while len(self._questions) > MAX_QUESTIONS:
                    del self._questions[next(iter(self._questions))]
            self._source.ask(run.job[_TO] if run else actor, text, "", question)
        return True

    def _end_asked(self, id: str, text: str) -> bool:
        """Put *text* in the place of the buttons below the question *id*; return whether it had
        any.
        """
        question = self._questions.get(id)
        if question is None:
            return False
        self._source.end_question(question, text)
        return True

    def find_asked(self, number: int):
        return next((one for one in self._questions.values() if one.number == number), None)

    def decide(self, task, actor: str, approves: bool, rest: str = "") -> str:
        """Ask the board to answer what the button is below; it says what became of that."""
        self._tap(task, actor, "/approve" if approves else "/deny", actor)
        return "Sent to the board."

    def show_below(self, task, actor: str, chat: str):
        self._tap(task, actor, "/show", chat)

    def _tap(self, question: BoardQuestion, actor: str, verb: str, chat: str):
        job = None, actor, "%s %s" % (verb, question.answer), chat, actor
        run = Run(self, self.channels.new_id(self), job)
        run.question = question
        self.channels.send(run, True)

    def _end_tap(self, run: Run, text: str):
        """The board has answered a tap.  An answer that counts is told in the question's place."""
        if run.job[_TEXT].startswith("/show"):
            self._source.ask(run.job[_TO], text, "", run.question)
        elif text not in ("Approved.", "Denied."):
            self._source.reply(run.job[_TO], text, False)

    def say(self, actor: str, text: str, mark: tuple, run, asks: str = "", ended: str = ""):
        """Send *text* to *actor*; run: where its message came from, or None.

        asks, ended  the question that *text* puts, or whose end it tells; or ""
        """
        if self._source is None:
            self.log("dropped", actor=actor, reason="the channel is not open")
        elif asks and self._ask(actor, text, mark, run, asks):
            return
        elif ended and self._end_asked(ended, text) or not actor:
            return
        elif run:
            self._source.reply(run.job[_TO], text, False)
        elif hasattr(self._source, "say"):
            self._source.say(actor, text, mark)


def _id_of(channel, item: Item) -> str:
    """Return an id that no other message of any time has."""
    what = "\0".join((item.actor, item.text)).encode("utf-8", "surrogatepass")
    return "%s-%d-%08x" % (channel.name[:32], item.number, crc32(item.correlation, crc32(what)))


class BoardChannels(Channels):
    """The channels of the board *device*, whose image is *image*; *tell*: function(record) to the
    gateway; *wake*: as ``Channels`` has it.
    """

    def __init__(self, image, tell, wake: int):
        self._tell = tell
        self._runs, self._early = {}, {}  # id -> Run; id -> what to do with that
        self._next = deque()  # Runs that are to be sent
        self._nonce, self._count, self._questions = os.urandom(4).hex(), 0, 0
        agent = SimpleNamespace(
            image=image, effects=[], commands=[], waiting=[], tasks={}, is_ready=True
        )
        agent.setup = SimpleNamespace(guard=None, confirm=None)
        folder = os.path.join(state_folder(image.agent.name), "channels")
        super().__init__(agent, now_ms, wall_ms, os.urandom, folder, wake, True)

    def _make_channels(self) -> list:
        section = self.agent.image.section(CHANNELS) or ()
        return [
            RelayedChannel(self, record, self.draw) for record in section if len(record) > _CARRIED
        ]

    def flush(self):
        """Tell the gateway what the channels have logged and shown."""
        effects, self.agent.effects[:] = list(self.agent.effects), []
        for effect in effects:
            if effect[KIND] == LOG:
                self._tell({"event": effect[_EVENT]})
            else:
                self._tell({"note": effect[TEXT]})

    def count_question(self) -> int:
        """Return the number of one more question with buttons."""
        self._questions += 1
        return self._questions

    def new_id(self, channel) -> str:
        """Return an id of a message that is not on record."""
        self._count += 1
        return "%s-v%d-%s" % (channel.name[:32], self._count, self._nonce)

    # -- to the board

    def come_back(self):
        """The board is there again, and may have been reset meanwhile."""
        self.greet()
        for run in self._runs.values():
            if run.is_sent:
                run.is_again = True
                self._send_message(run)
        self._send_next()

    def greet(self):
        """Tell the board that it is heard here: it sends what has not been confirmed."""
        self._tell({"send": "channels", "params": {"text": ""}})

    def take_up(self, run: Run):
        """Learn from the board what became of *run*, which an earlier process has sent."""
        run.is_sent = run.is_again = True
        self._runs[run.id] = run
        early = self._early.pop(run.id, None)
        if early:
            early()
        if run.id in self._runs:
            self._send_message(run)

    def send(self, run: Run, at_once: bool = False):
        """Send *run* when it is its turn; *at_once*: now."""
        self._runs[run.id] = run
        if at_once:
            run.is_sent = True
            self._send_message(run)
        else:
            self._next.append(run)
            self._send_next()

    def _send_next(self):
        under_way = sum([run.is_sent for run in self._runs.values()])
        while self._next and under_way < AT_ONCE:
            run = self._next.popleft()
            under_way += 1
            run.is_sent = True
            run.channel.counts_try(run)
            self._send_message(run)

    def _send_message(self, run: Run):
        _, actor, text, _, talk = run.job
        params = {"id": run.id, "channel": run.channel.name, "actor": actor, "text": text}
        params["talk"] = "" if run.channel.is_trigger else talk
        if run.question:
            params["asks"] = run.question.id
        if run.is_again:
            params["again"] = True
        self._tell({"send": "spoke", "params": params})

    def _answer_board(self, name: str, id: str, text: str = ""):
        self._tell({"send": name, "params": {"id": id, "text": text}})

    # -- from the board

    def reply(self, id: str, text: str, why: str):
        run = self._runs.pop(id, None)
        if run:
            run.channel.end(run, text, why)
        else:
            self._keep_early(id, partial(self.reply, id, text, why))
        self._answer_board("heard", id)
        self._send_next()

    def acts(self, id: str, tool: str):
        run = self._runs.get(id)
        if run:
            self._answer_board("acted", id, run.channel.acts(run, tool))
        elif "-v" in id:
            self._answer_board("acted", id, "nobody waits for this message any more")
        else:
            self._keep_early(id, partial(self.acts, id, tool))

    def _keep_early(self, id: str, work):
        """Keep *work* for a message that may not have been read from the disk yet."""
        self._early[id] = work
        while len(self._early) > MAX_EARLY:
            del self._early[next(iter(self._early))]

    def unknown(self, id: str):
        run = self._runs.pop(id, None)
        if run:
            run.channel.lose(run)
        self._send_next()

    def say(self, id: str, name: str, actor: str, text: str, of, asks: str, ended: str):
        known = _SAY_ID.fullmatch(id)
        for channel in self.all:
            if channel.name == name and known:
                mark = int(known[2]), "board " + known[1]
                channel.say(actor, text, mark, self._runs.get(of), asks, ended)
        self._answer_board("heard", id)


class Relay:
    """The boards of one gateway, by the name of their device."""

    def __init__(self):
        self._boards, self._rest = {}, b""
        self._wake = os.pipe()
        for fd in self._wake:
            os.set_blocking(fd, False)

    def run(self) -> int:
        """Serve until the end of the input; return the exit code."""
        try:
            while True:
                times = [board.deadline() for board in self._boards.values()]
                first = min([at for at in times if at is not None], default=None)
                wait = None if first is None else max(0, first - now_ms()) / 1000
                ready, _, _ = select.select([sys.stdin.fileno(), self._wake[0]], [], [], wait)
                if self._wake[0] in ready:
                    os.read(self._wake[0], _PIECE)
                if sys.stdin.fileno() in ready and not self._read():
                    return 0
                for board in self._boards.values():
                    board.poll()
                    board.flush()
                sys.stdout.flush()
        except KeyboardInterrupt:
            return 130
        finally:
            for board in self._boards.values():
                board.close()

    def _read(self) -> bool:
        """Take what the gateway says; return False at the end of the input."""
        data = os.read(sys.stdin.fileno(), _PIECE)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take(loads(line))
        return bool(data)

    def _take(self, record: dict):
        device = record["device"]
        board = self._boards.get(device)
        if "here" in record:
            if board is None:
                self._open(device, record["here"])
            else:
                board.come_back()
        elif board is None:
            return
        elif "gone" in record:
            board.drain()
            board.close()
            board.flush()
            del self._boards[device]
        elif "reply" in record:
            board.reply(record["reply"], record["text"], record["why"])
        elif "acts" in record:
            board.acts(record["acts"], record["tool"])
        elif "unknown" in record:
            board.unknown(record["unknown"])
        elif "refused" in record:
            board.reply(record["refused"], record["why"], "length")
        else:
            fields = ("say", "channel", "actor", "text", "of", "asks", "ended")
            said = [record[field] for field in fields]
            board.say(*said)

    def _open(self, device: str, path: str):
        def tell(record: dict):
            print(document(dict(record, device=device)))

        try:
            with open(path, "rb") as file:
                image = image_of(file.read(_MOST), path)
            agent = image.agent.name
            for other, board in self._boards.items():
                if board.agent.image.agent.name == agent:
                    raise ClawError(
                        "the channels of %s are those of %s already" % (agent, other),
                        "give each of the two a name of its own, in metadata of claw.yaml",
                    )
            self._boards[device] = BoardChannels(image, tell, self._wake[1])
            self._boards[device].greet()
        except (ClawError, OSError) as e:
            tell({"unable": str(getattr(e, "message", e)), "hint": getattr(e, "hint", "")})


def run() -> int:
    """Carry the channels of boards, which come from standard input; return the exit code."""
    return Relay().run()
