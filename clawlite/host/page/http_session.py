"""CKP over Streamable HTTP: the sessions of operators, each with a line to its agent.

1. POST takes one message, or a batch.  Its answer is JSON; it is a stream of one event where it
   takes longer than ``PATIENCE_S`` and the client takes such streams.
2. GET is the stream of what the agent tells by itself.  Each event has a number, and the last
   ``KEPT`` are kept: ``Last-Event-ID`` says which one a client had last.
3. An answer whose client has gone is an event, so that nothing is lost by a connection that breaks.
4. A session begins with the answer to claw.initialize and ends with DELETE, with its person's
   rights, with its agent, or after ``IDLE_S`` without a request or a stream.
"""

import asyncio
import collections
import secrets

from clawlite.host.page import messages
from clawlite.host.page.agent_line import AgentLine

KEPT, KEPT_BYTES = 1000, 1 << 20  # events of one session
PATIENCE_S = 10
ALIVE_S = 15  # between two comments of a stream
IDLE_S = 600


class Session:
    """One operator's session.

    place, login  the agent's, and the ``logins.Login`` of who began it
    """

    def __init__(self, place: str, login, now_s: float):
        self.id = secrets.token_urlsafe(32)
        self.place, self.login, self.used_s = place, login, now_s
        self.person = login.person(place)
        self.line: AgentLine | None = None
        self.is_over = False
        self._waiting = collections.defaultdict(collections.deque)  # key -> futures
        self._events = collections.deque()  # (number, line)
        self._bytes = self._number = 0
        self._read = 0  # the number of the last event that a stream was given
        self._news = asyncio.Event()
        self._stream: object = None  # a mark of the stream that is read now

    @property
    def is_idle(self) -> bool:
        return self._stream is None and not any(self._waiting.values())

    # -- of the line

    def hear(self, line: bytes):
        """Take a message of the agent."""
        key = messages.key_of_answer(line)
        future = None if key is None else self._waiter(key)
        if future is not None:
            future.set_result(line)
            return
        self._number += 1
        self._events.append((self._number, line))
        self._bytes += len(line)
        while len(self._events) > KEPT or self._bytes > KEPT_BYTES and len(self._events) > 1:
            self._bytes -= len(self._events.popleft()[1])
        self._news.set()

    def handle_end(self):
        """The line is over."""
        self.is_over = True
        self._news.set()
        for futures in self._waiting.values():
            for future in futures:
                if not future.done():
                    future.set_result(None)

    def _last_answer(self) -> bytes | None:
        """Return what an agent that takes no session said before it hung up, which may be before
        anything was asked; else None.
        """
        if not self._events:
            return None
        line = self._events[-1][1]
        return None if messages.key_of_answer(line) is None else line

    def _waiter(self, key: str):
        """Return who waits for the answer with this *key*, or None.  One with the id null may be
        for a message that only the agent could not read.
        """
        keys = [key, messages.UNREADABLE]
        keys += [one for one in reversed(self._waiting) if key == "null" and one not in keys]
        for one in keys:
            futures = self._waiting.get(one)
            while futures:
                future = futures.popleft()
                if not futures:
                    del self._waiting[one]
                if not future.done():
                    return future
        return None

    # -- of the client

    def send(self, body: bytes):
        """Send a message; return a future of its answer (None: the agent has ended, without a word
        of why), or None where it gets none.
        """
        if not body.strip():  # as a blank line over stdio
            return None
        key = messages.key_of(body)
        future = None
        if key is not None:
            future = asyncio.get_running_loop().create_future()
            if self.is_over:
                future.set_result(self._last_answer())
            else:
                self._waiting[key].append(future)
        if self.line is not None:
            self.line.send(body)
        return future

    async def events(self, last: int | None):
        """Yield (number, line) of the events after *last*, None each ``ALIVE_S`` without one; until
        the session ends, or another stream takes its place.
        """
        mine = self._stream = object()
        self._news.set()  # of the stream before
        try:
            sent = self._read if last is None else last
            if self._events and sent < self._events[0][0] - 1:
                yield self._events[0][0] - 1, None  # what was between is not kept any more
            while self._stream is mine:
                found = [one for one in self._events if one[0] > sent]
                for number, line in found:
                    self._read = sent = number
                    yield number, line
                if found:
                    continue
                if self.is_over:
                    return
                self._news.clear()
                try:
                    await asyncio.wait_for(self._news.wait(), ALIVE_S)
                except TimeoutError:
                    yield None
        finally:
            if self._stream is mine:
                self._stream = None
