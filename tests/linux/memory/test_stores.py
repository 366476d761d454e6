"""The memory's stores over real SQLite: what is stored, found, forgotten, compacted; a clock
that the tests move.
"""

import sqlite3

import pytest
from memory_world import World, store

from clawlite.core.base.errors import InvalidParams, StoreError
from clawlite.core.image.memories import (
    CHECKPOINT,
    CONVERSATION,
    FTS,
    KEY_VALUE,
    LINEAR,
    PER_IDENTITY,
    RECIPROCAL,
    SEMANTIC,
    SUMMARIZE,
    TRUNCATE,
    VECTOR,
    WINDOW,
    WORKSPACE,
)
from clawlite.linux.memory import database, partitions, search, stores

DAY_MS = 86400000


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.stores.close()


def test_entries_come_back_in_their_order_and_whole(world):
    one = store()
    ids = world.put(one, "first", {"b": 1, "a": [None, 2.5, "ü"]}, metadata={"source": "test"})
    world.now += 1500
    ids += world.put(one, "last")
    assert world.found(one, "time-range", (0, 1 << 50)) == [
        {
            "id": ids[0],
            "content": "first",
            "timestamp": "2027-01-15T08:00:00.000Z",
            "metadata": {"source": "test"},
        },
        {
            "id": ids[1],
            "content": {"b": 1, "a": [None, 2.5, "ü"]},
            "timestamp": "2027-01-15T08:00:00.000Z",
            "metadata": {"source": "test"},
        },
        {"id": ids[2], "content": "last", "timestamp": "2027-01-15T08:00:01.500Z"},
    ]
    assert world.again().all(one) == ["first", {"b": 1, "a": [None, 2.5, "ü"]}, "last"]


def test_a_time_range_holds_both_its_ends(world):
    one = store()
    for n in range(100):
        world.put(one, "m%d" % n)
        world.now += 1000
    begin = world.now - 100000
    assert [
        entry["content"] for entry in world.found(one, "time-range", (begin + 10000, begin + 12000))
    ] == ["m10", "m11", "m12"]
    assert world.found(one, "time-range", (begin + 10001, begin + 10999)) == []
    assert (
        world.found(one, "time-range", (0, begin - 1))
        == []
        == world.found(one, "time-range", (world.now, 1 << 50))
    )


def test_of_too_many_in_a_range_the_newest_are_given_and_it_says_so(world):
    one = store()
    world.put(one, *["m%d" % n for n in range(10)])
    answer = world.do("query", one, "", ("time-range", (0, 1 << 50), 9, None))
    assert answer["truncated"] is True and [entry["content"] for entry in answer["entries"]] == [
        "m%d" % n for n in range(1, 10)
    ]
    assert "truncated" not in world.do("query", one, "", ("time-range", (0, 1 << 50), 10, None))


def test_an_answer_has_a_bound_and_says_so(world):
    one = store()
    for _ in range(5):
        world.put(one, "x" * 262144)
    answer = world.do("query", one, "", ("time-range", (0, 1 << 50), 1000, None))
    assert len(answer["entries"]) == 4 and answer["truncated"] is True
    answer = world.do("query", one, "", ("semantic", "x" * 262144, 10, None))
    assert len(answer["entries"]) == 4 and answer["truncated"] is True


def test_one_request_without_room_takes_no_other_with_it(world, tmp_path):
    full, one = store("work", type=WORKSPACE, path=str(tmp_path / "ws"), max_bytes=3), store()
    jobs = [
        (1, "store", one, "", (world.id(), [(None, "a", None, None)])),
        (2, "store", full, "", (world.id(), [("k", "long", None, None)])),
        (3, "store", one, "", (world.id(), [(None, "b", None, None)])),
    ]
    assert [(number, outcome[0]) for number, outcome in world.stores.run(jobs)] == [
        (1, True),
        (2, False),
        (3, True),
    ]
    assert world.all(one) == ["a", "b"] and world.all(full) == []


def test_a_clock_that_goes_back_stands_still(world):
    one = store()
    world.put(one, "a")
    world.now -= DAY_MS
    world.put(one, "b")
    stamps = [entry["timestamp"] for entry in world.found(one, "time-range", (0, 1 << 50))]
    assert stamps[0] == stamps[1] and world.again().all(one) == ["a", "b"]


@pytest.mark.parametrize("saves_wear", [False, True])
def test_a_clock_that_was_years_ahead_once_leaves_no_trace(world, saves_wear):
    one = store(saves_wear=saves_wear)
    right = world.now
    world.put(one, "before")
    world.now = right + 73 * 365 * DAY_MS
    for text in ("a", "b"):
        world.put(one, text)
    world.now = right + 1000
    for again in (False, True):
        world = world.again() if again else world
        world.put(one, "again" if again else "after")
    found = world.found(one, "time-range", (right - 1, right + DAY_MS))
    texts = [entry["content"] for entry in found]
    assert texts == ["before", "a", "b", "after", "again"], "none is lost, and all are there now"
    assert world.found(one, "time-range", (right + DAY_MS, 1 << 50)) == []


def test_a_clock_that_was_a_year_ahead_or_is_not_set_changes_no_entry(world):
    one = store()
    world.put(one, "a")
    before = world.found(one, "time-range", (0, 1 << 50))[0]["timestamp"]
    for now in (world.now - 4 * 365 * DAY_MS, 1000):
        world.now = now
        world.put(one, "b")
    assert {e["timestamp"] for e in world.found(one, "time-range", (0, 1 << 50))} == {before}


def test_the_same_request_stores_once(world):
    one, id = store(), world.id()
    first = world.put(one, "once", id=id)
    assert world.put(one, "once", id=id) == first and world.all(one) == ["once"]
    assert world.again().put(one, "once", id=id) == first and world.rows() == 1
    with pytest.raises(InvalidParams, match="another request had this id within 300 s"):
        world.put(one, "twice", id=id)
    assert world.all(one) == ["once"]
    world.now += 300001
    assert world.put(one, "twice", id=id) != first and world.all(one) == ["once", "twice"]


def test_two_requests_of_one_commit_with_one_id_store_once(world):
    one, id = store(), world.id()
    job = ("store", one, "", (id, [(None, "once", None, None)]))
    (_, first), (_, second) = world.stores.run([(1, *job), (2, *job)])
    assert first == second and first[0] and world.all(one) == ["once"]


def test_a_key_has_its_last_value(world):
    one = store(type=KEY_VALUE)
    world.put(one, "red", key="colour")
    world.put(one, {"n": 1}, key="number")
    world.put(one, "blue", key="colour")
    assert [entry["content"] for entry in world.found(one, "key", "colour")] == ["blue"]
    assert (
        world.found(one, "key", "number")[0]["content"] == {"n": 1}
        and world.found(one, "key", "none") == []
    )
    assert world.again().all(one) == [{"n": 1}, "blue"]
    assert world.search(one, "blue red") == ["blue"]


def test_old_values_are_deleted_once_no_request_needs_them(world):
    one = store(type=KEY_VALUE)
    for n in range(100):
        world.put(one, "v%d" % n, key="k")
    assert world.rows() <= stores.MAX_SAME + 1
    world.now += 300001
    world.put(one, "last", key="k")
    assert world.rows() == 1 and world.found(one, "key", "k")[0]["content"] == "last"


def test_keys_written_longest_ago_give_way(world):
    one = store(type=KEY_VALUE, max_entries=3)
    for key in "abcad":
        world.put(one, key.upper(), key=key)
    assert world.all(one) == ["C", "A", "D"] and world.found(one, "key", "b") == []


def test_no_more_than_max_entries_are_alive(world):
    one = store(max_entries=5)
    for n in range(20):
        world.put(one, "m%d" % n)
    assert world.all(one) == ["m15", "m16", "m17", "m18", "m19"] == world.again().all(one)
    assert world.search(one, "m3 m16") == ["m16"]


def test_what_is_too_old_is_gone_and_then_deleted(world):
    one = store(max_age_s=30 * 86400)
    ids = world.put(one, "old")
    world.now += 30 * DAY_MS
    world.put(one, "edge")
    assert world.all(one) == ["old", "edge"]
    world.now += 1
    assert world.all(one) == ["edge"] and world.search(one, "old") == []
    world.now += 40 * DAY_MS
    assert world.all(one) == []
    assert world.put(one, *["n%d" % n for n in range(stores.BATCH)])[0] not in ids
    assert (
        world.rows() == stores.BATCH
        and world.rows("SELECT count(*) FROM words WHERE words MATCH 'old'") == 0
    )


def test_a_week_of_retention_keeps_the_file_small(world):
    one = store(max_age_s=86400, max_entries=1000)
    for hour in range(7 * 24):
        world.put(one, *["hour %d entry %d" % (hour, n) for n in range(50)])
        world.now += 3600000
    alive = world.all(one)
    assert (
        len(alive) == 1000
        and alive[-1] == "hour 167 entry 49"
        and world.rows() < 1000 + 2 * stores.BATCH
    )


def test_no_id_is_given_twice(world):
    one = store(max_entries=2, max_age_s=60)
    ids = []
    for n in range(20):
        ids += world.again().put(one, "x")
        world.do("compact", one, "", WINDOW)
        world.now += 100000
    assert len(set(ids)) == 20


def test_parts_of_a_store_know_nothing_of_each_other(world):
    one = store(type=KEY_VALUE, scope=PER_IDENTITY, max_entries=2)
    world.put(one, "A", part="identity/alice", key="k")
    for key in "klm":
        world.put(one, "B" + key, part="identity/bob", key=key)
    assert world.all(one, "identity/alice") == ["A"] and world.all(one, "identity/bob") == [
        "Bl",
        "Bm",
    ]
    assert (
        world.all(one, "identity/nobody") == [] and world.rows("SELECT count(*) FROM places") == 2
    )
    assert world.do("compact", one, None, WINDOW) == (3, 3) and world.do(
        "compact", one, "identity/alice", WINDOW
    ) == (1, 1)


def test_a_store_has_a_bound_of_parts(world, monkeypatch):
    monkeypatch.setattr(partitions, "MAX_PLACES", 2)
    for name in "ab":
        world.put(store(), "x", part=name)
    with pytest.raises(StoreError, match="has 2 parts, and takes no other"):
        world.put(store(), "x", part="c")
    assert world.all(store(), "a") == ["x"] and world.put(store("t"), "x", part="c")


def test_words_are_found_in_the_index_and_before_it(world):
    one = store(type=SEMANTIC)
    fillers = stores.BATCH - 6
    world.put(one, *["filler number %d of many" % n for n in range(fillers)])
    world.put(one, "The Größe of the café is secret")
    assert world.search(one, "cafe GROSSE größe") == ["The Größe of the café is secret"]
    assert world.stores._places.find(one, "", 0).indexed == 1 << 40
    world.put(one, *["more filler %d" % n for n in range(10)])
    assert world.stores._places.find(one, "", 0).indexed == (1 << 40) + fillers + 11
    assert (
        world.search(one, "cafe")
        == ["The Größe of the café is secret"]
        == world.again().search(one, "café secret")
    )
    world.put(one, "another café, not indexed yet")
    assert set(world.search(one, "café")) == {
        "The Größe of the café is secret",
        "another café, not indexed yet",
    }
    assert world.search(one, "?!") == [] == world.search(one, 'nothing "like NEAR( that*')


def test_common_words_are_not_searched_for_through_the_whole_index(world):
    one, asked = store(type=SEMANTIC), []
    lines = ["%s line %d" % ("odd" if n % 2 else "even", n) for n in range(4 * search.MAX_LOOKED)]
    lines[7] += " pump broken"  # far back: the newest with each word alone are others
    for n in range(100):
        lines[500 + 15 * n] += " pump"
    world.put(one, *lines)
    world.stores._db._connection.set_trace_callback(asked.append)
    assert {lines[-1], lines[-2]} <= set(world.search(one, "odd even", 50))
    together = [sql for sql in asked if '" AND "' in sql]
    assert together == []  # it would go through both lists to their ends
    assert world.search(one, "odd line broken", 1) == [lines[7]]
    assert world.search(one, "even pump", 1) == [lines[500 + 15 * 98]]


def test_of_common_words_the_newest_entries_with_all_are_found(world):
    one = store(type=SEMANTIC)
    world.put(one, *["valve", "pump"] * (search.MAX_LOOKED // 2 + 100), "filler")
    world.put(one, "valve pump", *["valve", "pump"] * 200)  # of each word 200 are newer
    world.put(one, *["filler"] * stores.BATCH)
    assert world.search(one, "valve pump", 1) == ["valve pump"]
    world.put(one, *["valve", "pump"] * search.MAX_LOOKED)  # and now too many
    assert "valve pump" not in world.search(one, "valve pump", 100)


def test_scores_say_how_much_of_the_question_is_there(world):
    one = store(type=SEMANTIC)
    world.put(
        one,
        "soil moisture of the greenhouse",
        "soil",
        "the weather in Paris",
        "greenhouse soil soil moisture moisture",
    )
    found = world.found(one, "semantic", "greenhouse soil moisture", 10)
    assert [entry["content"] for entry in found] == [
        "greenhouse soil soil moisture moisture",
        "soil moisture of the greenhouse",
        "soil",
    ]
    assert all(0 < entry["score"] <= 1 for entry in found)
    assert len(world.search(one, "soil", 2)) == 2


def test_vectors_are_compared(world):
    one = store(type=SEMANTIC, search=VECTOR)
    world.put(one, "north", vector=[0, 2])
    world.put(one, "east", vector=[3.5, 0])
    world.put(one, "other", vector=[1, 2, 3])
    found = world.again().found(one, "semantic", "x", 10, [1, 3])
    assert [(entry["content"], entry["score"]) for entry in found] == [
        ("north", 0.9743),
        ("east", 0.6581),
    ]


@pytest.mark.parametrize(
    "fusion, order",
    [(RECIPROCAL, ["both", "word", "vector"]), (LINEAR, ["both", "vector", "word"])],
)
def test_words_and_vectors_make_one_order(world, fusion, order):
    one = store(type=SEMANTIC, fusion=fusion)
    world.put(one, "both pump", vector=[1, 0])
    world.put(one, "vector", vector=[1, 0.1])
    world.put(
        one, "word pump of a long text about everything else that there is to say", vector=[-1, 0]
    )
    found = world.found(one, "semantic", "pump", 3, [1, 0])
    assert sorted(entry["content"].split()[0] for entry in found) == sorted(order)
    assert found[0]["content"] == "both pump" and all(0 < entry["score"] <= 1 for entry in found)
    words = store(type=SEMANTIC, search=FTS)
    assert len(world.found(words, "semantic", "pump", 3, [1, 0])) == 2


def test_truncate_leaves_half_and_a_window_what_fits(world):
    one = store(max_entries=100, compaction=TRUNCATE)
    world.put(one, *["m%d" % n for n in range(90)])
    assert (
        world.do("compact", one, "", TRUNCATE) == (90, 50)
        and world.all(one)[0] == "m40"
        and world.rows() == 50
    )
    assert world.do("compact", one, "", TRUNCATE) == (50, 50) and world.do(
        "compact", one, "", WINDOW
    ) == (50, 50)
    assert world.do("compact", one, "nobody", WINDOW) == (0, 0)
    two = store("t", max_entries=100, compaction=TRUNCATE, compacts=True)
    assert "is_full" not in world.do("store", two, "", (world.id(), [(None, "x", None, None)] * 99))
    assert world.do("store", two, "", (world.id(), [(None, "x", None, None)]))["is_full"] is True
    assert "is_full" not in world.do("store", two, "", (world.id(), [(None, "x", None, None)])), (
        "it is asked for once"
    )


def test_a_summary_takes_the_place_of_the_older_half(world):
    one = store(type=SEMANTIC, compaction=SUMMARIZE)
    world.put(one, *["note %d about pumps" % n for n in range(300)])
    world.stores._places.index(world.stores._places.find(one, "", 0))
    ((part, last, text, before),) = world.do("oldest", one, None, None)
    assert (
        part == ""
        and before == 300
        and text.splitlines()[0] == "- note 0 about pumps"
        and len(text.splitlines()) == 150
    )
    assert world.do("replace", one, "", (last, "all about gaskets")) == 151
    assert world.all(one)[0] == "all about gaskets" and world.all(one)[1] == "note 150 about pumps"
    assert world.search(one, "gaskets") == ["all about gaskets"] and world.search(one, "0") == []
    assert world.found(one, "time-range", (0, 1 << 50))[0]["metadata"] == {"summary_of": 150}
    with pytest.raises(StoreError, match="the entries to summarize are gone"):
        world.do("replace", one, "", (last - 1, "again"))
    assert world.do("oldest", store("few"), None, None) == []


@pytest.mark.parametrize("path", [None, "talk"], ids=["database", "files"])
@pytest.mark.parametrize("messages", [1, 2, 3, 7, 100])
def test_a_summary_is_in_the_next_one(world, path, messages):
    one = store(
        type=CONVERSATION,
        compaction=SUMMARIZE,
        compacts=True,
        max_entries=100,
        path=path and world.folder + "/talk",
    )
    number = summaries = next_one = 0
    while number < 2000:
        names = ["m%d." % n for n in range(number, number + messages)]
        number += messages
        if "is_full" in world.do(
            "store", one, "", (world.id(), [(None, name, None, None) for name in names])
        ):
            ((part, last, text, before),) = world.do("oldest", one, "", None)
            assert ("summary %d " % summaries + "." * 2000 in text) == (summaries > 0), text[:200]
            assert text.splitlines()[bool(summaries)] == "- m%d." % next_one, (
                "nothing is left out between them"
            )
            next_one = int(text.splitlines()[-1][3:-1]) + 1
            summaries += 1
            world.do("replace", one, "", (last, "summary %d " % summaries + "." * 2000))
        world.now += 60000
    assert summaries > 15


@pytest.mark.parametrize("path", [None, "talk"], ids=["database", "files"])
def test_a_summary_of_many_sees_something_of_each(world, path):
    one = store(
        type=CONVERSATION,
        compaction=SUMMARIZE,
        max_entries=5000,
        path=path and world.folder + "/talk",
    )
    for number in range(0, 2000, 200):
        world.put(
            one,
            *[
                "message %4d, and what it says of pumps and gaskets" % n
                for n in range(number, number + 200)
            ],
        )
    count, seen, left = None, 0, 2000
    while count is None or count > 1:
        ((_, last, text, before),) = world.do("oldest", one, "", count)
        lines = text.splitlines()
        assert (
            before == left
            and len(lines) <= 240
            and lines[-1].endswith("pumps and gaskets")
            and (count is None or lines[0] == "- in short")
        )
        seen += len(lines) - (count is not None)
        left = world.do("replace", one, "", (last, "in short"))
        count = left - 1000
    first, second, *_ = world.found(one, "time-range", (0, 1 << 50), 2000)
    assert (
        seen == 1000
        and left == 1001
        and (first["content"], second["content"])
        == ("in short", "message 1000, and what it says of pumps and gaskets")
    )


def test_checkpoints_are_kept_by_task(world):
    one = store(type=CHECKPOINT, snapshots=2, max_age_s=3600)
    for step in range(4):
        world.put(one, {"task_id": "t", "step_index": step}, key="t")
    world.put(one, {"task_id": "u", "step_index": 0}, key="u")
    assert [entry["content"]["step_index"] for entry in world.found(one, "key", "t", 10)] == [3, 2]
    assert len(world.found(one, "key", "t", 1)) == 1
    world.now += 3600001
    assert world.found(one, "key", "t", 10) == []


def test_an_entry_has_a_bound(world):
    one = store()
    world.put(one, "x" * 262144)
    with pytest.raises(InvalidParams, match=r"entries\[1\].content: expected at most 262144 bytes"):
        world.put(one, "small", "x" * 262145)
    with pytest.raises(InvalidParams):
        world.put(one, "ü" * 131073)
    assert world.rows() == 1


def test_files_of_a_workspace(world, tmp_path):
    one = store("work", type=WORKSPACE, path=str(tmp_path / "ws"), max_bytes=20)
    world.put(one, "hello", key="notes/a.txt")
    assert (tmp_path / "ws" / "notes" / "a.txt").read_text() == "hello"
    assert [entry["content"] for entry in world.found(one, "key", "notes/a.txt")] == ["hello"]
    (tmp_path / "ws" / "notes" / "a.txt").write_text("by hand")
    assert world.all(one) == ["by hand"]
    with pytest.raises(StoreError, match="would have 21 bytes, and may have 20"):
        world.put(one, "x" * 14, key="b")
    world.put(one, "x" * 20, key="notes/a.txt")
    (tmp_path / "ws" / "notes" / "a.txt").unlink()
    assert world.all(one) == []


@pytest.mark.parametrize(
    "key",
    [
        "/etc/passwd",
        "../x",
        "a/../../x",
        "a//b",
        ".hidden",
        "a/.git/x",
        "",
        "a/",
        "\0",
        "x" * 201,
        "/".join("x" * 17),
    ],
)
def test_no_key_leads_out_of_a_workspace(world, tmp_path, key):
    one = store("work", type=WORKSPACE, path=str(tmp_path / "ws"))
    with pytest.raises(InvalidParams, match="expected a relative path"):
        world.put(one, "x", key=key)
    assert not (tmp_path / "ws").exists() and world.rows() == 0


def test_no_link_leads_out_of_a_workspace(world, tmp_path):
    one = store("work", type=WORKSPACE, scope=PER_IDENTITY, path=str(tmp_path / "ws"))
    world.put(one, "x", key="k", part="identity/../../etc")
    (folder,) = (tmp_path / "ws" / "identity").iterdir()
    assert folder.name == "%2e%2e%2f%2e%2e%2fetc"
    (tmp_path / "secret").write_text("secret")
    (folder / "out").symlink_to(tmp_path)
    (folder / "file").symlink_to(tmp_path / "secret")
    with pytest.raises(StoreError):
        world.put(one, "y", key="out/secret", part="identity/../../etc")
    world.put(one, "y", key="file", part="identity/../../etc")
    assert (tmp_path / "secret").read_text() == "secret" and (folder / "file").read_text() == "y"


def test_a_power_safe_commit_is_synced_and_the_others_are_not(world):
    one, lasting = store(), store("t", lasting=True)
    for each, level in ((one, 1), (lasting, 2), (one, 1)):
        world.put(each, "x")
        assert (
            world.rows("PRAGMA synchronous") == level and world.rows("PRAGMA journal_mode") == "wal"
        )
    jobs = [
        (n, "store", each, "", (world.id(), [(None, "x", None, None)]))
        for n, each in enumerate((one, lasting, one))
    ]
    assert (
        all(outcome[0] for _, outcome in world.stores.run(jobs))
        and world.rows("PRAGMA synchronous") == 2
    ), "one of them is enough"


def test_a_writer_that_does_not_end_is_an_error_that_may_be_tried_again(world, monkeypatch):
    monkeypatch.setattr(database, "BUSY_MS", 20)
    one = store()
    world.put(one, "a")
    other = sqlite3.connect(world.stores._db.path, isolation_level=None)
    world.again()
    assert world.all(one) == ["a"]
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process is writing to it") as raised:
        world.put(one, "b")
    assert (
        raised.value.code == -32030
        and raised.value.data == {"cause": "SQLITE_BUSY"}
        and world.all(one) == ["a"]
    )
    other.execute("COMMIT")
    other.close()
    world.put(one, "b")
    assert world.all(one) == ["a", "b"]


def test_a_question_that_fails_is_32031(world, monkeypatch):
    one = store(type=SEMANTIC)
    world.put(one, "x")
    world.stores._db.run("DROP TABLE words")
    world.stores._places.find(one, "", 0).indexed = (1 << 40) + 1
    with pytest.raises(StoreError, match="no such table: words") as raised:
        world.search(one, "x")
    assert raised.value.code == -32031


@pytest.mark.parametrize("kind", [{}, {"secret": "key"}, {"saves_wear": True}])
def test_what_a_person_lets_it_forget_is_gone(world, kind):
    notes = store(type=SEMANTIC, **kind)
    first, last = [world.put(notes, "the %s likes shade" % word)[0] for word in ("basil", "mint")]
    assert world.do("forget", notes, None, first) == 1
    assert world.do("forget", notes, None, first) == 0
    assert world.search(notes, "basil shade") == ["the mint likes shade"]
    assert world.do("forget", notes, None, last) == 1  # the newest: its content
    world.again()
    assert "mint" not in str(world.search(notes, "mint shade") + world.all(notes))
    again = world.put(notes, "the sage likes sun")[0]
    assert again not in (first, last)
    assert world.search(notes, "sage") == ["the sage likes sun"]


def test_all_values_of_a_key_are_forgotten(world):
    facts = store(type=KEY_VALUE)
    for value in ("a", "b"):
        kept = world.put(facts, value, key="k")[0]
    world.put(facts, "c", key="other")
    assert world.do("forget", facts, None, kept) == 2
    assert world.found(facts, "key", "k") == [] and world.all(facts) == ["c"]
    with pytest.raises(InvalidParams, match="id: expected"):
        world.do("forget", facts, None, "entry-1-x")
