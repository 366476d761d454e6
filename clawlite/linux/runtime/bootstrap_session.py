"""``clawlite serve --stdio`` without an image: INIT, until the manifest in ``claw.initialize``
brings an agent (docs/adr/0013).

1. A child process compiles it (clawlite/host/builder/inline.py), so that the compiler never stays
   in an agent's memory.
2. The manifest may have inline primitives only.  The agent has no folder, so no tools.py, but it
   has a state folder like any other.
3. Then the record is passed to the agent's own session, which answers it.  After ``claw.shutdown``,
   the next ``claw.initialize`` may bring another manifest; the same one starts the same agent
   again.
"""

import os
import select
import sys

from clawlite.core.agent.lifecycle import INIT
from clawlite.core.base.effect import KIND, MESSAGE, SEND
from clawlite.core.base.errors import ClawError, ImageError, InvalidRequest
from clawlite.core.image.header import MAGIC, MAX_IMAGE
from clawlite.core.line.frame import TOO_LONG
from clawlite.core.protocol.session import Session
from clawlite.linux.files.files import image_of
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.io import signals
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.io.stdio import MAX_LINE, now_ms, open_line
from clawlite.protocols.session.group_session import GroupSession

AGAIN = -1  # an agent's exit code: another agent follows on the same line
LEAVE_MS = 2000
COMPILE_MS = 60000
_CHILD = (
    "import sys; sys.path.insert(0, sys.argv[1]); from clawlite.host.builder.inline import "
    "main; sys.exit(main())"
)


class _Nobody:
    """Takes the place of the agent in a session until there is one."""

    image = None
    is_ready = False
    conditions = ()

    def __init__(self, adopt):
        self.setup = self
        self.effects = []
        self.emit = self.effects.append
        self.lifecycle = self
        self.state = INIT
        self.adopt = adopt


class _Session(GroupSession):
    """The session of an agent that came with a manifest; *keep*: function(record), who remembers
    the last one.
    """

    def __init__(self, keep, *given):
        super().__init__(*given)
        self._keep = keep

    def record(self, data: bytes, now_ms: int):
        self._keep(data)
        super().record(data, now_ms)


class BootstrapSession:
    """An operator's line, and the agents that serve it one after the other.

    wake  int, a descriptor that is readable when a signal has come (signals.catch)
    """

    def __init__(self, wake: int):
        self._wake = wake
        self._wire, self._framer = open_line(True, wake)
        self._manifest = None  # of the agent that serves, or is about to
        self._image = None
        self._record = None  # the last one that came

    def run(self) -> int:
        """Serve until the end; return the exit code."""
        try:
            code = self._wait()
        finally:
            self._wire.flush(LEAVE_MS)
        while code == AGAIN:
            code = self._serve()
        return code

    def _wait(self) -> int:
        nobody = _Nobody(self._adopt)
        session = Session(nobody, loads)
        while True:
            data = self._wire.wait(None)
            self._framer.feed(data)
            if self._wire.at_end:
                self._framer.finish()
            event = self._framer.next_event()
            while event:
                kind, payload = event
                if kind == TOO_LONG:
                    session.too_long(int(payload), MAX_LINE)
                else:
                    self._record = payload
                    session.record(payload, now_ms())
                if self._image:
                    return AGAIN
                for effect in nobody.effects:
                    if effect[KIND] == SEND:
                        self._wire.write(self._framer.send(dumps(effect[MESSAGE]).encode()))
                nobody.effects.clear()
                event = self._framer.next_event()
            if signals.interrupts():
                return 130
            if signals.end_signal():
                return 128 + signals.end_signal()
            if self._wire.at_end:
                return 0
            if self._wire.broken:
                return 1

    def _serve(self) -> int:
        from clawlite.linux.runtime.shell import Shell

        image, self._image = self._image, None

        def keep(data: bytes):
            self._record = data

        def adopt(manifest, is_free: bool) -> bool:
            if not is_free or isinstance(manifest, str) or manifest == self._manifest:
                return False
            self._adopt(manifest)
            shell.end(AGAIN)
            return True

        def session(*given):
            return _Session(keep, *given)

        line = self._wire, self._framer
        shell = Shell(image, "", True, self._wake, line, session, adopts=adopt)
        return shell.run(self._record)

    def _adopt(self, manifest: dict, is_free: bool = True) -> bool:
        """Compile *manifest*, whose agent then answers.  Raises ``ClawError``."""
        if self._image:
            raise InvalidRequest("claw.initialize: this session is initialized already")
        from clawlite.linux.runtime.optional_parts import prepare

        self._image = image_of(_compile(manifest, self._wake), "manifest", prepare)
        self._manifest = manifest
        return True


def _compile(manifest: dict, wake: int) -> bytes:
    """Return the image of *manifest*.  Raises the ``ClawError`` of the compiler, or ``ImageError``
    when the compiler does not run here.
    """
    from subprocess import DEVNULL, PIPE, Popen
    from tempfile import TemporaryFile

    with TemporaryFile() as given:
        given.write(dumps(manifest).encode())
        given.seek(0)
        start = [sys.executable, "-c", _CHILD, os.path.dirname(PACKAGE)]
        child = Popen(start, stdin=given, stdout=PIPE, stderr=DEVNULL)
    try:
        said = _read(child.stdout.fileno(), wake)
    finally:
        child.kill()
        child.stdout.close()
        child.wait()
    if said[:3] == MAGIC:
        return said
    try:
        told = loads(said)
        error = ClawError(told["message"], "", told.get("data"))
        error.code = told["code"]
    except (ClawError, KeyError, TypeError):
        raise ImageError(
            "manifest: the compiler ended without an error message",
            "compile it with: clawlite build",
        ) from None
    raise error


def _read(fd: int, wake: int) -> bytes:
    """Return all data of *fd* to its end.  Raises ``ClawError`` after a signal, or when it takes
    too long.
    """
    poll, found, until = select.poll(), b"", now_ms() + COMPILE_MS
    poll.register(fd, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while len(found) <= MAX_IMAGE:
        if now_ms() >= until:
            raise ImageError(
                "manifest: compiling it took more than %d s" % (COMPILE_MS // 1000),
                "compile it with: clawlite build",
            )
        ready = [ready[0] for ready in poll.poll(max(0, until - now_ms()))]
        if wake in ready:
            raise InvalidRequest("claw.initialize: this process is ending")
        if fd in ready:
            data = os.read(fd, 65536)
            if not data:
                break
            found += data
    return found
