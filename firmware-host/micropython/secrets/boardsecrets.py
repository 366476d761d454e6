"""Secrets of a board: one file each, written by ``clawlite secrets set NAME --port PORT``."""

import os

from clawlite.core.base.errors import ClawError

_MOST = 8192  # bytes
_EIO = 5  # the flash fails


def secret(folder: str, name: str) -> tuple:
    """Return (True, the value) from ``secrets/NAME`` in *folder* or, on the unix port, the
    environment; else (False, ``ClawError``).
    """
    value = None
    if "/" not in name:
        try:
            with open("%s/secrets/%s" % (folder, name)) as file:
                value = file.read(_MOST)
        except OSError as e:
            if e.args[0] == _EIO:
                return False, ClawError(
                    "secret %s: its file on this board cannot be read: %s" % (name, e),
                    "look at the flash: it fails",
                )
            value = os.getenv(name) if hasattr(os, "getenv") else None
    if not value:
        return False, ClawError(
            "secret %s: not found in state/secrets on this board, nor in the environment" % name,
            "clawlite secrets set %s --port PORT" % name,
        )
    return True, value[:-1] if value.endswith("\n") else value
