"""The reliable line under ``clawlite console``: records in frames, text beside them (docs/line.md).

Wanted where noise is: on a UART.  It begins at an agent's prompt, where a hello is never typed into
a REPL; a board that gives no answer stays plain.
"""

import json
import os
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.line.frame import RECORD
from clawlite.core.line.line import DOWN, UP, Line
from clawlite.host.board_console.text import MAX_RECORD
from clawlite.host.boards import boards
from clawlite.host.serial.line_text import TextBeside

_WINDOW = 4096
_PATIENCE_MS = 1500  # for the answer to a hello: the board waits at its prompt
_WHY = {
    "silent": "the board does not answer",
    "restarted": "the board restarted",
    "closed": "the board closed it",
    "version": "the board speaks another version of it",
}


def is_uart(entry: dict) -> bool:
    """Return whether the port *entry* (host/serial/ports.py) leads to the UART of a board: a
    bridge does, also of one that has USB of its own beside.
    """
    return "uart" in {
        board.console.wire for board in boards.load_all() if board.name in entry["boards"]
    }


def line_record(text: bytes) -> bytes:
    """Return the record that carries a person's line."""
    return _make_record("console.line", {"text": text.decode("utf-8", "replace")})


def _make_record(name: str, params: dict) -> bytes:
    record = {"jsonrpc": "2.0", "method": "claw." + name, "params": params}
    return json.dumps(record, ensure_ascii=False).encode()


def asks_time(record: bytes) -> bool:
    """Return whether a board asks for the time (firmware-host/micropython/io/settime.py)."""
    try:
        return b'"claw.clock"' in record and json.loads(record).get("method") == "claw.clock"
    except (ValueError, AttributeError):
        return False


def the_time() -> bytes:
    """Return the record that tells a board the time."""
    return _make_record("clock", {"epoch_s": int(time.time())})


class ReliableWire:
    """One board's line, from its hello on.

    baud    of the wire
    Public, to be read: ``is_up``, ``is_over`` (the line is plain again), ``notes`` (sentences for
    the person, to be taken out)."""

    def __init__(self, baud: int, now_ms: int):
        self._line = Line(
            int.from_bytes(os.urandom(4), "big") or 1,
            _WINDOW,
            limit=MAX_RECORD,
            backlog=MAX_RECORD,
            baud=baud,
        )
        self._beside = TextBeside()
        self._since = now_ms
        self.is_up = self.is_over = False
        self.notes = []
        self._line.hello(now_ms)

    def feed(self, data: bytes, now_ms: int) -> tuple[bytes, list[bytes]]:
        """Return (text for people, records) of what came."""
        self._line.feed(data, now_ms)
        return self._beside.take(data), self._events()

    def tick(self, now_ms: int) -> None:
        self._line.tick(now_ms)
        self._events()
        if not self.is_up and now_ms - self._since >= _PATIENCE_MS:
            self.is_over = True

    def _events(self) -> list[bytes]:
        records = []
        while event := self._line.next_event():
            kind, data = event
            if kind == RECORD:
                records.append(data)
            elif kind == UP:
                self.is_up, self.is_over = True, False
            elif kind == DOWN:
                why, count = data.decode().split()
                if self.is_up:
                    lost = f"; {count} lines may not have arrived" if count != "0" else ""
                    self.notes.append(f"the reliable line has ended: {_WHY[why]}{lost}")
                self.is_up, self.is_over = False, True
        return records

    def send(self, data: bytes, now_ms: int) -> bool:
        """Take a line or a record, with its LF; return False when there is no room for it."""
        try:
            self._line.send(
                data[1:-1] if data.startswith(b"\x1e") else line_record(data.rstrip(b"\r\n")),
                now_ms,
            )
        except (ClawError, ValueError):
            return False
        return True

    def output(self) -> bytes:
        """Return what is to be written now."""
        return b"".join(iter(self._line.output, b""))

    def wait_ms(self, now_ms: int):
        """Return in how many ms ``tick`` is wanted, or None."""
        at = self._line.deadline()
        if not self.is_up:
            at = min(self._since + _PATIENCE_MS, at or now_ms)
        return None if at is None else max(0, at - now_ms)

    def is_sent(self) -> bool:
        return not self._line.waiting

    def close(self, now_ms: int) -> bytes:
        """End the session; return what is still to be written."""
        self._line.close(now_ms)
        return self.output()
