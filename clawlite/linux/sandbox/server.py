"""The server: a small Python process of its own that forks a supervisor for each call.

1. It is a fresh interpreter with a clean environment, not a fork of the agent: a child finds no
   secret, socket or thread of the agent in its memory, whenever it is started.
2. It keeps one supervisor ready, with its child.  That supervisor reads the next call from the
   agent's socket itself, so the arguments and environment of a call are never in the server, nor in
   the next child that it forks.
3. It has one thread, and waits for supervisors that take a call or end.  When the agent ends, the
   server waits for them, kills those that take too long, and ends.
4. When the agent is root, the server stays root to build sandboxes.  A child first becomes another
   user.

    python -I -S -c "..." with the agent's socket as stdin; first message: marshal of a dict
    (spawn.start)
"""

import _socket
import fcntl  # noqa: F401    what a supervisor or a child uses later, when it may see no file of Python's any more
import gc
import marshal
import os
import select
import signal
import warnings  # noqa: F401

from clawlite.linux.confinement import cgroups, limits, namespaces, seccomp, syscalls
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.sandbox import bubblewrap, probe, supervisor, watch

MAX_MESSAGE = 65536
MAX_WASTED = 3
_READ, _WRITE = range(2)  # ends of a pipe
_LINE = 3  # position in the descriptors of a call
# delay before the next supervisor is made when no call waits: a short call has the processor for
# itself meanwhile
SPARE_MS = 10
LEAVE_MS = 2000  # more than the GRACE_MS that supervisors need to end their calls


def main():
    """Serve until the agent ends."""
    control = _socket.socket(fileno=os.dup(0))
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, control.fileno())
    os.closerange(control.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    # signals from the terminal, such as Ctrl-C, are for the agent
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    hello = marshal.loads(control.recv(MAX_MESSAGE))
    supervisor.import_modules(hello)
    wrap = hello["bubblewrap"]
    if wrap is None:
        found = probe.run_probe(hello["uid"])
        groups, why = (
            cgroups.claim_groups(os.getppid(), hello["uid"])
            if found["profile"]
            else (None, "nothing is confined here")
        )
    else:
        found = bubblewrap.run_probe(hello["uid"], wrap)
        groups, why = None, "bubblewrap starts a call in the agent's own group"
    found.update(
        cgroups=groups.controllers if groups else [],
        cgroup=groups.path if groups else None,
        no_cgroup=why,
    )
    if found["profile"] == "N" and wrap is None:
        namespaces.enter(hello["uid"], hello["python"])
    syscalls.drop_bounding()
    # not earlier: only a dumpable process can write its user map
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    found["blind"] = found["profile"] == "L" and probe.is_blind()
    control.send(dumps(found).encode())
    gc.collect()
    gc.freeze()
    if found["profile"] is None:
        _refuse_all(control, found)
    else:
        _Server(control, hello, found, groups).serve()


class _Server:
    """The loop of the server.

    hello   the agent's first message
    found   the result of ``run_probe`` of probe.py
    groups  ``cgroups.Groups`` or None
    One supervisor is always ready, with its child, so that a call waits only for the steps that
    depend on it.
    """

    def __init__(self, control, hello: dict, found: dict, groups):
        self._control, self._hello, self._uid, self._found = (
            control,
            hello,
            hello["uid"],
            dict(found, server=os.getpid()),
        )
        self._filters = seccomp.Filters(syscalls.MACHINE, found["profile"] == "L")
        self._groups = groups
        self._running = {}  # pidfd -> pid of a supervisor
        self._group_of = {}  # pid of a supervisor -> name of its child's group
        self._idle = None  # the pid of the supervisor that waits for a call
        self._wasted = 0  # supervisors in a row that ended before they had a call
        self._taken = os.pipe()
        self._life = os.pipe()
        self._poll = select.poll()
        self._poll.register(control, 0)  # only reports a hang-up: calls are read by the supervisors
        self._poll.register(self._taken[_READ], select.POLLIN)

    def serve(self):
        """Keep a supervisor ready until the agent ends, then end all supervisors."""
        self._spare()
        while True:
            events = self._poll.poll(SPARE_MS if self._idle is None else None)
            wanted = not events
            for fd, event in events:
                if fd == self._control.fileno():
                    if event & ~select.POLLIN:
                        self._leave()
                        return
                    wanted = True
                elif fd == self._taken[_READ]:
                    os.read(fd, 1)
                    self._idle, self._wasted = None, 0
                    self._poll.modify(self._control, select.POLLIN)
                elif fd in self._running:
                    self._reap(fd)
                    wanted = True
            if wanted and self._idle is None:
                self._spare()
                self._poll.modify(self._control, 0)

    def _spare(self):
        group = self._groups.make() if self._groups else None
        if self._hello["bubblewrap"]:
            pid = bubblewrap.start(
                self._hello["bubblewrap"],
                dict(self._hello, found=self._found),
                self._control.fileno(),
                self._taken[_WRITE],
                self._life[_READ],
            )
        else:
            pid = namespaces.clone() if self._found["profile"] == "N" else os.fork()
        if pid == 0:
            try:
                for fd in (self._taken[_READ], self._life[_WRITE], *self._running):
                    os.close(fd)
                supervisor.wait(
                    self._control.detach(),
                    self._taken[_WRITE],
                    self._life[_READ],
                    self._found,
                    self._uid,
                    self._filters,
                    self._groups,
                    group,
                )
            finally:
                os._exit(70)
        fd = os.pidfd_open(pid)
        self._idle = self._running[fd] = pid
        self._group_of[pid] = group
        self._poll.register(fd, select.POLLIN)

    def _reap(self, fd: int):
        """Clean up after a supervisor that has ended.  In profile L, processes that it left are now
        children of the server, which kills them.
        """
        self._poll.unregister(fd)
        os.close(fd)
        pid = self._running.pop(fd)
        status = os.waitpid(pid, 0)[1]
        if status and self._found["profile"] == "L":
            self._sweep()
        group = self._group_of.pop(pid)
        if group:
            self._groups.remove(group)
        if pid == self._idle:
            self._idle = None
            self._wasted += 1
            # all supervisors fail: the agent notices the end of this server and starts another
            if self._wasted > MAX_WASTED:
                os._exit(1)

    def _sweep(self):
        supervisors = set(self._running.values())
        for _ in range(watch.SWEEPS):
            left = limits.descendants(supervisors)
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, os.WNOHANG)
                except OSError:  # it is gone, or not our child yet
                    pass
            if not left:
                return

    def _leave(self):
        """Wait for the supervisors, which notice the agent's end themselves, and kill those that
        take too long.
        """
        from time import monotonic

        end = monotonic() + LEAVE_MS / 1000
        self._poll.unregister(self._control)
        self._poll.unregister(self._taken[_READ])
        while self._running and monotonic() < end:
            for fd, _ in self._poll.poll(100):
                self._reap(fd)
        for pid in self._running.values():
            os.kill(pid, signal.SIGKILL)
        while self._running:
            self._reap(next(iter(self._running)))
        if self._groups:
            self._groups.close()


def _refuse_all(control, found: dict):
    """Refuse every call, because this machine cannot confine a process, until the agent ends."""
    reason = probe.reason(found)
    while True:
        call = supervisor.next_call(control)
        if call is None:
            return
        fds = call[0]
        line = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, fds[_LINE])
        line.recv(1)
        watch.send_to_agent(
            line, b"E" + dumps({"refused": reason, "hint": probe.hint(found)}).encode()
        )
        line.close()
        for fd in fds[:3]:
            os.close(fd)
