"""Processes with all that they started, and the signals that ask this one to end, on each system.

Where processes have groups, one that is started with ``start_new_session=True`` leads its own.
Windows has none: there its tree is ended, by taskkill."""

import contextlib
import os
import signal
import subprocess
import sys

TERM, KILL = signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)
# SIGBREAK: Ctrl-Break, and a console window of Windows that is closed
ENDS = tuple(
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
    if hasattr(signal, name)
)


def signal_all(pid: int, number: int) -> None:
    """Send the signal *number* to the process *pid* and to what it started; on Windows end them."""
    if hasattr(os, "killpg"):
        # PermissionError: macOS's word for a group whose processes have all ended
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, number)
        return
    with contextlib.suppress(OSError):
        subprocess.run(
            ["taskkill", "/T", "/F", "/PID", str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def base_variables() -> dict:
    """Return what every program needs of this process's environment, beside what it may have:
    where programs lie, and on Windows where the system and the folder for temporary files do.
    """
    found = {"PATH": os.environ.get("PATH", "/usr/bin:/bin")}
    if sys.platform == "win32":
        names = ("SYSTEMROOT", "COMSPEC", "PATHEXT", "TEMP", "TMP", "APPDATA", "LOCALAPPDATA")
        found |= {name: os.environ[name] for name in names if name in os.environ}
    return found
