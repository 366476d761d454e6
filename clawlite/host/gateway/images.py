"""The images that a gateway knows: of the projects that it was started with, by the digest that a
device tells; a device is held to its own.

1. A folder with a claw.yaml is a project; one without is looked into, one level deep; a file is an
   image.
2. Of a project counts what its claw.cbor holds, and what its manifest compiles to now: a build is
   the same bytes on every machine.
3. An unknown digest has everything read anew, at most every ``_AGAIN_S``: somebody may have built
   and flashed meanwhile.
4. What a device was seen to run is kept: when its project has become another since, it goes on
   under what it runs.  That counts for agents of the projects alone.  What is nowhere is refused:
   no device gets the rules of another image.
"""

import os
import re
import shlex
import time

from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.host.base.regular_file import make_private, open_regular
from clawlite.host.base.without_links import replace_named
from clawlite.host.compiler import compiler
from clawlite.host.image.image_reader import read_checked
from clawlite.host.manifest import manifest

MAX_IMAGE = 16 << 20
_AGAIN_S = 5
_KEPT = 64  # decoded tools and rules of an image that stay in memory
# of those that devices were seen to run; the ones that were seen last
MAX_IMAGES = 64
_DIGEST = re.compile("[0-9a-f]{64}")


class Images:
    """What was found below *paths*.

    note   function(text): what cannot be read is told, once each time
    clock  function -> seconds
    seen   folder for the images that devices were seen to run, or None
    Raises ``ClawError`` when a path does not exist.
    """

    def __init__(self, paths: list, note, clock=time.monotonic, seen: str = None):
        for path in paths:
            if not os.path.exists(path):
                raise ClawError(
                    f"{path} does not exist", "name the folder of a project, or a folder of them"
                )
        self._paths, self._note, self._clock = paths, note, clock
        self._seen = seen
        self._found, self._data = {}, {}  # digest -> Image, its bytes
        self._now = {}  # where it is -> (agent, digest) of what a project is now
        self._again_at = None  # before then an unknown digest has nothing read anew
        self._told = set()
        self.read()

    def find(self, digest: str):
        """Return the ``image.Image`` with this digest, 64 hex digits, or None."""
        if digest not in self._found and (
            self._again_at is None or self._clock() >= self._again_at
        ):
            self._again_at = self._clock() + _AGAIN_S
            self.read()
        if digest not in self._found and self._seen and _DIGEST.fullmatch(digest):
            path = os.path.join(self._seen, digest)
            if os.path.exists(path):
                self._try(path, self._read_seen)
        return self._found.get(digest)

    def path(self, digest: str) -> str:
        """Return the file of the image with this digest, which ``ran`` has kept."""
        return os.path.join(self._seen or "", digest)

    def ran(self, digest: str) -> None:
        """Keep the image with this digest, which ``find`` has found: a device runs it."""
        path = os.path.join(self._seen or "", digest)
        try:
            if self._seen and not os.path.exists(path):
                make_private(self._seen)
                replace_named(path, self._data[digest])
            if self._seen:
                os.utime(path)
                kept = sorted(os.scandir(self._seen), key=lambda entry: entry.stat().st_mtime_ns)
                for entry in kept[:-MAX_IMAGES]:
                    os.remove(entry.path)
        except OSError as e:
            self._tell(path, e)

    def is_now(self, digest: str) -> bool:
        """Return whether this is what a project is now."""
        return digest in [now for _, now in self._now.values()]

    def refusal(self, digest: str, agent, port: str = None) -> ProviderError:
        """Return what to tell a device whose image is nowhere.

        agent  its agent's name, as it says; port: of the serial line to it, if it is one
        """
        for path, (name, now) in self._now.items():
            if name == agent:
                flash = f"clawlite flash {shlex.quote(path)}" + (f" --port {port}" if port else "")
                return ProviderError(
                    f"this device runs image {digest[:12]} of {name}, and the "
                    f"gateway knows none of {name} but {now[:12]}",
                    f"{'end the gateway, and ' if port else ''}{flash}; or name "
                    f"the folder of {digest[:12]} to the gateway",
                )
        known = ", ".join(sorted({f"{name} {now[:12]}" for name, now in self._now.values()})[:4])
        return ProviderError(
            f"the gateway knows no project whose image is {digest[:12]}; it "
            f"knows {known or 'none'}",
            "clawlite gateway FOLDER, with the folder of that image",
        )

    def agents(self) -> list[str]:
        """Return the names of the agents that are known, sorted."""
        return sorted({image.agent.name for image in self._found.values()})

    def current(self) -> dict:
        """Return {agent: ``image.Image``} of what the projects are now; of two with one name the
        later.
        """
        return {name: self._found[digest] for name, digest in self._now.values()}

    def places(self) -> list:
        """Return [(folder or file, ``image.Image``), ...] of what the projects are now."""
        return [(path, self._found[digest]) for path, (_, digest) in self._now.items()]

    def read(self) -> None:
        """Read everything anew.  What is known stays: a device may run it still."""
        for path in self._paths:
            if os.path.isfile(path):
                self._try(path, self._image)
                continue
            inside = [os.path.join(path, name) for name in sorted(os.listdir(path))]
            projects = (
                [path]
                if _is_project(path)
                else [folder for folder in inside if _is_project(folder)]
            )
            for folder in projects:
                self._try(folder, self._project)

    def _try(self, path: str, take) -> None:
        try:
            take(path)
        except (ClawError, OSError) as e:
            self._tell(path, e)

    def _tell(self, path: str, e: Exception) -> None:
        if str(e) not in self._told:
            self._told.add(str(e))
            self._note(f"{path}: {e}")

    def _project(self, folder: str) -> None:
        built = os.path.join(folder, "claw.cbor")
        if os.path.exists(built):
            self._try(built, lambda path: self._image(path, folder))
        if os.path.exists(os.path.join(folder, "claw.yaml")):
            self._add(compiler.build(manifest.load(folder)).data, folder)

    def _image(self, path: str, folder: str = None) -> None:
        with open(path, "rb", opener=open_regular) as file:
            self._add(file.read(MAX_IMAGE), folder or path)

    def _read_seen(self, path: str) -> None:
        with open(path, "rb", opener=open_regular) as file:
            digest, image, data = _open_image(file.read(MAX_IMAGE))
        if digest == os.path.basename(path) and image.agent.name in [
            name for name, _ in self._now.values()
        ]:
            self._found[digest], self._data[digest] = image, data

    def _add(self, data: bytes, path: str) -> None:
        digest, image, data = _open_image(data)
        self._found.setdefault(digest, image)
        self._data.setdefault(digest, data)
        self._now[path] = image.agent.name, digest


def _open_image(data: bytes) -> tuple:
    """Return (digest, ``image.Image``, data).  Raises ``ClawError``: also when the digest is not
    that of the rest.
    """
    image = read_checked(data, keep=_KEPT)
    return data[image.seal_at + 7 :][:32].hex(), image, data


def _is_project(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in ("claw.yaml", "claw.cbor"))
