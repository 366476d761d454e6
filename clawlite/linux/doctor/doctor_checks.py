"""What a check of ``clawlite doctor`` receives, and the states that it returns."""

import os
import time

from clawlite.linux.files.files import list_folder

OK, WRONG, NOTE, NONE = "ok", "wrong", "note", "none"
NO_HOME = "/nonexistent"  # as Debian's list of users says it


class Machine:
    """The machine that is examined.

    root     the folder that its file system begins in
    proc     its table of processes; by default below *root*
    port     path of the port that is asked about, or None
    environ  dict
    uid, gids  the user who runs the check, and their groups: int, set of int
    now_s    its clock, seconds since 1970
    """

    def __init__(
        self, root: str = "/", proc=None, port=None, environ=None, uid=None, gids=None, now_s=None
    ):
        self.root, self.port = root, port
        self.proc = proc or self.path("/proc")
        self.environ = os.environ if environ is None else environ
        self.uid = os.geteuid() if uid is None else uid
        self.gids = _own_groups() if gids is None else gids
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
        return list_folder(self.path(folder))

    @property
    def state(self) -> str:
        """The folder that agents' state lies in (files.state_folder)."""
        base = self.environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(base):
            base = os.path.join(self._home(), ".local", "state")
        named = self.environ.get("CLAWLITE_STATE")
        return os.path.expanduser(named) if named else os.path.join(base, "clawlite")

    @property
    def lacks_home(self) -> bool:
        """Whether the state has no place, because this user has no home folder."""
        return self.state.startswith(NO_HOME + "/")

    def _home(self) -> str:
        import pwd

        home = self.environ.get("HOME", "")
        if os.path.isabs(home):
            return home
        try:
            home = pwd.getpwuid(self.uid).pw_dir
        except KeyError:
            pass
        return home if os.path.isabs(home) else NO_HOME

    def may(self, path: str, bits: int) -> bool:
        """Return whether this user may do *bits* (4 read, 2 write, 1 search) with the file at
        *path*.  Of the user of this process the kernel knows it, with all mounts and capabilities;
        of another one owner, group and mode tell it.
        """
        if (self.uid, self.gids) == (os.geteuid(), _own_groups()):
            return os.access(path, bits, effective_ids=True)
        try:
            found = os.stat(path)
        except OSError:
            return False
        if self.uid == 0:
            return True
        shift = 6 if found.st_uid == self.uid else 3 if found.st_gid in self.gids else 0
        return found.st_mode >> shift & bits == bits


def _own_groups() -> set:
    return {os.getegid(), *os.getgroups()}
