"""The same request_id gives the same answer (CKP 0.2.0, 9.3.2 ``context.request_id``): bounds,
clocks, restarts.
"""

import binascii

from clawlite.core.base.effect import KEEP, Result
from clawlite.core.base.errors import (
    ApprovalDenied,
    ClawError,
    InternalError,
    InvalidParams,
    InvalidRequest,
    PolicyDenied,
    ToolTimeout,
)
from clawlite.core.idempotency.idempotency import (
    BEGIN,
    END,
    GONE,
    KEPT_MS,
    WAIT,
    Idempotency,
    IdempotentRequest,
    age_s,
    last_of,
    line,
    parse,
    still,
)
from clawlite.core.idempotency.recorded_request import fingerprint
from clawlite.core.image.image import IDEMPOTENT, READ_ONLY

NOW = 1800000000


class Tool:
    def __init__(self, name, flags=0):
        self.name, self.flags = name, flags


READ, AGAIN, WATER = Tool("read", READ_ONLY), Tool("again", IDEMPOTENT), Tool("water")


class World:
    """A idempotency, the records behind it, and how often each tool ran."""

    def __init__(self, ids=8, free=8, size=4000, records=None):
        self.bounds = (ids, free, size)
        self.records = {} if records is None else records
        self.ran = []
        self.fails = False
        self.others = []
        self.idempotency = Idempotency(self.kept, 0)

    def kept(self, key=None):
        if key is not None:
            return self.records.get(key)
        return self.bounds + (
            [(key, 0, 10) for key in sorted(self.records) if self.records[key][0] in (BEGIN, END)],
        )

    def restarted(self):
        return World(*self.bounds, records=self.records)

    def begin(self, id, tool, arguments=None, context=("me", None, None)):
        """Go as far as the handler; return (request, None) when it runs, (request, answer) when
        it does not.
        """
        once = IdempotentRequest(
            self.idempotency,
            id,
            [tool.name, {} if arguments is None else arguments] + list(context),
        )
        first = once.admit(tool)
        if first is not None:
            return once, first.outcome()
        steps = once.begin(tool)
        if steps is not None:
            effect = next(steps)
            assert effect[0] == KEEP and effect[1] == BEGIN
            if not self.fails and not self.others:
                self.records[id] = (BEGIN, effect[3])
            try:
                steps.send((not self.fails, "disk full" if self.fails else self.others))
            except StopIteration as e:
                if e.value is not None:
                    return once, e.value
        self.ran.append(tool.name)
        return once, None

    def end(self, once, result=None, error=None):
        record = once.end(result, error)
        if record is not None:
            self.records[record[1]] = (record[0], record[2])

    def call(self, id, tool, arguments=None, text="done", error=None):
        """Return the text that a call gives."""
        once, answer = self.begin(id, tool, arguments)
        if answer is None:
            answer = None if error else Result(text, False, 5)
            self.end(once, answer, error)
        return answer.text if answer else None


def refused(kind, function, *args):
    try:
        function(*args)
    except kind as e:
        return e
    raise AssertionError("nothing was refused")


def test_the_same_id_gives_the_same_and_runs_nothing():
    for tool in (READ, AGAIN, WATER):
        world = World()
        assert (
            world.call("a", tool, text="first") == "first"
            and world.call("a", tool, text="second") == "first"
        )
        assert world.call("b", tool, text="other") == "other" and world.ran == [tool.name] * 2


def test_the_same_error_comes_again():
    for tool in (READ, WATER):
        world = World()
        world.call("a", tool, error=ToolTimeout("took too long", "wait", {"tool": "x"}))
        again = refused(ClawError, world.call, "a", tool)
        assert again.to_json() == ToolTimeout(
            "took too long", "wait", {"tool": "x"}
        ).to_json() and world.ran == [tool.name]


def test_an_id_with_other_parameters_is_an_error_and_runs_nothing():
    for tool in (READ, WATER):
        world = World()
        world.end(world.begin("a", tool, {"n": 1})[0], Result("x", False))
        for other in (
            (Tool("else"), {"n": 1}),
            (tool, {"n": 2}),
            (tool, {"n": "1"}),
            (tool, {"n": True}),
            (tool, {}),
            (tool, {"n": [1]}),
            (tool, {"n": 1}, ("you", None, None)),
            (tool, {"n": 1}, ("me", "strict", None)),
            (tool, {"n": 1}, ("me", None, "box")),
        ):
            assert refused(InvalidParams, world.begin, "a", *other).code == -32602
        assert world.begin("a", tool, {"n": 1.0})[1].text == "x" and world.ran == [tool.name]


def test_five_minutes_from_the_end():
    for tool in (READ, WATER):
        world = World()
        once, _ = world.begin("a", tool)
        world.idempotency.now_ms = 1000000  # it takes long
        world.end(once, Result("first", False))
        world.idempotency.now_ms += KEPT_MS - 1
        assert world.call("a", tool, text="second") == "first"
        world.idempotency.now_ms += 1
        assert world.call("a", tool, text="second") == "second" and len(world.ran) == 2


def test_under_way_it_is_known():
    world = World()
    once, _ = world.begin("a", READ)
    waiting = IdempotentRequest(world.idempotency, "a", ["read", {}, "me", None, None]).admit(READ)
    assert waiting is once
    steps = waiting.again()
    next(steps)
    world.end(once, Result("x", False))
    try:
        steps.send((True, None))
    except StopIteration as e:
        assert e.value.text == "x"
    else:
        raise AssertionError


def test_who_waits_for_one_that_was_stopped_hears_so():
    world = World()
    once, _ = world.begin("a", READ)
    steps = (
        IdempotentRequest(world.idempotency, "a", ["read", {}, "me", None, None])
        .admit(READ)
        .again()
    )
    next(steps)
    world.end(once, None, InvalidRequest("the agent stopped"))
    assert "before it ran" in refused(InvalidRequest, steps.send, (True, None)).message
    assert world.call("a", READ) == "done"


def test_of_reads_the_oldest_are_forgotten_first():
    world = World(ids=4, free=4)
    for id in "abcd":
        world.call(id, READ, text=id)
    assert [world.call(id, READ, text="new") for id in "abcd"] == ["a", "b", "c", "d"]
    world.call("e", READ)
    assert [world.call(id, READ, text="new") for id in "bcd"] == ["b", "c", "d"] and world.call(
        "a", READ, text="new"
    ) == "new"


def test_a_board_keeps_few_reads():
    world = World(ids=4, free=2)
    for id in "abc":
        world.call(id, READ, text=id)
    assert [world.call(id, READ, text="new") for id in "bc"] == ["b", "c"] and world.call(
        "a", READ, text="new"
    ) == "new"


def test_the_bytes_of_reads_are_bounded():
    for size, kept in ((99, True), (100, True), (101, False)):
        world = World(size=200)
        world.call("a", READ, text="x" * 100)
        world.call("b", READ, text="y" * size)
        assert (world.call("a", READ, text="new") != "new") == kept, size


def test_what_may_not_run_twice_is_refused_when_that_fills_the_ids():
    world = World(ids=3, free=3)
    world.call("r", READ, text="r")
    for id in "abc":
        world.call(id, WATER)
    error = refused(InvalidRequest, world.call, "d", WATER)
    assert "3 calls" in error.message and "idempotentHint" in error.hint and len(world.ran) == 4
    assert world.call("e", READ) == "done" and world.call("f", AGAIN) == "done"
    assert (
        world.call("r", READ, text="new") == "new" and world.call("a", WATER, text="new") == "done"
    )
    world.idempotency.now_ms = KEPT_MS
    assert world.call("d", WATER) == "done"


def test_calls_under_way_count():
    world = World(ids=2)
    world.begin("a", WATER)
    world.begin("b", WATER)
    refused(InvalidRequest, world.begin, "c", WATER)


def test_what_may_not_run_twice_is_refused_when_three_quarters_of_the_bytes_are_full():
    for size, goes_on in ((299, True), (300, True), (301, False)):
        world = World(size=400)
        world.call("a", WATER, text="x" * size)
        if goes_on:
            world.call("b", WATER)
        else:
            refused(InvalidRequest, world.call, "b", WATER)


def test_after_a_restart_an_answer_is_still_there():
    world = World()
    world.call("a", WATER, text="watered")
    world.call("b", WATER, error=ToolTimeout("late"))
    world = world.restarted()
    assert (
        world.call("a", WATER) == "watered"
        and refused(ClawError, world.call, "b", WATER).code == -32014
        and world.ran == []
    )
    refused(InvalidParams, world.call, "a", WATER, {"n": 1})


def test_after_a_restart_what_began_is_not_run_again_unless_it_may():
    world = World()
    world.begin("a", WATER)
    world.records["b"] = (
        BEGIN,
        [fingerprint(IdempotentRequest(None, "b", ["read", {}, "me", None, None]))],
    )
    world = world.restarted()
    error = refused(ToolTimeout, world.call, "a", WATER)
    assert "may have run" in error.message and error.data == {"request_id": "a"} and world.ran == []
    refused(InvalidParams, world.call, "b", WATER)
    assert (
        world.call("b", READ, text="read") == "read" and world.call("b", READ, text="new") == "read"
    )


def test_a_record_that_is_lost_is_no_permission():
    world = World()
    world.call("a", WATER)
    world.records.clear()
    refused(ToolTimeout, world.call, "a", WATER)


def test_nothing_runs_that_is_not_on_record():
    world = World()
    world.fails = True
    assert "disk full" in refused(InternalError, world.call, "a", WATER).message and world.ran == []
    assert world.call("b", READ) == "done"


def test_what_another_process_ran_is_not_run_again():
    world, other = World(), World()
    other.call("a", WATER, text="theirs")
    other.call("b", WATER, text="theirs")
    world.records.update(other.records)
    world.others = [("a", 0, 6), ("b", 3, 6)]
    assert world.call("a", WATER) == "theirs" and world.ran == []
    assert world.call("b", WATER) == "theirs" and world.ran == []


def test_a_refusal_is_remembered_while_the_process_lives():
    world = World()
    world.call("a", WATER)  # the first record
    once = IdempotentRequest(world.idempotency, "p", ["water", {}, "me", None, None])
    once.admit(WATER)
    world.end(once, None, PolicyDenied("no"))
    assert refused(ClawError, world.call, "p", WATER).code == -32011 and "p" not in world.records


def test_what_a_person_said_is_on_record_whatever_the_tool():
    for tool in (READ, WATER):
        world = World()
        once = IdempotentRequest(world.idempotency, "a", [tool.name, {}, "me", None, None])
        once.admit(tool)
        once.waits = True
        world.end(once, None, ApprovalDenied("no", "", {"tool": "t"}))
        again = refused(ClawError, world.restarted().call, "a", tool)
        assert (
            again.code == -32013
            and again.to_json() == ApprovalDenied("no", "", {"tool": "t"}).to_json()
        )


def test_what_was_stopped_while_it_waited_is_asked_anew():
    world = World()
    once = IdempotentRequest(world.idempotency, "a", ["water", {}, "me", None, None])
    once.admit(WATER)
    once.waits = True
    assert once.end(None, InvalidRequest("the agent stopped")) == (GONE, "a", None)
    assert world.call("a", WATER) == "done"


def test_long_arguments_are_kept_as_a_fingerprint():
    world = World()
    once, _ = world.begin("a", READ, {"t": "x" * 5000})
    once.is_long = True
    world.end(once, Result("x", False))
    assert len(once.asked) == 32 and world.call("a", READ, {"t": "x" * 5000}, "new") == "x"
    refused(InvalidParams, world.begin, "a", READ, {"t": "y" * 5000})


def test_a_fingerprint_is_the_same_everywhere():
    asked = ["tool", {"b": [1, 2.5, None, True, "ä"], "a": {"y": -1, "x": ""}}, "me", None, None]
    other = [
        "tool",
        {"a": {"x": "", "y": -1.0}, "b": [1.0, 2.5, None, True, "ä"]},
        "me",
        None,
        None,
    ]
    assert (
        fingerprint(IdempotentRequest(None, "", asked))
        == fingerprint(IdempotentRequest(None, "", other))
        == FINGERPRINT
    )


FINGERPRINT = "1a177867b3790ceccb99325243c9c29d"


def test_records_as_lines():
    data = line(END, NOW, 3, "key", '["ü",1]')
    assert data.endswith(b"\n") and parse(data[:-1]) == (END, NOW, 3, "key", '["ü",1]')
    for at in range(len(data) - 1):
        assert parse(data[:at]) is None
        assert parse(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 : -1]) is None


def test_a_line_with_a_right_crc_and_other_contents_is_damaged():
    for body in (b"", b"1 1 1 k", b"x 1 1 k null", b"1 1 x k null", b"1 1 1 \xff null"):
        assert parse(b"%08x %s" % (binascii.crc32(body) & 0xFFFFFFFF, body)) is None, body


def test_the_last_line_of_a_key_counts():
    lines = [
        line(WAIT, NOW, 1, "a", "[]"),
        line(BEGIN, NOW, 1, "a", "[]"),
        b"damaged",
        line(END, NOW, 1, "b", "[]"),
        line(END, NOW, 1, "a", "[]"),
    ]
    assert last_of([data.rstrip() for data in lines]) == ({"a": 4, "b": 3}, 1)


def test_ages_when_clocks_are_unset_or_jump():
    for when, now, age in (
        (NOW, NOW + 299, 299),
        (NOW, NOW, 0),
        (NOW, NOW - 1, 0),
        (NOW, 5, 0),
        (5, NOW, 0),
        (5, 900, 0),
        (0, 0, 0),
    ):
        assert age_s(when, now) == age, (when, now)


def test_which_records_still_count():
    def lives(owner):
        return owner == 1

    for kind, when, owner, expected in (
        (END, NOW - 299, 1, (END, NOW - 299)),
        (END, NOW - 300, 1, None),
        (END, NOW + 50, 1, (END, NOW)),
        (END, 5, 1, (END, NOW)),
        (BEGIN, NOW - 900, 1, (BEGIN, NOW - 900)),
        (BEGIN, NOW - 900, 2, (END, NOW)),
        (WAIT, NOW - 9000, 2, (WAIT, NOW - 9000)),
        (GONE, NOW, 1, None),
    ):
        found = still((kind, when, owner, "a", "[]"), NOW, lives)
        assert (found and found[:2]) == expected, (kind, when)


def test_what_initialize_says_of_remembered_calls_is_what_is_kept():
    """It is said without the module of ids, which is loaded with the first call."""
    from clawlite.core.agent.agent_setup import Setup
    from clawlite.core.idempotency.idempotency_record import KEPT_S
    from clawlite.core.idempotency.idempotent_request import IDS

    assert (Setup.remembered, KEPT_S) == (IDS, 300)
