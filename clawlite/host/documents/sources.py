"""The files of a manifest: found, bounded, read once, kept for the source hash.

1. Names are relative to the manifest's folder, with "/", on every system.  Absolute names are
   refused: an image must not depend on where its maker's folder lies.
2. A plain name may lead out of the folder, by ``..`` or by a link, only into folders that the user
   allows (several robots share ../common/identity.yaml).  So a manifest from somebody else cannot
   read other files.  A glob never leads out, because nobody can review what it will match next
   year.
3. Globs: ``*``, ``?``, ``[...]`` in one part, ``**`` for folders (links to folders are not
   followed, so none can loop); sorted; names that begin with a dot only when the pattern does.
"""

import codecs
import fnmatch
import os
import posixpath
import re

from clawlite.core.base.errors import ClawError
from clawlite.host.base import yaml_text
from clawlite.host.base.document import MAX_BYTES, Document
from clawlite.host.base.problems import ManifestErrors, did_you_mean, enquote
from clawlite.host.base.regular_file import open_regular

MAX_FILES = 1000  # read for one manifest
ALLOW = "CLAWLITE_ALLOW_FOLDERS"  # the environment variable with folders, separated as in $PATH
MAX_SCANNED = 20_000  # folder entries that one glob may look at
_GLOB = re.compile(r"[*?\[]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[A-Za-z]:[\\/]")


class Refused(ClawError):
    """A reference that cannot be read."""


class Sources:
    """files: {name: bytes} of everything read so far.  *allowed*: folders beside
    ``$CLAWLITE_ALLOW_FOLDERS`` that names may lead into.
    """

    def __init__(self, folder: str, allowed=()):
        self.folder = folder  # as the user wrote it, for messages; "" is the current one
        named = [one for one in os.environ.get(ALLOW, "").split(os.pathsep) if one]
        self._roots = [os.path.realpath(one) for one in (folder or ".", *allowed, *named)]
        self.files = {}
        self.facts = {}  # {(kind, path): what was found}: the facts on which a build depends
        self._documents = {}

    def find_path(self, name: str) -> str:
        """Return *name* as the user would open it."""
        return os.path.normpath(os.path.join(self.folder, name))

    def read(self, name: str, limit: int = MAX_BYTES) -> bytes:
        """Return the bytes of file *name*; raises Refused when it is missing, no plain file or
        above *limit* bytes.
        """
        name = posixpath.normpath(name)
        if name in self.files:
            return self.files[name]
        if len(self.files) >= MAX_FILES:
            raise Refused(f"more than {MAX_FILES} files", "name fewer files, or join some")
        path = self.find_path(name)
        try:
            self.check_place(name, path)
            if not os.path.isfile(path):
                raise Refused(*self._missing(name, path))
            with open(path, "rb", opener=open_regular) as file:
                data = file.read(limit + 1)
        except (OSError, ValueError) as e:
            hint = "let this user read it" if isinstance(e, PermissionError) else ""
            raise Refused(
                f"cannot read {enquote(name)}: {getattr(e, 'strerror', None) or e}", hint
            ) from None
        if len(data) > limit:
            raise Refused(
                f"{enquote(name)} has more than {limit:,} bytes", "make it smaller, or divide it"
            )
        if data.startswith(codecs.BOM_UTF8):  # of Windows' editors; Python and YAML skip it, too
            data = data[len(codecs.BOM_UTF8) :]
        self.files[name] = data
        self.facts["file", path] = data
        return data

    def check_place(self, name: str, path: str) -> None:
        """Raise Refused for a file outside the folders; nothing of it, not even whether it is
        there, has been told by then.
        """
        real = os.path.realpath(path)
        if not any((real + os.sep).startswith(os.path.join(root, "")) for root in self._roots):
            where = os.path.dirname(path) if name.startswith("../") else os.path.dirname(real)
            raise Refused(
                f"{enquote(name)} lies outside the manifest's folder",
                f"move it there, or {_hint_to_allow(where)}",
            )

    def exists(self, name: str) -> bool:
        path = self.find_path(name)
        found = self.facts["present", path] = os.path.lexists(path)
        return found

    def _missing(self, name: str, path: str) -> tuple:
        if os.path.isdir(path):
            hint = "name the files: " + name.rstrip("/") + "/*.yaml"
            if name.endswith(".py"):
                hint = "give the folder another name: the functions are in a file"
            return f"{enquote(name)} is a folder", hint
        if os.path.islink(path):
            return (
                f"{enquote(name)} is a link that leads nowhere",
                "make what it leads to, or name another file",
            )
        if os.path.exists(path):
            return (
                f"{enquote(name)} is not a regular file",
                "copy its content into a file, and name that",
            )
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            return (
                f"the file {enquote(name)} does not exist",
                f"there is no folder {enquote(folder)}",
            )
        near = did_you_mean(os.path.basename(path), sorted(os.listdir(folder))[:1000])
        return (
            f"the file {enquote(name)} does not exist",
            near or "write it, or name one that is there",
        )

    def document(self, name: str, problems) -> Document:
        """Return the Document in file *name*, or None after its syntax problem has been added to
        *problems*.
        """
        name = posixpath.normpath(name)
        if name not in self._documents:
            data = self.read(name)
            try:
                self._documents[name] = yaml_text.read(data, self.find_path(name))
            except ManifestErrors as e:
                problems.extend(e)
                self._documents[name] = None
        return self._documents[name]

    def expand(self, reference: str) -> list:
        """Return the file names that *reference* stands for: itself, or what a glob matches,
        sorted; raises Refused.
        """
        if "\0" in reference or "\\" in reference or len(reference) > 1024:
            raise Refused(f"{enquote(reference)} is no file name", 'folders are separated by "/"')
        if _SCHEME.match(reference) or reference.startswith(("/", "~")):
            raise Refused(
                f"{enquote(reference)} is no file beside the manifest",
                "write the path from the manifest's folder: ./...",
            )
        if not is_glob(reference) or self.exists(reference):
            return [reference]
        names = self._glob(reference)
        if not names:
            raise Refused(
                f"{enquote(reference)} matches no file", self._hint_at_unmatched(reference)
            )
        return names

    def _hint_at_unmatched(self, pattern: str) -> str:
        """Return the next step for a glob that matches nothing."""
        folder = self.find_path(posixpath.normpath(re.split(r"[^/]*[*?\[]", pattern)[0] or "."))
        try:
            os.listdir(folder)
        except FileNotFoundError:
            above = os.path.dirname(folder) or "."
            beside = (
                [
                    one
                    for one in sorted(os.listdir(above))[:1000]
                    if os.path.isdir(os.path.join(above, one))
                ]
                if os.path.isdir(above)
                else []
            )
            return (
                did_you_mean(os.path.basename(folder), beside)
                or f"there is no folder {enquote(folder)}"
            )
        except OSError as e:
            return f"{enquote(folder)} cannot be listed: {e.strerror}"
        return "write one there, or take this out"

    def _glob(self, pattern: str) -> list:
        parts = [part for part in pattern.split("/") if part not in ("", ".")]
        if ".." in parts:
            raise Refused(
                f"{enquote(pattern)} leaves the manifest's folder",
                "name files outside of it one by one, and " + _hint_to_allow("FOLDER"),
            )
        root = os.path.realpath(self.folder or ".")
        self._scanned = 0
        names = set()
        for name in self._match("", parts):
            real = os.path.realpath(os.path.join(root, name))
            found = self.facts["plain", self.find_path(name)] = os.path.isfile(real)
            if found:
                if os.path.commonpath([root, real]) != root:
                    raise Refused(
                        f"{enquote(pattern)} matches {enquote(name)}, a link out of the "
                        f"manifest's folder",
                        f"name that file itself, and {_hint_to_allow(os.path.dirname(real))}",
                    )
                names.add(name)
        return sorted(names)

    def _match(self, folder: str, parts: list):
        if not parts:
            yield folder
            return
        part, rest = parts[0], parts[1:]
        if not is_glob(part):
            yield from self._match(posixpath.join(folder, part), rest)
            return
        if part == "**":
            yield from self._match(folder, rest)
        for name, is_folder in self._entries(folder):
            below = posixpath.join(folder, name)
            if part == "**":
                if is_folder and not name.startswith("."):
                    yield from self._match(below, parts)
            elif fnmatch.fnmatchcase(name, part) and (
                not name.startswith(".") or part.startswith(".")
            ):
                if is_folder or not rest:
                    yield from self._match(below, rest)

    def _entries(self, folder: str) -> list:
        """Return [(name, is a real folder)] of *folder*, sorted."""
        path, found = os.path.join(self.folder or ".", folder), []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    self._scanned += 1
                    if self._scanned > MAX_SCANNED:
                        raise Refused(
                            f"the glob looks at more than {MAX_SCANNED:,} files",
                            "name a folder in it",
                        )
                    found.append((entry.name, entry.is_dir(follow_symlinks=False)))
        except OSError:
            found = []
        self.facts["folder", path] = found
        return sorted(found)


def _hint_to_allow(folder: str) -> str:
    return f"allow its folder: --allow-folder {folder} (check, build), or ${ALLOW}"


def is_glob(text: str) -> bool:
    return bool(_GLOB.search(text))
