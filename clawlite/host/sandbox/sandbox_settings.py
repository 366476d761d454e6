"""[sandbox] of clawlite.toml."""

import re
from typing import Literal

from clawlite.host.base.problems import enquote
from clawlite.host.models.common import VARIABLE, Strict, Text

_PLACE = re.compile(r"/[^\0]*|\$[A-Za-z_][A-Za-z0-9_]*")


class Sandbox(Strict):
    """What this machine adds to the manifest's Sandbox of level process.

    relaxed      limits that may be enforced only in part, where the kernel cannot enforce them
                 fully; for a limit that the manifest leaves out, there is then no default
    environment  variables of the agent that its tools get too
    writable     files and folders, beside the manifest's mounts; "$NAME" is that variable's value
    namespaces   "bubblewrap": bwrap makes them
    """

    relaxed: list[Literal["memory_mb", "cpu_shares", "max_processes", "max_open_files"]] | None = (
        None
    )
    environment: list[Text] | None = None
    writable: list[Text] | None = None
    namespaces: Literal["bubblewrap"] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        for field, form, wanted in (
            ("environment", VARIABLE, "the name of a variable"),
            ("writable", _PLACE, "an absolute path, or $NAME"),
        ):
            for index, text in enumerate(
                value[field] if isinstance(value.get(field), list) else ()
            ):
                if isinstance(text, str) and text and not form.fullmatch(text):
                    report((field, index), "", wanted, enquote(text))
