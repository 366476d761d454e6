"""One file with the compiled code of the modules that agents on this machine have needed.

Python opens three files and folders for each module that it imports.  ``use`` lets it take the code
of this package's modules from one file, which ``rewrite`` writes when an agent ends
(docs/adr/0002-optional-cython.md).

1. The file lies where Python keeps compiled modules (``__pycache__``).  It may be removed at any
   time; without it, and where it cannot be written, imports are the ordinary ones.
2. The code of a module is taken while size and time of its source, and the time of the source's
   folder, are what they were: a compiled extension may have been put beside the source.
3. The file is taken only when root or this user owns it and its folder, and nobody else may write
   there.  A part with a wrong checksum is not taken.
4. It has no extensions.  Tracebacks read the sources, as ever.
5. The code of a tools.py is in it, too, by the SHA-256 of its source: but not in root's file, which
   every user may read, while a tools.py may lie in a folder that is closed to them.

The file: length and checksum of the index, 4 bytes each; the index; the parts, one for each code.
Index, by marshal: [KEY, folder of the package, {folder: time}, {module: (kind, size of the source,
its time, part)}, {path of a tools.py: (digest, part)}].  A part is (start after the index, length,
checksum), None for a folder without __init__.py.  Sizes are bytes, times those of the last change
in ns.
"""

import marshal
import os
import sys
from _frozen_importlib import ModuleSpec  # importlib.machinery has them too, for 0.4 ms
from _frozen_importlib_external import SourceFileLoader
from _imp import extension_suffixes
from binascii import crc32
from stat import S_ISREG

KEY = (1, sys.version)  # 1: of the layout
MODULE, PACKAGE, FOLDER = range(3)  # kinds of modules
MAX_TOOLS = 32  # files tools.py: with one more, it begins anew
_ENDINGS = {MODULE: ".py", PACKAGE: "/__init__.py"}
_PACKAGE = __file__.removesuffix("/linux/files/code_file.py")
_KIND, _CODE = 0, 3  # positions in the row of a module
_DIGEST, _PART = 0, 1  # of a tools.py
_HEAD = 8  # bytes: length and checksum of the index
_DAMAGE = (OSError, ValueError, EOFError, TypeError)
_state: dict = {"finder": None}


def use() -> None:
    """Let imports of this process take what the file has."""
    finder = _state["finder"] = Finder(_path())
    sys.meta_path.insert(0, finder)


def rewrite() -> None:
    """Write the file anew when this process needed what it does not have; where that fails, do
    nothing.
    """
    finder = _state["finder"]
    if finder.path and not sys.dont_write_bytecode and os.getpid() == finder.pid:
        missing = [name for name in list(sys.modules) if finder.lacks(name)]
        if missing or finder.new_tools:
            try:
                _write(finder, missing)
            except (OSError, ValueError, SyntaxError):
                pass


def leave() -> None:
    """Leave the file as it is when this process ends: the sources are not those that it runs."""
    if _state["finder"]:
        _state["finder"].path = ""


def load_code(source: bytes, path: str, digest: bytes):
    """Return the code of a tools.py.

    path    absolute;  digest  SHA-256 of *source*
    Raises SyntaxError and ValueError of ``compile``.
    """
    finder = _state["finder"]
    row = finder and finder.tools.get(path)
    if row and row[_DIGEST] == digest:
        try:
            return marshal.loads(finder.part(row[_PART]))
        except _DAMAGE:
            pass
    code = compile(source, path, "exec")
    if finder and os.geteuid():
        finder.new_tools[path] = (digest, code)
    return code


def _path() -> str:
    """Return the path of the file, "" when compiled modules lie elsewhere than beside their
    sources.
    """
    tag = sys.implementation.cache_tag
    if not tag or sys.pycache_prefix:
        return ""
    level = ".opt-%d" % sys.flags.optimize if sys.flags.optimize else ""
    return "%s/__pycache__/agent.%s%s.code" % (_PACKAGE, tag, level)


def _is_ours(status) -> bool:
    """Whether nobody but root and this user can write what has *status*."""
    return status.st_uid in (0, os.geteuid()) and not status.st_mode & 0o022


def _is_folder_ours(path: str) -> bool:
    return _is_ours(os.lstat(os.path.dirname(path)))


def _base(name: str) -> str:
    """Return the path of module *name* without its ending."""
    return _PACKAGE + name[len("clawlite") :].replace(".", "/")


def _spec(name):
    return sys.modules[name].__spec__


def _folder(name: str, kind: int) -> str:
    """Return the folder that shows whether something else would be found as module *name*."""
    return _base(name) if kind != MODULE else os.path.dirname(_base(name))


class Finder:
    """Finds modules of this package in the file; stands first in ``sys.meta_path``.

    path   of the file, which need not be there
    rows, tools  of the index; ``new_tools``: {path: (digest, code)} that it does not have
    """

    def __init__(self, path: str):
        self.path = path
        self.pid = os.getpid()
        self.rows, self.tools, self.new_tools = {}, {}, {}
        self._before = set(sys.modules)
        self._folders = {}
        self._fd, self._start = -1, 0
        if path:
            try:
                self._open()
            except _DAMAGE:
                pass

    def _open(self) -> None:
        """Read the index, if it is to be used.  Raises OSError, ValueError, EOFError, TypeError."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        self._fd = os.open(self.path, flags)
        status = os.fstat(self._fd)
        if not (S_ISREG(status.st_mode) and _is_ours(status) and _is_folder_ours(self.path)):
            return
        head = os.pread(self._fd, _HEAD, 0)
        length = int.from_bytes(head[:4], "little")
        data = os.pread(self._fd, min(length, status.st_size), _HEAD)
        if crc32(data) != int.from_bytes(head[4:], "little"):
            return
        key, package, folders, rows, tools = marshal.loads(data)
        if key == KEY and package == _PACKAGE:
            self._start, self._folders, self.rows, self.tools = _HEAD + length, folders, rows, tools

    def find_spec(self, name: str, path=None, target=None):
        """Return the spec of module *name*, or None: the ordinary import looks for it."""
        row = self.current(name)
        if row is None:
            return None
        base = _base(name)
        kind, _, _, code = row
        if kind == FOLDER:
            spec = ModuleSpec(name, None, is_package=True)
        else:
            file = base + _ENDINGS[kind]
            spec = ModuleSpec(name, Loader(name, file, code, self), origin=file)
            spec.has_location = True
            spec.cached = self.path
        if kind != MODULE:
            spec.submodule_search_locations = [base]
        return spec

    def current(self, name: str):
        """Return the row of module *name*, or None: there is none, or it is one no longer."""
        row = self.rows.get(name)
        if row is None:
            return None
        try:
            if self._is_unchanged(_folder(name, row[_KIND])):
                if row[_KIND] == FOLDER:
                    return row
                status = os.stat(_base(name) + _ENDINGS[row[_KIND]])
                if (status.st_size, status.st_mtime_ns) == row[1:3]:
                    return row
        except OSError:
            pass
        del self.rows[name]
        return None

    def _is_unchanged(self, folder: str) -> bool:
        """Whether *folder* has the entries that it had; each is asked for once."""
        found = self._folders.get(folder)
        if not isinstance(found, bool):
            found = self._folders[folder] = os.stat(folder).st_mtime_ns == found
        return found

    def part(self, part: tuple) -> bytes:
        """Return the bytes of *part*.  Raises OSError, ValueError: it is damaged."""
        start, length, checksum = part
        data = self.read(start, length)
        if crc32(data) != checksum:
            raise ValueError("damaged")
        return data

    def read(self, start: int, length: int) -> bytes:
        return os.pread(self._fd, length, self._start + start)

    def lacks(self, name: str) -> bool:
        """Whether module *name*, one that was imported, belongs into the file and is not there."""
        if not name.startswith("clawlite.") or name in self._before or name in self.rows:
            return False
        spec = _spec(name)
        if spec.origin is None:
            return True
        base = spec.origin.removesuffix(".py")
        return isinstance(spec.loader, SourceFileLoader) and not any(
            os.path.exists(base + suffix) for suffix in extension_suffixes()
        )


class Loader(SourceFileLoader):
    """Loads the code of one module from the file, or as ever where it is damaged there."""

    def __init__(self, name: str, path: str, part: tuple, finder: Finder):
        self.name, self.path = name, path
        self._part, self._finder = part, finder

    def get_code(self, fullname: str):
        """Return the code of a module that ``find_spec`` found current."""
        try:
            return marshal.loads(self._finder.part(self._part))
        except _DAMAGE:
            self._finder.rows.pop(fullname, None)
        return SourceFileLoader.get_code(self, fullname)


class _Parts:
    """The parts of a file that is written."""

    def __init__(self):
        self.found, self._end = [], 0

    def copy(self, finder: Finder, part):
        """Return the part here of what *part* is there; a damaged one stays what it is."""
        if part is None:
            return None
        start, length, checksum = part
        return (self.add(finder.read(start, length))[0], length, checksum)

    def add(self, data: bytes) -> tuple:
        part = (self._end, len(data), crc32(data))
        self.found.append(data)
        self._end += len(data)
        return part


def _write(finder: Finder, missing: list) -> None:
    """Write what *finder* has, the modules *missing* and its new tools, whole or not at all.

    Raises OSError; ValueError and SyntaxError of a source that was changed meanwhile.
    """
    if not _is_folder_ours(finder.path):
        return
    new = "%s.%d" % (finder.path, finder.pid)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(new, flags, 0o600)  # first of all: most of those who may not write end here
    try:
        with open(fd, "wb") as file:
            parts, folders, rows = _Parts(), {}, {}
            for name in missing:
                rows[name] = _row(name, parts)
            for name in list(finder.rows):
                row = finder.current(name)
                if row:
                    rows[name] = (*row[:3], parts.copy(finder, row[_CODE]))
            for name, row in rows.items():
                folder = _folder(name, row[_KIND])
                folders[folder] = os.stat(folder).st_mtime_ns
            index = marshal.dumps([KEY, _PACKAGE, folders, rows, _tools(finder, parts)])
            for number in (len(index), crc32(index)):
                file.write(number.to_bytes(4, "little"))
            file.write(index)
            file.writelines(parts.found)
            os.fchmod(fd, 0o600 if os.geteuid() else 0o644)  # root's is for all users
        os.replace(new, finder.path)
    except BaseException:
        os.unlink(new)
        raise


def _row(name: str, parts: _Parts) -> tuple:
    """Return the row of module *name*, which was imported from its source."""
    spec = _spec(name)
    if spec.origin is None:
        return FOLDER, 0, 0, None
    status = os.stat(spec.origin)  # before it is read: a later change is seen
    code = SourceFileLoader.get_code(spec.loader, name)
    kind = MODULE if spec.submodule_search_locations is None else PACKAGE
    return kind, status.st_size, status.st_mtime_ns, parts.add(marshal.dumps(code))


def _tools(finder: Finder, parts: _Parts) -> dict:
    new = {
        path: (digest, parts.add(marshal.dumps(code)))
        for path, (digest, code) in finder.new_tools.items()
    }
    old = {
        path: (digest, parts.copy(finder, part))
        for path, (digest, part) in finder.tools.items()
        if path not in new
    }
    return {**old, **new} if len(old) + len(new) <= MAX_TOOLS else new
