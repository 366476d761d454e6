"""Tasks that wait for each other.  A turn that delegates a task keeps its place in its process
until the report has come, so two agents that delegate to each other could wait for ever.

1. A task goes on when it can still end.  A task whose turn delegates goes on when all tasks that
   the turn asked for go on; a divided task, when all of its parts do.  A task that nobody has taken
   goes on when a process that may take it has a free place, or a place whose task goes on.
2. All other tasks are stuck: they were delegated in a circle, or two circles share agents, or
   ``max_parallel`` leaves no place.
3. A task is not stuck when no process is there that may take it: one may still come.
4. Of several stuck tasks, the newest is refused, by the process that asked for it.  Then the others
   go on, or are checked again.
"""

from collections import namedtuple

from clawlite.protocols.swarm.swarm import PEER_TO_PEER, PIPELINE, RUNNING

Peer = namedtuple("Peer", "process identity at_once")  # at_once: 0 of one that does no tasks
# id, state, process, recipient, parent: columns of the tables of ``bus``;  divided: 0 or 1
# asker: id of the task whose turn asked for this one, or ""
Open = namedtuple("Open", "id state process recipient parent divided asker")


class WaitGraph:
    """Which tasks wait for which in a swarm, and which of them can never end.

    tasks  list of ``Open``, in the order in which they were delegated
    peers  list of ``Peer``, the processes that are there
    swarm  ``swarm.Swarm``
    """

    def __init__(self, tasks: list, peers: list, swarm) -> None:
        self._tasks, self._peers, self._most = tasks, peers, swarm.max_parallel
        self._all_divide = swarm.topology == PIPELINE or (
            swarm.topology == PEER_TO_PEER and swarm.to_all
        )
        self._there = {process for process, _, _ in peers}
        self._below: dict = {}  # id of a task -> ids of the tasks that it waits for
        self._at: dict = {}  # process -> ids of the tasks that take its places
        self._busy: set = set()  # ids of the tasks that take a place in any process
        for one in tasks:
            for above in filter(None, (one.parent, one.asker)):
                self._below.setdefault(above, []).append(one.id)
            if one.state == RUNNING and not one.divided:
                self._at.setdefault(one.process, set()).add(one.id)
                self._busy.add(one.id)

    def why_refused(self, task_id: str) -> str:
        """Return why the task is refused, or "" when it is not."""
        goes_on = self._going_on()
        turns = {one.id for one in self._tasks if one.state == RUNNING}
        stuck = [one for one in self._tasks if one.asker in turns and one.id not in goes_on]
        newest = stuck.pop() if stuck else None
        if newest is None or newest.id != task_id:
            return ""
        if self._is_full(goes_on):
            return "max_parallel is %d, and each running task waits for another" % self._most
        if newest.state == RUNNING:
            return "a task that it gave to others waits for it"
        names = sorted({identity for _, identity, _ in self._able(newest)})
        said = "each process of %s waits for it, or for another task that waits for it"
        return said % ", ".join(names)

    def _going_on(self) -> set:
        """Return the ids of all tasks that go on."""
        found: set = set()
        while True:
            more = [one.id for one in self._tasks if one.id not in found and self._goes(one, found)]
            if not more:
                return found
            found.update(more)

    def _goes(self, one: Open, known: set) -> bool:
        """Return whether the task *one* goes on, given that the tasks *known* do."""
        if one.state == RUNNING:
            if one.process not in self._there:  # the others will take the task back
                return True
            return all(below in known for below in self._below.get(one.id, ()))
        able = self._able(one)
        if not able or self._all_divide and not one.parent:
            return True
        if any(not at_once for _, _, at_once in able):  # a leader divides it or passes it on
            return True
        if self._is_full(known):
            return False
        for process, _, at_once in able:
            at = self._at.get(process, set())
            if len(at) < at_once or at & known:
                return True
        return False

    def _is_full(self, known: set) -> bool:
        """Return whether ``max_parallel`` leaves no place until a task outside of *known* ends."""
        return self._most is not None and len(self._busy) >= self._most and not self._busy & known

    def _able(self, one: Open) -> list:
        """Return the peers that may take a task that waits."""
        if one.recipient:
            return [peer for peer in self._peers if peer.identity == one.recipient]
        return [peer for peer in self._peers if peer.at_once]
