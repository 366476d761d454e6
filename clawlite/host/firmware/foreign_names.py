"""What MicroPython's ports have of their own, and whether a board's code asks them for anything
else.

1. ``apis.json`` is made of the stub packages of the ports (``make apis``); a board profile names
   its package in ``api``.
2. The attributes of a port's classes keep their names (rename.py).
3. What the code of a slot asks of a port's module, class or object is checked for the board that it
   is built for.  Whose an object is follows from where it is made: ``self.x = machine.WDT(...)``
   makes every ``.x`` a ``machine.WDT``, unless something else is assigned to an ``x``, too.  An
   attribute of an unknown object must be one of ours, of Python's types or of some class of the
   port.
4. Code may ask for what a board lacks where it expects that: after ``hasattr`` or ``getattr`` with
   that name, or within a ``try`` that catches ``AttributeError``, ``ImportError`` or ``Exception``;
   of an attribute that is always None on boards (``agent.channels``); and of an object whose class
   the board lacks, because it cannot be made there.
"""

import ast
import functools
import io
import json
import pathlib

from clawlite.core.base.errors import ClawError
from clawlite.host.firmware.trees import Visitor, children, walk

_TYPES = (
    str,
    bytes,
    bytearray,
    memoryview,
    list,
    dict,
    tuple,
    set,
    int,
    float,
    type,
    type(i for i in ()),
    OSError,
    StopIteration,
    io.FileIO,
    io.TextIOWrapper,
)
# the last: of MicroPython's generators
OF_PYTHON = frozenset(name for kind in _TYPES for name in dir(kind)) | {"pend_throw"}
BY_STRING = ("getattr", "hasattr", "setattr", "delattr")
_NOTHING = ("nothing", "")
_CATCH = ("AttributeError", "ImportError", "Exception")


@functools.cache
def _read() -> dict:
    with open(pathlib.Path(__file__).parent / "apis.json", encoding="utf-8") as file:
        return json.load(file)


def stub_packages() -> list[str]:
    """Return the stub packages, by the names that board profiles give them."""
    return [name for name in _read()["packages"] if name != "stdlib"]


def slot_name(file: str) -> str:
    """Return the module that *file*, a companion of an image, is in a slot, which has no folders:
    of "drivers/umqtt/simple.py" it is "simple"; a package has the name of its folder.
    """
    parts = file.removesuffix(".py").split("/")
    return parts[-2] if parts[-1] == "__init__" and len(parts) > 1 else parts[-1]


def importable(api=None) -> frozenset:
    """Return the names of the modules that the firmware of *api*, as in a profile, can import;
    None: that any can.
    """
    able = _read()["importable"]
    return frozenset(" ".join(able.values() if api is None else [able[api]]).split())


def names_of(api=None) -> dict[str, set]:
    """Return {"module" or "module.Class": its names} of a board; *api*: as in its profile, or None:
    what any board has.

    Raises ``ClawError`` for an *api* that apis.json does not have.
    """
    if api is not None and api not in stub_packages():
        raise ClawError(
            f"the board profile's api: expected one of {', '.join(stub_packages())}, got {api}",
            "name the stub package in the profile, then: make stubs apis",
        )
    found = {}
    for module, groups in _read()["modules"].items():
        for packages, classes in groups:
            if api is None or api in packages:
                for name, names in classes.items():
                    found.setdefault(f"{module}.{name}" if name else module, set()).update(
                        names.split()
                    )
    return found


def attributes(api=None) -> set:
    """Return the attributes of all objects that are not ours; *api* as in ``names_of``."""
    return OF_PYTHON.union(*[names for owner, names in names_of(api).items() if "." in owner])


@functools.cache
def _classes() -> frozenset:
    return frozenset(owner for owner in names_of() if "." in owner)


def check(asked: dict, modules, api=None, what: str = "this board") -> None:
    """Raise ``ClawError`` for the first name that one of *modules* uses and the board lacks.

    asked  what ``uses`` returns;  api  as in ``names_of``;  what  the board, for the error
    """
    there, anybody = names_of(api), attributes(api)
    for module in modules:
        for owner, name, place in asked.get(module, ()):
            if "." in owner and owner not in there:
                continue
            if name not in there.get(owner, ()) if owner else name not in anybody:
                missing = (
                    f"{owner} has no {name}"
                    if owner in there
                    else f"there is no module {owner}"
                    if owner
                    else f"no object has {name}"
                )
                raise ClawError(
                    f"{module}: {place} does not fit {what}: {missing} in MicroPython "
                    f"there ({api or 'any port'})",
                    "mend the module, or ask with hasattr first; if the port has it: "
                    "make stubs apis",
                )


def uses(trees: dict) -> dict[str, list]:
    """Return {module: [(module or class of a port, "" for an unknown one; name that is asked of it;
    the expression), ...]}.

    trees  {module: ``ast.Module``}, before anything in them is renamed: all that there is of ours
    """
    types, ours = _attribute_types(trees), _ours(trees)
    found = {}
    for module, tree in trees.items():
        finder = _Finder(tree, trees, types, ours)
        finder.visit(tree)
        found[module] = [
            (owner, name, ast.unparse(finder.asked[owner, name]))
            for owner, name in sorted(finder.asked)
        ]
    return found


def _ours(trees: dict) -> set:
    """Return all names that a class or a module of ours defines, and those that our code sets on
    an object.
    """
    names = set()
    for tree in trees.values():
        for node in walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                names.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                names.add(node.attr)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "namedtuple"
            ):
                names.update(_fields(node))
    return names


def _fields(node: ast.Call) -> list:
    fields = ast.literal_eval(node.args[1])
    return fields.split() if isinstance(fields, str) else list(fields)


def _attribute_types(trees: dict) -> dict:
    """Return {attribute: its meaning} of those that are never assigned anything else but None,
    wherever that is.
    """
    types = {}
    # what an attribute is may follow from another, which is known a round later
    for _ in range(2):
        found = {}
        for tree in trees.values():
            finder = _Finder(tree, trees, types, set())
            finder.visit(tree)
            for name, kinds in finder.assigned.items():
                found.setdefault(name, set()).update(kinds)
        types = {name: _only(kinds) for name, kinds in found.items() if _only(kinds)}
    return types


def _only(kinds: set):
    """Return the one meaning that a name has beside None, or None when there are several or one
    is unknown.
    """
    kinds = kinds - {_NOTHING} or kinds
    return next(iter(kinds)) if len(kinds) == 1 else None


class _Finder(Visitor):
    """Finds what one module asks of a port.

    A meaning is ("module", M), ("class", "M.C"), ("object", "M.C"), ("nothing", "") for None, or
    None for anything else.
    asked     {(owner, name): a node that asks};  assigned  {attribute: {meaning}}
    """

    def __init__(self, tree, trees: dict, types: dict, ours: set):
        self.asked, self.assigned = {}, {}
        self._trees, self._types, self._ours = trees, types, ours
        self._classes = _classes()
        self._optional = {
            argument.value
            for node in walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in BY_STRING
            for argument in node.args
            if isinstance(argument, ast.Constant)
        }
        self._expects = 0  # how many such ``try`` are around
        self._scopes = [self._bound(tree)]

    def _bound(self, scope) -> dict:
        """Return {name that *scope*, a function or the module, binds: its meaning}."""
        self._scopes = getattr(self, "_scopes", [])
        found, todo = {}, list(scope.body if isinstance(scope.body, list) else [scope.body])
        if not isinstance(scope, ast.Module):
            found = {
                argument.arg: {None}
                for argument in walk(scope.args)
                if isinstance(argument, ast.arg)
            }
        self._scopes.append(known := dict.fromkeys(found))
        while todo:
            node = todo.pop(0)
            bound = []
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found[node.name] = {None}
                known[node.name] = None
                continue
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                bound = [
                    (alias.asname or alias.name, self._resolve_import(node, alias))
                    for alias in node.names
                ]
            elif isinstance(node, ast.Assign):
                bound = [
                    (target.id, self._meaning(node.value))
                    for target in node.targets
                    if isinstance(target, ast.Name)
                ]
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                bound = [(node.id, None)]
            for name, meaning in bound:
                found.setdefault(name, set()).add(meaning)
                known[name] = _only(found[name])
            todo += [
                part
                for part in children(node)
                if not (
                    isinstance(node, ast.Assign)
                    and part in node.targets
                    and isinstance(part, ast.Name)
                )
            ]
        return self._scopes.pop()

    def _resolve_import(self, node, alias):
        if isinstance(node, ast.Import):
            return None if alias.name in self._trees else ("module", alias.name)
        name = f"{node.module}.{alias.name}"
        return ("class", name) if node.module not in self._trees and name in self._classes else None

    def _meaning(self, node):
        if isinstance(node, ast.Constant) and node.value is None:
            return _NOTHING
        if isinstance(node, ast.Name):
            return next(
                (scope[node.id] for scope in reversed(self._scopes) if node.id in scope), None
            )
        if isinstance(node, ast.Attribute):
            base = self._meaning(node.value)
            if base and base[0] == "module":
                name = f"{base[1]}.{node.attr}"
                return ("class", name) if name in self._classes else None
            return None if base else self._types.get(node.attr)
        if isinstance(node, ast.Call):
            base = self._meaning(node.func)
            return ("object", base[1]) if base and base[0] == "class" else None
        return None

    def _ask(self, owner: str, name: str, node):
        if not self._expects and name not in self._optional and not name.startswith("__"):
            self.asked.setdefault((owner, name), node)

    def visit_Attribute(self, node):
        base = self._meaning(node.value)
        if base and base is not _NOTHING:
            self._ask(base[1], node.attr, node)
        elif not base and node.attr not in self._ours:
            self._ask("", node.attr, node)
        self.generic_visit(node)

    def visit_Assign(self, node):
        for target in node.targets:
            for part in walk(target):
                if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store):
                    meaning = self._meaning(node.value) if part is target else None
                    self.assigned.setdefault(part.attr, set()).add(meaning)
        self.generic_visit(node)

    def visit_ClassDef(self, node):
        for part in node.body:
            for name in _names(part):
                meaning = (
                    self._meaning(part.value)
                    if isinstance(part, ast.Assign) and part.value is not None
                    else None
                )
                self.assigned.setdefault(name, set()).add(meaning)
        self.generic_visit(node)

    def visit_ImportFrom(self, node):
        for alias in node.names:
            if node.module not in self._trees:
                self._ask(node.module, alias.name, node)

    def visit_Import(self, node):
        return None  # what is missing is missed when something is asked of it

    def visit_Try(self, node):
        expects = any(name in _CATCH for handler in node.handlers for name in _errors_of(handler))
        self._expects += expects
        for part in node.body:
            self.visit(part)
        self._expects -= expects
        for part in node.handlers + node.orelse + node.finalbody:
            self.visit(part)

    def visit_FunctionDef(self, node):
        self._scopes.append(self._bound(node))
        self.generic_visit(node)
        self._scopes.pop()

    visit_Lambda = visit_FunctionDef


def _names(node) -> list:
    """Return the names that a statement in the body of a class binds."""
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    return [
        part.id
        for part in walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    ]


def _errors_of(handler: ast.ExceptHandler) -> list:
    return (
        [node.id for node in walk(handler.type) if isinstance(node, ast.Name)]
        if handler.type
        else list(_CATCH)
    )
