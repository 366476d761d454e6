"""What a task may use with all its parts, in all processes (CKP 5.9 ``resource_limits``)."""

import json
import os
import threading

import pytest
from agents import DEADLINE_S, eventually
from llm_server import MODEL, Server, calls, say
from swarm_team import SWARM, UUID, delegate, ended, look_on, project, start, statuses, swarm
from swarm_world import IDS, INSIDE, KINDS, World, read_usage, settings, task, wall_ms

from clawlite.core.base.effect import SLEEP
from clawlite.core.base.errors import InvalidRequest, QuotaExceeded
from clawlite.core.policy import meter as meter_module
from clawlite.core.policy.ledger import Ledger
from clawlite.core.providers.provider_order import ProviderOrder
from clawlite.linux.swarm.bus import Bus
from clawlite.linux.swarm.task_meter import TaskMeter, TaskProviders, _reserving, meter_task
from clawlite.protocols.session.group_session import Later
from clawlite.protocols.swarm.swarm import Swarm, Task

ROLES = [
    {"identity_ref": "lead", "role": "leader"},
    {"identity_ref": "ada", "role": "worker"},
    {"identity_ref": "bob", "role": "worker"},
]
CHAIN = {"topology": "leader-worker", "agents": ROLES, "aggregation": {"strategy": "chain"}}


class Provider:
    name, prices = "p", (2, 5)  # nano-dollars a token


class Meter(meter_module.Meter):
    def __init__(self):
        super().__init__(lambda: (0, None), dict)
        self.spent = []

    def admit_request(self, provider, asked, most=None, least=None):
        return 4096 if most is None else most

    def count_answer(self, provider, read, written):
        self.spent.append((read, written))
        return ["an entry"]

    def owe(self, provider, read, written):
        self.spent.append((read, written))


ROOT = IDS[0]


class Late:
    """A bus on an engine: its answers come later."""

    def __init__(self, bus):
        self._bus, self.asked = bus, []

    def __getattr__(self, name: str):
        return getattr(self._bus, name)

    def hold(self, *values):
        self.asked.append((Later(), values))
        return self.asked[-1][0]

    def answer(self):
        later, values = self.asked.pop()
        later.give(self._bus.hold(*values))


@pytest.fixture
def bus():
    """A bus that is at one task."""
    one = Bus(None, wall_ms, os.urandom)
    one.join("lead", 1)
    one.put(task())
    one.take("lead", True, None)
    yield one
    one.leave()


def meter(bus, tokens=None, nano=None, of=ROOT) -> TaskMeter:
    members = [["lead", "claw://local/identity/lead", "leader", 1]]
    row = ["team", 0, 0, members, True, None, 1, None, 2, True, 0, False, None, tokens, nano, None]
    return TaskMeter(Meter(), bus, of, Swarm(row))


def test_without_limits_nothing_is_counted_on_the_bus(bus):
    one = meter(bus)
    assert one.admit_request(Provider, 10) == 4096
    assert one.count_answer(Provider, 3, 4) == ["an entry"]
    assert (one.tokens, read_usage(bus, ROOT), one._meter.spent) == (7, (0, 0), [(3, 4)])


def test_nothing_is_counted_for_an_agent_that_asks_no_model(bus):
    """It has a ledger where its tool calls are limited, and no meter."""
    order = ProviderOrder.__new__(ProviderOrder)
    order._meter = Ledger(lambda: (0, None), dict)
    providers, found = meter_task(order, "Look.", bus, ROOT, None)
    assert found is None and type(providers) is TaskProviders


def test_an_answer_gets_what_is_left(bus):
    one = meter(bus, tokens=150)
    bus.use(ROOT, 100, 0)
    assert one.admit_request(Provider, 20) == 30
    assert bus._rows("select tokens, nano from reserved") == [(50, 20 * 2 + 30 * 5)]
    assert one.admit_request(Provider, 20, 30) == 30 and one.admit_request(Provider, 49) == 1
    for asked, most in ((50, None), (20, 31)):
        with pytest.raises(QuotaExceeded, match="max_total_tokens is 150") as caught:
            one.admit_request(Provider, asked, most)
        assert caught.value.code == -32021
        assert caught.value.data == {
            "limit": "max_total_tokens",
            "max": 150,
            "used": 100,
            "reserved": 51,
        }


def test_money_is_counted_by_prices(bus):
    bus.use(ROOT, 0, 900)
    one = meter(bus, nano=1000)
    assert one.admit_request(Provider, 10) == (100 - 20) // 5
    with pytest.raises(QuotaExceeded, match="max_total_cost_usd") as caught:
        one.admit_request(Provider, 48)
    assert caught.value.data["used"] == 900 / 1e9
    one.count_answer(Provider, 10, 4)
    one.owe(Provider, 1, 0)
    assert read_usage(bus, ROOT) == (15, 900 + 20 + 20 + 2)


def test_a_request_that_others_leave_no_room_is_refused_with_what_they_reserved(bus):
    bus.allot(ROOT, IDS[1:3], False, [100, None])
    with pytest.raises(QuotaExceeded, match="0 are used, and 100 are reserved for others") as e:
        meter(bus, tokens=100).admit_request(Provider, 20)
    assert e.value.data == {"limit": "max_total_tokens", "max": 100, "used": 0, "reserved": 121}


def test_nothing_is_reserved_for_a_task_that_another_process_is_at(bus):
    bus.release(ROOT)
    with pytest.raises(InvalidRequest, match="given to another process"):
        meter(bus, tokens=150).admit_request(Provider, 20)


@pytest.mark.parametrize("others", [0, 140])
def test_on_an_engine_nothing_is_sent_before_it_is_reserved(bus, others):
    late = Late(bus)
    one, sent = meter(late, tokens=150), []

    def work():
        sent.append(one.admit_request(Provider, 20))
        sent.append((yield ("OPEN",)))

    asks = _reserving(work(), one)
    assert next(asks)[0] == next(asks)[0] == SLEEP and sent == [130]
    bus.use(ROOT, others, 0)  # another process was faster
    late.answer()
    if others:
        with pytest.raises(QuotaExceeded, match="140 are used"):
            next(asks)
        assert sent == [130]
    else:
        assert next(asks) == ("OPEN",)
        with pytest.raises(StopIteration):
            asks.send("opened")
        assert sent == [130, "opened"]


def remote(server) -> dict:
    return {
        "protocol": "openai-compatible",
        "endpoint": server.endpoint,
        "model": MODEL,
        "auth": {"type": "none"},
    }


def test_a_part_that_would_use_more_than_is_left_asks_nobody(tmp_path):
    """Of a chain of two processes the first uses nearly all: the second never sends a request."""
    with Server(lambda _: say("Dry.", read=250, written=100)) as server:
        changes = dict(CHAIN, resource_limits={"max_total_tokens": 400})
        images = [
            project(tmp_path, agent["identity_ref"], provider=remote(server), **changes)
            for agent in ROLES
        ]
        with start(tmp_path, images[0]) as lead, start(tmp_path, images[1]):
            with start(tmp_path, images[2]):
                delegate(lead, "Look.")
                bus = look_on(tmp_path)
                state, status, result = ended(bus)
                first = [task[0] for task in bus.tasks(-1)][-2]
                tokens = bus.outcome(first)[3]
                bus.leave()
        assert (state, status) == ("failed", "failed")
        assert "bob, a link of the chain, has no answer" in result["error"]
        assert "max_total_tokens is 400" in result["error"]
        assert len(server.requests) == 1 and tokens == 350
        assert server.requests[0].body["max_tokens"] < 400


MOST = 3000  # tokens
WORKERS = ("ada", "bob", "eve")
BESIDE = {
    "agents": [
        {"identity_ref": "lead", "role": "leader"},
        *({"identity_ref": name, "role": "worker"} for name in WORKERS),
    ],
    "aggregation": {"strategy": "merge"},
    "resource_limits": {"max_total_tokens": MOST},
}


class Greedy:
    """A model that uses all that a request allows, and answers when all workers have asked."""

    def __init__(self):
        self.used = []  # tokens of each request, whether its answer comes or not
        self._all = threading.Barrier(len(WORKERS))

    def __call__(self, request) -> dict:
        # the end of a request is not in the estimate of what it reads
        read, written = (len(request.raw) - 32) // 4, request.body["max_tokens"]
        self.used.append(read + written)
        if len(self.used) <= len(WORKERS):
            self._all.wait(DEADLINE_S)
        return say("Dry.", read=read, written=written)


def team(tmp_path, server, world) -> list:
    more = {"coordination": dict(SWARM["coordination"], message_passing="event-bus")}
    more["coordination"]["backend"] = world.kind
    if world.server:
        more["coordination"]["backend"], more["toml"] = settings(world.kind, world.server)
    names = ("lead", *WORKERS)
    return [project(tmp_path, name, provider=remote(server), **BESIDE, **more) for name in names]


@pytest.mark.parametrize("kind", KINDS)
def test_parts_that_run_at_the_same_time_never_use_more_than_the_limit(tmp_path, kind):
    world, model = World(kind, tmp_path), Greedy()
    agents = []
    try:
        with Server(model) as server:
            images = team(tmp_path, server, world)
            if not world.server:
                world.place = str(tmp_path / "state/swarms/team")
            agents = [start(tmp_path, image) for image in images]
            # until it has reached its engine
            eventually(lambda: "result" in delegate(agents[0], "Look."))
            bus = world.bus()
            world.until(lambda: bus.state(UUID % 1) not in (None, "waiting", "running"))
            assert bus.outcome(UUID % 1)[1] == "completed"
        assert len(model.used) == 3 and min(model.used) > MOST / 3 - 100
        assert sum(model.used) <= MOST and read_usage(bus, UUID % 1)[0] == sum(model.used)
        assert bus.budget(UUID % 1)[0] == (sum(model.used), 0, 0)
    finally:
        for agent in agents:
            agent.__exit__()
        world.close()


def test_a_worker_that_is_killed_may_have_used_what_its_request_reserved(tmp_path):
    """Its part begins again, and asks for what nobody else may use."""
    asked, used, go, stalled = [], [], threading.Event(), threading.Event()

    def model(request) -> dict:
        read, written = (len(request.raw) - 32) // 4, request.body["max_tokens"]
        asked.append(read + written)
        used.append(read + 10)
        if len(asked) == 1:
            stalled.set()
            go.wait(DEADLINE_S)
        return say("Dry.", read=read, written=10)

    world = World("sqlite-wal", tmp_path)
    world.place = str(tmp_path / "state/swarms/team")
    with Server(model) as server:
        images = team(tmp_path, server, world)
        agents = [start(tmp_path, image) for image in images[:2]]  # the leader and one worker
        try:
            delegate(agents[0], "Look.")
            assert stalled.wait(DEADLINE_S)
            agents.pop().__exit__()  # kill -9 in the middle of its request
            bus = look_on(tmp_path)
            part = bus._rows("select task from reserved where process != ''")[0][0]
            eventually(lambda: bus.state(part) == "waiting")
            assert len(asked) == 1 and bus.budget(UUID % 1)[0] == (0, MOST, 0)
            agents += [start(tmp_path, image) for image in images[2:]]
            eventually(lambda: bus.count(("completed",)) == 2)  # the two others
            agents.append(start(tmp_path, images[1]))
            state, status, result = ended(bus)
            assert status == "completed", result
            go.set()
        finally:
            for agent in agents:
                agent.__exit__()
        # the second request for the part had what the others gave back, not what the first has
        assert len(asked) == 4 and asked[0] + used[1] + used[2] + asked[3] <= MOST
        assert asked[3] > MOST / 3 and bus.budget(UUID % 1)[0] == (sum(used[1:]), 0, 0)
        bus.leave()


# -- tasks that turns delegate


@pytest.fixture(params=[INSIDE, *KINDS])
def any_world(request, tmp_path):
    made = World(request.param, tmp_path)
    yield made
    made.close()


def test_a_task_that_a_turn_delegates_counts_to_the_whole_task(any_world):
    world, limits = any_world, [100, None]
    names = ("lead", "ada", "bob", "eve")
    lead, ada, bob, eve = (world.bus(name, 1) for name in names)
    world.done(lead.put(task()))
    assert world.take(ada, "ada").id == IDS[0]
    assert world.done(ada.hold(IDS[0], [30, 0], limits))
    ada.use(IDS[0], 30, 0)
    assert world.done(ada.asks(IDS[0], IDS[1]))
    world.done(ada.put(task(1, sender="ada")))
    taken = world.take(bob, "bob")
    assert (taken.id, taken.parent, taken.root) == (IDS[1], "", IDS[0])
    assert world.done(bob.hold(IDS[1], [60, 0], limits))
    bob.use(IDS[1], 50, 0)
    # a task of that task
    assert world.done(bob.asks(IDS[1], IDS[2]))
    world.done(bob.put(task(2, sender="bob")))
    taken = world.take(eve, "eve")
    assert (taken.id, taken.root) == (IDS[2], IDS[0])
    assert not world.done(eve.hold(IDS[2], [21, 0], limits))
    assert world.done(eve.hold(IDS[2], [20, 0], limits))
    eve.use(IDS[2], 15, 0)
    world.until(lambda: read_usage(lead, IDS[0]) == (95, 0))
    assert not world.done(bob.asks(IDS[0], IDS[3])), "that is the task of another process"


def test_what_a_turn_delegates_uses_the_share_of_its_task(bus):
    """All is reserved for parts: the share of the one that delegates is not lost to it."""
    bus.allot(ROOT, IDS[1:3], False, [100, None])
    for number in (1, 2):
        bus.put(Task(IDS[number], "Look.", None, "lead", "lead", ROOT))
        assert bus.take("lead", True, None).id == IDS[number]
    bus.use(IDS[1], 10, 0)
    bus.asks(IDS[1], IDS[3])
    bus.put(task(3))
    assert bus.take("lead", True, None).root == ROOT
    assert bus.budget(IDS[3])[0] == (10, 90, 40)
    assert not bus.hold(IDS[3], [41, 0], [100, None])
    assert bus.hold(IDS[3], [40, 0], [100, None])
    bus.use(IDS[3], 35, 0)
    bus.report(IDS[3], "completed", {}, 35, 1, "lead", True)
    assert bus.budget(IDS[1])[0] == (45, 55, 5) and bus.budget(IDS[2])[0] == (45, 55, 50)
    # its own parts share what it has
    bus.asks(IDS[2], IDS[4])
    bus.put(task(4))
    assert bus.take("lead", True, None).id == IDS[4]
    bus.allot(IDS[4], IDS[5:7], True, [100, None])
    bus.put(Task(IDS[5], "Look.", None, "lead", "lead", IDS[4]))
    assert bus.budget(IDS[5])[0] == (45, 55, 16) and bus.budget(IDS[4])[0] == (45, 55, 18)


def test_a_delegated_task_is_given_up_as_any_other_and_a_person_may_begin_it_anew(tmp_path):
    now = [1000]
    bus = Bus(str(tmp_path / "team"), lambda: now[0], os.urandom)
    bus.join("lead", 1)
    bus.put(task())
    bus.take("lead", True, None)
    now[0] = 1900
    bus.asks(ROOT, IDS[1])
    bus.put(task(1, sender="lead"))
    now[0] = 2899
    assert bus.late(1000) == [], "each process finds it late at the same time"
    now[0] = 2900
    assert [one[0] for one in bus.expire(1000, True)] == [IDS[1]]
    bus.again(IDS[1])
    assert bus.late(1000) == [] and bus.take("lead", True, None).root == IDS[1]
    assert bus.budget(IDS[1]) == [(0, 0, 0), (0, 0, 0)]
    bus.leave()


PEERS = [{"identity_ref": name, "role": "peer"} for name in WORKERS]
CHAINED = {
    "topology": "peer-to-peer",
    "agents": PEERS,
    "aggregation": {"strategy": "merge"},
    "resource_limits": {"max_total_tokens": 1050},
    "tools": ["claw://registry/clawlite/delegate@1.0.0"],
}


@pytest.mark.parametrize("kind", [INSIDE, "sqlite-wal", "redis", "nats"])
def test_no_chain_of_delegations_exceeds_the_limit(tmp_path, kind):
    """Each model asks another agent: the third one in the chain has nothing left."""
    world, agents = World(kind, tmp_path), []
    place = {"coordination": dict(SWARM["coordination"], backend=kind)}
    if world.server:
        place["coordination"]["backend"], place["toml"] = settings(kind, world.server)
    script = [calls(("delegate", {"task": "Look there."}), read=400, written=100)] * 2
    try:
        with Server([*script, say("Dry.", read=400, written=100)]) as server:
            images = [
                project(tmp_path, name, provider=remote(server), **CHAINED, **place)
                for name in WORKERS
            ]
            if kind != INSIDE:
                agents = [start(tmp_path, image) for image in images]
            eventually(lambda: kind == INSIDE or len(statuses(agents[0])) == 3)
            code, said, errors = swarm(tmp_path, "run", "Look.", images[0], "--json")
        report = json.loads(said)
        assert (code, report["status"]) == (1, "failed"), errors
        assert "max_total_tokens is 1050" in report["result"]["error"]
        assert "1000 are used" in report["result"]["error"]
        assert len(server.requests) == 2
    finally:
        for agent in agents:
            agent.__exit__()
        world.close()


ASKING = '''\
def look(bed: str) -> str:
    """Look at a bed."""
    return (yield {"ask": "Is %s dry?" % bed})
'''
WEIGH = {
    "name": "weigh",
    "description": "Weigh what is known of a bed.",
    "tools_required": ["look"],
    "instruction": "Look at it first.",
}
WEIGHED = {
    "name": "weighed",
    "description": "Weigh what is known of a bed.",
    "input_schema": {"type": "object", "properties": {}},
    "composite": True,
    "skill_ref": "weigh",
    "annotations": {"readOnlyHint": True},
}


def test_what_handlers_and_composite_tools_ask_counts_to_the_task(tmp_path):
    used = {"read": 60, "written": 40}
    script = [
        calls(("weighed", {}), **used),  # the turn of the task
        calls(("look", {"bed": "bed 3"}), **used),  # the turn of the composite tool
        *(say(text, **used) for text in ("Dry.", "It is dry.", "Water it.")),
    ]
    with Server(script) as server:
        images = [
            project(
                tmp_path,
                agent["identity_ref"],
                provider=remote(server),
                code=ASKING,
                tools=[{"inline": WEIGHED}],
                spec="  skills: %s\n" % json.dumps([{"inline": WEIGH}]),
                agents=ROLES[:2],
                resource_limits={"max_total_tokens": 20000},
            )
            for agent in ROLES[:2]
        ]
        with start(tmp_path, images[0]) as lead, start(tmp_path, images[1]):
            delegate(lead, "Look.")
            bus = look_on(tmp_path)
            state, _, result = ended(bus)
            outcome, spent = bus.outcome(UUID % 1), read_usage(bus, UUID % 1)
            bus.leave()
    assert (state, result["text"], len(server.requests)) == ("completed", "Water it.", 5), result
    assert (outcome[3], spent[0]) == (500, 500)
