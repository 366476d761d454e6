"""The process of an MCP server: a stream that is its stdin and stdout, and what it says on stderr.

    SandboxedServer   level process: it lives in the sandbox of the agent's tools (jobs.Server)
    PlainServer       level none: a process of the agent's user; nothing contains it

Both have: stream (a socket that does not block), errors() -> the end of what it wrote to stderr,
has_ended() -> bool, end() (the process is gone when it returns, or its sandbox ends it).
"""

import errno
import os
import signal
import socket
import subprocess

from clawlite.core.base.errors import ClawError

MAX_ERRORS = 2000  # characters of stderr that are kept
GRACE_S = 0.5  # between the end of its stdin, SIGTERM and SIGKILL


class SandboxedServer:
    """A server in the sandbox.

    engine, profile  ``sandbox.engine.Engine`` and the profile of the agent's tools
    number           int below 0, by which the engine knows it
    cpu_s            seconds of processor time that it may use, with all that it starts; 0: no limit
    """

    def __init__(
        self, engine, profile, number: int, argv: list, env: dict, cpu_s: int, now_ms: int
    ):
        from clawlite.linux.sandbox.jobs import Server

        self._engine, self._number = engine, number
        self._outcome = None
        self.stream = engine.open(number, profile, Server(argv, env, cpu_s or None), now_ms)
        self.stream.setblocking(False)

    def handle_end(self, outcome: tuple):
        """Take what ``Engine.poll`` says of its end."""
        self._outcome = outcome

    def has_ended(self) -> bool:
        return self._outcome is not None

    def errors(self) -> str:
        if self._outcome is None:
            return ""
        done, value = self._outcome
        if not done:
            return value.message + (" - " + value.hint if value.hint else "")
        by = "ended by its limit %s\n" % value["ended"] if value["ended"] else ""
        return (by + value["output"] + value["note"])[-MAX_ERRORS:]

    def end(self):
        self.stream.close()
        if self._outcome is None:
            self._engine.cancel(self._number)


class PlainServer:
    """A server outside of any sandbox, in a session of its own, so that it ends with all that it
    started.
    """

    def __init__(self, argv: list, env: dict, cwd: str):
        from clawlite.linux.sandbox.interpreter import missing_interpreter

        path = env.get("PATH", os.defpath)
        said = missing_interpreter(argv[0], path)
        if said is not None:
            raise ClawError(*said)
        self.stream, theirs = socket.socketpair()
        self._errors, their_errors = os.pipe()
        self._said = b""
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=theirs,
                stdout=theirs,
                stderr=their_errors,
                env=env,
                cwd=cwd,
                start_new_session=True,
            )
        except OSError as e:
            self.stream.close()
            errors, self._errors = self._errors, -1
            os.close(errors)
            said = missing_interpreter(argv[0], path, e.errno == errno.ENOENT) or (
                "%s: %s" % (argv[0], e.strerror),
                "install it there, or name its path in the mcp_source of its tools",
            )
            raise ClawError(*said) from None
        finally:
            theirs.close()
            os.close(their_errors)
        self.stream.setblocking(False)
        os.set_blocking(self._errors, False)

    def fileno(self) -> int:
        """Return the descriptor of its stderr, which must be read as it writes."""
        return self._errors

    def read_errors(self) -> bool:
        """Keep the end of what it has written to stderr; return whether anything had come."""
        try:
            data = os.read(self._errors, 65536)
        except BlockingIOError:
            return False
        self._said = (self._said + data)[-4 * MAX_ERRORS :]
        return bool(data)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def errors(self) -> str:
        while self._errors >= 0 and self.read_errors():
            pass
        return self._said.decode("utf-8", "replace")[-MAX_ERRORS:]

    def end(self):
        self.stream.close()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            if number:
                self._signal(number)
            try:
                self._process.wait(GRACE_S if number != signal.SIGKILL else None)
                break
            except subprocess.TimeoutExpired:
                pass
        self._signal(signal.SIGKILL)  # what it started and left
        errors, self._errors = self._errors, -1
        if errors >= 0:
            os.close(errors)

    def _signal(self, number: int):
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            pass
