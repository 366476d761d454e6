"""The drivers of a project: what clawlite.lock pins, compared with the files in ``drivers``."""

import hashlib
import posixpath
import shlex
from typing import NamedTuple

from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import Problems
from clawlite.host.documents import lock
from clawlite.host.documents.sources import Refused, Sources


class Pinned(NamedTuple):
    """One file of a driver: the module, or the package, that is imported for it, the file's name
    from the manifest's folder, its size, and its ``lock.Driver``.
    """

    module: str
    file: str
    bytes: int
    driver: lock.Driver


def read(sources: Sources, problems: Problems) -> list[Pinned]:
    """Return the files of all drivers, by name; one that is missing or is not what the lock pins
    is a problem.
    """
    try:
        drivers = lock.read_drivers(sources)
    except Refused as e:
        problems.add(LinePlace(sources.find_path(lock.FILE)), (), e.message, hint=e.hint)
        return []
    found = {}
    for driver in drivers.values():
        for name, sha256 in driver.files.items():
            file = posixpath.join(lock.DRIVERS, name)
            if file not in found:
                size = _compare(sources, file, sha256, driver, problems)
                module = name.partition("/")[0].removesuffix(".py")
                found[file] = Pinned(module, file, size, driver)
    return [found[file] for file in sorted(found)]


def list_rows(pinned: list[Pinned], imported: list) -> list[dict]:
    """Return [{file, name, version, bytes, used}] of *pinned*, for what a build shows.

    imported  names of the files that tools.py imports
    """
    return [
        {
            "file": one.file,
            "name": one.driver.name,
            "version": one.driver.version,
            "bytes": one.bytes,
            "used": one.file in imported,
        }
        for one in pinned
    ]


def show(driver: lock.Driver) -> str:
    """Return the driver's name and version, as ``clawlite add`` takes them."""
    return f"{driver.name}@{driver.version}" if driver.version else driver.name


def again(driver: lock.Driver) -> str:
    """Return what brings the pinned files of *driver* back."""
    from clawlite.host.drivers import mip  # brings an HTTP client

    source = driver.source
    if not source.startswith(("github:", "gitlab:", "https:", "http:")):
        return f"take {source} from where you have it"
    if source.startswith("http") and not source.endswith((".py", ".json")):  # an index
        index = "" if source == mip.INDEX else f" --index {shlex.quote(source)}"
        return f"clawlite add {shlex.quote(show(driver))}{index} --replace"
    return f"clawlite add {shlex.quote(source)} --replace"


def _compare(sources: Sources, file: str, sha256: str, driver, problems: Problems) -> int:
    """Return the size of *file*; 0, after a problem, when it is not what is pinned."""
    place = LinePlace(sources.find_path(file))
    if not sources.exists(file):
        problems.add(
            place,
            (),
            f"{lock.FILE} names it as a file of the driver {show(driver)}, and it is not there",
            hint=f"bring it back: {again(driver)}; or: clawlite remove {shlex.quote(driver.name)}",
        )
        return 0
    try:
        data = sources.read(file)
    except Refused as e:
        problems.add(place, (), e.message, hint=e.hint)
        return 0
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        problems.add(
            place,
            (),
            f"it is not what {lock.FILE} pins for the driver {show(driver)}",
            f"SHA-256 {sha256[:16]}...",
            f"{found[:16]}...",
            f"to have the pinned one: {again(driver)}; to keep this one: clawlite add {file}",
        )
        return 0
    return len(data)
