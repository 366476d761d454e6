"""The state folders of agents: free space, access rights, secrets that others can read, damaged
databases, the tokens of this machine's gateway, and whether the agents of a swarm have the same
version of it.
"""

import os
import stat
from shlex import quote

from clawlite.linux.doctor.doctor_checks import NONE, NOTE, OK, WRONG
from clawlite.linux.files import files, sqlite_log
from clawlite.linux.memory.entry import COLUMNS, any_text, differing
from clawlite.linux.secrets import gateway_tokens

LEAST_BYTES = 16 << 20  # for logs, memory and the next version of an image
DIFFERS = "differs"  # the same name as in linux/swarm/member.py
MOST_BYTES = 1 << 20  # of that file that are read


def disk(here, least: int = LEAST_BYTES) -> list:
    folder = _nearest(here.state)
    try:
        found = os.statvfs(folder)
    except OSError as e:
        return [("disk", WRONG, "%s: %s" % (folder, e.strerror), "sudo fsck")]
    free = found.f_bavail * found.f_frsize
    if free < least:
        return [
            (
                "disk",
                WRONG,
                "%d KiB are free below %s, at least %d are wanted"
                % (free >> 10, folder, least >> 10),
                "sudo apt-get clean",
            )
        ]
    if found.f_files and not found.f_favail:
        return [
            (
                "disk",
                WRONG,
                "no file can be made below %s: it has no inodes left" % folder,
                "sudo apt-get autoremove",
            )
        ]
    return [("disk", OK, "%d MiB are free below %s" % (free >> 20, folder), "")]


def state(here) -> list:
    """The state folder: this user can write to it, and others cannot look into it."""
    if here.lacks_home:
        return [
            (
                "state",
                WRONG,
                "the user with the number %d has no home folder, so no agent starts" % here.uid,
                "export CLAWLITE_STATE=/var/tmp/clawlite-%d" % here.uid,
            )
        ]
    folder = _nearest(here.state)
    if not os.path.isdir(folder):
        mend = (
            "mv %s %s" % (quote(folder), quote(folder + ".old"))
            if os.path.isfile(folder)
            else "export CLAWLITE_STATE=/var/tmp/clawlite-%d" % here.uid
        )
        return [("state", WRONG, "%s is no folder" % folder, mend)]
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return [
            (
                "state",
                WRONG,
                "%s is on a file system that is mounted read-only" % folder,
                "sudo mount -o remount,rw %s" % quote(_mount_of(folder)),
            )
        ]
    if not here.may(folder, 3):
        # a parent folder may belong to others, so its owner is never changed
        owner = here.environ.get("USER") or here.uid
        mend = "sudo chown -R %s %s" if folder == here.state else "sudo install -d -m 700 -o %s %s"
        return [
            ("state", WRONG, "%s cannot be written" % folder, mend % (owner, quote(here.state)))
        ]
    rows = [
        ("state", WRONG, "%s can be read by other users" % path, "chmod 700 %s" % quote(path))
        for path in _agents(here)
        if os.stat(path).st_mode & 0o077
    ]
    return rows or [("state", OK, "%s can be written" % folder, "")]


def _mount_of(folder: str) -> str:
    """Return the mount point that *folder* lies below."""
    folder = os.path.realpath(folder)
    while not os.path.ismount(folder):
        folder = os.path.dirname(folder)
    return folder


def secrets(here) -> list:
    """Stored secrets and the device key: only their owner can read them."""
    rows, count = [], 0
    for agent in _agents(here):
        folder = os.path.join(agent, "secrets")
        if not os.path.isdir(folder):
            continue
        if os.stat(folder).st_mode & 0o077:
            rows.append(
                (
                    "secrets",
                    WRONG,
                    "%s can be read by other users" % folder,
                    "chmod 700 %s" % quote(folder),
                )
            )
        try:
            names = sorted(os.listdir(folder))
        except OSError as e:
            rows.append(
                (
                    "secrets",
                    WRONG,
                    "%s: %s" % (folder, e.strerror),
                    "sudo chown -R %s %s" % (here.environ.get("USER") or here.uid, quote(folder)),
                )
            )
            continue
        for name in names:
            count += 1
            rows += _check_mode(os.path.join(folder, name))
    key = here.environ.get("CLAWLITE_DEVICE_KEY_FILE")
    if key:
        count += 1
        rows += (
            _check_mode(key)
            if os.path.exists(key)
            else [
                (
                    "secrets",
                    WRONG,
                    "the device key %s does not exist" % key,
                    "unset CLAWLITE_DEVICE_KEY_FILE",
                )
            ]
        )
    if rows:
        return rows
    return [
        (
            "secrets",
            OK if count else NONE,
            "%d, and nobody else can read them" % count if count else "there are none",
            "",
        )
    ]


def databases(here) -> list:
    """SQLite's own check of each memory, each audit that is a database and each swarm's file, the
    checksums of entries, and the logs: SQLite leaves out what comes after damage there, and says
    nothing.  Cost: they are read whole.
    """
    paths = [
        os.path.join(agent, name)
        for agent in _agents(here)
        for name in ("memory/memory.db", "audit.db")
    ]
    swarms = os.path.join(here.state, files.SWARMS)
    paths += [
        os.path.join(swarm, name)
        for swarm in _folders(here, swarms)
        for name in ("swarm.db", "log.db")
    ]
    paths = [path for path in paths if os.path.isfile(path)]
    if not paths:
        return [("databases", NONE, "there are none", "")]
    try:
        import sqlite3
    except ImportError:
        return [
            (
                "databases",
                WRONG,
                "this Python has no SQLite to look at %s with" % paths[0],
                "sudo apt install python3",
            )
        ]
    rows = []
    for path in paths:
        damage, altered = _damage(sqlite3, path)
        if damage:
            mend = "mv %s %s" % (quote(path), quote(path + ".damaged"))
            rows.append(("databases", WRONG, "%s: %s" % (path, damage), mend))
        elif altered:
            what = "%s: %d entries are damaged" % (path, altered)
            what += "; the agent sets them aside when it meets one"
            rows.append(("databases", WRONG, what, ""))
        lost = sqlite_log.unread_frames(path)
        if lost:
            what = "%s-wal: the log is damaged, and what was stored after frame %d of %d is lost"
            what += "; the agent keeps the log as it is and goes on without, when it starts"
            mend = "cp %s %s" % (quote(path + "-wal"), quote(path + "-wal.damaged"))
            rows.append(("databases", WRONG, what % (path, *lost), mend))
    return rows or [("databases", OK, "%d, and SQLite finds no damage" % len(paths), "")]


def _damage(sqlite3, path: str) -> tuple:
    """Return (the first thing that SQLite finds wrong in the database *path*, "" when it is whole;
    how many entries of a memory differ from their checksums).
    """
    # no write-ahead log, so nobody is writing; immutable=1 makes no file beside the database
    how = "mode=ro" if os.path.exists(path + "-wal") else "mode=ro&immutable=1"
    name = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        db = sqlite3.connect("file:%s?%s" % (name, how), uri=True)
        try:
            (found,), *_ = db.execute("PRAGMA integrity_check(1)")
            if found != "ok":
                return " ".join(found.split()), 0
            return "", _count_altered(db)
        finally:
            db.close()
    except sqlite3.Error as e:
        return str(e), 0


def _count_altered(db) -> int:
    """Return how many entries differ from their checksums; a database without them has none."""
    if "crc" not in [row[1] for row in db.execute("PRAGMA table_info(entries)")]:
        return 0
    db.text_factory = any_text
    return len(differing(db.execute("SELECT %s FROM entries" % COLUMNS)))


def _check_mode(path: str) -> list:
    mode = os.stat(path).st_mode
    if stat.S_ISREG(mode) and mode & 0o077:
        return [("secrets", WRONG, "%s can be read by others" % path, "chmod 600 %s" % quote(path))]
    return []


def _agents(here) -> list:
    """Return the state folders of agents that may be looked into."""
    return _folders(here, here.state)


def _folders(here, place: str) -> list:
    """Return the folders in *place*, where it may be looked into."""
    if not os.path.isdir(place) or not here.may(place, 5):
        return []
    paths = [os.path.join(place, name) for name in sorted(os.listdir(place))]
    return [path for path in paths if os.path.isdir(path)]


def _nearest(path: str) -> str:
    """Return *path*, or what is there of the folders above it."""
    while not os.path.lexists(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def tokens(here) -> list:
    """Tokens of an older version open every door."""
    folder = os.path.join(here.state, gateway_tokens.FOLDER, "tokens")
    if not os.path.isdir(folder):
        return [("tokens", NONE, "no gateway has given out tokens", "")]
    older = gateway_tokens.older(folder)
    if not older:
        return [("tokens", OK, "each token opens the doors that it names", "")]
    said = "the next version takes it from this machine alone"
    return [
        (
            "tokens",
            NOTE,
            "the token of %s is of an older version and opens every door; %s" % (name, said),
            "clawlite gateway token %s --for DOOR" % name,
        )
        for name in older
    ]


def versions(here) -> list:
    """Each swarm of which agents here have met others with another version of its document."""
    place, rows = os.path.join(here.state, files.SWARMS), []
    for name in sorted(os.listdir(place)) if os.path.isdir(place) and here.may(place, 5) else ():
        try:
            with open(os.path.join(place, name, DIFFERS), "rb") as file:
                others = file.read(MOST_BYTES).decode("utf-8", "replace").strip()
        except OSError:
            others = ""
        if others:
            mend = "build all of its agents from the same Swarm and start them again (see which: "
            mend += "clawlite swarm status FOLDER)"
            what = "the swarm %s is another one for %s than here" % (name, others)
            rows.append(("swarm", WRONG, what, mend))
    return rows or [("swarm", NONE, "no agent has met another version of its swarm", "")]


CHECKS = (disk, state, secrets, databases, tokens, versions)
