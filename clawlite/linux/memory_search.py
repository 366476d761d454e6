"""Search by words and by vectors, and both in one order.

1. FTS5 finds candidates; they are scored here, the same for what is in the index and for the newest entries that are not yet:
   the share of the query's weight that an entry has, a word weighing more the fewer entries have it.  0 to 1.
2. No query passes through a large part of the index: words that too many entries have only count in the score; when all are such,
   the newest entries with the rarest of them are the candidates.
3. Vectors are compared one by one, the newest ``MAX_VECTORS`` of a place (0.1 s of 384 numbers each, on a laptop).
"""
from array import array
from math import log, sqrt
from operator import mul
from unicodedata import combining, normalize

from clawlite.core.memories import FTS, LINEAR, VECTOR

MAX_WORDS = 16                  # of a query
MAX_SCORED = 4000               # rows that bm25 passes through
MAX_CANDIDATES = 100
MAX_TAIL = 1000                 # of the newest entries that no index has
MAX_VECTORS = 5000              # of one place
_K = 60                         # of the reciprocal rank (Cormack, Clarke, Büttcher 2009)
_COMMON = 0.1                   # weight of a word that every entry has


def words(text: str) -> list:
    """Return the words of *text* as the index has them: runs of letters and digits, without case and marks."""
    plain = "".join([c for c in normalize("NFKD", text.lower()) if not combining(c)])
    return "".join([c if c.isalnum() else " " for c in plain]).split()


def search(db, place, floor: int, store, query: tuple) -> list:
    """Return [(id, score 0..1), ...] of the entries of *place* from the id *floor* on, the best first.

    query  (text, vector or None, most)
    """
    text, vector, top = query
    by_text = [] if store.search == VECTOR else _by_text(db, place, floor, text)
    by_vector = [] if vector is None or store.search == FTS else _by_vector(db, place, floor, vector)
    if not by_vector or not by_text:
        return (by_vector or by_text)[:top]
    scores = {}
    for found in (by_text, by_vector):
        for rank, (id, score) in enumerate(found):
            part = score / 2 if store.fusion == LINEAR else (_K + 1) / (_K + 1 + rank) / 2
            scores[id] = scores.get(id, 0.0) + part
    return sorted(scores.items(), key=_best)[:top]


def _best(found: tuple) -> tuple:
    return -found[1], -found[0]


# -- words

def _by_text(db, place, floor: int, text: str) -> list:
    wanted = list(dict.fromkeys(words(text)))[:MAX_WORDS]
    if not wanted:
        return []
    total = max(1, place.last - floor + 1)
    known = {word: (db.row("SELECT doc FROM terms WHERE term=?", (word,)) or (0,))[0] for word in wanted}
    rows = []
    if place.indexed >= floor:
        rows = _candidates(db, place, floor, known)
    tail = max(floor, place.indexed + 1, place.last - MAX_TAIL + 1)
    rows += db.run("SELECT id, content FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC", (tail, place.last)).fetchall()
    weights = {word: max(_COMMON, log(1 + total / (1 + known[word]))) for word in wanted}
    whole = sum(weights.values())
    found = []
    for id, content in rows:
        score = _score(content or "", weights) / whole
        if score:
            found.append((id, round(score, 4)))
    return sorted(found, key=_best)


def _candidates(db, place, floor: int, known: dict) -> list:
    """Return [(id, content)] of indexed entries that have the words of the query, the best by bm25."""
    rare = sorted([word for word in known if known[word]], key=known.get)
    chosen, rows = [], 0
    for word in rare:
        rows += known[word]
        if chosen and rows > MAX_SCORED:
            break
        chosen.append(word)
    if not chosen:
        return []
    order = "rank" if rows <= MAX_SCORED or len(chosen) > 1 else "rowid DESC"
    asked = " OR ".join(['"%s"' % word for word in chosen])
    ids = db.run("SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY %s LIMIT ?" % order,
                 (asked, floor, place.indexed, MAX_CANDIDATES)).fetchall()
    return [row for row in [db.row("SELECT id, content FROM entries WHERE id=?", id) for id in ids] if row is not None]


def _score(content: str, weights: dict) -> float:
    """Return how much of the query *content* has: each word's weight, more of it the more often it is there, less in a long text."""
    there = words(content)
    counts = dict.fromkeys(weights, 0)
    for word in there:
        if word in counts:
            counts[word] += 1
    length = 0.2 + len(there) / 400
    return sum([weights[word] * count / (count + length) for word, count in counts.items() if count])


# -- vectors

def packed(vector: list) -> bytes:
    """Return *vector* as the database has it: of length 1, float32."""
    size = sqrt(sum([number * number for number in vector]))
    return array("f", [number / size for number in vector]).tobytes()


def _by_vector(db, place, floor: int, vector: list) -> list:
    own = array("f", packed(vector))
    size = len(own) * own.itemsize
    found = []
    for id, data in db.run("SELECT id, vector FROM vectors WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?", (floor, place.last, MAX_VECTORS)):
        if len(data) == size:
            other = array("f", data)
            found.append((id, round(max(0.0, min(1.0, (1 + sum(map(mul, own, other))) / 2)), 4)))
    return sorted(found, key=_best)
