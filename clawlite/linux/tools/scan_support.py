"""What a guard (scan/guard.py) needs of Linux: the secrets that this agent could resolve, and a
model to ask.

1. Secrets are read when a text is looked at first, after the sandbox's server was started: that has
   none of them.
2. Known are: what the manifest refers to, all of the store, and environment variables that are
   called like a secret.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import MCP, SERVICES
from clawlite.linux.secrets import secrets
from clawlite.scan.guard import Guard

_CALLED = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS")
# bytes of a variable's value that is taken for a secret because of its name alone
_LEAST = 12


def guard_of(image) -> Guard:
    """Return the guard of *image*, which has the section GUARD."""
    name = image.agent.name
    guard = Guard(
        image,
        True,
        lambda references: secret_values(name, references),
        _judge,
        # an audit of what servers and services answered says how much that was
        outputs=image.size_of(MCP) > 0 or image.size_of(SERVICES) > 0,
    )
    if guard.encrypted:
        secrets.demand_encryption(name)
    return guard


def _judge(text: str):
    from clawlite.linux.tools.injection_check import ask_model

    return ask_model(text)


def secret_values(agent: str, references: list) -> list:
    """Return the values of all secrets that *agent* could resolve; *references*: names in its
    manifest.
    """
    places = secrets.stores(agent)
    values = [
        value
        for name, value in os.environ.items()
        if len(value) >= _LEAST and name.upper().endswith(_CALLED)
    ]
    for name in dict.fromkeys([*references, *secrets.names(agent)]):
        try:
            values.append(secrets.resolve(name, places))
        except ClawError:  # not there, or of no use: nobody can send it either
            pass
    return list(dict.fromkeys(values))
