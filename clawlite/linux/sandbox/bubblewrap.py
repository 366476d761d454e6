"""Namespaces made by bubblewrap (bwrap(1)), when clawlite.toml asks for it:
``[sandbox] namespaces = "bubblewrap"``.

1. bwrap makes the user, mount, pid, network, IPC and UTS namespaces, and starts a fresh Python in
   them as pid 1.  This is the call's supervisor, which continues as in profile N (root, limits,
   filter, network).  The supervisor makes the mounts, because they depend on the call.
2. This is for systems that let only bwrap make user namespaces.  When bwrap does not work, calls
   are refused; there is no fallback.
3. The new Python has none of the agent's memory; its data comes in a memfd.  It is started before
   there is a call.
"""

import marshal
import os
import sys

from clawlite.core.base.errors import ParseError
from clawlite.linux.confinement import namespaces, seccomp, syscalls
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.sandbox import probe, spawn, supervisor
from clawlite.linux.sandbox.plan import PATH

_ARGUMENTS = (
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--as-pid-1",
    "--die-with-parent",
    "--cap-add",
    "ALL",
    "--dev-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--chdir",
    "/",
    "--",
)
_CODE = (
    "import sys; sys.path.insert(0, %r); from clawlite.linux.sandbox import bubblewrap; "
    "bubblewrap.%s()"
)
MAX_SAID = 4096  # bytes of bwrap's output that are read
ROOT = "the agent is root, and bwrap cannot run tools as another user"


def run_probe(uid, program: str) -> dict:
    """Return the same as ``run_probe`` of probe.py, for profile N with bubblewrap.

    program  path of bwrap, "" when it is not installed
    """
    reason = (
        "no program bwrap in $PATH" if not program else ROOT if uid is not None else _try(program)
    )
    tried = {"seccomp": probe.filters(), "bubblewrap": reason}
    missing = sorted(name for name in tried if tried[name])
    return {
        "profile": None if missing else "N",
        "missing": missing,
        "available": sorted(name for name in tried if not tried[name]),
        "tried": tried,
        "landlock": None,
        "own_users": True,
    }


def _try(program: str) -> str:
    """Build a call's sandbox with nothing to run in it; return "", or why it failed."""
    reading, writing = os.pipe()
    try:
        pid = _spawn(
            program, "tell", [(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_DUP2, writing, 2)]
        )
    except OSError as e:
        return "%s: %s" % (program, e.strerror)
    finally:
        os.close(writing)
    with open(reading, "rb") as file:
        said = file.read(MAX_SAID)
    os.waitpid(pid, 0)
    try:
        reason = loads(said)
    except ParseError:  # the text is an error of bwrap itself
        lines = said.decode("utf-8", "replace").strip().split("\n")
        reason = lines[-1] or "it ended"
    return "" if reason == "own_users yes" else str(reason)


def tell():
    """Runs as pid 1 of bwrap's namespaces.  Write to stdout whether a call's root can be built, and
    whether its processes can be counted.
    """
    namespaces.base(os.getuid(), os.getgid())
    os.write(1, dumps(probe.build_call(None)).encode())


def start(program: str, hello: dict, control: int, taken: int, life: int) -> int:
    """Start a supervisor (``supervisor.wait``) in namespaces of its own; return the pid of its
    bwrap.  The supervisor ends when that ends.  Raises ``OSError``.

    hello  {"path", "modules", "python", "found"}
    """
    memory = spawn.memory("hello", marshal.dumps(dict(hello, fds=(control, taken, life))))
    try:
        return _spawn(
            program,
            "main",
            [(os.POSIX_SPAWN_DUP2, memory, 0)]
            + [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in (control, taken, life)],
        )
    finally:
        os.close(memory)


def _spawn(program: str, what: str, actions: list) -> int:
    command = [
        program,
        *_ARGUMENTS,
        sys.executable,
        "-I",
        "-S",
        "-B",
        "-c",
        _CODE % (os.path.dirname(PACKAGE), what),
    ]
    return os.posix_spawn(program, command, {"LANG": "C.UTF-8", "PATH": PATH}, file_actions=actions)


def main():
    """Runs as pid 1 of bwrap's namespaces: supervise the next call."""
    hello = marshal.loads(os.pread(0, os.fstat(0).st_size, 0))
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    last = 2
    for fd in sorted(hello["fds"]) + [os.sysconf("SC_OPEN_MAX")]:
        os.closerange(last + 1, fd)
        last = fd
    supervisor.import_modules(hello)
    namespaces.base(os.getuid(), os.getgid(), hello["python"])
    syscalls.drop_bounding()
    syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    try:
        supervisor.wait(
            *hello["fds"],
            hello["found"],
            None,
            seccomp.Filters(syscalls.MACHINE, False),
            None,
            None,
        )
    finally:
        os._exit(70)
