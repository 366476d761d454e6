"""What the ports of MicroPython have, according to their stub packages: ``make apis`` writes it to
clawlite/host/firmware/apis.json.

1. A board profile names the package of its firmware (``api``).  Its modules come from there with
   their classes; os, sys and others that every port has come from the package ``stdlib``, without
   classes: those are typeshed's, which describe CPython.
2. The packages cannot be installed side by side, because all have modules of the same names.  So
   they are read from the wheels in build/stubs (``make stubs``).
3. Stubs also name what other ports have.  So a name that they lack is missing for certain; one that
   they have may still be missing.
"""

import ast
import json
import sys
import tomllib
import zipfile
from pathlib import Path

from clawlite.host.base.data import boards_dir
from clawlite.host.firmware import firmware

ROOT = Path(__file__).resolve().parents[2]
STUBS = ROOT / "build/stubs"
TARGET = ROOT / "clawlite/host/firmware/apis.json"
# of the MicroPython that the profiles are about; the versions in use stand in apis.json
NEWEST = ">=1.28,<1.29"
# (module, class): what the stubs lack, because the port has it in code and in no table.
COMMON = "stdlib"
# what typeshed needs for itself: no port can import it
TYPESHED = ("abc", "enum", "types", "typing", "typing_extensions")
# what stubs name and the released firmware has not: for all ports, then by package.  zlib gave way
# to deflate; ssl is a library in Python, so it has no second name with a u.  Of the unix port it is
# what the program itself says (tests/host/firmware/test_frozen.py).
NOWHERE = "ussl uzlib"
NOT_THERE = {
    "unix": "btree datetime ffi functools logging pathlib unittest",
    "esp32-esp32-generic-s3": "inspect",
}
# these come together: without the first there is none of the others
TOGETHER = ("bluetooth ubluetooth", "socket usocket ssl", "websocket uwebsocket")
EVERYWHERE = "vfs"
# extmod/modtls_mbedtls.c and the page of the library ssl
LACKING = {("tls", "SSLContext"): "verify_mode"}


def packages() -> list[str]:
    """Return the short names of the packages that the board profiles ask for, and the common
    one.
    """
    named = {tomllib.loads(path.read_text()).get("api") for path in boards_dir().glob("*.toml")}
    return sorted(named - {None}) + [COMMON]


def requirements() -> list[str]:
    """Return what pip downloads."""
    used = json.loads(TARGET.read_text())["packages"]
    return [
        f"micropython-{name}-stubs" + (f"=={used[name]}" if name in used else NEWEST)
        for name in packages()
    ]


def modules() -> list[str]:
    """Return the modules of MicroPython that the sources of a board import."""
    trees = {name: ast.parse(path.read_text()) for name, path in firmware.sources().items()}
    found = set()
    for node in (node for tree in trees.values() for node in ast.walk(tree)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module)
    return sorted(name for name in found - set(trees) if not name.startswith("clawlite"))


def wheel(name: str) -> Path:
    """Return the path of a package in build/stubs.  Raises ``FileNotFoundError``."""
    found = sorted(STUBS.glob(f"micropython_{name.replace('-', '_')}_stubs-*.whl"))
    if len(found) != 1:
        raise FileNotFoundError(
            f"{STUBS}: expected one package micropython-{name}-stubs, found "
            f"{len(found)}: make stubs"
        )
    return found[0]


def read(package: Path) -> dict[str, ast.Module]:
    """Return {path in the package: its tree}."""
    with zipfile.ZipFile(package) as opened:
        return {
            name: ast.parse(opened.read(name))
            for name in opened.namelist()
            if name.endswith(".pyi")
        }


class Api:
    """The modules of one board: those of its package, then those of the common one."""

    def __init__(self, own: dict, common: dict):
        self._own = own
        self._trees = own | {name.removeprefix("stdlib/"): tree for name, tree in common.items()}

    def names(self, module: str):
        """Return {"": [what the module has], class: [its attributes]}, or None for a module that
        the board lacks.
        """
        tree = self._tree(module)
        if tree is None:
            return None
        is_own = any(path in self._own for path in _paths(module))
        found = {
            "": sorted({name for node in tree.body for name in _bound(node) if name[0] != "_"})
        }
        for node in tree.body if is_own else ():
            if isinstance(node, ast.ClassDef) and node.name[0] != "_":
                found.setdefault(node.name, set()).update(
                    self._attributes(module, node), LACKING.get((module, node.name), "").split()
                )
        return {name: sorted(of) for name, of in found.items()}

    def _tree(self, module: str):
        return next((self._trees[path] for path in _paths(module) if path in self._trees), None)

    def _attributes(self, module: str, node: ast.ClassDef) -> set:
        names = {name for part in node.body for name in _bound(part) if name[0] != "_"}
        for base in node.bases:
            owner = base.value if isinstance(base, ast.Subscript) else base
            for home, found in self._class(module, ast.unparse(owner)):
                if found is not node:
                    names |= self._attributes(home, found)
        return names

    def _class(self, module: str, name: str) -> list:
        """Return [(module, class)] of what *name* means in *module*: it, or what an import there
        brings.
        """
        tree = self._tree(module)
        found = (
            [
                (module, node)
                for node in tree.body
                if isinstance(node, ast.ClassDef) and node.name == name
            ]
            if tree
            else []
        )
        for node in tree.body if tree and not found else ():
            if isinstance(node, ast.ImportFrom) and name in [
                alias.asname or alias.name for alias in node.names
            ]:
                found += self._class(f"{module}.{node.module}" if node.level else node.module, name)
        return found


def _paths(module: str) -> tuple:
    path = module.replace(".", "/")
    return path + ".pyi", path + "/__init__.pyi"


def _bound(node) -> list:
    """Return the names that a statement of a stub binds."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.If):  # by version or platform of CPython
        return [name for part in node.body + node.orelse for name in _bound(part)]
    return []


def importable(name: str) -> list[str]:
    """Return the modules that the port of package *name* can import: its own, and those that every
    port has.
    """
    found = set()
    for package, prefix in ((name, ""), (COMMON, "stdlib/")):
        with zipfile.ZipFile(wheel(package)) as archive:
            found |= {
                one.removeprefix(prefix).partition("/")[0].removesuffix(".pyi")
                for one in archive.namelist()
                if one.startswith(prefix) and one.endswith(".pyi")
            }
    found |= set(EVERYWHERE.split())
    found -= {*TYPESHED, *NOWHERE.split(), *NOT_THERE.get(name, "").split()}
    for first, *others in map(str.split, TOGETHER):
        if first not in found:
            found -= set(others)
    return sorted(one for one in found if one[0] != "_" and one[:4] != "sre_")


def collect() -> dict:
    """Return what apis.json holds: {"packages": {name: version}, "importable": {package: names of
    modules}, "modules": {module: [[[package, ...], names], ...]}}.

    names  as of ``Api.names``; boards whose module is the same stand together
    """
    common = read(wheel(COMMON))
    apis = {name: Api(read(wheel(name)), common) for name in packages() if name != COMMON}
    found = {}
    for module in modules():
        groups = found[module] = []
        for name, api in apis.items():
            names = api.names(module)
            same = next((group for group in groups if group[1] == names), None)
            if same:
                same[0].append(name)
            elif names is not None:
                groups.append([[name], names])
    return {
        "packages": {name: wheel(name).name.split("-")[1] for name in packages()},
        "importable": {name: importable(name) for name in apis},
        "modules": found,
    }


def text() -> str:
    """Return what ``collect`` does as the text of apis.json: a line for each class."""
    found = collect()
    able = {name: " ".join(names) for name, names in found["importable"].items()}
    lines = [
        f'{{"packages": {json.dumps(found["packages"], indent=1)},',
        f'"importable": {json.dumps(able, indent=1)},',
        '"modules": {',
    ]
    for module, groups in found["modules"].items():
        lines.append(f"{json.dumps(module)}: [")
        for boards, names in groups:
            rows = ",\n  ".join(
                f"{json.dumps(name)}: {json.dumps(' '.join(of))}" for name, of in names.items()
            )
            lines.append(f" [{json.dumps(boards)}, {{\n  {rows}}}],")
        lines[-1] = lines[-1].removesuffix(",")
        lines.append("],")
    lines[-1] = "]"
    return "\n".join(lines + ["}}", ""])


if __name__ == "__main__":
    if sys.argv[1:] == ["--requirements"]:
        print("\n".join(requirements()))
    elif sys.argv[1:] == ["--check"]:
        for one in packages():
            wheel(one)
    else:
        TARGET.write_text(text())
