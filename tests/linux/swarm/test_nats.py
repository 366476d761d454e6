"""NATS as a swarm's engine: a login that it refuses, and who speaks in
the name of another.
"""

import asyncio
import socket
import subprocess
import sys
import threading

import nats
import nats.js.api
import pytest
from agents import eventually
from engines import SERVERS
from swarm_world import IDS, World, task

from clawlite.core.base.errors import ClawError
from clawlite.linux.swarm import replicated_bus
from clawlite.linux.swarm_engines import nats_engine
from clawlite.linux.swarm_engines.engine import DOWN, NATS, UP, engine_of


def test_a_login_that_is_refused_is_told_with_the_next_step(tmp_path, monkeypatch):
    more = "authorization { token: right }\n"
    monkeypatch.setitem(SERVERS, "nats", type("NATS", (SERVERS["nats"],), {"more": more}))
    world = World("nats", tmp_path)
    try:
        with pytest.raises(ClawError) as caught:
            world.bus("lead", 0, password="wrong")
        assert (
            "refuses the login" in caught.value.message
            and "user and credential of [swarm]" in caught.value.hint
        )
    finally:
        world.close()


def test_the_agent_s_own_thread_imports_neither_the_package_nor_asyncio():
    """An agent's loop waits for no import of a library; the engine's thread does."""
    code = (
        "import sys\nfrom clawlite.linux.swarm_engines.engine import DOWN, NATS, UP, engine_of\n"
        "made = engine_of([NATS, False, '127.0.0.1', 1, ''], '', 'team', 'p', 'lead')\n"
        "print(sorted({'asyncio', 'nats'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_an_engine_that_is_closed_before_it_connects_ends(tmp_path):
    """Between two connections there is no loop that ``close`` could wake."""
    server = SERVERS["nats"](tmp_path / "server")
    try:
        made = engine_of([NATS, *server.place], "", "team", "p", "lead")
        made._left.set()  # as close does
        thread = threading.Thread(target=made._run, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
        made._thread = thread
        made.close()
    finally:
        server.kill()


def test_who_speaks_in_the_name_of_another_is_not_heard(tmp_path):
    world = World("nats", tmp_path)
    try:
        lead, hand = world.bus("lead", 0), world.bus("hand")
        append, hand._identity = hand._engine.append, "lead"
        hand._engine.append = lambda _, data: append("hand", data)  # what its login may write
        hand.put(task())
        world.until(lambda: any("hand spoke in the name of lead" in one for one in world.refused))
        world.settle()
        assert lead.state(IDS[0]) is None
    finally:
        world.close()


def test_a_full_engine_is_told_and_what_waits_is_sent_when_there_is_room(tmp_path, monkeypatch):
    class Small(SERVERS["nats"]):
        room = "max_file_store: 200KB, "

        def words(self) -> list:
            words, file = super().words(), self.folder / "nats.conf"
            file.write_text(file.read_text().replace("store_dir", self.room + "store_dir"))
            return words

    monkeypatch.setitem(SERVERS, "nats", Small)
    monkeypatch.setattr(replicated_bus, "SYNC_S", 1)  # that a command waits
    world = World("nats", tmp_path)
    try:
        lead = world.bus("lead", 0)
        for number in range(4):
            assert world.done(lead.put(task(number, data="x" * 60000)))
        later = lead.put(task(4, data="x" * 60000))

        def away():
            try:
                lead.put(task(5))
            except ClawError as e:
                return "it is full: " in e.message and "max_file_store" in e.hint

        world.until(away)
        with pytest.raises(ClawError, match="it is full") as caught:
            lead.wait(later)
        assert "max_file_store" in caught.value.hint
        world.server.kill()
        Small.room = ""
        world.server.start()
        assert world.done(later)
    finally:
        world.close()


def room(port: int, more):
    """Let the stream of the swarm take *more* bytes from now on; None: any number."""

    async def let():
        client = await nats.connect("nats://127.0.0.1:%d" % port)
        js = client.jetstream()
        info = await js.stream_info("CLAW_team")
        info.config.max_bytes = -1 if more is None else info.state.bytes + more
        info.config.discard = nats.js.api.DiscardPolicy.NEW
        await js.update_stream(info.config)
        await client.close()

    asyncio.run(let())


def test_a_report_that_is_refused_while_a_shorter_entry_is_taken_is_not_lost(tmp_path):
    world = World("nats", tmp_path)
    try:
        lead, hand = world.bus("lead", 0), world.bus("hand")
        world.done(lead.put(task()))
        assert world.take(hand).id == IDS[0]
        room(world.server.port, 100000)
        hand.report(IDS[0], "completed", {"text": "x" * 300000}, None, None, "hand", True)
        hand.broadcast("hand", "short")
        heard = []
        world.until(lambda: heard.extend(lead.messages()) or heard)
        world.until(lambda: hand._was_down and "it is full" in hand._why[0])
        assert lead.state(IDS[0]) == "running"
        room(world.server.port, None)
        world.until(lambda: lead.state(IDS[0]) == "completed")
        assert lead.outcome(IDS[0])[2] == {"text": "x" * 300000}
    finally:
        world.close()


@pytest.mark.parametrize("count, size", [(400, 60000), (9900, 1000)])
def test_an_engine_that_gets_full_while_much_is_sent_is_told(tmp_path, monkeypatch, count, size):
    """nats-py loses a cancellation while it flushes, and answers another one with an error of its
    own.
    """
    more = "jetstream { max_file_store: 200KB, store_dir: %s }\n" % (tmp_path / "server")
    server = type("Small", (SERVERS["nats"],), {"words": lambda self: small(self, more)})(
        tmp_path / "server"
    )
    made = engine_of([NATS, *server.place], "", "team", "p", "lead")
    try:
        made.start()
        eventually(lambda: any(kind == UP for kind, *_ in made.take()))
        for _ in range(count):
            made.append("lead", b"x" * size)
        down = eventually(lambda: [one for one in made.take() if one[0] == DOWN])
        assert "it is full: " in down[0][1], down
    finally:
        made.close()
        server.kill()


def small(server, jetstream: str) -> list:
    """Write the configuration of *server*; return its command line."""
    file = server.folder / "nats.conf"
    file.write_text("listen: 127.0.0.1:%d\n%s" % (server.port, jetstream))
    return ["-c", str(file)]


def test_what_is_closed_while_it_connects_ends_at_once(monkeypatch):
    """To a server that says nothing, for which it would wait for a minute."""
    monkeypatch.setattr(nats_engine, "TOLD_S", 60)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        place = [NATS, False, "127.0.0.1", silent.getsockname()[1], ""]
        made = engine_of(place, "", "team", "p", "lead")
        made.start()
        with silent.accept()[0]:
            made.close()
            assert not made._thread.is_alive()


def act(port: int, does):
    """Let a stranger do what *does*, a function(client, JetStream), returns to wait for."""

    async def go():
        client = await nats.connect("nats://127.0.0.1:%d" % port)
        await does(client, client.jetstream())
        await client.close()

    asyncio.run(go())


def refused(world, identity: str) -> str:
    with pytest.raises(ClawError) as caught:
        world.bus(identity)
    return "%s - %s" % (caught.value.message, caught.value.hint)


@pytest.mark.parametrize("position", [None, "", "x\n\x1b[31m", "-5", "9" * 5000, "1.5"])
def test_a_snapshot_without_a_position_is_said(tmp_path, position):
    """It was "invalid literal for int()", and the hint was to start the engine."""
    world = World("nats", tmp_path)

    async def put(client, js):
        store = await js.create_object_store("CLAW_team")
        await store.put("state", b"x", meta=nats.js.api.ObjectMeta(description=position))

    try:
        world.bus("lead")
        act(world.server.port, put)
        said = refused(world, "hand")
        assert "its snapshot cannot be read: its description is not" in said
        assert "remove what it keeps at the engine" in said
    finally:
        world.close()


@pytest.mark.parametrize("meta", [b"junk", b"[1]", b"{}", b'{"nuid":1,"size":"x","options":7}'])
def test_a_snapshot_that_the_package_cannot_read_is_said(tmp_path, meta):
    world = World("nats", tmp_path)

    async def put(client, js):
        await js.create_object_store("CLAW_team")
        await js.publish("$O.CLAW_team.M.c3RhdGU=", meta)

    try:
        world.bus("lead")
        act(world.server.port, put)
        assert "its snapshot cannot be read: " in refused(world, "hand")
    finally:
        world.close()


def test_a_log_without_its_beginning_is_refused(tmp_path):
    """A process that began then knew fewer tasks than the others, or never had it read."""
    world = World("nats", tmp_path)
    try:
        lead = world.bus("lead")
        world.done(lead.put(task()))
        act(world.server.port, lambda client, js: js.purge_stream("CLAW_team"))
        said = refused(world, "hand")
        assert "its stream CLAW_team begins with entry 3, and no snapshot says" in said
        world.ends.pop().leave()
        assert world.done(lead.put(task(1))), "who has read it goes on"
    finally:
        world.close()


def test_a_log_whose_last_entries_were_removed_is_read(tmp_path):
    world = World("nats", tmp_path)

    async def remove(client, js):
        await js.publish("claw.v1.team.log.hand", b"x")
        last = (await js.stream_info("CLAW_team")).state.last_seq
        await js.delete_msg("CLAW_team", last)

    try:
        lead = world.bus("lead")
        world.done(lead.put(task()))
        lead._engine.append = lambda *_: None  # nothing is written after what is removed
        act(world.server.port, remove)
        assert world.bus("hand").state(IDS[0]) == "waiting"
    finally:
        world.close()


def test_who_is_sent_nothing_any_more_reads_again(tmp_path, monkeypatch):
    """Each login may remove the consumer of another, who then heard nothing for ever."""
    monkeypatch.setattr(nats_engine, "PING_S", 0.1)
    world = World("nats", tmp_path)

    async def remove(client, js):
        for one in await js.consumers_info("CLAW_team"):
            await js.delete_consumer("CLAW_team", one.name)

    try:
        lead, hand = world.bus("lead"), world.bus("hand")
        act(world.server.port, remove)
        world.until(lambda: lead._was_down and hand._was_down)
        world.until(lambda: lead._is_up and hand._is_up)
        assert world.done(lead.put(task(0, "hand")))
        assert world.take(hand).id == IDS[0]
    finally:
        world.close()


def test_an_end_that_the_package_does_not_tell_is_noticed(tmp_path, monkeypatch, capfd):
    """nats-py calls closed_cb last: not when it could not send what was left before it."""
    monkeypatch.setattr(nats_engine, "PING_S", 3600)
    close = nats.NATS._close

    async def fail(self, status, do_cbs=True):
        if not do_cbs or self.is_closed or not engine_died:
            return await close(self, status, do_cbs)
        self._status = status
        raise ConnectionResetError(104, "Connection reset by peer")

    monkeypatch.setattr(nats.NATS, "_close", fail)
    engine_died = False
    server = SERVERS["nats"](tmp_path / "server")
    made = engine_of([NATS, *server.place], "", "team", "p", "lead")
    try:
        made.start()
        eventually(lambda: any(one[0] == UP for one in made.take()))
        engine_died = True
        server.kill()
        eventually(lambda: any(one[0] == DOWN for one in made.take()))
    finally:
        made.close()
        server.kill()
    assert "Traceback" not in capfd.readouterr().err


def test_an_entry_that_is_too_long_for_the_server_blocks_nothing(tmp_path, monkeypatch):
    """It was sent on each new connection, which ended for it, and nothing else went on."""
    more = "max_payload: 16384\n"
    monkeypatch.setitem(SERVERS, "nats", type("NATS", (SERVERS["nats"],), {"more": more}))
    monkeypatch.setattr(replicated_bus, "SNAPSHOT_EACH", 20)
    world = World("nats", tmp_path)
    try:
        lead, _hand = world.bus("lead", 0), world.bus("hand")
        with pytest.raises(ClawError, match="takes a task or a report of at most 16384 bytes") as e:
            lead.put(task(description="x" * 20000))
        assert "max_payload" in e.value.hint
        monkeypatch.setattr(replicated_bus, "check_size", lambda *_: None)
        lead.broadcast("lead", "x" * 20000)
        world.until(lambda: any("an entry of 20" in one for one in world.refused))
        for number in range(3):  # with snapshots, which are longer than an entry
            assert world.done(lead.put(task(number)))
            for _ in range(10):
                lead.broadcast("lead", "y" * 5000)
            world.until(lambda: len(lead._waiting) == 1)
        world.until(lambda: lead._engine._cut)  # the last snapshot was taken
        late = world.bus("other", is_patient=True)
        assert late.state(IDS[2]) == "waiting" and not lead._was_down
    finally:
        world.close()
