"""What this machine can do, found out by doing it, once, before the first call.

A kernel may have a system call and refuse it (AppArmor, a container's filter, a limit of zero), so no version and no setting is
believed: a sandbox of each kind is built, with nothing to run in it.
"""
import os
import resource

from clawlite.linux.sandbox import landlock, namespaces, seccomp, syscalls
from clawlite.linux.sandbox.seccomp import Rules

NEEDS = {"N": ("userns", "mount", "proc", "network-namespace", "seccomp"), "L": ("landlock", "seccomp")}


def look(uid) -> dict:
    """Return {"profile", "missing", "available", "tried", "landlock", "counts_per_namespace"}.

    uid      int, the user that tools are to be where the agent is root, or None
    profile  "N", "L" or None; tried: {mechanism: "" when it works, else why not}; landlock: its ABI, or None
    """
    tried = {}
    version = None
    if syscalls.MACHINE is None:
        tried["seccomp"] = "no table of system calls for %s" % os.uname().machine
    else:
        tried["seccomp"] = _in_child(_seccomp)
    if uid is not None:
        tried["setuid"] = _in_child(lambda say: _become(uid))
    counts = ""
    for name, reason in _namespaces().items():
        if name == "counts":
            counts = reason
        else:
            tried[name] = reason
    try:
        version = landlock.abi()
        tried["landlock"] = "" if version >= landlock.LEAST_ABI else "ABI %d, at least %d is needed" % (version, landlock.LEAST_ABI)
    except OSError as e:
        tried["landlock"] = e.strerror
    if not tried["landlock"]:
        tried["landlock"] = _in_child(lambda say: _landlock(version))
    profile = None
    if not tried.get("setuid"):
        profile = next((p for p in ("N", "L") if not any(tried[n] for n in NEEDS[p])), None)
    return {"profile": profile, "missing": sorted(n for n in tried if tried[n]), "available": sorted(n for n in tried if not tried[n]),
            "tried": tried, "landlock": None if tried["landlock"] else version, "counts_per_namespace": counts == "yes"}


def hint(found: dict, network: bool) -> str:
    """Return what a person can do about what is missing."""
    tried = found["tried"]
    if found["profile"] == "L" and network:
        return "allow user namespaces (kernel.apparmor_restrict_unprivileged_userns=0), or set the sandbox's network to deny"
    if tried["seccomp"]:
        return "use a kernel with CONFIG_SECCOMP_FILTER, and a container that lets a process filter itself"
    if tried.get("setuid"):
        return "start the agent as an ordinary user"
    return "allow user namespaces (sysctl user.max_user_namespaces), or boot with lsm=landlock on Linux >= 6.2"


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
    seccomp.install(seccomp.assemble(Rules(False, False, True, True), syscalls.MACHINE))
    import _socket
    try:
        _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM).close()
    except OSError:
        return ""
    return "the filter is there and filters nothing"


def _become(uid):
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _landlock(version):
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    rules = landlock.Ruleset(version)
    rules.allow("/usr", False)
    rules.restrict()
    try:
        os.close(os.open("/etc", os.O_RDONLY))
    except OSError:
        return ""
    return "the rules are there and forbid nothing"


def _namespaces() -> dict:
    """Return {"userns", "mount", "proc", "network-namespace": "" or why not, "counts": "yes" or "no"}."""
    result = {"userns": "", "mount": "", "proc": "", "network-namespace": ""}
    uid, gid = os.getuid(), os.getgid()
    told, go = os.pipe(), os.pipe()
    try:
        pid = namespaces.clone(namespaces.FLAGS)
    except OSError as e:
        for fd in told + go:
            os.close(fd)
        return dict.fromkeys(result, e.strerror)
    if pid == 0:
        os.close(go[1])
        _report(told[1], lambda say: _build(uid, gid, go[0]))
    os.close(told[1])
    os.close(go[0])
    failed = ""
    try:
        if uid == 0:
            namespaces.map_all(pid)
    except OSError as e:
        failed = "userns %s" % e.strerror
    os.close(go[1])
    said = _result(told[0], pid)
    name, _, reason = (failed or said).partition(" ")
    if name in result:
        seen = False
        for step in result:                     # what comes after the step that failed was not tried, so it does not work
            seen = seen or step == name
            if seen:
                result[step] = reason if step == name else "not tried: %s fails" % name
    elif name != "counts":
        result["mount"] = said
    result["counts"] = reason if name == "counts" else "no"
    return result


def _build(uid: int, gid: int, go: int) -> str:
    step = "userns"
    try:
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
        if uid == 0:
            os.read(go, 1)
        else:
            namespaces.map_own(uid, gid)
        step = "mount"
        root = namespaces.Root()
        root.system()
        step = "proc"
        root.proc()
        step = "mount"
        root.tmp()
        root.mask("/usr")
        root.enter()
        step = "network-namespace"
        namespaces.loopback_up()
    except OSError as e:
        return "%s %s%s" % (step, e.filename + ": " if isinstance(e.filename, str) else "", e.strerror)
    return "counts " + _counts(uid)


def _counts(uid: int) -> str:
    """Tell whether RLIMIT_NPROC counts this user namespace alone (Linux 5.14), or all that the user runs anywhere."""
    if uid == 0:                                # nobody limits root: the tools' user has this kernel's way too
        release = os.uname().release.split(".")
        return "yes" if (int(release[0]), int(release[1])) >= (5, 14) else "no"
    resource.setrlimit(resource.RLIMIT_NPROC, (2, 2))
    try:
        pid = os.fork()                         # the agent and its server alone are two already
    except OSError:
        return "no"
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "yes"
