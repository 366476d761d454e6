"""Stores of the memory for tests and benchmarks: declared by hand, over real SQLite, with a
clock that is moved.
"""

import itertools

from clawlite.core.image.memories import CONVERSATION, GLOBAL, HYBRID, NEVER, RECIPROCAL, Store
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.memory.database import Database
from clawlite.linux.memory.encryption import EntryCiphers
from clawlite.linux.memory.stores import Stores
from clawlite.linux.memory.workspace_store import Files

DEFAULTS = dict(
    type=CONVERSATION,
    scope=GLOBAL,
    max_age_s=None,
    max_entries=None,
    compaction=NEVER,
    compacts=False,
    search=HYBRID,
    fusion=RECIPROCAL,
    top_k=10,
    lasting=False,
    path=None,
    max_bytes=None,
    snapshots=None,
    saves_wear=False,
    secret=None,
    embedding=None,
)


def store(name: str = "s", **fields) -> Store:
    return Store([name, *dict(DEFAULTS, **fields).values()])


class World:
    """Stores over one folder, and a clock.  *own*: see ``workspace_store.Files``."""

    def __init__(self, folder, own=None):
        self.folder, self.now, self._own = str(folder), 1_800_000_000_000, own
        self.secrets = {"key": "0f" * 32}
        self._numbers, self._ids = itertools.count(1), itertools.count(1)
        self.open()

    def open(self):
        db = Database(self.folder)
        boxes = EntryCiphers(db, "a", lambda name: self.secrets[name], dumps, loads)
        self.stores = Stores(
            db, lambda: self.now, dumps, loads, boxes, Files(self.folder, self._own)
        )

    def again(self) -> "World":
        self.stores.close()
        self.open()
        return self

    def id(self) -> str:
        return "c1a00000-0000-4000-8000-%012d" % next(self._ids)

    def do(self, verb: str, one: Store, part: str, details):
        """Return the value, or raise the error, of one request."""
        ((_, (done, value)),) = self.stores.run([(next(self._numbers), verb, one, part, details)])
        if not done:
            raise value
        return value

    def put(
        self,
        one: Store,
        *contents,
        part: str = "",
        key: str = None,
        id: str = None,
        metadata=None,
        vector=None,
    ) -> list:
        return self.do(
            "store",
            one,
            part,
            (id or self.id(), [(key, content, metadata, vector) for content in contents]),
        )["ids"]

    def found(
        self, one: Store, kind: str, what, top: int = 1000, vector=None, part: str = ""
    ) -> list:
        return self.do("query", one, part, (kind, what, top, vector))["entries"]

    def all(self, one: Store, part: str = "") -> list:
        return [
            entry["content"] for entry in self.found(one, "time-range", (0, 1 << 50), part=part)
        ]

    def search(self, one: Store, text: str, top: int = 10, vector=None) -> list:
        return [entry["content"] for entry in self.found(one, "semantic", text, top, vector)]

    def rows(self, sql: str = "SELECT count(*) FROM entries"):
        return self.stores._db.row(sql)[0]
