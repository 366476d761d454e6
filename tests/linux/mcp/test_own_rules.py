"""What holds for one MCP server alone (clawlite.toml, [mcp.NAME]): the hosts that its program may
reach, how long it lives, and how much of the processor it may take (CKP 0.3.0 Tool, "MCP
Compatibility"; docs/mcp.md).
"""

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import mcp_agents
import pytest
from agents import Agent, eventually, linux, tool_call

from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder.build import build


class Page(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def port():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def write(tmp_path, own: str, network=None, level="process", what=("reaches",)):
    """Write an agent whose tools may reach 127.0.0.1 and localhost, with two servers of the same
    program: ``own`` are the settings of the first.
    """
    other = mcp_agents.tool("echo-too", "echo", "u")
    agent = mcp_agents.write(
        tmp_path, what, level=level, tools=[mcp_agents.tool("echo", "echo"), other]
    )
    claw, settings = agent / "claw.yaml", agent / "clawlite.toml"
    text = claw.read_text()
    old = re.search(r"sandbox: \{ inline: (.*) \}", text)[1]
    box = json.loads(old)
    rule = {"mode": "allowlist", "allowed_hosts": ["127.0.0.1", "localhost", "*.example.com"]}
    rule["ssrf_protection"] = {"block_private_ips": False}
    box.setdefault("capabilities", {})["network"] = network or rule
    claw.write_text(text.replace(old, json.dumps(box)))
    written = settings.read_text()
    (args,) = re.findall("args = .*", written)
    settings.write_text(written + own + "\n[mcp.u]\n" + args + "\n")
    return agent


def said(agent, tool: str, text: str, number: int) -> str:
    agent.line(json.dumps(tool_call(tool, {"text": text}, number)))
    return agent.message()["result"]["content"][0]["text"]


@pytest.mark.parametrize("hosts, first", [('["localhost"]', "403"), ("[]", "no way")])
def test_a_server_reaches_its_own_hosts_alone(tmp_path, port, hosts, first):
    """Its rule is narrower than the Sandbox's; that of the server beside it is not."""
    agent = write(tmp_path, "hosts = %s\n" % hosts)
    url = "http://127.0.0.1:%d/" % port
    with Agent(linux("serve", mcp_agents.build_beside(str(agent)), "--stdio"), tmp_path) as one:
        one.initialize()
        assert said(one, "echo", url, 1).startswith(first)
        assert said(one, "echo-too", url, 2) == "200"
        at_home = said(one, "echo", url.replace("127.0.0.1", "localhost"), 3)
        assert at_home == "200" if first == "403" else at_home.startswith("no way")


@pytest.mark.parametrize(
    "own, named, why",
    [
        ('hosts = ["other.example"]\n', {}, "the Sandbox does not allow it"),
        ('hosts = ["*.com"]\n', {}, "the Sandbox does not allow it"),
        ('hosts = ["http://localhost"]\n', {}, "name hosts as in allowed_hosts"),
        ('hosts = ["localhost"]\n', {"network": {"mode": "deny"}}, "the Sandbox does not allow it"),
        ("hosts = []\n", {"level": "none"}, "nothing contains a program at level none"),
        ("cpu_s = 60\n", {"level": "none"}, "nothing contains a program at level none"),
        ("mount_paths = []\n", {}, "the Sandbox says which folders a server of this device sees"),
        ("life_s = 0\n", {}, "life_s"),
    ],
)
def test_rules_that_are_refused(tmp_path, own, named, why):
    build(str(write(tmp_path, "")))  # pinned
    with pytest.raises(ManifestErrors) as caught:
        build(str(write(tmp_path, own, **named)))
    assert why in str(caught.value)


def test_narrower_names_are_taken(tmp_path):
    build(str(write(tmp_path, 'hosts = ["a.example.com", "*.b.example.com", "*.example.com"]\n')))


@pytest.mark.parametrize("level", ["none", "process"])
@pytest.mark.parametrize("own", ["idle_s = 1\n", "life_s = 1\n"])
def test_a_server_ends_when_its_time_is_over(tmp_path, level, own):
    """No failure is counted: the next call starts another one at once."""
    agent = write(tmp_path, own, level=level, what=())
    with Agent(linux("serve", mcp_agents.build_beside(str(agent)), "--stdio"), tmp_path) as one:
        one.initialize()
        assert said(one, "echo", "a", 1) == "a" and said(one, "echo-too", "b", 2) == "b"
        assert eventually(lambda: len(ours(tmp_path, level)) == 1), "the one without a rule"
        before = mcp_agents.methods(tmp_path).count("tools/call")
        assert said(one, "echo", "c", 3) == "c"
        assert mcp_agents.methods(tmp_path).count("tools/call") == before + 1
        assert said(one, "echo-too", "d", 4) == "d"


@pytest.mark.parametrize("who", ["itself", "others"])
def test_a_server_has_so_much_processor_time(tmp_path, who):
    """That of all processes that it starts counts; the next call starts another server, after the
    pause of one that failed."""
    agent = write(tmp_path, "cpu_s = 2\n", what=("spins",))
    with Agent(linux("serve", mcp_agents.build_beside(str(agent)), "--stdio"), tmp_path) as one:
        one.initialize()
        assert said(one, "echo", "a", 1) == "a"
        assert "ended by its limit cpu_s" in said(one, "echo", who, 2)
        assert eventually(lambda: not ours(tmp_path, "process")), "nothing is left of it"
        assert eventually(lambda: goes(one)), "another one"


def goes(agent) -> bool:
    agent.line(json.dumps(tool_call("echo", {"text": "c"}, 9)))
    return "result" in agent.message()


def ours(tmp_path, level: str) -> list:
    """Return the servers; a sandbox has processes of its own around each."""
    return [one for one in mcp_agents.processes(tmp_path) if b"mcp_server.py" in one[1]]
