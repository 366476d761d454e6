"""Take functions and classes that most runs never use out of the modules of a board: each is loaded
with its group when it is called.

A function or method that is never called still occupies memory: its code, an object of 32 bytes and
the place of its name (64-bit words).  A table (firmware.py) lists the rare ones; the sources do not
mark them.

    a function, a method that one class alone has          goes; its callers say
                                                           ``__import__("group").function(...)``
    a method whose name others have, or that is handed on  stays, and calls it: ``return
                                                           __import__("group").function(self, ...)``
    a class                                                goes like a function
    ``__init__`` of a class that is only ever called       goes; callers of the class say
                                                           ``__import__("group").Class___init__(Class(),
                                                           ...)``

1. A group is a module like any other: it imports what it needs from the units.
2. ``unload.drop`` forgets groups as it forgets the occasional modules, except groups with classes
   that an ``except`` or an ``isinstance`` names.
3. A function that must work when memory is short is never rare, because loading it takes memory.
"""

import ast
import builtins
from typing import NamedTuple

from clawlite.core.base.errors import ClawError
from clawlite.host.firmware.rename import FOREIGN
from clawlite.host.firmware.trees import Transformer, walk


class Function(NamedTuple):
    """Where a function stands, as ``link.Linker.place`` says; *owner* is its class, or None."""

    module: str
    owner: str | None
    name: str


class RareError(ClawError):
    """A function that cannot be taken out."""

    code = -32603


def split(trees: dict, groups: dict, plain: tuple = ()) -> None:
    """Take functions out of *trees*, {module: ``ast.Module``}, in place; the groups are added to
    it.

    groups  {group: [(module, class or None, function), ...]}
    plain   modules whose public top-level names must stay: others ask for them by name
    Raises ``RareError`` for a function that is not there, or of another kind.
    """
    groups = {group: [Function(*key) for key in keys] for group, keys in groups.items()}
    moved = {key: group for group, keys in groups.items() for key in keys}
    taken = {key: _found(trees, key) for key in moved}
    used = _uses(trees)
    made = _only_called(trees, {key[:2] for key in moved if key.name == "__init__"})
    alone = {
        key
        for key in moved
        if _is_alone(key, used, plain) or key.name == "__init__" and key[:2] in made
    }
    for key in alone:
        if key.name == "__init__":
            _, node = taken[key]
            node.body.append(ast.Return(ast.Name("self", ast.Load())))
    for key, (body, node) in taken.items():
        body[body.index(node)] = (
            ast.Pass() if key in alone else _stub(node, moved[key], _new_name(key))
        )
    callers = {module: _Caller(trees, module, moved, alone) for module in trees}
    for module, tree in trees.items():
        callers[module].visit(tree)
    homes = {module: _top(tree) for module, tree in trees.items()}
    for group, keys in groups.items():
        _group(trees, homes, group, [(key, taken[key][-1]) for key in keys], callers)
    asked = {
        (node.module, alias.name)
        for tree in trees.values()
        for node in walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for module in {key.module for key in moved}:
        _tidy(trees[module], {name for of, name in asked if of == module})


def _new_name(key: Function) -> str:
    return f"{key.owner}_{key.name}" if key.owner else key.name


def _found(trees: dict, key: tuple) -> tuple:
    """Return (the body that holds it, the function or class) of *key*."""
    module, owner, name = key
    body = trees[module].body
    if owner:
        body = next(
            (node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner),
            [],
        )
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == name and owner is None:
            return body, node
        if isinstance(node, ast.FunctionDef) and node.name == name:
            arguments = node.args
            if node.decorator_list or arguments.kwarg or arguments.kwonlyargs:
                raise RareError(
                    f"{module}: {name}: a rare function has plain parameters and no decorator"
                )
            return body, node
    raise RareError(f"{module}: there is no {owner + '.' if owner else ''}{name}")


def _uses(trees: dict) -> tuple:
    """Return ({function's name: how many have it}, {attribute that is handed on, or bound in a
    class: whose calls are not all there is}).
    """
    count, otherwise = {}, set()
    for tree in trees.values():
        called = {id(node.func) for node in walk(tree) if isinstance(node, ast.Call)}
        for node in walk(tree):
            if isinstance(node, ast.FunctionDef):
                count[node.name] = count.get(node.name, 0) + 1
            elif isinstance(node, ast.Attribute) and id(node) not in called:
                otherwise.add(node.attr)
            elif isinstance(node, ast.ClassDef):
                otherwise |= {
                    name.id
                    for part in node.body
                    if isinstance(part, ast.Assign)
                    for name in walk(part)
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                }
    return count, otherwise


def _only_called(trees: dict, classes: set) -> set:
    """Return those of *classes*, {(module, class)}, that have no family, and that every place that
    names them calls, or hands to ``isinstance``.
    """
    found = set(classes)
    for name, tree in trees.items():
        nodes = list(walk(tree))
        names, modules = _names_of(name, nodes, found)
        called = {
            id(part)
            for node in nodes
            if isinstance(node, ast.Call)
            for part in [node.func]
            + (node.args if getattr(node.func, "id", "") == "isinstance" else [])
        }
        for node in nodes:
            if isinstance(node, ast.ClassDef) and node.bases:
                found.discard((name, node.name))
                for base in node.bases:
                    found -= names.get(getattr(base, "id", None), set())
            elif isinstance(node, ast.Name) and id(node) not in called:
                found -= names.get(node.id, set())
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found -= {(of, node.attr) for of in modules.get(node.value.id, ())}
    return found


def _names_of(module: str, nodes: list, classes: set) -> tuple[dict, dict]:
    """Return ({name in this *module*: which of *classes* it may be}, {name here of another module:
    which it may be}): functions import for themselves.
    """
    names = {owner: {(of, owner)} for of, owner in classes if of == module}
    modules = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if (node.module, alias.name) in classes and node.module != module:
                    local = names.setdefault(alias.asname or alias.name, set())
                    local.add((node.module, alias.name))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                modules.setdefault(alias.asname or alias.name, set()).add(alias.name)
    return names, modules


def _is_alone(key: tuple, used: tuple, plain: tuple) -> bool:
    """Return whether every place that names *key* calls it, and means it; *used*: of ``_uses``."""
    module, owner, name = key
    if owner is None:
        return module not in plain or name.startswith("_")
    return (
        not name.startswith("__")
        and name not in FOREIGN
        and name not in used[1]
        and used[0][name] == 1
    )


def _of_group(group: str, name: str):
    return ast.Attribute(
        ast.Call(ast.Name("__import__", ast.Load()), [ast.Constant(group)], []), name, ast.Load()
    )


def _stub(node, group: str, name: str):
    """Return what stays of the function *node*."""
    arguments = [ast.Name(argument.arg, ast.Load()) for argument in node.args.args]
    if node.args.vararg:
        arguments.append(ast.Starred(ast.Name(node.args.vararg.arg, ast.Load()), ast.Load()))
    call = ast.Return(ast.Call(_of_group(group, name), arguments, []))
    stub = ast.fix_missing_locations(ast.FunctionDef(node.name, node.args, [call], []))
    stub.origin = getattr(node, "origin", None)
    return stub


def _bound(node) -> set:
    """Return the names that a function binds, inner functions' too: none of them means one of
    the module.
    """
    names = set()
    for part in walk(node):
        if isinstance(part, ast.arg):
            names.add(part.arg)
        elif isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            names.add(part.id)
        elif (
            isinstance(part, (ast.FunctionDef, ast.ExceptHandler))
            and part is not node
            and part.name
        ):
            names.add(part.name)
        elif isinstance(part, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in part.names)
    return names


def _top(tree) -> dict:
    """Return {top-level name: the import statement that brings it, or None for one that the
    module defines}.
    """
    found = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found[node.name] = None
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                one = [ast.alias(alias.name, alias.asname)]
                found[alias.asname or alias.name] = (
                    ast.Import(one)
                    if isinstance(node, ast.Import)
                    else ast.ImportFrom(node.module, one, 0)
                )
        else:
            found.update(
                (name.id, None)
                for name in walk(node)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            )
    return found


class _Caller(Transformer):
    """Leads the calls of one module, and its imports, to the groups."""

    def __init__(self, trees: dict, module: str, moved: dict, alone: set):
        self.group, self._moved = "", moved  # group: whose functions are visited
        self._methods = {key.name: key for key in alone if key.owner and key.name != "__init__"}
        self._made = {key[:2]: key for key in alone if key.name == "__init__"}
        self._scopes = [
            {key.owner: key[:2] for key in alone if key.name == "__init__" and key.module == module}
        ]
        self._scopes[0].update(self._classes(trees[module].body))
        self._functions = {key: moved[key] for key in alone if key.owner is None}
        self._names = {
            key.name: (group, key.name)
            for key, group in self._functions.items()
            if key.module == module
        }
        for node in trees[module].body:
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    key = node.module, None, alias.name
                    if key in self._functions:
                        self._names[alias.asname or alias.name] = moved[key], alias.name
        self._modules = {
            alias.asname or alias.name: alias.name
            for node in walk(trees[module])
            if isinstance(node, ast.Import)
            for alias in node.names
        }
        self._local = []

    def _place(self, group: str, name: str):
        return ast.Name(name, ast.Load()) if group == self.group else _of_group(group, name)

    def _classes(self, body: list) -> dict:
        """Return {local name: (module, class)} of what *body* imports, of those whose
        ``__init__`` has gone.
        """
        return {
            alias.asname or alias.name: (node.module, alias.name)
            for part in body
            for node in walk(part)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if (node.module, alias.name) in self._made
        }

    def visit_FunctionDef(self, node):
        bound = _bound(node)
        self._local.append(bound)
        self._scopes.append({**dict.fromkeys(bound), **self._classes(node.body)})
        self.generic_visit(node)
        self._scopes.pop()
        self._local.pop()
        return node

    def visit_ImportFrom(self, node):
        gone = [alias for alias in node.names if (node.module, None, alias.name) in self._functions]
        if not gone:
            return node
        kept = [alias for alias in node.names if alias not in gone]
        made = [ast.ImportFrom(node.module, kept, 0)] if kept else []
        if self._local:
            made += [
                ast.ImportFrom(self._functions[node.module, None, alias.name], [alias], 0)
                for alias in gone
            ]
        return made or None

    def visit_Name(self, node):
        if (
            node.id in self._names
            and isinstance(node.ctx, ast.Load)
            and not any(node.id in names for names in self._local)
        ):
            return self._place(*self._names[node.id])
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        called = node.func
        if isinstance(called, ast.Name):
            meant = next(
                (scope[called.id] for scope in reversed(self._scopes) if called.id in scope), None
            )
            if meant in self._made:
                key = self._made[meant]
                node.func, node.args = (
                    self._place(self._moved[key], _new_name(key)),
                    [ast.Call(called, [], [])] + node.args,
                )
        elif (
            isinstance(called, ast.Attribute)
            and called.attr in self._methods
            and not isinstance(called.value, ast.Constant)
        ):
            if (
                isinstance(called.value, ast.Call)
                and isinstance(called.value.func, ast.Name)
                and called.value.func.id == "__import__"
            ):
                return node
            key = self._methods[called.attr]
            node.func, node.args = (
                self._place(self._moved[key], _new_name(key)),
                [called.value] + node.args,
            )
        return node

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id in self._modules:
            key = self._modules[node.value.id], None, node.attr
            if key in self._functions:
                return self._place(self._functions[key], node.attr)
        return self.generic_visit(node)


def _group(trees: dict, homes: dict, group: str, members: list, callers: dict):
    """Add the module of a group, or what there is of it: the functions *members*, and what they
    need.
    """
    already = trees.setdefault(group, ast.Module([], []))
    own = {_new_name(key): key for key, _ in members}
    if len(own) < len(members) or not set(own).isdisjoint(homes.get(group, ())):
        raise RareError(f"{group}: two of its functions have one name")
    brought, functions = {}, []  # {local name: its import, as text}
    for name, statement in homes.get(group, {}).items():
        brought[name] = ast.unparse(statement) if statement else ""
    for key, node in members:
        if key.owner:
            origin = getattr(node, "origin", None)
            node = ast.FunctionDef(_new_name(key), node.args, node.body, [])
            node.origin = origin  # for functions.py: what tracebacks call it
            node.of = key[:2]  # for rename.py: whose attributes it sets
        callers[key.module].group = group
        node = callers[key.module].visit(node)
        _bring(homes[key.module], key.module, node, own, brought)
        functions.append(node)
    body = [node for node in already.body if not isinstance(node, (ast.Import, ast.ImportFrom))]
    already.body = ast.parse("\n".join(brought.values())).body + body + functions
    ast.fix_missing_locations(already)


def _bring(home: dict, module: str, node, own: dict, brought: dict) -> None:
    """Enter the imports that the function *node* of *module* needs in *brought*, and rename in
    it what would hide another's.
    """
    bound = _bound(node)
    for name in [
        part for part in walk(node) if isinstance(part, ast.Name) and part.id not in bound
    ]:
        if name.id not in home:
            if name.id not in own and not hasattr(builtins, name.id):
                raise RareError(f"{node.name}: {module} has no {name.id}")
            continue
        statement = home[name.id] or ast.ImportFrom(module, [ast.alias(name.id)], 0)
        local, alias = name.id, statement.names[0].name
        text = _import(statement, alias, local)
        if local in own or brought.get(local, text) != text:
            local = f"{module}_{name.id}"
            text = _import(statement, alias, local)
        brought[local] = text
        name.id = local


def _import(statement, name: str, local: str) -> str:
    one = [ast.alias(name, None if local == name else local)]
    return ast.unparse(
        ast.Import(one)
        if isinstance(statement, ast.Import)
        else ast.ImportFrom(statement.module, one, 0)
    )


def _tidy(tree, asked: set) -> None:
    """Take ``pass`` out where something else stands, and imports at the top that nobody uses any
    more; *asked*: by other modules.
    """
    used = asked | {node.id for node in walk(tree) if isinstance(node, ast.Name)}
    for node in walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1:
            node.body = [part for part in body if not isinstance(part, ast.Pass)] or [ast.Pass()]
    for node in list(tree.body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            node.names = [alias for alias in node.names if (alias.asname or alias.name) in used]
            if not node.names:
                tree.body.remove(node)
