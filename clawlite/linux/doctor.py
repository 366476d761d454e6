"""``clawlite doctor``: what is wrong on this machine, and the one command that mends it, with the standard library alone.

A check is a function(here) -> list of rows (check, state, what, mend); its state is one of ``OK``, ``WRONG`` (exit code 1), ``NOTE`` (not
wrong, but good to know) and ``NONE`` (does not apply here).  A fifth part, for --json alone, is a dict.  Nothing is changed, no port is
opened.
"""
import os
import sys
import time

from clawlite.linux.jsontext import dumps
from clawlite.linux.verbs import failed

USAGE = "usage: clawlite doctor [--port PORT] [--json]"
HELP = "What is wrong here, and the command that mends it. Exit code 1 when something is. --port looks at that port."
OK, WRONG, NOTE, NONE = "ok", "wrong", "note", "none"


class Here:
    """The machine that is looked at.

    root     the folder that its file system begins in
    proc     its table of processes; by default below *root*
    port     path of the port that is asked about, or None
    environ  dict
    uid, gids  who asks: int, set of int
    now_s    its clock, seconds since 1970
    """

    def __init__(self, root: str = "/", proc=None, port=None, environ=None, uid=None, gids=None, now_s=None):
        self.root, self.port = root, port
        self.proc = proc or self.path("/proc")
        self.environ = os.environ if environ is None else environ
        self.uid = os.geteuid() if uid is None else uid
        self.gids = {os.getegid(), *os.getgroups()} if gids is None else gids
        self.now_s = time.time() if now_s is None else now_s

    def path(self, path: str) -> str:
        return path if self.root == "/" else self.root + path

    def text(self, path: str) -> str:
        """Return the first KiB of a file, "" when it cannot be read."""
        try:
            with open(self.path(path), "rb") as file:
                return file.read(1024).rstrip(b"\0\n").decode("utf-8", "replace")
        except OSError:
            return ""

    def names(self, folder: str) -> list:
        try:
            return sorted(os.listdir(self.path(folder)))
        except OSError:
            return []

    @property
    def state(self) -> str:
        """The folder that agents' state lies in (files.state_folder)."""
        base = self.environ.get("XDG_STATE_HOME") or os.path.join(self.environ.get("HOME", "/"), ".local", "state")
        return self.environ.get("CLAWLITE_STATE") or os.path.join(base, "clawlite")

    def may(self, path: str, bits: int) -> bool:
        """Return whether who asks may do *bits* (4 read, 2 write, 1 search) with the file at *path*, by its owner, group and mode."""
        try:
            found = os.stat(path)
        except OSError:
            return False
        if self.uid == 0:
            return True
        shift = 6 if found.st_uid == self.uid else 3 if found.st_gid in self.gids else 0
        return found.st_mode >> shift & bits == bits


def main(args: list) -> int:
    """Run the verb; return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE + "\n\n" + HELP)
        return 0
    port, rest, as_json = None, list(args), False
    while rest:
        word = rest.pop(0)
        if word == "--json":
            as_json = True
        elif word == "--port" and rest:
            port = rest.pop(0)
        elif word.startswith("--port="):
            port = word[7:]
        else:
            return failed("unexpected %s\n%s" % (word, USAGE))
    rows = examine(Here(port=port))
    print(dumps([dict(zip(("check", "state", "what", "mend", "found"), row)) for row in rows]) if as_json else text(rows, sys.stdout.isatty()))
    return 1 if any(row[1] == WRONG for row in rows) else 0


def examine(here: Here) -> list:
    """Return the rows of all checks."""
    from clawlite.linux import doctor_agent, doctor_machine, doctor_ports
    return [row for part in (doctor_machine, doctor_ports, doctor_agent) for check in part.CHECKS for row in check(here)]


def text(rows: list, is_terminal: bool = False) -> str:
    """Return what a person reads: what does not apply is left out; on a terminal what is wrong is bold."""
    lines = []
    for check, state, what, mend in [row[:4] for row in rows]:
        if state != NONE:
            head = "%-6s" % {OK: "ok", WRONG: "WRONG", NOTE: "note"}[state]
            lines.append(("\x1b[1m%s\x1b[0m" % head if is_terminal and state == WRONG and "NO_COLOR" not in os.environ else head) + " %-9s %s" % (check, what))
            if mend:
                lines.append("       %-9s mend it: %s" % ("", mend))
    wrong = sum(row[1] == WRONG for row in rows)
    return "\n".join(lines + ["%d thing%s wrong." % (wrong, " is" if wrong == 1 else "s are") if wrong else "Nothing is wrong."])
