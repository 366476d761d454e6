"""A folder as the file system of a board: a mounted card or drive, or the folder of a virtual
board.  No link in it is followed.
"""

import errno
import hashlib
import os
import shutil
import zlib

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import CommandFailed, disk_hint
from clawlite.host.base.without_links import Below
from clawlite.host.flash.plan import DATA, FOLDERS, NEW_NAME, RECORD, SLOTS, TOP, BoardState

# bytes after the body of an image, unsigned and signed (core/image/image.py)
_SEALS = (40, 73)


class Folder:
    """Carries steps of a flash out below *root*; each is on the disk before the next begins."""

    where = "folder"
    next = None

    def __init__(self, root: str):
        if not os.path.isdir(root):
            raise ClawError(f"{root}: no such folder", "mount the card first, or make the folder")
        self.name = root
        self._files = Below(root)
        self.boards, self.is_virtual = [], False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def read_state(self) -> BoardState:
        """Return what is there.  Raises ``ClawError``."""
        files = {}
        try:
            for folder in ("", *FOLDERS):
                for name in self.names(folder):
                    path = f"{folder}/{name}"
                    ours = folder or name.startswith("claw") or name in TOP
                    if ours and self._files.is_file(path):
                        files[path] = self.digest(path)
            records = [self.read(path) for path in (RECORD, RECORD + ".new") if path in files]
            whole = [
                slot
                for slot in SLOTS
                if f"/claw-{slot}.cbor" in files and is_whole(self.read(f"/claw-{slot}.cbor"))
            ]
        except OSError as e:
            raise _make_error(e) from None
        return BoardState(
            files,
            tuple(whole),
            tuple(records),
            shutil.disk_usage(self.name).free,
            tuple(folder for folder in FOLDERS if self._files.is_folder(folder)),
        )

    def read(self, path: str, limit: int = -1) -> bytes:
        return self._files.read(path, limit)

    def pieces(self, path: str):
        """Yield a whole file."""
        yield self.read(path)

    def digest(self, path: str) -> str:
        with open(self._files.open(path), "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def names(self, folder: str) -> list:
        """Return the contents of *folder*; nothing when it does not exist."""
        return self._files.names(folder) if self._files.is_folder(folder) else []

    def digests(self, paths: list) -> dict:
        """Return {path: SHA-256} of files that are there."""
        return {path: self.digest(path) for path in paths if self._files.is_file(path)}

    def do(self, step: tuple, tell=lambda size: None) -> None:
        """Carry one step out, all but "verify".  tell: function(bytes that went).  Raises
        ``ClawError``.
        """
        what, path = step[:2]
        try:
            if what == "mkdir":
                self._files.mkdir(path)
            elif what == "rename":
                self._files.rename(path, step[NEW_NAME])
            elif what == "remove":
                self._files.remove(path)
            else:
                self.write(path, step[DATA])
                tell(len(step[DATA]) if what == "write" else 0)
            self._files.sync(os.path.dirname(path))
        except OSError as e:
            raise _make_error(e) from None

    def write(self, path: str, data: bytes) -> None:
        self._files.write(path, data)

    def boot(self):
        """Return None: a folder does not show whether the board boots."""


def is_whole(image: bytes) -> bool:
    """Return whether an image has a right CRC."""
    for size in _SEALS:
        end = len(image) - size
        if (
            end > 0
            and image[end : end + 1] == b"\x44"
            and int.from_bytes(image[end + 1 : end + 5], "big") == zlib.crc32(image[:end])
        ):
            return True
    return False


def _make_error(e: OSError) -> ClawError:
    hint = disk_hint(e.errno) or "get write permission"
    if e.errno == errno.ELOOP:
        hint = "remove it: a file system of a board has no links"
    return CommandFailed(
        f"{e.filename or 'the folder'}: {e.strerror}; the previous agent still boots",
        hint + ", and flash again",
    )
