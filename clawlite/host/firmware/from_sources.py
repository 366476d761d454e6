"""What the linker derives from the sources, so that nobody has to maintain lists of modules.

    reached    the modules that a board can come to load
    entrances  the modules from which others import what a third one defines
    joined     the modules that become one file with those that import them
    iterated   the generators that loops iterate (docs/adr/0080)

The first three follow from the import statements.  They are found by searching the text, because
parsing all sources takes a second, and every build needs them.
"""

import ast
import re
from typing import NamedTuple

from clawlite.host.firmware.link import plain
from clawlite.host.firmware.trees import children, walk

# an import statement, and a call that loads a module by its name
_IMPORT = re.compile(
    r"^([ \t]*)(?:from[ \t]+([\w.]+)[ \t]+)?import[ \t]+(\([^)]*\)|[^\n(]*)", re.MULTILINE
)
_BY_NAME = re.compile(r"""\b(?:__import__|stage)\(["'](\w+)["']\)""")
_REMARK = re.compile(r"#[^\n]*")
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
# builtins and methods that iterate their arguments, as a loop does
_TAKERS = tuple(
    "all any dict enumerate extend filter join list map max min next reversed set sorted sum tuple "
    "zip".split()
)


class Import(NamedTuple):
    """One import of a module by another.

    is_first  bool, it runs when the importing module is loaded, not later in a function
    name      the name that is imported from *module*, or "" for the module itself
    alias     the name after ``as``, or ""
    """

    is_first: bool
    module: str
    name: str = ""
    alias: str = ""


def imports(text: str, modules) -> list[Import]:
    """Return what *text*, the source of a module, imports of *modules*."""
    found = []
    for indent, origin, listed in _IMPORT.findall(text):
        for one in _REMARK.sub("", listed).strip("()").split(","):
            name, *alias = one.replace(" as ", " ").split() or [""]
            whole = plain(f"{origin}.{name}" if origin else name)
            if name and whole in modules:
                found.append(Import(not indent, whole))
            elif name and plain(origin) in modules:
                found.append(Import(not indent, plain(origin), name, *alias))
    return found + [Import(False, name) for name in _BY_NAME.findall(text) if name in modules]


def find_loaded(texts: dict[str, str], starts) -> list[str]:
    """Return those of *texts*, {module: its source}, that are loaded when the modules *starts* are,
    then or later, in the order of *texts*.
    """
    found, todo = set(), list(starts)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [one.module for one in imports(texts[name], texts)]
    return [name for name in texts if name in found]


def entrances(texts: dict[str, str]) -> list[str]:
    """Return the modules that re-export: another one imports from them what they have imported."""
    of = {module: imports(text, texts) for module, text in texts.items()}
    asked = {(one.module, one.name) for found in of.values() for one in found if one.name}
    return [
        module
        for module, found in of.items()
        if any(one.is_first and (module, one.alias or one.name) in asked for one in found)
    ]


def complete(texts: dict[str, str], units: dict[str, list], first: tuple) -> dict[str, list]:
    """Return *units*, {unit: [module, ...]}, with more modules: those that a unit loads and that no
    module outside of it imports.  Each module comes after those that it imports.

    texts  {module: its source}
    first  units that every board loads: they get what they load, whoever else imports it
    """
    found = {unit: [*modules] for unit, modules in units.items()}
    unit_of = {module: unit for unit, modules in units.items() for module in modules}
    users = _users(texts)
    while True:
        more = {}
        for module, by in users.items():
            loaders = [unit_of.get(user) for is_first, user in by if is_first]
            wanted = [unit for unit in first if unit in loaders]
            everyone = {unit_of.get(user) for _, user in by}
            if loaders and len(everyone) == 1:
                wanted += everyone
            if module not in unit_of and wanted and wanted[0]:
                more[module] = wanted[0]
        if not more:
            return {unit: _in_order(modules, users) for unit, modules in found.items()}
        for module, unit in more.items():
            found[unit].append(module)
        unit_of.update(more)


def _in_order(modules: list, users: dict) -> list:
    """Return *modules*, each after those that it imports at its top."""
    needs = {
        module: [other for other in modules if (True, module) in users[other]] for module in modules
    }
    found = []

    def visit(module, *above):
        for other in needs[module]:
            if other not in (module, *above):
                visit(other, module, *above)
        if module not in found:
            found.append(module)

    for module in modules:
        visit(module)
    return found


def _users(texts: dict[str, str]) -> dict[str, set]:
    """Return {module: {(whether the import is at the top, module that imports it)}}.  An import
    from an entrance counts for the module that defines the name; entrances are left out.
    """
    doors = {
        door: {one.alias or one.name: one.module for one in imports(texts[door], texts)}
        for door in entrances(texts)
    }
    users = {module: set() for module in texts if module not in doors}
    for user in users:
        for one in imports(texts[user], texts):
            module = doors.get(one.module, {}).get(one.name, one.module)
            if module in users:
                users[module].add((one.is_first, user))
    return users


def split_generators(trees: dict) -> tuple[set, set]:
    """Return two sets of (module, name) of the generators in *trees* that use ``yield from``: those
    that loops iterate, directly or by way of others, and the rest, which ``Agent.drive`` resumes.
    """
    all_of = _delegating(trees)
    names = set().union(*map(_find_iterated, trees.values()))
    while True:
        found = {key for key in all_of if key[1] in names}
        more = set().union(names, *(all_of[key] for key in found))
        if more == names:
            return found, set(all_of) - found
        names = more


def _own(function):
    """Yield the nodes of *function*, without those of functions in it."""
    todo = children(function)
    while todo:
        node = todo.pop()
        if not isinstance(node, _FUNCTIONS):
            yield node
            todo += children(node)


def _callee(node) -> str:
    """Return the name of the function that *node* calls, without the object that it belongs to,
    or "".
    """
    return (
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        if isinstance(node, ast.Call)
        else ""
    )


def _find_iterated(tree) -> set:
    """Return the names of the functions whose results loops, or _TAKERS, iterate."""
    found = set()
    for function in walk(tree):
        if not isinstance(function, (*_FUNCTIONS, ast.Module)):
            continue
        held, through = {}, []
        for node in _own(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                held.setdefault(node.targets[0].id, set()).add(_callee(node.value))
            elif isinstance(node, (ast.For, ast.comprehension)):
                through.append(node.iter)
            elif isinstance(node, ast.Starred):
                through.append(node.value)
            elif _callee(node) in _TAKERS:
                through += node.args
        for node in through:
            found |= held.get(node.id, set()) if isinstance(node, ast.Name) else {_callee(node)}
    return found


def _delegating(trees: dict) -> dict:
    """Return {(module, name) of a generator: the names of the functions that it hands over to with
    ``yield from``}, of those that do so.
    """
    found = {}
    for module, tree in trees.items():
        for function in walk(tree):
            if isinstance(function, ast.FunctionDef):
                to = {
                    _callee(node.value)
                    for node in _own(function)
                    if isinstance(node, ast.YieldFrom)
                }
                if to:
                    found[module, function.name] = to
    return found
