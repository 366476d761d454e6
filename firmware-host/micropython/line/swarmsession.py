"""The operator's session of a board that is a member of a swarm: the process that speaks for the
board, its gateway or ``clawlite swarm board``, answers ``claw.swarm.*`` (CKP 0.2.0, 9.3.3).

1. Loaded for images that require ``swarm``, with the session itself.
2. Parameters are passed on unchanged, and so is the answer, which must come within _WAIT_MS.  A
   task has an id, so a delegation without an answer may be sent again.  A broadcast has no answer.
"""

from clawlite.core.base.effect import SLEEP
from clawlite.core.base.errors import ClawError
from clawlite.core.protocol.method_table import NEVER, READY
from clawlite.core.protocol.rpc import error
from clawlite.core.protocol.session import Session

_WAIT_MS = 10000
_LOOK_MS = 20  # between checks whether the answer has come
_REQUESTS = ("claw.swarm.delegate", "claw.swarm.report", "claw.swarm.discover")
_BROADCAST = "claw.swarm.broadcast"
_HINT = "start it: clawlite gateway, or clawlite swarm board"


class SwarmSession(Session):
    """As ``session.Session``; *uplink*: ``uplink.Uplink``."""

    def __init__(self, agent, loads, uplink):
        super().__init__(agent, loads)
        self._uplink = uplink
        self._answers, self._count = {}, 0  # id of a request -> dict for its answer

    def take_answer(self, id: str, params: dict):
        """Take an answer; one that nobody waits for is dropped."""
        if id in self._answers:
            name = "result" if "result" in params else "error"
            self._answers[id][name] = params.get(name)

    def _initialize(self, params: dict, now_ms: int):
        value = super()._initialize(params, now_ms)
        asked = params["capabilities"]
        if value is not None and (not asked or "swarm" in asked):
            value["capabilities"]["swarm"] = {}
        return value

    def _one(self, message, reply, now_ms: int, opens: bool = False) -> bool:
        if super()._one(message, reply, now_ms, opens):
            return True
        if self._open and isinstance(message, dict) and message.get("method") == _BROADCAST:
            self._up("", _BROADCAST, message.get("params"))
        return False

    def _find_row(self, method: str) -> list:
        if method in _REQUESTS:
            return [method, READY, "swarm"]
        if method == _BROADCAST:
            return [method, NEVER, "swarm"]
        return super()._find_row(method)

    def _other(self, id, method: str, params, reply, now_ms: int):
        if (
            method not in _REQUESTS
            or not self._open
            or not self.agent.is_ready
            or not isinstance(params, dict)
        ):
            return super()._other(id, method, params, reply, now_ms)
        answer = {}

        def finish(_, fault, now_ms: int):
            reply(error(id, fault) if fault else dict(answer, jsonrpc="2.0", id=id))

        self.agent.begin(self._ask(method, params, answer), finish, now_ms, _WAIT_MS)

    def _ask(self, method: str, params: dict, answer: dict):
        """A generator of effects: ask the process that speaks for the board, and wait until
        *answer* is filled.
        """
        self._count += 1
        id = str(self._count)
        self._answers[id] = answer
        try:
            if not self._up(id, method, params):
                raise ClawError("nothing speaks for this board in its swarm", _HINT)
            while not answer:
                yield (SLEEP, _LOOK_MS)
        finally:
            del self._answers[id]

    def _up(self, id: str, method: str, params) -> bool:
        return self._uplink.notify("swarm", {"id": id, "method": method, "params": params})
