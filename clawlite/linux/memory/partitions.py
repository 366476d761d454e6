"""Partitions: the parts of stores in the database, and which of their entries are alive.

1. An id is ``number << 40 | n``: n counts the entries of one place from 1, in the order in which
   they came.
2. Times of a place never go back: a clock that was set back stands still there, so that time and
   order are one.
3. The newest entry of a place is never deleted, it can only be too old to be shown: no id is given
   twice.
4. While the clock is unset, the time of the newest entry of all stands in for it, also for entries
   that are stored then.  Entries from before any time was known count as old as the next entry that
   has a time.  So a start without a clock brings no expired entry back, and setting the clock
   expires none too early.
"""

from clawlite.core.base.errors import StoreError
from clawlite.core.image.memories import DOES, FILES, SINGLE
from clawlite.linux.memory.entry import BITS, COLUMNS, check, checksum, name
from clawlite.linux.memory.search import index_text

MAX_PLACES = 4096  # of one store
# so long a request is remembered (and its entries, when they are no longer wanted)
KEPT_MS = 300000
KEPT = 4096  # requests of one place that are remembered
SET_MS = 1700000000000  # a clock that shows less has not been set
# an entry that is so far ahead of the clock came while the clock was wrong; a machine without a
# clock of its own boots less far in the past (and with less than SET_MS when it knows nothing)
AHEAD_MS = 5 * 366 * 86400000


class Partition:
    """One part of one store, as this process knows it.

    base, last  ids: before the first entry, and of the newest (base when there is none)
    at          ms since 1970 of the newest
    indexed     id up to which its words are in the index
    alive       id from which on entries were young enough when that was last asked
    keys        int, how many keys a key-value place has, or None
    asked       id of the newest entry when its compaction was last asked for
    has_words   False: its entries are encrypted, and not in the index
    """

    def __init__(self, number: int, indexed: int, has_words: bool):
        self.number = number
        self.has_words = has_words
        self.base = number << BITS
        self.last = self.base
        self.at = 0
        self.indexed = indexed or self.base
        self.alive = self.base + 1
        self.keys = None
        self.asked = self.base

    def name(self, id: int) -> str:
        """Return an id as callers see it."""
        return name(id)


class Partitions:
    """All places of one database.

    db  ``database.Database``
    """

    def __init__(self, db):
        self._db = db
        self._known = {}
        self._counts = {}
        # request_id without hyphens -> (fingerprint, place, id of the first entry, how many, ms)
        self.requests = {}

    def forget(self):
        """Forget what is known: somebody else has written, or a commit has failed."""
        self._known.clear()
        self._counts.clear()
        self.requests.clear()

    def find(self, store, part: str, now_ms: int, new: bool = False):
        """Return the place of *part*; None when there is none and it is not to be *new*.  Raises
        ``StoreError``.
        """
        place = self._known.get((store.name, part))
        if place is None:
            row = self._db.row(
                "SELECT number, indexed FROM places WHERE store=? AND part=?", (store.name, part)
            )
            if row is None:
                if not new:
                    return None
                row = self._new(store, part), 0
            place = self._known[store.name, part] = Partition(*row, not store.secret)
            self._recall(place, now_ms)
        return place

    def all(self, store, now_ms: int) -> list:
        """Return every place of *store*."""
        return [
            self.find(store, part, now_ms)
            for (part,) in self._db.run(
                "SELECT part FROM places WHERE store=? ORDER BY number", (store.name,)
            ).fetchall()
        ]

    def _new(self, store, part: str) -> int:
        count = self._counts.get(store.name)
        if count is None:
            count = self._db.row("SELECT count(*) FROM places WHERE store=?", (store.name,))[0]
        if count >= MAX_PLACES:
            raise StoreError(
                "store %s has %d parts, and takes no other identity or channel"
                % (store.name, count),
                "use a store of scope global",
            )
        self._counts[store.name] = count + 1
        return self._db.run(
            "INSERT INTO places(store, part, indexed) VALUES(?, ?, 0)", (store.name, part)
        ).lastrowid

    def _recall(self, place, now_ms: int):
        """Read the newest entry of *place*, and the requests of the last minutes."""
        rows = self._db.run(
            "SELECT %s FROM entries WHERE id>? AND id<? ORDER BY id DESC" % COLUMNS,
            (place.base, place.base + (1 << BITS)),
        )
        for number, row in enumerate(rows):
            check(row, self._db.path)
            id, at, *_, request, _ = row
            if not number:
                place.last, place.at = id, at
            if number >= KEPT or at < now_ms - KEPT_MS:
                break
            if request is not None:
                self.requests[request[:16].hex()] = (
                    request[16:20],
                    place,
                    id,
                    int.from_bytes(request[20:], "big"),
                    at,
                )
        rows.close()
        damaged = self._db.row(
            "SELECT max(id) FROM damaged WHERE id>? AND id<?",
            (place.base, place.base + (1 << BITS)),
        )[0]
        place.last = max(place.last, damaged or 0)

    # -- which entries are alive

    def floor(self, place, store, now_ms: int) -> int:
        """Return the id from which on the entries of *place* are alive."""
        floor = place.base + 1
        if store.max_entries is not None and not DOES >> 4 * store.type & SINGLE:
            floor = max(floor, place.last - store.max_entries + 1)
        if store.max_age_s is not None:
            place.alive = self.since(
                place, self.time_ms(now_ms) - store.max_age_s * 1000, place.alive
            )
            if place.alive > floor:
                row = self._db.row(
                    "SELECT %s FROM entries WHERE id>? AND id<? ORDER BY id DESC LIMIT 1" % COLUMNS,
                    (place.base, place.alive),
                )
                if row and self._time(row) < SET_MS:
                    place.alive = place.base + 1
            floor = max(floor, place.alive)
        return floor

    def time_ms(self, now_ms: int) -> int:
        """Return the time; while nobody has set the clock that of the newest entry of all
        places.
        """
        if now_ms >= SET_MS:
            return now_ms
        newest = self._db.row(
            "SELECT max((SELECT at FROM entries WHERE id>number<<? AND "
            "id<(number+1)<<? ORDER BY id DESC LIMIT 1)) FROM places",
            (BITS, BITS),
        )[0]
        return max([now_ms, newest or 0] + [place.at for place in self._known.values()])

    def is_ahead(self, place, now_ms: int) -> bool:
        """Return whether the newest entry of *place* came while the clock was years ahead."""
        return now_ms >= SET_MS and place.at > now_ms + AHEAD_MS

    def bring_back(self, place, now_ms: int):
        """Give the entries of *place* that came while the clock was years ahead the present time:
        the times of a place never go back, so those of all later ones would be wrong, too.  A
        commit has begun.
        """
        ids = place.base, place.last
        (before,) = self._db.row(
            "SELECT max(at) FROM entries WHERE id>? AND id<=? AND at<=?", (*ids, now_ms + AHEAD_MS)
        )
        at, changes = max(now_ms, before or 0), []
        for row in self._db.run(
            "SELECT %s FROM entries WHERE id>? AND id<=? AND at>?" % COLUMNS,
            (*ids, now_ms + AHEAD_MS),
        ):
            check(row, self._db.path)
            id, _, *rest, _ = row
            changes.append((at, checksum([id, at, *rest]), id))
        self._db.many("UPDATE entries SET at=?, crc=? WHERE id=?", changes)
        place.at = at

    def since(self, place, ms: int, low: int) -> int:
        """Return the first id, from *low* on, of an entry that is as young as *ms*; one behind
        the newest when none is.
        """
        high = place.last + 1
        while low < high:
            middle = (low + high) // 2
            row = self._db.row(
                "SELECT %s FROM entries WHERE id>=? AND id<? ORDER BY id LIMIT 1" % COLUMNS,
                (middle, high),
            )
            if row is None or self._time(row) >= ms:
                high = middle
            else:
                low = row[0] + 1
        return low

    def _time(self, row) -> int:
        """Return when the entry came.  What is deleted depends on it.  Raises ``Altered``."""
        check(row, self._db.path)
        return row[1]

    def count(self, place, floor: int, store) -> int:
        """Return how many entries are alive; of a key-value store, how many keys.  Cost: they
        are passed through.
        """
        if DOES >> 4 * store.type & (SINGLE | FILES) == SINGLE:
            return self._db.row(
                "SELECT count(DISTINCT key) FROM entries WHERE id BETWEEN ? AND ?",
                (floor, place.last),
            )[0]
        return self._db.row(
            "SELECT count(*) FROM entries WHERE id BETWEEN ? AND ?", (floor, place.last)
        )[0]

    # -- what goes

    def index(self, place):
        """Put the words of what is not indexed into the index."""
        if place.has_words:
            rows = self._db.run(
                "SELECT id, content FROM entries WHERE id BETWEEN ? AND ?",
                (place.indexed + 1, place.last),
            ).fetchall()
            self._db.many("INSERT INTO words(rowid, content) VALUES(?, ?)", _for_index(rows))
        self._db.run("UPDATE places SET indexed=? WHERE number=?", (place.last, place.number))
        place.indexed = place.last

    def drop(self, place, below: int):
        """Delete the entries before the id *below*, and their words; never the newest."""
        below = min(below, place.last)
        if place.has_words:
            self.unindex(
                place,
                self._db.run(
                    "SELECT id, content FROM entries WHERE id>? AND id<?", (place.base, below)
                ).fetchall(),
            )
        self._db.run("DELETE FROM entries WHERE id>? AND id<?", (place.base, below))
        self._db.run("DELETE FROM vectors WHERE id>? AND id<?", (place.base, below))

    def unindex(self, place, rows: list):
        """Take the words of *rows* [(id, content)] out of the index, those that are in it."""
        if place.has_words:
            self._db.many(
                "INSERT INTO words(words, rowid, content) VALUES('delete', ?, ?)",
                _for_index([row for row in rows if row[0] <= place.indexed]),
            )


def _for_index(rows: list) -> list:
    return [(id, index_text(content or "")) for id, content in rows]
