"""The console's conversation in a store of type conversation: it goes on after a restart.

1. The first such store of the manifest has it, in the part of the agent's identity or of the console, as its scope says.
2. A turn that has its answer is stored whole, in one commit; what a turn left undone is not.  An entry is one message:
   {"role", "text"}, with "calls" [[id, tool, arguments as sent], ...] or "id", "tool", "failed".
3. Context files (Identity.context_files) are read when a turn begins: what memory-write wrote, the one in the workspace, where a tool may
   write it, else the maker's beside the image.  What is not there is left out.
4. A memory that fails is said once, and the agent goes on talking.
"""
import os

from clawlite.core.effect import TELL
from clawlite.core.errors import ClawError
from clawlite.core.memories import CONVERSATION, PER_CHANNEL, PER_IDENTITY
from clawlite.core.turn import Message
from clawlite.linux.memory_files import read_below
from clawlite.core.memory_methods import ask, compact

MAX_FILE, MAX_FILES = 16384, 32768       # bytes that are read of a context file, and of all of them
MAX_MESSAGES = 400              # of the store, that are read to go on with
WRITTEN = "MEMORY.md"           # by memory-write (builtin_memory.py)
_CHANNEL = "channel/cli"


class Outcome:
    """What is left of a tool's result: whether it failed."""

    def __init__(self, is_error: bool):
        self.is_error = is_error


def store_of(stores: list, identity: str, channel: str = ""):
    """Return (store, part) of the console's conversation, or of NAME/ACTOR of a *channel*; None when there is no store for it.

    An actor's conversation is a part of its own whatever the scope: nobody else's is mixed into it.
    """
    for store in stores:
        if store.type == CONVERSATION:
            if channel:
                return store, "channel/" + channel
            own = "identity/" + identity if store.scope == PER_IDENTITY else ""
            return store, _CHANNEL if store.scope == PER_CHANNEL else own
    return None


def preface(files: list, folders: tuple, own: str = "") -> list:
    """Return the messages that say what the context *files* [[name, path], ...] hold, each in the first of *folders* that has it; [] when none has.

    own  the folder whose MEMORY.md the tool memory-write writes: it comes before another of that name
    """
    texts, left = [], MAX_FILES
    for name, path in files:
        for folder in (own, *folders) if own and path == WRITTEN else folders:
            data = _read(folder, path, min(MAX_FILE, left) + 1)
            if data is None or folder == own and not data:         # made, and nothing written yet
                continue
            cut = " (its beginning)" if len(data) > min(MAX_FILE, left) else ""
            data = data[:min(MAX_FILE, left)]
            left -= len(data)
            texts.append("## %s: %s%s\n\n%s" % (name, path, cut, data.decode("utf-8", "replace").strip()))
            break
    if not texts:
        return []
    return [Message("user", "What follows is in files that you are given.\n\n" + "\n\n".join(texts)), Message("assistant", "I have read them.")]


def _read(folder: str, path: str, most: int):
    """Return the beginning of a file, or None.  No link is followed: a tool may have made one in the workspace, to what only the agent may read."""
    try:
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return read_below(root, path.split("/"), most)[0]
        finally:
            os.close(root)
    except OSError:
        return None


def lasting(work, place: tuple, history):
    """A generator of effects around a turn's *work*: it begins with what was said in earlier sessions, and stores what is said now.

    place  what ``store_of`` returned;  history  ``history.History`` of *work*
    """
    store, part = place
    if not history.is_restored:
        history.is_restored = True
        try:
            found = yield from ask("query", store, part, ("time-range", (0, 1 << 60), MAX_MESSAGES, None))
            history.restore(_turns(found["entries"]))
        except ClawError as e:
            yield _told(e, "what was said before is not known")
    clean = yield from work
    entries = [(None, _content(message), None, None) for message in history.turn]
    try:
        stored = yield from ask("store", store, part, (None, entries))
        if stored.get("is_full"):
            yield from compact(store, part)
    except ClawError as e:
        if not history.is_told:
            history.is_told = True
            yield _told(e, "this is forgotten when the agent ends")
    return clean


def _told(error, what: str) -> tuple:
    return TELL, "%s; %s.%s" % (error.message.rstrip("."), what, " Next: %s." % error.hint if error.hint else "")


def _content(message) -> dict:
    content = {"role": message.role, "text": message.text}
    if message.calls:
        content["calls"] = [list(one) for one in message.calls]
    if message.role == "tool":
        content["id"], content["tool"] = message.id, message.tool
        content["failed"] = isinstance(message.result, ClawError) or message.result.is_error
    return content


def _turns(entries: list) -> list:
    """Return the whole turns in *entries*, each a list of messages; what an operator stored there is no message, and is passed over.

    A turn begins with a person's message, ends with an assistant's that asks for nothing, and has a result for each call.
    """
    turns, turn, open_calls = [], [], 0
    for entry in entries:
        content = entry["content"]
        if isinstance(content, str) and entry.get("metadata", {}).get("summary_of"):
            turns.append([Message("user", "What was said before, in short: " + content), Message("assistant", "I remember.")])
            continue
        message = _message(content)
        if message is None:
            continue
        if message.role == "user":
            turn, open_calls = [message], 0
        elif turn:
            turn.append(message)
            open_calls += len(message.calls) - (message.role == "tool")
            if message.role == "assistant" and not message.calls and not open_calls:
                turns.append(turn)
                turn = []
    return turns


def _message(content):
    """Return the message in *content*, or None."""
    if not isinstance(content, dict) or not isinstance(content.get("text"), str):
        return None
    role, calls = content.get("role"), content.get("calls", [])
    if not isinstance(calls, list):
        return None
    for call in calls:
        if not isinstance(call, list) or len(call) != 3 or not isinstance(call[0], str) or not isinstance(call[1], str) or not isinstance(call[2], str):
            return None
    id, tool = content.get("id", ""), content.get("tool", "")
    if role not in ("user", "assistant", "tool") or not isinstance(id, str) or not isinstance(tool, str):
        return None
    result = Outcome(content.get("failed") is True) if role == "tool" else None
    return Message(role, content["text"], [tuple(call) for call in calls] if role == "assistant" else (), id, tool, result)
