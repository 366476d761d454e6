"""Hosts of engines with a mount table of their own, which a test changes while they run; it goes
with them.
"""

import contextlib
import ctypes
import os
import subprocess
import threading

import pytest
from sandbox_places import Host, host

_NEWNS, _REC, _PRIVATE, _SHARED = 0x20000, 16384, 1 << 18, 1 << 20


def own_table() -> None:
    """Give this thread a mount table of its own, in which, as systemd has it, what is mounted is
    seen in copies too.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if (
        libc.unshare(_NEWNS)
        or libc.mount(None, b"/", None, _REC | _PRIVATE, None)
        or libc.mount(None, b"/", None, _REC | _SHARED, None)
    ):
        raise OSError(ctypes.get_errno(), "a mount table of its own")


class Mounted(Host):
    """A Host with a mount table of its own."""

    def mount(self, *arguments):
        """mount(8) there."""
        subprocess.run(
            [
                "nsenter",
                "--mount",
                "--target",
                str(self._process.pid),
                "mount",
                *map(str, arguments),
            ],
            check=True,
        )

    def bind(self, source, target):
        """Show the folder or file *source*, below the Host's folder, at *target* too."""
        source, target = self.folder / source, self.folder / target
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.touch()
        self.mount("--bind", source, target)

    def umount(self, target):
        """umount(8) there, of what is below the Host's folder."""
        subprocess.run(
            [
                "nsenter",
                "--mount",
                "--target",
                str(self._process.pid),
                "umount",
                str(self.folder / target),
            ],
            check=True,
        )

    def read(self, path: str, **profile) -> tuple:
        """Return the outcome of read-file in the sandbox."""
        return self.run(["file", "read-file", {"path": str(path)}], **profile)


@contextlib.contextmanager
def mounted(place: str, **more):
    """Run a Host of *place* ("N-root"); it and its mounts are gone afterwards.  *more*: for
    ``host``.
    """
    if os.geteuid():
        pytest.skip("a mount table of its own needs root")
    profile, _, user = place.partition("-")
    made = []
    running = host(profile, user == "root", **more)

    def start():
        try:
            own_table()
            made.append(running.__enter__())
        except BaseException as e:
            made.append(e)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    if isinstance(made[0], BaseException):
        raise made[0]
    try:
        made[0].__class__ = Mounted
        yield made[0]
    finally:
        running.__exit__(None, None, None)
