"""The bus of a swarm whose agents are one process (CKP 5.9 ``backend: in-process``): the tables of
``bus.Bus`` in memory, and an end of them for each agent.

1. Who changes something gives news to all ends.  Their loop is one: nothing has to wake it.
2. Nothing outlasts the process, but a stop: it is kept in a file.
"""

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.stop_file import StopFile


class SharedMemory:
    """The bus of one swarm; *wall_ms*, *draw*: as ``bus.Bus`` has them.

    folder  of the swarm (``files.swarm_folder``), where a stop is kept; None: it ends with the
            process
    """

    def __init__(self, wall_ms, draw, folder=None):
        self._made, self.folder = (wall_ms, draw), folder
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

    def find_stop(self):
        folder = self._memory.folder
        return StopFile(folder).find_stop() if folder else super().find_stop()

    def _set_stopped(self, wanted: bool, who: str):
        folder = self._memory.folder
        if folder and bool(self.find_stop()) != wanted:
            try:
                StopFile(folder).set((who, self._wall_ms()) if wanted else None)
            except OSError as e:
                raise ClawError(
                    "the stop of the swarm cannot be kept: %s" % e.strerror, "look at the disk"
                ) from None
        super()._set_stopped(wanted, who)

    def join(self, identity: str = "", at_once: int = 0):
        self._memory.ends.append(self)
        super().join(identity, at_once)

    def leave(self):
        ends = self._memory.ends
        if self in ends:
            ends.remove(self)
            self._db.execute("delete from peers where process = ?", (self.process,))
            self._wake_all()

    def deadline(self):
        return 0 if self._news else None  # at once

    def which_are_there(self, processes: list) -> set:
        return {end.process for end in self._memory.ends}.intersection(processes)

    def _wake_all(self):
        for end in self._memory.ends:
            end.wake()

    def wake(self):
        """Something has changed for this agent."""
        self._news = True
