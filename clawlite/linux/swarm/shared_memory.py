"""The bus of a swarm whose agents are one process (CKP 5.9 ``backend: in-process``): the tables of
``bus.Bus`` in memory, and an end of them for each agent.

1. Who changes something gives news to all ends.  Their loop is one: nothing has to wake it.
2. Nothing outlasts the process.
"""

from clawlite.linux.swarm.bus import Bus


class SharedMemory:
    """The bus of one swarm; *wall_ms*, *draw*: as ``bus.Bus`` has them."""

    def __init__(self, wall_ms, draw):
        self._made = wall_ms, draw
        self.db = None  # of the first end, for all
        self.ends = []

    def end(self) -> "MemoryBus":
        """Return another end."""
        return MemoryBus(self, *self._made)


class MemoryBus(Bus):
    """One agent's end, as ``bus.Bus``."""

    def __init__(self, memory: SharedMemory, wall_ms, draw):
        self._memory = memory
        super().__init__(None, wall_ms, draw)

    def _open(self):
        if self._memory.db is None:
            super()._open()
            self._memory.db = self._db
        self._db = self._memory.db

    def join(self, identity: str = "", at_once: int = 0):
        self._memory.ends.append(self)
        super().join(identity, at_once)

    def leave(self):
        ends = self._memory.ends
        if self in ends:
            ends.remove(self)
            self._db.execute("delete from peers where process = ?", (self.process,))
            self._changed()

    def deadline(self):
        return 0 if self._news else None  # at once

    def _is_there(self, process: str) -> bool:
        return any(end.process == process for end in self._memory.ends)

    def _changed(self):
        for end in self._memory.ends:
            end._news = True
