"""``[memory]`` of clawlite.toml: what the Memory's stores promise beyond what CKP has fields for
(docs/memory.md).
"""

import re

from clawlite.host.base.problems import enquote
from clawlite.host.models.common import Strict, Text

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Memory(Strict):
    """Names of stores, each list for itself.

    power_safe   acknowledged entries survive a power cut
    wear_saving  entries go through a journal: fewer bytes are written

    encryption   the name of the secret that is the key of stores with ``encryption: true``
    """

    power_safe: list[Text] | None = None
    wear_saving: list[Text] | None = None
    encryption: Text | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        name = value.get("encryption")
        if isinstance(name, str) and not _NAME.fullmatch(name):
            report(
                ("encryption",),
                "expected the name of a secret",
                "1 to 128 of A-Z a-z 0-9 _ . -",
                enquote(name),
            )
