"""What an entry of a request says, as all stores see it."""

from clawlite.core.base.errors import InvalidParams
from clawlite.core.base.render import canonical

MAX_CONTENT = 262144  # bytes of one entry


def text_of(content, number: int, dumps) -> tuple:
    """Return (text, whether it is JSON) of the content of entry *number* of a request.  Raises
    ``InvalidParams``.
    """
    text = content if isinstance(content, str) else dumps(content)
    if len(text.encode()) > MAX_CONTENT:
        raise InvalidParams(
            "entries[%d].content: expected at most %d bytes" % (number, MAX_CONTENT)
        )
    return text, text is not content


def told(store, part: str, entries: list) -> bytes:
    """Return what a request says, so that four bytes of it tell it from another one: against a
    mistake, not against an attacker.
    """
    parts = ["%s\n%s" % (store.name, part)]
    for entry in entries:
        parts += [value if isinstance(value, str) else canonical(value) for value in entry]
    return "\n".join(parts).encode()
