"""The requests that write to a board's stores: store and compact.  Loaded for one request, and
dropped.

The verbs are those of linux/memory/stores.py, with the same results.  When a verb returns, its data
is completely in flash and survives a power cut."""

import struct
from binascii import crc32, unhexlify

from appendlog import MAX_PAYLOAD, append
from clawlite.core.base.errors import InvalidParams, StoreError
from clawlite.core.image.memories import DOES, SEARCHED, SINGLE, TRUNCATE
from storelog import (
    CUT,
    ENTRIES,
    ENTRY,
    ENTRY_BYTES,
    ENTRY_JSON,
    HEAD,
    HEAD_BYTES,
    KEPT_MS,
    PLACE,
    add,
    find_request,
    limit,
    cut,
    expire,
    head,
    time_of,
    place_of,
    positions,
    raw,
    remember,
    tag_of,
    tidy,
)
from storeplace import Place

MAX_CONTENT = 4096  # bytes of one entry
MAX_PLACES = 32  # of all stores
# in place of the id of a request: a turn that was imported from that file (oldturns.py)
OLD = b"conversation.log"
_MORE = 600  # bytes of a new place's record
# positions in a request, as ``put`` takes it; in what ``find_request`` returns for it
_ID, _MARK = range(2)
_KNOWN_MARK, _KNOWN_PLACE, _KNOWN_FIRST, _KNOWN_COUNT = range(4)
WINDOW = 1000  # entries that a compaction leaves when the store has no limit


def _new(log, store, part: str):
    """Create and return the place of *part*.  Raises ``StoreError``."""
    if len(log.places) >= MAX_PLACES:
        raise StoreError(
            "store %s: this board keeps %d parts, and takes no other identity or "
            "channel" % (store.name, MAX_PLACES),
            "use a store of scope global",
        )
    place = Place(len(log.places) + 1, store.name, part)
    log.end = append(
        log.path,
        struct.pack(">BH", PLACE, place.number) + log.dumps([store.name, part]).encode(),
        log.end,
    )
    log.places.append(place)
    return place


def _store(log, store, part: str, details: tuple, now: int) -> dict:
    request_id, entries = details
    limit(log, store)
    texts = [as_text(log, entry, number) for number, entry in enumerate(entries)]
    record = bytes(16), 0
    if request_id:
        record = (
            unhexlify(request_id.replace("-", "")),
            _mark([store.name, part, [entry[:3] for entry in entries]], 0),
        )
        known = find_request(log, record[_ID], now)
        if known:
            if known[_KNOWN_MARK] != record[_MARK]:
                raise InvalidParams(
                    "context.request_id: another request had this id within %d s"
                    % (KEPT_MS // 1000),
                    "send a new id with new entries",
                )
            return _result(known[_KNOWN_PLACE], known[_KNOWN_FIRST], known[_KNOWN_COUNT])
    place = put(log, store, part, record, entries, texts, now)
    stored = _result(place, place.last - len(texts) + 1, len(texts))
    if store.compacts and store.compaction == TRUNCATE and _is_full(log, place, store, now):
        stored["is_full"] = True
    return stored


def put(log, store, part: str, record: tuple, entries: list, texts: list, now: int):
    """Append one request; return its place.

    record   (16 bytes of its id, CRC-32 of its entries).  Without an id it is a turn: when the
             board has no room for it, the oldest entries of its place are removed, so that a
             conversation can go on
    entries  [(key, ...), ...];  texts: the same, as they are stored in the log
    Raises ``InvalidParams``, ``StoreError``, ``OSError``.
    """
    size = sum([len(text) for text in texts]) + ENTRY_BYTES * len(texts) + HEAD_BYTES
    if size > MAX_PAYLOAD:
        raise InvalidParams(
            "entries: expected at most %d bytes at once, got %d" % (MAX_PAYLOAD, size),
            "send fewer at once",
        )
    try:
        place = _ready(log, store, part, entries, size, now)
    except StoreError:
        place = place_of(log, store, part)
        if (
            record[_ID] not in (bytes(16), OLD)
            or not place
            or not _gives_way(log, place, size + _MORE, len(entries))
        ):
            raise
        place = _ready(log, store, part, entries, size, now)
    at = max(now, time_of(place.at, now)) if now else 0
    _write(
        log,
        place,
        store,
        record,
        [(place.last + 1 + i, at, tag_of(entries[i][0]), texts[i]) for i in range(len(texts))],
    )
    return place


def _ready(log, store, part: str, entries: list, size: int, now: int):
    """Return the place of *part*, with room for *entries*, which have *size* bytes."""
    tidy(log, now, size + _MORE)
    place = place_of(log, store, part) or _new(log, store, part)
    _check_room(log, place, store, entries)
    return place


def _result(place, first: int, count: int) -> dict:
    return {
        "stored": count,
        "ids": ["entry-%d-%d" % (place.number, n) for n in range(first, first + count)],
    }


def as_text(log, entry: tuple, number: int) -> bytes:
    """Return an entry as it is stored in the log."""
    key, content, metadata, vector = entry
    if vector is not None:
        raise InvalidParams(
            "entries[%d].vector: a board keeps no vectors" % number,
            "leave it out: entries are found by their words",
        )
    if len((content if isinstance(content, str) else log.dumps(content)).encode()) > MAX_CONTENT:
        raise InvalidParams(
            "entries[%d].content: expected at most %d bytes" % (number, MAX_CONTENT)
        )
    return log.dumps([content, key, metadata]).encode()


def _mark(value, crc: int) -> int:
    """Return a CRC-32 of *value* that does not depend on the order of keys."""
    if isinstance(value, dict):
        for key in sorted(value):
            crc = _mark(value[key], crc32(key.encode() + b"\n", crc))
    elif isinstance(value, (list, tuple)):
        for item in value:
            crc = _mark(item, crc32(b",", crc))
    else:
        crc = crc32((value if isinstance(value, str) else repr(value)).encode(), crc)
    return crc & 0xFFFFFFFF


def _check_room(log, place, store, entries: list):
    """Raise ``StoreError`` when the index would have more entries than this board has memory
    for.
    """
    more = len(entries)
    total = sum([place.count for place in log.places]) + more
    if total > log.most and DOES >> 4 * store.type & SINGLE:
        more -= sum(
            [1 for entry in entries if next(positions(place, tag_of(entry[0])), None) is not None]
        )
    total = (
        total
        - len(entries)
        + (min(more, max(0, store.max_entries - place.count)) if store.max_entries else more)
    )
    if total > log.most:
        raise StoreError(
            "the memory would have %d entries, and this board has room for %d" % (total, log.most),
            "give each store retention.max_entries, or send claw.memory.compact",
            {"cause": "full"},
        )


def _gives_way(log, place, size: int, more: int) -> bool:
    """Remove the older half of *place*, or as much more as makes room for *size* bytes and *more*
    entries; return False when that is not enough.
    """
    need, keep = log.end + size - log.room, place.count
    more += sum([place.count for place in log.places]) - log.most
    with open(log.path, "rb") as file:
        for i in range(place.first, len(place.offsets)):
            if place.offsets[i] and keep > 1:
                need -= ENTRY_BYTES + len(raw(file, place.offsets[i])[ENTRY_JSON])
                more -= 1
                keep -= 1
                if need <= 0 and more <= 0 and keep <= place.count // 2:
                    _leave(log, place, file, keep)
                    return True
    return False


def _write(log, place, store, record: tuple, entries: list):
    """Append a record (request, mark) of *entries* [(n, ms, tag, bytes)], and add them to the
    index.
    """
    request, mark = record
    payload = bytearray(struct.pack(HEAD, ENTRIES, place.number, request, mark, len(entries)))
    for n, at, tag, text in entries:
        payload.extend(struct.pack(ENTRY, n, at // 1000, at % 1000, tag, len(text)))
        payload.extend(text)
    log.end = append(log.path, payload, log.end)
    offset = log.end - len(payload)
    if request != bytes(16):
        remember(log, offset, request)
    offset += HEAD_BYTES
    with open(log.path, "rb") as file:
        for n, at, tag, text in entries:
            add(log, place, store, file, offset, (n, at, tag))
            offset += 14 + len(text)


def _is_full(log, place, store, now: int) -> bool:
    """Return whether *place* should be compacted.  After True, the answer is False until some more
    entries have come.
    """
    most = store.max_entries or WINDOW
    if place.last - place.asked < max(8, most // 8) and place.asked:
        return False
    with open(log.path, "rb") as file:
        expire(log, place, store, file, now)
    if place.count < most:
        return False
    place.asked = place.last
    return True


# -- compact


def _compact(log, store, part, strategy: int, now: int) -> tuple:
    before = after = 0
    limit(log, store)
    most = store.max_entries or WINDOW
    keep = max(1, most // 2) if strategy == TRUNCATE else most
    for place in [
        place for place in log.places if place.store == store.name and part in (None, place.part)
    ]:
        with open(log.path, "rb") as file:
            expire(log, place, store, file, now)
            before += place.count
            if place.count > keep and DOES >> 4 * store.type & SEARCHED:
                _leave(log, place, file, keep)
            after += place.count
    if log.places and log.end:
        tidy(log, now, 0)
    return before, after


def _leave(log, place, file, keep: int):
    """Remove all but the newest *keep* entries, 1 or more."""
    for i in positions(place):
        keep -= 1
        if not keep:
            n = head(file, place.offsets[i])[0]
            log.end = append(log.path, struct.pack(">BHI", CUT, place.number, n), log.end)
            cut(log, place, file, n)
            break


VERBS = {"store": _store, "compact": _compact}
