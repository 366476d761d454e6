"""What a board writes, taken apart: lines and pieces of lines for people, records, and the prompt.  No I/O.

1. A record is 0x1E, JSON, LF where a line begins (core/frame.py); everything else is text.
2. Text is handed on as it comes, made harmless (core/printable.py): a model's answer streams.
3. What stands at the end without LF and is, as a whole line, one of the known prompts says that the board waits for a line.
   The beginning of one is held back until more comes, or ``flush``.
4. A prompt that gives way (it is followed by LF alone) is no line: the board writes it anew after a record.
"""
from codecs import utf_8_decode

from clawlite.core.printable import printable

PROMPTS = ("> ", "[y/N] ", ">>> ", "... ")      # of agents, of their questions, and of MicroPython
TEXT, PROMPT, RECORD = "text", "prompt", "record"
MAX_RECORD = 1 << 20            # bytes; a longer one is dropped
_MARK = 0x1E


class BoardText:
    """What comes from one board.

    prompts  list of texts that are prompts, beside ``PROMPTS``
    """

    def __init__(self, prompts=()):
        self._prompts = [text.encode() for text in (*PROMPTS, *prompts)]
        self._data = b""                # not handed on yet
        self._begun = False             # part of the open line has been handed on
        self._record = None             # what has come of a record
        self._waits = False             # the open line is a prompt, and that was told

    def feed(self, data: bytes):
        """Take bytes from the board, in any portion."""
        self._data += data

    def next_event(self):
        """Return (kind, bytes) of what comes next, or None: text, a prompt, or a record's JSON."""
        while self._data:
            if self._record is None and self._data[0] == _MARK and not self._begun:
                self._record, self._data = b"", self._data[1:]
            if self._record is not None:
                record = self._take_record()
                if record:
                    return RECORD, record
                if self._record is not None:
                    return None
                continue
            line, end, rest = self._data.partition(b"\n")
            if not end:
                return self._open_line()
            self._data = rest
            gives_way = not self._begun and line.removesuffix(b"\r") in self._prompts
            self._begun = self._waits = False
            if not gives_way:
                return TEXT, _shown(line.removesuffix(b"\r"), True)[0] + b"\n"
        return None

    def flush(self):
        """Nothing more has come: return (TEXT, what was held back), or None."""
        if not self._data or self._waits or self._record is not None:
            return None
        data, self._data = self._data, b""
        self._begun = True
        return TEXT, _shown(data, True)[0]

    @property
    def is_holding(self) -> bool:
        """Whether ``flush`` has something."""
        return bool(self._data) and not self._waits and self._record is None

    def entered(self):
        """A line was sent: what the board writes from now on begins a line."""
        if self._waits:
            self._data = b""
        self._begun = self._waits = False

    def _take_record(self) -> bytes:
        part, end, rest = self._data.partition(b"\n")
        record = self._record + part[:MAX_RECORD + 1 - len(self._record)]
        self._data = rest
        self._record = None if end else record
        return record.removesuffix(b"\r") if end and len(record) <= MAX_RECORD else b""

    def _open_line(self):
        """Return the event of a line whose LF has not come, or None."""
        if not self._begun:
            if self._data in self._prompts:
                was_told, self._waits = self._waits, True
                return None if was_told else (PROMPT, self._data)
            if any(prompt.startswith(self._data) for prompt in self._prompts):
                return None
        self._waits = False
        keep = 1 if self._data.endswith(b"\r") else 0
        shown, used = _shown(self._data[:len(self._data) - keep], False)
        self._data = self._data[used:]
        if not used:
            return None
        self._begun = True
        return TEXT, shown


def _shown(data: bytes, is_whole: bool) -> tuple[bytes, int]:
    """Return (what is shown of *data*, how many of its bytes that are): a character whose end has not come waits."""
    text, used = utf_8_decode(data, "backslashreplace", is_whole)
    return printable(text.encode()), used
