"""What a swarm needs of its engine, a server of Redis or NATS that several machines share: a log,
to which every process appends, and which all read in the same order (docs/adr/0137).

1. An engine works in threads of its own.  The loop hands it what is to be appended, and takes what
   has come (``take``), and waits for neither: ``fileno`` is readable when something has come.
2. An entry counts as written once this process has read it from the log.  Until then it is kept,
   and sent again after each reconnect; ``replicated_bus.py`` ignores what comes twice.
3. The time of an entry is the engine's, so a wrong clock of one machine changes nothing.
"""

import importlib
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections import deque

from clawlite.core.base.errors import ClawError

REDIS, NATS = range(2)  # kinds, as the image has them
NAMES = ("redis", "nats")
PACKAGES = ("redis", "nats-py")
OPERATOR = "operator"  # sender and login of a person's commands, which are no member's
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0  # between attempts to connect: doubled each time
MOST_WAITING = 10000  # entries that have not come back
SYNC_S = 10  # for reading the log to its end, after connecting
TOLD_S = 5.0  # for an answer of the engine
SNAPSHOT_EACH = 20000  # entries, after which the log is cut
SNAPSHOT_BYTES = 1 << 26  # of entries, likewise
# why, and what helps: what this process knows is not what others will read there
OTHER_LOG = "its log of this swarm is not the one that it had before", "restart this agent"
# what helps against what others cannot have meant to keep there
REMOVE = "stop all agents of the swarm, remove what it keeps at the engine, and start them"

# kinds of what ``take`` returns, (kind, ...): the engine is reached; it is away (DOWN, why, hint,
# is_forbidden); an entry of the log; an answer to ``there``; the log is read to its end; the state
# that stands for what was cut; a line for this process' own log
UP, DOWN, ENTRY, THERE, SYNCED, SNAPSHOT, NOTE = range(7)


class Refused(Exception):
    """The engine does not let this process in, or cannot do what is asked: *hint* is what helps.

    is_forbidden  the login may not write: what was appended would be refused again
    """

    def __init__(self, message: str, hint: str, is_forbidden: bool = False):
        Exception.__init__(self, message)
        self.hint, self.is_forbidden = hint, is_forbidden


def unreadable(why: str) -> Refused:
    """Return what to raise for a snapshot that is none."""
    return Refused("its snapshot cannot be read: %s" % why, REMOVE)


class Engine(ABC):
    """One process' connection; a subclass speaks to one kind of engine.

    name      of the engine
    place     (secure, host, port, user or "", password)
    swarm     its name
    process   id of this process, by which others ask whether it is alive (``there``)
    identity  of this process' agent; "" for a command that only reads

    most_bytes  of an entry, once the engine has said how many it takes; None: any number
    A subclass has ``_run``, which connects, reads for ever and calls ``_put`` with what comes; it
    runs in a thread of the engine and may raise what its package raises.
    """

    name = ""
    most_bytes: int | None = None

    def __init__(self, place: tuple, swarm: str, process: str, identity: str):
        self.place, self.swarm, self.process, self.identity = place, swarm, process, identity
        _, host, port, *_ = place
        self.address = "%s://%s:%d" % (self.name, host, port)
        self._come = deque()
        self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._left = threading.Event()
        self._lock = threading.Lock()  # of _fd, which the loop closes
        # number of the connection that the loop knows of: what it appends goes to no later one
        self.generation, self._connections = 0, 0
        self.since = ""  # position of the last entry that the loop has been given
        self._thread = threading.Thread(target=self._live, daemon=True, name="swarm")

    def start(self):
        self._thread.start()

    def fileno(self) -> int:
        return self._fd

    def take(self) -> list:
        """Return what has come since the last call, in its order: [(kind, ...), ...]."""
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return []
        found = []
        while self._come:
            kind, *given = event = self._come.popleft()
            if kind == UP:
                (self.generation,) = given
            found.append(event)
        return found

    @abstractmethod
    def append(self, sender: str, data: bytes):
        """Put *data*, which *sender* says, on the log; called by the loop, and never waits."""

    @abstractmethod
    def ask_there(self, processes: list):
        """Let ``(THERE, {process: bool})`` come; called by the loop, and never waits."""

    @abstractmethod
    def save(self, position: str, data: bytes):
        """Keep *data*, which is all that the log says up to *position*, and forget that part of the
        log; called by the loop, and never waits.
        """

    def close(self):
        """End the threads; what was appended and is not there yet may be lost."""
        self._left.set()
        self._end()
        self._thread.join(TOLD_S)
        with self._lock:
            fd, self._fd = self._fd, -1
            if fd >= 0:
                os.close(fd)

    # -- in the engine's threads

    def _put(self, *event):
        self._come.append(event)
        with self._lock:
            if self._fd >= 0:
                os.eventfd_write(self._fd, 1)

    def _live(self):
        pause_s = FIRST_PAUSE_S
        while not self._left.is_set():
            self._connections += 1
            try:
                self._run()
            except Refused as e:
                down = str(e), e.hint, e.is_forbidden
            except Exception as e:  # whatever the package raises: it is away
                down = *self._why(e), False
            else:
                continue
            if self._was_up:
                self._was_up, pause_s = False, FIRST_PAUSE_S
            self._put(DOWN, *down)
            self._left.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    _was_up = False

    def _up(self):
        """The connection is there, and what is to be sent again may be."""
        self._was_up = True
        self._put(UP, self._connections)

    @abstractmethod
    def _run(self):
        """Connect, hand over what comes and put what is given, until the connection ends or all
        of it shall. Raises ``Refused``, or whatever the package raises.
        """

    def _end(self):
        """Wake the threads: they are to end."""

    def _why(self, error) -> tuple:
        secure, host, *_ = self.place
        if secure:
            from clawlite.linux.net.tls import why_refused

            found = why_refused(error, host)
            if found:
                return found
        said = str(error) or type(error).__name__
        return said[:200], "start it, or mend [swarm] address in clawlite.toml"


def engine_of(record: list, password: str, *more) -> Engine:
    """Return the engine of *record*: [kind, secure, host, port, user].

    Raises ``ClawError``: its package is missing, or there is no such engine any more.
    """
    kind, secure, host, port, user = record
    if kind >= len(NAMES):
        raise ClawError(
            "this image was built for a swarm over MQTT, which this version does not have",
            "leave transport out of [swarm] in its clawlite.toml, and build it again",
        )
    if sys.flags.no_site:  # a launcher left it out: it alone knows where packages lie
        import site

        site.main()
    place = (secure, host, port, user, password)
    try:
        made = importlib.import_module(
            "clawlite.linux.swarm_engines.%s_engine" % NAMES[kind]
        ).ENGINE
        return made(place, *more)
    except ImportError:
        from clawlite.linux.files.packages import install

        raise ClawError(
            "a swarm on %s needs the package %s, which is not installed"
            % (NAMES[kind], PACKAGES[kind]),
            install(NAMES[kind]),
        ) from None
