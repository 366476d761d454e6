"""The suite "memory" measures what an agent stores: its memory (benchmarks/stores.py, in SQLite on
this machine's disk), a large journal of calls, and a long audit.
"""

import json
import os
import shutil
import statistics
import sys
import tempfile
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.idempotency.idempotency import KEPT_S
from clawlite.host.bench import agent
from clawlite.host.bench.run import quantile, spawn
from clawlite.host.bench.serve import Peer, command_of, memory_of

JOURNAL_BYTES = 100_000_000
STARTS = 3  # of an agent with that journal
STORED = 200  # entries in one sample
ENTRIES, MANY = 4000, 100000  # that benchmarks/stores.py stores one by one, and searches
_MEMORY = """  memory:
    inline: { name: "notebook", stores: [ { name: "notes", type: "semantic" } ] }
"""
RECORDS = (200, 2000)  # calls in a short audit and in a long one
_LAST = """
import sys
from clawlite.linux.admin import audit
assert not audit.show_records(sys.argv[1], 10, False, None)
print(open("/proc/self/io").readline().split()[1])
"""
_JOURNAL = """
import sys
from clawlite.core.idempotency.idempotency import BEGIN, END
from clawlite.linux.runtime import call_journal
now = call_journal._up_s
journal, uuid = call_journal.Journal("bench"), sys.argv[1]
journal._open()
call_journal._up_s = lambda: now() - int(sys.argv[3])
number, size = 0, 0
while size < int(sys.argv[2]):
    number += 1
    for kind, payload in (BEGIN, ["f" * 32]), (END, ["f" * 32, "x" * 400, False, 400]):
        assert journal.keep(kind, uuid % number, payload) == (True, [])
    size = journal._log.size
"""
QUERIES = (
    ("query 1", "one word of 100,000 entries"),
    ("query 2", "two words of 100,000 entries"),
    ("query 5", "five words of 100,000 entries"),
    ("frequent", "the twelve most frequent words of 100,000 entries"),
    ("apart", "words that are never together of 100,000 entries"),
    ("everywhere", "a word that each has of 100,000 entries"),
    ("none", "a word that none has of 100,000 entries"),
)


def memory(bench):
    """Yield rows: the time to store entries one by one and in groups, the bytes written for one,
    the memory that many take, and the time to search them.
    """
    # in this folder, because the run's own may be on a tmpfs
    with tempfile.TemporaryDirectory(dir=os.getcwd(), prefix="clawlite-bench-") as folder:
        counts = map(str, (bench.rounds, ENTRIES, MANY))
        words = [sys.executable, bench.script("stores.py"), folder, *counts]
        found = json.loads(spawn(words, bench.environment()))
    yield bench.row(
        "memory",
        "store, kill-safe",
        "us",
        [ns / 1e3 for ns in found["store"]],
        None,
        "a commit each, words included",
    )
    yield bench.row(
        "memory",
        "store, power-safe, 64 at once",
        "us",
        [ns / 1e3 for ns in found["grouped"]],
        None,
        "an entry's share of a synced commit",
    )
    yield bench.row(
        "memory",
        "written for a searchable entry",
        "B",
        found["written"],
        None,
        "290 bytes of text, log and file: wchar or write_bytes, the larger",
    )
    yield bench.row(
        "memory",
        "store, wear-saving",
        "us",
        [ns / 1e3 for ns in found["thrifty store"]],
        None,
        "a record of the journal each",
    )
    yield bench.row(
        "memory",
        "written for a searchable entry, wear-saving",
        "B",
        found["thrifty written"],
        None,
        "290 bytes of text, journal, log and file: wchar or write_bytes, the larger",
    )
    yield bench.row(
        "memory",
        "10,000 entries more",
        "MiB",
        [size / 1048576 for size in found["memory"]],
        note="resident memory of the process",
    )
    for key, case in QUERIES:
        times = sorted(ns / 1e6 for ns in found[key])
        yield bench.row("memory", case, "ms", times, quantile(times, 0.99), "value is p99")


def threads(bench):
    """Yield rows: the processor time that the agent's first thread, and all its threads, take to
    store an entry for an operator.
    """
    from clawlite.host.builder.build import build_beside

    folder = agent.write(bench.make("remembering"))
    with open(os.path.join(folder, "claw.yaml"), "a", encoding="utf-8") as file:
        file.write(_MEMORY)
    image, environment = build_beside(folder), bench.environment()
    # in this folder, because the run's own may be on a tmpfs
    with tempfile.TemporaryDirectory(dir=os.getcwd(), prefix="clawlite-bench-") as state:
        environment["CLAWLITE_STATE"] = state
        peer = Peer(command_of(bench, image), environment, bench.folder)
        found: tuple = ([], [])
        try:
            peer.ask(agent.opening(), 2)
            for round in range(bench.rounds + 1):
                lines = [_store(round * STORED + number) for number in range(STORED)]
                before = _ran(peer.process.pid)
                if before is None:
                    return
                for line in lines:
                    said = peer.ask(line, 1)
                    if b'"stored":1' not in said:
                        raise ClawError("an entry was not stored: %r" % said[:300])
                for at, ns in enumerate(_ran(peer.process.pid)):
                    found[at].append((ns - before[at]) / STORED / 1e3)
        finally:
            peer.end()
    for case, spent in zip(("first thread", "all threads"), found, strict=True):
        note = f"processor time, from the line to its answer; the mean of {STORED} one by one"
        yield bench.row("memory", f"store over a pipe, {case}", "us", spent[1:], note=note)


def _store(number: int) -> bytes:
    context = {"request_id": agent.UUID % number}
    params = {"store": "notes", "entries": [{"content": agent.TEXT}], "context": context}
    return agent.line("claw.memory.store", params, 7)


def _ran(pid: int):
    """Return (first thread, all threads): for how many ns those of a process have run.  None when
    the kernel does not say.
    """
    first = total = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                ns = int(file.read().split()[0])
            total += ns
            if int(task) == pid:
                first = ns
    except OSError:
        return None
    return first, total


def journal(bench):
    """Yield rows: how much more time until READY, and how much more memory, an agent takes with a
    large journal than without one.  An agent wrote that journal some minutes before.  Starts with
    it and without it alternate.
    """
    image, environment = bench.agent(), bench.environment()
    kept = os.path.join(bench.folder, "large.journal")
    path = os.path.join(bench.folder, "state", "bench", "calls.journal")
    written = (agent.UUID, str(JOURNAL_BYTES), str(2 * KEPT_S))  # calls are remembered for KEPT_S
    spawn([sys.executable, "-c", _JOURNAL, *written], environment)
    os.rename(path, kept)
    found: tuple = ([], [])
    for _ in range(STARTS):
        for is_large in (False, True):
            if is_large:
                shutil.copy(kept, path)  # the last start rewrote it without expired calls
            begin = time.perf_counter_ns()
            peer = Peer(command_of(bench, image), environment, bench.folder)
            said = peer.ask(agent.opening(), 2)
            spent = (time.perf_counter_ns() - begin) / 1e6
            found[is_large].append((spent, memory_of(peer.process.pid)[0] / 1048576))
            peer.end()
            if b'"READY"' not in said:
                raise ClawError("serve is not READY: %r" % said[:300])
            if is_large and os.path.getsize(path) >= JOURNAL_BYTES:
                raise ClawError("the agent started without a look at its journal")
    os.unlink(kept)
    for at, (unit, what) in enumerate((("ms", "READY"), ("MiB", "VmHWM"))):
        small, large = [[one[at] for one in samples] for samples in found]
        above = statistics.median(large) - statistics.median(small)
        samples = [b - a for a, b in zip(small, large, strict=True)]
        case = f"{what} with a journal of 100 MB, above none"
        yield bench.row("memory", case, unit, samples, above, "all of its calls are over")


def audit(bench):
    """Yield a row: how many more bytes ``audit --last 10`` reads of a long audit than of one with a
    tenth of its records.
    """
    from clawlite.host.bench.suites import AUDIT
    from clawlite.host.builder.build import build_beside

    folder = agent.write(bench.make("audited-long"))
    with open(os.path.join(folder, "policy.yaml"), "a", encoding="utf-8") as file:
        file.write(AUDIT)
    image, read = build_beside(folder), []
    for count in (0, *RECORDS):  # 0: an audit of ten, the baseline
        environment = bench.environment()
        environment["CLAWLITE_STATE"] = bench.make("state-%d" % count)
        peer = Peer(command_of(bench, image), environment, bench.folder)
        peer.ask(agent.opening(), 2)
        peer.stream([agent.call_line(7, number) for number in range(1, max(count, 10) + 1)])
        peer.end()
        said = spawn([sys.executable, "-c", _LAST, image], environment)
        read.append(int(said.split()[-1]))
    few, many = (one - read[0] for one in read[1:])
    note = "bytes beyond an audit of ten: %d of %d records, %d of %d" % (
        few,
        RECORDS[0],
        many,
        RECORDS[1],
    )
    yield bench.row(
        "memory",
        "audit --last 10, read of ten times as much",
        "KiB",
        [(many - few) / 1024],
        note=note,
    )
