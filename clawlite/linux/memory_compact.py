"""Compaction of stores: what truncate, sliding-window and summarize leave; called by memory_stores.py, in its commits.

    oldest   None                          -> [(part, id of the last, text, entries before), ...] for a summary
    replace  (id of the last, summary)     -> entries after
    compact  strategy                      -> (entries before, entries after)
"""
from clawlite.core.errors import StoreError
from clawlite.core.memories import CONVERSATION, SEMANTIC, TRUNCATE

WINDOW = 1000                   # entries that a compaction leaves where the store names no number
SEARCHED = (CONVERSATION, SEMANTIC)
SUMMARY_BYTES = 24000          # of the entries that one summary is made of
SUMMARY_LEAST = 8              # entries of a place for which one is worth while


class Compaction:
    """Compaction over one database.

    db, places   ``memory_sql.Database``, ``memory_places.Places``
    clock        function -> ms since 1970
    dumps        JSON
    boxes        ``memory_box.Boxes``
    """

    def __init__(self, db, places, clock, dumps, boxes):
        self._db, self._places, self._clock, self._dumps, self._boxes = db, places, clock, dumps, boxes

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
            if store.type in SEARCHED:
                row = self._db.row("SELECT id FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1 OFFSET ?", (floor, place.last, keep - 1))
                floor = row[0] if row else floor
                self._places.drop(place, floor)
            after += self._places.count(place, floor, store)
        return before, after

    def oldest(self, store, part, _) -> list:
        now, found, box = self._clock(), [], self._boxes.of(store)
        for place in self._where(store, part, now):
            floor = self._places.floor(place, store, now)
            before = self._places.count(place, floor, store)
            if before < SUMMARY_LEAST:
                continue
            half = self._db.run("SELECT id, content FROM entries WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?", (floor, place.last, before // 2)).fetchall()
            each = SUMMARY_BYTES // len(half)
            part_of = self._db.row("SELECT part FROM places WHERE number=?", (place.number,))[0]
            found.append((part_of, half[-1][0], "\n".join(["- " + (box.unpack(content)[1] if box else content)[:each] for _, content in half]), before))
        return found

    def replace(self, store, part: str, details: tuple) -> int:
        last, summary = details
        now = self._clock()
        place = self._places.find(store, part, now)
        row = self._db.row("SELECT id, content FROM entries WHERE id=?", (last,)) if place else None
        if row is None:
            raise StoreError("store %s: what was summarized is gone" % store.name, "send this again")
        floor = self._places.floor(place, store, now)
        count = self._db.row("SELECT count(*) FROM entries WHERE id BETWEEN ? AND ?", (floor, last))[0]
        self._places.drop(place, last)
        self._places.unindex(place, [row])
        self._db.run("DELETE FROM vectors WHERE id=?", (last,))         # it was of what the summary stands for
        box, metadata = self._boxes.of(store), {"summary_of": count}
        row = box.pack(None, summary, False, metadata)[1:] if box else (summary, False, self._dumps(metadata))
        self._db.run("UPDATE entries SET content=?, is_json=?, metadata=? WHERE id=?", (*row, last))
        if last <= place.indexed and place.has_words:
            self._db.run("INSERT INTO words(rowid, content) VALUES(?, ?)", (last, summary))
        return self._places.count(place, floor, store)
