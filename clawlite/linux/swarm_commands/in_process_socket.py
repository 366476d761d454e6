"""How commands of a person reach a swarm that is one process (``backend: in-process``): a socket in
the folder of the swarm, which only its user may enter.

    a line to it     [name of a method of ``bus.Bus``, value, ...], JSON
    a line from it   {"value": what it returns} or {"error": why, "hint"}

1. The process of the swarm never waits for a command that asks it.
2. A stop is kept in a file (``stop_file``), so it holds after a restart, and may be given and taken
   back while no process is there.
"""

import errno
import os
import select
import socket
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.files import mend, swarm_folder
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.memory.memory import wall_ms
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.stop_file import StopFile

_SOCKET = "socket"
MOST_ASKED = 65536  # bytes of a line
MOST_CALLERS = 16
ANSWER_S = 10  # that the process may take


def _address(folder: int) -> str:
    """Return the name of the socket in a folder, which may be longer than a socket's may be."""
    return "/proc/self/fd/%d/%s" % (folder, _SOCKET)


class CommandSocket:
    """The end of the process.

    swarm  ``swarm.Swarm``;  bus: an end of it, which nobody else has
    Raises ``ClawError``: the swarm has a process already, or its folder cannot be used.
    """

    def __init__(self, swarm, bus: Bus):
        self._calls: dict = {
            "tasks": bus.tasks,
            "state": bus.state,
            "history": bus.history,
            "stopped": bus.find_stop,
            "again": bus.again,
            "drop": bus.drop,
            "stop": bus.stop,
            "resume": bus.resume,
            "there": lambda: bus.there(swarm),
            "declared": bus.list_declared,
        }
        self._callers: dict = {}  # descriptor -> [socket, bytes that came, bytes to be sent]
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        folder = swarm_folder(swarm.name)
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if _open_socket(self._folder):
                self.close()
                raise ClawError(
                    "the swarm %s runs already, in another process" % swarm.name,
                    "stop that one; see it with: clawlite swarm status",
                )
            try:
                os.unlink(_SOCKET, dir_fd=self._folder)
            except FileNotFoundError:
                pass
            self._listener.bind(_address(self._folder))
            self._listener.listen(MOST_CALLERS)
        except OSError as e:
            self.close()
            raise ClawError(
                "%s cannot be used: %s" % (folder, e.strerror),
                mend(e),
            ) from None

    _folder = -1

    def watch(self, poll):
        """Register what ``serve`` is to be called for."""
        poll.register(self._listener.fileno(), select.POLLIN)
        for fd, (_, _, out) in self._callers.items():
            poll.register(fd, select.POLLOUT if out else select.POLLIN)

    def serve(self, ready: list):
        """Deal with the descriptors *ready* that are of this door."""
        for fd in ready:
            if fd == self._listener.fileno():
                self._accept()
            elif fd in self._callers:
                try:
                    self._move(self._callers[fd])
                except OSError as e:
                    if e.errno != errno.EAGAIN:
                        self._drop(fd)

    def _accept(self):
        try:
            one, _ = self._listener.accept()
        except OSError:  # it is gone again, or no descriptor is free
            return
        if len(self._callers) >= MOST_CALLERS:
            one.close()
            return
        one.setblocking(False)
        self._callers[one.fileno()] = [one, b"", b""]

    def _move(self, caller: list):
        one, come, out = caller
        if out:
            caller[2] = out[one.send(out) :]
            return
        data = one.recv(MOST_ASKED)
        if not data or len(come) + len(data) > MOST_ASKED:
            self._drop(one.fileno())
            return
        line, end, caller[1] = (come + data).partition(b"\n")
        if end:
            caller[2] = self._answer(line)
        else:
            caller[1] = line

    def _answer(self, line: bytes) -> bytes:
        try:
            asked = loads(line)
            call = self._calls.get(str(asked[0])) if isinstance(asked, list) and asked else None
            if call is None:
                raise ClawError("expected [method, value, ...] of %s" % ", ".join(self._calls))
            try:
                told = {"value": call(*asked[1:])}
            except TypeError:
                raise ClawError("%s: other values" % asked[0]) from None
        except ClawError as e:
            told = {"error": e.message, "hint": e.hint}
        return dumps(told).encode() + b"\n"

    def _drop(self, fd: int):
        self._callers.pop(fd)[0].close()

    def close(self):
        self._listener.close()
        for fd in list(self._callers):
            self._drop(fd)
        if self._folder >= 0:
            try:
                os.unlink(_SOCKET, dir_fd=self._folder)
            except OSError:
                pass
            folder, self._folder = self._folder, -1
            os.close(folder)


def _open_socket(folder: int):
    """Return a socket that is connected to the process of the swarm, or None."""
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        one.connect(_address(folder))
    except OSError:
        one.close()
        return None
    return one


class SocketBus:
    """What a command has in place of ``bus.Bus``.

    swarm  ``swarm.Swarm``
    """

    def __init__(self, swarm):
        self._swarm, self._line, self._socket = swarm, b"", None
        self._path = swarm_folder(swarm.name)
        self._connect()

    def _connect(self):
        try:
            folder = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        self._socket = _open_socket(folder)
        os.close(folder)
        if self._socket:
            self._socket.settimeout(ANSWER_S)

    def _ask_process(self, *words) -> Any:
        if self._socket is None:
            raise ClawError(
                "the swarm %s does not run: with backend in-process its tasks are in the memory of "
                "its process" % self._swarm.name,
                "start it: clawlite swarm up",
            )
        try:
            self._socket.sendall(dumps(list(words)).encode() + b"\n")
            while b"\n" not in self._line:
                data = self._socket.recv(65536)
                if not data:
                    raise OSError(0, "it has ended")
                self._line += data
        except OSError as e:
            raise ClawError(
                "the process of the swarm %s does not answer: %s"
                % (self._swarm.name, e.strerror or e),
                "read its output where clawlite swarm up runs",
            ) from None
        line, _, self._line = self._line.partition(b"\n")
        answer = loads(line)
        if "error" in answer:
            raise ClawError(answer["error"], answer["hint"])
        return answer["value"]

    def tasks(self, most: int) -> list:
        return self._ask_process("tasks", most)

    def state(self, task_id: str):
        return self._ask_process("state", task_id)

    def history(self, task_id: str) -> tuple:
        return self._ask_process("history", task_id)

    def again(self, task_id: str):
        return self._ask_process("again", task_id)

    def drop(self, task_id: str):
        return self._ask_process("drop", task_id)

    def there(self, swarm) -> tuple:
        return self._ask_process("there") if self._socket else ({}, ())

    def list_declared(self) -> list:
        return self._ask_process("declared") if self._socket else []

    def find_stop(self):
        return self._ask_process("stopped")

    def stop(self, who: str):
        if self._socket:
            self._ask_process("stop", who)
        elif StopFile(self._path).find_stop() is None:
            StopFile(self._path).set((who, wall_ms()))

    def resume(self, who: str):
        if self._socket:
            self._ask_process("resume", who)
        else:
            StopFile(self._path).set(None)

    def wait(self, later=None):
        return later

    def leave(self):
        if self._socket:
            self._socket.close()
