"""The agents of a swarm in one process (CKP 5.9 ``backend: in-process``), on one loop.

1. Each agent is a ``shell.Shell`` as in a process of its own: its image, identity, policies,
   providers, state folder, log and audit.  What they share is the loop, the signals and the bus.
2. Each has a line without input; what it says has its name before it.
3. An agent that stops (``lifecycle``) leaves, and the others go on.  A signal ends all.
4. Commands of a person reach it by a socket (in_process_socket.py), unless it is there for one
   task alone.
5. ``count`` processes of an agent are one that does so many times as many tasks at once.
"""

import os
import select
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import SWARM
from clawlite.core.line.frame import Framer
from clawlite.linux.files import files
from clawlite.linux.io import signals
from clawlite.linux.io.stdio import MAX_LINE, now_ms
from clawlite.linux.memory.memory import wall_ms
from clawlite.linux.runtime.optional_parts import prepare
from clawlite.linux.runtime.shell import INTERRUPT, Shell
from clawlite.linux.swarm.shared_memory import SharedMemory
from clawlite.linux.swarm_commands.in_process_socket import CommandSocket
from clawlite.protocols.swarm.swarm import Swarm


class Line:
    """What an agent has in place of stdio (``stdio.Wire``): nobody types, and what it says goes to
    *fd*, line by line, with *name* before it.  It never waits: ``InProcessSwarm`` does.
    """

    def __init__(self, name: str, fd: int):
        self._lead, self._fd, self._rest = b"[%s] " % name.encode(), fd, b""
        self.at_end, self.broken, self.fault = True, False, ""
        self._others: list = []
        self._woken_by = []

    def write(self, data: bytes):
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(line)

    def flush(self, timeout_ms: int):
        """Lines are written when they are whole."""

    def close(self):
        if self._rest:
            self._say(self._rest)
            self._rest = b""

    def _say(self, line: bytes):
        try:
            os.write(self._fd, self._lead + line + b"\n")
        except OSError:  # nobody reads it: the log has what matters
            pass

    def wait(self, timeout_ms) -> bytes:
        return b""

    def ready(self) -> bytes:
        return b""

    def end(self):
        """Nothing is read."""

    def watch_others(self, descriptors: list):
        self._others = descriptors

    def wake_by(self, fd: int):
        self._woken_by.append(fd)

    def sleep_by(self, fd: int):
        self._woken_by.remove(fd)

    def descriptors(self) -> list:
        return [*self._woken_by, *self._others]


class _Shell(Shell):
    """An agent's shell; Ctrl-C is no agent's, whoever notices it first."""

    is_interrupted = False

    def interrupt(self):
        self.is_interrupted = True


class InProcessSwarm:
    """The agents of one swarm.

    images  paths of their images, one of each member
    fd      int, where their lines go
    code    int, the exit code
    opens   bool, commands of a person may reach it
    Raises ``ClawError``: one cannot start.
    """

    def __init__(self, images: list, fd: int, opens: bool = False):
        self._wake = signals.catch()
        swarm = swarm_of(images[0])
        self._memory = SharedMemory(wall_ms, os.urandom, files.swarm_folder(swarm.name))
        self._shells: list = []
        self._door: Any = None
        self.code = 0
        try:
            for path in images:
                image = files.open_image(path, prepare)
                line = Line(image.agent.identity, fd), Framer(MAX_LINE, False)
                folder = os.path.dirname(os.path.abspath(path))
                shell = _Shell(
                    image,
                    folder,
                    False,
                    self._wake,
                    line,
                    memory=self._memory,
                    # code of a maker that hangs when a signal comes: no pump of another stays on
                    leave=self._close,
                )
                self._shells.append(shell)
            if opens:
                swarm.share_process()
                self._door = CommandSocket(swarm, self._memory.end())
            for shell in self._shells:
                shell.start()
        except BaseException:
            self.close()
            raise

    def end_of_bus(self):
        """Return an end of the swarm's bus, for who gives it a task."""
        return self._memory.end()

    def run(self) -> int:
        """Serve until a signal comes, or no agent is left; return the exit code."""
        while self.step(None):
            pass
        return self.code

    def step(self, most_ms) -> bool:
        """Wait for whatever comes next, at most *most_ms* (None: without end), and let all agents
        deal with it; return whether they go on.
        """
        due = [shell.deadline() for shell in self._shells]
        due = [at - now_ms() for at in due if at is not None]
        if any(shell.agent.effects for shell in self._shells):
            due.append(0)
        timeout_ms = min([*due, *([] if most_ms is None else [most_ms])], default=None)
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        for shell in self._shells:
            for fd in shell.wire.descriptors():
                poll.register(fd, select.POLLIN)
        if self._door:
            self._door.watch(poll)
        ready = [fd for fd, _ in poll.poll(None if timeout_ms is None else max(0, timeout_ms))]
        if self._wake in ready:
            os.read(self._wake, 512)
        if self._door:
            self._door.serve(ready)
        if signals.interrupts() or signals.end_signal():
            self.code = 128 + (signals.end_signal() or INTERRUPT)
            return False
        for shell in list(self._shells):
            shell.startup.step()
            if shell.code is not None:
                self._shells.remove(shell)
                self.code = shell.code
                shell.leave()
            if shell.is_interrupted:
                self.code = 128 + INTERRUPT
                return False
        return bool(self._shells)

    def close(self):
        """End what is under way, and write what waits."""
        try:
            self._close()
        finally:
            signals.release()

    def _close(self):
        if self._door:
            self._door.close()
            self._door = None
        while self._shells:
            self._shells.pop().leave()


def swarm_of(path: str):
    """Return the ``Swarm`` of the image at *path*, or None."""
    record: Any = files.open_image(path).section(SWARM)
    return record and Swarm(record)


def images_of(paths: list) -> list:
    """Return those of the images *paths* that are a swarm: one of each of its members.  Raises
    ``ClawError``: they are of several swarms, or a member is missing or there twice.
    """
    found, swarms = {}, {}
    for path in paths:
        swarm = swarm_of(path)
        if swarm is None:
            raise ClawError("%s is in no swarm" % path, "declare one: docs/swarm.md")
        swarms[swarm.name] = swarm
        if swarm.own.identity in found:
            raise ClawError(
                "%s is in %s and in %s" % (swarm.own.identity, found[swarm.own.identity], path),
                "one process has each agent once",
            )
        found[swarm.own.identity] = path
    if len(swarms) != 1:
        raise ClawError(
            "expected the agents of one swarm, got those of %d: %s"
            % (len(swarms), ", ".join(sorted(swarms)) or "no agent is here"),
            "start each swarm by itself",
        )
    [swarm] = swarms.values()
    missing = [one.identity for one in swarm.members if one.identity not in found]
    if missing:
        raise ClawError(
            "the swarm %s is one process (backend in-process), and %s not here"
            % (swarm.name, " and ".join(missing) + (" is" if len(missing) == 1 else " are")),
            "put the folders of all its agents side by side, and build them",
        )
    return [found[one.identity] for one in swarm.members]
