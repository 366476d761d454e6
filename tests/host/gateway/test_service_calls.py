"""What a gateway refuses by itself of a call that a device or a runner asks for, whatever was
checked there: the image alone says what is granted, and nothing is asked of the service.
"""

import asyncio
import json

import pytest
import trading_desk
from trading_desk import TOKEN, Desk

from clawlite.host.gateway.gateway import loads
from clawlite.host.gateway.service_calls import MAX_ARGUMENTS, call_tool
from clawlite.host.image import image_reader

CONTEXT, TRADE = "trading-api.get_market_context", "trading-api.execute_trade"
ORDER = {"symbol": "ACME", "side": "buy", "quantity": 2}
FEEDS = (
    'surfaces = ["service://trading-api"]\n'
    'tools = [{ service = "trading-api", allow = ["get_market_context"] }]\n'
    'feeds = [{ service = "trading-api", allow = "all" }]\n'
)


@pytest.fixture
def desk():
    with Desk() as found:
        yield found


@pytest.fixture
def ask(tmp_path, desk):
    """Return function(name, arguments, device, **project) -> the result of the call."""

    def ask(name: str, arguments, device: str = "analyst", **project) -> dict:
        mode = project.pop("mode", "mediated")
        service = f'mode = "{mode}"\n' + project.pop("more_of_it", "")
        more = "[gateway]\n" if mode == "mediated" else ""  # nothing else here is for a gateway
        image = image_reader.open_image(
            trading_desk.build(tmp_path / "desk", desk.url, service=service, more=more, **project)
        )
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        codecs = loads, json.dumps
        return asyncio.run(call_tool(image, name, device, text, codecs, None, lambda _: TOKEN))

    return ask


def test_what_is_granted_is_called(ask, desk):
    """So that what the other tests refuse is refused for its own reason."""
    assert ask(TRADE, ORDER, allow='"all"')["data"]["by"] == "desk"
    assert ask(CONTEXT, {})["data"]["balance"] == 50000
    assert ask("feed:trading-api.market-context", {}, grants=FEEDS)["data"]["balance"] == 50000
    assert len(desk.requests) == 3


def test_a_credential_that_a_service_repeats_reaches_nobody(ask, desk):
    """ADR-020: the path hides credential details from the agent."""

    def repeated(handler):
        return 401, {"error": "refused: " + handler.headers["Authorization"]}

    desk.answers["/api/v1/market_context/analyst"] = repeated
    found = ask(CONTEXT, {})
    assert not found["ok"] and TOKEN not in str(found), found
    assert "[redacted]" in str(found)
    desk.answers["/api/v1/market_context/analyst"] = lambda handler: (
        200,
        {"headers": [handler.headers["Authorization"]] * 3},
    )
    found = ask(CONTEXT, {})
    assert isinstance(found["data"], dict) and "truncated" not in found, found


@pytest.mark.parametrize(
    "name, project",
    [
        (TRADE, {}),
        ("trading-api__execute_trade", {}),
        ("trading-api.get_hidden", {}),
        ("other.get_market_context", {}),
        ("", {}),
        ("feed:trading-api.market-context", {}),
        ("feed:trading-api.nothing", {"grants": FEEDS}),
        ("feed:", {"grants": FEEDS}),
        (CONTEXT, {"mode": "native"}),
        ("feed:trading-api.market-context", {"grants": FEEDS, "mode": "native"}),
        (CONTEXT, {"more_of_it": 'devices = ["executor"]\n'}),
    ],
)
def test_what_is_not_granted_is_refused(ask, desk, name, project):
    result = ask(name, {}, **project)
    assert result["error"]["code"] == "unknown_tool" and not result["ok"] and not result.ran
    assert desk.requests == []


@pytest.mark.parametrize(
    "arguments",
    [
        {**ORDER, "side": "hold"},
        {**ORDER, "quantity": "2"},
        {"symbol": "ACME"},
        [],
        "null",
        "{",
        "",
        json.dumps({**ORDER, "symbol": "A" * MAX_ARGUMENTS}),
    ],
)
def test_arguments_are_checked_here_too(ask, desk, arguments):
    result = ask(TRADE, arguments, allow='"all"')
    assert result["error"]["code"] == "bad_argument" and not result["ok"]
    assert desk.requests == []
