"""The console's conversation in a store of type conversation: it continues after a restart, and the
methods of 9.3.4 find it.

1. The first such store of the manifest has it, in the part of the agent's identity or of the
   console, depending on the store's scope.
2. A turn with an answer is stored as a whole, at once; a turn without one is not stored, nor one
   that a provider refused.  An entry is one message: {"role", "text"}, with "calls" [[id, tool,
   arguments as sent], ...] or "id", "tool", "failed".  What stands before an entry {"new": true}
   belongs to an earlier conversation.
3. When the memory fails, this is reported once, and the conversation goes on.
4. A shell calls ``restore`` before a turn and ``keep`` after it (linux/memory/conversation.py,
   stores.py of the firmware); a board loads this module at both ends.
"""

from clawlite.core.base.effect import TELL, Result
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.image.memories import CONVERSATION, PER_CHANNEL, PER_IDENTITY, ask
from clawlite.core.turns.turn import Message

MAX_MESSAGES = 400  # that are read from the store to continue with
# data of the error when an answer is too long for its way here: fewer messages may fit
TOO_LONG = {"reason": "too-long"}
# the entry with which a conversation began afresh: what stands before it is not seen again
_NEW = (None, {"new": True}, None, None)
# the least bytes that a message takes in the conversation of a provider (history.py)
_LEAST = 48


def store_of(stores: list, identity: str, channel: str = ""):
    """Return (store, part) of the console's conversation, or of the conversation NAME/ACTOR of a
    *channel*; None when there is no store for it.

    An actor's conversation is always a part of its own, whatever the scope: it is not mixed with
    anybody else's.
    """
    for store in stores:
        if store.type == CONVERSATION:
            if channel or store.scope == PER_CHANNEL:
                return store, "channel/" + (channel or "cli")
            return store, "identity/" + identity if store.scope == PER_IDENTITY else ""
    return None


def restore(place: tuple[object, str], history, keep_bytes: int):
    """A generator of effects that begins *history* with the newest turns of the store, which
    providers see again.

    place       the result of ``store_of``
    keep_bytes  bytes that *history* keeps; with 0 nothing is read
    """
    if keep_bytes:
        try:
            most, found = min(MAX_MESSAGES, keep_bytes // _LEAST), None
            while found is None:
                try:
                    found = yield from ask("query", *place, ("time-range", None, most, None))
                except ClawError as e:
                    if most < 2 or e.data != TOO_LONG:
                        raise
                    most //= 2
            history.restore(_turns(found["entries"], history))
        except ClawError as e:
            yield _warning(e, "what was said before is not known")


def keep(place: tuple[object, str], history):
    """A generator of effects that stores the turn that has ended.  A turn that is too long for the
    store is stored without its tools' results.

    ``history.end``, which shows the end of the answer, is yielded as soon as the turn is stored or
    has failed to be, and before the store is compacted.  So a process that is killed has shown
    nothing that it does not remember."""
    turn, end, history.end = history.turn, history.end, None
    if history.is_void:
        if end:
            yield end
        return
    entries = [_NEW] if history.is_new else []
    history.is_new = False
    try:
        try:
            stored = yield from ask(
                "store", *place, (None, entries + [_entry(message) for message in turn])
            )
        except InvalidParams:
            stored = yield from ask(
                "store", *place, (None, entries + [_entry(turn[0]), _entry(turn[-1])])
            )
        if end:
            end = yield end
        if stored.get("is_full"):
            from clawlite.core.memory.memory_methods import compact

            yield from compact(*place)
    except ClawError as e:
        if end:
            yield end
        if not history.is_told:
            history.is_told = True
            yield _warning(e, "this is forgotten when the agent ends")


def _warning(error, what: str) -> tuple:
    return TELL, "%s; %s.%s" % (
        error.message.rstrip("."),
        what,
        " Next: %s." % error.hint if error.hint else "",
    )


def _entry(message) -> tuple:
    """Return a message as an entry of a request: (key, content, metadata, vector)."""
    content = {"role": message.role, "text": message.text}
    if message.calls:
        content["calls"] = [list(one) for one in message.calls]
    if message.role == "tool":
        content["id"], content["tool"] = message.id, message.tool
        content["failed"] = isinstance(message.result, ClawError) or message.result.is_error
    return None, content, None, None


def messages_of(content: str) -> list:
    """Return the messages that give a provider the summary *content*."""
    return [
        Message("user", "What was said before, in short: " + content),
        Message("assistant", "I remember."),
    ]


def _turns(entries: list, history) -> list:
    """Return the complete turns in *entries*, each a list of messages, and give *history* the
    summary among them.  Entries that an operator stored are no messages and are skipped.

    A turn begins with a person's message, ends with an assistant's that makes no call, and has a
    result for each call."""
    turns, turn, open_calls = [], [], 0
    for entry in entries:
        content = entry["content"]
        if content == _NEW[1]:
            turns, turn, open_calls, history.summary = [], [], 0, []
            history.is_cut = True
            continue
        if isinstance(content, str) and entry.get("metadata", {}).get("summary_of"):
            history.summary = messages_of(content)
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
    if not isinstance(content, dict) or content.get("role") not in ("user", "assistant", "tool"):
        return None
    calls, texts = (
        content.get("calls", []),
        [content.get("text"), content.get("id", ""), content.get("tool", "")],
    )
    for call in calls if isinstance(calls, list) else (0,):
        if not isinstance(call, list) or len(call) != 3:
            return None
        texts += call
    for text in texts:
        if not isinstance(text, str):
            return None
    text, id, tool = texts[:3]
    role = content["role"]
    result = Result("", content.get("failed") is True) if role == "tool" else None
    return Message(
        role,
        text,
        [tuple(call) for call in calls] if role == "assistant" else (),
        id,
        tool,
        result,
    )
