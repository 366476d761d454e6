"""Link modules for a board: several become one, before mpy-cross.

On MicroPython every module costs memory for its object, its dictionary and the names that it
imports.  With two modules instead of twenty-five, the core and its shell hold some 15 KB less heap
(64-bit words).  The meaning of a module does not change:

1. The modules of a unit follow one another in the order of their imports; imports between them are
   removed.
2. Top-level names stay as they are, unless two modules of a unit have the same one: then the later
   module's name is put before its own (rename.py shortens them all).
3. Integers and short texts that a module names in capitals are written where they are used, and
   their names are removed.
4. Modules outside every unit stay separate; their imports are redirected to the units.
5. Parameters that are never passed by name are named by their position (shorten.py).
6. The entrance of a room is removed: an import from it becomes an import from the module that
   defines the name.  The entrance's own definitions are for Linux.

Only the core's dialect is understood (docs/adr/0010); anything else raises ``LinkError`` rather
than link wrongly."""

import ast
import builtins
import pathlib

from clawlite.core.base.errors import ClawError
from clawlite.host.firmware.shorten import Shortener, find_keywords
from clawlite.host.firmware.trees import Transformer, copy_nodes, walk

# bytes: such a text is a name for MicroPython (mpy-cross); one without any is to be filled in later
_SHORT = 10
PREFIXES = ("clawlite.core.", "clawlite.scan.")


class LinkError(ClawError):
    """A module that this linker does not understand."""

    code = -32603


class Module:
    """One source module: its tree, what it defines, and what its names mean elsewhere.

    name     as it is imported, without its packages
    defined  {top-level name}
    numbers  {name in capitals: int, or a text that MicroPython keeps once}
    """

    def __init__(self, name: str, path: pathlib.Path):
        self.name, self.path = name, path
        self.tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        self.defined, self.numbers = set(), {}
        for node in self.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                self.defined.add(node.name)
            elif isinstance(node, ast.Assign):
                self._note_assignment(node)

    def _note_assignment(self, node: ast.Assign):
        for target in node.targets:
            names = [
                item.id
                for item in (target.elts if isinstance(target, ast.Tuple) else [target])
                if isinstance(item, ast.Name)
            ]
            self.defined.update(names)
            values = _constants(node.value, len(names), self.numbers)
            if values and all(name.isupper() for name in names):
                self.numbers.update(zip(names, values))


def _constants(node, count: int, known: dict):
    """Return the integers and short texts that an assignment to *count* names gives, when it is
    that simple; else None.
    """
    try:
        space = {"__builtins__": {}, "range": range, "const": int, **known}
        value = eval(compile(ast.Expression(node), "", "eval"), space)
    except (NameError, TypeError, ValueError, AttributeError):
        return None
    values = [value] if count == 1 else list(value) if isinstance(value, (range, tuple)) else []
    return (
        values
        if len(values) == count
        and all(
            type(value) is int or type(value) is str and 0 < len(value) < _SHORT for value in values
        )
        else None
    )


class Linker:
    """Several modules and the units that they become.

    sources  {module: path of its source}
    units    {unit: [module, ...] in the order of their imports}
    whole    modules whose parameters keep their names: they are called with ``**``
    entrances  modules from which others import what is in a third one
    """

    def __init__(self, sources: dict, units: dict, whole: tuple = (), entrances: tuple = ()):
        self.modules = {name: Module(name, pathlib.Path(path)) for name, path in sources.items()}
        self.entrances = {name: _re_exports(self.modules.pop(name)) for name in entrances}
        self.unit_of = {name: unit for unit, names in units.items() for name in names}
        self.units = units
        self.whole = whole
        self.hidden = set()  # (module, name) that somebody's local name would hide
        self.new_names = {}  # (module, name) -> its name in the unit

    def _name(self):
        alone = [[name] for name in self.modules if name not in self.unit_of]
        for names in list(self.units.values()) + alone:
            taken = set(dir(builtins))
            for name in names:
                for defined in sorted(self.modules[name].defined):
                    clear = defined not in taken and (name, defined) not in self.hidden
                    new = defined if clear or names in alone else f"{name}_{defined}"
                    self.new_names[name, defined] = new
                    taken.add(new)

    def link(self) -> dict[str, str]:
        """Return {module or unit: source}."""
        while True:
            hidden = len(self.hidden)
            self._name()
            trees = self._trees()
            if len(self.hidden) == hidden:
                return self._texts(trees)

    def place(self, module: str, name: str) -> tuple:
        """Return (unit or module, class or None, function) of *name*, "function" or
        "Class.method" of a source module; after ``link``.
        """
        owner, _, method = name.rpartition(".")
        return (
            self.unit_of.get(module, module),
            self.new_names.get((module, owner)) if owner else None,
            method if owner else self.new_names.get((module, name), name),
        )

    def _trees(self) -> dict[str, list]:
        trees = {
            unit: [node for name in names for node in self._rewritten(name, unit)]
            for unit, names in self.units.items()
        }
        trees.update(
            (name, self._rewritten(name, None)) for name in self.modules if name not in self.unit_of
        )
        return trees

    def _texts(self, trees: dict) -> dict[str, str]:
        shortener = Shortener(find_keywords(module.tree for module in self.modules.values()))
        linked = {}
        for name, body in trees.items():
            tree = ast.Module(body, [])
            if not body and name not in self.units:
                continue  # it held numbers alone
            linked[name] = ast.unparse(tree if name in self.whole else shortener.visit(tree))
        return linked

    def _rewritten(self, name: str, unit):
        module = self.modules[name]
        rewriter = _Rewriter(self, module, unit)
        body = []
        for node in copy_nodes(module.tree.body):
            if isinstance(node, ast.Assign) and _all_in(node, module.numbers):
                continue
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                # docstrings cost nothing in .mpy, and here they would only be in the way
                continue
            node = rewriter.visit(node)
            body += node if isinstance(node, list) else [node] if node else []
        return body

    def meaning(self, module: str, name: str, unit):
        """Return what *name* of *module* is called in *unit*: (its name, the unit or module to
        import it from or None).
        """
        home = self.unit_of.get(module, module)
        renamed = self.new_names.get((module, name), name)
        return renamed, None if home == unit and unit is not None else home


def _re_exports(module: Module) -> dict[str, str]:
    """Return {name: the module that it is from} of an entrance."""
    return {
        alias.name: plain(node.module)
        for node in module.tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


def _all_in(node: ast.Assign, numbers: dict) -> bool:
    names = [
        item
        for target in node.targets
        for item in (target.elts if isinstance(target, ast.Tuple) else [target])
    ]
    return all(isinstance(item, ast.Name) and item.id in numbers for item in names)


def plain(name: str) -> str:
    """Return a module's own name: clawlite.core.ROOM.NAME and clawlite.scan.NAME are NAME on
    boards.
    """
    if name.startswith("clawlite.core."):
        return name.removeprefix("clawlite.core.").partition(".")[2]
    return name.removeprefix("clawlite.scan.")


class _Rewriter(Transformer):
    """Rewrites one module: imports, names of the unit, numbers."""

    def __init__(self, linker: Linker, module: Module, unit):
        self.linker, self.module, self.unit = linker, module, unit
        self.names = {
            name: linker.new_names[module.name, name]
            for name in module.defined
            if (module.name, name) in linker.new_names
        }
        self.numbers = dict(module.numbers)
        self.aliases = {}  # local name -> module
        self.locals = [set()]

    def visit_ImportFrom(self, node):
        kept, made = {}, []
        for alias in node.names:
            local = alias.asname or alias.name
            source = f"{node.module}.{alias.name}"
            if source.startswith(PREFIXES) and plain(source) in self.linker.modules:
                if plain(source) in self.linker.unit_of:
                    self.aliases[local] = plain(source)
                else:
                    made.append(ast.Import([ast.alias(plain(source), alias.asname)]))
                continue
            name = plain(node.module or "")
            if name in self.linker.entrances:
                if alias.name not in self.linker.entrances[name]:
                    raise LinkError(f"{self.module.name}: no board has {alias.name} of {name}")
                name = self.linker.entrances[name][alias.name]
            if name == "dialect":
                if alias.name == "sha256":
                    kept.setdefault("hashlib", []).append(alias)
                continue  # const, and its numbers are written out
            if name not in self.linker.modules:
                return node  # MicroPython's own
            if alias.name in self.linker.modules[name].numbers:
                self.numbers[local] = self.linker.modules[name].numbers[alias.name]
                continue
            renamed, home = self.linker.meaning(name, alias.name, self.unit)
            if home is None:
                if len(self.locals) > 1 or local != renamed:
                    self.names[local] = renamed
                continue
            kept.setdefault(home, []).append(
                ast.alias(renamed, None if local == renamed else local)
            )
        made += [ast.ImportFrom(home, names, 0) for home, names in kept.items()]
        return made or (ast.Pass() if len(self.locals) > 1 else None)

    def visit_Import(self, node):
        if any(plain(alias.name) in self.linker.modules for alias in node.names):
            raise LinkError(f"{self.module.name}: import it with from ... import ...")
        return node

    def _function(self, node):
        arguments = node.args
        inside = {a.arg for a in arguments.args + arguments.kwonlyargs} | {
            a.arg for a in (arguments.vararg, arguments.kwarg) if a
        }
        body = node.body if isinstance(node.body, list) else [node.body]
        for part in body:
            inside |= {
                n.id for n in walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
            }
            inside |= {
                n.name
                for n in walk(part)
                if isinstance(n, (ast.FunctionDef, ast.ExceptHandler)) and n.name
            }
        if isinstance(node, ast.FunctionDef):
            if len(self.locals) == 1:
                node.name = self.names.get(node.name, node.name)
            node.returns = None
            for a in arguments.args + arguments.kwonlyargs:
                a.annotation = None
        self.locals.append(inside)
        result = self.generic_visit(node)
        self.locals.pop()
        return result

    visit_FunctionDef = visit_Lambda = _function

    def visit_ClassDef(self, node):
        """A class's own names hide the unit's in its body, and not in its methods."""
        node.name = self.names.get(node.name, node.name)
        node.bases = [self.visit(base) for base in node.bases]
        own = {
            target.id
            for part in node.body
            if isinstance(part, ast.Assign)
            for target in part.targets
        }
        for index, part in enumerate(node.body):
            if isinstance(part, ast.FunctionDef):
                name = part.name
                self.locals.append(set())
                node.body[index] = self._function(part)
                self.locals.pop()
                node.body[index].name = name
            else:
                self.locals.append(own)
                node.body[index] = self.visit(part)
                self.locals.pop()
        return node

    def visit_Name(self, node):
        if any(node.id in scope for scope in self.locals):
            return node
        if node.id in self.numbers and isinstance(node.ctx, ast.Load):
            return ast.Constant(self.numbers[node.id])
        if node.id == "const":
            raise LinkError(
                f"{self.module.name}: const() stands for an integer under a name in capitals"
            )
        if node.id in self.aliases:
            raise LinkError(f"{self.module.name}: the module {node.id} is used as a value")
        new = self.names.get(node.id, node.id)
        if any(new in scope for scope in self.locals):
            raise LinkError(
                f"{self.module.name}: {node.id} is {new} in its unit, which a local "
                f"name hides; choose another"
            )
        node.id = new
        return node

    def visit_Attribute(self, node):
        base = node.value
        if (
            isinstance(base, ast.Name)
            and base.id in self.aliases
            and not any(base.id in scope for scope in self.locals)
        ):
            name = self.aliases[base.id]
            if node.attr in self.linker.modules[name].numbers:
                return ast.Constant(self.linker.modules[name].numbers[node.attr])
            renamed, home = self.linker.meaning(name, node.attr, self.unit)
            if home is not None:
                raise LinkError(
                    f"{self.module.name}: {base.id}.{node.attr} lies in another unit; "
                    f"import the name itself"
                )
            if any(renamed in scope for scope in self.locals):
                # once more, with another name for it
                self.linker.hidden.add((name, node.attr))
            return ast.Name(renamed, node.ctx)
        return self.generic_visit(node)
