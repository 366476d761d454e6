"""A gateway gets the tokens for the MCP servers that it asks for its devices, by client credentials
(OAuth 2.1) or in the name of a person: Authlib gives them, the official SDK takes them.
"""

import asyncio
import errno
import json

import pytest
from agents import environment
from mcp_oauth import SECRET, agent_of, login, person, servers, signed_in_build  # noqa: F401

from clawlite import command
from clawlite.core.base.errors import ClawError
from clawlite.host.builder.build import build_beside
from clawlite.host.gateway import mcp_servers
from clawlite.host.gateway.gateway import loads
from clawlite.host.gateway.program import Programs
from clawlite.host.image import image_reader
from clawlite.protocols.mcp.mcp_client import LISTEN

SETTINGS = '[mcp.t]\nmode = "mediated"\n[mcp.t.oauth2]\nclient_id = "my agent"\n%s[gateway]\n'
MORE = 'credential = "DOCS_SECRET"\nscope = "tools:call"\nissuer = "http://127.0.0.1:%d"\n'


@pytest.fixture
def published(servers, monkeypatch):
    monkeypatch.setenv("DOCS_SECRET", SECRET)
    return servers.fresh()


def calls(tmp_path, published, find, between=lambda number: None, devices=("shed",) * 3) -> list:
    """Return the results of calls of *devices*, one after the other."""
    agent = agent_of(tmp_path, published, SETTINGS % MORE % published.authority)
    image = image_reader.open_image(build_beside(str(agent)))

    async def run():
        servers = mcp_servers.MCPServers((loads, json.dumps), Programs())
        found = []
        try:
            for number, device in enumerate(devices):
                between(number)
                given = {"text": "x%d" % number}
                found.append(
                    await servers.call(image, "t", "echo", given, device, find, 60000, 16384)
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


def mediated(tmp_path, published, name="") -> str:
    """Return the image of an agent whose gateway calls a server in the name of a person."""
    more = '[mcp.t]\nmode = "mediated"\n' + person(published) + "[gateway]\n"
    agent = agent_of(tmp_path, published, more)
    if name:
        claw = agent / "claw.yaml"
        text = claw.read_text()
        claw.write_text(text.replace("name: served", "name: " + name))
    published.tell("agree")
    signed_in_build(tmp_path, agent)
    return build_beside(str(agent))


def said(result: dict) -> str:
    return json.dumps(result["data"] if result["ok"] else result["error"])


class Gateway:
    """``async with Gateway(tmp_path)``: its servers, with the secrets of *tmp_path*/state."""

    def __init__(self, tmp_path, secrets=None):
        self._path = tmp_path
        secrets = secrets or command._Secrets()
        self.servers = mcp_servers.MCPServers((loads, json.dumps), Programs(), secret=secrets)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.servers.close()

    async def call(self, image, device="shed", ms=60000) -> dict:
        given = {"text": "x"}
        return await self.servers.call(image, "t", "echo", given, device, missing, ms, 16384)

    def kept(self, name="SIGNED_IN") -> str:
        (file,) = self._path.rglob("secrets/" + name)
        return file.read_text()


@pytest.fixture
def signed_in(tmp_path, published, monkeypatch):
    """The image of an agent as whose person somebody has signed in for all devices."""
    path = mediated(tmp_path, published)
    monkeypatch.setenv("CLAWLITE_STATE", environment(tmp_path)["CLAWLITE_STATE"])
    assert login(tmp_path, path).returncode == 0
    return image_reader.open_image(path)


def test_a_device_that_runs_another_agent_has_none_of_the_tokens(tmp_path, published, signed_in):
    (tmp_path / "b").mkdir()
    other = mediated(tmp_path / "b", published, "another")
    other = image_reader.open_image(other)
    assert other.agent.name == "another" != signed_in.agent.name

    async def work():
        async with Gateway(tmp_path) as gateway:
            assert (await gateway.call(signed_in))["ok"]
            assert "has to sign in first" in said(await gateway.call(other))

    asyncio.run(work())


def test_a_renewal_that_outlives_its_call_is_the_next_ones(tmp_path, published, signed_in):
    """However many calls are given up meanwhile, the server is asked once."""

    async def work():
        async with Gateway(tmp_path) as gateway:
            before, _ = published.tell("hold")
            for _ in range(3):
                result = await gateway.call(signed_in, ms=200)
                assert result["error"]["code"] == "timeout"
            assert len(gateway.servers._ending) == 1, "the renewal, and nothing that waits for it"
            published.tell("go")
            assert (await gateway.call(signed_in))["ok"]
            assert published.tell("")[0] == before + 1

    asyncio.run(work())


def test_a_renewal_that_is_never_answered_is_given_up(tmp_path, published, signed_in, monkeypatch):
    """Every later call waited for it, too."""
    monkeypatch.setattr(mcp_servers, "ANSWER_S", 0.2)

    async def work():
        async with Gateway(tmp_path) as gateway:
            published.tell("hold")
            result = await gateway.call(signed_in)
            assert "no token from 127.0.0.1: it did not answer within 0.2 s" in said(result)
            published.tell("go")
            monkeypatch.setattr(mcp_servers, "ANSWER_S", 60)
            # the next call asks; the server may have taken the token that counts once meanwhile
            answer = said(await gateway.call(signed_in))
            assert "has to sign in again" in answer or answer == '{"result": "x"}'

    asyncio.run(work())


def test_a_gateway_that_ends_waits_for_no_other_process(tmp_path, published, signed_in):
    async def work():
        with command._Secrets().renewal(signed_in.agent.name, "SIGNED_IN") as another:
            assert another.take()
            async with Gateway(tmp_path) as gateway:
                result = await gateway.call(signed_in, ms=200)
                assert result["error"]["code"] == "timeout"
                async with asyncio.timeout(60):
                    await gateway.servers.close()

    asyncio.run(work())


class Full(command._Secrets):
    """The store of secrets on a disk that may be full."""

    is_full = True

    def keep(self, *args):
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().keep(*args)


def test_a_token_that_could_not_be_written_counts_until_another_one_is(
    tmp_path, published, signed_in
):
    secrets = Full()

    async def work():
        async with Gateway(tmp_path, secrets) as gateway:
            first = gateway.kept()
            for _ in range(2):
                published.tell("revoke")
                assert (await gateway.call(signed_in))["ok"] and gateway.kept() == first
            published.tell("forget")  # it ends the sign-in, and a person signs in again
            assert login(tmp_path, str(tmp_path / "agent")).returncode == 0
            published.tell("revoke")
            secrets.is_full = False
            assert (await gateway.call(signed_in))["ok"], "with what was signed in for last"

    asyncio.run(work())


async def listed(servers) -> None:
    """Return when each server has listed its tools again, as it does once it is told that it
    listens: a request that came after ``revoke`` would renew its token.
    """
    clients = [server.client for server, _ in servers._servers.values()]
    while any(one._next < 5 or list(one._waiting.values()) != [LISTEN] for one in clients):
        await asyncio.sleep(0.01)


def test_a_person_signs_in_for_the_devices_of_a_gateway(tmp_path, published, monkeypatch):
    """RFC 8628: the refresh token lies where the gateway's secrets do, and is renewed there."""
    path = mediated(tmp_path, published)
    monkeypatch.setenv("CLAWLITE_STATE", environment(tmp_path)["CLAWLITE_STATE"])
    image = image_reader.open_image(path)

    def kept(name: str) -> str:
        (file,) = tmp_path.rglob("secrets/" + name)
        return file.read_text()

    async def run():
        servers = mcp_servers.MCPServers((loads, json.dumps), Programs(), secret=command._Secrets())

        async def call(device: str, ms=60000) -> dict:
            given = {"text": "x"}
            return await servers.call(image, "t", "echo", given, device, missing, ms, 16384)

        try:
            result = await call("shed")
            assert result["error"]["code"] == "no_credential"
            assert "sign in first, at the gateway: clawlite secrets login SIGNED_IN" in said(result)
            assert login(tmp_path, path).returncode == 0
            first = kept("SIGNED_IN")
            assert (await call("shed"))["ok"] and (await call("barn"))["ok"]
            await listed(servers)
            shared = kept("SIGNED_IN")
            assert shared != first, "the server gave another one, and the old one counts no more"
            assert login(tmp_path, path, "SIGNED_IN.shed").returncode == 0
            own = kept("SIGNED_IN.shed")
            published.tell("revoke")
            assert (await call("shed"))["ok"]
            assert kept("SIGNED_IN.shed") != own and kept("SIGNED_IN") == shared
            published.tell("revoke")
            published.tell("hold")
            assert (await call("barn", 100))["error"]["code"] == "timeout"
            published.tell("go")
            assert (await call("barn"))["ok"], "what was given to the call before is not lost"
            published.tell("revoke")
            published.tell("forget")
            assert "sign in again, at the gateway" in said(await call("barn"))
        finally:
            await servers.close()

    asyncio.run(run())


def test_a_sign_in_for_one_device_is_a_gateways(tmp_path, published):
    agent = agent_of(tmp_path, published, person(published))
    published.tell("agree")
    signed_in_build(tmp_path, agent)
    done = login(tmp_path, build_beside(str(agent)), "SIGNED_IN.shed")
    assert done.returncode == 1 and "it is one of: SIGNED_IN" in done.stderr
