"""A gateway contains the programs of MCP servers that it starts for its devices (docs/mcp.md,
"Through a gateway"; ADR 0126): real servers that try to get out, in the sandbox and without one.
"""

import asyncio
import json
import os
import re
import resource
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import mcp_agents
import pytest
from gateways import gateway, says
from mcp_calls import Calls, Clock, gone, image_of, message, run

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.gateway import mcp_servers
from clawlite.host.gateway.program import Programs
from clawlite.linux.tools.gateway_server import Sandboxes

NET = {
    "mode": "allowlist",
    "allowed_hosts": ["127.0.0.1", "localhost"],
    "ssrf_protection": {"block_private_ips": False},
}


def image(tmp_path, *what, own="", network=None):
    """Return the image of a board whose server does *what*; *own*: of [mcp.t]."""
    one = mcp_agents.tool("echo", "echo")
    agent = mcp_agents.write(tmp_path, what, "board", tools=[one])
    claw, settings = agent / "claw.yaml", agent / "clawlite.toml"
    text = claw.read_text()
    old = re.search(r"sandbox: \{ inline: (.*) \}", text)[1]
    box = json.loads(old)
    if network:
        box["capabilities"]["network"] = network
    claw.write_text(text.replace(old, json.dumps(box)))
    settings.write_text(settings.read_text() + own)
    return image_of(agent)


async def said(call: Calls, text: str) -> str:
    result = await call(text=text)
    assert result["ok"], result
    return result["data"]


def test_a_server_sees_what_the_sandbox_shows_and_nothing_else(tmp_path):
    """No file of the gateway's user, of its state or of the machine, and it writes where it may."""
    secret = tmp_path / "secret"
    secret.write_text("k-1")
    secret.chmod(0o644)
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o755)
    found = image(tmp_path, "roams")

    async def work():
        async with Calls(found) as call:
            state = os.path.join(call.state, "gateway")
            os.makedirs(state)
            found_in = os.path.join(state, "tokens")
            Path(found_in).write_text("k-2")
            os.chmod(found_in, 0o644)
            no_way = "no way: No such file or directory"
            for path in ("/etc/shadow", "/dev/mem", "/proc/kcore", found_in):
                assert (await said(call, path)).startswith("no way: "), path
            assert await said(call, str(secret)) == no_way
            assert await said(call, "/proc/%d/environ" % os.getpid()) == no_way
            # where the gateway's own user runs it: into the folder of its mount, which is its own
            wrote = await said(call, "write " + str(secret))
            assert wrote.startswith("no way: ") or os.getuid() and wrote == "wrote 1"
            assert secret.read_text() == "k-1"
            assert (await said(call, "write /usr/x")).startswith("no way: ")
            assert await said(call, "write /tmp/x") == "wrote 1"
            assert await said(call, "write " + str(tmp_path / "marks/x")) == "wrote 1"
        async with Calls(found, ["t"]) as call:
            assert await said(call, str(secret)) == "read k-1", "what the sandbox is for"

    run(work())
    assert secret.read_text() == "k-1" and (tmp_path / "marks/x").read_text() == "x"


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def port():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "network, own, begins",
    [
        (None, "", "no way"),
        (NET, "", "200"),
        (NET, 'hosts = ["localhost"]\n', "403"),
        (NET, "hosts = []\n", "no way"),
    ],
)
def test_a_server_reaches_the_hosts_of_its_rule(tmp_path, port, network, own, begins):
    """Those that the Sandbox of its device's image allows, and of these [mcp.NAME] hosts."""
    found = image(tmp_path, "reaches", own=own, network=network)

    async def work():
        async with Calls(found) as call:
            assert (await said(call, "http://127.0.0.1:%d/" % port)).startswith(begins)

    run(work())


@pytest.mark.parametrize("who", ["itself", "others"])
def test_a_server_has_so_much_processor_time(tmp_path, who):
    """That of all processes that it starts counts; the next call starts another server."""
    found = image(tmp_path, "spins", own="cpu_s = 2\n")

    async def work():
        async with Calls(found) as call:
            text = message(await call(text=who), "failed")
            assert "ended by its limit cpu_s" in text and "not known" in text
            await gone(call, tmp_path)
            assert (await call.until_ok())["data"] == "hello"
        assert mcp_agents.processes(tmp_path) == []

    run(work())


def test_what_a_server_left_is_gone_when_it_has_ended(tmp_path):
    """It leaves a child, and ends by itself after a call."""
    found = image(tmp_path, "child", "idle")

    async def work():
        async with Calls(found) as call:
            assert (await call())["ok"]
            await gone(call, tmp_path)
            assert (await call.until_ok())["ok"], "another one begins"
            await call.servers.close()
            assert os.listdir(os.path.join(call.state, "gateway/servers")) == []

    run(work())
    assert mcp_agents.processes(tmp_path) == []


def test_a_gateway_removes_the_folders_of_one_that_was_killed(tmp_path):
    """And no other: a second gateway may run beside the first."""
    found = image(tmp_path)

    async def work():
        async with Calls(found) as call:
            assert (await call(text="x"))["ok"]
            state = os.path.join(call.state, "gateway")
            (lives,) = os.listdir(os.path.join(state, "servers"))
            left = Path(state, "servers", "left", "deep")
            left.mkdir(parents=True)
            left.joinpath("file").write_text("x")
            Sandboxes(state)
            assert os.listdir(os.path.join(state, "servers")) == [lives]
            assert (await call(text="x"))["ok"]

    run(work())


def test_a_folder_that_cannot_be_made_is_an_error_of_the_call(tmp_path):
    """At once, with the path and what is wrong with it."""
    found = image(tmp_path)

    async def work():
        async with Calls(found) as call:
            top = Path(call.state, "gateway", "servers")
            top.parent.mkdir()
            top.touch()
            text = message(await call(), "unreachable")
            assert f"{top}: File exists; nothing was called" in text

    run(work())


def test_a_start_that_a_bug_ends_fails_at_once(tmp_path):
    """The call is told why, and does not wait for the end of START_S."""
    found = image(tmp_path)

    async def work():
        async with Calls(found) as call:
            call.servers._programs.of = lambda *rules: {}["key"]
            text = message(await call(), "unreachable")
            assert "failed: KeyError: 'key' - this is a bug in clawlite; nothing was called" in text

    run(work())


def test_a_start_that_fails_leaves_nothing(tmp_path):
    """Whichever descriptor is one too many."""
    found = image(tmp_path)
    sandboxes = Sandboxes(str(tmp_path / "gateway"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    rules = ["/bin/true"], [], None, 0, None
    sandboxes.start(found, *rules).end()  # what is loaded once is loaded
    before = os.listdir("/proc/self/fd")
    free = os.dup(0)
    os.close(free)
    for more in range(1, 8):
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (free + more, hard))
            with pytest.raises((OSError, ClawError)):
                sandboxes.start(found, *rules)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert os.listdir(tmp_path / "gateway/servers") == [], more
        assert os.listdir("/proc/self/fd") == before, more


def test_idle_s_and_life_s(tmp_path, monkeypatch):
    """A server that is not needed ends, and one whose life is over ends after its call; neither is
    a failure."""
    clock = Clock()

    async def work(own: str):
        async with Calls(image(tmp_path, own=own)) as call:
            assert (await call())["ok"]
            if own.startswith("life"):
                clock.now_s += 3600
                assert (await call())["ok"], "it ends after its last call"
            await gone(call, tmp_path)
            assert (await call())["ok"]

    run(work("idle_s = 1\n"))
    monkeypatch.setattr(mcp_servers, "time", clock)
    run(work("life_s = 3600\n"))


class Nothing:
    """A machine that contains nothing."""

    def missing(self) -> str:
        return "this machine cannot confine a process: userns - allow it"

    def start(self, *_):
        raise AssertionError("it was not asked for")


@pytest.mark.parametrize(
    "sandboxes, why", [(None, "only Linux can contain"), (Nothing(), "userns")]
)
def test_one_line_says_what_is_not_contained(tmp_path, sandboxes, why):
    found = image(tmp_path)

    def warnings(*names) -> list:
        servers = mcp_servers.MCPServers((None, None), Programs(sandboxes, names))
        return asyncio.run(servers.warnings([found]))

    (line,) = warnings()
    assert line.startswith("the MCP servers t are not started, because nothing here would contain")
    assert why in line and "--uncontained NAME" in line
    assert warnings("t") == ["nothing contains the MCP server t: it may do what this user may"]
    line, _ = warnings("u")
    assert line == "--uncontained u: no project has a program of this name that a gateway starts"


def test_without_a_sandbox_nothing_is_started(tmp_path):
    found = image(tmp_path)

    async def work():
        async with Calls(found) as call:
            call.servers._programs = Programs()
            text = message(await call(), "unreachable")
            assert "only Linux can contain a program" in text and "--uncontained t" in text
            assert text.endswith("nothing was called")
        assert mcp_agents.methods(tmp_path).count("initialize") == 1, "that was the build"

    run(work())


def test_rules_that_nothing_keeps_are_told(tmp_path):
    own = "hosts = []\ncpu_s = 5\n" + mcp_agents.folders(tmp_path / "marks")
    servers = mcp_servers.MCPServers((None, None), Programs(None, ["t"]))
    (line,) = asyncio.run(servers.warnings([image(tmp_path, own=own)]))
    assert line.endswith("what this user may, and nothing keeps its cpu_s, hosts, mount_paths")


def test_folders_of_its_own_take_the_place_of_the_sandboxes(tmp_path):
    """A board with functions of tools.py can declare none in its Sandbox, nor a network."""
    other = tmp_path / "other"
    other.mkdir()
    other.chmod(0o777)
    found = image(tmp_path, "roams", own=mcp_agents.folders(tmp_path / "marks", other))
    before = image(tmp_path, "roams")

    async def work(found, answer: str):
        async with Calls(found) as call:
            assert (await said(call, f"write {other}/x")).startswith(answer)

    run(work(found, "wrote 1"))
    run(work(before, "no way"))


def test_an_empty_folder_that_goes_with_it(tmp_path):
    """/workspace is one server's own: another device's begins with nothing in it."""
    found = image(tmp_path, "roams", own=mcp_agents.folders(tmp_path / "marks", "/workspace"))

    async def work():
        async with Calls(found) as call:
            assert await said(call, "write /workspace/x") == "wrote 1"
            assert await said(call, "x") == "read x", "it begins there"
            assert (await call(device="hut", text="x"))["data"].startswith("no way")
            top = os.path.join(call.state, "gateway/servers")
            assert len(os.listdir(top)) == 2
            await call.servers.close()
            assert os.listdir(top) == []

    run(work())


@pytest.mark.parametrize(
    "own, why",
    [
        ('mount_paths = [{ path = "/x/../y", permissions = "ro" }]\n', "an absolute path"),
        ('mount_paths = [{ path = "x", permissions = "ro" }]\n', "an absolute path"),
        ('mount_paths = [{ path = "/x" }]\n', "permissions"),
        ('hosts = ["http://x"]\n', "name hosts as in allowed_hosts"),
    ],
)
def test_rules_that_are_refused(tmp_path, own, why):
    with pytest.raises(ManifestErrors) as caught:
        image(tmp_path, own=own)
    assert why in str(caught.value)


def test_another_sandbox_is_another_server(tmp_path):
    """The device runs an image whose rules have changed: the program begins anew under them."""
    before, after = image(tmp_path, "reaches"), image(tmp_path, "reaches", network=NET)

    async def work():
        async with Calls(before) as call:
            assert (await said(call, "http://127.0.0.1:9/")).startswith("no way")
            call.image = after
            assert (await said(call, "http://127.0.0.1:9/")).startswith("502")
            while len(mcp_agents.processes(tmp_path)) > 1:  # the first one ends meanwhile
                await asyncio.sleep(0.01)

    run(work())


def test_the_command_line_says_so_at_its_start(tmp_path, state):
    image(tmp_path)
    address = "127.0.0.1:0"
    for words, line in (
        (["--uncontained", "t"], "nothing contains the MCP server t: it may do what this user may"),
        (["--uncontained", "u"], "--uncontained u: no project has a program of this name"),
    ):
        with gateway(tmp_path, tmp_path / "agent", "--listen", address, *words) as running:
            assert says(running, line)
