"""protocols/swarm/deadlock: which tasks wait for each other."""

from clawlite.protocols.swarm.deadlock import Open, Peer, WaitGraph
from clawlite.protocols.swarm.swarm import PEER_TO_PEER, RUNNING, WAITING, Swarm

MEMBERS = [
    ["lead", "u", "leader", 1],
    ["hand", "u", "worker", 1],
    ["other", "u", "worker", 1],
    ["ada", "u", "worker", 1],
]
RECORD = ["team", 0, 0, MEMBERS, True, None, 1, None, 2, True, 0, False, None, None, None, None]
PEERS = [("p", "lead", 0), ("q", "hand", 1), ("r", "other", 1)]
FULL = "each process of hand waits for it, or for another task that waits for it"


def runs(id, process, asker="", parent="", divided=0):
    return Open(id, RUNNING, process, "", parent, divided, asker)


def waits(id, recipient="", asker="", parent=""):
    return Open(id, WAITING, "", recipient, parent, 0, asker)


def refused(tasks, peers=PEERS, **changes):
    """Return {id: why it is refused} of *tasks*."""
    swarm = Swarm(RECORD)
    for name, value in changes.items():
        setattr(swarm, name, value)
    graph = WaitGraph(tasks, [Peer(*peer) for peer in peers], swarm)
    why = {one.id: graph.why_refused(one.id) for one in tasks}
    return {id: said for id, said in why.items() if said}


def test_two_that_wait_for_each_other():
    graph = [runs("1", "q"), runs("2", "r", "1"), waits("3", "hand", "2")]
    assert refused(graph) == {"3": FULL}
    assert refused(graph, PEERS + [("s", "hand", 1)]) == {}
    assert refused(graph, [PEERS[0], ("q", "hand", 2), PEERS[2]]) == {}


def test_an_agent_that_asks_itself():
    assert refused([runs("1", "q"), waits("2", "hand", "1")]) == {"2": FULL}


def test_whoever_is_free_takes_a_task_for_nobody_in_particular():
    assert refused([runs("1", "q"), waits("2", "", "1")]) == {}
    both = [runs("1", "q"), runs("2", "r", "1"), waits("3", "", "2")]
    assert refused(both) == {
        "3": "each process of hand, other waits for it, or for another task that waits for it"
    }


def test_two_circles_that_share_agents():
    """Neither task is above the other: only the whole shows it."""
    crossed = [runs("1", "q"), runs("2", "r"), waits("3", "other", "1"), waits("4", "hand", "2")]
    assert refused(crossed) == {"4": FULL}
    assert refused(crossed[:3]) == {}  # that of "other" ends by itself


def test_a_place_that_becomes_free_is_waited_for():
    busy = [runs("1", "q"), runs("2", "r"), waits("3", "other", "1")]
    assert refused(busy) == refused(busy, max_parallel=2) == {}


def test_max_parallel_leaves_no_place():
    one = [runs("1", "q"), waits("2", "other", "1")]
    said = "max_parallel is 1, and each running task waits for another"
    assert refused(one, max_parallel=1) == {"2": said}
    assert refused(one, max_parallel=2) == {}


def test_who_is_not_there_is_waited_for():
    assert refused([runs("1", "q"), waits("2", "ada", "1")]) == {}
    gone = [runs("1", "q"), runs("2", "gone", "1"), waits("3", "hand", "2")]
    assert refused(gone) == {}  # the task of a process that ended is taken back


def test_what_nobody_waits_for_is_not_refused():
    assert refused([runs("1", "q"), waits("2", "other", "1"), waits("3", "hand", "ended")]) == {}


def test_a_part_that_is_for_who_waits_for_the_whole():
    parts = [runs("1", "q"), runs("2", "r", "1", divided=1), waits("3", "hand", parent="2")]
    assert refused(parts) == {"2": "a task that it gave to others waits for it"}
    assert refused(parts[:2] + [waits("3", "other", parent="2")]) == {}


def test_who_divides_a_task_needs_no_place_for_it():
    assert refused([runs("1", "q"), waits("2", "lead", "1")]) == {}
    whole = [runs("1", "q"), waits("2", "hand", "1")]
    assert refused(whole, topology=PEER_TO_PEER, to_all=True) == {}
