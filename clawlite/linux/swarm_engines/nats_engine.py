"""A swarm's log as a stream of NATS with JetStream.

claw.v1.NAME.log.IDENTITY  subjects of the stream CLAW_NAME: the last token is who speaks, so
                           permissions of a login can prove it
_INBOX.NAME.USER            answers for one login, which no other may read
claw.v1.NAME.here.PROCESS  answered by that process as long as it is connected
CLAW_NAME                  object store: "state" is all that the stream says up to the position
                           in its description

The package is written for asyncio, which no other module of a device loads.  Both are imported in
the engine's own thread: the agent's loop does not wait for that.
"""

import re
from importlib.util import find_spec
from typing import Any

from clawlite.linux.swarm_engines.engine import (
    ENTRY,
    NAMES,
    NATS,
    NOTE,
    OPERATOR,
    OTHER_LOG,
    REMOVE,
    SNAPSHOT,
    SYNCED,
    THERE,
    TOLD_S,
    Engine,
    Refused,
    unreadable,
)

AGAIN_S = 0.1  # before a task that is still running is cancelled again
CLOSE_S = 1.0  # that closing a connection may take
ASK_S = 1.0  # that a process may take to say that it is there
SNAPSHOT_S = 0.5, 1, 2, 4, 8, 16  # that a snapshot may take to come, at each try
PING_S = 15  # of the connection: two without an answer end it
# JSInsufficientResourcesErr, JSStorageResourcesExceededErr, JSAccountResourcesExceededErr,
# JSStreamStoreFailedF (a limit of the stream): server/errors.json of nats-server
_FULL = (10023, 10047, 10002, 10077)
CHUNK = 131072  # bytes of a snapshot that are sent at once
_TOO_LONG = (
    "an entry of %d bytes cannot be sent: the engine takes %d - let it take more (max_payload), "
    "and restart this agent"
)
_NO_TLS = (
    "it does not offer TLS, so it was told no password",
    "give it a certificate (tls of its configuration), or write nats:// in [swarm] address",
)
_UNKNOWN = (
    "this version of nats-py cannot be held to TLS",
    "install another one: pip install 'nats-py==2.16.*'",
)
_NUMBER = re.compile("[0-9]{1,19}")  # of an entry
_TOKEN = re.compile("[A-Za-z0-9_-]+")  # of a subject
_STATE = "state"
_WRONG = (AttributeError, LookupError, TypeError, ValueError)  # of nats-py, for a strange object


class NATSEngine(Engine):
    """See ``engine.Engine``."""

    name = NAMES[NATS]

    def __init__(self, *given):
        if find_spec("nats") is None:
            raise ImportError("nats")
        self._package: Any = None
        self._asyncio: Any = None
        super().__init__(*given)
        base = "claw.v1.%s." % self.swarm
        self._log, self._here = base + "log.", base + "here."
        self._stream = "CLAW_" + self.swarm.replace(".", "_")
        self._loop: Any = None
        self._out: Any = None
        self._closed: Any = None  # the connection is to end, for whatever reason
        self._leaves: Any = None  # so is the engine's thread, whatever it waits for
        self._cut = 0
        self._created: Any = None  # when the stream was, at the first connection
        self._failed: Exception | None = None

    def append(self, sender: str, data: bytes):
        self._hand("append", sender, data, self.generation)

    def ask_there(self, processes: list):
        self._hand("there", processes)

    def save(self, position: str, data: bytes):
        self._hand("save", position, data)

    def _hand(self, *asked):
        try:
            self._loop.call_soon_threadsafe(self._out.put_nowait, asked)
        except RuntimeError:  # the connection has ended: what waits is given again
            pass

    def _end(self):
        if self._loop:
            try:
                self._loop.call_soon_threadsafe(self._leaves.set)
            except RuntimeError:
                pass

    # -- in its thread

    def _run(self):
        import asyncio

        import nats
        import nats.js.api

        self._asyncio, self._package = asyncio, nats
        try:
            asyncio.run(self._run_connection())
        except Exception as e:
            raise self._refusal(e) from None

    async def _run_connection(self):
        """Serve one connection, until it ends or ``close`` is called."""
        asyncio = self._asyncio
        self._closed, self._leaves, self._out = asyncio.Event(), asyncio.Event(), asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        # what a task of the package's own raises at the end of a connection is not for stderr
        self._loop.set_exception_handler(lambda loop, context: None)
        # ``close`` sets this first, and then looks for the loop: one of both sees the other
        if self._left.is_set():
            return
        client, more = self._client()
        work = asyncio.ensure_future(self._serve(client, more))
        leaves = asyncio.ensure_future(self._leaves.wait())
        await asyncio.wait([work, leaves], return_when=asyncio.FIRST_COMPLETED)
        await self._cancel_until_ended([work, leaves])
        # A connection that was refused is not closed here: that could take CLOSE_S (after a failed
        # TLS handshake), and its socket is closed when the client object is freed.
        if client.is_connected or self._left.is_set():
            end = asyncio.gather(client.close(), return_exceptions=True)
            await asyncio.wait([end], timeout=CLOSE_S)
        error = None if work.cancelled() else work.exception()
        if error and not self._left.is_set():
            raise error

    async def _cancel_until_ended(self, tasks):
        """Cancel *tasks* until each has ended.  One cancellation is not enough, because it can get
        lost: in nats-py while it flushes, and before Python 3.12 in asyncio.wait_for when the
        result arrives at the same moment (python/cpython#86296).
        """
        while tasks:
            for task in tasks:
                task.cancel()  # of one that has ended this changes nothing
            _, tasks = await self._asyncio.wait(tasks, timeout=AGAIN_S)

    def _client(self) -> tuple:
        """Return a client that is not connected yet, and what more its ``connect`` is given."""
        secure, _, _, user, password = self.place
        more: dict = {"user": user, "password": password} if user or password else {}
        if not secure:
            return self._package.NATS(), more
        from clawlite.linux.net.tls import context

        return _secure(self._package.NATS)(), {**more, "tls": context()}

    async def _serve(self, client, more: dict):
        asyncio, last = self._asyncio, []

        async def on_close():
            self._closed.set()

        async def wrong(error):
            last.append(error)
            # nothing else would tell that an entry is not taken: nats-py raises what JetStream
            # answers to publish_async here, and its future never ends
            is_refused = isinstance(error, self._package.js.errors.Error)
            if is_refused or "permissions violation" in str(error).lower():
                self._closed.set()

        secure, host, port, user, _ = self.place
        try:
            await client.connect(
                "%s://%s:%d" % ("tls" if secure else "nats", host, port),
                allow_reconnect=False,
                # else it tries for two minutes, and nobody hears that the engine is away
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=TOLD_S,
                ping_interval=PING_S,
                inbox_prefix=inbox(user, self.swarm),
                closed_cb=on_close,
                error_cb=wrong,
                **more,
            )
        except self._package.errors.NoServersError as e:
            raise (last or [e])[-1] from None
        tasks = []
        self.most_bytes = client.max_payload
        try:
            await client.subscribe(self._here + self.process, cb=_here)
            subscription = await self._begin(client.jetstream())
            tasks = [
                asyncio.ensure_future(self._write(client, self._connections)),
                asyncio.ensure_future(self._read(subscription)),
                asyncio.ensure_future(self._watch(subscription)),
                asyncio.ensure_future(self._closed.wait()),
                # It ends with each connection.  The package calls closed_cb last, and never when
                # it could not send what was left.
                client._reading_task,
            ]
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await self._cancel_until_ended(tasks)
        raised = {task: task.exception() for task in tasks if not task.cancelled()}
        # what a task raised because it was cancelled is not why the connection ended
        why = [raised.get(task) for task in tasks if task in ended]
        for error in [self._failed, *why, *last]:
            if error:
                raise error
        if not self._left.is_set():
            raise ConnectionError("the connection ended")

    async def _begin(self, js):
        """Make the stream where it is missing, take the snapshot, and return a subscription of what
        follows.
        """
        api, missing = self._package.js.api, self._package.js.errors.NotFoundError
        try:
            info = await js.stream_info(self._stream)
        except missing:
            config = api.StreamConfig(name=self._stream, subjects=[self._log + "*"])
            info = await js.add_stream(config)
        self._created = self._created or info.created
        if info.created != self._created or int(self.since or 0) > info.state.last_seq:
            raise Refused(*OTHER_LOG)
        try:
            store = await js.object_store(self._stream)
            kept = await self._snapshot(store)
            self._cut = _position(kept.info)
            if self._cut > int(self.since or 0):
                self.since = str(self._cut)
                self._put(SNAPSHOT, self.since, kept.data)
        except missing:
            pass
        self.since = self.since or "0"
        state = (await js.stream_info(self._stream)).state
        self._last = state.last_seq
        if state.first_seq > int(self.since) + 1:  # or it was cut meanwhile: it is tried again
            raise Refused(
                "its stream %s begins with entry %d, and no snapshot says what was before"
                % (self._stream, state.first_seq),
                REMOVE + "; let no limit of the stream remove entries",
            )
        if int(self.since) > self._last:
            raise Refused(
                "its stream %s was lost, and the state that it keeps of it was not" % self._stream,
                "stop all agents of the swarm, remove the object store %s, and start them: "
                "the tasks before are gone" % self._stream,
            )
        self._told = False
        self._tell()
        start = api.ConsumerConfig(
            deliver_policy=api.DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=int(self.since) + 1,
            ack_policy=api.AckPolicy.NONE,
        )
        return await js.subscribe(self._log + "*", config=start, manual_ack=True)

    async def _snapshot(self, store):
        """Return the snapshot.  Where another process puts a newer one while it is read, its parts
        never come (or do not belong together), and the newer one is asked for.
        """
        errors = self._package.js.errors
        for limit_s in SNAPSHOT_S:
            try:
                return await self._asyncio.wait_for(store.get(_STATE), limit_s)
            except (TimeoutError, errors.DigestMismatchError):
                pass
            except (errors.BadObjectMetaError, errors.LinkIsABucketError, *_WRONG) as e:
                raise unreadable(str(e)[:160]) from None
        raise ConnectionError("its snapshot did not arrive")

    def _tell(self, is_all=False):
        if not self._told and (is_all or int(self.since) >= self._last):
            self._told = True
            self._put(SYNCED)
            self._up()

    async def _read(self, subscription):
        async for message in subscription.messages:
            sender = self._sender_of(message)
            if sender is None:
                continue
            seen = message.metadata
            if seen.sequence.stream <= int(self.since):
                continue
            if seen.sequence.stream > int(self.since) + 1 and self._told:
                raise ConnectionError("an entry of the log did not arrive")
            self.since = str(seen.sequence.stream)
            at_ms = int(seen.timestamp.timestamp() * 1000)
            self._put(ENTRY, self.since, at_ms, sender, message.data)
            self._tell(seen.num_pending == 0)  # the last ones may have been removed

    async def _watch(self, subscription):
        """Raise ``ConnectionError`` when the server no longer sends what comes: the stream was made
        anew, or somebody has removed the consumer.  Nothing else would tell.
        """
        errors = self._package.errors
        while True:
            await self._asyncio.sleep(PING_S)
            try:
                await subscription.consumer_info()
            except self._package.js.errors.NotFoundError:
                raise ConnectionError("the server has forgotten who reads the log") from None
            except errors.TimeoutError:  # a ping ends a connection that is dead
                pass

    def _sender_of(self, message):
        """Return who wrote an entry of the log, or None for what is none.

        A login may make the server send to the inbox of another: messages of the object store by a
        consumer, whose subject the login chooses as it likes, or an answer of the API.
        """
        start, _, sender = message.subject.rpartition(".")
        return sender if start + "." == self._log else None

    async def _write(self, client, number: int):
        js = client.jetstream()
        while True:
            kind, *given = await self._out.get()
            if kind != "append":
                await getattr(self, "_" + kind)(client, *given)
                continue
            sender, data, of = given
            if of == number and len(data) > client.max_payload:
                # of before the engine had said so: sent, it would end each connection
                self._put(NOTE, _TOO_LONG % (len(data), client.max_payload))
            elif of == number:
                (await js.publish_async(self._log + sender, data)).add_done_callback(self._on_ack)

    def _on_ack(self, future):
        if not future.cancelled() and future.exception():
            self._failed = future.exception()
            self._closed.set()

    async def _there(self, client, processes: list):
        async def one(process: str) -> bool:
            try:
                await client.request(self._here + process, b"", timeout=ASK_S)
            except (self._package.errors.NoRespondersError, self._package.errors.TimeoutError):
                return False
            return True

        found = await self._asyncio.gather(*map(one, processes))
        self._put(THERE, dict(zip(processes, found, strict=True)))

    async def _save(self, client, position: str, data: bytes):
        js = client.jetstream()
        store = await js.create_object_store(self._stream)
        api = self._package.js.api
        options = api.ObjectMetaOptions(max_chunk_size=min(CHUNK, client.max_payload))
        meta = api.ObjectMeta(description=position, options=options)
        await store.put(_STATE, data, meta=meta)
        if self._cut:
            await js.purge_stream(self._stream, seq=self._cut + 1)
        self._cut = int(position)

    def _refusal(self, error) -> Refused:
        if isinstance(error, Refused):
            return error
        self._failed = None
        *_, user, _ = self.place
        login = "the login %s" % user if user else "the login"
        said = str(error) or type(error).__name__
        low = said.lower()
        if "authorization violation" in low or "authentication" in low:
            names = "operator_credential" if user == OPERATOR else "user and credential"
            return Refused("it refuses %s" % login, "look at %s of [swarm]" % names)
        if "permissions violation" in low:
            hint = "clawlite swarm acl nats prints what a login needs"
            if not self.identity and user != OPERATOR:
                hint = (
                    "a person's commands need the login %s: name the secret that is its password "
                    "as operator_credential of [swarm], and build again" % OPERATOR
                )
            return Refused("%s may not do this: %s" % (login, said[:160]), hint, True)
        if getattr(error, "err_code", None) in _FULL:
            hint = "give JetStream more room: max_file_store, or a limit of the stream or account"
            return Refused("it is full: %s" % error.description, hint)
        if isinstance(error, self._package.js.errors.ServiceUnavailableError):
            return Refused("it has no JetStream: %s" % said[:100], "turn it on")
        if isinstance(error, self._package.js.errors.Error):
            return Refused(
                "it refuses to store this: %s" % said[:160], "look at its limits and disk"
            )
        return Refused(*self._why(error))


def _secure(client):
    """Return *client*, a class of nats-py, such that it logs in over TLS alone.

    A server of NATS says in plain words whether it wants TLS.  The package takes its word, also
    with tls://, so whoever sits between could ask for the password.
    """

    def command(self):
        if not self._server_info.get("tls_required"):
            self._transport.close()
            raise Refused(*_NO_TLS)
        return client._connect_command(self)

    if not hasattr(client, "_connect_command"):
        raise Refused(*_UNKNOWN)
    return type("Secure", (client,), {"_connect_command": command})


def _position(info) -> int:
    """Return the position of a snapshot, whose *info* is as a member gave it."""
    text = info.description
    if not (isinstance(text, str) and _NUMBER.fullmatch(text)):
        raise unreadable("its description is not the position of an entry")
    return int(text)


def inbox(user: str, swarm: str) -> str:
    """Return the subject below which answers for the login *user* come, "" for no login: one of its
    own, so that no other login may read them.
    """
    return "_INBOX.%s.%s" % (swarm, user) if _TOKEN.fullmatch(user) else "_INBOX"


async def _here(asked):
    await asked.respond(b"")


ENGINE = NATSEngine
