"""A line to an agent of this machine, by its control socket (linux/tasks/control_socket.py): who
speaks there is the user who runs this command.
"""

import os
import pwd
import socket
import time

from clawlite.core.base.errors import ClawError
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.protocols.secrets.people import is_name

SOCKET = "control.sock"
_MOST = 4 << 20
_PATIENCE_S = 10  # for an answer
HINT = "start it with --socket, or with [page] in its clawlite.toml"


class AgentGone(ClawError):
    """The agent has no control socket, or has hung up."""


class AgentLine:
    """One session with an agent.

    agent  its name;  role: the rights that the session has
    """

    def __init__(self, agent: str, role: str):
        self.agent = agent
        self._rest, self._number = b"", 0
        self._heard: list = []  # what came and was not asked for yet
        self._socket = _connect(agent)
        login_ms = time.monotonic_ns() // 1000000
        self._send({"person": _own_name(), "role": role, "login_ms": login_ms})
        metadata, spec = {"name": agent}, {"identity": "./i.yaml", "providers": ["./p.yaml"]}
        manifest = {"claw": "0.3.0", "kind": "Claw", "metadata": metadata, "spec": spec}
        self.ask(
            "claw.initialize",
            protocolVersion="0.3.0",
            clientInfo={"name": "clawlite", "version": "1"},
            manifest=manifest,  # it is checked, and the agent that runs stays
            capabilities={},
        )

    def fileno(self) -> int:
        return self._socket.fileno()

    def _send(self, message: dict):
        try:
            self._socket.sendall(dumps(message).encode() + b"\n")
        except OSError as e:
            raise self._make_gone(e.strerror or str(e)) from None

    def ask(self, method: str, **params) -> dict:
        """Return the result of a request.  Raises ``ClawError``."""
        number = self.request(method, **params)
        until = time.monotonic() + _PATIENCE_S
        answer = None
        while answer is None:
            for message in self._take(max(0.001, until - time.monotonic())):
                if "method" in message or message.get("id") not in (number, None):
                    self._heard.append(message)
                else:
                    answer = message
        if "error" in answer:
            said = "%s: %s" % (self.agent, answer["error"].get("message"))
            raise ClawError(said, "look whether the agent has the same clawlite as this command")
        return answer["result"]

    def request(self, method: str, **params) -> int:
        """Send a request; return its number."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._send(message)
        return self._number

    def read(self) -> list:
        """Return the messages that have come, the earliest first, without waiting for more.  Raises
        ``AgentGone``.
        """
        heard, self._heard = self._heard, []
        try:
            return heard + self._take(0)
        except AgentGone:
            if heard:
                return heard
            raise

    def _take(self, patience_s: float) -> list:
        """Return the messages of one read, which may wait so long."""
        self._socket.settimeout(patience_s)
        try:
            data = self._socket.recv(65536)
        except (TimeoutError, BlockingIOError):
            if patience_s:
                raise self._make_gone("it does not answer") from None
            return []
        except OSError as e:
            raise self._make_gone(e.strerror or str(e)) from None
        finally:
            self._socket.settimeout(None)
        if not data or len(self._rest) > _MOST:
            raise self._make_gone("it has hung up")
        *lines, self._rest = (self._rest + data).split(b"\n")
        messages = [loads(line.lstrip(b"\x1e")) for line in lines if line]
        return [one for one in messages if isinstance(one, dict)]

    def _make_gone(self, why: str) -> AgentGone:
        self.close()
        return AgentGone("the agent %s cannot be reached: %s" % (self.agent, why), HINT)

    def close(self):
        self._socket.close()


def _connect(agent: str) -> socket.socket:
    """Return a connection to the socket of *agent*.  Raises ``AgentGone``."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_PATIENCE_S)
    try:
        # by the descriptor of the folder: the path of a socket has at most 107 bytes
        fd = os.open(files.state_folder(agent), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            connection.connect("/proc/self/fd/%d/%s" % (fd, SOCKET))
        finally:
            os.close(fd)
    except OSError as e:
        connection.close()
        why = "it has no control socket" if isinstance(e, FileNotFoundError) else e.strerror
        raise AgentGone("the agent %s cannot be reached: %s" % (agent, why), HINT) from None
    return connection


def _own_name() -> str:
    """Return the name under which the agent's log has what this command does."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = ""
    return name if is_name(name) else "shell"


def find_agents(names=()) -> list:
    """Return the names of the agents that have a state folder here, or *names*, each once.  Raises
    ``ClawError`` for one that has none.
    """
    root = files.state_root()
    try:
        here = sorted(name for name in os.listdir(root) if _is_agent(root, name))
        found = [name.removesuffix(".agent") for name in here]  # as ``state_folder`` has it
    except OSError:
        found = []
    for name in names:
        if name not in found:
            raise ClawError(
                "no agent %s was ever started here" % name[:80],
                "here are: %s" % ", ".join(found) if found else "clawlite run starts one",
            )
    return list(dict.fromkeys(names)) or found


def _is_agent(root: str, name: str) -> bool:
    place = os.path.join(root, name)
    return not name.startswith(".") and any(
        os.path.lexists(os.path.join(place, file)) for file in ("log.jsonl", SOCKET)
    )
