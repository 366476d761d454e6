"""The page of one agent, in a process that ``clawlite serve --listen`` starts beside it."""

import os
import subprocess
import sys

from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.io.stdio import Part, now_ms

_LOOK_MS = 500  # between looks whether it is still there


class PageProcess(Part):
    """A process with ``clawlite page``, which ends with this one: its stdin is a pipe from here.

    words  options of the page
    end    function(exit code) for when it ends by itself: it has said why
    """

    lasts = True

    def __init__(self, agent: str, words: list, end):
        main_file = os.path.join(PACKAGE, "__main__.py")
        self._end, self._look_ms = end, now_ms() + _LOOK_MS
        self._process = subprocess.Popen(
            [sys.executable, main_file, "page", "--child", "--agent", agent, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C ends the agent, and the agent ends the page
        )

    def deadline(self):
        return self._look_ms

    def poll(self):
        if now_ms() >= self._look_ms:
            self._look_ms = now_ms() + _LOOK_MS
            code = self._process.poll()
            if code is not None:
                self._end(code or 1)

    def close(self):
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
