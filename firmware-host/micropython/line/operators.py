"""People at the page of this board's gateway (docs/gateway.md): operators beyond the console.

1. Loaded when the first of them speaks, and dropped when the last has gone, or the gateway.  All of
   them share one session: the gateway knows whose request is whose, and the board who asks.
2. Each message names the person and their role.  The gateway could lie, so nobody is more than a
   user unless the image lets the gateway speak for admins ([gateway] roles).  What a role may is
   core/protocol/rights.py's to say, as on Linux.
3. Requests are handled in ``tick``, because deeper in the loop the stack would not be enough.  What
   is for the gateway waits until the line has room.
4. ``turn`` is a request of the gateway's own: a turn for a person, of which it makes a task.
"""

from clawlite.core.base.effect import EVENT, KIND, LOG
from clawlite.core.base.errors import ClawError, InvalidRequest, wrap_error
from clawlite.core.agent.lifecycle import STOPPED
from clawlite.core.policy.access import ADMIN, ROLE_NAMES, USER
from clawlite.core.protocol.rpc import error, notification, result
from clawlite.core.protocol.approvals import UPDATED, answer, describe, describe_end, list_waiting
from jsontext import dumps, loads
from rulesession import RuleSession
from unload import drop

_RARE = "rights"  # loaded for a request, and dropped
_APPROVALS, _MAY_ADMIN = 28, 2  # a section (protocols/image/features.py), and a position in it
_AT_ONCE = 2  # turns
_MOST = 4096  # characters of what a turn says
_ROOM = 16  # messages that come in one round of the loop, or events of the log that wait
_LOOK_MS = 20  # between checks whether the line has room


class _Session(RuleSession):
    """The session that all people share."""

    def ask(self, message: dict, caller: str, reply, now_ms: int):
        """Answer *message* of *caller* by *reply*."""
        self._caller = caller
        if self._calls:
            self._calls.act_for(caller)
        self._one(message, reply, now_ms)

    def _begin_calls(self):
        super()._begin_calls().act_for(self._caller)
        return self._calls

    def _initialize(self, params: dict, now_ms: int):
        """Let one more of them begin."""
        was_open, self._open = self._open, False
        try:
            return super()._initialize(params, now_ms)
        finally:
            self._open = self._open or was_open


class Operators:
    """The people of one gateway, a part beside the loop of *device*.

    uplink  ``uplink.Uplink``
    """

    def __init__(self, device, uplink):
        self._device, self._agent, self._uplink = device, device.agent, uplink
        said = device.image.section(_APPROVALS)
        self._may_admin = bool(said and len(said) > _MAY_ADMIN and said[_MAY_ADMIN])
        self._session = _Session(self._agent, loads, device.rules)
        self._come, self._out = [], []
        self._taken = None  # id of the request that is being handled
        self._turns = {}  # id of a request -> number of its task
        self._put = None  # approvals that people know of; None: nobody asks
        self._logs = None  # names of those who see the log of their calls; "*": all of it
        self._is_changed = self._is_over = False
        self._agent.on_wait.append(self._note_change)

    # -- the loop

    def hear(self, params: dict):
        """Take a message of the gateway; one without a method: the last of them has gone."""
        if params["text"]:
            self._come = self._come[1 - _ROOM :] + [params]
        else:
            self._is_over = True

    def deadline(self):
        if self._come or self._is_changed or self._is_over:
            return self._device.now_ms()
        return self._device.now_ms() + _LOOK_MS if self._out else None

    def tick(self, now_ms: int):
        """Answer what has come, and send what waits."""
        if self._is_over or not self._uplink.is_up:
            self._leave()
            return
        if self._taken:  # memory ran out
            wrong = InvalidRequest("this board has too little memory for that", "ask for less")
            self._send(error(self._taken, wrong))
        while self._come:
            self._taken = self._come[0].get("id")
            self._take(self._come.pop(0), now_ms)
            drop(_RARE)
        self._taken = None
        if self._is_changed:
            self._is_changed = False
            self._tell_changes(now_ms)
        while self._out and self._uplink.has_room():
            self._uplink.notify("operator", self._out.pop(0))

    def _leave(self):
        """Nobody is there any more; turns go on."""
        self._is_over, self._out = True, []
        self._agent.on_wait.remove(self._note_change)
        if self in self._device.before:
            self._device.before.remove(self)
        self._uplink.forget_operators()

    def _send(self, message: dict):
        """Send *message* when the line has room, after what waits already."""
        if not self._is_over:
            self._out.append(message)

    # -- requests

    def _take(self, params: dict, now_ms: int):
        id, method, person = params.get("id"), params["text"], params.get("person")
        role, asked = params.get("role"), params.get("params")
        try:
            if not isinstance(person, str) or role not in ROLE_NAMES or not isinstance(id, str):
                raise InvalidRequest("the gateway has not said who asks", "update the gateway")
            role = ROLE_NAMES.index(role)
            if role == ADMIN and not self._may_admin:
                role = USER
            asked = self._check(method, person, role, params.get("fresh") is True, asked)
            value = self._do(id, method, person, role, asked, now_ms)
        except Exception as e:
            self._send(error(id, e if isinstance(e, ClawError) else wrap_error(e)))
        else:
            if value is not None:
                self._send(result(id, value))

    def _check(self, method: str, person: str, role: int, is_fresh: bool, asked):
        """Return the parameters of a request that *person* may make.  Raises ``PolicyDenied``."""
        from clawlite.core.protocol.rights import check, least, without_actor

        named = {"turn": "claw.task.create", "cancel": "claw.task.cancel"}.get(method, method)
        wanted, takes_fresh = least(named)
        if method == "claw.initialize" and self._agent.lifecycle.state == STOPPED:
            wanted, takes_fresh = ADMIN, True
        check(named, person, role, wanted, takes_fresh and not is_fresh)
        return without_actor(asked, person) if isinstance(asked, dict) else asked

    def _do(self, id: str, method: str, person: str, role: int, asked, now_ms: int):
        """Return the result of a request, None when it comes later."""
        caller = "operator/" + person
        if method == "turn":
            return self._begin(id, caller, asked, now_ms)
        if method == "cancel":
            return self._cancel(caller, asked, now_ms)
        if method == "claw.approval.answer":
            return answer(self._agent, asked, person, now_ms)
        if method == "claw.approval.subscribe":
            self._tell_changes(now_ms)
            waiting = list_waiting(self._agent)
            self._put = [task.approval for task in waiting]
            return {"approvals": [self._guard(describe(one, now_ms)) for one in waiting]}
        if method == "claw.log.subscribe":
            self._logs = (self._logs or []) + ["*" if role == ADMIN else caller]
            if self not in self._device.before:
                self._device.before.append(self)
            return {"subscribed": True}
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": asked}
        self._session.ask(message, caller, self._send, now_ms)

    def _guard(self, told: dict) -> dict:
        """Return *told* without secrets."""
        guard = self._device.guard
        return loads(guard.text(dumps(told)).encode()) if guard else told

    # -- turns

    def _begin(self, id: str, caller: str, asked: dict, now_ms: int):
        from clawlite.core.turns.turn_output import TurnOutput, call_for, keep_output
        from clawlite.core.turns.history import History
        from clawlite.core.turns.turn import Message, turn

        agent = self._agent
        if not agent.is_ready:
            raise InvalidRequest(
                "claw.task.create: the agent is " + agent.lifecycle.state,
                "try again when it is READY",
            )
        if len(self._turns) >= _AT_ONCE:
            raise InvalidRequest("%d turns are under way already" % _AT_ONCE, "wait for one to end")
        into, history = TurnOutput(_MOST), History(agent.setup.keep_bytes)
        history.restore([[Message(role, text)] for role, text in asked.get("before") or ()])

        def end(_, fault, now_ms: int):
            self._turns.pop(id, None)
            told = {"text": into.text()}
            if fault:
                wrong = fault if isinstance(fault, ClawError) else wrap_error(fault)
                told["error"] = wrong.message + (" - " + wrong.hint if wrong.hint else "")
            self._send(result(id, self._guard(told)))

        self._turns[id] = None
        try:
            work = turn(agent.setup, asked["message"], agent.chain(), history, call_for(caller))
            work = keep_output(work, caller, into)
            number = agent.begin(work, end, now_ms, agent.image.agent.turn_ms)
        except Exception:
            self._turns.pop(id, None)
            raise
        if id in self._turns:
            self._turns[id] = number

    def _cancel(self, caller: str, asked: dict, now_ms: int) -> dict:
        """End the turn of an earlier request; the gateway lets nobody end that of another."""
        number = self._turns.get(asked.get("id"))
        if number is not None:
            why = asked.get("reason")
            self._agent.cancel(number, InvalidRequest(why or "canceled by " + caller), now_ms)
        return {}

    # -- what people watch

    def _note_change(self, _, now_ms: int):
        """Another approval waits, or waits no more."""
        self._is_changed = True

    def _tell_changes(self, now_ms: int):
        """Say which turns wait for a person, and to admins which approvals have come and gone."""
        waiting = list_waiting(self._agent)
        numbers = [task.number for task in waiting]
        told = [id for id in self._turns if self._turns[id] in numbers]
        self._send(notification("waits", {"turns": told}))
        if self._put is None:
            return
        for approval in self._put:
            if not [task for task in waiting if task.approval is approval]:
                self._update(describe_end(approval))
        for task in waiting:
            if task.approval not in self._put:
                self._update(self._guard(describe(task, now_ms)))
        self._put = [task.approval for task in waiting]

    def _update(self, told: dict):
        self._send(notification(UPDATED, told))

    def take(self, effect: tuple) -> bool:
        """See an effect first: an event of the log is told to whoever may see it."""
        if effect[KIND] == LOG and len(self._out) < _ROOM:
            event = effect[EVENT]
            is_own = event["event"] == "tool.call" and event.get("caller") in self._logs
            if is_own or "*" in self._logs:
                self._send(notification("claw.log.event", self._guard(dict(event))))
        return False
