"""Secrets by the names that manifests give them (``secret_ref``): three places to look, one to
write.

1. Order: the agent's own store, the environment, ``$CLAW_SECRETS_DIR``.  The first that has the
   name decides: a value that cannot be used is an error, never a reason to look further.
2. The store is the folder ``secrets`` (0700) in the agent's state folder, one file (0600) per
   secret.  A store file that others can read is refused.  ``$CLAW_SECRETS_DIR`` is mounted by
   whoever runs the container, often with mode 0444: there only a file that others can write is
   refused.
3. With a key (encrypted_store.py) the store is encrypted; where a manifest demands that, a file
   that is not encrypted is refused.
4. No exception, none that it was raised from, and no log has the value of a secret.
"""

import os
import stat

try:
    import fcntl
except ImportError:  # Windows: the host part keeps secrets there, for a gateway
    fcntl = None

from clawlite.core.base.errors import ClawError
from clawlite.core.base.printable import escape_line
from clawlite.core.base.text import decode_utf8
from clawlite.linux.files.files import state_folder, write_whole
from clawlite.linux.secrets import encrypted_store

# bytes: the longest tokens take some 4 KiB, and a request's head ends at 16
MAX_VALUE = 8192
MAX_NAME = 128
# above the size of an encrypted file, so that a longer one is noticed
_MOST_READ = 2 * MAX_VALUE
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


_POSIX = os.name == "posix"  # elsewhere modes say nothing, and the person's own folder is theirs
_CLOSED, _AT_ONCE = getattr(os, "O_CLOEXEC", 0), getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)

_DEMANDED = set()  # agents whose sandbox demands an encrypted store


class SecretError(ClawError):
    """A secret that exists and cannot be used, or a name that is not allowed."""

    code = -32020  # a provider without its key has failed


class SecretMissing(SecretError):
    """None of the places has the secret."""

    is_missing = True  # a gateway may have another one


def stores(agent: str) -> list:
    """Return the places where the secrets of *agent* may lie, in order: (what people call it, its
    function).

    The function takes a checked name and returns (path or name of the place, value as bytes or
    None)."""
    folder = _folder(agent)
    mounted = os.environ.get("CLAW_SECRETS_DIR")

    def from_store(name):
        path = os.path.join(folder, name)
        return path, _decrypt(agent, name, path, _read(path, True))

    def from_environment(name):
        return "the environment variable " + name, _variable(name)

    def from_mounted(name):
        path = os.path.join(mounted, name)
        return path, _read(path, False)

    return [
        (folder, from_store),
        ("the environment", from_environment),
        ("$CLAW_SECRETS_DIR (%s)" % (mounted or "not set"), from_mounted if mounted else None),
    ]


def _variable(name: str):
    value = os.environ.get(name)
    return None if value is None else os.fsencode(value)


def resolve(name: str, stores: list) -> str:
    """Return the value of the secret *name* from the first of *stores* that has it.

    stores  of ``stores(agent)``
    The value has 1..8192 bytes, is UTF-8 and holds no control character; one newline at its end is
    dropped. Raises ``SecretMissing`` naming every place, ``SecretError`` for a name or a value that
    cannot be used."""
    check_name(name)
    for _, look in stores:
        where, value = look(name) if look else (None, None)
        if value is not None:
            return _text(value, where)
    raise SecretMissing(
        "secret %s: not found in %s" % (name, ", nor in ".join(place for place, _ in stores)),
        "export %s=... before the start, or keep it: clawlite secrets set %s" % (name, name),
    )


def set_secret(agent: str, name: str, value: str):
    """Keep *value* under *name* in the agent's store, as a whole or not at all; an earlier value is
    replaced.

    Raises ``SecretError`` for what ``resolve`` would refuse, ``OSError`` when it cannot be written.
    """
    check_name(name)
    data = _text(value.encode("utf-8", "surrogatepass"), "the value").encode()
    if agent in _DEMANDED or encrypted_store.has_key():
        data = encrypted_store.seal(agent, name, data)
    folder = _folder(agent)
    os.makedirs(os.path.dirname(folder), 0o700, exist_ok=True)
    os.makedirs(folder, 0o700, exist_ok=True)
    os.chmod(folder, 0o700)
    draft = os.path.join(folder, name + "~")  # names of secrets cannot end so
    if os.path.lexists(draft):
        os.unlink(draft)  # a power cut left it
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOSED | _BINARY, 0o600)
    try:
        write_whole(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.replace(draft, os.path.join(folder, name))


class Renewal:
    """Which process of *agent* replaces its secret *name*: one at a time.  The lock is flock(2) on
    a file of the store: the kernel gives it back however the process ends.
    """

    def __init__(self, agent: str, name: str):
        check_name(name)
        self._folder, self._name, self._fd = _folder(agent), name, None

    def take(self, waits: bool = False) -> bool:
        """Return whether this process has it now.  Raises ``OSError``."""
        if self._fd is None:
            os.makedirs(self._folder, 0o700, exist_ok=True)
            path = os.path.join(self._folder, self._name + "~lock")  # no name of a secret
            fd = os.open(path, os.O_RDWR | os.O_CREAT | _CLOSED, 0o600)
            try:
                _lock(fd, waits)
            except (BlockingIOError, PermissionError):  # the latter: of Windows
                os.close(fd)
                return False
            self._fd = fd
        return True

    def release(self):
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


def _lock(fd: int, waits: bool):
    if fcntl is not None:
        fcntl.flock(fd, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        return
    import msvcrt

    # LK_LOCK tries for ten seconds; a renewal takes less, or has its own error
    msvcrt.locking(fd, msvcrt.LK_LOCK if waits else msvcrt.LK_NBLCK, 1)


def demand_encryption(agent: str):
    """Refuse secrets in the store of *agent* that are not encrypted: its sandbox says
    ``encryption: aes-256-gcm``.
    """
    _DEMANDED.add(agent)


def is_encrypted(agent: str, name: str) -> bool:
    """Return whether the secret *name* of the store is encrypted."""
    return (_read(os.path.join(_folder(agent), name), True) or b"").startswith(
        encrypted_store.MAGIC
    )


def names(agent: str) -> list:
    """Return the names in the agent's store, sorted."""
    try:
        return sorted(name for name in os.listdir(_folder(agent)) if _is_name(name))
    except FileNotFoundError:
        return []


def remove(agent: str, name: str):
    """Forget the secret *name* of the agent's store; raises ``SecretMissing`` when it is not
    there.
    """
    check_name(name)
    path = os.path.join(_folder(agent), name)
    try:
        os.unlink(path)
    except FileNotFoundError:
        raise SecretMissing(
            "secret %s: there is no %s" % (name, path),
            "clawlite secrets list shows the names",
        ) from None


def _folder(agent: str) -> str:
    return os.path.join(state_folder(agent), "secrets")


def _is_name(name: str) -> bool:
    return 0 < len(name) <= MAX_NAME and _ALPHABET.issuperset(name) and name[0] != "."


def check_name(name: str):
    if not _is_name(name):
        raise SecretError(
            "secret name %s: expected 1 to %d of A-Z a-z 0-9 _ . -, and no . at its beginning"
            % (escape_line(repr(name), 100), MAX_NAME),
            "choose another name",
        )


def _read(path: str, is_store: bool):
    """Return the bytes of the file at *path*, at most a few more than are allowed, or None when
    there is no such file.
    """
    try:
        # O_NONBLOCK: opening a FIFO would wait for its writer
        fd = os.open(path, os.O_RDONLY | _CLOSED | _AT_ONCE | _BINARY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as e:
        raise SecretError("%s: %s" % (path, e.strerror), "check who may read it") from None
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise SecretError("%s: expected a file" % path, "put the secret into a file there")
        if _POSIX and is_store and status.st_mode & 0o077:
            raise SecretError(
                "%s: others may read it (mode %03o)" % (path, status.st_mode & 0o777),
                "chmod 600 '%s', and replace the secret if somebody else was here" % path,
            )
        if _POSIX and status.st_mode & 0o022:
            raise SecretError(
                "%s: others may change it (mode %03o)" % (path, status.st_mode & 0o777),
                "chmod 600 '%s', or mount it with mode 0444 or less; replace the "
                "secret if somebody else was here" % path,
            )
        return os.read(fd, _MOST_READ)
    finally:
        os.close(fd)


def _decrypt(agent: str, name: str, path: str, data):
    """Return the value in the *data* of a file of the store, None for None."""
    if data is None or not data.startswith(encrypted_store.MAGIC):
        if data is not None and agent in _DEMANDED:
            raise SecretError(
                "%s: it is not encrypted, and the sandbox demands aes-256-gcm" % path,
                "clawlite secrets set %s, with $%s" % (name, encrypted_store.VARIABLE),
            )
        return data
    try:
        return encrypted_store.open_sealed(agent, name, data)
    except ClawError as e:
        problem = e
    raise SecretError("%s: %s" % (path, problem.message), problem.hint)


def _text(value: bytes, where: str) -> str:
    """Return the bytes of a secret as text.  Errors are raised outside of every handler: a
    chained one would hold the value.
    """
    if value.endswith(b"\n"):
        value = value[:-2] if value.endswith(b"\r\n") else value[:-1]
    try:
        text = decode_utf8(value)
    except ValueError:
        text = None
    if len(value) > MAX_VALUE:
        problem = "a secret has at most %d bytes" % MAX_VALUE
    elif text is None:
        problem = "a secret is UTF-8 text"
    elif not text.strip():
        problem = "the secret is empty" if not text else "the secret is blank"
    elif min(text) < " " or "\x7f" in text:
        problem = "the secret holds a line break or another control character"
    else:
        return text
    raise SecretError("%s: %s" % (where, problem), "write the secret as one line of text")
