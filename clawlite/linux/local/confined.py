"""The process of the engine: it gives up its rights, loads the stranger's code, and answers.

1. It is forked by ``engine.Engine``, with the engine's bytes and the weights in memory: it opens no
   file by a name.  With Landlock it may open nothing but the system's libraries; else it goes to an
   empty root.  It has no network, no other process, and limits of memory and files.
2. A message is its length (4 bytes, big endian) and its bytes; the first byte says what is asked:
   I (tools as JSON), C (a sentence), E (a text, for its vector).  An answer begins with + or -.
"""

import ctypes
import mmap
import os
import resource
import signal
import struct
import tempfile

from clawlite.linux.confinement import landlock, namespaces, seccomp, syscalls

LARGEST = 1 << 20  # bytes of a message
# address space beyond what is mapped at the fork, which a large parent hands down: the engine with
# 70 MB of work, and stacks and arenas of its threads
MEMORY = 500 << 20
_FILES = 16
_ANSWER = 65536
_NOBODY = 65534
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/proc/cpuinfo")
_PROC = ("/proc/meminfo", "/sys/devices/system/cpu")


def serve(line: int, engine: bytes, weights: int, size: int, parent: int):
    """Confine this process, load *engine*, and answer until the other end closes.  Never returns.

    line     socket to ``engine.Engine``
    weights  address of *size* bytes
    parent   its process: when that ends, this one does
    """
    status = 1
    try:
        _give_up_rights(line, parent)
        library = _memory_file(engine)
        roots = _confine()
        needle = _load(library)
        if roots:
            _leave_files(roots)
        if needle.needle_load(weights, size) < 0:
            _fail(line, "the weights cannot be loaded: " + _last_error(needle))
        _send(line, b"+")
        _answer(line, needle)
        status = 0
    except BaseException as e:
        _fail(line, "%s: %s" % (type(e).__name__, e))
    finally:
        os._exit(status)


def _give_up_rights(line: int, parent: int):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, line)
    os.closerange(line + 1, os.sysconf("SC_OPEN_MAX"))
    os.environ.clear()
    for what, most in (
        (resource.RLIMIT_AS, _count_mapped() + MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 4 << 20),
        (resource.RLIMIT_NOFILE, _FILES),
        (resource.RLIMIT_MEMLOCK, 0),
    ):
        hard = resource.getrlimit(what)[1]
        if hard != resource.RLIM_INFINITY:
            most = min(most, hard)  # nobody but root may have more
        resource.setrlimit(what, (most, most))


def _count_mapped() -> int:
    """Return how many bytes of addresses this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * mmap.PAGESIZE


def _memory_file(data: bytes) -> int:
    fd = os.memfd_create("engine", os.MFD_CLOEXEC)
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]
    os.fchmod(fd, 0o555)
    return fd


def _confine() -> int:
    """Confine this process as far as loading a library allows.  Return the descriptor of an empty
    folder that is to be its root then, or 0, where Landlock does the same.
    """
    version = _landlock()
    empty = 0
    if not version:
        folder = tempfile.mkdtemp()
        empty = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        os.rmdir(folder)
    if os.geteuid() == 0:
        os.setgroups([])
        if version:
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
    _own_namespaces(needed=not version)
    if version:
        syscalls.drop_capabilities()
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    filters = _filters(bool(version))
    if version:
        rules = landlock.Ruleset(version)
        for path in _LIBRARIES + _PROC:
            rules.allow(path, False)
        rules.restrict()
        seccomp.install(filters.common)
    seccomp.install(filters.own(False, version >= landlock.SCOPES_ABI, True))
    return empty


def _landlock() -> int:
    try:
        version = landlock.abi()
    except OSError:
        return 0
    return version if version >= landlock.LEAST_ABI else 0


def _filters(with_landlock: bool):
    return seccomp.Filters(os.uname().machine, with_landlock)


def _own_namespaces(needed: bool):
    """Take namespaces of its own for users, network and IPC, where the kernel gives them."""
    kinds = namespaces.NEWUSER | namespaces.NEWNET | namespaces.NEWIPC
    try:
        syscalls.call("unshare", kinds)
    except OSError as e:
        if needed and os.geteuid() != 0:
            raise OSError(
                e.errno,
                "this machine cannot confine a process: no Landlock, and no namespaces for users",
            ) from None


def _leave_files(empty: int):
    """Make the *empty* folder the root of this process, and give up what allowed that."""
    os.fchdir(empty)
    os.chroot(".")
    os.close(empty)
    syscalls.drop_capabilities()
    seccomp.install(_filters(False).common)


def _load(library: int):
    needle = ctypes.CDLL("/proc/self/fd/%d" % library)
    os.close(library)
    text, number = ctypes.c_char_p, ctypes.c_int
    functions: list = [
        (needle.needle_load, number, [ctypes.c_void_p, ctypes.c_uint64]),
        (needle.needle_init, number, [text, text, text]),
        (needle.needle_complete, number, [text, number, text, number]),
        (needle.needle_embed, number, [text, ctypes.POINTER(ctypes.c_float), number]),
        (needle.needle_reset, None, []),
        (needle.needle_last_error, text, []),
    ]
    for function, result, arguments in functions:
        function.restype, function.argtypes = result, arguments
    return needle


def _last_error(needle) -> str:
    return (needle.needle_last_error() or b"no reason given").decode("utf-8", "replace")[:200]


def _answer(line: int, needle):
    answer = ctypes.create_string_buffer(_ANSWER)
    while True:
        message = receive(lambda count: os.read(line, count))
        if message is None:
            return
        kind, data = message[:1], message[1:]
        if kind == b"I":
            done = needle.needle_init(b"", data, None)
            _send(line, b"+" if done >= 0 else b"-" + _last_error(needle).encode())
        elif kind == b"C":
            needle.needle_reset()
            done = needle.needle_complete(data, 256, answer, _ANSWER)
            said = answer.value if done >= 0 else _last_error(needle).encode()
            _send(line, (b"+" if done >= 0 else b"-") + said)
        else:
            size = needle.needle_embed(data, None, 0)
            vector = (ctypes.c_float * max(0, min(size, 16384)))()
            done = needle.needle_embed(data, vector, len(vector)) if size > 0 else -1
            good = done == size == len(vector)
            _send(line, b"+" + bytes(vector) if good else b"-" + _last_error(needle).encode())


def receive(read):
    """Return the next message that *read(count)* brings, or None at the end.  Raises
    ``ValueError`` for one that is too long.
    """
    head = _exactly(read, 4)
    if head is None:
        return None
    (size,) = struct.unpack(">I", head)
    if size > LARGEST:
        raise ValueError("a message of %d bytes" % size)
    return _exactly(read, size)


def _exactly(read, count: int):
    data = b""
    while len(data) < count:
        more = read(count - len(data))
        if not more:
            return None
        data += more
    return data


def frame(data: bytes) -> bytes:
    """Return *data* as a message."""
    return struct.pack(">I", len(data)) + data


def _send(line: int, data: bytes):
    rest = memoryview(frame(data))
    while rest:
        rest = rest[os.write(line, rest) :]


def _fail(line: int, said: str):
    try:
        _send(line, b"-" + said[:500].encode("utf-8", "replace"))
    except OSError:
        pass
    os._exit(1)
