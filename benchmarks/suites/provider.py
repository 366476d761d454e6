"""Suites of programs that talk to a provider: an agent, which is the greenhouse template over plain
HTTP to benchmarks/llm.py on loopback, and the mediating proxy (benchmarks/proxy.py).

To find the agent's own share, the same requests are sent alternately from a bare socket to the same
server."""

import json
import os
import select
import socket
import statistics
import subprocess
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.bench.serve import BARE, IDLE, Peer, processor_ms

LONG = 1000  # turns of a conversation, without max_context_window
TOOLS = 4  # of the greenhouse template
SAYS = b"All is well.\n"  # how an answer of the server ends on the console
# of a text turn and one with a call: ten turns until a process is warm
PAIRS = 5
# pairs of a process that count; a new process each round keeps conversations short
MEASURED = 10
SILENCE_MS = 30000
STREAMS = 200  # of the proxy
_MEMORY = """
  memory:
    inline: { name: "notebook", stores: [ { name: "talk", type: "conversation" } ] }
"""
# Neither line fits a reflex rule of the template, which would answer before the model.
TURNS = (("text", b"howdy\n", 1), ("one tool call", b"How is bed 2 today?\n", 2))


class Server:
    """benchmarks/llm.py, as a context manager."""

    def __init__(self, bench):
        self._peer = Peer(
            [sys.executable, "-I", "-S", bench.script("llm.py")], bench.environment(), bench.folder
        )
        self.port = int(self._peer.read(1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._peer.end()

    def send(self, request: bytes) -> bytes:
        """Send *request* as barely as Python can; return all that comes until the server closes."""
        with socket.socket() as connection:
            connection.connect(("127.0.0.1", self.port))
            connection.sendall(request)
            parts = [connection.recv(65536)]
            while parts[-1]:
                parts.append(connection.recv(65536))
        return b"".join(parts)

    def last(self, count: int) -> list:
        """Return the last *count* requests that agents sent, byte for byte, the oldest first."""
        return [
            self.send(b"GET /%d HTTP/1.1\r\n\r\n" % i).partition(b"\r\n\r\n")[2]
            for i in range(count, 0, -1)
        ]


class _Agent:
    """One ``clawlite run`` on pipes."""

    def __init__(self, bench, image: str, **more: str):
        environment = dict(_environment(bench), **more)
        self.peer = Peer(_command(bench.package, "run", image), environment, bench.folder)
        self._poll = select.poll()
        self._poll.register(self.peer.process.stdout, select.POLLIN)
        self._take(b"commands.\n")

    def turn(self, line: bytes) -> float:
        """Return the milliseconds from *line* to the end of its answer."""
        begin = time.perf_counter_ns()
        os.write(self.peer.process.stdin.fileno(), line)
        self._take(SAYS)
        return (time.perf_counter_ns() - begin) / 1e6

    def _take(self, end: bytes) -> None:
        said = b""
        while not said.endswith(end):
            if not self._poll.poll(SILENCE_MS):
                self.peer.process.kill()
                raise ClawError(
                    "no turn ended within %d s; it said: %r" % (SILENCE_MS // 1000, said[-300:])
                )
            said += self.peer.read(1)


def provider(bench):
    """Yield rows: ``ask`` as a process, bytes of a request, warm turns beside a bare client, and
    memory after ten of them.
    """
    from clawlite.host.builder.build import build_beside
    from clawlite.host.projects import new

    with Server(bench) as server:
        folder = os.path.join(bench.make("provider"), "greenhouse")
        new.new(folder, endpoint="http://127.0.0.1:%d/v1" % server.port)
        image = build_beside(folder)
        yield from _ask(bench, image)
        request = server.last(1)[0]
        if request.count(b'"type":"function"') != TOOLS or b'"content":"howdy"' not in request:
            raise ClawError("no request for howdy with %d tools: %s" % (TOOLS, request[:300]))
        yield bench.row(
            "provider",
            "request for howdy",
            "B",
            [len(request)],
            None,
            "greenhouse template, %d tools; %d bytes of them are the head"
            % (TOOLS, len(request.partition(b"\r\n\r\n")[0]) + 4),
        )
        yield from _turns(bench, server, image)
        yield _remembering(bench, server)
        yield _long(bench, server, folder)


def _ask(bench, image: str):
    commands = {
        "bare": [sys.executable, *BARE],
        "pure": _command(bench.package, "ask", "howdy", image),
    }
    if folder := bench.extensions():
        commands["cython"] = _command(folder, "ask", "howdy", image)
    whole: dict = {name: [] for name in commands}  # name -> ms from spawn to exit
    busy: dict = {name: [] for name in commands}  # name -> of them on a processor
    for round in range(bench.rounds + 1):
        for name, command in commands.items():
            spent, ran, said = _whole(command, bench)
            if name != "bare" and said != SAYS:
                raise ClawError("ask said %s" % said[:300])
            if round:
                whole[name].append(spent)
                busy[name].append(ran)
    bare, asked = whole["bare"], whole["pure"]
    yield bench.row("provider", "bare: python -I -S -c pass", "ms", bare, note="from spawn to exit")
    yield bench.row("provider", "ask, one turn", "ms", asked, note="from spawn to exit")
    for case, found in (("above bare", whole), ("processor time above bare", busy)):
        yield bench.row(
            "provider",
            f"ask, one turn, {case}",
            "ms",
            [a - b for a, b in zip(found["pure"], found["bare"], strict=True)],
            statistics.median(found["pure"]) - statistics.median(found["bare"]),
            "from spawn to exit; value: difference of the medians",
        )
    if "cython" in commands:
        yield bench.row(
            "provider",
            "ask, one turn, with extensions over without",
            "ratio",
            [a / b for a, b in zip(busy["cython"], busy["pure"], strict=True)],
            None,
            "processor time, from spawn to exit, round by round",
            "cython",
        )


def _turns(bench, server, image: str):
    whole, bare, memory, idle, sizes = [[], []], [[], []], [], [], [0, 0]
    for round in range(bench.rounds + 1):
        idle.append(_resident([sys.executable] + IDLE, bench))
        agent = _Agent(bench, image)
        try:
            for _ in range(PAIRS):
                for _, line, _ in TURNS:
                    agent.turn(line)
            memory.append(_settled(agent.peer.process.pid))
            for _ in range(MEASURED if round else 0):
                for at, (_, line, requests) in enumerate(TURNS):
                    whole[at].append(agent.turn(line))
                    same = server.last(requests)
                    if same[-1].rpartition(b'{"role":"')[2].startswith(b"tool") != (requests == 2):
                        raise ClawError(
                            "a turn with %s ended with another request: %s"
                            % (TURNS[at][0], same[-1][-300:])
                        )
                    sizes[at] = max(sizes[at], len(same[-1]))
                    begin = time.perf_counter_ns()
                    for request in same:
                        server.send(request)
                    bare[at].append((time.perf_counter_ns() - begin) / 1e6)
        finally:
            agent.peer.end()
    for (case, _, requests), ours, theirs, size in zip(TURNS, whole, bare, sizes):
        yield bench.row(
            "provider",
            f"warm turn, {case}",
            "ms",
            ours,
            note=f"{requests} requests of up to {size} bytes, from line to answer",
        )
        yield bench.row(
            "provider",
            f"bare client, {case}",
            "ms",
            theirs,
            note="the same requests from a bare socket",
        )
        yield bench.row(
            "provider",
            f"warm turn, {case}, own",
            "ms",
            [a - b for a, b in zip(ours, theirs)],
            statistics.median(ours) - statistics.median(theirs),
            "value: difference of the medians",
        )
    for kind, name in enumerate(("VmRSS", "VmHWM")):
        own = [found[kind] / 1048576 for found in memory[1:]]
        yield bench.row(
            "provider",
            f"{name} after {PAIRS * 2} turns",
            "MiB",
            own,
            None,
            "half of them with a tool call; python -I -S that reads stdin: %.2f MiB"
            % statistics.median(found[kind] / 1048576 for found in idle[1:]),
        )


def _remembering(bench, server):
    """Return the row of memory after ten turns of a conversation that is kept in a store."""
    from clawlite.host.builder.build import build_beside
    from clawlite.host.projects import new

    folder = os.path.join(bench.make("remembering"), "greenhouse")
    new.new(folder, endpoint="http://127.0.0.1:%d/v1" % server.port)
    with open(os.path.join(folder, "claw.yaml"), "a", encoding="utf-8") as file:
        file.write(_MEMORY)
    image, found = build_beside(folder), []
    for _ in range(bench.rounds):
        state = bench.make("remembered")
        agent = _Agent(bench, image, CLAWLITE_STATE=state)
        try:
            for _ in range(PAIRS):
                for _, line, _ in TURNS:
                    agent.turn(line)
            found.append(_settled(agent.peer.process.pid)[0] / 1048576)
        finally:
            agent.peer.end()
        if not any("memory.db" in names for _, _, names in os.walk(state)):
            raise ClawError("the conversation was not kept: %s has no memory.db" % state)
    case = f"VmRSS after {PAIRS * 2} turns, memory in use"
    return bench.row(
        "provider", case, "MiB", found, note="the conversation lies in a store, SQLite's"
    )


def _long(bench, server, folder: str):
    from clawlite.host.builder.build import build_beside

    path = os.path.join(folder, "claw.yaml")
    with open(path, encoding="utf-8") as file:
        lines = file.readlines()
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(line for line in lines if "max_context_window" not in line)
    image = build_beside(folder)
    agent, sizes, anew, before = _Agent(bench, image), [], 0, b""
    try:
        for _ in range(LONG):
            agent.turn(TURNS[0][1])
            (request,) = server.last(1)
            sizes.append(len(request))
            body = request.partition(b"\r\n\r\n")[2]
            anew += not body.startswith(before)
            before = body[: body.rindex(b"]")]
    finally:
        agent.peer.end()
    return bench.row(
        "provider",
        f"request in a conversation of {LONG:,} turns",
        "B",
        sizes,
        max(sizes),
        f"value: the longest; {anew} of them do not begin as the one before",
    )


def _command(package: str, *arguments: str) -> list:
    main = os.path.join(package, "clawlite", "__main__.py")
    return [sys.executable, "-I", "-S", main, *arguments]


def _environment(bench) -> dict:
    """Return the environment of an agent; a proxy, which loopback does not use, would still be
    read and cost its module.
    """
    return {
        name: text
        for name, text in bench.environment().items()
        if not name.lower().endswith("_proxy")
    }


def _whole(command: list, bench) -> tuple:
    """Return (milliseconds from spawn to exit, of them on a processor, stdout) of a command."""
    begin = time.perf_counter_ns()
    peer = Peer(command, _environment(bench), bench.folder)
    ran = processor_ms(peer)
    spent = (time.perf_counter_ns() - begin) / 1e6
    said = peer.process.stdout.read()
    peer.end()
    return spent, ran, said


def _resident(command: list, bench) -> tuple:
    peer = Peer(command, _environment(bench), bench.folder)
    found = _settled(peer.process.pid)
    peer.end()
    return found


def _settled(pid: int) -> tuple:
    """Return (VmRSS, VmHWM) of a process in bytes (proc(5)), once they have been the same for 20
    ms.
    """
    last, same = None, 0
    while same < 10:
        time.sleep(0.002)
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            fields = dict(line.split(":", 1) for line in file)
        now = tuple(int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
        same = same + 1 if now == last else 0
        last = now
    return last


def proxy(bench):
    """Yield rows: what the mediating proxy adds to a request that passes through, and its memory
    with many streams at once (benchmarks/proxy.py).
    """
    import msgspec  # noqa: F401 - of the proxy's own process: told here where it is missing

    command = [sys.executable, bench.script("proxy.py"), bench.make("proxied")]
    done = subprocess.run(
        [*command, str(5 * bench.rounds), str(STREAMS)],
        env=_environment(bench),
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise ClawError("the proxy was not measured: %s" % done.stderr[-600:].strip())
    found = json.loads(done.stdout)
    direct, proxied = found["direct_ms"], found["proxied_ms"]
    yield bench.row("proxy", "a request, direct", "ms", direct)
    yield bench.row("proxy", "the same through the proxy", "ms", proxied)
    yield bench.row(
        "proxy",
        "added to a request",
        "ms",
        [other - one for one, other in zip(direct, proxied)],
        statistics.median(proxied) - statistics.median(direct),
        "the difference of both medians; by turns, a connection each",
    )
    note = "VmHWM of the gateway; before them %.1f MiB" % (found["before_kib"] / 1024)
    peak = found["peak_kib"] / 1024
    yield bench.row("proxy", "%d streams at once" % STREAMS, "MiB", [peak], note=note)
