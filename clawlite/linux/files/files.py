"""Where an agent's files lie on Linux, and the image read from one of them.

State lies in ``$CLAWLITE_STATE``, by default the XDG state folder: one folder per agent, mode 0700.
"""

import errno
import os

from clawlite.core.base.errors import ClawError, ImageError
from clawlite.core.base.printable import escape_ends, escape_name
from clawlite.core.image import image_signature
from clawlite.core.image.header import MAGIC, MAX_IMAGE
from clawlite.core.image.image import Image
from clawlite.linux.files.regular_file import open_regular

KEPT = 4096  # decoded tools and rules that stay in memory: a Pi has room


def open_image(path: str, prepare=None) -> Image:
    """Return the image in the file *path*, its CRC and its digest checked; with
    ``$CLAWLITE_DEVICE_KEY_FILE`` its signature too.

    prepare  as of ``Image``

    Raises ``ImageError``; its message says what was wrong with the file.
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(MAX_IMAGE + 1)
    except OSError as e:
        raise ImageError(
            "%s: %s" % (path, e.strerror),
            "name an image that exists; make one with: clawlite build",
        ) from None
    return image_of(data, path, prepare)


def image_of(data: bytes, name: str, prepare=None) -> Image:
    """Return the image in *data*, checked as ``open_image`` does; *name* is what its errors call
    it.
    """

    def read(offset: int, length: int) -> bytes:
        return data[offset : offset + length]

    try:
        image = Image(read, len(data), KEPT, prepare)
        key_file = os.environ.get("CLAWLITE_DEVICE_KEY_FILE")
        image_signature.check(
            read, len(data), image.seal_at, _device_key(key_file) if key_file else None
        )
    except ImageError as e:
        raise type(e)(
            "%s: %s" % (name, e.message), e.hint or "build it again: clawlite build"
        ) from None
    return image


def _device_key(path: str) -> bytes:
    """Return the key in the file *path*.  Raises ``ImageError`` where it cannot protect
    anything.
    """
    try:
        with open(path, "rb", opener=open_regular) as file:
            mode, key = os.fstat(file.fileno()).st_mode, file.read(4096).strip()
    except OSError as e:
        raise ImageError(
            "the device key %s: %s" % (path, e.strerror),
            "check CLAWLITE_DEVICE_KEY_FILE, and who may read the file",
        ) from None
    if mode & 0o077:
        raise ImageError(
            "the device key %s: others may read or change it (mode %03o)" % (path, mode & 0o777),
            "chmod 600 '%s', and make a new key if somebody else was here" % path,
        )
    if len(key) < image_signature.LEAST_KEY:
        raise ImageError(
            "the device key %s: expected %d bytes or more, got %d"
            % (path, image_signature.LEAST_KEY, len(key)),
            "make one: head -c 32 /dev/urandom | base64",
        )
    return key


def is_image(path: str) -> bool:
    """Return whether the file at *path* begins as an image does."""
    try:
        with open(path, "rb", opener=open_regular) as file:
            return file.read(3) == MAGIC
    except OSError:
        return False


def home_folder() -> str:
    """Return the home folder of this user: $HOME, else what the list of users names.

    Raises ``ClawError`` when neither is an absolute path (a cron job, ``docker run --user 1234``):
    a relative one would be another folder, and so another agent, wherever it is started.
    """
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    if os.name == "nt":
        return os.path.expanduser("~")
    import pwd

    try:
        home = pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        home = ""
    if os.path.isabs(home):
        return home
    raise ClawError(
        "the user with the number %d has no home folder: HOME is not set, and the list of users "
        "(/etc/passwd) names none" % os.getuid(),
        "set HOME, or name a folder for the state of agents: export CLAWLITE_STATE=/var/lib/claw",
    )


def expand_home(path: str) -> str:
    """Return *path* with the home folder in the place of a ``~`` or ``~USER`` at its beginning.

    Raises ``ClawError`` when there is no such home.
    """
    head, slash, rest = path.partition("/")
    if head == "~":
        return os.path.join(home_folder(), rest)
    found = os.path.expanduser(path)
    if head[:1] == "~" and not os.path.isabs(found):
        raise ClawError("%s: there is no user %s" % (path, head[1:]), "write the path from / on")
    return found


def base_folder(variable: str, *default: str) -> str:
    """Return the folder that *variable* names (XDG Base Directory: a relative path counts as none),
    else *default* below the home folder.
    """
    named = os.environ.get(variable, "")
    return named if os.path.isabs(named) else os.path.join(home_folder(), *default)


def state_folder(agent: str) -> str:
    """Return the state folder of *agent*; it may not exist yet.  Raises ``ClawError`` for a name
    that would lead elsewhere.

    An agent that is called as the folder of all swarms is has another one, whose name no agent has:
    theirs have no dots.
    """
    check_step(agent, "the agent")
    return os.path.join(state_root(), agent + ".agent" * (agent.lower() == SWARMS))


def state_root() -> str:
    """Return the folder of the state folders of all agents; it may not exist yet."""
    named = os.environ.get("CLAWLITE_STATE")
    if named:  # a unit or a container file passes a "~" on as it is written
        return expand_home(named)
    return os.path.join(base_folder("XDG_STATE_HOME", ".local", "state"), "clawlite")


def check_step(name: str, what: str):
    """Raise ``ClawError`` when *name*, that of *what* in an image, is no name of a file: the build
    makes none such, but an image may come from anybody.
    """
    if not name or name[0] == "." or "/" in name or "\0" in name:
        raise ClawError(
            "image: the name of %s would lead to another folder: %s" % (what, escape_name(name)),
            "build it again from its manifest; do not run an image whose origin you do not know",
        )


SWARMS = "swarms"  # the folder of all swarms, beside those of agents


def swarm_folder(name: str) -> str:
    """Return the folder of the swarm *name* on this machine; it may not exist yet.  Raises as
    ``state_folder`` does.
    """
    check_step(name, "the swarm")
    return os.path.join(state_root(), SWARMS, name)


def tell_doctor(folder: str, name: str, text: str):
    """Keep *text* in a file that ``clawlite doctor`` reads; with "" remove the file."""
    path = os.path.join(folder, name)
    try:
        if text:
            os.makedirs(folder, 0o700, exist_ok=True)
            with open(path, "w") as file:
                file.write(text + "\n")
        elif os.path.exists(path):
            os.unlink(path)
    except OSError:  # then doctor finds no file and reports nothing
        pass


FAULTY = "look at the disk: it fails (the kernel's log, dmesg, says more)"
_ROOM = "make room for it"
_WRITABLE = "make its folder writable"
_OTHER = "something else has its name, or that of its folder: move it away"
_MENDS = {
    errno.EIO: FAULTY,
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: _ROOM,
    errno.EACCES: _WRITABLE,
    errno.EPERM: _WRITABLE,
    errno.EROFS: _WRITABLE,
    errno.EISDIR: _OTHER,
    errno.ENOTDIR: _OTHER,
    errno.ENAMETOOLONG: "shorten the names: those of the agent and of the folders above its files",
    errno.EMFILE: "let it have more open files (ulimit -n)",
    errno.ENFILE: "close other programs: the machine has no room for another open file",
}


def mend(e: OSError) -> str:
    """Return what helps when a file of the agent cannot be written."""
    return _MENDS.get(e.errno, "make room for it, or make its folder writable")


def own_file(path: str) -> None:
    """Make the file *path* for the agent's user alone, where it is not there: what SQLite makes by
    itself others may read.  Where that fails, SQLite says why.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        os.close(os.open(path, flags, 0o600))
    except OSError:
        pass


def sqlite_uri(path: str, how: str) -> str:
    """Return the URI by which SQLite opens the file *path*; *how*: "mode=ro"."""
    name = "".join("%%%02x" % c if c in b"%?#" or c > 126 else chr(c) for c in os.fsencode(path))
    return "file:%s?%s" % (name, how)


def aside(path: str) -> str:
    """Return the name under which the damaged file *path* is kept: one that no other has.

    ``NAME.damaged``, then ``NAME.damaged.2`` to ``.8``; the last is overwritten, so the first
    damage is never lost.
    """
    first = path + ".damaged"
    names = [first] + ["%s.%d" % (first, number) for number in range(2, 9)]
    return next((name for name in names if not os.path.lexists(name)), names[-1])


def leads_to(path: str, fd: int) -> bool:
    """Return whether *path* still leads to the open file *fd*: nobody has removed or replaced
    it, or what it lies in.
    """
    return leads_to_inode(path, inode(fd))


def list_folder(path) -> list:
    """Return the names in the folder *path*, sorted; [] when it cannot be read."""
    try:
        return sorted(os.listdir(path))
    except OSError:
        return []


def inode(fd: int) -> tuple:
    """Return (device, inode) of an open file: as long as it is open, no other file has them."""
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def leads_to_inode(path: str, open_inode: tuple) -> bool:
    """Return what ``leads_to`` returns, for an open file with this ``inode``: one system call."""
    try:
        status = os.stat(path)
    except OSError:  # opening it next tells why
        return False
    return (status.st_dev, status.st_ino) == open_inode


def tell_replaced(what: str, path: str):
    """Say on stderr that the file *path*, of *what*, was removed or replaced while it was in
    use.
    """
    print_to_stderr(
        "%s %s was removed or replaced while it was in use, and is written anew" % (what, path)
    )


def print_to_stderr(text: str):
    """Say one line of *text* on stderr, where somebody reads it."""
    try:
        os.write(2, b"clawlite: %s\n" % escape_ends(text).encode())
    # stderr is closed, or its reader is gone: no store fails for that
    except OSError:
        return


def replace_file(path: str, data: bytes, mode: int = 0o600):
    """Write *path* as a whole, by a draft beside it.  A link in its place, or in the draft's, is
    replaced and never followed: somebody else may write to its folder.  Raises ``OSError``.
    """
    draft = path + ".new"
    try:
        os.unlink(draft)
    except FileNotFoundError:
        pass
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, mode)
    try:
        write_whole(fd, data)
    finally:
        os.close(fd)
    os.replace(draft, path)


def sync_data(fd: int):
    """Bring what was written to an open file to the disk.  Raises ``OSError``."""
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:  # macOS
        os.fsync(fd)


def write_whole(fd: int, data: bytes):
    """Write all of *data*.  Raises ``OSError``: a part of it may stand there then."""
    at = os.write(fd, data)
    while at < len(data):  # a full disk takes what fits, and refuses the rest
        at += os.write(fd, data[at:])


MOST_WAITING = 65536  # bytes of the log that wait for a disk that takes them again


class Log:
    """The agent's log: one JSON line an event, in ``log.jsonl`` of the state folder, at most two
    files of *limit* bytes.

    Events wait for ``flush``, which comes before anybody hears what came of them.
    A log that cannot be written is said once on stderr and tried again with each flush; what could
    not be written waits."""

    def __init__(self, agent: str, dumps, limit: int = 1048576):
        self._folder = state_folder(agent)
        self._path = os.path.join(self._folder, "log.jsonl")
        self._dumps = dumps
        self._limit = limit
        self._fd = self._inode = None
        self._size = 0
        self._waiting = []
        self._rest = b""  # what could not be written
        self._is_torn = False  # the file ends in a line that the rest goes on with
        # the file ended in a part of a line when it was opened: the rest went with its process
        self._is_cut = False
        self._told = False
        self.mend = ""  # what helps against why the last ``flush`` failed

    def write(self, event: dict):
        """Append one event; the caller has put the time in."""
        self._waiting.append(self._dumps(event))

    def flush(self) -> bool:
        """Write what waits; a process that is killed after this has not lost it.  Return False
        when it could not be written.
        """
        if not self._waiting and not self._rest:
            return True
        try:
            self._write()
        except OSError as e:
            self.mend = mend(e)
            if not self._told:
                self._told = True
                print_to_stderr("%s - %s" % (self._problem(e), mend(e)))
            return False
        return True

    def check(self):
        """Write what waits.  Raises ``ClawError`` when nothing can be written."""
        try:
            if self._fd is None:
                self._open()
            self._write()
        except OSError as e:
            raise ClawError(self._problem(e), mend(e)) from None

    def _write(self):
        waiting = self._waiting
        if not waiting and not self._rest:
            return
        waiting.append("")
        data = self._rest + "\n".join(waiting).encode()
        waiting.clear()
        size = len(data)
        self._rest = (
            data if size <= MOST_WAITING else data[: data.rfind(b"\n", 0, MOST_WAITING) + 1]
        )
        if self._fd is not None and not leads_to_inode(self._path, self._inode):
            self._close()
            tell_replaced("the log", self._path)
        if self._fd is None:
            self._open()
        # an empty file would take the place of the lines before
        if self._size and self._size + size > self._limit and not self._is_torn:
            self._close()
            os.replace(self._path, self._path + ".1")
            self._open()
        if self._is_cut:
            data = b"\n" + data
        written = os.write(self._fd, data)
        self._is_cut = False
        self._size += written
        self._rest = data[written:]
        self._is_torn = data[written - 1 : written] != b"\n"
        # a disk that is nearly full: the rest of the line comes first, once there is room
        if self._rest:
            self._write()
        self._told = False

    def _problem(self, e: OSError) -> str:
        return "the log %s cannot be written: %s" % (self._path, e.strerror)

    def _open(self):
        os.makedirs(self._folder, 0o700, exist_ok=True)
        self._fd = open_regular(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        status = os.fstat(self._fd)
        self._inode, self._size = (status.st_dev, status.st_ino), status.st_size
        size = self._size
        self._is_cut = bool(size) and not self._is_torn and os.pread(self._fd, 1, size - 1) != b"\n"

    def close(self):
        """Write what waits, and end."""
        self.flush()
        self._close()

    def _close(self):
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)
