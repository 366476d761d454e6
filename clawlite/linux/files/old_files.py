"""What a start tells of an agent's files that are behind their marks (rollback_marks.py): each file
once, in one sentence, on stderr and in the log.

1. Nothing is taken back and nothing stops for it: whoever put an old copy there may have meant it.
2. An old log beside a newer database would undo what the database has.  It is set aside.
"""

import os
import time

from clawlite.linux.files import rollback_marks
from clawlite.linux.files.files import aside, print_to_stderr, sqlite_uri
from clawlite.linux.files.regular_file import open_regular

# the end of a file's name -> (its name in messages, what it means that it is behind)
_FILES = (
    (
        "calls.journal",
        "the journal of calls",
        "calls that it had may run a second time, and approvals that it had are gone",
    ),
    ("audit.jsonl", "the audit", "records that it had are not in it"),
    ("audit.db", "the audit", "records that it had are not in it"),
    ("memory.db", "the memory", "what was stored since is not in it"),
    ("memory.journal", "the memory's journal", "what was stored last is not in it"),
    ("conversation.jsonl", "the conversation", "what was said since is not in it"),
    (
        ".queue",
        "the inbox",
        "messages that waited in it are gone, and those that were done may be handled again",
    ),
    (
        ".seen",
        "the webhook's list of signatures",
        "a request that was accepted before may be accepted once more",
    ),
    ("meters.json", "the record of limits", "what was used since may be used once more"),
    (
        ".json",
        "the channel state",
        "runs and messages of this channel that were done may be done again",
    ),
    ("swarm.db", "the bus of the swarm", "tasks and reports that it had are not in it"),
    ("stopped", "the stop of the swarm", "a stop that it knew of may not hold"),
)
_STATES = {
    "missing": "is missing",
    "empty": "is empty",
    "old": "is an older copy, or not the file that this agent wrote",
}


def tell(folder: str, warn):
    """Tell which files of the state folder *folder* are behind; from then on, they count as they
    are.

    warn  function(text): write to the log
    """
    for slot, state in rollback_marks.find_behind(folder, _is_behind):
        text = _sentence(folder, slot, state)
        print_to_stderr(text)
        warn(text)
        _accept(folder, slot)


def _sentence(folder: str, slot: list, state: str) -> str:
    name = slot[rollback_marks.PATH]
    what, means = next(
        (row[1:] for row in _FILES if name.endswith(row[0])), ("the file", "it lacks what it had")
    )
    size, length, _ = slot[rollback_marks.NOW]
    had = "" if length == rollback_marks.COUNTED else ", with %d bytes" % size
    return (
        "%s %s %s (this agent wrote it last on %s%s): %s - stop the agent and put the newest copy "
        "back, with all files of %s from the same time; or go on as it is: this is said once"
        % (
            what,
            os.path.join(folder, name),
            _STATES[state],
            time.strftime("%Y-%m-%d at %H:%M:%S UTC", time.gmtime(slot[rollback_marks.SECONDS])),
            had,
            means,
            folder,
        )
    )


def _accept(folder: str, slot: list):
    """Let the mark of a file be what is there now."""
    path = os.path.join(folder, slot[rollback_marks.PATH])
    _, length, _ = slot[rollback_marks.NOW]
    is_counted = length == rollback_marks.COUNTED
    # 0 in the place of the length: the file may be edited, and its bytes are not compared
    mark = rollback_marks.Mark(path, rollback_marks.TAIL if length else 0, folder)
    try:
        now = rollback_marks.NOTHING
        if is_counted and os.path.getsize(path):
            now = (max(0, _number(path, "mode=ro") or 0), rollback_marks.COUNTED, 0)
        elif not is_counted:
            fd = open_regular(path, os.O_RDONLY)
            try:
                now = mark.of_end(fd, os.fstat(fd).st_size)
            finally:
                os.close(fd)
    except OSError:
        pass
    mark.note(now, False)
    mark.close()


def _is_behind(path: str, slot: list) -> bool:
    """Return whether the database *path* has not come as far as the mark of *slot* says."""
    wanted, log = slot[rollback_marks.NOW][0], path + "-wal"
    found = _number(path, "mode=ro")
    if found is None or found >= wanted:
        return False
    changed_s = max(os.stat(one).st_mtime for one in (path, log) if os.path.exists(one))
    if os.path.exists(log) and (_number(path, "mode=ro&immutable=1") or 0) >= wanted:
        kept = aside(log)
        os.replace(log, kept)
        print_to_stderr(
            "the log of %s was an older copy, which would have undone it has since; "
            "it is set aside as %s, and the file is as it was" % (path, kept)
        )
        return False
    return not rollback_marks.is_cut(slot, changed_s)


def _number(path: str, how: str):
    """Return the number of the database *path* (database.py), -1 when it is damaged, None when it
    cannot be read: on a full disk, for one.
    """
    from _sqlite3 import Error, connect

    try:
        connection = connect(sqlite_uri(path, how), uri=True, isolation_level=None, timeout=2)
    except Error:
        return None
    try:
        return rollback_marks.number_of(connection.execute)
    except Error as e:
        name = getattr(e, "sqlite_errorname", None) or ""
        return -1 if name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) else None
    finally:
        connection.close()
