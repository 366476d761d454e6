"""Import of the turns that an older version kept in ``conversation.log`` into the log of the
stores, once (ADR 0040); loaded when there is such a file.

    4 bytes   seconds since 1970, big-endian; 0 while nobody had set the clock
    4 bytes   the owner of the turn: CRC-32 of the agent's name, the store and its part
    2 bytes   number of messages
    JSON      [[role, text], [role, text, [[id, tool, arguments as sent], ...]], ["tool", text, id,
              tool, failed], ...]

A turn becomes an ordinary record under the id OLD.  It carries the CRC-32 of the old record, so
that the import continues at the right place after a power cut.  Then the old file is removed,
unless it has turns of other agents on this board.  A turn that cannot be imported is reported, and
the agent begins without it."""

import os
import struct
import sys
from binascii import crc32

from appendlog import TORN, read, rewrite, start, walk
from clawlite.core.memory.conversation import store_of
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.image.memories import stores
from storelog import ENTRIES, HEAD, HEAD_BYTES, limit, records
from storewrite import OLD, as_text, put

_HEAD = 10


def take(log, path: str):
    """Add the turns of this agent in the old log at *path* to the log of ``stores.Stores``, the
    oldest first.
    """
    image = log.agent.image
    store, part = store_of(stores(image), image.agent.identity)
    key = crc32(("%s\n%s\n%s" % (image.agent.name, store.name, part)).encode())
    limit(log, store)
    try:
        lost = start(path)[TORN]
        done = _last(log)
        # True: begin with the first turn
        here = not [offset for offset, _ in walk(path) if _mark(path, offset) == done]
        for offset, length in walk(path):
            if here and _is_of(path, offset, key):
                lost += _turn(log, store, part, read(path, offset, length), _mark(path, offset))
            here = here or _mark(path, offset) == done
        for offset, _ in walk(path):
            if not _is_of(path, offset, key):
                rewrite(path, (place for place in walk(path) if not _is_of(path, place[0], key)))
                break
        else:
            os.remove(path)
        if lost:
            sys.stderr.write(
                "clawlite: of the conversation of an older version %d bytes are lost\n" % lost
            )
    except (ClawError, OSError) as e:
        sys.stderr.write(
            "clawlite: the conversation of an older version stays in %s: %s\n" % (path, e)
        )


def _is_of(path: str, offset: int, key: int) -> bool:
    return read(path, offset + 4, 4) == struct.pack(">I", key)


def _mark(path: str, offset: int) -> int:
    """Return a number that identifies a turn, from its place and its record's CRC-32."""
    return crc32(read(path, offset - 4, 4), offset) or 1


def _last(log) -> int:
    """Return the mark of the turn that was imported last, 0 before the first."""
    done = 0
    for file, kind, _, offset, _ in records(log.path) if log.end else ():
        if kind == ENTRIES:
            file.seek(offset)
            _, _, request, mark, _ = struct.unpack(HEAD, file.read(HEAD_BYTES))
            done = mark if request == OLD else done
    return done


def _turn(log, store, part: str, payload: bytes, mark: int) -> int:
    """Add one turn to the log, without its tools' results when it is too long.  Return its bytes
    when it is still too long, else 0.
    """
    when, _, _ = struct.unpack(">IIH", payload[:_HEAD])
    rows = log.loads(payload[_HEAD:])
    for some in (rows, [rows[0], rows[-1]]):
        entries = [(None, _content(*row), None, None) for row in some]
        try:
            put(
                log,
                store,
                part,
                (OLD, mark),
                entries,
                [as_text(log, entry, 0) for entry in entries],
                when * 1000,
            )
            return 0
        except InvalidParams:
            pass
    return len(payload)


def _content(role: str, text: str, more=None, tool: str = "", failed: bool = False) -> dict:
    if role == "tool":
        return {"role": role, "text": text, "id": more, "tool": tool, "failed": failed}
    return {"role": role, "text": text, "calls": more} if more else {"role": role, "text": text}
