"""Encrypted stores: nothing that was stored stands in a file, and what they answer is the same."""

import json
import os
import sqlite3
import subprocess
import sys

import pytest
from agents import clawlite, linux
from memory_operator import Operator
from memory_world import World, store
from run_core_micropython import ROOT

from clawlite.core.base.errors import StoreError
from clawlite.core.image.memories import CHECKPOINT, KEY_VALUE, LINEAR, SEMANTIC, SUMMARIZE
from clawlite.linux.memory.entry import fill

WORDS = ("heirloom", "watering-plan", "thursday", "greenhouse", "42.5")


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.stores.close()


def sealed(name: str = "s", **fields):
    return store(name, secret="key", **fields)


def files(folder) -> bytes:
    found = b""
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            found += file.read()
    return found


@pytest.mark.parametrize("thrifty", [False, True])
def test_no_word_of_an_entry_stands_in_a_file(world, thrifty):
    notes, facts = (
        sealed("n", type=SEMANTIC, saves_wear=thrifty),
        sealed("k", type=KEY_VALUE, saves_wear=thrifty),
    )
    for number in range(600):
        world.put(
            notes,
            {"text": "heirloom tomatoes %d" % number, "at": "greenhouse"},
            metadata={"day": "thursday"},
            vector=[42.5, 1.0, number],
        )
    for number in range(3):
        world.put(facts, "every %d days" % number, key="watering-plan")
        world.put(facts, "x", key="other")
    assert world.search(notes, "heirloom 17", 1) == [
        {"text": "heirloom tomatoes 17", "at": "greenhouse"}
    ]
    assert world.found(facts, "key", "watering-plan")[0] == dict(
        world.found(facts, "key", "watering-plan")[0], key="watering-plan", content="every 2 days"
    )
    (first,) = world.found(notes, "time-range", (0, 1 << 50), 1)
    assert first["metadata"] == {"day": "thursday"} and "key" not in first
    world.stores.close()
    data = files(world.folder)
    assert not [word for word in WORDS if word.encode() in data] and b"every" not in data
    from clawlite.linux.memory.search import pack

    assert pack([42.5, 1.0, 0]) not in data
    with sqlite3.connect(world.folder + "/memory.db") as connection:
        assert (
            connection.execute("SELECT count(*) FROM words_data WHERE id > 10").fetchone()[0] == 0
        ), "the index is empty"
    connection.close()
    world.open()
    assert len(world.all(notes)) == 600 and world.found(facts, "key", "other")[0]["content"] == "x"


def test_an_encrypted_store_answers_as_another_does(world):
    plain, closed = (
        store("p", type=SEMANTIC, fusion=LINEAR),
        sealed("c", type=SEMANTIC, fusion=LINEAR),
    )
    for one in (plain, closed):
        for number, text in enumerate(
            ("the pump is blue", "the hose is green and the pump", "a lamp", "a hose")
        ):
            world.put(one, text, vector=[1.0, number])
        world.put(one, "with a key", key="k")
    for query in (("hose", None), ("", [1.0, 2.0]), ("pump", [1.0, 3.0])):
        assert world.search(plain, *query[:1], 4, query[1]) == world.search(
            closed, *query[:1], 4, query[1]
        )
    assert (
        world.found(plain, "key", "k")[0]["content"]
        == world.found(closed, "key", "k")[0]["content"]
    )
    tasks = sealed("t", type=CHECKPOINT, snapshots=2)
    for step in range(3):
        world.put(tasks, {"task_id": "a", "step_index": step}, key="a")
    assert [entry["content"]["step_index"] for entry in world.found(tasks, "key", "a")] == [2, 1]


def test_old_values_go_and_requests_are_known(world):
    facts, again = sealed(type=KEY_VALUE, max_entries=2), world.id()
    ids = world.put(facts, "1", key="a", id=again)
    assert world.put(facts, "1", key="a", id=again) == ids
    with pytest.raises(Exception, match="another request had this id"):
        world.put(facts, "2", key="a", id=again)
    for key in "bcd":
        world.put(facts, "1", key=key)
    assert [entry["key"] for entry in world.found(facts, "time-range", (0, 1 << 50))] == ["c", "d"]


def test_compaction_of_an_encrypted_store(world):
    talk = sealed(compaction=SUMMARIZE)
    for number in range(10):
        world.put(talk, "word %d" % number)
    ((part, last, text, before),) = world.do("oldest", talk, "", None)
    assert text.startswith("- word 0\n- word 1") and before == 10
    assert world.do("replace", talk, part, (last, "five words")) == 6
    found = world.again().found(talk, "time-range", (0, 1 << 50))
    assert (
        found[0]["content"] == "five words"
        and found[0]["metadata"] == {"summary_of": 5}
        and len(found) == 6
    )
    assert b"five words" not in files(world.folder)


def test_another_key_opens_nothing_and_adds_nothing(world):
    one = sealed()
    world.put(one, "x")
    world.secrets["key"] = "ff" * 32
    world.again()
    for ask in (lambda: world.all(one), lambda: world.put(one, "y")):
        with pytest.raises(
            StoreError,
            match="store s: it cannot be decrypted: the key is another one, or the data is damaged",
        ) as raised:
            ask()
        assert raised.value.code == -32030
    world.put(store("other"), "others go on")
    world.secrets["key"] = "0f" * 32
    assert world.again().all(one) == ["x"]


def test_encrypted_and_other_entries_are_never_mixed(world):
    world.put(sealed("a"), "x")
    world.put(store("b"), "x")
    world.again()
    with pytest.raises(StoreError, match="store a is encrypted, and the manifest does not say so"):
        world.put(store("a"), "y")
    with pytest.raises(StoreError, match="store b has entries that are not encrypted"):
        world.put(sealed("b"), "y")
    assert world.all(sealed("a")) == ["x"] == world.all(store("b"))


def test_a_damaged_entry_is_an_error(world):
    one = sealed()
    world.put(one, "x")
    world.put(one, "y")
    world.stores._db.run("UPDATE entries SET content=zeroblob(60) WHERE id&255=2")
    fill(world.stores._db)  # with the checksum of what it is now
    with pytest.raises(StoreError, match="cannot be decrypted"):
        world.all(one)


@pytest.mark.parametrize(
    "value, said",
    [
        ("short", "is no key: expected 64 hexadecimal digits"),
        ("0g" * 32, "is no key"),
        ("ab" * 16, "is no key"),
    ],
)
def test_a_secret_that_is_no_key_is_refused(world, value, said):
    world.secrets["key"] = value
    with pytest.raises(StoreError, match="store s: the secret key %s" % said) as raised:
        world.put(sealed(), "x")
    assert value not in str(raised.value)


# -- a real agent


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
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
            "inline": {"stores": [{"name": "diary", "type": "conversation", "encryption": True}]}
        },
    }
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    (folder / "clawlite.toml").write_text(
        'reflex = "reflex.toml"\n[memory]\nencryption = "DIARY_KEY"\n'
    )
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = ["hello"]\nsay = "Hello."\n')
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "claw.cbor"


def test_a_conversation_is_kept_encrypted(image, tmp_path):
    key = {"DIARY_KEY": "0123456789abcdef" * 4}
    with Operator(linux("serve", image, "--stdio"), tmp_path, env=key).boot() as one:
        assert "result" in one.put("diary", "the heirloom tomatoes", 1)
        one.end()
        one.process.wait()
    assert b"heirloom" not in files(tmp_path / "state" / "a" / "memory")
    with Operator(linux("serve", image, "--stdio"), tmp_path, env=key).boot() as one:
        assert one.all("diary") == ["the heirloom tomatoes"]


def test_without_a_key_or_the_package_the_agent_does_not_start(image, tmp_path):
    with Operator(linux("serve", image, "--stdio"), tmp_path) as one:
        assert "error" in one.boot().opened
        assert "store diary: secret DIARY_KEY: not found" in one.errors()
    without = (
        "import sys, importlib.util; find = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda name: None if name == 'cryptography' else find(name)\n"
        "from clawlite.linux.admin import commands as verbs; "
        "values = {'text': 'hello', 'manifest': %r, 'built': False}; "
        "sys.exit(verbs.run(verbs.Command('ask', values)))" % str(image)
    )
    done = subprocess.run(
        [sys.executable, "-c", without],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=dict(
            os.environ,
            PYTHONPATH=str(ROOT),
            CLAWLITE_STATE=str(tmp_path / "s"),
            DIARY_KEY="ab" * 32,
        ),
    )
    assert (
        done.returncode
        and "store diary: it is encrypted, and the package cryptography is missing" in done.stderr
        and "install 'cryptography" in done.stderr
    )


@pytest.mark.parametrize("saves_wear", [False, True])
def test_a_store_whose_key_is_wrong_takes_no_other_with_it(tmp_path, saves_wear):
    world = World(tmp_path)
    plain, sealed = (
        store("a", saves_wear=saves_wear),
        store("e", secret="key", saves_wear=saves_wear),
    )
    world.put(plain, "first")
    world.put(sealed, "first")
    world.secrets["key"] = "0e" * 32
    world.again()
    jobs = [
        (number, "store", one, "", (world.id(), [(None, text, None, None)]))
        for number, (one, text) in enumerate([(plain, "b"), (sealed, "x"), (plain, "c")])
    ]
    assert [done for _, (done, _) in world.stores.run(jobs)] == [True, False, True]
    assert world.all(plain) == ["first", "b", "c"]
    world.stores.close()
