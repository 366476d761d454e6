"""One row of a terminal that a person edits: what stands on it and where its cursor is.

A text that is wider than the row is shown in part, around the cursor: no arithmetic over wrapped
rows can go wrong, and what gives way to other output is one row.  What is at its place already is
not written again, so that typing at the end costs the bytes of what is typed and no escape
sequence.  Sequences: CUB, CUF, EL (ECMA-48), which every terminal knows that has a TERM and is not
"dumb"."""

_WIDE = "WF"
_LINE_END = "\u21b5"  # within a text of several lines that is being edited
# these and U+202A..202E, U+2066..2069 turn a line's direction and could disguise it
_TURNS = "\u200e\u200f\u061c"


def cells(text: str) -> int:
    """Return how many cells *text* fills: 0, 1 or 2 for each character (Unicode UAX #11, and
    marks that join others).
    """
    if text.isascii():
        return len(text)
    from unicodedata import category, east_asian_width

    count = 0
    for c in text:
        if east_asian_width(c) in _WIDE:
            count += 2
        elif not (category(c) in ("Mn", "Me", "Cf") or "\u1160" <= c <= "\u11ff"):
            count += 1
    return count


def plain(text: str) -> str:
    """Return *text* with one visible character in place of each that is none: a tab, a byte that
    is no UTF-8, what moves a cursor.
    """
    if text.isprintable():
        return text
    return "".join([c if c.isprintable() else _visible(c) for c in text])


def _visible(c: str) -> str:
    if c == "\t":
        return " "
    if c == "\n":
        return _LINE_END
    if (
        c < " "
        or "\x7f" <= c < "\xa0"
        or "\ud800" <= c <= "\udfff"
        or c in _TURNS
        or "\u202a" <= c <= "\u202e"
        or "\u2066" <= c <= "\u2069"
        or c == "\u2028"
        or c == "\u2029"
    ):
        return "\ufffd"
    # spaces of other widths, joiners, characters newer than this Python
    return c


def _reach(text: str, pos: int, room: int) -> int:
    """Return the first character of *text* from which on all before *pos* fills at most *room*
    cells.
    """
    start = pos
    while start > 0:
        room -= cells(plain(text[start - 1]))
        if room < 0:
            break
        start -= 1
    while start < pos and not cells(text[start]):
        start += 1  # a mark without what it joins
    return start


class Row:
    """The last row.

    columns  int, of the terminal
    out      bytearray, what has to be written to it
    """

    def __init__(self, columns: int):
        self.columns = columns
        self.out = bytearray()
        self._row = ""  # what stands there, beginning at its first cell
        self._at = 0  # cell of the cursor
        self._left = 0  # first character of the text that is shown

    @property
    def is_empty(self) -> bool:
        return not self._row

    def draw(self, prompt: str, text: str, pos: int):
        """Show *prompt* and *text* with the cursor before its character *pos*, as much of it as
        fits.
        """
        prompt = plain(prompt)
        while cells(prompt) > self.columns // 2:
            prompt = prompt[1:]
        # the last cell stays free: a terminal may wrap after it
        room = max(2, self.columns - 1 - cells(prompt))
        self._scroll(text, pos, room)
        end = self._left
        while end < len(text) and room > 0:
            room -= cells(plain(text[end]))
            end += room >= 0
        before = prompt + plain(text[self._left : pos])
        self._write(before + plain(text[pos:end]), cells(before))

    def finish(self, prompt: str, text: str):
        """Leave all of *prompt* and *text* there, on as many rows as it needs, and go to the
        next.
        """
        first, *lines = text.split("\n")
        row = plain(prompt) + plain(first)
        if not row.startswith(self._row):
            self.erase()
        self._write(row, None)
        for line in lines:
            self.out += b"\n" + plain(line).encode("utf-8", "replace")
        self.out += b"\n"
        self.forget()

    def erase(self):
        """Take what stands there away; the cursor is at the first cell then."""
        if self._row:
            self.out += b"\r\x1b[K"
            self.forget()

    def forget(self):
        """Take the cursor for at the first cell of an empty row."""
        self._row, self._at = "", 0

    def _scroll(self, text: str, pos: int, room: int):
        """Choose the first character that is shown; it moves by a third of the row, lest each
        key draw all of it anew.
        """
        if len(text) <= room and cells(plain(text)) <= room:
            self._left = 0
        elif pos < self._left:
            self._left = _reach(text, pos, room // 3)
        elif self._left < _reach(text, pos, room):
            self._left = _reach(text, pos, room * 2 // 3)

    def _write(self, row: str, at):
        """Make the row *row* and put the cursor at the cell *at*, or at its end when that is
        None.
        """
        same = 0
        for old, new in zip(self._row, row):
            if old != new:
                break
            same += 1
        while 0 < same and (
            same < len(row)
            and not cells(row[same])
            or same < len(self._row)
            and not cells(self._row[same])
        ):
            same -= 1  # a mark is written with what it joins
        if same < len(self._row) or same < len(row):
            self._move(cells(row[:same]))
            self.out += row[same:].encode("utf-8", "replace")
            self._at = cells(row)
            if cells(self._row) > self._at:
                self.out += b"\x1b[K"
            self._row = row
        self._move(cells(row) if at is None else at)

    def _move(self, cell: int):
        if cell != self._at:
            self.out += b"\x1b[%d%c" % (abs(cell - self._at), b"D" if cell < self._at else b"C")
        self._at = cell
