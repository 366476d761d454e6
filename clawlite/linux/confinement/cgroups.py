"""A control group (cgroup v2) for each call, when a part of the tree is delegated to this process.

1. Delegated means: this process may write the folder of its own cgroup (systemd: ``Delegate=``),
   and that group holds only the agent and processes that it started.  This is tested by making,
   entering and limiting a group.  When a step fails, everything is undone.
2. A group that limits its children may hold no process itself, so the agent moves into the group
   ``clawlite-agent`` below it.
3. The server makes a group for the supervisor's child before there is a call, and the child starts
   in it, because moving a process takes the kernel 20 ms, but writing a limit 20 us.  The server
   removes the group when the supervisor has ended, and all groups when the agent ends.

    DELEGATED/clawlite-agent            the agent, the server, its supervisors
    DELEGATED/clawlite-call-PID-N       the child of a supervisor, and all processes it starts
"""

import ctypes
import os
import struct
import time

from clawlite.linux.confinement import syscalls
from clawlite.linux.confinement.limits import KEEPERS, is_there

CONTROLLERS = ("cpu", "memory", "pids")
AGENT = "clawlite-agent"
_CALL = "clawlite-call-"
_ROUNDS = 8  # rounds of moving processes, because they may start others meanwhile
_WAITS, _WAIT_S = 250, 0.001
LEAST_SHARES = 10  # has the weight 1; the default is 100
_INTO_CGROUP, _SIGCHLD = 1 << 33, 17
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Refused(Exception):
    """No group is delegated here; the message says why."""


def claim_groups(agent: int, uid=None, wanted=CONTROLLERS) -> tuple:
    """Return (``Groups``, "") or (None, why not).

    agent  pid of the agent, this process' parent
    uid    user of the tools when the agent is root, else None.  Root can write every group, so
           then systemd must have marked this one as delegated
    """
    try:
        return Groups(_find_delegated(wanted, uid is not None), agent, wanted), ""
    except Refused as e:
        return None, str(e)
    except OSError as e:
        return None, "%s: %s" % (e.filename or "cgroup", e.strerror)


def _own_folder() -> str:
    """Return the folder of this process' cgroup v2.  Raises ``Refused``."""
    inside = [
        line[3:] for line in _read("/proc/self/cgroup").splitlines() if line.startswith("0::")
    ]
    for line in _read("/proc/self/mountinfo").splitlines():
        fields, _, kind = line.partition(" - ")
        root, point = fields.split(" ")[3:5]
        if (
            kind.startswith("cgroup2 ")
            and inside
            and (root == "/" or (inside[0] + "/").startswith(root + "/"))
        ):
            return os.path.normpath(point + "/" + inside[0][len(root.rstrip("/")) :])
    raise Refused("no cgroup v2 is mounted")


def _find_delegated(wanted, by_root: bool) -> str:
    top = _own_folder()
    if os.path.basename(top) == AGENT:  # an earlier server of this agent moved it
        top = os.path.dirname(top)
    has = _read(top + "/cgroup.controllers").split()
    if not set(has) & set(wanted):
        raise Refused("%s has none of the controllers %s" % (top, ", ".join(wanted)))
    for name in ("", "/cgroup.procs", "/cgroup.subtree_control"):
        if not os.access(top + name, os.W_OK):
            raise Refused("%s is not delegated to uid %d" % (top, os.getuid()))
    if by_root and not _is_marked(top):
        raise Refused("%s is not marked as delegated (Delegate=yes of its unit)" % top)
    return top


def _is_marked(top: str) -> bool:
    for name in ("trusted.delegate", "user.delegate"):  # systemd 236, 251
        try:
            if os.getxattr(top, name) == b"1":
                return True
        except OSError:
            pass
    return False


class Groups:
    """The groups of one agent's calls, from the server's side.

    controllers  names of the controllers that can be used, sorted
    path         of the delegated folder
    """

    def __init__(self, path: str, agent: int, wanted=CONTROLLERS):
        self.path = path
        self._count = 0
        self._ours = []  # controllers that we switched on
        self._top = os.open(path, _FOLDER)
        try:
            self.controllers = self._enable(agent, wanted)
            self._clean()
            self._try()
        except (OSError, Refused):
            self.close()
            raise

    def make(self) -> str:
        """Make a group; return its name."""
        self._count += 1
        name = "%s%d-%d" % (_CALL, os.getpid(), self._count)
        os.mkdir(name, 0o755, dir_fd=self._top)
        return name

    def open(self, name: str) -> "Group":
        """Return the ``Group`` *name*, with which a supervisor limits and ends it."""
        return Group(os.open(name, _FOLDER, dir_fd=self._top), self.controllers)

    def fork(self, name: str) -> int:
        """Fork this single-threaded process into the group *name*; return the child's pid, 0 in the
        child.  Raises ``OSError``.

        This uses clone3(2) with CLONE_INTO_CGROUP (Linux 5.7).  When a container forbids that, the
        child moves itself.  As in ``namespaces.clone``, clone3 runs no hooks of the interpreter.
        """
        fd = os.open(name, _FOLDER, dir_fd=self._top)
        try:
            words = ctypes.create_string_buffer(
                struct.pack("=11Q", _INTO_CGROUP, 0, 0, 0, _SIGCHLD, 0, 0, 0, 0, 0, fd), 88
            )
            return syscalls.call("clone3", words, 88)
        except OSError:
            pid = os.fork()
            if pid == 0:
                try:
                    _put(fd, "cgroup.procs", "0")
                except OSError:
                    os._exit(72)
            return pid
        finally:
            os.close(fd)

    def remove(self, name: str):
        """Kill the processes that are left in the group *name*, and remove it."""
        for _ in range(_WAITS):
            try:
                os.rmdir(name, dir_fd=self._top)
                return
            except FileNotFoundError:
                return
            except OSError:  # it still has a process
                try:
                    _put(self._top, name + "/cgroup.kill", "1")
                except OSError:  # Linux < 5.14
                    pass
                time.sleep(_WAIT_S)  # the kernel removes a killed process a moment later

    def leave(self):
        """Close the descriptor, in a process that does not need it."""
        top, self._top = self._top, -1
        if top >= 0:
            os.close(top)

    def close(self):
        """Remove all groups, and move all processes back to the delegated group."""
        self._clean()
        try:
            # another server of this agent still uses its groups
            if any(name.startswith(_CALL) for name in os.listdir(self._top)):
                return
            for name in self._ours:
                _put(self._top, "cgroup.subtree_control", "-" + name)
            self._move(AGENT + "/cgroup.procs", "cgroup.procs")
            os.rmdir(AGENT, dir_fd=self._top)
        # somebody else has set limits here: the group stays, and goes with its unit
        except OSError:
            pass
        finally:
            self.leave()

    def _clean(self):
        """Remove the groups of this server, and of servers that have ended."""
        for name in os.listdir(self._top):
            pid = name[len(_CALL) :].partition("-")[0]
            if name.startswith(_CALL) and (pid == str(os.getpid()) or not is_there(pid)):
                self.remove(name)

    def _enable(self, agent: int, wanted) -> list:
        """Move the agent and the server one level down, and switch the controllers on for the
        groups beside it.  Return the controllers that can be used.
        """
        for name in os.listdir(self._top):
            if os.path.isdir("%s/%s" % (self.path, name)) and not name.startswith("clawlite-"):
                raise Refused("%s has groups of somebody else: %s" % (self.path, name))
        try:
            os.mkdir(AGENT, 0o755, dir_fd=self._top)
        except FileExistsError:
            # an earlier server of this agent has switched them on
            if str(agent) in _pids(self._top, AGENT + "/cgroup.procs"):
                self._ours = sorted(
                    set(_get(self._top, "cgroup.subtree_control").split()) & set(wanted)
                )
        for _ in range(_ROUNDS):
            pids = _pids(self._top, "cgroup.procs")
            if not pids:
                break
            strangers = [pid for pid in pids if not _is_of(int(pid), agent)]
            if strangers:
                raise Refused("%s holds other programs too (pid %s)" % (self.path, strangers[0]))
            self._move("cgroup.procs", AGENT + "/cgroup.procs")
        on = _get(self._top, "cgroup.subtree_control").split()
        for name in _get(self._top, "cgroup.controllers").split():
            if name in wanted and name not in on:
                try:
                    _put(self._top, "cgroup.subtree_control", "+" + name)
                    self._ours.append(name)
                except OSError:
                    pass
        found = sorted(set(_get(self._top, "cgroup.subtree_control").split()) & set(wanted))
        if not found:
            raise Refused("%s lets none of its controllers be passed on" % self.path)
        return found

    def _move(self, source: str, target: str):
        for pid in _pids(self._top, source):
            try:
                _put(self._top, target, pid)
            except ProcessLookupError:  # it has ended
                pass

    def _try(self):
        """Test delegation: make a group, limit it and start a process in it."""
        name = self.make()
        try:
            group = self.open(name)
            group.limit({"memory_mb": 64, "cpu_shares": 512, "max_processes": 16})
            group.close()
            pid = self.fork(name)
            if pid == 0:
                try:
                    os._exit(
                        0 if str(os.getpid()) in _pids(self._top, name + "/cgroup.procs") else 1
                    )
                finally:
                    os._exit(1)
            if os.waitpid(pid, 0)[1]:
                raise Refused("no process can be started in a group of %s" % self.path)
        finally:
            self.remove(name)


class Group:
    """The group of one call, from its supervisor's side.  The files that it needs at the end are
    opened at the start, because the supervisor may be another user by then.
    """

    def __init__(self, folder: int, controllers: list):
        self._folder = folder
        self._controllers = controllers
        self._cpu = _open_if_there("cpu.stat", os.O_RDONLY, folder)
        self._events = _open_if_there("memory.events", os.O_RDONLY, folder)
        self._kill = _open_if_there("cgroup.kill", os.O_WRONLY, folder)  # from Linux 5.14 on

    def limit(self, plan: dict) -> list:
        """Write the limits of *plan* that have a controller; return their names."""
        kept = [
            name
            for name, controller in KEEPERS.items()
            if controller in self._controllers and plan[name] is not None
        ]
        for name in kept:
            if name == "memory_mb":
                _put(self._folder, "memory.max", str(plan[name] << 20))
                for file, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                    try:
                        _put(self._folder, file, value)
                    except OSError:  # a kernel without accounting of swap
                        pass
            elif name == "cpu_shares":
                _put(self._folder, "cpu.weight", str(weight_of(plan[name])))
            else:
                _put(self._folder, "pids.max", str(plan[name]))
        return kept

    def kill(self):
        """Kill all its processes at once.  Do nothing before Linux 5.14."""
        if self._kill >= 0:
            try:
                os.write(self._kill, b"1")
            except OSError:
                pass

    def is_out_of_memory(self) -> bool:
        """Return whether the kernel killed a process in it because memory ran out."""
        if self._events < 0:
            return False
        return any(
            line.startswith(b"oom_kill ") and line != b"oom_kill 0"
            for line in os.pread(self._events, 4096, 0).splitlines()
        )

    def cpu_s(self):
        """Return the seconds of processor time that its processes have used, or None."""
        if self._cpu < 0:
            return None
        for line in os.pread(self._cpu, 4096, 0).splitlines():
            name, _, value = line.partition(b" ")
            if name == b"usage_usec":
                return int(value) / 1e6
        return None

    def close(self):
        for fd in (self._folder, self._events, self._kill, self._cpu):
            if fd >= 0:
                os.close(fd)
        self._events = self._kill = self._cpu = -1


def _open_if_there(name: str, flags: int, folder: int) -> int:
    """Return a descriptor of a file in *folder*, or -1."""
    try:
        return os.open(name, flags | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return -1


def weight_of(cpu_shares: int) -> int:
    """Return the weight, 1..10000, for *cpu_shares*; the default 1024 becomes the default 100."""
    return max(1, min(10000, (cpu_shares * 100 + 512) // 1024))


def _is_of(pid: int, agent: int) -> bool:
    """Return whether *pid* is the agent, or was started by it."""
    while pid > 1 and pid != agent:
        try:
            pid = int(_read("/proc/%d/stat" % pid).rpartition(")")[2].split()[1])
        except (OSError, IndexError):  # it has ended
            return True
    return pid == agent


def _pids(folder: int, name: str) -> list:
    return _get(folder, name).split()


def _get(folder: int, name: str) -> str:
    with open(os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)) as file:
        return file.read()


def _put(folder: int, name: str, text: str):
    fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _read(path: str) -> str:
    with open(path) as file:
        return file.read()
