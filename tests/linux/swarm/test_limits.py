"""What a task may use with all its parts, in all processes (CKP 5.9 ``resource_limits``)."""

import pytest
from llm_server import MODEL, Server, say
from swarm_team import delegate, ended, look_on, project, start

from clawlite.core.base.errors import QuotaExceeded
from clawlite.core.swarm.swarm import Swarm
from clawlite.linux.swarm.task_meter import TaskMeter

ROLES = [
    {"identity_ref": "lead", "role": "leader"},
    {"identity_ref": "ada", "role": "worker"},
    {"identity_ref": "bob", "role": "worker"},
]
CHAIN = {"topology": "leader-worker", "agents": ROLES, "aggregation": {"strategy": "chain"}}


class Provider:
    name, prices = "p", (2, 5)  # nano-dollars a token


class Meter:
    def __init__(self):
        self.spent = []

    def allowed(self, provider, asked, most=None):
        return 4096 if most is None else most

    def spend(self, provider, read, written):
        self.spent.append((read, written))
        return ["an entry"]

    def owe(self, provider, read, written):
        self.spent.append((read, written))


class Used:
    """The bus of tasks whose use is known."""

    def __init__(self, tokens=0, nano=0):
        self.tokens, self.nano = tokens, nano

    def used(self, root):
        return self.tokens, self.nano

    def use(self, root, tokens, nano):
        self.tokens += tokens
        self.nano += nano


def meter(bus, tokens=None, nano=None) -> TaskMeter:
    members = [["lead", "claw://local/identity/lead", "leader", 1]]
    row = ["team", 0, 0, members, True, None, 1, None, 2, True, 0, False, None, tokens, nano, None]
    return TaskMeter(Meter(), bus, "root", Swarm(row))


def test_without_limits_nothing_is_counted_on_the_bus():
    bus = Used()
    one = meter(bus)
    assert one.allowed(Provider, 10) == 4096 and one.spend(Provider, 3, 4) == ["an entry"]
    assert (one.tokens, bus.tokens, one.spent) == (7, 0, [(3, 4)])


def test_an_answer_gets_what_is_left():
    one = meter(Used(100), tokens=150)
    assert one.allowed(Provider, 20) == 30
    assert one.allowed(Provider, 20, 30) == 30 and one.allowed(Provider, 49) == 1
    for asked, most in ((50, None), (20, 31)):
        with pytest.raises(QuotaExceeded, match="max_total_tokens is 150") as caught:
            one.allowed(Provider, asked, most)
        assert caught.value.data["used"] == 100 and caught.value.code == -32021


def test_money_is_counted_by_prices():
    bus = Used(0, 900)
    one = meter(bus, nano=1000)
    assert one.allowed(Provider, 10) == (100 - 20) // 5
    with pytest.raises(QuotaExceeded, match="max_total_cost_usd"):
        one.allowed(Provider, 48)
    one.spend(Provider, 10, 4)
    one.owe(Provider, 1, 0)
    assert (bus.tokens, bus.nano) == (15, 900 + 20 + 20 + 2)


def test_a_part_that_would_use_more_than_is_left_asks_nobody(tmp_path):
    """Of a chain of two processes the first uses nearly all: the second never sends a request."""
    with Server(lambda _: say("Dry.", read=250, written=100)) as server:
        remote = {
            "protocol": "openai-compatible",
            "endpoint": server.endpoint,
            "model": MODEL,
            "auth": {"type": "none"},
        }
        changes = dict(CHAIN, resource_limits={"max_total_tokens": 400})
        images = [
            project(tmp_path, agent["identity_ref"], provider=remote, **changes) for agent in ROLES
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
