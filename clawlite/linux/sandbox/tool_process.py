"""The child: the process in which a tool runs.  It gives up its last rights itself, and then runs
the job.

It sends messages to the agent over a socket of its own: R and r (the end and a part of the result),
X (an error), P (a print of tools.py), Q (a question for the agent's provider).  The answer to a
question comes as a descriptor of memory.
"""

import _socket
import array
import errno
import marshal
import os
import signal
import sys

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.linux.confinement import landlock, limits, namespaces, seccomp, syscalls
from clawlite.linux.files.real_path import PathChanged, covers, open_real
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.maker import maker_run
from clawlite.linux.sandbox import plan as plans
from clawlite.linux.sandbox.interpreter import missing_interpreter

PART = 32768  # bytes of one message
_LISTENED, _REFUSED = range(2)  # filters for files: with a listener, and for when there can be none


class Ended(BaseException):
    """The call is ended.  It is raised wherever the function is, so that its ``finally`` blocks
    run.
    """


def wait(line: int, found: dict, uid, filters):
    """Give up the rights that no call needs, wait until the supervisor has a call, and run its job.
    Never returns.

    line     socket to the supervisor.  It brings descriptors: the plan, the job, the socket to the
             agent and, for a command or a server, a pipe for its output
    found    the result of the probe
    uid      the user of the tools, or None
    filters  ``seccomp.Filters``
    """
    _close_all_but(line)
    os.setsid()
    os.umask(0o022)
    become(uid)
    if found["profile"] == "N" and found["own_users"]:
        own_users()
    syscalls.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    # in profile L, other processes of the user could inspect it
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, found["profile"] == "N")
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(filters.common)
    rules, listener = None, -1
    if found["profile"] == "L":
        rules = steady(found["landlock"])
        try:
            listener = seccomp.listen(filters.files[_LISTENED])
        except OSError:  # a container's own filter has a listener already
            seccomp.install(filters.files[_REFUSED])
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    supervisor = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, line)
    supervisor.sendmsg(
        [b"R"],
        [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [listener]))]
        if listener >= 0
        else [],
    )
    if listener >= 0:
        os.close(listener)
    data, extra, _, _ = supervisor.recvmsg(16, _socket.CMSG_SPACE(16), _socket.MSG_CMSG_CLOEXEC)
    if not data or not extra:
        os._exit(0)
    fds = array.array("i")
    _, _, packed = extra[0]
    fds.frombytes(packed)
    supervisor.close()
    plan, talk, output, *door = fds
    _run(
        marshal.loads(_whole(plan)),
        talk,
        output,
        door[0] if door else -1,
        filters,
        rules,
    )


def steady(version: int):
    """Return Landlock's rules for files that every call may open, made before there is a call."""
    rules = landlock.Ruleset(version)
    for path, writable in plans.STEADY:
        rules.allow(path, writable)
    return rules


def _enter(plan: dict, env: dict):
    """Change to the folder in which the tool starts.  Raises ``SandboxDenied``, which names the
    folder that is missing, or that the tools' user may not enter.

    When the whole file system is visible, root's workspace may lie below a folder that the tools'
    user may not enter, such as root's home.  In profile N it is also at /workspace: then that path
    is used, and put into *env*.
    """
    cwd, folder = plan["cwd"], plan["folder"]
    if (
        plan["profile"] == "N"
        and folder is not None
        and covers([folder], cwd)
        and not os.access(folder, os.X_OK)
    ):
        cwd = "/workspace" + cwd[len(folder) :]
        for name in ("HOME", "WORKSPACE"):
            if env.get(name) == folder:
                env[name] = "/workspace"
    try:
        if plan["profile"] == "L":
            fd = open_real(cwd, os.O_PATH | os.O_DIRECTORY)
            os.fchdir(fd)
            os.close(fd)
        else:
            os.chdir(cwd)
    except PathChanged:
        raise
    except OSError as e:
        above = cwd.split("/")
        tops = ["/".join(above[:count]) for count in range(2, len(above) + 1)]
        closed = next((top for top in tops if not os.access(top, os.X_OK)), cwd)
        said = "%s: %s" % (cwd, e.strerror)
        hint = "run the agent as another user than root, or mount a folder that uid %d may enter"
        if not isinstance(e, PermissionError):
            raise _not_let_in(plan, "no folder", said, hint % os.getuid()) from None
        said += ": uid %d of the tools may not enter %s" % (os.getuid(), closed)
        raise _not_let_in(plan, "closed folder", said, hint % os.getuid()) from None


def say_changed(e: PathChanged) -> tuple:
    """Return (reason, hint) for a call whose path was exchanged while it began."""
    return (
        "%s changed while the call began: %s" % (e.filename, e.strerror),
        "send it again; when it stays so, name in the manifest the folder that is meant",
    )


def _not_let_in(plan: dict, reason: str, message: str, hint: str) -> SandboxDenied:
    """Return the error for a call whose tool cannot start, because the tools' user may not do what
    *plan* asks for.
    """
    data = {"sandbox": plan["name"], "reason": reason, "required": "process"}
    return SandboxDenied(message, hint, dict(data, missing=[], available=[], ran=False))


def _close_all_but(keep: int):
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))


def _run(plan: dict, job_fd: int, line: int, output: int, filters, rules):
    talk = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, line)
    begun = False
    try:
        job = marshal.loads(_whole(job_fd))
        _standard(job.get("stdin", b""), output)
        if plan["kind"] == "server":
            os.dup2(line, 0)
            os.dup2(line, 1)
        limits.share(None if "cpu_shares" in plan["kept"] else plan["cpu_shares"])
        env = dict(plan["env"], **job["env"])
        _enter(plan, env)
        _check_writable(plan)
        _confine(plan, filters, rules)
        # in L, a process with secrets stays non-dumpable unless its supervisor must inspect it
        if not job["env"] or limits.is_watched(plan) or limits.is_weighed(plan):
            syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
        if plan["kind"] in ("command", "server"):
            _execute(plan, job["argv"], env)
        os.environ.clear()
        os.environ.update(env)
        begun = True
        _say(talk, b"R", _encode(_value(talk, job)))
    except Ended:
        os._exit(143)
    except ClawError as e:
        _fail(talk, _to_json(e))
    except PathChanged as e:
        _fail(talk, _to_json(_not_let_in(plan, "path changed", *say_changed(e))))
    # any exception of a maker's function is the outcome of its call
    except BaseException as e:
        said = "%s: %s" % (type(e).__name__, e) if str(e) else type(e).__name__
        place = maker_run.place_of(e, os.path.dirname(job["path"])) if "path" in job else ""
        error = ClawError(said[:4000] + place, maker_run.board_hint(e))
        if not begun:
            error = _not_let_in(plan, "cannot be entered", error.message, "see clawlite doctor")
        _fail(talk, _to_json(error))
    os._exit(0)


def _encode(value) -> bytes:
    # half of a surrogate pair goes as its escape: the agent mends it, and says so
    return dumps(value).encode("utf-8", "backslashreplace")


def _to_json(e: ClawError) -> dict:
    return {"code": e.code, "message": e.message, "hint": e.hint, "data": e.data}


def _fail(talk, error: dict):
    try:
        _say(talk, b"X", _encode(error))
    except (OSError, ValueError, TypeError):
        pass
    os._exit(1)


def _whole(fd: int) -> bytes:
    size = os.fstat(fd).st_size
    data = os.pread(fd, size, 0)
    while len(data) < size:
        data += os.pread(fd, size - len(data), len(data))
    os.close(fd)
    return data


def _standard(stdin: bytes, output: int):
    """Set stdin, stdout and stderr of the job; without *stdin* or *output* they stay /dev/null.  A
    program inherits no other descriptor (close-on-exec).
    """
    if stdin:
        memory = os.memfd_create("stdin")
        rest = memoryview(stdin)
        while rest:
            rest = rest[os.write(memory, rest) :]
        # opened again: read-only, and at its beginning
        os.dup2(os.open("/proc/self/fd/%d" % memory, os.O_RDONLY), 0)
    if output >= 0:
        os.dup2(output, 1)
        os.dup2(output, 2)


def become(uid):
    """Become the user of the tools, *uid*; None: stay the same user."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def own_users():
    """Enter a new user namespace.  RLIMIT_NPROC counts per user namespace (Linux 5.14), so it
    counts only this call.
    """
    uid, gid = os.getuid(), os.getgid()
    syscalls.call("unshare", namespaces.NEWUSER)
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 1)
    namespaces.map_own(uid, gid, namespaces.OLD)


def _check_writable(plan: dict):
    """Raise an error when tools run as another user than the agent, and a folder that is mounted
    writable is not writable for them.
    """
    for source, target, writable in plan["mounts"] if plan["uid"] is not None else ():
        path = target if plan["profile"] == "N" else source
        if writable and os.path.lexists(path) and not os.access(path, os.W_OK):
            raise _not_let_in(
                plan,
                "not writable",
                "%s is mounted for writing, but uid %d of the tools may not write there"
                % (source, plan["uid"]),
                "give the folder to that user, mount it read-only, or run the agent as its owner",
            )


def _confine(plan: dict, filters, rules):
    limits.restrict(plan, plan["others"])
    version = plan["landlock"]
    if version is not None:
        if not plan["is_steady"]:
            rules.drop()
            rules = landlock.Ruleset(version)
        for path, writable in plan["system"]:
            rules.allow(path, writable)
        rules.allow_real(plan["allowed"])
        rules.allow("/proc/%d" % os.getpid(), False)
        rules.restrict()
    elif plan["inside"] is not None:
        landlock.inside(plan["inside"], plans.writable_in_namespaces(plan)).restrict()
    seccomp.install(
        filters.own(
            plan["network"] != 0,
            version is not None and version >= landlock.SCOPES_ABI,
            not limits.is_watched(plan),
        )
    )


def _execute(plan: dict, argv: list, env: dict):
    path = env.get("PATH", os.defpath)
    said = missing_interpreter(argv[0], path)
    if said is None:
        try:
            os.execvpe(argv[0], argv, env)
        except OSError as e:
            said = missing_interpreter(argv[0], path, e.errno in (errno.ENOENT, errno.EACCES))
            said = said or (
                "%s: %s" % (argv[0], e.strerror),
                "name a program in /usr or in a mounted folder",
            )
    raise _not_let_in(plan, "no program", *said)


# -- functions


def _value(talk, job: dict):
    """Return what the function of the job returns."""
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if "module" in job:
        __import__(job["module"])
        return getattr(sys.modules[job["module"]], job["name"])(**job["arguments"])
    printed = _Printed(talk)
    space = maker_run.run(job["code"], job["path"], job["modules"], printed.add)
    space, name = maker_run.adapt(space), job["name"]
    if "/" in name:  # of a tool provider, whose module supervisor.py has imported already
        from clawlite.protocols.mcp.tool_provider import function_of

        value = function_of(space, name)(**job["arguments"])
    else:
        value = space[name](**job["arguments"])
    return _drive(talk, value) if job["generator"] else value


class _Printed:
    """Sends what the function prints to the agent, as far as its log takes that of one call."""

    def __init__(self, talk):
        self._talk = talk
        self._room = maker_run.MOST_PRINTED - 100

    def add(self, text: str):
        data = text.encode("utf-8", "replace")
        if self._room <= 0:
            return
        self._room -= len(data) + 1
        if self._room <= 0:
            data = b"(it prints more, which is not in the log)"
        self._talk.send(b"P" + data)


def _drive(talk, generator):
    """Run *generator* to its end: it yields milliseconds to wait, or a question."""
    from time import sleep

    answer = None
    try:
        while True:
            said = (
                generator.throw(answer) if isinstance(answer, ClawError) else generator.send(answer)
            )
            answer = None
            if isinstance(said, dict):
                answer = _ask(talk, said)
            elif isinstance(said, int) and said > 0:
                sleep(said / 1000)
    except StopIteration as e:
        return e.value
    finally:
        generator.close()


def _ask(talk, question: dict):
    """Return the answer of the agent's provider, or the ``ClawError`` that came instead."""
    _say(talk, b"Q", _encode(question))
    data, extra, _, _ = talk.recvmsg(16, _socket.CMSG_SPACE(4), _socket.MSG_CMSG_CLOEXEC)
    if not extra:
        raise Ended
    fds = array.array("i")
    _, _, packed = extra[0]
    fds.frombytes(packed[:4])
    answer = loads(_whole(fds[0]))
    if "text" in answer:
        return answer["text"]
    error = ClawError(answer["message"], answer["hint"])
    # when the function does not catch it, the call fails with the provider's code
    error.code = answer["code"]
    return error


def _end(number, frame):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Ended


def _say(talk, kind: bytes, data: bytes):
    """Send *data* in messages.  The last one has *kind*, the parts before it have ``r``."""
    for start in range(0, max(len(data) - PART, 0), PART):
        talk.send(b"r" + data[start : start + PART])
    rest = (len(data) - 1) // PART * PART if data else 0
    talk.send(kind + data[rest:])
