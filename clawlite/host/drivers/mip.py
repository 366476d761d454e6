"""Packages as mip, MicroPython's installer, knows them: by a name in its index, as
``github:ORG/REPO``, by the URL of a package.json or a .py, or as a file here.

    INDEX/package/py/NAME/VERSION.json      {"v", "version", "hashes", "urls", "deps"}
    INDEX/file/XX/HASH                      a file, by the first characters of its SHA-256

1. Only sources are taken; each must be Python, and have the hash that the index says.
2. What came over HTTPS names nothing that comes without.
3. Everything is bounded: files, bytes, packages.  Nothing is written here.
"""

import ast
import codecs
import hashlib
import json
import os
import posixpath
import re
import warnings
from typing import NamedTuple
from urllib import parse

from clawlite.core.base.errors import ClawError
from clawlite.host.base import fetching
from clawlite.host.base.problems import did_you_mean, enquote
from clawlite.host.base.regular_file import open_regular
from clawlite.host.documents.lock import MAX_DRIVER_FILES
from clawlite.host.drivers import names

INDEX = "https://micropython.org/pi/v2"
VARIABLE = "CLAWLITE_MIP_INDEX"  # the environment variable with another index
MAX_FILE = 131072  # bytes of one driver: a board has less room
MAX_PACKAGE = 65536  # bytes of a package.json
MAX_PACKAGES = 16  # that one package depends on
_MAX_URL = 2000  # characters
_MAX_INDEX = 4 << 20
_FORMAT = 1
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,63}\Z")
_HASH = re.compile(r"[0-9a-f]{8,64}\Z")
_HOSTED = re.compile(r"(?:[A-Za-z0-9._-]+/)+[A-Za-z0-9._-]+\Z")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
# where the files of a repository are: owner, repository, branch or tag, path
HOSTS = {
    "github": "https://raw.githubusercontent.com/{}/{}/{}/{}",
    "gitlab": "https://gitlab.com/{}/{}/-/raw/{}/{}",
}
_OFFLINE = "try again later; what is in the folder drivers builds without a network"


class Package(NamedTuple):
    """What one package brings.

    files  {name: bytes};  needs  names of packages;  source  as the lock has it
    """

    name: str
    version: str
    source: str
    files: dict
    needs: list


class _Place(NamedTuple):
    """Where a package is: its URL, the branch or tag that it was asked with, whether plain HTTP
    will do, and how a person writes it.
    """

    url: str
    branch: str
    is_plain: bool
    shown: str


def find(what: str, index: str | None = None) -> list[Package]:
    """Return the package *what* and all that it depends on, itself first.

    what   NAME, NAME@VERSION, github:ORG/REPO@TAG, a URL, or a file
    index  its URL; None: ``$CLAWLITE_MIP_INDEX``, else ``INDEX``
    Raises ``ClawError``.
    """
    if is_file(what):
        return [_local(what)]
    finder = _Finder((index or os.environ.get(VARIABLE) or INDEX).rstrip("/"))
    finder.add(what, "", ())
    return finder.found


def is_file(what: str) -> bool:
    """Return whether *what* means a file of this computer."""
    return not _SCHEME.match(what) and (
        what.endswith((".py", ".mpy")) or "/" in what or os.sep in what or what in (".", "..")
    )


def read_source(data: bytes, name: str, whose: str) -> bytes:
    """Return *data* without a byte order mark.  Raises ``ClawError`` when it is no Python."""
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(data.decode(), name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        line = f", line {e.lineno}" if isinstance(e, SyntaxError) and e.lineno else ""
        raise ClawError(
            f"{whose}: {name} is no Python source: {getattr(e, 'msg', None) or e}{line}",
            "name the file itself, not a page that shows it",
        ) from None
    return data


def _local(path: str) -> Package:
    name = os.path.basename(path)
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(MAX_FILE + 1)
    except (OSError, ValueError) as e:
        said = getattr(e, "strerror", None) or e
        raise ClawError(f"{path}: {said}", "name a file .py, or a driver of mip's index") from None
    names.check_file(name, path)
    if len(data) > MAX_FILE:
        raise ClawError(f"{path} has more than {MAX_FILE:,} bytes", "make it smaller, or divide it")
    return Package(name[: -len(".py")], "", name, {name: read_source(data, name, path)}, [])


class _Finder:
    """found: the packages so far, each after what it depends on is asked for."""

    def __init__(self, index: str):
        self._index, self.found, self._asked = index, [], {}

    def add(self, what: str, version: str, way: tuple, above: _Place | None = None) -> str:
        """Add the package *what* and those it needs; return its name.

        version  "" where nobody asks for one
        way      names of the packages that led here;  above  the place of the last of them
        """
        is_named = not _SCHEME.match(what)
        if is_named:
            what, _, own = what.partition("@")
            version = own or version
        name = what if is_named else _name_of(what)
        if name in way:
            raise ClawError(
                f"the packages {' -> '.join([*way, name])} depend on each other in a circle",
                "ask who publishes them, or name their files one by one",
            )
        known = self._asked.setdefault(name, (what, version))
        asked = {one for one in (known[1], version) if one not in ("", "latest")}
        if known[0] != what or len(asked) > 1:
            first, second = ("@".join(filter(None, one)) for one in (known, (what, version)))
            raise ClawError(
                f"{name} is asked for twice: as {first} and as {second}",
                "name the packages in versions that go together",
            )
        if any(package.name == name for package in self.found):
            return name
        if len(self.found) >= MAX_PACKAGES:
            raise ClawError(
                f"{way[0]} depends on more than {MAX_PACKAGES} packages", "name fewer at once"
            )
        at = len(self.found)
        made, deps, place = self._read(what, name, version, is_named, above)
        self.found.insert(at, made)
        for dep, dep_version in deps:
            made.needs.append(self.add(dep, dep_version, (*way, name), place))
        return name

    def _read(self, what: str, name: str, version: str, is_named: bool, above) -> tuple:
        """Return (the ``Package`` without its needs, what it depends on, its ``_Place``)."""
        if is_named:
            return self._ask_index(name, version)
        place = _place(what, version, above)
        if place.url.endswith(".py"):
            file = posixpath.basename(parse.urlsplit(place.url).path)
            names.check_file(file, place.shown)
            source = self._source(place.url, file, place)
            return Package(name, place.branch, place.shown, {file: source}, []), [], place
        found = _package(_get(place.url, MAX_PACKAGE, place), place.shown)
        files = self._files(found, place)
        made = Package(name, found["version"] or place.branch, place.shown, files, [])
        return made, found["deps"], place

    def _ask_index(self, name: str, version: str) -> tuple:
        if not _NAME.match(name) or version and not _VERSION.match(version):
            raise ClawError(
                f"expected the name of a driver, NAME or NAME@VERSION, a file .py, github:ORG/REPO "
                f"or a URL, found {enquote(f'{name}@{version}' if version else name)}",
                "such as: clawlite add bme280",
            )
        url = f"{self._index}/package/py/{name}/{version or 'latest'}.json"
        is_plain = self._index.lower().startswith("http:")
        place = _Place(url, "", is_plain, f"{name}@{version}" if version else name)
        try:
            data = _get(url, MAX_PACKAGE, place)
        except fetching.Missing:
            raise self._unknown(name, version) from None
        found = _package(data, url)
        files = self._files(found, place)
        made = Package(name, found["version"] or version, self._index, files, [])
        return made, found["deps"], place

    def _unknown(self, name: str, version: str) -> ClawError:
        """Return the error for a package that the index lacks; what it has is looked up."""
        known = []
        try:
            place = _Place("", "", self._index.lower().startswith("http:"), "")
            found = _json(_get(f"{self._index}/index.json", _MAX_INDEX, place), self._index)
            known = [one["name"] for one in found["packages"] if isinstance(one["name"], str)]
        except (ClawError, LookupError, TypeError):
            pass
        if name in known:
            return ClawError(
                f"{self._index} has no version {version} of {name}",
                f"take the latest: clawlite add {name}",
            )
        return ClawError(
            f"{self._index} has no driver {enquote(name)}",
            did_you_mean(name, known) or "check the name; or name a file, a URL or github:ORG/REPO",
        )

    def _files(self, found: dict, place: _Place) -> dict:
        rows = [(name, sha256, "") for name, sha256 in found["hashes"]]
        rows += [(name, "", url) for name, url in found["urls"]]
        if len(rows) > MAX_DRIVER_FILES:
            raise ClawError(
                f"{place.shown} brings {len(rows)} files, expected at most {MAX_DRIVER_FILES}",
                "name the files that are needed one by one",
            )
        if not rows and not found["deps"]:
            raise ClawError(f"{place.shown} brings no file", "ask who publishes it")
        seen: set = set()
        for name, _, _ in rows:
            names.check_file(name, place.shown)
            if name.lower() in seen:
                raise ClawError(f"{place.shown} brings {name} twice", "ask who publishes it")
            seen.add(name.lower())
        return {name: self._file(name, sha256, url, place) for name, sha256, url in rows}

    def _file(self, name: str, sha256: str, url: str, place: _Place) -> bytes:
        if not url:
            if not _HASH.match(sha256):
                raise ClawError(
                    f"{place.shown}: the hash of {name} is {enquote(sha256)}, expected 8 or more "
                    "hexadecimal digits",
                    "tell the operator of that index",
                )
            return self._source(f"{self._index}/file/{sha256[:2]}/{sha256}", name, place, sha256)
        if not _SCHEME.match(url):
            url = f"{place.url.rpartition('/')[0]}/{url}"
        return self._source(_place(url, place.branch, place).url, name, place)

    def _source(self, url: str, name: str, place: _Place, sha256: str = "") -> bytes:
        data = _get(url, MAX_FILE, place)
        found = hashlib.sha256(data).hexdigest()
        if not found.startswith(sha256):
            raise ClawError(
                f"{place.shown}: {name} is not what its index says: expected SHA-256 {sha256}..., "
                f"found {found[: max(len(sha256), 16)]}... at {url}",
                "tell the operator of that index; nothing was written",
            )
        return read_source(data, name, place.shown)


def _place(what: str, branch: str, above: _Place | None = None) -> _Place:
    """Return where *what*, github:... or a URL, is; *above*: the package that names it, or None
    for a person.
    """
    scheme, _, rest = what.partition(":")
    if scheme in HOSTS:
        path, _, own = rest.partition("@")
        if not _HOSTED.match(path) or {"..", "."} & set(path.split("/")):
            raise ClawError(
                f"expected {scheme}:OWNER/REPOSITORY, found {enquote(what)}",
                f"such as: clawlite add {scheme}:OWNER/REPOSITORY@TAG",
            )
        tag = own or branch or "HEAD"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,99}", tag) or ".." in tag:
            raise ClawError(f"{enquote(tag)} is no branch or tag", "such as @v1.2 or @main")
        owner, repository, *inside = path.split("/")
        file = _json_of("/".join(inside))
        url = HOSTS[scheme].format(owner, repository, tag, file)
        return _Place(url, "" if tag == "HEAD" else tag, url.startswith("http:"), what)
    split = _split(what)
    if split.scheme.lower() not in ("https", "http") or not split.hostname:
        raise ClawError(
            f"expected https://, github:, gitlab:, a name or a file, found {enquote(what)}",
            "name where the driver is",
        )
    if split.username or split.password:
        raise ClawError("the URL has a password in it, which clawlite.lock would show to all",
            "name a URL without one, or fetch the file and add that")  # fmt: skip
    is_plain = split.scheme.lower() == "http"
    if is_plain and above is not None and not above.is_plain:
        raise ClawError(
            f"{above.shown} names {what}, which is not https", "ask who publishes it for https"
        )
    url = _json_of(what)
    return _Place(url, branch, is_plain, url)


def _split(url: str):
    try:
        if len(url) > _MAX_URL:
            raise ValueError(f"more than {_MAX_URL:,} characters")
        return parse.urlsplit(url)
    except ValueError as e:  # half of an IPv6 address
        raise ClawError(f"{url[:80]} is no URL: {e}", "name where the driver is") from None


def _json_of(path: str) -> str:
    """Return *path*, as mip has it, with the file that it means."""
    if path.endswith((".py", ".mpy", ".json")):
        return path
    return f"{path.rstrip('/')}/package.json".lstrip("/")


def _name_of(what: str) -> str:
    """Return what a package that is no name in an index is called: after its file or folder."""
    rest = what.partition(":")[2]
    path = rest.partition("@")[0] if what.partition(":")[0] in HOSTS else _split(what).path
    parts = [part for part in path.split("/") if part]
    if parts and parts[-1].endswith(".json"):
        parts.pop()
    name = parts[-1] if parts else ""
    if name.endswith(".mpy"):
        names.check_file(name, what)
    name = name.removesuffix(".py")
    if path and not _NAME.match(name):
        raise ClawError(
            f"expected a URL that ends with the name of a driver, found {enquote(what)}",
            "name its file .py or the folder of its package.json",
        )
    return name


def _get(url: str, limit: int, place: _Place) -> bytes:
    return fetching.fetch(url, limit, _OFFLINE, may_be_plain=place.is_plain)


def _json(data: bytes, url: str) -> dict:
    try:
        found = json.loads(data)
        if not isinstance(found, dict):
            raise ValueError(f"it is a {type(found).__name__}")
        return found
    except (ValueError, RecursionError) as e:
        raise ClawError(
            f"{url}: expected the JSON of a package, found something else: {str(e)[:200]}",
            "check the address; it may be a page for people",
        ) from None


def _package(data: bytes, url: str) -> dict:
    """Return {version, hashes, urls, deps} of a package.json; each but the first is [(text, text)].
    Raises ``ClawError``.
    """
    found = _json(data, url)
    try:
        if found.get("v", _FORMAT) != _FORMAT:
            raise ValueError(f"v: expected {_FORMAT}, found {found['v']!r:.40}")
        made = {"version": found.get("version", "")}
        if made["version"] != "" and not _VERSION.match(str(made["version"])):
            raise ValueError(f"version: expected one such as 1.2.0, found {made['version']!r:.80}")
        made["version"] = str(made["version"])
        for key in ("hashes", "urls", "deps"):
            made[key] = [_pair(key, row) for row in found.get(key) or ()]
    except (TypeError, ValueError) as e:
        raise ClawError(
            f"{url} is no package of mip: {e}", "tell who publishes it, or name its file"
        ) from None
    return made


def _pair(key: str, row) -> tuple:
    texts = row if isinstance(row, list) else ()
    if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{key}: expected two texts, found {row!r:.80}")
    return tuple(texts)
