"""What the memory does with a request (core/memories.py): the verbs, over one database, in one thread.

    store    (request_id or None, entries) -> {"stored", "ids"}, and "is_full" when it should be compacted
    query    (kind, what, most, vector)    -> {"entries"}, and "truncated": true when more matched than one answer holds
    oldest   None                          -> [(part, id of the last, text, entries before), ...] for a summary
    replace  (id of the last, summary)     -> entries after
    compact  strategy                      -> (entries before, entries after)

1. Requests that write and stand one after the other are one commit: it is acknowledged when it is on the disk, or none of it is.
2. A request is remembered with its first entry, in the same commit: after a kill, a retry finds it or nothing.
3. Words go into the index every ``BATCH`` entries; what is not there yet is looked at by itself.  What is forgotten is deleted then.
"""
from binascii import crc32

from clawlite.core.clock import iso8601
from clawlite.core.errors import ClawError, InvalidParams, StoreError, unexpected
from clawlite.core.memories import CONVERSATION, KEY_VALUE, SEMANTIC, SUMMARIZE, TRUNCATE, WORKSPACE
from clawlite.core.render import canonical
from clawlite.linux import memory_search
from clawlite.linux.memory_places import KEPT, KEPT_MS, Places
from clawlite.linux.memory_sql import failure

BATCH = 512                     # entries of a place between two visits to the index: 2.5 KB are written for each; 3.2 with 256, 29 with 1
WINDOW = 1000                   # entries that a compaction leaves where the store names no number
MAX_CONTENT = 262144            # bytes of one entry
MAX_ANSWER = 1048576            # characters of content in one answer
MAX_SAME = 64                   # old values of one key that are kept for the sake of requests
_SUMMARY_BYTES = 24000          # of the entries that one summary is made of
_SUMMARY_LEAST = 8              # entries of a place for which one is worth while
_SEARCHED = (CONVERSATION, SEMANTIC)
_FIELDS = "id, at, key, content, is_json, metadata"
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")


class Stores:
    """All stores of one agent.

    db      ``memory_sql.Database``
    clock   function -> ms since 1970
    dumps, loads   JSON
    files   ``memory_files.Files``, or None where no store is a workspace
    """

    def __init__(self, db, clock, dumps, loads, files=None):
        self._db, self._clock, self._dumps, self._loads, self._files = db, clock, dumps, loads, files
        self._places = Places(db)
        self._seen = None               # what the database had of others when it was last asked
        self._verbs = {"store": self._store, "query": self._query, "oldest": self._oldest, "replace": self._replace, "compact": self._compact}

    def run(self, jobs: list) -> list:
        """Return [(number, outcome), ...] of *jobs* [(number, verb, store, part, details)], in their order."""
        ended, writing = [], []
        for job in jobs:
            if job[1] in ("query", "oldest"):
                ended += self._write(writing) + [(job[0], self._read(job))]
                writing = []
            else:
                writing.append(job)
        return ended + self._write(writing)

    def close(self):
        """End; what is not yet in the index is found without it."""
        self._db.close()

    def _read(self, job: tuple) -> tuple:
        try:
            self._heed()
            return True, self._verbs[job[1]](*job[2:])
        except Exception as e:
            return False, self._failed(e, True)

    def _write(self, jobs: list) -> list:
        if not jobs:
            return []
        outcomes = []
        try:
            self._db.begin(any([job[2].lasting for job in jobs]))
            self._heed()
            for job in jobs:
                try:
                    outcomes.append((job[0], (True, self._verbs[job[1]](*job[2:]))))
                except InvalidParams as e:      # it has written nothing
                    outcomes.append((job[0], (False, e)))
            self._db.commit()
            return outcomes
        except Exception as e:
            error = self._failed(e, False)
            if isinstance(e, StoreError) and len(jobs) > 1:        # one that has no room takes no other with it
                return [ended for job in jobs for ended in self._write([job])]
            return [(job[0], (False, error)) for job in jobs]

    def _failed(self, e, query: bool) -> ClawError:
        self._db.rollback()
        self._places.forget()
        if isinstance(e, ClawError):
            return e
        if isinstance(e, OSError) or type(e).__module__ == "sqlite3":
            error = failure(e, self._db.path, query)
            if error.data and error.data["cause"].startswith(_BROKEN):
                self._db.close()
            return error
        return unexpected(e)

    def _heed(self):
        """Forget what is known when another process has written."""
        changed = self._db.changed()
        if changed != self._seen:
            self._places.forget()
            self._seen = changed

    # -- store

    def _store(self, store, part: str, details: tuple) -> dict:
        request_id, entries = details
        now = self._clock()
        place = self._places.find(store, part, now, True)
        texts = [self._text(entry[1], number) for number, entry in enumerate(entries)]
        mark = _fingerprint(store, part, entries)
        known = self._known(request_id, mark, now)
        if known is not None:
            return known
        if store.type == WORKSPACE:
            self._files.write(store, part, [(entry[0], text) for entry, (text, _) in zip(entries, texts)])
        first = place.last + 1
        place.at = max(now, place.at)
        self._insert(store, place, entries, texts, self._request(request_id, mark, place, len(entries)))
        self._tidy(store, place, [entry[0] for entry in entries], now)
        stored = {"stored": len(entries), "ids": [place.name(id) for id in range(first, place.last + 1)]}
        if store.compacts and store.compaction in (SUMMARIZE, TRUNCATE) and self._is_full(store, place, now):
            stored["is_full"] = True
        return stored

    def _known(self, request_id, mark: bytes, now: int):
        """Return what a request with this id gave, or None.  Raises ``InvalidParams`` when it had other entries."""
        known = self._places.requests.get(request_id and request_id.replace("-", ""))
        if known is None or known[4] < now - KEPT_MS:
            return None
        if known[0] != mark:
            raise InvalidParams("context.request_id: another request had this id within %d s" % (KEPT_MS // 1000), "send a new id with new entries")
        return {"stored": known[3], "ids": [known[1].name(known[2] + n) for n in range(known[3])]}

    def _request(self, request_id, mark: bytes, place, count: int):
        """Remember a request; return how it stands with its first entry, None for the agent's own."""
        if request_id is None:
            return None
        request_id, requests = request_id.replace("-", ""), self._places.requests
        requests[request_id] = (mark, place, place.last + 1, count, place.at)
        if len(requests) > 2 * KEPT:
            for old in list(requests)[:KEPT]:
                del requests[old]
        return bytes.fromhex(request_id) + mark + count.to_bytes(2, "big")

    def _text(self, content, number: int) -> tuple:
        """Return (text, whether it is JSON) of an entry's content."""
        text = content if isinstance(content, str) else self._dumps(content)
        if len(text.encode()) > MAX_CONTENT:
            raise InvalidParams("entries[%d].content: expected at most %d bytes" % (number, MAX_CONTENT))
        return text, text is not content

    def _insert(self, store, place, entries: list, texts: list, request):
        rows, vectors, id = [], [], place.last
        for (key, _, metadata, vector), (text, is_json) in zip(entries, texts):
            id += 1
            rows.append((id, place.at, key, None if store.type == WORKSPACE else text, is_json, metadata and self._dumps(metadata), request))
            request = None
            if vector:
                vectors.append((id, memory_search.packed(vector)))
        self._db.many("INSERT INTO entries VALUES(?, ?, ?, ?, ?, ?, ?)", rows)
        if vectors:
            self._db.many("INSERT INTO vectors VALUES(?, ?)", vectors)
        place.last = id

    def _tidy(self, store, place, keys: list, now: int):
        """Do what new entries bring with them: old values of their keys go, and after a batch the rest."""
        if store.type not in _SEARCHED:
            for key in dict.fromkeys(keys):
                self._shorten(store, place, key, now)
            if store.type == KEY_VALUE and store.max_entries:
                self._evict(store, place)
        elif place.last - place.indexed >= BATCH:
            self._places.index(place)
            floor = self._places.floor(place, store, now)
            if floor > place.base + 1:
                young = max(self._places.since(place, now - KEPT_MS, place.base + 1), place.last - KEPT)
                self._places.drop(place, min(floor, young))

    def _shorten(self, store, place, key: str, now: int):
        """Delete the values of *key* that are no longer its own: a checkpoint store keeps several."""
        keep = 1 if store.type in (KEY_VALUE, WORKSPACE) else store.snapshots
        if keep is None:
            return
        old = self._db.run("SELECT id, at FROM entries WHERE key=? AND id BETWEEN ? AND ? ORDER BY id DESC LIMIT -1 OFFSET ?",
                           (key, place.base, place.last, keep)).fetchall()
        gone = [(id,) for number, (id, at) in enumerate(old) if at < now - KEPT_MS or number >= MAX_SAME]
        if gone:
            self._db.many("DELETE FROM entries WHERE id=?", gone)
            self._db.many("DELETE FROM vectors WHERE id=?", gone)

    def _evict(self, store, place):
        """Delete the keys that were written longest ago, until no more than ``max_entries`` are left."""
        keys = self._places.count(place, place.base, store) - store.max_entries
        if keys > 0:
            oldest = self._db.run("SELECT key FROM entries WHERE id BETWEEN ? AND ? GROUP BY key ORDER BY max(id) LIMIT ?", (place.base, place.last, keys))
            gone = [(key, place.base, place.last) for key, in oldest]
            self._db.many("DELETE FROM entries WHERE key=? AND id BETWEEN ? AND ?", gone)

    def _is_full(self, store, place, now: int) -> bool:
        """Return whether it should be compacted; that is not asked again before some entries more have come."""
        most = store.max_entries or WINDOW
        if place.last - place.asked < max(8, most // 8) and place.asked != place.base:
            return False
        if place.last - self._places.floor(place, store, now) + 1 < most or self._places.count(place, place.base, store) < most:
            return False
        place.asked = place.last
        return True

    # -- query

    def _query(self, store, part: str, details: tuple) -> dict:
        kind, what, top, vector = details
        now = self._clock()
        place = self._places.find(store, part, now)
        if place is None:
            return {"entries": []}
        floor = self._places.floor(place, store, now)
        if kind == "key":
            most = 1 if store.type in (KEY_VALUE, WORKSPACE) else min(top, store.snapshots or top)
            rows = self._db.run("SELECT %s FROM entries WHERE key=? AND id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?" % _FIELDS,
                                (what, floor, place.last, most))
        elif kind == "time-range":
            first, last = self._places.since(place, what[0], floor), self._places.since(place, what[1] + 1, floor) - 1
            answer = self._answer(store, part, place, self._alive(store, first, last, place, top + 1), top)
            answer["entries"].reverse()
            return answer
        else:
            found = memory_search.search(self._db, place, floor, store, (what, vector, 4 * top if store.type == KEY_VALUE else top))
            if store.type not in _SEARCHED:
                alive = {row[0] for row in self._alive(store, floor, place.last, place, -1)}
                found = [one for one in found if one[0] in alive]
            rows = (self._db.row("SELECT %s FROM entries WHERE id=?" % _FIELDS, (id,)) for id, _ in found)
            return self._answer(store, part, place, rows, top, dict(found))
        return self._answer(store, part, place, rows, top)

    def _alive(self, store, first: int, last: int, place, most: int):
        """Return a cursor of rows from *first* to *last*, the newest first, without the old values of keys."""
        shadowed = ""
        if store.type in (KEY_VALUE, WORKSPACE):
            shadowed = " AND NOT EXISTS (SELECT 1 FROM entries AS newer WHERE newer.key=entries.key AND newer.id>entries.id AND newer.id<=%d)" % place.last
        return self._db.run("SELECT %s FROM entries WHERE id BETWEEN ? AND ?%s ORDER BY id DESC LIMIT ?" % (_FIELDS, shadowed),
                            (first, last, most))

    def _answer(self, store, part: str, place, rows, top: int, scores: dict = {}) -> dict:
        """Return {"entries"} of at most *top* of *rows* as callers see them; with "truncated" when there are more, or they are too long."""
        found, size = [], 0
        for id, at, key, content, is_json, metadata in rows:
            if store.type == WORKSPACE:
                content = self._files.read(store, part, key)
                if content is None:
                    continue
            size += len(content)
            if len(found) >= top or found and size > MAX_ANSWER:
                return {"entries": found, "truncated": True}
            entry = {"id": place.name(id), "content": self._loads(content.encode()) if is_json else content,
                     "timestamp": "%s.%03dZ" % (iso8601(at // 1000)[:-1], at % 1000)}
            if id in scores:
                entry["score"] = scores[id]
            if key is not None:
                entry["key"] = key
            if metadata is not None:
                entry["metadata"] = self._loads(metadata.encode())
            found.append(entry)
        return {"entries": found}

    # -- compact

    def _where(self, store, part, now: int) -> list:
        if part is None:
            return self._places.all(store, now)
        place = self._places.find(store, part, now)
        return [place] if place else []

    def _compact(self, store, part, strategy: int) -> tuple:
        now, before, after = self._clock(), 0, 0
        most = store.max_entries or WINDOW
        keep = max(1, most // 2) if strategy == TRUNCATE else most
        for place in self._where(store, part, now):
            floor = self._places.floor(place, store, now)
            before += self._places.count(place, floor, store)
            if store.type in _SEARCHED:
                row = self._db.row("SELECT id FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1 OFFSET ?", (floor, place.last, keep - 1))
                floor = row[0] if row else floor
                self._places.drop(place, floor)
            after += self._places.count(place, floor, store)
        return before, after

    def _oldest(self, store, part, _) -> list:
        now, found = self._clock(), []
        for place in self._where(store, part, now):
            floor = self._places.floor(place, store, now)
            before = self._places.count(place, floor, store)
            if before < _SUMMARY_LEAST:
                continue
            half = self._db.run("SELECT id, content FROM entries WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?", (floor, place.last, before // 2)).fetchall()
            each = _SUMMARY_BYTES // len(half)
            part_of = self._db.row("SELECT part FROM places WHERE number=?", (place.number,))[0]
            found.append((part_of, half[-1][0], "\n".join(["- " + content[:each] for _, content in half]), before))
        return found

    def _replace(self, store, part: str, details: tuple) -> int:
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
        self._db.run("UPDATE entries SET content=?, is_json=0, metadata=? WHERE id=?", (summary, self._dumps({"summary_of": count}), last))
        if last <= place.indexed:
            self._db.run("INSERT INTO words(rowid, content) VALUES(?, ?)", (last, summary))
        return self._places.count(place, floor, store)


def _fingerprint(store, part: str, entries: list) -> bytes:
    """Return 4 bytes that other entries do not have, but for one in 4,000 million: against a mistake, not against an attacker."""
    crc = crc32(("%s\n%s" % (store.name, part)).encode())
    for key, content, metadata, vector in entries:
        for value in (key, content, metadata, vector):
            crc = crc32(b"\n", crc32(value.encode() if isinstance(value, str) else canonical(value).encode(), crc))
    return crc.to_bytes(4, "big")
