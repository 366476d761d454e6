"""Watches one running call: its output, its time, its use of resources, and the end of every
process that it started.

1. Output beyond its limit is read, counted and dropped, so that no writer blocks at a full pipe.
2. When the time is over, the whole tree gets TERM, and KILL 500 ms later.  When the command ends,
   its tree is killed at once.
3. Every orphan of the tree becomes a child of this process.  So the tree is dead when this process
   has no child any more.
"""

import os
import resource
import select
import signal
import time

from clawlite.linux.confinement import limits
from clawlite.linux.files import quota
from clawlite.linux.sandbox.removal import remove

GRACE_MS = 500  # between TERM and KILL
READ = 65536
PART = 32768
# zombies that are collected in one step: a tree may make them just as fast.  When memory is
# measured, the rest of them count
REAPED, ALL = 256, 65536
IDLE_MS = 1000  # how often zombies are collected when no limit is watched
CPU_MS = 1000  # how often the processor time of a server is added up
SWEEP_MS, SWEEPS = 2, 2000  # rounds of KILL, for processes that are stuck in the kernel


def send_to_agent(agent, message: bytes):
    """Send *message*; ignore it when the agent is gone."""
    try:
        agent.send(message)
    except OSError:
        pass


class Watch:
    """One running child, from its start to the end of its tree."""

    def __init__(
        self, plan: dict, agent, pid: int, output: int, life: int, memory, group=None, asks=None
    ):
        self._plan, self._agent, self._pid, self._output = plan, agent, pid, output
        self._tree = limits.everybody if plan["profile"] == "N" else limits.descendants
        # ``cgroups.Group`` or None: the limits that it enforces need not be watched
        self._group = group
        self._memory = memory  # ``memory_accounting.MemoryAccount``, or None
        self._most = None if "max_processes" in plan["kept"] else plan["max_processes"]
        self._level = (
            limits.nice_of(plan["cpu_shares"])
            if limits.is_weighed(plan) and os.path.exists("/proc/self/autogroup")
            else 0
        )
        self._folder = plan.get("private")  # /tmp of profile L
        # bytes of the workspace, or its present size when that is larger already
        self._room = plan["room"]
        self._looks = (
            self._memory is not None
            or self._most is not None
            or self._folder is not None
            or self._room is not None
            or self._level > 0
        )
        self._cpu_s = plan["cpu_s"]
        self._cpu_at = time.monotonic()
        self._cpu_used, self._cpu_last = 0.0, _children_s()
        self._at_once = ALL if memory is None else REAPED
        # "" or why the call was ended: the name of a limit, "/tmp", "max_size_mb" or "cancelled"
        self._ended = ""
        self._status = None
        self._kept, self._size, self._total = [], 0, 0
        self._look_at = 0.0
        # the kernel takes 5 to 15 ms for /proc/locks, so short commands are not measured
        self._memory_at = time.monotonic() + limits.TICK_MS / 1000
        self._poll = select.poll()
        self._poll.register(agent, select.POLLHUP | select.POLLRDHUP)
        self._poll.register(life, 0)  # a hang-up means that the server has ended
        self._asks = asks  # ``modes.Modes`` of profile L
        if asks is not None:
            self._poll.register(asks, select.POLLIN)
        self._door = os.pidfd_open(pid)
        self._poll.register(self._door, select.POLLIN)
        if output >= 0:
            os.set_blocking(output, False)
            self._poll.register(output, select.POLLIN)

    def run(self) -> dict:
        """Watch the call to its end; return the report for the agent."""
        try:
            self._watch()
        # also after a bug here: nothing else ends the processes that are left
        finally:
            self._sweep()
        return self._report()

    def _watch(self):
        due = self._plan["timeout_ms"]
        due = None if due is None else time.monotonic() + due / 1000
        tick = limits.TICK_MS if self._looks else IDLE_MS
        kill_at = None
        while self._status is None:
            now = time.monotonic()
            stop = kill_at if kill_at is not None else due
            if stop is not None and now >= stop:
                if kill_at is not None:
                    break
                self._ended = self._ended or "timeout_ms"
                kill_at = now + GRACE_MS / 1000
                self._terminate()
                continue
            wait = tick if stop is None else min(tick, (stop - now) * 1000 + 1)
            if self._step(wait):
                self._ended, kill_at = (
                    self._ended or "cancelled",
                    kill_at or time.monotonic() + GRACE_MS / 1000,
                )
                self._terminate()
            elif self._exceeds_limit():  # also after TERM: the tree could grow in those 500 ms
                break

    def _step(self, wait_ms: float) -> bool:
        """Wait for the next event and handle it.  Return True when the agent or the server has
        closed its line.
        """
        wanted = False
        for fd, event in self._poll.poll(wait_ms):
            if fd == self._output:
                self._drain(1)
            elif fd == self._door:
                pass
            elif self._asks is not None and fd == self._asks.fileno():
                if event & select.POLLIN:
                    self._asks.answer()
                else:  # no process has the filter any more
                    self._poll.unregister(fd)
            else:
                self._poll.unregister(fd)
                wanted = True
        self._reap()
        return wanted

    def _reap(self):
        try:
            for _ in range(self._at_once):
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if pid == self._pid:
                    self._status = status
        except ChildProcessError:
            pass

    def _exceeds_limit(self) -> bool:
        """Return whether the tree exceeds a limit.  ``_ended`` gets the limit's name unless it has
        a reason already.
        """
        most, now, over = self._most, time.monotonic(), ""
        if self._cpu_s is not None and now >= self._cpu_at:
            self._cpu_at = now + CPU_MS / 1000
            if self._cpu_used_s() >= self._cpu_s:
                self._ended = self._ended or "cpu_s"
                return True
        if not self._looks or now < self._look_at:
            return False
        # processor time, not wall time: a tree that takes all of the processor is watched as often
        start = time.process_time()
        pids = (
            self._tree()
            if self._memory is None or self._plan["profile"] == "N"
            else limits.descendants((), self._memory.most)
        )
        if self._level:
            limits.weigh(pids, self._level)
        if (
            self._memory is not None
            and self._status is None
            and now >= self._memory_at
            and self._memory.is_over(pids)
        ):
            over = "memory_mb"
        elif most is not None and limits.tasks(pids) > most:
            over = "max_processes"
        elif self._folder is not None and limits.is_more(
            self._folder, pids, self._plan["tmp_mb"] << 20
        ):
            over = "/tmp"
        elif self._room is not None and quota.size(workspace(self._plan)) > self._room:
            over = "max_size_mb"
        # measuring a large tree takes long, so it is done less often
        self._look_at = now + max(limits.TICK_MS / 1000, 8 * (time.process_time() - start))
        self._ended = self._ended or over
        return bool(over)

    def _cpu_used_s(self) -> float:
        """Return the processor time of the tree since it began.

        A control group counts all of it.  Without one it is the sum over the running processes and
        the children that they and this process have waited for.  The sum falls when a process ends
        and no parent waits for it.  So only the increases of the sum are added up.
        """
        used = None if self._group is None else self._group.cpu_s()
        if used is None:
            now = _children_s() + limits.cpu_s(self._tree())
            self._cpu_used += max(0.0, now - self._cpu_last)
            self._cpu_last = now
            used = self._cpu_used
        return used

    def _drain(self, rounds: int):
        """Read the tool's output.  Output beyond the limit is counted and dropped, so that no
        writer blocks at a full pipe.
        """
        limit = self._plan["max_output_bytes"]
        for _ in range(rounds):
            try:
                data = os.read(self._output, READ)
            except BlockingIOError:
                return
            if not data:
                self._poll.unregister(self._output)
                output, self._output = self._output, -1
                os.close(output)
                return
            self._total += len(data)
            if self._size < limit:
                data = data[: limit - self._size]
                self._size += len(data)
                self._kept.append(data)

    def _terminate(self):
        for pid in self._tree():
            # a stopped process handles TERM only after CONT
            for number in (signal.SIGTERM, signal.SIGCONT):
                try:
                    os.kill(pid, number)
                except OSError:
                    pass

    def _sweep(self):
        """Kill the whole tree, whatever it did to escape, and wait until it is gone."""
        if self._plan["profile"] == "N" and os.getpid() == 1:
            try:
                # kills the whole pid namespace at once: no process can escape by forking
                os.kill(-1, signal.SIGKILL)
            except OSError:
                pass
        self._at_once = ALL
        for _ in range(SWEEPS):
            self._reap()
            if self._alone():
                break
            if self._group is not None:
                self._group.kill()
            for pid in self._tree():
                # a process that forks faster than it is found cannot fork any more
                if self._plan["profile"] == "L":
                    try:
                        resource.prlimit(pid, resource.RLIMIT_NPROC, (0, 0))
                    except (OSError, ValueError):
                        pass
                try:
                    os.kill(pid, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(SWEEP_MS / 1000)
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
                send_to_agent(self._agent, b"O" + data[start : start + PART])
        clear(self._plan)
        if self._group is not None and not self._ended and self._group.is_out_of_memory():
            self._ended = "memory_mb"
        status = self._status if self._status is not None else 9
        code = os.waitstatus_to_exitcode(status)
        return {
            "exit_code": 128 - code if code < 0 else code,
            "ended": self._ended,
            "original_bytes": self._total,
            "note": self._plan.get("note", ""),
        }


def _children_s() -> float:
    """Return the processor time of the children that this process has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def workspace(plan: dict) -> str:
    """Return the path of the workspace as the supervisor of *plan* sees it."""
    return "/workspace" if plan["profile"] == "N" else plan["folder"]


def clear(plan: dict):
    """Remove the call's own folders, which profile L leaves behind."""
    for name in ("private", "secrets"):
        if name in plan:
            remove(plan[name])
