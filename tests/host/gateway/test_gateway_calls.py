"""The calls of a Linux device that share its connection to a gateway (docs/gateway.md): answers and
cancellations go up while others wait, and a result that no device can read is refused.
"""

import asyncio
import gc
import json
import os
from contextlib import contextmanager

import mcp_agents
import pytest
from agents import eventually
from gateways import gateway, says
from lan_boards import linux_shed, mediated, token

from clawlite.host.gateway.device import KEPT, Device
from clawlite.host.gateway.service_calls import ToolJob
from clawlite.host.image import image_reader
from clawlite.linux.io.jsontext import dumps, loads
from clawlite.linux.net.gateway_client import _AT_ONCE, GatewayCalls

CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "t", "version": "1"},
}
FORM = {
    "message": "Which city?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}


def rpc(method: str, params: dict, **more) -> str:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more})


def called(name: str, number: int) -> str:
    return rpc("tools/call", {"name": name, "arguments": {"text": "a"}}, id=number)


def served(tmp_path, wire, *what, names=("echo", "sleep"), more="") -> str:
    tools = [mcp_agents.tool(name, name) for name in names]
    tools += [mcp_agents.tool("nap", "sleep", "u")] if more else []
    return mediated(mcp_agents.write(tmp_path, what, "board", tools=tools, more=more), wire)


def other(tmp_path) -> str:
    """Return the settings of a second server, u, whose folder is ``marks/u``."""
    folder = tmp_path / "marks/u"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    args = json.dumps([str(mcp_agents.SERVER), str(folder)])
    return f'[mcp.u]\nargs = {args}\nmode = "mediated"\n'


def methods(tmp_path, folder="marks/u") -> list:
    file = tmp_path / folder / "methods"
    return file.read_text().split() if file.exists() else []


def test_an_answer_and_a_cancellation_go_up_at_once(tmp_path, state, port, wire):
    """While another call waits for its server; over the one connection that all share."""
    image = served(tmp_path, wire, "asks", names=("echo",), more=other(tmp_path))
    (tmp_path / "marks/asks").write_text(json.dumps([FORM]))
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "mcp", "serve", image) as shed:
            shed.call("initialize", CLIENT, 0)
            shed.line(called("echo", 1))
            asked = shed.message()
            assert asked["method"] == "elicitation/create", asked
            shed.line(called("nap", 2))
            eventually(lambda: "tools/call" in methods(tmp_path))
            answer = {"action": "accept", "content": {"name": "Bonn"}}
            shed.line(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}))
            assert "Bonn" in str(shed.message()["result"])
            assert "notifications/cancelled" not in methods(tmp_path)
            shed.line(rpc("notifications/cancelled", {"requestId": 2}))
            eventually(lambda: "notifications/cancelled" in methods(tmp_path))
    assert wire.seen.count(b"claw.gateway.hello") == 1


@contextmanager
def sleeping(tmp_path, state, port, wire):
    """A gateway and a device with one call, number 1, that its server does not answer."""
    image = served(tmp_path, wire)
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "mcp", "serve", image) as shed:
            shed.call("initialize", CLIENT, 0)
            shed.line(called("sleep", 1))
            eventually(lambda: "tools/call" in mcp_agents.methods(tmp_path))
            yield running, shed


def is_cancelled(tmp_path) -> bool:
    return "notifications/cancelled" in mcp_agents.methods(tmp_path)


def test_the_last_call_is_cancelled_at_once_too(tmp_path, state, port, wire):
    """Nothing else needs the connection afterwards, and it ends."""
    with sleeping(tmp_path, state, port, wire) as (running, shed):
        shed.line(rpc("notifications/cancelled", {"requestId": 1}))
        eventually(lambda: is_cancelled(tmp_path))
        assert says(running, "shed: the connection has ended")


def test_an_agent_that_ends_cancels_its_calls(tmp_path, state, port, wire):
    with sleeping(tmp_path, state, port, wire) as (_, shed):
        shed.end()
        shed.wait()
        eventually(lambda: is_cancelled(tmp_path))
    assert b"claw.gateway.cancel" in wire.seen


def test_a_cancellation_that_finds_no_connection_is_told_at_the_next(tmp_path, state, port, wire):
    with sleeping(tmp_path, state, port, wire) as (running, shed):
        wire.is_mute = True
        wire.cut()
        shed.line(rpc("notifications/cancelled", {"requestId": 1}))
        shed.call("ping", {}, 2)
        assert not is_cancelled(tmp_path)
        wire.is_mute = False
        wire.cut()
        assert says(running, "sleep: cancelled: nobody waits for it")  # no time-out ended it
        eventually(lambda: is_cancelled(tmp_path))


def test_a_cancellation_that_is_not_acknowledged_is_told_again(tmp_path, state, port, wire):
    """What went into a connection that was broken already may have come nowhere."""
    with sleeping(tmp_path, state, port, wire) as (running, shed):
        wire.is_mute = True
        shed.line(rpc("notifications/cancelled", {"requestId": 1}))
        assert says(running, "sleep: cancelled: nobody waits for it")
        wire.is_mute = False
        wire.cut()
        eventually(lambda: wire.seen.count(b"claw.gateway.cancel") == 2)
        assert says(running, "shed: the connection has ended", 2)


class Seam:
    asks = watches = staticmethod(lambda task: False)


def calls_of(tmp_path, image, wake):
    secret = token(tmp_path)
    clock, question = lambda: 0, lambda *about: about
    opened = image_reader.open_image(image)
    return GatewayCalls(opened, wake, clock, lambda: secret, (loads, dumps), Seam, question)


def test_more_calls_than_a_gateway_takes_wait_here(tmp_path, state, port, wire):
    image, wake, done = served(tmp_path, wire), os.pipe(), []
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        calls = calls_of(tmp_path, image, wake[1])
        for task in range(1, _AT_ONCE + 1):
            calls.start(task, "sleep", {"text": "a"}, 60000)
        calls.start(9, "echo", {"text": "hello"}, 60000)
        sent = lambda: wire.seen.count(b'"claw.gateway.tool"')
        eventually(lambda: sent() == _AT_ONCE)
        assert calls.poll() == []
        for task in range(1, _AT_ONCE + 1):
            calls.cancel(task)
        eventually(lambda: done.extend(calls.poll()) or done)
        assert done == [(9, (True, {"ok": True, "data": "hello"}))]
        assert sent() == _AT_ONCE + 1
        calls.close()
    for fd in wake:
        os.close(fd)


def test_a_call_that_is_cancelled_before_it_begins(recwarn):
    """It leaves no coroutine that nobody awaited: Python warns of one whenever it collects it, even
    in the middle of an import, which fails then (python/cpython#106176).
    """

    async def work():
        job = ToolJob("1", {"tool": "t.echo"}, lambda: None, lambda record: None, 4096)
        job.start(None, "shed", "{}", (loads, dumps), None, None, None)
        job.cancel()
        await asyncio.sleep(0)

    asyncio.run(work())
    gc.collect()
    said = [str(one.message) for one in recwarn.list]
    assert not [one for one in said if "never awaited" in one], said


def test_a_result_that_is_nested_too_deep(tmp_path, state, port, wire):
    """31 levels arrive; with one more the call ends at once, with one error."""
    image = served(tmp_path, wire, "nested")
    with gateway(tmp_path, image, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with linux_shed(tmp_path, state, "run", image) as shed:
            shed.line("say 31")
            shed.expect('{"data":{"a":%s1%s},"ok":true}' % ("[" * 30, "]" * 30))
            for levels in "32", "900":
                shed.line("say " + levels)
                shed.expect("its result cannot be handed on: it is nested deeper than 31 levels")
    assert wire.seen.count(b'"again":true') == 0
    assert mcp_agents.methods(tmp_path).count("tools/call") == 3


@pytest.mark.parametrize("said", ["[" * 33 + "]" * 33, "...", '"text"'])
def test_a_result_of_an_older_gateway_that_cannot_be_read(tmp_path, state, wire, said):
    """The connection stands: it would bring the same again."""
    wake = os.pipe()
    calls = calls_of(tmp_path, served(tmp_path, wire), wake[1])
    result = calls._result(said.encode())
    assert not result["ok"] and result["error"]["code"] == "failed"
    assert "the gateway's result cannot be read: it sent" in result["error"]["message"]
    for fd in wake:
        os.close(fd)


class Link:
    """Takes what the gateway sends to a device."""

    waiting = 0

    def __init__(self):
        self.sent = []

    def send(self, record: bytes):
        self.sent.append(json.loads(record))


class Members:
    away = staticmethod(lambda name: None)


class Gateway:
    members, called = Members, staticmethod(lambda device, job: None)


async def _ended_calls(device: Device, names: list):
    """Make the device's calls *names* begin in this order; the first one ends last."""
    jobs = []
    for name in names:
        job = ToolJob(name, {"tool": "t"}, device.pump, lambda record: None, 65536)
        device._jobs[name] = job
        jobs.append(job)
    for job in jobs[1:] + jobs[:1]:
        job._keep({"jsonrpc": "2.0", "id": job.id, "result": {}})
        job.ended_s = asyncio.get_running_loop().time()
        device._end(job)


def test_the_results_that_are_kept_are_those_that_ended_last():
    """A long call, which began before others, ends while the device is away."""

    async def scene():
        device, link = Device("shed", Gateway), Link()
        device._image, device._record = object(), 65536
        await _ended_calls(device, ["long", *("short-%d" % number for number in range(KEPT))])
        device.connect(link)
        device._is_greeted = True
        device._request("long", {"tool": "t", "seen": 0, "again": True}, device._call)
        assert link.sent[1:] == [{"jsonrpc": "2.0", "id": "long", "result": {}}]

    asyncio.run(scene())
