"""The entrance of this room: whoever is outside it imports from here, and from no other file of it
(tests/test_layers.py).

    idempotent_request.py   requests with an id that run once, and all of one agent
    idempotency_journal.py  those that go on record, and the errors of a second one
    idempotency_record.py   the records: their lines in a file, and what the whole file says

On a board this file does not exist: the linker leads each import to where its name is
(host/firmware/link.py).  What is defined here is for Linux.
"""

# ruff: noqa: F401  others import them from here

from clawlite.core.base.errors import InvalidRequest
from clawlite.core.idempotency.idempotency_record import (
    BEGIN,
    END,
    GONE,
    KEPT_S,
    KEY,
    KIND,
    OWNER,
    TEXT,
    WAIT,
    WHEN,
    age_s,
    last_of,
    line,
    parse,
    still,
)
from clawlite.core.idempotency.idempotent_request import (
    BYTES,
    FREE,
    IDS,
    KEPT_MS,
    Idempotency,
    IdempotentRequest,
    nothing,
)


def not_run(message: str, hint: str):
    """Return the error of a call that found no room, or no time: its handler never began, and
    the same request may be sent again.
    """
    return InvalidRequest(message, hint, {"ran": False})
