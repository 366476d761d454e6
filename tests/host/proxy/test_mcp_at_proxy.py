"""Tools of an MCP server that the gateway calls for a runner at its proxy (Clawdapus ADR-020,
"Mediated mode"; docs/mcp.md).
"""

import asyncio

import mcp_agents
from desk_at_proxy import ASKED, names, secret, told
from later import Later
from llm_server import MODEL, Server, calls, say
from proxies import Proxied

from clawlite.host.builder.build import build_beside

openai = Later("openai")
REFLEX = (
    '{ inline: { protocol: custom, endpoint: "builtin:reflex", model: m, auth: { type: none } } }'
)


def test_a_runner_has_the_tools_of_an_mcp_server(tmp_path):
    """It is told of them, their rounds run here, and the server ends with the gateway."""
    agent = mcp_agents.write(tmp_path, level="board", tools=[mcp_agents.tool("echo", "echo")])
    (agent / "clawlite.toml").write_text(
        (agent / "clawlite.toml").read_text().replace('reflex = "reflex.toml"\n', "")
        + 'mode = "mediated"\n[gateway]\n'
    )
    (agent / "reflex.toml").unlink()

    async def inside(server):
        claw = agent / "claw.yaml"
        assert REFLEX in claw.read_text()
        provider = (
            "{ inline: { name: remote, protocol: openai-compatible, "
            f'endpoint: "{server.endpoint}", model: {MODEL}, '
            "auth: { type: bearer, secret_ref: GARDEN_KEY }, retry: { max_attempts: 1 } } }"
        )
        claw.write_text(claw.read_text().replace(REFLEX, provider))
        build_beside(str(agent))
        async with Proxied(agent, secret=secret) as it:
            client = openai.AsyncOpenAI(
                api_key=it.token("served"), base_url=it.url + "/v1", max_retries=0, timeout=60
            )
            answer = await client.chat.completions.create(model=MODEL, messages=ASKED)
            assert answer.choices[0].message.content == "It said hello."
            assert len(mcp_agents.processes(tmp_path)) == 1

    with Server([calls(("echo", {"text": "hello"})), say("It said hello.")]) as server:
        asyncio.run(inside(server))
    assert names(server.requests[0]) == ["echo"]
    assert told(server.requests[1]) == ['{"data":"hello","ok":true}']
    assert mcp_agents.processes(tmp_path) == []
