"""The seams of a shell on Linux: the interfaces of parts that exist in several kinds.

For readers, type checkers and tests: nothing imports this module at run time, because ``typing``
takes a Pi some milliseconds at each start.  ``AgentSeams`` are the seams between the core and a
shell; what they mean, and what a board hands in there, is in core/agent/agent.py, ``Agent``
(tests/test_seams.py compares the two, and the functions that are handed in).
"""

from typing import Any, Callable, Iterable, Protocol


class Source(Protocol):
    """The source of one channel's messages (linux/channels/channel.py uses it)."""

    def poll(self) -> Any:
        """Pass the messages that have come to the channel.  Never waits."""

    def deadline(self) -> Any:
        """Return the monotonic ms at which ``poll`` has something to do, or None."""

    def reply(self, to, text: str, final: bool = True, failed: bool = False) -> Any:
        """Answer the message whose sender is *to*; *final*: nothing more follows."""

    def close(self) -> Any:
        """Close all connections."""


class Recipients(Protocol):
    """A source to which the tool ``message`` may write, too."""

    def recipient(self, name: str) -> Any:
        """Return the address that *name* means, or None."""

    def send(self, to, text: str) -> str:
        """Send *text* without being asked; return what is wrong, or ""."""


class AuditStore(Protocol):
    """Where the chain of an audit is kept (linux/audit/audit.py uses it)."""

    removed: str  # what the last ``append`` removed for lack of room, "" for nothing

    def append(self, make: Callable, now_s: int) -> Any:
        """Append what ``make(head)`` returns.  Raises ``OSError``: nothing was appended then."""

    def problem(self) -> str:
        """Return a description of damage to the files, once; "" when there is none."""

    def close(self) -> Any:
        """Close all files."""


class Connections(Protocol):
    """The connections of remote providers (linux/runtime/providers.py uses it)."""

    def open(self, key, scheme: str, host: str, port: int, parts: list, timeout_ms: int) -> Any:
        """Begin to connect, and to send *parts*.  ``poll`` returns the events."""

    def poll(self) -> Iterable:
        """Return [(key, kind, data), ...] of what has happened since the last call."""

    def close(self, key) -> Any:
        """End the connection *key*, if there is one."""

    def close_all(self) -> Any:
        """End all connections."""


class MemoryStores(Protocol):
    """Carries out the verbs of a memory (linux/memory/memory.py uses it)."""

    def run(self, jobs: list) -> list:
        """Return [(number, outcome), ...] of jobs [(number, verb, store, part, details), ...], in
        their order.
        """

    def close(self) -> Any:
        """Write everything, and close."""


class Emit(Protocol):
    """Carries out LOG, SEND and the KEEP of an end at once."""

    def __call__(self, effect: tuple) -> Any: ...


class Run(Protocol):
    """Starts a tool's handler, and returns (its outcome, or None when it goes on; the time)."""

    def __call__(self, task: int, tool, arguments: dict, due_ms) -> tuple: ...


class OnWait(Protocol):
    """Another approval waits first now; *task* is None when none does."""

    def __call__(self, task, now_ms: int) -> Any: ...


class Prepare(Protocol):
    """Sets ``codecs`` and ``meter`` before the first turn."""

    def __call__(self) -> Any: ...


class MemoryMethodsOf(Protocol):
    """Returns the methods of the stores (core/memory/memory_methods.py)."""

    def __call__(self) -> Any: ...


class Lasting(Protocol):
    """Returns the work of a turn that goes on with what was said in earlier sessions."""

    def __call__(self, work, history, once: bool) -> Any: ...


class Kept(Protocol):
    """Returns what is on record, or the record of *key* (core/idempotency)."""

    def __call__(self, key: Any = None) -> Any: ...


class Adopt(Protocol):
    """Checks what claw.initialize brings; True: the manifest's agent takes over."""

    def __call__(self, manifest, is_free: bool) -> bool: ...


class Condition(Protocol):
    """Returns a line of /status."""

    def __call__(self) -> str: ...


class Command(Protocol):
    """Returns the lines that answer a console command, None for a command of others."""

    def __call__(self, words: list) -> list | None: ...


class AgentSeams(Protocol):
    """What a shell hands to an agent: core/agent/agent.py says what each of them means."""

    emit: Emit
    run: Run | None
    later: list | None
    on_wait: OnWait | None
    calls: list | None
    prepare: Prepare | None
    codecs: tuple | None  # (loads, dumps) of JSON
    meter: Any  # core/policy/meter.py, ``Meter``, or None
    keep_bytes: int
    dialects: Any
    is_behind: bool
    memories: MemoryMethodsOf | None
    lasting: Lasting | None
    kept: Kept | None
    adopt: Adopt | None
    channels: Any  # linux/channels/channels.py, ``Channels``, or None
    conditions: tuple[Condition, ...]
    commands: tuple[Command, ...]
