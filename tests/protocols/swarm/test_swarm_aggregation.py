"""protocols/swarm: who does the parts of a task, and how reports become one (CKP 0.2.0, 5.9)."""

from clawlite.protocols.swarm.aggregation import MISSING, Part, aggregate, pick
from clawlite.protocols.swarm.swarm import (
    BEST_OF_N,
    BROADCAST,
    CHAIN,
    COMPLETED,
    FAILED,
    HIERARCHICAL,
    LEADER_DECIDES,
    LEADER_WORKER,
    MAJORITY_VOTE,
    MERGE,
    PARTIAL,
    PEER_TO_PEER,
    PIPELINE,
    Swarm,
)


def swarm(topology, roles, own=0, to_all=True, strategy=MERGE, is_shared=True):
    """Return the swarm of the agents a, b, c, ... with *roles*; "worker*2" is there twice."""
    members = []
    for number, role in enumerate(roles):
        role, _, count = role.partition("*")
        members.append(["abcdefg"[number], "", role, int(count or 1)])
    row = ["team", own, topology, members, is_shared, None, 1, None, 2, True]
    return Swarm(row + [strategy, to_all, None, None, None, None])


def parts(*results):
    """Return the parts of agents a, b, c: texts of answers, None for none, an error or a result."""
    made = []
    for number, result in enumerate(results):
        by = "abcdefg"[number]
        if result is None:
            made.append(Part(by))
        elif isinstance(result, str) and result[:1] == "!":
            made.append(Part(by, FAILED, {"error": result[1:]}))
        else:
            made.append(
                Part(by, COMPLETED, {"text": result} if isinstance(result, str) else result)
            )
    return made


def test_5_9_leader_worker_divides_what_goes_to_all():
    roles = ["leader", "worker*2", "worker"]
    lead = swarm(LEADER_WORKER, roles)
    assert lead.parts(False) == ["b", "b", "c"] and lead.entry == "a" and lead.leads
    assert swarm(LEADER_WORKER, roles, 1).parts(False) == []
    one = swarm(LEADER_WORKER, roles, to_all=False)
    assert one.parts(False) == [] and one.entry == "" and one.hands_on
    chain = swarm(LEADER_WORKER, roles, strategy=CHAIN)
    assert chain.parts(False) == ["b", "c"]


def test_5_9_peer_to_peer_pipeline_and_broadcast():
    for to_all, expected in ((True, ["a", "b"]), (False, [])):
        peer = swarm(PEER_TO_PEER, ["peer", "peer"], 1, to_all)
        assert (peer.parts(False), peer.parts(True), peer.entry) == (expected, [], "")
    stage = swarm(PIPELINE, ["read", "think*3", "write"], 1, strategy=CHAIN)
    assert stage.parts(False) == ["a", "b", "c"] and stage.parts(True) == []
    assert not stage.leads and stage.may_ask() == ["a", "c"]
    source = swarm(BROADCAST, ["ear", "source", "ear*2"], 1)
    assert source.parts(False) == ["a", "c", "c"] and source.entry == "b"
    assert swarm(BROADCAST, ["ear", "source"]).parts(False) == []


def test_5_9_hierarchical_goes_down_one_level_at_a_time():
    roles = ["root", "root/x", "root/y", "root/x/i", "root/x/j*2", "root/x/i/deep"]
    for own, expected in ((0, "bc"), (1, "dee"), (2, ""), (3, "f"), (4, ""), (5, "")):
        one = swarm(HIERARCHICAL, roles, own)
        assert one.parts(False) == one.parts(True) == list(expected)
        assert one.leads == bool(expected) and one.entry == "a"


def test_a_process_that_is_alone_divides_nothing():
    one = swarm(HIERARCHICAL, ["root", "root/x"], is_shared=False)
    assert one.parts(False) == [] and not one.leads and one.may_ask() == []


def test_without_any_answer_a_task_has_failed_whatever_its_strategy():
    for strategy in (MERGE, MAJORITY_VOTE, BEST_OF_N, CHAIN, LEADER_DECIDES):
        status, result = aggregate(strategy, parts("!it is dark", None))
        assert status == FAILED and "it is dark" in result["error"]
        assert result["parts"][1]["result"] == {"error": MISSING}


def test_merge_has_every_result_and_says_which_is_missing():
    status, result = aggregate(MERGE, parts("dry", "wet"))
    assert (status, result["text"]) == (COMPLETED, "a: dry\nb: wet")
    status, result = aggregate(MERGE, parts("dry", None))
    assert (status, result["text"]) == (PARTIAL, "a: dry")
    assert [part["status"] for part in result["parts"]] == [COMPLETED, FAILED]
    assert "text" not in aggregate(MERGE, parts("dry", [1]))[1]


def test_a_majority_is_more_than_half_of_all_parts():
    vote = lambda *results: aggregate(MAJORITY_VOTE, parts(*results))
    assert vote("dry", " dry ", "wet") == (COMPLETED, {"text": "dry", "votes": 2, "of": 3})
    assert vote("wet", "dry", "dry") == (COMPLETED, {"text": "dry", "votes": 2, "of": 3})
    # a tie: the first of the manifest
    assert vote("wet", "dry") == (PARTIAL, {"text": "wet", "votes": 1, "of": 2})
    # a missing answer is a vote for nothing
    assert vote("dry", "dry", None, "!no") == (PARTIAL, {"text": "dry", "votes": 2, "of": 4})
    assert vote([1], 1, True)[1] == {"result": [1], "votes": 1, "of": 3}
    assert vote(True, 1, 1)[1] == {"result": 1, "votes": 2, "of": 3}


def test_best_of_n_takes_the_highest_score_and_asks_where_there_is_none():
    best = lambda *results: aggregate(BEST_OF_N, parts(*results))
    two = {"text": "x", "score": 2}
    assert best("y", two, {"score": 1.5}, {"score": True}) == (COMPLETED, two)
    assert best(two, {"text": "z", "score": 2})[1] == two
    assert best("x", "y") is None
    assert best("x", None) == (COMPLETED, {"text": "x"})


def test_best_of_n_picks_what_a_turn_names():
    some = parts("x", "!no", "y")
    assert pick(some, "The best is 2.") == (COMPLETED, {"text": "y"})
    for text in ("0", "3", "none of them", "123456789"):
        assert pick(some, text) == (PARTIAL, {"text": "x"})


def test_a_chain_ends_with_its_first_part_without_an_answer():
    assert aggregate(CHAIN, parts("x", "y")) == (COMPLETED, {"text": "y"})
    status, result = aggregate(CHAIN, parts("x", "!too wet", None))
    assert status == FAILED
    assert result["error"] == "b, a link of the chain, has no answer: too wet"


def test_leader_decides_asks_the_leader():
    assert aggregate(LEADER_DECIDES, parts("x", None)) is None
