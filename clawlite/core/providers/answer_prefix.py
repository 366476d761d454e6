"""The beginning of an answer's text when it is a mark: loaded only then.

A server that does not know how its model calls tools hands on the call as text.  It is shown as the
text that it is, and ``is_call`` says that a call was meant.  Where such calls may run, a text that
may be one is held to its end (core/turns/text_call.py).

Some servers leave a model's thoughts in the text of its answer, between marks at its beginning.
They are not shown, as thoughts in a field of their own are not.
"""

from clawlite.core.base.text import decode_utf8

_THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("[THINK]", "[/THINK]"),
)


_CALLS = (
    "<tool_call>",
    "<tool_calls>",
    "<function=",
    "<|python_tag|>",
    "<|tool_call",
    "<|START_ACTION|>",
    "[TOOL_CALLS]",
    "<\uff5ctool",
)
# how else a call may begin where such calls may run: no reader knows these as marks of a call
_MAYBE = ("{", "[{", "[\n", "```json", "```tool_call", "```\n{", "```\n[", "functools[")
_START = 32  # characters that decide whether a text begins as a call


class AnswerPrefix:
    """The text of one answer, from its first piece on.

    most  bytes of a text that is held because it may be a call, 0 where no text runs
    """

    def __init__(self, most: int = 0):
        self._most = most
        self._call = bytearray()  # the text that may be a call
        self._start = ""  # of what is shown
        self._held = ""  # what is neither shown nor dropped yet
        self._close = ""  # the mark that ends the thought that the text is in
        self._is_over = False  # no thought can follow

    def add(self, text: str) -> str:
        """Take a piece of the text; return what may be shown now."""
        if self._is_over:
            return self._hold_back(text)
        self._held += text
        while True:
            if self._close:
                at = self._held.find(self._close)
                if at < 0:  # the end of what is held may begin the mark
                    self._held = self._held[1 - len(self._close) :]
                    return ""
                self._held = self._held[at + len(self._close) :].lstrip()
                self._close = ""
            start = self._held.lstrip()
            is_text = True
            for mark, close in _THOUGHTS:
                if start.startswith(mark):
                    self._held = start[len(mark) :]
                    self._close = close
                    break
                is_text = is_text and not mark.startswith(start)
            else:
                if is_text:
                    self._is_over = True
                    held, self._held = self._held, ""
                    return self._hold_back(held)
                return ""

    def rest(self) -> str:
        """Return what is held at the end of the text, and hold it no more; a thought without an
        end is dropped.
        """
        held = "" if self._close else self._held
        self._held = ""
        held = self._hold_back(held) if held.strip() else ""
        return self._release() if self._call else held

    def is_call(self) -> bool:
        """Return whether the text begins as a call does that nobody has read out of it."""
        start = self._start.lstrip()
        for mark in _CALLS:
            if start.startswith(mark):
                return True
        return False

    def is_holding(self) -> bool:
        """Return whether the text may be a call that may run."""
        return self._most > 0 and self._start != ""

    def _hold_back(self, text: str) -> str:
        if len(self._start) < _START:
            self._start = (self._start + text)[:_START]
        if not self._most:
            return text
        self._call.extend(text.encode())
        if len(self._call) <= self._most and _may_begin(self._start):
            return ""
        self._most = 0
        return self._release()

    def _release(self) -> str:
        """Return the text that was held because it may be a call, and hold it no more."""
        held = decode_utf8(self._call)
        self._call = bytearray()
        return held


def _may_begin(text: str) -> bool:
    """Return whether *text*, or what may follow it, begins as a call may."""
    text = text.lstrip()
    for mark in _CALLS + _MAYBE:
        if text.startswith(mark) or mark.startswith(text):
            return True
    return False
