"""What operators watch and answer beside their own requests: the approvals that wait, the log as it
is written, and what the agent uses.  These methods are clawlite's own; docs/methods.md.

1. An admin sees and answers every approval, whoever asked for it; the first answer counts.
2. An admin sees the whole log.  Others see the calls of their own tasks.
3. What is told has no secrets, as the log has none.
"""

from clawlite.core.base.effect import SEND
from clawlite.core.policy.access import ADMIN
from clawlite.core.protocol import approvals
from clawlite.core.protocol.rpc import notification
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.stdio import Part, now_ms
from clawlite.linux.tasks.usage import Usage
from clawlite.protocols.session.group_session import Group

ROWS = """
approval.subscribe ready  -  -  -
approval.answer    ready  -  -  -  number is_approved reason? asked_ms?
log.subscribe      ready  -  -  -
usage.get          ready  -  -  -
"""
_EVENT = "claw.log.event"


class WatchGroup(Part, Group):
    """The methods here, and what they watch.

    parts  ``agent_parts.AgentParts``
    """

    rows = ROWS

    def __init__(self, parts):
        self.agent, self._guard = parts.agent, parts.guard
        self._asked: list = []  # Watchers that hear of approvals
        self._logged: list = []  # those that hear of the log
        self._known: dict = {}  # id of an approval that waits -> it
        self.usage = Usage(parts)
        parts.watch_log(self._write)
        self._own = Watcher(self, None, lambda message: parts.agent.effects.append((SEND, message)))

    def of(self, person, send):
        """Return this group for a line of *person*."""
        return Watcher(self, person, send)

    def begin(self, method: str, params: dict) -> dict:
        """Return the result of a request of who is on stdin.  Raises ``ClawError``."""
        return self._own.begin(method, params)

    def update(self):
        """Tell of approvals that have come and gone since the last look."""
        if not self._asked or not self._known and not self.agent.waiting:
            return
        known, self._known = self._known, {}
        for task in approvals.list_waiting(self.agent):
            if known.pop(id(task.approval), None) is None:
                self._tell_asked(self.describe(task))
            self._known[id(task.approval)] = task.approval
        for approval in known.values():
            self._tell_asked(approvals.describe_end(approval))

    def _tell_asked(self, told: dict):
        for watcher in self._asked:
            watcher.tell(approvals.UPDATED, told)

    def add_asked(self, watcher) -> list:
        """Let *watcher* hear of approvals from now on; return those that wait."""
        self.update()
        if not self._asked:  # what came before was told to nobody
            self._known = {id(task.approval): task.approval for task in self._open()}
        if watcher not in self._asked:
            self._asked.append(watcher)
        return [self.describe(task) for task in self._open()]

    def add_logged(self, watcher):
        """Let *watcher* hear of the log from now on."""
        if watcher not in self._logged:
            self._logged.append(watcher)

    def remove(self, watcher):
        """Tell *watcher* nothing more."""
        for watchers in (self._asked, self._logged):
            if watcher in watchers:
                watchers.remove(watcher)

    def _open(self) -> list:
        return approvals.list_waiting(self.agent)

    def describe(self, task) -> dict:
        """Return what a person is shown of an approval, without secrets."""
        return self._without_secrets(approvals.describe(task, now_ms()))

    def _without_secrets(self, told: dict) -> dict:
        return told if self._guard is None else loads(self._guard.text(dumps(told)).encode())

    def _write(self, event: dict):
        """An event is written to the log."""
        self.usage.count(event)
        told = None
        for watcher in self._logged:
            if not watcher.may_see(event):
                continue
            if told is None:
                told = self._without_secrets({**event, **self._explain(event)})
            watcher.tell(_EVENT, told)

    def _explain(self, event: dict) -> dict:
        """Return what a call gets beside its event: ``why``, its decision in lines, and its
        ``rules`` and ``gates``.
        """
        if event["event"] != "tool.call" or "status" not in event:
            return {}
        from clawlite.linux.records.call_record import describe

        try:
            found = describe(self.agent.image, 1, event)
        except (KeyError, TypeError, ValueError):  # an event of a tool that is not there
            return {}
        return {"why": found["lines"], "rules": found["rules"], "gates": found["gates"]}


class Watcher(Group):
    """The group of one line.

    person  ``operator_line.Person``, None: who is on stdin
    send    function(message)
    """

    rows = ROWS

    def __init__(self, group: WatchGroup, person, send):
        self._group, self._person, self._send = group, person, send

    def begin(self, method: str, params: dict) -> dict:
        """Return the result of a request.  Raises ``ClawError``."""
        if method == "claw.approval.subscribe":
            return {"approvals": self._group.add_asked(self)}
        if method == "claw.log.subscribe":
            self._group.add_logged(self)
            return {"subscribed": True}
        if method == "claw.usage.get":
            return self._group.usage.describe()
        by = self._person.name if self._person else params.get("caller") or "operator"
        return approvals.answer(self._group.agent, params, by, now_ms())

    def may_see(self, event: dict) -> bool:
        """Return whether the person sees *event* of the log."""
        if self._person is None or self._person.role == ADMIN:
            return True
        own = self._person.caller, "tasks/" + self._person.caller
        return event["event"] == "tool.call" and event.get("caller") in own

    def tell(self, method: str, params: dict):
        self._send(notification(method, params))

    def close(self):
        """The line has ended."""
        self._group.remove(self)
