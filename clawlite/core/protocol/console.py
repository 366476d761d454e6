"""The console: it takes a person's lines and returns text.  It asks the person for approvals and
takes the answers (``_put_approval``, ``_answer_approval``); core/policy/approval.py writes the
questions.

1. Whatever a person types is text, even ``{``.
2. There is one turn at a time; lines that come meanwhile wait.
3. While an approval waits, the next line answers it, unless it is a command.  Only ``y`` and
   ``yes`` approve, and on a terminal a line that was typed before the question never does.  What
   a model says may look like a question: a line that follows it does not approve, and the open
   question is put again below.  ``/approve N`` and ``/deny N`` answer the question with that number
   at any time, and no other one.
4. No line is lost silently.
"""

from clawlite.core.base.effect import EXIT, PROMPT, SAY, TELL
from clawlite.core.base.errors import ClawError, InvalidRequest, wrap_error
from clawlite.core.image.image import SKILLS
from clawlite.core.base.printable import escape_ends, join_lines
from clawlite.core.base.render import canonical
from clawlite.core.turns.turn import turn

MAX_WAITING = 32  # lines
_ANSWERS = ("y", "yes", "n", "no", "")
_HERE = "console"  # who has answered
# a skill with the name of one of these is begun with /skill NAME
_COMMANDS = (
    "/help",
    "/tools",
    "/trace",
    "/show",
    "/memory",
    "/status",
    "/skills",
    "/rules",
    "/readings",
    "/new",
    "/quit",
)
_RENEW = "/new"
# codes of ``Denied``, the first and the last: its class is not in a board's memory
_DENIED_FROM, _DENIED_TO = -32013, -32010
_BEGINNING = 0  # stands for a turn that has no task number yet; tasks count from 1


class Console:
    """One person's console.

    agent  ``agent.Agent``
    ahead  bool, lines that came before the question may answer it: True for a script on a pipe
    once   bool, leave after the first turn
    answers  function(agent, task, now_ms) -> bool, or None.  True: it has answered, and nobody is
           asked
    """

    def __init__(self, agent, ahead: bool = False, once: bool = False, answers=None):
        self.agent = agent
        self._ahead = ahead
        agent.on_wait.append(self._put_approval)
        agent.keep_calls()
        self.clean = True  # False once a tool or a policy refused something in a turn
        self.failed = False  # True once a turn ended with an error
        self.tool_failed = False  # True once the last tool call of a turn failed
        self.interrupted = False  # True once Ctrl-C ended a turn
        self.once = once
        self._answers = answers
        self.on_turn = []  # functions(messages of a turn), at its end
        self._lines = []
        self.history = None  # history.History, from the first turn on
        # the turn that on_turn was last called with: a message that is refused begins none
        self._told = None
        self.turn = None  # number of the current turn's task, or None
        self._put = None  # the approval whose question was asked last
        self._closing = False
        self._left = False

    def greet(self):
        """Say that the agent is ready."""
        agent = self.agent.image.agent
        self._say(
            "%s%s is ready. /help lists the commands."
            % (agent.name, " " + agent.version if agent.version else "")
        )
        self._prompt()

    @property
    def is_busy(self) -> bool:
        """True while a turn is under way or lines wait."""
        return self.turn is not None or len(self._lines) > 0

    def line(self, text: str, now_ms: int, early: bool = False):
        """Take one line that a person typed, at most the channel's ``max_message_length``
        characters.

        early  it was typed before the open question, so it does not answer it
        """
        limit = self.agent.image.agent.max_message
        if len(text) > limit:
            self._say(
                "That is %d characters; a message has at most %d. Nothing was done."
                % (len(text), limit)
            )
            self._prompt()
        elif text.split(None, 1)[:1] in (["/approve"], ["/deny"]):
            self._answer_number(text.split(None, 2), now_ms)
        elif self._asking() and not early:
            self._answer_approval(self._asking(), text, now_ms)
        elif len(self._lines) >= MAX_WAITING:
            self._say(
                "%d lines wait already; this one was dropped: %s"
                % (MAX_WAITING, canonical(text, 40))
            )
        else:
            self._lines.append(text)
            self._work(now_ms)

    def too_long(self, size: int, limit: int):
        """Say that the framer dropped a line."""
        self._say("That line has %d bytes; at most %d fit. Nothing was done." % (size, limit))
        self._prompt()

    def not_text(self):
        """Say that a line was no UTF-8."""
        self._say("That line is not UTF-8 text. Nothing was done.")
        self._prompt()

    def interrupt(self, now_ms: int) -> bool:
        """End the current turn (Ctrl-C) and forget waiting lines; return False when there was
        nothing to end.
        """
        dropped = len(self._lines)
        self._lines = []
        if self.turn is None:
            return dropped > 0
        self.interrupted = True
        self.agent.cancel(self.turn, InvalidRequest("Interrupted"), now_ms)
        return True

    def close(self, now_ms: int):
        """No more lines will come: process the waiting ones, deny open questions, then leave."""
        self._closing = True
        self._work(now_ms)

    def go_on(self, error, now_ms: int, is_told: bool):
        """Continue after memory ran out.  *is_told*: the person whose work was dropped has already
        been told.
        """
        self._put = None
        if self.turn is not None and self.turn not in self.agent.tasks:
            self.turn, is_told = None, False
        if not is_told:
            self._end_turn(None, error, now_ms)
        elif self._asking():
            self._put_approval(self._asking(), now_ms)

    def tell(self, text: str):
        """Show a text that is not part of an answer."""
        self.agent.effects.append((TELL, text))

    def _say(self, *lines):
        """Say *lines*, each one line, whatever strangers have written into it."""
        self.agent.effects.append((SAY, join_lines(lines)))

    def _prompt(self):
        asking = self._asking()
        if asking and asking.approval is not self._put:
            return  # its question comes next, with a prompt of its own
        self._put = asking and asking.approval
        if asking or not (self.once or self._closing):
            self.agent.effects.append(
                (
                    PROMPT,
                    escape_ends(
                        asking.approval.prompt if asking else self.agent.image.agent.prompt
                    ),
                )
            )

    def _asking(self):
        for task in self.agent.waiting:
            if not (self._ahead and task.approval.form):  # a script cannot fill in a form
                return task
        return None

    def _work(self, now_ms: int):
        while True:
            task = self._asking()
            if task and self._ahead and self._lines and self._lines[0].strip().lower() in _ANSWERS:
                self._answer_approval(task, self._lines.pop(0), now_ms)
            elif task and self._closing:
                self._answer_approval(task, None, now_ms)
            elif task or self.turn is not None:
                return
            elif self._lines:
                self._take(self._lines.pop(0), now_ms)
            else:
                break
        if (self._closing or self.once) and not self._left:
            self._left = True
            self.agent.effects.append((EXIT, 0))

    def _take(self, text: str, now_ms: int):
        text, asked = text.strip(), None
        is_command = text.startswith("/") and not (
            self.agent.setup.teach is not None and text.split()[0] == "/teach"
        )
        if is_command:
            try:
                if self.agent.image.size_of(SKILLS) and text.split()[0] not in _COMMANDS:
                    from clawlite.core.agent.skillturn import parse

                    asked = parse(self.agent.image, text)
                if asked:
                    pass
                elif "\n" in text:  # several lines that were pasted are a message
                    is_command = False
                elif text.split()[0] == "/quit":
                    self._closing = True
                elif text.split()[0] == _RENEW:
                    asked = _RENEW
                else:
                    from clawlite.core.protocol.commands import run

                    for lines in run(text, self.agent, self.history):
                        self._say(*lines)
            # an image may be damaged in a part that is rarely read: the session goes on
            except Exception as e:
                self._say(error_text(e))
        if not text or is_command and not asked:
            pass
        elif not self.agent.is_ready:
            self._say("The agent is %s." % self.agent.lifecycle.state)
        else:
            refusal = self.agent.setup.channels.admit(now_ms) if self.agent.setup.channels else ""
            if not refusal:
                self._begin(text, now_ms, asked)
                return
            self._say(refusal)
        self._prompt()

    def _begin(self, text: str, now_ms: int, asked=None):
        self.turn = _BEGINNING
        try:
            agent = self.agent
            chain = agent.chain()
            if self.history is None:
                from clawlite.core.turns.history import History

                self.history = History(agent.setup.keep_bytes)
                self.history.speaker = _HERE, True
            if asked == _RENEW:
                work = self.history.renew()
            elif asked:
                from clawlite.core.agent.skillturn import begin

                work = begin(agent.setup, asked, chain, self.history)
            else:
                work = turn(agent.setup, text, chain, self.history)
            if agent.setup.lasting:
                work = agent.setup.lasting(work, self.history, self.once)
            number = agent.begin(work, self._end_turn, now_ms, agent.image.agent.turn_ms)
        except Exception as e:
            self._end_turn(None, e, now_ms)
            return
        if self.turn is not None:  # a turn without tools has ended before begin returns
            self.turn = number

    def _end_turn(self, clean, error, now_ms: int):
        beginning = self.turn == _BEGINNING
        self.turn = None
        if error:
            if isinstance(error, ClawError) and _DENIED_FROM <= error.code <= _DENIED_TO:
                self.clean = False
            else:
                self.failed = True
            self.tell(error_text(error))
        elif not clean:
            self.clean = False
        elif self.history and _has_failed(self.history.turn):
            self.tool_failed = True
        turn = self.history and self.history.turn
        if self.on_turn and turn and turn is not self._told:
            self._told = turn
            for hear in self.on_turn:
                hear(turn)
        asking = self._asking()
        if asking and asking.approval is self._put:
            self._put = None  # the turn's text stands below that question, and may look like one
            self._put_approval(asking, now_ms)
        else:
            self._prompt()
        if not beginning:  # else the loop that began it continues: no recursion per line
            self._work(now_ms)

    def _put_approval(self, task, now_ms: int):
        """Ask the question of *task*, which is now the first that waits.  None: the last question
        was answered, perhaps by somebody else.
        """
        if self._answers and task and self._answers(self.agent, task, now_ms):
            return
        if self._ahead:
            task = self._asking()
        approval = task and task.approval  # a task may ask twice
        if approval is self._put or task is not self._asking():
            return
        self._put = approval
        if task:
            self.agent.put_question()
            from clawlite.core.policy.approval import question

            self.agent.effects.append((SAY, question(task.approval, now_ms)))
        if task or self.turn is None:
            self._prompt()
            self._work(now_ms)

    def _answer_number(self, words: list, now_ms: int):
        """Answer the question that *words* name."""
        from clawlite.core.protocol.channel_answers import find

        task, said = find(self.agent, words, True, self._find, now_ms, _HERE)
        if task is None:
            self._say(said)
            self._prompt()
        else:
            self.agent.answer(task, words[0] == "/approve", "the person said no", now_ms, _HERE)

    def _find(self, number: int):
        for task in self.agent.waiting:
            if task.approval.number == number and not task.approval.form:
                return task
        return None

    def _answer_approval(self, task, line, now_ms: int):
        said = "" if line is None else line.strip().lower()
        form = task.approval.form
        if self.agent.has_spoken and not self._ahead and said and said[0] not in "n/":
            self._put = None
            self._say("An answer came below this question, which is put again:")
            self._put_approval(task, now_ms)
        elif form and (not said or said.split()[0] not in _COMMANDS[:-2]):
            tells, decided = form.read(line)
            if tells:
                self._say(*tells)
            if decided is None:
                self._prompt()
            else:
                self.agent.answer(task, decided, "", now_ms, _HERE)
        elif line is None or said in _ANSWERS[2:]:
            self.agent.answer(
                task,
                False,
                "nobody is at the console" if line is None else "the person said no",
                now_ms,
                _HERE,
            )
        elif said in _ANSWERS:
            self.agent.answer(task, True, "", now_ms, _HERE)
        elif said.split()[0] in _COMMANDS[:-2]:  # a person may look around before they answer
            self._take(line, now_ms)
        else:
            from clawlite.core.policy.approval import rest_s

            self._say(
                "Please answer y or n; the call waits (%d s left)." % rest_s(task.approval, now_ms)
            )
            self._prompt()


def error_text(error) -> str:
    """Return the text of an error for a person: what went wrong, and what to do next."""
    if not isinstance(error, ClawError):
        error = wrap_error(error)
    return escape_ends(
        "%s.%s" % (error.message.rstrip("."), " Next: %s." % error.hint if error.hint else "")
    )


def _has_failed(messages) -> bool:
    """Return whether the last tool in *messages*, those of a turn, ran and failed."""
    for message in reversed(messages or ()):
        if message.role == "tool":
            return getattr(message.result, "is_error", False)
    return False
