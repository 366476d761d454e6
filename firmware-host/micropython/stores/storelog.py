"""The log of a board's stores, made of records of appendlog.py: reading it, rewriting it, and the
index of its entries.  Loaded for one request, and dropped.

    PLACE    kind(1) place(2) JSON [store, part]                              a part of a store;
             numbers from 1 on
    ENTRIES  kind(1) place(2) request id(16) CRC(4) count(2), the entries     one request, all of
             it or nothing; no id: the agent's own
    CUT      kind(1) place(2) n(4)                                            entries with a smaller
             number are gone

    entry    n(4) seconds since 1970(4) ms(2) tag of its key(2) length(2) JSON [content, key,
             metadata]      0 s: the clock was unset; a time years ahead of the present one counts
             as that, too: the clock was wrong

All numbers are big-endian.  Entries that retention, a newer value of a key or a compaction removes
stay in the log until it is rewritten.  That happens when more than half of its entries are gone, or
when it has no room.  Reading the log again removes the same entries from the index."""

import os
import struct
import sys
from array import array
from binascii import crc32

from appendlog import MAX_PAYLOAD, rewrite, start, walk
from clawlite.core.base.errors import ParseError, StoreError
from clawlite.core.image.memories import CONVERSATION, DOES, SINGLE, SNAPSHOTS, stores
from unload import drop
from osfields import BLOCK_BYTES, FREE_BLOCKS
from storeplace import Place

PLACE, ENTRIES, CUT = 1, 2, 3
HEAD, ENTRY = ">BH16sIH", ">IIHHH"
HEAD_BYTES, ENTRY_BYTES = 25, 14
# positions in what ``head``, ``raw`` and ``read`` return for an entry
ENTRY_N, ENTRY_AT, ENTRY_JSON, ENTRY_KEY = 0, 1, 2, 3
_OFFSET, _TAG = range(2)  # positions in the place of an entry and the tag of its key
# an entry that is so far ahead of the clock came while the clock was wrong
AHEAD_MS = 158112000000  # five years
KEPT_MS = 300000  # how long a request is remembered
_KEPT = 64  # the most requests that are remembered, for all stores
# the limit of the console's conversation when the store has none, so that others keep some room
_TALK_ENTRIES = 256
_LEAST_GONE = 32  # with fewer removed entries the log is not rewritten
# with fewer positions of removed entries an index is not rebuilt
_TRIM = 64
_SPARE = 8192  # bytes of flash that are left for other files


def limit(log, store):
    """Give the store of the console's conversation a limit, when it has none."""
    if store.name == log.talk and store.max_entries is None:
        store.max_entries = _TALK_ENTRIES


def load(log, now: int):
    """Read the log of ``stores.Stores``.  Raises ``StoreError`` when it is damaged, ``OSError``."""
    log.places, log.gone, log.kept = None, 0, 0
    log.requests, log.marks = array("I"), array("H")
    end, torn = start(log.path)
    if torn:
        _check_torn(log.path, end, torn)
    log.talk, places, kinds = None, [], {}
    for store in stores(log.agent.image):
        if log.talk is None and store.type == CONVERSATION:
            log.talk = store.name
        limit(log, store)
        kinds[store.name] = store
    drop("header")
    for file, kind, number, offset, length in records(log.path) if end else ():
        if kind == PLACE:
            store, part = log.loads(file.read(length - 3))
            places.append(Place(number, store, part))
        elif kind == CUT:
            cut(log, places[number - 1], file, struct.unpack(">I", file.read(4))[0])
        elif kind == ENTRIES:
            _take(log, places[number - 1], kinds, file, offset)
        else:
            raise StoreError(
                "the memory %s was written by a newer version of clawlite" % log.path,
                "flash that version again",
            )
    log.places, log.end = places, end
    log.room = _room(log)


def records(path: str):
    """Yield (file behind them, kind, place, offset, length) of the records of the log."""
    with open(path, "rb") as file:
        for offset, length in walk(path):
            file.seek(offset)
            kind, number = struct.unpack(">BH", file.read(3))
            yield file, kind, number, offset, length


def _check_torn(path: str, end: int, torn: int):
    """Report the bytes of a torn record as lost.  Raises ``StoreError`` when an intact record
    follows them: then nothing is repaired automatically.

    A record begins with two zeros, which its text does not contain.
    """
    zeros, goes_on = 0, torn > MAX_PAYLOAD + 8
    with open(path, "rb") as file:
        file.seek(end)
        for at in range(end, end + torn):
            zeros = 0 if goes_on or file.read(1) != b"\0" else zeros + 1
            # run to the end, or the generator keeps the file open
            for _ in walk(path, at - 1) if zeros > 1 else ():
                goes_on = True
    if goes_on:
        raise StoreError(
            "the memory %s is damaged at byte %d; %d bytes behind it cannot be read"
            % (path, end, torn),
            "copy it to a computer, and remove it to begin anew",
            {"cause": "damaged"},
        )
    sys.stderr.write("clawlite: the memory's last %d bytes were not whole, and are lost\n" % torn)


def _take(log, place, kinds: dict, file, offset: int):
    """Add the entries of the record at *offset* to the index."""
    _, _, request, _, count = _head(file, offset)
    if request != bytes(16):
        remember(log, offset, request)
    at = offset + HEAD_BYTES
    for _ in range(count):
        file.seek(at)
        n, seconds, ms, tag, size = struct.unpack(ENTRY, file.read(ENTRY_BYTES))
        add(log, place, kinds.get(place.store), file, at, (n, seconds * 1000 + ms, tag))
        at += ENTRY_BYTES + size


def _head(file, offset: int) -> tuple:
    file.seek(offset)
    return struct.unpack(HEAD, file.read(HEAD_BYTES))


def place_of(log, store, part: str):
    """Return the place of a part, or None when it has none."""
    for place in log.places:
        if place.store == store.name and place.part == part:
            return place
    return None


def remember(log, offset: int, request: bytes):
    """Remember the position of a request's record."""
    if len(log.requests) >= _KEPT:
        log.requests, log.marks = log.requests[_KEPT // 2 :], log.marks[_KEPT // 2 :]
    log.requests.append(offset)
    log.marks.append(crc32(request) & 0xFFFF)


def find_request(log, request: bytes, now: int):
    """Return (CRC of its entries, its place, number of its first entry, number of entries) of a
    remembered request, or None.
    """
    mark = crc32(request) & 0xFFFF
    for number in range(len(log.requests) - 1, -1, -1):
        if log.marks[number] == mark:
            with open(log.path, "rb") as file:
                _, place, of, crc, count = _head(file, log.requests[number])
                n, at = head(file, log.requests[number] + HEAD_BYTES)
            at = time_of(at, now)
            if of == request and (not now or not at or now - at <= KEPT_MS):
                return crc, log.places[place - 1], n, count
    return None


# -- entries


def time_of(at: int, now: int) -> int:
    """Return the time *at* of an entry, 0 where the clock was years ahead of *now* when it came."""
    return 0 if now and at > now + AHEAD_MS else at


def head(file, offset: int) -> tuple:
    """Return (n, ms since 1970 or 0) of the entry at *offset*."""
    file.seek(offset)
    n, seconds, ms = struct.unpack(">IIH", file.read(10))
    return n, seconds * 1000 + ms


def raw(file, offset: int) -> tuple:
    """Return (n, ms since 1970 or 0, JSON as bytes) of the entry at *offset*."""
    file.seek(offset)
    n, seconds, ms, _, size = struct.unpack(ENTRY, file.read(ENTRY_BYTES))
    return n, seconds * 1000 + ms, file.read(size)


def read(log, file, offset: int) -> tuple:
    """Return (n, ms since 1970 or 0, content, key or None, metadata or None) of the entry at
    *offset*.
    """
    n, at, data = raw(file, offset)
    content, key, metadata = entry_of(log, n, data)
    return n, at, content, key, metadata


def entry_of(log, n: int, data: bytes) -> list:
    """Return [content, key, metadata], the JSON *data* of entry *n*.  Raises ``ParseError``."""
    found = log.loads(data)
    if not isinstance(found, list) or len(found) != 3:
        raise ParseError("entry %d is no list of three" % n)
    return found


def tag_of(key) -> int:
    """Return the 16 bits of a key that are kept in memory; 0 for no key."""
    return crc32(key.encode()) & 0xFFFF or 1 if key else 0


def positions(place, tag: int = 0):
    """Yield the positions of the entries that are not gone, the newest first; with *tag*, only of
    those that have it.
    """
    for i in range(len(place.offsets) - 1, place.first - 1, -1):
        if place.offsets[i] and (not tag or place.tags[i] == tag):
            yield i


def add(log, place, store, file, offset: int, entry: tuple):
    """Add the entry at *offset* to the index, and remove the entries that it replaces or for which
    the store has no room.

    entry  (n, ms, tag of its key);  store  None: the image no longer has it
    """
    n, at, tag = entry
    most = store and (
        1
        if DOES >> 4 * store.type & SINGLE
        else store.snapshots
        if DOES >> 4 * store.type & SNAPSHOTS
        else None
    )
    if most and tag:
        _shadow(log, place, file, (offset, tag), most - 1)
    place.offsets.append(offset)
    place.tags.append(tag)
    place.count += 1
    place.last, place.at = n, max(at, time_of(place.at, at))
    if store and store.max_entries:
        if not DOES >> 4 * store.type & SINGLE:
            cut(log, place, file, n - store.max_entries + 1)
        elif place.count > store.max_entries:
            _drop(log, place, place.first)
    _trim(place)


def _shadow(log, place, file, newest: tuple, keep: int):
    """Remove older values of the key of the entry at offset ``newest[_OFFSET]``, all but the last
    *keep* before it.
    """
    found = list(positions(place, newest[_TAG]))
    if len(found) > keep:
        key = read(log, file, newest[_OFFSET])[ENTRY_KEY]
        for i in found:
            if read(log, file, place.offsets[i])[ENTRY_KEY] == key:
                keep -= 1
                if keep < 0:
                    _drop(log, place, i)


def _drop(log, place, i: int):
    """Remove the entry at position *i*."""
    place.offsets[i] = 0
    place.count -= 1
    log.gone += 1
    while place.first < len(place.offsets) and not place.offsets[place.first]:
        place.first += 1


def _trim(place):
    """Rebuild the index when many of its entries are gone; this changes positions."""
    if len(place.offsets) - place.count > _TRIM + place.count // 4:
        alive = [i for i in range(place.first, len(place.offsets)) if place.offsets[i]]
        place.offsets, place.tags = (
            array("I", [place.offsets[i] for i in alive]),
            array("H", [place.tags[i] for i in alive]),
        )
        place.first = 0


def cut(log, place, file, n: int):
    """Remove the entries with a number below *n*."""
    while place.count and head(file, place.offsets[place.first])[ENTRY_N] < n:
        _drop(log, place, place.first)


def expire(log, place, store, file, now: int):
    """Remove entries that are too old.  While the clock is unset, the newest time in the log counts
    as now; otherwise a reset would bring removed entries back.

    An entry without a time counts as old as the next one that has one.
    """
    below, now = 0, now or newest(log)
    if store.max_age_s and now:
        for i in range(place.first, len(place.offsets)):
            n, at = head(file, place.offsets[i]) if place.offsets[i] else (0, 0)
            at = time_of(at, now)
            if at >= now - store.max_age_s * 1000:
                break
            if at:
                below = n + 1
    cut(log, place, file, below)


def newest(log) -> int:
    """Return the newest time in the log, ms since 1970; 0 without one."""
    return max([0] + [place.at for place in log.places])


# -- room


def tidy(log, now: int, coming: int):
    """Rewrite the log when it is worthwhile, or when *coming* bytes more need it.  Raises
    ``StoreError`` when there is no room for them.
    """
    alive = sum([place.count for place in log.places])
    if (
        log.gone > log.kept + _LEAST_GONE
        and log.gone > alive
        or log.gone > log.kept
        and log.end + coming > log.room
    ):
        rewrite(log.path, _select(log, now))
        load(log, now)
        log.kept = log.gone
    elif log.end + coming > log.room:
        log.room = _room(log)  # other files may have been removed
    if coming and log.end + coming > log.room:
        raise StoreError(
            "the memory %s has %d bytes, and the flash has no room for more" % (log.path, log.end),
            "remove what is old: retention, or claw.memory.compact",
            {"cause": "full"},
        )


def _room(log) -> int:
    """Return the bytes that the log may have: half of its own size and the free flash together, so
    that it can always be rewritten.
    """
    about = os.statvfs(log.path.rpartition("/")[0] or ".")
    return (log.end + about[BLOCK_BYTES] * about[FREE_BLOCKS] - _SPARE) // 2


def _select(log, now: int):
    """Yield (offset, length) of the records that still count."""
    at = [place.first for place in log.places] + [newest(log)]
    cuts = {number: offset for _, kind, number, offset, _ in records(log.path) if kind == CUT}
    for file, kind, number, offset, length in records(log.path):
        if (
            kind == PLACE
            or kind == CUT
            and cuts[number] == offset
            or kind == ENTRIES
            and _counts(log, log.places[number - 1], at, file, (offset, length, now))
        ):
            yield offset, length


def _counts(log, place, at: list, file, record: tuple) -> bool:
    """Return whether a record of entries is still needed: it has an entry that is not gone, the
    newest entry of its place, the newest time, or a remembered request.

    at  for each place, the position in its index from which to search, since records come in the
        same order; and at the end the newest time, until a record with it was found
    """
    offset, length, now = record
    end, i = offset + length, at[place.number - 1]
    while i < len(place.offsets) and place.offsets[i] < offset:
        i += 1
    at[place.number - 1] = i
    if i < len(place.offsets) and place.offsets[i] < end:
        return True
    _, _, request, _, count = _head(file, offset)
    n, when = head(file, offset + HEAD_BYTES)
    if when and when == at[-1]:
        at[-1] = 0
        return True
    return (
        n <= place.last < n + count
        or request != bytes(16)
        and offset >= log.requests[0]
        and (not now or not time_of(when, now) or now - when <= KEPT_MS)
    )
