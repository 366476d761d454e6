"""The program of an MCP server that a gateway starts for one of its devices, in a sandbox of its
own (docs/adr/0126).

1. The gateway belongs to the host, which may not import this: command.py hands it ``Sandboxes``.
2. The Sandbox of the device's image says what the program may do, as if the agent ran here: its
   folders, network and limits.  Its level says nothing: a board has no other than none, and the
   program does not run on the board.  [mcp.NAME] may name folders that take the place of the
   Sandbox's, because a board with functions of its own can declare none there.
3. Each program has a sandbox's server process of its own, so that all that it started is gone when
   ``end`` returns.
4. Each program has a folder of its own, which is locked while its gateway lives.  A gateway that
   starts removes the folders of one that was killed.
"""

import contextlib
import fcntl
import os
import tempfile

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import LOCAL
from clawlite.linux.files.workspace import folder, paths_to_hide
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.mcp.server_process import SandboxedServer
from clawlite.linux.mcp.servers import not_started
from clawlite.linux.sandbox.engine import Engine
from clawlite.linux.sandbox.removal import remove
from clawlite.linux.tools.dispatch import limit, local_of, narrow, widen
from clawlite.protocols.sandbox.profile import DENY, PROCESS, SCOPED, profile_of

_NUMBER = -1  # of the program, which is the only one of its engine
_RELAXED, _WRITABLE, _NAMESPACES = 0, 2, 5  # positions in the section LOCAL


class Sandboxes:
    """What contains the programs of a gateway.

    state  the gateway's folder: no program sees it, nor what agents keep beside it
    """

    def __init__(self, state: str):
        self._state = state
        _remove_left(os.path.join(state, "servers"))

    def start(self, image, argv: list, names: list, hosts, cpu_s: int, folders) -> "GatewayServer":
        """Start a program in the Sandbox of *image*.

        names  of environment variables that are passed on to the program
        hosts  that it may reach, as far as the Sandbox allows them; None: all of the Sandbox's
        cpu_s  seconds of processor time of the program and all that it starts; 0: no limit
        folders  [[path, whether it may write], ...] in place of the Sandbox's, or None
        Raises ``ClawError``, or ``OSError``: nothing is left of it then.
        """
        relaxed, profile, namespaces = _rules(image, folders)
        env = {name: os.environ[name] for name in names if name in os.environ}
        job = argv, env, cpu_s
        return GatewayServer(self._state, profile, hosts, relaxed, namespaces, job)

    def missing(self) -> str:
        """Return why this machine cannot contain a program, and what to do about it, or "".
        Waits for a probe.
        """
        engine = Engine("/", [self._state])
        try:
            return engine.refusal()
        except ClawError as e:
            return f"{e.message} - {e.hint}"
        finally:
            engine.close()


class GatewayServer:
    """One program.  ``stream``: a socket whose other end is its stdin and stdout; ``fileno``: a
    descriptor that is readable when ``poll`` has something to do.
    """

    def __init__(self, state: str, profile, hosts, relaxed: list, namespaces: str, job: tuple):
        top = os.path.join(state, "servers")
        os.makedirs(top, 0o700, exist_ok=True)
        self._lock: int | None = None
        with contextlib.ExitStack() as undone:  # undoes the steps before one that fails
            with _hold_lock(top):
                self._home = tempfile.mkdtemp(dir=top)
                undone.callback(self._remove_home)
                self._lock = _lock(self._home)
            workspace = folder(profile, self._home)
            self._engine = Engine(
                workspace,
                paths_to_hide(profile, state, workspace),
                _proxy(profile, hosts),
                relaxed=frozenset(relaxed),
                bubblewrap=namespaces == "bubblewrap",
            )
            undone.callback(self._engine.close)
            argv, env, cpu_s = job
            rules = narrow(profile, hosts)
            self._process = SandboxedServer(
                self._engine, rules, _NUMBER, argv, env, cpu_s, now_ms()
            )
            undone.pop_all()
        self.stream = self._process.stream

    def fileno(self) -> int:
        return self._engine.fileno()

    def poll(self) -> bool:
        """Take what the sandbox says; return whether the program has ended."""
        for _, outcome in self._engine.poll():
            self._process.handle_end(outcome)
        return self._process.has_ended()

    def errors(self) -> str:
        """Return the end of what it wrote to stderr, and what ended it; "" before it has ended."""
        return self._process.errors()

    def not_started(self, data: bytes):
        """Return the error in *data* by which the sandbox says that the start failed, or None."""
        return not_started(data[1:]) if data[:1] == b"X" else None

    def end(self) -> None:
        """End it with all that it started, and remove its folder.  Waits for it."""
        self._process.end()
        self._engine.close()
        self._remove_home()

    def _remove_home(self) -> None:
        try:
            remove(self._home)
        finally:
            lock, self._lock = self._lock, None
            if lock is not None:
                os.close(lock)


def _lock(path: str) -> int:
    """Lock the folder *path*; return the descriptor that holds the lock.  Raises ``OSError``:
    another process has it.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


@contextlib.contextmanager
def _hold_lock(top: str):
    """Hold a lock on *top*, so that no gateway removes a folder there before it is locked."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _remove_left(top: str) -> None:
    """Remove the folders in *top* that no gateway has locked, because their gateway was killed."""
    try:
        names = os.listdir(top)
    except OSError:  # no program was ever started here
        return
    with _hold_lock(top):
        for name in names:
            path = os.path.join(top, name)
            with contextlib.suppress(OSError):  # its gateway lives, or it is gone already
                fd = _lock(path)
                try:
                    remove(path)
                finally:
                    os.close(fd)


def _rules(image, folders) -> tuple:
    """Return (names of limits that may be enforced in part, ``profile.Profile``, who makes the
    namespaces) for a program of *image*; *folders* as ``Sandboxes.start`` has them.
    """
    local, profile = local_of(image.section(LOCAL)), profile_of(image)
    profile.level = PROCESS
    if folders is not None:
        profile.files, profile.mounts = SCOPED, [tuple(one) for one in folders]
    widen(profile, local[_WRITABLE])
    relaxed, _ = limit(profile, local[_RELAXED])
    return relaxed, profile, local[_NAMESPACES]


def _proxy(profile, hosts):
    """Return the class of the proxy for its connections, or None where it may make none."""
    if narrow(profile, hosts).network == DENY:
        return None
    from clawlite.linux.net.egress import Egress

    return Egress
