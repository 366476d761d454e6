"""The public interface of this package: modules outside it import from here, and from no other file
of it (tests/test_layers.py).

    idempotent_request.py   requests with an id that run once, and all of one agent
    recorded_request.py     requests that go on record, and the errors of a second request
    idempotency_record.py   the records: their lines in a file, and how the file is read

On a board this file does not exist: the linker resolves each import to the file that defines the
name (host/firmware/link.py).  The function that is defined here is for Linux.
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
    """Return the error of a call that did not run for lack of room or time: its handler never
    began, and the same request may be sent again.
    """
    return InvalidRequest(message, hint, {"ran": False})
