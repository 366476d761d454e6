"""What the memory answers to a query: entries of one place, by key, time, words or vectors; called
by stores.py.

    query    (kind, what, most, vector)    -> {"entries"}, and "truncated": true when more matched,
             or is in a file, than one answer holds; a time range of None is all,
                                          "first" the oldest of them
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.image.memories import DOES, FILES, SEARCHED, SINGLE
from clawlite.linux.memory import search
from clawlite.linux.memory.entry import COLUMNS, check

MAX_ANSWER = 1048576  # characters of content in one answer


class Reading:
    """Queries over one database.

    db, places   ``database.Database``, ``partitions.Partitions``
    clock        function -> ms since 1970
    loads        JSON
    files        ``workspace_store.Files``, or None where no store is a workspace
    boxes        ``encryption.EntryCiphers``
    """

    def __init__(self, db, places, clock, loads, files, boxes):
        self._db, self._places, self._clock, self._loads, self._files, self._boxes = (
            db,
            places,
            clock,
            loads,
            files,
            boxes,
        )

    def query(self, store, part: str, details: tuple) -> dict:
        kind, what, top, vector = details
        now = self._clock()
        place = self._places.find(store, part, now)
        if (
            DOES >> 4 * store.type & FILES
            and kind == "key"
            and (place is None or not self._has(place, what))
        ):
            return self._read_file(store, part, what)
        if place is None:
            return {"entries": []}
        floor, box = self._places.floor(place, store, now), self._boxes.of(store)
        if kind == "key":
            most = 1 if DOES >> 4 * store.type & SINGLE else min(top, store.snapshots or top)
            rows = self._db.run(
                "SELECT %s FROM entries WHERE key=? AND id BETWEEN ? AND ? ORDER "
                "BY id DESC LIMIT ?" % COLUMNS,
                (box.index(what) if box else what, floor, place.last, most),
            )
        elif kind == "first":
            rows = self._db.run(
                "SELECT %s FROM entries WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?" % COLUMNS,
                (floor, place.last, top + 1),
            )
        elif kind == "time-range":
            first, last = floor, place.last
            if what:
                first_ms, last_ms = what
                first = self._places.since(place, first_ms, floor)
                last = self._places.since(place, last_ms + 1, floor) - 1
            answer = self._answer(
                store, part, place, self._alive(store, first, last, place, top + 1), top
            )
            answer["entries"].reverse()
            return answer
        else:
            found, notice = search.search(
                self._db,
                place,
                floor,
                store,
                box,
                (
                    what,
                    vector,
                    4 * top if DOES >> 4 * store.type & (SINGLE | FILES) == SINGLE else top,
                ),
            )
            if not DOES >> 4 * store.type & SEARCHED:
                alive = {row[0] for row in self._alive(store, floor, place.last, place, -1)}
                found = [one for one in found if one[0] in alive]
            rows = (
                self._db.row("SELECT %s FROM entries WHERE id=?" % COLUMNS, (id,))
                for id, _ in found
            )
            answer = self._answer(store, part, place, rows, top, dict(found))
            if notice:
                answer["notice"] = notice
            return answer
        return self._answer(store, part, place, rows, top)

    def _has(self, place, key: str) -> bool:
        return (
            self._db.row(
                "SELECT 1 FROM entries WHERE key=? AND id BETWEEN ? AND ?",
                (key, place.base, place.last),
            )
            is not None
        )

    def _read_file(self, store, part: str, key: str) -> dict:
        """Return the answer of a file that no ``store`` wrote, but a tool or a person: as old as
        the file, known by its key.
        """
        file = self._files.read(store, part, key)
        if not file:
            return {"entries": []}
        content, at, is_cut = file
        entry = {"id": "file:" + key, "content": content, "timestamp": time_text(at), "key": key}
        answer = {"entries": [entry]}
        return dict(answer, truncated=True) if is_cut else answer

    def _alive(self, store, first: int, last: int, place, most: int):
        """Return a cursor of rows from *first* to *last*, the newest first, without the old
        values of keys.
        """
        shadowed = ""
        if DOES >> 4 * store.type & SINGLE:
            shadowed = (
                " AND NOT EXISTS (SELECT 1 FROM entries AS newer WHERE newer.key=entries.key AND "
                "newer.id>entries.id AND newer.id<=%d)" % place.last
            )
        return self._db.run(
            "SELECT %s FROM entries WHERE id BETWEEN ? AND ?%s ORDER BY id DESC "
            "LIMIT ?" % (COLUMNS, shadowed),
            (first, last, most),
        )

    def _answer(self, store, part: str, place, rows, top: int, scores: dict = {}) -> dict:
        """Return {"entries"} of at most *top* of *rows* as callers see them; with "truncated"
        when there are more, or they are too long.
        """
        found, size, box, more = [], 0, self._boxes.of(store), {}
        for row in rows:
            check(row, self._db.path)
            id, at, key, content, is_json, metadata, _, _ = row
            if box:
                key, content, is_json, metadata = box.unpack(content)
            if DOES >> 4 * store.type & FILES:
                file = self._files.read(store, part, key)
                if file is None:
                    continue
                content, _, is_cut = file
                more = {"truncated": True} if is_cut else more
            size += len(content)
            if len(found) >= top or found and size > MAX_ANSWER:
                return {"entries": found, "truncated": True}
            entry = {
                "id": place.name(id),
                "content": self._loads(content.encode()) if is_json else content,
                "timestamp": time_text(at),
            }
            if id in scores:
                entry["score"] = scores[id]
            if key is not None:
                entry["key"] = key
            if metadata is not None:
                entry["metadata"] = metadata if box else self._loads(metadata.encode())
            found.append(entry)
        return dict(more, entries=found)


def time_text(ms: int) -> str:
    """Return the time *ms* since 1970 as callers see it."""
    return "%s.%03dZ" % (iso8601(ms // 1000)[:-1], ms % 1000)
