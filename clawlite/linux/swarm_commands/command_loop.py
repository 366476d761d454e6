"""The loop of a command that speaks for members of a swarm."""

import select
import signal

from clawlite.linux.io.stdio import now_ms


def until_signal(step) -> int:
    """Call *step*() again and again, until a signal; return 0 after SIGTERM, 130 after Ctrl-C."""
    ends: list = []

    def end(*_):
        ends.append(0)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        while True:
            step()
    except KeyboardInterrupt:
        return ends[0] if ends else 130


def wait(fds, members, due=()) -> list:
    """Wait until one of *fds* or of the descriptors of *members* is readable, or until the first
    time (milliseconds of ``now_ms``; None: never) of *due* and of the members' deadlines; return
    the descriptors that are readable.
    """
    poll = select.poll()
    times = list(due)
    for fd in fds:
        poll.register(fd, select.POLLIN)
    for member in members:
        poll.register(member.fileno(), select.POLLIN)
        times.append(member.deadline())
    first = min([at for at in times if at is not None], default=None)
    return [fd for fd, _ in poll.poll(None if first is None else max(0, first - now_ms()))]
