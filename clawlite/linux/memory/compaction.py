"""Compaction of stores: what truncate, sliding-window and summarize leave, and what a person lets
the memory forget; called by stores.py, in its commits.

    oldest   how many, None: the older half   -> [(part, id of the last, text, entries before), ...]
             for a summary: at most SUMMARY_ENTRIES
    replace  (id of the last, summary)     -> entries after
    compact  strategy                      -> (entries before, entries after)
    forget   an entry's id, as callers see it -> how many entries: all values of a key that has one
"""

from clawlite.core.base.errors import InvalidParams, StoreError
from clawlite.core.image.memories import DOES, FILES, SEARCHED, SINGLE, TRUNCATE
from clawlite.linux.memory.entry import (
    BITS,
    COLUMNS,
    ROW_CONTENT,
    ROW_KEY,
    ROW_METADATA,
    check,
    checksum,
    id_of,
)
from clawlite.linux.memory.search import index_text

WINDOW = 1000  # entries that a compaction leaves where the store names no number
SUMMARY_BYTES = 24000  # of the entries that one summary is made of
SUMMARY_LEAST = 8  # entries of a place for which one is worth while
# that one is made of, so that something of each is seen; more are summarized with the summary of
# those before
SUMMARY_ENTRIES = 240
# entries, those of one request: the newest push the last summary out, and it is in the next all the
# same
REACH = 256
_WHOLE = 4096  # characters of a summary that are in the next one


def notes(entries: list) -> str:
    """Return what a provider is shown of *entries* [(text, is a summary)]: a summary at their
    head whole, of others an equal part.
    """
    first, is_summary = entries[0]
    head = first[:_WHOLE] if is_summary else None
    each = (SUMMARY_BYTES - len(head or "")) // len(entries)
    return "\n".join(
        [
            "- " + (text[:each] if number or head is None else head)
            for number, (text, _) in enumerate(entries)
        ]
    )


class Compaction:
    """Compaction over one database.

    db, places   ``database.Database``, ``partitions.Partitions``
    clock        function -> ms since 1970
    dumps        JSON
    boxes        ``encryption.EntryCiphers``
    """

    def __init__(self, db, places, clock, dumps, boxes):
        self._db, self._places, self._clock, self._dumps, self._boxes = (
            db,
            places,
            clock,
            dumps,
            boxes,
        )

    def _where(self, store, part, now: int) -> list:
        if part is None:
            return self._places.all(store, now)
        place = self._places.find(store, part, now)
        return [place] if place else []

    def compact(self, store, part, strategy: int) -> tuple:
        now, before, after = self._clock(), 0, 0
        most = store.max_entries or WINDOW
        keep = max(1, most // 2) if strategy == TRUNCATE else most
        for place in self._where(store, part, now):
            floor = self._places.floor(place, store, now)
            before += self._places.count(place, floor, store)
            if DOES >> 4 * store.type & SEARCHED:
                row = self._db.row(
                    "SELECT id FROM entries WHERE id BETWEEN ? AND ? ORDER BY id "
                    "DESC LIMIT 1 OFFSET ?",
                    (floor, place.last, keep - 1),
                )
                floor = row[0] if row else floor
                self._places.drop(place, floor)
            after += self._places.count(place, floor, store)
        return before, after

    def oldest(self, store, part, count) -> list:
        now, found, box = self._clock(), [], self._boxes.of(store)
        for place in self._where(store, part, now):
            floor = self._places.floor(place, store, now)
            before = self._places.count(place, floor, store)
            if before < SUMMARY_LEAST:
                continue
            end = self._db.row(
                "SELECT id FROM entries WHERE id BETWEEN ? AND ? ORDER BY id LIMIT 1 OFFSET ?",
                (floor, place.last, (count or before // 2) - 1),
            )
            rows = self._db.run(
                "SELECT %s FROM entries WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?" % COLUMNS,
                (self._first(place, floor), end[0] if end else place.last, SUMMARY_ENTRIES),
            ).fetchall()
            for row in rows:
                check(row, self._db.path)
            part_of = self._db.row("SELECT part FROM places WHERE number=?", (place.number,))[0]
            found.append(
                (
                    part_of,
                    rows[-1][0],
                    notes(
                        [self._read_entry(box, row[ROW_CONTENT], row[ROW_METADATA]) for row in rows]
                    ),
                    before,
                )
            )
        return found

    def _first(self, place, floor: int) -> int:
        """Return the id from which on entries are summarized: age counts, and number not yet."""
        return max(place.alive, floor - REACH)

    def _read_entry(self, box, content, metadata) -> tuple:
        """Return (text, whether it is a summary) of an entry."""
        if box:
            _, content, _, metadata = box.unpack(content)
        return content, "summary_of" in (metadata or ())

    def replace(self, store, part: str, details: tuple) -> int:
        last, summary = details
        now = self._clock()
        place = self._places.find(store, part, now)
        row = (
            self._db.row("SELECT %s FROM entries WHERE id=?" % COLUMNS, (last,)) if place else None
        )
        if row is None:
            raise StoreError(
                "store %s: the entries to summarize are gone" % store.name, "send this again"
            )
        check(row, self._db.path)
        floor = self._places.floor(place, store, now)
        count = self._db.row(
            "SELECT count(*) FROM entries WHERE id BETWEEN ? AND ?",
            (self._first(place, floor), last),
        )[0]
        self._places.drop(place, last)
        self._places.unindex(place, [(last, row[ROW_CONTENT])])
        # it was of what the summary stands for
        self._db.run("DELETE FROM vectors WHERE id=?", (last,))
        self._rewrite(store, place, last, summary, {"summary_of": count})
        return self._places.count(place, floor, store)

    def _rewrite(self, store, place, id: int, text: str, metadata: dict):
        """Give the entry *id*, whose words are out of the index, another content."""
        box = self._boxes.of(store)
        row = (
            box.pack(None, text, False, metadata)[1:]
            if box
            else (text, False, self._dumps(metadata))
        )
        self._db.run("UPDATE entries SET content=?, is_json=?, metadata=? WHERE id=?", (*row, id))
        *written, _ = self._db.row("SELECT %s FROM entries WHERE id=?" % COLUMNS, (id,))
        self._db.run("UPDATE entries SET crc=? WHERE id=?", (checksum(written), id))
        if id <= place.indexed and place.has_words:
            self._db.run("INSERT INTO words(rowid, content) VALUES(?, ?)", (id, index_text(text)))

    def forget(self, store, part, name: str) -> int:
        """Delete an entry; of the newest one of a place its content alone, because ids are never
        given twice.
        """
        if DOES >> 4 * store.type & FILES:
            raise InvalidParams(
                "store %s: its entries are files" % store.name, "remove the file itself"
            )
        id = id_of(name)
        found = self._db.row("SELECT store, part FROM places WHERE number=?", (id >> BITS,))
        if found is None or found[0] != store.name:
            return 0
        place = self._places.find(store, found[1], self._clock())
        row = self._db.row("SELECT %s FROM entries WHERE id=?" % COLUMNS, (id,))
        if row is None:
            return 0
        check(row, self._db.path)
        rows = [(id, row[ROW_CONTENT])]
        if DOES >> 4 * store.type & SINGLE and row[ROW_KEY] is not None:
            rows = self._db.run(
                "SELECT id, content FROM entries WHERE key=? AND id BETWEEN ? AND ?",
                (row[ROW_KEY], place.base, place.last),
            ).fetchall()
        self._places.unindex(place, rows)
        for one, _ in rows:
            self._db.run("DELETE FROM vectors WHERE id=?", (one,))
            if one != place.last:
                self._db.run("DELETE FROM entries WHERE id=?", (one,))
                continue
            self._db.run("UPDATE entries SET key=NULL WHERE id=?", (one,))
            self._rewrite(store, place, one, "", {"forgotten": True})
        place.keys = None
        return len(rows)
