"""The methods of memory: what is checked, and what the shell is asked."""

from clawlite.core.base.effect import ASK, REMEMBER
from clawlite.core.base.errors import ClawError, InvalidParams
from clawlite.core.image.memories import (
    CHECKPOINT,
    CONVERSATION,
    FTS,
    GLOBAL,
    KEY_VALUE,
    NEVER,
    PER_CHANNEL,
    PER_IDENTITY,
    RECIPROCAL,
    SEMANTIC,
    SUMMARIZE,
    TRUNCATE,
    VECTOR,
    WINDOW,
    WORKSPACE,
)
from clawlite.core.memory.memory_methods import Memories, compact

ID = "C1A00000-0000-4000-8000-000000000001"
CONTEXT = {"request_id": ID}


def record(name, type=CONVERSATION, scope=GLOBAL, compaction=NEVER, compacts=False, search=FTS):
    return [
        name,
        type,
        scope,
        None,
        None,
        compaction,
        compacts,
        search,
        RECIPROCAL,
        10,
        False,
        None,
        None,
        None,
        False,
        None,
        None,
    ]


class Agent:
    """What Memories needs of one: its image, and tasks of which each ends with its first effect."""

    is_ready = True

    def __init__(self, *records):
        self.records = records
        self.image = self.agent = self
        self.identity = "me"
        self.asked = []
        self.replies = []
        self.outcome = True, {}

    def section(self, number):
        return list(self.records)

    def begin(self, work, ended, now_ms):
        value = None
        try:
            while True:
                effect = work.send(value)
                assert effect[0] == REMEMBER
                self.asked.append((effect[1], effect[2].name) + effect[3:])
                value = self.outcome
        except StopIteration as e:
            ended(e.value, None, 0)
        except ClawError as e:
            ended(None, e, 0)


def ask(agent, method, **params):
    """Return (what the shell was asked, the reply), or the error's message."""
    agent.asked, agent.replies = [], []
    try:
        Memories(agent).begin(7, "claw.memory." + method, params, agent.replies.append, 0)
    except InvalidParams as e:
        return e.message
    return agent.asked, agent.replies


def query(agent, **query):
    found = ask(agent, "query", store="s", query=query)
    return found if isinstance(found, str) else found[0][0][3]


def store(agent, *entries, **more):
    found = ask(agent, "store", store="s", entries=list(entries), context=dict(CONTEXT, **more))
    return found if isinstance(found, str) else found[0][0]


def test_a_query_is_a_request_to_the_shell_and_its_value_the_result():
    agent = Agent(record("other"), record("s"))
    agent.outcome = True, {"entries": []}
    asked, replies = ask(agent, "query", store="s", query={"type": "semantic", "text": "pump"})
    assert asked == [("query", "s", "", ("semantic", "pump", 10, None))]
    assert replies == [{"jsonrpc": "2.0", "id": 7, "result": {"entries": []}}]
    assert query(agent, type="semantic", text="pump", top_k=3, vector=[1, 0.5]) == (
        "semantic",
        "pump",
        3,
        [1, 0.5],
    )
    assert query(agent, type="key", key="k") == ("key", "k", 10, None)
    assert query(Agent(record("s", KEY_VALUE)), type="key", key="k") == ("key", "k", 1, None)
    assert query(
        agent, type="time-range", time_range={"from": "1970-01-01", "to": "1970-01-02T00:00:00.5Z"}
    ) == ("time-range", (0, 86400500), 1000, None)


def test_what_a_query_must_have():
    agent = Agent(record("s"))
    for wrong, said in (
        ({}, "query.type: expected a string, there is none"),
        ({"type": "bogus"}, "query.type: expected semantic, key or time-range, got bogus"),
        ({"type": "semantic"}, "query.text: expected a string, there is none"),
        ({"type": "semantic", "text": ""}, "query.text"),
        ({"type": "key"}, "query.key"),
        ({"type": "key", "key": 1}, "query.key: expected a string"),
        ({"type": "time-range"}, "query.time_range: expected an object"),
        (
            {"type": "time-range", "time_range": {"from": "x"}},
            "query.time_range.from: expected a time",
        ),
        ({"type": "time-range", "time_range": {"from": "2026-01-01"}}, "query.time_range.to"),
        (
            {"type": "time-range", "time_range": {"from": "2026-01-02", "to": "2026-01-01"}},
            "from is later than to",
        ),
        ({"type": "key", "key": "k", "top_k": 0}, "query.top_k: expected 1 to 1000, got 0"),
        ({"type": "key", "key": "k", "top_k": 1001}, "got 1001"),
        ({"type": "key", "key": "k", "top_k": True}, "query.top_k: expected an integer"),
        ({"type": "key", "key": "k" * 513}, "at most 512 characters, got 513"),
        ({"type": "semantic", "text": "x" * 4097}, "at most 4096"),
        ({"type": "semantic", "text": "x", "vector": []}, "query.vector"),
        ({"type": "semantic", "text": "x", "vector": [1] * 4097}, "1 to 4096"),
        ({"type": "semantic", "text": "x", "vector": [1, "2"]}, "expected numbers"),
        ({"type": "semantic", "text": "x", "vector": [True]}, "expected numbers"),
        ({"type": "semantic", "text": "x", "vector": [0, 0.0]}, "no direction"),
        ({"type": "semantic", "text": "x", "vector": [1e18]}, "expected numbers"),
    ):
        assert said in query(agent, **wrong), (wrong, query(agent, **wrong))
    assert "there is none" in query(
        Agent(record("s", SEMANTIC, search=VECTOR)), type="semantic", text="x"
    )
    assert ask(agent, "query", store="s", query=[]) == "query: expected an object"
    assert ask(agent, "query", store="t", query={}) == "store: unknown store t"
    assert ask(agent, "query", query={}) == "store: expected a string, there is none"
    assert (
        ask(agent, "query", store="s", query={"type": "key", "key": "k"}, context=[])
        == "context: expected an object"
    )
    for edge in (
        {"type": "key", "key": "k" * 512},
        {"type": "semantic", "text": "x" * 4096},
        {"type": "key", "key": "k", "top_k": 1000},
        {"type": "semantic", "text": "x", "vector": [1] * 4096},
    ):
        assert isinstance(query(agent, **edge), tuple)


def test_a_store_is_checked_and_its_id_written_small():
    agent = Agent(record("s"))
    assert store(
        agent, {"content": "a"}, {"content": {"b": 1}, "key": "k", "metadata": {}, "vector": [1]}
    ) == ("store", "s", "", (ID.lower(), [(None, "a", None, None), ("k", {"b": 1}, {}, [1])]))
    for wrong, said in (
        ({}, "entries[0].content: expected a string or an object, there is none"),
        ({"content": 1}, "entries[0].content: expected a string or an object"),
        ({"content": None}, "entries[0].content"),
        ("x", "entries[0]: expected an object"),
        ({"content": "x", "key": 5}, "entries[0].key"),
        ({"content": "x", "metadata": []}, "entries[0].metadata"),
        ({"content": "x", "key": "k" * 513}, "at most 512"),
    ):
        assert said in store(agent, wrong), wrong
    assert store(agent) == "entries: expected an array of 1 to 256 entries"
    assert isinstance(store(agent, *[{"content": "x"}] * 256), tuple) and "1 to 256" in store(
        agent, *[{"content": "x"}] * 257
    )
    assert "there is none" in ask(agent, "store", store="s", context=CONTEXT)
    assert (
        ask(agent, "store", store="s", entries=[{"content": "x"}])
        == "context: expected an object, there is none"
    )
    assert (
        ask(agent, "store", store="s", entries=[{"content": "x"}], context={})
        == "context.request_id: expected a string, there is none"
    )
    assert "expected a UUID" in ask(
        agent, "store", store="s", entries=[{"content": "x"}], context={"request_id": "1"}
    )
    assert (
        store(Agent(record("s", KEY_VALUE)), {"content": "x"})
        == "entries[0].key: a key-value store needs one"
    )
    assert (
        store(Agent(record("s", KEY_VALUE)), {"content": "x", "key": "k", "vector": [1]})
        == "entries[0].vector: a key-value store is not searched by vectors"
    )
    assert (
        store(Agent(record("s", WORKSPACE)), {"content": "x", "key": ""})
        == "entries[0].key: a workspace store needs one"
    )


def test_a_checkpoint_names_its_task():
    agent = Agent(record("s", CHECKPOINT))
    good = {"task_id": "t", "step_index": 0, "state_blob": "...", "resumable": True}
    assert store(agent, {"content": good})[3][1] == [("t", good, None, None)]
    for name, value in (
        ("task_id", ""),
        ("task_id", 1),
        ("step_index", -1),
        ("step_index", "0"),
        ("resumable", 1),
    ):
        assert "content" in store(agent, {"content": dict(good, **{name: value})}), name
    assert "a checkpoint is an object" in store(agent, {"content": "x"})


def test_whose_memory_is_meant():
    agent = Agent(record("s", scope=PER_IDENTITY), record("c", scope=PER_CHANNEL))
    assert store(agent, {"content": "x"}, identity="alice")[2] == "identity/alice"
    assert store(agent, {"content": "x"}, channel="slack")[2] == "identity/me"
    assert "expected at most 256 characters, got 257" in store(
        agent, {"content": "x"}, identity="a" * 257
    )
    assert store(agent, {"content": "x"}, identity="a" * 256)[2] == "identity/" + "a" * 256
    assert "context.identity" in store(agent, {"content": "x"}, identity=1)
    asked, _ = ask(
        agent, "query", store="c", query={"type": "key", "key": "k"}, context={"channel": "slack"}
    )
    assert asked[0][2] == "channel/slack"
    asked, _ = ask(agent, "query", store="c", query={"type": "key", "key": "k"})
    assert asked[0][2] == "channel/"
    agent.outcome = True, (3, 2)
    for context, part in (({}, None), ({"channel": "slack"}, "channel/slack")):
        asked, replies = ask(agent, "compact", store="c", context=context)
        assert asked == [("compact", "c", part, WINDOW)]
        assert replies[0]["result"] == {
            "entries_before": 3,
            "entries_after": 2,
            "strategy": "sliding-window",
        }


def test_an_error_of_the_shell_is_the_answer():
    agent = Agent(record("s"))
    agent.outcome = False, ClawError("no disk")
    assert (
        ask(agent, "query", store="s", query={"type": "key", "key": "k"})[1][0]["error"]["message"]
        == "no disk"
    )


def test_a_full_store_is_compacted_after_its_answer():
    agent = Agent(record("s", compaction=TRUNCATE, compacts=True))
    answers = [(True, {"stored": 1, "ids": ["e"], "is_full": True}), (True, (100, 50))]
    begin = agent.begin

    def begun(work, ended, now_ms):
        agent.outcome = answers.pop(0)
        begin(work, ended, now_ms)

    agent.begin = begun
    asked, replies = ask(agent, "store", store="s", entries=[{"content": "x"}], context=CONTEXT)
    assert [verb for verb, *_ in asked] == ["store", "compact"] and replies[0]["result"] == {
        "stored": 1,
        "ids": ["e"],
    }


def played(work, answers):
    """Return (effects, value) of a generator that is given *answers* in turn."""
    effects, value = [], None
    try:
        while True:
            effects.append(work.send(value))
            value = answers.pop(0)
    except StopIteration as e:
        return effects, e.value


def test_a_summary_is_asked_of_a_provider():
    one = Memories(Agent(record("s", compaction=SUMMARIZE))).stores[0]
    effects, value = played(
        compact(one, None), [(True, [("", 5, "- a\n- b", 20)]), (True, " in short "), (True, 11)]
    )
    assert (
        effects[0] == (REMEMBER, "oldest", one, None, None)
        and effects[1][0] == ASK
        and effects[1][1].endswith("\n\n- a\n- b")
    )
    assert effects[2] == (REMEMBER, "replace", one, "", (5, "in short"))
    assert value == {"entries_before": 20, "entries_after": 11, "strategy": "summarize"}


def test_what_is_too_much_for_one_summary_is_added_to_it():
    one = Memories(Agent(record("s", compaction=SUMMARIZE))).stores[0]
    begun = [(True, [("", 5, "- a", 20)]), (True, "short"), (True, 16)]
    effects, value = played(
        compact(one, ""),
        begun + [(True, [("", 9, "- short\n- b", 16)]), (True, "shorter"), (True, 11)],
    )
    assert effects[3] == (REMEMBER, "oldest", one, "", 6) and effects[4][1].endswith(
        "\n\n- short\n- b"
    )
    assert effects[5] == (REMEMBER, "replace", one, "", (9, "shorter"))
    assert value == {"entries_before": 20, "entries_after": 11, "strategy": "summarize"}
    assert played(compact(one, ""), begun + [(True, [])])[1]["entries_after"] == 16, (
        "somebody else did it meanwhile"
    )
    failed = begun + [(True, [("", 9, "- b", 16)]), (False, ClawError("none")), (True, (16, 16))]
    assert played(compact(one, ""), failed)[1]["strategy"] == "sliding-window"


def test_without_a_provider_the_window_slides():
    one = Memories(Agent(record("s", compaction=SUMMARIZE))).stores[0]
    for said in ((False, ClawError("none")), (True, "  ")):
        effects, value = played(
            compact(one, ""), [(True, [("", 5, "- a", 20)]), said, (True, (20, 20))]
        )
        assert (
            effects[2] == (REMEMBER, "compact", one, "", WINDOW)
            and value["strategy"] == "sliding-window"
        )
    assert played(compact(one, ""), [(True, []), (True, (3, 3))])[1]["entries_after"] == 3
