"""The promises of stores over a power cut: the writes of a real agent are recorded, and what was
not synced is dropped, torn or reordered.
"""

import json
import random
import shutil
import sys

import power_cut
import pytest
from agents import UUID, clawlite, eventually, linux
from memory_operator import Operator
from memory_world import World, store

from clawlite.core.image.memories import WORKSPACE

pytestmark = pytest.mark.skipif(
    not shutil.which("strace"), reason="no strace here (apt-get install strace)"
)
STORES = {
    "lasting": {},
    "thrifty": {"saves_wear": True},
    "passing": {"lasting": False},
    "files": {"type": WORKSPACE},
    "papers": {"path": ""},
}
LIES = {  # planted bugs, and what the replay says of them
    "a commit that is not synced": (
        "acknowledged and lost",
        """from clawlite.linux.memory import database as memory_sql
begin = memory_sql.Database.begin
memory_sql.Database.begin = lambda self, lasting: begin(self, False)
""",
    ),
    "a journal that is not synced": (
        "acknowledged and lost",
        """from clawlite.linux.memory import memory_journal
append = memory_journal.Journal.append
memory_journal.Journal.append = lambda self, records, lasting: append(self, records, False)
""",
    ),
    "files that are not synced": (
        "a part of an entry",
        "import os\nos.fdatasync = lambda fd: None\n",
    ),
    "an answer before its commit": (
        "acknowledged and lost",
        """from clawlite.linux.memory import stores as memory_stores
write, late = memory_stores.Stores._write, []
def lie(self, jobs):
    before, late[:] = list(late), jobs
    if before:
        write(self, before)
    return [(job[0], (True, {"stored": 2, "ids": []})) for job in jobs]
memory_stores.Stores._write = lie
""",
    ),
}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    types = {"files": "workspace", "thrifty": "key-value"}
    spec = {
        "identity": {"inline": {"name": "i", "personality": "x"}},
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
                    dict(
                        {"name": name, "type": types.get(name, "conversation")},
                        **{"backend": "filesystem"} if name == "papers" else {},
                    )
                    for name in STORES
                ]
            }
        },
    }
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    (folder / "clawlite.toml").write_text(
        'reflex = "reflex.toml"\n[memory]\npower_safe = '
        '["lasting", "thrifty", "files", "papers"]\nwear_saving '
        '= ["thrifty"]\n'
    )
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = ["hello"]\nsay = "Hello."\n')
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "claw.cbor"


def record(image, home, lie: str = "", groups: int = 12, size: int = 7) -> tuple:
    """Let an agent store, in groups of requests that wait together; return (what it did to its
    state folder, that folder).
    """
    state = home / "state" / "a"
    state.mkdir(parents=True)
    command = (
        linux("serve", image, "--stdio")
        if not lie
        else [
            sys.executable,
            "-c",
            lie + "import sys\nfrom clawlite.linux.admin import commands as "
            "verbs\nvalues = {'manifest': %r, 'stdio': True, 'built': False}\n"
            "sys.exit(verbs.run(verbs.Command('serve', values)))" % str(image),
        ]
    )
    with Operator(power_cut.words(command, home / "calls"), home).boot() as one:
        for group in range(groups):
            for number in range(group * size, group * size + size):
                name = list(STORES)[number % len(STORES)]
                entries = [
                    {
                        "content": "%d-%d %s" % (number, n, "x" * 300),
                        "key": "f%d/%d" % (number % 7, number) if name == "files" else str(number),
                    }
                    for n in range(1 if name in ("files", "thrifty") else 2)
                ]
                one.line(
                    json.dumps(
                        {
                            "jsonrpc": "2.0",
                            "id": 1000 + number,
                            "method": "claw.memory.store",
                            "params": {
                                "store": name,
                                "entries": entries,
                                "context": {"request_id": UUID % number},
                            },
                        }
                    )
                )
            eventually(lambda: one._read() or one.seen.count(b'"stored":') >= (group + 1) * size)
        one.end()
        one.process.wait()
    return power_cut.recorded(home / "calls", str(state)), str(state)


def play(ops: list, state: str, tmp_path, cuts: int, seed: int) -> int:
    """Cut the power *cuts* times, after an answer each second time, and check what is there;
    return how many answers had been given in all.
    """
    random_, answered, disk, said = random.Random(seed), [], power_cut.Disk(state), b""
    after = [number for number, op in enumerate(ops) if op[0] == "said" and b'"stored":' in op[1]]
    chosen = {
        random_.choice(after) if n % 2 else random_.randrange(len(ops)) for n in range(cuts)
    } | {after[-1]}
    checked = 0
    for number, op in enumerate(ops):
        if op[0] == "said":
            *lines, said = (said + op[1]).split(b"\n")
            answered += [json.loads(line)["id"] - 1000 for line in lines if b'"stored":' in line]
        else:
            disk.play(op)
        if number in chosen:
            for way in ("nothing", "some", "some", "some", "all"):
                folder = tmp_path / ("cut%d" % checked)
                folder.mkdir()
                disk.image(random_, str(folder), way)
                look(
                    folder / "memory", answered, "seed %d, after call %d, %s" % (seed, number, way)
                )
                shutil.rmtree(folder)
                checked += 1
    return checked


def look(folder, answered: list, when: str):
    """Check what an agent finds after a power cut, and that it goes on with it."""
    world = World(folder, ("files", str(folder.parent / "workspace")))
    try:
        found = {}
        for name, fields in STORES.items():
            for one in world.found(store(name, **fields), "time-range", (0, 1 << 50)):
                number, _, part = one["content"].partition(" ")[0].partition("-")
                assert part and len(one["content"]) == len(number) + len(part) + 302, (
                    "%s: a part of an entry" % when
                )
                found.setdefault(int(number), set()).add(int(part))
        for number, parts in found.items():
            name = list(STORES)[number % len(STORES)]
            assert parts == ({0} if name in ("files", "thrifty") else {0, 1}), (
                "%s: half of request %d" % (when, number)
            )
        lost = [
            number
            for number in answered
            if number not in found and list(STORES)[number % len(STORES)] != "passing"
        ]
        assert not lost, "%s: acknowledged and lost: %s" % (when, lost)
        assert world.rows("PRAGMA integrity_check") == "ok", when
        world.stores._db.run("INSERT INTO words(words) VALUES('integrity-check')")
        for name, fields in STORES.items():
            world.put(store(name, **fields), "0-0 more", key="more")
    finally:
        world.stores.close()


def test_a_power_cut_takes_nothing_that_was_acknowledged(image, tmp_path, capfd):
    ops, state = record(image, tmp_path / "home")
    assert {op[0] for op in ops} >= {"write", "sync", "create", "said", "rename", "mkdir"}
    assert play(ops, state, tmp_path, 20, 1) > 50
    capfd.readouterr()  # torn ends of the journal are told


@pytest.mark.parametrize("lie", sorted(LIES))
def test_the_replay_sees_a_promise_that_is_not_kept(image, tmp_path, lie):
    told, code = LIES[lie]
    ops, state = record(image, tmp_path / "home", code, 6)
    with pytest.raises(AssertionError, match=told):
        play(ops, state, tmp_path, 40, 1)
