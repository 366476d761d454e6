"""The person at a shell's console: what they read, and what they typed before a question."""

import os

from clawlite.core.base import effect as E
from clawlite.core.base.printable import escape_ends, escape_line, escape_name, printable
from clawlite.core.base.render import canonical
from clawlite.linux.io.stdio import MAX_LINE, Part, now_ms

MAX_SHOWN = 60  # characters of what a tool says of its progress


class ConsoleView(Part):
    """One person.

    shell  ``shell.Shell``: its screen and framer change when the first prompt is shown on a
           terminal that can edit lines
    """

    def __init__(self, shell):
        self._shell = shell
        self._first = True  # no prompt has been shown: the terminal is as it was found
        self._asked = None  # the approval whose question was put last
        # text of an answer that is not whole, where it waits for that
        self.waits = "" if shell.answers and not os.isatty(1) else None
        self._pieces = None  # pieces.Pieces, once an answer has come
        self._held = None  # redact_stream.RedactStream, where secrets are looked for
        self._wrap = None  # dress.StreamWrap, on a terminal whose lines are edited
        self.thinking = None  # thinking.Thinking, once a model was asked

    def deadline(self):
        return self.thinking and self.thinking.deadline()

    def close(self):
        if self.thinking:
            self.thinking.wipe()

    def table(self) -> dict:
        """Return {kind of effect: function(effect)} of what a person sees."""
        return {
            E.SAY: self._say,
            E.TELL: self._tell,
            E.WRITE: self._write,
            E.VOID: self._void,
            E.PROMPT: self._prompt,
        }

    def think(self):
        """Load what shows that something is at work."""
        from clawlite.linux.terminal.thinking import Thinking

        if self.thinking is None:
            self.thinking = Thinking(self._shell, now_ms)

    def tell_progress(self, task: int, progress):
        """Show how a call of the console's turn goes on, in one line that is overwritten."""
        tasks, number = self._shell.agent.tasks, self._shell.console.turn
        while number != task and number in tasks and tasks[number].child:
            number = tasks[number].child
        if number != task or task not in tasks:
            return
        self.think()
        if progress is None:
            self.thinking.wipe()
        else:
            self.thinking.show(progress_text(tasks[task].began, *progress))

    def update(self):
        """Bring the screen up to date: no effects are left."""
        self._ask_anew()
        if self.thinking:
            self.thinking.update()
        self._shell.screen.refresh()

    def _say(self, effect: tuple):
        """Show whole lines."""
        self.release()
        self._hear_out()
        self._show(effect[E.TEXT], self._is_new_question(effect[E.TEXT]))

    def _is_new_question(self, text: str) -> bool:
        """Return whether *text* puts the question that is open, and not what was said before it."""
        asking = self._asking()
        if asking is None or asking is self._asked:
            return False
        from clawlite.core.policy.approval import question

        return question(asking, now_ms()).split("\n")[0] == text.split("\n")[0]

    def _tell(self, effect: tuple):
        """Show text that is not part of an answer; on stderr when stdout is only for the answer."""
        shell, text = self._shell, escape_ends(effect[E.TEXT])
        if not shell.answers:
            self._show(text)
            return
        self._make_room()
        if shell.terminal:  # which may be stderr's too: it begins a line there
            shell.screen.give_way()
            shell.wire.flush(0)
        os.write(2, text.encode() + b"\n")

    def _show(self, text: str, is_question: bool = False):
        guard, screen = self._shell.guard, self._shell.screen
        if guard is not None:
            text = self._rest() + guard.text(text)
        self._make_room()
        self._end_word()
        data = printable(text.encode("utf-8", "replace"))
        if screen.edits:
            from clawlite.linux.terminal.styling import columns_of, dress

            tools = self._shell.agent.image.names
            data = dress(data.decode(), columns_of(0), is_question, tools).encode()
        screen.show(data + b"\n")

    def show_print(self, event: dict):
        """Show what a tool printed, dim, on a terminal that can; elsewhere it is in the log
        alone.
        """
        screen = self._shell.screen
        if screen.edits:
            from clawlite.linux.terminal.styling import DIM, paint

            tool = event.get("tool")
            name = escape_name(tool) + ": " if tool else ""
            self._make_room()
            for line in event["text"].rstrip("\n").split("\n"):
                screen.show(paint(name + escape_line(line), DIM).encode() + b"\n")

    def _write(self, effect: tuple):
        """Show a provider's text as it comes; the line stays open.

        When ``waits`` is a text, it is added there, and shown once the answer is complete.
        """
        if self.waits is not None:
            self.waits += effect[E.TEXT]
        elif effect[E.TEXT]:
            if self.thinking:
                self.thinking.stop()
            self._show_piece(effect[E.TEXT])

    def _void(self, effect: tuple):
        """Remove text that waits; text on the screen stays."""
        if self.waits is not None:
            self.waits = self.waits[: -effect[E.COUNT]]

    def release(self):
        """Show the text that has waited: it is complete."""
        text, self.waits = self.waits, "" if self.waits is not None else None
        if text:
            self._show_piece(text)

    def _show_piece(self, text: str):
        guard = self._shell.guard
        if guard is not None:
            if self._held is None:
                from clawlite.scan.redact_stream import RedactStream

                self._held = RedactStream(guard.text)
            text = self._held.write(text)
        if text:
            if self._pieces is None:  # READY does not wait for it
                from clawlite.protocols.base.pieces import Pieces

                self._pieces = Pieces()
            self._make_room()
            data, screen = self._pieces.show(text), self._shell.screen
            if screen.edits:
                from clawlite.linux.terminal.styling import StreamWrap, columns_of

                self._wrap = self._wrap or StreamWrap()
                data = self._wrap.write(data.decode(), columns_of(0)).encode()
            if data:
                screen.show(data, True)

    def _end_word(self):
        """Show the last word of an answer that broke off."""
        rest = self._wrap.rest() if self._wrap else ""
        self._wrap = None
        if rest:
            self._shell.screen.show(rest.encode(), True)

    def _make_room(self):
        """Remove the line "thinking", because other text is shown in its place."""
        if self.thinking:
            self.thinking.wipe()

    def _rest(self) -> str:
        """Return what waited to be shown: an answer that broke off inside a line."""
        rest = self._held.rest() if self._held else ""
        return rest + "\n" if rest else ""

    def _prompt(self, effect: tuple):
        shell = self._shell
        self._end_word()
        # from now on a person edits lines, where the terminal has the abilities
        if self._first:
            self._first = False
            if shell.terminal and has_abilities():
                shell.screen.show(b"")
                shell.edit_lines(self._open_terminal())
        self._ask_anew()
        shell.screen.prompt(effect[E.TEXT])

    def _open_terminal(self):
        """Return the terminal whose lines are edited, with what was typed in earlier starts."""
        from clawlite.linux.files.files import state_folder
        from clawlite.linux.terminal.history import History, complete
        from clawlite.linux.terminal.terminal import Terminal

        shell, guard = self._shell, self._shell.guard
        path = os.path.join(state_folder(shell.agent.image.agent.name), "console.history")
        hides = None if guard is None else lambda text: guard.text(text) != text

        def find(before: str) -> tuple:
            return complete(before, _list_words(shell.agent))

        return Terminal(shell.wire, MAX_LINE, History(path, hides), find)

    def _asking(self):
        """Return the approval whose question is open, or None."""
        waiting = self._shell.agent.waiting
        return waiting[0].approval if waiting else None

    def _hear_out(self):
        """Before a question is shown on a terminal, take the lines that were typed earlier, so that
        none of them answers it.
        """
        shell, asking = self._shell, self._asking()
        if shell.terminal and asking and asking is not self._asked:
            shell.take(True)
            data = shell.wire.ready()
            while data:
                shell.framer.feed(data)
                shell.take(True)
                data = shell.wire.ready()

    def _ask_anew(self):
        self._hear_out()
        asking = self._asking()
        if asking is not self._asked:
            self._asked = asking
            self._shell.screen.ask(asking is not None)


def _list_words(agent) -> list:
    """Return what Tab knows: the commands that /help lists, tools and skills of *agent*."""
    from clawlite.core.image.image import SKILLS
    from clawlite.core.protocol.commands import run

    lines = [line.strip() for part in run("/help", agent, None) for line in part]
    words = [line.split()[0] for line in lines if line.startswith("/")] + list(agent.image.names)
    if agent.image.size_of(SKILLS):
        from clawlite.core.image.skill import Skill, skills

        words += ["/" + Skill(row).name for row in skills(agent.image)]
    return words


def progress_text(tool: str, progress, total, message: str) -> str:
    """Return how a call goes on, as a person may see it."""
    of = "" if total is None else " of %s" % canonical(total)
    said = " " + escape_line(canonical(message, MAX_SHOWN)) if message else ""
    return "%s: %s%s%s" % (escape_name(tool), canonical(progress), of, said)


def has_abilities() -> bool:
    """Return whether stdin and stdout are a terminal that can move its cursor."""
    return os.isatty(0) and os.isatty(1) and os.environ.get("TERM", "") not in ("", "dumb")
