"""What MCP servers may do to a gateway that asks them for its devices, and what becomes of it: one
clear error each, and the next call goes on.
"""

import asyncio
import contextlib
import json
import os
import re
import time

import mcp_agents
import mcp_clients
import pytest
from agents import eventually
from mcp_calls import MS, Calls, Clock, gone, image_of, message, run
from mcp_http_server import Remote

from clawlite.host.gateway import mcp_servers


def program(tmp_path, *what, names=("echo",)):
    """Return the image of an agent whose server does *what* wrong."""
    tools = [mcp_agents.tool(name, name) for name in names]
    return image_of(mcp_agents.write(tmp_path, what, "board", tools=tools))


@pytest.fixture(params=["contained", "uncontained"])
def names(request) -> tuple:
    """Run the test in the sandbox and outside; return the names of what is not contained."""
    return ("t",) if request.param == "uncontained" else ()


def test_each_device_has_a_server_of_its_own(tmp_path, names):
    image = program(tmp_path)

    async def work():
        async with Calls(image, names) as call:
            results = await asyncio.gather(*(call(device=name) for name in ("a", "b", "a")))
            assert all(result == {"ok": True, "data": "hello"} for result in results)
            assert len(mcp_agents.processes(tmp_path)) == 2
        assert mcp_agents.processes(tmp_path) == []

    run(work())


def test_lines_that_are_no_messages_are_skipped(tmp_path, names):
    image = program(tmp_path, "banner")

    async def work():
        async with Calls(image, names) as call:
            for _ in range(3):
                assert await call() == {"ok": True, "data": "hello"}

    run(work())


@pytest.mark.parametrize(
    "what, said",
    [
        ("flood", "it sent 10000 messages that answer nothing"),
        ("huge", "it sent a message of more than 4194304 bytes"),
    ],
)
def test_a_program_that_breaks_the_protocol(tmp_path, names, what, said):
    image = program(tmp_path, what)

    async def work():
        async with Calls(image, names) as call:
            text = message(await call(), "failed")
            assert said in text and "what the call did is not known" in text
            assert "nothing was called, try again in" in message(await call(), "unreachable")
        assert mcp_agents.processes(tmp_path) == []
        assert mcp_agents.methods(tmp_path).count("tools/call") == 1

    run(work())


def test_a_program_that_does_not_read(tmp_path, names):
    """What waits for it is bounded; of calls that were sent nobody knows what they did."""
    image = program(tmp_path, "deaf")

    async def work():
        async with Calls(image, names) as call:
            first = asyncio.create_task(call())
            await asyncio.to_thread(
                eventually, lambda: "tools/call" in mcp_agents.methods(tmp_path)
            )
            results = await call(text="a" * (2 * mcp_servers.MAX_UNSENT)), await first
            for result in results:
                text = message(result, "failed")
                assert "it has not read 8388608 bytes that it was sent" in text
                assert "what the call did is not known" in text
        assert mcp_agents.processes(tmp_path) == []

    run(work())


def test_a_program_that_is_not_there_any_more(tmp_path, names):
    (tmp_path / "marks").mkdir()
    link = tmp_path / "marks/python"
    link.symlink_to(os.path.realpath(mcp_agents.sys.executable))
    tools = [mcp_agents.tool("echo", "echo", program=str(link))]
    agent = mcp_agents.write(tmp_path, level="board", tools=tools)
    image = image_of(agent)
    link.unlink()

    async def work():
        async with Calls(image, names) as call:
            text = message(await call(), "unreachable")
            assert f"{link}: No such file or directory" in text
            assert "; nothing was called" in text

    run(work())


@pytest.mark.parametrize("sdk", ["sdk2", "sdk1"])
def test_the_official_sdk_on_stdio_changes_a_tool_while_the_gateway_runs(tmp_path, sdk):
    """2026-07-28 tells of it to those alone who listen, the handshake era to everybody."""
    python = mcp_clients.SDKS[sdk][0]
    if not os.path.exists(python):
        pytest.skip("no environment with mcp<2: make mcp")
    tools = [mcp_agents.tool(name, name, program=python) for name in ("echo", "grow")]
    args = [str(mcp_agents.SERVER.with_name("mcp_sdk_server.py")), "stdio"]
    image = image_of(mcp_agents.write(tmp_path, level="board", tools=tools, args=args))

    async def work():
        async with Calls(image) as call:
            assert (await call.until_ok())["ok"] and (await call("grow"))["ok"]
            result = await call()
            until = time.monotonic() + 60
            while result["ok"] and time.monotonic() < until:  # it may tell after its answer
                result = await call()
            text = message(result, "changed")
            assert "has changed the description of its tool echo since" in text
            assert (await call("grow"))["ok"], "its other tools are as they were"

    run(work())


def test_a_change_is_heard_of_after_a_subscription_that_the_server_ended(tmp_path):
    image = program(tmp_path, "ends", "changed", "notify")

    async def work():
        async with Calls(image) as call:
            assert (await call())["ok"]
            while mcp_agents.methods(tmp_path).count("subscriptions/listen") < 2:
                await asyncio.sleep(0.01)
            assert (await call())["ok"]
            (tmp_path / "marks/changed").touch()
            result = await call()
            while result["ok"]:  # it tells after an answer, so one more call may have been made
                result = await call()
            text = message(result, "changed")
            assert "has changed the description and input schema of its tool echo" in text

    run(work())


@pytest.mark.parametrize("what", [("mute",), ("mute", "blank")], ids=["silent", "blank lines"])
def test_two_calls_in_a_row_without_an_answer_end_it(tmp_path, names, what):
    image = program(tmp_path, *what)

    async def work():
        async with Calls(image, names) as call:
            assert (await call())["ok"]
            (tmp_path / "marks/now").touch()
            for _ in range(2):
                text = message(await call(ms=300), "timeout")
                assert text == "Service did not respond within 300ms"
            await gone(call, tmp_path)
            (tmp_path / "marks/now").unlink()
            assert (await call.until_ok())["data"] == "hello"

    run(work())


def test_a_program_that_ends_after_a_call_is_begun_again(tmp_path, names):
    image = program(tmp_path, "idle")

    async def work():
        async with Calls(image, names) as call:
            for _ in range(2):
                assert (await call.until_ok())["data"] == "hello"
                await gone(call, tmp_path)

    run(work())


def test_the_end_does_not_stand_still_behind_what_has_just_ended():
    """Python 3.12's gather of futures that are done is done itself, before their callbacks run."""

    async def work():
        servers = mcp_servers.MCPServers((json.loads, json.dumps), None)
        ended = servers._later(asyncio.sleep(0))
        while not ended.done():
            await asyncio.sleep(0)
        await servers.close()
        assert servers._ending == set()

    run(work())


async def pause(call: Calls, clock: Clock, failures: int) -> int:
    """Let a call fail; return how many seconds calls are refused from then on."""
    assert "in a row" not in message(await call(), "unreachable")
    text = message(await call(), "unreachable")
    assert f"has failed {failures} times in a row" in text
    found = int(re.search(r"try again in (\d+) s", text)[1])
    clock.now_s += found - 0.001
    assert "try again in 1 s" in message(await call(), "unreachable")
    clock.now_s += 0.001
    return found


@pytest.mark.parametrize("kind", ["program", "remote"])
def test_the_pause_doubles_with_each_failure_in_a_row(tmp_path, monkeypatch, kind):
    """It is never longer than 60 s, and a call that is answered ends the row."""
    clock, link = Clock(), tmp_path / "marks/python"
    python = os.path.realpath(mcp_agents.sys.executable)
    link.parent.mkdir()
    link.symlink_to(python)
    with Remote("new") as server:
        if kind == "program":
            tools = [mcp_agents.tool("echo", "echo", program=str(link))]
            image = image_of(mcp_agents.write(tmp_path, level="board", tools=tools))
        else:
            image = image_of(mcp_agents.remote(tmp_path, server.url))

        def fail(is_down: bool) -> None:
            server.is_down = is_down
            link.unlink(missing_ok=True)
            if not is_down:
                link.symlink_to(python)

        async def work():
            async with Calls(image) as call:
                fail(True)
                found = [await pause(call, clock, number) for number in range(1, 10)]
                assert found == [1, 2, 4, 8, 16, 32, 60, 60, 60]
                fail(False)
                assert (await call())["data"] == "hello"
                next(iter(call.servers._servers.values()))[0].end("the test ends it")
                fail(True)
                assert await pause(call, clock, 1) == 1

        monkeypatch.setattr(mcp_servers, "time", clock)
        run(work())


def test_what_a_program_started_ends_with_it(tmp_path, names):
    image = program(tmp_path, "child", "noisy")

    async def work():
        async with Calls(image, names) as call:
            assert (await call())["ok"]

    run(work())
    eventually(lambda: mcp_agents.processes(tmp_path) == [])  # it was sent SIGKILL


def test_one_that_nobody_needs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(mcp_servers, "IDLE_S", 0)
    image = program(tmp_path)

    async def work():
        async with Calls(image) as call:
            assert (await call())["ok"]
            await gone(call, tmp_path)
            assert (await call())["ok"], "it did not fail, so there is no pause"

    run(work())


def test_a_call_that_nobody_waits_for(tmp_path):
    """The server is told, and answers the next one: it is not taken for one that hangs."""
    image = program(tmp_path, names=("echo", "sleep"))

    async def work():
        async with Calls(image) as call:
            assert (await call())["ok"]
            for count in (2, 3):
                waits = asyncio.create_task(call("sleep"))
                while mcp_agents.methods(tmp_path).count("tools/call") < count:
                    await asyncio.sleep(0.05)
                waits.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await waits
            assert (await call())["ok"]
            told = mcp_agents.methods(tmp_path)[-5:]
            assert told == ["tools/call", "notifications/cancelled"] * 2 + ["tools/call"]
            assert len(mcp_agents.processes(tmp_path)) == 1
        assert mcp_agents.processes(tmp_path) == []

    run(work())


@pytest.mark.parametrize(
    "what, code, said",
    [
        ("500", "failed", "HTTP 500"),
        ("html", "failed", "HTTP 400"),
        ("cut", "failed", "what the call did is not known"),
        ("lost", "failed", "what the call did is not known"),
        ("flood", "failed", "it sent 10000 messages that answer nothing"),
        ("huge", "failed", "it sent a message of more than 4194304 bytes"),
        ("stranger", "failed", "it answered a request that was never sent"),
        ("silent", "timeout", "Service did not respond within 500ms"),
    ],
)
def test_a_server_at_a_url_that_does_it_wrong(tmp_path, what, code, said):
    with Remote(*what.split()) as server:
        image = image_of(mcp_agents.remote(tmp_path, server.url))

        async def work():
            async with Calls(image) as call:
                result = await call(ms=500 if what == "silent" else MS)
                assert said in message(result, code)

        run(work())
        # one that runs out of time may not have come so far
        assert server.methods().count("tools/call") == 1 or what == "silent"


def test_a_session_that_the_server_forgot_is_begun_again(tmp_path):
    with Remote("expired") as server:
        image = image_of(mcp_agents.remote(tmp_path, server.url))

        async def work():
            async with Calls(image) as call:
                assert (await call())["ok"] and (await call())["ok"]

        run(work())
        assert any(verb == "DELETE" for verb, *_ in server.asked), "its end is said"


def test_a_server_without_a_stream_to_listen_to_keeps_its_session(tmp_path):
    """Many have a route for POST alone, and answer a GET with 404."""
    with Remote("nostream") as server:
        image = image_of(mcp_agents.remote(tmp_path, server.url))

        async def work():
            async with Calls(image) as call:
                assert (await call())["ok"]
                while not any(verb == "GET" for verb, *_ in server.asked):
                    await asyncio.sleep(0.01)
                assert (await call())["ok"] and (await call())["ok"]

        run(work())
        assert server.methods().count("initialize") == 2, "of the build, and of the gateway"


@pytest.mark.parametrize("what", ["forgets", "404"])
def test_a_server_that_ends_each_session_has_failed(tmp_path, what):
    """One other session is begun; when that ends before a call is answered, a pause follows."""
    with Remote() as server:
        image = image_of(mcp_agents.remote(tmp_path, server.url))
        server.what, before = (what,), server.methods().count("initialize")

        async def work():
            async with Calls(image) as call:
                text = message(await call(), "unreachable")
                assert "its session has ended; nothing was called" in text
                assert server.methods().count("initialize") == before + 2
                server.what = ()
                assert (await call.until_ok())["data"] == "hello"

        run(work())


def test_a_server_that_takes_no_handshake_any_more(tmp_path):
    with Remote() as server:
        image = image_of(mcp_agents.remote(tmp_path, server.url))
        server.what = ("neither",)

        async def work():
            async with Calls(image) as call:
                text = message(await call(), "unreachable")
                assert "it answers initialize with an error: not found" in text
                assert "clawlite build --refresh asks which version" in text

        run(work())


def test_a_server_that_is_down(tmp_path):
    with Remote("new") as server:
        image = image_of(mcp_agents.remote(tmp_path, server.url))
        server.is_down = True

        async def work():
            async with Calls(image) as call:
                assert "nothing was called" in message(await call(), "unreachable")
                server.is_down = False
                assert (await call.until_ok())["data"] == "hello"

        run(work())


def test_no_credential_is_an_error_of_the_call(tmp_path, monkeypatch):
    more = '[[credentials]]\nname = "DOCS_KEY"\nhosts = ["127.0.0.1"]\n'
    monkeypatch.setenv("DOCS_KEY", "k")
    with Remote("new") as server:
        image = image_of(mcp_agents.remote(tmp_path, server.url, more=more))

        async def work():
            async with Calls(image) as call:
                assert message(await call(), "no_credential") == "there is no DOCS_KEY"

        before = len(server.asked)
        run(work())
        assert len(server.asked) == before
