"""Folders with what many tests need and none changes: made once by each process of a run, gone
when it ends.
"""

import atexit
import tempfile

_made = []


def folder(prefix: str) -> str:
    """Return the path of a new folder, which is gone when the tests end."""
    if not _made:
        atexit.register(clean)
    _made.append(tempfile.TemporaryDirectory(prefix=prefix))
    return _made[-1].name


def clean():
    """Remove what was made.  A worker of a run ends without ``atexit``: conftest.py calls this."""
    while _made:
        _made.pop().cleanup()
