"""What a case expects, entry by entry: all of them must hold.

An entry that has ``id`` speaks of the reply to that request (``REPLY``); the others speak of the
run as a whole (``RUN``). *seen* is a run: ``wire.Seen``, ``clock.Seen`` or one of their like.  A
word that nobody knows is an error, never passed over."""

import json

from ckp import expect_run
from ckp.process import same


def check(seen, entry: dict) -> None:
    """Raise AssertionError when *entry* does not hold for *seen*."""
    said = _reply(seen, dict(entry)) if "id" in entry else expect_run.problem(seen, dict(entry))
    assert not said, "%s\nexpected: %s\ngot: %s" % (said, json.dumps(entry), seen)


def awaited(entries: list) -> list:
    """Return, for each reply that *entries* need, the list of ids of which one will do."""
    ids = []
    for entry in entries:
        if "id" in entry:
            ids.append(entry["id"] if isinstance(entry["id"], list) else [entry["id"]])
        for word in ("order", "same_result", "batch_ids"):
            ids += [[id] for id in entry.get(word, ())]
    return ids


def unknown(entry: dict) -> set:
    """Return the words of *entry* that nobody checks."""
    if "id" not in entry:
        return expect_run.unknown(entry)
    return set(entry) - set(REPLY) - {"id"}


def _reply(seen, entry: dict) -> str:
    ids = entry.pop("id")
    found = [
        message
        for _, message in seen.replies()
        if any(same(message.get("id"), id) for id in (ids if isinstance(ids, list) else [ids]))
    ]
    if not found:
        refusal = seen.refusal() if "error_any" in entry else None
        if refusal is None:
            return "no reply"
        # refused before there could be a session: its words are the error
        found = [{"error": {"message": refusal}}]
    if len(found) > 1:
        return "%d replies to one request" % len(found)
    return "; ".join(
        filter(None, (REPLY[word](found[0], value, seen, entry) for word, value in entry.items()))
    )


def subset(part, whole) -> bool:
    """Return whether *part* is in *whole*: keys of objects, members of arrays in any order, and
    equal values of one type.
    """
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(
            key in whole and subset(value, whole[key]) for key, value in part.items()
        )
    if isinstance(part, list):
        return isinstance(whole, list) and all(
            any(subset(one, other) for other in whole) for one in part
        )
    return same(part, whole)


def _error(message, codes, seen, entry):
    codes = codes if isinstance(codes, list) else [codes]
    return "" if message.get("error", {}).get("code") in codes else "another outcome"


def _text(message) -> str:
    return "".join(block.get("text", "") for block in message.get("result", {}).get("content", ()))


def _path_in(message, path, seen, entry):
    value = message.get("result")
    for key in path[:-1]:
        value = value.get(key) if isinstance(value, dict) else None
    return "" if value in path[-1] else "%s is %r" % (path[0], value)


def _entries(message, wanted, seen, entry):
    found = message.get("result", {}).get("entries")
    if not isinstance(found, list):
        return "no entries"
    if entry.get("ordered"):
        return (
            ""
            if len(found) >= len(wanted) and all(map(subset, wanted, found))
            else "other entries, or another order"
        )
    return "" if subset(wanted, found) else "other entries"


def _connected_only_to(message, address, seen, entry):
    return (
        ""
        if "error" in message or set(seen.connects()) == {address}
        else "connected to %s" % seen.connects()
    )


def _holds(fact) -> str:
    return "" if fact else "not so"


# word -> function(reply, value, seen, entry): what is wrong, or ""
REPLY = {
    "error": _error,
    "error_any": lambda message, _, seen, entry: _holds("error" in message),
    "data": lambda message, data, seen, entry: _holds(
        subset(data, message.get("error", {}).get("data"))
    ),
    "message_contains": lambda message, words, seen, entry: _holds(
        all(word in message["error"]["message"] for word in words)
    ),
    "reply": lambda message, _, seen, entry: "",
    "result": lambda message, part, seen, entry: _holds(
        "result" in message and subset(part, message["result"])
    ),
    "result_exact": lambda message, part, seen, entry: _holds(
        all(message.get("result", {}).get(key) == value for key, value in part.items())
    ),
    "result_path_in": _path_in,
    "has": lambda message, names, seen, entry: _holds(
        all(name in message.get("result", {}) for name in names)
    ),
    "text_contains": lambda message, text, seen, entry: _holds(
        "result" in message and text in _text(message)
    ),
    "text_excludes": lambda message, texts, seen, entry: _holds(
        "result" in message and not any(text in _text(message) for text in texts)
    ),
    "entries": _entries,
    "exact_count": lambda message, count, seen, entry: _holds(
        len(message.get("result", {}).get("entries", ())) == count
    ),
    "ordered": lambda message, _, seen, entry: "",  # read by "entries"
    "error_or_result": lambda message, part, seen, entry: _holds(
        "error" in message or subset(part, message["result"])
    ),
    "error_or_isError": lambda message, _, seen, entry: _holds(
        "error" in message or message["result"].get("isError") is True
    ),
    "error_or_connected_only_to": _connected_only_to,
}
