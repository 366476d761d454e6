"""The beginning of an answer's text when it is a mark: loaded only then.

A server that does not know how its model calls tools hands on the call as text.  It is shown as the
text that it is, and ``is_call`` says that a call was meant.

Some servers leave a model's thoughts in the text of its answer, between marks at its beginning.
They are not shown, as thoughts in a field of their own are not.
"""

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
    "[TOOL_CALLS]",
    "<\uff5ctool",
)
_START = 32  # characters that decide whether a text begins as a call


class Lead:
    """The text of one answer, from its first piece on."""

    def __init__(self):
        self._start = ""  # of what is shown
        self._held = ""  # what is neither shown nor dropped yet
        self._close = ""  # the mark that ends the thought that the text is in
        self._is_over = False  # no thought can follow

    def add(self, text: str) -> str:
        """Take a piece of the text; return what may be shown now."""
        if self._is_over:
            return self._shown(text)
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
                    return self.rest()
                return ""

    def rest(self) -> str:
        """Return what is held at the end of the text, and hold it no more; a thought without an
        end is dropped.
        """
        held = "" if self._close else self._held
        self._held = ""
        return self._shown(held) if held.strip() else ""

    def is_call(self) -> bool:
        """Return whether the text begins as a call does that nobody has read out of it."""
        start = self._start.lstrip()
        for mark in _CALLS:
            if start.startswith(mark):
                return True
        return False

    def _shown(self, text: str) -> str:
        if len(self._start) < _START:
            self._start = (self._start + text)[:_START]
        return text
