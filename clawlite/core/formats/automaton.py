"""Regular expressions as tables: one look-up per byte, for every pattern and every text.

``clawlite.host.schema.automata`` compiles a pattern to a table of bytes, and this module walks it.
A device has no other regular expressions: MicroPython's ``re`` silently never matches ``{n,m}``,
and CPython's needs seconds for some texts.

A table with n states and k byte classes (u16 are little-endian; ROWS is n * k cells of 1 byte when
n <= 256, else 2):

    offset        bytes  content
    0             ROWS   next state of (state s, class c) at cell s * k + c
    ROWS          256    class of each byte value, 0 .. k - 1
    ROWS + 256    1      k - 1
    ROWS + 257    1      format: 0xA1 one byte a cell, 0xA2 two
    ROWS + 258    2      n, 1 .. 2048
    ROWS + 260    2      start state
    ROWS + 262    2      first accepting state: this one and all later ones accept; n: none does

Rules: 1. The rows are at offset 0, so that the loop needs no addition.  2. A search that has
matched stays in an accepting state, so the state after the last byte is the answer.  3. Call
``validate`` once where a table enters the device; ``search`` checks lengths only.  A table that was
never validated gives ImageError or a wrong answer, never IndexError."""

from clawlite.core.base.dialect import const
from clawlite.core.base.errors import ImageError

MAX_STATES = 2048
_NARROW = const(0xA1)
_WIDE = const(0xA2)
_TAIL = const(264)  # the class map and the eight bytes after it


def search(table: bytes, data: bytes) -> bool:
    """Return whether the pattern of *table* matches somewhere in *data* (UTF-8, of any length).

    Raises ImageError when the table is damaged.
    Cost    O(len(data)), 256 B allocated; 40 ns a byte on CPython 3.11, 3 ns with the compiled
            extension.
    """
    rows = len(table) - _TAIL
    if rows < 1:
        raise ImageError("automaton of %d bytes is too short" % len(table))
    classes = table[rows : rows + 256]
    width = table[rows + 256] + 1
    form = table[rows + 257]
    states = table[rows + 258] | table[rows + 259] << 8
    state = table[rows + 260] | table[rows + 261] << 8
    accepting = table[rows + 262] | table[rows + 263] << 8
    if rows != states * width * (form - _NARROW + 1) or form != _NARROW and form != _WIDE:
        raise ImageError("automaton does not fit its own header")
    try:
        if form == _NARROW:
            for byte in data:
                state = table[state * width + classes[byte]]
        else:
            for byte in data:
                cell = (state * width + classes[byte]) * 2
                state = table[cell] | table[cell + 1] << 8
    except IndexError:
        raise ImageError("automaton leaves its own table")
    return state >= accepting


def validate(table: bytes) -> None:
    """Check every number of *table* (see above); raise ImageError for the first that is out of
    range.

    Cost    O(len(table)).
    """
    search(table, b"")  # the header
    rows = len(table) - _TAIL
    width = table[rows + 256] + 1
    states = table[rows + 258] | table[rows + 259] << 8
    wide = table[rows + 257] == _WIDE
    if states > MAX_STATES:
        raise ImageError("automaton has %d states, at most %d are allowed" % (states, MAX_STATES))
    if (table[rows + 260] | table[rows + 261] << 8) >= states:
        raise ImageError("automaton starts outside its own table")
    for at in range(rows, rows + 256):
        if table[at] >= width:
            raise ImageError(
                "automaton has %d byte classes and names class %d" % (width, table[at])
            )
    for at in range(0, rows, 2 if wide else 1):
        state = table[at] | table[at + 1] << 8 if wide else table[at]
        if state >= states:
            raise ImageError("automaton has %d states and names state %d" % (states, state))
