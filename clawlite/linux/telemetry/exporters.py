"""Where telemetry goes: a queue and a thread for each exporter, so that nobody waits for one (CKP
0.2.0, 5.10).

A queue is bounded: what does not fit is dropped and counted, and the next batch says how many.  A
batch that fails is tried once more, with the next one; then it is dropped.
"""

import _thread
import errno
import os
import stat

from clawlite.linux.files.files import own_file, write_whole
from clawlite.linux.files.regular_file import open_end
from clawlite.linux.io.jsontext import document, dumps
from clawlite.linux.io.worker import Worker
from clawlite.linux.telemetry.event import strip_ns
from clawlite.protocols.image.features import EXPORTERS

WAITING = 4096  # events in one queue


class Exporter:
    """One exporter.

    sink      function(list of events), which may raise anything and may take its time
    most      events of one batch
    flush_ms  an event waits no longer than that for a batch
    """

    def __init__(self, sink, most: int, flush_ms: int):
        self._sink = sink
        self._most = most
        self._flush_s = flush_ms / 1000
        self._queue = []
        self._failed = []  # a batch that failed once, and is tried again
        self._dropped = 0
        self._stopping = False
        self._lock = _thread.allocate_lock()
        # a ring wakes it before ``flush_ms`` is over
        self._worker = Worker(self._work)

    def put(self, event: dict):
        """Queue *event*; never waits."""
        with self._lock:
            if len(self._queue) >= WAITING:
                self._dropped += 1
                return
            self._queue.append(event)
            self._worker.begin()
            if len(self._queue) == self._most:
                self._worker.ring()

    def stop(self):
        """Ask the thread to end; it sends the waiting events without delay."""
        with self._lock:
            self._stopping = True
            self._worker.ring()

    def wait(self, timeout_s: float):
        """Wait for the end, at most *timeout_s*."""
        self._worker.join(timeout_s)

    def _work(self):
        while True:
            if not self._stopping:
                self._worker.wait(self._flush_s)
            with self._lock:
                batch, self._queue = self._queue[: self._most], self._queue[self._most :]
                dropped = self._dropped
                self._dropped = 0 if batch else dropped
                over = self._stopping and not batch
            if over:
                return
            if batch:
                self._hand_out(
                    [dict(batch[0], dropped_before=dropped)] + batch[1:] if dropped else batch
                )

    def _hand_out(self, batch: list):
        again, self._failed = self._failed, []
        if again and not self._is_taken(again):
            with self._lock:
                # with those that the batch would have told
                self._dropped += len(again) + again[0].get("dropped_before", 0)
        if not self._is_taken(batch):
            self._failed = batch

    def _is_taken(self, events: list) -> bool:
        try:
            self._sink(events)
        # any failure is the exporter's, not the agent's
        except Exception:
            return False
        return True


def exporter(record: list, about) -> Exporter:
    """Return an exporter.

    record  [index into ``EXPORTERS``, URL or path or "", name of a secret or "", events in one
            batch, ms until a batch is sent that is not full]
    about   ``image.AgentInfo``
    """
    kind, target, secret, most, flush_ms = record
    name = EXPORTERS[kind].name
    if EXPORTERS[kind].is_remote:
        from clawlite.linux.telemetry.otlp import otlp

        sink = {"otlp": otlp, "webhook": _webhook}[name](target, secret, about)
    else:
        sink = {"console": _console, "file": _file(target), "sqlite": _sqlite(target)}[name]
    return Exporter(sink, most, flush_ms)


def _webhook(endpoint: str, secret: str, about):
    def sink(events: list):
        from clawlite.linux.net.http_post import deliver

        body = {"agent": about.name, "events": [strip_ns(event) for event in events]}
        deliver(endpoint, about.name, secret, dumps(body).encode())

    return sink


def _lines(events: list) -> bytes:
    return "".join([dumps(strip_ns(event)) + "\n" for event in events]).encode()


def _console(events: list):
    for event in events:  # stdout is the agent's own line
        write_whole(2, document(strip_ns(event)).encode() + b"\n")


def _file(path: str):
    def sink(events: list):
        fd = open_end(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW)
        try:
            write_whole(fd, _lines(events))
        finally:
            os.close(fd)

    return sink


def _sqlite(path: str):
    def sink(events: list):
        import sqlite3

        own_file(path)
        if not stat.S_ISREG(os.lstat(path).st_mode):  # SQLite would follow a link
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        database = sqlite3.connect(path, timeout=5)
        try:
            with database:
                database.execute(
                    "CREATE TABLE IF NOT EXISTS events (timestamp TEXT, category "
                    "TEXT, event TEXT, body TEXT)"
                )
                database.executemany(
                    "INSERT INTO events VALUES (?, ?, ?, ?)",
                    [
                        (
                            event["timestamp"],
                            event["category"],
                            event["event"],
                            dumps(strip_ns(event)),
                        )
                        for event in events
                    ],
                )
        finally:
            database.close()

    return sink
