"""The asyncio loop of a gateway on each system, and the signals that end it.

Windows has two kinds of loop: only the one with ``select`` waits for the sockets that a gateway
waits for, and neither takes signals.  A program is then a ``subprocess.Popen`` behind a ``Bridge``,
because that loop starts none."""

import asyncio
import signal
import socket
import sys

from clawlite.host.systems.processes import ENDS


def run(work) -> int:
    """Run the coroutine *work* to its end; return what it does."""
    factory = asyncio.SelectorEventLoop if sys.platform == "win32" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(work)


def on_end(loop, call) -> None:
    """Call *call*(number) in *loop* for each signal that asks for the end."""
    try:
        for number in ENDS:
            loop.add_signal_handler(number, call, number)
    except NotImplementedError:
        # Python's own handlers run when the loop wakes up, which the socket sees to
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        loop.add_reader(ours, _drain, ours, theirs)
        for number in ENDS:
            signal.signal(number, lambda number, frame: loop.call_soon_threadsafe(call, number))


def _drain(ours, theirs) -> None:
    """Read what woke the loop.  *theirs* is held here, or it would be closed."""
    ours.recv(512)
