"""The stores of a board over their real shell: what an operator is told, kills, power that goes,
a flash that is full, read-only or damaged.
"""

import json
import subprocess
from pathlib import Path

import pico_stack
import pytest
from agents import UUID, Agent, linux

from clawlite.host.builder import build

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
STORES = ROOT / "firmware-host/micropython/stores"
GOLDEN = ROOT / "tests/golden"
LOG = "memory-ea6d3435.log"  # of the agent "memory"


@pytest.fixture
def image(tmp_path):
    """Return the golden image with stores, on a flash of its own."""
    (tmp_path / "flash").mkdir()
    path = tmp_path / "flash/claw.cbor"
    path.write_bytes((GOLDEN / "memory/claw.cbor").read_bytes())
    return path


@pytest.fixture
def start(micropython, tree, image, tmp_path):
    """Return a function that boots the image for an operator."""

    def run(heap: str = "400k") -> Agent:
        return Agent(
            [
                pico_stack.micropython(),
                "-X",
                f"heapsize={heap}",
                tree / "start.py",
                image,
                "--stdio",
            ],
            tmp_path / "home",
            env={"MICROPYPATH": f"{tree}:.frozen"},
        )

    return run


def stored(agent, number: int, store: str, *contents, **more) -> dict:
    return agent.call(
        "claw.memory.store",
        {
            "store": store,
            "entries": [dict(content=content, **more) for content in contents],
            "context": {"request_id": UUID % number},
        },
        number,
    )


def found(agent, store: str, **query) -> dict:
    span = {"type": "time-range", "time_range": {"from": "1970-01-01", "to": "2100-01-01"}}
    return agent.call("claw.memory.query", {"store": store, "query": query or span})


def contents(agent, store: str) -> list:
    return [entry["content"] for entry in found(agent, store)["result"]["entries"]]


def timeless(value):
    """Return a reply without its time stamps."""
    if isinstance(value, dict):
        return {
            key: timeless(item)
            for key, item in value.items()
            if key not in ("timestamp", "uptime_ms")
        }
    return [timeless(item) for item in value] if isinstance(value, list) else value


def test_a_linked_board_and_linux_answer_the_same(start, image, tmp_path):
    """Every request of the golden transcript, over the real shells; the clocks are the
    machine's.  Linux also checks the manifest of claw.initialize, so here it is a whole one.
    """
    steps = json.loads((GOLDEN / "memory-operator.steps.json").read_text())["steps"]
    whole = '"spec":{"identity":"./IDENTITY.md","providers":["./provider.yaml"]}'
    records = [
        argument.replace('"spec":{}', whole) for _, what, argument in steps if what == "record"
    ]
    answers = []
    for agent in (start(), Agent(linux("serve", "--stdio", image), tmp_path / "linux")):
        with agent:
            replies = []
            for record in records:
                agent.send(record + "\n")
                reply = agent.message()
                while "method" in reply:
                    reply = agent.message()
                replies.append(timeless(reply))
            assert agent.errors() == ""
            answers.append(replies)
    for record, here, there in zip(records, *answers):
        assert here == there, record


def test_what_was_acknowledged_survives_kills(start):
    """Requests of three entries, sent without waiting; the process is killed in the middle of
    them.
    """
    acknowledged = 0
    for round in range(12):
        with start() as agent:
            agent.initialize()
            count = agent.call("claw.memory.compact", {"store": "room"})["result"]["entries_before"]
            newest = ["%d %d" % (n, i) for n in range(1, count // 3 + 1) for i in range(3)][-20:]
            assert (
                count >= acknowledged and count % 3 == 0 and contents(agent, "room")[-20:] == newest
            )
            acknowledged = count
            for n in range(count // 3 + 1, count // 3 + 9):
                agent.send(
                    json.dumps(
                        {
                            "jsonrpc": "2.0",
                            "id": n,
                            "method": "claw.memory.store",
                            "params": {
                                "store": "room",
                                "entries": [{"content": "%d %d" % (n, i)} for i in range(3)],
                                "context": {"request_id": UUID % n},
                            },
                        }
                    )
                    + "\n"
                )
            for _ in range(round % 7):
                if "result" in agent.message():
                    acknowledged += 3


def run(micropython, tmp_path, what: str, folder: Path = STORES) -> dict:
    done = subprocess.run(
        [
            *pico_stack.program(HERE / "store_board.py", before=(folder,)),
            what,
            tmp_path / "out.json",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads((tmp_path / "out.json").read_text())


def test_power_that_goes_at_any_moment(micropython, tmp_path):
    """Every write and erase of littlefs, half done and done: an acknowledged request is there,
    and none in half.
    """
    result = run(micropython, tmp_path, "power")
    assert result["wrong"] == [] and result["states"] > 400 and result["anew"], result


def test_the_checker_bites(micropython, tmp_path):
    """A request that is written entry by entry is found out."""
    source = (STORES / "storewrite.py").read_text()
    before = """
    _write(
        log,
        place,
        store,
        record,
        [(place.last + 1 + i, at, tag_of(entries[i][0]), texts[i]) for i in range(len(texts))],
    )
"""
    assert before in source
    source = source.replace(
        before,
        """
    for i in range(len(texts)):
        one = [(place.last + 1, at, tag_of(entries[i][0]), texts[i])]
        _write(log, place, store, record, one)
""",
    )
    (tmp_path / "storewrite.py").write_text(source)
    assert run(micropython, tmp_path, "power", tmp_path)["wrong"]


def test_power_that_goes_while_an_older_log_is_taken_over(micropython, tmp_path):
    """No turn is lost, none is there twice, those of another agent stay; a check that forgets
    what was taken is found out.
    """
    result = run(micropython, tmp_path, "moved")
    assert result["wrong"] == [] and result["states"] > 60, result
    source = (STORES / "oldturns.py").read_text()
    before = "done = mark if request == OLD else done"
    assert source.count(before) == 1
    (tmp_path / "oldturns.py").write_text(source.replace(before, "done = 0"))
    assert run(micropython, tmp_path, "moved", tmp_path)["wrong"]


def test_a_flash_that_is_full(micropython, tmp_path):
    """Half of what is free is for the log, so that it can be written anew; what is there is
    found, and there is room for more afterwards.
    """
    result = run(micropython, tmp_path, "full")
    for name in ("refused", "over", "crowded"):
        code, message, hint, data = result[name]
        assert (
            code == -32030
            and "the flash has no room for more" in message
            and data == {"cause": "full"}
        ), name
        assert hint == "remove what is old: retention, or claw.memory.compact"
    assert (
        result["kept"] == [result["count"] - 1] * 2
        and result["again"] is None
        and result["there"] == "y" * 400
        and result["mended"] == ["entry-1-1"]
    )


def test_a_conversation_goes_on_where_there_is_no_room(micropython, tmp_path):
    """The oldest turns give way, in a full index and in a full flash, and no other store's
    entries; not where that would not help.
    """
    result = run(micropython, tmp_path, "goes_on")
    assert [facts for _, facts in result["index"]] == [8] * 12 and [
        talk[-1] for talk, _ in result["index"]
    ] == list(range(12))
    assert [len(talk) for talk, _ in result["index"]] == [1, 2, 3, 4, 5, 6, 4, 5, 6, 4, 5, 6]
    assert result["refused"][:2] == [
        -32030,
        "the memory would have 40 entries, and this board has room for 20",
    ]
    assert [facts for _, facts in result["flash"]] == [8] * 48 and [
        talk[-1] for talk, _ in result["flash"]
    ] == list(range(12, 60))
    counts = [len(talk) for talk, _ in result["flash"]]
    assert max(counts) < 20 and min(counts[8:]) > 3 and result["again"][0][-2:] == [59, 60]
    assert (
        all("the flash " in message for message in result["others"])
        and result["kept"]
        and result["mended"][0][-2:] == [60, 64]
    )


def test_a_flash_that_cannot_be_written(micropython, tmp_path):
    """What is there is found; the next request after it can be written needs no restart."""
    result = run(micropython, tmp_path, "locked")
    assert result["refused"][0] == [
        -32030,
        "the memory /disk/memory.log: it cannot be written",
        "make the flash writable",
        {"cause": 30},
    ]
    assert (
        result["refused"][1] is None
        and result["there"] == ["one"]
        and result["mended"] == ["entry-1-2"]
    )


def test_entries_from_before_the_clock_was_set(micropython, tmp_path):
    assert run(micropython, tmp_path, "unset") == {
        "again": True,
        "before": [["unset"], []],
        "after": [["2027-01-15T08:00:00.000Z", "unset"], ["note 2"]],
        "old": [[], []],
    }


def test_each_byte_that_is_another_one(micropython, tmp_path):
    """In the last record it is a torn end, before it damage: never other entries."""
    done = subprocess.run(
        [*pico_stack.program(HERE / "store_board.py"), "damage", tmp_path / "out.json"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and set(done.stderr.splitlines()) == {
        "clawlite: the memory's last 100 bytes were not whole, and are lost"
    }, done.stderr[-300:]
    result = json.loads((tmp_path / "out.json").read_text())
    assert (
        result["wrong"] == []
        and result["shorter"] == 100
        and result["damaged"] == result["bytes"] - 100
    ), result


@pytest.fixture
def kept(start, image):
    """Return the log of a board that was told ten things."""
    with start() as agent:
        agent.initialize()
        for number in range(1, 11):
            stored(agent, number, "room", "thing %d" % number)
    return image.parent / LOG


def test_a_log_that_cannot_be_read(start, kept):
    """-32030 for each request, an agent that answers, and no restart once it is mended."""
    data = kept.read_bytes()
    kept.unlink()
    kept.mkdir()
    with start() as agent:
        agent.initialize()
        for answer in (found(agent, "room"), stored(agent, 50, "room", "x")):
            assert (
                answer["error"]["code"] == -32030
                and LOG in answer["error"]["message"]
                and answer["error"]["data"]["hint"]
            )
        assert agent.call("claw.status")["result"]["state"] == "READY"
        kept.rmdir()
        kept.write_bytes(data)
        assert len(contents(agent, "room")) == 10 and "result" in stored(agent, 50, "room", "x")


def test_a_damaged_log_is_never_replaced(start, kept):
    data = bytearray(kept.read_bytes())
    data[len(data) // 2] ^= 0x20
    kept.write_bytes(data)
    with start() as agent:
        agent.initialize()
        for answer in (found(agent, "room"), stored(agent, 50, "room", "x")):
            assert (
                answer["error"]["code"] == -32030
                and "is damaged at byte" in answer["error"]["message"]
            )
            assert answer["error"]["data"] == {
                "cause": "damaged",
                "hint": "copy it to a computer, and remove it to begin anew",
            }
    assert kept.read_bytes() == data


def test_a_torn_end_is_lost_and_said(start, kept):
    kept.write_bytes(kept.read_bytes()[:-3])
    with start() as agent:
        agent.initialize()
        assert contents(agent, "room") == ["thing %d" % number for number in range(1, 10)]
        assert stored(agent, 50, "room", "x")["result"]["ids"] == ["entry-1-10"]
        assert agent.errors().startswith(
            "clawlite: the memory's last "
        ) and agent.errors().endswith(" bytes were not whole, and are lost\n")
    with start() as agent:
        agent.initialize()
        assert len(contents(agent, "room")) == 10 and agent.errors() == ""


def test_bounds_of_a_board(start):
    """A content of 4,096 bytes, a request of 8,192, 32 parts, an answer of 8 KiB; no vectors."""
    with start() as agent:
        agent.initialize()
        assert "result" in stored(agent, 1, "room", "x" * 4095) and "result" in stored(
            agent, 2, "room", "x" * 4096
        )
        assert (
            stored(agent, 3, "room", "x" * 4097)["error"]["message"]
            == "entries[0].content: expected at most 4096 bytes"
        )
        texts = ["x" * 170] * 40 + ["x" * (8192 - 25 - 41 * 28 - 170 * 40)]
        assert "result" in stored(agent, 4, "room", *texts)
        assert (
            stored(agent, 5, "room", *texts[:-1], texts[-1] + "x")["error"]["message"]
            == "entries: expected at most 8192 bytes at once, got 8193"
        )
        answer = found(agent, "room")["result"]
        assert answer["truncated"] is True and len(answer["entries"]) == 1 + (
            8192 - len(texts[-1]) - 192
        ) // (170 + 192)
        assert (
            "a board keeps no vectors"
            in stored(agent, 6, "notes", "x", vector=[1])["error"]["message"]
        )
        assert (
            "a board keeps no vectors"
            in found(agent, "notes", type="semantic", text="x", vector=[1])["error"]["message"]
        )
        for number in range(31):
            answer = agent.call(
                "claw.memory.store",
                {
                    "store": "facts",
                    "entries": [{"content": "x", "key": "k"}],
                    "context": {
                        "request_id": UUID % (100 + number),
                        "identity": "person %d" % number,
                    },
                },
            )
            assert "result" in answer
        answer = agent.call(
            "claw.memory.store",
            {
                "store": "facts",
                "entries": [{"content": "x", "key": "k"}],
                "context": {"request_id": UUID % 200, "identity": "one more"},
            },
        )
        assert (
            answer["error"]["code"] == -32030
            and "keeps 32 parts, and takes no other identity or channel"
            in answer["error"]["message"]
        )


def test_a_board_with_little_memory_takes_so_many_entries(start):
    """One for 256 bytes of its heap, of which the collector's tables take a fiftieth."""
    with start("160000") as agent:
        agent.initialize()
        taken, answer = 0, {"result": {}}
        while "result" in answer:
            taken += len(answer["result"].get("ids", ()))
            answer = stored(agent, taken + 1, "room", *["x"] * 20)
        words = answer["error"]["message"].split()
        assert (
            answer["error"]["code"] == -32030
            and answer["error"]["data"]["cause"] == "full"
            and int(words[4]) == taken + 20
        ), answer
        assert 160000 // 256 * 0.95 < int(words[-1]) < taken + 20
        assert contents(agent, "room")[-1] == "x"


def test_an_image_that_a_board_cannot_give_is_refused_when_it_boots(start, image, tmp_path):
    text = (GOLDEN / "memory/claw.yaml").read_text()
    for name, type, rest in (
        ("files", "workspace", ""),
        ("far", "semantic", ", search: { strategy: vector-only }"),
        ("short", "semantic", ", compaction: { strategy: summarize }"),
        ("lines", "conversation", ", backend: filesystem"),
        ("sealed", "key-value", ", encryption: true"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "claw.yaml").write_text(
            text + "        - { name: %s, type: %s%s }\n" % (name, type, rest)
        )
        for other in ("clawlite.toml", "reflex.toml"):
            (folder / other).write_text((GOLDEN / "memory" / other).read_text())
        if "encryption" in rest:
            with (folder / "clawlite.toml").open("a") as file:
                file.write('[memory]\nencryption = "KEY"\n')
        image.write_bytes(Path(build.build_beside(str(folder))).read_bytes())
        with start() as agent:
            assert agent.wait() == 2
            assert (
                agent.errors()
                == "clawlite: the store %s (%s) is not one that this board keeps - build it with "
                "--board\n" % (name, type)
            )


def test_a_request_that_ctrl_c_ended_is_stored_once(micropython, tmp_path):
    done = subprocess.run(
        [*pico_stack.program(HERE / "store_board.py"), "interrupted", tmp_path / "out.json"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-300:]
    assert json.loads((tmp_path / "out.json").read_text()) == [True, True, 1]
