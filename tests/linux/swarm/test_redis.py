"""Redis as a swarm's engine: a login that it refuses, memory that is full, and what it may lose."""

import pathlib
import re
import subprocess
import sys

import pytest
import redis
from engines import SERVERS
from swarm_world import IDS, RECORD, World, task

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm_commands.acl import acl
from clawlite.protocols.swarm.swarm import Swarm

ROOT = pathlib.Path(__file__).resolve().parents[3]
NAME = "team"


class Server(SERVERS["redis"]):
    """One with other words on its command line."""

    extra = ()

    def words(self) -> list:
        return [*super().words(), *self.extra]


@pytest.fixture
def made(tmp_path, monkeypatch):
    """function(words) -> World of a server that is started with these words."""
    worlds = []

    def world(*words, more=Server.more):
        monkeypatch.setitem(
            SERVERS, "redis", type("Redis", (Server,), {"extra": words, "more": more})
        )
        worlds.append(World("redis", tmp_path))
        return worlds[-1]

    yield world
    for one in worlds:
        one.close()


def test_a_login_that_is_refused_is_told_with_the_next_step(made):
    world = made("--requirepass", "right")
    with pytest.raises(ClawError) as caught:
        world.bus("lead", 0, password="wrong")
    assert (
        "refuses the login" in caught.value.message
        and "user and credential of [swarm]" in caught.value.hint
    )
    with pytest.raises(ClawError, match="refuses the login"):
        world.bus("lead", 0)
    lead = world.bus("lead", 0, password="right")
    world.until(lambda: lead.present() == {"lead": [False]})


def test_the_agent_s_own_thread_does_not_import_the_package():
    """An agent's loop waits for no import of a library; the engine's thread does."""
    code = (
        "import sys\nfrom clawlite.linux.swarm_engines.engine import REDIS, engine_of\n"
        "made = engine_of([REDIS, False, '127.0.0.1', 1, ''], '', 'team', 'p', 'lead')\n"
        "print(sorted({'redis', 'ssl'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def login() -> list[str]:
    """Return the command of docs/swarm-machines.md, for the swarm of these tests."""
    text = " ".join((ROOT / "docs" / "swarm-machines.md").read_text().split())
    documented = re.search(r"`(ACL SETUSER garden [^`]*)`", text)[1].replace("garden", NAME)
    assert documented == acl("redis", Swarm(RECORD)), "the docs and the command say the same"
    return documented.split()


@pytest.mark.parametrize("keys", [NAME, "another"])
def test_a_login_of_redis_needs_what_the_docs_say_and_no_more(made, keys):
    import redis

    world = made()
    admin = redis.Redis(port=world.server.port)
    admin.execute_command(*(word.replace("{%s}" % NAME, "{%s}" % keys) for word in login()))
    admin.close()
    *place, _ = world.place
    world.place = (*place, "team")
    if keys != NAME:
        with pytest.raises(ClawError, match="the login may not do this") as caught:
            world.bus("lead", 0, password="PASSWORD")
        assert "docs/swarm-machines.md" in caught.value.hint
        return
    lead = world.bus("lead", 0, password="PASSWORD")
    hand = world.bus("hand", 1, password="PASSWORD")
    world.until(lambda: set(hand.present()) == {"lead", "hand"})
    assert world.done(lead.put(task()))
    assert not world.refused


def test_a_full_engine_is_told_and_what_waits_is_sent_when_there_is_room(made):
    import redis

    world = made("--maxmemory-policy", "noeviction")
    lead = world.bus("lead", 0)
    world.until(lambda: lead.present())
    server = redis.Redis(port=world.server.port)
    server.config_set("maxmemory", 1)
    later = lead.put(task())

    def away():
        try:
            lead.put(task(1))
        except ClawError as e:
            return "it is full" in e.message and "maxmemory" in e.hint

    world.until(away)
    server.config_set("maxmemory", 0)
    server.close()
    assert world.done(later)


def test_what_is_kept_in_memory_alone_is_told_to_be_lost(made):
    world = made(more=())
    world.bus("lead", 0)
    assert world.refused and "appendonly yes" in world.refused[0]


@pytest.mark.parametrize(
    "policy, is_told",
    [
        ("allkeys-lru", True),
        ("allkeys-lfu", True),
        ("allkeys-random", True),
        ("volatile-lru", False),  # no key of a swarm has an expiry
        ("volatile-ttl", False),
        ("noeviction", False),
    ],
)
def test_an_engine_that_may_evict_tasks_is_told(made, policy, is_told):
    world = made("--maxmemory", "64mb", "--maxmemory-policy", policy)
    world.bus("lead", 0)
    said = [policy in one and "maxmemory-policy noeviction" in one for one in world.refused]
    assert said == [True] * is_told


def test_an_engine_that_may_evict_and_stores_nothing_is_told_both(made):
    world = made("--maxmemory-policy", "allkeys-lru", more=())
    world.bus("lead", 0)
    assert ["noeviction" in one for one in world.refused] == [True, False]
    assert "appendonly yes" in world.refused[1]


@pytest.mark.parametrize("often", ["no", "everysec", "always"])
def test_a_disk_that_is_not_synced_is_told(made, often):
    world = made("--appendfsync", often)
    world.bus("lead", 0)
    said = ["set appendfsync everysec or always" in one for one in world.refused]
    assert said == ([True] if often == "no" else [])


def test_a_login_that_may_not_see_whether_the_disk_is_synced_is_told(made):
    import redis

    world = made()
    admin = redis.Redis(port=world.server.port)
    admin.execute_command(*login()[:-1])  # without +config|get
    admin.close()
    *place, _ = world.place
    world.place = (*place, "team")
    world.bus("lead", 0, password="PASSWORD")
    assert ["+config|get" in one for one in world.refused] == [True]


@pytest.mark.parametrize(
    "fields",
    [
        {"position": "1-0"},
        {"data": "x"},
        *({"data": "x", "position": one} for one in ("junk", b"\xff", "9" * 5000, "-1", "1-2-3")),
    ],
)
def test_a_snapshot_without_a_position_or_data_is_said(made, fields):
    """It was "b'data'", and the hint was to start the engine."""
    world = made()
    world.bus("lead")
    with redis.Redis(port=world.server.port) as client:
        client.hset("claw:{team}:snapshot", mapping=fields)
    with pytest.raises(ClawError, match="its snapshot cannot be read: its fields are") as caught:
        world.bus("hand")
    assert "remove what it keeps at the engine" in caught.value.hint


def test_a_log_that_is_something_else_is_said(made):
    world = made()
    with redis.Redis(port=world.server.port) as client:
        client.set("claw:{team}:log", "x")
    with pytest.raises(ClawError, match="what it keeps of the swarm is something else") as caught:
        world.bus("lead")
    assert "remove what it keeps at the engine" in caught.value.hint


def test_an_entry_of_the_end_of_time_stops_nobody(made):
    """Later entries have no earlier time, and SQLite did not take that number."""
    world = made()
    lead = world.bus("lead")
    with redis.Redis(port=world.server.port) as client:
        client.xadd("claw:{team}:log", {"e": "x"}, id="18446744073709551614-1")
    assert world.done(lead.put(task()))
    assert world.bus("hand").state(IDS[0]) == "waiting"
