"""``clawlite console``: a person, or a script, and a board at the other end of a serial port.

A script's lines go in one by one: the next when the board's prompt is back.  A board that says
nothing for a moment after the port was opened is taken to be at its prompt already.  It may be in
its boot window: the prompt behind its greeting then answers no line."""

import select
import signal
import socket
import time
from typing import Any

from clawlite.core.base.printable import printable
from clawlite.host.board_console.keyboard import open_keyboard
from clawlite.host.board_console.line import ReliableWire, asks_time, is_uart, the_time
from clawlite.host.board_console.log import ConsoleLog
from clawlite.host.board_console.screens import END, KEYS, LEAVE, LINE, open_screen
from clawlite.host.board_console.text import PROMPT, PROMPTS, RECORD, TEXT, BoardText
from clawlite.host.firmware.functions import Tracebacks
from clawlite.host.serial import ports
from clawlite.host.serial.serial_line import BAUD, PortGone, SerialLine
from clawlite.host.systems.processes import ENDS

# a board that is silent so long after the port was opened does not boot just then
_OPENED_S = 0.5
_AWAY_S = 0.25  # how often a board that went away is looked for
_HELD_S = 0.05  # how long a board is silent after an unknown prompt
_TIMED_OUT = 124
_RESIZED = getattr(signal, "SIGWINCH", None)  # Windows has none
_READY = b" is ready. /help lists the commands.\n"  # the line that an agent prints when it is ready
_AGENT = PROMPTS[0].encode()  # the prompt at which a hello is not typed into a REPL


def start(
    port,
    editor,
    records: bool,
    timeout_s: float,
    prompts,
    log,
    mode: str = "auto",
    is_ready: bool = False,
) -> int:
    """Run the console of *port* (None: the only board) on this process's stdin and stdout; return
    the exit code.

    mode  "auto", "plain" or "reliable": whether the line is made a reliable one
    is_ready  the agent was just seen at its prompt: a person is shown it again
    Raises ``ClawError`` when it cannot be opened.
    """
    kept = ConsoleLog(log)
    entry = ports.choose(port)
    line = SerialLine(entry)
    is_noisy = mode == "reliable" or mode == "auto" and is_uart(entry)
    screen = open_screen(editor)
    if not screen.is_paced:
        screen.note(f"{line.path}: Ctrl-] leaves; Ctrl-C and Ctrl-D go to the board.")
    console = SerialConsole(line, screen, records, timeout_s, list(prompts), kept, is_noisy)
    if is_ready and not screen.is_paced:
        line.send(b"\n")
    return console.run()


class SerialConsole:
    """One console.

    line       ``SerialLine``
    screen     one of screens.py
    records    bool: show machine records too
    timeout_s  how long a script waits for the board's prompt
    prompts    list of texts that are prompts too
    log        ``ConsoleLog``
    is_noisy   bool: the line is made a reliable one, when the board can
    """

    def __init__(
        self,
        line: SerialLine,
        screen,
        records: bool,
        timeout_s: float,
        prompts: list,
        log: ConsoleLog,
        is_noisy: bool = False,
    ):
        self._line = line
        self._is_noisy = is_noisy
        self._wire = None  # ReliableWire
        self._is_plain = not is_noisy  # it was tried, or is not wanted
        self._greets = False  # a hello has no answer yet
        self._screen, self._records, self._timeout_s, self._prompts, self._log = (
            screen,
            records,
            timeout_s,
            prompts,
            log,
        )
        self._text = BoardText(prompts)
        self._tracebacks = Tracebacks()
        self._lines = []  # a script's, that wait for the board
        self._is_over = False  # no more of them will come
        self._waits = True  # for the board's prompt
        self._since = time.monotonic()  # when that began
        self._silent = True  # the board has said nothing since the port was opened
        # what it has said since a line went out in that silence, the end of it
        self._ahead = None
        # when a person's line was sent to which the board has not answered yet
        self._asked_s = None
        self._code: int | None = None
        self._keyboard: Any = None

    def run(self) -> int:
        """Serve until the end; return the exit code."""
        wake = _Signals(self._screen.resize)
        self._keyboard = open_keyboard(self._screen.is_edited)
        try:
            self._screen.refresh()
            while self._code is None:
                self._step(wake)
            return self._code
        except BrokenPipeError:  # the reader of stdout, or the terminal, is gone
            return 1
        finally:
            wake.close()
            self._keyboard.close()
            if self._wire and self._line.fd is not None:
                self._line.say(self._wire.close(_now_ms()))
            self._line.close()
            self._screen.close()
            self._log.close()

    def _step(self, wake):
        keys, line = self._keyboard.fd, self._line.fd
        reads = [wake.fd] + ([] if self._is_over or len(self._lines) >= 2 else [keys])
        reads += [] if line is None else [line]
        writes = [line] if line is not None and self._line.wants_write else []
        wait_ms = self._wait_ms()
        # select, not poll: Windows has no other, and macOS's poll takes no terminal
        came, takes, _ = select.select(
            reads, writes, [], None if wait_ms is None else wait_ms / 1000
        )
        try:
            if wake.fd in came:
                self._code = wake.receive()
            if keys in came:
                self._take(self._read_keyboard())
            if takes and self._line.fd is not None:
                self._line.flush()
            if line in came and self._line.fd is not None:
                self._receive(self._line.read())
            self._go_on(bool(came or takes))
        except PortGone as e:
            self._note(
                f"{e.message}; waiting for it to come "
                f"back{'' if self._screen.is_paced else ' (Ctrl-] leaves)'}"
            )
        self._screen.refresh()

    def _wait_ms(self):
        """Return how long nothing need happen, or None: until something does."""
        if self._line.fd is None:
            return int(_AWAY_S * 1000)
        waits = [int(_HELD_S * 1000)] if self._text.is_holding else []
        if self._screen.is_paced and self._waits:
            limit = min(_OPENED_S, self._timeout_s) if self._silent else self._timeout_s
            waits.append(max(0, int((self._since + limit - time.monotonic()) * 1000)) + 1)
        if self._asked_s is not None:
            waited_s = time.monotonic() - self._asked_s
            waits.append(int((1 - waited_s % 1) * 1000) + 1)
        at = self._wire.wait_ms(_now_ms()) if self._wire else None
        return min(waits + ([] if at is None else [at]), default=None)

    # -- from the board

    def _receive(self, data: bytes):
        if data:
            self._silent = False
            self._log.note_received(data)
            if self._wire:
                data, records = self._wire.feed(data, _now_ms())
                for record in records:
                    self._show((RECORD, record))
            self._text.feed(data)
        while True:
            event = self._text.next_event()
            if event is None:
                return
            self._show(event)

    def _show(self, event: tuple):
        kind, shown = event
        if kind != RECORD:
            self._clear_status()
        if kind == TEXT:
            self._waits = True
            if self._ahead is not None:
                self._ahead = (self._ahead + shown)[-2 * len(_READY) :]
                if _READY in self._ahead:
                    self._text.skip()
                    self._ahead = None
            self._screen.show(self._tracebacks.feed(shown))
        elif kind == PROMPT:
            self._ahead = None
            if shown == _AGENT and not self._is_plain and self._wire is None:
                self._wire, self._greets = ReliableWire(BAUD, _now_ms()), True
            self._waits = self._greets
            self._screen.prompt(shown)
        elif kind == RECORD:
            if asks_time(shown):
                self._send(b"\x1e" + the_time() + b"\n")
            if self._records:
                self._screen.record(printable(shown.decode("utf-8", "backslashreplace").encode()))

    # -- to the board

    def _take(self, data: bytes):
        for kind, typed in self._screen.take(data):
            if kind == LEAVE:
                self._code = 0
            elif kind == END:
                self._is_over = True
            elif kind == LINE and self._screen.is_paced:
                self._lines.append(typed)
            elif self._line.fd is None:
                self._note("the board is disconnected: that was not sent")
            elif self._line.is_full:
                self._note("the board does not read its input: that was not sent")
            else:
                self._send(typed)
                if self._screen.is_edited and typed.endswith(b"\n") and typed[:1] != b"\x1e":
                    self._asked_s = time.monotonic()

    def _clear_status(self):
        """The board has said something, or is away."""
        if self._asked_s is not None:
            self._asked_s = None
            self._screen.status("")

    def _send(self, data: bytes):
        # a record leaves the prompt where it stands
        if data.endswith(b"\n") and not data.startswith(b"\x1e"):
            self._text.begin_line()
        self._log.note_sent(data)
        if not self._wire or not self._wire.is_up or data in KEYS:
            self._line.send(data)
        elif not self._wire.send(data, _now_ms()):
            self._note("the board does not read its input: that was not sent")
        else:  # nothing else may wake the loop
            self._line.send(self._wire.output())

    def _read_keyboard(self) -> bytes:
        """Return what has come on stdin, b"" at its end.  Raises ``BrokenPipeError`` for a
        terminal that hung up.
        """
        try:
            return self._keyboard.read()
        except OSError as e:
            raise BrokenPipeError(e.errno, e.strerror) from None

    # -- as time goes by

    def _go_on(self, has_moved: bool):
        """Do what is due."""
        now = time.monotonic()
        if self._line.fd is None:
            self._clear_status()
            self._look_for_it(now)
            return
        if self._asked_s is not None and now - self._asked_s >= 1:
            self._screen.status("waiting for the board, %d s" % (now - self._asked_s))
        if not has_moved and self._text.is_holding:
            self._show(self._text.flush(self._screen.is_edited))
        if self._wire:
            self._serve_wire()
        if not self._screen.is_paced:
            return
        if self._waits and self._silent and now - self._since >= _OPENED_S:
            self._waits = self._silent = False
            self._ahead = b""
        if self._waits and now - self._since >= self._timeout_s:
            self._note(
                f"no prompt within {self._timeout_s:g} s; name another prompt with "
                f"--prompt, or wait longer with --timeout"
            )
            self._code = _TIMED_OUT
        elif not self._waits and self._lines:
            self._waits, self._silent, self._since = True, False, now
            self._send(self._lines.pop(0))
        elif (
            not self._waits
            and self._is_over
            and self._line.is_sent
            and not (self._wire and not self._wire.is_sent())
        ):
            self._code = 0

    def _serve_wire(self):
        """Run what is due on the reliable line, and leave the line when its session is over."""
        self._wire.tick(_now_ms())
        self._line.send(self._wire.output())
        while self._wire.notes:
            self._note(self._wire.notes.pop(0))
        if self._greets and (self._wire.is_up or self._wire.is_over):
            self._is_plain = not self._wire.is_up
            self._waits = self._greets = False
        if self._wire.is_over:
            self._wire = None

    def _look_for_it(self, now: float):
        if self._line.reopen():
            self._note(f"connected again: {self._line.path}")
            self._text = BoardText(self._prompts)
            self._wire, self._is_plain, self._greets = None, not self._is_noisy, False
            self._waits, self._silent, self._since = True, True, now
        elif self._screen.is_paced and now - self._since >= self._timeout_s:
            self._code = _TIMED_OUT

    def _note(self, text: str):
        self._log.note(text)
        self._screen.note("clawlite: " + text)


def _now_ms() -> int:
    return time.monotonic_ns() // 1000000


class _Signals:
    """Ctrl-C, SIGTERM, SIGHUP and SIGWINCH as facts that the loop asks for.  Python's own handler
    writes to the socket that wakes the loop: Windows takes nothing else there.
    """

    def __init__(self, resized):
        self._resized = resized
        self._came = []
        self._ours, self._writer = socket.socketpair()
        for end in (self._ours, self._writer):
            end.setblocking(False)
        self.fd = self._ours.fileno()
        numbers = ENDS + ((_RESIZED,) if _RESIZED else ())
        self._old = [
            (number, signal.signal(number, lambda number, frame: self._came.append(number)))
            for number in numbers
        ]
        self._old_fd = signal.set_wakeup_fd(self._writer.fileno())

    def receive(self):
        """Return the exit code, or None when it was only the terminal's size."""
        self._ours.recv(512)
        came, self._came = self._came, []
        if _RESIZED in came:
            self._resized()
        return next((128 + number for number in came if number != _RESIZED), None)

    def close(self):
        signal.set_wakeup_fd(self._old_fd)
        for number, handler in self._old:
            signal.signal(number, handler)
        for end in (self._ours, self._writer):
            end.close()
