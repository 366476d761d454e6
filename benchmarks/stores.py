"""The memory's own work in one process, over SQLite on a real disk: ``python benchmarks/stores.py
FOLDER ROUNDS [ENTRIES MANY]``: entries that are stored one by one, and that are searched.

Prints one JSON line, {case: [number, ...]}; ``clawlite bench memory`` makes rows of it.  An entry
is a JSON line's worth of text: 290 bytes, 31 words of a vocabulary of 20,000 in which a few are
common.  Those that are searched have two words more: one that each has, and "odd" or "even"."""

import itertools
import json
import os
import random
import sys
import time

from clawlite.core.image.memories import Store
from clawlite.linux.io.jsontext import dumps, loads

ENTRIES, MANY, GROUP = 4000, 100000, 64
BATCH = 512  # of entries that go into the index together (linux/memory/stores.py)
_RANDOM = random.Random(1)
_WORDS = [
    "".join(_RANDOM.choices("abcdefghijklmnopqrstuvwxyz", k=_RANDOM.randint(4, 13)))
    for _ in range(20000)
]
# Words of a query that cost most.  The index goes through all entries before it knows that none has
# two words together.
HARDEST = {
    "frequent": " ".join(_WORDS[:12]),
    "apart": "odd even everywhere",
    "everywhere": "everywhere",
    "none": "nowhere",
}
_WEIGHTS = list(itertools.accumulate(1 / (number + 1) for number in range(len(_WORDS))))


def text(words: int = 31) -> str:
    return " ".join(_RANDOM.choices(_WORDS, cum_weights=_WEIGHTS, k=words))[:290]


def opened(folder: str, lasting: bool = False, thrifty: bool = False) -> tuple:
    """Return (stores over *folder*, a semantic store)."""
    from clawlite.linux.memory.database import Database
    from clawlite.linux.memory.encryption import EntryCiphers
    from clawlite.linux.memory.stores import Stores

    os.makedirs(folder, exist_ok=True)
    store = Store(
        ["s", 1, 0, None, None, 0, False, 2, 0, 10, lasting, None, None, None, thrifty, None, None]
    )
    db = Database(folder)
    return Stores(
        db,
        lambda: time.time_ns() // 1000000,
        dumps,
        loads,
        EntryCiphers(db, "a", None, dumps, loads),
    ), store


def job(store, number: int, count: int = 1) -> tuple:
    return (
        number,
        "store",
        store,
        "",
        ("c1a00000-0000-4000-8000-%012x" % number, [(None, text(), None, None)] * count),
    )


def run(stores, jobs: list) -> list:
    """Return the outcomes' values; each job must have one."""
    ended = stores.run(jobs)
    assert len(ended) == len(jobs) and all(outcome[0] for _, outcome in ended), ended[0]
    return [outcome[1] for _, outcome in ended]


def written() -> tuple:
    """Return (bytes that this process gave to write(), bytes of the pages of files on a disk
    that it changed), of the whole process.
    """
    with open("/proc/self/io") as file:
        counted = dict(line.split(": ") for line in file)
    return int(counted["wchar"]), int(counted["write_bytes"])


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def one_by_one(folder: str, thrifty: bool, entries: int) -> tuple:
    """Return (ns of processor time of each entry, bytes written for one).  Kill-safe: each entry is
    acknowledged by itself, in a commit, or in the journal where the store is *thrifty*; every 512
    the words of those are put into the index."""
    stores, store = opened(folder, False, thrifty)
    run(stores, [job(store, 0)])
    jobs, spent, before = [job(store, number + 1) for number in range(entries)], [], written()
    for one in jobs:
        begin = time.process_time_ns()
        run(stores, [one])
        spent.append(time.process_time_ns() - begin)
    stores.close()
    return spent, [max(after - begun for begun, after in zip(before, written())) / entries]


def grouped(folder: str, rounds: int) -> list:
    """Return ns per entry of power-safe commits of 64 requests: as many as wait while one is
    synced.
    """
    stores, store = opened(folder, True)
    run(stores, [job(store, 0)])
    spent = []
    for each in range(rounds):
        jobs = [job(store, each * GROUP + number + 1) for number in range(GROUP)]
        begin = time.perf_counter_ns()
        run(stores, jobs)
        spent.append((time.perf_counter_ns() - begin) / GROUP)
    stores.close()
    return spent


def asked(folder: str, many: int) -> dict:
    """Queries of one, two and five words over *many* entries, and of the words that cost most, in
    ns of processor time; and the memory that 10,000 entries take.
    """
    stores, store = opened(folder)
    run(stores, [job(store, 0)])
    before, taken = resident(), None
    for number in range(many // 250):
        entries = [
            (None, ("everywhere %s %s" % (word, text()))[:290], None, None)
            for word in ("odd", "even") * 125
        ]
        run(
            stores,
            [(number, "store", store, "", ("c1a00000-0000-4000-8001-%012x" % number, entries))],
        )
        if number == 10000 // 250:
            taken = resident() - before
    found = {"memory": [taken]}
    for words in (1, 2, 5):
        spent = found["query %d" % words] = []
        for number in range(300):
            query = (number, "query", store, "", ("semantic", text(words), 10, None))
            begin = time.process_time_ns()
            (value,) = run(stores, [query])
            spent.append(time.process_time_ns() - begin)
            assert value["entries"] or many < MANY, query  # a rare word is in none of a few
    # Entries that are not in the index yet are looked at one by one: as many as there may be.
    for number, count in enumerate((BATCH, BATCH - 1)):
        entries = [(None, "everywhere " + text(), None, None) for _ in range(count)]
        details = ("c1a00000-0000-4000-8002-%012x" % number, entries)
        run(stores, [(number, "store", store, "", details)])
    for name, words in HARDEST.items():
        spent = found[name] = []
        for number in range(60):
            query = (number, "query", store, "", ("semantic", words, 10, None))
            begin = time.process_time_ns()
            (value,) = run(stores, [query])
            spent.append(time.process_time_ns() - begin)
            assert len(value["entries"]) == (0 if name == "none" else 10), query
    stores.close()
    return found


def main(folder: str, rounds: int, entries: int = ENTRIES, many: int = MANY):
    found = {}
    for name, thrifty in (("", False), ("thrifty ", True)):
        found[name + "store"], found[name + "written"] = one_by_one(
            os.path.join(folder, name + "one"), thrifty, entries
        )
    found["grouped"] = grouped(os.path.join(folder, "grouped"), rounds)
    found.update(asked(os.path.join(folder, "many"), many))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
