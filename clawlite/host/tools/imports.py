"""What tools.py imports: modules beside it, which travel with the image; those of Python, of the
firmware of boards, and of packages that the device has (``packages`` in clawlite.toml).

1. Read with ``ast``, never run.
2. What nobody has is a problem where it stands: on a device it would be an error at each start.
3. An import that expects to fail (in a ``try`` that catches ``ImportError``) is left alone.
"""

import ast
import dataclasses
import sys

from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import Problems, did_you_mean, quoted
from clawlite.host.documents.sources import Refused, Sources
from clawlite.host.firmware import foreign_names
from clawlite.host.tools.signature import FILE, check_boards, parse

_CATCH = ("ImportError", "ModuleNotFoundError", "Exception")
# they drive pins by themselves, so that nothing knows a safe state
_PIN_LIBRARIES = ("gpiozero", "RPi", "pigpio", "lgpio", "gpiod", "digitalio", "board", "wiringpi")
_PIN_CLASSES = ("Pin", "PWM", "ADC", "Signal", "DAC")
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

    modules  names of the files beside tools.py that travel with it, sorted
    found    [``Import``], none that expects to fail
    pins     [(file, line, what)] of pins that the code opens by itself
    """

    modules: list
    found: list
    pins: list


def read_imports(sources: Sources, packages: list, problems: Problems) -> Imports:
    """Return what the tools.py of *sources* imports; mistakes go to *problems*.

    packages  names of what the device has installed, by its owner's word
    """
    made = Imports([], [], [])
    todo = [FILE]
    while todo:
        name = todo.pop()
        shown = sources.shown(name)
        try:
            tree = parse(sources.read(name), shown, problems)
        except Refused as e:
            problems.add(LinePlace(shown), (), e.args[0], hint=e.args[1])
            continue
        if tree is None:
            continue
        if name != FILE:
            made.modules.append(name)
        made.pins += [(shown, line, what) for line, what in _own_pins(tree)]
        for one in _imports(tree, shown):
            made.found.append(one)
            beside = f"{one.name}.py"
            if sources.exists(beside):
                _shadow(one, problems)
                if beside not in (FILE, *made.modules, *todo):
                    todo.append(beside)
            elif not _is_known(one.name) and one.name not in packages:
                _refuse(one, sources, problems)
    made.modules.sort()
    return made


def add_board_problems(imports: Imports, sources: dict, board, taken, problems: Problems) -> None:
    """Add what the firmware of *board*, a profile with MicroPython, lacks of *imports*.

    sources  {name: bytes} of the manifest's files
    taken    names of the modules of a slot
    """
    able = foreign_names.importable(board.api)
    beside = {name.removesuffix(".py") for name in imports.modules}
    for one in imports.found:
        if one.name in beside or one.name in able:
            continue
        hint = "write it without that module, or put one of that name beside tools.py"
        if one.name in _TYPING:
            hint = "boards do not look at annotations: try: ... except ImportError: pass around it"
        problems.add(
            LinePlace(one.file, one.line),
            (),
            f"{board.name} has no module {quoted(one.name)}",
            hint=hint,
        )
    for name in imports.modules:
        if name.removesuffix(".py") in taken:
            problems.add(
                LinePlace(name),
                (),
                "clawlite has a module of this name on boards",
                hint="rename it",
            )
        check_boards(ast.parse(sources[name]), name, problems)


def _is_known(name: str) -> bool:
    return name in ("clawlite", *sys.stdlib_module_names) or name in foreign_names.importable()


def _shadow(one: Import, problems: Problems) -> None:
    if one.name in sys.stdlib_module_names:
        problems.add(
            LinePlace(f"{one.name}.py"),
            (),
            f"Python's own library has a module {quoted(one.name)}, which others import, too",
            hint="rename this one",
        )


def _refuse(one: Import, sources: Sources, problems: Problems) -> None:
    known = [*sys.stdlib_module_names, *foreign_names.importable()]
    problems.add(
        LinePlace(one.file, one.line),
        (),
        f"there is no module {quoted(one.name)}: not in Python's library, not in the firmware of a "
        f"board, and no file {one.name}.py beside tools.py",
        hint=did_you_mean(one.name, known)
        or f'put {one.name}.py there; when the device has it installed: packages = ["{one.name}"] '
        "above the first section of clawlite.toml",
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
