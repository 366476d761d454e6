"""Load the maker's ``tools.py`` beside an image: the functions behind its tools.

The image holds the SHA-256 of the file it was built with; another file is refused, so that what
runs is what was checked."""

import os

from clawlite.core.base.dialect import sha256
from clawlite.core.base.errors import ImageMismatch
from clawlite.core.image.image import MAKER
from clawlite.linux.files import code_file
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io import signals


def find(image, folder: str):
    """Return (path, source) of the ``tools.py`` in *folder* that *image* was built with; None when
    it needs none.

    Raises ``ImageMismatch`` when the file is missing or is another one.
    """
    for name, digest in image.companions:
        if name == "tools.py":
            path = os.path.join(folder, name)
            return path, _read(path, digest)
    return None


def _read(path: str, digest: bytes) -> bytes:
    try:
        with open(path, "rb", opener=open_regular) as file:
            source = file.read()
        if source.startswith(b"\xef\xbb\xbf"):  # the build leaves a byte order mark out, too
            source = source[3:]
    except OSError as e:
        raise ImageMismatch(
            "%s: %s" % (path, e.strerror), "the image needs its tools.py beside it"
        ) from None
    if sha256(source).digest() != digest:
        raise ImageMismatch(
            "%s is not the file that the image was built with" % path,
            "build again, or bring back the old file",
        )
    return source


def functions(path: str, source: bytes) -> dict:
    """Run *source*; return {function name: function}.

    Raises ``ImageMismatch`` when it fails; KeyboardInterrupt when a signal ends it (signals.catch).
    """
    space = {"__name__": "tools", "__file__": path}
    try:
        with signals.interruptible():
            exec(code_file.compiled(source, path, sha256(source).digest()), space)
    except BaseException as e:  # a file may raise anything at its top, also SystemExit
        if signals.interrupts() or signals.terminated():
            raise KeyboardInterrupt from None
        said = "%s: %s" % (type(e).__name__, e) if str(e) else type(e).__name__
        raise ImageMismatch(
            "%s cannot be loaded: %s" % (path, said), "mend it and build again"
        ) from None
    return space


def provided(space: dict, image) -> dict:
    """Return {name of a handler: function} of the tools that the providers in *space* have in
    *image* (core/mcp/tool_provider.py).
    """
    if "tool-providers" not in image.requires:
        return {}
    from clawlite.core.mcp.tool_provider import function_of, is_provided

    handlers = [image.tool(name).handler for name in image.names]
    names = [name for kind, name in handlers if kind == MAKER and is_provided(name)]
    return {name: function_of(space, name) for name in names}
