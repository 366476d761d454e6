"""Who may use an agent beyond stdio: the people of its state folder, or of this machine's gateway
(protocols/secrets/people.py has the format of the file).
"""

import fcntl
import os
import time
from base64 import urlsafe_b64encode
from contextlib import contextmanager

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.files import mend, replace_file
from clawlite.linux.files.regular_file import open_regular
from clawlite.protocols.secrets import people

_SECRET_BYTES = 32


def read(folder: str) -> list:
    """Return the people of the state *folder*.  Raises ``ClawError``."""
    path = os.path.join(folder, people.FILE)
    try:
        with open(path, "rb", opener=open_regular) as file:
            return people.parse(file.read(people.MAX_BYTES))
    except FileNotFoundError:
        return []
    except OSError as e:
        raise _failure(path, e) from None


def make_token(name: str) -> tuple:
    """Return (a new token of *name*, the digest of its secret)."""
    secret = urlsafe_b64encode(os.urandom(_SECRET_BYTES)).rstrip(b"=")
    return "%s:%s" % (name, secret.decode()), people.digest_of(secret)


def add(folder: str, name: str, role: str, digest: str):
    """Let *name* use the agent of the state *folder*.  A token that they had before opens nothing
    any more.  Return the ``Person`` that they were until now, or None.  Raises ``ClawError``.
    """
    with _changing(folder) as known:
        before = next((one for one in known if one.name == name), None)
        others = [one for one in known if one is not before]
        if len(others) >= people.MAX_PEOPLE:
            raise ClawError(
                "expected at most %d people, and so many are there" % people.MAX_PEOPLE,
                "clawlite people list, and clawlite people remove NAME",
            )
        known[:] = [*others, people.Person(name, role, digest, int(time.time()))]
    return before


def remove(folder: str, name: str) -> bool:
    """Forget *name*; return whether they were known.  Raises ``ClawError``."""
    with _changing(folder) as known:
        others = [one for one in known if one.name != name]
        is_known = len(others) < len(known)
        known[:] = others
    return is_known


@contextmanager
def _changing(folder: str):
    """Yield the people of *folder*, to be changed in place by one process at a time."""
    path = os.path.join(folder, people.FILE)
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as e:
        raise _failure(path, e) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        known = read(folder)
        before = list(known)
        yield known
        if known != before:
            replace_file(path, people.write(known))
    except OSError as e:
        raise _failure(path, e) from None
    finally:
        os.close(lock)


def _failure(path: str, e: OSError) -> ClawError:
    return ClawError("%s: %s" % (path, e.strerror), mend(e))
