"""Rename the names that linked modules define: on MicroPython every name is a string that stays in
memory for ever, in pools that double.

Two names may become the same name where that makes no difference: top-level names of different
units, and attributes of unrelated classes.  All of them are taken from one sequence: names that
every firmware has already (``IN_FIRMWARE``), then ``_1``, ``_2``, ...

1. An attribute is renamed when a class of ours defines it: by a method, in its body, or by
   ``self.name = ...``.  Three kinds of names stay: those of objects of Python
   or of a port (``FOREIGN``, see foreign_names.py), those that are read from a module that is not
   ours, and those that are given to ``getattr`` and the like.
2. Attributes of one family of classes (by inheritance) get different names; those of different
   families may share one, unless other code sets the attribute from outside: then the source does
   not show to which class it belongs.  So code may not test whether an object has an attribute.
3. Top-level names are numbered in each module; imports follow.  A local name keeps its name: it
   costs nothing.
"""

import ast
import itertools

from clawlite.core.base.errors import ClawError
from clawlite.host.firmware import foreign_names
from clawlite.host.firmware.foreign_names import BY_STRING
from clawlite.host.firmware.trees import Transformer, children, walk

FOREIGN = frozenset(foreign_names.attributes())
# Of the names that an .mpy file refers to by number (py/makeqstrdata.py, static_qstr_list) those
# that are no built-in function.
IN_FIRMWARE = """append bytecode clear close copy count end endswith extend find format from_bytes get index insert isalpha isdigit
islower isspace isupper items join key keys little lower lstrip main micropython pop popitem read readinto readline remove replace
reverse rfind rindex rsplit rstrip send sep setdefault sort split start startswith step stop strip throw to_bytes update upper
values write""".split()  # noqa: E501
# More of them, for attributes alone: as a top-level name they would hide a builtin.
IN_FIRMWARE_TOO = """abs all any ArithmeticError AssertionError AttributeError BaseException bool bytearray bytes callable chr const dict dir divmod
classmethod Ellipsis EOFError eval exec Exception GeneratorExit getattr globals hasattr hash id ImportError IndentationError IndexError int isinstance issubclass
iter KeyboardInterrupt KeyError len list locals LookupError map MemoryError NameError next NoneType NotImplementedError object open ord OSError OverflowError pow print
range repr round RuntimeError set setattr sorted staticmethod StopIteration str sum super SyntaxError SystemExit tuple
type TypeError ValueError ZeroDivisionError zip""".split()  # noqa: E501


def rename(trees: dict, plain: tuple = (), open: tuple = ()) -> None:
    """Rename in *trees*, {module: ``ast.Module``}, in place.

    plain  modules whose top-level names stay: entries, and what is called with ``**``
    open   modules whose classes a maker's code sees: their public attributes stay
    Raises ``ClawError`` for a source that has names like ``_1`` of its own.
    """
    for module, tree in trees.items():
        for node in walk(tree):
            name = (
                getattr(node, "id", None)
                or getattr(node, "arg", None)
                or getattr(node, "attr", None)
                or ""
            )
            if name[:1] == "_" and name[1:].isdigit():
                raise ClawError(
                    f"{module}: {name}: a board's modules get such names; choose another"
                )
    names = {module: {} if module in plain else _number(tree) for module, tree in trees.items()}
    attributes = _attributes(trees, open)
    for module, tree in trees.items():
        _Renamer(trees, names, attributes, module).visit(tree)


def _row(avoid: set, names: list = IN_FIRMWARE):
    """Yield new names: of *names*, then numbered ones."""
    yield from (name for name in names if name not in avoid)
    yield from ("_%d" % number for number in itertools.count(1))


def _number(tree) -> dict:
    """Return {top-level name: its new name}; no local name of the module hides a new one."""
    used = set()
    for node in walk(tree):
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.arg):
            used.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)):
            used.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            used |= {alias.asname or alias.name for alias in node.names}
    return dict(zip(_find_bound(tree.body), _row(used)))


def _find_bound(body: list) -> list:
    """Return the names that statements bind, those in inner functions, classes and
    comprehensions not.
    """
    names = {}

    def look(node):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names[node.name] = True
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name, True) for alias in node.names)
        elif not isinstance(
            node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
        ):
            if (
                isinstance(node, ast.Name)
                and isinstance(node.ctx, (ast.Store, ast.Del))
                or isinstance(node, ast.ExceptHandler)
                and node.name
            ):
                names[node.id if isinstance(node, ast.Name) else node.name] = True
            for child in children(node):
                look(child)

    for node in body:
        look(node)
    return [name for name in names if not name.startswith("__")]


# -- attributes


def _attributes(trees: dict, open: tuple) -> dict:
    """Return {attribute: its new name}."""
    families = _families(trees)
    kept, asked = set(FOREIGN), set()
    for module, tree in trees.items():
        foreign = {
            alias.asname or alias.name
            for node in walk(tree)
            if isinstance(node, ast.Import)
            for alias in node.names
            if alias.name not in trees
        }
        for node in walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in foreign
            ):
                kept.add(node.attr)
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in BY_STRING
            ):
                asked |= {
                    argument.value for argument in node.args if isinstance(argument, ast.Constant)
                }
    kept |= asked
    kept |= {
        name
        for family in families
        for module, names in family
        if module in open
        for name in names
        if name[0] != "_"
    }
    uses, outside = {}, set()
    for tree in trees.values():
        for node in walk(tree):
            if isinstance(node, ast.Attribute):
                uses[node.attr] = uses.get(node.attr, 0) + 1
                if isinstance(node.ctx, ast.Store) and not _of_self(node):
                    outside.add(node.attr)
    together = [{name for _, names in family for name in names} for family in families]
    everything = set().union(*together)
    used = {
        node.attr
        for tree in trees.values()
        for node in walk(tree)
        if isinstance(node, ast.Attribute)
    } | everything
    # there an attribute hides a builtin
    used |= {name for tree in trees.values() for name in _in_class_bodies(tree)}
    beside = {
        name: set().union(*[family for family in together if name in family]) for name in everything
    }
    chosen = {}
    # who stands beside the most others chooses first: it takes the fewest names (Welsh and Powell)
    for name in sorted(
        everything - kept,
        key=lambda name: (name not in outside, -len(beside[name]), -uses.get(name, 0), name),
    ):
        if not name.startswith("__"):
            others = outside | (everything if name in outside else beside[name])
            taken = {chosen[other] for other in others if other in chosen}
            chosen[name] = next(
                new for new in _row(used | asked, IN_FIRMWARE + IN_FIRMWARE_TOO) if new not in taken
            )
    return chosen


def _in_class_bodies(tree) -> set:
    """Return the names that are read in the bodies of classes, those of their methods not among
    them.
    """
    names = set()
    for owner in walk(tree):
        for part in owner.body if isinstance(owner, ast.ClassDef) else ():
            parts = (
                part.decorator_list + part.args.defaults
                if isinstance(part, ast.FunctionDef)
                else [part]
            )
            names |= {
                node.id
                for one in parts
                for node in walk(one)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
            }
    return names


def _families(trees: dict) -> list:
    """Return lists of (module, {attribute}), one for all classes that inherit from each other."""
    family = {}  # (module, class) -> its list
    for module, tree in trees.items():
        imported = {
            alias.asname or alias.name: (node.module, alias.name)
            for node in walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        for node in walk(tree):
            if isinstance(node, ast.ClassDef):
                own = family.setdefault((module, node.name), [])
                own.append((module, _own(node)))
                for base in node.bases:
                    key = imported.get(base.id, (module, base.id))
                    theirs = family.setdefault(key, [])
                    if theirs is not own:
                        own += theirs
                        family.update(
                            (other, own) for other in list(family) if family[other] is theirs
                        )
        for node in tree.body:
            # a method that outline.py took out
            if isinstance(node, ast.FunctionDef) and getattr(node, "of", None):
                family.setdefault(node.of, []).append((node.of[0], _set_in(node)))
    return list({id(found): found for found in family.values()}.values())


def _own(node: ast.ClassDef) -> set:
    """Return the attributes that a class defines."""
    names = set(_find_bound(node.body))
    for part in node.body:
        if isinstance(part, ast.FunctionDef):
            names |= _set_in(part)
    return names


def _set_in(node: ast.FunctionDef) -> set:
    """Return the attributes of ``self`` that a method sets."""
    return {
        inner.attr
        for inner in walk(node)
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and _of_self(inner)
    }


def _of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _group_of(node) -> str:
    """Return the module that ``__import__("module")`` (outline.py) or ``stage("module")``
    (overlays.py) brings, "" for anything else.
    """
    is_one = (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("__import__", "stage")
    )
    return node.args[0].value if is_one else ""


# -- the change itself


class _Renamer(Transformer):
    """Renames in one module."""

    def __init__(self, trees: dict, names: dict, attributes: dict, module: str):
        self._names = names
        self._own = names[module]
        self._attributes = attributes
        self._modules = {}  # local name -> module of ours
        for node in walk(trees[module]):
            if isinstance(node, ast.Import):
                self._modules.update(
                    (alias.asname or alias.name, alias.name)
                    for alias in node.names
                    if alias.name in trees
                )
        self._scopes = []  # names that are local, function by function

    def _global(self, name: str) -> str:
        return name if any(name in scope for scope in self._scopes) else self._own.get(name, name)

    def visit_Name(self, node):
        node.id = self._global(node.id)
        return node

    def visit_ExceptHandler(self, node):
        node.name = node.name and self._global(node.name)
        return self.generic_visit(node)

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in self._modules:
            node.attr = self._names[self._modules[node.value.id]].get(node.attr, node.attr)
        elif _group_of(node.value):
            node.attr = self._names.get(_group_of(node.value), {}).get(node.attr, node.attr)
        else:
            node.attr = self._attributes.get(node.attr, node.attr)
        return self.generic_visit(node)

    def visit_Import(self, node):
        for alias in node.names:
            local = alias.asname or alias.name
            new = self._global(local)
            alias.asname = None if new == alias.name else new
        return node

    def visit_ImportFrom(self, node):
        for alias in node.names:
            local = self._global(alias.asname or alias.name)
            alias.name = self._names.get(node.module, {}).get(alias.name, alias.name)
            alias.asname = None if local == alias.name else local
        return node

    def visit_FunctionDef(self, node):
        node.name = self._global(node.name)
        return self._function(node, node.body)

    def visit_Lambda(self, node):
        return self._function(node, [node.body])

    def _function(self, node, body: list):
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = [self.visit(part) for part in node.decorator_list]
        parameters = (
            node.args.args
            + node.args.kwonlyargs
            + [part for part in (node.args.vararg, node.args.kwarg) if part]
        )
        self._scopes.append({parameter.arg for parameter in parameters} | set(_find_bound(body)))
        new = [self.visit(part) for part in body]
        node.body = new if isinstance(node, ast.FunctionDef) else new[0]
        self._scopes.pop()
        return node

    def _comprehension(self, node):
        self._scopes.append(
            {
                name.id
                for part in node.generators
                for name in walk(part.target)
                if isinstance(name, ast.Name)
            }
        )
        self.generic_visit(node)
        self._scopes.pop()
        return node

    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _comprehension

    def visit_ClassDef(self, node):
        """A class's own names are attributes, and hide top-level ones in its body, but not in
        its methods.
        """
        node.name = self._global(node.name)
        node.bases = [self.visit(base) for base in node.bases]
        own = set(_find_bound(node.body))
        scopes = self._scopes
        for part in node.body:
            if isinstance(part, ast.FunctionDef):
                name = self._attributes.get(part.name, part.name)
                self._scopes = scopes
                self._function(part, part.body)
                part.name = name
            else:
                self._scopes = scopes + [own]
                self.visit(part)
                for target in walk(part):
                    if isinstance(target, ast.Name) and target.id in own:
                        target.id = self._attributes.get(target.id, target.id)
        self._scopes = scopes
        return node
