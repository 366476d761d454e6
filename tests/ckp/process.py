"""A real ``clawlite serve --stdio`` for a case: its world, what it is sent, and all that can be
seen of it.

The world lies in the test's own folder: state, workspace, the ledger of tools that ran, connections
that were tried. A manifest that cannot be compiled is served all the same: then the process says
why and ends."""

import copy
import json
import select
import shlex
import time
from pathlib import Path

import other_user
from agents import Agent, eventually, linux
from ckp import manifests

from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder.build import build_beside

WAIT_S = 60  # for an answer that takes milliseconds
AGENT = "test-agent"  # metadata.name of every manifest here
SECRET = "sk-proj-" + "T3BlbkFJ7f3aQ9b2c41d8e650x" * 2
NETWORK = Path(__file__).with_name("world") / "net"
CONF = {
    "claw": "0.3.0",
    "kind": "Claw",
    "metadata": {"name": AGENT, "version": "0.1.0"},
    "spec": {
        "identity": {"inline": {"personality": "x"}},
        "providers": [
            {
                "inline": {
                    "protocol": "openai-compatible",
                    "endpoint": "http://localhost:11434/v1",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
    },
}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "boot",
    "method": "claw.initialize",
    "params": {
        "protocolVersion": "0.3.0",
        "clientInfo": {"name": "t", "version": "1.0.0"},
        "manifest": CONF,
        "capabilities": {},
    },
}
NOT_JSON = object()
# text of a manifest -> its image: most cases begin with the same one
_images = {}


def filled(value, folder: Path):
    """Return *value* with $CONF, $TMP and $SECRET_VALUE put in."""
    if isinstance(value, dict):
        return {key: filled(one, folder) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, folder) for one in value]
    if value == "$CONF":
        return copy.deepcopy(CONF)
    return (
        value.replace("$TMP", str(folder)).replace("$SECRET_VALUE", SECRET)
        if isinstance(value, str)
        else value
    )


def lines(path: Path) -> list:
    return path.read_text().splitlines() if path.exists() else []


def _served(project: Path) -> Path:
    """Return the image of the manifest in *project*, or the folder itself when it cannot be
    compiled.
    """
    text, image = (project / "claw.yaml").read_text(), project / "claw.cbor"
    if text not in _images:
        try:
            _images[text] = Path(build_beside(str(project), True)).read_bytes()
        except ManifestErrors:
            return project
    image.write_bytes(_images[text])
    return image


class World:
    """What surrounds one case: files, environment, and the image of its manifest.

    made   the resolved manifest, or None for the one that ``setup`` asks for
    """

    def __init__(self, case: dict, folder: Path, made: dict = None):
        self.case, self.folder = case, folder
        self.state = folder / "state" / AGENT
        self.workspace = self.state / "workspace"
        self.workspace.mkdir(parents=True)
        (self.workspace / "a").write_text("a note")
        made = made or manifests.resolved(case["setup"])
        self.served = _served(manifests.write(folder / "project", filled(made, folder)))
        self._bound = None
        if "dns" in case["setup"] or "http-get" in json.dumps(case["input"]):
            self._open_to_tools()
        if "fault" in case["setup"]:
            assert case["setup"]["fault"] == "memory backend path not writable"
            (self.state / "memory").write_text(
                "a file stands where the folder of the stores belongs"
            )

    def _open_to_tools(self):
        """As root tools run as another user, who has to come as far as the simulated network."""
        for name in ("ledger", "connects"):
            (self.folder / name).touch()
            (self.folder / name).chmod(0o666)
        if other_user.is_possible():
            (self.folder / "bound").mkdir()
            self._bound = other_user.bound(self.folder / "bound")

    def command(self, options=("--stdio",)) -> list:
        """Return the command line of the agent."""
        if self._bound is None:
            return linux("serve", self.served, *options)
        front, python, _ = self._bound
        agent = [python, "-m", "clawlite", "serve", str(self.served), *options]
        return [*front, "exec " + shlex.join(agent)]

    def environment(self) -> dict:
        setup, env = (
            self.case["setup"],
            {
                "CKP_LEDGER": self.folder / "ledger",
                "CKP_WORKSPACE": self.workspace,
                "CLAWLITE_STATE": self.state.parent,
                "CKP_MCP_LOG": self.folder / "mcp.log",
            },
        )
        if "dns" in setup or "http-get" in json.dumps(self.case["input"]):
            root = Path(__file__).resolve().parents[2]
            env.update(
                PYTHONPATH="%s:%s" % (NETWORK, root),
                CKP_DNS=json.dumps(setup.get("dns", {})),
                CKP_CONNECTS=self.folder / "connects",
            )
            if self._bound is not None:
                more = dict(self._bound[2])
                net = self.folder / "bound" / "source" / NETWORK.relative_to(root)
                env.update(more, PYTHONPATH="%s:%s" % (net, more["PYTHONPATH"]))
        return dict(env, **filled(setup.get("env", {}), self.folder))

    def lines(self, name: str) -> list:
        return lines(self.folder / name)

    def records(self) -> list:
        """Return the records of the agent's own logs, in order."""
        return [
            json.loads(line)
            for path in sorted(self.state.glob("*.jsonl"))
            for line in path.read_text().splitlines()
        ]


class Operator(Agent):
    """The process, and its lines with the time at which each came.

    came    [(monotonic time, value)], NOT_JSON for a line that is none
    sent    {id of a request as JSON: monotonic time}
    """

    options = ("--stdio",)

    def __init__(self, world: World):
        super().__init__(
            world.command(self.options),
            world.folder / "home",
            cwd=world.folder,
            env=world.environment(),
        )
        self.came, self.sent, self._parsed = [], {}, 0

    def _read(self):
        super()._read()
        now, end = time.monotonic(), self.seen.rfind(b"\n") + 1
        for line in self.seen[self._parsed : end].splitlines():
            try:
                self.came.append((now, json.loads(line)))
            except ValueError:
                self.came.append((now, NOT_JSON))
        self._parsed = end

    def messages(self) -> list:
        """Return [(time, message)], batches opened."""
        return [
            (at, one)
            for at, value in self.came
            for one in (value if isinstance(value, list) else [value])
            if isinstance(one, dict)
        ]

    def replies(self) -> list:
        return [(at, message) for at, message in self.messages() if "method" not in message]

    def has(self, id) -> bool:
        return any(same(message.get("id"), id) for _, message in self.replies())

    def watch(self, seconds: float, until=lambda: False) -> bool:
        """Read until ``until()`` holds, its output ends or the time is over; return whether it
        holds.
        """
        end = time.monotonic() + seconds
        while not until() and self.output is not None and not self.at_end:
            left = end - time.monotonic()
            if left <= 0:
                break
            if select.select([self.output], [], [], left)[0]:
                self._read()
        return until()

    def request(self, message: dict):
        self.sent.setdefault(json.dumps(message.get("id")), time.monotonic())
        self.line(json.dumps(message, ensure_ascii=False))

    def boot(self):
        """Open a session; nothing of that counts as an answer of the case."""
        self.request(INITIALIZE)
        self.watch(WAIT_S, lambda: self.has("boot"))
        self.came = [
            (at, value)
            for at, value in self.came
            if not (isinstance(value, dict) and value.get("id") == "boot")
        ]
        self.line('{"jsonrpc":"2.0","method":"claw.initialized"}')

    def fence(self, name: str):
        """Return when all that was sent before has been looked at: a request of our own is
        answered.
        """
        if self.input is not None and self.output is not None:
            self.request({"jsonrpc": "2.0", "id": name, "method": "claw.status", "params": {}})
            self.watch(WAIT_S, lambda: self.has(name))
            self.came = [
                (at, value)
                for at, value in self.came
                if not (isinstance(value, dict) and value.get("id") == name)
            ]

    def ended(self, seconds: float):
        """Return its exit code, or None when it still runs after *seconds*."""
        try:
            return eventually(
                lambda: self.process.poll() is not None and [self.process.returncode], seconds
            )[0]
        except AssertionError:
            return None


def same(one, other) -> bool:
    return type(one) is type(other) and one == other
