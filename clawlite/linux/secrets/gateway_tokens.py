"""The tokens that the gateway of this machine gave out (``clawlite gateway token``): read, never
written.
"""

import hmac
import os
import re

from clawlite.linux.files.files import list_folder, state_root
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
    return any(door in doors for _, (_, doors, _) in _list_tokens(folder))


def older(folder: str) -> list:
    """Return the names of the tokens in *folder* that are of an older version."""
    place = os.fsencode(folder)
    return [name.decode() for name, (*_, is_older) in _list_tokens(place) if is_older]


def _list_tokens(folder: bytes) -> list:
    """Return [(name, what ``parse`` returns of it)] of the files in *folder*."""
    names = list_folder(folder)
    return [(name, parse(_read(os.path.join(folder, name), name))) for name in names]


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
