"""A task that this process divides: others do its parts, and their reports become one.

Its parts have ids that follow from the task's own, so a process that takes the task after this one
was killed finds the same parts, and those that have ended are not done again.
"""

import uuid

from clawlite.protocols.swarm.aggregation import Part
from clawlite.protocols.swarm.swarm import BEST_OF_N, CHAIN, LEADER_DECIDES, RUNNING, WAITING, Task

DECIDED = (LEADER_DECIDES, BEST_OF_N)  # strategies whose result a turn may have to decide


class Division:
    """A task and its parts.

    taken    ``bus.Taken``
    names    identities that each do a part, in their order
    swarm    ``swarm.Swarm``
    decides  bool, a turn of this agent is deciding what the result is
    """

    def __init__(self, taken, names: list, swarm):
        self.taken, self._names, self._swarm = taken, names, swarm
        self.decides = False
        self._put = 0  # parts that are on the bus
        self._is_told = False  # that this task is divided

    def advance(self, bus, wall_ms: int):
        """Put what can be done on the bus; return all parts as a list of ``Part`` when there is
        nothing left to wait for, else None.  Raises ``ClawError``; it goes on where it was when it
        is called again.
        """
        if not self._is_told:
            bus.divide(self.taken.id)
            self._is_told = True
        late = self._swarm.timeout_ms is not None and (
            wall_ms >= self.taken.created_ms + self._swarm.timeout_ms
        )
        is_chain, is_open = self._swarm.strategy == CHAIN, False
        parts = [Part(name) for name in self._names]
        for number, part in enumerate(parts):
            if number == self._put:
                if late or is_chain and number and not parts[number - 1].is_answer:
                    break
                if is_chain or not number:
                    last = number + 1 if is_chain else len(parts)
                    self._allot(bus, range(number, last))
                bus.put(self._task(number, parts[:number]))
                self._put += 1
            outcome = bus.outcome(self._id(number))
            if outcome is not None:
                part.by, part.status, part.result = outcome[0] or part.by, *outcome[1:3]
            elif bus.state(self._id(number)) in (None, WAITING, RUNNING):  # None: not yet there
                is_open = True
                if is_chain:
                    break
        if is_open and not late:
            return None
        self.withdraw(bus)
        return parts

    def withdraw(self, bus):
        """Take back the parts that nobody has taken."""
        for number in range(self._put):
            bus.withdraw(self._id(number))

    def _allot(self, bus, numbers):
        """Share what the task may use among the parts that are put now."""
        limits = [self._swarm.most_tokens, self._swarm.most_nano]
        if limits != [None, None]:
            parts = [self._id(number) for number in numbers]
            bus.allot(self.taken.id, parts, self._swarm.strategy in DECIDED, limits)

    def tokens(self, bus):
        """Return the tokens that all parts have used, None where no report has any."""
        reports = [bus.outcome(self._id(number)) for number in range(self._put)]
        found = [report[3] for report in reports if report and report[3] is not None]
        return sum(found) if found else None

    def _id(self, number: int) -> str:
        return str(uuid.uuid5(uuid.UUID(self.taken.id), str(number)))

    def _task(self, number: int, before: list) -> Task:
        data = self.taken.data
        if self._swarm.strategy == CHAIN and before:
            data = {"previous": before[-1].to_json()}
            if self.taken.data is not None:
                data["input"] = self.taken.data
        return Task(
            self._id(number),
            self.taken.description,
            data,
            self._swarm.own.identity,
            self._names[number],
            self.taken.id,
        )
