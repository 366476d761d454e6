"""The state that a channel, or a set of rules, needs after a restart: one small JSON file, mode
0600, replaced as a whole.

The JSON is followed by its CRC (``record_log.seal``); files of earlier versions have none.
"""

import os

from clawlite.core.base.errors import ClawError
from clawlite.linux.files.files import aside, mend, print_to_stderr, write_whole
from clawlite.linux.files.record_log import is_sealed, seal
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.files.rollback_marks import replace_marked
from clawlite.linux.io.jsontext import dumps, loads

_MOST = 262144  # bytes that are read


class StateFile:
    """The state of one part.  A damaged file is set aside and reported, and the state begins empty.

    folder  where it lies, or None: nothing is kept
    name    of the file (kebab-case: no separator is in it)
    what    its name in messages
    """

    def __init__(self, folder, name: str, what: str = "the channel state"):
        self._folder, self._what = folder, what
        self._path = folder and os.path.join(folder, name + ".json")
        self.data = self._read() if folder else {}

    def _read(self) -> dict:
        try:
            with open(self._path, "rb", opener=open_regular) as file:
                line = file.read(_MOST)
        except OSError:
            return {}
        text = line[:-10] if is_sealed(line[:-1]) and line[-1:] == b"\n" else line
        try:
            data = loads(text)
        except ClawError:
            data = None
        if isinstance(data, dict):
            return data
        try:
            kept = aside(self._path)
            os.replace(self._path, kept)
            print_to_stderr(
                "%s %s was damaged and starts empty; the damaged file is kept as %s"
                % (self._what, self._path, kept)
            )
        except OSError as e:
            print_to_stderr(
                "%s %s is damaged, and cannot be set aside: %s"
                % (self._what, self._path, e.strerror)
            )
        return {}

    def save(self, lasting: bool = True) -> str:
        """Write the state; return "", or why it could not be written.

        lasting  True: it survives a power cut
        """
        if not self._path:
            return ""
        draft = self._path + "~"
        try:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(draft, flags, 0o600)
            try:
                line = seal(dumps(self.data).encode())
                write_whole(fd, line)
                if lasting:
                    os.fsync(fd)
            finally:
                os.close(fd)
            replace_marked(draft, self._path, line, lasting)
        except OSError as e:
            self.mend = mend(e)
            return "%s cannot be written: %s" % (self._path, e.strerror)
        return ""
