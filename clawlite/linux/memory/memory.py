"""The memory of an agent on Linux: one thread, which owns the database, and the loop's requests to
it.

1. The loop never waits for the disk.  It hands a request to the thread, which writes a byte to the
   wake pipe; then ``poll`` returns the outcome.
2. When the thread is free, it takes all waiting requests together.  So many "store" requests become
   one commit, with one sync if one of them is power-safe.
3. The thread and SQLite are started by the first request.  When the file cannot be used, each
   request fails with that error, and the next one opens the file again.  So no restart is needed
   after a repair.
4. Stores that the agents of a swarm share are in the swarm's folder, in a file of the same kind.
"""

import _thread
import os
import time

from clawlite.core.base.errors import StoreError, wrap_error
from clawlite.core.image.image import SWARM
from clawlite.core.image.memories import DOES, FILES
from clawlite.linux.files.files import state_folder, swarm_folder
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.memory.database import Database, folder_of

_END, _, _STORE = range(3)  # of a job: stores.py
LEAVE_S = 2  # time for waiting requests when the program ends
MAX_WAITING = 4096  # requests


def wall_ms() -> int:
    """Return the time: milliseconds since 1970."""
    return time.time_ns() // 1000000


class _Both:
    """The stores of one agent, and those with *names* that all agents of its swarm share."""

    def __init__(self, own, shared, names: list):
        self._own, self._shared, self._names = own, shared, names

    def run(self, jobs: list) -> list:
        """As ``Stores.run``, but only the requests of one store keep their order."""
        theirs = [job for job in jobs if job[_STORE].name in self._names]
        ours = [job for job in jobs if job[_STORE].name not in self._names]
        return (self._own.run(ours) if ours else []) + (self._shared.run(theirs) if theirs else [])

    def close(self):
        self._own.close()
        self._shared.close()


class Memory:
    """The memory of one agent.

    agent   ``agent.Agent``
    wake    descriptor of a pipe that gets a byte when ``poll`` has something
    now_ms  function -> monotonic ms
    clock   function -> ms since 1970
    """

    def __init__(self, agent, wake: int, now_ms, clock=wall_ms):
        self._agent, self._wake, self._now_ms, self._clock = agent, wake, now_ms, clock
        self._waiting, self._ended = [], []
        self._lock = _thread.allocate_lock()
        # a lock that is held while the thread has nothing to do
        self._work = None
        self._gone = _thread.allocate_lock()  # held while the thread lives
        self._runs = self._closing = False

    def carry_out(self, effect: tuple, on_end=None):
        """Carry out a REMEMBER effect: hand it to the thread.

        on_end  function(outcome), called instead of the agent: another one of the swarm has asked
        """
        number, *request = effect[1:]
        job = (on_end or (lambda outcome: self._resume(number, outcome)), *request)
        with self._lock:
            is_free = len(self._waiting) < MAX_WAITING
            if is_free:
                self._waiting.append(job)
        if not is_free:
            why = "%d requests wait for the memory already" % MAX_WAITING
            job[_END]((False, StoreError(why, "send this again later")))
            return
        try:
            self._start()
        except RuntimeError as e:  # no thread is left
            with self._lock:
                self._waiting.remove(job)
            why = "the memory cannot start: %s" % e
            job[_END]((False, StoreError(why, "send this again later")))

    def poll(self):
        """Pass the outcomes of requests to the agent."""
        if self._ended:
            with self._lock:
                ended, self._ended = self._ended, []
            for on_end, outcome in ended:
                on_end(outcome)

    def _resume(self, number: int, outcome: tuple):
        self._agent.complete(number, outcome, self._now_ms())

    def close(self):
        """Let the thread finish the waiting requests, and end."""
        if self._runs:
            self._closing = True
            self._wake_thread()
            if self._gone.acquire(timeout=LEAVE_S):
                self._gone.release()

    def _start(self):
        if not self._runs:
            self._gone.acquire()
            self._work = _thread.allocate_lock()
            self._work.acquire()
            try:
                _thread.start_new_thread(self._run, ())
            except RuntimeError:
                self._gone.release()
                raise
            self._runs = True
        self._wake_thread()

    def _wake_thread(self):
        with self._lock:
            if self._work.locked():
                self._work.release()

    def _run(self):
        """The thread's loop."""
        stores, jobs = None, []
        try:
            while not (self._closing and not self._waiting):
                self._work.acquire()
                with self._lock:
                    jobs, self._waiting = self._waiting, []
                if stores is None and jobs:
                    stores = self._open()
                ended = stores.run(jobs) if jobs else []
                with self._lock:
                    self._ended += ended
                if ended:
                    self._wake_loop()
            if stores:
                stores.close()
        except BaseException as e:  # our bug: the requests must still get an outcome
            self._fail(jobs, wrap_error(e))
        finally:
            self._gone.release()

    def _fail(self, jobs: list, error):
        with self._lock:
            self._runs = False
            self._ended += [(job[_END], (False, error)) for job in jobs + self._waiting]
            self._waiting = []
        self._wake_loop()

    def _open(self):
        from clawlite.linux.memory.stores import Stores

        name = self._agent.image.agent.name
        files = None
        if any(
            DOES >> 4 * store.type & FILES or store.path is not None
            for store in self._agent.setup.memories().stores
        ):
            from clawlite.linux.files.workspace import store_behind
            from clawlite.linux.memory.workspace_store import Files

            image = self._agent.image
            workspace = self._agent.setup.workspace
            own = store_behind(image, state_folder(name), workspace)
            files = Files(folder_of(name), (own.name, workspace) if own else None)
        from clawlite.linux.memory.encryption import EntryCiphers
        from clawlite.linux.secrets import secrets

        def stores(folder: str, files):
            db = Database(folder)
            boxes = EntryCiphers(
                db, name, lambda secret: secrets.resolve(secret, secrets.stores(name)), dumps, loads
            )
            return Stores(db, self._clock, dumps, loads, boxes, files)

        own = stores(folder_of(name), files)
        if not self._agent.image.size_of(SWARM):
            return own
        from clawlite.protocols.swarm.swarm import Swarm

        swarm = Swarm(self._agent.image.section(SWARM))
        if not swarm.shares:
            return own
        return _Both(own, stores(swarm_folder(swarm.name), None), swarm.shares)

    def _wake_loop(self):
        try:
            os.write(self._wake, b"\0")
        # the pipe is full, so the loop wakes anyway, or the program is ending
        except OSError:
            pass
