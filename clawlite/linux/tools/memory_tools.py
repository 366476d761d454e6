"""Handlers of memory-read and memory-write: MEMORY.md in the agent's state folder.

It is the agent's own file, in a folder that no file tool reaches, so nothing but these two tools,
and the person who owns the agent, ever writes it.  Paragraphs are what blank lines part.  Adding is
one write under a lock; replacing is a rename."""

import fcntl
import os

from clawlite.core.base.errors import ClawError
from clawlite.core.base.text import decode_utf8
from clawlite.linux.files.files import replace_file
from clawlite.linux.files.regular_file import open_regular

FILE = "MEMORY.md"
MAX_MEMORY = 1048576  # bytes of the file


def run(name: str, arguments: dict, state: str) -> str:
    """Run *name* on MEMORY.md in the folder *state*; return the text of its result.  Raises
    ``ClawError``.
    """
    path = os.path.join(state, FILE)
    try:
        return read(path, **arguments) if name == "memory-read" else write(path, **arguments)
    except OSError as e:
        raise ClawError("%s: %s" % (path, e.strerror)) from None


def read(path: str, query: str = "") -> str:
    """Return all of the memory, or the paragraphs that hold every word of *query*, whatever the
    case.
    """
    text = _text(path)
    words = query.casefold().split()
    if not words:
        return text if text.strip() else "nothing is remembered yet"
    found = [
        paragraph
        for paragraph in paragraphs(text)
        if all(word in paragraph.casefold() for word in words)
    ]
    return (
        "\n\n".join(found)
        or "nothing that is remembered has all of these words; try fewer, or none for everything"
    )


def write(path: str, content: str, mode: str = "append") -> str:
    """Add *content* as a paragraph, or replace everything."""
    try:
        data = content.strip("\n").encode() + b"\n"
    except UnicodeEncodeError as e:
        raise ClawError(
            "content holds half of a character (a lone surrogate) at position %d; "
            "leave it out" % e.start
        ) from None
    fd = _open_locked(path)
    try:
        size = os.fstat(fd).st_size if mode == "append" else 0
        if size:
            data = (b"\n" if os.pread(fd, 1, size - 1) == b"\n" else b"\n\n") + data
        if len(data) > MAX_MEMORY - size:
            raise ClawError(
                "the memory would have more than %d bytes; overwrite it with what is "
                "still worth it" % MAX_MEMORY
            )
        if mode == "append":
            _append(fd, data, size)
        else:
            _replace(path, data)
    finally:
        os.close(fd)
    return (
        "remembered, %d bytes in all" % (size + len(data))
        if mode == "append"
        else "remembered in place of everything, %d bytes" % len(data)
    )


def _open_locked(path: str) -> int:
    """Return a descriptor of the file that *path* is while the lock is held: another writer may
    replace it meanwhile.
    """
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX)
        try:
            if os.path.samestat(os.fstat(fd), os.stat(path)):
                return fd
        except FileNotFoundError:
            pass
        os.close(fd)


def _append(fd: int, data: bytes, size: int):
    """Write *data* at the end, whole or not at all."""
    written = os.pwrite(fd, data, size)
    if written < len(data):  # a disk that is full
        os.ftruncate(fd, size)
        raise ClawError("the disk is full; nothing was remembered")


def _replace(path: str, data: bytes):
    replace_file(path, data)


def paragraphs(text: str) -> list:
    """Return the paragraphs of *text*: lines that are not blank, in rows."""
    found, lines = [], []
    for line in text.splitlines() + [""]:
        if line.strip():
            lines.append(line)
        elif lines:
            found.append("\n".join(lines))
            lines = []
    return found


def _text(path: str) -> str:
    try:
        with open(path, "rb", opener=open_regular) as file:
            data = file.read(MAX_MEMORY + 1)
    except FileNotFoundError:
        return ""
    if len(data) > MAX_MEMORY:
        raise ClawError("%s has more than %d bytes; make it shorter" % (path, MAX_MEMORY))
    try:
        return decode_utf8(data)
    except UnicodeDecodeError as e:
        raise ClawError("%s is no UTF-8 text (byte %d); mend it" % (path, e.start)) from None
