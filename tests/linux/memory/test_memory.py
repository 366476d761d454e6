"""The memory of a real agent: over its line, with faults of the disk, after kill -9; two
processes, two identities.
"""

import json
import os
import random
import resource
import select
import sqlite3
import subprocess
import sys

import pytest
from agents import UUID, clawlite, eventually, libraries, linux, without_root_rights
from memory_operator import Operator
from memory_world import store
from run_core_micropython import ROOT

from clawlite.core.base.errors import StoreError
from clawlite.linux.memory import memory as module
from clawlite.linux.memory.database import FILE, Database
from clawlite.linux.memory.memory import Memory

STORES = [
    {"name": "talk", "type": "conversation"},
    {"name": "facts", "type": "key-value", "scope": "per-identity"},
    {"name": "notes", "type": "semantic"},
    {"name": "files", "type": "workspace", "path": "/nowhere"},
    {"name": "diary", "type": "conversation"},
    {"name": "papers", "type": "conversation", "backend": "filesystem"},
]


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """An agent with stores and a reflex, built once."""
    folder = tmp_path_factory.mktemp("project")
    spec = {
        "identity": {"inline": {"name": "gardener", "personality": "x"}},
        "providers": [
            {
                "inline": {
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "r",
                    "auth": {"type": "none"},
                }
            }
        ],
        "memory": {
            "inline": {
                "stores": [
                    dict(store, path=str(folder) + "/w/{identity_name}/{tenant_id}")
                    if "path" in store
                    else store
                    for store in STORES
                ]
            }
        },
    }
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    (folder / "clawlite.toml").write_text(
        'reflex = "reflex.toml"\ntenant_id = "acme"\n[memory]\n'
        'power_safe = ["notes"]\nwear_saving = ["diary"]\n'
    )
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = ["hello"]\nsay = "Hello yourself."\n')
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "claw.cbor"


@pytest.fixture
def home(tmp_path):
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def serve(image, home, words=lambda words: words, **popen) -> Operator:
    return Operator(words(linux("serve", image, "--stdio")), home, **popen).boot()


def test_what_is_stored_is_there_after_a_restart(image, home):
    with serve(image, home) as one:
        assert one.opened["result"]["capabilities"] == {"memory": {}}
        assert one.put("talk", "hello", 1)["result"] == {"stored": 1, "ids": ["entry-1-1"]}
        assert one.put("notes", {"pump": 3}, 2)["result"]["stored"] == 1
        files = list((home / "state" / "a" / "memory").iterdir())
        assert files and all(file.stat().st_mode & 0o077 == 0 for file in files)
        one.end()
        assert one.process.wait() == 0
    assert not list((home / "state" / "a" / "memory").glob("*-wal")), (
        "the log is folded in when the agent ends"
    )
    with serve(image, home) as one:
        assert one.all("talk") == ["hello"] and one.all("notes") == [{"pump": 3}]
        assert one.put("talk", "hello", 1)["result"]["ids"] == ["entry-1-1"]
        assert one.ask("claw.memory.compact", store="talk")["result"]["entries_after"] == 1


def test_variables_in_paths_are_filled_in(image, home):
    with serve(image, home) as one:
        assert "result" in one.put("files", "text", 1, "a/b.txt")
    assert (image.parent / "w" / "gardener" / "acme" / "a" / "b.txt").read_text() == "text"


def test_identities_know_nothing_of_each_other(image, home):
    with serve(image, home) as one:
        one.put("facts", "A", 1, "k", identity="alice")
        one.put("facts", "B", 2, "k", identity="bob")

        def found(**context):
            return [
                entry["content"]
                for entry in one.ask(
                    "claw.memory.query",
                    store="facts",
                    query={"type": "key", "key": "k"},
                    context=context,
                )["result"]["entries"]
            ]

        assert (
            found(identity="alice") == ["A"]
            and found(identity="bob") == ["B"]
            and found(identity="carol") == [] == found()
        )


@pytest.mark.parametrize("store", ["talk", "diary", "papers"])
def test_two_processes_share_a_memory(image, home, store):
    with serve(image, home) as one, serve(image, home) as two:
        for number in range(20):
            assert "result" in (one, two)[number % 2].put(store, number.__str__(), number)
        assert one.all(store) == two.all(store) == [str(n) for n in range(20)]
        assert two.put(store, "0", 0)["result"]["ids"] == [
            "entry-1" if store == "papers" else "entry-1-1"
        ], "what one has stored the other knows"


def test_an_agent_that_is_not_asked_loads_no_database(image, home):
    code = (
        "import sys; from clawlite.linux.admin.commands import Command, run; code = "
        "run(Command('serve', {'manifest': %r, 'stdio': True, 'built': False})); "
        "sys.stderr.write(' '.join(sorted(name for name in sys.modules if 'sqlite' in name or "
        "'memor' in name))); sys.exit(code)" % str(image)
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b'{"jsonrpc":"2.0","id":1,"method":"claw.status"}\n',
        capture_output=True,
        env=dict(os.environ, PYTHONPATH=str(ROOT), CLAWLITE_STATE=str(home)),
    )
    assert (
        done.returncode == 0
        and done.stderr.decode()
        == "clawlite.core.image.memories clawlite.linux.memory clawlite.linux.memory.database"
    )


def test_a_store_that_encrypts_nothing_loads_no_openssl(image, home):
    """It would be 3.8 MiB more."""
    with serve(image, home) as one:
        one.put("notes", "the pump stands still", 1)
        query = {"type": "semantic", "text": "pump"}
        found = one.ask("claw.memory.query", store="notes", query=query)["result"]["entries"]
        assert [entry["content"] for entry in found] == ["the pump stands still"]
        assert "sqlite" in libraries(one.process) and "libcrypto" not in libraries(one.process)


# -- faults of the disk


def database(home):
    return home / "state" / "a" / "memory" / FILE


def answers(one: Operator) -> bool:
    return one.ask("claw.status")["result"]["state"] == "READY"


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"no database at all" * 100),
        lambda path: path.write_bytes(path.read_bytes()[:1500]),
        lambda path: path.write_bytes(path.read_bytes()[:1024] + b"\xff" * 20000),
    ],
)
def test_a_damaged_file_is_one_clear_error_and_the_agent_goes_on(image, home, damage):
    with serve(image, home) as one:
        for number in range(30):
            one.put("talk", "x" * 100, number)
        one.end()
        one.process.wait()
    whole = database(home).read_bytes()
    damage(database(home))
    with serve(image, home) as one:
        reply = one.put("talk", "hello", 100)
        assert reply["error"]["code"] == -32030 and "is damaged" in reply["error"]["message"], reply
        assert (
            str(database(home)) in reply["error"]["message"]
            and "move the file away" in reply["error"]["data"]["hint"]
        )
        assert "error" in one.ask(
            "claw.memory.query", store="talk", query={"type": "key", "key": "k"}
        ) and answers(one)
        database(home).write_bytes(whole)
        assert "result" in one.put("talk", "hello", 100), "what is mended needs no restart"
    done = clawlite("ask", "hello", image, cwd=home)
    assert done.returncode == 0 and done.stdout == "Hello yourself.\n"


def test_a_file_of_a_newer_version_is_left_alone(image, home):
    database(home).parent.mkdir(parents=True)
    with sqlite3.connect(database(home)) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    before = database(home).read_bytes()
    with serve(image, home) as one:
        reply = one.put("talk", "hello", 1)
        assert (
            reply["error"]["code"] == -32030
            and "newer version (99, this one knows 5)" in reply["error"]["message"]
            and answers(one)
        )
    assert database(home).read_bytes() == before


@pytest.mark.parametrize("store", ["talk", "diary"])
def test_a_folder_that_cannot_be_written_is_read_all_the_same(image, home, store):
    with serve(image, home) as one:
        one.put(store, "hello", 1)
        one.end()
        one.process.wait()
    folder = database(home).parent
    database(home).chmod(0o400)
    folder.chmod(0o500)
    try:
        with serve(image, home, without_root_rights) as one:
            reply = one.put(store, "more", 2)
            assert (
                reply["error"]["code"] == -32030
                and "cannot be written" in reply["error"]["message"]
            ), reply
            assert one.all(store) == ["hello"] and answers(one)
            folder.chmod(0o700)
            database(home).chmod(0o600)
            assert "result" in one.put(store, "more", 2) and one.all(store) == ["hello", "more"]
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("store", ["talk", "diary", "papers"])
def test_a_full_disk_is_one_clear_error_and_nothing_is_half_there(image, home, store):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300000, 300000))

    with serve(image, home, preexec_fn=small) as one:
        stored, failed = [], None
        for number in range(400):
            reply = one.put(store, "%d %s" % (number, "x" * 2000), number)
            if "error" in reply:
                failed = reply["error"]
                break
            stored.append("%d %s" % (number, "x" * 2000))
        assert (
            failed["code"] == -32030
            and "make room" in failed["data"]["hint"]
            and 50 < len(stored) < 400
        )
        assert one.all(store) == stored and answers(one)
    with serve(image, home) as one:
        assert one.all(store) == stored
        assert "result" in one.put(store, "again", 1000)


@pytest.mark.skipif(os.getuid() != 0, reason="only root may mount")
@pytest.mark.parametrize("store", ["talk", "diary", "papers"])
def test_a_full_file_system(image, home, store):
    folder = database(home).parent
    folder.mkdir(parents=True)
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True
    ).returncode:
        pytest.skip("this root may not mount")
    try:
        with serve(image, home) as one:
            replies = [one.put(store, "x" * 4000, number) for number in range(100)]
            failed = [reply["error"] for reply in replies if "error" in reply]
            assert (
                failed
                and {error["code"] for error in failed} == {-32030}
                and "full" in failed[0]["message"]
            )
            assert len(one.all(store)) == 100 - len(failed) and answers(one)
            one.end()
            one.process.wait()
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_folder_that_is_none_is_an_error_of_the_start(image, home):
    (home / "state" / "a").mkdir(parents=True)
    (home / "state" / "a" / "memory").write_text("")
    done = clawlite("ask", "hello", image, cwd=home, CLAWLITE_STATE=home / "state")
    assert done.returncode and "the memory's folder" in done.stderr


# -- kill -9

LIES = """import sys
from clawlite.linux.memory import stores as memory_stores; from clawlite.linux.admin import commands as verbs
write, late = memory_stores.Stores._write, []
def lie(self, jobs):
    before, late[:] = list(late), jobs
    write(self, before)
    return [(job[0], (True, {"stored": 3, "ids": []})) for job in jobs]
memory_stores.Stores._write = lie
values = {"manifest": sys.argv[1], "stdio": True, "built": False}
sys.exit(verbs.run(verbs.Command("serve", values)))"""  # noqa: E501


def campaign(image, home, store: str, kills: int, seed: int, words=None) -> int:
    """Kill an agent *kills* times while it stores; return how many requests it had acknowledged,
    all of which are there, each whole.

    words  another command line, or None
    """
    random_, acknowledged, number = random.Random(seed), [], 0
    for round in range(kills):
        with Operator(words or linux("serve", image, "--stdio"), home).boot() as one:
            first = one.number = 10**6 * (round + 1)
            for _ in range(40):
                number += 1
                one.line(
                    json.dumps(
                        {
                            "jsonrpc": "2.0",
                            "id": first + number,
                            "method": "claw.memory.store",
                            "params": {
                                "store": store,
                                "entries": [{"content": "%d-%d" % (number, n)} for n in range(3)],
                                "context": {"request_id": UUID % number},
                            },
                        }
                    )
                )
            most = random_.randrange(1, 40)
            eventually(lambda: one._read() or one.seen.count(b'"stored":3') >= most)
            one.process.kill()
            one.process.wait()
            one._read()
            acknowledged += [
                json.loads(line)["id"] - first
                for line in one.seen.splitlines()
                if b'"stored":3' in line and line.endswith(b"}")
            ]
    with serve(image, home) as one:
        one.all(store)  # it goes on with what is there, also where that is nothing
    if store == "papers":
        found = [
            entry[0]
            for line in open(home / "state/a/memory/files/papers/conversation.jsonl")
            for entry in json.loads(line)["entries"]
        ]
    else:
        with sqlite3.connect(database(home)) as connection:
            found = [
                content
                for (content,) in connection.execute("SELECT content FROM entries ORDER BY id")
            ]
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            connection.execute("INSERT INTO words(words) VALUES('integrity-check')")
        connection.close()
    check(found, acknowledged)
    return len(acknowledged)


def check(found: list, acknowledged: list):
    whole = {entry.split("-")[0] for entry in found}
    assert len(found) == len(set(found)) == 3 * len(whole), (
        "a request is there once, and whole or not at all"
    )
    assert {str(number) for number in acknowledged} <= whole, "what was acknowledged is there"


@pytest.mark.parametrize("store", ["talk", "notes", "diary", "papers"])
def test_what_was_acknowledged_survives_kill_9(image, home, store):
    assert campaign(image, home, store, 6, 1) > 6


def test_the_campaign_sees_an_acknowledgement_before_the_write(image, home):
    with pytest.raises(AssertionError, match="what was acknowledged is there"):
        campaign(image, home, "talk", 6, 1, [sys.executable, "-c", LIES, str(image)])


# -- the thread


class Stub:
    """An agent that collects outcomes."""

    workspace = None

    def __init__(self):
        self.image = self.agent = self.setup = self
        self.name = "a"
        self.stores, self.came = [], {}

    def memories(self):
        return self

    def size_of(self, section):
        return 0

    def complete(self, number, outcome, now_ms):
        self.came[number] = outcome


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path))
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    made = Memory(Stub(), writer, lambda: 0)
    made.reader = reader
    yield made
    made.close()
    os.close(reader)
    os.close(writer)


def wait_for(memory, count: int) -> dict:
    agent = memory._agent

    def all_came():
        select.select([memory.reader], [], [], 1)
        memory.poll()
        return len(agent.came) >= count

    eventually(all_came)
    return agent.came


def test_many_requests_are_one_commit(memory, monkeypatch):

    commits = []
    commit = Database.commit
    monkeypatch.setattr(Database, "commit", lambda self: commits.append(1) or commit(self))
    one = store(lasting=True)
    start = memory._start
    # the thread begins when all of it is there
    monkeypatch.setattr(memory, "_start", lambda: None)
    for number in range(100):
        memory.carry_out((0, number, "store", one, "", (UUID % number, [(None, "x", None, None)])))
    start()
    came = wait_for(memory, 100)
    assert all(done for done, _ in came.values()) and len(commits) == 1


def test_a_thread_that_fails_answers_all_and_another_one_begins(memory, monkeypatch):
    monkeypatch.setattr(memory, "_open", lambda: 1 / 0)
    for number in range(3):
        memory.carry_out((0, number, "query", store(), "", ("key", "k", 1, None)))
        came = wait_for(memory, number + 1)
    assert all(not done and "ZeroDivisionError" in str(error) for done, error in came.values())


def test_too_many_requests_are_refused(memory, monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING", 2)
    monkeypatch.setattr(memory, "_start", lambda: None)
    for number in range(3):
        memory.carry_out((0, number, "query", store(), "", ("key", "k", 1, None)))
    ((number, (done, error)),) = memory._agent.came.items()
    assert (
        number == 2 and not done and isinstance(error, StoreError) and "2 requests" in error.message
    )
