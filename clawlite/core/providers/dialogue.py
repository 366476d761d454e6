"""A conversation as every server takes it, whatever was interrupted, failed or came from others.

1. It begins with a user's message.  User and assistant alternate: templates of models (Mistral's,
   Gemma's) raise an error otherwise.
2. Each call has its result directly behind it, and each result its call.
3. Calls have different ids.  An id from another server than the one that is asked becomes nine
   letters and digits: Mistral takes nothing else, Anthropic [a-zA-Z0-9_-], OpenAI 40 characters.
4. What an answer has for its own server alone is left out for another.
5. Messages that are so already are passed on, not copied.
"""

from binascii import crc32

from clawlite.core.base.errors import InvalidRequest
from clawlite.core.turns.turn import Message

# what stands where a turn ended without a word: it failed, was interrupted, or the model was silent
NO_ANSWER = "(No answer was given.)"
NO_QUESTION = "(No message.)"
NO_RESULT = "it is not known what this call gave: the turn ended"
_ID = 9  # letters and digits
_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_LOCAL = "local-"  # how ids begin that history.py made


def compose(messages: list, reader: str, is_plain: bool = False) -> list:
    """Return *messages* (``turn.Message``) in such a form.

    reader    ``Provider.key`` of the one that gets them
    is_plain  bool, it takes no ids but those of rule 3, its own neither
    """
    composed, ids, at = [], {}, 0
    while at < len(messages):
        message = messages[at]
        at += 1
        last = composed[-1] if composed else None
        if message.role == "user":
            if last is not None and (last.role != "assistant"):
                composed.append(Message("assistant", NO_ANSWER))
            if not message.text.strip():
                message = message.copy(NO_QUESTION, ())
            composed.append(message)
        elif message.role == "assistant" and (message.calls or message.text.strip()):
            if last is None:
                composed.append(Message("user", NO_QUESTION))
            elif last.role == "assistant":  # it had no calls
                message = message.copy(last.text + "\n\n" + message.text, message.calls)
                composed.pop()
            end = at
            while end < len(messages) and messages[end].role == "tool":
                end += 1
            _add(composed, message, messages[at:end], ids, reader, is_plain)
            at = end
        # a result without its call, and an answer without a word, are left out
    return composed


def _add(composed: list, message, results: list, ids: dict, reader: str, is_plain: bool):
    """Add an assistant's *message* and its *results* to *composed*.

    ids  the ids that are taken
    """
    is_own = message.owner == reader
    calls, answers = [], []
    for key, name, raw in message.calls:
        new = key
        if (
            not is_own
            and len(key) != _ID
            or key in ids
            or key[: len(_LOCAL)] == _LOCAL
            or (is_plain or not is_own)
            and key.encode().strip(_PLAIN)
        ):
            new = _make_id(key, ids)
        ids[new] = True
        calls.append((new, name, raw))
        answers.append(_answer(results, key, new, name))
    if message.opaque and not is_own:
        message = message.copy(message.text, calls)
        message.opaque = ()
    elif calls != list(message.calls):
        message = message.copy(message.text, calls)
    composed.append(message)
    composed.extend(answers)


def _answer(results: list, key: str, new: str, name: str):
    """Return the message with the result of call *key*, and take it out of *results*."""
    for number in range(len(results)):
        if results[number].id == key:
            found = results.pop(number)
            if new != key:
                found = found.copy(found.text, ())
                found.id = new
            return found
    return Message("tool", NO_RESULT, (), new, name, InvalidRequest(NO_RESULT))


def _make_id(key: str, ids: dict) -> str:
    """Return an id of nine letters and digits for *key*: the same one in each request, so that what
    the provider has cached of an earlier one stays of use.
    """
    number = crc32(key.encode())
    while True:
        new = "c%08x" % (number & 0xFFFFFFFF)
        if new not in ids:
            return new
        number += 1
