"""A turn as a record of a board's conversation (appendlog.py); loaded for one turn, and dropped.

    4 bytes   seconds since 1970, big-endian; 0 while nobody had set the clock
    4 bytes   whose turn: CRC-32 of the agent's name, the store and its part (conversation.py)
    2 bytes   n, its messages
    JSON      [[role, text], [role, text, [[id, tool, arguments as sent], ...]], ["tool", text, id, tool, failed], ...]

Retention holds for whole turns, the oldest first: what is too old, and what is beyond the newest ``max_entries`` messages, is not found any
more; it leaves the flash when the log is written anew, which is when it would grow beyond 32 KiB or twice ``max_entries``.
"""
import struct

from appendlog import MAX_PAYLOAD, append, read, rewrite, start, walk
from clawlite.core.errors import ClawError
from clawlite.core.tools import Result
from clawlite.core.turn import Message
from jsontext import dumps, loads

MAX_LOG = 32768                 # bytes
_HEAD = 10
_ALL = 1 << 30


def restore(log, history) -> str:
    """Begin *history* with the newest turns on record that a provider sees again; return what a person must know, or "".

    log  ``conversation.Conversation``
    """
    said = ""
    try:
        log.end, torn = start(log.path)
        if torn:
            said = "The conversation's log was damaged: its last %d bytes are lost." % torn
        if torn:
            log.end = rewrite(log.path, walk(log.path))
        if log.end:
            at, log.entries = _first(log, log.max_entries or _ALL, _ALL)
            if log.agent.keep_bytes:
                at = max(at, _first(log, _ALL, log.agent.keep_bytes)[0])
                history.restore(_turns(log, at))
    except (OSError, MemoryError) as e:
        said = "The conversation's log cannot be read: %s; what was said before is not known." % e
    return said


def keep(log, messages: list) -> str:
    """Append a turn; return what a person must know, or "".  One that is too long is kept without what its tools gave, and else not at all."""
    try:
        payload = _payload(log, messages)
        if len(payload) > MAX_PAYLOAD:
            messages = [messages[0], messages[-1]]
            payload = _payload(log, messages)
        if len(payload) > MAX_PAYLOAD:
            return "That turn has %d bytes, and the conversation's log takes %d: it is forgotten at the next reset." % (len(payload), MAX_PAYLOAD)
        most = (log.max_entries or _ALL) * (1 if log.truncates else 2)
        if log.end and (log.end + len(payload) > MAX_LOG - _HEAD or log.entries + len(messages) > most):
            _shorten(log, len(messages))
        log.end = append(log.path, payload, log.end)
        log.entries += len(messages)
        return ""
    except (OSError, MemoryError, ClawError, ValueError) as e:
        return "The conversation's log cannot be written: %s; this is forgotten at the next reset. Next: make room in the flash." % e


def _shorten(log, coming: int):
    """Write the log anew with what counts of the newest half."""
    most = log.max_entries or _ALL
    # A window keeps what still counts before this turn is in flash: power may go between the two.
    at, log.entries = _first(log, max(0, most // 2 - coming) if log.truncates else most, MAX_LOG // 2)
    log.end = rewrite(log.path, ((offset, length) for offset, length, _, _ in _own(log) if offset >= at))


def _payload(log, messages: list) -> bytes:
    rows = []
    for message in messages:
        row = [message.role, message.text]
        if message.calls:
            row.append([list(one) for one in message.calls])
        if message.role == "tool":
            row += [message.id, message.tool, isinstance(message.result, ClawError) or message.result.is_error]
        rows.append(row)
    return struct.pack(">IIH", int(log.epoch_s() or 0), log.key, len(rows)) + dumps(rows).encode()


def _own(log):
    """Yield (offset, length, seconds, entries) of each turn of this agent's, the oldest first."""
    for offset, length in walk(log.path):
        if length > _HEAD:
            when, key, count = struct.unpack(">IIH", read(log.path, offset, _HEAD))
            if key == log.key:
                yield offset, length, when, count


def _first(log, entries: int, size: int) -> tuple:
    """Return (offset from which on turns count, their entries): not too old, at most so many *entries*, in records of at most *size* bytes.

    A turn from a time without a clock is as old as the next one that has a time.
    """
    now, expired, here, held = log.epoch_s(), -1, 0, 0
    for offset, length, when, count in _own(log):
        here += count
        held += length + 8
        if log.max_age_s and when and now and now - when > log.max_age_s:
            expired, here, held = offset, 0, 0
    for offset, length, _, count in _own(log):
        if offset > expired:
            if here <= entries and held <= size:
                return offset, here
            here -= count
            held -= length + 8
    return log.end, 0


def _turns(log, at: int) -> list:
    """Return the turns from offset *at* on, each a list of messages."""
    turns = []
    for offset, length, _, _ in _own(log):
        if offset >= at:
            try:
                turns.append([_message(*row) for row in loads(read(log.path, offset + _HEAD, length - _HEAD))])
            except (ClawError, TypeError, ValueError):
                pass                    # of another version: it counts, and is not seen
    return turns


def _message(role: str, text: str, more=(), tool: str = "", failed: bool = False):
    if role == "tool":
        return Message(role, text, (), more, tool, Result("", failed))
    return Message(role, text, [tuple(one) for one in more])
