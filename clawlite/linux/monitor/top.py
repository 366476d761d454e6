"""``clawlite top``: the agents of this machine and the boards of its gateway, with what they use.

On a terminal the table is drawn anew until q or Ctrl-C, on the screen that full-screen programs
have, so that what was there before is there afterwards.  Elsewhere it is printed once.
"""

import os
import select
import shutil
import signal
import sys
import termios
import time
import tty

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import document
from clawlite.linux.io.printing import print_note
from clawlite.linux.monitor.agent_line import HINT, AgentGone, AgentLine, find_agents
from clawlite.linux.monitor.colour import DIM, has_colour, paint
from clawlite.linux.monitor.usage_table import lines_of

# DECSET 1049 (the other screen) and 25 (the cursor), CUP, EL and ED: xterm's ctlseqs; what has none
# of them is "dumb"
_BEGIN, _END = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"
_LEAVE = (b"q", b"Q", b"\x03", b"\x04")
_WIDE = 100000  # columns where nothing has to fit


def show(agents, seconds: float, once: bool, as_json: bool, boards) -> int:
    """Show the agents; return the exit code.  Raises ``ClawError``.

    agents  names; none: all of this machine
    boards  function() -> the rows of ``clawlite gateway devices``
    """
    watched = _Agents(agents, boards)
    try:
        if as_json:
            print(document(watched.look()))
            return 0
        is_screen = os.isatty(0) and os.isatty(1) and os.environ.get("TERM", "") not in ("", "dumb")
        if once or not is_screen:
            found = watched.look()
            width = shutil.get_terminal_size().columns if os.isatty(1) else _WIDE
            print("\n".join(lines_of(found, width, has_colour())))
            if any(not one["reachable"] for one in found["agents"]):
                print_note("clawlite: of an agent without a socket nothing is known - " + HINT)
            return 0
        with _Screen() as screen:
            return screen.watch(watched, seconds)
    finally:
        watched.close()


class _Agents:
    """The lines to the agents, each opened when it is needed first, or again."""

    def __init__(self, names, boards):
        self._names, self._boards, self._lines = names, boards, {}
        find_agents(names)  # a wrong name is an error at once

    def look(self) -> dict:
        """Return what ``--json`` prints."""
        agents = [self._ask(name) for name in find_agents(self._names)]
        return {"agents": agents, "boards": [] if self._names else self._boards()}

    def _ask(self, name: str) -> dict:
        try:
            line = self._lines.get(name)
            if line is None:
                line = self._lines[name] = AgentLine(name, "viewer")
            return {"agent": name, "reachable": True, **line.ask("claw.usage.get")}
        except AgentGone:
            self._lines.pop(name, None)
        except ClawError as e:  # it has an older clawlite, or is ending
            return {"agent": name, "reachable": False, "why": e.message}
        return {"agent": name, "reachable": False}

    def close(self):
        for line in self._lines.values():
            line.close()


class _Screen:
    """The terminal while the table is on it; however this ends, it is as it was before."""

    def __enter__(self):
        self._modes = termios.tcgetattr(0)
        self._handlers = [
            (number, signal.signal(number, handle))
            for number, handle in (
                (signal.SIGTERM, self._on_end),
                (signal.SIGHUP, self._on_end),
                (signal.SIGTSTP, self._on_suspend),
                (signal.SIGWINCH, lambda *_: None),  # it wakes ``select`` where that is not resumed
            )
        ]
        self._begin()
        return self

    def _begin(self):
        tty.setcbreak(0, termios.TCSANOW)
        _write(_BEGIN)

    def _restore(self):
        _write(_END)
        termios.tcsetattr(0, termios.TCSANOW, self._modes)

    def __exit__(self, *_):
        self._restore()
        for number, handler in self._handlers:
            signal.signal(number, handler)

    def _on_end(self, number: int, _):
        raise SystemExit(128 + number)  # by ``__exit__``

    def _on_suspend(self, *_):
        self._restore()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)  # it goes on here with SIGCONT
        signal.signal(signal.SIGTSTP, handler)
        self._begin()

    def watch(self, watched: _Agents, seconds: float) -> int:
        """Draw the table each so many *seconds* until a person leaves; return the exit code."""
        try:
            while True:
                self._draw(watched.look(), seconds)
                until = time.monotonic() + seconds
                while (left_s := until - time.monotonic()) > 0:
                    if select.select([0], [], [], left_s)[0]:
                        typed = os.read(0, 64)
                        if not typed or any(key in typed for key in _LEAVE):
                            return 0
        except KeyboardInterrupt:
            return 130

    def _draw(self, found: dict, seconds: float):
        columns, rows = shutil.get_terminal_size()
        is_coloured = has_colour()
        title = "clawlite top, %s, each %g s, q leaves" % (time.strftime("%H:%M:%S"), seconds)
        lines = [paint(title[:columns], DIM, is_coloured), ""]
        lines += lines_of(found, columns, is_coloured)
        lines = lines[: max(1, rows - 1)]
        _write(_HOME + "".join(line + _REST_OF_LINE + "\r\n" for line in lines) + _REST_OF_SCREEN)


def _write(text: str):
    sys.stdout.flush()
    data = text.encode()
    while data:
        data = data[os.write(1, data) :]
