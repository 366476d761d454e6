"""Pieces of a text are shown as the whole text is, however it is cut."""

from clawlite.core.base.printable import printable
from clawlite.protocols.base.pieces import Pieces

TEXTS = (
    "plain\nlines\ttoo",
    "e" + "\u0301" * 30 + " a\u0302\u0323b",  # a stack
    "\x1b[2J\u202egpj\u200b\r\x9b",
    "\u2600\ufe0f\u200d\U0001f308 \U0001f469\u200d\U0001f52c x\u200dy",
    "\u0928\u093f\u0916\u093f\u0932 \u6c34",
    "",
)


def test_pieces_are_shown_as_the_whole():
    for text in TEXTS:
        for size in (1, 2, 3, 7, 100):
            pieces, shown = Pieces(), b""
            for at in range(0, len(text), size):
                shown += pieces.show(text[at : at + size])
            assert shown == printable(text.encode()), (text, size, shown)


def test_a_stack_that_comes_mark_by_mark_is_cut():
    pieces = Pieces()
    shown = b"".join([pieces.show(c) for c in "e" + "\u0301" * 30])
    assert shown.count("\u0301".encode()) == 3 and shown.count(b"\\u0301") == 27
