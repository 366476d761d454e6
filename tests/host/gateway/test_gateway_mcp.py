"""MCP servers of a board that its gateway asks (mode = "mediated"): programs and servers at a URL,
with their tools pinned in the board's image.  Real MicroPython, a real gateway, real servers
(issue of the MCP client; CKP 0.3.0 Tool, "MCP Compatibility").
"""

import json
import ssl

import mcp_agents
import pytest
import trustme
from agents import Agent, clawlite, eventually, linux, tool_call
from free_ports import free_port
from gateways import flashed, gateway, says, script
from lan_boards import device, token
from mcp_http_server import Remote
from sims import needs_micropython, needs_mpy_cross

from clawlite.core.image.image import SERVICE
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build
from clawlite.host.image import image_reader
from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]
HEAP = "256k"
KEY = "k-of-the-docs"


def mediated(agent, gateway: str = "[gateway]\n", more: str = 'mode = "mediated"\n') -> str:
    """Let a gateway call the server of *agent*; return the folder."""
    settings = agent / "clawlite.toml"
    text = settings.read_text()
    text += "" if "[mcp.t]" in text else "[mcp.t]\n"
    settings.write_text(text + more + gateway)
    return str(agent)


@pytest.fixture
def board(tmp_path, firmware):
    """Return a function that starts a virtual board with the agent in a folder."""
    made = []

    def start(folder) -> Sim:
        image = build.build_beside(folder)
        made.append(Sim(folder=str(flashed(image, tmp_path / "flash", firmware)), heap=HEAP))
        return made[-1].__enter__()

    yield start
    for sim in made:
        sim.__exit__()


def outcomes(tmp_path, state) -> list:
    done = clawlite("gateway", "audit", "--json", cwd=tmp_path, CLAWLITE_STATE=state)
    rows = json.loads(done.stdout)
    return [(row["tool"], row["outcome"]) for row in rows if row["event"] == "tool.ended"]


def test_a_program_serves_a_board(tmp_path, state, board):
    """One process for all calls of the board; it ends with the gateway."""
    tools = [mcp_agents.tool(name, name) for name in ("echo", "fail")]
    agent = mcp_agents.write(tmp_path, level="board", tools=tools)
    with (agent / "reflex.toml").open("a") as file:
        file.write('[[rule]]\nwhen = "break"\ncall = "fail"\narguments = { text = "x" }\n')
    sim = board(mediated(agent))
    before = mcp_agents.methods(tmp_path).count("initialize")
    with gateway(tmp_path, agent, "--port", sim.path) as running:
        assert says(running, "runs served")
        said = script(tmp_path, sim.facts["id"], "say hello", "break", "say again")
        assert len(mcp_agents.processes(tmp_path)) == 1
        running.signal(2)
        assert running.wait() == 130
    assert '{"data":"hello","ok":true}' in said and '{"data":"again","ok":true}' in said, said
    assert '"code":"failed","message":"the tool failed: ' in said, said
    assert mcp_agents.methods(tmp_path).count("initialize") == before + 1
    assert mcp_agents.processes(tmp_path) == []
    assert outcomes(tmp_path, state) == [("echo", "ok"), ("fail", "failed"), ("echo", "ok")]


def test_what_the_server_changed_is_refused(tmp_path, state, board):
    agent = mcp_agents.write(
        tmp_path, ["changed"], "board", tools=[mcp_agents.tool("echo", "echo")]
    )
    sim = board(mediated(agent))
    (tmp_path / "marks/changed").touch()
    with gateway(tmp_path, agent, "--port", sim.path) as running:
        assert says(running, "runs served")
        said = script(tmp_path, sim.facts["id"], "say hello", "/status")
    assert '"code":' not in said and "READY" in said, said
    assert "has changed the description and input schema of its tool echo since" in said, said
    assert "tools/call" not in mcp_agents.methods(tmp_path)


def test_without_a_gateway_a_call_says_so(tmp_path, state, board):
    agent = mcp_agents.write(tmp_path, level="board", tools=[mcp_agents.tool("echo", "echo")])
    sim = board(mediated(agent))
    words = ["console", "--port", sim.path, "--timeout", 60]
    done = clawlite(*words, cwd=tmp_path, stdin=b"say hello\n/status\n", CLAWLITE_STATE=state)
    assert '"code":' not in done.stdout and "READY" in done.stdout, done
    assert "no gateway at the other end of the line (clawlite gateway starts one" in done.stdout
    assert ": nothing was called" in done.stdout
    assert "tools/call" not in mcp_agents.methods(tmp_path)


def test_a_server_that_dies_in_a_call(tmp_path, state, board):
    """The call is an error and is not sent again; the next one begins another server."""
    agent = mcp_agents.write(tmp_path, ["dies"], "board", tools=[mcp_agents.tool("echo", "echo")])
    sim = board(mediated(agent))
    with gateway(tmp_path, agent, "--port", sim.path) as running:
        assert says(running, "runs served")
        said = script(tmp_path, sim.facts["id"], "say hello")
        assert "failed during the call: it ended" in said, said
        assert "what the call did is not known" in said, said
        assert mcp_agents.methods(tmp_path).count("tools/call") == 1
        found = []

        def answered() -> bool:
            found.append(script(tmp_path, sim.facts["id"], "say again"))
            return '"data":"again"' in found[-1]

        eventually(answered, 120)
    assert all("nothing was called, try again in" in said for said in found[:-1]), found


class TLS(Remote):
    """A server at an https URL, with a certificate of *authority*."""

    def __init__(self, authority, *what):
        super().__init__(*what)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert("localhost").configure_cert(context)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = "https://localhost:%d/mcp" % self.port


@pytest.fixture(params=["http", "https"])
def remote(request, tmp_path, monkeypatch):
    """A server of the newer era, over TLS or not."""
    if request.param == "http":
        server = Remote("new")
    else:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        server = TLS(authority, "new")
    with server:
        yield server


def test_a_server_at_a_url_serves_a_board(tmp_path, state, board, remote, monkeypatch):
    """With a credential that the gateway alone has, one for each device where there is one."""
    host = remote.url.split("/")[2].partition(":")[0]
    more = f'[[credentials]]\nname = "DOCS_KEY"\nhosts = ["{host}"]\n'
    agent = mcp_agents.remote(tmp_path, remote.url, hosts=(host,), more=more)
    monkeypatch.setenv("DOCS_KEY", KEY)
    sim = board(mediated(agent))
    with gateway(tmp_path, agent, "--port", sim.path) as running:
        assert says(running, "runs served")
        said = script(tmp_path, sim.facts["id"], "say hello")
        running.signal(2)
        assert running.wait() == 130
    assert '{"data":"hello","ok":true}' in said, said
    calls = [one for one in remote.asked if one[3] and one[3]["method"] == "tools/call"]
    assert len(calls) == 1 and calls[0][2]["Authorization"] == "Bearer " + KEY
    assert outcomes(tmp_path, state) == [("echo", "ok")]
    for path in (tmp_path / "flash").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()


def test_a_list_in_a_file_is_called_by_a_gateway(tmp_path, state, board):
    """``.claw-tools.json`` (Clawdapus ADR-020), mediated."""
    with Remote("new") as server:
        agent = mcp_agents.write(tmp_path, tools=[])
        (agent / "desk").mkdir()
        listed = json.dumps({"tools": server.listed()["tools"]})
        (agent / "desk/.claw-tools.json").write_text(listed)
        (agent / "reflex.toml").write_text(
            '[[rule]]\nwhen = "say {words:text}"\ncall = "desk.echo"\n'
            'arguments = { text = "{words}" }\nthen = [{ say = "{result}" }]\n'
        )
        (agent / "clawlite.toml").write_text(
            'reflex = "reflex.toml"\nsurfaces = ["service://desk"]\n'
            'tools = [{ service = "desk", allow = ["echo"] }]\n[services.desk]\n'
            f'descriptor = "desk/.claw-tools.json"\nurl = "{server.url}"\nmode = "mediated"\n'
            "[gateway]\n"
        )
        sim = board(str(agent))
        with gateway(tmp_path, agent, "--port", sim.path) as running:
            assert says(running, "runs served")
            said = script(tmp_path, sim.facts["id"], "say hello")
    assert '{"data":"hello","ok":true}' in said, said


def test_a_device_on_the_lan_that_may_not(tmp_path, state):
    """Linux behind a gateway uses the same records; with ``devices`` the others are refused."""
    port = free_port()
    lan = f'[gateway]\nwire = "tcp"\naddress = "127.0.0.1:{port}"\n'
    agent = mcp_agents.write(tmp_path, level="board", tools=[mcp_agents.tool("echo", "echo")])
    image = build.build_beside(mediated(agent, lan, 'mode = "mediated"\ndevices = ["shed"]\n'))
    with gateway(tmp_path, agent, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        wanted = (("shed", '"data":"hi"'), ("barn", "is not for the device barn"))
        for number, (name, said) in enumerate(wanted, 2):
            env = {"CLAWLITE_STATE": state, "GATEWAY_TOKEN": token(tmp_path, name)}
            words = linux("serve", image, "--stdio")
            with Agent(words, tmp_path, env=env) as linux_device:
                linux_device.initialize()
                linux_device.line(json.dumps(tool_call("echo", {"text": "hi"}, number)))
                answer = linux_device.message()
                assert ("result" if name == "shed" else "error") in answer, answer
                text = json.dumps(answer).replace('\\"', '"')
                assert said in text, text


def test_a_board_on_the_lan(tmp_path):
    """A board with a network of its own names its gateway, and proves by a token who it is."""
    port = free_port()
    lan = f'[gateway]\nwire = "tcp"\naddress = "127.0.0.1:{port}"\n'
    agent = mcp_agents.write(tmp_path, level="board", tools=[mcp_agents.tool("echo", "echo")])
    image = build.build_beside(mediated(agent, lan))
    with gateway(tmp_path, agent, "--listen", f"127.0.0.1:{port}") as running:
        assert says(running, "listens on")
        with device(tmp_path, image, token(tmp_path)) as shed:
            assert says(running, "shed: runs served")
            shed.line("say hello")
            shed.expect('"data":"hello"')


def test_what_an_image_has_of_it(tmp_path):
    agent = mcp_agents.write(tmp_path, level="board", tools=[mcp_agents.tool("echo", "echo")])
    image = image_reader.open_image(build.build_beside(mediated(agent)))
    assert image.tool("echo").handler == [SERVICE, "t.echo"]
    assert "mcp" not in image.requires and "mediated-line" in image.requires


@pytest.mark.parametrize(
    "gateway, more, tool, said",
    [
        ("", 'mode = "mediated"\n', {}, "nobody could call it: [mcp.t] says mode"),
        ("", 'devices = ["shed"]\n', {}, "only a gateway asks which device calls"),
        (
            "[gateway]\n",
            'mode = "mediated"\n',
            {"output_schema": {"type": "object"}},
            "which is not what this schema describes",
        ),
    ],
)
def test_what_is_refused_when_it_is_built(tmp_path, gateway, more, tool, said):
    one = mcp_agents.tool("echo", "echo")
    one["inline"].update(tool)
    agent = mcp_agents.write(tmp_path, level="board", tools=[one])
    with pytest.raises(ManifestErrors) as caught:
        build.build(mediated(agent, gateway, more))
    assert said in str(caught.value)


def test_a_name_that_a_gateway_could_not_tell(tmp_path):
    with Remote("new") as server:
        agent = mcp_agents.remote(tmp_path, server.url)
        claw = agent / "claw.yaml"
        claw.write_text(claw.read_text().replace("/mcp#t", "/mcp"))
        (agent / "clawlite.toml").write_text(
            'reflex = "reflex.toml"\n[mcp."127.0.0.1"]\nmode = "mediated"\n[gateway]\n'
        )
        with pytest.raises(ManifestErrors) as caught:
            build.build(str(agent))
    assert '"127.0.0.1" cannot be the name of a server that a gateway calls' in str(caught.value)


def test_a_board_that_would_call_it_natively_is_told_of_the_way(tmp_path):
    agent = mcp_agents.write(tmp_path, level="board", tools=[mcp_agents.tool("echo", "echo")])
    with pytest.raises(ManifestErrors) as caught:
        build.build(str(agent), board="pico")
    said = str(caught.value)
    assert "this needs mcp, which pico does not have" in said and "mcp_source" in said
    assert 'let a gateway call it: mode = "mediated" under [mcp.NAME], and [gateway]' in said
