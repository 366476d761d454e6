"""Suites of ``serve --stdio``: a process, a pipe to it and one from it."""

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import agent
from clawlite.host.bench.run import quantile

# the targets of the project: above `python3 -I -S -c pass`, same run
READY_MS = 12.0
READY_MIB = 4.0
COMPILED = 5  # rounds that compile: a second each
OVER_ECHO = {"one after the other": 2.5, "pipelined": 2.0}
P99 = 6.0  # of single calls, over their median
BARE = ["-I", "-S", "-c", "pass"]
IDLE = ["-I", "-S", "-c", "import sys; sys.stdin.read()"]
ECHO = """
import json, sys
out = sys.stdout.buffer
for line in sys.stdin.buffer:
    request = json.loads(line)
    text = request["params"].get("arguments", {}).get("text", "READY")
    answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"content": [{"type": "text", "text": text}], "isError": False}}
    out.write(json.dumps(answer).encode() + b"\\n")
    out.flush()
"""  # noqa: E501
_READ = 65536
OVER_OFFICIAL = 1.5  # the target of the project
MCP_CALLS = 20
SERVED = {
    "claw": "0.3.0",
    "kind": "Claw",
    "metadata": {"name": "served"},
    "spec": {
        "identity": {"inline": {"name": "served", "personality": "x", "autonomy": "autonomous"}},
        "providers": [
            {
                "inline": {
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "sandbox": {"inline": {"level": "none"}},
        "tools": [
            {
                "inline": {
                    "name": "echo",
                    "mcp_source": {"uri": f"stdio://{sys.executable}#echo"},
                }
            }
        ],
        "policies": [
            {"inline": {"name": "p", "rules": [{"id": "all", "action": "allow", "scope": "all"}]}}
        ],
    },
}


class Peer:
    """A process that answers lines.

    command      list; *environment* dict; *folder* its current one
    """

    def __init__(self, command: list, environment: dict, folder: str):
        # close_fds=False: posix_spawn, where fork would copy this process' page tables into the
        # time
        self.process = subprocess.Popen(
            command,
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            close_fds=False,
        )
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()

    def ask(self, data: bytes, answers: int) -> bytes:
        """Write *data* and read until as many lines have come as *answers* says; return what
        came.
        """
        os.write(self._in, data)
        return self.read(answers)

    def read(self, answers: int) -> bytes:
        found, lines = [], 0
        while lines < answers:
            part = os.read(self._out, _READ)
            if not part:
                raise ClawError("the process ended after %d of %d answers" % (lines, answers))
            lines += part.count(b"\n")
            found.append(part)
        return b"".join(found)

    def stream(self, lines: list) -> None:
        """Send *lines* without waiting for an answer in between, and read as many answers."""
        import select

        poll, data, at, times, came = select.poll(), b"".join(lines), 0, len(lines), 0
        poll.register(self._out, select.POLLIN)
        poll.register(self._in, select.POLLOUT)
        while came < times:
            for fd, _ in poll.poll():
                if fd == self._out:
                    part = os.read(fd, _READ)
                    came += part.count(b"\n")
                    if not part:
                        raise ClawError("the process ended after %d of %d answers" % (came, times))
                else:
                    at += os.write(fd, data[at : at + 4096])
                    if at == len(data):
                        poll.unregister(fd)

    def end(self) -> None:
        """Close its input and wait for it."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def ready(bench):
    """Yield rows: the time until READY, and the memory there, above the bare interpreter; in
    turns.
    """
    images = [("with tools.py", bench.agent()), ("without tools.py", bench.agent(False))]
    asked, environment = agent.opening(), bench.environment()
    bare, times, memory, idle = [], [[], []], [[], []], []
    for round in range(bench.rounds + 1):
        bare.append(_bare(environment, bench.folder))
        for at, (_, image) in enumerate(images):
            begin = time.perf_counter_ns()
            peer = Peer(_serve(bench, image), environment, bench.folder)
            said = peer.ask(asked, 2)
            times[at].append((time.perf_counter_ns() - begin) / 1e6)
            memory[at].append(_memory(peer.process.pid))
            peer.end()
            if b'"READY"' not in said:
                raise ClawError("serve is not READY: %r" % said[:300])
        idle.append(_idle(environment, bench.folder))
    bare, idle = bare[1:], idle[1:]
    yield bench.row("ready", "bare: python -I -S -c pass", "ms", bare, note="from spawn to exit")
    for (case, _), took, resident in zip(images, times, memory):
        took, resident = took[1:], resident[1:]
        yield bench.row(
            "ready",
            case,
            "ms",
            took,
            note="from spawn to the answer of claw.status",
            heap_peak=_median(resident, 0),
        )
        yield bench.row(
            "ready",
            case + ", above bare",
            "ms",
            [a - b for a, b in zip(took, bare)],
            statistics.median(took) - statistics.median(bare),
            READY_MS,
            "value: difference of the medians",
        )
        for kind, name in enumerate(("VmHWM", "RssAnon")):
            above = (_median(resident, kind) - _median(idle, kind)) / 1048576
            yield bench.row(
                "ready",
                f"{case}, {name} above bare",
                "MiB",
                [a[kind] / 1048576 for a in resident],
                above,
                READY_MIB,
                f"value: above {_median(idle, kind) / 1048576:.2f} MiB of python -I "
                f"-S that reads stdin",
            )


def manifest(bench):
    """Yield rows: the time until READY over a manifest, compiled first and with a current image."""
    if bench.is_here:
        return  # on a device there is no compiler
    folder = os.path.dirname(bench.agent())
    cache = os.path.join(bench.folder, "cache")
    environment = bench.environment(CLAWLITE_CACHE=cache)
    main = os.path.join(bench.package, "clawlite", "__main__.py")
    command, asked = [sys.executable, main, "serve", folder, "--stdio"], agent.opening()
    compiled, current = [], []
    for _ in range(min(bench.rounds, COMPILED)):
        shutil.rmtree(cache, ignore_errors=True)
        for times in (compiled, current):
            begin = time.perf_counter_ns()
            peer = Peer(command, environment, folder)
            said = peer.ask(asked, 2)
            times.append((time.perf_counter_ns() - begin) / 1e6)
            peer.end()
            if b'"READY"' not in said:
                raise ClawError("serve is not READY: %r" % said[:300])
    note = "from spawn to the answer of claw.status"
    yield bench.row("ready", "over a manifest, compiled", "ms", compiled, note=note)
    yield bench.row("ready", "over a manifest, nothing changed", "ms", current, note=note)


def call(bench):
    """Yield rows: claw.tool.call over a pipe, beside a JSON echo over the same pipes in the same
    run; in turns.
    """
    peers = [
        ("over a pipe", Peer(_serve(bench, bench.agent()), bench.environment(), bench.folder), 2),
        (
            "bare JSON echo",
            Peer([sys.executable, "-I", "-S", "-c", ECHO], bench.environment(), bench.folder),
            2,
        ),
    ]
    alone, stream, single = [[], []], [[], []], [[], []]
    try:
        for _, peer, answers in peers:
            peer.ask(agent.opening(), answers)
            if b'"isError":false' not in peer.ask(agent.call_line(), 1).replace(b" ", b""):
                raise ClawError("the call of echo failed")
        for round in range(1, bench.rounds + 2):
            lines = [agent.call_line(7, round * 1000 + number) for number in range(600)]
            for at, (_, peer, _) in enumerate(peers):
                begin = before = time.perf_counter_ns()
                for line in lines[:100]:
                    peer.ask(line, 1)
                    middle = time.perf_counter_ns()
                    single[at].append((middle - before) / 1e3)
                    before = middle
                peer.stream(lines[100:])
                alone[at].append((middle - begin) / 1e5)
                stream[at].append((time.perf_counter_ns() - middle) / 5e5)
    finally:
        for _, peer, _ in peers:
            peer.end()
    for how, found in (("one after the other", alone), ("pipelined", stream)):
        for at, (case, _, _) in enumerate(peers):
            samples = found[at][1:]
            yield bench.row(
                "call",
                f"{case}, {how}",
                "us",
                samples,
                note="%.0f requests/s" % (1e6 / statistics.median(samples)),
            )
        ratios = [a / b for a, b in zip(found[0][1:], found[1][1:])]
        yield bench.row(
            "call",
            f"over the echo, {how}",
            "ratio",
            ratios,
            statistics.median(ratios),
            OVER_ECHO[how],
            "time of a call over the time of an echo, round by round",
        )
    for at, (case, _, _) in enumerate(peers):
        ordered = sorted(single[at][100:])
        yield bench.row(
            "call",
            f"{case}, p99 over p50",
            "ratio",
            [quantile(ordered, 0.99) / quantile(ordered, 0.5)],
            None,
            None if at else P99,
            "of %d single calls: p50 %.1f us, p99 %.1f us"
            % (len(ordered), quantile(ordered, 0.5), quantile(ordered, 0.99)),
        )


def _serve(bench, image: str) -> list:
    return [
        sys.executable,
        "-I",
        "-S",
        os.path.join(bench.package, "clawlite", "__main__.py"),
        "serve",
        image,
        "--stdio",
    ]


def _bare(environment: dict, folder: str) -> float:
    begin = time.perf_counter_ns()
    peer = Peer([sys.executable] + BARE, environment, folder)
    peer.process.wait()
    spent = (time.perf_counter_ns() - begin) / 1e6
    peer.end()
    return spent


def _idle(environment: dict, folder: str) -> tuple:
    """Return the memory of an interpreter that waits for its input: it sleeps, and has not grown
    for 20 ms.
    """
    peer = Peer([sys.executable] + IDLE, environment, folder)
    last, same = None, 0
    while same < 10:
        time.sleep(0.002)
        now = _memory(peer.process.pid)
        same = same + 1 if now == last else 0
        last = now
    peer.end()
    return last


def _memory(pid: int) -> tuple:
    """Return (VmHWM, RssAnon) of a process in bytes (proc(5))."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        fields = dict(line.split(":", 1) for line in file)
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmHWM", "RssAnon"))


def _median(pairs: list, kind: int) -> int:
    return int(statistics.median(pair[kind] for pair in pairs))


def mcp(bench):
    """Yield rows: a call of an MCP server over stdio by an agent, by nobody but a pipe, and by the
    official client where it is installed; each is asked over a pipe, in turns.
    """
    echo = bench.script("mcp_echo.py")
    serve = [sys.executable, "-m", "clawlite", "serve", _served_image(bench, echo), "--stdio"]
    peers = [
        (Peer(serve, bench.environment(), bench.folder), _asked_agent, []),
        (Peer([sys.executable, echo], None, bench.folder), _asked_server, []),
    ]
    try:
        if importlib.util.find_spec("mcp") is not None:
            official = [sys.executable, bench.script("mcp_official.py"), echo]
            peers.append((Peer(official, None, bench.folder), lambda number: b"hello\n", []))
        peers[0][0].ask(agent.opening(), 2)
        for number in range(bench.rounds * MCP_CALLS + 1):
            for peer, asked, times in peers:
                data = asked(number)
                begin = time.perf_counter_ns()
                answer = peer.ask(data, 1)
                times.append((time.perf_counter_ns() - begin) / 1e3)
                if b"hello" not in answer:
                    raise ClawError(f"the answer was {answer[:200]!r}")
    finally:
        for peer, _, _ in peers:
            peer.end()
    ours, bare, *theirs = [times[1:] for _, _, times in peers]  # the first starts a server
    if theirs:
        ratio = statistics.median(ours) / statistics.median(theirs[0])
        note = "value: its median over that of the official client, in turns"
        yield bench.row("mcp", "a call, by an agent", "us", ours, ratio, OVER_OFFICIAL, note)
        yield bench.row("mcp", "a call, by the official client", "us", theirs[0])
    else:
        note = "pip install mcp compares it with the official client"
        yield bench.row("mcp", "a call, by an agent", "us", ours, note=note)
    yield bench.row("mcp", "a call, by a pipe alone", "us", bare)


def _served_image(bench, echo: str) -> str:
    from clawlite.host.build.build import build_beside

    folder = bench.make("served")
    for name, text in (
        ("claw.yaml", json.dumps(SERVED)),
        ("reflex.toml", '[[rule]]\nwhen = "hello"\nsay = "hello"\n'),
        ("clawlite.toml", f'reflex = "reflex.toml"\n[mcp.echo]\nargs = [{json.dumps(echo)}]\n'),
    ):
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
    return build_beside(folder)


def _asked_agent(number: int) -> bytes:
    context = {"request_id": agent.UUID % number, "identity": "served"}
    called = {"name": "echo", "arguments": {"text": "hello"}, "context": context}
    return agent.line("claw.tool.call", called, number)


def _asked_server(number: int) -> bytes:
    params = {"name": "echo", "arguments": {"text": "hello"}}
    request = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(request).encode() + b"\n"
