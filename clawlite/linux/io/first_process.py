"""The first process of a container: it waits for the children that others leave behind.

Programs that outlive the tool that started them become children of process 1, and each keeps a
process number until process 1 has waited for it.  An agent cannot do that: a wait for any child
would take the end of a child of tools.py from under it.  So where the command is process 1, it
forks: the child is the command, the parent waits for whatever ends and passes signals on, as
``docker run --init`` would have it.
"""

import os

try:
    import _signal as signal
except ImportError:
    import signal

# those that a fault of the parent's own raises, and those that cannot be blocked
_OWN = (signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGKILL, signal.SIGSTOP)


def stand_aside():
    """Return in a child; this process, which is the first one, ends when that child does."""
    passed = signal.valid_signals() - set(_OWN)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, passed)
    try:
        command = os.fork()
    except OSError:  # no more processes: as before, without the care for others
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    if command == 0:
        _take_terminal()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return
    while True:
        number = signal.sigwait(passed)
        if number == signal.SIGCHLD:
            _reap(command)
        else:
            try:
                os.kill(command, number)
            except ProcessLookupError:  # it has just ended
                pass


def _take_terminal():
    """Make this process a group of its own in the foreground: Ctrl-C comes to it once, from the
    terminal, and not from its parent too.
    """
    os.setpgid(0, 0)
    try:
        if os.isatty(0):
            os.tcsetpgrp(0, os.getpid())  # while SIGTTOU is blocked
    except OSError:  # it is not the terminal of this session
        pass


def _reap(command: int):
    """Wait for each child that has ended; end with the exit code of *command*."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        except ChildProcessError:
            return
        if not pid:
            return
        if pid != command:
            continue
        if os.WIFSTOPPED(status):  # by Ctrl-Z: no shell is there to go on with it
            os.kill(command, signal.SIGCONT)
        else:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)
