"""Images, sounds and blobs that a tool of an MCP server gives: files in the workspace, where the
tools of the agent may write there.

1. /workspace/mcp/SERVER-XXXXXXXX.EXT: the number is random, the ending comes from a short list,
   and what the server says of a name counts nothing.
2. ``file_scope.Scope`` decides whether it may be written, as for write-file: its mounts, its denied
   paths, the room of the workspace.  Links that tools have made lead nowhere else.
3. The folder has at most ``MAX_FILES`` files and ``MAX_BYTES``: no server fills a disk.  Nothing in
   it is overwritten or removed.
4. It is written before anything else goes on: 16 ms for 3 MiB (x86_64), which is the most that a
   message can hold.  So one result makes few files (protocols/mcp/mcp_client.py).
5. What cannot be kept is named with its type and size, and the call goes on.
"""

import binascii
import os

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.linux.files.file_scope import Scope
from clawlite.linux.tools.file_tools import keep_file

FOLDER = "/workspace/mcp"
MAX_FILES, MAX_BYTES = 200, 64 << 20
NOT_KEPT = "not shown"
_ENDINGS = {
    "application/json": "json",
    "application/pdf": "pdf",
    "application/zip": "zip",
    "audio/mpeg": "mp3",
    "audio/ogg": "ogg",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/svg+xml": "svg",
    "image/webp": "webp",
    "text/csv": "csv",
    "text/plain": "txt",
    "video/mp4": "mp4",
}
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


def keep_content(
    profile, workspace: str, hidden: list, most, owner, server: str, kind: str, coded: str
) -> str:
    """Return where the content is kept, in words for a model, or why it is not.

    profile, workspace, hidden, most  as of ``file_scope.Scope``;  owner: as of ``keep_file``
    kind   media type, or "";  coded: base64
    """
    try:
        data = binascii.a2b_base64(coded)
    except ValueError:
        return NOT_KEPT
    name = "".join([c if c in _PLAIN else "-" for c in server])[:32]
    ending = _ENDINGS.get(kind.partition(";")[0].strip().lower(), "bin")
    path = "%s/%s-%s.%s" % (FOLDER, name, os.urandom(8).hex(), ending)
    try:
        os.makedirs(workspace, 0o700, exist_ok=True)
        scope = Scope(profile, workspace, hidden, None, most)
        keep_file(scope, path, data, lambda folder: _check(folder, len(data)), owner)
    except SandboxDenied:
        return NOT_KEPT
    except ClawError as e:
        return "not kept: " + e.message
    except OSError as e:
        return "not kept: " + (e.strerror or "it cannot be written")
    return "in " + path


def _check(folder: int, size: int):
    """Raise ``ClawError`` when the folder has no room for a file of *size* bytes."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        with os.scandir(fd) as entries:
            sizes = [entry.stat(follow_symlinks=False).st_size for entry in entries]
    finally:
        os.close(fd)
    if len(sizes) >= MAX_FILES or sum(sizes) + size > MAX_BYTES:
        raise ClawError(
            "%s has at most %d files and %d bytes; remove some" % (FOLDER, MAX_FILES, MAX_BYTES)
        )
