"""The systemd units of an agent: texts, made from facts alone.

1. Hardened as far as the process sandbox of tools allows.  It makes user, mount, pid, net and ipc
   namespaces, mounts a /proc of its own and installs seccomp filters, so RestrictNamespaces,
   PrivateUsers and a SystemCallFilter without @mount are out of the question.
2. Nothing may cover any part of /proc: the kernel then refuses a new one in a namespace ("VFS:
   Mount too revealing").  So no ProtectKernelTunables, ProtectKernelLogs, ProtectProc, ProcSubset.
   systemd has to give the service no capability for that.
3. No MemoryDenyWriteExecute: tools.py may use ctypes callbacks, which write code.
4. A user's own manager may set little of it up (no mounts), and gets the part that needs no rights.
"""

# a tool at level none may hold the loop for so long: longer than any that works
WATCHDOG_S = 300
_KEPT_UP = [
    "Type=notify",
    "NotifyAccess=main",
    "WatchdogSec=%d" % WATCHDOG_S,
    "Restart=always",
    "RestartSec=2",
    "# An image or a setting that is wrong stays wrong: exit code 2 is not tried again.",
    "RestartPreventExitStatus=2",
]
# Not with a terminal: a USB gadget's comes and goes with its cable.
_START_LIMIT = [
    "# One that ends at once is given up after five starts in five minutes; systemctl "
    "reset-failed forgets them.",
    "StartLimitIntervalSec=300",
    "StartLimitBurst=5",
]
MARK = (
    '# clawlite\'s own, written by "clawlite service install"; remove it with "clawlite '
    'service remove".'
)

_FOR_ALL = """\
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service @mount seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self pidfd_getfd
SystemCallErrorNumber=EPERM
TasksMax=256
Delegate=cpu memory pids
"""  # noqa: E501
_FOR_SYSTEM = """\
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
PrivateTmp=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelModules=yes
RemoveIPC=yes
DevicePolicy=closed
DeviceAllow=char-gpiochip rw
DeviceAllow=char-i2c rw
DeviceAllow=char-spi rw
"""


PAGE = "the.page"  # a name that no agent has


class Service:
    """What a service's units say.

    name      the agent's
    words     list of str, the command that runs it, paths absolute
    user      who it runs as; None: the manager's own user, so these are units of that user
    writable  list of folders that it may write to, beside its temporary ones
    tty       path of the terminal that it serves, or None
    state     folder that agents' state lies in, or None for the default
    lasts     True: it has channels of its own, which it serves from boot on; False without a tty:
              it serves who connects to its socket
    """

    def __init__(
        self, name: str, words: list, user, writable: list, tty, state=None, lasts: bool = False
    ):
        self.name, self.words, self.user, self.writable, self.tty, self.state = (
            name,
            words,
            user,
            writable,
            tty,
            state,
        )
        self.lasts, self.is_kept_up = lasts, bool(lasts or tty)

    @property
    def main(self) -> str:
        """The unit that is enabled: the service where it runs from boot on, else the socket."""
        return "clawlite-%s.%s" % (self.name, "service" if self.is_kept_up else "socket")

    def units(self) -> list:
        """Return [(file name, text)]."""
        if self.is_kept_up:
            return [
                (
                    self.main,
                    self._service("agent %s on %s" % (self.name, self.tty or "its channels")),
                )
            ]
        return [
            ("clawlite-%s.socket" % self.name, self._socket()),
            ("clawlite-%s@.service" % self.name, self._service("agent %s" % self.name)),
        ]

    def _socket(self) -> str:
        place = "/run" if self.user else "%t"
        owner = "SocketUser=%s\n" % self.user if self.user else ""
        return (
            "%s\n[Unit]\nDescription=clawlite: the door of agent %s\n\n[Socket]\n"
            "ListenStream=%s/clawlite/%s.sock\nSocketMode=0600\n%s"
            "# One at a time: two processes of one agent would share its state.\nAccept=yes\n"
            "MaxConnections=1\n\n[Install]\nWantedBy=sockets.target\n"
            % (MARK, self.name, place, self.name, owner)
        )

    def _service(self, title: str) -> str:
        lines = [MARK, "[Unit]", "Description=clawlite: " + title]
        if self.tty:
            device = self.tty.rpartition("/")[2]
            lines += [
                "Conflicts=serial-getty@%s.service" % device,
                "After=serial-getty@%s.service" % device,
            ]
        elif self.is_kept_up:
            lines += _START_LIMIT
        if self.user and self.lasts:
            # Schedules and the age of messages need the time.  systemd.special(7): a unit is
            # ordered after this target, and whoever knows when the clock is right pulls it in.
            lines += ["After=time-sync.target"]
        lines += ["", "[Service]", "ExecStart=" + " ".join(quote(word) for word in self.words)]
        if self.tty:
            # Plain lines without echo: who edits them is the console at the other end.
            lines += [
                "ExecStartPre=+/bin/stty -F %s 115200 sane -echo" % quote(self.tty),
                "Environment=TERM=dumb",
                "TTYPath=%s" % self.tty,
                "StandardInput=tty",
                "StandardOutput=tty",
            ]
        elif self.is_kept_up:
            lines += ["StandardInput=null", "StandardOutput=journal"]
        else:
            lines += ["StandardInput=socket", "StandardOutput=socket"]
        # docs/errors.md: SIGHUP and SIGTERM are no failures
        lines += ["StandardError=journal", "SuccessExitStatus=129 143"]
        lines += _KEPT_UP if self.is_kept_up else []
        if self.state:
            lines += ["Environment=" + quote("CLAWLITE_STATE=" + self.state)]
        text = "\n".join(lines) + "\n" + _FOR_ALL
        if self.user:
            text += (
                "User=%s\n" % self.user
                + _FOR_SYSTEM
                + "".join("ReadWritePaths=%s\n" % quote(path) for path in self.writable)
            )
            text += "DeviceAllow=%s rw\n" % self.tty if self.tty else ""
        if self.is_kept_up:
            text += "\n[Install]\nWantedBy=%s\n" % (
                "multi-user.target" if self.user else "default.target"
            )
        return text


class PageService(Service):
    """The unit of ``clawlite page``, for the agents of its user."""

    def __init__(self, words: list, user, writable: list, state=None):
        super().__init__(PAGE, words, user, writable, None, state, True)

    def _service(self, title: str) -> str:
        text = super()._service("the page of the agents here")
        return text.replace("\n".join(_KEPT_UP[:3]), "Type=exec")


def quote(word: str) -> str:
    """Return *word* as one word of a unit file: systemd.syntax(7), with its specifiers and
    variables taken literally.
    """
    return '"%s"' % word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace(
        "$", "$$"
    )
