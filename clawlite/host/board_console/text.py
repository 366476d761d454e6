"""Split the output of a board into lines and pieces of lines for people, records, and the prompt.
No I/O.

1. A record is 0x1E, JSON, LF where a line begins (core/line/frame.py); everything else is text.
2. Text is made harmless (protocols/base/pieces.py), and a long line is handed on as it comes: a
   model's answer streams.
3. When the output ends with a known prompt as a line of its own, without LF, the board waits for a
   line.  Other short lines without an end are held back until more comes, or until ``flush``,
   because they may be unknown prompts.
4. A prompt that is followed by LF alone is no line: the board wrote a record and repeats the prompt
   after it.  A line may be on its way to the board at that moment.  The prompt behind the record is
   then the old one, and does not answer that line.
"""

from codecs import utf_8_decode

from clawlite.protocols.base.pieces import Pieces

PROMPTS = ("> ", "[y/N] ", ">>> ", "... ")  # of agents, of their questions, and of MicroPython
TEXT, PROMPT, RECORD = "text", "prompt", "record"
MAX_RECORD = 1 << 20  # bytes; a longer one is dropped
MAX_PROMPT = 64  # bytes
_MARK = 0x1E


class BoardText:
    """What comes from one board.

    prompts  list of texts that are prompts, beside ``PROMPTS``
    """

    def __init__(self, prompts=()):
        self._prompts = [text.encode() for text in (*PROMPTS, *prompts)]
        self._pieces = Pieces()
        self._data = b""  # not handed on yet
        self._begun = False  # part of the open line has been handed on
        self._record = None  # what has come of a record
        self._told = None  # the open line, once it was told to be a prompt
        self._skips = False  # the next prompt is dropped
        self._gives_way = False  # nothing has come behind the prompt that a line was sent to

    def feed(self, data: bytes):
        """Take bytes from the board, in any portion."""
        self._data += data

    def next_event(self):
        """Return (kind, bytes) of what comes next, or None: text, a prompt, or a record's JSON."""
        while self._data:
            if self._gives_way:
                if self._data == b"\n":
                    return None
                self._gives_way = False
                if self._data.startswith(b"\n\x1e"):
                    self._data, self._skips = self._data[1:], True
            if self._record is None and self._data[0] == _MARK and not self._begun:
                self._record, self._data = b"", self._data[1:]
            if self._skips and self._record is None and not self._begun and self._drops():
                continue
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
            self._begun, self._told = False, None
            if not gives_way:
                return TEXT, self._escape_piece(line.removesuffix(b"\r") + b"\n", True)[0]
        return None

    def flush(self, is_prompt: bool):
        """Nothing more has come: return the event of what was held back, as a prompt when
        *is_prompt*; or None.
        """
        if (
            not self.is_holding
            or self._skips
            and any(prompt.startswith(self._data) for prompt in self._prompts)
        ):
            return None
        if self._gives_way:
            self._gives_way = False
            return self.next_event()
        if is_prompt and not self._begun:
            self._told = self._data
            return PROMPT, self._data
        data, self._data = self._data, b""
        self._begun = True
        return TEXT, self._escape_piece(data, True)[0]

    @property
    def is_holding(self) -> bool:
        """Whether ``flush`` has something."""
        return bool(self._data) and self._data != self._told and self._record is None

    def begin_line(self):
        """A line was sent: the next output of the board begins a line."""
        if self._data == self._told:
            self._data = b""
        self._begun, self._told, self._gives_way = False, None, True

    def skip(self):
        """The next prompt does not wait for a line: one was sent before the prompt came."""
        self._skips = True

    def _drops(self) -> bool:
        """Take the prompt away that the open line begins with; return whether there is one."""
        first = next((prompt for prompt in self._prompts if self._data.startswith(prompt)), None)
        if first:
            self._data, self._skips, self._gives_way = self._data[len(first) :], False, True
        return first is not None

    def _take_record(self) -> bytes:
        part, end, rest = self._data.partition(b"\n")
        record = self._record + part[: MAX_RECORD + 1 - len(self._record)]
        self._data = rest
        self._record = None if end else record
        return record.removesuffix(b"\r") if end and len(record) <= MAX_RECORD else b""

    def _open_line(self):
        """Return the event of a line whose LF has not come, or None."""
        if not self._begun:
            if self._data == self._told:
                return None
            self._told = self._data if self._data in self._prompts else None
            if self._told:
                return PROMPT, self._told
            if len(self._data) <= MAX_PROMPT:
                return None
        keep = 1 if self._data.endswith(b"\r") else 0
        shown, used = self._escape_piece(self._data[: len(self._data) - keep], False)
        self._data = self._data[used:]
        if not used:
            return None
        self._begun = True
        return TEXT, shown

    def _escape_piece(self, data: bytes, is_whole: bool) -> tuple[bytes, int]:
        """Return (what is shown of *data*, how many of its bytes that are): a character whose end
        has not come waits.
        """
        text, used = utf_8_decode(data, "backslashreplace", is_whole)
        return self._pieces.show(text), used
