"""The stop of a swarm that an agent has heard of, in a file: it holds after a restart too, when the
engine cannot be asked.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.files.rollback_marks import NOTHING, Mark, replace_marked
from clawlite.linux.io.jsontext import dumps, loads

FILE = "stopped"
_UNWRITTEN = object()


class StopFile:
    """What the processes of a swarm on this machine know of a stop: a file of *folder*
    (``files.swarm_folder``) with [who, ms since 1970], or no file.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self._path = os.path.join(folder, FILE)
        self._was = _UNWRITTEN

    def find_stop(self):
        """Return (who, ms since 1970), or None.  Raises ``ClawError``: the file cannot be read."""
        try:
            with open(self._path, "rb", opener=open_regular) as file:
                who, at_ms = loads(file.read())
            if type(who) is not str or type(at_ms) is not int:
                raise ValueError("no name and time")
            return who, at_ms
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, ClawError) as e:
            raise ClawError(
                "%s cannot be read: %s" % (self._path, e),
                "start the engine, or remove the file when the swarm is not stopped",
            ) from None

    def is_known(self) -> bool:
        return True

    def set(self, stop):
        """Keep *stop*, which is what ``find_stop`` returns.  Raises ``OSError``."""
        if stop == self._was:
            return
        if stop is None:
            try:
                os.unlink(self._path)
            except FileNotFoundError:
                pass
            mark = Mark(self._path)
            mark.note(NOTHING, False)
            mark.close()
        else:
            os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
            part = "%s.%d" % (self._path, os.getpid())
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(part, flags, 0o600), "wb") as file:
                data = dumps(stop).encode()
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            replace_marked(part, self._path, data, True)
        self._was = stop
