"""Names of boards as folders and in URLs: that of a serial port has slashes."""

import hashlib
import re

_OTHER = re.compile(r"[^A-Za-z0-9._-]")
_NAME = re.compile(r"[A-Za-z0-9._~-]{1,200}\Z")
_MOST = 120  # characters
BOARDS = "boards"  # in the gateway's folder: a folder for each board that is there


def file_name(board: str) -> str:
    """Return the name of a folder for *board*, without any character that a URL encodes."""
    name = _OTHER.sub(lambda found: "~%x." % ord(found[0]), board)
    if len(name) <= _MOST and name.strip("."):
        return name
    return "~~" + hashlib.sha256(board.encode("utf-8", "replace")).hexdigest()


def is_file_name(text: str) -> bool:
    """Return whether *text* may be such a name."""
    return bool(_NAME.match(text) and text.strip("."))
