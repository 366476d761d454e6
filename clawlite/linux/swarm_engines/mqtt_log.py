"""The log of a swarm whose engine is an MQTT broker.  MQTT has no log: a broker keeps one message a
topic, and what is queued for one client.  So one process of one member keeps it (docs/adr/0134), in
a file of the swarm's folder, and orders what all say.

    swarms/NAME/log.db    the log, and the state that stands for what was cut
    swarms/NAME/log.lock  held by the process that keeps it

1. What is published as the log is on disk before, synced.
2. An entry is for one *birth* of the keeper, a connection of it: what was sent to another one may
   have been lost, with what follows it, so all of it is sent again.
3. A log that begins anew while another one is known of would forget what was acknowledged: that is
   refused (``KeptLog.id``).
"""

import fcntl
import os
import sqlite3
import threading
import time
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.linux.files import sqlite_log
from clawlite.linux.files.files import own_file
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.swarm_engines.engine import FIRST_PAUSE_S, LONGEST_PAUSE_S, TOLD_S, Refused
from clawlite.linux.swarm_engines.mqtt_line import Line, Owner

FILE, LOCK = "log.db", "log.lock"
BUSY_S = 10
PIECE = 262144  # bytes of a message beside one entry
MOST = 524288  # bytes of an entry, as replicated_bus.py has it
_UPDATE = "update clawlite on every machine"
_ACL = "set the broker's logins as clawlite swarm acl mqtt prints them"
_SCHEMA = """
create table if not exists log (
    position integer primary key, at_ms int, sender text, data blob);
create table if not exists state (position int, data blob);
create table if not exists head (position int, id text);
"""


def base(swarm: str) -> str:
    """Return what the topics of *swarm* begin with."""
    return "claw/v1/%s/" % swarm


def packed(head: dict, body: bytes = b"") -> bytes:
    return dumps(head).encode() + b"\n" + body


def unpacked(data: bytes) -> tuple:
    """Return (head, body).  Raises ``ValueError`` or ``ClawError``."""
    head, _, body = data.partition(b"\n")
    found = loads(head)
    if not isinstance(found, dict):
        raise ValueError("no object")
    return found, body


class KeptLog:
    """The file.  One thread uses it at a time.

    folder  of the swarm (``files.swarm_folder``)
    Raises ``BlockingIOError``: another process of this machine keeps it; ``OSError`` or
    ``sqlite3.Error``: it cannot be used.
    """

    def __init__(self, folder: str):
        os.makedirs(folder, 0o700, exist_ok=True)
        self._lock = os.open(
            os.path.join(folder, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        self._db: Any = None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path = os.path.join(folder, FILE)
            own_file(path)
            log = sqlite_log.last_commit(path)
            self._db = sqlite3.connect(
                path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
            )
            sqlite_log.check(self._db.execute, path, "the log of the swarm", log)
            self._db.execute("pragma journal_mode = wal")
            self._db.execute("pragma synchronous = full")
            self._db.executescript(_SCHEMA)
            row = self._db.execute("select position, id from head").fetchone()
            if row is None:
                row = (0, os.urandom(8).hex())
                self._db.execute("insert into head values (?, ?)", row)
            self.head, self.id = row
            self._at_ms, self.cut = self._db.execute(
                "select coalesce(max(at_ms), 0), coalesce(min(position), ?) - 1 from log",
                (self.head + 1,),
            ).fetchone()
            self._saved = (self._db.execute("select position from state").fetchone() or (0,))[0]
        except BaseException:
            self.close()
            raise

    def add(self, entries: list) -> list:
        """Keep [(sender, data), ...]; return [(ms since 1970, sender, data), ...], on disk."""
        self._at_ms = max(self._at_ms, time.time_ns() // 1000000)
        rows = [(self._at_ms, *entry) for entry in entries]
        self._db.execute("begin immediate")
        try:
            self._db.executemany(
                "insert into log values (?, ?, ?, ?)",
                [(self.head + 1 + at, *row) for at, row in enumerate(rows)],
            )
            self._db.execute("update head set position = ?", (self.head + len(rows),))
            self._db.execute("commit")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("rollback")
            raise
        self.head += len(rows)
        return rows

    def since(self, position: int, most: int = 500):
        """Yield (position, [(ms, sender, data), ...]) of what comes after *position*."""
        while True:
            rows = self._db.execute(
                "select at_ms, sender, data from log where position > ? order by position limit ?",
                (position, most),
            ).fetchall()
            if not rows:
                return
            yield position + 1, rows
            position += len(rows)

    def state(self) -> tuple:
        """Return (position, data) of the state that stands for what was cut, or (0, b"")."""
        return self._db.execute("select position, data from state").fetchone() or (0, b"")

    def save(self, position: int, data: bytes):
        """Keep *data* as the state up to *position*, and cut what the one before stood for."""
        if not self._saved < position <= self.head:
            return
        self._db.execute("begin immediate")
        self._db.execute("delete from state")
        self._db.execute("insert into state values (?, ?)", (position, data))
        self._db.execute("delete from log where position <= ?", (self._saved,))
        self._db.execute("commit")
        self.cut = max(self.cut, self._saved)
        self._saved = position

    def close(self):
        lock, self._lock = self._lock, -1
        try:
            if self._db is not None:
                self._db.close()
        finally:
            if lock >= 0:
                os.close(lock)  # which unlocks it


class Keeper(Owner):
    """The process' second connection, by which it orders and keeps what all say.

    tell  function(reason), for what is not taken
    """

    def __init__(self, place: tuple, swarm: str, process: str, log: KeptLog, tell):
        self._log, self._tell, self._base = log, tell, base(swarm)
        self._birth, self._is_born, self._told = "", False, log.head
        self._batch, self._asks = [], []
        self._stop: Any = None  # what boards are told; None: not known yet
        topics = [self._base + "log/+", self._base + "ask/+/+"]
        self._line = Line(place, process + "-log", topics, ("", b""), self)
        self._left = threading.Event()
        self._thread = threading.Thread(target=self._live, daemon=True, name="swarm-log")
        self._thread.start()

    def save(self, position: int, data: bytes):
        """Keep *data* as the state up to *position*; never waits."""
        self._line.call(self._log.save, position, data)

    def tell_stop(self, stop):
        """Let boards know whether the swarm is stopped: (who, ms since 1970), or None; never
        waits.
        """
        who, at_ms = stop or ("", 0)
        news = {"level": "stop" if stop else "none", "by": who, "at": at_ms}
        if news != self._stop:
            self._stop = news
            self._line.call(self._tell_stop)

    def _tell_stop(self):
        self._line.publish(self._base + "estop", dumps(self._stop).encode(), True)

    def close(self):
        self._left.set()
        self._line.close()
        self._thread.join(TOLD_S)
        if not self._thread.is_alive():
            self._line.free()
            self._log.close()

    def _news(self, is_there: bool) -> bytes:
        return dumps({"log": self._log.id, "there": is_there, "birth": self._birth}).encode()

    # -- in its thread

    def _live(self):
        pause_s = FIRST_PAUSE_S
        while not self._left.is_set():
            self._birth, self._is_born = os.urandom(8).hex(), False
            self._line.will = self._base + "keeper", self._news(False)
            try:
                self._line.run()
            except Refused as e:
                self._tell("the log of the swarm: %s - %s" % (e, e.hint))
            except sqlite3.Error as e:
                self._tell("the log of the swarm cannot be kept: %s" % e)
            except Exception:  # the broker is away: the engine beside it tells
                pass
            if self._is_born:
                pause_s = FIRST_PAUSE_S
            self._left.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def subscribed(self):
        self._is_born = True
        self._batch, self._asks = [], []
        self._line.publish(self._base + "keeper", self._news(True), True)
        if self._stop:
            self._tell_stop()

    def heard(self, topic: str, data: bytes, is_retained: bool):
        kind, _, rest = topic[len(self._base) :].partition("/")
        if is_retained:
            return
        if kind == "ask":
            self._asks.append((rest, data))
            return
        birth, _, entry = data.partition(b"\n")
        if birth != self._birth.encode():
            # of a connection that has ended comes again; a stranger knows no birth
            if len(birth) != len(self._birth):
                self._tell("%s: no entry of a member - %s" % (topic[:200], _ACL))
        elif len(entry) > MOST:
            self._tell(
                "%s: an entry of %d bytes, expected at most %d - %s"
                % (topic, len(entry), MOST, _UPDATE)
            )
        else:
            self._batch.append((rest, entry))

    def read(self):
        if self._batch:
            batch, self._batch = self._batch, []
            first = self._log.head + 1
            self._say(self._base + "out", {}, first, self._log.add(batch))
        asks, self._asks = self._asks, []
        for who, data in asks:
            self._answer(who, data)

    def ticked(self):
        if self._told != self._log.head:  # for who has lost the last of it
            self._told = self._log.head
            self._say(self._base + "out", {}, self._told + 1, [])

    def _answer(self, who: str, data: bytes):
        try:
            asked, _ = unpacked(data)
            since, number = int(asked["since"]), int(asked["ask"])
        except (ValueError, TypeError, KeyError, ClawError):
            self._tell("ask/%s: no question of this version - %s" % (who[:100], _UPDATE))
            return
        topic, head = self._base + "say/" + who, {"ask": number}
        if since < self._log.cut:
            since, state = self._log.state()
            for at in range(0, len(state), PIECE):
                said = dict(head, kind="state", position=since, size=len(state))
                self._line.publish(topic, packed(said, state[at : at + PIECE]))
        for first, rows in self._log.since(since):
            self._say(topic, dict(head, kind="entries"), first, rows)
        end = dict(head, kind="end", head=self._log.head, log=self._log.id, birth=self._birth)
        self._line.publish(topic, packed(end))

    def _say(self, topic: str, head: dict, first: int, rows: list):
        """Publish entries in messages that every broker takes."""
        while True:
            size = count = 0
            for _, _, data in rows:
                if count and size + len(data) > PIECE:
                    break
                size, count = size + len(data), count + 1
            now, rows = rows[:count], rows[count:]
            listed = [[at_ms, sender, len(data)] for at_ms, sender, data in now]
            said = dict(head, log=self._log.id, first=first, entries=listed)
            self._line.publish(topic, packed(said, b"".join(data for *_, data in now)))
            first += count
            if not rows:
                return
