"""The rare tasks of a board's audit: checking its files at a start, and beginning a new segment.
Loaded for these, and dropped.
"""

import os

from auditfiles import SEGMENT, TIME, first, head_in, put, size_of
from clawlite.core.base.clock import iso8601
from clawlite.core.base.errors import ClawError
from clawlite.scan.auditline import LOST_HEAD, beginning, digest
from osfields import BLOCK_BYTES, BLOCKS, FREE_BLOCKS

_BLOCK = 4096
_LEAST = 49152  # bytes that the audit may always have: host/fit/heap.py counts them


def mend(folder: str, agent: str) -> str:
    """Read the existing files, and repair what a power cut left.  Return a description of what was
    not as the last record left it, or "".
    """
    above, _, name = folder.rpartition("/")
    if name not in os.listdir(above or "/"):
        os.mkdir(folder)
    path, names, problem = folder + "/audit.jsonl", os.listdir(folder), ""
    if "audit.new" in names:  # a torn record was being cut off when the power failed
        if "audit.jsonl" in names:
            os.remove(folder + "/audit.new")
        else:
            os.rename(folder + "/audit.new", path)
            names.append("audit.jsonl")
    if "audit.jsonl" not in names:
        _check_room(folder)
    known = head_in(folder)
    head = known or beginning(agent)
    last = head.last
    if "audit.jsonl" in names:
        end, problem = _catch_up(path, head)
        torn = size_of(path) - end
        if torn:
            _cut_off(folder, path, end)
            problem = "%d bytes of a record that was never finished were cut off%s" % (
                torn,
                "; " + problem if problem else "",
            )
    # not for a folder or a file that had just been created
    if known is None and (len(names) > 1 or names and size_of(folder + "/" + names[0])):
        problem = LOST_HEAD + ("; " + problem if problem else "")
    if known is None or head.last != last:
        put(folder, head)
    return problem


def _catch_up(path: str, head) -> tuple:
    """Move *head* forward over the lines that follow it; return (end of the last complete line,
    description of what is wrong or "").
    """
    end, last, hash, wrong, seen = 0, head.last, head.hash, "", False
    with open(path, "rb") as file:
        data = file.readline()
        while data[-1:] == b"\n":
            end += len(data)
            own = digest(data[:-1])
            if own == hash:  # the line that the head names
                head.last, head.hash, wrong, seen = last, hash, "", True
            elif not wrong and data.startswith(
                ('{"n":%d,"prev":"%s",' % (head.last + 1, head.hash)).encode()
            ):
                head.last, head.hash = head.last + 1, own
            elif not wrong:
                wrong = (
                    "lines were added that do not follow from the last record"
                    if seen
                    else "the records do not end where the head says"
                )
            data = file.readline()
    return end, wrong


def _cut_off(folder: str, path: str, end: int):
    with open(path, "rb") as old:
        with open(folder + "/audit.new", "wb") as new:
            while end:
                data = old.read(min(end, 256))
                new.write(data)
                end -= len(data)
    os.rename(folder + "/audit.new", path)


def turn(folder: str, path: str, head, kept_s, now):
    """Begin a new segment after the one at *path* (or ""), and remove segments that are too old;
    no other file is removed to make room.

    Raises ``ClawError`` when there is no room for it.
    """
    if path:
        os.rename(path, "%s/audit-%012d.jsonl" % (folder, first(path)[0] or head.last))
    old = _segments(folder) if kept_s and now else []
    gone = 0
    while gone + 1 < len(old) and first(folder + "/" + old[gone + 1])[TIME] < iso8601(now - kept_s):
        # the next segment begins before the limit, so all records of this one are older
        gone += 1
    # the head first: if a removal is cut off, an old segment is left over, which does no harm
    if gone:
        head.first, head.prev, _ = first(folder + "/" + old[gone])
        put(folder, head)
        for name in old[:gone]:
            os.remove(folder + "/" + name)
    _check_room(folder)


def _segments(folder: str) -> list:
    return sorted(
        [
            name
            for name in os.listdir(folder)
            if name.startswith("audit-") and name.endswith(".jsonl")
        ]
    )


def _check_room(folder: str):
    """Raise ``ClawError`` when the audit with one more segment would have more than half of the
    flash that it and the free space make up; it may always have 48 KiB.

    A board with one slot keeps room for another: as much as all its other files take.
    """
    own = 2 * _BLOCK
    for name in _segments(folder):
        own += (size_of(folder + "/" + name) + _BLOCK - 1) // _BLOCK * _BLOCK
    about = os.statvfs(folder)
    left = free = about[BLOCK_BYTES] * about[FREE_BLOCKS]
    names = os.listdir("/")
    if ("claw-a.cbor" in names) != ("claw-b.cbor" in names):
        free -= about[BLOCK_BYTES] * (about[BLOCKS] - about[FREE_BLOCKS]) - own
    if left < SEGMENT + 2 * _BLOCK or own + SEGMENT > max(_LEAST, (own + free) // 2):
        raise ClawError(
            "the audit has no room for more: %s has %d bytes" % (folder, own),
            "take it to a computer: clawlite audit take --port PORT",
        )
