"""The person's side of a serial console: a terminal whose lines are edited here, one that edits by
itself, or plain pipes.

Keys on a terminal: Ctrl-] leaves; Ctrl-C, and Ctrl-D on an empty line, go to the board.  All three
have ``take`` (what was typed -> list of (LINE, KEY or LEAVE, bytes for the board)), ``show``,
``prompt``, ``record``, ``note``, ``resize`` and ``close``."""

import os
import select
import sys

from clawlite.core.base.printable import escape_ends
from clawlite.core.line.frame import RECORD, TEXT, TOO_LONG, Framer
from clawlite.host.board_console.terminal_mode import has_abilities, open_mode

LINE, KEY, LEAVE, END = "line", "key", "leave", "end"
MAX_LINE = 8192  # bytes, as a board takes
KEYS = (b"\x03", b"\x04")
_LEAVE, _INTERRUPT = 0x1D, 0x03
_TOO_LONG = f"clawlite: that line has %d bytes, at most {MAX_LINE} fit; it was not sent"
_QUESTION = "[y/N] "


def open_screen(editor):
    """Return the screen for this process's stdin and stdout; *editor* is a function(limit,
    columns) -> lineedit.Editor.
    """
    if not (os.isatty(0) and os.isatty(1)):
        return Plain()
    return Edited(editor) if has_abilities() else Dumb()


def write(data: bytes):
    """Write all of *data* to stdout.  Raises ``BrokenPipeError`` when nothing reads it, whatever
    kind of file stdout is.
    """
    while data:
        try:
            data = data[os.write(1, data) :]
        except BlockingIOError:  # somebody made it so
            select.select([], [1], [])
        except OSError as e:  # also a terminal that hung up
            raise BrokenPipeError(e.errno, e.strerror) from None


def board_input(event: tuple) -> list:
    """Return [(LINE, bytes for the board)] of an event of a framer; [] for a line that is too
    long, which is told.
    """
    kind, data = event
    if kind == TOO_LONG:
        return []
    if kind == RECORD:
        return [(LINE, b"\x1e" + data + b"\n")]
    return [(LINE, data if data in KEYS else data + b"\n")]


class Plain:
    """Pipes and files: lines go in one by one, the next when the board waits for it; prompts are
    not shown.
    """

    is_paced, is_edited = True, False

    def __init__(self):
        self._framer = Framer(MAX_LINE)

    def take(self, data: bytes) -> list:
        """*data* b"": the end of input, which ends an open line.  A line that is Ctrl-C or
        Ctrl-D alone is that key.
        """
        self._framer.feed(data)
        if not data:
            self._framer.finish()
        found = []
        while event := self._framer.next_event():
            kind, data = event
            if kind == TOO_LONG:
                self.note(_TOO_LONG % int(data))
            found += board_input(event)
        return found if data else found + [(END, b"")]

    def show(self, data: bytes):
        write(data)

    def prompt(self, data: bytes):
        pass

    def record(self, data: bytes):
        write(b"\x1e" + data + b"\n")

    def note(self, text: str):
        print(escape_ends(text), file=sys.stderr)

    def refresh(self):
        pass

    def resize(self):
        pass

    def close(self):
        pass


class Dumb(Plain):
    """A terminal that edits by itself, in the kernel: there Ctrl-] and Ctrl-C end a line, as
    Enter does (termios(3), VEOL).
    """

    is_paced, is_edited = False, False

    def __init__(self):
        super().__init__()
        self._mode = open_mode()
        self._mode.set_line_ends(_LEAVE, _INTERRUPT)

    def take(self, data: bytes) -> list:
        if not data:
            return [(KEY, b"\x04")]
        if data[-1] == _LEAVE:
            return [(LEAVE, b"")]
        if data[-1] == _INTERRUPT:
            return [(KEY, b"\x03")]
        return super().take(data)

    def prompt(self, data: bytes):
        write(data)

    def close(self):
        self._mode.restore()


class Edited:
    """A terminal in raw mode, whose row ``line_editor.Editor`` keeps."""

    is_paced, is_edited = False, True

    def __init__(self, editor):
        self._mode = open_mode()
        self._editor = editor(MAX_LINE, _columns())
        self._waits = False  # the board's prompt is shown
        self._mode.set_raw()
        write(self._editor.mark_pastes)

    def take(self, data: bytes) -> list:
        if not data:  # it hung up
            return [(LEAVE, b"")]
        found = []
        while data:
            ends = [at for at in (data.find(_LEAVE), data.find(_INTERRUPT)) if at >= 0]
            end = min(ends) if ends else len(data)
            self._editor.feed(data[:end])
            found += self._lines()
            if end < len(data) and data[end] == _LEAVE:
                return found + [(LEAVE, b"")]
            if end < len(data):
                self._editor.interrupt()
                found.append((KEY, b"\x03"))
            data = data[end + 1 :]
        return found

    def _lines(self) -> list:
        found = []
        while True:
            event = self._editor.next_event()
            if event:
                kind, data = event
                self._waits = self._waits and kind == RECORD
                if kind == TOO_LONG:
                    self.note(_TOO_LONG % int(data))
                # a board's line ends with its line feed: pasted lines become one
                line = data.replace(b"\n", b" ") + b"\n"
                found += [(LINE, line)] if kind == TEXT else board_input(event)
            elif self._editor.at_end:
                self._editor.at_end = False
                found.append((KEY, b"\x04"))
            else:
                return found

    def show(self, data: bytes):
        if self._waits:  # it was no prompt, or has given way
            self._editor.ask(False)
            self._waits = False
        self._editor.show(data, True)

    def prompt(self, data: bytes):
        text = data.decode("utf-8", "replace")
        # a line that was begun before a question does not answer it
        self._editor.ask(text == _QUESTION)
        self._editor.prompt(text)
        self._waits = True

    def record(self, data: bytes):
        self._editor.record(b"\x1e" + data + b"\n")

    def note(self, text: str):
        self._editor.show(escape_ends(text).encode() + b"\n")

    def status(self, text: str):
        """Show *text* on the last row while no line is being read; "": nothing."""
        self._editor.show_status(text)

    def refresh(self):
        self._editor.refresh()
        write(self._editor.output())

    def resize(self):
        self._editor.resize(_columns())

    def close(self):
        self._editor.close()
        try:
            write(self._editor.output() + self._editor.leave_pastes)
        except OSError:  # it hung up
            pass
        self._mode.restore()


def _columns() -> int:
    try:
        return max(8, os.get_terminal_size(1).columns or 80)
    except OSError:
        return 80
