"""The tokens of this machine's gateway."""

import os

from clawlite.linux.doctor.doctor_checks import NONE, NOTE, OK
from clawlite.linux.secrets import gateway_tokens


def tokens(here) -> list:
    """Tokens of an older version open every door."""
    folder = os.path.join(here.state, gateway_tokens.FOLDER, "tokens")
    if not os.path.isdir(folder):
        return [("tokens", NONE, "no gateway has given out tokens", "")]
    older = gateway_tokens.older(folder)
    if not older:
        return [("tokens", OK, "each token opens the doors that it names", "")]
    said = "the next version takes it from this machine alone"
    return [
        (
            "tokens",
            NOTE,
            "the token of %s is of an older version and opens every door; %s" % (name, said),
            "clawlite gateway token %s --for DOOR" % name,
        )
        for name in older
    ]


CHECKS = (tokens,)
