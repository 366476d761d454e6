"""Stores for tests, as this runtime keeps them: SQLite on CPython, the log of a board on
MicroPython, there on littlefs in memory.
"""

import sys

from clawlite.core.image.memories import CONVERSATION, FTS, GLOBAL, NEVER, RECIPROCAL, Store

IS_BOARD = sys.implementation.name == "micropython"


def record(
    name,
    type=CONVERSATION,
    scope=GLOBAL,
    max_age_s=None,
    max_entries=None,
    compaction=NEVER,
    compacts=False,
    search=FTS,
    snapshots=None,
):
    return [
        name,
        type,
        scope,
        max_age_s,
        max_entries,
        compaction,
        compacts,
        search,
        RECIPROCAL,
        10,
        False,
        None,
        None,
        snapshots,
        False,
        None,
        None,
    ]


class Image:
    """What stores need of an image and of an agent."""

    def __init__(self, records):
        self.records, self.image = records, self

    def section(self, number):
        return self.records


class Kept:
    """The files of one agent, and its stores over them.

    records  of the stores;  clock  function -> ms since 1970
    """

    def __init__(self, agent, clock):
        self._agent, self._clock = agent, clock
        if IS_BOARD:
            self._mount()
        else:
            import tempfile

            self._folder = tempfile.TemporaryDirectory()
        self.stores = None
        self.open()

    def open(self):
        """Open them as a new process does."""
        if IS_BOARD:
            from jsontext import dumps, loads
            from stores import Stores

            self.stores = Stores(
                self._agent,
                "/disk/memory.log",
                lambda: self._clock() // 1000 or None,
                4096,
                (loads, dumps),
            )
            return
        from clawlite.linux.io.jsontext import dumps, loads
        from clawlite.linux.memory.database import Database
        from clawlite.linux.memory.encryption import EntryCiphers
        from clawlite.linux.memory.stores import Stores

        if self.stores:
            self.stores.close()
        db = Database(self._folder.name)
        self.stores = Stores(
            db, self._clock, dumps, loads, EntryCiphers(db, "a", None, dumps, loads)
        )

    def run(self, verb, store, part, details):
        """Return the outcome of a request."""
        if IS_BOARD:
            return self.stores.run(verb, store, part, details)
        return self.stores.run([(1, verb, store, part, details)])[0][1]

    def lasting(self, work, history, once):
        """Return a turn's *work* in the console's conversation, as the shell does it."""
        if IS_BOARD:
            return self.stores.lasting(work, history, once)
        from clawlite.core.image.memories import stores
        from clawlite.core.memory.conversation import store_of
        from clawlite.linux.memory.conversation import lasting

        image = self._agent.image
        return lasting(
            work,
            store_of(stores(image), image.agent.identity),
            history,
            self._agent.setup.keep_bytes,
        )

    def close(self):
        if IS_BOARD:
            import vfs

            vfs.umount("/disk")
        else:
            self.stores.close()
            self._folder.cleanup()

    def _mount(self):
        import vfs

        class Disk:
            def __init__(self):
                self.data = bytearray(96 * 1024)

            def readblocks(self, block, buffer, offset=0):
                at = block * 512 + offset
                buffer[:] = self.data[at : at + len(buffer)]

            def writeblocks(self, block, buffer, offset=0):
                at = block * 512 + offset
                self.data[at : at + len(buffer)] = buffer

            def ioctl(self, what, block):
                return 192 if what == 4 else 512 if what == 5 else 0

        disk = Disk()
        vfs.VfsLfs2.mkfs(disk)
        vfs.mount(vfs.VfsLfs2(disk), "/disk")


class World:
    """Stores that are declared by hand, and a clock."""

    def __init__(self, *records):
        self.now, self._last = 1800000000000, 0
        self.named = {row[0]: Store(row) for row in records}
        self.kept = Kept(Image(list(records)), lambda: self.now)

    def again(self):
        self.kept.open()

    def close(self):
        self.kept.close()

    def do(self, verb, store, part, details):
        """Return the value, or raise the error, of one request."""
        done, value = self.kept.run(verb, self.named[store], part, details)
        if not done:
            raise value
        return value

    def id(self):
        self._last += 1
        return "c1a00000-0000-4000-8000-%012d" % self._last

    def put(self, store, *contents, part="", key=None, id=None, metadata=None, vector=None):
        return self.do(
            "store",
            store,
            part,
            (id or self.id(), [(key, content, metadata, vector) for content in contents]),
        )["ids"]

    def found(self, store, kind, what, top=1000, part=""):
        return self.do("query", store, part, (kind, what, top, None))["entries"]

    def all(self, store, part=""):
        return [
            entry["content"] for entry in self.found(store, "time-range", (0, 1 << 50), part=part)
        ]

    def search(self, store, text, top=10):
        return [entry["content"] for entry in self.found(store, "semantic", text, top)]
