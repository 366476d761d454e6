"""What is asked of a swarm's bus, in groups: a member, a command of a person and the gate of a stop
name the groups that they need.

    Bus             the file of a swarm, or the memory of a process        bus.py
    MemoryBus       one agent's end, where all agents are one process      shared_memory.py
    ReplicatedBus   the log of an engine                                   replicated_bus.py
    End             one member's, where several share a bus                shared_bus.py
    SocketBus       a command's, to a swarm that is one process            in_process_socket.py

``Later``: the answer comes when the engine has acknowledged the change.  Whatever raises, raises
``ClawError``: the bus cannot be used.
"""

from typing import Protocol

from clawlite.protocols.session.group_session import Later

Answer = bool | Later


class StopState(Protocol):
    """Whether the swarm is stopped."""

    def is_known(self) -> bool:
        """Return whether what is read here is what the others have written, as far as that can be
        known now.
        """

    def find_stop(self) -> tuple | None:
        """Return (who, ms since 1970) of a stop that holds, or None."""


class Line(Protocol):
    """The connection of one process, or member."""

    process: str
    is_synced: bool  # it knows all that is on record

    def join(self, identity: str = "", at_once: int = 0): ...

    def leave(self): ...

    def subscribe(self, refused=None): ...

    def fileno(self) -> int: ...

    def deadline(self) -> int | None:
        """Return the monotonic time at which ``receive`` has something to do of itself, or None."""

    def receive(self) -> bool: ...


class Listing(Protocol):
    """What is on record, for people."""

    def tasks(self, most: int) -> list: ...

    def state(self, task_id: str) -> str | None: ...

    def history(self, task_id: str) -> tuple: ...

    def there(self, swarm) -> tuple: ...

    def list_declared(self) -> list: ...

    def find_stop(self) -> tuple | None: ...


class Orders(Protocol):
    """What a person may order."""

    def again(self, task_id: str) -> Answer: ...

    def drop(self, task_id: str) -> Answer: ...

    def stop(self, who: str) -> Answer | None: ...

    def resume(self, who: str) -> Answer | None: ...

    def wait(self, later=None):
        """Return the value that *later* brings; without one, wait until all that is on record has
        come.
        """

    def leave(self): ...


class Delegation(Protocol):
    """Giving a task to others, and what becomes of it."""

    def put(self, task) -> Answer: ...

    def asks(self, asker: str, task_id: str) -> Answer: ...

    def withdraw(self, task_id: str): ...

    def why_stuck(self, task_id: str, swarm) -> str: ...

    def outcome(self, task_id: str) -> tuple | None: ...

    def new_reports(self) -> list: ...

    def broadcast(self, sender: str, message): ...


class Work(Protocol):
    """Doing a task of others."""

    def take(self, identity: str, any_of: bool, most, part=None, breaker=None): ...

    def holds(self, task_id: str) -> bool: ...

    def begins(self, task_id: str) -> Answer: ...

    def divide(self, task_id: str): ...

    def release(self, task_id: str): ...

    def report(
        self, task_id: str, status: str, result, tokens, duration_ms, by: str, held: bool = False
    ) -> Answer: ...

    def messages(self) -> list: ...


class Budget(Protocol):
    """What a task may use."""

    def allot(self, task_id: str, parts: list, decides: bool, limits: list): ...

    def budget(self, task_id: str) -> list: ...

    def hold(self, task_id: str, amounts: list, limits: list) -> Answer: ...

    def use(self, task_id: str, tokens: int, nano: int): ...

    def holds(self, task_id: str) -> bool: ...


class Upkeep(Protocol):
    """Seeing to what others left."""

    def reclaim(self, retries, keeps_dead: bool) -> list: ...

    def expire(self, timeout_ms: int, keeps_dead: bool) -> list: ...

    def is_open(self) -> bool: ...

    def declare(self, terms: str) -> bool: ...

    def wall_ms(self) -> int: ...


class Sharing(Protocol):
    """What several members that share a bus ask of it beyond that."""

    def speak_as(self, process: str, identity: str): ...

    def part(self): ...

    def holdings(self) -> dict: ...

    def waiting(self) -> dict: ...

    def read(self, act, *values): ...

    def which_are_there(self, processes: list) -> set: ...


class MemberBus(Line, StopState, Listing, Delegation, Work, Budget, Upkeep, Protocol):
    """What a member of a swarm has (member.py)."""


class CommandBus(Listing, Orders, Protocol):
    """What a command of a person has (swarm_commands/commands.py)."""


class TaskBus(MemberBus, Orders, Protocol):
    """What a command has that gives the swarm a task, and waits for it."""


class ShareableBus(MemberBus, Sharing, Protocol):
    """What members can share (swarm_commands/shared_bus.py)."""
