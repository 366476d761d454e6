"""Notifies systemd about a service (sd_notify(3)): it is ready, its loop still runs, it ends.

1. Each message is one datagram to the socket in $NOTIFY_SOCKET.  A failure here does not affect the
   agent.
2. The loop itself feeds the watchdog.  A tool that never returns at level ``none`` stops the loop,
   and systemd restarts the agent after ``units.WATCHDOG_S``.  A slow model, a slow network or a
   question to a person does not stop the loop.
3. The variables are removed from the environment, so that a process that the agent starts cannot
   notify in its place.
"""

import os
import socket

from clawlite.linux.io.stdio import Part

_NAMES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Notifier(Part):
    """Sends notifications to the service manager.

    now_ms  function() -> monotonic milliseconds
    """

    def __init__(self, now_ms):
        path, period, pid = (os.environ.pop(name, "") for name in _NAMES)
        self._now_ms = now_ms
        # "@" begins a name in Linux's abstract namespace
        self._path = "\0" + path[1:] if path.startswith("@") else path
        meant = pid in ("", str(os.getpid()))
        # twice as often as systemd demands
        self._period_ms = int(period) // 2000 if meant and period.isdigit() else 0
        self._due = None

    def ready(self):
        """Notify that the agent is READY, so that units that wait for it may start."""
        self._tell("READY=1")
        if self._period_ms:
            self._due = self._now_ms()
            self.poll()

    def deadline(self):
        """Return the monotonic time, in milliseconds, at which ``poll`` is due; None without a
        watchdog.
        """
        return self._due

    def poll(self):
        """Feed the watchdog when that is due."""
        if self._due is not None and self._now_ms() >= self._due:
            self._tell("WATCHDOG=1")
            self._due = self._now_ms() + self._period_ms

    def close(self):
        """Notify that the agent ends; closing may take some seconds."""
        self._tell("STOPPING=1")

    def _tell(self, text: str):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                line.setblocking(False)
                line.sendto(text.encode(), self._path)
        except OSError:  # the manager is away or busy; if it misses the watchdog, it acts itself
            pass
