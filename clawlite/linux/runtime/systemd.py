"""What systemd is told of a service (sd_notify(3)): that it is ready, that its loop still turns,
that it ends.

1. One datagram each to the socket that $NOTIFY_SOCKET names; nobody else is told anything, and
   nothing here fails an agent.
2. The watchdog is fed by the loop itself.  A tool that never comes back at level ``none`` stops the
   loop, and systemd starts the agent anew after ``units.WATCHDOG_S``; a slow model, a slow network
   and a person who is asked do not stop it.
3. The variables are taken out of the environment: what the agent starts must not speak for it.
"""

import os
import socket

_NAMES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")


class Notifier:
    """The service manager's ear.

    now_ms  function() -> monotonic milliseconds
    """

    def __init__(self, now_ms):
        path, period, pid = (os.environ.pop(name, "") for name in _NAMES)
        self._now_ms = now_ms
        # Linux's abstract names
        self._path = "\0" + path[1:] if path.startswith("@") else path
        meant = pid in ("", str(os.getpid()))
        # twice as often as it must be
        self._period_ms = int(period) // 2000 if meant and period.isdigit() else 0
        self._due = None

    def ready(self):
        """The agent is READY: what waits for it may start."""
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

    def stopping(self):
        """The agent ends; closing may take some seconds."""
        self._tell("STOPPING=1")

    def _tell(self, text: str):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
                line.setblocking(False)
                line.sendto(text.encode(), self._path)
        except OSError:  # its manager is away or busy: it asks again by not hearing
            pass
