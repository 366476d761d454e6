"""What the memory does with a request (core/image/memories.py): the verbs, over one database, in
one thread.

    store    (request_id or None, entries[, {place of an entry: its vector}]) -> {"stored", "ids"},
             and "is_full" when it should be compacted
    query                                  reading.py
    oldest, replace, compact, forget       compaction.py

1. Requests that write and stand one after the other are one commit: it is acknowledged when it is
   on the disk, or none of it is.
2. A request is remembered with its first entry, in the same commit: after a kill, a retry finds it
   or nothing.
3. Words are indexed every ``BATCH`` entries; newer entries are searched one by one.  Expired
   entries are deleted at the same time.
4. Entries of a wear-saving store go into the journal, and from there into the database many at
   once, and before anything reads them.
"""

from binascii import crc32

from clawlite.core.base.errors import ClawError, InvalidParams, StoreError, wrap_error
from clawlite.core.image.memories import (
    CONVERSATION,
    DOES,
    FILES,
    SEARCHED,
    SINGLE,
    SUMMARIZE,
    TRUNCATE,
)
from clawlite.linux.memory import search
from clawlite.linux.memory.backfill import Backfill
from clawlite.linux.memory.compaction import REACH, WINDOW, Compaction
from clawlite.linux.memory.database import failure, is_full, is_unwritable
from clawlite.linux.memory.entry import insert, is_altered, request_bytes, set_aside, text_of
from clawlite.linux.memory.memory_journal import Journal, fold
from clawlite.linux.memory.partitions import KEPT, KEPT_MS, Partitions
from clawlite.linux.memory.reading import Reading

_NUMBER, _VERB, _STORE, _PART = range(4)  # of a job

# entries of a place between two visits to the index: 2.5 KB are written for each; 3.2 with 256, 29
# with 1
BATCH = 512
MAX_SAME = 64  # old values of one key that are kept for the sake of requests
_READS, _COMMITS, _APPENDS, _LINES = range(4)
_SINCE_MS = 4  # position in what is known of a request: (mark, place, first, count, when)
_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")


class Stores:
    """All stores of one agent.

    db      ``database.Database``
    clock   function -> ms since 1970
    dumps, loads   JSON
    boxes   ``encryption.EntryCiphers``
    files   ``workspace_store.Files``, or None where no store is a workspace
    """

    def __init__(self, db, clock, dumps, loads, boxes, files=None):
        self._db, self._clock, self._dumps, self._boxes, self._files = (
            db,
            clock,
            dumps,
            boxes,
            files,
        )
        self._places = Partitions(db)
        self._journal = Journal(db.folder)
        self._stores = {}  # name -> store, of the jobs that have come
        self._loads, self._conversations = loads, None
        self._reindexed = False  # True after an altered entry was reported, but none was found
        self._seen = None  # result of ``Database.generation`` when it was last called
        lacking = Backfill(db, self._places, clock, boxes)
        compaction = Compaction(db, self._places, clock, dumps, boxes)
        self._verbs = {
            "store": self._store,
            "query": Reading(db, self._places, clock, loads, files, boxes).query,
            "oldest": compaction.oldest,
            "replace": compaction.replace,
            "compact": compaction.compact,
            "forget": compaction.forget,
            "lacking": lacking.lacking,
            "learn": lacking.learn,
        }

    def run(self, jobs: list) -> list:
        """Return [(number, outcome), ...] of *jobs* [(number, verb, store, part, details)], in
        their order.
        """
        ended, group, last = [], [], None
        ways = [self._kind_of_job(job) for job in jobs]
        try:
            self._db.check_place()
            self._journal.lock(_APPENDS in ways)
        except OSError as e:  # the content of the journal is unknown
            return [(job[_NUMBER], (False, failure(e, self._journal.path))) for job in jobs]
        try:
            for job, way in zip(jobs, ways):
                if way != last:
                    ended += self._run_jobs(last, group)
                    group, last = [], way
                group.append(job)
            return ended + self._run_jobs(last, group)
        finally:
            self._db.release()
            self._journal.unlock()

    def close(self):
        """Close the files.  Entries that are not indexed yet are found without the index."""
        if self._journal.entries:
            try:
                if self._journal.lock(False):
                    self._refresh(True)
            except Exception:  # the entries stay in the journal
                self._db.rollback()
        self._journal.close()
        self._db.close()

    def _kind_of_job(self, job: tuple) -> int:
        store = job[_STORE]
        if store.type == CONVERSATION and store.path is not None:
            return _LINES
        self._stores[store.name] = store
        if job[_VERB] != "store":
            return _READS if job[_VERB] in ("query", "oldest", "lacking") else _COMMITS
        return _APPENDS if store.saves_wear and not DOES >> 4 * store.type & FILES else _COMMITS

    def _run_jobs(self, way, jobs: list) -> list:
        if not jobs:
            return []
        if way == _LINES:
            if self._conversations is None:
                from clawlite.linux.memory.file_store import FileConversations

                self._conversations = FileConversations(
                    self._files, self._clock, self._dumps, self._loads
                )
            return [(job[_NUMBER], self._conversations.outcome(job)) for job in jobs]
        if way == _READS:
            return [(job[_NUMBER], self._read(job)) for job in jobs]
        return self._append(jobs) if way == _APPENDS else self._write(jobs)

    def _read(self, job: tuple) -> tuple:
        try:
            self._refresh(job[_STORE].saves_wear)
            return True, self._verbs[job[_VERB]](*job[_STORE:])
        except Exception as e:
            if (is_full(e) or is_unwritable(e)) and not self._journal.is_empty():
                return self._read_when_full(job)
            e = self._without_altered(e)
            return self._read(job) if e is None else (False, self._recover(e, True))

    def _without_altered(self, e):
        """When *e* means that an entry was altered, set all altered entries aside.  Return None
        when the request is to run again, else the error.  When no entry was altered, the index of
        keys was damaged and is rebuilt; this is tried only once.
        """
        if not is_altered(e) or self._reindexed:
            return e
        try:
            e.__traceback__ = None  # its frames still have open cursors on the file
            self._forget()
            self._reindexed = not set_aside(self._db)
        except Exception as another:
            return another
        return None

    def _read_when_full(self, job: tuple) -> tuple:
        """Read when the disk takes no entries of the journal: fold them, read, and roll back."""
        try:
            self._forget()
            self._db.begin_to_undo()
            fold(self._db, self._journal)
            return True, self._verbs[job[_VERB]](*job[_STORE:])
        except Exception as e:
            return False, self._recover(e, True)
        finally:
            self._forget()

    def _write(self, jobs: list) -> list:
        outcomes = []
        try:
            self._begin(
                any([job[_STORE].lasting for job in jobs]),
                any([job[_STORE].saves_wear for job in jobs]),
            )
            for job in jobs:
                try:
                    outcomes.append((job[_NUMBER], (True, self._verbs[job[_VERB]](*job[_STORE:]))))
                except InvalidParams as e:  # it has written nothing
                    outcomes.append((job[_NUMBER], (False, e)))
            self._db.commit()
            return outcomes
        except Exception as e:
            e = self._without_altered(e)
            if e is None:
                return self._write(jobs)
            error = self._recover(e, False)
            # each request again by itself, so that one without room does not fail the others
            if isinstance(e, StoreError) and len(jobs) > 1:
                return [ended for job in jobs for ended in self._write([job])]
            return [(job[_NUMBER], (False, error)) for job in jobs]

    def _append(self, jobs: list) -> list:
        """Put the entries of *jobs* into the journal, in one write(2)."""
        outcomes, records, now = [], [], self._clock()
        try:
            self._db.check_writable()  # else acknowledged entries could never be folded
            self._refresh(self._journal.is_full())
            places = [self._places.find(job[_STORE], job[_PART], now) for job in jobs]
            if any(place is None or self._places.is_ahead(place, now) for place in places):
                return self._write(jobs)  # the first entry of a place is a commit
            for number, _, store, part, details in jobs:
                try:
                    stored, rows, vectors = self._accept(
                        store, part, self._places.find(store, part, now), details, now, False
                    )
                    outcomes.append((number, (True, stored)))
                    if rows:
                        records.append((store.name, part, rows, vectors))
                except InvalidParams as e:
                    outcomes.append((number, (False, e)))
            if records:
                self._journal.append(records, any([job[_STORE].lasting for job in jobs]))
        except Exception as e:
            e = self._without_altered(e)
            if e is None:
                return self._append(jobs)
            error = self._recover(e, False)
            # nothing was written: each again by itself, so that one does not fail the others
            if isinstance(e, StoreError) and len(jobs) > 1:
                return [ended for job in jobs for ended in self._append([job])]
            return [(job[_NUMBER], (False, error)) for job in jobs]
        for job, (_, (done, value)) in zip(jobs, outcomes):
            if done:
                self._ask(job[_STORE], job[_PART], value, now)
        return outcomes

    def _ask(self, store, part: str, stored: dict, now: int):
        """Set ``is_full`` in *stored* when a compaction of the place is worth while.  The entries
        of the journal count.
        """
        if self._is_filled(store, self._places.find(store, part, now), now):
            try:
                self._refresh(True)
                if self._is_full(store, self._places.find(store, part, now), now):
                    stored["is_full"] = True
            except Exception:  # the stored entries are safe in the journal
                self._forget()

    def _begin(self, lasting: bool, folds: bool):
        """Begin a commit, after reading the changes of other processes."""
        self._db.begin(lasting)
        while self._refresh(folds):
            self._db.begin(lasting)

    def _refresh(self, folds: bool) -> bool:
        """Forget cached data when another process has written.

        folds  bool, move the journal's entries into the database
        Returns whether the journal was folded; that ends a commit that had begun.
        """
        generation = self._db.generation()
        if generation != self._seen:
            self._places.forget()
            self._journal.forget()
        self._seen = generation
        if not self._journal.is_strange() and not (folds and self._journal.entries):
            return False
        self._db.rollback()
        if self._journal.is_strange():
            self._places.forget()
        self._fold()
        return True

    def _fold(self):
        """Move the journal into the database, and tidy up for the new entries."""
        now, parts = self._clock(), {}
        if self._journal.is_empty():
            return self._journal.follow(self._db.row("SELECT upto FROM folded")[0])
        self._db.begin(True)
        for name, part, keys in fold(self._db, self._journal):
            parts.setdefault((name, part), []).extend(keys)
        for (name, part), keys in parts.items():
            # else this is done at the store's next request
            if name in self._stores:
                self._tidy(
                    self._stores[name], self._places.find(self._stores[name], part, now), keys, now
                )
        upto = self._db.row("SELECT upto FROM folded")[0]
        self._db.commit()
        self._journal.clear(upto)

    def _forget(self):
        self._db.rollback()
        self._places.forget()
        self._journal.forget()

    def _recover(self, e, query: bool) -> ClawError:
        self._forget()
        if isinstance(e, ClawError):
            return e
        if isinstance(e, OSError) or type(e).__module__ == "sqlite3":
            error = failure(e, self._db.path, query)
            if error.data and error.data["cause"].startswith(_BROKEN):
                self._db.close()
            return error
        return wrap_error(e)

    # -- store

    def _store(self, store, part: str, details: tuple) -> dict:
        now = self._clock()
        place = self._places.find(store, part, now, True)
        if self._places.is_ahead(place, now):
            self._places.bring_back(place, now)
        stored, rows, vectors = self._accept(store, part, place, details, now, True)
        if rows:
            insert(self._db, rows)
            if vectors:
                self._db.many("INSERT INTO vectors VALUES(?, ?)", vectors)
            self._tidy(store, place, [key for _, _, key, *_ in rows], now)
            if self._is_filled(store, place, now) and self._is_full(store, place, now):
                stored["is_full"] = True
        return stored

    def _accept(self, store, part: str, place, details: tuple, now: int, commits: bool) -> tuple:
        """Return (result for the caller, rows, vectors) for new entries; no rows when the request
        was stored before.  Raises ``InvalidParams``.
        """
        request_id, entries, *more = details
        # vectors from the provider, by the position of the entry
        made = more[0] or {} if more else {}
        box = self._boxes.of(store, commits)
        texts = [
            text_of(content, number, self._dumps)
            for number, (_, content, _, _) in enumerate(entries)
        ]
        mark = (
            box.mark(request_bytes(store, part, entries))
            if box
            else crc32(request_bytes(store, part, entries)).to_bytes(4, "big")
        )
        known = self._find_request(request_id, mark, now)
        if known is not None:
            return known, (), ()
        if DOES >> 4 * store.type & FILES:
            self._files.write(
                store, part, [(key, text) for (key, *_), (text, _) in zip(entries, texts)]
            )
        place.at = max(self._places.time_ms(now), place.at)
        request, rows, vectors, id = (
            self._request(request_id, mark, place, len(entries)),
            [],
            [],
            place.last,
        )
        for number, ((key, _, metadata, vector), (text, is_json)) in enumerate(zip(entries, texts)):
            id += 1
            row = [
                key,
                None if DOES >> 4 * store.type & FILES else text,
                is_json,
                metadata and self._dumps(metadata),
            ]
            rows.append(
                [id, place.at, *(box.pack(key, text, is_json, metadata) if box else row), request]
            )
            request = None
            if vector or number in made:
                packed = search.pack(vector or made[number])
                vectors.append([id, box.seal(packed) if box else packed])
        place.last = id
        return {"stored": len(rows), "ids": [place.name(row[0]) for row in rows]}, rows, vectors

    def _find_request(self, request_id, mark: bytes, now: int):
        """Return the result of an earlier request with this id, or None.  Raises ``InvalidParams``
        when that had other entries.
        """
        known = self._places.requests.get(request_id and request_id.replace("-", ""))
        if known is None or known[_SINCE_MS] < now - KEPT_MS:
            return None
        known_mark, place, first, count, _ = known
        if known_mark != mark:
            raise InvalidParams(
                "context.request_id: another request had this id within %d s" % (KEPT_MS // 1000),
                "send a new id with new entries",
            )
        return {"stored": count, "ids": [place.name(first + n) for n in range(count)]}

    def _request(self, request_id, mark: bytes, place, count: int):
        """Remember a request; return its form in the row of its first entry, None for a request of
        the agent itself.
        """
        if request_id is None:
            return None
        request_id, requests = request_id.replace("-", ""), self._places.requests
        requests[request_id] = (mark, place, place.last + 1, count, place.at)
        if len(requests) > 2 * KEPT:
            for old in list(requests)[:KEPT]:
                del requests[old]
        return bytes.fromhex(request_id) + mark + count.to_bytes(2, "big")

    def _tidy(self, store, place, keys: list, now: int):
        """Tidy up after new entries: delete old values of their keys, and after a batch index words
        and delete expired entries.
        """
        if not DOES >> 4 * store.type & SEARCHED:
            for key in dict.fromkeys(keys):
                self._shorten(store, place, key, now)
            if DOES >> 4 * store.type & SINGLE and store.max_entries:
                self._evict(store, place)
        elif place.last - place.indexed >= BATCH:
            self._places.index(place)
            floor = self._places.floor(place, store, now)
            if store.compacts and store.compaction == SUMMARIZE:  # the next summary has them
                floor = max(place.alive, floor - REACH)
            if floor > place.base + 1:
                young = max(
                    self._places.since(place, now - KEPT_MS, place.base + 1), place.last - KEPT
                )
                self._places.drop(place, min(floor, young))

    def _shorten(self, store, place, key: str, now: int):
        """Delete the old values of *key*.  A checkpoint store keeps several values."""
        keep = 1 if DOES >> 4 * store.type & SINGLE else store.snapshots
        if keep is None:
            return
        old = self._db.run(
            "SELECT id, at FROM entries WHERE key=? AND id BETWEEN ? AND ? ORDER "
            "BY id DESC LIMIT -1 OFFSET ?",
            (key, place.base, place.last, keep),
        ).fetchall()
        gone = [
            (id,) for number, (id, at) in enumerate(old) if at < now - KEPT_MS or number >= MAX_SAME
        ]
        if gone:
            self._db.many("DELETE FROM entries WHERE id=?", gone)
            self._db.many("DELETE FROM vectors WHERE id=?", gone)

    def _evict(self, store, place):
        """Delete the keys that were written longest ago, until at most ``max_entries`` are left."""
        keys = self._places.count(place, place.base, store) - store.max_entries
        if keys > 0:
            oldest = self._db.run(
                "SELECT key FROM entries WHERE id BETWEEN ? AND ? GROUP BY key "
                "ORDER BY max(id) LIMIT ?",
                (place.base, place.last, keys),
            )
            gone = [(key, place.base, place.last) for (key,) in oldest]
            self._db.many("DELETE FROM entries WHERE key=? AND id BETWEEN ? AND ?", gone)

    def _is_filled(self, store, place, now: int) -> bool:
        """Return whether an automatic compaction may be due.  After one was found due, this is
        False until some more entries have come.
        """
        most = store.max_entries or WINDOW
        if not store.compacts or store.compaction not in (SUMMARIZE, TRUNCATE):
            return False
        if place.last - place.asked < max(8, most // 8) and place.asked != place.base:
            return False
        return place.last - self._places.floor(place, store, now) + 1 >= most

    def _is_full(self, store, place, now: int) -> bool:
        if self._places.count(place, place.base, store) < (store.max_entries or WINDOW):
            return False
        place.asked = place.last
        return True
