"""What the tests need of the machine, looked at once, before the first test.

Without it dozens of tests fail or wait, each in its own words, and none of them names the cause.
"""

import os
import signal
import socket
import stat
import sys

SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def hear_signals() -> None:
    """Make the programs under test start with SIGINT, SIGQUIT and SIGHUP as a terminal would start
    them.

    A shell ignores the first two for what it starts with "&", nohup the third one, and children
    inherit that.  A handler of this process is not inherited: exec sets the default.  So a run
    under nohup outlives its terminal."""
    for number in SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(
                number, signal.default_int_handler if number == signal.SIGINT else _outlive
            )
    signal.pthread_sigmask(
        signal.SIG_UNBLOCK, SIGNALS + (signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)
    )


def _outlive(number, frame):
    """Go on."""


def lacks(tmp: str = "/tmp") -> list:
    """Return a sentence for each thing that this machine lacks; an empty list where the tests
    can run.
    """
    return [said for said in (_platform(), _tmp(tmp), _umask(), _loopback(), _terminal()) if said]


def _platform() -> str:
    return (
        ""
        if sys.platform.startswith("linux")
        else "the tests need Linux: expected it, got %s" % sys.platform
    )


def _tmp(path: str) -> str:
    try:
        mode = stat.S_IMODE(os.stat(path).st_mode)
    except OSError as e:
        return "%s: %s - make it: mkdir -m 1777 %s" % (path, e.strerror, path)
    if mode & 0o1777 != 0o1777:
        return (
            "%s: expected mode 1777 (tests run programs as other users), got %o - chmod 1777 %s"
            % (path, mode, path)
        )
    return ""


def _umask() -> str:
    mask = os.umask(0o022)
    os.umask(mask)
    if mask & 0o055:
        return (
            "umask: expected 022 (other users read what tests write), got %03o - run the tests "
            "after: umask 022" % mask
        )
    return ""


def _loopback() -> str:
    try:
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
    except OSError as e:
        return (
            "127.0.0.1: expected a port to listen on, got: %s - bring loopback up: ip link set lo "
            "up" % e.strerror
        )
    return ""


def _terminal() -> str:
    try:
        for fd in os.openpty():
            os.close(fd)
    except OSError as e:
        return "pseudo-terminals: expected one, got: %s - mount /dev/pts" % e.strerror
    return ""
