"""A terminal whose lines this program edits itself: its modes, its width, and the signals about
them.

1. The kernel's editing and echo are off (not ICANON, ECHO, IEXTEN, ICRNL); Ctrl-C, Ctrl-Z and
   Ctrl-\\ stay signals.
2. However the program ends or is suspended, the modes are as they were: ``close`` and SIGTSTP see
   to it.
3. Modes are set only by a program in the foreground: in the background whoever sets them is stopped
   (SIGTTOU).
4. No call here waits for the terminal: TCSANOW, and what is shown goes through the wire.
5. While lines are edited, the terminal marks what is pasted (line_editor.py).
"""

import fcntl
import os
import termios
from _struct import unpack

try:
    import _signal as signal  # see linux/io/signals.py
except ImportError:
    import signal

from clawlite.linux.terminal.line_editor import Editor

# positions in what ``termios.tcgetattr`` returns
_INPUT, _LOCAL, _CHARACTERS = 0, 3, 6

_MIN_COLUMNS = 8


class Terminal(Editor):
    """Screen (screen.py) and framer (core/line/frame.py) in one.

    wire      ``stdio.Wire``
    limit     bytes that a line may have
    history   and *complete* as of ``Editor``
    """

    def __init__(self, wire, limit: int, history=None, complete=None):
        super().__init__(limit, _columns(), history, complete)
        self._wire = wire
        # modes as they were, as they are while lines are edited
        self._kept = self._set_modes = None
        self._is_edited = False
        # of this object alone: a signal's handler writes to it
        self._switch = _open_again()
        self._earlier = True  # what comes was typed before, in the kernel's own editing
        self._resumed = self._resized = False
        self._handlers = [
            (number, signal.signal(number, handler))
            for number, handler in (
                (signal.SIGTSTP, self._on_leave),
                (signal.SIGCONT, self._on_continue),
                (signal.SIGWINCH, self._on_resize),
            )
            if signal.getsignal(number) != signal.SIG_IGN
        ]
        self._edit()

    # -- modes

    def _edit(self):
        if self._is_edited or not _in_foreground():
            return
        try:
            now = termios.tcgetattr(0)
            if now != self._set_modes:  # who sent SIGSTOP may have left ours
                self._kept = now
            mine = [*self._kept[:_CHARACTERS], list(self._kept[_CHARACTERS])]
            mine[_INPUT] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR)
            mine[_LOCAL] &= ~(termios.ICANON | termios.ECHO | termios.ECHONL | termios.IEXTEN)
            mine[_CHARACTERS][termios.VMIN], mine[_CHARACTERS][termios.VTIME] = 1, 0
            termios.tcsetattr(0, termios.TCSANOW, mine)
            self._set_modes = termios.tcgetattr(0)
        except termios.error:  # it hung up
            return
        self._is_edited = True
        self._tell(self.mark_pastes)

    def _tell(self, sequence: bytes):
        """Send *sequence* to the terminal; one that takes nothing now is left as it is."""
        if self._switch is not None:
            try:
                os.write(self._switch, sequence)
            except OSError:
                pass

    def _restore(self):
        if self._is_edited and _in_foreground():
            self._tell(self.leave_pastes)
            try:
                termios.tcsetattr(0, termios.TCSANOW, self._kept)
            except termios.error:
                pass
        self._is_edited = False

    def _on_leave(self, number, frame):
        self._restore()
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)  # it stops here until SIGCONT, or ends
        signal.signal(number, self._on_leave)
        self._on_continue(number, frame)

    def _on_continue(self, number, frame):
        self._is_edited = False
        self._edit()
        self._resumed = self._resized = True

    def _on_resize(self, number, frame):
        self._resized = True

    # -- what the shell calls, beside what an Editor does

    def feed(self, data: bytes):
        if self._earlier:  # the kernel keeps a Ctrl-D of its own editing as NUL
            data = data.replace(b"\0", b"\x04")
            self._earlier = False
        super().feed(data)

    def give_way(self):
        self.show(b"")
        self._wire.write(self.output())

    def remind(self, data: bytes):
        self.show(data)

    def end_line(self):
        pass

    def adapt(self):
        self._edit()  # brought to the foreground without a signal
        if self._resumed:
            self._resumed = False
            self.row.forget()
        if self._resized:
            self._resized = False
            self.resize(_columns())

    def refresh(self):
        super().refresh()
        if self.row.out:
            self._wire.write(self.output())

    def close(self):
        """Leave the terminal as it was found; again: nothing."""
        handlers, self._handlers = self._handlers, []
        if self._is_edited:
            super().close()
            self._wire.write(self.output())
        self._restore()
        for number, handler in handlers:
            signal.signal(number, handler)
        self._restore()  # a Ctrl-Z may have come between
        switch, self._switch = self._switch, None
        if switch is not None:
            os.close(switch)


def _open_again():
    """Return a descriptor of the terminal that never blocks, or None where it cannot be had."""
    try:
        return os.open("/proc/self/fd/0", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None


def _columns() -> int:
    """Return the width of the terminal (tty_ioctl(4), TIOCGWINSZ: rows, columns, two unused,
    each 16 bits).
    """
    try:
        size = fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8)
    except OSError:
        return 80
    return max(_MIN_COLUMNS, unpack("HHHH", size)[1] or 80)


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    # a terminal that does not control this session: it stops nobody
    except OSError:
        return True
