"""The content of an entry, as all stores see it, and its row in the database with a checksum, so
that a disk cannot change an entry unnoticed (docs/adr/0040).

1. The column ``crc`` of a row of ``entries`` is the CRC-32 of its other columns.  A row without it
   is damaged: a changed bit in a row's header can hide the last column.  A migration adds it to the
   rows of earlier versions.
2. An entry that differs from its checksum is never returned.  All such entries are moved unchanged
   into the table ``damaged``, and that is reported.
3. SQLite's own data (its pages, the index of words) is checked by ``clawlite doctor``.
"""

from binascii import crc32

from clawlite.core.base.errors import InvalidParams, StoreError
from clawlite.core.base.render import canonical
from clawlite.linux.files.files import print_to_stderr

MAX_CONTENT = 262144  # bytes of one entry
BITS = 40  # of an id, below the number of its place
COLUMNS = "id, at, key, content, is_json, metadata, request, crc"
# positions in a row of those, and in what ``unpack`` returns of an encrypted entry
ROW_ID, ROW_KEY, ROW_CONTENT, ROW_METADATA = 0, 2, 3, 5
BOX_CONTENT = 1


def text_of(content, number: int, dumps) -> tuple:
    """Return (text, whether it is JSON) of the content of entry *number* of a request.  Raises
    ``InvalidParams``.
    """
    text = content if isinstance(content, str) else dumps(content)
    if len(text.encode()) > MAX_CONTENT:
        raise InvalidParams(
            "entries[%d].content: expected at most %d bytes" % (number, MAX_CONTENT)
        )
    return text, text is not content


def request_bytes(store, part: str, entries: list) -> bytes:
    """Return the content of a request as bytes.  Four bytes of a digest of it distinguish requests
    with the same id; that detects mistakes, not attacks.
    """
    parts = ["%s\n%s" % (store.name, part)]
    for entry in entries:
        parts += [value if isinstance(value, str) else canonical(value) for value in entry]
    return "\n".join(parts).encode()


class Altered(StoreError):
    """An entry is not as it was written."""


def checksum(columns) -> int:
    """Return the CRC-32 of *columns*, those of ``COLUMNS`` before ``crc``, with their kinds and
    lengths.  Never raises: a row that was changed has values of any kind.
    """
    parts = []
    for value in columns:
        if value is None:
            parts.append(b"none")
        elif isinstance(value, int):
            parts.append(b"%d" % value)
        elif isinstance(value, bytes):
            parts += (b"blob %d" % len(value), value)
        else:
            data = str(value).encode("utf-8", "surrogateescape")
            parts += (b"text %d" % len(data), data)
    return crc32(b"\n".join(parts))


def insert(db, rows: list):
    """Write *rows*, lists or tuples of ``COLUMNS`` without ``crc``."""
    db.many(
        "INSERT INTO entries VALUES(?, ?, ?, ?, ?, ?, ?, ?)",
        [(*row, checksum(row)) for row in rows],
    )


def check(row, path: str):
    """Raise ``Altered`` when *row*, of ``COLUMNS``, differs from its checksum; *path*: the file."""
    if row[-1] != checksum(row[:-1]):
        raise Altered(
            "the memory %s: an entry is damaged" % path,
            "make room for the file, and make it writable: then it is set aside",
        )


def is_altered(e) -> bool:
    """Return whether *e* means that an entry was altered, also when its text is no UTF-8 any
    more.
    """
    return isinstance(e, Altered) or (
        type(e).__module__ == "sqlite3" and "Could not decode to UTF-8" in str(e)
    )


def differing(rows) -> list:
    """Return the ids of *rows* that differ from their checksums.  The rows have ``COLUMNS``, with
    texts as ``any_text`` returns them.
    """
    return [row[0] for row in rows if row[-1] != checksum(row[:-1])]


def fill(db):
    """Give each row its checksum.  Cost: all rows are read and written."""
    sums = db.with_any_text(
        "SELECT %s FROM entries NOT INDEXED" % COLUMNS,
        lambda rows: [(checksum(row[:-1]), row[0]) for row in rows],
    )
    db.many("UPDATE entries SET crc=? WHERE id=?", sums)


def any_text(data: bytes) -> str:
    """Return *data* as text; it may be invalid UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def name(id: int) -> str:
    """Return the id of a row as callers see it."""
    return "entry-%d-%d" % (id >> BITS, id & (1 << BITS) - 1)


def set_aside(db) -> bool:
    """Move all altered entries into the table ``damaged``, in one commit, and report it.  Return
    whether there were any.  Raises ``_sqlite3.Error``, ``StoreError``.  Cost: all entries are read.
    """
    db.begin(True)
    ids = db.with_any_text("SELECT %s FROM entries NOT INDEXED" % COLUMNS, differing)
    db.run("REINDEX keyed")  # a key that differs is in there as it was, or the index differs
    for id in ids:
        db.run("INSERT INTO damaged SELECT %s FROM entries WHERE id=?" % COLUMNS, (id,))
        if not db.run("DELETE FROM entries WHERE id=?", (id,)).rowcount:
            raise Altered(
                "the memory %s is damaged: %s is not in its place" % (db.path, name(id)),
                "move the file away to start empty, or restore a copy",
            )
        db.run("DELETE FROM vectors WHERE id=?", (id,))
    db.commit()
    if ids:
        print_to_stderr(
            "the memory %s: %d of its entries were damaged; they are no longer used, and "
            "are kept in its table damaged" % (db.path, len(ids))
        )
    return bool(ids)


def id_of(name: str) -> int:
    """Return the id of a row that callers see as *name*.  Raises ``InvalidParams``."""
    word, _, numbers = name.partition("-")
    place, _, count = numbers.partition("-")
    if word == "entry" and all(
        one.isascii() and one.isdigit() and len(one) < 13 for one in (place, count)
    ):
        if 0 < int(count) < 1 << BITS and 0 < int(place) < 1 << 62 - BITS:
            return int(place) << BITS | int(count)
    raise InvalidParams("id: expected that of an entry, as a query returns it, got %s" % name[:40])
