"""An MQTT broker as a swarm's engine, and the member that keeps the log: which of them may, who
takes over, and what becomes of what the broker has lost.
"""

import json
import os
import re
import subprocess
import sys

import pytest
import swarm_team
from agents import eventually
from brokers import Peer
from engines import BROKERS
from swarm_team import SWARM, project, start
from swarm_world import IDS, World, end_of, settings, task

from clawlite.core.base.errors import ClawError
from clawlite.core.swarm.swarm import RUNNING
from clawlite.linux.swarm_engines import mqtt_engine
from clawlite.linux.swarm_engines.mqtt_log import KeptLog


@pytest.fixture
def world(tmp_path):
    made = World("mosquitto", tmp_path)
    yield made
    made.close()


def away(bus, said: str):
    """Return a function: whether *bus* is away because of what is *said*."""

    def fact():
        try:
            bus.put(task(8))
        except ClawError as e:
            return said in e.message and e
        return None

    return fact


def test_the_agent_s_own_thread_does_not_import_the_package():
    code = (
        "import sys\nfrom clawlite.linux.swarm_engines.engine import MQTT, engine_of\n"
        "made = engine_of([MQTT, False, '127.0.0.1', 1, ''], '', 'team', 'p', 'lead')\n"
        "print('paho.mqtt.client' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_without_its_keeper_a_swarm_says_whom_to_start(world, monkeypatch):
    monkeypatch.setattr(mqtt_engine, "AWAY_S", 0)
    with pytest.raises(ClawError, match="its member lead, which keeps its log, is not") as caught:
        world.bus("hand")
    assert "start lead: clawlite swarm up" in caught.value.hint
    lead = world.bus("lead", 0)
    hand = world.ends[0] if world.ends[0] is not lead else world.bus("hand")
    world.until(lambda: set(hand.present()) == {"lead", "hand"})


def test_the_next_process_of_the_keeper_takes_over_and_nothing_is_forgotten(world):
    first, second, hand = world.bus("lead", 0), world.bus("lead", 0), world.bus("hand")
    assert first._engine._keeper and not second._engine._keeper
    assert world.done(second.put(task()))
    assert world.take(hand).id == IDS[0]
    world.ends.remove(first)
    first.leave()
    world.until(lambda: second._engine._keeper and second._is_up and hand._is_up)
    assert hand.state(IDS[0]) == RUNNING and hand.holds(IDS[0])
    hand.report(IDS[0], "completed", 1, None, 1, "hand", True)
    world.until(lambda: second.state(IDS[0]) == "completed")


def test_a_keeper_without_the_log_that_there_was_does_not_begin_another(world, tmp_path):
    lead = world.bus("lead", 0)
    assert world.done(lead.put(task()))
    world.ends.remove(lead)
    lead.leave()
    other = end_of(world.kind, world.place, tmp_path / "elsewhere")
    other.join("lead", 0)
    world.ends.append(other)
    error = world.until(away(other, "lies on another machine, or is lost"))
    assert "publish an empty retained message on claw/v1/team/keeper" in error.hint
    peer = Peer(world.server.port)
    peer.tell("claw/v1/team/keeper", b"", retain=True)  # a person has decided
    peer.close()
    world.until(lambda: other._is_up and other._is_synced)
    assert other.state(IDS[0]) is None


def test_who_has_died_while_the_broker_was_away_is_gone_too(tmp_path, monkeypatch):
    """Its presence is retained, and no will of it comes."""
    monkeypatch.setattr(mqtt_engine, "TOLD_S", 1)
    more = BROKERS["mosquitto"].more + "autosave_on_changes true\nautosave_interval 1\n"
    monkeypatch.setitem(BROKERS, "mosquitto", type("B", (BROKERS["mosquitto"],), {"more": more}))
    world = World("mosquitto", tmp_path)
    try:
        lead = world.bus("lead", 0)
        world.done(lead.put(task()))
        other = world.process()
        assert other.said() == IDS[0]
        world.server.kill()
        other.kill()
        world.server.start()
        world.until(lambda: lead._is_up)
        assert world.until(lambda: lead.reclaim(2, True))[0][0] == IDS[0]
    finally:
        world.close()


def test_an_entry_that_the_broker_has_lost_is_asked_for(world):
    lead, hand = world.bus("lead", 0), world.bus("hand")
    engine, lost = hand._engine, []
    engine._on_out = lambda *given: lost.append(given)
    assert world.done(lead.put(task()))
    world.until(lambda: lost)
    assert hand.state(IDS[0]) is None
    del engine._on_out
    assert world.done(lead.put(task(1)))
    world.until(lambda: hand.state(IDS[1]))
    assert hand.state(IDS[0])


def test_the_log_is_not_acknowledged_at_each_hop(tmp_path, monkeypatch):
    """An acknowledgement wakes a process, which then waits for a processor (docs/adr/0211)."""
    more = BROKERS["mosquitto"].more + "log_type all\n"
    monkeypatch.setitem(BROKERS, "mosquitto", type("B", (BROKERS["mosquitto"],), {"more": more}))
    world = World("mosquitto", tmp_path)
    try:
        lead, hand = world.bus("lead", 0), world.bus("hand")
        assert world.done(lead.put(task()))
        assert world.take(hand).id == IDS[0]
        hand.report(IDS[0], "completed", 1, None, 1, "hand", True)
        world.until(lambda: lead.state(IDS[0]) == "completed")
    finally:
        world.close()
    said = (world.server.folder / "log").read_text()
    found = re.findall(r"PUBLISH \S+ \S+ \(d\d, q(\d), r\d, m\d+, 'claw/v1/team/(\w+)", said)
    passing = {(kind, level) for level, kind in found if kind not in ("here", "keeper", "estop")}
    assert {kind for kind, _ in passing} >= {"log", "out", "ask", "say"}
    assert {level for _, level in passing} == {"0"}


def test_a_log_that_cannot_be_kept_is_told(world):
    os.makedirs(world.keep)
    with open(world.keep + "/log.db", "w") as file:
        file.write("no database, and longer than nothing")
    lead = end_of(world.kind, world.place, world.keep)
    lead.join("lead", 0)
    world.ends.append(lead)
    error = world.until(away(lead, "the log of the swarm cannot be kept"))
    assert world.keep in error.hint


def test_one_process_of_a_machine_keeps_the_log(tmp_path):
    first = KeptLog(str(tmp_path))
    with pytest.raises(BlockingIOError):
        KeptLog(str(tmp_path))
    assert [row[1:] for row in first.add([("lead", b"a"), ("hand", b"b")])] == [
        ("lead", b"a"),
        ("hand", b"b"),
    ]
    first.close()
    again = KeptLog(str(tmp_path))
    assert (again.id, again.head, again.cut) == (first.id, 2, 0)
    again.save(1, b"state")
    again.save(2, b"later")
    assert (again.state(), again.cut) == ((2, b"later"), 1)
    assert [(at, [row[1:] for row in rows]) for at, rows in again.since(1)] == [
        (2, [("hand", b"b")])
    ]
    again.close()


def test_a_stranger_s_message_is_refused_and_audited(world, tmp_path, monkeypatch):
    """One record a minute, however much a stranger sends."""
    audited = swarm_team.CLAW.replace("scope: all }}] }}", "scope: all }}], audit: {{}} }}")
    assert audited != swarm_team.CLAW
    monkeypatch.setattr(swarm_team, "CLAW", audited)
    backend, toml = settings("mosquitto", world.server)
    coordination = dict(SWARM["coordination"], backend=backend)
    image = project(tmp_path, "lead", toml=toml, coordination=coordination)
    with start(tmp_path, image) as lead:
        eventually(lambda: lead.call("claw.swarm.discover", {}, 7).get("result"))
        peer, row = Peer(world.server.port, "claw/v1/team/keeper"), list(task().__dict__.values())
        peer.waits(1)
        birth = json.loads(peer.heard[0][1])["birth"]
        for number in range(1, 9):
            entry = [1, "strange", number, "stranger", "put", [row]]
            peer.tell("claw/v1/team/log/stranger", "%s\n%s" % (birth, json.dumps(entry)))
        log = tmp_path / "state/lead/log.jsonl"
        eventually(lambda: log.exists() and log.read_text().count("stranger is not in") == 8)
        peer.tell("claw/v1/team/log/lead", b"\xff no birth")
        eventually(
            lambda: "log/lead: no entry of a member - set the broker's logins" in log.read_text()
        )
        peer.close()
    shown = subprocess.run(
        [sys.executable, "-m", "clawlite", "audit", image, "--json"],
        capture_output=True,
        text=True,
        env=dict(os.environ, CLAWLITE_STATE=str(tmp_path / "state")),
    )
    found = [one for one in json.loads(shown.stdout) if one["event"] == "swarm.refused"]
    assert len(found) == 1, shown
    assert (found[0]["swarm"], found[0]["messages"]) == ("team", 1)
    assert "stranger is not in the swarm" in found[0]["reason"]
