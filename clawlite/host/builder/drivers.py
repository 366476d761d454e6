"""``clawlite add``, ``remove`` and ``drivers``: the drivers of a project, in its folder
``drivers`` and in clawlite.lock.

1. Everything is fetched and checked before anything is written; the lock comes last.
2. A file or a pin that is another one is replaced only when that is asked for (``--replace``).
"""

import contextlib
import hashlib
import os
import posixpath
from typing import NamedTuple

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import Problems, did_you_mean, enquote, make_write_error
from clawlite.host.base.without_links import Below
from clawlite.host.documents import lock
from clawlite.host.documents.sources import Sources
from clawlite.host.drivers import mip, pinned_drivers
from clawlite.host.manifest.manifest import locate


class _Project(NamedTuple):
    sources: Sources
    drivers: dict
    below: Below


def add(
    what: str, name: str, index: str | None = None, replace: bool = False, is_dry: bool = False
) -> list[dict]:
    """Add the driver *what* (``mip.find``), and those it needs, to the project *name*, a manifest
    or its folder; return [{name, version, source, needs, files: [{file, bytes, sha256, change}]}];
    change: "new", "changed" or "same".

    replace  also where a file, or the hash that is pinned, is another one
    is_dry   write nothing
    Raises ``ClawError``; then nothing is written.
    """
    project = _open(name)
    is_in_place = mip.is_file(what) and _is_in(project, what)
    found = mip.find(what, index)
    changes = {}
    for package in found:
        for file, data in package.files.items():
            _check_conflict(project, package, file, data, replace or is_in_place, changes)
    drivers = _merge(project.drivers, found)
    if not is_dry:
        _write(project, changes, drivers)
    return [_row(package, changes) for package in found]


def remove(driver: str, name: str, is_dry: bool = False) -> dict:
    """Remove *driver* from the project *name*; return {name, files, kept, unneeded}: the files
    that are removed, those that stay because they were changed here or another driver has them,
    and the drivers that nobody needs any more.  Raises ``ClawError``.
    """
    project = _open(name)
    if driver not in project.drivers:
        known = sorted(project.drivers)
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise ClawError(
            f"{lock.FILE} has no driver {enquote(driver)}", did_you_mean(driver, known) or has
        )
    users = sorted(one.name for one in project.drivers.values() if driver in one.needs)
    if users:
        raise ClawError(
            f"{driver} is needed by {', '.join(users)}", f"first: clawlite remove {users[0]}"
        )
    gone = project.drivers[driver]
    left = {key: one for key, one in project.drivers.items() if key != driver}
    shared = {file for one in left.values() for file in one.files}
    files, kept = [], []
    for file, sha256 in sorted(gone.files.items()):
        old = _read(project, file)
        if old is None:
            continue
        is_ours = file not in shared and _sha256(old) == sha256
        (files if is_ours else kept).append(posixpath.join(lock.DRIVERS, file))
    needed = {need for one in left.values() for need in one.needs}
    if not is_dry:
        try:
            lock.write_drivers(project.sources, list(left.values()))
            for path in files:
                project.below.remove(path)
        except OSError as e:
            raise _write_error(project, e) from None
        _remove_empty(project, files)
    unneeded = [need for need in gone.needs if need in left and need not in needed]
    return {"name": driver, "files": files, "kept": kept, "unneeded": unneeded}


def _remove_empty(project: _Project, files: list) -> None:
    """Remove the folders that *files* were in, as far as nothing is left in them."""
    folders = {posixpath.dirname(path) for path in files}
    for folder in list(folders):
        while folder := posixpath.dirname(folder):
            folders.add(folder)
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):  # something else is there, or it is a link
            os.rmdir(project.sources.find_path(folder))


def rows(name: str) -> list[dict]:
    """Return [{name, version, source, needs, files: [{file, bytes, sha256, problem}]}] of the
    project *name*; problem: what is wrong with the file, or "".  Raises ``ClawError``.
    """
    project, problems = _open(name), Problems()
    pinned = {one.file: one for one in pinned_drivers.read(project.sources, problems)}
    wrong = {problem.file: problem.text() for problem in problems.found}
    found = []
    for driver in sorted(project.drivers.values(), key=lambda one: one.name):
        files = []
        for file, sha256 in sorted(driver.files.items()):
            path = posixpath.join(lock.DRIVERS, file)
            size, said = pinned[path].bytes, wrong.get(project.sources.find_path(path), "")
            files.append({"file": path, "bytes": size, "sha256": sha256, "problem": said})
        row = {"name": driver.name, "version": driver.version, "source": driver.source}
        found.append({**row, "needs": driver.needs, "files": files})
    return found


def _open(name: str) -> _Project:
    file = locate(name)
    if not os.path.isfile(file):
        raise ClawError(f"{file} is no manifest", "name claw.yaml or its folder")
    sources = Sources(os.path.dirname(file))
    return _Project(sources, lock.read_drivers(sources), Below(sources.folder or "."))


def _is_in(project: _Project, what: str) -> bool:
    """Return whether *what* is a file in the project's folder of drivers already."""
    folder = os.path.realpath(project.sources.find_path(lock.DRIVERS))
    return os.path.dirname(os.path.realpath(what)) == folder


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(project: _Project, file: str) -> bytes | None:
    """Return what the project's driver *file* holds, None when there is none."""
    path = posixpath.join(lock.DRIVERS, file)
    try:
        return project.below.read(path, mip.MAX_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as e:
        shown = project.sources.find_path(path)
        raise ClawError(
            f"{shown}: {e.strerror}", "move it away, or let this user read it"
        ) from None


def _check_conflict(
    project: _Project, package: mip.Package, file: str, data: bytes, replace: bool, changes: dict
) -> None:
    """Note in *changes*, {file: (bytes, change)}, what *package* does to *file*.  Raises
    ``ClawError`` where that would lose something, unless *replace*.
    """
    path, new = posixpath.join(lock.DRIVERS, file), _sha256(data)
    if changes.get(file, (data,))[0] != data:
        raise ClawError(
            f"two of the packages bring {file}, each another one",
            "name the packages in versions that go together",
        )
    _check_name(project, file)
    for driver in project.drivers.values():
        pinned = driver.files.get(file, new)
        if pinned != new and not replace:
            brought = f"{package.name} {package.version}".rstrip()
            raise ClawError(
                f"{path} is pinned by the driver {pinned_drivers.show(driver)}: expected SHA-256 "
                f"{pinned[:16]}..., found {new[:16]}... in {brought}",
                f"look at the difference; to take the new one: --replace; to keep the old one, "
                f"name its version: clawlite add {pinned_drivers.show(driver)}",
            )
    old = _read(project, file)
    if old is not None and old != data and not replace:
        raise ClawError(
            f"{project.sources.find_path(path)} is there, and is another file than that of "
            f"{package.name}",
            f"to write over it: --replace; to keep it: clawlite add {path}",
        )
    change = "new" if old is None else "same" if old == data else "changed"
    changes[file] = data, change


def _check_name(project: _Project, file: str) -> None:
    """Raise ``ClawError`` for a name that differs from another driver's by its case alone, because
    many disks take both for one; and for a module and a package of one name.
    """
    stem = file.removesuffix(".py").lower()
    for driver in project.drivers.values():
        for other in driver.files:
            known = other.removesuffix(".py").lower()
            said = (
                "differ by their case alone"
                if other != file and known == stem
                else "are a module and a package of one name"
                if known.startswith(stem + "/") or stem.startswith(known + "/")
                else ""
            )
            if said:
                raise ClawError(
                    f"{file} and {other} of the driver {driver.name} {said}",
                    f"clawlite remove {driver.name}, or give the file another name",
                )


def _merge(drivers: dict, found: list) -> list:
    """Return the drivers of the lock with the packages *found*; a file that these bring is theirs,
    whoever had another one.
    """
    made = {name: lock.Driver(**vars(one)) for name, one in drivers.items()}
    hashes = {file: _sha256(data) for package in found for file, data in package.files.items()}
    brought = {package.name for package in found}
    for driver in made.values():
        driver.files = {
            file: sha256
            for file, sha256 in driver.files.items()
            if hashes.get(file, sha256) == sha256
        }
    made = {name: one for name, one in made.items() if one.files and name not in brought}
    for package in found:
        files = {file: hashes[file] for file in sorted(package.files)}
        made[package.name] = lock.Driver(
            package.name, package.version, package.source, files, sorted(package.needs)
        )
    return list(made.values())


def _write(project: _Project, changes: dict, drivers: list) -> None:
    try:
        for file in changes:
            project.below.make_folders(posixpath.dirname(posixpath.join(lock.DRIVERS, file)))
        for file, (data, change) in changes.items():
            if change != "same":
                project.below.replace(posixpath.join(lock.DRIVERS, file), data)
        lock.write_drivers(project.sources, drivers)
    except OSError as e:
        raise _write_error(project, e) from None


def _write_error(project: _Project, e: OSError) -> ClawError:
    where = e.filename if isinstance(e.filename, str) else project.sources.find_path(lock.DRIVERS)
    return make_write_error(where, e, "let this user write to the folder of the project")


def _row(package: mip.Package, changes: dict) -> dict:
    files = [
        {
            "file": posixpath.join(lock.DRIVERS, file),
            "bytes": len(changes[file][0]),
            "sha256": _sha256(changes[file][0]),
            "change": changes[file][1],
        }
        for file in sorted(package.files)
    ]
    return {
        "name": package.name,
        "version": package.version,
        "source": package.source,
        "needs": package.needs,
        "files": files,
    }
