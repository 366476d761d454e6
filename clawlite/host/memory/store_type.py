"""What a type of store declares to the compiler.  Its number, its name and the behaviour of its
stores on every machine are in core/image/memories.py, because boards need them, too.
"""

import dataclasses

from clawlite.core.image import memories


@dataclasses.dataclass(frozen=True)
class StoreType:
    """One type of store.

    type      what a store's ``type`` says
    backends  those that may be named
    embeds    bool, a provider may make vectors of its entries
    """

    type: str
    backends: tuple[str, ...] = ("sqlite",)
    embeds: bool = False

    @property
    def number(self) -> int:
        """What stands for the type in images."""
        return memories.TYPES.index(self.type)

    def does(self, what: int) -> bool:
        """Return whether its stores do *what*: SEARCHED, SINGLE, FILES or SNAPSHOTS."""
        return bool(memories.DOES >> 4 * self.number & what)


TYPES = {
    one.type: one
    for one in (
        StoreType("conversation", ("sqlite", "filesystem")),
        StoreType("semantic", ("sqlite", "sqlite-vec"), embeds=True),
        StoreType("key-value"),
        StoreType("workspace", ("filesystem",)),
        StoreType("checkpoint"),
    )
}
