"""The operator's session of a board with readings and rules: it answers ``claw.rule.*``,
``claw.reading.*`` and ``claw.pin.list``, too (docs/rules.md).  Loaded with the first session.
"""

from clawlite.core.protocol.session import Session
from unload import drop

_RECORDED = "claw.reading.history claw.pin.list"


class RuleSession(Session):
    """As ``session.Session``; *rules*: ``boardrules.BoardRules``, or None."""

    _caller = None  # who asks just now, where that is known

    def __init__(self, agent, loads, rules):
        super().__init__(agent, loads)
        self._rules = rules

    def _find_row(self, method: str) -> list:
        return self._row(method) or super()._find_row(method)

    def _other(self, id, method: str, params, reply, now_ms: int):
        if (
            not self._open
            or not self.agent.is_ready
            or not isinstance(params, dict)
            or not self._row(method)
        ):
            return super()._other(id, method, params, reply, now_ms)
        if method in _RECORDED:
            drop()  # what looking up the method has loaded
            from boardrecord import begin

            return begin(self._rules, id, method, params, reply, now_ms)
        if self._caller:
            params = dict(params, caller=self._caller)
        return self._rules.load_commands().begin(method, params)

    def _row(self, method: str) -> list:
        return self._rules.find_row(method) if self._rules else []
