"""``clawlite swarm up``: the agents of a swarm on this machine, a process for each.

1. Each runs as ``clawlite run FOLDER``, as many times as its swarm says (``count``); the agents of
   a swarm with the backend in-process run in one process (in_process.py), and its remote agents are
   spoken for by one (remotes.py).  A board is spoken for by its
   gateway, which a person starts.
2. A folder has one ``swarm up`` at a time: it holds a lock on the folder, which the kernel lifts.
3. One that ends is started again, after a pause that doubles up to a minute.
4. What they say comes with their name before it.  Ctrl-C, SIGTERM or the end of this process ends
   all; where it was killed, the kernel tells them.
"""

import fcntl
import os
import selectors
import signal
import subprocess
import sys
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import SWARM
from clawlite.linux.admin import image_cache
from clawlite.linux.admin.commands import MANIFESTS
from clawlite.linux.admin.trace import image_of
from clawlite.linux.confinement import syscalls
from clawlite.linux.files import files
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.io.printing import print_line
from clawlite.linux.swarm_commands.in_process import images_of
from clawlite.protocols.swarm.swarm import Swarm

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1, 60
GRACE_S = 5  # from SIGTERM to SIGKILL
_START = os.path.join(PACKAGE, "__main__.py")


class _Process:
    """One agent, or all of a swarm that is one process: *words* start it, and *name* stands before
    what it says; "": its lines have names.
    """

    def __init__(self, name: str, words: list):
        self.name, self._words = name, words
        self.popen, self.start_at, self._pause_s, self._rest = None, 0.0, FIRST_PAUSE_S, b""

    def start(self, selector):
        self.popen = subprocess.Popen(
            self._words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for this process, which ends them
            preexec_fn=_end_with_parent,
        )
        self.began = time.monotonic()
        selector.register(self.popen.stdout, selectors.EVENT_READ, self)

    def read(self, selector):
        """Print the lines that have come; at their end, note when it is to start again."""
        data = os.read(self.popen.stdout.fileno(), 65536)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._say(line.decode("utf-8", "replace"))
        if data:
            return
        selector.unregister(self.popen.stdout)
        self.popen.stdout.close()
        code = self.popen.wait()
        if time.monotonic() - self.began > LONGEST_PAUSE_S:
            self._pause_s = FIRST_PAUSE_S
        self._say("ended with %d; it starts again in %d s" % (code, self._pause_s))
        self.start_at = time.monotonic() + self._pause_s
        self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self.popen = None

    def _say(self, line: str):
        print_line("[%s] %s" % (self.name, line) if self.name else line)

    def end(self, number: int):
        if self.popen is not None:
            try:
                os.killpg(self.popen.pid, number)
            except ProcessLookupError:
                pass


def _end_with_parent():
    """Let the kernel send SIGTERM to this process, an agent's, when ``swarm up`` has ended."""
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGTERM)


def up(folders: list) -> int:
    """Run the agents in *folders*, else those of the current folder, until a signal; return 0.
    Raises ``ClawError`` when one cannot be built.
    """
    processes, together, remotes, locks = [], [], set(), []
    for folder in folders or _found():
        swarm, is_behind = _swarm_of(folder)
        own = swarm.own
        locks.append(_lock(folder))
        if is_behind:
            print_line(
                "%s: a board behind a gateway, which speaks for it: clawlite gateway %s"
                % (folder, folder)
            )
            continue
        if not swarm.is_shared:
            together.append(folder)
            continue
        for number in range(1, own.count + 1):
            name = own.identity if own.count == 1 else "%s %d" % (own.identity, number)
            processes.append(_Process(name, [sys.executable, _START, "run", folder]))
        far = {(swarm.name, one.identity) for one in swarm.members if one.remote}
        if not far <= remotes:
            remotes |= far
            processes.append(_Process("", [sys.executable, _START, "swarm", "remote", folder]))
    if together:
        images_of([image_of(folder) for folder in together])
        processes.append(_Process("", [sys.executable, _START, "swarm", "together", *together]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    selector = selectors.DefaultSelector()
    try:
        for process in processes:
            process.start(selector)
        while True:
            due = min([one.start_at for one in processes if one.popen is None], default=None)
            for key, _ in selector.select(due and max(0, due - time.monotonic())):
                key.data.read(selector)
            for process in processes:
                if process.popen is None and time.monotonic() >= process.start_at:
                    process.start(selector)
    except KeyboardInterrupt:
        return 0
    finally:
        _end(processes)
        for lock in locks:
            os.close(lock)


def _lock(folder: str) -> int:
    """Return a descriptor that keeps every other ``swarm up`` from *folder*.  Raises ``ClawError``:
    one has it.
    """
    fd = os.open(folder if os.path.isdir(folder) else os.path.dirname(folder) or ".", os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise ClawError(
            "%s: its processes run already, by another clawlite swarm up" % folder,
            "end that one with Ctrl-C, or look at them: clawlite swarm status %s" % folder,
        ) from None
    return fd


def _end(processes: list):
    for process in processes:
        process.end(signal.SIGTERM)
    until = time.monotonic() + GRACE_S
    for process in processes:
        if process.popen is not None:
            try:
                process.popen.wait(max(0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.end(signal.SIGKILL)
                process.popen.wait()
            process.popen.stdout.close()


def _found() -> list:
    """Return the folders below the current one that have a manifest.  Hidden ones are a tool's:
    .schema/claw.json is the schema of one.
    """
    found = [
        name
        for name in sorted(os.listdir("."))
        if not name.startswith(".")
        and any(os.path.exists(os.path.join(name, file)) for file in MANIFESTS)
    ]
    if not found:
        raise ClawError(
            "no folder here has a manifest",
            "go to the folder that holds the agents' folders, or name them",
        )
    return found


def _swarm_of(folder: str) -> tuple:
    """Return (the swarm of the agent in *folder*, whether a gateway stands before that agent); it
    is built where it has changed.
    """
    if not os.path.exists(folder):
        raise ClawError(
            "there is no folder %s" % folder, "check the path, or make it with clawlite new"
        )
    if image_cache.find(folder, False) is None:
        words = [sys.executable, _START, "build", folder]
        if subprocess.run(words, stdout=subprocess.DEVNULL).returncode:
            raise ClawError("%s cannot be built" % folder, "its errors stand above")
    image = files.open_image(image_of(folder))
    if not image.size_of(SWARM):
        raise ClawError("%s is in no swarm" % image.agent.name, "declare one: docs/swarm.md")
    return Swarm(image.section(SWARM)), "gateway" in image.requires
