"""Find out, once and before the first call, which kinds of sandbox this machine can build.

A kernel may have a system call and refuse it (AppArmor, the filter of a container, a limit of
zero), so versions and settings prove nothing.  Instead, a sandbox of each kind is built, with
nothing to run in it.
"""

import os
import resource
import struct

from clawlite.linux.confinement import landlock, namespaces, seccomp, syscalls
from clawlite.linux.confinement.seccomp import Rules
from clawlite.linux.sandbox import tool_process

NETWORK_HINT = (
    "allow user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0), or "
    "set the sandbox's network to deny"
)
NEEDS = {
    "N": ("userns", "mount", "proc", "network-namespace", "seccomp"),
    "L": ("landlock", "seccomp"),
}


def run_probe(uid) -> dict:
    """Return {"profile", "missing", "available", "tried", "landlock", "own_users"}.

    uid        int, the user that tools run as when the agent is root, or None
    profile    "N" (namespaces), "L" (Landlock) or None
    tried      {mechanism: "" when it works, else why not}
    landlock   its ABI, or None
    own_users  bool, RLIMIT_NPROC counts each user namespace by itself
    """
    tried = {}
    version = None
    tried["seccomp"] = filters()
    if uid is not None:
        tried["setuid"] = _in_child(lambda say: tool_process.become(uid))
    own_users = ""
    for name, reason in _namespaces(uid).items():
        if name == "own_users":
            own_users = reason
        else:
            tried[name] = reason
    try:
        version = landlock.abi()
        tried["landlock"] = (
            ""
            if version >= landlock.LEAST_ABI
            else "ABI %d, at least %d is needed" % (version, landlock.LEAST_ABI)
        )
    except OSError as e:
        tried["landlock"] = e.strerror
    if not tried["landlock"]:
        tried["landlock"] = _in_child(lambda say: _landlock(version))
    profile = None
    if not tried.get("setuid"):
        profile = next((p for p in ("N", "L") if not any(tried[n] for n in NEEDS[p])), None)
    return {
        "profile": profile,
        "missing": sorted(n for n in tried if tried[n]),
        "available": sorted(n for n in tried if not tried[n]),
        "tried": tried,
        "landlock": None if tried["landlock"] else version,
        "own_users": own_users == "yes",
    }


def filters() -> str:
    """Return "" when a process can filter its system calls here, else why not."""
    if syscalls.MACHINE is None:
        return "no table of system calls for programs of %d bits on %s" % (
            struct.calcsize("P") * 8,
            os.uname().machine,
        )
    return _in_child(_seccomp)


def is_blind() -> bool:
    """Return whether /proc hides this user's own processes when they are not dumpable (hidepid).

    The caller must not be dumpable: a child looks for it.
    """
    return bool(
        _in_child(lambda say: "" if os.path.exists("/proc/%d" % os.getppid()) else "hidden")
    )


def reason(found: dict) -> str:
    """Return why this machine, which has no profile, refuses every call."""
    return "this machine cannot confine a process: %s" % ", ".join(found["missing"])


def hint(found: dict) -> str:
    """Return what a person can do to make the sandbox work."""
    tried = found["tried"]
    if syscalls.MACHINE is None:
        return "install a Python for %s" % ", ".join(syscalls.TABLES)
    if tried["seccomp"]:
        return (
            "use a kernel with CONFIG_SECCOMP_FILTER, and a container that lets a process "
            "filter itself"
        )
    if tried.get("bubblewrap"):
        return (
            "%s; install bubblewrap and run the agent as an ordinary user, or take namespaces out "
            "of [sandbox] in clawlite.toml" % tried["bubblewrap"]
        )
    if tried.get("setuid"):
        return "start the agent as an ordinary user"
    return (
        "allow user namespaces (sysctl user.max_user_namespaces above 0, "
        "kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0, as far as they are there), or boot "
        "with lsm=landlock on Linux >= 6.2"
    )


def _in_child(work) -> str:
    """Run work(None) in a child; return "" when it did not fail, else why."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _report(writing, work)
    os.close(writing)
    return _result(reading, pid)


def _report(writing: int, work):
    reason = "it ended"
    try:
        reason = work(writing) or ""
    except OSError as e:
        reason = "%s: %s" % (e.filename, e.strerror) if e.filename else e.strerror or str(e)
    except Exception as e:
        reason = "%s: %s" % (type(e).__name__, e)
    finally:
        os.write(writing, b"." + reason.encode())
        os._exit(0)


def _result(reading: int, pid: int) -> str:
    data = b""
    while True:
        part = os.read(reading, 4096)
        if not part:
            break
        data += part
    os.close(reading)
    os.waitpid(pid, 0)
    return data[1:].decode("utf-8", "replace") if data[:1] == b"." else "it was ended"


def _seccomp(say):
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(seccomp.own(Rules(False, False, True, True), syscalls.MACHINE))
    import _socket

    try:
        _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).close()
    except OSError:
        return ""
    return "the filter is installed but has no effect"


def _landlock(version):
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    rules = landlock.Ruleset(version)
    rules.allow("/usr", False)
    rules.restrict()
    try:
        os.close(os.open("/etc", os.O_RDONLY))
    except OSError:
        return ""
    return "the rules are installed but have no effect"


def _namespaces(uid) -> dict:
    """Return {"userns", "mount", "proc", "network-namespace": "" or why not, "own_users": "yes"
    or "no"}.
    """
    result = {"userns": "", "mount": "", "proc": "", "network-namespace": ""}
    step, _, reason = _in_child(lambda say: _build(uid)).partition(" ")
    seen = False
    # what comes after the step that failed was not tried, so it does not work
    for name in result:
        if seen:
            result[name] = "not tried: %s fails" % step
        elif name == step:
            seen, result[name] = True, reason
    if not seen and step != "own_users":
        result["userns"] = "%s %s" % (step, reason)
    result["own_users"] = reason if step == "own_users" else "no"
    return result


def _build(uid) -> str:
    """Build a sandbox as the server and the supervisor do.  Return "STEP why" for the step that
    fails, else "own_users yes" or "own_users no".
    """
    step = "userns"
    try:
        try:
            namespaces.enter(uid)
        except OSError as e:
            if e.filename in ("mount", "pivot_root", "mount_setattr", "open_tree", "move_mount"):
                step = "mount"
            raise
        step = "network-namespace"
        reading, writing = os.pipe()
        pid = namespaces.clone()
        if pid == 0:
            _report(writing, lambda say: build_call(uid))
        os.close(writing)
        return _result(reading, pid)
    except OSError as e:
        return "%s %s%s" % (
            step,
            e.filename + ": " if isinstance(e.filename, str) else "",
            e.strerror,
        )


def build_call(uid) -> str:
    """Build the root and the network of one call; return "own_users yes", "own_users no", or
    "STEP why" for the step that fails.
    """
    step = "mount"
    own_users = "no" if _in_child(lambda say: _count(uid)) else "yes"
    try:
        root = namespaces.Root()
        step = "proc"
        root.proc()
        step = "mount"
        root.tmp(1, "/tmp")
        root.mask("/usr")
        root.close()
        step = "network-namespace"
        namespaces.loopback_up()
    except OSError as e:
        return "%s %s%s" % (
            step,
            e.filename + ": " if isinstance(e.filename, str) else "",
            e.strerror,
        )
    return "own_users " + own_users


def _count(uid):
    """Fork in a user namespace of its own, under a limit of two processes.  Raises ``OSError`` when
    the kernel counts all processes of the user: the agent, its server and this one are three.
    """
    tool_process.become(uid)
    tool_process.own_users()
    syscalls.drop_capabilities()
    resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
