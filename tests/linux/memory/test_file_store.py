"""Conversations in files: they answer as those in the database do, and a person can read them."""

import fcntl
import json
import os

import pytest
from memory_world import World, store

from clawlite.core.base.errors import ClawError, InvalidParams, StoreError
from clawlite.core.image.memories import SUMMARIZE, TRUNCATE, WINDOW
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.memory import file_store, jsonl


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.stores.close()


def paper(name: str = "s", **fields):
    return store(name, **dict({"path": ""}, **fields))


def file(world, name: str = "s") -> str:
    return "%s/files/%s/conversation.jsonl" % (world.folder, name)


@pytest.mark.parametrize("one", [paper(), store()], ids=["files", "database"])
def test_entries_come_back_in_their_order_and_whole(world, one):
    assert world.all(one) == [] and world.do("compact", one, "", WINDOW) == (0, 0)
    world.put(one, "a", {"text": "é\n\u2028 \U0001f600"}, "", metadata={"k": [1]})
    world.now += 1000
    world.put(one, "b", key="name")
    found = world.again().found(one, "time-range", (0, 1 << 50))
    assert [entry["content"] for entry in found] == ["a", {"text": "é\n\u2028 \U0001f600"}, "", "b"]
    assert (
        found[0]["metadata"] == {"k": [1]}
        and "key" not in found[0]
        and found[3]["key"] == "name"
        and found[3]["timestamp"] == "2027-01-15T08:00:01.000Z"
    )
    assert len({entry["id"] for entry in found}) == 4
    assert [
        entry["content"] for entry in world.found(one, "time-range", (world.now, world.now))
    ] == ["b"]
    assert [entry["content"] for entry in world.found(one, "key", "name")] == ["b"]
    assert world.do("query", one, "", ("time-range", (0, 1 << 50), 2, None))["truncated"] is True
    assert [entry["content"] for entry in world.found(one, "time-range", (0, 1 << 50), 2)] == [
        "",
        "b",
    ]


@pytest.mark.parametrize("one", [paper(), store()], ids=["files", "database"])
def test_words_are_found(world, one):
    for text in ("the pump is blue", "a lamp", "the blue pump, the blue hose"):
        world.put(one, text)
    assert world.search(one, "BLUE hose") == [
        "the blue pump, the blue hose",
        "the pump is blue",
    ] and world.search(one, "cat") == [] == world.search(one, " ")
    assert world.found(one, "semantic", "lamp")[0]["score"] > 0


@pytest.mark.parametrize("one", [paper(), store()], ids=["files", "database"])
def test_the_same_request_stores_once(world, one):
    again = world.id()
    ids = world.put(one, "a", "b", id=again)
    assert world.put(one, "a", "b", id=again) == ids == world.again().put(one, "a", "b", id=again)
    with pytest.raises(InvalidParams, match="another request had this id"):
        world.put(one, "c", id=again)
    world.now += 300001
    assert world.put(one, "c", id=again) != ids and world.all(one) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "one",
    [paper(max_entries=3, max_age_s=60), store(max_entries=3, max_age_s=60)],
    ids=["files", "database"],
)
def test_age_and_number_are_bounds(world, one):
    for number in range(5):
        world.put(one, str(number))
        world.now += 1000
    assert world.all(one) == ["2", "3", "4"]
    world.now += 58500
    assert world.all(one) == ["4"]


@pytest.mark.parametrize(
    "one",
    [paper(max_age_s=60), store(max_age_s=60), store(max_age_s=60, saves_wear=True)],
    ids=["files", "database", "journal"],
)
def test_a_clock_that_nobody_has_set_brings_nothing_back_and_takes_nothing_away(world, one):
    now, world.now = world.now, 5000
    world.put(one, "untimed")
    world.now = now
    assert world.again().all(one) == ["untimed"]
    world.put(one, "first")
    assert world.again().all(one) == ["untimed", "first"]
    world.now += 61000
    world.put(one, "second")
    for _ in range(2):
        assert world.again().all(one) == ["second"]
        world.now = 7000
    assert (
        world.all(one) == ["second"]
        and world.put(one, "third")
        and world.all(one) == ["second", "third"]
    )
    world.now = now + 122000
    assert world.all(one) == []


@pytest.mark.parametrize("one", [paper(), store()], ids=["files", "database"])
def test_a_clock_that_was_years_ahead_once_leaves_no_trace(world, one):
    right = world.now
    world.put(one, "before")
    world.now = right + 73 * 366 * 86400000
    world.put(one, "a", "b")
    world.now = right + 1000
    for text in ("after", "again"):
        world.again().put(one, text)
    texts = ["before", "a", "b", "after", "again"]
    found = world.found(one, "time-range", (right, right + 60000))
    assert [entry["content"] for entry in found] == texts == world.again().all(one)


@pytest.mark.parametrize("make", [paper, store], ids=["files", "database"])
def test_compaction(world, make):
    one = make(max_entries=10, compaction=TRUNCATE)
    for number in range(12):
        world.put(one, str(number))
    assert world.do("compact", one, "", TRUNCATE) == (10, 5) and world.all(one) == [
        "7",
        "8",
        "9",
        "10",
        "11",
    ]
    ((part, last, text, before),) = world.do("oldest", make(max_entries=10), "", None) or (
        (None,) * 4,
    )
    assert part is None, "five are too few for a summary"
    for number in range(12, 15):
        world.put(one, str(number))
    ((part, last, text, before),) = world.do("oldest", one, "", None)
    assert (part, before, text) == ("", 8, "- 7\n- 8\n- 9\n- 10") and world.do(
        "replace", one, "", (last, "four numbers")
    ) == 5
    found = world.again().found(one, "time-range", (0, 1 << 50))
    assert [entry["content"] for entry in found] == [
        "four numbers",
        "11",
        "12",
        "13",
        "14",
    ] and found[0]["metadata"] == {"summary_of": 4}
    with pytest.raises(StoreError, match="the entries to summarize are gone"):
        world.do("replace", one, "", (last - 1, "x"))
    ids = {entry["id"] for entry in found}
    assert world.put(one, "more")[0] not in ids


def test_a_full_store_says_so(world):
    one = paper(compacts=True, compaction=SUMMARIZE, max_entries=8)
    told = [
        world.do("store", one, "", (world.id(), [(None, str(n), None, None)])).get("is_full")
        for n in range(20)
    ]
    assert told == [None] * 7 + [True] + [None] * 7 + [True] + [None] * 4


def test_what_is_forgotten_leaves_the_file(world):
    one = paper(max_entries=10)
    for number in range(300):
        world.put(one, "entry %d" % number)
        world.now += 10000
    assert os.path.getsize(file(world)) < 10000 and world.all(one) == [
        "entry %d" % n for n in range(290, 300)
    ]
    assert world.put(one, "x") == ["entry-301"]


def test_a_retry_is_known_after_its_entries_are_gone(world):
    one, again = paper(), world.id()
    ids = world.put(one, "a", id=again)
    for number in range(5):
        world.put(one, str(number))
    world.do("compact", paper(max_entries=2), "", WINDOW)
    assert world.put(one, "a", id=again) == ids and world.all(one) == ["3", "4"]


def test_a_person_can_read_it(world):
    world.put(paper(), {"role": "user", "text": "Grüße"}, metadata={"from": "console"})
    (line,) = open(file(world), encoding="utf-8").read().splitlines()
    found = json.loads(line)
    assert found == {
        "n": 1,
        "at": world.now,
        "request": found["request"],
        "entries": [[{"role": "user", "text": "Grüße"}, None, {"from": "console"}]],
        "crc": found["crc"],
    }
    assert "Grüße" in line and os.stat(file(world)).st_mode & 0o777 == 0o600


def test_parts_lie_in_folders_and_paths_where_they_say(world, tmp_path):
    one = paper(path=str(tmp_path / "talks"))
    world.put(one, "a", part="identity/alice")
    world.put(one, "b", part="identity/../../bob")
    assert (
        world.do("query", one, "identity/alice", ("time-range", (0, 1 << 50), 9, None))["entries"][
            0
        ]["content"]
        == "a"
    )
    assert (tmp_path / "talks" / "identity" / "alice" / "conversation.jsonl").exists() and len(
        list((tmp_path / "talks").rglob("*.jsonl"))
    ) == 2
    assert world.found(one, "time-range", (0, 1 << 50)) == []


def test_two_processes_share_a_file(world):
    one, other = paper(), World(world.folder)
    other._ids = world._ids
    for number in range(20):
        (world, other)[number % 2].put(one, str(number))
        if number == 10:
            other.do("compact", paper(max_entries=5), "", WINDOW)
    assert world.all(one) == other.all(one) == [str(n) for n in range(6, 20)]
    other.stores.close()


@pytest.mark.parametrize("end", [b'{"n": 3, "at"', b"\0" * 100, b'{"n": 3}\n', b"\0\0\n"])
def test_a_torn_end_is_cut_off_and_kept_aside(world, end):
    one = paper()
    world.put(one, "a")
    world.put(one, "b")
    with open(file(world), "ab") as out:
        out.write(end)
    assert world.all(one) == ["a", "b"] == world.again().all(one)
    assert world.put(one, "c") == ["entry-3"] and world.again().all(one) == ["a", "b", "c"]
    assert open(file(world) + ".damaged", "rb").read() == end


def test_a_line_that_a_power_cut_took_from_between_is_set_aside(world, capfd):
    one = paper()
    for word in ("a", "b", "c"):
        world.put(one, word)
    lines = open(file(world), "rb").read().split(b"\n")
    lines[1] = lines[1][:20] + b"\0" * 30
    with open(file(world), "wb") as out:
        out.write(b"\n".join(lines))
    assert world.all(one) == ["a", "c"]
    assert "was damaged: line 2; " in capfd.readouterr().err
    assert open(file(world) + ".damaged", "rb").read() == b"\n".join(lines)


@pytest.mark.parametrize(
    "line",
    [
        '{"n": 1, "at": 1}',
        "[]",
        "x",
        '{"n": "1", "at": 1, "request": null, "entries": []}',
        '{"n": 1, "at": 1, "request": 5, "entries": []}',
        '{"n": 1, "at": 1, "request": null, "entries": [["a", 1, null]]}',
        '{"n": 0, "at": 1, "request": null, "entries": [["a", null, null]]}',
    ],
)
def test_a_line_that_is_none_is_told_and_set_aside(world, capfd, line):
    one = paper()
    world.put(one, "a")
    world.put(one, "b")
    whole = open(file(world)).read()
    with open(file(world), "w") as out:
        out.write(line + "\n" + whole)
    assert world.all(one) == ["a", "b"] and "was damaged: line 1; " in capfd.readouterr().err
    assert (
        open(file(world) + ".damaged").read() == line + "\n" + whole
        and open(file(world)).read() == whole
    )
    assert world.put(one, "c") == ["entry-3"] and world.again().all(one) == ["a", "b", "c"]
    assert capfd.readouterr().err == "", "it is told once"


def test_a_line_that_cannot_be_set_aside_is_an_error_that_names_it(world):
    one = paper()
    world.put(one, "a")
    with open(file(world)) as old:
        whole = old.read()
    with open(file(world), "w") as out:
        out.write("x\n" + whole)
    for end in ("", *(".%d" % number for number in range(2, 9))):
        os.mkdir(file(world) + ".damaged" + end)
    for ask in (lambda: world.all(one), lambda: world.put(one, "c")):
        with pytest.raises(StoreError, match="line 1 is no line of a conversation") as raised:
            ask()
        assert raised.value.code == -32030 and "repair it" in raised.value.hint
    with open(file(world), "w") as out:
        out.write(whole)
    assert world.all(one) == ["a"], "what is mended needs no restart"


def test_no_flipped_bit_loses_or_changes_an_entry_without_a_word(world, capfd):
    one, words = paper(), ["water the beds", "thr\u00e9e", "42"]
    for word in words:
        world.put(one, word)
    path = file(world)
    with open(path, "rb") as source:
        data = source.read()
    told = 0
    for at in range(0, 8 * len(data), 3):
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        with open(path, "wb") as out:
            out.write(changed)
        lines = jsonl.JSONLFile(path, dumps, loads)
        assert lines.open(False)
        found = [entry[0] for record in lines.records for entry in record.entries]
        lines.close()
        said = capfd.readouterr().err
        told += "conversation" in said
        assert all(word in words for word in found), (at, found)
        assert len(found) == 3 or said, at
        if os.path.exists(path + ".damaged"):
            with open(path + ".damaged", "rb") as aside:
                assert aside.read() == changed
            os.unlink(path + ".damaged")
    assert told > 8 * len(data) / 3 * 0.9, told


def test_lines_of_an_earlier_version_are_read(world, capfd):
    one = paper()
    world.put(one, "a")
    with open(file(world)) as old:
        value = json.loads(old.read())
    del value["crc"]
    with open(file(world), "w") as out:
        out.write(json.dumps(value) + "\n")
    world.put(one, "b")
    assert world.again().all(one) == ["a", "b"] and capfd.readouterr().err == ""


def test_a_disk_that_is_full_takes_no_line_in_half(world, monkeypatch):
    one = paper()
    world.put(one, "a")
    room, real = [10], os.write

    def write(fd, data):
        if not room:
            raise OSError(28, "No space left on device")
        return real(fd, data[: room.pop()])

    monkeypatch.setattr(os, "write", write)
    with pytest.raises(StoreError, match="the disk is full") as raised:
        world.put(one, "b")
    assert raised.value.code == -32030 and "make room" in raised.value.hint
    monkeypatch.undo()
    assert world.all(one) == ["a"] and world.put(one, "c") == ["entry-2"]


def test_a_file_that_cannot_be_written_is_read(world, monkeypatch):
    one = paper()
    world.put(one, "a")
    real = os.open

    def refuse(path, flags, *more, **named):
        if flags & os.O_RDWR and str(path).endswith(".jsonl"):
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match="Permission denied"):
        world.put(one, "b")
    assert world.again().all(one) == ["a"]


def test_a_file_has_a_bound(world, monkeypatch):
    one = paper(max_bytes=1 << 20)
    with pytest.raises(StoreError, match="may have 1048576"):
        for number in range(6):
            world.put(one, "x" * 262000)
    assert len(world.all(one)) == 4 - (4 * 262000 > 1 << 20)
    with pytest.raises(InvalidParams, match="at most 262144 bytes"):
        world.put(one, "x" * 262145)
    with pytest.raises(InvalidParams, match="not searched by vectors"):
        world.put(one, "x", vector=[1.0])
    with open(file(world), "ab") as out:
        out.truncate(jsonl.MAX_BYTES + 1)
    with pytest.raises(StoreError, match="has more than 16777216 bytes"):
        world.all(one)
    monkeypatch.setattr(file_store, "MAX_BYTES", 100)
    with pytest.raises(ClawError, match="may have 100"):
        world.put(paper("t"), "x" * 200)


def test_what_is_written_beside_the_file_goes_through_no_link_of_a_tool(world, tmp_path):
    one, victim = paper(), tmp_path / "victim"
    victim.write_text("precious")
    world.put(one, *"abcdef")
    for suffix in (".new", ".damaged"):
        os.symlink(victim, file(world) + suffix)
    with open(file(world), "ab") as torn:
        torn.write(b'{"n"')
    world.again().put(one, "g")
    world.do("compact", store("s", path="", max_entries=2), "", WINDOW)
    assert victim.read_text() == "precious" and world.again().all(one) == ["f", "g"]
    assert (
        not os.path.islink(file(world))
        and open(file(world) + ".damaged.2").read() == '{"n"'
        and os.stat(file(world)).st_mode & 0o777 == 0o600
    )


def test_nobody_holds_the_agent_up_by_a_lock(world, monkeypatch):
    one = paper()
    world.put(one, "a")
    with open(file(world)) as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        monkeypatch.setattr(jsonl, "_LOCK_TRIES", 2)
        with pytest.raises(StoreError, match="another program has it locked"):
            world.put(one, "b")
    assert world.put(one, "b") and world.all(one) == ["a", "b"]


def test_a_file_that_becomes_shorter_while_it_is_read_ends_the_reading(world):
    world.put(paper(), "a", "b")
    lines = jsonl.JSONLFile(file(world), json.dumps, json.loads)
    lines._log.adopt(os.open(file(world), os.O_RDWR))
    status = os.fstat(lines._log.fd)
    os.truncate(file(world), 5)
    with pytest.raises(StoreError, match="got shorter"):
        lines._read(status)
    lines.close()


def test_a_pipe_in_the_place_of_the_file_is_an_error(world):
    world.put(paper(), "a")
    os.unlink(file(world))
    os.mkfifo(file(world))
    with pytest.raises(StoreError, match="is no file"):
        world.put(paper(), "b")
    with pytest.raises(StoreError, match="is no file"):
        world.again().all(paper())
