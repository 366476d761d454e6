"""The line "thinking, 12 s": a person sees that a model works, and for how long; or what an MCP
server tells of a call's progress.

1. It counts from the moment a request of the console's turn is made until the first text of its
   answer, and is shown from 1 s on.
2. It is shown on a terminal that can edit lines.  ``ask`` shows it on stderr, where that is such
   a terminal.  Nothing of it reaches a pipe or a file.
3. Whatever else is shown takes its place: it never stands between the lines of an answer.
"""

import os

_WIPE = b"\r\x1b[K"


class Thinking:
    """What stands on the screen while the console's turn waits for a model.

    shell    ``shell.Shell``
    now_ms   function -> monotonic ms
    Raises nothing: a terminal that is gone shows nothing more.
    """

    def __init__(self, shell, now_ms):
        self._shell = shell
        self._now_ms = now_ms
        self._request = None  # number of the connection, while one is open
        self._since_ms = 0
        self._due_ms = None  # when the line changes next
        self._on_stderr = False  # it stands there now
        is_plain = os.environ.get("TERM", "") in ("", "dumb")
        self._may_use_stderr = shell.answers is not None and os.isatty(2) and not is_plain

    def deadline(self):
        """Return the monotonic time of the next ``update`` that changes the line, or None."""
        return self._due_ms

    def update(self):
        """Show how long the model has been thinking, or take the line away."""
        shell, now = self._shell, self._now_ms()
        turn = shell.console.turn
        asks = turn is not None and shell.remote is not None
        request = shell.remote.connection(turn) if asks else None
        if request != self._request:
            self._request, self._since_ms = request, now
            self._due_ms = None if request is None else now + 1000
            self.wipe()
        if self._due_ms is not None and now >= self._due_ms:
            seconds = (now - self._since_ms) // 1000
            self._due_ms = self._since_ms + (seconds + 1) * 1000
            self.show("thinking, %d s" % seconds)

    def stop(self):
        """The first text has come."""
        self._due_ms = None
        self.wipe()

    def wipe(self):
        """Take the line away, until it changes next."""
        if self._shell.screen.edits:
            self._shell.screen.show_status("")
        if self._on_stderr:
            self._on_stderr = False
            self._write(_WIPE)

    def show(self, text: str):
        """Show *text*, until something else takes its place."""
        if self._shell.screen.edits:
            self._shell.screen.show_status(text)
        elif self._may_use_stderr:
            self._shell.wire.flush(0)
            self._on_stderr = True
            self._write(_WIPE + text.encode())

    def _write(self, data: bytes):
        try:
            os.write(2, data)
        except OSError:
            self._may_use_stderr = self._on_stderr = False
