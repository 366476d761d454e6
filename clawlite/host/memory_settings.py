"""``[memory]`` of clawlite.toml: what the Memory's stores promise beyond what CKP has fields for (docs/memory.md)."""
from clawlite.host.models.common import Strict, Text


class Memory(Strict):
    """Names of stores, each list for itself.

    power_safe   acknowledged entries survive a power cut
    wear_saving  entries go through a journal: fewer bytes are written
    """
    power_safe: list[Text] | None = None
    wear_saving: list[Text] | None = None
