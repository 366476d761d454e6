"""The trading desk of Clawdapus ADR-020 on a board: the gateway at the other end of its line calls
the service (mediated).  Real MicroPython, a real gateway, real HTTP on loopback.
"""

import json

import pytest
import trading_desk
from agents import clawlite
from gateways import flashed, gateway, project, says, script
from llm_server import MODEL, Server, say
from sims import needs_micropython, needs_mpy_cross
from trading_desk import TOKEN, Desk

from clawlite.host.firmware import slot
from clawlite.host.image import image_reader
from clawlite.host.sim.sim import Sim

pytestmark = [needs_micropython, needs_mpy_cross]
HEAP = "256k"  # 64-bit words; with an audit that has what tools return
CONTEXT, TRADE = "trading-api.get_market_context", "trading-api.execute_trade"
PATH = "/api/v1/market_context/"
NOWHERE = "no gateway at the other end of the line"


@pytest.fixture
def desk():
    with Desk() as found:
        yield found


@pytest.fixture
def board(tmp_path, firmware, desk):
    """Return a function that starts a virtual board with an agent of the desk."""
    made = []

    def start(allow: str = '"all"', **named) -> Sim:
        folder = tmp_path / "desk"
        image = trading_desk.build(
            folder,
            desk.url,
            name="desk",
            allow=allow,
            service='mode = "mediated"\n',
            more="[gateway]\n" + named.pop("more", ""),
            **named,
        )
        made.append(Sim(folder=str(flashed(image, tmp_path / "flash", firmware)), heap=HEAP))
        return made[-1].__enter__()

    yield start
    for sim in made:
        sim.__exit__()


def ended(tmp_path, state) -> list:
    """Return the gateway's records of calls that have ended."""
    done = clawlite("gateway", "audit", "--json", cwd=tmp_path, CLAWLITE_STATE=state)
    return [row for row in json.loads(done.stdout) if row["event"] == "tool.ended"]


def test_adr_020_mediated_a_board_reads_and_trades(tmp_path, state, board, desk, monkeypatch):
    """The gateway alone has the credential; the board is who its port says it is."""
    monkeypatch.setenv("TRADING_API_TOKEN", TOKEN)
    sim = board()
    with gateway(tmp_path, tmp_path / "desk", "--port", sim.path) as running:
        assert says(running, "runs desk")
        said = script(tmp_path, sim.facts["id"], "context", "buy ACME")
        running.signal(2)
        assert running.wait() == 130
    assert '"balance":50000' in said and '"by":"desk"' in said, said
    assert [request[:2] for request in desk.requests] == [
        ("GET", desk.requests[0][1]),
        ("POST", "/api/v1/trades"),
    ]
    assert desk.requests[0][1].startswith(PATH)
    assert [(row["tool"], row["outcome"]) for row in ended(tmp_path, state)] == [
        (CONTEXT, "ok"),
        (TRADE, "ok"),
    ]
    for path in (tmp_path / "flash").rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes()


def test_adr_020_the_gateway_puts_feeds_into_what_a_board_asks(tmp_path, board, desk, monkeypatch):
    """The board has nothing of it: it asks its provider, and the gateway adds what it fetched."""
    monkeypatch.setenv("TRADING_API_TOKEN", TOKEN)
    with Server([say("Fine."), say("As before.")]) as server:
        sim = board(
            grants='surfaces = ["service://trading-api"]\n'
            'feeds = [{ service = "trading-api", allow = "all" }]\n',
            reflex='[[rule]]\nwhen = "*"\nsay = "By rule."\n',
            provider="{ name: remote, protocol: openai-compatible, "
            f'endpoint: "{server.endpoint}", model: {MODEL}, auth: {{ type: none }} }}',
        )
        with gateway(tmp_path, tmp_path / "desk", "--port", sim.path) as running:
            assert says(running, "runs desk")
            said = script(tmp_path, sim.facts["id"], "hello", "again")
            running.signal(2)
            assert running.wait() == 130
    assert "Fine." in said and "As before." in said, said
    first, second = (json.dumps(request.body["messages"]) for request in server.requests)
    assert "trading-api.market-context (0 s old)" in first and "50000" in first
    assert "50000" in second and len(desk.requests) == 1
    assert desk.requests[0][1].startswith(PATH)


def test_errors_of_the_service_and_of_the_gateway_are_results(
    tmp_path, state, board, desk, monkeypatch
):
    monkeypatch.setenv("TRADING_API_TOKEN", "t-wrong")
    sim = board()
    with gateway(tmp_path, tmp_path / "desk", "--port", sim.path) as running:
        assert says(running, "runs desk")
        said = script(tmp_path, sim.facts["id"], "context", "/status")
        running.signal(2)
        assert running.wait() == 130
    assert '"code":"http_401"' in said and "READY" in said, said
    done = clawlite(
        "console",
        "--port",
        sim.path,
        "--timeout",
        30,
        cwd=tmp_path,
        stdin=b"context\n/status\n",
        CLAWLITE_STATE=state,
    )
    assert '"code":' not in done.stdout and NOWHERE in done.stdout, done
    assert "READY" in done.stdout and len(desk.requests) == 1


def test_a_long_result_is_cut_and_says_so(tmp_path, state, board, desk, monkeypatch):
    monkeypatch.setenv("TRADING_API_TOKEN", TOKEN)
    sim = board(more="[budget]\nmax_tool_result_bytes = 2048\n")
    rows = (200, {"rows": ["x" * 99] * 500})
    desk.answer = lambda *_: rows
    with gateway(tmp_path, tmp_path / "desk", "--port", sim.path) as running:
        assert says(running, "runs desk")
        said = script(tmp_path, sim.facts["id"], "context")
    assert '"truncated":true' in said and '"original_bytes":5' in said, said
    assert len(desk.requests) == 1


def test_a_slot_carries_the_calls_of_services_for_images_that_have_them(tmp_path, desk):
    """An agent with a gateway and no service has nothing of it, in flash or in memory."""
    mediated = 'mode = "mediated"\n'
    with_services = trading_desk.build(
        tmp_path / "with", desk.url, service=mediated, more="[gateway]\n"
    )
    lan = '[gateway]\nwire = "tcp"\naddress = "10.0.0.2:7420"\n'
    with_lan = trading_desk.build(tmp_path / "lan", desk.url, service=mediated, more=lan)
    without = project(tmp_path / "without", desk.url)
    images = (with_services, with_lan, without)
    parts = [slot.parts(image_reader.open_image(image)) for image in images]
    carried = [slot.choose(["mediated.mpy"], part) for part in parts]
    assert carried == [["mediated.mpy"], ["mediated.mpy"], []]


@pytest.mark.parametrize(
    "board, service, more, ability",
    [
        ("pico2-w", "", "", "services"),
        (
            "pico2",
            'mode = "mediated"\n',
            '[gateway]\nwire = "tcp"\naddress = "10.0.0.2:7420"\n',
            "lan",
        ),
    ],
)
def test_what_a_board_does_not_have_is_refused_when_it_is_built(
    tmp_path, desk, board, service, more, ability
):
    folder = trading_desk.write(tmp_path / "desk", desk.url, service=service, more=more)
    done = clawlite("build", folder, "--board", board, cwd=tmp_path)
    assert done.returncode == 2, done
    assert f"this needs {ability}, which {board} does not have" in done.stderr, done
