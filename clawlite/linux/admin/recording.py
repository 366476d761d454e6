"""Records turns in a transcript that the provider ``builtin:replay`` can play
(docs/settings.md).
"""

import errno
import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.io.jsontext import dumps, loads

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Recording:
    """One transcript, a turn at a time: each is written whole or not at all.

    tell    function(text): for a person
    Raises ``ClawError`` when *path* cannot be written.
    """

    def __init__(self, path: str, tell):
        self._path = path
        self._tell = tell
        try:
            self._fd = os.open(path, _FLAGS, 0o666)
        except OSError as e:
            why = "is a link, and nothing is written through one"
            raise ClawError(
                "%s: %s" % (path, why if e.errno == errno.ELOOP else e.strerror),
                "name a file that you may write with --record",
            ) from None

    def turn(self, messages: list):
        """Append a turn (list of ``turn.Message``).  A turn that ended without a reply cannot be
        played, so it is not recorded.
        """
        if messages[-1].role != "assistant" or messages[-1].calls:
            self._tell("This turn did not finish and was not recorded.")
            return
        lines = [{"user": messages[0].text}]
        for message in messages:
            if message.role == "assistant":
                line = {"say": message.text}
                if message.calls:
                    line["call"] = [
                        {"tool": name, "arguments": _object(raw)} for _, name, raw in message.calls
                    ]
                lines.append(line)
        data = "".join([dumps(line) + "\n" for line in lines]).encode()
        try:
            os.write(self._fd, data)
        except OSError as e:
            self._tell("%s: %s; this turn was not recorded." % (self._path, e.strerror))


def _object(raw: str) -> dict:
    """Return the arguments in *raw*; {} when they are no JSON object, because a transcript can hold
    only objects.
    """
    try:
        value = loads(raw.encode())
    except ClawError:
        return {}
    return value if isinstance(value, dict) else {}
