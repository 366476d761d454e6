"""What tools.py imports: modules beside it and drivers that the project has added, which travel
with the image; those of Python, of the firmware of boards, and of packages that the device has
(``packages`` in clawlite.toml).

1. Read with ``ast``, never run.
2. What nobody has is a problem where it stands: on a device it would be an error at each start.
3. An import that expects to fail (in a ``try`` that catches ``ImportError``) is left alone.
4. On Linux a module of Python's own library comes before a driver of its name: such drivers bring
   boards what Python has (``clawlite add logging``).
"""

import ast
import dataclasses
import functools
import sys

from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import Problems, did_you_mean, enquote
from clawlite.host.documents import lock
from clawlite.host.documents.sources import Refused, Sources
from clawlite.host.drivers import kernel_drivers
from clawlite.host.drivers.pinned_drivers import Pinned
from clawlite.host.firmware import foreign_names
from clawlite.host.tools.signature import FILE, check_boards, parse

_CATCH = ("ImportError", "ModuleNotFoundError", "Exception")
# they drive pins by themselves, so that nothing knows a safe state
_PIN_LIBRARIES = ("gpiozero", "RPi", "pigpio", "lgpio", "gpiod", "digitalio", "board", "wiringpi")
_PIN_CLASSES = ("Pin", "PWM", "ADC", "Signal", "DAC")
# what drivers import on a board, and the runtime of Linux has for them (linux/maker)
SHIMS = ("micropython", "utime", "ustruct", "ubinascii", "uos", "ujson", "uio", "ucollections")
_TYPING = ("typing", "typing_extensions", "__future__")


@dataclasses.dataclass
class Import:
    """An import of the module *name* (its first part) in *file*, on *line*."""

    name: str
    file: str
    line: int


@dataclasses.dataclass
class Imports:
    """What tools.py imports, itself and by the modules beside it.

    modules   names of the files beside tools.py, or in the folder of drivers, that travel with it,
              sorted
    found     [``Import``], none that expects to fail
    pins      [(file, line, what)] of pins that the code opens by itself
    packages  names of what the device has installed, by its owner's word
    """

    modules: list
    found: list
    pins: list
    packages: list


def read_imports(
    sources: Sources, packages: list, drivers: list[Pinned], problems: Problems
) -> Imports:
    """Return what the tools.py of *sources* imports; mistakes go to *problems*.

    packages  as in ``Imports``
    """
    made = Imports([], [], [], packages)
    added: dict = {}
    for pinned in drivers:
        added.setdefault(pinned.module, []).append(pinned.file)
    todo = [FILE]
    while todo:
        name = todo.pop()
        shown = sources.find_path(name)
        try:
            tree = parse(sources.read(name), shown, problems)
        except Refused as e:
            problems.add(LinePlace(shown), (), e.message, hint=e.hint)
            continue
        if tree is None:
            continue
        if name != FILE:
            made.modules.append(name)
        made.pins += [(shown, line, what) for line, what in _own_pins(tree)]
        for one in _imports(tree, shown):
            made.found.append(one)
            files = added.get(one.name, [])
            if sources.exists(f"{one.name}.py"):
                _shadow(one, problems)
                if files:
                    _refuse_both(f"{one.name}.py", files[0], problems)
                files = [f"{one.name}.py"]
            if files:
                todo += [file for file in files if file not in (FILE, *made.modules, *todo)]
            elif not _is_known(one.name) and one.name not in packages:
                _refuse(one, sources, problems)
    made.modules.sort()
    return made


def add_board_problems(imports: Imports, sources: dict, board, taken, problems: Problems) -> None:
    """Add what *board*, a profile, lacks of *imports*.

    sources  {name: bytes} of the manifest's files
    taken    names of the modules of a slot
    """
    able = (
        foreign_names.importable(board.api)
        if board.runtime == "micropython"
        else frozenset(("clawlite", *sys.stdlib_module_names, *imports.packages, *SHIMS))
    )
    beside = {module_of(file) for file in imports.modules}
    for one in imports.found:
        if one.name not in beside and one.name not in able:
            problems.add(
                LinePlace(one.file, one.line),
                (),
                f"{board.name} has no module {enquote(one.name)}",
                hint=_elsewhere(one, board),
            )
    if board.runtime != "micropython":
        return
    for file in imports.modules:
        _check_slot(file, imports.modules, board, taken, problems)
        check_boards(ast.parse(sources[file]), file, problems)


def _check_slot(file: str, modules: list, board, taken, problems: Problems) -> None:
    """Add a problem when *file* cannot have its name in the slot of *board*, where all modules lie
    in one folder, those of packages, too (``foreign_names.slot_name``).
    """
    name = foreign_names.slot_name(file)
    same = next((one for one in modules if one < file and foreign_names.slot_name(one) == name), "")
    is_in_package = name != module_of(file)
    owner = (
        "clawlite has a module of this name on boards"
        if name in taken
        else f"the module {name} of a package lies beside {board.name}'s own, which it would hide"
        if is_in_package and name in foreign_names.importable(board.api)
        else f"{same} has the same name in the slot of a board, where all lie in one folder"
        if same
        else ""
    )
    if owner:
        hint = "this package runs on Linux alone" if is_in_package else "rename it"
        problems.add(LinePlace(file), (), owner, hint=hint)


def kernel_notes(imports: Imports, board) -> list[tuple]:
    """Return [((file, line), message)] of imports that are named after sensors which the kernel
    of *board*, a profile of a Raspberry Pi, drives itself.
    """
    found = {}
    for one in imports.found:
        kernel = kernel_drivers.find(one.name)
        if kernel and kernel.chip not in found:
            message = (
                f"the kernel of {board.name} has a driver for {kernel.chip}, which measures by "
                f"itself: {kernel.overlay_line()}; {kernel.where()}"
            )
            found[kernel.chip] = (one.file, one.line), message
    return list(found.values())


def module_of(file: str) -> str:
    """Return the module or the package that is imported for *file*, which is beside tools.py or in
    the folder of drivers.
    """
    return file.removeprefix(f"{lock.DRIVERS}/").partition("/")[0].removesuffix(".py")


def _elsewhere(one: Import, board) -> str:
    """Return what helps where *board* lacks the module of *one*."""
    if board.runtime != "micropython":
        in_drivers = one.file.rpartition(f"{lock.DRIVERS}/")[2]
        whose = in_drivers if lock.DRIVERS in one.file else one.file.rpartition("/")[2]
        kernel = kernel_drivers.find(module_of(whose)) or kernel_drivers.find(one.name)
        if kernel:
            return f"its kernel has a driver: {kernel.overlay_line()}; {kernel.where()}"
        return (
            "it is of MicroPython boards: here use board (docs/tools.md), or a driver of the "
            "kernel: clawlite doctor lists those that are on"
        )
    if one.name in _TYPING:
        return "boards do not look at annotations: try: ... except ImportError: pass around it"
    from clawlite.host.drivers import names  # brings the linker of boards

    having = [name for name, api in _apis() if one.name in foreign_names.importable(api)]
    where = f"{', '.join(having)} have it" if having else ""
    if names.is_builtin(one.name):
        return where or "write it without that module"
    add = f"clawlite add {one.name}"
    return f"{where}; or: {add}" if where else f"{add}, or put one of that name beside tools.py"


@functools.cache
def _apis() -> list:
    """Return [(board, its ``api``)] of the profiles in this package with MicroPython."""
    from clawlite.host.boards import boards

    return [(one.name, one.api) for one in boards.load_all() if one.runtime == "micropython"]


def _is_known(name: str) -> bool:
    return name in ("clawlite", *sys.stdlib_module_names) or name in foreign_names.importable()


def _shadow(one: Import, problems: Problems) -> None:
    if one.name in sys.stdlib_module_names:
        problems.add(
            LinePlace(f"{one.name}.py"),
            (),
            f"Python's own library has a module {enquote(one.name)}, which others import, too",
            hint="rename this one",
        )


def _refuse_both(beside: str, added: str, problems: Problems) -> None:
    problems.add(
        LinePlace(beside),
        (),
        f"the project has a driver of the same name, {added}",
        hint=f"rename this one, or: clawlite remove {module_of(added)}",
    )


def _refuse(one: Import, sources: Sources, problems: Problems) -> None:
    known = [*sys.stdlib_module_names, *foreign_names.importable()]
    problems.add(
        LinePlace(one.file, one.line),
        (),
        f"there is no module {enquote(one.name)}: not in Python's library, not in the firmware of "
        f"a board, no driver of this project, and no file {one.name}.py beside tools.py",
        hint=did_you_mean(one.name, known)
        or f"a driver: clawlite add {one.name}; or put {one.name}.py there; when the device has it "
        f'installed: packages = ["{one.name}"] above the first section of clawlite.toml',
    )


def _imports(tree: ast.Module, file: str) -> list[Import]:
    """Return the imports of *tree* in the order of their lines, but for those that may fail."""
    expected = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.Try) and any(_catches(one) for one in node.handlers)
        for statement in node.body
        for part in ast.walk(statement)
    }
    found = []
    for node in ast.walk(tree):
        names: list = []
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""] if not node.level else []
        if names and id(node) not in expected:
            line = getattr(node, "lineno", 0)
            found += [Import(name.partition(".")[0], file, line) for name in names]
    return sorted(found, key=lambda one: one.line)


def _catches(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or getattr(kind, "id", "") in _CATCH for kind in kinds)


def _own_pins(tree: ast.Module) -> list[tuple]:
    """Return [(line, what)] of the pins that *tree* opens by itself."""
    found: list[tuple] = []
    classes: set = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in _PIN_LIBRARIES:
            found.append((node.lineno, node.module))
        elif isinstance(node, ast.Import):
            names = [one.name for one in node.names if one.name.split(".")[0] in _PIN_LIBRARIES]
            found += [(node.lineno, name) for name in names]
        elif isinstance(node, ast.ImportFrom) and node.module in ("machine", "umachine"):
            classes |= {one.asname or one.name for one in node.names if one.name in _PIN_CLASSES}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in classes:
            found.append((node.lineno, f"machine.{called.id}"))
        elif (
            isinstance(called, ast.Attribute)
            and called.attr in _PIN_CLASSES
            and getattr(called.value, "id", "") in ("machine", "umachine")
        ):
            found.append((node.lineno, f"machine.{called.attr}"))
    return sorted(found)
