"""Stores remember the same everywhere: SQLite on a Pi, the log of a board on MicroPython."""

from store_world import World, record

from clawlite.core.base.errors import InvalidParams
from clawlite.core.image.memories import CHECKPOINT, KEY_VALUE, NEVER, SEMANTIC, TRUNCATE, WINDOW

MINUTE = 60000


def told(world, *arguments, **named):
    """Return the message of the ``InvalidParams`` that a ``put`` ends with."""
    try:
        world.put(*arguments, **named)
    except InvalidParams as e:
        return e.message
    raise AssertionError("nothing was refused")


def test_entries_come_back_in_their_order_with_all_they_had():
    world = World(record("s"))
    assert world.put("s", "one", {"b": [1, 2.5, None, True]}) == ["entry-1-1", "entry-1-2"]
    world.now += 1000
    assert world.put("s", "three", key="k", metadata={"from": "me"}) == ["entry-1-3"]
    for _ in range(2):
        assert world.found("s", "time-range", (0, 1 << 50)) == [
            {"id": "entry-1-1", "content": "one", "timestamp": "2027-01-15T08:00:00.000Z"},
            {
                "id": "entry-1-2",
                "content": {"b": [1, 2.5, None, True]},
                "timestamp": "2027-01-15T08:00:00.000Z",
            },
            {
                "id": "entry-1-3",
                "content": "three",
                "timestamp": "2027-01-15T08:00:01.000Z",
                "key": "k",
                "metadata": {"from": "me"},
            },
        ]
        world.again()
    world.close()


def test_a_time_range_is_inclusive_and_has_the_newest():
    world = World(record("s"))
    for number in range(6):
        world.put("s", str(number))
        world.now += 1000
    span = 1800000001000, 1800000004000
    assert [entry["content"] for entry in world.found("s", "time-range", span)] == [
        "1",
        "2",
        "3",
        "4",
    ]
    answer = world.do("query", "s", "", ("time-range", span, 2, None))
    assert [entry["content"] for entry in answer["entries"]] == ["3", "4"] and answer[
        "truncated"
    ] is True
    assert "truncated" not in world.do("query", "s", "", ("time-range", span, 4, None))
    assert (
        world.found("s", "time-range", (1800000005001, 1 << 50)) == []
        and world.found("s", "time-range", (0, 1799999999999)) == []
    )
    world.close()


def test_a_key_has_its_last_value():
    world = World(record("facts", KEY_VALUE))
    for number in range(150):
        world.put("facts", "value %d" % number, key="k%d" % (number % 5))
    assert (
        world.found("facts", "key", "k3")[0]["content"] == "value 148"
        and world.found("facts", "key", "k9") == []
    )
    assert world.all("facts") == ["value %d" % number for number in range(145, 150)]
    assert (
        world.search("facts", "value 148")[0] == "value 148"
        and len(world.search("facts", "value")) == 5
    )
    world.again()
    assert [entry["content"] for entry in world.found("facts", "key", "k0")] == [
        "value 145"
    ] and len(world.all("facts")) == 5
    assert world.put("facts", "x", key="k0") == ["entry-1-151"]
    world.close()


def test_keys_that_were_written_longest_ago_give_way():
    world = World(record("facts", KEY_VALUE, max_entries=3))
    for key in "abcda":
        world.put("facts", key, key=key)
    for _ in range(2):
        assert world.all("facts") == ["c", "d", "a"] and world.found("facts", "key", "b") == []
        world.again()
    world.close()


def test_a_checkpoint_store_has_the_newest_of_each_task():
    world = World(record("tasks", CHECKPOINT, snapshots=2))
    for step in range(4):
        for task in "ab":
            world.put("tasks", {"task_id": task, "step_index": step}, key=task)
    for _ in range(2):
        assert [
            entry["content"]["step_index"] for entry in world.found("tasks", "key", "a", 10)
        ] == [3, 2]
        assert [
            entry["content"]["step_index"] for entry in world.found("tasks", "key", "b", 1)
        ] == [3]
        world.again()
    world.close()


def test_number_and_age_forget():
    world = World(record("few", max_entries=3), record("young", SEMANTIC, max_age_s=60))
    for number in range(5):
        world.put("few", str(number))
        world.put("young", "note %d" % number)
        world.now += 20000
    for _ in range(2):
        assert world.all("few") == ["2", "3", "4"]
        assert (
            world.all("young") == ["note 2", "note 3", "note 4"]
            and len(world.search("young", "note")) == 3
        )
        world.again()
    world.now += 10 * MINUTE
    assert world.all("young") == [] and world.all("few") == ["2", "3", "4"]
    assert world.put("young", "new") == ["entry-2-6"] and world.all("young") == ["new"]
    world.close()


def test_the_clock_that_was_set_back_stands_still():
    world = World(record("s"))
    world.put("s", "one")
    world.now -= 5000
    world.put("s", "two")
    assert [entry["timestamp"] for entry in world.found("s", "time-range", (0, 1 << 50))] == [
        "2027-01-15T08:00:00.000Z"
    ] * 2
    world.close()


def test_what_was_too_old_stays_forgotten_without_a_clock():
    """A start before the clock is set: the newest time of all stores counts; also after the log
    was written anew, and compacted.
    """
    world = World(
        record("young", SEMANTIC, max_age_s=60, max_entries=40), record("other", KEY_VALUE)
    )
    world.put("young", "first")
    world.now += 30000
    world.put("young", "second")
    world.now += 40000
    world.put("other", "late", key="k")
    now, world.now = world.now, 0
    for _ in range(2):
        world.again()
        assert world.all("young") == ["second"] and world.search("young", "first second") == [
            "second"
        ]
    world.now = now + 30000
    assert world.all("young") == []
    for number in range(120):
        world.put("other", "x" * number, key="n")
    world.now = 0
    for _ in range(2):
        world.again()
        assert world.search("young", "first second") == [] and world.do(
            "compact", "young", None, WINDOW
        ) == (0, 0)
    world.close()


def test_the_newest_time_is_known_when_its_entry_is_gone():
    world = World(
        record("young", SEMANTIC, max_age_s=60),
        record("few", SEMANTIC, max_entries=1),
        record("other", KEY_VALUE),
    )
    world.put("young", "old")
    world.now += 100000
    world.put("few", "timed")
    world.now = 0
    world.again()
    world.put("few", "untimed")
    for number in range(120):
        world.put("other", "x" * number, key="n")
    for _ in range(2):
        assert world.search("young", "old") == [] and world.search("few", "timed untimed") == [
            "untimed"
        ]
        world.again()
    world.close()


def test_what_came_before_the_clock_was_set_is_as_old_as_what_came_next():
    world = World(record("young", SEMANTIC, max_age_s=60))
    world.now = 0
    world.put("young", "note one")
    assert world.search("young", "note") == ["note one"]
    world.again()
    world.now = 1800000000000
    assert world.search("young", "note") == ["note one"], "to set the clock takes nothing away"
    world.put("young", "note two")
    for _ in range(2):
        assert world.search("young", "note") == ["note two", "note one"]
        world.again()
    world.now += 61000
    assert world.search("young", "note") == []
    world.put("young", "note three")
    assert world.search("young", "note") == ["note three"]
    world.close()


def test_a_clock_that_was_years_ahead_once_leaves_no_trace():
    """What came then is not lost, and what comes later has its time and its age."""
    world = World(record("s"), record("young", SEMANTIC, max_age_s=60))
    right = world.now
    world.put("s", "before")
    world.now = right + 73 * 366 * 86400000
    for store in ("s", "young"):
        world.put(store, "wrong one")
        world.put(store, "wrong two")
    world.now = right + 1000
    world.again()
    for number in (1, 2):
        for store in ("s", "young"):
            world.put(store, "note %d" % number)
            found = world.found(store, "time-range", (right, right + MINUTE))
            assert "note %d" % number in [entry["content"] for entry in found], found
            assert found[-1]["timestamp"][:19] == "2027-01-15T08:00:01"
        world.again()
    assert world.all("s") == ["before", "wrong one", "wrong two", "note 1", "note 2"]
    later = world.found("s", "time-range", (right + MINUTE, 1 << 50))
    assert later == [], "nothing is in that year any more"
    assert len(world.search("young", "note")) == 2
    world.now = right + 2 * MINUTE
    world.put("young", "note 3")
    for _ in range(2):
        assert world.search("young", "note wrong") == ["note 3"], "the others are too old"
        world.again()
    world.close()


def test_a_request_is_stored_once():
    world = World(record("s"))
    id = "C1A00000-0000-4000-8000-00000000ABCD".lower()
    first = world.put("s", {"a": 1, "b": 2}, "two", id=id)
    for _ in range(2):
        assert world.put("s", {"b": 2, "a": 1}, "two", id=id) == first and len(world.all("s")) == 2
        assert "another request had this id within 300 s" in told(
            world, "s", {"a": 1, "b": 2}, id=id
        )
        assert "another request had this id" in told(
            world, "s", {"a": 1, "b": 2}, "two", id=id, part="channel/x"
        )
        world.again()
    world.now += 6 * MINUTE
    assert world.put("s", "other", id=id) == ["entry-1-3"]
    world.close()


def test_parts_see_nothing_of_each_other():
    world = World(record("s", KEY_VALUE), record("t"))
    world.put("s", "of a", part="identity/a", key="k")
    world.put("s", "of b", part="identity/b", key="k")
    world.put("t", "of t")
    for _ in range(2):
        assert (
            world.all("s", "identity/a") == ["of a"]
            and world.all("s", "identity/b") == ["of b"]
            and world.all("s") == []
        )
        assert world.found("s", "key", "k", part="identity/b")[0][
            "id"
        ] == "entry-2-1" and world.all("t") == ["of t"]
        world.again()
    world.close()


def test_words_are_found_without_case_and_marks_the_best_first():
    world = World(record("s", SEMANTIC))
    world.put(
        "s",
        "The PUMP of the greenhouse leaks",
        "Pump, pump, pump",
        "A café in Köln",
        "nothing of it",
        {"place": "greenhouse", "n": 1},
        "Насос течёт",
    )
    for _ in range(2):
        assert [
            (entry["content"], entry["score"])
            for entry in world.found("s", "semantic", "pump greenhouse", 10)
        ] == [
            ("The PUMP of the greenhouse leaks", 0.823),
            ("Pump, pump, pump", 0.4677),
            ({"place": "greenhouse", "n": 1}, 0.4132),
        ]
        assert world.search("s", "CAFE koln") == ["A café in Köln"] and world.search(
            "s", "НАСОС течет"
        ) == ["Насос течёт"]
        assert (
            world.search("s", "pump", 1) == ["Pump, pump, pump"]
            and world.search("s", "?!") == []
            and world.search("s", "absent") == []
        )
        world.again()
    world.close()


def test_the_first_three_words_find_and_twelve_count():
    world = World(record("s", SEMANTIC))
    world.put("s", "alpha", "delta", " ".join(["w%d" % number for number in range(14)]))
    assert world.search("s", "alpha beta gamma delta") == ["alpha"]
    assert (
        world.found("s", "semantic", " ".join(["w%d" % number for number in range(14)]), 1)[0][
            "score"
        ]
        == 0.8097
    )
    world.close()


def test_compaction_leaves_half_or_the_window():
    for strategy, left in ((TRUNCATE, 5), (WINDOW, 10)):
        world = World(
            record("s", SEMANTIC, max_entries=10, compaction=strategy), record("k", KEY_VALUE)
        )
        for number in range(14):
            world.put("s", "note %d" % number)
        world.put("k", "x", key="x")
        assert world.do("compact", "s", None, strategy) == (10, left) and world.do(
            "compact", "k", "", WINDOW
        ) == (1, 1)
        for _ in range(2):
            assert world.all("s") == [
                "note %d" % number for number in range(14 - left, 14)
            ] and world.do("compact", "s", "", strategy) == (
                left,
                max(5, left) if strategy == WINDOW else 5,
            )
            world.again()
        assert world.put("s", "next") == ["entry-1-15"] and world.do(
            "compact", "s", "channel/none", strategy
        ) == (0, 0)
        world.close()


def test_a_full_store_says_so_when_it_compacts_itself():
    world = World(
        record("s", SEMANTIC, max_entries=16, compaction=TRUNCATE, compacts=True),
        record("n", SEMANTIC, max_entries=16, compaction=NEVER),
    )
    said = [
        world.do("store", "s", "", (world.id(), [(None, "note", None, None)])).get("is_full")
        for _ in range(24)
    ]
    assert said == [None] * 15 + [True] + [None] * 7 + [True]
    world.put("n", *["x"] * 16)
    assert world.do("store", "n", "", (world.id(), [(None, "note", None, None)])) == {
        "stored": 1,
        "ids": ["entry-2-17"],
    }
    world.close()


def test_many_entries_and_the_log_is_written_anew():
    world = World(record("s", SEMANTIC, max_entries=20), record("k", KEY_VALUE))
    for number in range(300):
        world.put("s", "note %d of the day" % number)
        world.put("k", number * "x", key="size")
        if number % 50 == 49:
            world.again()
    assert world.all("s") == ["note %d of the day" % number for number in range(280, 300)]
    assert (
        world.search("s", "290 note", 1) == ["note 290 of the day"]
        and world.found("k", "key", "size")[0]["content"] == 299 * "x"
    )
    world.close()
