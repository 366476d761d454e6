"""Vectors that are missing: of entries that were stored while a provider failed, and of summaries.

lacking   how many               -> [(id, text), ...], the newest first, among the entries that a
          search by vectors compares
learn     [(id, its text, vector), ...]    -> None: one whose text is another by now, a
          summary's, learns nothing
"""

from clawlite.linux.memory.entry import BOX_CONTENT, COLUMNS, ROW_CONTENT, ROW_ID, check
from clawlite.linux.memory.search import MAX_VECTORS, pack


class Backfill:
    """The vectors that are missing in one database.

    db, places   ``database.Database``, ``partitions.Partitions``
    clock        function -> ms since 1970
    boxes        ``encryption.EntryCiphers``
    """

    def __init__(self, db, places, clock, boxes):
        self._db, self._places, self._clock, self._boxes = db, places, clock, boxes

    def lacking(self, store, part: str, most: int) -> list:
        now = self._clock()
        place = self._places.find(store, part, now)
        if place is None:
            return []
        floor, box = (
            max(self._places.floor(place, store, now), place.last - MAX_VECTORS + 1),
            self._boxes.of(store),
        )
        rows = self._db.run(
            "SELECT %s FROM entries WHERE id BETWEEN ? AND ? AND "
            "content<>'' AND NOT EXISTS (SELECT 1 FROM vectors WHERE "
            "vectors.id=entries.id)"
            " ORDER BY id DESC LIMIT ?" % COLUMNS,
            (floor, place.last, most),
        ).fetchall()
        for row in rows:
            check(row, self._db.path)
        found = []
        for row in rows:
            text = row[ROW_CONTENT]
            text = box.unpack(text)[BOX_CONTENT] if box else text
            if text:
                found.append((row[ROW_ID], text))
        return found

    def learn(self, store, part: str, vectors: list) -> None:
        box = self._boxes.of(store, True)
        for id, text, vector in vectors:
            row = self._db.row("SELECT content FROM entries WHERE id=?", (id,))
            if row and (box.unpack(row[0])[BOX_CONTENT] if box else row[0]) == text:
                data = pack(vector)
                self._db.run(
                    "INSERT OR IGNORE INTO vectors VALUES(?, ?)",
                    (id, box.seal(data) if box else data),
                )
