"""One MCP server over all of its conversations, without I/O: when it may be started, which calls it
has, what is due next, and when it is ended.  The servers of a device (linux/mcp/servers.py) and
those of a gateway (host/gateway/mcp_servers.py) are driven by it; they start processes, carry
bytes and read the clock.

1. A server that has not listed its tools within ``START_MS`` has failed.
2. One that fails is not started again before a pause, which doubles with each failure in a row.  An
   answer ends the row.
3. A tool that differs from what was pinned when its agent was built is not called.
4. No call is sent twice: of one that was sent to a server that then failed, nobody knows what it
   did.  The exception is a call that a session refused, because it had ended: it is sent once more,
   in another session.
5. A server hangs when two calls in a row run out of time, the second sent after the first was given
   up, and it says nothing in between: it is ended.  One call alone may just be slow.
6. One that no call needs for its idle time is ended, and so is one whose lifetime is over, once no
   call is under way.
7. It may ask a person ``MAX_QUESTIONS`` times during a call.
"""

from collections.abc import Callable
from typing import Any

from clawlite.core.base.errors import ClawError
from clawlite.protocols.mcp.mcp_client import OUTCOME_UNKNOWN, READY, often_ended, spoke_oddly
from clawlite.protocols.mcp.mcp_pin import name_changes, pin_of

START_MS = 20000  # from the start of a server to its list of tools
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 1000, 60000
MAX_QUESTIONS = 8  # to a person, of one call
MAX_UNSENT = 8388608  # bytes that a server has not read


class Call:
    """One call under way: *tool* and *arguments* as the server has them.

    is_watched  its progress is wanted
    sent_ms     when it was sent, or None
    note        what the server asked for during it, and did not get, or ""
    """

    def __init__(self, tool: str, arguments: dict, is_watched: bool) -> None:
        self.tool, self.arguments, self.is_watched = tool, arguments, is_watched
        self.sent_ms: int | None = None
        self.is_again = False  # a session refused it, and it is sent in another one
        self.questions, self.note = 0, ""

    def has_asked_enough(self, requests: dict) -> bool:
        """Count the questions *requests*; return whether they are too many to be put."""
        self.questions += len(requests) or 1
        if self.questions <= MAX_QUESTIONS:
            return False
        self.note = "it asked a person more than %d questions" % MAX_QUESTIONS
        return True


class ServerState:
    """One server.

    name     str
    pins     {name of a tool: bytes of ``pin_of``, or b"" when nothing is pinned}
    idle_ms  how long no call needs it before it is ended, or None
    life_ms  of its life, or 0
    warn     function(text), for who reads the log
    Public:
    client   ``MCPClient`` of the conversation, or None: there is none
    calls    {key: ``Call``}
    failures, why  how many in a row, and why the last one
    is_anew  a session ended, and no call was answered since
    """

    def __init__(
        self, name: str, pins: Any, idle_ms: int | None, life_ms: int, warn: Callable
    ) -> None:
        self.name, self.pins = name, dict(pins)
        self._idle_ms, self._life_ms, self._warn = idle_ms, life_ms, warn
        self.client: Any = None
        self.calls: dict = {}
        self.failures, self.why, self.is_anew = 0, "", False
        self._resume_ms = 0  # not started again before
        self._ready_ms: int | None = None  # when its tools must be known
        self._old_ms: int | None = None  # when its lifetime is over
        self._idle_since_ms: int | None = None
        # since a call ran out of time, if nothing has come from it since
        self._mute_ms: int | None = None
        self._has_warned = False  # that it often ends its subscriptions
        self._has_told = False  # that it writes what is no message

    # -- its life

    def pause_ms(self, now_ms: int) -> int:
        """Return how long it must not be started yet."""
        return max(self._resume_ms - now_ms, 0)

    def begin(self, client: Any, now_ms: int) -> None:
        """It was started: the conversation of *client* begins."""
        self.client, self.why = client, ""
        self._ready_ms = now_ms + START_MS
        self._old_ms = now_ms + self._life_ms if self._life_ms else None
        self._idle_since_ms = self._mute_ms = None

    def note_failure(self, why: str, said: str, now_ms: int) -> None:
        """It has failed, and *said* this last: the pause begins."""
        said = said.strip()
        self.why = why + (", and said: " + said if said else "")
        pause_ms = min(FIRST_PAUSE_MS << min(self.failures, 16), LONGEST_PAUSE_MS)
        self.failures, self._resume_ms = self.failures + 1, now_ms + pause_ms

    def add(self, key: object, call: Call) -> None:
        """Take a call, which ``send_calls`` sends."""
        self.calls[key], self._idle_since_ms = call, None

    def take_calls(self) -> list[tuple]:
        """Return [(key, call)] of the calls that it has, and forget them."""
        calls, self.calls = list(self.calls.items()), {}
        return calls

    def stop(self) -> None:
        """The conversation is over."""
        self.client = self._ready_ms = self._old_ms = self._idle_since_ms = None

    def end_session(self, key: object) -> list[tuple]:
        """A session has ended, and another one follows, in which the call *key*, which it refused,
        and those that it never got are sent.  Return [(key, call)] of the others.
        """
        self.is_anew = True
        refused = self.calls.get(key)
        if refused is not None and not refused.is_again:
            refused.sent_ms, refused.is_again = None, True
        lost = [(key, call) for key, call in self.calls.items() if call.sent_ms is not None]
        for key, _ in lost:
            del self.calls[key]
        return lost

    def note_refusal(self, key: object) -> None:
        """A session that had ended refused the call *key*, if it is one: it was not sent."""
        if key in self.calls:
            self.calls[key].sent_ms = None

    def make_lost_error(self, why: str) -> ClawError:
        """Return the error of a call that was sent to a server that then failed."""
        return ClawError("the MCP server %s %s" % (self.name, why), OUTCOME_UNKNOWN)

    def make_unfinished_error(self) -> ClawError:
        """Return the error of a call whose server asks for more than is put to a person."""
        message = "the MCP server %s did not finish the call" % self.name
        return ClawError(message, "give all that it needs in the arguments")

    # -- the conversation

    def tick(self, now_ms: int, is_waiting: bool = False) -> None:
        """Do what is due in the conversation.

        is_waiting  nothing can be sent yet, so no time of the protocol runs
        """
        client = self.client
        if not is_waiting:
            client.tick(now_ms)
        if client.is_often_ended and not self._has_warned:
            self._has_warned = True
            self._warn(often_ended(self.name))
        if client.odd_line and not self._has_told:
            self._has_told = True
            self._warn(spoke_oddly(self.name, client.odd_line))

    def send_calls(self, now_ms: int) -> list[tuple]:
        """Send the calls that wait, once the tools are known; return [(key, call, error)] of those
        that it does not get.  *error* is None where the tool is not as pinned.
        """
        client: Any = self.client
        refused: list[tuple] = []
        if client.is_stale and client.state == READY:
            client.ask_for_tools()
        if client.state == READY:
            self._ready_ms = None
            for key, call in [one for one in self.calls.items() if one[1].sent_ms is None]:
                if self.find_difference(call.tool):
                    refused.append((key, call, None))
                    continue
                try:
                    client.call(key, call.tool, call.arguments, call.is_watched)
                    call.sent_ms = now_ms
                except ClawError as e:
                    refused.append((key, call, e))
        for key, *_ in refused:
            del self.calls[key]
        return refused

    def find_difference(self, tool: str) -> str:
        """Return how *tool* differs from what was pinned, or ""."""
        definition = self.client.tools.get(tool)
        if definition is None:
            return "has no tool %s any more" % tool
        pin = self.pins[tool]  # none: trust = "start"
        parts = name_changes(pin, pin_of(definition)) if pin else ""
        what = "has changed the %s of its tool %s since this agent was built"
        return what % (parts, tool) if parts else ""

    def note_sign(self) -> None:
        """Something has come that shows that the server works."""
        self._mute_ms = None

    def note_answer(self) -> None:
        """A call was answered, or a person is asked during it."""
        self.failures, self.is_anew = 0, False

    def give_up(self, key: object, is_late: bool, now_ms: int) -> bool:
        """Nobody waits for the call *key* any more; return whether the server hangs.

        is_late  its time is over; else whoever made it has gone, and the server may be well
        """
        call = self.calls.pop(key, None)
        if call is None or call.sent_ms is None or self.client is None:
            return False
        self.client.cancel(key)
        if not is_late:
            return False
        if self._mute_ms is None:
            self._mute_ms = now_ms
        return call.sent_ms >= self._mute_ms

    # -- time

    def due_ms(self, is_waiting: bool = False) -> int | None:
        """Return when ``check_ready``, ``is_over`` or ``tick`` has to be called, or None."""
        if self.client is None:
            return None
        times = [self._ready_ms, self._over_ms()]
        if not is_waiting:
            times.append(self.client.due_ms())
        return min([at for at in times if at is not None], default=None)

    def check_ready(self, now_ms: int) -> str:
        """Return why the server has failed because of the time, or ""."""
        if self._ready_ms is None or now_ms < self._ready_ms:
            return ""
        odd = self.client.odd_line
        return "it did not list its tools within %d s%s" % (
            START_MS // 1000,
            ", and wrote: " + odd if odd else "",
        )

    def is_over(self, now_ms: int) -> bool:
        """Return whether to end the server: no call needs it, or its lifetime is over.  The next
        call starts another one.
        """
        if not self.calls and self._idle_since_ms is None:
            self._idle_since_ms = now_ms
        at = self._over_ms()
        return at is not None and now_ms >= at

    def _over_ms(self) -> int | None:
        if self.calls:
            return None
        times = [self._old_ms]
        if self._idle_ms is not None and self._idle_since_ms is not None:
            times.append(self._idle_since_ms + self._idle_ms)
        return min([at for at in times if at is not None], default=None)
