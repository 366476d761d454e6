"""The stores on Linux that outlive their process, behind one face, for tests of failing disks.

put(name)  stores an item; True: it is acknowledged.  It may raise OSError and ClawError
found()    the names of the items that are there, in their order; none in part
look()     something else that touches the file
close()
"""

import itertools
import os

from memory_world import World, store

from clawlite.core.idempotency.idempotency import END
from clawlite.core.image.memories import GLOBAL
from clawlite.linux.audit import files as auditfile
from clawlite.linux.audit import sqlite
from clawlite.linux.audit.chain import line, verify
from clawlite.linux.channels import dead_letters, inbox, replay_cache
from clawlite.linux.files import files
from clawlite.linux.files.inherited_log import InheritedLog
from clawlite.linux.io import state_file
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.runtime import call_journal, meters
from clawlite.linux.secrets import secrets
from clawlite.linux.swarm import bus
from clawlite.protocols.swarm.swarm import Task

MUCH = "x" * 40  # a part of each item; half of it is still a part


class Calls:
    """The journal of calls."""

    def __init__(self, folder):
        self.one = call_journal.Journal("a")

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
        self.one.keep_answer(item, MUCH)
        self.one.remove(twin)
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
        return self.one.count_use([(name, 1, 10**15)]) and not self.one._broken

    def found(self):
        return [name for name, entry in sorted(self.one.load().items()) if entry == [1, 10**15]]

    def close(self):
        pass


class ChannelState:
    """The state of a channel: all of its items each time."""

    def __init__(self, folder):
        self.one = state_file.StateFile(os.path.join(folder, "a", "channels"), "c")

    def put(self, name):
        self.one.data = dict(self.one.data, **{name: MUCH})
        problem = self.one.save()
        if problem:
            raise OSError(problem)
        return True

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
        # a process that ended on a full disk leaves a part of a line
        whole = [text for text in lines if text.endswith(b'"}')]
        assert len(whole) >= len(lines) - 1, lines
        return [loads(text)["k"].removesuffix(MUCH) for text in whole]

    def close(self):
        self.one.close()


class Signatures:
    """What a webhook has seen."""

    def __init__(self, folder):
        self.one = replay_cache.ReplayCache(os.path.join(folder, "a", "channels", "w.seen"), 1000)
        self.begun = False

    def put(self, name):
        if not self.begun:
            self.one.begin(1000)
            self.begun = True
        self.one.add(name + MUCH, 1000)
        return True

    def found(self):
        self.one.begin(1000)
        # it keeps digests: each name that the stories have is asked for
        return [name for name in "0123456789abcdef" if name + MUCH in self.one]

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


class GivenUp:
    """Messages that a queue gave up."""

    def __init__(self, folder):
        self.one = dead_letters.DeadLetters(os.path.join(folder, "a", "q.dead"))

    def put(self, name):
        self.one.put("ann", name + MUCH, b"", "", 0)
        return True

    def found(self):
        letters = self.one.all()
        assert not [one for one in letters if one.is_damaged]
        return [one.text.removesuffix(MUCH) for one in letters]

    def close(self):
        pass


class Reports:
    """Reports of a swarm that its engine has not acknowledged; each opening is a process."""

    processes = itertools.count(100000)

    def __init__(self, folder):
        process = "p%d" % next(self.processes)
        self.one = InheritedLog(
            os.path.join(folder, "team"), "hand", process, "reports", dumps, loads
        )
        self.rows = self.one.take_over(lambda e: None)

    def put(self, name):
        self.one.keep([name, MUCH], True)
        self.rows.append([name, MUCH])
        return True

    def found(self):
        assert all(row == [row[0], MUCH] for row in self.rows)
        return list(dict.fromkeys(name for name, _ in self.rows))  # one may be found twice

    def look(self):
        self.one.sync()

    def close(self):
        self.one._log.close()  # as a kill does


class SwarmTasks:
    """The tasks of a swarm."""

    clock = itertools.count()

    def __init__(self, folder):
        self.one = bus.Bus(os.path.join(folder, "swarm"), self.clock.__next__, os.urandom)
        try:
            self.one.join()
        except BaseException:
            self.one.leave()
            raise

    def put(self, name):
        return self.one.put(Task(name, name + MUCH, {}, "lead", ""))

    def found(self):
        return [row[0] for row in reversed(self.one.tasks(-1))]

    def close(self):
        self.one.leave()


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
    GivenUp,
    Reports,
    SwarmTasks,
    Remembered,
    RememberedByJournal,
    RememberedInFile,
)
