"""The seams of a shell on Linux: the interfaces of parts that exist in several kinds, which
tests/linux/runtime/test_seams.py holds those parts to.
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
