"""The session of an operator whose shell answers more methods than ``session.Session`` has: those
of a swarm (CKP 0.2.0, 9.3.3) and those of tasks.  A class of its own, so that a board, which has
none of them, loads nothing of it.
"""

from clawlite.core.protocol.session import Session


class GroupSession(Session):
    """As ``Session``; *groups* is a list of what answers more methods:

    capability               a name for ``capabilities`` of claw.initialize, or ""
    serves(method) -> bool   raises ``ClawError`` for what is no request
    begin(method, params)    returns the result; raises ``ClawError``
    notified(message)        takes a notification; never raises
    """

    groups = ()

    def _one(self, message, reply, now_ms: int, opens: bool = False) -> bool:
        if super()._one(message, reply, now_ms, opens):
            return True
        # a response has no method, and only notifications are heeded
        if self._is_heard and isinstance(message, dict):
            for group in self.groups:
                group.notified(message)
        return False

    def _other(self, id, method: str, params, reply, now_ms: int):
        if self._is_heard and isinstance(params, dict):
            for group in self.groups:
                if group.serves(method):
                    return group.begin(method, params)
        return super()._other(id, method, params, reply, now_ms)

    def _serves(self, method: str) -> bool:
        return any(group.serves(method) for group in self.groups) or super()._serves(method)

    @property
    def _is_heard(self) -> bool:
        return self._open and self.agent.is_ready

    def _initialize(self, params: dict, now_ms: int):
        value = super()._initialize(params, now_ms)
        if value is not None:
            asked = params["capabilities"]
            for group in self.groups:
                if group.capability and (not asked or group.capability in asked):
                    value["capabilities"][group.capability] = {}
        return value
