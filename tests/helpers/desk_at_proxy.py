"""The trading desk of Clawdapus ADR-020 at the proxy, for tests of runners: a model's server that
plays a script, the service, and the gateway between them.
"""

import asyncio

import trading_desk
from gateways import KEY
from later import Later
from llm_server import MODEL, Server
from proxies import Proxied
from trading_desk import TOKEN, Desk

from clawlite.core.base.errors import ClawError

openai = Later("openai")
ASKED = [{"role": "user", "content": "What do I have?"}]
CONTEXT = ("trading-api__get_market_context", {})
TRADE = ("trading-api__execute_trade", {"symbol": "ACME", "side": "buy", "quantity": 2})
AGENTS = {"analyst": '["get_market_context"]', "executor": '"all"'}


class Missing(ClawError):
    is_missing = True


def secret(agent: str, name: str) -> str:
    known = {"GARDEN_KEY": KEY, "TRADING_API_TOKEN": TOKEN}
    if name not in known:
        raise Missing(f"no secret {name}")
    return known[name]


def play(
    tmp_path, script, talk, service: str = "", secret=secret, policy: str = "", feeds="", **named
):
    """Run ``talk(it, ask)`` with the desk and both agents; return (requests of the model's server,
    the desk).  ask: coroutine function(name of a runner) -> text of the answer.
    """

    async def inside(server, desk):
        provider = (
            "{ name: remote, protocol: openai-compatible, "
            f'endpoint: "{server.endpoint}", model: {MODEL}, '
            "auth: { type: bearer, secret_ref: GARDEN_KEY }, retry: { max_attempts: 1 } }"
        )
        for name, allow in AGENTS.items():
            trading_desk.write(
                tmp_path / "all" / name,
                desk.url,
                name,
                allow,
                service='mode = "mediated"\n' + service,
                more="[gateway]\n",
                provider=provider,
                **named,
            )
            path = tmp_path / "all" / name / "clawlite.toml"
            path.write_text(feeds + path.read_text())
            path = tmp_path / "all" / name / "claw.yaml"
            path.write_text(path.read_text().replace("name: p, ", "name: p, " + policy))
        async with Proxied(tmp_path / "all", secret=secret) as it:
            it.service = desk

            async def ask(name: str) -> str:
                client = openai.AsyncOpenAI(
                    api_key=it.token(name), base_url=it.url + "/v1", max_retries=0, timeout=60
                )
                answer = await client.chat.completions.create(model=MODEL, messages=ASKED)
                return answer.choices[0].message.content

            await talk(it, ask)

    with Server(script) as server, Desk() as desk:
        asyncio.run(inside(server, desk))
    return server.requests, desk


def told(request) -> str:
    """Return the results of tools in *request*."""
    return [m["content"] for m in request.body["messages"] if m["role"] == "tool"]


def names(request) -> list:
    return [tool["function"]["name"] for tool in request.body.get("tools", ())]
