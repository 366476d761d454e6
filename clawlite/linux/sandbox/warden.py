"""The warden: one process for each call, between the server and the child.  It builds the sandbox and ends it.

In profile N it is pid 1 of the call's own pid namespace: when it goes, the kernel ends all that is left in there.  In profile L it
is the subreaper of the call: whatever loses its parent becomes its child, so that the tree is dead when nobody is left.
It reads what the tool writes, keeps the time, looks at memory and processes, and tells the agent how it ended, in messages:
P (a listening socket for the proxy), O (a part of the output), E (the end).  A closed line to the agent is an order to end.
"""
import array
import marshal
import os
import resource
import select
import signal
import time

import _socket

from clawlite.linux.jsontext import dumps
from clawlite.linux.sandbox import child, landlock, limits, namespaces, plan as plans, probe, syscalls

GRACE_MS = 500                  # between TERM and KILL
READ = 65536
PART = 32768
IDLE_MS = 1000                  # how often zombies are collected when nothing else is to be watched
SWEEPS = 200                    # rounds of KILL in profile L before what is left is told


class Refused(Exception):
    """The sandbox cannot be built: reason, hint."""


def wait(control: int, taken: int, found: dict, uid, filters):
    """Wait for a call and run it.  Never returns.

    control  the server's line to the agent: whichever warden is idle takes the next call from it
    taken    a pipe; one byte tells the server that this warden has a call
    found    what the probe says;  uid  of the tools, or None;  filters  function(seccomp.Rules) -> code
    """
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if found["profile"] == "L":
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        for fd in (control, taken, ours.detach()):
            os.close(fd)
        child.wait(theirs, filters)
    theirs.close()
    calls = _socket.socket(fileno=control)
    fds = take(calls)
    calls.close()
    if fds is None:                                     # the agent has gone
        os._exit(0)
    os.write(taken, b"T")
    os.close(taken)
    _run(fds, found, uid, pid, ours)


def take(calls):
    """Return the descriptors of the next call: plan, job, the child's line to the agent, ours; None when the agent has gone."""
    size = 4 * 4
    data, extra, _, _ = calls.recvmsg(16, _socket.CMSG_SPACE(size), _socket.MSG_CMSG_CLOEXEC)
    if not data or not extra:
        return None
    fds = array.array("i")
    fds.frombytes(extra[0][2][:size])
    return fds.tolist()


def _run(fds: list, found: dict, uid, pid: int, to_child):
    plan_fd, job_fd, talk, line = fds
    agent = _socket.socket(fileno=line)
    try:
        plan = marshal.loads(os.pread(plan_fd, os.fstat(plan_fd).st_size, 0))
        plan.update(profile=found["profile"], uid=uid, own_users=found["own_users"],
                    landlock=found["landlock"] if found["profile"] == "L" else None)
        try:
            _build(plan, agent)
        except OSError as e:
            raise Refused("%s: %s" % (e.filename or "the sandbox", e.strerror), "see what works here with: clawlite doctor") from None
        plan["others"] = _others(plan)
        output = os.pipe() if plan["kind"] == "command" else (-1, -1)
        memory = os.memfd_create("plan")
        os.write(memory, marshal.dumps(plan))
        handed = [memory, job_fd, talk] + [fd for fd in output[1:] if fd >= 0]
        to_child.sendmsg([b"J"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", handed))])
        for fd in handed + [plan_fd]:
            os.close(fd)
        if plan["profile"] == "N":
            child.become(uid)
            syscalls.drop_capabilities()
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)     # a change of user has set it anew
        end = _Watch(plan, agent, pid, output[0]).run()
    except Refused as e:
        end = {"refused": e.args[0], "hint": e.args[1]}
    except Exception as e:                              # ours to mend; the agent says so
        end = {"refused": "%s: %s" % (type(e).__name__, e), "hint": "this is a bug in clawlite"}
    tell(agent, b"E" + dumps(end).encode())
    os._exit(0)


def tell(agent, message: bytes):
    """Send *message*, whether anybody listens or not."""
    try:
        agent.send(message)
    except OSError:
        pass


def _build(plan: dict, agent):
    if plan["profile"] == "N":
        plans.for_namespaces(plan)
        _root(plan)
        if plan["network"]:
            namespaces.loopback_up()
            _door(plan, agent)
        return
    if plan["network"]:
        raise Refused("without a network namespace a child with network could go anywhere", probe.NETWORK_HINT)
    try:
        plans.for_landlock(plan, landlock.around)
    except ValueError as e:                             # a denied path that cannot be kept out
        raise Refused(str(e), "deny a folder with fewer neighbours, or allow user namespaces") from None
    _folder(plan)


def _root(plan: dict):
    """Build the root of profile N: what the system needs, what is declared, and nothing over what is denied."""
    root = namespaces.Root(bool(plan["whole"]))
    if plan["whole"]:
        for name in os.listdir(namespaces.OLD):
            path = "/" + name
            if plan["whole"] == plans.WHOLE_WRITE and not os.path.islink(namespaces.OLD + path) and name not in ("dev", "proc"):
                root.bind(path, path, True)
            elif name not in ("dev", "proc", "tmp"):
                root.like(path)
        root.devices()
    root.proc()
    if plan["whole"] != plans.WHOLE_WRITE:
        root.tmp(plan["tmp_mb"])
    for source, target, writable in plan["mounts"]:
        try:
            root.bind(source, target, writable)
        except FileNotFoundError:                       # nothing there to be touched
            continue
        except OSError as e:
            raise Refused("%s: %s" % (target, e.strerror), "uid %d of the agent must be able to reach it" % os.getuid()) from None
    for target in plan["masks"]:
        root.mask(target)
    root.close()


def _door(plan: dict, agent):
    """Open the only door of the network: a socket on 127.0.0.1 that the agent's proxy serves."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    url = "http://127.0.0.1:%d" % listener.getsockname()[1]
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        plan["env"][name] = url
    agent.sendmsg([b"P"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))])
    listener.close()


def _folder(plan: dict):
    """Make the private folder of profile L, which stands for /tmp."""
    path = "%s/clawlite-%d-%s" % (plan["tmp"], os.getpid(), os.urandom(8).hex())
    os.mkdir(path, 0o700)
    if plan["uid"] is not None:
        os.chown(path, plan["uid"], plan["uid"])
    plan["private"] = path
    plan["allowed"] = plan["allowed"] + [(path, True)]
    plan["env"]["TMPDIR"] = path
    for name in ("HOME", "WORKSPACE"):
        plan["env"].setdefault(name, path)
    plan["cwd"] = plan["cwd"] or path


def _others(plan: dict):
    """Return what RLIMIT_NPROC has to leave for others of the same user, or None when that is of no use."""
    if plan["max_processes"] is None:
        return None
    if plan["profile"] == "N":
        return 0 if plan["own_users"] else None
    return limits.tasks_of(os.getuid() if plan["uid"] is None else plan["uid"])


class _Watch:
    """One running child, from its start to the end of its tree."""

    def __init__(self, plan: dict, agent, pid: int, output: int):
        self._plan, self._agent, self._pid, self._output = plan, agent, pid, output
        self._tree = limits.everybody if plan["profile"] == "N" else limits.descendants
        self._memory = plan["memory_mb"] << 20 if plan["memory_mb"] is not None else None
        self._ended = ""                                # which limit, or "cancelled"
        self._status = None
        self._kept, self._size, self._total = [], 0, 0
        self._look_at = 0.0
        self._poll = select.poll()
        self._poll.register(agent, select.POLLHUP | select.POLLRDHUP)
        self._door = os.pidfd_open(pid)
        self._poll.register(self._door, select.POLLIN)
        if output >= 0:
            os.set_blocking(output, False)
            self._poll.register(output, select.POLLIN)

    def run(self) -> dict:
        """Watch it to its end; return what the agent is told."""
        due = self._plan["timeout_ms"]
        due = None if due is None else time.monotonic() + due / 1000
        tick = limits.TICK_MS if self._memory is not None or self._plan["max_processes"] is not None else IDLE_MS
        kill_at = None
        while self._status is None:
            now = time.monotonic()
            stop = kill_at if kill_at is not None else due
            if stop is not None and now >= stop:
                if kill_at is not None:
                    break
                self._ended = self._ended or "timeout_ms"
                kill_at = now + GRACE_MS / 1000
                self._signal(signal.SIGTERM)
                continue
            wait = tick if stop is None else min(tick, (stop - now) * 1000 + 1)
            if self._step(wait):
                self._ended, kill_at = self._ended or "cancelled", kill_at or time.monotonic() + GRACE_MS / 1000
                self._signal(signal.SIGTERM)
            elif kill_at is None and self._over():
                break
        self._sweep()
        return self._report()

    def _step(self, wait_ms: float) -> bool:
        """Wait for what happens next and deal with it; return True when the agent wants the end."""
        wanted = False
        for fd, event in self._poll.poll(wait_ms):
            if fd == self._output:
                self._drain(1)
            elif fd == self._door:
                pass
            else:
                self._poll.unregister(fd)
                wanted = True
        self._reap()
        return wanted

    def _reap(self):
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._pid:
                    self._status = status
        except ChildProcessError:
            pass

    def _over(self) -> bool:
        """Return whether the tree uses more than it may; then ``_ended`` says of what."""
        most, now = self._plan["max_processes"], time.monotonic()
        if (self._memory is None and most is None) or now < self._look_at:
            return False
        self._look_at = now + limits.TICK_MS / 1000
        pids = self._tree()
        if self._memory is not None and limits.memory_of(pids, self._memory) + self._files() > self._memory:
            self._ended = "memory_mb"
        elif most is not None and limits.tasks(pids) > most:
            self._ended = "max_processes"
        return bool(self._ended)

    def _files(self) -> int:
        """Return the bytes of the private /tmp, which is memory in profile N."""
        if self._plan["profile"] != "N":
            return 0
        of = os.statvfs("/tmp")
        return (of.f_blocks - of.f_bfree) * of.f_frsize

    def _drain(self, rounds: int):
        """Read what the tool wrote: what is beyond the limit is counted and dropped, so that nobody waits at a full pipe."""
        limit = self._plan["max_output_bytes"]
        for _ in range(rounds):
            try:
                data = os.read(self._output, READ)
            except BlockingIOError:
                return
            if not data:
                self._poll.unregister(self._output)
                os.close(self._output)
                self._output = -1
                return
            self._total += len(data)
            if self._size < limit:
                data = data[:limit - self._size]
                self._size += len(data)
                self._kept.append(data)

    def _signal(self, number: int):
        for pid in self._tree():
            try:
                os.kill(pid, number)
            except OSError:
                pass

    def _sweep(self):
        """End the whole tree, whatever it did to get away, and wait until it is gone."""
        for _ in range(SWEEPS):
            pids = self._tree()
            for pid in pids:
                if self._plan["profile"] == "L":        # one that forks faster than it is found stops forking
                    try:
                        resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
                    except (OSError, ValueError):
                        pass
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            self._reap()
            if self._alone():
                break
            self._poll.poll(2)
        if self._output >= 0:
            self._drain(64)

    def _alone(self) -> bool:
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        except ChildProcessError:
            return True
        return False

    def _report(self) -> dict:
        for data in self._kept:
            for start in range(0, len(data), PART):
                tell(self._agent, b"O" + data[start:start + PART])
        if "private" in self._plan:
            _remove(self._plan["private"])
        status = self._status if self._status is not None else 9
        code = os.waitstatus_to_exitcode(status)
        return {"exit_code": 128 - code if code < 0 else code, "ended": self._ended, "original_bytes": self._total}


def _remove(path: str):
    """Remove the folder *path* and all in it as far as it can be; links are removed, never followed (shutil.rmtree needs half of the
    standard library).
    """
    for top, _, names, fd in os.fwalk(path, topdown=False, onerror=None):
        for name in names + _:
            try:
                os.unlink(name, dir_fd=fd)
            except IsADirectoryError:
                _quietly(os.rmdir, name, dir_fd=fd)
            except OSError:
                pass
    _quietly(os.rmdir, path)


def _quietly(function, *arguments, **more):
    try:
        function(*arguments, **more)
    except OSError:
        pass
