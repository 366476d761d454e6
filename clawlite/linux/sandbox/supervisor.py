"""The supervisor: one process for each call, between the server and the child.  It builds the
sandbox and ends it.

In profile N it is pid 1 of the call's own pid namespace: when it ends, the kernel ends every
process that is left in there.  In profile L it is the subreaper of the call: a process that loses
its parent becomes its child, so the tree is dead when it has no child any more.

It reads the tool's output, keeps the time limit, and checks memory and processes.  It sends the
agent messages: P (a listening socket for the proxy), O (a part of the output), E (how the call
ended).  When the agent closes its socket, the supervisor ends the call.  The agent sends one byte,
which stays unread until the supervisor begins the call.  If the supervisor dies before that, the
agent gets ECONNRESET, and knows that nothing has run.
"""

import _socket
import array
import marshal
import os
import select
import signal
import sys

from clawlite.linux.confinement import (
    cgroups,
    landlock,
    limits,
    modes,
    namespaces,
    secretfiles,
    syscalls,
)
from clawlite.linux.files import mounts, quota
from clawlite.linux.files.real_path import PathChanged, open_real, resolve
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.sandbox import memory_accounting, names, probe, tool_process, watch
from clawlite.linux.sandbox import plan as plans
from clawlite.linux.sandbox.plan import Refused

_CHILD_LEFT = 72  # exit code: its child has not ended, so in profile L the server ends and reaps it
_SCM_DATA = 2  # position in an ancillary message of ``recvmsg``: the descriptors, packed


def import_modules(hello: dict):
    """Import the modules that functions need (``hello["modules"]``), and what os.execvpe imports.
    Later, in another root, their files have other paths.
    """
    import warnings  # noqa: F401

    sys.path[:] = hello["path"]
    for name in hello["modules"]:
        try:
            __import__(name)
        except ImportError:  # the function that imports it will fail and say so
            pass


def wait(control: int, taken: int, life: int, found: dict, uid, filters, groups, group):
    """Wait for a call and run it.  Never returns.

    control  the server's socket to the agent: the idle supervisor reads the next call from it
    taken    a pipe; one byte tells the server that this supervisor has a call
    life     a pipe that hangs up when the server has ended
    found    the result of the probe
    uid      the user of the tools, or None
    filters  ``seccomp.Filters``
    groups   ``cgroups.Groups`` or None
    group    the name of the child's group
    """
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if select.select([life], [], [], 0)[0]:  # the server ended before prctl, so no signal will come
        os._exit(0)
    if found["profile"] == "L":
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    pid = groups.fork(group) if groups else os.fork()
    if pid == 0:
        tool_process.wait(theirs.detach(), found, uid, filters)
    theirs.close()
    if groups:
        group = groups.open(group)
        groups.leave()
    if found["profile"] == "N":
        root = namespaces.Root()
        root.proc()
        root.tmp(plans.TMP_MB, "/tmp")
        table = mounts.Table("/new" + mounts.TABLE, namespaces.OLD)
    else:
        table = mounts.Table()
        found = dict(found, strangers=limits.other_users_pids(os.getuid() if uid is None else uid))
    table.refresh()  # now, while no call waits
    data, extra, _, _ = ours.recvmsg(1, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
    # the child needs the old root until it is ready
    if not data:
        os._exit(71)
    asks = (
        modes.Modes(int.from_bytes(extra[0][_SCM_DATA][:4], sys.byteorder), uid) if extra else None
    )
    calls = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, control)
    call = next_call(calls)
    calls.close()
    if call is None:  # the agent has gone
        os._exit(0)
    os.write(taken, b"T")
    os.close(taken)
    # in L only the supervisor ends the child's processes, so it must outlive the server for that
    if found["profile"] == "L":
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 0)
    _run(*call, found, uid, pid, ours, life, group, asks, table)


def next_call(calls):
    """Read the next call.  Return (descriptors, milliseconds that it may take or None), or None
    when the agent has ended.

    The descriptors are the plan, the job, the child's socket to the agent and the supervisor's.
    """
    size = 4 * 4
    data, extra, _, _ = calls.recvmsg(64, _socket.CMSG_SPACE(size), _socket.MSG_CMSG_CLOEXEC)
    if not data or not extra:
        return None
    fds = array.array("i")
    fds.frombytes(extra[0][_SCM_DATA][:size])
    return fds.tolist(), int(data[1:]) if len(data) > 1 else None


def _run(
    fds: list, timeout_ms, found: dict, uid, pid: int, to_child, life: int, group, asks, table
):
    plan_fd, job_fd, talk, line = fds
    agent = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, line)
    # the call has begun: until here the agent could send it to another supervisor
    agent.recv(1)
    plan, status = marshal.loads(os.pread(plan_fd, os.fstat(plan_fd).st_size, 0)), _CHILD_LEFT
    try:
        plan.update(
            timeout_ms=timeout_ms,
            profile=found["profile"],
            uid=uid,
            own_users=found["own_users"],
            blind=found["blind"],
            landlock=found["landlock"] if found["profile"] == "L" else None,
            inside=found["landlock"] if found["profile"] == "N" else None,
        )
        try:
            # the other limits are enforced by the child and by watch.py
            plan["kept"] = group.limit(plan) if group else []
            plan["others"] = _others(plan, found)
            _hide(plan, found["cgroup"])
            _deny(plan, table)
            _build(plan, agent, secretfiles.values_of(job_fd) if plan["gives_files"] else {})
            kept = memory_accounting.MemoryAccount(plan) if limits.is_watched(plan) else None
        except PathChanged as e:
            raise Refused(*tool_process.say_changed(e)) from None
        except OSError as e:
            raise Refused(
                "%s: %s" % (e.filename or "the sandbox", e.strerror),
                "see what works here with: clawlite doctor",
            ) from None
        if select.select([agent], [], [], 0)[0]:  # the agent has ended the call meanwhile
            watch.clear(plan)
            os._exit(_CHILD_LEFT)
        if asks is not None:
            asks.allow(plan)
        output = os.pipe() if plan["kind"] in ("command", "server") else (-1, -1)
        memory = os.memfd_create("plan")
        os.write(memory, marshal.dumps(plan))
        handed = [memory, job_fd, talk] + [fd for fd in output[1:] if fd >= 0]
        # measured before the workspace can grow, and as the same user as later
        if plan["room"] is not None:
            _confine(plan, uid)
            plan["room"] = max(plan["room"], quota.size(watch.workspace(plan)))
        to_child.sendmsg(
            [b"J"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", handed))]
        )
        for fd in handed + [plan_fd]:
            os.close(fd)
        if plan["room"] is None:
            _confine(plan, uid)
        end = watch.Watch(plan, agent, pid, output[0], life, kept, group, asks).run()
        status = 0
    except Refused as e:
        watch.clear(plan)
        end = {"refused": e.args[0], "hint": e.args[1]}
    except Exception as e:  # a bug of clawlite; the agent reports it as one
        watch.clear(plan)
        end = {"refused": "%s: %s" % (type(e).__name__, e), "hint": "this is a bug in clawlite"}
    watch.send_to_agent(agent, b"E" + dumps(end).encode())
    os._exit(status)


def _confine(plan: dict, uid):
    """In profile N, become the user of the tools, because the sandbox is complete."""
    if plan["profile"] == "N":
        tool_process.become(uid)
        syscalls.drop_capabilities()
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)


def _build(plan: dict, agent, files: dict):
    _check_limits(plan)
    if plan["profile"] == "N":
        _placeholders(plan)
        plans.for_namespaces(plan)
        _root(plan, files)
        if plan["network"]:
            namespaces.loopback_up()
            if limits.is_watched(plan):
                namespaces.shorten(memory_accounting.waiting())
            _door(plan, agent)
        namespaces.close_proc()
        return
    if plan["network"]:
        raise Refused(
            "without a network namespace a child with network could go anywhere", probe.NETWORK_HINT
        )
    plan["tmp"] = resolve(plan["tmp"])
    above = secretfiles.parent(plan["tmp"]) if plan["gives_files"] else None
    plan["hidden"] = plan["hidden"] + ([above] if above else [])
    try:
        plans.for_landlock(plan, landlock.around, landlock.listable)
    except ValueError as e:  # a denied path that cannot be kept out
        raise Refused(
            str(e), "deny a folder with fewer neighbours, or allow user namespaces"
        ) from None
    _folder(plan)
    if files:
        secretfiles.folder(above, plan, files, watch.remove)


def _deny(plan: dict, table):
    """Deny the denied files by all of their names.  In profile N, later mounts do not appear in the
    sandbox.
    """
    if plan["profile"] == "N":
        namespaces.freeze()
    names.deny(plan, table, namespaces.OLD if plan["profile"] == "N" else "")
    table.close()


def _hide(plan: dict, path):
    """Hide the folder *path* of the calls' control groups from tools, because limits are written
    there: with a mask in N, with a denial in L.
    """
    if path is None:
        return
    plan["hidden"] = plan["hidden"] + [path]
    for source, target in (
        [("/", "/")] if plan["whole"] else [mount[:2] for mount in plan["mounts"]]
    ):
        source = source.rstrip("/") + "/"
        if (path + "/").startswith(source):
            plan["masks"] = plan["masks"] + [os.path.join(target, path[len(source) :])]
        elif source.startswith(path + "/"):
            raise Refused(
                "%s holds the control groups of the agent's calls, no tool may see them" % target,
                "mount another folder",
            )


def _others(plan: dict, found: dict) -> int:
    """Return how many tasks RLIMIT_NPROC must allow for other processes of the same user."""
    if (
        plan["max_processes"] is None
        or "max_processes" in plan["kept"]
        or (plan["profile"] == "N" and plan["own_users"])
    ):
        return 0
    uid = os.getuid() if plan["uid"] is None else plan["uid"]
    # the tasks of the server's user namespace, without the child, which is one of them
    if plan["profile"] == "N":
        return limits.tasks_below(found["server"], uid, namespaces.OLD + "/proc") - 1
    return limits.tasks_of(uid, found["strangers"])


def _check_limits(plan: dict):
    """Refuse limits that this machine can enforce only in part, unless the settings relax them by
    name.
    """
    if (
        plan["max_processes"] is not None
        and plan["profile"] == "N"
        and not plan["own_users"]
        and limits.kernel() < (5, 14)
        and "max_processes" not in plan["relaxed"] + plan["kept"]
    ):
        raise Refused(
            "max_processes is only counted now and then on this kernel",
            'use Linux >= 5.14, or set relaxed = ["max_processes"]',
        )
    if (
        plan["max_processes"] is not None
        and plan["blind"]
        and "max_processes" not in plan["relaxed"] + plan["kept"]
    ):
        raise Refused(
            "max_processes cannot be counted: /proc hides processes of this user (hidepid)",
            "give the agent a control group (clawlite service), mount /proc without "
            'hidepid, or set relaxed = ["max_processes"]',
        )
    least, how = (
        (cgroups.LEAST_SHARES, "cpu.weight")
        if "cpu_shares" in plan["kept"]
        else (limits.LEAST_SHARES, "nice")
    )
    if (
        plan["cpu_shares"] is not None
        and plan["cpu_shares"] < least
        and "cpu_shares" not in plan["relaxed"]
    ):
        raise Refused(
            "cpu_shares %d: %s goes no lower than %d" % (plan["cpu_shares"], how, least),
            'give it at least %d, or set relaxed = ["cpu_shares"]' % least,
        )


def _placeholders(plan: dict):
    """Create the denied paths that do not exist, so that they can be covered.  This is done only in
    the agent's own workspace.  Elsewhere the call is refused when a tool could create the path.
    """
    for path in plan["absent"]:
        parent = os.path.dirname(path)
        while not os.path.lexists(namespaces.OLD + parent):
            parent = os.path.dirname(parent)
        if plan["is_own"] and path.startswith(plan["folder"] + "/"):
            # another call may have made it since
            os.close(open_real(path, os.O_PATH | os.O_DIRECTORY, namespaces.OLD, 0o700))
            plan["firm"] = plan["firm"] + plans.masks(
                plan["mounts"], [path], [], plan["folder"], plan["whole"]
            )
        elif plan["uid"] is not None or os.access(namespaces.OLD + parent, os.W_OK):
            raise Refused(
                "the denied path %s does not exist, and the kernel denies nothing that "
                "is not there" % path,
                "make an empty folder of that name",
            )


def _root(plan: dict, files: dict):
    """Build the root of profile N: the system's files, the declared mounts, and masks over the
    denied paths.
    """
    targets = [target for _, target, _ in plan["mounts"]] + (
        [secretfiles.place_of(plan)] if files else []
    )
    own = bool(plan["whole"]) or namespaces.Root.lacks(targets)
    root = namespaces.Root(own)
    if plan["whole"]:
        for name in os.listdir(namespaces.OLD):
            path = "/" + name
            if name in ("dev", "proc"):
                continue
            if plan["whole"] == plans.WHOLE_WRITE and not os.path.islink(namespaces.OLD + path):
                root.bind(path, path, True)
            else:
                root.like(path)
        root.devices()
    elif own:
        uid, gid = (os.getuid(), os.getgid()) if plan["uid"] is None else (plan["uid"], plan["uid"])
        root.system(uid, gid)
    # the base has a /proc and the default /tmp already, a root of its own has not
    if own:
        root.proc()
    if own or plan["tmp_mb"] != plans.TMP_MB:
        root.tmp(plan["tmp_mb"], plan["env"]["TMPDIR"])
    for source, target, writable in plan["mounts"]:
        try:
            root.bind(source, target, writable)
        except FileNotFoundError:  # the source does not exist
            continue
        except PathChanged:
            raise
        except OSError as e:
            raise Refused(
                "%s: %s" % (target, e.strerror),
                "uid %d of the agent must be able to reach it" % os.getuid(),
            ) from None
    for path in plan["veils"]:
        root.veil(path, *[mount for mount in plan["mounts"] if mount[1] == plan["folder"]])
    for target in plan["pins"]:
        root.pin(target)
    for target in plan["masks"]:
        if not root.mask(target, target in plan["firm"]):
            raise Refused(
                "the denied file %s has other names: its file system ignores case" % target,
                "deny the folder that it lies in",
            )
    if files:
        secretfiles.mount(root, plan, files)
    root.close()


def _door(plan: dict, agent):
    """Open the only door of the network: a socket on 127.0.0.1 that the agent's proxy serves."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    url = "http://127.0.0.1:%d" % listener.getsockname()[1]
    for name in (
        "http_proxy",
        "https_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ):
        plan["env"][name] = url
    agent.sendmsg(
        [b"P"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))]
    )
    listener.close()


def _folder(plan: dict):
    """Make the private folder of profile L, which takes the place of /tmp."""
    path = "%s/clawlite-%d-%s" % (os.path.realpath(plan["tmp"]), os.getpid(), os.urandom(8).hex())
    os.mkdir(path, 0o700)
    if plan["uid"] is not None:
        os.chown(path, plan["uid"], plan["uid"], follow_symlinks=False)
    plan["private"] = path
    plan["allowed"] = plan["allowed"] + [(path, True)]
    plan["env"]["TMPDIR"] = path
    for name in ("HOME", "WORKSPACE"):
        plan["env"].setdefault(name, path)
    plan["cwd"] = plan["cwd"] or path
