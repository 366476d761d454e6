"""The tokens that the gateway of this machine gave out (``clawlite gateway token``): read, never
written.
"""

import hmac
import os
import re

from clawlite.linux.files.files import state_root
from clawlite.protocols.secrets.door_token import parse

# its folder beside those of agents, whose names have no dot
FOLDER = ".gateway"
_NAME = re.compile(rb"[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z")


def token_folder() -> str:
    return os.path.join(state_root(), FOLDER, "tokens")


def opens(door: str, given: bytes) -> bool:
    """Return whether *given*, NAME:TOKEN, opens *door*."""
    name, _, token = given.partition(b":")
    right, doors, _ = parse(_read(os.path.join(os.fsencode(token_folder()), name), name))
    if door not in doors:
        right = b""
    return hmac.compare_digest(right or os.urandom(32), token) and bool(right)


def is_given_out(door: str) -> bool:
    """Return whether any token opens *door*."""
    folder = os.fsencode(token_folder())
    return any(door in parse(_read(os.path.join(folder, name), name))[1] for name in _names(folder))


def older(folder: str) -> list:
    """Return the names of the tokens in *folder* that are of an older version."""
    place = os.fsencode(folder)
    found = [name for name in _names(place) if parse(_read(os.path.join(place, name), name))[2]]
    return [name.decode() for name in found]


def _names(folder: bytes) -> list:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _read(path: bytes, name: bytes) -> bytes:
    if _NAME.match(name):
        try:
            flags = os.O_RDONLY
            for one in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
                flags |= getattr(os, one, 0)
            fd = os.open(path, flags)
            with open(fd, "rb") as file:
                return file.read(256)
        except OSError:
            pass
    return b""
