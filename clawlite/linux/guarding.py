"""What a guard (guard.py) needs of Linux: the secrets that this agent could resolve, and what a person sees as it comes.

1. Secrets are read when a text is looked at first, after the sandbox's server was started: that has none of them.
2. Known are: what the manifest refers to, all of the store, and environment variables that are called like a secret.
"""
import os

from clawlite.core.errors import ClawError
from clawlite.linux import secrets
from clawlite.linux.guard import Guard

_CALLED = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS")
_LEAST = 12                     # bytes of a variable's value that is taken for a secret because of its name alone
_HELD = 32768                   # bytes of a key that are waited for


def guard_of(image) -> Guard:
    """Return the guard of *image*, which has the section GUARD."""
    guard = Guard(image)
    if guard.encrypted:
        secrets.demand_encryption(image.agent.name)
    guard.secrets = lambda: known(image.agent.name, guard.references)
    return guard


def known(agent: str, references: list) -> list:
    """Return the values of all secrets that *agent* could resolve; *references*: names in its manifest."""
    places = secrets.stores(agent)
    values = [value for name, value in os.environ.items() if len(value) >= _LEAST and name.upper().endswith(_CALLED)]
    for name in dict.fromkeys([*references, *secrets.names(agent)]):
        try:
            values.append(secrets.resolve(name, places))
        except ClawError:               # not there, or of no use: nobody can send it either
            pass
    return list(dict.fromkeys(values))


class Held:
    """Text that is shown as it comes, line by line, so that no secret goes out in halves.

    clean  function(text) -> text without secrets
    """

    def __init__(self, clean):
        self._clean = clean
        self._waiting = ""

    def write(self, text: str) -> str:
        """Return what may be shown now: whole lines, and of a private key nothing before its end."""
        self._waiting += text
        end = self._waiting.rfind("\n") + 1
        key = self._waiting.find("-----BEGIN ")
        if 0 <= key < end and "-----END " not in self._waiting[key:end] and len(self._waiting) - key < _HELD:
            end = key
        return self._shown(end)

    def rest(self) -> str:
        """Return what still waits: nothing more comes."""
        return self._shown(len(self._waiting))

    def _shown(self, end: int) -> str:
        shown, self._waiting = self._waiting[:end], self._waiting[end:]
        return self._clean(shown) if shown else ""
