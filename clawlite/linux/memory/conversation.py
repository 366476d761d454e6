"""What comes around a turn on Linux: context files before it, and the console's conversation in its
store (core/memory/conversation.py).

Context files (Identity.context_files) are read when a turn begins: what memory-write wrote, the one
in the workspace, where a tool may write it, else the maker's beside the image.  What is not there
is left out."""

import os

from clawlite.core.base.errors import ClawError
from clawlite.core.image.memories import SUMMARIZE, ask
from clawlite.core.memory.conversation import MAX_MESSAGES, keep, messages_of, restore
from clawlite.core.turns.turn import Message
from clawlite.linux.memory.workspace_store import read_below

MAX_FILE, MAX_FILES = 16384, 32768  # bytes that are read of a context file, and of all of them
WRITTEN = "MEMORY.md"  # by memory-write (linux/tools/memory_tools.py)


def preface(files: list, folders: tuple, own: str = "") -> list:
    """Return the messages that say what the context *files* [[name, path], ...] hold, each in the
    first of *folders* that has it; [] when none has.

    own  the folder whose MEMORY.md the tool memory-write writes: it comes before another of that
         name
    """
    texts, left = [], MAX_FILES
    for name, path in files:
        for folder in (own, *folders) if own and path == WRITTEN else folders:
            data = _read(folder, path, min(MAX_FILE, left) + 1)
            if data is None or folder == own and not data:  # made, and nothing written yet
                continue
            cut = " (its beginning)" if len(data) > min(MAX_FILE, left) else ""
            data = data[: min(MAX_FILE, left)]
            left -= len(data)
            texts.append(
                "## %s: %s%s\n\n%s" % (name, path, cut, data.decode("utf-8", "replace").strip())
            )
            break
    if not texts:
        return []
    return [
        Message("user", "What follows is in files that you are given.\n\n" + "\n\n".join(texts)),
        Message("assistant", "I have read them."),
    ]


def _read(folder: str, path: str, most: int):
    """Return the beginning of a file, or None.  No link is followed: a tool may have made one in
    the workspace, to what only the agent may read.
    """
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return read_below(root, path.split("/"), most)[0]
        finally:
            os.close(root)
    except OSError:
        return None


def lasting(work, place: tuple, history, keep_bytes: int):
    """A generator of effects around a turn's *work*: it begins with what was said in earlier
    sessions, and stores what is said now.

    place  what ``store_of`` returned;  history  ``history.History`` of *work*, which has
           *keep_bytes*
    """
    if not history.is_restored:
        history.is_restored = True
        yield from restore(place, history, keep_bytes)
        if place[0].compaction == SUMMARIZE and keep_bytes and not history.is_cut:
            yield from _restore_summary(place, history)
    history.is_kept = True
    clean = yield from work
    yield from keep(place, history)
    return clean


def _restore_summary(place: tuple, history):
    """A generator of effects that puts the summary, the oldest entry, before what was restored,
    where that does not reach back to it.
    """
    try:
        answer = yield from ask("query", *place, ("first", None, MAX_MESSAGES, None))
    except ClawError:  # ``restore`` has said it
        return
    oldest = answer["entries"][0] if answer.get("truncated") else {}
    # an operator's may be anything
    if oldest.get("metadata", {}).get("summary_of") and isinstance(oldest["content"], str):
        history.summary = messages_of(oldest["content"])
