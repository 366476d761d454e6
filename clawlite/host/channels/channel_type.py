"""What a channel type declares to the compiler: one module of this room for each, which ends with
a ``ChannelType``.  ``channels.py`` lists them, and makes its checks of what they declare.
"""

import dataclasses
from collections.abc import Callable

from msgspec import Struct

from clawlite.core.image.features import KINDS, Kind

Settings = type[Struct]  # here: below, ``type`` is a field


def _nothing(*_) -> None:
    """A type that has nothing to check, or no record of its own."""


@dataclasses.dataclass(frozen=True)
class ChannelType:
    """One type of channel.

    type        what a Channel's ``type`` says; its row is in core/image/features.py
    transports  those that it has;  later: others that would make sense, and are not built
    is_remote   bool, its messages come from people and programs elsewhere
    trigger     the field of ``trigger`` that it reads, None when nothing triggers it
    features    of ``processing`` and ``features``, what it can do
    settings    the Struct of its section in clawlite.toml, None without one; the section is named
                as the kind's ability
    refuse      function(manifest, channel, problem): adds what cannot be kept of one Channel
    check       function(manifest): adds what is wrong with the section of clawlite.toml
    own         function(manifest, channel) -> what its module of linux/channels is given, made
                also for a manifest with problems
    answers     function(manifest, channel) -> bool, the tool ``message`` may write to this one
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
    own: Callable = _nothing
    answers: Callable = lambda manifest, channel: True

    @property
    def kind(self) -> Kind:
        return KINDS[self.number]

    @property
    def number(self) -> int:
        """What stands for the type in images."""
        return [kind.type for kind in KINDS].index(self.type)
