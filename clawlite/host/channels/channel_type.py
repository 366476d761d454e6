"""What a channel type declares to the compiler.  Each type has one module of this room, which ends
with a ``ChannelType``.  ``channels.py`` lists the types and derives its checks from them.
"""

import dataclasses
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from clawlite.protocols.image.features import KINDS, Kind

Settings = type[Struct]  # here: below, ``type`` is a field
# what becomes of a message for which a tool with side effects had begun when the agent ended
Interrupted = Literal["repeat", "give-up"]
# who speaks to the platform: the device itself, or its gateway
Via = Literal["gateway"] | None


def _nothing(*_) -> None:
    """A type that has nothing to check, or no record of its own."""


@dataclasses.dataclass(frozen=True)
class ChannelType:
    """One type of channel.

    type        value of a Channel's ``type``; its row is in protocols/image/features.py
    transports  those that it has;  later: others that would make sense, but are not built
    is_remote   bool, its messages come from people and programs elsewhere
    trigger     the field of ``trigger`` that it reads, None when nothing triggers it
    features    of ``processing`` and ``features``, what it can do
    settings    the Struct of its section in clawlite.toml, None without one; the section is named
                as the kind's ability
    refuse      function(manifest, channel, problem): adds problems of one Channel, which asks for
                more than this type can do
    check       function(manifest): adds problems of the section of clawlite.toml
    record      function(manifest, channel) -> the record for its module of linux/channels, made
                also for a manifest with problems
    answers     function(manifest, channel) -> bool, the tool ``message`` may write to this one
    answers_with  what such a Channel must have for that, "" for nothing
    relays      what the gateway of a board does for it, "" when it can do nothing: the section has
                the field ``via``
    """

    type: str
    transports: tuple[str, ...]
    later: tuple[str, ...] = ()
    is_remote: bool = False
    trigger: str | None = None
    features: tuple[str, ...] = ()
    settings: Settings | None = None
    refuse: Callable = _nothing
    check: Callable = _nothing
    record: Callable = _nothing
    answers: Callable = lambda manifest, channel: True
    answers_with: str = ""
    relays: str = ""

    @property
    def kind(self) -> Kind:
        return KINDS[self.number]

    @property
    def number(self) -> int:
        """What stands for the type in images."""
        return [kind.type for kind in KINDS].index(self.type)

    def without(self) -> str:
        """Return what to do about a device that lacks the kind's ability."""
        if not self.relays:
            return "leave it out"
        return (
            f'let its gateway {self.relays}: [{self.kind.ability}] via = "gateway", and [gateway]'
        )
