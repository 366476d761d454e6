"""A board on a serial port as the target of a flash, through mpremote: its raw REPL carries out
each step.

1. The board is reset into the raw REPL first, so that no part of an agent runs.  It is reset again
   at the end, whatever happened, and boots the files that it then has.
2. A watchdog that the agent has armed goes on through that reset, so a timer of the board feeds it
   until the next one.
"""

import binascii
import contextlib
import io
import time

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import printable
from clawlite.host.firmware.functions import Tracebacks
from clawlite.host.flash.plan import DATA, FOLDERS, RECORD, SOURCE, TOP, BoardState
from clawlite.host.serial import ports

_KIND, _WHAT, _PATH = range(3)  # of a line that the look at a board prints
_BAUD = 115200
_ATTEMPTS = 5  # to come to the raw REPL
_PIECE = 512  # bytes of a file in one command
_ANSWER_S = 10  # how long a board that runs may take for an answer
_ENDS_S = 3  # how long an agent may take to end
# a board that says nothing for so long does not boot: the longest boot window is 60 s
_QUIET_S = 75
_BOOT_S = 240  # that one may take which says something all the time
_MPY = 6  # the version of .mpy files that mpy-cross makes
_SAID = 16384  # bytes of a boot's talk that are kept
# one ends a turn, the next the agent; on a UART it takes three in a row
_INTERRUPTS, _APART_S = 3, 0.05
_REBOOT, _PROMPT = b"soft reboot", b"\r\n>>> "
_READY = b" is ready. /help lists the commands."  # core/protocol/console.py
_LEFT = b"clawlite: slot "  # what the board says of a slot that does not boot
_FIRMWARE = """
import sys
print(sys.implementation.name, '.'.join([str(n) for n in sys.implementation.version[:3]]))
"""
_OTHERS = {"circuitpython": "CircuitPython"}
_TOOLS = """
import os, sys, hashlib
from binascii import hexlify, crc32, a2b_base64
def _pieces(path, size):
    with open(path, 'rb') as f:
        while size:
            data = f.read(min(size, 512))
            if not data: break
            size -= len(data)
            yield data
def _digest(path):
    h = hashlib.sha256()
    for data in _pieces(path, 1 << 30): h.update(data)
    return str(hexlify(h.digest()), 'utf-8')
def _list(folder):
    try: return os.listdir(folder or '/')
    except OSError: return []
def _is(path, kind):
    try: return os.stat(path)[0] & 0xf000 == kind
    except OSError: return False
def _whole(path):
    with open(path, 'rb') as f:
        size = f.seek(0, 2)
        for end in (size - 40, size - 73):
            if end > 0:
                f.seek(end)
                seal = f.read(5)
                crc = 0
                for data in _pieces(path, end): crc = crc32(data, crc)
                if seal[0] == 0x44 and int.from_bytes(seal[1:], 'big') == crc & 0xffffffff: return True
    return False
def _copy(a, b):
    with open(b, 'wb') as f:
        for data in _pieces(a, 1 << 30): f.write(data)
def _feed():
    try:
        with open('/boot.json') as f:
            if 'watchdog_ms' not in f.read(512): return
        import machine
        dog = machine.WDT(timeout=8388)
        try: timer = machine.Timer(-1)
        except ValueError: timer = machine.Timer(0)
        timer.init(period=1000, mode=machine.Timer.PERIODIC, callback=lambda _: dog.feed())
        return timer
    except (OSError, ImportError, AttributeError): pass
_fed = _feed()
"""  # noqa: E501
_LOOK = """
print('mpy', getattr(sys.implementation, '_mpy', 0) & 0xff)
try:
    s = os.statvfs('/')
    print('free', s[0] * s[3])
except (OSError, AttributeError): pass
for folder in %r:
    if folder and _is(folder, 0x4000): print('folder', folder)
    for name in _list(folder):
        path = folder + '/' + name
        if _is(path, 0x8000) and (folder or name[:4] == 'claw' or name in %r):
            print('file', _digest(path), path)
for path in (%r, %r):
    if _is(path, 0x8000): print('record', str(hexlify(next(_pieces(path, 16), b'')), 'utf-8'))
for slot in 'ab':
    if _is('/claw-' + slot + '.cbor', 0x8000) and _whole('/claw-' + slot + '.cbor'): print('whole', slot)
"""  # noqa: E501
_STEPS = {"mkdir": "os.mkdir(%r)", "rename": "os.rename(%r, %r)", "remove": "os.remove(%r)"}


class BoardFailed(ClawError):
    """The board does not answer, or could not do what it was asked to do."""

    exit_code = 1


class Board:
    """The board on a port; ``with Board(entry) as board:`` it is in its raw REPL.

    entry  what ``ports.choose`` returned
    Raises ``PortRefused``, ``BoardFailed``.
    """

    where = "port"

    def __init__(self, entry: dict):
        self.name, self.boards, self.is_virtual = entry["port"], entry["boards"], entry["virtual"]
        self.next = f"clawlite console --port {self.name}"
        self._port = None

    def __enter__(self):
        from mpremote.transport import TransportError
        from mpremote.transport_serial import SerialTransport

        try:
            self._port = SerialTransport(self.name, _BAUD)
            # from a silent pseudo-terminal mpremote would read for ever
            self._port.serial.timeout = _ANSWER_S
        except (TransportError, OSError, ValueError):
            raise ports.port_error(self.name) from None
        try:
            with self._failing(
                "does not enter its raw REPL",
                "flash just after a reset, in the boot window, or in safe mode",
            ):
                self._enter()
                self._check_firmware()
                self._port.exec(_TOOLS)
        except BaseException:
            self.__exit__()
            raise
        return self

    def _check_firmware(self):
        """Raise ``BoardFailed`` for a board that speaks as MicroPython does, and is none."""
        name, _, version = self._port.exec(_FIRMWARE).decode("utf-8", "replace").partition(" ")
        if name != "micropython":
            what = _OTHERS.get(name, printable(name[:40].encode()).decode())
            raise BoardFailed(
                f"{self.name}: this board runs {what} {version.strip()[:20]}, "
                "and clawlite needs MicroPython",
                "copy what you want to keep from its drive, then put MicroPython on it: clawlite "
                "flash --firmware FILE",
            )

    def _enter(self):
        """Come to the raw REPL: a board that is just booting, or an agent that is just ending,
        may swallow a request for it.
        """
        from mpremote.transport import TransportError

        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            for _ in range(_INTERRUPTS):
                self._port.serial.write(b"\x03")
                # a board that is still busy with one takes the next for the same
                time.sleep(_APART_S)
            try:
                self._port.enter_raw_repl(
                    timeout_overall=_ANSWER_S if last else min(_ENDS_S, _ANSWER_S)
                )
                return
            except TransportError:
                if last:
                    raise

    def __exit__(self, *_):
        with contextlib.suppress(Exception):
            # the flash has not reset it: a soft reset boots the files that it has now
            if self._port.in_raw_repl:
                self._port.serial.write(b"\r\x03\x02\x04")
        with contextlib.suppress(Exception):
            self._port.close()

    @contextlib.contextmanager
    def _failing(self, what: str, hint: str):
        """Turn an error that mpremote raises into one of ours.  mpremote also prints input that it
        does not understand.
        """
        from mpremote.transport import TransportError, TransportExecError

        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        except TransportExecError as e:
            said = e.error_output.strip().splitlines()[-1:] or ["nothing"]
            raise BoardFailed(f"{self.name}: the board says: {said[0]}", hint) from None
        # pyserial's SerialException is an OSError
        except (TransportError, OSError, TypeError, ValueError) as e:
            raise BoardFailed(f"{self.name} {what} ({e})", hint) from None

    def _run(self, code: str) -> str:
        with self._failing("stopped answering; the previous agent still boots", "flash again"):
            return self._port.exec(code).decode()

    # -- what host/bench/device.py asks of it

    def run(self, code: str, silent_s: float = _ANSWER_S) -> str:
        """Return what *code* prints; the board may be silent for *silent_s*.  Raises
        ``BoardFailed`` with the board's own error.
        """
        from mpremote.transport import TransportExecError

        old, self._port.serial.timeout = self._port.serial.timeout, silent_s
        try:
            with self._failing("stopped answering", "reset it, and try again"):
                said, error = self._port.exec_raw(code, timeout=silent_s)
                if error:
                    raise TransportExecError(said, error.decode("utf-8", "replace"))
                return said.decode("utf-8", "replace")
        finally:
            self._port.serial.timeout = old

    def restart(self):
        """Reset the board into its raw REPL: nothing that ran is in its heap."""
        with self._failing("does not enter its raw REPL", "reset it, and try again"):
            self._enter()
            self._port.exec(_TOOLS)

    def free(self):
        """Return the bytes that are free in its flash, or None where it does not say."""
        said = self._run(
            "try:\n    s = os.statvfs('/')\n    print(s[0] * s[3])\nexcept (OSError, "
            "AttributeError): pass"
        ).strip()
        return int(said) if said else None

    def remove_all(self, folder: str):
        """Remove *folder* with all that is in it; nothing when it is not there."""
        for name in self.names(folder):
            path = f"{folder}/{name}"
            if self._run(f"print(_is({path!r}, 0x4000))").strip() == "True":
                self.remove_all(path)
            else:
                self.do(("remove", path))
        self._run(f"if _is({folder!r}, 0x4000): os.rmdir({folder!r})")

    def read_state(self) -> BoardState:
        """Return what is on the board.  Raises ``BoardFailed``."""
        facts = [
            line.split(" ", 2)
            for line in self._run(
                _LOOK % (("",) + FOLDERS, TOP, RECORD, RECORD + ".new")
            ).splitlines()
        ]

        def find(name: str) -> list:
            return [fact[_WHAT] for fact in facts if fact[_KIND] == name]

        if find("mpy") != [str(_MPY)]:
            raise BoardFailed(
                f"{self.name}: its MicroPython loads .mpy files of version "
                f"{' '.join(find('mpy'))}, expected {_MPY}",
                "put MicroPython 1.23 or later on it",
            )
        return BoardState(
            {fact[_PATH]: fact[_WHAT] for fact in facts if fact[_KIND] == "file"},
            tuple(find("whole")),
            tuple(bytes.fromhex(text) for text in find("record")),
            int(find("free")[0]) if find("free") else None,
            tuple(find("folder")),
        )

    def read(self, path: str, limit: int) -> bytes:
        return bytes.fromhex(
            self._run(f"print(str(hexlify(b''.join(_pieces({path!r}, {limit}))), 'utf-8'))").strip()
        )

    def pieces(self, path: str):
        """Yield a whole file, a piece at a time: a board may have no room for all of it."""
        self._run(f"f = open({path!r}, 'rb')")
        while piece := bytes.fromhex(
            self._run(f"print(str(hexlify(f.read({_PIECE})), 'utf-8'))").strip()
        ):
            yield piece
        self._run("f.close()")

    def names(self, folder: str) -> list:
        """Return the contents of *folder*; nothing when it does not exist."""
        return self._run(f"for name in _list({folder!r}): print(name)").splitlines()

    def digests(self, paths: list) -> dict:
        """Return {path: SHA-256} of files that are there."""
        lines = self._run(
            f"for p in {list(paths)!r}:\n    if _is(p, 0x8000): print(_digest(p), p)"
        ).splitlines()
        return {path: digest for digest, _, path in (line.partition(" ") for line in lines)}

    def do(self, step: tuple, tell=lambda size: None) -> None:
        """Carry one step out, all but "verify".  tell: function(bytes that went).  Raises
        ``BoardFailed``.
        """
        what, path = step[:2]
        if what in _STEPS:
            self._run(_STEPS[what] % step[1:])
        elif what == "copy":
            self._run(f"_copy({step[SOURCE]!r}, {path!r})")
        else:
            self._run(f"f = open({path!r}, 'wb')\nw = f.write")
            for at in range(0, len(step[DATA]), _PIECE):
                piece = step[DATA][at : at + _PIECE]
                self._run(f"w(a2b_base64({binascii.b2a_base64(piece, newline=False)!r}))")
                tell(len(piece))
            self._run("f.close()")

    def boot(self) -> str:
        """Reset the board and return its output until its agent is ready.  Raises ``BoardFailed``
        when the agent does not become ready.
        """
        with self._failing(
            "stopped answering while it booted", "reset it, and look at it with: clawlite console"
        ):
            self._port.exit_raw_repl()
            self._port.serial.write(b"\x04")
            self._port.serial.timeout = 0.2
            said, quiet_since = b"", time.monotonic()
            ends = quiet_since + _BOOT_S
            while (
                b"\n" not in said.partition(_READY)[2]
                and time.monotonic() - quiet_since < _QUIET_S
                and time.monotonic() < ends
            ):
                data = self._port.serial.read(1) + self._port.serial.read(
                    self._port.serial.in_waiting
                )
                if data:
                    said, quiet_since = (said + data)[-_SAID:], time.monotonic()
                if said.partition(_REBOOT)[2].endswith(_PROMPT):
                    break
        after = said.partition(_REBOOT)[2] or said
        before, is_ready, rest = after.partition(_READY)
        text = (
            Tracebacks()
            .feed(before + is_ready + rest.partition(b"\n")[0])
            .decode("utf-8", "replace")
            .replace("\r", "")
            .strip()
        )
        if _READY not in after or _LEFT in after:
            raise BoardFailed(
                f"{self.name}: the new image did not boot; the board said: {text or 'nothing'}",
                "mend it and flash again; after three failed boots the old image is used",
            )
        return text
