"""Each store on Linux keeps its promises when a call that touches the disk fails (faults.py).

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
from disk_stores import STORES, AuditSQLite, Remembered, RememberedByJournal, SwarmTasks
from faults import KINDS, Faults

from clawlite.core.base.errors import ClawError
from clawlite.linux.audit import files as auditfile
from clawlite.linux.audit import sqlite
from clawlite.linux.channels import dead_letters, inbox, replay_cache
from clawlite.linux.files import files, inherited_log, record_log
from clawlite.linux.io import state_file
from clawlite.linux.memory import database, jsonl, memory_journal, workspace_store
from clawlite.linux.runtime import call_journal, meters
from clawlite.linux.secrets import secrets
from clawlite.linux.swarm import bus

# calls in a row that fail, and whether the object is used again before it is closed
WAYS = ((1, True), (1, False), (2, True), (3, True), (1000, True))
MODULES = [
    auditfile,
    sqlite,
    state_file,
    files,
    record_log,
    inherited_log,
    inbox,
    call_journal,
    workspace_store,
    memory_journal,
    jsonl,
    database,
    meters,
    secrets,
    replay_cache,
    dead_letters,
    bus,
]


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
        except (OSError, ClawError, MemoryError):
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
    "kind",
    [AuditSQLite, Remembered, RememberedByJournal, SwarmTasks],
    ids=lambda kind: kind.__name__,
)
def test_a_database_keeps_its_promises_whichever_write_of_sqlite_fails(kind, tmp_path):
    here = os.path.dirname(__file__)
    code = "import sys; sys.path[:0] = %r; import test_disk_faults as t; t.crowd(%r, %r)" % (
        [here, os.path.join(here, "../../helpers"), os.path.join(here, "../..")],
        kind.__name__,
        str(tmp_path),
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) >= 5
