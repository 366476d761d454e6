"""Load the maker's ``tools.py`` beside an image, and the modules that it imports from its folder.

The image holds the SHA-256 of each file that it was built with; another file is refused, so that
what runs is what was checked."""

import os

from clawlite.core.base.dialect import sha256
from clawlite.core.base.errors import ImageMismatch
from clawlite.core.image.image import MAKER
from clawlite.linux.files import code_file
from clawlite.linux.files.regular_file import open_regular
from clawlite.linux.io import signals
from clawlite.linux.maker import maker_run

TOOLS = "tools.py"


class Code:
    """The code of a maker.

    path, source  of tools.py
    modules       {name: source} of the modules beside it; "drivers/NAME" of a driver
    """

    def __init__(self, path: str, source: bytes, modules: dict):
        self.path, self.source, self.modules = path, source, modules


def find(image, folder: str):
    """Return the ``Code`` in *folder* that *image* was built with; None when it needs none.

    Raises ``ImageMismatch`` when a file is missing or is another one.
    """
    found = {name: _read(os.path.join(folder, name), digest) for name, digest in image.companions}
    source = found.pop(TOOLS, None)
    if source is None:
        return None
    modules = {name[: -len(".py")]: text for name, text in found.items()}
    return Code(os.path.join(folder, TOOLS), source, modules)


def _read(path: str, digest: bytes) -> bytes:
    try:
        with open(path, "rb", opener=open_regular) as file:
            # the build leaves a byte order mark out, too
            source = file.read().removeprefix(b"\xef\xbb\xbf")
    except OSError as e:
        raise ImageMismatch(
            "%s: %s" % (path, e.strerror),
            "the image needs its %s beside it" % os.path.basename(path),
        ) from None
    if sha256(source).digest() != digest:
        raise ImageMismatch(
            "%s is not the file that the image was built with" % path,
            "build again, or bring back the old file",
        )
    return source


def functions(code: Code, show) -> dict:
    """Run *code*; return {function name: function}.

    show  function(text) that takes what the code prints
    Raises ``ImageMismatch`` when it fails; KeyboardInterrupt when a signal ends it (signals.catch).
    """
    folder = os.path.dirname(code.path)
    try:
        with signals.interruptible():
            modules = {
                name: compile(source, os.path.join(folder, name + ".py"), "exec")
                for name, source in code.modules.items()
            }
            main = code_file.load_code(code.source, code.path, sha256(code.source).digest())
            space = maker_run.run(main, code.path, modules, show)
    except BaseException as e:  # a file may raise anything at its top, also SystemExit
        if signals.interrupts() or signals.end_signal():
            raise KeyboardInterrupt from None
        said = "%s: %s" % (type(e).__name__, e) if str(e) else type(e).__name__
        raise ImageMismatch(
            "%s cannot be loaded: %s%s" % (code.path, said, maker_run.place_of(e, folder)),
            maker_run.board_hint(e) or "mend it and build again",
        ) from None
    return maker_run.adapt(space)


def find_provided(space: dict, image) -> dict:
    """Return {name of a handler: function} of the tools that the providers in *space* have in
    *image* (protocols/mcp/tool_provider.py).
    """
    if "tool-providers" not in image.requires:
        return {}
    from clawlite.protocols.mcp.tool_provider import function_of, is_provided

    handlers = [image.tool(name).handler for name in image.names]
    names = [name for kind, name in handlers if kind == MAKER and is_provided(name)]
    return {name: function_of(space, name) for name in names}
