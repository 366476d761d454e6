"""The people who are with one board, and what they share: its line (docs/gateway.md).

1. A request goes up as it is, with who asks; the board judges it.  ``MOST_AHEAD`` are under way at
   once, beside turns; the others wait here.
2. What the board tells by itself goes to everybody who asked for it and may see it.
3. When the board goes, each request that waits gets one error that says since when, and all lines
   end.
"""

import asyncio
import time
from collections import deque

from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError, InvalidParams, InvalidRequest
from clawlite.core.image.image import SWARM
from clawlite.core.policy.access import ADMIN, ROLE_NAMES
from clawlite.core.policy.trace import trace_text
from clawlite.core.protocol import rpc
from clawlite.core.protocol.approvals import UPDATED
from clawlite.core.protocol.rights import FRESH_MS
from clawlite.core.protocol.session import Session
from clawlite.host.gateway_operators.board_socket import BoardSocket
from clawlite.host.gateway_operators.board_tasks import BoardTasks
from clawlite.protocols.image.features import read_approvals

MOST_AHEAD = 4
SILENCE_S = 30  # within which a board answers what takes no tool
_LONG = ("turn", "claw.tool.call", "claw.shutdown", "claw.memory.compact")
_EVENT = "claw.log.event"


class _Request:
    """What somebody asks.  *reply*: function(message without an id)."""

    timer: asyncio.TimerHandle | None = None

    def __init__(self, id: str, viewer, method: str, params: dict, reply):
        self.id, self.viewer, self.method, self.params = id, viewer, method, params
        self.reply = reply
        self.is_long = method in _LONG


class Viewer(Session):
    """One person's session: its messages are read here as any session's, and what they ask goes to
    the board, which judges it.

    people  ``BoardPeople``
    person  ``board_socket.Person``
    write   function(bytes)
    """

    def __init__(self, people, person, write):
        loads, self._dumps = people.codecs
        super().__init__(None, loads)
        self.person, self._people, self._write = person, people, write

    @property
    def is_open(self) -> bool:
        return self._open

    def leave(self):
        """The line is over."""
        self._people.leave(self)

    def tell(self, message: dict):
        """Send *message*, which answers nothing."""
        self._send(message)

    def _send(self, message):
        self._write(self._dumps(message).encode("utf-8", "replace"))

    def _call(self, id, method: str, params, reply, now_ms: int):
        if isinstance(params, list):
            raise InvalidParams("params: expected an object, got an array")
        is_begin = method == "claw.initialize"
        if not (is_begin or self._open or self._asked and method == "claw.status"):
            raise InvalidRequest(f"expected claw.initialize first, got {method[:60]}")
        self._asked = True

        def answer(message: dict):
            if "result" in message:
                self._open = is_begin or self._open and method != "claw.shutdown"
            reply({**message, "jsonrpc": "2.0", "id": id})

        self._people.ask(self, method, params, answer)


class BoardPeople:
    """The people of one board.

    name     of the device
    image    what it runs
    codecs   (loads, dumps) of JSON
    deliver  function(params) -> why the board cannot take this, or ""
    list_swarm  function(reply): asks who is in its swarm
    """

    def __init__(self, name: str, image, codecs: tuple, deliver, list_swarm):
        self.name, self.image, self.codecs, self._deliver = name, image, codecs, deliver
        self._list_swarm = list_swarm
        self._socket: BoardSocket | None = None
        self._is_over = False
        self._viewers: list = []
        self._last = 0
        self._next: deque = deque()  # requests that are to be sent
        self._sent: dict = {}  # id -> _Request
        self._asked: list = []  # viewers that hear of approvals
        self._logged: list = []  # those that hear of the log
        self._tasks = BoardTasks(self._send, lambda: int(time.time()))
        self._may_admin = read_approvals(image)[-1]
        self._beats: asyncio.TimerHandle | None = None

    async def open(self, folder: str):
        """Let people come to the socket in *folder*.  Raises ``OSError``."""
        self._socket = BoardSocket(folder, self._join)
        await self._socket.open()

    def close(self):
        """The board has gone, or the gateway ends."""
        since = iso8601(int(time.time()))
        error = ClawError(
            f"{self.name}: the board is not connected any more, since {since}",
            "what was under way there may go on; wait until it is back",
            {"since": since},
        )
        self._is_over = True
        self._tasks.end_all(error)
        for request in [*self._sent.values(), *self._next]:
            self._settle(request)
            request.reply(rpc.error(None, error))
        self._sent, self._next, self._viewers = {}, deque(), []
        if self._beats is not None:
            self._beats.cancel()
        if self._socket is not None:
            self._socket.close()

    # -- viewers

    def _join(self, person, write) -> Viewer:
        if self._beats is None:
            self._beat()
        viewer = Viewer(self, person, write)
        self._viewers.append(viewer)
        return viewer

    def leave(self, viewer: Viewer):
        """*viewer* has gone; their calls and turns go on."""
        for viewers in (self._viewers, self._asked, self._logged):
            if viewer in viewers:
                viewers.remove(viewer)
        self._tasks.forget(viewer)
        if not self._viewers and not self._is_over:
            self._deliver({"text": ""})

    def _beat(self):
        """Tell everybody, now and then, how the agent is."""
        heartbeat_s = self.image.agent.heartbeat_ms / 1000
        self._beats = asyncio.get_running_loop().call_later(heartbeat_s, self._beat)
        asker = next((one for one in self._viewers if one.is_open), None)
        if asker is not None:
            self._send(asker, "claw.status", {}, self._tell_beat)

    def _tell_beat(self, said: dict):
        status = said.get("result")
        if isinstance(status, dict):
            told = {name: status.get(name) for name in ("state", "uptime_ms")}
            told["timestamp"] = iso8601(int(time.time()))
            for viewer in self._viewers:
                if viewer.is_open:
                    viewer.tell(rpc.notification("claw.heartbeat", told))

    # -- requests

    def ask(self, viewer: Viewer, method: str, params: dict, reply):
        """Ask the board, and answer by *reply*.  Raises ``ClawError``."""
        if method.startswith("claw.task."):
            reply(rpc.result(None, self._tasks.begin(viewer, method, params)))
            return
        if method == "claw.swarm.list" and self.image.size_of(SWARM):
            self._list_swarm(reply)  # of all that the gateway knows, not the board
            return

        def answer(message: dict):
            if "result" in message:
                self._note_subscribed(viewer, method)
            reply(message)

        self._send(viewer, method, params, answer)

    def _note_subscribed(self, viewer: Viewer, method: str):
        watchers = {"claw.approval.subscribe": self._asked, "claw.log.subscribe": self._logged}
        if viewer in self._viewers and viewer not in watchers.get(method, [viewer]):
            watchers[method].append(viewer)

    def _send(self, viewer: Viewer, method: str, params: dict, reply) -> str:
        """Send a request when it is its turn; return its id."""
        self._last += 1
        request = _Request("p%d" % self._last, viewer, method, params, reply)
        self._next.append(request)
        self._pump()
        return request.id

    def _pump(self):
        while self._next:
            ahead = sum(not one.is_long for one in self._sent.values())
            if ahead >= MOST_AHEAD and not self._next[0].is_long:
                return
            request = self._next.popleft()
            self._sent[request.id] = request
            person = request.viewer.person
            asked = {"id": request.id, "text": request.method, "params": request.params}
            age_ms = time.monotonic_ns() // 1000000 - person.login_ms
            who = {"person": person.name, "role": person.role, "fresh": age_ms <= FRESH_MS}
            why = self._deliver({**asked, **who})
            if why:
                self._end(request.id, rpc.error(None, ClawError(why, "ask for less")))
            elif not request.is_long:
                loop = asyncio.get_running_loop()
                request.timer = loop.call_later(SILENCE_S, self._give_up, request.id)

    def _give_up(self, id: str):
        why = f"{self.name}: the board has said nothing for {SILENCE_S} s"
        self._end(id, rpc.error(None, ClawError(why, "try again")))

    def _settle(self, request: _Request):
        if request.timer is not None:
            request.timer.cancel()

    def _end(self, id: str, message: dict):
        request = self._sent.pop(id, None)
        if request is not None:
            self._settle(request)
            request.reply(message)
            self._pump()

    # -- what the board says

    def take(self, message: dict):
        """Take what the board says: an answer, or what it tells by itself."""
        method, id = message.get("method"), message.get("id")
        params = message.get("params")
        if method is None and isinstance(id, str):
            if isinstance(message.get("error"), dict) or "result" in message:
                self._end(id, {key: message[key] for key in ("result", "error") if key in message})
        elif not isinstance(params, dict):
            return
        elif method == "waits" and isinstance(params.get("turns"), list):
            self._tasks.note_waiting(params["turns"])
        elif method == UPDATED:
            for viewer in self._asked:
                if self._role(viewer) == ADMIN:
                    viewer.tell(rpc.notification(UPDATED, params))
        elif method == _EVENT and isinstance(params.get("event"), str):
            self._tell_log(params)

    def _role(self, viewer: Viewer) -> int:
        """Return the role of *viewer* as the board has it."""
        role = ROLE_NAMES.index(viewer.person.role)
        return role if self._may_admin else min(role, ADMIN - 1)

    def _tell_log(self, event: dict):
        event.setdefault("timestamp", iso8601(int(time.time())))
        told = None
        for viewer in self._logged:
            is_own = event["event"] == "tool.call" and event.get("caller") == viewer.person.caller
            if self._role(viewer) == ADMIN or is_own:
                told = told or rpc.notification(_EVENT, {**event, **self._explain(event)})
                viewer.tell(told)

    def _explain(self, event: dict) -> dict:
        """Return {"why": lines} for a call: the rules in their order, and what decided."""
        if event["event"] != "tool.call" or "status" not in event:
            return {}
        try:
            return {"why": trace_text(self.image, event).split("\n")[1:]}
        except (ClawError, KeyError, TypeError, ValueError):  # of a tool that is not there
            return {}
