"""Suite of the memory: what benchmarks/stores.py measures over SQLite, in a folder of this
machine's disk.
"""

import json
import os
import sys
import tempfile

from clawlite.host.bench.run import quantile, spawn

STORE_US = 40  # the targets of the project
WRITTEN_BYTES, SAVING_BYTES = 3000, 1600
GROUPED_US = 500  # 2,000 entries a second
QUERY_MS = 10
QUERIES = (
    ("query 1", "one word of 100,000 entries"),
    ("query 2", "two words of 100,000 entries"),
    ("query 5", "five words of 100,000 entries"),
)


def memory(bench):
    """Yield rows: entries stored one by one and in groups, the bytes of one, and searches of
    many.
    """
    # the run's own folder may lie in memory
    with tempfile.TemporaryDirectory(dir=os.getcwd(), prefix="clawlite-bench-") as folder:
        found = json.loads(
            spawn(
                [sys.executable, bench.script("stores.py"), folder, str(bench.rounds)],
                bench.environment(),
            )
        )
    yield bench.row(
        "memory",
        "store, kill-safe",
        "us",
        [ns / 1e3 for ns in found["store"]],
        None,
        STORE_US,
        "a commit each, words included",
    )
    yield bench.row(
        "memory",
        "store, power-safe, 64 at once",
        "us",
        [ns / 1e3 for ns in found["grouped"]],
        None,
        GROUPED_US,
        "an entry's share of a synced commit",
    )
    yield bench.row(
        "memory",
        "written for a searchable entry",
        "B",
        found["written"],
        None,
        WRITTEN_BYTES,
        "290 bytes of text, log and file: wchar or write_bytes, the larger",
    )
    yield bench.row(
        "memory",
        "store, wear-saving",
        "us",
        [ns / 1e3 for ns in found["thrifty store"]],
        None,
        STORE_US,
        "a record of the journal each",
    )
    yield bench.row(
        "memory",
        "written for a searchable entry, wear-saving",
        "B",
        found["thrifty written"],
        None,
        SAVING_BYTES,
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
        yield bench.row(
            "memory", case, "ms", times, quantile(times, 0.99), QUERY_MS, "value is p99"
        )
