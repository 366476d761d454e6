"""What people see on stdout: on a pipe plain lines, on a terminal also the prompt.

The kernel edits what is typed; terminal.py does where a terminal has the abilities, with the same
methods."""


class Screen:
    """stdout for people, with records between.

    wire      ``stdio.Wire``
    terminal  bool, a person sees the prompt
    """

    edits = False  # the kernel edits lines
    at_end = False  # Ctrl-D ends input: the wire sees that itself

    def __init__(self, wire, terminal: bool):
        self._wire = wire
        self._terminal = terminal
        self._shown = None  # the prompt on the terminal's last line
        # what a provider says piece by piece stands on the last line
        self._open = False

    def show(self, data: bytes, piece: bool = False):
        """Show whole lines, or a *piece* of a line that stays open; on a terminal the prompt
        gives way first.
        """
        lead = b"\n" if self._shown or self._open and not piece else b""
        self._shown, self._open = None, piece and not data.endswith(b"\n")
        self._wire.write(lead + data)

    def record(self, data: bytes):
        """Show a record: it begins a line, and the prompt comes back after it."""
        self.remind(data)

    def remind(self, data: bytes):
        """Show lines, and the prompt again."""
        shown = self._shown
        self.show(data)
        if shown:
            self.prompt(shown)

    def prompt(self, text: str):
        """Say that a line is waited for."""
        if self._open:
            self._wire.write(b"\n")
            self._open = False
        if self._terminal and self._shown != text:
            self._wire.write((("\n" if self._shown else "") + text).encode())
            self._shown = text

    def give_way(self):
        """Somebody else writes to the terminal: that begins a line."""
        self.show(b"")

    def end_line(self):
        """A line has come: the person's Enter has ended the prompt's line."""
        self._shown = None

    def ask(self, asks: bool):
        """A question is open now, or the last one is over."""

    def interrupt(self):
        """Ctrl-C came: the kernel has dropped what was typed."""

    def adapt(self):
        """Deal with what has happened to the terminal."""

    def refresh(self):
        """All is shown that was to be shown, for now."""

    def close(self):
        """Leave the terminal as it was found."""
