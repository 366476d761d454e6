"""Channels of type queue, against a real mosquitto: nothing is lost, nobody is heard who may not
speak, and what fails is said.
"""

import base64
import hashlib
import json
import os
import signal
import socket
import ssl
import types

import pytest
from agents import Agent, clawlite, eventually, linux
from brokers import Broker, Peer
from channel_world import World, project
from llm_server import Server, calls, say
from providers.project import World as RemoteWorld
from providers.project import provider

from clawlite.core.base.errors import PolicyDenied
from clawlite.host.compiler import compiler
from clawlite.linux.channels import mqtt
from clawlite.linux.channels.dead_letters import DeadLetters
from clawlite.linux.channels.inbox import MOST_TRIES

OPEN = {"mode": "open"}
JOBS = {
    "type": "queue",
    "transport": "polling",
    "access_control": OPEN,
    "trigger": {"queue_name": "t/jobs", "overlap_policy": "queue"},
}
PEOPLE = dict(JOBS, trigger={"queue_name": "t/in/+", "overlap_policy": "queue"})
REPLIES = '[mqtt]\naddress = "mqtt://127.0.0.1:%d"\nreplies = { jobs = "%s" }\n'


class Line:
    """A broker, an agent at it, and a peer that hears its replies."""

    def __init__(
        self,
        folder,
        spec: dict,
        reply: str = "t/said",
        settings: str = "",
        broker: Broker = None,
        **peer,
    ):
        self.folder, self.spec = folder, spec
        self.broker = broker or Broker(folder / "broker")
        self.settings = REPLIES % (self.broker.port, reply) + settings
        self._pipe = os.pipe()
        for fd in self._pipe:
            os.set_blocking(fd, False)
        self.peer = Peer(self.broker.port, reply, **peer)
        self.world = self.opened()

    def opened(self, hold: bool = False) -> World:
        """Return a world whose agent is connected: another process, as far as the broker and the
        disk can tell.
        """
        world = World(self.folder, {"jobs": self.spec}, self.settings, wake=self._pipe, hold=hold)
        world.until(lambda: world.events("channel.connected") or world.events("channel.trouble"))
        return world

    def kill(self):
        """End the agent's process as a power cut would: no word to the broker, nothing written."""
        source = self.world.source("jobs")
        # Until then it has no socket that could be cut.
        self.world.until(source._client.is_connected)
        source._closed = True
        thread, source._client._reconnect_on_failure = source._client._thread, False
        source._client.socket().shutdown(socket.SHUT_RDWR)
        thread.join()
        self.world.channels._lock.release()  # as the kernel does

    def said(self) -> list:
        return [text for _, text, _ in self.peer.heard]

    def until_said(self, count: int):
        self.world.until(lambda: len(self.peer.heard) >= count)

    def close(self):
        self.world.channels.close()
        self.peer.close()
        self.broker.stop()
        for fd in self._pipe:
            os.close(fd)


@pytest.fixture
def line(tmp_path):
    made = []

    def make(*args, **named) -> Line:
        made.append(Line(tmp_path, *args, **named))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_message_begins_a_turn_and_its_reply_carries_the_correlation(line):
    jobs = line(JOBS)
    jobs.peer.tell("t/jobs", "echo hello", b"\x00id-7")
    jobs.until_said(1)
    assert jobs.peer.heard == [("t/said", "You said: hello", b"\x00id-7")]
    turn = jobs.world.events("channel.turn")[0]
    assert turn["channel"] == "jobs" and turn["actor"] == ""


def test_a_thousand_at_once_all_run_each_once(line):
    jobs = line(JOBS)
    for number in range(1000):
        jobs.peer.publish("t/jobs", "echo %d" % number)
    jobs.until_said(1000)
    assert sorted(jobs.said()) == sorted("You said: %d" % number for number in range(1000))
    jobs.world.until(lambda: not jobs.world.source("jobs")._kept.inbox.waiting)
    assert not jobs.world.events("channel.skipped")


def test_what_comes_while_nothing_runs_waits_at_the_broker_over_its_restart(line):
    jobs = line(JOBS)
    jobs.world.channels.close()
    for number in range(30):
        jobs.peer.tell("t/jobs", "echo %d" % number)
    jobs.peer.close()
    jobs.broker.stop()
    jobs.broker.start()
    jobs.peer = Peer(jobs.broker.port, "t/said")
    jobs.world = jobs.opened()
    jobs.until_said(30)
    assert jobs.said() == ["You said: %d" % number for number in range(30)]


def test_what_was_acknowledged_survives_a_kill(line):
    jobs = line(dict(JOBS, trigger=dict(JOBS["trigger"], max_parallel=2)))
    jobs.world.hold = True
    for _ in range(5):
        jobs.peer.tell("t/jobs", "quick")
    jobs.world.until(lambda: len(jobs.world.source("jobs")._kept.inbox.waiting) == 5)
    assert jobs.world.ran == ["quick"] * 2  # two under way, three that wait
    jobs.kill()
    jobs.world = jobs.opened()
    jobs.world.until(lambda: len(jobs.world.ran) == 5)
    jobs.kill()
    jobs.world = jobs.opened()
    assert jobs.world.ran == [], "what is done is done"


def test_what_was_not_acknowledged_comes_again_and_runs_once(line, monkeypatch):
    jobs = line(JOBS)
    source = jobs.world.source("jobs")
    # the acknowledgement is lost on its way
    monkeypatch.setattr(source._client, "ack", lambda mid, qos: None)
    jobs.peer.tell("t/jobs", "echo once")
    jobs.until_said(1)
    # the broker has the reply: else that is sent again
    jobs.world.until(lambda: not source._kept.inbox.waiting)
    jobs.kill()
    jobs.world = jobs.opened()
    jobs.world.until(lambda: jobs.world.events("channel.again"))
    jobs.peer.tell("t/jobs", "echo two")
    jobs.until_said(2)
    assert jobs.said() == ["You said: once", "You said: two"]


def test_a_reply_that_has_not_arrived_is_sent_again_and_the_turn_does_not_run_again(
    line, monkeypatch
):
    jobs = line(JOBS)
    source = jobs.world.source("jobs")
    # it is lost with the process
    monkeypatch.setattr(source._client, "publish", lambda *_: types.SimpleNamespace(rc=0, mid=1))
    jobs.peer.tell("t/jobs", "echo once")
    jobs.world.until(
        lambda: [item.answer for item in source._kept.inbox.waiting.values()] == ["You said: once"]
    )
    jobs.kill()
    jobs.world = jobs.opened()
    jobs.until_said(1)
    assert jobs.said() == ["You said: once"] and not jobs.world.events("channel.turn")


def test_an_agent_writes_to_its_reply_topic_and_to_no_other(line):
    jobs = line(JOBS)
    assert jobs.world.channels.write("jobs", "t/said", "It is dry.")["status"] == "queued"
    jobs.until_said(1)
    assert jobs.peer.heard == [("t/said", "It is dry.", b"")]
    for other in ("t/jobs", "", "t/+", "#"):
        with pytest.raises(PolicyDenied):
            jobs.world.channels.write("jobs", other, "x")


def test_an_agent_writes_to_whom_its_queue_knows(line):
    jobs = line(
        dict(PEOPLE, access_control={"mode": "allowlist", "allowed_ids": ["ann"]}), "t/out/+"
    )
    assert jobs.world.channels.write("jobs", "ann", "It is dry.")["status"] == "queued"
    jobs.until_said(1)
    assert jobs.peer.heard == [("t/out/ann", "It is dry.", b"")]
    with pytest.raises(PolicyDenied):
        jobs.world.channels.write("jobs", "bob", "x")


def test_a_disk_that_takes_nothing_acknowledges_nothing(line, monkeypatch):
    jobs = line(JOBS)
    source, write = jobs.world.source("jobs"), os.write
    fails = []

    def full(fd, data):
        if fd == source._kept.inbox._log.fd and fails:
            raise OSError(28, "No space left on device")
        return write(fd, data)

    monkeypatch.setattr(os, "write", full)
    jobs.peer.tell("t/jobs", "echo a")
    jobs.until_said(1)
    fails.append(True)
    acknowledged = []
    monkeypatch.setattr(source._client, "ack", lambda mid, qos: acknowledged.append(mid))
    jobs.peer.tell("t/jobs", "echo b")
    jobs.world.until(lambda: jobs.world.events("channel.trouble"))
    assert (
        acknowledged == []
        and "No space left" in jobs.world.events("channel.trouble")[0]["reason"]
        and jobs.said() == ["You said: a"]
    )
    fails.clear()
    jobs.world.move(6000)
    jobs.until_said(2)
    assert len(acknowledged) == 1


def test_a_message_that_ends_the_process_is_given_up_and_its_sender_hears_it(line):
    jobs = line(JOBS)
    _give_up(jobs, b"id-7")
    assert (
        not jobs.world.ran
        and jobs.world.events("channel.dropped")[0]["reason"] == "it was started 3 times"
    )
    assert [(text[:27], correlation) for _, text, correlation in jobs.peer.heard] == [
        ("This message was given up: ", b"id-7")
    ]
    (letter,) = _dead(jobs).all()
    assert (letter.number, letter.actor, letter.text, letter.correlation) == (
        1,
        "",
        "quick",
        b"id-7",
    )
    assert any("clawlite channels dead" in text for text in jobs.world.told)
    jobs.kill()
    jobs.world = jobs.opened()
    assert len(_dead(jobs).all()) == 1 and not jobs.world.ran, "it is given up once"


def test_where_the_settings_say_so_what_may_have_happened_is_not_done_twice(line):
    trigger = dict(JOBS["trigger"], max_parallel=2)
    jobs = line(dict(JOBS, trigger=trigger), settings='interrupted = "give-up"\n')
    jobs.world.hold = True
    jobs.peer.tell("t/jobs", "quick", b"id-7")
    jobs.peer.tell("t/jobs", "careful", b"id-8")  # it waits for an approval: nothing has happened
    jobs.world.until(lambda: jobs.world.ran)
    jobs.kill()
    jobs.world = jobs.opened(hold=True)
    jobs.world.until(lambda: any(id == b"id-7" for _, _, id in jobs.peer.heard))
    (said,) = [text for _, text, id in jobs.peer.heard if id == b"id-7"]
    assert not jobs.world.ran and said.startswith("The agent ended while it worked on this")
    (letter,) = _dead(jobs).all()
    assert letter.text == "quick" and "quick was under way" in letter.why
    jobs.world.until(lambda: jobs.world.agent.waiting)
    _dead(jobs).ask(1)  # a person has looked, and wants it
    jobs.world.move(10000)
    assert jobs.world.ran == ["quick"]


def test_a_tool_does_not_begin_when_that_cannot_be_put_on_record(line, monkeypatch):
    jobs = line(JOBS, settings='interrupted = "give-up"\n')
    inbox = jobs.world.source("jobs")._kept.inbox
    monkeypatch.setattr(inbox, "acts", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
    jobs.peer.tell("t/jobs", "quick")
    jobs.until_said(1)
    assert not jobs.world.ran and "quick may not begin" in jobs.said()[0]


def test_a_dead_letter_runs_again_while_the_agent_runs(line):
    jobs = line(JOBS)
    _give_up(jobs, b"id-7")
    jobs.world.hold = False
    jobs.world.move(20000)
    assert not jobs.world.ran, "nobody has asked for it"
    _dead(jobs).ask(1)
    jobs.world.move(10000)
    jobs.until_said(2)
    assert jobs.world.ran == ["quick"] and _dead(jobs).all() == []
    assert jobs.peer.heard[1][2] == b"id-7", "its reply has the correlation"
    jobs.world.move(10000)
    assert jobs.world.source("jobs").deadline() is None, "there is nothing to look for"


def test_a_damaged_dead_letter_does_not_run(line):
    jobs = line(JOBS)
    _give_up(jobs, b"")
    path = jobs.world.state / "jobs.dead/1.json"
    path.write_bytes(path.read_bytes().replace(b"quick", b"quack"))
    _dead(jobs).ask(1)
    jobs.world.move(10000)
    assert not jobs.world.ran and [one.is_damaged for one in _dead(jobs).all()] == [True]
    assert "damaged" in jobs.world.events("channel.trouble")[-1]["reason"]


def test_restarts_before_the_first_effect_do_not_count(line):
    jobs = line(JOBS)
    jobs.peer.tell("t/jobs", "careful")  # it waits for an approval
    for _ in range(5):
        jobs.world.until(lambda: jobs.world.agent.waiting)
        jobs.kill()
        jobs.world = jobs.opened()
    jobs.world.until(lambda: jobs.world.agent.waiting)
    assert not jobs.world.events("channel.dropped") and not _dead(jobs).all()


def test_restarts_in_order_do_not_count(line):
    jobs = line(JOBS)
    jobs.world.hold = True
    jobs.peer.tell("t/jobs", "quick")
    for _ in range(5):
        jobs.world.until(lambda: jobs.world.ran)
        jobs.world.channels.close()
        jobs.world = jobs.opened(hold=True)
    jobs.world.until(lambda: jobs.world.ran)
    assert not jobs.world.events("channel.dropped")


def _give_up(jobs: Line, correlation: bytes):
    """Kill the process three times while a tool runs, and hear what the next one says of it."""
    jobs.world.hold = True
    jobs.peer.tell("t/jobs", "quick", correlation)
    for _ in range(3):
        jobs.world.until(lambda: jobs.world.ran)
        jobs.kill()
        jobs.world = jobs.opened(hold=True)
    jobs.until_said(1)
    jobs.world.until(lambda: not jobs.world.source("jobs")._kept.inbox.waiting)


def _dead(jobs: Line) -> DeadLetters:
    return DeadLetters(str(jobs.world.state / "jobs.dead"))


@pytest.mark.parametrize(
    "policy, parallel, begun", [("skip", 1, 1), ("allow", 2, 2), ("queue", 2, 2)]
)
def test_overlap(line, policy, parallel, begun):
    jobs = line(
        dict(
            JOBS,
            trigger={"queue_name": "t/jobs", "overlap_policy": policy, "max_parallel": parallel},
        )
    )
    jobs.world.hold = True
    for _ in range(4):
        jobs.peer.tell("t/jobs", "quick")
    waiting = 0 if policy != "queue" else 4 - begun
    jobs.world.until(
        lambda: (
            len(jobs.world.events("channel.skipped")) == 4 - begun - waiting
            and len(jobs.world.ran) == begun
        )
    )

    def all_ran() -> bool:  # what the broker sends later, too
        while jobs.world.held:
            jobs.world.finish()
            jobs.world.settle()
        return len(jobs.world.ran) >= begun + waiting

    jobs.world.until(all_ran)
    assert len(jobs.world.ran) == begun + waiting


def test_who_speaks_is_what_the_plus_stands_for(line):
    roles = {
        "mode": "role-based",
        "roles": [
            {"id": "ann", "role": "admin"},
            {"id": "bob", "role": "user"},
            {"id": "vic", "role": "viewer"},
        ],
    }
    jobs = line(dict(PEOPLE, access_control=roles), "t/out/+")
    jobs.peer.tell("t/in/eve", "quick")
    jobs.peer.tell("t/in/vic", "quick")
    jobs.peer.tell("t/in/bob", "careful")
    jobs.world.until(lambda: jobs.world.agent.waiting)
    assert jobs.world.ran == [] and [
        event["actor"] for event in jobs.world.events("channel.refused")
    ] == ["eve"]
    number = jobs.world.agent.waiting[0].approval.number
    jobs.peer.tell("t/in/bob", "/approve %d" % number)
    jobs.world.until(lambda: ("t/out/bob", "Only an admin approves.", b"") in jobs.peer.heard)
    jobs.peer.tell("t/in/ann", "/approve %d" % number)
    jobs.world.until(lambda: jobs.world.ran == ["careful"])
    jobs.world.until(lambda: ("t/out/ann", "Approved.", b"") in jobs.peer.heard)
    assert any(
        topic == "t/out/ann" and "/approve %d" % number in text
        for topic, text, _ in jobs.peer.heard
    )
    assert any(topic == "t/out/vic" and "viewer" in text for topic, text, _ in jobs.peer.heard)


def test_pairing(line):
    jobs = line(
        dict(
            PEOPLE,
            access_control={
                "mode": "pairing",
                "pairing": {"code_expiry_minutes": 5, "max_pending": 2},
            },
        ),
        "t/out/+",
    )
    jobs.peer.tell("t/in/sensor", "quick")
    jobs.until_said(1)
    assert jobs.world.ran == []
    code = jobs.said()[0].split("/pair ")[1].split()[0]
    assert jobs.world.channels.command(["/pair", code]) == ["sensor is paired with channel jobs."]
    jobs.peer.tell("t/in/sensor", "quick")
    jobs.world.until(lambda: jobs.world.ran == ["quick"])


@pytest.mark.parametrize(
    "payload, reason", [(b"\xff\xfe", "text"), (b"  ", "text"), ("x" * 101, "length")]
)
def test_what_is_no_message(line, payload, reason):
    jobs = line(dict(JOBS, processing={"max_message_length": 100}))
    jobs.peer.tell("t/jobs", payload)
    jobs.peer.tell("t/jobs", "echo " + "y" * 95)
    jobs.world.until(lambda: "You said: " + "y" * 95 in jobs.said())
    assert [event["reason"] for event in jobs.world.events("channel.refused")] == [reason]


def test_the_broker_keeps_what_is_too_long_to_itself(line):
    jobs = line(dict(JOBS, processing={"max_message_length": 100}))
    jobs.peer.tell("t/jobs", "z" * 5000)
    jobs.peer.tell("t/jobs", "echo after")
    jobs.until_said(1)
    assert jobs.said() == ["You said: after"] and not jobs.world.events("channel.refused")


def test_what_was_said_before_is_no_event(line, tmp_path):
    broker = Broker(tmp_path / "broker")
    first = Peer(broker.port)
    first.tell("t/jobs", "echo old", retain=True)
    first.close()
    jobs = line(JOBS, broker=broker)
    jobs.peer.tell("t/jobs", "echo new")
    jobs.until_said(1)
    assert jobs.said() == ["You said: new"]


class Odd:
    """A message of a broker that keeps no rules."""

    mid, qos, dup, payload, properties = 1, 0, False, b"quick", None

    def __init__(self, topic):
        self._topic = topic

    @property
    def topic(self) -> str:
        return self._topic.decode()


@pytest.mark.parametrize("topic", [b"t", b"\xff", b"t/in/", b""])
def test_a_broker_that_keeps_no_rules(line, topic):
    jobs = line(PEOPLE, "t/out/+")
    source = jobs.world.source("jobs")
    source._on_message(None, None, Odd(topic))
    jobs.world.until(lambda: jobs.world.events("channel.refused"))
    assert jobs.world.ran == []
    assert source.send("a#b", "x"), "there is no such topic"
    jobs.world.settle()
    assert jobs.world.events("channel.dropped")


def test_a_broker_that_goes_and_comes_back(line):
    jobs = line(JOBS)
    jobs.broker.stop()
    jobs.world.until(lambda: jobs.world.events("channel.trouble"))
    assert (
        "MQTT broker 127.0.0.1 port %d" % jobs.broker.port
        in jobs.world.events("channel.trouble")[0]["reason"]
    )
    jobs.broker.start()
    jobs.world.until(lambda: len(jobs.world.events("channel.connected")) == 2)
    jobs.peer.close()
    jobs.peer = Peer(jobs.broker.port, "t/said")
    jobs.peer.tell("t/jobs", "echo back")
    jobs.until_said(1)
    assert len(jobs.world.events("channel.trouble")) == 1, "it is said once"


def _guarded(folder, *rights: str, **passwords: str) -> Broker:
    """Return a broker with people and what each may do (mosquitto.conf(5), acl_file)."""
    said = []
    for name, password in passwords.items():
        made = hashlib.pbkdf2_hmac("sha512", password.encode(), b"salt-of-12-b", 101, 64)
        said.append(
            "%s:$7$101$%s$%s"
            % (name, base64.b64encode(b"salt-of-12-b").decode(), base64.b64encode(made).decode())
        )
    (folder / "passwords").write_text("\n".join(said) + "\n")
    (folder / "rights").write_text("\n".join(rights) + "\n")
    return Broker(
        folder / "broker",
        "allow_anonymous false",
        "password_file %s" % (folder / "passwords"),
        "acl_file %s" % (folder / "rights"),
    )


PASSWORD = "the-agents-own-password"
USER = '[mqtt]\naddress = "mqtt://127.0.0.1:%d"\nuser = "agent"\n'


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Return a function(broker, spec, password) -> World of an agent whose user at the broker is
    "agent".
    """
    made = []

    def start(broker: Broker, spec: dict = JOBS, password: str = PASSWORD, more: str = "") -> World:
        monkeypatch.setenv("SECRET", password)
        pipe = _pipe()
        made.append(
            (World(tmp_path, {"jobs": spec}, USER % broker.port + more, wake=pipe), broker, pipe)
        )
        return made[-1][0]

    yield start
    for world, broker, pipe in made:
        world.channels.close()
        broker.stop()
        for fd in pipe:
            os.close(fd)


def test_a_password_that_the_broker_does_not_take(alone, tmp_path):
    world = alone(
        _guarded(tmp_path, "user agent", "topic read t/#", agent=PASSWORD),
        password="hunter2-hunter2",
    )
    world.until(lambda: world.events("channel.trouble"))
    said = world.events("channel.trouble")[0]["reason"]
    assert "Not authorized" in said and "hunter2" not in said


def test_a_topic_that_the_broker_does_not_let_it_read(line):
    jobs = line(JOBS)
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.reasoncodes import ReasonCode

    jobs.world.source("jobs")._on_subscribe(
        None, None, 1, [ReasonCode(PacketTypes.SUBACK, "Not authorized")], None
    )
    jobs.world.until(lambda: jobs.world.events("channel.trouble"))
    assert (
        "it does not allow reading t/jobs: Not authorized"
        in jobs.world.events("channel.trouble")[0]["reason"]
    )


def test_a_reply_that_the_broker_does_not_take_is_told_and_not_kept(alone, tmp_path):
    """mosquitto drops what it does not let be written, and acknowledges it with the reason (MQTT
    5, 3.4.2.1).
    """
    broker = _guarded(
        tmp_path,
        "user agent",
        "topic read t/jobs",
        "user ann",
        "topic write t/jobs",
        agent=PASSWORD,
        ann="a-a-a-a",
    )
    world = alone(broker, more='replies = { jobs = "t/said" }\n')
    world.until(lambda: world.events("channel.connected"))
    peer = Peer(broker.port, user="ann", password="a-a-a-a")
    peer.tell("t/jobs", "echo hello")
    peer.close()
    world.until(
        lambda: world.events("channel.dropped") and not world.source("jobs")._kept.inbox.waiting
    )
    assert world.events("channel.dropped")[0]["reason"] == "Not authorized"
    assert (
        "it refuses what is sent to t/said: Not authorized"
        in world.events("channel.trouble")[0]["reason"]
    )


def test_a_broker_keeps_people_from_speaking_for_others(alone, tmp_path):
    broker = _guarded(
        tmp_path,
        "user agent",
        "topic read t/in/+",
        "pattern write t/in/%u",
        agent=PASSWORD,
        ann="a-a-a-a",
        bob="b-b-b-b",
    )
    world = alone(
        broker, dict(PEOPLE, access_control={"mode": "allowlist", "allowed_ids": ["ann"]})
    )
    world.until(lambda: world.events("channel.connected"))
    for name, password in (("bob", "b-b-b-b"), ("ann", "a-a-a-a")):
        peer = Peer(broker.port, user=name, password=password)
        peer.tell("t/in/ann", "echo from %s" % name)
        peer.close()
    world.until(lambda: world.told)
    assert world.told == ["[jobs] You said: from ann"] and len(world.events("channel.turn")) == 1


def _pipe() -> tuple:
    pipe = os.pipe()
    for fd in pipe:
        os.set_blocking(fd, False)
    return pipe


def test_a_missing_password_is_named(tmp_path):
    world = World(tmp_path, {"jobs": JOBS}, '[mqtt]\nuser = "agent"\n', wake=_pipe())
    assert "SECRET" in world.events("channel.trouble")[0]["reason"]


def test_tls_with_an_authority_of_ones_own(line, tmp_path, monkeypatch):
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    for name, blob in (
        ("ca", authority.cert_pem),
        ("cert", issued.cert_chain_pems[0]),
        ("key", issued.private_key_pem),
    ):
        blob.write_to_path(str(tmp_path / name))
    broker = Broker(
        tmp_path / "broker",
        listener="certfile %s\nkeyfile %s" % (tmp_path / "cert", tmp_path / "key"),
    )
    context = ssl.create_default_context(cafile=str(tmp_path / "ca"))
    settings = '[mqtt]\naddress = "mqtts://localhost:%d"\n' % broker.port
    stranger = World(tmp_path, {"jobs": JOBS}, settings, wake=_pipe())
    stranger.until(lambda: stranger.events("channel.trouble"))
    assert "certificate" in stranger.events("channel.trouble")[0]["reason"]
    stranger.channels.close()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca"))
    world = World(tmp_path, {"jobs": JOBS}, settings, wake=_pipe())
    world.until(lambda: world.events("channel.connected"))
    peer = Peer(broker.port, context=context)
    peer.tell("t/jobs", "quick")
    world.until(lambda: world.ran == ["quick"])
    world.channels.close()
    peer.close()
    broker.stop()


def test_a_real_agent_that_is_killed_again_and_again_loses_nothing(tmp_path):
    """Each of 60 messages is answered at least once, though the process is killed five times
    meanwhile.
    """
    broker = Broker(tmp_path / "broker")
    made = project(tmp_path / "project", {"jobs": JOBS}, REPLIES % (broker.port, "t/said"))
    path = tmp_path / "project" / "claw.cbor"
    path.write_bytes(compiler.build(made).data)
    peer = Peer(broker.port, "t/said")
    try:
        for turn in range(6):
            with Agent(linux("run", path), tmp_path / "home") as agent:
                agent.end()
                eventually(
                    lambda: (
                        "channel.connected" in log(tmp_path)
                        and log(tmp_path).count("channel.connected") == turn + 1
                    )
                )
                for number in range(10):
                    peer.publish("t/jobs", "echo %d" % (10 * turn + number))
                if turn < 5:
                    peer.waits(len(peer.heard) + turn)
                    agent.process.kill()
                    agent.process.wait()
                    continue
                wanted = {"You said: %d" % number for number in range(60)}
                eventually(lambda: wanted <= {text for _, text, _ in peer.heard})
                agent.process.terminate()
                agent.wait()
    finally:
        peer.close()
        broker.stop()


def test_restarts_of_a_real_agent_while_a_model_thinks_lose_nothing(tmp_path):
    """More of them in order than the tries of a message: its sender has one answer, with its
    correlation, and no dead letter is left.
    """
    broker = Broker(tmp_path / "broker")
    peer = Peer(broker.port, "t/said")
    thinks = {"stall": "head"}
    world = RemoteWorld(tmp_path)
    with Server([thinks] * (MOST_TRIES + 2) + [say("It is dry.")]) as server:
        world.build(
            provider(server, streaming=False),
            settings=REPLIES % (broker.port, "t/said"),
            more={"channels": [{"inline": dict(JOBS, name="jobs", auth={"secret_ref": "NOBODY"})}]},
        )
        try:
            for times in range(MOST_TRIES + 2):
                with world.start("run") as agent:
                    agent.end()
                    if not times:
                        eventually(lambda: "channel.connected" in log(tmp_path))
                        peer.tell("t/jobs", "how is the soil", b"id-9")
                    eventually(lambda: len(server.requests) == times + 1)
                    agent.signal(signal.SIGTERM)
                    assert agent.wait() == 143
            with world.start("run") as agent:
                agent.end()
                peer.waits(1)
                agent.signal_at_rest(signal.SIGTERM)
                assert agent.wait() == 143
        finally:
            peer.close()
            broker.stop()
    assert peer.heard == [("t/said", "It is dry.", b"id-9")]
    dead = clawlite("channels", "dead", "--json", cwd=tmp_path / "project", **world_state(tmp_path))
    assert json.loads(dead.stdout) == [], dead


@pytest.mark.parametrize("step", [{"stall": "head"}, calls(("hang", {}))])
def test_what_a_real_agent_gave_up_is_shown_and_runs_again(tmp_path, step):
    """A model or a tool under way at each of three kills: the sender is told, a person is shown the
    message and lets it run again.
    """
    broker = Broker(tmp_path / "broker")
    peer = Peer(broker.port, "t/said")
    world = RemoteWorld(tmp_path)
    with Server([step] * MOST_TRIES + [say("Done after all.")]) as server:
        world.build(
            provider(server, streaming=False),
            settings=REPLIES % (broker.port, "t/said"),
            more={"channels": [{"inline": dict(JOBS, name="jobs", auth={"secret_ref": "NOBODY"})}]},
        )
        try:
            for times in range(MOST_TRIES):
                with world.start("run") as agent:
                    agent.end()
                    if not times:
                        eventually(lambda: "channel.connected" in log(tmp_path))
                        peer.tell("t/jobs", "water it", b"id-9")
                    eventually(
                        lambda: (
                            len(server.requests if "stall" in step else world.ran("hang"))
                            == times + 1
                        )
                    )
                    agent.signal(signal.SIGKILL)
                    agent.wait()
            with world.start("run") as agent:
                agent.end()
                peer.waits(1)
                assert peer.heard[0][1].startswith("This message was given up: ")
                assert peer.heard[0][2] == b"id-9" and len(server.requests) == MOST_TRIES
                there = dict(cwd=tmp_path / "project", **world_state(tmp_path))
                (letter,) = json.loads(clawlite("channels", "dead", "--json", **there).stdout)
                assert letter["text"] == "water it" and letter["reason"] == "it was started 3 times"
                assert clawlite("channels", "dead", "retry", "1", **there).returncode == 0
                peer.waits(2)
                assert peer.heard[1] == ("t/said", "Done after all.", b"id-9")
                assert json.loads(clawlite("channels", "dead", "--json", **there).stdout) == []
                agent.signal_at_rest(signal.SIGTERM)
                assert agent.wait() == 143
        finally:
            peer.close()
            broker.stop()


def world_state(folder) -> dict:
    return {"CLAWLITE_STATE": folder / "home/state"}


def log(folder) -> str:
    files = list((folder / "home").rglob("log.jsonl"))
    return files[0].read_text() if files else ""


@pytest.mark.parametrize("most_s", [None, 20])
def test_an_idle_connection_wakes_only_for_its_keepalive(line, tmp_path, monkeypatch, most_s):
    """The broker ends a connection that is silent for one and a half of it, and may shorten it."""
    from paho.mqtt import client as paho

    waits, loop = [], paho.Client._loop

    def noted(client, timeout=1.0):
        if type(client) is not paho.Client:  # as the peer's is
            waits.append(timeout)
        return loop(client, timeout)

    monkeypatch.setattr(paho.Client, "_loop", noted)
    lines = ["allow_anonymous true"] + [f"max_keepalive {most_s}"] * bool(most_s)
    jobs = line(JOBS, broker=Broker(tmp_path / "broker", *lines))
    jobs.peer.tell("t/jobs", "echo hello")
    jobs.until_said(1)
    wait_s = (most_s or mqtt.KEEPALIVE_S) / 2
    jobs.world.until(lambda: waits[-1] == wait_s)
    jobs.peer.tell("t/jobs", "echo still there")
    jobs.until_said(2)
    assert mqtt.KEEPALIVE_S >= 90  # three wakes in it are two a minute


def test_a_reply_is_cut_to_what_the_broker_takes(line, tmp_path):
    broker = Broker(tmp_path / "broker", "allow_anonymous true", "max_packet_size 2000")
    jobs = line(JOBS, broker=broker)
    jobs.peer.tell("t/jobs", "echo " + "é" * 940, b"id")
    jobs.until_said(1)
    source = jobs.world.source("jobs")
    (item,) = source._kept.take([(0, "", "", "echo " + "é" * 3000, b"id")])
    source._queue(item)
    jobs.until_said(2)
    whole, cut = jobs.said()
    assert whole == "You said: " + "é" * 940
    assert cut.endswith("é\n[cut: the broker takes no more]") and 1850 < len(cut.encode()) < 2000
    assert not jobs.world.events("channel.trouble")


def test_a_reply_for_which_the_broker_ends_the_connection_blocks_nothing(line, tmp_path):
    """It would be sent again on each next one.  mosquitto has a limit that it does not tell, and
    paho takes its reason for a wrong one.
    """
    broker = Broker(tmp_path / "broker", "allow_anonymous true", "message_size_limit 1900")
    jobs = line(JOBS, broker=broker)
    source = jobs.world.source("jobs")
    source._client.reconnect_delay_set(1, 1)
    (item,) = source._kept.take([(0, "", "", "echo " + "y" * 3000, b"")])
    source._queue(item)
    jobs.world.until(lambda: jobs.world.events("channel.dropped"))
    jobs.peer.tell("t/jobs", "echo again")
    jobs.until_said(1)
    assert jobs.said() == ["You said: again"]
    jobs.world.until(lambda: not source._kept.inbox.waiting)
    (dropped,) = jobs.world.events("channel.dropped")
    assert "the connection ends each time: " in dropped["reason"]


def test_a_network_that_comes_and_goes_takes_no_reply(line, monkeypatch):
    jobs = line(JOBS)
    source = jobs.world.source("jobs")
    source._client.reconnect_delay_set(1, 1)
    for number in range(2 * mqtt.MOST_ENDED):
        jobs.peer.tell("t/jobs", "echo %d" % number)
        jobs.until_said(number + 1)
        source._client.socket().shutdown(socket.SHUT_RDWR)
        jobs.world.until(lambda n=number: len(jobs.world.events("channel.connected")) > n + 1)
    assert not jobs.world.events("channel.dropped")
    # a reply whose acknowledgement was lost comes once more (QoS 1)
    assert len(set(jobs.said())) == 2 * mqtt.MOST_ENDED
