"""Suites of ``serve --stdio``: a process, a pipe to it and one from it."""

import os
import shutil
import statistics
import subprocess
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import agent
from clawlite.host.bench.run import quantile

COMPILED = 5  # rounds that compile: a second each
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
BATCH = 100  # calls of some 340 bytes


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
    environment = bench.environment()
    bare, times, memory, idle = [], [[], []], [[], []], []
    for round in range(bench.rounds + 1):
        bare.append(_bare(environment, bench.folder))
        for at, (_, image) in enumerate(images):
            peer, took_ms = _start(command_of(bench, image), environment, bench.folder)
            times[at].append(took_ms)
            memory[at].append(memory_of(peer.process.pid))
            peer.end()
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
                f"value: above {_median(idle, kind) / 1048576:.2f} MiB of python -I "
                f"-S that reads stdin",
            )


def cost(bench):
    """Yield rows: processor time, bytes read and files opened until READY, above the bare
    interpreter, and processor time of the installed command above the launcher; in turns.
    """
    with_tools, without = bench.agent(), bench.agent(False)
    started = [
        ("with tools.py", command_of(bench, with_tools)),
        ("without tools.py", command_of(bench, without)),
    ]
    installed = os.path.join(os.path.dirname(sys.executable), "clawlite")
    if os.path.exists(installed):
        command = [installed, "serve", without, "--stdio"]
        started.append(("installed command", command))
    environment = bench.environment()
    bare, busy, read = [], [[] for _ in started], [[] for _ in started]
    for _ in range(bench.rounds + 1):
        bare.append(_bare_cpu(environment, bench.folder))
        for at, (_, command) in enumerate(started):
            peer = Peer(command, environment, bench.folder)
            peer.ask(agent.opening(), 2)
            busy[at].append(_cpu(peer.process.pid))
            read[at].append(_count_io(peer.process.pid, "rchar"))
            peer.end()
    if None in busy[0] or None in read[0]:
        return  # a kernel that does not tell
    peer = Peer([sys.executable, *IDLE], environment, bench.folder)
    _settle(peer.process.pid)
    (idle,) = _count_io(peer.process.pid, "rchar")
    peer.end()
    bare, busy = bare[1:], [found[1:] for found in busy]
    note = "value: difference of the medians; that of python -I -S -c pass with its end"
    for at, (case, command) in enumerate(started[:2]):
        above = statistics.median(busy[at]) - statistics.median(bare)
        samples = [one - other for one, other in zip(busy[at], bare, strict=True)]
        yield bench.row("ready", f"{case}, processor time above bare", "ms", samples, above, note)
        kib = [(one - idle) / 1024 for (one,) in read[at]]
        said = "what read() gave; that of python -I -S which reads stdin is left out"
        yield bench.row("ready", f"{case}, read beyond bare", "KiB", kib, note=said)
        opens = _opens(bench, command)
        if opens is not None:
            said = "strace: open and openat that gave a file, until the input has ended"
            yield bench.row(
                "ready", f"{case}, files opened beyond bare", "count", [opens], note=said
            )
    if len(started) > 2:
        above = statistics.median(busy[2]) - statistics.median(busy[1])
        samples = [one - other for one, other in zip(busy[2], busy[1], strict=True)]
        said = "processor time until READY; value: difference of the medians"
        case = "installed command, above the launcher"
        yield bench.row("ready", case, "ms", samples, above, said)


def manifest(bench):
    """Yield rows: the time until READY over a manifest, compiled first and with a current image."""
    if bench.is_here:
        return  # on a device there is no compiler
    folder = os.path.dirname(bench.agent())
    cache = os.path.join(bench.folder, "cache")
    environment = bench.environment(CLAWLITE_CACHE=cache)
    main = os.path.join(bench.package, "clawlite", "__main__.py")
    command = [sys.executable, main, "serve", folder, "--stdio"]
    compiled, current = [], []
    for _ in range(min(bench.rounds, COMPILED)):
        shutil.rmtree(cache, ignore_errors=True)
        for times in (compiled, current):
            peer, took_ms = _start(command, environment, folder)
            times.append(took_ms)
            peer.end()
    note = "from spawn to the answer of claw.status"
    yield bench.row("ready", "over a manifest, compiled", "ms", compiled, note=note)
    yield bench.row("ready", "over a manifest, nothing changed", "ms", current, note=note)


def call(bench):
    """Yield rows: claw.tool.call over a pipe, beside a JSON echo over the same pipes in the same
    run; in turns.
    """
    peers = [
        (
            "over a pipe",
            Peer(command_of(bench, bench.agent()), bench.environment(), bench.folder),
            2,
        ),
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
            "of %d single calls: p50 %.1f us, p99 %.1f us"
            % (len(ordered), quantile(ordered, 0.5), quantile(ordered, 0.99)),
        )


def batches(bench):
    """Yield rows: the system calls while a batch of calls is read, run and answered."""
    peer = Peer(command_of(bench, bench.agent()), bench.environment(), bench.folder)
    found: tuple = ([], [])
    try:
        peer.ask(agent.opening(), 2)
        for round in range(bench.rounds + 1):
            lines = [agent.call_line(7, round * BATCH + number) for number in range(1, BATCH + 1)]
            before = _count_io(peer.process.pid, "syscr", "syscw")
            if before is None:
                return
            said = peer.ask(b"".join(lines), BATCH)  # fits a pipe: one write
            if said.count(b'"isError":false') != BATCH:
                raise ClawError("a batch of calls failed: %r" % said[:300])
            for at, count in enumerate(_count_io(peer.process.pid, "syscr", "syscw")):
                found[at].append(count - before[at])
    finally:
        peer.end()
    for case, counts in zip(("reads", "writes"), found, strict=True):
        note = f"{BATCH} calls that come at once" + (
            "; the log's is one" if case == "writes" else ""
        )
        yield bench.row("call", f"{case} of a batch", "count", counts[1:], note=note)


def command_of(bench, image: str) -> list:
    """Return the command that serves *image* with this package, by the launcher."""
    return [
        sys.executable,
        "-I",
        "-S",
        os.path.join(bench.package, "clawlite", "__main__.py"),
        "serve",
        image,
        "--stdio",
    ]


def _start(command: list, environment: dict, folder: str) -> tuple:
    """Return (the peer that *command* starts, the milliseconds until it said that it is READY)."""
    begin = time.perf_counter_ns()
    peer = Peer(command, environment, folder)
    said = peer.ask(agent.opening(), 2)
    took_ms = (time.perf_counter_ns() - begin) / 1e6
    if b'"READY"' not in said:
        peer.end()
        raise ClawError("serve is not READY: %r" % said[:300])
    return peer, took_ms


def _bare(environment: dict, folder: str) -> float:
    begin = time.perf_counter_ns()
    peer = Peer([sys.executable] + BARE, environment, folder)
    peer.process.wait()
    spent = (time.perf_counter_ns() - begin) / 1e6
    peer.end()
    return spent


def _bare_cpu(environment: dict, folder: str) -> float:
    """Return the milliseconds of processor time of a bare interpreter, to its end."""
    peer = Peer([sys.executable, *BARE], environment, folder)
    spent = processor_ms(peer)
    peer.end()
    return spent


def processor_ms(peer) -> float:
    """Wait for the process of *peer*; return the milliseconds of processor time that it took."""
    _, status, used = os.wait4(peer.process.pid, 0)
    peer.process.returncode = os.waitstatus_to_exitcode(status)
    return 1e3 * (used.ru_utime + used.ru_stime)


def _cpu(pid: int):
    """Return the milliseconds that the first thread of a process has run, or None: the kernel does
    not tell.
    """
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0]) / 1e6
    except OSError:
        return None


def _count_io(pid: int, *names: str):
    """Return the counts *names* of what a process has read and written (proc(5)), or None: the
    kernel does not tell.
    """
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:
            fields = dict(line.split(": ") for line in file)
    except OSError:
        return None
    return [int(fields[name]) for name in names]


def _opens(bench, command: list):
    """Return how many files *command* opens more than a bare interpreter; None without strace."""
    strace, log = shutil.which("strace"), os.path.join(bench.folder, "opens")
    if strace is None:
        return None
    counts = []
    for traced in (command, [sys.executable, *BARE]):
        words = [strace, "-f", "-qq", "-e", "trace=open,openat", "-o", log, *traced]
        done = subprocess.run(
            words,
            env=bench.environment(),
            cwd=bench.folder,
            input=agent.opening(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if done.returncode:
            return None  # no right to trace
        with open(log, encoding="utf-8", errors="replace") as file:
            counts.append(sum(" = -1" not in line for line in file))
    return counts[0] - counts[1]


def _idle(environment: dict, folder: str) -> tuple:
    """Return the memory of an interpreter that waits for its input."""
    peer = Peer([sys.executable] + IDLE, environment, folder)
    last = _settle(peer.process.pid)
    peer.end()
    return last


def _settle(pid: int) -> tuple:
    """Wait until a process has not grown for 20 ms; return its memory."""
    last, same = None, 0
    while same < 10:
        time.sleep(0.002)
        now = memory_of(pid)
        same = same + 1 if now == last else 0
        last = now
    return last


def memory_of(pid: int) -> tuple:
    """Return (VmHWM, RssAnon) of a process in bytes (proc(5))."""
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        fields = dict(line.split(":", 1) for line in file)
    return tuple(int(fields[name].split()[0]) * 1024 for name in ("VmHWM", "RssAnon"))


def _median(pairs: list, kind: int) -> int:
    return int(statistics.median(pair[kind] for pair in pairs))
