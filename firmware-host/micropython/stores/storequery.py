"""Queries of a board's stores: by key, by time, by words.  Loaded for one request, and dropped.

1. The results are those of linux/memory/stores.py and linux/memory/search.py, in the same order.
   Without an index of words a Pi, too, scores each entry by itself, with equal weights of the words
   (it does so for up to 512 entries of a part).
2. Cost: a query by words reads every entry of its part once.  Only entries that may contain one of
   the first three words are split into words.
3. An answer is limited to what a board can send at once; ``truncated`` says that there is more.
"""

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import InvalidParams
from clawlite.core.image.memories import DOES, SINGLE
from storelog import (
    ENTRY_AT,
    ENTRY_KEY,
    entry_of,
    expire,
    head,
    time_of,
    place_of,
    positions,
    raw,
    read,
    tag_of,
)

MAX_WORDS = 12  # of a query
MAX_RARE = 3  # words that an entry must have one of; the others only count in the score
# characters of content in one answer; each entry counts _EACH more, for its objects
MAX_ANSWER = 8192
_EACH = 192
_FIRST, _LAST = range(2)  # positions in a span of time


def query(log, store, part: str, details: tuple, now: int) -> dict:
    kind, what, top, vector = details
    if vector is not None:
        raise InvalidParams("query.vector: a board keeps no vectors", "ask with words alone")
    place = place_of(log, store, part)
    if place is None:
        return {"entries": []}
    with open(log.path, "rb") as file:
        expire(log, place, store, file, now)
        if kind == "key":
            most = 1 if DOES >> 4 * store.type & SINGLE else min(top, store.snapshots or top)
            return _answer(log, place, file, _by_key(log, place, file, what, most), top, now)
        if kind == "time-range":
            answer = _answer(log, place, file, _by_time(place, file, what, now), top, now)
            answer["entries"].reverse()
            return answer
        return _answer(log, place, file, _by_words(log, place, file, what, top), top, now)


def _by_key(log, place, file, key: str, most: int):
    """Yield (offset, None) of the newest *most* entries of *key*, the newest first."""
    for i in positions(place, tag_of(key)):
        if most and read(log, file, place.offsets[i])[ENTRY_KEY] == key:
            most -= 1
            yield place.offsets[i], None


def _by_time(place, file, span, now: int):
    """Yield (offset, None) of the entries in *span* (first and last ms), the newest first, without
    the entries that have no time.  With None, of all entries.

    An entry that came while the clock was years ahead counts as old as the one after it.
    """
    later = now
    for i in positions(place):
        at = span and head(file, place.offsets[i])[ENTRY_AT]
        if at:
            at = later = time_of(at, now) or later
        if at and at < span[_FIRST]:
            return
        if not span or at and at <= span[_LAST]:
            yield place.offsets[i], None


def _by_words(log, place, file, text: str, top: int) -> list:
    """Return [(offset, score 0..1), ...] of the best *top* entries, the best first."""
    from words import words

    wanted = []
    for word in words(text):
        if word not in wanted and len(wanted) < MAX_WORDS:
            wanted.append(word)
    found = []
    for i in positions(place) if wanted else ():
        n, _, data = raw(file, place.offsets[i])
        if not _may_have(data, wanted[:MAX_RARE]):
            continue
        content = entry_of(log, n, data)[0]
        text = content if isinstance(content, str) else log.dumps(content)
        score = (
            round(_score(words(text), wanted), 4)
            if _may_have(text.encode(), wanted[:MAX_RARE])
            else 0
        )
        if score:
            found.append((-score, -n, place.offsets[i]))
            if len(found) > 2 * top + 32:
                found = sorted(found)[:top]
    return [(offset, -score) for score, _, offset in sorted(found)[:top]]


def _may_have(data: bytes, wanted: list) -> bool:
    """Return False for a text that clearly has none of the words; a text beyond ASCII may have
    them.
    """
    lower = data.lower()
    for word in wanted:
        if word in lower:
            return True
    return len(str(data, "utf-8")) < len(data)


def _score(there: list, wanted: list) -> float:
    """Return how well *there*, the words of an entry, match the query: a word counts more the more
    often it occurs, and less in a long text.
    """
    total, length = 0.0, 0.2 + len(there) / 400
    for word in wanted:
        count = there.count(word)
        total += count / (count + length)
    return total / len(wanted)


def _answer(log, place, file, rows, top: int, now: int) -> dict:
    """Return {"entries"} with at most *top* of *rows* in the form that callers see; with
    "truncated" when there are more, or they are too long.
    """
    found, size = [], 0
    for offset, score in rows:
        n, at, content, key, metadata = read(log, file, offset)
        at = time_of(at, now)
        size += len(content if isinstance(content, str) else log.dumps(content)) + _EACH
        if len(found) >= top or found and size > MAX_ANSWER:
            return {"entries": found, "truncated": True}
        entry = {
            "id": "entry-%d-%d" % (place.number, n),
            "content": content,
            "timestamp": "%s.%03dZ" % (iso8601(at // 1000)[:-1], at % 1000) if at else "unset",
        }
        if score is not None:
            entry["score"] = score
        if key is not None:
            entry["key"] = key
        if metadata is not None:
            entry["metadata"] = metadata
        found.append(entry)
    return {"entries": found}
