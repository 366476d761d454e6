"""A project whose agent asks remote providers, built for each test, and the real agent over it.

1. Every agent here holds a key that must show nowhere: ``Kept`` looks for it in all that the agent
   wrote, when it ends.
2. ``Listener`` is a server without a protocol: it shows when exactly a client lets go of its
   socket.
"""

import json
import select
import socket
import threading
from pathlib import Path

from agents import DEADLINE_S, Agent, linux
from llm_server import ANSWERS, MODEL

KEY = "sk-canary-7f3a9b2c41d8e650"
PROTOCOLS = {"openai": "openai-compatible", "anthropic": "anthropic-native"}
# (API, streaming)
WAYS = [("openai", True), ("openai", False), ("anthropic", True), ("anthropic", False)]
AT_ONCE = {"max_attempts": 3, "backoff": "constant", "initial_delay_ms": 1}

TOOLS = '''\
"""What ran is written to the folder MARKS, one file for each tool, one line for each run."""
import os


def _mark(name, text):
    with open(os.environ["MARKS"] + "/" + name, "a") as file:
        file.write(text + "\\n")


def note(text: str) -> str:
    """Write a note."""
    _mark("note", text)
    return "noted " + text


def read_file(path: str) -> str:
    """Read a file."""
    _mark("read_file", path)
    return "contents of " + path


def careful(what: str) -> str:
    """Ask a person first."""
    _mark("careful", what)
    return "careful did " + what


def forbidden() -> str:
    """Never allowed."""
    _mark("forbidden", "")
    return "it ran"


def fail() -> str:
    """Raise."""
    _mark("fail", "")
    raise ValueError("the sensor is unplugged")


def hang() -> str:
    """Take ten minutes."""
    _mark("hang", "on")
    try:
        yield 600000
    finally:
        _mark("hang", "off")
    return "hung"
'''


def provider(server, name: str = "first", **more) -> dict:
    """Return the spec of a provider that *server* (``llm_server.Server``, or (API, endpoint))
    plays; one attempt, unless *more* says.
    """
    api, endpoint = server if isinstance(server, tuple) else (server.api, server.endpoint)
    auth = {"type": "bearer" if api == "openai" else "api-key-header", "secret_ref": "TEST_KEY"}
    return dict(
        {
            "name": name,
            "protocol": PROTOCOLS[api],
            "endpoint": endpoint,
            "model": MODEL,
            "auth": auth,
            "retry": {"max_attempts": 1},
        },
        **more,
    )


def build(
    folder: Path,
    *providers,
    reflex: str = None,
    personality: str = "You are under test.",
    settings: str = "",
    rate_limits=None,
    tools: str = TOOLS,
    stores: list = None,
    context_files: dict = None,
    blocks: dict = None,
    more: dict = {},
) -> Path:
    """Write and build a project whose chain is *providers*, then the reflex rules when there are
    any; return its image.

    settings     more of clawlite.toml; tools: tools.py;  more: of the manifest's spec
    rate_limits, blocks  of its policy;  stores: of its Memory, None for no Memory;  context_files:
                         of its Identity
    """
    from clawlite.host.builder.build import build_beside

    folder.mkdir(parents=True, exist_ok=True)
    chain = [dict(spec) for spec in providers]
    if reflex is not None:
        chain.append(
            {
                "name": "rules",
                "protocol": "custom",
                "endpoint": "builtin:reflex",
                "model": "reflex",
                "auth": {"type": "none"},
            }
        )
        (folder / "reflex.toml").write_text(reflex)
        settings = 'reflex = "reflex.toml"\n' + settings
    (folder / "clawlite.toml").write_text(settings)
    if len(chain) > 1:
        chain[0]["fallback"] = [{"provider_ref": spec["name"]} for spec in chain[1:]]
    rules = [
        {
            "id": "no",
            "action": "deny",
            "scope": "tool",
            "match": {"name": "forbidden"},
            "reason": "not for a model",
        },
        {
            "id": "ask",
            "action": "require-approval",
            "scope": "tool",
            "match": {"name": "careful"},
            "approval": {"timeout_seconds": 60, "default_if_timeout": "deny"},
        },
        {"id": "all", "action": "allow", "scope": "all"},
    ]
    spec = {
        "identity": {
            "inline": {"name": "remote", "personality": personality, "autonomy": "autonomous"}
        },
        "providers": [{"inline": one} for one in chain],
        "sandbox": {"inline": {"name": "in-process", "level": "none"}},
        "policies": [
            {
                "inline": dict(
                    {"name": "rules", "rules": rules},
                    **({"rate_limits": rate_limits} if rate_limits else {}),
                    **(blocks or {}),
                )
            }
        ],
    }
    if context_files:
        spec["identity"]["inline"]["context_files"] = context_files
    if stores:
        spec["memory"] = {"inline": {"stores": stores}}
    spec.update(more)
    manifest = {
        "claw": "0.3.0",
        "kind": "Claw",
        "metadata": {"name": "remote", "version": "1.0.0"},
        "spec": spec,
    }
    (folder / "claw.yaml").write_text(json.dumps(manifest, indent=1))
    (folder / "tools.py").write_text(tools)
    return Path(build_beside(str(folder)))


class Kept(Agent):
    """An agent whose end is a check that the key is nowhere in what it wrote."""

    def __exit__(self, *error):
        try:
            if error[0] is None:
                if self.output is not None:
                    self._drain()
                self.keeps_the_key()
        finally:
            super().__exit__(*error)

    def _drain(self):
        while not self.at_end and select.select([self.output], [], [], 0)[0]:
            self._read()

    def keeps_the_key(self):
        """Nothing that it printed, logged or stored holds the key, but the store of secrets."""
        assert KEY not in self.text() and KEY not in self.errors()
        for path in self.home.rglob("*"):
            if path.is_file() and path.parent.name not in ("secrets", "mounted"):
                assert KEY.encode() not in path.read_bytes(), path


class World:
    """What one test has: a folder, the tools' marks, and agents over the image of its providers."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.marks = folder / "marks"
        self.marks.mkdir()
        self.image = None

    def build(self, *providers, **more):
        self.image = build(self.folder / "project", *providers, **more)
        return self

    def start(self, verb: str, *words, terminal: bool = False, key: str = KEY, **more) -> Kept:
        env = dict({"MARKS": self.marks}, **more)
        if key:
            env["TEST_KEY"] = key
        text = words[:1] if verb == "ask" else ()
        return Kept(
            linux(verb, *text, self.image, *words[len(text) :]),
            self.folder / "home",
            terminal,
            env=env,
        )

    def ask(self, text: str, *flags, **more):
        """Run ``clawlite ask`` to its end; return (exit code, stdout, stderr)."""
        with self.start("ask", text, *flags, **more) as agent:
            code = agent.wait()
            return code, agent.text(), agent.errors()

    def ran(self, tool: str) -> list:
        """Return what *tool* was run with, in order."""
        try:
            return (self.marks / tool).read_text().splitlines()
        except FileNotFoundError:
            return []

    def meters(self):
        path = self.folder / "home/state/remote/meters.json"
        return json.loads(path.read_text()) if path.exists() else None


def answer(api: str, streaming: bool, text: str = "", calls=(), tokens: int = None, **more) -> dict:
    """Return a step with a whole answer of *api*, whose usage says *tokens* in all when given."""
    made = ANSWERS[api](dict({"text": text, "calls": calls}, **more), MODEL, streaming, True)
    if tokens is not None:
        counted = {
            "openai": {"prompt_tokens": tokens, "completion_tokens": 0},
            "anthropic": {"input_tokens": tokens, "output_tokens": 0},
        }[api]
        if not streaming:
            made["usage"] = counted
        elif api == "openai":
            made[-2] = b"data: %s\n\n" % json.dumps({"choices": [], "usage": counted}).encode()
        else:
            made[-2] = (
                b"event: message_delta\ndata: %s\n\n"
                % json.dumps(
                    {
                        "type": "message_delta",
                        "delta": {"stop_reason": "end_turn"},
                        "usage": counted,
                    }
                ).encode()
            )
    return {"stream": made} if streaming else {"body": made}


def held(api: str, text: str, after: str, event: threading.Event) -> dict:
    """Return a stream that stops behind the piece *after* until the event is set."""
    pieces = ANSWERS[api]({"text": text, "calls": ()}, MODEL, True, True)
    at = [
        number for number, piece in enumerate(pieces) if json.dumps(after)[1:-1].encode() in piece
    ][0] + 1
    return {"stream": pieces[:at] + [event] + pieces[at:]}


def texts(request, api: str) -> list:
    """Return (role, text) of a request's messages, the system's left out; of tools' results
    their text with role "tool".
    """
    found = []
    for message in request.body["messages"]:
        content = message["content"]
        if message["role"] == "system":
            continue
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text" and block["text"]:
                found.append((message["role"], block["text"]))
            elif block["type"] == "tool_result":
                found.append(("tool", block["content"]))
    return found


class Listener:
    """A TCP server without a protocol: ``accept`` gives a connection whose request has come."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.socket.settimeout(DEADLINE_S)
        self.port = self.socket.getsockname()[1]
        self.endpoint = "http://127.0.0.1:%d/v1" % self.port
        self.api = "openai"
        self._open = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self._open + [self.socket]:
            connection.close()

    def accept(self, reply: bytes = b""):
        connection, _ = self.socket.accept()
        self._open.append(connection)
        connection.settimeout(DEADLINE_S)
        data = b""
        while b"\r\n\r\n" not in data:
            data += connection.recv(65536)
        head, _, body = data.partition(b"\r\n\r\n")
        length = int(
            [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")][
                0
            ].split(b":")[1]
        )
        while len(body) < length:
            body += connection.recv(65536)
        connection.sendall(reply)
        return connection

    @staticmethod
    def let_go(connection) -> bool:
        """Wait until the client has closed *connection*."""
        try:
            return connection.recv(1) == b""
        except ConnectionResetError:
            return True


def nobody() -> tuple:
    """Return (API, endpoint) of a port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return "openai", "http://127.0.0.1:%d/v1" % free.getsockname()[1]
