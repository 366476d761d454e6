"""Where an agent's files lie on Linux, and the image read from one of them.

State lies in ``$CLAWLITE_STATE``, by default the XDG state folder: one folder per agent, mode 0700.
"""
import os

from clawlite.core.errors import ImageError
from clawlite.core.header import MAGIC, MAX_IMAGE
from clawlite.core.image import Image

KEPT = 4096                     # decoded tools and rules that stay in memory: a Pi has room


def open_image(path: str) -> Image:
    """Return the image in the file *path*, its CRC checked; with ``$CLAWLITE_DEVICE_KEY_FILE`` its signature too.

    Raises ``ImageError``; its message says what was wrong with the file.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_IMAGE + 1)
    except OSError as e:
        raise ImageError("%s: %s" % (path, e.strerror), "name an image that exists; make one with: clawlite build") from None

    def read(offset: int, length: int) -> bytes:
        return data[offset:offset + length]
    try:
        image = Image(read, len(data), KEPT)
        key_file = os.environ.get("CLAWLITE_DEVICE_KEY_FILE")
        if key_file:
            _check_signature(read, len(data), image.seal_at, key_file)
    except ImageError as e:
        raise type(e)("%s: %s" % (path, e.message), e.hint) from None
    return image


def _check_signature(read, size: int, seal_at: int, key_file: str):
    from clawlite.core import seal
    try:
        with open(key_file, "rb") as file:
            key = file.read(4096).strip()
    except OSError as e:
        raise ImageError("the device key %s: %s" % (key_file, e.strerror)) from None
    if not key:
        raise ImageError("the device key %s is empty" % key_file)
    seal.check(read, size, seal_at, key)


def is_image(path: str) -> bool:
    """Return whether the file at *path* begins as an image does."""
    try:
        with open(path, "rb") as file:
            return file.read(3) == MAGIC
    except OSError:
        return False


def state_folder(agent: str) -> str:
    """Return the state folder of *agent* (its name is kebab-case: no separator is in it); it may not exist yet."""
    root = os.environ.get("CLAWLITE_STATE")
    if not root:
        base = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
        root = os.path.join(base, "clawlite")
    return os.path.join(root, agent)


class Log:
    """The agent's log: one JSON line an event, in ``log.jsonl`` of the state folder, at most two files of *limit* bytes.

    Events wait for ``flush``, which comes before anybody hears what came of them.
    A log that cannot be written is said once on stderr; the agent goes on.
    """

    def __init__(self, agent: str, dumps, limit: int = 1048576):
        self._folder = state_folder(agent)
        self._dumps = dumps
        self._limit = limit
        self._fd = None
        self._size = 0
        self._broken = False
        self._waiting = []

    def write(self, event: dict):
        """Append one event; the caller has put the time in."""
        self._waiting.append(self._dumps(event))

    def flush(self):
        """Write what waits; a process that is killed after this has not lost it."""
        waiting = self._waiting
        if not waiting:
            return
        waiting.append("")
        data = "\n".join(waiting).encode()
        waiting.clear()
        if self._broken:
            return
        try:
            if self._fd is None:
                self._open()
            if self._size + len(data) > self._limit:
                self._close()
                os.replace(self._path(), self._path() + ".1")
                self._open()
            os.write(self._fd, data)
            self._size += len(data)
        except OSError as e:
            self._broken = True
            os.write(2, ("clawlite: the log %s cannot be written: %s\n" % (self._path(), e.strerror)).encode())

    def _path(self) -> str:
        return os.path.join(self._folder, "log.jsonl")

    def _open(self):
        os.makedirs(self._folder, 0o700, exist_ok=True)
        self._fd = os.open(self._path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._fd).st_size

    def close(self):
        """Write what waits, and end."""
        self.flush()
        self._close()

    def _close(self):
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
