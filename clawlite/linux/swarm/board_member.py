"""A member of a swarm whose turns are played elsewhere, and for which this process speaks: a board
behind a gateway (docs/adr/0133), or a remote agent (docs/adr/0133).

1. To the others it is a process like any: its bus says that it is there, and what it holds when it
   has gone is taken back by the rules that they have for a process that was killed.
2. The id of a turn is that of its task and when that was delegated: a task that comes again is the
   same turn, and one that a person let begin once more is another.
"""

import os
from typing import Any

from clawlite.core.base.effect import EVENT
from clawlite.core.base.errors import ClawError, InvalidRequest
from clawlite.core.image.image import SWARM
from clawlite.linux.files.files import open_image, swarm_folder
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.memory.memory import wall_ms
from clawlite.linux.swarm.bus_protocol import MemberBus
from clawlite.linux.swarm.member import GONE, Member, prompt_of
from clawlite.protocols.session.group_session import Later
from clawlite.protocols.swarm.swarm import COMPLETED, FAILED, PARTIAL, Swarm
from clawlite.protocols.swarm.swarm_methods import SwarmMethods

ASKED = ("claw.swarm.delegate", "claw.swarm.report", "claw.swarm.discover")
_LIST, _LAST = "claw.swarm.list", 50  # the gateway asks for people at its page; tasks


class BoardMember(Member):
    """One board, or the remote agent *remote*, a ``swarm.Member`` of the image's swarm.

    path  of the board's image, or of the image that says where the remote agent is
    tell  function(dict): what the gateway is to hear.  {"task": id, "text", "caller", "ms"}: a turn
          for the board, ms None where its own limit counts; {"begun": id, "text"}: a tool with side
          effects may begin, or why it must not; {"withdrawn": id, "text"}; {"event"}, of the log;
          {"swarm": id, "result" or "error"}: the answer to what an operator of the board asked
    end   function(``swarm.Swarm``, image, this member) -> its end of a bus that others in this
          process have, too (``swarm_commands.shared_bus``); None: it has a bus of its own
    Raises ``ClawError``: it is in no swarm, or its bus cannot be used.
    """

    def __init__(self, path: str, tell, remote=None, end=None):
        image = open_image(path)
        if not image.size_of(SWARM):
            raise ClawError("%s is in no swarm" % image.agent.name, "declare one: docs/swarm.md")
        record: Any = image.section(SWARM)
        swarm = Swarm(record)
        bus: MemberBus | None = None
        if remote is None:
            swarm.at_once = 1  # a board has room for one
        else:
            swarm.own = remote
            secret = remote.remote[-1]
            if swarm.engine and secret:
                *place, _, _, _ = swarm.engine
                swarm.engine = [*place, remote.identity, secret, ""]
        if end:
            bus = end(swarm, image, self)
        elif swarm.engine:
            from clawlite.linux.swarm.replicated_bus import bus_of

            bus = bus_of(swarm, image, wall_ms, now_ms, os.urandom)
        self._turns = {}  # id of a turn -> (id of its task, when it began, what its end is told to)
        self._begin_asked = {}  # id of a turn -> ``Later``
        self._say = tell
        folder = swarm_folder(swarm.name) if swarm.is_shared else None
        agent = _Agent(self._cancel_turn, tell)
        super().__init__(agent, swarm, folder, now_ms, wall_ms, os.urandom, bus)
        self.methods = SwarmMethods(agent, swarm, self)

    compares = False  # a gateway has a thousand of them

    def poll(self):
        super().poll()
        for turn, later in list(self._begin_asked.items()):
            if later.is_done:
                del self._begin_asked[turn]
                self._answer(turn, later)

    def lose(self):
        """The board has gone in the middle: to the others, this process was killed."""
        self._bus.leave()

    def was_taken(self, turn: str) -> bool:
        """Return whether another process, which has ended, was at the task of *turn* before."""
        taken = 0
        for _, what, _ in self._bus.history(self._turns[turn][0])[0]:
            taken = 0 if what == "delegated again" else taken + (what == "taken")
        return taken > 1

    # -- from the board

    def begins(self, turn: str):
        """The board asks whether a tool with side effects may begin in *turn*."""
        if turn not in self._turns:
            self._say({"begun": turn, "text": GONE})
            return
        try:
            begins = self._bus.begins(self._turns[turn][0])
        except ClawError as e:
            self._say({"begun": turn, "text": e.message})
            return
        if isinstance(begins, Later) and not begins.is_done:
            self._begin_asked[turn] = begins
        else:
            self._answer(turn, begins)

    def _answer(self, turn: str, begins):
        try:
            may = begins.value() if isinstance(begins, Later) else begins
            text = "" if may else GONE
        except ClawError as e:
            text = e.message
        self._say({"begun": turn, "text": text})

    def operator_asks(self, id: str, method: str, params):
        """An operator of the board asks *method* of the swarm (9.3.3); the answer is told with
        *id*, "" for a notification, which has none.
        """

        def reply(done):
            try:
                told = {"result": done.value() if isinstance(done, Later) else done}
            except ClawError as e:
                told = {"error": e.to_json()}
            self._say(dict(told, swarm=id))

        if not id:
            self.methods.notify({"method": method, "params": params})
            return
        try:
            if method == _LIST:
                value = self.describe(_LAST)
            elif method not in ASKED or not isinstance(params, dict):
                raise InvalidRequest("swarm: expected one of %s" % ", ".join(ASKED))
            else:
                value = self.methods.begin(method, params)
        except ClawError as e:
            self._say({"swarm": id, "error": e.to_json()})
            return
        if isinstance(value, Later):
            value.then(reply)
        else:
            reply(value)

    def take_report(self, turn: str, status: str, text: str, error):
        """The board reports *turn*; one that is not its own any more is dropped."""
        if turn not in self._turns or status not in (COMPLETED, PARTIAL, FAILED):
            return
        result = {"text": text}
        if error is not None:
            result["error"] = error
        self._close_turn(turn, status, result)

    def _close_turn(self, turn: str, status: str, result: dict):
        task_id, began_ms, end = self._turns.pop(turn)
        del self._runs[task_id]
        end(status, result, None, now_ms() - began_ms)

    def _cancel_turn(self, turn: str, error):
        self._say({"withdrawn": turn, "text": error.message})
        self._close_turn(turn, FAILED, {"text": "", "error": error.message})

    def _work(self, taken, description: str, data, end):
        turn = "%s-%d" % (taken.id, taken.created_ms)
        self._runs[taken.id] = turn
        self._turns[turn] = taken.id, now_ms(), end
        caller = "%s/%s" % (self.swarm.name, taken.sender)
        text = prompt_of(description, data)
        most_ms = self._rest_ms(taken) if self.swarm.timeout_ms else None
        self._say({"task": turn, "text": text, "caller": caller, "ms": most_ms})


class _Agent:
    """What ``Member`` asks of an agent, for one whose turns are on a board.

    cancel  function(id of a turn, error);  tell: see ``BoardMember``
    """

    is_ready = True

    def __init__(self, cancel, tell):
        self._cancel, self._tell = cancel, tell
        self.effects = self  # what is logged is told at once

    def append(self, effect: tuple):
        self._tell({"event": effect[EVENT]})

    def cancel(self, turn: str, error: InvalidRequest, _now_ms: int):
        self._cancel(turn, error)
