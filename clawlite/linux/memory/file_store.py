"""What the memory does with a request to a conversation in files: the verbs of stores.py, over
jsonl.py.

1. The limits of age and number are applied when a conversation is read.  The file is written anew
   without the entries beyond them once those are half of it, and more than ``_LEAST_DEAD``.
2. Words are searched as in the database, but all of them weigh the same; there are no vectors.
"""

from binascii import crc32

from clawlite.core.base.errors import ClawError, InvalidParams, StoreError, wrap_error
from clawlite.core.image.memories import SUMMARIZE, TRUNCATE
from clawlite.linux.memory import search
from clawlite.linux.memory.compaction import REACH, SUMMARY_ENTRIES, SUMMARY_LEAST, WINDOW, notes
from clawlite.linux.memory.database import failure
from clawlite.linux.memory.entry import request_bytes, text_of
from clawlite.linux.memory.jsonl import (
    FILE,
    MAX_BYTES,
    REQUEST_COUNT,
    JSONLFile,
    Record,
    earlier_request,
)
from clawlite.linux.memory.partitions import AHEAD_MS, SET_MS
from clawlite.linux.memory.reading import MAX_ANSWER, time_text

_N, _AT, _KEY = 0, 1, 3  # positions in an entry as ``_alive`` returns it
_LEAST_DEAD = 64  # entries beyond the limits that a file may always have


class FileConversations:
    """The conversations in files of one agent.

    files  ``workspace_store.Files``, which knows the folder of each identity and channel
    clock  function -> ms since 1970
    dumps, loads  JSON
    """

    def __init__(self, files, clock, dumps, loads):
        self._files, self._clock, self._dumps, self._loads = files, clock, dumps, loads
        self._known = {}  # path -> JSONLFile
        # path -> number of the newest entry when its compaction was last asked for
        self._asked = {}
        self._verbs = {
            "store": self._store,
            "query": self._query,
            "oldest": self._oldest,
            "replace": self._replace,
            "compact": self._compact,
        }

    def outcome(self, job: tuple) -> tuple:
        """Do a job; return (True, value) or (False, ``ClawError``)."""
        try:
            return True, self._run(job)
        except OSError as e:
            _, _, store, part, _ = job
            return False, failure(e, self.path(store, part or ""))
        except Exception as e:
            return False, e if isinstance(e, ClawError) else wrap_error(e)

    def _run(self, job: tuple):
        _, verb, store, part, details = job
        path = self.path(store, part or "")
        if path not in self._known:
            self._known[path] = JSONLFile(path, self._dumps, self._loads, self._files.state)
        lines = self._known[path]
        try:
            if not lines.open(verb == "store"):
                return {"query": {"entries": []}, "compact": (0, 0), "oldest": []}[verb]
            return self._verbs[verb](lines, store, part, details)
        finally:
            lines.close()

    def path(self, store, part: str) -> str:
        return "%s/%s" % (self._files.path(store, part), FILE)

    def _alive(self, lines, store, more: int = 0) -> list:
        """Return [(n, at, content, key, metadata), ...] of the entries within the limits of age and
        number, and of at most *more* older ones beyond that of number.
        """
        records, young = lines.records, 0
        if store.max_age_s is not None:
            oldest = self._now(lines) - store.max_age_s * 1000
            while young < len(records) and records[young].at < oldest:
                young += 1
            if (
                young and records[young - 1].at < SET_MS
            ):  # the clock was not set then (see partitions.py)
                young = 0
        found = [
            (record.n + place, record.at, *entry)
            for record in records[young:]
            for place, entry in enumerate(record.entries)
        ]
        return found[-store.max_entries - more :] if store.max_entries is not None else found

    def _now(self, lines) -> int:
        """Return the time; while nobody has set the clock that of the newest entry."""
        now = self._clock()
        return now if now >= SET_MS or not lines.records else max(now, lines.records[-1].at)

    def _store(self, lines, store, part: str, details: tuple) -> dict:
        request_id, entries = details[:2]
        now = self._clock()
        for number, (_, content, _, vector) in enumerate(entries):
            text_of(content, number, self._dumps)
            if vector:
                raise InvalidParams(
                    "entries[%d].vector: store %s lies in files, and is not "
                    "searched by vectors" % (number, store.name)
                )
        mark = crc32(request_bytes(store, part, entries))
        before = earlier_request(lines.records, request_id, mark, now) if request_id else None
        if before is not None:
            return _store_result(before.n, before.request[REQUEST_COUNT])
        self._bring_back(lines, now)
        first = lines.last() + 1
        at = max(now, lines.records[-1].at if lines.records else 0)
        record = Record(
            first,
            at,
            [request_id, mark, len(entries)] if request_id else None,
            [[content, key, metadata] for key, content, metadata, _ in entries],
        )
        lines.append(record, store.lasting, min(store.max_bytes or MAX_BYTES, MAX_BYTES))
        stored = _store_result(first, len(entries))
        alive = self._alive(lines, store)
        dead = sum([len(record.entries) for record in lines.records]) - len(alive)
        if dead > max(_LEAST_DEAD, len(alive)):
            self._keep(lines, alive[0][0], now)
        most = store.max_entries or WINDOW
        if (
            store.compacts
            and store.compaction in (SUMMARIZE, TRUNCATE)
            and len(alive) >= most
            and lines.last() - self._asked.get(lines.path, -most) >= max(8, most // 8)
        ):
            self._asked[lines.path] = lines.last()
            stored["is_full"] = True
        return stored

    @staticmethod
    def _bring_back(lines, now: int):
        """Give the records that came while the clock was years ahead the present time, as
        ``Partitions.bring_back`` does.
        """
        wrong = [record for record in lines.records if record.at > now + AHEAD_MS]
        if wrong and now >= SET_MS:
            right = [record.at for record in lines.records if record.at <= now + AHEAD_MS]
            for record in wrong:
                record.at = max([now, *right])
            lines.keep(list(lines.records), now)

    def _query(self, lines, store, part, details: tuple) -> dict:
        kind, what, top, _ = details
        alive, scores = self._alive(lines, store), {}
        if kind == "key":
            found = [row for row in reversed(alive) if row[_KEY] == what]
        elif kind == "first":
            found = alive
        elif kind == "time-range":
            found = list(reversed(alive))
            if what is not None:
                first, last = what
                found = [row for row in found if first <= row[_AT] <= last]
        else:
            rows = [
                (n, text_of(content, 0, self._dumps)[0]) for n, _, content, _, _ in reversed(alive)
            ]
            scores = dict(search.score_rows(rows, what))
            by_number = {row[_N]: row for row in alive}
            found = [by_number[n] for n in scores]
        answer = self._answer(found, top, scores)
        if kind == "time-range":
            answer["entries"].reverse()
        return answer

    def _answer(self, rows, top: int, scores: dict) -> dict:
        found, size = [], 0
        for n, at, content, key, metadata in rows:
            size += len(content) if isinstance(content, str) else len(self._dumps(content))
            if len(found) >= top or found and size > MAX_ANSWER:
                return {"entries": found, "truncated": True}
            entry = {
                "id": "entry-%d" % n,
                "content": content,
                "timestamp": time_text(at),
            }
            for name, value in (("score", scores.get(n)), ("key", key), ("metadata", metadata)):
                if value is not None:
                    entry[name] = value
            found.append(entry)
        return {"entries": found}

    # -- compaction

    def _compact(self, lines, store, part, strategy: int) -> tuple:
        alive, most = self._alive(lines, store), store.max_entries or WINDOW
        left = alive[-(max(1, most // 2) if strategy == TRUNCATE else most) :]
        if len(left) < sum([len(record.entries) for record in lines.records]):
            self._keep(lines, left[0][0] if left else lines.last(), self._clock())
        return len(alive), len(left)

    def _oldest(self, lines, store, part, count) -> list:
        alive, more = self._alive(lines, store), self._alive(lines, store, REACH)
        if len(alive) < SUMMARY_LEAST:
            return []
        rows = more[: len(more) - len(alive) + (count or len(alive) // 2)][:SUMMARY_ENTRIES]
        noted = [
            (text_of(content, 0, self._dumps)[0], "summary_of" in (metadata or ()))
            for _, _, content, _, metadata in rows
        ]
        return [(part or "", rows[-1][0], notes(noted), len(alive))]

    def _replace(self, lines, store, part: str, details: tuple) -> int:
        last, summary = details
        gone = [row for row in self._alive(lines, store, REACH) if row[_N] <= last]
        if not gone or gone[-1][_N] != last:
            raise StoreError(
                "store %s: the entries to summarize are gone" % store.name, "send this again"
            )
        self._keep(
            lines,
            last + 1,
            self._clock(),
            [Record(last, gone[-1][_AT], None, [[summary, None, {"summary_of": len(gone)}]])],
        )
        return len(self._alive(lines, store))

    @staticmethod
    def _keep(lines, first: int, now: int, before=()):
        """Write the file anew with the entries from the number *first* on, behind the records
        *before*.
        """
        kept = list(before)
        for record in lines.records:
            skip = max(0, first - record.n)
            if skip < len(record.entries):
                kept.append(
                    Record(
                        record.n + skip,
                        record.at,
                        record.request if not skip else None,
                        record.entries[skip:],
                    )
                )
        lines.keep(kept, now)


def _store_result(first: int, count: int) -> dict:
    return {"stored": count, "ids": ["entry-%d" % (first + n) for n in range(count)]}
