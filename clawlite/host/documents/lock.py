"""clawlite.lock: the documents of other registries, word for word, with their SHA-256, and the
drivers that the project has added.  The file is beside the manifest and belongs under version
control with it.

    version = 1
    [[document]]        one for each claw://registry/ URI of the manifest, sorted
    uri, url, sha256, text
    [[driver]]          one for each package of ``clawlite add``, sorted
    name, version, source, needs
    [driver.files]      {file in the folder ``drivers``: SHA-256}

1. A build reads the documents only from this file, so the same folder gives the same image on every
   machine, without a network.
2. ``registries.pin`` adds missing documents.  A text that does not match its hash is refused,
   because somebody has changed the file.
3. The files of drivers lie in the folder ``drivers``.  Who reads a driver compares it with its
   hash (host/drivers/pinned_drivers.py).
"""

import dataclasses
import functools
import hashlib
import re

from clawlite.core.base.errors import ClawError
from clawlite.host.base.document import MAX_BYTES
from clawlite.host.base.problems import enquote, make_write_error
from clawlite.host.base.regular_file import open_regular
from clawlite.host.base.toml_text import read_toml
from clawlite.host.base.without_links import replace_named
from clawlite.host.documents.sources import Refused, Sources

FILE = "clawlite.lock"
DRIVERS = "drivers"  # the folder of their files, beside the manifest
MAX_DRIVER_FILES = 64  # of one package
# a module, or one in a package: at most three folders
IS_MODULE = re.compile(
    r"(?:[A-Za-z_][A-Za-z0-9_]{0,63}/){0,3}[A-Za-z_][A-Za-z0-9_]{0,63}\.py\Z", re.ASCII
)
_IS_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_MEND = "bring back the file that clawlite wrote, or remove it and build again"
MAX_LOCK = MAX_BYTES  # of the file: a server may list 1,000 tools, of many kilobytes each


@dataclasses.dataclass
class Entry:
    """One document: its canonical URI, where it came from, the SHA-256 of its text in hex, and
    the text.
    """

    uri: str
    url: str
    sha256: str
    text: str


@dataclasses.dataclass
class Driver:
    """One package of drivers.

    name     of the package; version: "" where nobody says one
    source   where it came from: the URL of an index or a file, or a path
    files    {name of a file in ``DRIVERS``: the SHA-256 of its bytes, in hex}
    needs    names of packages that it depends on
    """

    name: str
    version: str
    source: str
    files: dict
    needs: list = dataclasses.field(default_factory=list)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@functools.lru_cache(maxsize=1)
def _decode(data: bytes) -> dict:
    """Return what *data* says: one build reads its lock three times, and a long one takes 0.1 s."""
    return read_toml(data.decode())


def read(sources: Sources) -> dict[str, Entry]:
    """Return {URI: Entry} of the lock beside the manifest, {} when there is none.  Raises
    ``Refused`` (message, hint).
    """
    path = sources.find_path(FILE)
    entries = _check_shape(path, _load(sources), "document", _entry)
    for entry in entries:
        if digest(entry.text) != entry.sha256:
            raise Refused(
                f"{path}: the text of {enquote(entry.uri)} does not match its SHA-256: it "
                f"was changed",
                _MEND,
            )
    return {entry.uri: entry for entry in entries}


def read_drivers(sources: Sources) -> dict[str, Driver]:
    """Return {name: Driver} of the lock, {} when there is none.  Raises ``Refused``."""
    path, found, hashes = sources.find_path(FILE), {}, {}
    for driver in _check_shape(path, _load(sources), "driver", _driver):
        if driver.name in found:
            raise Refused(f"{path} has two drivers {enquote(driver.name)}", _MEND)
        found[driver.name] = driver
        for name, sha256 in driver.files.items():
            if hashes.setdefault(name, sha256) != sha256:
                raise Refused(f"{path} has two hashes of {DRIVERS}/{name}", _MEND)
    return found


def _load(sources: Sources) -> dict:
    """Return what the lock says, {} when there is none.  Raises ``Refused``."""
    path = sources.find_path(FILE)
    sources.check_place(FILE, path)
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(MAX_LOCK + 1)
        sources.facts["file", path] = data
    except FileNotFoundError:
        sources.facts["present", path] = False
        return {}
    except OSError as e:
        raise Refused(
            f"{path}: {e.strerror}",
            "make it readable, or remove it: the next build writes it again",
        ) from None
    try:
        if len(data) > MAX_LOCK:
            raise ValueError(f"more than {MAX_LOCK:,} bytes")
        found = _decode(data)
        if found.get("version") != 1:
            raise ValueError(f"version {found.get('version')}, expected 1")
    except ValueError as e:
        raise Refused(f"{path} cannot be read: {e}", _MEND) from None
    return found


def _check_shape(path: str, found: dict, key: str, shape) -> list:
    try:
        return [shape(each) for each in found.get(key, [])]
    except (ValueError, TypeError, AttributeError) as e:
        raise Refused(f"{path} cannot be read: {e}", _MEND) from None


def _entry(each: dict) -> Entry:
    return Entry(**{key: str(value) for key, value in each.items()})


def _driver(each: dict) -> Driver:
    made = Driver(**each)
    texts = [made.name, made.version, made.source, *made.needs, *made.files.values()]
    if not all(isinstance(text, str) for text in texts) or not isinstance(made.needs, list):
        raise ValueError(f"the driver {made.name!r} has another shape")
    if not made.files or len(made.files) > MAX_DRIVER_FILES:
        raise ValueError(f"the driver {made.name!r} has {len(made.files)} files")
    for name, sha256 in made.files.items():
        if not IS_MODULE.match(name) or not _IS_SHA256.match(sha256):
            raise ValueError(f"the driver {made.name!r} has the file {name!r}: {sha256!r:.80}")
    return made


def write(sources: Sources, entries: list[Entry]) -> None:
    """Write the documents of the lock, whole or not at all; its drivers stay.  Raises
    ``ClawError``, also for one that ``read`` would refuse.
    """
    _save(sources, entries, list(read_drivers(sources).values()))


def write_drivers(sources: Sources, drivers: list[Driver]) -> None:
    """Write the drivers of the lock; its documents stay.  Raises as ``write`` does."""
    _save(sources, list(read(sources).values()), drivers)


def _save(sources: Sources, entries: list, drivers: list) -> None:
    import tomli_w

    path = sources.find_path(FILE)
    made: dict = {
        "version": 1,
        "document": [
            dataclasses.asdict(entry) for entry in sorted(entries, key=lambda entry: entry.uri)
        ],
    }
    if drivers:
        made["driver"] = [
            dataclasses.asdict(driver) for driver in sorted(drivers, key=lambda one: one.name)
        ]
    # the text in one line: a multi-line string would lose its first newline, and CRs
    data = tomli_w.dumps(made).encode()
    if len(data) > MAX_LOCK:
        raise ClawError(
            f"{path} would have {len(data):,} bytes; it may have at most {MAX_LOCK:,}",
            "name fewer documents of registries, fewer servers, or remove drivers",
        )
    try:
        replace_named(path, data)
    except OSError as e:
        raise make_write_error(path, e, "make its folder writable") from None
