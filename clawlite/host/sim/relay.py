"""The relay between a virtual board's pseudo-terminal and its MicroPython process: it provides the
soft reset and Ctrl-C of a board.

1. stdin is a pipe, not a terminal: the unix port changes a terminal's modes around each run with
   TCSAFLUSH, which would drop input that was typed ahead.  A board's ring buffer keeps such input,
   and so does a pipe.
2. 0x03 interrupts a running program and is a character at a prompt.  MicroPython catches SIGINT
   exactly while it runs code that may be interrupted (also after ``micropython.kbd_intr(-1)``), and
   the kernel shows whether it does (proc(5), SigCgt).
3. When the process ends, that was a soft reset: another one runs boot.py and, unless the raw REPL
   was open, main.py.
4. SIGINT goes to the main thread alone: one that goes to the thread of an import
   (host/fit/stack.py) is lost.  The unix port raises it out of the middle of a collection, too,
   and may leave a lock taken, for which its threads then wait for ever: such a process is ended,
   and the board is at its prompt.
5. A client that is connected and does not read blocks the board's output.  Without a client the
   output is dropped, as over USB.
"""

import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import termios
import time

from clawlite.core.base.errors import ClawError
from clawlite.host.base.open_files import open_count
from clawlite.host.fit.stack import FUNCTIONS

_PIECE = 4096
_AHEAD = 65536  # bytes of a client's that wait for the board
_PATIENCE_S = 0.1  # after that it is asked whether there is a client that might read
_AGAIN_MS = 20  # interval of polling for changes that no event reports
_STUCK_MS = 500  # how often is asked whether a process that was interrupted waits for itself
# number of the system call in which a thread waits for a lock, by machine
_FUTEX = {"x86_64": "202", "aarch64": "98", "riscv64": "98", "armv7l": "240", "armv6l": "240"}
_RAW, _FRIENDLY = b"raw REPL; CTRL-B to exit\r\n>", b'"help()" for more information.\r\n>>> '
_START = """
def _start(folder, mark, files, free):
    import os, sys, vfs
    del globals()["_start"]
    class Flash:                        # VfsPosix below a folder renames "/a" to itself: both names share one buffer
        def __init__(self):
            self._files = vfs.VfsPosix(folder)
        def __getattr__(self, name):
            return getattr(self._files, name)
        def rename(self, old, new):
            was = self._files.getcwd() or "/"
            def named(path):
                return path[1:] if path[0] == "/" else (was + "/" + path).lstrip("/")
            self._files.chdir("/")
            try:
                self._files.rename(named(old), named(new))
            finally:
                self._files.chdir(was)
    vfs.umount("/")
    vfs.mount(Flash(), "/")
    os.chdir("/")
    del sys.argv[:]
    sys.stdout.write(mark)
    def run():
        end = "-"
        try:
            for name in files:
                try:
                    os.stat(name)
                except OSError:
                    continue
                execfile(name)
        except SystemExit:
            end = "!"
        except (Exception, KeyboardInterrupt) as e:
            sys.print_exception(e)
        finally:
            sys.stdout.write(mark + end)
    if free:
        _shallow(free, run)
    else:
        run()
_start(%r, %r, %r, %r)
"""  # noqa: E501


_LIBC = ctypes.CDLL(None)


class Relay:
    """One board's process and the master end of its pseudo-terminal.

    command  path of ``micropython``
    folder   the board's file system
    options  list of options for the command
    master, slave   the pseudo-terminal's ends, int; raw
    wake     int, a descriptor that is readable once ``run`` shall end
    stack    bytes of stack that boot.py and main.py have, or None for all (host/fit/stack.py)
    started  function(error or None), called once: MicroPython runs, or cannot
    """

    def __init__(
        self,
        command: str,
        folder: str,
        options: list,
        master: int,
        slave: int,
        wake: int,
        started,
        stack=None,
    ):
        self._stack = stack
        self._command, self._folder, self._options = command, folder, options
        self._master, self._slave, self._wake, self._started = master, slave, wake, started
        self._stdin, self._feed = os.pipe()
        for fd in (master, self._feed):
            os.set_blocking(fd, False)
        self._process = self._stdout = None
        self._typed = bytearray()  # of the client's, for the board
        self._out = b""  # of the board's, for the client
        self._stuck = None  # since when the client takes nothing, seconds
        self._alone_until = 0  # until then there is no client
        self._raw = False  # the raw REPL is open
        self._tail = b""  # the last bytes that the board wrote
        self._late = False  # a 0x03 went in as a character, and has not been read

    # -- the process

    def _spawn(self, files: list):
        self._mark = b"\0%s\0" % os.urandom(8).hex().encode()
        self._held = b""  # output that may be the beginning of the mark
        self._struck = False  # a SIGINT was sent to it
        self._was_stuck = False  # when it was asked last
        self._stuck_ended = False  # it waited for itself, and was ended
        # 0 starting, 1 boot.py and main.py run, 2 a banner is passed over, 3 REPL, 4 ending
        self._phase = 0
        unread = struct.unpack("i", fcntl.ioctl(self._stdin, termios.FIONREAD, b"\0" * 4))[0]
        if unread:  # typed ahead of the reset
            self._typed[:0] = os.read(self._stdin, unread)
        self._stdout, theirs = os.pipe()
        start = (FUNCTIONS if self._stack else "") + _START % (
            self._folder,
            self._mark.decode(),
            files,
            self._stack,
        )
        try:
            self._process = subprocess.Popen(
                [self._command, "-i", *self._options, "-c", start],
                stdin=self._stdin,
                stdout=theirs,
                stderr=theirs,
                env={"MICROPYPATH": ".frozen:/lib"},
                cwd=self._folder,
            )
        except OSError as e:
            raise ClawError(
                f"{self._command}: {e.strerror}", "pip install 'clawlite[sim]'"
            ) from None
        finally:
            os.close(theirs)

    def _restart(self):
        """The process is gone: start the next."""
        stdout, self._stdout = self._stdout, None
        os.close(stdout)
        code = self._process.wait()
        if self._phase == 0:
            raise self._no_start(f"exit code {code}")
        # where no code ran any more, or in the middle of a collection, which the unix port does
        # not survive (nor a second one before it took note of the first): a board would be at its
        # prompt
        if self._stuck_ended or self._struck and code in (-signal.SIGINT, 1):
            self._spawn([])
            return
        self._show(b"MPY: soft reboot\r\n")
        self._spawn(["boot.py"] if self._raw else ["boot.py", "main.py"])

    def _no_start(self, why: str) -> ClawError:
        said = self._held.decode(errors="replace").strip().splitlines()
        return ClawError(
            f"MicroPython does not start: {said[0] if said else why}",
            "give it more memory with --heap",
        )

    def _is_running(self) -> bool:
        """Return whether code runs that Ctrl-C may interrupt."""
        with open(f"/proc/{self._process.pid}/status") as file:
            caught = [line for line in file if line.startswith("SigCgt")]
        return bool(int(caught[0].split()[1], 16) & 1 << signal.SIGINT - 1) if caught else False

    # -- from the board to the client

    def _read_board(self):
        data = os.read(self._stdout, _PIECE)
        if not data:
            self._restart()
            return
        self._held += data
        if self._phase == 0 and self._held.startswith(self._mark):
            self._held, self._phase = self._held[len(self._mark) :], 1
            self._started(None)
        elif self._phase == 0 and self._held.endswith(b">>> "):  # it could not even run that
            raise self._no_start("")
        is_at_prompt = (self._tail + self._held).endswith(_FRIENDLY)
        if self._phase == 1 and is_at_prompt and self._mark not in self._held:
            # a second Ctrl-C ended what would have written the mark
            self._phase = 2 if self._raw else 3
        if self._phase == 1:
            self._pass_on_until_mark()
        if self._phase == 2 and self._held.endswith(b">>> "):
            os.write(self._feed, b"\x01")
            self._held, self._phase = b"", 3
        if self._phase == 3:
            self._show(self._held)
            self._held = b""

    def _pass_on_until_mark(self):
        """Pass on the output of boot.py and main.py, up to the mark and the letter that says how
        they ended.
        """
        before, mark, after = self._held.partition(self._mark)
        if mark and not after:
            return
        start = before.rfind(b"\0")  # of what may be a mark whose end has not come
        keep = (
            len(before) - start
            if not mark and start >= 0 and self._mark.startswith(before[start:])
            else 0
        )
        self._show(before[: len(before) - keep])
        self._held = after[1:] if mark else before[len(before) - keep :]
        if mark:
            self._phase = 2 if self._raw else 3
        # sys.exit() there is a soft reset; the unix port would show its prompt
        if after[:1] == b"!":
            self._process.kill()
            self._phase = 4

    def _show(self, data: bytes):
        self._out += data
        seen = self._tail + data
        if _RAW in seen or _FRIENDLY in seen:
            self._raw = seen.rfind(_RAW) > seen.rfind(_FRIENDLY)
        self._tail = seen[-max(len(_RAW), len(_FRIENDLY)) + 1 :]

    def _write_client(self):
        now = time.monotonic()
        if now < self._alone_until:
            self._out, self._stuck = b"", None
            return
        try:
            self._out = self._out[os.write(self._master, self._out[:_PIECE]) :]
            self._stuck = None
        except BlockingIOError:
            self._stuck = self._stuck or now
            if now - self._stuck > _PATIENCE_S:
                self._stuck = now
                if open_count(os.ttyname(self._slave)) < 2:
                    self._alone_until = now + _PATIENCE_S

    # -- from the client to the board

    def _read_client(self):
        self._typed += os.read(self._master, _PIECE)
        self._alone_until = 0

    def _type(self) -> bool:
        """Hand on what the client typed; return whether the board's ring is full."""
        if self._late:
            self._look_after_interrupt()
        while (
            self._typed
            and self._phase
            and (self._phase == 3 or not self._raw or self._typed[0] == 3)
        ):
            if self._typed[0] == 3:
                del self._typed[0]
                self._interrupt()
                continue
            end = self._typed.find(3)
            try:
                del self._typed[: os.write(self._feed, self._typed[: end if end > 0 else _PIECE])]
            except BlockingIOError:
                return True
        return False

    def _interrupt(self):
        if self._process.poll() is not None:
            return
        if self._is_running():
            self._strike()
        elif self._phase == 3:
            try:
                os.write(self._feed, b"\x03")
                self._late = True
            except BlockingIOError:  # a full ring has no room for it on a board either
                pass

    def _strike(self):
        self._struck = True
        tgkill = getattr(_LIBC, "tgkill", None)  # not in every libc
        if tgkill is None or tgkill(self._process.pid, self._process.pid, signal.SIGINT):
            self._process.send_signal(signal.SIGINT)

    def _end_stuck(self):
        """End a process that was interrupted, all of whose threads wait for a lock in two looks."""
        is_stuck = self._waits_for_itself()
        if is_stuck and self._was_stuck:
            self._stuck_ended = True
            self._process.kill()
        self._was_stuck = is_stuck

    def _waits_for_itself(self) -> bool:
        threads = f"/proc/{self._process.pid}/task"
        try:
            for thread in os.listdir(threads):
                with open(f"{threads}/{thread}/syscall") as file:
                    if file.read().split()[0] != _FUTEX.get(os.uname().machine):
                        return False
        except OSError:  # it, or a thread of it, ended; or this process may not look
            return False
        return True

    def _look_after_interrupt(self):
        """A 0x03 that no prompt has read: a program began meanwhile, and is meant."""
        self._late = (
            struct.unpack("i", fcntl.ioctl(self._stdin, termios.FIONREAD, b"\0" * 4))[0] > 0
        )
        if self._late and self._process.poll() is None and self._is_running():
            os.read(self._stdin, 1)
            self._strike()
            self._late = False

    # -- the loop

    def run(self):
        """Serve until *wake* is readable, or MicroPython cannot be started."""
        try:
            self._spawn(["boot.py", "main.py"])
            while self._step():
                pass
        except ClawError as e:
            self._started(e)
        finally:
            if self._process:
                self._process.kill()
                self._process.wait()
            for fd in (self._stdout, self._stdin, self._feed):
                if fd is not None:
                    os.close(fd)

    def _step(self) -> bool:
        """Wait for whatever comes next, and deal with it; return False at the end."""
        is_full = self._type()
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if not self._out:
            poll.register(self._stdout, select.POLLIN)
        poll.register(
            self._master,
            (select.POLLIN if len(self._typed) < _AHEAD else 0)
            | (select.POLLOUT if self._out and self._stuck is None else 0),
        )
        if is_full:
            poll.register(self._feed, select.POLLOUT)
        again = _STUCK_MS if self._struck and not self._stuck_ended else None
        if self._late or self._out:
            again = _AGAIN_MS
        ready = poll.poll(again)
        if not ready and again == _STUCK_MS:
            self._end_stuck()
        for fd, events in ready:
            if fd == self._wake:
                return False
            if fd == self._stdout:
                self._read_board()
            elif fd == self._master and events & select.POLLIN:
                self._read_client()
        if self._out:
            self._write_client()
        return True
