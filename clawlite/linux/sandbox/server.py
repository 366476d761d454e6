"""The server: a small Python of its own that forks a warden for each call.

1. It is a fresh interpreter with a clean environment, not a fork of the agent: there is no secret, socket or thread that a
   child could find in memory, whenever it is started.
2. It reads what may be done (the plan), never what is done (the job): that goes past it, from the agent to the child.
3. It has one thread and no timer: it waits for calls and for wardens that end.  When the agent goes, it ends them and goes.
4. Where the agent is root, it stays root to build sandboxes; children are another user before they are anything else.

    python -I -S -c "..." with the agent's socket as stdin; first message: marshal of {"path", "uid"}
"""
import fcntl                    # noqa: F401    what a warden or a child uses later, when it may see no file of Python's any more
import gc
import marshal
import os
import select
import shutil                   # noqa: F401
import signal
import sys
import warnings                 # noqa: F401

import _socket

from clawlite.linux.jsontext import dumps
from clawlite.linux.sandbox import landlock, limits, namespaces, plan as plans, probe, seccomp, syscalls, warden

MAX_MESSAGE = 65536
LEAVE_MS = 2000                 # wardens need GRACE_MS to end what they watch


def main():
    """Serve until the agent goes."""
    control = _socket.socket(fileno=os.dup(0))
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, control.fileno())
    os.closerange(control.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):       # a Ctrl-C at the agent's terminal is the agent's to hear
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    hello = marshal.loads(control.recv(MAX_MESSAGE))
    sys.path[:] = hello["path"]
    found = probe.look(hello["uid"])
    control.send(dumps(found).encode())
    gc.collect()
    gc.freeze()
    _Server(control, hello["uid"], found).serve()


class _Server:
    """*uid*: the user of the tools, None for the agent's own; *found*: what ``probe.look`` returned."""

    def __init__(self, control, uid, found: dict):
        self._control, self._uid, self._found = control, uid, found
        self._filters = {}
        self._running = {}                      # pidfd -> pid of a warden
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)

    def serve(self):
        """Start what is asked for until the agent goes, then end what is left."""
        own = self._control.fileno()
        while True:
            for fd, _ in self._poll.poll():
                if fd == own:
                    if not self._take():
                        self._leave()
                        return
                else:
                    self._ended(fd)

    def _take(self) -> bool:
        """Start one call; return False when the agent has gone.  Its descriptors: plan, job, the child's line, ours."""
        size = 4 * 4
        data, extra, _, _ = self._control.recvmsg(16, _socket.CMSG_SPACE(size), _socket.MSG_CMSG_CLOEXEC)
        if not data:
            return False
        fds = [] if not extra else [int.from_bytes(extra[0][2][at:at + 4], sys.byteorder) for at in range(0, size, 4)]
        if data == b"J" and len(fds) == 4:
            self._start(*fds)
        for fd in fds:
            os.close(fd)
        return True

    def _start(self, plan_fd: int, job_fd: int, talk: int, line: int):
        plan = marshal.loads(os.pread(plan_fd, os.fstat(plan_fd).st_size, 0))
        reason = self._refuses(plan)
        if reason:
            _answer(line, {"refused": reason, "hint": probe.hint(self._found, plan["network"] != 0)})
            return
        plan.update(profile=self._found["profile"], uid=self._uid, counts_per_namespace=self._found["counts_per_namespace"],
                    landlock=self._found["landlock"] if self._found["profile"] == "L" else None)
        try:
            if plan["profile"] == "N":
                plans.for_namespaces(plan)
            else:
                plans.for_landlock(plan, landlock.around)
            pid = self._fork(plan, job_fd, talk, line)
        except ValueError as e:                 # a denied path that cannot be kept out
            _answer(line, {"refused": str(e), "hint": "deny a folder with fewer neighbours, or allow user namespaces"})
            return
        except OSError as e:
            _answer(line, {"refused": "no process for it: %s" % e.strerror, "hint": "end other processes, or wait"})
            return
        fd = os.pidfd_open(pid)
        self._running[fd] = pid
        self._poll.register(fd, select.POLLIN)

    def _refuses(self, plan: dict) -> str:
        if self._found["profile"] is None:
            return "this kernel does not let a process be confined: %s" % ", ".join(self._found["missing"])
        if plan["network"] and self._found["profile"] == "L":
            return "without a network namespace a child with network could go anywhere"
        return ""

    def _fork(self, plan: dict, job_fd: int, talk: int, line: int) -> int:
        mapped = os.pipe() if plan["profile"] == "N" and os.geteuid() == 0 else None
        uid, gid = os.getuid(), os.getgid()
        pid = namespaces.clone(namespaces.FLAGS) if plan["profile"] == "N" else os.fork()
        if pid:
            if mapped:
                namespaces.map_all(pid)
                os.close(mapped[0])
                os.close(mapped[1])
            return pid
        try:
            self._control.close()
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
            if mapped:
                os.close(mapped[1])
                os.read(mapped[0], 1)           # until the server has written our map
                os.close(mapped[0])
            elif plan["profile"] == "N":
                namespaces.map_own(uid, gid)
            warden.run(plan, job_fd, talk, line, self._filter)
        finally:
            os._exit(70)

    def _filter(self, rules) -> bytes:
        return seccomp.assemble(rules, syscalls.MACHINE)

    def _ended(self, fd: int):
        """A warden has ended.  What it left in profile L is ours now, and has to go."""
        self._poll.unregister(fd)
        os.close(fd)
        pid = self._running.pop(fd)
        _, status = os.waitpid(pid, 0)
        if status and self._found["profile"] == "L":
            self._sweep()

    def _sweep(self):
        wardens = set(self._running.values())
        for pid in limits.descendants(wardens):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        try:
            while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG):
                pid = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG).si_pid
                if pid in wardens:
                    return
                os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            pass

    def _leave(self):
        """The wardens hear the agent go as we do; whoever takes too long is ended."""
        from time import monotonic
        end = monotonic() + LEAVE_MS / 1000
        while self._running and monotonic() < end:
            for fd, _ in self._poll.poll(100):
                if fd in self._running:
                    self._ended(fd)
                else:
                    self._poll.unregister(fd)
        for pid in self._running.values():
            os.kill(pid, signal.SIGKILL)
        while self._running:
            self._ended(next(iter(self._running)))


def _answer(line: int, end: dict):
    with _socket.socket(fileno=os.dup(line)) as agent:
        try:
            agent.send(b"E" + dumps(end).encode())
        except OSError:
            pass
