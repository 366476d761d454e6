"""Tokens have doors: one each, unless more are named."""

import asyncio
import contextlib
import hmac
import json

import pytest
from agents import clawlite
from gateways import project
from llm_server import MODEL, Server, say
from proxies import Proxied

from clawlite.host.gateway import gateway as gateways
from clawlite.host.gateway.lan import Listener, Tokens
from clawlite.protocols.secrets.door_token import DOORS, OLDER, parse

CHAT = "/v1/chat/completions"
ASKED = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture(autouse=True)
def state(monkeypatch, tmp_path):
    monkeypatch.setenv("CLAWLITE_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize(
    "data, doors, is_older",
    [
        (b"", (), False),
        (b" \n", (), False),
        (b"abc", OLDER, True),
        (b"abc\n", OLDER, True),
        (b"abc mcp", ("mcp",), False),
        (b"abc mcp device", ("device", "mcp"), False),
        (b"abc all", (), False),
        (b"abc \xff", (), False),
    ],
)
def test_what_a_file_opens(data, doors, is_older):
    token, found, older = parse(data)
    assert (found, older) == (doors, is_older) and token == data[:3].strip()


@pytest.mark.parametrize("door", DOORS)
def test_a_token_opens_its_door_alone(tmp_path, door):
    tokens = Tokens(str(tmp_path))
    token = tokens.make("shed", [door])
    assert [each for each in DOORS if tokens.has(each, "shed", token)] == [door]
    assert not any(tokens.has(each, "shed", token + " " + door) for each in DOORS)
    assert not tokens.is_right("shed", "nonce", None)
    assert tokens.doors("shed") == (door,) and tokens.doors("other") == ()


def test_an_older_token_keeps_its_doors(tmp_path):
    tokens = Tokens(str(tmp_path))
    (tmp_path / "shed").write_text("0" * 64)
    tokens.make("new")
    assert [each for each in DOORS if tokens.has(each, "shed", "0" * 64)] == list(OLDER)
    assert tokens.older() == ["shed"]


def test_the_command(tmp_path, state):
    def token(*words):
        return clawlite("gateway", "token", *words, cwd=tmp_path, CLAWLITE_STATE=state)

    done = token("shed", "--for", "proxy,mcp")
    assert (done.returncode, done.stderr) == (0, "")
    assert gateways.doors_of("shed") == ("proxy", "mcp")
    done = token("shed")
    assert gateways.doors_of("shed") == ("device",)
    assert done.stderr == (
        "The token that shed had before, which opened proxy, mcp, is no longer valid.\n"
    )
    for wrong in ("all", "proxy,", "Device"):
        done = token("shed", "--for", wrong)
        assert done.returncode == 2 and "expected one of device, proxy, a2a, mcp" in done.stderr
    done = token("shed", "--for", "")
    assert done.returncode == 2 and "--for: expected DOOR" in done.stderr
    assert gateways.doors_of("shed") == ("device",), "a wrong word changes nothing"


def test_a_runner_needs_a_token_for_the_proxy(tmp_path):
    async def inside(server):
        project(tmp_path / "garden", server.endpoint)
        async with Proxied(tmp_path / "garden") as it:
            for doors in (["device"], ["a2a", "mcp"]):
                token = "garden:" + gateways.make_token("garden", doors)
                status, _, body = await it.post(CHAT, ASKED, token)
                assert status == 401
                assert "gateway token NAME --for proxy" in json.loads(body)["error"]["message"]
            token = "garden:" + gateways.make_token("garden", ["a2a", "proxy"])
            assert (await it.post(CHAT, ASKED, token))[0] == 200

    with Server([say("Hi.")]) as server:
        asyncio.run(inside(server))
        assert len(server.requests) == 1


def test_a_gateway_warns_of_older_tokens(tmp_path, state):
    """It names each, and what the next version does."""
    from agents import Agent, eventually, linux

    gateways.make_token("new", ["proxy"])
    (state / ".gateway/tokens/shed").write_text("0" * 64)
    with Server([]) as server:
        project(tmp_path / "garden", server.endpoint)
        words = linux("gateway", "garden", "--proxy", "127.0.0.1:0")
        with Agent(words, tmp_path, env={"CLAWLITE_STATE": str(state)}) as agent:
            eventually(lambda: "--for DOOR" in agent.errors())
            said = agent.errors()
            assert "the token of shed opens every door" in said and "the token of new" not in said
            assert "the next version takes it from this machine alone" in said


@pytest.mark.parametrize("by_device", [True, False])
@pytest.mark.parametrize("revoke", ["make", "remove"])
def test_a_connection_ends_with_its_token(tmp_path, by_device, revoke):
    """Whoever had stolen a token kept what it had opened, after it was no longer valid."""
    tokens, heard, notes = Tokens(str(tmp_path)), [], []
    token = tokens.make("shed")

    class Device:
        def __init__(self, name):
            self.name = name

        def connect(self, peer):
            self.peer = peer
            heard.append(self)
            peer.send(b'"welcome"')

        def record(self, data):
            heard.append(data)

        def disconnect(self):
            pass

        pump = disconnect

    async def inside():
        listener = Listener(tokens, Device, notes.append)
        host, _, port = (await listener.open("127.0.0.1:0", None, None)).rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        nonce = json.loads((await reader.readline())[1:])["params"]["nonce"]
        mac = hmac.new(token.encode(), nonce.encode(), "sha256").hexdigest()
        said = {"id": "auth", "result": {"name": "shed", "mac": mac}}
        writer.write(b"\x1e" + json.dumps(said).encode() + b"\n\x1e1\n")
        assert await reader.readline() == b'\x1e"welcome"\n'
        while heard[-1] != b"1":
            await asyncio.sleep(0)
        if revoke == "make":
            tokens.make("shed")
        else:
            (tmp_path / "shed").unlink()
        if by_device:
            writer.write(b"\x1e2\n")
        else:
            heard[0].peer.send(b'"a secret"')
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        assert heard[-1] == b"1" and "shed: its token is no longer valid" in notes
        writer.close()
        listener.close()

    asyncio.run(inside())
