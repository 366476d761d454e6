"""A serial port of a gateway: the reliable line to one board, and the console that people share it
through.

The port is found again when it was away.  A board that answers no hello (it boots) is greeted again
when it has said something, else every ``_AGAIN_S``; while its REPL is open nothing is typed into
that."""

import asyncio
import collections
import os
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.line.frame import RECORD
from clawlite.core.line.line import DOWN, UP, Line
from clawlite.host.gateway.shared_console import open_console
from clawlite.host.serial.line_text import TextBeside
from clawlite.host.serial.serial_line import BAUD, PortGone, SerialLine

_WINDOW, _MAX_RECORD, _BACKLOG = 4096, 65536, 262144
_AGAIN_S = 30
_AWAY_S = 0.5  # how often a board that went away is looked for
_HELLO_MS = 4000  # for the answer to one hello
# what a board says when either begins
_REPL, _AGENT = (b"\n>>> ", b"raw REPL;"), (b"soft reboot", b" is ready. /help lists the commands.")


class SerialPort:
    """One port.

    entry    what ``ports.choose`` returned
    device   ``device.Device``
    note     function(text)
    watch    function(data) that sees all bytes that go to the board, or None
    Raises what ``SerialLine`` does.
    """

    def __init__(self, entry: dict, device, note, watch=None):
        self._serial = SerialLine(entry)
        self._device, self._note, self._watch = device, note, watch
        self._line = Line(
            int.from_bytes(os.urandom(4), "big") or 1,
            _WINDOW,
            limit=_MAX_RECORD,
            backlog=_BACKLOG,
            baud=BAUD,
            patience_ms=10000,
        )
        self._beside = TextBeside()
        self._loop = asyncio.get_running_loop()
        self._is_up = self._greets = self._writes = self._is_repl = False
        # the line is over, for nothing came, and nothing has come since
        self._is_silent = False
        # of each record that is not acknowledged: (bytes, whether people sent it)
        self._sent = collections.deque()
        self._said = b""  # the last of its text
        self._greeted_ms = 0
        self._timer = None
        self._console = open_console(device.name, self._send_typed)
        self._listen()

    @property
    def console(self) -> str:
        """The id of the console that ``clawlite ports`` lists, "" where none is shared."""
        return self._console.id

    @property
    def waiting(self) -> int:
        return self._line.waiting

    def serves(self, device) -> bool:
        return device is self._device

    def send(self, record: bytes, is_typed: bool = False) -> None:
        """Send a record to the board.  One that does not fit ends the session: the device asks
        again in the next.

        is_typed  people sent it, by the console: they are told when it may not have arrived
        """
        self._settle()
        self._sent.append((len(record), is_typed))
        try:
            self._line.send(record, _now_ms())
        except (ClawError, ValueError) as e:
            self._note(f"{self._device.name}: {e}")
            self._line.close(_now_ms())
            self._end_session("", len(self._sent))
        self._loop.call_soon(self._move)

    def _settle(self) -> None:
        """Forget records that the board has."""
        left = sum(size for size, _ in self._sent)
        while left > self._line.waiting:
            left -= self._sent.popleft()[0]

    def close(self) -> None:
        if self._serial.fd is not None:
            self._line.close(_now_ms())
            self._serial.say(self._output())
            self._deaf()
        self._serial.close()
        self._console.close()
        if self._timer:
            self._timer.cancel()

    # -- the port

    def _listen(self) -> None:
        self._fd = self._serial.fd
        self._loop.add_reader(self._fd, self._readable)
        self._hello()

    def _deaf(self) -> None:
        self._loop.remove_reader(self._fd)
        if self._writes:
            self._loop.remove_writer(self._fd)
            self._writes = False

    def _readable(self) -> None:
        try:
            data = self._serial.read()
        except PortGone as e:
            self._lose_port(e)
            return
        if data:
            self._is_silent = False
            self._show_text(self._beside.take(data))
            if not self._is_up and not self._greets:
                self._hello()
            self._line.feed(data, _now_ms())
            self._events()
            self._move()

    def _show_text(self, text: bytes) -> None:
        """Show text for people, and see from it who speaks: an agent, or MicroPython's prompt."""
        self._console.show(text)
        self._said = (self._said + text)[-256:]
        repl, agent = (max(self._said.rfind(word) for word in words) for words in (_REPL, _AGENT))
        if repl != agent:
            self._is_repl = repl > agent

    def _lose_port(self, e: PortGone) -> None:
        self._deaf()
        self._note(f"{e.message}; waiting for it to come back")
        self._settle()
        self._end_session("", len(self._sent))
        self._later(_AWAY_S, self._look)

    def _look(self) -> None:
        if self._serial.reopen():
            self._note(f"connected again: {self._serial.path}")
            self._beside = TextBeside()
            self._listen()
        else:
            self._later(_AWAY_S, self._look)

    def _later(self, seconds: float, function) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(0, seconds), function)

    # -- the line

    def _hello(self) -> None:
        self._greeted_ms = _now_ms()
        if self._is_repl:
            return
        self._greets = True
        self._line.hello(self._greeted_ms)
        self._move()

    def _tick(self) -> None:
        now = _now_ms()
        self._line.tick(now)
        self._events()
        if self._greets and now - self._greeted_ms >= _HELLO_MS:
            self._line.close(now)
            self._greets = False
        if not self._is_up and not self._greets and now - self._greeted_ms >= _AGAIN_S * 1000:
            self._hello()
        self._move()

    def _events(self) -> None:
        while event := self._line.next_event():
            kind, data = event
            if kind == RECORD:
                if not self._device.record(data):
                    self._console.record(data)
            elif kind == UP:
                self._is_up, self._greets = True, False
                self._device.connect(self)
            elif kind == DOWN:
                was_up, (why, count) = self._is_up, data.decode().split()
                self._end_session(why, int(count))
                self._is_silent = why == "silent"
                if was_up and self._is_silent:
                    self._hello()

    def _end_session(self, why: str, lost: int = 0) -> None:
        """The session is over; *lost*: so many of its last records may not have arrived."""
        if self._is_up and why:
            self._note(f"{self._device.name}: the line has ended ({why})")
        typed = sum(is_typed for _, is_typed in [*self._sent][max(0, len(self._sent) - lost) :])
        if typed:
            self._console.show(
                b"clawlite: the line broke; of what was typed %d lines may not "
                b"have arrived\n" % typed
            )
        self._sent.clear()
        self._is_up = self._greets = False
        self._device.disconnect()

    def _move(self) -> None:
        """Write what there is, and wake up when something is due."""
        if self._serial.fd is None:
            return
        if self._is_up:
            self._device.pump()
        try:
            self._serial.send(b"" if self._serial.is_full else self._output())
        except PortGone as e:
            self._lose_port(e)
            return
        wants = self._serial.wants_write
        if wants != self._writes:
            self._writes = wants
            if wants:
                self._loop.add_writer(self._fd, self._move)
            else:
                self._loop.remove_writer(self._fd)
        at = self._line.deadline()
        due = self._greeted_ms + (_HELLO_MS if self._greets else _AGAIN_S * 1000)
        if not self._is_up:
            at = due if at is None else min(at, due)
        if at is not None:
            self._later((at - _now_ms()) / 1000, self._tick)

    def _output(self) -> bytes:
        data = b"".join(iter(self._line.output, b""))
        if data and self._watch:
            self._watch(data)
        return data

    # -- from people

    def _send_typed(self, record: bytes, raw: bytes) -> bool:
        """Send what came from the console: *record*, or *raw* bytes where no line stands; return
        False when nobody hears it.
        """
        if self._serial.fd is None or self._serial.is_full or self._is_silent and record:
            return False
        if self._is_up and record:
            self.send(record, True)
            return True
        try:
            self._serial.send(raw)
        except PortGone as e:
            self._lose_port(e)
            return False
        return True


def _now_ms() -> int:
    return time.monotonic_ns() // 1000000
