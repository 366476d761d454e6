"""``message_passing: shared-memory`` on engines: the agents are on machines of their own, one keeps
the stores that they share, and the requests of the others travel over the engine (CKP 5.9; ADR
0130).
"""

import contextlib
import json
from types import SimpleNamespace

import pytest
from agents import Agent, eventually, linux
from swarm_memory import MEMORY, UUID, found, keep
from swarm_team import SWARM, project, start, statuses
from swarm_world import ENGINES, World, server_of, settings

from clawlite.core.base.errors import ClawError, StoreError
from clawlite.core.image.image import SWARM as SECTION
from clawlite.host.image.image_reader import open_image
from clawlite.linux.swarm.bus import TooLong
from clawlite.linux.swarm.shared_stores import ANSWER_MS, NoSharedStores, SharedStores
from clawlite.protocols.swarm.swarm import Swarm


class Machines:
    """Agents on one engine, each with a state folder of its own."""

    def __init__(self, tmp_path, kind: str):
        self.kind, self.path = kind, tmp_path
        self.server = server_of(kind, tmp_path / "engine")
        backend, self.toml = settings(kind, self.server)
        self.coordination = dict(
            SWARM["coordination"], message_passing="shared-memory", backend=backend
        )
        try:
            self.images = {name: self._image(name) for name in ("lead", "hand")}
        except BaseException:
            self.server.kill()
            raise

    def _image(self, name: str) -> str:
        home = self.path / ("home-" + name)
        home.mkdir()
        return project(home, name, toml=self.toml, spec=MEMORY, coordination=self.coordination)

    def start(self, name: str) -> Agent:
        return start(self.path / ("home-" + name), self.images[name])

    @contextlib.contextmanager
    def both(self):
        with self.start("lead") as lead, self.start("hand") as hand:
            ready = {"lead": "ready", "hand": "ready"}
            for agent in lead, hand:
                eventually(lambda agent=agent: statuses(agent) == ready)
            yield lead, hand

    def file(self, name: str):
        return self.path / ("home-" + name) / "state/swarms/team/memory.db"


@pytest.fixture(params=ENGINES)
def machines(request, tmp_path):
    made = Machines(tmp_path, request.param)
    yield made
    made.server.kill()


def asked(agent, method: str, number: int, **params) -> dict:
    """Return the answer of *agent*, result or error."""
    return agent.call("claw.memory." + method, params, number)


def test_what_one_agent_keeps_the_others_find(machines):
    with machines.both() as (lead, hand), machines.start("hand") as third:
        keep(hand, "notes", 1, key="bed 3", content={"state": "dry"})
        assert found(lead, "notes", 1, type="key", key="bed 3") == [{"state": "dry"}]
        keep(lead, "notes", 2, key="bed 3", content="watered")
        eventually(lambda: statuses(third).get("lead") == "ready")
        for number, agent in enumerate((lead, hand, third), 10):
            assert found(agent, "notes", number, type="key", key="bed 3") == ["watered"]
        keep(hand, "own", 3, key="bed 3", content="mine")
        assert found(lead, "own", 3, type="key", key="bed 3") == []
        keep(hand, "said", 4, content="the tomatoes in bed 3 are dry")
        words = {"type": "semantic", "text": "tomatoes"}
        assert found(third, "said", 20, **words) == ["the tomatoes in bed 3 are dry"]
        range_ = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
        assert len(found(hand, "said", 21, type="time-range", time_range=range_)) == 1
    assert machines.file("lead").exists() and not machines.file("hand").exists()


def test_a_store_that_is_full_is_compacted_by_whoever_filled_it(machines):
    """What compacts it is asked of the keeper, too."""
    with machines.both() as (lead, hand):
        for number in range(1, 7):
            entries = [{"content": "bed %d of %d" % (n, number)} for n in range(20)]
            context = {"request_id": UUID % number}
            answer = asked(hand, "store", number, store="said", entries=entries, context=context)
            assert answer["result"]["stored"] == 20
        answer = asked(hand, "compact", 8, store="said")
        assert answer["result"]["entries_after"] <= 50, answer
        range_ = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
        kept = found(lead, "said", 9, type="time-range", time_range=range_, top_k=100)
        assert 0 < len(kept) <= 50


def test_many_write_at_once_and_each_is_answered(machines):
    with machines.both() as (lead, hand):
        for number in range(1, 31):
            for agent, name in ((lead, "lead"), (hand, "hand")):
                entry = {"content": "%s saw bed %d" % (name, number), "key": name + str(number)}
                id = UUID % (number * 2 + (agent is hand))
                params = {"store": "notes", "entries": [entry], "context": {"request_id": id}}
                record = {"jsonrpc": "2.0", "method": "claw.memory.store", "id": number}
                agent.record(dict(record, params=params))
        for agent in lead, hand:
            answers = [agent.message() for _ in range(30)]
            assert all(answer["result"]["stored"] == 1 for answer in answers), answers
        for agent in lead, hand:
            keys = ["%s%d" % (name, number) for name in ("lead", "hand") for number in (1, 15, 30)]
            numbered = enumerate(keys, 100)
            assert all(found(agent, "notes", n, type="key", key=key) for n, key in numbered)


def test_the_keeper_is_away(machines):
    """Requests are refused with its name, and the agent's own stores go on.  After it is back, a
    request that comes again counts once.
    """
    entry = {"key": "a", "content": "first"}
    context = {"request_id": UUID % 1}
    once = {"store": "notes", "entries": [entry], "context": context}
    with machines.start("hand") as hand:
        away = ("kept by lead, which is not there", "lead, which keeps its log, is not there")

        def refusal() -> str:
            error = asked(hand, "store", 1, **once)["error"]
            assert error["code"] == -32030
            return error["message"]

        eventually(lambda: refusal().endswith(away))
        keep(hand, "own", 2, key="a", content="mine")
        with machines.start("lead") as lead:
            eventually(lambda: statuses(hand).get("lead") == "ready")
            assert asked(hand, "store", 3, **once)["result"]["stored"] == 1
            lead.__exit__()
        with machines.start("lead") as lead:
            eventually(lambda: "result" in asked(hand, "store", 4, **once))
            query = {"type": "key", "key": "a"}
            eventually(lambda: "result" in asked(hand, "query", 5, store="notes", query=query))
            assert found(hand, "notes", 6, type="key", key="a") == ["first"]
            everything = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
            assert found(lead, "notes", 7, type="time-range", time_range=everything) == ["first"]


def test_the_end_of_input_waits_for_the_answer(machines):
    """As it does for a store of the agent's own."""
    with machines.both() as (lead, hand):
        keep(lead, "notes", 1, key="a", content="first")
        params = {"store": "notes", "query": {"type": "key", "key": "a"}}
        request = {"jsonrpc": "2.0", "id": 5, "method": "claw.memory.query", "params": params}
        hand.line(json.dumps(request))
        hand.end()
        assert hand.message()["result"]["entries"][0]["content"] == "first"
        assert hand.wait() == 0


def test_what_is_longer_than_an_entry(machines):
    long = ["x" * 60000 for _ in range(9)]
    with machines.both() as (lead, hand):
        context = {"request_id": UUID % 1}
        entries = [{"key": str(n), "content": text} for n, text in enumerate(long)]
        error = asked(hand, "store", 1, store="notes", entries=entries, context=context)["error"]
        assert "longer than an entry of the swarm's engine" in error["message"]
        assert error["data"]["hint"] == "store less at once"
        for n, text in enumerate(long):
            keep(hand, "said", 2 + n, content=text)
        range_ = {"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"}
        query = {"type": "time-range", "time_range": range_, "top_k": 9}
        error = asked(hand, "query", 20, store="said", query=query)["error"]
        assert "the answer is longer than an entry" in error["message"]
        assert "top_k" in error["data"]["hint"] and error["data"]["reason"] == "too-long"
        assert len(asked(lead, "query", 21, store="said", query=query)["result"]["entries"]) == 9


def test_a_command_that_joins_no_swarm_is_refused(tmp_path):
    machines = Machines(tmp_path, "nats")
    try:
        swarm = Swarm(open_image(machines.images["hand"]).section(SECTION))
    finally:
        machines.server.kill()

    class Store:
        name = "notes"

    class Agent:
        ended = []

        def complete(self, number, outcome, now_ms):
            self.ended.append(outcome)

    none = NoSharedStores(Agent(), swarm, lambda: 0)
    assert none.carry_out((None, 1, "query", Store, "", ()))
    ((done, error),) = Agent.ended
    assert not done and "which this process has not joined" in error.message
    Store.name = "own"
    assert not none.carry_out((None, 2, "query", Store, "", ()))


class Later:
    def then(self, function):
        pass


class Bus:
    """Of "hand", where "lead" keeps the stores, as far as ``SharedStores`` asks it."""

    keeper, process, is_synced, now = "lead", "b", True, 0
    is_there = staticmethod(lambda process: True)

    def __init__(self):
        self.said = []

    def subscribe(self, stores):
        self.stores = stores

    def keeper_of_stores(self) -> str:
        return "a"

    def is_known(self) -> bool:
        return self.is_synced

    def wall_ms(self) -> int:
        return self.now

    def remember(self, *request):
        self.said.append(request)
        return Later()

    def remembered(self, *answer):
        self.said.append(answer)


class Keeping(Bus):
    """Of "lead", which keeps them."""

    process = "a"


class Store:
    name = "notes"


class Waiting:
    """An agent whose tasks wait for the memory; ``ended``: what came for them."""

    def __init__(self):
        self.ended, self.setup = [], self

    def complete(self, number, outcome, now_ms):
        self.ended.append((number, outcome))

    def memories(self):
        return SimpleNamespace(stores=[Store])


def stores_of(bus, own="hand", carry_out=None, now=(0,)):
    swarm = SimpleNamespace(shares=["notes"], name="team", own=SimpleNamespace(identity=own))
    draw = lambda count: b"i" * count
    return SharedStores(Waiting(), swarm, bus, carry_out, lambda: now[0], draw)


QUERY = (None, 7, "query", Store, "", ("key", "a", 1, None))


def test_a_keeper_that_does_not_answer():
    """Its process is there, and says nothing."""
    now = [0]
    stores = stores_of(Bus(), now=now)
    assert stores.carry_out(QUERY) and stores.deadline() == ANSWER_MS
    stores.poll()
    assert stores._agent.ended == []
    now[0] = ANSWER_MS
    stores.poll()
    ((number, (done, error)),) = stores._agent.ended
    assert number == 7 and not done and isinstance(error, StoreError)
    assert "lead keeps the stores of the swarm team: it has not answered" in error.message
    assert "counts once" in error.hint and stores.deadline() is None
    stores.remembered("69" * 8, True, None)  # it is not waited for any more


def test_a_request_waits_until_all_that_is_on_record_has_come():
    now, bus = [0], Bus()
    stores = stores_of(bus, now=now)
    bus.is_synced = False
    assert stores.carry_out(QUERY) and stores.carry_out(QUERY) and bus.said == []
    now[0] = 1
    stores.poll()
    bus.is_synced = True
    stores.poll()
    assert len(bus.said) == 2 and stores._agent.ended == []
    bus.is_synced = False
    stores.carry_out(QUERY)
    now[0] = 2 * ANSWER_MS
    stores.poll()
    assert "did not say in time" in stores._agent.ended[-1][1][1].message


def test_what_waits_for_a_keeper_is_carried_out_unless_it_is_old_or_its_process_has_ended():
    bus, done = Keeping(), []
    stores = stores_of(bus, "lead", lambda *what: done.append(what))
    request = "notes", "", "query", ["key", "a", 1, None]
    bus.now = ANSWER_MS
    stores.remember("b", 0, "0" * 16, *request)  # who asked has given it up
    stores.remember("b", 1, "1" * 16, *request)
    stores.poll()
    assert [effect[4] for effect, _ in done] == [""]
    bus.is_there = lambda process: False
    stores.remember("b", 1, "2" * 16, *request)
    stores.poll()
    assert len(done) == 1
    (_, on_end), stored = done[0], (True, {"entries": []})
    on_end(stored)
    assert bus.said == [("1" * 16, *stored)]


def test_an_engine_that_is_away_ends_nothing():
    """What is asked waits, and is not lost."""
    bus, done = Keeping(), []
    stores = stores_of(bus, "lead", lambda *what: done.append(what))
    stores.remember("b", 0, "1" * 16, "notes", "", "query", ["key", "a", 1, None])

    def away():
        raise ClawError("the engine is away")

    bus.keeper_of_stores = away
    stores.poll()
    bus.keeper_of_stores = lambda: "a"
    stores.poll()
    assert len(done) == 1


def test_nobody_but_who_may_keep_the_stores_remembers_requests():
    stores = stores_of(Bus())
    stores.remember("c", 0, "1" * 16, "notes", "", "query", ["key", "a", 1, None])
    assert not stores._unanswered


def test_an_answer_that_no_entry_carries():
    bus, done = Keeping(), []
    stores = stores_of(bus, "lead", lambda *what: done.append(what))
    stores.remember("b", 0, "1" * 16, "notes", "", "query", ["key", "a", 1, None])
    stores.poll()
    told = []

    def remembered(id, is_done, value):
        told.append((is_done, value))
        if is_done:
            raise ValueError("nested too deep")

    bus.remembered = remembered
    done[0][1]((True, {"entries": []}))
    assert [is_done for is_done, _ in told] == [True, False]
    assert "nested too deep" in told[1][1][1]


def test_vectors_that_are_learned_are_as_many_as_an_entry_holds():
    bus = Bus()
    stores, sent = stores_of(bus), []

    def remember(id, name, part, verb, details):
        sent.append(len(details))
        if len(details) > 20:
            raise TooLong("too long")
        return Later()

    bus.remember = remember
    stores.carry_out((None, 7, "learn", Store, "", [[n, "text", [0.5]] for n in range(64)]))
    assert sent == [64, 32, 16] and stores._agent.ended == []


def test_a_request_without_an_id_gets_one():
    bus = Bus()
    stores_of(bus).carry_out((None, 7, "store", Store, "", (None, [(None, "x", None, None)])))
    assert bus.said[0][4][0] == "69" * 16


def test_requests_that_are_none(machines):
    """Whatever a member says, the keeper goes on, and says no."""
    with machines.both() as (lead, hand):
        world = World.__new__(World)
        world.kind, world.server, world.ends, world.refused = machines.kind, machines.server, [], []
        world.place, world.keep = machines.server.place, str(machines.path / "kept")
        end = world.bus("hand")
        get, entry = ["key", "a", 1, None], ["a", "x", None, None]
        requests = [
            ([], "notes", "", "query", get),
            ("x" * 524100, "notes", "", "query", get),
            ("own", "own", "", "query", get),
            ("names", ["notes"], "", "query", get),
            ("verb", "notes", "", "drop", []),
            ("dict", "notes", "", "store", {"a": 1, "b": 2, "c": 3}),
            ("part", "notes", {}, "query", get),
            ("number", "notes", "", "query", 7),
            ("three", "notes", "", "query", get[:3]),
            ("no id", "notes", "", "store", ["x", [entry]]),
            ("none", "notes", "", "store", ["ab" * 16, []]),
            ("entry", "notes", "", "store", ["ab" * 16, [entry[:2]]]),
            ("meta", "notes", "", "store", ["ab" * 16, [["a", "x", "text", None]]]),
            ("vector", "notes", "", "store", ["ab" * 16, [entry], [["0", [1]]]]),
            ("learn", "notes", "", "learn", [["a", "x"]]),
            ("count", "notes", "", "compact", "all"),
        ]
        for number, (id, *request) in enumerate(requests):
            id = id if isinstance(id, list) or len(id) > 16 else id.ljust(16)
            world.done(end.remember(id, *request))
            assert found(lead, "notes", 50 + number, type="key", key="a") == []
        keep(hand, "notes", 1, key="a", content="first")
        assert found(lead, "notes", 90, type="key", key="a") == ["first"]
        end.leave()


def test_nobody_but_the_keeper_answers(tmp_path):
    world = World("nats", tmp_path)
    try:
        lead, hand = world.bus("lead", 0), world.bus("hand")
        hand.remembered("id", True, {"entries": []})
        world.until(lambda: world.refused)
        assert "hand answers for the stores that lead keeps" in world.refused[0]
        assert lead.keeper_of_stores() == hand.keeper_of_stores() == lead.process
    finally:
        world.close()


def test_shared_stores_in_a_command(tmp_path):
    """``clawlite ask`` joins no swarm."""
    machines = Machines(tmp_path, "nats")
    try:
        home = tmp_path / "home-hand"
        with Agent(linux("ask", "look at bed", machines.images["hand"]), home) as agent:
            assert agent.wait() == 0, agent.errors()
    finally:
        machines.server.kill()
