"""The tools of an MCP server on stdio, asked of the server itself."""

import contextlib
import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import tempfile
import time

from clawlite import __version__
from clawlite.core.base.errors import ClawError, ParseError
from clawlite.host.base.problems import QuotingError, enquote
from clawlite.host.base.toml_text import depth_of
from clawlite.host.systems.bridge import Bridge
from clawlite.host.systems.processes import KILL, TERM, base_variables, signal_all
from clawlite.protocols.mcp.mcp_client import DISCOVER, READY, MCPClient
from clawlite.protocols.mcp.script_line import MAX_LINE, interpreter, no_interpreter

TIMEOUT_S = 30  # from the start of a server to the end of its list
_SAID = 2000  # characters of stderr that are shown
_TRY = "try it by hand, and see its arguments in clawlite.toml: [mcp.NAME] args"
_DEEPEST = 256  # levels of what a server sends


def tools_of(argv: list[str], env: dict[str, str]) -> tuple[dict, bool, list[str]]:
    """Start the server *argv*, ask it for its tools and end it; return ({name: definition}, whether
    it needs the handshake of the older era, ``notes_of`` it).

    env  its variables, beside PATH, LANG and HOME
    It runs in an empty folder, as this user: nothing contains it.  Raises ``ClawError``.
    """
    found = _ask_server(argv, env, is_handshake=False)
    if found is None:  # it ended at the newer era's question: some servers do
        found = _ask_server(argv, env, is_handshake=True)
    return found


def _ask_server(argv: list[str], env: dict[str, str], is_handshake: bool):
    with tempfile.TemporaryFile() as errors, tempfile.TemporaryDirectory() as home:
        base = {**base_variables(), "LANG": "C.UTF-8", "HOME": home}
        try:
            process, ends = _start(argv, errors, home, {**base, **env})
        except OSError as e:
            why, hint = _missing(argv[0], base["PATH"]) or (e.strerror, "install it here too")
            raise ClawError(
                f"the MCP server {argv[0]} cannot be started: {why}",
                f"{hint}: a build asks it for its tools",
            ) from None
        # some servers list more for who can ask a person, as the agent perhaps can
        client = MCPClient((read_json, json.dumps), __version__, now_ms(), is_handshake, asks=True)
        try:
            _list_tools(client, ends.socket)
            return client.tools, not client.is_stateless, notes_of(client)
        except _Ended:
            if client.state == DISCOVER and not is_handshake:
                return None
            process.wait()
            why, hint = _missing(argv[0], base["PATH"]) or ("it ended", _TRY)
            raise _make_error(argv, why, errors, client.odd_line, hint) from None
        except ClawError as e:
            raise _make_error(argv, e.message, errors, client.odd_line) from None
        finally:
            ends.close()
            _end(process)


def _missing(script: str, path: str) -> tuple[str, str] | None:
    """Return (message, hint) when *script* begins with an interpreter that is not here."""
    try:
        with open(script, "rb") as file:
            program, name = interpreter(file.read(MAX_LINE))
    except OSError:
        return None
    is_there = shutil.which(name, path=path) if name else os.path.exists(program)
    return no_interpreter(script, program, name) if program and not is_there else None


def _start(argv: list[str], errors, home: str, env: dict[str, str]):
    """Return (process, what has its stdin and stdout as ``socket``).  Raises ``OSError``."""
    options: dict = {"stderr": errors, "cwd": home, "env": env, "start_new_session": True}
    if sys.platform != "win32":
        ours, theirs = socket.socketpair()
        try:
            return subprocess.Popen(argv, stdin=theirs, stdout=theirs, **options), _Ends(ours)
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
    # there a socket is no file; and a command of npm is a .cmd file, which its whole path starts
    process = subprocess.Popen(
        [shutil.which(argv[0]) or argv[0], *argv[1:]],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **options,
    )
    read, write = process.stdout, process.stdin
    return process, Bridge(lambda: read.read(65536), write.write, write.close)


class _Ends:
    """A socket that a process has as its stdin and stdout, as ``Bridge`` shows one."""

    def __init__(self, ours: socket.socket):
        self.socket = ours

    def close(self) -> None:
        self.socket.close()


class _Ended(Exception):
    """The server has closed its stdout."""


def _list_tools(client: MCPClient, ours: socket.socket) -> None:
    ours.setblocking(False)
    until = time.monotonic() + TIMEOUT_S
    with selectors.DefaultSelector() as selector:
        selector.register(ours, selectors.EVENT_READ)
        while client.state != READY:
            left = until - time.monotonic()
            if left <= 0:
                raise ClawError(f"it did not list its tools within {TIMEOUT_S} s")
            client.tick(now_ms())
            try:
                while client.out:
                    del client.out[: ours.send(client.out)]
            except BlockingIOError:
                pass
            except OSError:
                raise _Ended from None
            # a second at most: the era that is tried first has a time of its own
            if selector.select(min(left, 1, 0.05 if client.out else 1)):
                data = _receive(ours)
                if not data:
                    raise _Ended
                client.feed(data)


def _receive(ours: socket.socket) -> bytes:
    try:
        return ours.recv(65536)
    except OSError:
        return b""


def notes_of(client: MCPClient) -> list[str]:
    """Return what the maker should know of a server whose list of tools *client* has."""
    notes = [
        f"a tool of its list is left out, because {why}"
        if not name
        else f"its tool {enquote(name)} is left out, because {why}"
        for name, why in client.left_out
    ]
    if client.odd_line:
        notes.append("it writes to stdout what is no message of MCP; these lines are skipped")
    return notes


def _make_error(argv: list[str], why: str, errors, odd_line: str, hint: str = "") -> ClawError:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(size - _SAID, 0))
    said = errors.read().decode("utf-8", "replace").strip()
    if odd_line:
        why += f"; what it writes to stdout is no message of MCP: {odd_line}"
    return QuotingError(
        f"the MCP server {argv[0]}: {why}" + (", and said:" if said else ""),
        hint or _TRY,
        said.splitlines(),
    )


def _end(process: subprocess.Popen) -> None:
    """End the server and all that it started; its stdin is closed already."""
    for number in (None, TERM):
        if number is not None:
            signal_all(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
            break
    signal_all(process.pid, KILL)
    process.wait()


def read_json(data: bytes):
    """Return the value of a JSON text.  Raises ``ClawError``."""
    try:
        value = json.loads(data)
        if depth_of(value) > _DEEPEST:
            raise ParseError(f"nested deeper than {_DEEPEST} levels")
        json.dumps(value, ensure_ascii=False).encode()  # half a character cannot be pinned
        return value
    except (ValueError, RecursionError) as e:
        raise ParseError(str(e)) from None


def now_ms() -> int:
    return int(time.monotonic() * 1000)
