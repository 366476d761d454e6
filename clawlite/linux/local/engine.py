"""The engine of the local model, as the process that asks it sees it.

It is forked (confined.py), and killed when it takes too long.  Tools are set once: a changed set is
a new process, because a failed change would leave the old tools in force.
"""

import ctypes
import json
import mmap
import os
import select
import signal
import socket
import time

from clawlite.linux.local import confined, model_files
from clawlite.linux.local.model_files import LocalError

TIMEOUT_MS = 5000
START_MS = 30000  # 300 tools take seconds to be read


class Engine:
    """One process with engine and weights.

    timeout_ms  for an answer; then the process is killed
    Raises ``LocalError``, as all of its functions do.
    """

    def __init__(self, timeout_ms: int = TIMEOUT_MS):
        self._timeout_ms = timeout_ms
        folder = model_files.require_folder()
        engine = model_files.read_pinned(folder, model_files.ENGINE)
        weights = model_files.read_pinned(folder, model_files.WEIGHTS)
        ours, theirs = socket.socketpair()
        # shared pages: the child needs no copy, and these are ours no longer
        shared = mmap.mmap(-1, len(weights))
        shared[:] = weights
        address = ctypes.addressof(ctypes.c_char.from_buffer(shared))
        size, parent = len(weights), os.getpid()
        del weights
        self.pid = os.fork()
        if self.pid == 0:
            confined.serve(theirs.fileno(), engine, address, size, parent)
        theirs.close()
        self._line = ours
        self._take(START_MS)

    def set_tools(self, tools: list):
        """Set the *tools*, [{"name", "description", "parameters"}, ...], once."""
        self._ask(b"I" + json.dumps(tools).encode(), START_MS)

    def complete(self, text: str) -> tuple:
        """Return ([(tool, arguments), ...], confidence) for *text*."""
        said = self._ask(b"C" + text.encode(), self._timeout_ms)
        try:
            answer = json.loads(said)
            calls = [(one["name"], dict(one["arguments"])) for one in answer["function_calls"]]
            sure = answer["confidence"]
            sure = float(0 if sure is None else sure)
            if not all(isinstance(name, str) for name, _ in calls):
                raise ValueError("a tool's name is no text")
        except (ValueError, KeyError, TypeError) as e:
            self.close()
            raise LocalError(
                "the engine answered nonsense: %s: %.80r" % (e, said), _AGAIN
            ) from None
        return calls[:16], sure

    def embed(self, text: str):
        """Return the vector of *text*, an array of floats."""
        from array import array

        found = array("f")
        said = self._ask(b"E" + text.encode(), self._timeout_ms)
        found.frombytes(said[: len(said) // 4 * 4])
        return found

    def close(self):
        """End the process."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0
            self._line.close()

    def _ask(self, message: bytes, most_ms: int) -> bytes:
        if not self.pid:
            raise LocalError("the engine of the local model has ended", _AGAIN)
        try:
            self._line.sendall(confined.frame(message))
        except OSError:
            pass  # why it ended is read below
        return self._take(most_ms)

    def _take(self, most_ms: int) -> bytes:
        due = time.monotonic() + most_ms / 1000

        def read(count: int) -> bytes:
            left = due - time.monotonic()
            if left <= 0 or not select.select([self._line], [], [], left)[0]:
                raise TimeoutError
            return self._line.recv(count)

        try:
            answer = confined.receive(read)
        except TimeoutError:
            self.close()
            raise LocalError(
                "the engine of the local model did not answer within %g s, and was killed"
                % (most_ms / 1000),
                _AGAIN,
            ) from None
        except (OSError, ValueError) as e:
            self.close()
            raise LocalError(
                "the engine of the local model answered nonsense: %s" % e, _AGAIN
            ) from None
        if answer is None or answer[:1] not in (b"+", b"-"):
            self.close()
            raise LocalError("the engine of the local model ended without an answer", _AGAIN)
        if answer[:1] == b"-":
            self.close()
            said = answer[1:300].decode("utf-8", "replace")
            raise LocalError("the engine of the local model: %s" % said, _AGAIN)
        return answer[1:]


_AGAIN = "say it again; when it stays so, see clawlite doctor"
