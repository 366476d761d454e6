"""``clawlite ask TEXT --port P``: one turn of the agent on a board, over its console.

An empty line is sent first.  The answer shows whether an agent or a REPL is there; a REPL must not
get a person's sentence."""

from clawlite.core.base.errors import ClawError
from clawlite.host.board_console.line import is_uart
from clawlite.host.board_console.log import ConsoleLog
from clawlite.host.board_console.screens import MAX_LINE, Plain
from clawlite.host.board_console.serial import SerialConsole
from clawlite.host.board_console.text import PROMPT
from clawlite.host.serial import ports
from clawlite.host.serial.serial_line import SerialLine

_QUESTION = b"[y/N] "
_REPL = (b">>> ", b"... ")
_REFUSED = 5


def ask(text: str, port, approve: bool, timeout_s: float) -> int:
    """Send *text* to the agent on *port* (None: the only board) and print its answer; return the
    exit code.

    approve  answer its questions with yes; otherwise with no, and the exit code is 5
    Exit codes: 0 it answered, 1 no agent runs there, 5 it asked a question, 124 no end within
    *timeout_s*. Raises ``ClawError``.
    """
    line = text.encode()
    if not text.strip() or any(ord(char) < 32 for char in text) or len(line) > MAX_LINE:
        raise ClawError(
            f"expected a text of one line of 1 to {MAX_LINE} bytes",
            "ask in one line, or in several questions",
        )
    entry = ports.choose(port)
    return _Asking(SerialLine(entry), line + b"\n", approve, timeout_s, is_uart(entry)).run()


class _Answer(Plain):
    """A screen for one answer: output from before the text was sent is not part of it, and there is
    no input from a person.
    """

    def __init__(self):
        super().__init__()
        self.is_open = False

    def show(self, data: bytes):
        if self.is_open:
            super().show(data)


class _Asking(SerialConsole):
    def __init__(
        self, line: SerialLine, text: bytes, approve: bool, timeout_s: float, is_noisy: bool
    ):
        super().__init__(line, _Answer(), False, timeout_s, [], ConsoleLog(None), is_noisy)
        self._question, self._approve, self._end = text, approve, 0
        self._lines, self._is_over = [b"\n", text], True

    def run(self) -> int:
        code = super().run()
        return code or self._end

    def _show(self, event: tuple):
        super()._show(event)
        kind, text = event
        if kind != PROMPT:
            return
        if text in _REPL:
            self._lines.clear()
            self._note("no agent runs on that board, its REPL answers - flash one: clawlite flash")
            self._end = 1
        elif text == _QUESTION and self._question in self._lines:
            self._note("a question was open there, which was answered with no")
            self._lines.insert(0, b"n\n")
        elif text == _QUESTION:
            if not self._approve:
                self._note("it asks first, which was answered with no - say yes with --approve")
                self._end = _REFUSED
            self._lines.insert(0, b"y\n" if self._approve else b"n\n")

    def _send(self, data: bytes):
        if data is self._question:
            self._screen.is_open = True
        super()._send(data)
