"""The agent's side of starting the sandbox's server, and how the agent first protects itself."""

import _socket
import marshal
import os
import select
import sys

from clawlite.core.base.errors import SandboxDenied
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.files.real_path import resolve
from clawlite.linux.sandbox.plan import PATH, python_folders

CLOSE_MS = 3000


def start(workspace: str, hidden: list, uid, modules: list, bubblewrap: bool = False) -> tuple:
    """Start the server; return (its pid, the socket to it).  It probes the machine while the agent
    goes on.

    workspace   the folder behind /workspace.  When it lies in one of *hidden* (the agent's state),
                it is created and given to the tools' user
    uid         the user of the tools when the agent is root, or None
    bubblewrap  whether bwrap makes the namespaces (bubblewrap.py)
    Raises ``SandboxDenied``.
    """
    if uid == 0:
        raise SandboxDenied("tools must not be root", "give them another uid")
    if not sys.executable:
        raise SandboxDenied(
            "this Python does not know the path of its own program", "run clawlite with python3"
        )
    _hide()
    if any(resolve(workspace).startswith(folder + "/") for folder in hidden):
        _own_folder(workspace, uid)
    ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
    package = os.path.dirname(PACKAGE)
    code = (
        "import sys; sys.path.insert(0, %r); from clawlite.linux.sandbox.server import main; main()"
        % package
    )
    try:
        pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", "-B", "-c", code],
            {"LANG": "C.UTF-8", "PATH": PATH},
            file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 0)],
        )
    except OSError as e:
        raise SandboxDenied(
            "%s cannot be started: %s" % (sys.executable, e.strerror),
            "repair the Python installation",
        ) from None
    finally:
        theirs.close()
    ours.send(
        marshal.dumps(
            {
                "path": [package] + [p for p in sys.path if p and p != package],
                "uid": uid,
                "modules": modules,
                "python": python_folders(),
                "bubblewrap": _program("bwrap") if bubblewrap else None,
            }
        )
    )
    return pid, ours


def _program(name: str) -> str:
    """Return the path of the program *name* in $PATH, or ""."""
    for folder in os.environ.get("PATH", PATH).split(":"):
        path = os.path.join(folder, name)
        if folder.startswith("/") and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return ""


def wait(pid: int):
    """Wait for the server's end; kill it when it takes too long."""
    fd = os.pidfd_open(pid)
    try:
        if not select.select([fd], [], [], CLOSE_MS / 1000)[0]:
            os.kill(pid, 9)
    finally:
        os.close(fd)
    os.waitpid(pid, 0)


def memory(name: str, data: bytes, flags: int = os.MFD_CLOEXEC) -> int:
    """Return a memfd that holds *data*.  It carries a message of any length, and its writer never
    waits for the reader.
    """
    fd = os.memfd_create(name, flags)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    return fd


def _hide():
    """Make this process non-dumpable.  This uses _ctypes, because ctypes takes five times as long
    to load.
    """
    from _ctypes import call_cdeclfunction, dlopen, dlsym

    if call_cdeclfunction(dlsym(dlopen(None, 0), "prctl"), (4, 0, 0, 0, 0)):
        raise SandboxDenied(
            "the agent cannot be hidden from its tools (PR_SET_DUMPABLE)",
            "run it outside of this container",
        )


def _own_folder(path: str, uid):
    """Make the agent's own workspace.  When the agent is root, give it to the user of the tools."""
    try:
        # makedirs applies its mode only to the last folder, and the agent's state is the one above
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        os.makedirs(path, 0o700, exist_ok=True)
        if uid is not None and os.stat(path).st_uid == 0:
            os.chown(path, uid, uid)
    except OSError as e:
        raise SandboxDenied(
            "the workspace %s: %s" % (path, e.strerror), "make it a folder that the agent can write"
        ) from None
