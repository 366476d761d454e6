"""The local model is not on this machine yet: the person at the terminal is asked once, with the
first sentence that it would read, whether it may be fetched.

1. The question says how large it is.  Where nobody can be asked, nothing is fetched: the error of
   the provider names the command.
2. ``clawlite local fetch`` does it, a process of its own in the background.  The conversation goes
   on, and the person is told how it ended.
"""

import os
import sys

from clawlite.core.base.effect import TELL
from clawlite.linux.io.stdio import Part

_YES, _NO = ("y", "yes", "j", "ja", "oui", "o", "sí", "si", "s"), ("n", "no", "nein", "non", "")
_KILL = 9  # SIGKILL: the module signal would bring enum and what that imports
_CONSOLE = ("console", True)  # ``History.speaker``


class Offer(Part):
    """What offers the model to the person at the console of *agent*.

    wire  what the loop waits with: ``wake_by(fd)``, ``sleep_by(fd)``
    """

    def __init__(self, wire, agent):
        self._wire, self._agent = wire, agent
        self._is_asked = False
        self._pid, self._pipe, self._said = 0, -1, b""

    def question(self, speaker) -> str:
        """Return what *speaker* is asked now, or ""."""
        from clawlite.linux.local import model_files

        if self._is_asked or speaker != _CONSOLE or model_files.find_folder():
            return ""
        try:
            model_files.pins()
            model_files.require_processors()
        except model_files.LocalError:
            return ""
        self._is_asked = True
        return (
            "A model of %d MB would let me understand that without a key. Fetch it now, in the "
            "background? [y/N]" % model_files.SIZE_MB
        )

    def answer(self, text: str):
        """Begin to fetch if *text* says yes; return what the person is told, or None when it
        answers nothing.
        """
        from clawlite.linux.local.model_files import SIZE_MB

        said = text.strip(" .!").lower()
        if said in _NO:
            return "The rules alone answer, then. clawlite local fetch brings it later."
        if said not in _YES:
            return None
        try:
            self._begin()
        except OSError as e:
            return "It cannot be fetched: %s." % e.strerror
        return "%d MB are being fetched. I say when they are here." % SIZE_MB

    def _begin(self):
        self._pipe, theirs = os.pipe()
        os.set_blocking(self._pipe, False)
        try:
            self._pid = os.posix_spawn(
                sys.executable,
                [sys.executable, "-m", "clawlite", "local", "fetch"],
                os.environ,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, theirs, 1),
                    (os.POSIX_SPAWN_DUP2, theirs, 2),
                ],
            )
        finally:
            os.close(theirs)
        self._wire.wake_by(self._pipe)

    def poll(self):
        if not self._pid:
            return
        try:
            more = os.read(self._pipe, 4096)
        except BlockingIOError:
            return
        self._said = (self._said + more)[-4096:]
        if not more:
            is_here = self._end() == 0
            lines = self._said.decode("utf-8", "replace").strip().splitlines()
            failed = lines[-1] if lines else "clawlite local fetch failed"
            said = "The local model is here: say it again." if is_here else failed
            self._agent.effects.append((TELL, said))

    def close(self):
        if self._pid:
            os.kill(self._pid, _KILL)
            self._end()

    def _end(self) -> int:
        """Return the status of the process, which has ended."""
        pid, pipe, self._pid, self._pipe = self._pid, self._pipe, 0, -1
        self._wire.sleep_by(pipe)
        os.close(pipe)
        return os.waitpid(pid, 0)[1]
