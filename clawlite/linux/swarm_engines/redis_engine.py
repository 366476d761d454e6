"""A swarm's log as a stream of Redis or Valkey.

    claw:{NAME}:log           the stream: an entry has one field, "e"
    claw:{NAME}:snapshot      hash: "data", which is all that the stream says up to "position"
    claw:{NAME}:here:PROCESS  a channel, subscribed by that process as long as it is connected

The log is cut where the last but one snapshot of the process that cuts it was.  So a cut leaves
SNAPSHOT_EACH entries or SNAPSHOT_BYTES bytes, and who fell behind it reads many at once: then, and
only then, it looks whether it has missed some.

A login for all members needs these names alone (docs/swarm-machines.md).  Redis knows who may
write the stream, and not who wrote an entry.

The package is imported in the engine's own thread: the agent's loop does not wait for that.
"""

import queue
import re
import threading
from importlib.util import find_spec
from typing import Any

from clawlite.linux.swarm_engines.engine import (
    ENTRY,
    NAMES,
    NOTE,
    OTHER_LOG,
    REDIS,
    REMOVE,
    SNAPSHOT,
    SNAPSHOT_BYTES,
    SYNCED,
    THERE,
    TOLD_S,
    Engine,
    Refused,
    unreadable,
)

BLOCK_MS = 30000  # that a read waits for an entry, before the connection is looked at
READ = 1000  # entries at once
_FIELD = b"e"
_ID = re.compile(rb"[0-9]{1,20}-[0-9]{1,20}")  # of an entry
_LOST = (
    "Redis stores nothing on disk (appendonly no): acknowledged data is lost when it is killed - "
    "set appendonly yes and appendfsync everysec or always"
)
_UNSYNCED = (
    "Redis lets the system decide when data is written to disk (appendfsync no): "
    "acknowledged data may be lost in a power cut - set appendfsync everysec or always"
)
_EVICTS = (
    "Redis is set up as a cache (maxmemory-policy %s): when its memory is full it removes the "
    "swarm's tasks without a word - set maxmemory-policy noeviction"
)
_UNSEEN = (
    "the login may not read when Redis writes its data to disk: see that appendfsync is "
    "everysec or "
    "always, or give the login +config|get, as swarm acl redis does"
)


class RedisEngine(Engine):
    """See ``engine.Engine``."""

    name = NAMES[REDIS]

    def __init__(self, *given):
        if find_spec("redis") is None:
            raise ImportError("redis")
        self._package: Any = None
        super().__init__(*given)
        key = "claw:{%s}:" % self.swarm
        self._log, self._snapshot, self._here = key + "log", key + "snapshot", key + "here:"
        self._out = queue.SimpleQueue()
        self._pool: Any = None
        self._cut = "0-0"  # where the log is cut at the next snapshot
        self._told = False

    def append(self, sender: str, data: bytes):
        self._out.put(("append", data, self.generation))

    def ask_there(self, processes: list):
        self._out.put(("there", processes))

    def save(self, position: str, data: bytes):
        self._out.put(("save", position, data))

    def _end(self):
        if self._pool:
            self._pool.disconnect()

    def _run(self):
        secure, host, port, user, password = self.place
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        self._package = redis
        made: Any = redis.Connection
        more: dict = {}
        # Said in full: before 6.0 the package does not look at the host name.  TLS 1.2 is the least
        # that ssl's own settings admit, which it takes.
        if secure:
            made = redis.SSLConnection
            more = {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
        self._pool = redis.ConnectionPool(
            connection_class=made,
            host=host,
            port=port,
            username=user or None,
            password=password or None,
            socket_connect_timeout=TOLD_S,
            socket_timeout=BLOCK_MS / 1000 + TOLD_S,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),  # what follows a failure must not overtake it
            **more,
        )
        writer = None
        try:
            reader: Any = redis.Redis(connection_pool=self._pool)
            presence = reader.pubsub()
            presence.subscribe(self._here + self.process)
            presence.get_message(timeout=TOLD_S)
            self._begin(reader)
            self._out = queue.SimpleQueue()  # what was not sent is given again
            writer = threading.Thread(
                target=self._write, args=(self._out, self._connections), daemon=True
            )
            writer.start()
            self._up()
            while not self._left.is_set():
                found = reader.xread({self._log: self.since}, count=READ, block=BLOCK_MS)
                for _, entries in found or ():
                    if len(entries) >= READ or _size(entries) >= SNAPSHOT_BYTES // 2:
                        self._check_cut(reader)
                    self._read(entries)
        except Exception as e:  # a connection that another thread ends has errors of its own
            raise self._refusal(e) from None
        finally:
            self._out.put(None)
            self._pool.disconnect()
            if writer:
                writer.join()

    def _begin(self, reader):
        """Read what is on record: the snapshot, where this process has not come so far, and the log
        after it.
        """
        if not self._told:
            self._told = True
            self._tell_what_may_be_lost(reader)
        with reader.pipeline(transaction=True) as both:
            both.hgetall(self._snapshot)
            both.xrange(self._log, count=1)
            kept, first = both.execute()
        position, data = _snapshot(kept)
        if _place(position) > _place(self.since):
            self.since = self._cut = position
            self._put(SNAPSHOT, position, data)
        elif _place(self.since) > (0, 0) and not self._goes_on(first):
            raise Refused(*OTHER_LOG)
        while entries := reader.xrange(self._log, "(" + (self.since or "0-0"), count=READ):
            self._check_cut(reader)
            self._read(entries)
        self.since = self.since or "0-0"
        self._put(SYNCED)

    def _check_cut(self, reader):
        """Raises ``ConnectionError``, to begin with the snapshot again, when the log was cut behind
        what this process has read of it.
        """
        with reader.pipeline(transaction=True) as both:
            both.hget(self._snapshot, "position")
            both.xrange(self._log, count=1)
            position, first = both.execute()
        is_behind = position and _place(position.decode()) > _place(self.since)
        if is_behind and not self._goes_on(first):
            raise ConnectionError("the log was cut before all of it was read")

    def _goes_on(self, first: list) -> bool:
        """Return whether the log, whose first entry is in *first*, still has what comes after the
        last entry that was read.
        """
        return bool(first) and _place(first[0][0].decode()) <= _place(self.since)

    def _tell_what_may_be_lost(self, reader):
        # volatile-* evicts keys with an expiry alone, and no key of a swarm has one
        policy = str(reader.info("memory").get("maxmemory_policy", "noeviction"))
        if policy != "noeviction" and not policy.startswith("volatile-"):
            self._put(NOTE, _EVICTS % policy[:40])
        if not reader.info("persistence").get("aof_enabled"):
            self._put(NOTE, _LOST)
            return
        try:
            said = reader.config_get("appendfsync").get("appendfsync")
        except self._package.exceptions.ResponseError:  # or the server has no such command
            said = None
        if said not in ("everysec", "always"):
            self._put(NOTE, _UNSYNCED if said else _UNSEEN)

    def _read(self, entries: list):
        for position, fields in entries:
            self.since = position.decode()
            at_ms = int(self.since.partition("-")[0])
            self._put(ENTRY, self.since, at_ms, None, (fields or {}).get(_FIELD, b""))

    def _write(self, out, number: int):
        """Send what the loop gives for connection *number*, until None comes."""
        client = self._package.Redis(connection_pool=self._pool)
        try:
            while True:
                asked = [out.get()]
                while not out.empty():
                    asked.append(out.get())
                entries = [
                    data
                    for kind, data, *of in filter(None, asked)
                    if kind == "append" and of == [number]
                ]
                if entries:
                    with client.pipeline(transaction=False) as many:
                        for data in entries:
                            many.xadd(self._log, {_FIELD: data})
                        many.execute()
                for one in asked:
                    if one is None:
                        return
                    kind, *given = one
                    if kind != "append":
                        getattr(self, "_" + kind)(client, *given)
        except Exception as e:
            self._failed = e
            self._pool.disconnect()  # the reader ends, too

    _failed: Exception | None = None

    def _there(self, client, processes: list):
        names = [self._here + process for process in processes]
        counts = [count for _, count in client.pubsub_numsub(*names)]
        self._put(THERE, {one: count > 0 for one, count in zip(processes, counts, strict=True)})

    def _save(self, client, position: str, data: bytes):
        with client.pipeline(transaction=True) as both:
            both.hset(self._snapshot, mapping={"position": position, "data": data})
            both.xtrim(self._log, minid=self._cut, approximate=False)
            both.execute()
        self._cut = position

    def _refusal(self, error) -> Refused:
        error, self._failed = self._failed or error, None
        if isinstance(error, Refused):
            return error
        wrong = self._package.exceptions
        said = str(error)
        if isinstance(error, wrong.AuthenticationError) or "WRONGPASS" in said:
            return Refused("it refuses the login", "look at user and credential of [swarm]")
        if isinstance(error, wrong.NoPermissionError) or "NOPERM" in said:
            return Refused(
                "the login may not do this: %s" % said[:160],
                "docs/swarm-machines.md has the line that gives a login what it needs",
                True,
            )
        if "WRONGTYPE" in said:
            return Refused("what it keeps of the swarm is something else: %s" % said[:160], REMOVE)
        if isinstance(error, wrong.OutOfMemoryError) or "OOM" in said:
            return Refused("it is full: %s" % said[:120], "give it more memory (maxmemory)")
        return Refused(*self._why(error))


def _size(entries: list) -> int:
    return sum(len((fields or {}).get(_FIELD, b"")) for _, fields in entries)


def _snapshot(kept: dict) -> tuple:
    """Return (position, data) of the hash *kept*, ("", b"") where there is none.  Raises
    ``Refused``: it is no snapshot.
    """
    if not kept:
        return "", b""
    position, data = kept.get(b"position", b""), kept.get(b"data")
    if data is None or not _ID.fullmatch(position):
        raise unreadable("its fields are not data and position, the id of an entry")
    return position.decode(), data


def _place(position: str) -> tuple:
    return tuple(map(int, position.split("-"))) if position else (0, 0)


ENGINE = RedisEngine
