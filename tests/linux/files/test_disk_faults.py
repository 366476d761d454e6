"""Each store on Linux keeps its promises when a call that touches the disk fails (tests/faults.py).

A store acknowledges or refuses each of three items while a call fails.
After that it takes a fourth, without and with a restart.
What was acknowledged is there in its order, nothing is there in part,
and no descriptor is left open or closed twice.
"""

import itertools
import os
import resource
import subprocess
import sys

import pytest
from faults import KINDS, Faults
from memory_world import World, store

from clawlite.core.base.errors import ClawError
from clawlite.core.idempotency.idempotency_record import END
from clawlite.core.image.memories import GLOBAL
from clawlite.linux.audit import files as auditfile
from clawlite.linux.audit import sqlite
from clawlite.linux.audit.chain import line, verify
from clawlite.linux.channels import inbox, seen
from clawlite.linux.channels import state as channel_state
from clawlite.linux.files import files
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.memory import database, jsonl, workspace_store
from clawlite.linux.memory import journal as memory_journal
from clawlite.linux.runtime import journal, meters
from clawlite.linux.secrets import secrets

# calls in a row that fail, and whether the object is used again before it is closed
WAYS = ((1, True), (1, False), (2, True), (3, True), (1000, True))
MODULES = [
    auditfile,
    sqlite,
    channel_state,
    files,
    inbox,
    journal,
    workspace_store,
    memory_journal,
    jsonl,
    database,
    meters,
    secrets,
    seen,
]
MUCH = "x" * 40  # half of it is still a part of the item


class Calls:
    """The journal of calls."""

    def __init__(self, folder):
        self.one = journal.Journal("a")

    def put(self, name):
        return self.one.keep(END, name + "-", [MUCH])[0]

    def found(self):
        return [key[:-1] for key, _, _ in self.one.calls()]

    def look(self):
        self.one.calls()

    def close(self):
        self.one.close()


class Audit:
    """An audit in files or in SQLite."""

    module, kind = auditfile, auditfile.FileStore

    def __init__(self, folder):
        self.folder, self.day = os.path.join(folder, "a"), 20000
        self.one = self.kind(self.folder, "a")

    def put(self, name):
        self.day += 1  # each is a segment of its own
        record = {"k": name + MUCH}
        self.one.append(lambda head: line(head, record, lambda value: value), self.day * 86400)
        return True

    def found(self):
        lines, head, _ = self.module.read(self.folder)
        lines = list(lines)
        told = verify(iter(lines), head, "a")
        assert told["ok"] or not lines, told
        return [loads(text)["k"].removesuffix(MUCH) for text in lines]

    def close(self):
        self.one.close()


class AuditSQLite(Audit):
    """An audit in SQLite."""

    module, kind = sqlite, sqlite.SQLiteStore


class Taken:
    """The messages of a queue, two at once; every item is answered, and the first one is done."""

    def __init__(self, folder):
        self.one = inbox.Inbox(os.path.join(folder, "a", "i.queue"))

    def put(self, name):
        item, twin = self.one.take([(0, "", "", name, b""), (0, "", "", name + MUCH, b"")])
        self.one.begins(item)
        self.one.answered(item, MUCH)
        self.one.ended(twin)
        return True

    def look(self):
        self.one._rewrite()

    def found(self):
        return [item.text for item in self.one.waiting.values() if not item.text.endswith(MUCH)]

    def close(self):
        self.one.close()


class Spent:
    """Meters: one that cannot be written says so, and counts until the process ends."""

    is_broken_for_good = True

    def __init__(self, folder):
        self.one = meters.CounterFile("a", "meters", True)

    def put(self, name):
        return self.one.add([(name, 1, 10**15)]) and not self.one._broken

    def found(self):
        return [name for name, entry in sorted(self.one.stored().items()) if entry == [1, 10**15]]

    def close(self):
        pass


class ChannelState:
    """The state of a channel: all of its items each time."""

    def __init__(self, folder):
        self.one = channel_state.State(os.path.join(folder, "a", "channels"), "c")

    def put(self, name):
        self.one.data = dict(self.one.data, **{name: MUCH})
        return not self.one.save()

    def found(self):
        return sorted(self.one.data)

    def close(self):
        pass


class LogLines:
    """The log: what could not be written is written later, and the newest two files are kept."""

    keeps = 2

    def __init__(self, folder):
        self.path = os.path.join(folder, "a", "log.jsonl")
        self.one = files.Log("a", dumps, 150)

    def put(self, name):
        self.one.write({"k": name + MUCH})
        return self.one.flush()

    def found(self):
        self.one.flush()
        lines = []
        for path in (self.path + ".1", self.path):
            if os.path.exists(path):
                with open(path, "rb") as file:
                    lines += file.read().splitlines()
        return [loads(text)["k"].removesuffix(MUCH) for text in lines]

    def close(self):
        self.one.close()


class Signatures:
    """What a webhook has seen."""

    def __init__(self, folder):
        self.one = seen.Seen(os.path.join(folder, "a", "channels", "w.seen"), 1000)
        self.begun = False

    def put(self, name):
        if not self.begun:
            self.one.begin(1000)
            self.begun = True
        self.one.add(name + MUCH, 1000)
        return True

    def found(self):
        self.one.begin(1000)
        return [name.removesuffix(MUCH) for name in self.one._when]

    def close(self):
        self.one.close()


class Secrets:
    """The store of secrets, without a key."""

    def __init__(self, folder):
        pass

    def put(self, name):
        secrets.set_secret("a", name, MUCH)
        return True

    def found(self):
        return [
            name
            for name in secrets.names("a")
            if secrets.resolve(name, secrets.stores("a")) == MUCH
        ]

    def close(self):
        pass


class Remembered:
    """A store of the memory."""

    fields = {"lasting": True}

    def __init__(self, folder):
        self.world, self.store = World(os.path.join(folder, "memory")), store(**self.fields)

    def put(self, name):
        number = "c1a00000-0000-4000-8000-00000000000" + name
        self.world.put(self.store, name, name + MUCH, id=number)
        return True

    def look(self):
        self.world.all(self.store)

    def found(self):
        names = self.world.all(self.store)
        assert names[1::2] == [name + MUCH for name in names[::2]]
        return names[::2]

    def close(self):
        self.world.stores.close()


class RememberedByJournal(Remembered):
    """The same of a store that saves wear."""

    fields = {"lasting": True, "saves_wear": True}


class RememberedInFile(Remembered):
    """The same of a conversation in a file."""

    fields = {"lasting": True, "path": "", "scope": GLOBAL}


STORES = (
    Calls,
    Audit,
    AuditSQLite,
    Taken,
    Spent,
    ChannelState,
    LogLines,
    Signatures,
    Secrets,
    Remembered,
    RememberedByJournal,
    RememberedInFile,
)


def attempt(act) -> bool:
    """Return what *act* says; False when it fails as disks and memories fail."""
    try:
        return act()
    except (OSError, ClawError, MemoryError):
        return False


def play(kind, folder: str, faults: Faults, n: int, fault, count: int, goes_on: bool) -> bool:
    """Play the story with one fault; return whether it came to that."""
    before, kept, one = len(os.listdir("/proc/self/fd")), [], None
    faults.twice.clear()
    with faults.at(n, fault, count):
        try:
            one = kind(folder)
        except (OSError, MemoryError):
            pass
        for name in ("a", "b", "c") if one else ():
            if attempt(lambda: one.put(name)):  # noqa: F821
                kept.append(name)
            if name == "b":
                attempt(getattr(one, "look", bool))
    where = "after %s" % faults.calls
    one = one or kind(folder)
    if goes_on and attempt(lambda: one.put("d")):  # noqa: F821
        kept.append("d")
    elif goes_on:
        assert hasattr(kind, "is_broken_for_good"), "it works no more, %s" % where
    one.close()
    for again in ("e", "f"):
        one = kind(folder)
        found = one.found()
        sure = kept[-getattr(kind, "keeps", 9) :]
        there = [name for name in found if name in sure]
        assert there == sure, "%s of %s, %s" % (found, kept, where)
        assert len(set(found)) == len(found), where
        assert set(found) <= {*"abc", *kept}, "%s, %s" % (found, where)
        assert one.put(again) is True
        one.close()
        kept.append(again)
    assert not faults.twice, "closed twice, %s" % where
    del one
    assert len(os.listdir("/proc/self/fd")) == before, "descriptors are left, %s" % where
    return faults.hit


@pytest.mark.parametrize("fault", KINDS, ids=str)
@pytest.mark.parametrize("kind", STORES, ids=lambda kind: kind.__name__)
def test_a_store_keeps_its_promises_whichever_call_fails(kind, fault, tmp_path, monkeypatch):
    faults, reached = Faults(monkeypatch, MODULES), []
    for number, (count, goes_on) in enumerate(WAYS):
        for n in itertools.count(1):
            folder = tmp_path / ("%d-%d" % (number, n))
            folder.mkdir()
            monkeypatch.setenv("CLAWLITE_STATE", str(folder))
            if not play(kind, str(folder), faults, n, fault, count, goes_on):
                break
        reached.append(n - 1)
    assert min(reached) >= 2, "the story reaches no call that could fail"


def crowd(name: str, folder: str):
    """Play the story with files of a bounded size, larger each time; print how often one was too
    small.
    """
    kind, refused = globals()[name], 0
    for limit in range(512, 90000, 2048):
        os.environ["CLAWLITE_STATE"] = state = os.path.join(folder, str(limit))
        os.mkdir(state)
        kept, one = [], kind(state)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        for item in "abc":
            if attempt(lambda: one.put(item)):  # noqa: F821
                kept.append(item)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        refused += len(kept) < 3
        for item in "de":
            assert one.put(item), "%s: it works no more" % limit
            kept.append(item)
            one.close()
            one = kind(state)
            found = one.found()
            assert [each for each in found if each in kept] == kept, (limit, found, kept)
        one.close()
    print(refused)


@pytest.mark.parametrize(
    "kind", [AuditSQLite, Remembered, RememberedByJournal], ids=lambda kind: kind.__name__
)
def test_a_database_keeps_its_promises_whichever_write_of_sqlite_fails(kind, tmp_path):
    here = os.path.dirname(__file__)
    code = "import sys; sys.path[:0] = %r; import test_disk_faults as t; t.crowd(%r, %r)" % (
        [here, os.path.dirname(os.path.dirname(here))],
        kind.__name__,
        str(tmp_path),
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) >= 5
