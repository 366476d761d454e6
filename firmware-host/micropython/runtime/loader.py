"""Open the image on this board, and the maker's tools.py beside it: once, before other code needs
the memory.

Compiling tools.py takes more memory than running it, so it is compiled while the heap is empty, and
function by function."""

import gc

from clawlite.core.base.errors import ImageMismatch
from clawlite.core.image.image import GATEWAY_IS_SECURE, NETWORK, Image
from parts import compare

_EIO = 5  # the flash fails
_BEGINS = ("def ", "class ", "@")
# characters that are compiled at once: each time leaves some 64 bytes for names (64-bit words)
_LEAST = 512
# one string: the short names in a tuple would be interned, and stay in memory for ever
ABILITIES = (
    " audit buses cron gateway guard http https lan log mediated mediated-line "
    "memory pins reflex relayed replay rules stop-of-swarm swarm tools tools.py "
)


def load(read, size: int, folder: str, seal: bool, key) -> tuple:
    """Return (image, {function name: function}).

    read    function(offset, length) -> bytes of the image, of *size* bytes; it is used later, too,
            so it must not belong to this module
    folder  where tools.py lies
    seal    also check the digest, and with *key*, bytes or None, the signature
    Raises ``OSError`` when something cannot be read, ``ImageError``, ``ImageMismatch``.
    """
    image = Image(read, size)
    if seal:
        from clawlite.core.image.image_signature import check

        check(read, size, image.seal_at, key)
    had = [name for name in image.requires if " %s " % name in ABILITIES]
    image.require(had, "this board")
    compare(image, folder)
    _check_network(image)
    functions = {}
    for name, digest in image.companions:
        if name == "tools.py":
            functions = _functions(folder + "/" + name, digest)
    image.compiler = image.sources = image.companions = None  # not needed any more
    gc.collect()
    return image, functions


def _check_network(image):
    """Raise ``ImageMismatch`` when this port cannot make the secure connections that the image
    needs; it never makes one with less security.
    """
    where, authorities = image.section(NETWORK) or (None, [])
    if "https" not in image.requires and not (where and where[GATEWAY_IS_SECURE]):
        return
    try:
        import tls  # noqa: F401 (is it there?)
    except ImportError:
        raise ImageMismatch(
            "this board's MicroPython has no TLS",
            "ask the providers through a gateway: [gateway] in clawlite.toml",
        )
    if not authorities:
        raise ImageMismatch(
            "the image names no certificate authority",
            "name one: [tls] ca in clawlite.toml; or ask through a gateway",
        )


def _functions(path: str, digest: bytes) -> dict:
    _check(path, digest)
    space = {"__name__": "tools"}
    try:
        # not imported: a folder "tools" beside it would win, and it must replace no module of ours
        with open(path) as file:
            for part in _parts(file):
                exec(part, space)
    except Exception as e:
        raise ImageMismatch(
            "tools.py cannot be loaded: %s: %s" % (type(e).__name__, e), "mend it and flash again"
        )
    return space


def _parts(file):
    """Yield the compiled statements of *file*, some at a time: while a function is compiled, it
    takes twenty times the memory of its text.

    A part has ``_LEAST`` characters or more, and ends before a line that may begin the next part.
    It must compile: an open string or bracket is no valid Python until it is closed.
    """
    text = line = file.readline()
    before = count = 0  # lines: an error in a part says the line of the file
    while line:
        line = file.readline()
        count += 1
        if not line or len(text) >= _LEAST and line.startswith(_BEGINS):
            try:
                yield compile("\n" * before + text, "tools.py", "exec")
                text = ""
                before = count
            except SyntaxError:
                if not line:
                    raise
            gc.collect()
        text += line


def _check(path: str, digest: bytes):
    """Raise ``ImageMismatch`` unless the file at *path* has this SHA-256."""
    import hashlib

    sha = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            data = file.read(512)
            while data:
                sha.update(data)
                data = file.read(512)
    except OSError as e:
        if e.args[0] == _EIO:
            raise ImageMismatch("%s cannot be read: %s" % (path, e), "look at the flash: it fails")
        raise ImageMismatch("%s is missing" % path, "the image needs its tools.py beside it")
    if sha.digest() != digest:
        raise ImageMismatch(
            "%s is not the file that the image was built with" % path, "flash both again"
        )
