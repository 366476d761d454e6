"""MCP servers over Streamable HTTP while an agent runs (CKP 0.3.0 Tool, "MCP Compatibility")."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

import mcp_agents
import mcp_clients
import pytest
from agents import Agent, environment, eventually, linux, tool_call
from mcp_http_server import Remote

from clawlite.core.base.errors import ClawError
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder.build import build, build_beside


def running(tmp_path, agent):
    return Agent(linux("serve", build_beside(str(agent)), "--stdio"), tmp_path).initialize()


def called(agent, name: str, text: str = "a", number: int = 1) -> tuple:
    """Return (text, None) of a result, or (None, error); a tool that failed has no code."""
    agent.line(json.dumps(tool_call(name, {"text": text}, number)))
    answer = agent.message()
    if "error" in answer:
        return None, answer["error"]
    text = answer["result"]["content"][0]["text"]
    return (None, {"message": text}) if answer["result"].get("isError") else (text, None)


def test_a_server_of_the_official_sdk(tmp_path, published):
    """A Streamable HTTP endpoint is one of the transports of mcp_source."""
    url, kind = published
    names = ("echo", "picture", "fail", "late", "grow")
    agent = mcp_agents.remote(tmp_path, url, names)
    with running(tmp_path, agent) as one:
        for number in range(3):
            text, error = called(one, "echo", "x%d" % number, number)
            assert error is None and "x%d" % number in text
        assert "image/png" in called(one, "picture", number=5)[0]
        assert "Error executing tool fail" in called(one, "fail", "file", 6)[1]["message"]
        assert "y" in called(one, "late", "y", 7)[0], "progress, and a stream that is gone on with"
        if "sdk1" in kind:
            return  # it does not say that it tells of changes
        assert "z" in called(one, "grow", "z", 8)[0]
        found = []

        def is_refused():
            found.append(called(one, "echo", "x", 10 + len(found))[1])
            return found[-1] is not None

        eventually(is_refused)
        assert "has changed the description of its tool echo" in found[-1]["message"]


def test_a_server_that_asks_a_person_in_a_call(tmp_path, published):
    """This client offers no elicitation: the caller learns what was asked for, and what to do."""
    url, kind = published
    if kind in ("sdk1 json", "sdk1 stateless"):  # it waits for an answer to what it never sent
        agent = mcp_agents.remote(tmp_path, url, ("ask_within",), timeout_ms=1000)
        with running(tmp_path, agent) as one:
            assert called(one, "ask-within")[1]["code"] == -32014
        return
    names = ("ask_within",) if "sdk1" in kind else ("ask_within", "ask")
    with running(tmp_path, mcp_agents.remote(tmp_path, url, names)) as one:
        error = called(one, names[-1].replace("_", "-"))[1]["message"]
        assert 'it asked for "elicitation' in error
        assert error.endswith("give all that it needs in the arguments")
        if "sdk2" in kind:  # it sees that nobody can be asked, and says so itself
            error = called(one, "ask-within", number=2)[1]["message"]
            assert "Cannot send 'elicitation/create'" in error
        assert one.is_serving()


def test_what_a_request_says(tmp_path):
    settings = '[mcp.t]\nheaders = { "X-Team" = "plants" }\n'
    with Remote() as server:
        agent = mcp_agents.remote(tmp_path, server.url)
        (agent / "clawlite.toml").open("a").write(settings)
        with running(tmp_path, agent) as one:
            assert called(one, "echo")[0] == "a"
        assert server.methods()[-4:] == [
            "initialize",
            "notifications/initialized",
            "tools/list",
            "tools/call",
        ]
        assert [verb for verb, *_ in server.asked].count("DELETE") == 1, "the build's session"
        said = server.asked[-1][2]
    assert said["X-Team"] == "plants" and said["Mcp-Session-Id"] == server.sessions[-1]
    assert said["MCP-Protocol-Version"] == "2025-11-25"
    assert said["Accept"] == "application/json, text/event-stream"


@pytest.mark.parametrize("what", [(), ("deaf",)])
def test_a_session_ends_with_its_agent(tmp_path, what):
    """The agent waits for no server that does not answer."""
    with Remote() as server:
        agent = mcp_agents.remote(tmp_path, server.url)
        image = build_beside(str(agent))
        server.what = what
        with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as one:
            assert called(one, "echo")[0] == "a"
            one.end()
            assert one.wait() == 0
        verb, _, headers, _ = server.asked[-1]
        assert verb == "DELETE" and headers["Mcp-Session-Id"] == server.sessions[-1]


def test_the_newer_era_repeats_in_headers_what_the_body_says(tmp_path):
    with Remote("new") as server:
        with running(tmp_path, mcp_agents.remote(tmp_path, server.url)) as one:
            assert called(one, "echo", "grün")[0] == "grün"
        said = server.asked[-1][2]
        assert "initialize" not in server.methods()
    assert said["MCP-Protocol-Version"] == "2026-07-28"
    assert (said["Mcp-Method"], said["Mcp-Name"]) == ("tools/call", "echo")
    assert said["Mcp-Param-Text"] == "=?base64?Z3LDvG4=?="


def test_a_credential_goes_to_its_host_and_into_no_image(tmp_path, monkeypatch):
    key = "key-0123456789"
    more = '[[credentials]]\nname = "MCP_KEY"\nhosts = ["127.0.0.1"]\n'
    with Remote() as server:
        agent = mcp_agents.remote(tmp_path, server.url, more=more)
        with pytest.raises(ClawError, match="gets the credential MCP_KEY, which is not known here"):
            build(str(agent))
        assert server.asked == []
        monkeypatch.setenv("MCP_KEY", key)
        with running(tmp_path, agent) as one:
            assert called(one, "echo")[0] == "a"
        assert {headers["Authorization"] for _, _, headers, _ in server.asked} == {"Bearer " + key}
    for file in agent.rglob("*"):
        assert file.is_dir() or key.encode() not in file.read_bytes()


@pytest.mark.parametrize(
    "what, said",
    [
        ("500", "HTTP 500"),
        ("401", "HTTP 401: it wants another credential"),
        ("html", "HTTP 400"),
        ("cut", "its answer was cut off"),
        ("lost", "its answer was cut off: the stream ended"),
        ("flood", "it sent 10000 messages that answer nothing"),
        ("huge", "it sent a message of more than 4194304 bytes"),
        ("stranger", "it answered a request that was never sent on this connection, id 4711"),
        ("202", "HTTP 202, and no answer to tools/call"),
    ],
)
def test_an_answer_that_is_none(tmp_path, what, said):
    with Remote(what) as server:
        with running(tmp_path, mcp_agents.remote(tmp_path, server.url)) as one:
            assert said in called(one, "echo")[1]["message"]
            assert one.is_serving()
        assert server.methods().count("tools/call") == 1, "nothing runs twice"


def test_a_call_that_is_not_answered_in_time(tmp_path):
    with Remote("silent") as server:
        agent = mcp_agents.remote(tmp_path, server.url, timeout_ms=300)
        with running(tmp_path, agent) as one:
            assert called(one, "echo")[1]["code"] == -32014
            eventually(lambda: "notifications/cancelled" in server.methods())


def test_a_session_that_has_expired_is_begun_anew(tmp_path):
    with Remote("expired") as server:
        with running(tmp_path, mcp_agents.remote(tmp_path, server.url)) as one:
            assert called(one, "echo")[0] == "a"
        assert server.methods().count("tools/call") == 2
        assert len(server.sessions) == 3, "of the build, and two of the agent"


def test_a_server_without_a_stream_to_listen_to_keeps_its_session(tmp_path):
    """Many have a route for POST alone, and answer a GET with 404."""
    with Remote("nostream") as server:
        with running(tmp_path, mcp_agents.remote(tmp_path, server.url)) as one:
            assert called(one, "echo")[0] == "a"
            eventually(lambda: any(verb == "GET" for verb, *_ in server.asked))
            for number in (2, 3):
                assert called(one, "echo", number=number)[0] == "a"
        assert server.methods().count("initialize") == 2, "of the build, and of the agent"


@pytest.mark.parametrize("what", ["forgets", "404"])
def test_a_server_that_ends_each_session_has_failed(tmp_path, what):
    """One other session is begun; when that ends before a call is answered, a pause follows."""
    with Remote() as server:
        agent = mcp_agents.remote(tmp_path, server.url)
        build_beside(str(agent))
        server.what, before = (what,), server.methods().count("initialize")
        with running(tmp_path, agent) as one:
            error = called(one, "echo")[1]
            assert server.methods().count("initialize") == before + 2
            assert "the MCP server t failed: its session has ended" in error["message"]
            assert error["data"] == {"ran": False, "hint": "send it again"}
            server.what = ()
            numbers = iter(range(2, 10000))
            eventually(lambda: called(one, "echo", number=next(numbers))[0] == "a")


def test_a_server_that_takes_no_handshake_any_more(tmp_path):
    with Remote() as server:
        agent = mcp_agents.remote(tmp_path, server.url)
        build_beside(str(agent))
        server.what = ("neither",)
        with running(tmp_path, agent) as one:
            error = called(one, "echo")[1]
        assert "it answers initialize with an error: not found" in error["message"]
        assert "clawlite build --refresh asks which version" in error["data"]["hint"]


def test_a_server_that_is_down_is_asked_again_after_a_pause(tmp_path):
    with Remote("down") as server:
        agent = mcp_agents.remote(tmp_path, server.url)
        build_beside(str(agent))
        server.is_down = True
        with running(tmp_path, agent) as one:
            error = called(one, "echo")[1]
            assert "the MCP server t failed" in error["message"]
            assert error["data"]["ran"] is False
            error = called(one, "echo", number=2)[1]  # in the pause, or after it (test_pauses.py)
            assert "the MCP server t" in error["message"] and error["data"]["ran"] is False
            server.is_down = False
            numbers = iter(range(3, 10000))
            eventually(lambda: called(one, "echo", number=next(numbers))[0] == "a")


def test_what_changed_since_the_build_is_refused(tmp_path):
    with Remote("changed") as server:
        agent = mcp_agents.remote(tmp_path, server.url)
        build_beside(str(agent))
        server.changed = True
        with running(tmp_path, agent) as one:
            error = called(one, "echo")[1]
        assert "has changed the description of its tool echo" in error["message"]
        assert "tools/call" not in server.methods()
        with pytest.raises(ClawError, match="And more"):
            build(str(agent), refresh=True)


def test_a_path_that_has_moved_on_the_same_server(tmp_path):
    with (
        Remote("moved") as server,
        running(tmp_path, mcp_agents.remote(tmp_path, server.url)) as one,
    ):
        assert called(one, "echo")[0] == "a"
        assert server.asked[-1][1] == "/mcp/"


@pytest.mark.parametrize("place", ["http://10.0.0.1/mcp", "//10.0.0.1/mcp", "OTHER"])
def test_a_redirect_to_another_server_is_not_followed(tmp_path, place):
    with Remote() as other:
        with Remote("redirect", to=other.url if place == "OTHER" else place) as server:
            agent = mcp_agents.remote(tmp_path, server.url)
            with pytest.raises(ClawError, match="it redirects to .*, which is not followed"):
                build(str(agent))
            server.what = ()
            build_beside(str(agent))
            server.what = ("redirect",)
            with running(tmp_path, agent) as one:
                assert "which is not followed" in called(one, "echo")[1]["message"]
        assert other.asked == []


def test_the_network_rules_of_the_sandbox_hold(tmp_path):
    with Remote() as server:
        agent = mcp_agents.remote(tmp_path, server.url, hosts=())
        build_beside(str(agent))
        count = len(server.asked)
        with running(tmp_path, agent) as one:
            error = called(one, "echo")[1]
            assert error["code"] == -32010 and "allows no network" in error["message"]
        assert len(server.asked) == count


def test_a_server_that_speaks_neither_era(tmp_path):
    with Remote("neither") as server:
        agent = mcp_agents.remote(tmp_path, server.url)
        with pytest.raises(ClawError, match="it answers initialize with an error: not found"):
            build(str(agent))
        assert not (agent / "clawlite.lock").exists()


OLD = "it speaks HTTP+SSE, the transport of MCP 2024-11-05"


def test_a_server_of_the_old_transport_is_named_when_the_agent_is_built(tmp_path, published_old):
    with pytest.raises(ClawError) as caught:
        build(str(mcp_agents.remote(tmp_path, published_old)))
    assert OLD in caught.value.message and published_old in caught.value.message
    assert "/mcp in place of /sse" in caught.value.hint and "stdio://" in caught.value.hint


def test_a_server_that_speaks_the_old_transport_now_is_named(tmp_path):
    with Remote() as server:
        with running(tmp_path, mcp_agents.remote(tmp_path, server.url)) as one:
            server.what = ("old",)
            error = called(one, "echo")[1]
            assert OLD in error["message"] and error["data"]["ran"] is False
            assert "/mcp in place of /sse" in error["data"]["hint"]
            server.what = ()
            eventually(lambda: called(one, "echo", number=7)[0] == "a")


@pytest.mark.parametrize("what, methods", [("closed", ["GET"]), ("mute", ["GET"]), ("page", [])])
def test_a_refusal_that_is_not_of_the_old_transport_stays_as_it_is(tmp_path, what, methods):
    """A GET tells the two apart; what does not answer it, or otherwise, is what it was."""
    with Remote(what) as server:
        with pytest.raises(ClawError, match="it answers initialize with an error: HTTP 40[35]"):
            build(str(mcp_agents.remote(tmp_path, server.url)))
        assert [verb for verb, *_ in server.asked if verb != "POST"] == methods


def test_nobody_there(tmp_path):
    with Remote() as server:
        pass
    with pytest.raises(ClawError, match="the MCP server http://127.0.0.1.*refused"):
        build(str(mcp_agents.remote(tmp_path, server.url)))


@pytest.mark.parametrize(
    "uri, said",
    [
        ("mcp://x/y", "the mcp:// scheme is reserved"),
        ("http://example.com/mcp", "http:// is for this machine only"),
    ],
)
def test_other_addresses(tmp_path, uri, said):
    with pytest.raises(ManifestErrors) as caught:
        build(str(mcp_agents.remote(tmp_path, uri)))
    assert said in caught.value.problems[0].text()


@pytest.mark.parametrize(
    "headers, said",
    [
        ('{ "Authorization" = "x" }', "a credential must not be written into this file"),
        ('{ "Mcp-Session-Id" = "x" }', "the name of a header that a request may set"),
        ('{ "X-Team" = " x" }', "printable ASCII"),
    ],
)
def test_headers_that_cannot_be(tmp_path, headers, said):
    agent = mcp_agents.remote(tmp_path, "https://mcp.example.com/")
    (agent / "clawlite.toml").open("a").write("[mcp.t]\nheaders = %s\n" % headers)
    with pytest.raises(ManifestErrors) as caught:
        build(str(agent))
    assert said in caught.value.problems[0].text()


def test_calls_at_once(tmp_path):
    with Remote() as server, running(tmp_path, mcp_agents.remote(tmp_path, server.url)) as one:
        for number in range(30):
            one.line(json.dumps(tool_call("echo", {"text": str(number)}, number)))
        found = set()
        for _ in range(30):
            answer = one.message()
            assert answer["result"]["content"][0]["text"] == str(answer["id"])
            found.add(answer["id"])
        assert found == set(range(30))


SIGN_IN = "a person signs in with a browser (authorization code), which is not built"
NOT_RUN = {  # scenarios of the suite for clients that are not supported, and why
    **dict.fromkeys(
        [
            "auth/metadata-default",
            "auth/metadata-var1",
            "auth/metadata-var2",
            "auth/metadata-var3",
            "auth/basic-cimd",
            "auth/scope-from-www-authenticate",
            "auth/scope-from-scopes-supported",
            "auth/scope-omitted-when-undefined",
            "auth/scope-step-up",
            "auth/scope-retry-limit",
            "auth/token-endpoint-auth-basic",
            "auth/token-endpoint-auth-post",
            "auth/token-endpoint-auth-none",
            "auth/pre-registration",
            "auth/2025-03-26-oauth-metadata-backcompat",
            "auth/2025-03-26-oauth-endpoint-fallback",
            "auth/offline-access-scope",
            "auth/offline-access-not-supported",
        ],
        SIGN_IN,
    ),
    "auth/client-credentials-jwt": "a key signs for the client, which takes a package on a device",
    "auth/cross-app-access-complete-flow": "an identity provider is asked, with a key that signs",
}
RUN = ["initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults"]
RUN += ["auth/client-credentials-basic", "auth/resource-mismatch"]


@pytest.mark.parametrize("scenario", RUN)
def test_the_conformance_suite(tmp_path, scenario):
    """@modelcontextprotocol/conformance: an agent as the client."""
    script = mcp_agents.SERVER.with_name("mcp_conformance_client.py")
    words = ["client", "--command", "%s %s" % (sys.executable, script), "--timeout", "110000"]
    done = mcp_clients.npm("conformance", [*words, "--scenario", scenario], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"Passed: ([1-9]\d*)/\1, 0 failed", done.stderr), done.stderr


def test_each_scenario_of_the_suite_is_run_or_there_is_a_reason(tmp_path):
    listed = mcp_clients.npm("conformance", ["list"], tmp_path).stdout.partition("Client scenarios")
    names = [line.split()[1] for line in listed[2].splitlines() if line.strip().startswith("- ")]
    assert sorted(names) == sorted([*RUN, *NOT_RUN])


def test_server_everything(tmp_path):
    """@modelcontextprotocol/server-everything over Streamable HTTP, in the SDK of JavaScript."""
    program = mcp_clients.PLACE / "npm/node_modules/.bin/mcp-server-everything"
    if not program.exists():
        pytest.skip("no mcp-server-everything from npm: make mcp")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [mcp_clients.PLACE / "bin/node", program.resolve(), "streamableHttp"],
        env=environment(tmp_path, PORT=port),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # bin/node starts another one
    )
    try:
        eventually(lambda: listens(port))
        agent = mcp_agents.remote(
            tmp_path, "http://127.0.0.1:%d/mcp" % port, ("get-sum", "get-tiny-image")
        )
        with running(tmp_path, agent) as one:
            one.line(json.dumps(tool_call("get-sum", {"a": 2, "b": 3}, 1)))
            assert "5" in one.message()["result"]["content"][0]["text"]
            one.line(json.dumps(tool_call("get-tiny-image", {}, 2)))
            assert "image/png" in one.message()["result"]["content"][0]["text"]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        eventually(lambda: not listens(port))


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
