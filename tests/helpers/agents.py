"""Real agents for tests: start one on pipes or on a pseudo-terminal, talk to it, and wait for what
it should say.

1. Nothing here sleeps: ``expect`` reads until the text has come, ``eventually`` asks until a fact
   holds, both with a deadline.
2. An agent is used as ``with agent(...) as it:``; whatever the test did, its process is gone
   afterwards.
3. Nothing of the machine is touched: HOME, the XDG folders and TMPDIR lie in the test's own folder.
"""

import errno
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

import pico_stack
import warm
from run_core_micropython import ROOT

ENDS_S = 300  # after which a command that does not end is ended
DEADLINE_S = 120  # for what takes milliseconds: a busy machine must not fail a test
UUID = "00000000-0000-4000-8000-%012d"


def libraries(process) -> str:
    """Return what a running *process* has mapped (proc(5))."""
    with open("/proc/%d/maps" % process.pid, encoding="utf-8") as file:
        return file.read()


def environment(home: Path, **more) -> dict:
    """Return the environment of a process whose whole world lies in *home*."""
    home.mkdir(parents=True, exist_ok=True)
    keep = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("XDG_")
        and key != "CLAWLITE_STATE"
        and key != "CLAWLITE_DEVICE_KEY_FILE"
    }
    keep.update(
        PYTHONPATH=str(ROOT),
        HOME=str(home),
        TMPDIR=str(home),
        CLAWLITE_STATE=str(home / "state"),
        PYTHONUNBUFFERED="",
    )
    keep.update({key: str(value) for key, value in more.items()})
    return keep


def clawlite(*args, cwd, stdin: bytes = b"", **more) -> subprocess.CompletedProcess:
    """Run ``clawlite ARGS`` to its end; stdout and stderr as text."""
    words, env = linux(*args), environment(Path(cwd) / ".home", **more)
    said = warm.run(words[3:], cwd, stdin, env, ENDS_S)
    if said:
        done = subprocess.CompletedProcess(words, *said)
    else:
        done = subprocess.run(
            words, cwd=cwd, input=stdin, capture_output=True, timeout=ENDS_S, env=env
        )
    done.stdout, done.stderr = done.stdout.decode(), done.stderr.decode()
    return done


def linux(*args) -> list:
    """Return the command line of ``clawlite ARGS``."""
    return [sys.executable, "-m", "clawlite", *map(str, args)]


BOOT = "import sys; from main import main; sys.exit(main(sys.argv[1:]))"


def board(*args, options=(), stand_ins=(), start: str = BOOT, inside: bool = False) -> tuple:
    """Return (command line, environment) of what a board boots: linked, in the stack of a Pico.

    options    of the command, before all others
    stand_ins  folders of modules that come before a board's own; they are compiled, never linked
    start      what is run
    inside     whether the module inside_board is linked with it
    """
    folders = [*map(pico_stack.compiled, stand_ins), pico_stack.linked(inside), ".frozen"]
    words = [pico_stack.micropython(), *options, pico_stack.script(start), *map(str, args)]
    return words, {"MICROPYPATH": ":".join(folders)}


def without_root_rights(words: list) -> list:
    """Return the command line of *words* for which permissions count, although the tests may run
    as root.
    """
    if os.getuid():
        return words
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *words]


def eventually(fact, seconds: float = DEADLINE_S):
    """Return the first true value of ``fact()``; fail when there is none in time."""
    until = time.monotonic() + seconds
    while True:
        value = fact()
        if value:
            return value
        assert time.monotonic() < until, "never came true: %s" % getattr(fact, "__doc__", fact)
        select.select([], [], [], 0.005)


def _is_at_rest(tasks: Path) -> bool:
    """Return whether all threads of a process slept at one moment: each of them still does what it
    did in a first look, in which it slept (proc(5): its state, and how often it was switched).
    """
    first = _looked(tasks)
    return first == _looked(tasks) and all(b"State:\tS" in said for said in first.values())


def _looked(tasks: Path) -> dict:
    found = {}
    for path in tasks.iterdir():
        try:
            lines = (path / "status").read_bytes().splitlines()
        except OSError:  # it has just ended
            lines = []
        wanted = [line for line in lines if line.startswith(b"State") or b"_ctxt_switches" in line]
        found[path.name] = b" ".join(wanted)
    return found


class Agent:
    """One process and both ends of its stdio.

    words     command line
    home      folder for its state and stderr
    terminal  True: stdin and stdout are a pseudo-terminal that it controls
    """

    def __init__(
        self, words: list, home: Path, terminal: bool = False, cwd=None, env: dict = None, **popen
    ):
        self.home = Path(home)
        self.terminal = terminal
        self.seen = b""  # all that it wrote
        self._unread = 0  # where what no test has looked at begins
        self.at_end = False
        self._stderr = tempfile.TemporaryFile()
        if terminal:
            self.input, theirs = pty.openpty()
            self.output = self.input
            self.settings = termios.tcgetattr(theirs)
            ends = (theirs, theirs)
            popen.setdefault("preexec_fn", lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        else:
            stdin, self.input = os.pipe()
            self.output, stdout = os.pipe()
            ends = (stdin, stdout)
        self.process = subprocess.Popen(
            words,
            stdin=ends[0],
            stdout=ends[1],
            stderr=self._stderr,
            start_new_session=True,
            cwd=cwd or self.home,
            env=environment(self.home, **(env or {})),
            **popen,
        )
        # kept open: the terminal outlives the program
        self.theirs = ends[0] if terminal else None
        if not terminal:
            for end in ends:
                os.close(end)
        os.set_blocking(self.input, False)
        os.set_blocking(self.output, False)

    def __enter__(self):
        return self

    def __exit__(self, error=None, *_):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except OSError:
            pass
        self.process.wait()
        for name in ("input", "output", "theirs"):
            self._close(name)
        errors = "" if self._stderr.closed else self.errors()
        self._stderr.close()
        assert error or "was never awaited" not in errors, errors

    def _close(self, name: str):
        fd = getattr(self, name)
        if fd is not None:
            os.close(fd)
            for other in ("input", "output", "theirs"):
                if getattr(self, other) == fd:
                    setattr(self, other, None)

    # -- in

    def send(self, data, drain: bool = True, seconds: float = DEADLINE_S) -> int:
        """Write all of *data*, reading meanwhile when *drain*; return how many bytes went in:
        fewer at its end or the deadline.
        """
        data = data.encode() if isinstance(data, str) else data
        until, at = time.monotonic() + seconds, 0
        while at < len(data) and time.monotonic() < until:
            readers = [self.output] if drain and not self.at_end else []
            ready = select.select(readers, [self.input], [], 0.05)
            if ready[0]:
                self._read()
            if ready[1]:
                try:
                    at += os.write(self.input, data[at : at + 65536])
                except BlockingIOError:
                    pass
                except OSError:  # it has ended: what the test expects next says so
                    break
        return at

    def line(self, text: str):
        self.send(text + "\n")

    def record(self, message):
        """Send a machine record on a console."""
        self.send(b"\x1e" + json.dumps(message).encode() + b"\n")

    def end(self):
        """End the input: Ctrl-D, or the pipe is closed."""
        if self.terminal:
            self.send(b"\x04")
        else:
            self._close("input")

    def hang_up(self):
        """Take the terminal, or both pipes, away."""
        for name in ("theirs", "output", "input"):
            self._close(name)

    def stop_reading(self):
        self._close("output")

    def signal(self, number: int):
        self.process.send_signal(number)

    def rest(self):
        """Wait until the process sleeps, with all of its threads: an import on a board of tests has
        one of its own (host/fit/stack.py), beside which the unix port would raise
        KeyboardInterrupt.

        CPython runs a signal's handler between two instructions: one that comes in the microsecond
        before a call that blocks is not heard until that call returns, or another signal comes.  In
        the middle of a collection the unix port's Ctrl-C leaves the heap locked, which no board's
        does.
        """
        tasks = Path(f"/proc/{self.process.pid}/task")
        if tasks.exists():
            eventually(lambda: _is_at_rest(tasks))

    def signal_at_rest(self, number: int):
        self.rest()
        self.signal(number)

    # -- out

    def _read(self):
        try:
            data = os.read(self.output, 65536)
        except BlockingIOError:
            return
        except OSError as e:
            assert e.errno == errno.EIO
            data = b""
        self.at_end = not data
        self.seen += data

    @property
    def unread(self) -> str:
        return self.seen[self._unread :].decode("utf-8", "replace").replace("\r\n", "\n")

    def text(self) -> str:
        """Return all that it wrote."""
        return self.seen.decode("utf-8", "replace").replace("\r\n", "\n")

    def expect(self, text: str, seconds: float = DEADLINE_S) -> str:
        """Read until *text* has come; return what came before it and has not been looked at."""
        until = time.monotonic() + seconds
        wanted = text.encode().replace(b"\n", b"\r\n") if self.terminal else text.encode()
        while wanted not in self.seen[self._unread :]:
            left = until - time.monotonic()
            assert left > 0 and not self.at_end, (
                "%s before %r\n--- unread:\n%s\n--- stderr:\n%s"
                % ("the end" if self.at_end else "nothing more", text, self.unread, self.errors())
            )
            if select.select([self.output], [], [], left)[0]:
                self._read()
        at = self.seen.index(wanted, self._unread)
        before = self.seen[self._unread : at].decode("utf-8", "replace").replace("\r\n", "\n")
        self._unread = at + len(wanted)
        return before

    def has_written(self, text: str) -> bool:
        """Return whether *text* has come by now, on stdout or stderr."""
        if not self.at_end:
            self._read()
        return text in self.text() or text in self.errors()

    def message(self, seconds: float = DEADLINE_S):
        """Return the next JSON line, parsed; heartbeats are passed over, and give no more time."""
        until = time.monotonic() + seconds
        while True:
            line = self.expect("\n", max(0, until - time.monotonic()))
            value = json.loads(line.removeprefix("\x1e"))
            if (
                isinstance(value, dict)
                and isinstance(value.get("result"), dict)
                and "agentInfo" in value["result"]
            ):
                _spoken_to[0] = value["result"]["agentInfo"]["name"]
            if not (isinstance(value, dict) and value.get("method") == "claw.heartbeat"):
                return value

    def wait(self, seconds: float = DEADLINE_S) -> int:
        """Read to the end and return the exit code; a signal that killed it is a negative
        number, as in subprocess.
        """
        until = time.monotonic() + seconds
        while self.process.poll() is None:
            assert time.monotonic() < until, "still running\n--- unread:\n%s\n--- stderr:\n%s" % (
                self.unread,
                self.errors(),
            )
            if self.output is None or self.at_end:
                select.select([], [], [], 0.005)
            elif select.select([self.output], [], [], 0.02)[0]:
                self._read()
        while (
            self.output is not None
            and not self.at_end
            and select.select([self.output], [], [], 0)[0]
        ):
            self._read()
        return self.process.returncode

    def errors(self) -> str:
        return os.pread(self._stderr.fileno(), 1 << 20, 0).decode("utf-8", "replace")

    # -- the operator's part

    def call(self, method: str, params=None, id=1):
        """Send a request as a plain JSON line and return its answer."""
        self.line(
            json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}})
        )
        return self.message()

    def initialize(self, **changes):
        answer = self.call("claw.initialize", dict(INITIALIZE, **changes))
        assert answer["result"]["protocolVersion"], answer
        return self

    def is_serving(self) -> bool:
        answer = self.call("claw.status", id="still there?")
        return answer["id"] == "still there?" and answer["result"]["state"] == "READY"


# An agent with an image checks a manifest and takes nothing over, so the files need not exist.
MANIFEST = {
    "claw": "0.3.0",
    "kind": "Claw",
    "metadata": {"name": "test"},
    "spec": {"identity": "./i.yaml", "providers": ["./p.yaml"]},
}
INITIALIZE = {
    "protocolVersion": "0.2.0",
    "clientInfo": {"name": "test", "version": "1"},
    "capabilities": {},
    "manifest": MANIFEST,
}


_spoken_to = ["bench"]  # the Identity of the agent that was initialized last


def tool_call(name: str, arguments: dict = None, number: int = 1, identity: str = None) -> dict:
    """Return the request that calls a tool; its id is *number*.  *identity*: None for that of
    the agent that was initialized last.
    """
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "claw.tool.call",
        "params": {
            "name": name,
            "arguments": arguments or {},
            "context": {"request_id": UUID % number, "identity": identity or _spoken_to[0]},
        },
    }


# -- an agent whose tools do what tools do on a bad day

BENCH = {
    "claw.yaml": """\
claw: "0.3.0"
kind: Claw
metadata: { name: "bench", version: "1.0.0" }
spec:
  identity: { inline: { name: "bench", personality: "You are under test.", autonomy: "autonomous" } }
  providers:
    - inline: { name: "reflex", protocol: "custom", endpoint: "builtin:reflex", model: "reflex", auth: { type: "none" } }
  tools:
    - inline: { name: "careful", metadata: { labels: { category: "careful" } }, description: "Asks first", input_schema: { type: object } }
  sandbox: { inline: { name: "in-process", level: "none" } }
  policies:
    - inline:
        name: "bench"
        rules:
          - { id: "ask", action: "require-approval", scope: "category", match: { category: "careful" },
              approval: { timeout_seconds: 60, default_if_timeout: "deny" } }
          - { id: "all", action: "allow", scope: "all" }
""",  # noqa: E501
    "clawlite.toml": """\
reflex = "reflex.toml"

[[pins]]
name = "pump"
pin = 15
kind = "output"
""",
    "reflex.toml": """\
[[rule]]
when = "pump {ms:int}"
call = "pump"
arguments = { ms = "{ms}" }

[[rule]]
when = "odd {kind:word}"
call = "odd"
arguments = { kind = "{kind}" }

[[rule]]
when = "echo {words:text}"
say = "You said: {words}"
"""
    + "".join(
        '\n[[rule]]\nwhen = "%s"\ncall = "%s"\n' % (name, name)
        for name in ("careful", "hang", "stubborn", "quick", "stuck", "leave", "noisy", "pins")
    ),
    "tools.py": '''\
"""Markers go to the folder MARKS, one file each, so that a test sees what ran."""
import os
import sys
import time


def _mark(name):
    with open(os.getenv("MARKS") + "/" + name, "a") as file:
        file.write("x")


def careful() -> str:
    """Ask first."""
    _mark("careful")
    return "careful ran"


def pump(board, ms: int) -> str:
    """Run the pump."""
    board.write("pump", 1)
    try:
        _mark("pump-on")
        yield ms
    finally:
        board.write("pump", 0)
        _mark("pump-off")
    return "Pumped."


def pins(board) -> str:
    """Tell whether the pump runs."""
    return "pump=%d" % board.read("pump")


def hang() -> str:
    """Never end."""
    _mark("hang-on")
    try:
        time.sleep(600)
    finally:
        _mark("hang-off")
    return "hung"


def stubborn() -> str:
    """Never end, and swallow what would end it."""
    while True:
        try:
            _mark("stubborn-on")
            time.sleep(600)
        except:
            _mark("stubborn-caught")


def quick() -> str:
    """End at the first step."""
    for _ in ():
        yield
    return "quick ran"


def stuck() -> str:
    """Hang in a step."""
    _mark("stuck-on")
    time.sleep(600)
    yield
    return "unstuck"


def leave() -> str:
    """Leave the interpreter."""
    sys.exit(3)


def noisy() -> str:
    """Print."""
    print("debug noise")
    return "said"


def odd(kind: str) -> dict:
    """Return what JSON lacks."""
    if kind == "object":
        return object()
    if kind == "bytes":
        return b"\\x00\\xff"
    if kind == "nan":
        return {"value": float("nan")}
    if kind == "infinite":
        return float("inf")
    if kind == "half":
        return chr(0xd800)
    if kind == "tuple":
        return (1, 2)
    if kind == "key":
        return {1: "one", None: "none"}
    if kind == "long":
        return "x" * 500000
    deep = []
    deep.append(deep)
    return deep
''',
}
ODD = ("object", "bytes", "nan", "infinite", "half", "tuple", "key", "long", "endless")


def make_bench(folder: Path) -> Path:
    """Write and build the bench agent in *folder*; return its image."""
    from clawlite.host.builder.build import build_beside

    for name, text in BENCH.items():
        (folder / name).write_text(text)
    return Path(build_beside(str(folder)))


def make_greenhouse(folder: Path) -> Path:
    """Write and build the template in *folder*; return its image."""
    from clawlite.host.builder.build import build_beside
    from clawlite.host.projects import new

    new.new(str(folder), offline=True)
    return Path(build_beside(str(folder)))
