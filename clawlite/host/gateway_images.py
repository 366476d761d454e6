"""The images that a gateway knows: of the projects that it was started with, by the digest that a device tells.

1. A folder with a claw.yaml is a project; one without is looked into, one level deep; a file is an image.
2. Of a project counts what its claw.cbor holds, and what its manifest compiles to now: a build is the same bytes on every machine.
3. An unknown digest has everything read anew, at most every ``_AGAIN_S``: somebody may have built and flashed meanwhile.
"""
import os
import time

from clawlite.core import image as layout
from clawlite.core.errors import ClawError
from clawlite.host import compiler, manifest

MAX_IMAGE = 16 << 20
_AGAIN_S = 5
_KEPT = 64                      # decoded tools and rules of an image that stay in memory


class Images:
    """What was found below *paths*.

    note   function(text): what cannot be read is told, once each time
    clock  function -> seconds
    Raises ``ClawError`` when a path does not exist.
    """

    def __init__(self, paths: list, note, clock=time.monotonic):
        for path in paths:
            if not os.path.exists(path):
                raise ClawError(f"{path} does not exist", "name the folder of a project, or a folder of them")
        self._paths, self._note, self._clock = paths, note, clock
        self._found = {}
        self._read_at = None
        self._told = set()
        self.read()

    def find(self, digest: str):
        """Return the ``image.Image`` with this digest, 64 hex digits, or None."""
        if digest not in self._found and self._clock() - self._read_at >= _AGAIN_S:
            self.read()
        return self._found.get(digest)

    def agents(self) -> list[str]:
        """Return the names of the agents that are known, sorted."""
        return sorted({image.agent.name for image in self._found.values()})

    def read(self) -> None:
        """Read everything anew.  What is known stays: a device may run it still."""
        self._read_at = self._clock()
        for path in self._paths:
            if os.path.isfile(path):
                self._try(path, self._image)
                continue
            inside = [os.path.join(path, name) for name in sorted(os.listdir(path))]
            projects = [path] if _is_project(path) else [folder for folder in inside if _is_project(folder)]
            for folder in projects:
                self._try(folder, self._project)

    def _try(self, path: str, take) -> None:
        try:
            take(path)
        except (ClawError, OSError) as e:
            if str(e) not in self._told:
                self._told.add(str(e))
                self._note(f"{path}: {e}")

    def _project(self, folder: str) -> None:
        built = os.path.join(folder, "claw.cbor")
        if os.path.exists(built):
            self._try(built, self._image)
        if os.path.exists(os.path.join(folder, "claw.yaml")):
            self._add(compiler.build(manifest.load(folder)).data)

    def _image(self, path: str) -> None:
        with open(path, "rb") as file:
            self._add(file.read(MAX_IMAGE))

    def _add(self, data: bytes) -> None:
        image = layout.Image(lambda offset, length: data[offset:offset + length], len(data), _KEPT)
        self._found.setdefault(image.read(image.seal_at + 7, 32).hex(), image)


def _is_project(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in ("claw.yaml", "claw.cbor"))
