"""``clawlite console --log FILE``: all that came and went, each part with its time.

    2026-11-21T23:59:01.123Z < "g 1.0.0 is ready.\\n> "
    2026-11-21T23:59:04.456Z > "is the soil dry?\\n"

``<`` came from the board, ``>`` went to it, ``!`` is about the line itself.  The text is a JSON
string; a byte that is no UTF-8 stands as a lone surrogate (PEP 383), so that nothing is lost.
"""

import datetime
import json
import sys

from clawlite.core.base.errors import ClawError
from clawlite.host.base.without_links import open_named


def _open(path: str):
    return open(path, "a", encoding="utf-8", buffering=1, opener=open_named)


class ConsoleLog:
    """A log that is appended to.  *path* None: nothing is kept.  Raises ``ClawError`` when it
    cannot be opened.
    """

    def __init__(self, path: str | None = None):
        try:
            self._file = _open(path) if path else None
        except OSError as e:
            raise ClawError(f"{path}: {e.strerror}", "name another file with --log") from None

    def note_received(self, data: bytes):
        self._write("<", data)

    def note_sent(self, data: bytes):
        self._write(">", data)

    def note(self, text: str):
        self._write("!", text.encode())

    def close(self):
        if self._file:
            self._file.close()

    def _write(self, direction: str, data: bytes):
        if self._file:
            text = json.dumps(data.decode("utf-8", "surrogateescape"), ensure_ascii=False)
            text = text.encode("utf-8", "backslashreplace").decode()
            now = (
                datetime.datetime.now(datetime.timezone.utc)
                .isoformat(timespec="milliseconds")
                .replace("+00:00", "Z")
            )
            try:
                self._file.write(f"{now} {direction} {text}\n")
            except OSError as e:  # a full disk: the console goes on
                self._file = None
                print(f"clawlite: the log has stopped: {e.strerror}", file=sys.stderr)
