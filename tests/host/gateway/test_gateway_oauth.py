"""A gateway gets the tokens for the MCP servers that it asks for its devices, by client credentials
(OAuth 2.1): Authlib gives them, the official SDK takes them.
"""

import asyncio
import json

import mcp_agents
import pytest
from mcp_oauth import SECRET, agent_of, servers  # noqa: F401

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.build.build import build, build_beside
from clawlite.host.gateway import mcp_servers
from clawlite.host.gateway.gateway import loads
from clawlite.host.image import inspection

SETTINGS = '[mcp.t]\nmode = "mediated"\n[mcp.t.oauth2]\nclient_id = "my agent"\n%s[gateway]\n'
MORE = 'credential = "DOCS_SECRET"\nscope = "tools:call"\nissuer = "http://127.0.0.1:%d"\n'


@pytest.fixture
def published(servers, monkeypatch):
    monkeypatch.setenv("DOCS_SECRET", SECRET)
    return servers.fresh()


def calls(tmp_path, published, find, between=lambda number: None, devices=("shed",) * 3) -> list:
    """Return the results of calls of *devices*, one after the other."""
    agent = agent_of(tmp_path, published, SETTINGS % MORE % published.authority)
    image = inspection.opened(build_beside(str(agent)))

    async def run():
        servers = mcp_servers.Servers((loads, json.dumps))
        found = []
        try:
            for number, device in enumerate(devices):
                between(number)
                given = {"text": "x%d" % number}
                found.append(
                    await servers.called(image, "t", "echo", given, device, find, 60000, 16384)
                )
        finally:
            await servers.close()
        return found

    return asyncio.run(run())


async def known(name: str) -> str:
    assert name == "DOCS_SECRET"
    return SECRET


def test_a_token_for_each_device_and_another_when_it_is_refused(tmp_path, published):
    counts = []

    def between(number: int):
        counts.append(published.tell("revoke" if number == 2 else "")[0])

    found = calls(tmp_path, published, known, between, ("shed", "shed", "shed", "barn"))
    assert [one["ok"] for one in found] == [True] * 4, found
    assert all("x%d" % number in json.dumps(one["data"]) for number, one in enumerate(found))
    assert counts == [1, 2, 2, 3], "the build's, the shed's, again, another for the shed"
    assert published.tell("") == (4, published.url)


async def another(name: str) -> str:
    return "another"


async def missing(name: str) -> str:
    raise ClawError("the gateway has no secret " + name)


@pytest.mark.parametrize(
    "find, said", [(another, "cannot authenticate"), (missing, "no secret DOCS_SECRET")]
)
def test_without_a_token_nothing_is_called(tmp_path, published, find, said):
    for one in calls(tmp_path, published, find, devices=("shed", "shed")):
        assert not one["ok"] and one["error"]["code"] == "no_credential"
        assert said in one["error"]["message"] and "another" not in one["error"]["message"]
    assert published.tell("")[0] == 1, "the build's"


def test_nobody_signs_in_at_a_gateway(tmp_path):
    agent = mcp_agents.remote(tmp_path, "http://127.0.0.1:9/mcp")
    more = SETTINGS % (MORE % 9 + 'flow = "device"\n')
    (agent / "clawlite.toml").open("a").write(more)
    with pytest.raises(ManifestErrors) as caught:
        build(str(agent))
    assert "nobody signs in at a gateway" in str(caught.value)
