"""A board as a member of its swarm (docs/swarm-boards.md): its gateway speaks to the engine on its
behalf and gives it one task after the other.

1. Loaded for images that require ``swarm``.  Whenever the gateway has said whether the swarm is
   stopped, the board answers ``claw.gateway.member``; only then do other members see it.
2. A task is a turn of its own, beside the console's.  It is known by its id: a task that is
   repeated is not begun again; its report is sent again.  The last report is kept in memory for
   that.
3. Before the first tool with side effects of a task, the board waits until the gateway has put on
   record that it begins: it sends ``claw.gateway.begins``, and the answer ``begun`` has "" or the
   reason why the tool must not run.
4. A new task ends the one before, which has been given to another process by then.
5. An operator's request to the swarm (swarmsession.py) is sent in a ``claw.gateway.swarm``, and its
   answer comes in another one.
"""

from clawlite.core.base.effect import PROMPT, SLEEP, TELL
from clawlite.core.base.errors import ClawError, InvalidRequest, wrap_error
from clawlite.core.base.printable import escape_ends
from clawlite.core.image.image import HAS_SIDE_EFFECTS
from jsontext import loads
from swarmstop import SwarmStop

_LOOK_MS = 20  # between checks whether the gateway has answered
_MOST = 4096  # characters of a task's text that are reported


class SwarmMember(SwarmStop):
    """The tasks of *device*, one at a time.  ``session``: ``swarmsession.SwarmSession`` or None."""

    session = None

    def __init__(self, device):
        super().__init__(device)
        self._device, self._uplink = device, device.net
        self._id = self._number = self._report = self._may = None
        self._asks = self._is_partial = False

    def new_session(self):
        from swarmsession import SwarmSession

        self.session = SwarmSession(self._device.agent, loads, self._uplink)
        return self.session

    def hear(self, method: str, params: dict) -> bool:
        if super().hear(method, params):
            self._uplink.notify("member", {})
            return True
        id = params.get("id")
        if not isinstance(id, str) or not method.startswith("claw.gateway."):
            return False
        if method == "claw.gateway.task":
            if id != self._id:
                self._end("it was given to another process")
                self._begin(id, params)
            elif self._report:
                self._uplink.notify("report", self._report)
            elif self._asks:
                self._uplink.notify("begins", {"id": id})
        elif method == "claw.gateway.begun":
            if id == self._id:
                self._may, self._asks = params["text"], False
        elif method == "claw.gateway.swarm":
            if self.session:
                self.session.take_answer(id, params)
        elif method == "claw.gateway.withdrawn":
            if id == self._id:
                self._end(params["text"])
        else:
            return False
        return True

    def _end(self, why: str):
        """End the current task, if there is one."""
        number, self._number = self._number, None
        if number is not None:
            self._device.agent.cancel(number, InvalidRequest(why), self._device.now_ms())

    def _begin(self, id: str, params: dict):
        from clawlite.core.turns.history import History
        from clawlite.core.turns.turn import turn

        agent, now = self._device.agent, self._device.now_ms()
        self._id, self._report, self._may = id, None, None
        self._asks = self._is_partial = False
        caller, most = params.get("caller"), params.get("ms")
        text = params["text"]
        self._caller = caller if isinstance(caller, str) else "swarm"
        if self._device.console:
            agent.effects.append((TELL, "Task of %s: %s" % (self._caller, text)))
        history = History(agent.setup.keep_bytes)

        def finish(_, error, now_ms: int):
            if id == self._id:
                self._number = None
                self._send_report(history.turn, error)

        budget = agent.image.agent.turn_ms
        if isinstance(most, int) and (budget is None or most < budget):
            budget = most
        try:
            if agent.setup.prepare:
                agent.setup.prepare()
            work = turn(agent.setup, text, agent.chain(), history, self._call)
            self._number = agent.begin(work, finish, now, budget)
        except Exception as e:
            self._send_report([], e)

    def _send_report(self, messages: list, error):
        """Report the result of the task; its ``turn.Message`` are *messages*."""
        said = [each.text for each in messages if each.role == "assistant" and each.text]
        text = "\n".join(said).strip()
        report = {"id": self._id, "status": "partial" if self._is_partial else "completed"}
        if error:
            report["status"] = "failed"
            report["error"] = (error if isinstance(error, ClawError) else wrap_error(error)).message
        guard = self._device.guard
        for name, value in (("text", text), ("error", report.get("error"))):
            if value is not None:
                report[name] = _cut(guard.text(value) if guard else value)
        self._report = report
        self._uplink.notify("report", report)
        console, agent = self._device.console, self._device.agent
        if console and not console.is_busy and not agent.waiting:
            agent.effects.append((PROMPT, escape_ends(agent.image.agent.prompt)))

    def _call(self, setup, name, arguments, _, *more):
        """Run one call of the task's turn, as ``tools.call`` does."""
        from clawlite.core.turns.tools import call

        try:
            tool = setup.image.tool(name) if isinstance(name, str) else None
            if tool and self._may is None and tool.flags & HAS_SIDE_EFFECTS:
                self._asks = True
                self._uplink.notify("begins", {"id": self._id})
                while self._asks:
                    yield (SLEEP, _LOOK_MS)
            if self._may:
                raise InvalidRequest(self._may)
            result = yield from call(setup, name, arguments, self._caller, *more)
        except ClawError:
            self._is_partial = True
            raise
        if result.is_error:
            self._is_partial = True
        return result


def _cut(text: str) -> str:
    if len(text) <= _MOST:
        return text
    return "%s\n[truncated: true, original_bytes: %d]" % (text[:_MOST], len(text.encode()))
