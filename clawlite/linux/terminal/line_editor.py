"""Lines that a person edits on a terminal: its bytes in, whole lines and the bytes to show out.  No
I/O.

It stands in for ``frame.Framer`` where a terminal has abilities, with the same events, and the
kernel's editing is off.

1. What other parts write goes through ``show``: prompt and what is typed give way, and come back
   with ``refresh``.
2. A line is shown when its Enter comes, whole, also one that comes while no prompt is open.
3. A record (0x1E, JSON, LF) is one only where a line begins; it is neither edited, nor shown, nor
   remembered.
4. A question (``ask``) gets a line of its own: what was typed before it is put aside, and comes
   back after it.
5. Bytes that are no UTF-8 are kept as they are: the reader of the line refuses it and says so.
6. What is pasted is text, whatever is in it: its line ends are part of the line, and Enter alone
   sends it ("bracketed paste": a terminal marks both ends of it once ``mark_pastes`` was sent).
7. Ctrl-R looks for an earlier line by a part of it; Tab completes what ``complete`` knows.
"""

from _codecs import utf_8_decode

from clawlite.core.line.frame import TEXT, TOO_LONG, Framer
from clawlite.linux.terminal.history import History
from clawlite.linux.terminal.terminal_row import Row, plain

_SEARCH = "(earlier: %s) "
_MOST_SHOWN = 40  # of what Tab may mean
# around a paste (xterm's control sequences, "Bracketed Paste Mode")
_PASTE_BEGIN, _PASTE_END = "[200~", "\x1b[201~"
_MARK = "\x1e"
_SEQUENCE = 32  # characters of an escape sequence, at most
_KEYS = {  # control characters, and the ends of escape sequences
    "\x01": "home",
    "\x02": "left",
    "\x05": "end",
    "\x06": "right",
    "\x07": "leave_search",
    "\x08": "backspace",
    "\x09": "complete",
    "\x7f": "backspace",
    "\x0b": "cut",
    "\x0c": "clear",
    "\x0e": "newer",
    "\x10": "older",
    "\x12": "search_earlier",
    "\x15": "cut_before",
    "\x17": "cut_word",
    "\x04": "delete",
    "A": "older",
    "B": "newer",
    "C": "right",
    "D": "left",
    "H": "home",
    "F": "end",
    "1~": "home",
    "7~": "home",
    "4~": "end",
    "8~": "end",
    "3~": "delete",
}


class Editor:
    """One line under way, the lines before it, and the row of the terminal that shows it.

    limit     bytes that a line may have
    columns   int, of the terminal
    history   ``history.History``; None: of this start alone
    complete  function(text before the cursor) -> (characters that are replaced, candidates)
    at_end   True once Ctrl-D came on an empty line: what follows is not looked at
    """

    edits = True
    # sent to the terminal when the editing begins, and at its end
    mark_pastes, leave_pastes = b"\x1b[?2004h", b"\x1b[?2004l"

    def __init__(self, limit: int, columns: int = 80, history=None, complete=None):
        self.limit = limit
        self._completions = complete
        self._status = ""
        self.at_end = False
        self.row = Row(columns)
        self._records = Framer(limit)
        self._bytes = b""  # of a character whose end has not come
        self._input, self._next = "", 0
        self._text, self._pos = "", 0
        self._lost = 0  # bytes of a line that became too long
        self._sequence = None  # what has come of an escape sequence
        self._in_record = False
        self._paste = None  # ``_Paste`` while one is under way
        # the last character was a carriage return: a line feed after it adds nothing
        self._return = False
        self._prompt = None  # None: nobody waits for a line
        self._open = False  # other output stands on the last row, without its end
        self._history, self._back, self._draft = history or History(), 0, ""
        self._search = None  # (words, what was typed before) while an earlier line is looked for
        self._aside = None  # (text, position) put aside while a question is open

    # -- lines in

    def feed(self, data: bytes):
        """Take bytes from the terminal, in any portion."""
        text, used = utf_8_decode(self._bytes + data, "surrogateescape", False)
        self._bytes = (self._bytes + data)[used:]
        self._input = self._input[self._next :] + text
        self._next = 0

    def finish(self):
        """Input is over: a line without Enter was never sent."""

    def send(self, json_bytes: bytes) -> bytes:
        """Return the bytes of a record that goes out."""
        return self._records.send(json_bytes)

    def next_event(self):
        """Return ``(kind, payload)`` of the next line, as ``Framer`` does, or None when more
        bytes are wanted.
        """
        while self._next < len(self._input) and not self.at_end:
            if self._paste:
                self._take_paste()
                continue
            event = self._record() if self._in_record else self._character()
            if event:
                return event
        self._input, self._next = "", 0
        return None

    def _record(self):
        end = self._input.find("\n", self._next) + 1 or len(self._input)
        self._records.feed(self._input[self._next : end].encode("utf-8", "surrogateescape"))
        self._in_record = self._input[end - 1] != "\n"
        self._next = end
        return self._records.next_event()

    def _character(self):
        c = self._input[self._next]
        if c == _MARK and not self._text and not self._lost:
            self._in_record = True
            return None
        self._next += 1
        after_return, self._return = self._return, c == "\r"
        if self._sequence is not None and self._escape(c):
            return None
        if c == "\n" and after_return:
            return None
        if c in "\r\n":
            return self._enter()
        if c == "\x1b":
            self._sequence = ""
        elif c == "\x04" and not self._text and not self._lost:
            self.at_end = True
        elif c in _KEYS and c < " " or c == "\x7f":
            self._press(_KEYS[c])
        elif not _is_control(c):
            self._type(self._next - 1)
        return None

    def _press(self, key: str):
        """Carry a key out; while an earlier line is looked for, most keys take the one found."""
        if self._search and key == "backspace":
            self._look_for(self._search[0][:-1], 0)
            return
        if self._search and key not in ("search_earlier", "leave_search"):
            self._search = None
        getattr(self, "_" + key)()

    def _escape(self, c: str) -> bool:
        """Take *c* as part of an escape sequence; False when it is none, and the sequence is
        forgotten.
        """
        sequence = self._sequence + c
        if c < " " or c >= "\x7f" or len(sequence) > _SEQUENCE:
            self._sequence = None
            return False
        if sequence in ("[", "O", "[[") or sequence[0] == "[" and not "@" <= c <= "~":
            self._sequence = sequence
            return True
        self._sequence = None
        if sequence == _PASTE_BEGIN:
            self._paste = _Paste(self.limit)
            return True
        # parameters of a key with a letter are its modifiers; "[[" begins a function key, Escape
        # and a letter is Alt
        key = (
            _KEYS.get(c if c != "~" else sequence[1:])
            if len(sequence) > 1 and sequence[1] != "["
            else None
        )
        if key:
            self._press(key)
        return True

    def _type(self, start: int):
        """Take the characters from *start* on that are text, at once: a paste may be long."""
        end = start + 1
        while end < len(self._input) and not _is_control(self._input[end]):
            if self._input[end] == "\t" and self._completions:
                break
            end += 1
        self._next = end
        if self._search:
            self._look_for(self._search[0] + self._input[start:end], max(0, self._back - 1))
        else:
            self._insert(self._input[start:end])

    def _take_paste(self):
        """Take what has come of a paste, up to its end."""
        rest = self._paste.feed(self._input[self._next :])
        self._next = len(self._input) if rest is None else len(self._input) - len(rest)
        if rest is not None:
            paste, self._paste = self._paste, None
            if paste.lost:
                self._lost += paste.lost
                self._set("")
            else:
                self._insert(paste.text())

    def _insert(self, piece: str):
        size = len(piece.encode("utf-8", "surrogateescape"))
        if self._lost or size > self.limit - len(self._text.encode("utf-8", "surrogateescape")):
            self._lost += size + len(self._text.encode("utf-8", "surrogateescape"))
            self._set("")
        else:
            self._text = self._text[: self._pos] + piece + self._text[self._pos :]
            self._pos += len(piece)

    def _enter(self):
        text, lost = self._text, self._lost
        self._close_row()
        self.row.finish(self._prompt or "", text)
        self._prompt = None
        self._forget()
        if lost:
            return TOO_LONG, b"%d" % lost
        if self._aside is None:
            self._history.add(text)
        return TEXT, text.encode("utf-8", "surrogateescape")

    # -- keys

    def _set(self, text: str):
        self._text, self._pos = text, len(text)

    def _forget(self):
        self._set("")
        self._search = None
        self._lost = self._back = 0

    def _left(self):
        self._pos = max(0, self._pos - 1)

    def _right(self):
        self._pos = min(len(self._text), self._pos + 1)

    def _home(self):
        self._pos = 0

    def _end(self):
        self._pos = len(self._text)

    def _cut(self):
        self._text = self._text[: self._pos]

    def _cut_from(self, start: int):
        self._text = self._text[:start] + self._text[self._pos :]
        self._pos = start

    def _cut_before(self):
        self._lost = 0
        self._cut_from(0)

    def _cut_word(self):
        self._cut_from(self._text[: self._pos].rstrip().rfind(" ") + 1)

    def _backspace(self):
        self._cut_from(max(0, self._pos - 1))

    def _delete(self):
        self._text = self._text[: self._pos] + self._text[self._pos + 1 :]

    def _clear(self):
        self.row.out += b"\x1b[H\x1b[2J"
        self.row.forget()

    def _older(self):
        self._recall(self._back + 1)

    def _newer(self):
        self._recall(self._back - 1)

    def _recall(self, back: int):
        if self._aside is not None or self._lost:
            return
        self._history.load()
        lines = self._history.lines
        if 0 <= back <= len(lines):
            if self._back == 0:
                self._draft = self._text
            self._set(lines[-back] if back else self._draft)
            self._back = back

    def _search_earlier(self):
        """Ctrl-R: look for an earlier line, or for one before the one found."""
        if self._aside is None and not self._lost:
            self._history.load()
            words = self._search[0] if self._search else ""
            self._search = self._search or ("", self._text)
            self._look_for(words, self._back if words else 0)

    def _look_for(self, words: str, back: int):
        """Show the newest line with *words* that is older than the one *back* lines ago."""
        found = self._history.find(words, back) if words else 0
        self._search = words, self._search[1]
        if found or not words:
            self._back = found
            self._set(self._history.lines[-found] if found else self._search[1])

    def _leave_search(self):
        """Ctrl-G: what was typed before comes back."""
        if self._search:
            text = self._search[1]
            self._forget()
            self._set(text)

    def _complete(self):
        """Tab: write what is certain of a word; show what it may be when nothing is."""
        if self._completions is None:
            self._insert("\t")
            return
        if self._aside is not None or self._lost:
            return
        size, found = self._completions(self._text[: self._pos])
        if not found:
            return
        begun = self._text[self._pos - size : self._pos]
        rest = _common_start(found)[len(begun) :]
        if len(found) == 1 and not found[0].endswith("/"):
            rest += " "
        if rest:
            self._insert(rest)
        elif len(found) > 1:
            more = " ..." if len(found) > _MOST_SHOWN else ""
            shown = "  ".join(plain(one) for one in found[:_MOST_SHOWN])
            self._tell_above(shown + more)

    def _tell_above(self, text: str):
        """Show a line above the one that is edited."""
        prompt = self._prompt
        self.show(text.encode("utf-8", "replace") + b"\n")
        self._prompt = prompt

    # -- what is shown

    def show(self, data: bytes, piece: bool = False):
        """Show other output: whole lines, or a *piece* of a line that may stay open."""
        self.row.erase()
        if not piece:
            self._close_row()
        elif self._aside is None:
            # it answers a line that waited: the prompt comes back behind all of it
            self._prompt = None
        self.row.out += data
        self._open = not data.endswith(b"\n") if piece else False

    def record(self, data: bytes):
        """Show a record: for a program that reads along, it begins a line."""
        if not self.row.is_empty:
            self.row.erase()
            self.row.out += b"\n"
        self.show(data)

    def prompt(self, text: str):
        """A line is waited for, from now on."""
        self._close_row()
        self._prompt = text

    def ask(self, asks: bool):
        """A question is open, or the last one is over: what was typed for it and not sent is
        forgotten.
        """
        text, pos = self._aside or ("", 0)
        if self._aside is None:
            text, pos = self._text, self._pos
        self._forget()
        self._prompt = None
        self._aside = (text, pos) if asks else None
        if not asks:
            self._text, self._pos = text, pos

    def interrupt(self):
        """Ctrl-C: leave what is typed where it stands, and forget it."""
        self._sequence, self._in_record, self._records = None, False, Framer(self.limit)
        self._paste = None
        self._leave_row()
        self._forget()
        if self._aside:
            self._aside = ("", 0)

    def show_status(self, text: str):
        """Let *text* stand on the last row while nobody waits for a line, "" for nothing; it is
        shown with ``refresh``.
        """
        self._status = text

    def refresh(self):
        """Bring prompt and what is typed back, or up to date."""
        if self._prompt is None and (self._open or not self._text and not self._status):
            self.row.erase()
        elif self._prompt is None and self._status:
            self.row.draw(
                self._status + "  " if self._text else self._status, self._text, self._pos
            )
        else:
            self._close_row()
            before = _SEARCH % plain(self._search[0]) if self._search else self._prompt or ""
            self.row.draw(before, self._text, self._pos)

    def resize(self, columns: int):
        """The terminal has another width now."""
        self.row.erase()
        self.row.columns = columns

    def close(self):
        """The program ends: the last row is left whole, and the next begins."""
        if not self.row.is_empty:
            self._leave_row()
        self._close_row()

    def output(self) -> bytes:
        """Return what has to be written since this was asked last."""
        data = bytes(self.row.out)
        self.row.out.clear()
        return data

    def _leave_row(self):
        """Leave prompt and what is typed where they stand, and go to the next row; a status
        goes.
        """
        if self._prompt is None and not self._text:
            self.row.erase()
        elif self._text or not self.row.is_empty:
            self.row.finish(self._prompt or "", self._text)

    def _close_row(self):
        if self._open:
            self.row.out += b"\n"
            self._open = False


def _common_start(words: list) -> str:
    """Return what all *words* begin with."""
    first, last = min(words), max(words)
    size = 0
    while size < len(first) and first[size] == last[size]:
        size += 1
    return first[:size]


class _Paste:
    """A paste under way.

    limit  bytes that are kept of it;  lost: bytes of one that is longer, else 0
    """

    def __init__(self, limit: int):
        self._limit = limit
        self._pieces, self._size = [], 0
        self._end = ""  # what may be the beginning of its end
        self.lost = 0

    def feed(self, data: str):
        """Take *data*; return what comes after the end of the paste, or None before that."""
        data = self._end + data
        at = data.find(_PASTE_END)
        if at >= 0:
            self._keep(data[:at])
            return data[at + len(_PASTE_END) :]
        held = len(_PASTE_END) - 1
        while held and not data.endswith(_PASTE_END[:held]):
            held -= 1
        self._end = data[len(data) - held :]
        self._keep(data[: len(data) - held])
        return None

    def _keep(self, piece: str):
        self._size += len(piece.encode("utf-8", "surrogateescape"))
        self._pieces.append(piece)
        if self._size > self._limit:
            self._pieces, self.lost = [], self._size

    def text(self) -> str:
        """Return it with line feeds as line ends, and without other control characters."""
        text = "".join(self._pieces).replace("\r\n", "\n").replace("\r", "\n")
        if text.isprintable():
            return text
        return "".join([c for c in text if c == "\n" or not _is_control(c)])


def _is_control(c: str) -> bool:
    return c < " " and c != "\t" or "\x7f" <= c < "\xa0"
