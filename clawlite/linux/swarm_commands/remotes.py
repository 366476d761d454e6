"""``clawlite swarm remote``: one process that is each member of a swarm that is a remote agent
(``[swarm.remote.NAME]``).  ``a2a_turn.py`` says what it asks them, and ``BoardMember`` does for
each what a member does.
"""

import os
from typing import Any

from clawlite.core.base.errors import ClawError, TransientError
from clawlite.core.image.image import NETWORK, NETWORK_AUTHORITIES, SWARM
from clawlite.core.net.exchange import host_of
from clawlite.core.net.http1 import EVENT_DATA, EVENT_KIND, EVENT_STATUS, Response, request
from clawlite.linux.files.files import open_image
from clawlite.linux.io.jsontext import dumps
from clawlite.linux.io.printing import print_line
from clawlite.linux.io.stdio import now_ms
from clawlite.linux.net.connections import Connections
from clawlite.linux.secrets.secrets import resolve, stores
from clawlite.linux.swarm.board_member import BoardMember
from clawlite.linux.swarm_commands.a2a_turn import ASK, BEGINS, MAX_ANSWER, WAIT, A2ATurn, Remote
from clawlite.linux.swarm_commands.command_loop import until_signal, wait
from clawlite.protocols.swarm.swarm import FAILED, REMOTE_SECRET, Swarm

CONNECT_MS = 10000
ANSWER_MS = 30000  # of one request


class _Work:
    """A generator of ``A2ATurn``, and where it stands."""

    def __init__(self, agent: "_Agent", turn: str, work, due_ms):
        self.agent, self.turn, self.work = agent, turn, work
        self.due_ms = due_ms  # when the whole turn must have ended, or None
        self.wake_ms: Any = None  # when it is to be resumed, or its answer to have come
        self.key: Any = None  # of its connection
        self.response: Any = None
        self.status, self.body = 0, b""


class _Agent:
    """One remote agent: its *member* of the swarm, and the *turns* that are under way."""

    def __init__(self, path: str, one, token: str, tell):
        secure, host, port, target, *_ = one.remote
        self.name, self.where = one.identity, (secure, host, port, target)
        self.remote = Remote(target, token)
        self.member = BoardMember(path, lambda what: tell(self, what), one)
        self.turns: dict = {}  # id of a turn -> (``A2ATurn``, ``_Work``)


class Remotes:
    """The remote agents that the image at *path* names.  Raises ``ClawError``: it names none, or a
    secret is missing.
    """

    def __init__(self, path: str):
        image = open_image(path)
        record: Any = image.section(SWARM)
        members = Swarm(record).members if record else []
        far = [one for one in members if one.remote]
        if not far:
            raise ClawError(
                "%s names no remote agent" % image.agent.name,
                "write [swarm.remote.NAME] in its clawlite.toml: docs/swarm-machines.md",
            )
        network: Any = image.section(NETWORK)
        authorities: list = list(network[NETWORK_AUTHORITIES]) if network else []
        self._wakes, wake = os.pipe()
        os.set_blocking(self._wakes, False)
        self._wake = wake
        self._connections = Connections(wake, authorities=authorities)
        self._work: list = []
        self._keys = 0
        self._agents: list = []
        for one in far:
            secret = one.remote[REMOTE_SECRET]
            token = resolve(secret, stores(image.agent.name)) if secret else ""
            self._agents.append(_Agent(path, one, token, self._take_member_record))
            print_line("%s: speaks for it at %s" % (one.identity, host_of(self._agents[-1].where)))

    def run(self) -> int:
        """Serve until a signal; return 0 after SIGTERM, 130 after Ctrl-C."""
        try:
            return until_signal(self._step)
        finally:
            self._connections.close_all()
            for agent in self._agents:
                agent.member.close()

    def _step(self):
        due = [at for one in self._work for at in (one.due_ms, one.wake_ms)]
        wait([self._wakes], [agent.member for agent in self._agents], due)
        try:
            os.read(self._wakes, 64)
        except BlockingIOError:
            pass
        for key, kind, data in self._connections.poll():
            for one in self._work:
                if one.key == key:
                    self._take_answer(one, kind, data)
                    break
        now = now_ms()
        for one in list(self._work):
            if one.due_ms is not None and now >= one.due_ms:
                self._give_up(one)
            elif one.wake_ms is not None and now >= one.wake_ms:
                if one.key is None:
                    self._resume(one, None)
                else:
                    self._connections.close(one.key)
                    self._fail(one, "it did not answer within %d ms" % ANSWER_MS)
        for agent in self._agents:
            agent.member.poll()

    # -- what the member tells

    def _take_member_record(self, agent: _Agent, record: dict):
        if "event" in record:
            print_line(dumps(record["event"]))
        elif "task" in record:
            turn, most_ms = record["task"], record["ms"]
            asked = A2ATurn(agent.remote, turn, record["text"], agent.member.was_taken(turn))
            due_ms = None if most_ms is None else now_ms() + most_ms
            work = _Work(agent, turn, asked.work(), due_ms)
            agent.turns[turn] = asked, work
            self._work.append(work)
            work.wake_ms = now_ms()
        elif "withdrawn" in record:
            self._cancel(agent, record["withdrawn"])
        elif record["begun"] in agent.turns:
            _, work = agent.turns[record["begun"]]
            if record["text"]:
                self._end(work, FAILED, "", record["text"])
            else:
                work.wake_ms = now_ms()

    def _cancel(self, agent: _Agent, turn: str):
        """The turn is not wanted any more: tell the remote agent."""
        asked, work = agent.turns.pop(turn, (None, None))
        if work in self._work:
            self._drop(work)
            last = _Work(agent, "", asked.cancel(), now_ms() + ANSWER_MS)
            last.wake_ms = now_ms()
            self._work.append(last)

    def _give_up(self, work: _Work):
        if not work.turn:  # a cancellation that nobody answers
            self._drop(work)
            return
        self._cancel(work.agent, work.turn)
        work.agent.member.take_report(
            work.turn, FAILED, "", "the remote agent did not finish in time"
        )

    def _end(self, work: _Work, status: str, text: str, error):
        self._drop(work)
        if work.turn:
            work.agent.turns.pop(work.turn, None)
            work.agent.member.take_report(work.turn, status, text, error)

    def _drop(self, work: _Work):
        if work.key is not None:
            self._connections.close(work.key)
        if work in self._work:
            self._work.remove(work)

    # -- one request

    def _resume(self, work: _Work, value, error=None):
        work.key = work.wake_ms = None
        try:
            step = work.work.throw(error) if error else work.work.send(value)
        except StopIteration as end:
            if work.turn:
                self._end(work, *end.value)
            else:
                self._drop(work)
            return
        kind, *details = step
        if kind == WAIT:
            (pause_ms,) = details
            work.wake_ms = now_ms() + pause_ms
        elif kind == BEGINS:
            work.agent.member.begins(work.turn)
        elif kind == ASK:
            self._ask(work, *details)

    def _ask(self, work: _Work, headers: list, body: bytes):
        secure, host, port, target = where = work.agent.where
        head = request("POST", target, host_of(where), headers, len(body))
        self._keys += 1
        work.key, work.response, work.body = self._keys, Response(), b""
        work.wake_ms = now_ms() + ANSWER_MS
        scheme = "https" if secure else "http"
        self._connections.open(work.key, scheme, host, port, [head, body], CONNECT_MS)

    def _take_answer(self, work: _Work, kind: str, data):
        if kind in ("error", "refused"):
            self._fail(work, str(data))
            return
        try:
            if kind == "end":
                work.response.at_end()
            else:
                work.response.feed(data)
            while True:
                event = work.response.next_event()
                if event is None:
                    return
                if event[EVENT_KIND] == "head":
                    work.status = event[EVENT_STATUS]
                elif event[EVENT_KIND] == "data":
                    work.body += event[EVENT_DATA]
                    if len(work.body) > MAX_ANSWER:
                        raise ClawError(
                            "its answer has more than %d bytes" % MAX_ANSWER,
                            "ask it for less at once",
                        )
                else:
                    break
        except ClawError as e:
            self._connections.close(work.key)
            # cut: another attempt may get all of it
            error = TransientError if kind == "end" else ClawError
            self._resume(work, None, error(e.message))
            return
        self._connections.close(work.key)
        self._resume(work, (work.status, work.body))

    def _fail(self, work: _Work, why: str):
        self._resume(work, None, TransientError(why))
