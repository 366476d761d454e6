"""Search by words and by vectors, and both in one order.

1. FTS5 finds candidates, the newest that have the words; they are scored here, the same for what is
   in the index and for the newest entries that are not yet: the share of the query's weight that an
   entry has, a word weighing more the fewer entries have it.  0 to 1.
2. No query passes through a large part of the index: bm25 over a word that every other entry has
   takes 30 ms for 100,000 of them, and two words that are never together 5 (docs/adr/0040).
3. Vectors are compared one by one: by sqlite-vec where it is installed, else here, the newest
   ``MAX_VECTORS`` of a place (0.1 s of 384 numbers each, on a laptop).
4. ``words`` alone says what a word is; the index gets its words with spaces between them, those
   that are not ASCII in hexadecimal, as FTS5 has older tables of letters than Python.  Scripts
   that put no spaces between words (Chinese, Japanese, Thai, ...) and Korean, which joins particles
   to them, are divided into pairs of neighbouring letters, and an emoji is a word.
"""

from array import array
from bisect import bisect
from math import hypot, log
from operator import mul
from unicodedata import category, combining, normalize

from clawlite.core.base.errors import QueryFailed
from clawlite.core.image.memories import FTS, LINEAR, VECTOR
from clawlite.linux.memory.encryption import MAX_OPENED
from clawlite.linux.memory.entry import BOX_CONTENT, COLUMNS, ROW_CONTENT, ROW_ID, check

_CONTENT = 1  # position in an entry that is searched
MAX_WORDS = 12  # of a query
MAX_PAIRS = 24  # of one with letters of such scripts, where a word is about two pairs
MAX_RARE = 3  # words by which entries are found; the others count in the score
MOST_OF_ALL, MOST_OF_ONE = 50, 40  # candidates that have all of these, or one word
MAX_CANDIDATES = 80  # that are enough
MAX_LOOKED = 500  # entries of a word that are passed through to find those with other words too
MAX_TAIL = 1000  # of the newest entries that no index has
MAX_VECTORS = 5000  # of one place, that Python compares
MAX_COMPARED = 100000  # that sqlite-vec does
_K = 60  # of the reciprocal rank (Cormack, Clarke, Büttcher 2009)
# of each byte of an ASCII text: what its words are told apart by, and what they have in it
_PLAIN = bytes([ord(chr(c).lower()) if chr(c).isalnum() else 32 for c in range(128)] + [32] * 128)
_COMMON = 0.1  # weight of a word that every entry has


# First letters of what is divided into pairs, and what follows the last one: Thai and Lao; Burmese;
# Khmer; Tai; jamo; kana, bopomofo, Han; Yi; Hangul; Han again.
_DENSE = (
    "\u0e00\u0f00" "\u1000\u10a0" "\u1780\u1800" "\u1950\u19e0" "\u1100\u1200" "\u2e80\ua4d0"
    "\ua960\ua980" "\uac00\ud800" "\uf900\ufb00" "\U00016fe0\U00018d80" "\U0001aff0\U0001b170"
    "\U00020000\U00040000"
)  # fmt: skip
_DENSE = "".join(sorted(_DENSE))
_FIRST_DENSE = _DENSE[0]
_VOICED = "\u3099\u309a"  # marks that make another letter in Japanese


def words(text: str, is_query: bool = False) -> list:
    """Return the words of *text* as the index has them: runs of letters and digits, without case
    and marks; pairs and single letters of dense scripts, of a query only pairs where there are any;
    emoji.
    """
    if text.isascii():
        return text.encode().translate(_PLAIN).decode().split()
    plain = normalize("NFKD", text.lower()).lower()  # the parts of one letter may be large: №, ㎒
    # composed again: Hangul syllables are letters, and their parts are none
    plain = normalize("NFC", "".join([c for c in plain if not combining(c) or c in _VOICED]))
    if _is_spaced(plain):
        return "".join([c if c.isalnum() else " " for c in plain]).split()
    return _split_dense(plain, is_query)


def index_text(text: str) -> str:
    """Return what FTS5 is given for *text*: it finds the same words in it as ``words``."""
    return text if text.isascii() else " ".join(map(_term, words(text)))


def _term(word: str) -> str:
    """Return *word* as the index has it."""
    return word if word.isascii() else word.encode().hex()


def reindex(db):
    """Give the index the words that ``words`` finds in the texts of an earlier version, which it
    was given as they are.  Cost: all entries are read, those that are not ASCII are indexed.
    """
    ids = db.run(
        "SELECT id FROM entries NOT INDEXED WHERE typeof(content)='text' AND "
        "length(content)<length(CAST(content AS BLOB)) AND id IN (SELECT id FROM words_docsize)"
    ).fetchall()
    for (id,) in ids:
        (data,) = db.row("SELECT CAST(content AS BLOB) FROM entries WHERE id=?", (id,))
        try:
            text = data.decode()
        except UnicodeDecodeError:  # a disk has changed it; it is set aside when it is read
            continue
        db.run("INSERT INTO words(words, rowid, content) VALUES('delete', ?, ?)", (id, text))
        db.run("INSERT INTO words(rowid, content) VALUES(?, ?)", (id, index_text(text)))


def _is_spaced(text: str) -> bool:
    """Return whether *text* has neither dense scripts nor emoji."""
    return not text or max(text) < _FIRST_DENSE


def _split_dense(plain: str, is_query: bool) -> list:
    found, word, run = [], "", ""
    for c in plain + " ":
        is_letter = c.isalnum()
        if is_letter and bisect(_DENSE, c) & 1:
            run += c
            continue
        if run and category(c)[0] == "M":
            continue  # a vowel or a tone, which belongs to the letter
        if run:
            found += [word] * bool(word) + _pairs(run, is_query)
            word = run = ""
        if is_letter:
            word += c
            continue
        if word:
            found.append(word)
            word = ""
        if _is_emoji(c):
            found.append(c)
    return found


def _pairs(run: str, is_query: bool) -> list:
    pairs = [run[at : at + 2] for at in range(len(run) - 1)]
    return pairs if is_query and pairs else [*run, *pairs]


def _is_emoji(c: str) -> bool:
    """Return whether *c* is a picture, and no arrow, line or block of a table."""
    return c >= "\u2300" and not "\u2500" <= c < "\u25a0" and category(c) == "So"


def _query_words(text: str) -> list:
    """Return the words of a query, each once."""
    most = MAX_WORDS if _is_spaced(text) else MAX_PAIRS
    return list(dict.fromkeys(words(text, True)))[:most]


def search(db, place, floor: int, store, box, query: tuple) -> tuple:
    """Return ([(id, score 0..1), ...] of the entries of *place* from the id *floor* on, the best
    first; None or what a caller must know).

    box    ``encryption.EntryCipher`` of an encrypted store, else None
    query  (text, vector or None, most)
    """
    text, vector, top = query
    by_text = [] if store.search == VECTOR else _by_text(db, place, floor, box, text)
    by_vector, notice = (
        ([], None)
        if vector is None or store.search == FTS
        else _by_vector(db, place, floor, store, box, vector)
    )
    if not by_vector or not by_text:
        return (by_vector or by_text)[:top], notice
    scores = {}
    for found in (by_text, by_vector):
        for rank, (id, score) in enumerate(found):
            part = score / 2 if store.fusion == LINEAR else (_K + 1) / (_K + 1 + rank) / 2
            scores[id] = scores.get(id, 0.0) + part
    return sorted(scores.items(), key=_best)[:top], notice


def _best(found: tuple) -> tuple:
    id, score = found
    return -score, -id


# -- words


def _by_text(db, place, floor: int, box, text: str) -> list:
    wanted = _query_words(text)
    if not wanted:
        return []
    total = max(1, place.last - floor + 1)
    counts, ids = (
        _candidates(db, place, floor, wanted)
        if place.indexed >= floor and place.has_words
        else (dict.fromkeys(wanted, 0), [])
    )
    rows = (
        db.run(
            "SELECT id, content FROM entries WHERE id IN (%s)" % ",".join(map(str, ids))
        ).fetchall()
        if ids
        else []
    )
    plain = sorted([word for word in wanted if word.isascii()], key=counts.get)[:MAX_RARE]
    tail = (
        max(floor, place.indexed + 1, place.last - MAX_TAIL + 1)
        if place.has_words
        else max(floor, place.last - MAX_OPENED + 1)
    )
    for row in db.run(
        "SELECT %s FROM entries WHERE id BETWEEN ? AND ? ORDER BY id DESC"
        % (COLUMNS if box else "id, content"),
        (tail, place.last),
    ):
        if box:
            check(row, db.path)
        id, content = (row[ROW_ID], box.unpack(row[ROW_CONTENT])[BOX_CONTENT]) if box else row
        if content and _may_have(content, plain):
            rows.append((id, content))
    return _rank(rows, wanted, counts, total)


def score_rows(rows: list, text: str) -> list:
    """Return [(id, score), ...] of *rows* [(id, content)] that have words of *text*, the best
    first; each word weighs the same.
    """
    wanted = _query_words(text)
    return (
        _rank(
            [row for row in rows if _may_have(row[_CONTENT], wanted)],
            wanted,
            dict.fromkeys(wanted, 0),
            1,
        )
        if wanted
        else []
    )


def _rank(rows: list, wanted: list, counts: dict, total: int) -> list:
    weights = {word: max(_COMMON, log(1 + total / (1 + counts[word]))) for word in wanted}
    whole = sum(weights.values())
    found = []
    for id, content in rows:
        score = _score(content, weights) / whole
        if score:
            found.append((id, round(score, 4)))
    return sorted(found, key=_best)


def _candidates(db, place, floor: int, wanted: list) -> tuple:
    """Return ({word: how many indexed entries have it, about}, ids): the newest with the rarest
    words together, then with each.
    """
    counts, of_word = {}, {}
    for word in wanted:
        of_word[word] = ids = _newest(db, place, floor, [word], MOST_OF_ONE)
        counts[word] = len(ids)
        # there are more: as many as if all were as close together as these
        if len(ids) == MOST_OF_ONE:
            counts[word] = (
                MOST_OF_ONE * (place.indexed - floor + 1) // (place.indexed - ids[-1] + 1)
            )
    known = sorted([word for word in wanted if of_word[word]], key=counts.get)
    found = dict.fromkeys(_together(db, place, floor, known[:MAX_RARE]) if len(known) > 1 else [])
    for word in known:
        if len(found) >= MAX_CANDIDATES:
            break
        found.update(dict.fromkeys(of_word[word]))
    return counts, list(found)


def _together(db, place, floor: int, every: list) -> list:
    """Return the ids of the newest indexed entries that have *every* word, the rarest first in it.

    FTS5 goes through the words of an AND in turns, from the newest entry of all places until it
    has found enough, and no LIMIT or range of ids ends that where it finds nothing.  Its rarest
    word bounds it.  Where that is in too many entries, the newest with each word are compared.
    """
    (count,) = db.row(
        "SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ? LIMIT ?)",
        ('"%s"' % _term(every[0]), MAX_LOOKED + 1),
    )
    if count <= MAX_LOOKED:
        return _newest(db, place, floor, every, MOST_OF_ALL)
    ids = _newest(db, place, floor, every[:1], MAX_LOOKED)
    for word in every[1:]:
        there = set(_newest(db, place, floor, [word], MAX_LOOKED))
        ids = [id for id in ids if id in there]
    return ids[:MOST_OF_ALL]


def _newest(db, place, floor: int, every: list, most: int) -> list:
    """Return the ids of the newest indexed entries that have *every* word."""
    match = " AND ".join(['"%s"' % _term(word) for word in every])
    rows = db.run(
        "SELECT rowid FROM words WHERE words MATCH ? AND rowid BETWEEN ? AND ? ORDER BY "
        "rowid DESC LIMIT ?",
        (match, floor, place.indexed, most),
    )
    return [id for (id,) in rows]


def _may_have(content: str, wanted: list) -> bool:
    """Return False for a text that has none of the words, as far as that is told at once; of an
    ASCII text those that are ASCII count.
    """
    if not content.isascii():
        return True
    lower = content.lower()
    for word in wanted:
        if word in lower:
            return True
    return False


def _score(content: str, weights: dict) -> float:
    """Return how much of the query *content* has: each word's weight, more of it the more often
    it is there, less in a long text.
    """
    there = words(content)
    length = 0.2 + len(there) / 400
    found = list(filter(weights.__contains__, there))
    score = 0.0
    for word in weights if found else ():
        if count := found.count(word):
            score += weights[word] * count / (count + length)
    return score


# -- vectors


def pack(vector: list) -> bytes:
    """Return *vector* as the database has it: of length 1, float32."""
    size = hypot(*vector)  # also of numbers whose squares are none
    return array("f", [number / size for number in vector]).tobytes()


def _by_vector(db, place, floor: int, store, box, vector: list) -> tuple:
    """Return ([(id, score), ...], None or that not all were compared).  Raises ``QueryFailed``
    where vectors alone are searched then.
    """
    own = pack(vector)
    is_fast = not box and db.compares_vectors()
    notice, most = None, MAX_COMPARED if is_fast else MAX_VECTORS
    rows = "SELECT id, vector FROM vectors WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
    if (
        len(
            db.run(
                "SELECT 1 FROM vectors WHERE id BETWEEN ? AND ? LIMIT ?",
                (floor, place.last, most + 1),
            ).fetchall()
        )
        > most
    ):
        notice = "store %s has more than %d vectors in this part, and no more are compared" % (
            store.name,
            most,
        )
        if store.search == VECTOR:
            from clawlite.linux.files.packages import install

            raise QueryFailed(
                notice,
                "set retention.max_entries"
                if box or is_fast
                else install("vectors") + ", with a Python whose SQLite loads extensions, or set "
                "retention.max_entries",
            )
    if is_fast:
        found = db.run(
            "SELECT id, 1 - vec_distance_cosine(vector, ?) / 2 FROM (%s) WHERE "
            "length(vector)=?" % rows,
            (own, floor, place.last, most, len(own)),
        ).fetchall()
        return sorted(
            [(id, round(max(0.0, min(1.0, score)), 4)) for id, score in found], key=_best
        ), notice
    numbers, found = array("f", own), []
    for id, data in db.run(rows, (floor, place.last, most)):
        if box:
            data = box.open(data)
        if len(data) == len(own):
            found.append(
                (
                    id,
                    round(
                        max(0.0, min(1.0, (1 + sum(map(mul, numbers, array("f", data)))) / 2)), 4
                    ),
                )
            )
    return sorted(found, key=_best), notice
