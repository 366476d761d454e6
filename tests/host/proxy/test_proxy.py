"""Runners that are not clawlite at the proxy, without managed tools: who may ask what, and bytes
that come back as they are.
"""

import asyncio
import json
import sqlite3
import ssl
import threading
from types import SimpleNamespace

import aiohttp
import pytest
import trustme
from agents import clawlite
from gateways import KEY, project
from llm_server import FAULTS, HTML, MODEL, Server, calls, error, say
from proxies import Desk, Proxied, run

from clawlite.core.base.errors import ClawError, QuotaExceeded
from clawlite.host.proxy import http_server
from clawlite.host.proxy.anthropic import Anthropic
from clawlite.host.proxy.dialect import OWNER, for_reader
from clawlite.host.proxy.openai import OpenAI
from clawlite.host.proxy.upstream import Outgoing, RunnerMeter, Upstream
from clawlite.host.proxy.usage import UsageReader

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
APIS = [("openai-compatible", "openai", CHAT), ("anthropic-native", "anthropic", MESSAGES)]


def asked(**more) -> dict:
    return {
        "model": MODEL,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "how is it?"}],
        **more,
    }


def message(answer: bytes) -> str:
    return json.loads(answer)["error"]["message"]


@pytest.mark.parametrize("protocol, api, path", APIS)
@pytest.mark.parametrize("stream", [True, False])
def test_bytes_pass_through_untouched(tmp_path, protocol, api, path, stream):
    """ADR-020: requests without managed tools are unaffected."""
    raw = json.dumps(asked(stream=stream), indent=3).encode()
    path += "?day=1%2B2+3%26"

    async def play(it):
        async with it.http.post(
            server.root + path,
            data=raw,
            headers={"anthropic-version": "2023-06-01", "Content-Type": "application/json"},
        ) as response:
            direct = response.status, response.content_type, await response.read()
        status, headers, body = await it.post(path, raw)
        assert (status, headers["Content-Type"], body) == direct
        mine, its = server.requests
        assert its.body == mine.body and its.target == mine.target
        key = its.headers["authorization"]
        assert key == "Bearer " + KEY, "the gateway's key, not the runner's token"
        (row,) = await it.rows(
            "SELECT device, agent, provider, model, asked, said, outcome, usage, tool_trace "
            "FROM history"
        )
        assert row[:7] == ("garden", "garden", "remote", MODEL, "how is it?", "It is grün.", "ok")
        usage = json.loads(row[7])
        # a stream of chat completions tells its usage only when it is asked to
        is_told = api == "anthropic" or not stream
        spent = (19, 10) if is_told else (len(raw) // 4, len("It is grün.".encode()) // 4)
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == spent
        assert usage["total_rounds"] == 1 and row[8] == "[]"
        assert [event for (event,) in await it.rows("SELECT event FROM audit ORDER BY id")] == [
            "request.began",
            "request.ended",
        ]

    with Server([say("It is grün.")] * 2, api=api) as server:
        run(play, tmp_path, server, protocol)


def test_a_provider_is_asked_by_its_name_too_and_other_models_are_refused(tmp_path):
    async def play(it):
        status, _, body = await it.post(CHAT, asked(model="remote"))
        assert status == 200 and server.requests[0].body["model"] == MODEL
        status, _, body = await it.post(CHAT, asked(model="gpt-9"))
        assert status == 404 and message(body) == f"model: expected one of {MODEL}, found gpt-9"
        status, _, body = await it.post(MESSAGES, asked())
        assert status == 404 and "use POST /v1/chat/completions" in message(body)
        assert json.loads(body)["type"] == "error"
        headers = {"x-api-key": it.token()}
        async with it.http.get(it.url + "/v1/models", headers=headers) as response:
            assert [each["id"] for each in (await response.json())["data"]] == [MODEL]
        assert len(server.requests) == 1

    with Server([say("Hi.")]) as server:
        run(play, tmp_path, server)


@pytest.mark.parametrize(
    "path, words",
    [
        ("/v1/responses", "the Responses API is not spoken here - use POST /v1/chat/completions"),
        ("/v1/completions", "use POST /v1/chat/completions"),
        ("/v1/messages/count_tokens", "tokens are not counted here"),
        ("/v1/embeddings", "POST /v1/embeddings is not here - expected POST /v1/chat/completions"),
    ],
)
def test_what_is_not_here_is_refused_by_name(tmp_path, path, words):
    async def play(it):
        status, _, body = await it.post(path, asked())
        assert status == 404 and words in message(body)

    with Server([]) as server:
        run(play, tmp_path, server)


@pytest.mark.parametrize(
    "given", [None, "Bearer ", "Bearer garden:" + "0" * 64, "Bearer ../garden:x", "Basic Z2E6eA=="]
)
def test_a_wrong_bearer(tmp_path, given):
    async def play(it):
        it.token()
        headers = {"Authorization": given} if given else {}
        async with it.http.post(it.url + CHAT, json=asked(), headers=headers) as response:
            assert response.status == 401
            body = await response.read()
        assert message(body).startswith("expected the token of a runner as a bearer, NAME:TOKEN")
        assert "has a wrong token" in it.notes[0] and server.requests == []

    with Server([]) as server:
        run(play, tmp_path, server)


@pytest.mark.parametrize(
    "body, words",
    [
        (b"{", "the body is no JSON"),
        (b"\xff\xfe", "the body is no JSON"),
        (b"[" * 100000, "the body is no JSON"),
        (b"[]", "the body: expected a JSON object"),
        (b"{}", "model: expected a string"),
        (asked(messages="hi"), "messages: expected a list of objects"),
        (asked(messages=[]), "messages: expected at least one"),
        (asked(tools=["x"]), "tools: expected a list of objects"),
    ],
)
@pytest.mark.parametrize("path", [CHAT, MESSAGES])
def test_a_body_that_is_none(tmp_path, path, body, words):
    async def play(it):
        status, _, said = await it.post(path, body)
        assert status == 400 and message(said).startswith(words)
        assert server.requests == []

    with Server([], api="openai" if path == CHAT else "anthropic") as server:
        run(play, tmp_path, server, APIS[path == MESSAGES][0])


def test_a_body_that_does_not_come(tmp_path, monkeypatch):
    monkeypatch.setattr(http_server, "BODY_S", 0.01)

    async def play(it):
        async def half():
            yield b'{"model": '
            await asyncio.Event().wait()

        headers = {"Authorization": "Bearer " + it.token()}
        async with it.http.post(it.url + CHAT, data=half(), headers=headers) as response:
            assert response.status == 408
            said = message(await response.read())
        assert said == "the body was not whole after 0.01 s - send it again"

    with Server([]) as server:
        run(play, tmp_path, server)


def test_a_body_that_is_too_long(tmp_path):
    async def play(it):
        status, _, said = await it.post(CHAT, b" " * ((8 << 20) + 1))
        assert status == 413 and message(said) == (
            "expected a body of at most 8388608 bytes - send less of the conversation"
        )

    with Server([]) as server:
        run(play, tmp_path, server)


@pytest.mark.parametrize("kind", ["html", "html 502"])
@pytest.mark.parametrize("protocol, api, path", APIS)
def test_an_upstream_that_answers_html(tmp_path, kind, protocol, api, path):
    async def play(it):
        status, headers, body = await it.post(path, asked())
        assert status == 502 and headers["Content-Type"].startswith("application/json")
        assert "provider remote: " in message(body) and "a page of HTML" in message(body)
        (row,) = await it.rows("SELECT outcome FROM history")
        assert "a page of HTML" in row[0]

    assert FAULTS[kind]["body"] == HTML
    with Server([FAULTS[kind]] * 2, api=api) as server:
        run(play, tmp_path, server, protocol)


def test_a_refusal_of_the_provider_is_the_runners_as_it_is(tmp_path):
    refusal = error(400, "context_length_exceeded")

    async def play(it):
        status, _, body = await it.post(CHAT, asked())
        assert status == 400 and json.loads(body) == refusal["body"]
        assert len(server.requests) == 1, "what is wrong with a request no other attempt mends"

    with Server([refusal]) as server:
        run(play, tmp_path, server)


def test_what_failed_is_an_error_of_the_history(tmp_path, state):
    async def play(it):
        assert (await it.post(CHAT, asked()))[0] == 400
        assert (await it.post(CHAT, asked()))[0] == 200

    with Server([error(400, "context_length_exceeded"), say("Hi.")]) as server:
        run(play, tmp_path, server)
    done = clawlite("gateway", "history", "--json", cwd=tmp_path, CLAWLITE_STATE=state)
    failed, answered = json.loads(done.stdout)
    assert (failed["status"], answered["status"]) == ("error", "ok")
    assert "context_length_exceeded" in failed["outcome"] and answered["outcome"] == "ok"
    assert failed["tool_trace"] == [] and failed["usage"]["prompt_tokens"] == 0


def test_a_refusal_of_the_gateways_key_is_not_the_runners(tmp_path):
    async def play(it):
        status, _, body = await it.post(CHAT, asked())
        assert status == 502 and "refuses the gateway's key" in message(body)
        assert "clawlite secrets set GARDEN_KEY" in message(body)

    with Server([FAULTS["unauthorized"]]) as server:
        run(play, tmp_path, server)


def test_a_secret_that_is_missing(tmp_path):
    def secret(agent, name):
        raise ClawError(f"no secret {name}", "set it")

    async def play(it):
        status, _, body = await it.post(CHAT, asked())
        assert status == 502 and "no secret GARDEN_KEY" in message(body)
        assert server.requests == []

    with Server([]) as server:
        run(play, tmp_path, server, secret=secret)


@pytest.mark.parametrize("kind", ["busy", "failed", "overloaded", "close before head"])
def test_a_failure_that_may_pass_is_tried_again(tmp_path, kind):
    async def play(it):
        status, _, body = await it.post(CHAT, asked())
        assert status == 200 and b"Hi." in body and len(server.requests) == 2

    with Server([FAULTS[kind], say("Hi.")]) as server:
        run(play, tmp_path, server)


def test_a_failure_says_the_next_step_and_an_address_only_where_the_gateway_runs(tmp_path):
    async def play(it):
        _, _, body = await it.post(CHAT, asked())
        said = message(body)
        assert "found a page of HTML" in said and "://" not in said
        assert said.endswith(" - the output of clawlite gateway says what to do")
        assert f"check that the provider's protocol is that of {server.endpoint}" in it.notes[-1]

    with Server([FAULTS["html"]]) as server:
        run(play, tmp_path, server)


def test_a_server_that_is_away_is_said_in_the_words_of_the_system(tmp_path):
    async def play(it):
        _, _, body = await it.post(CHAT, asked())
        said = "provider remote: no connection to 127.0.0.1: connection refused - "
        assert message(body) == said + "the output of clawlite gateway says what to do"
        assert "wait, check that the network and http://127.0.0.1:9/v1" in it.notes[-1]

    run(play, tmp_path, SimpleNamespace(endpoint="http://127.0.0.1:9/v1"))


BUSY = {"body": {"error": {"message": "Provider returned error", "code": 429}}}
CHOICE = {"message": {"role": "assistant", "content": ""}, "finish_reason": "error"}


@pytest.mark.parametrize("fault", [BUSY, {"body": {"choices": [CHOICE]}}])
@pytest.mark.parametrize("desk", [None, Desk()])
def test_a_failure_inside_an_answer_that_may_pass_is_tried_again(tmp_path, fault, desk):
    async def play(it):
        status, _, body = await it.post(CHAT, asked())
        assert status == 200 and b"Hi." in body and len(server.requests) == 2

    with Server([fault, say("Hi.")]) as server:
        run(play, tmp_path, server, desk=desk)


def test_a_failure_inside_an_answer_that_cannot_pass_is_the_runners_as_it_is(tmp_path):
    fault = {"body": {"error": {"message": "No such thing.", "code": 404}}}

    async def play(it):
        status, _, body = await it.post(CHAT, asked())
        assert status == 200 and json.loads(body) == fault["body"]

    with Server([fault]) as server:
        run(play, tmp_path, server)


def test_codes_say_what_may_pass_whatever_the_status(tmp_path):
    async def play(it):
        status, _, body = await it.post(CHAT, asked())
        assert status == 200 and b"Hi." in body and len(server.requests) == 2
        status, _, body = await it.post(CHAT, asked())
        assert status == 429 and json.loads(body) == spent["body"] and len(server.requests) == 3

    chance = {"status": 400, "body": {"error": {"message": "Bad.", "code": "tool_use_failed"}}}
    spent = {"status": 429, "body": {"error": {"message": "Pay.", "code": "insufficient_quota"}}}
    with Server([chance, say("Hi."), spent]) as server:
        run(play, tmp_path, server)


@pytest.mark.parametrize("fault, status", [("busy until", 429), ("overloaded", 503)])
def test_the_last_refusal_keeps_its_status(tmp_path, fault, status):
    async def play(it):
        found, _, body = await it.post(CHAT, asked())
        assert found == status and json.loads(body) == FAULTS[fault]["body"]

    with Server([FAULTS[fault]] * 2) as server:
        run(play, tmp_path, server)


TWO = """claw: "0.3.0"
kind: Claw
metadata: {{ name: garden, version: "1.0.0" }}
spec:
  identity: {{ inline: {{ personality: "You keep a garden.", autonomy: autonomous }} }}
  providers:
    - inline: {{ name: first, protocol: openai-compatible, endpoint: "{0}", model: one, auth: {{ type: none }}, {2}
                retry: {{ max_attempts: 1 }}, fallback: [ {{ provider_ref: second }} ] }}
    - inline: {{ name: second, protocol: openai-compatible, endpoint: "{1}", model: two, auth: {{ type: none }} }}
  policies: [{{ inline: {{ rules: [{{ id: all, action: allow, scope: all }}] }} }}]
"""  # noqa: E501


def two_providers(folder, first: str, second: str, limits: str = "") -> None:
    folder.mkdir()
    (folder / "claw.yaml").write_text(TWO.format(first, second, limits))


@pytest.mark.parametrize("fault", ["failed", "html", "close before head", "forbidden", "no model"])
def test_the_next_provider_of_the_chain_is_asked(tmp_path, fault):
    async def inside(first, second):
        two_providers(tmp_path / "garden", first.endpoint, second.endpoint)
        async with Proxied(tmp_path / "garden") as it:
            status, _, body = await it.post(CHAT, asked(model="one"))
            assert status == 200 and b"By the second." in body
            assert second.requests[0].body == asked(model="two")
            assert await it.rows("SELECT provider, model FROM history") == [("second", "two")]

    with Server([FAULTS[fault]]) as first, Server([say("By the second.")]) as second:
        asyncio.run(inside(first, second))


def test_the_next_provider_of_the_chain_serves_all_rounds(tmp_path):
    """A turn stays with the provider that answered its first round."""

    async def inside(first, second):
        two_providers(tmp_path / "garden", first.endpoint, second.endpoint)
        async with Proxied(tmp_path / "garden", desk=Desk()) as it:
            status, _, body = await it.post(CHAT, asked(model="one"))
            assert status == 200 and b"By the second." in body
            ((usage, *row),) = await it.rows("SELECT usage, provider, model FROM history")
            assert row == ["second", "two"] and json.loads(usage)["total_rounds"] == 2
            assert it.desk.calls == [("desk.market", {})]
        assert len(first.requests) == 1
        assert [request.body["model"] for request in second.requests] == ["two", "two"]

    script = [calls(("desk__market", {})), say("By the second.")]
    with Server([FAULTS["failed"]]) as first, Server(script) as second:
        asyncio.run(inside(first, second))


def test_another_provider_gets_hidden_rounds_without_what_only_the_first_understands(tmp_path):
    """Signatures of thoughts and the like: others refuse such fields."""
    signed = {"extra_content": {"google": {"thought_signature": "c2lnbmVk"}}}

    call = {"id": "c1", "type": "function", **signed}
    call["function"] = {"name": "desk__market", "arguments": "{}"}
    made = {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call]}
    round_ = {"body": {"choices": [{"message": made, "finish_reason": "tool_calls"}]}}

    def opaque(request) -> str:
        sent = json.dumps(request.body)
        assert "clawlite_owner" not in sent
        return " ".join(name for name in ("extra_content", "reasoning_content") if name in sent)

    async def inside(first, second):
        two_providers(tmp_path / "garden", first.endpoint, second.endpoint)
        async with Proxied(tmp_path / "garden", desk=Desk()) as it:
            body = json.loads(json.dumps(asked(model="one")))
            for said in ("By the first.", "By the second.", "Again."):
                status, _, answer = await it.post(CHAT, body)
                assert status == 200 and said.encode() in answer, answer
                assert b"clawlite_owner" not in answer
                body["messages"] += [
                    {"role": "assistant", "content": said},
                    {"role": "user", "content": "More?"},
                ]
            assert it.desk.calls == [("desk.market", {})]
        assert [opaque(request) for request in second.requests] == [""]
        assert "desk__market" in json.dumps(second.requests[0].body["messages"])
        assert opaque(first.requests[-1]) == "extra_content reasoning_content"

    script = [round_, say("By the first."), FAULTS["forbidden"], say("Again.")]
    with Server(script) as first, Server([say("By the second.")]) as second:
        asyncio.run(inside(first, second))


def test_a_signed_thought_is_for_its_own_server_alone():
    thought = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    use = {"type": "tool_use", "id": "t1", "name": "desk__market", "input": {}}
    hidden = {"role": "assistant", "content": [thought, use], OWNER: "k1"}
    own = {"role": "user", "content": "Hi."}
    plain = {"role": "assistant", "content": [thought, use]}
    assert for_reader([own, hidden], "k1") == [own, plain]
    assert for_reader([own, hidden], "k2") == [own, {"role": "assistant", "content": [use]}]
    assert for_reader([own, plain], "k2") == [own, plain]  # a runner's own, or of before


def test_hidden_rounds_reach_a_limit_of_tokens(tmp_path):
    """Each round is counted before the next is asked for: the first takes 460 tokens."""

    async def inside(server):
        limits = "limits: { tokens_per_day: 500 },"
        two_providers(tmp_path / "garden", server.endpoint, "http://127.0.0.1:9/v1", limits)
        async with Proxied(tmp_path / "garden", desk=Desk()) as it:
            status, _, said = await it.post(CHAT, asked(model="one"))
            assert status == 502 and "provider second: no connection" in message(said)
            assert any("tokens_per_day is 500" in note for note in it.notes)
            assert it.desk.calls == [("desk.market", {})] and len(server.requests) == 1
            ((meters,),) = await it.rows("SELECT meters FROM spent")
            assert sum(count for _, count in json.loads(meters).values()) == 460

    with Server([calls(("desk__market", {}), read=400, written=60), say("Hm.")]) as server:
        asyncio.run(inside(server))


def test_a_limit_of_tokens_counts_for_each_runner_and_lasts(tmp_path):
    """Limits of a provider, CKP 5.2, hold at the proxy: an answer takes 29 tokens."""

    async def inside(server):
        two_providers(
            tmp_path / "garden",
            server.endpoint,
            "http://127.0.0.1:9/v1",
            "limits: { tokens_per_day: 140 },",
        )
        body = asked(model="one")
        async with Proxied(tmp_path / "garden") as it:
            assert (await it.post(CHAT, body))[0] == 200
        async with Proxied(tmp_path / "garden") as it:
            assert (await it.post(CHAT, body, it.token("shed")))[0] == 200
            status, _, said = await it.post(CHAT, body)
            assert status == 502 and "provider second: no connection" in message(said)
            assert any("tokens_per_day is 140" in note for note in it.notes)

    with Server([say("Hi.")] * 3) as server:
        asyncio.run(inside(server))


def test_what_an_answer_used_is_on_record_when_the_gateway_ends_at_once(tmp_path):
    """The runner is gone with the last byte, and the file is busy when the gateway closes."""

    async def inside(server):
        two_providers(
            tmp_path / "garden",
            server.endpoint,
            server.endpoint,
            "limits: { tokens_per_day: 140 },",
        )
        async with Proxied(tmp_path / "garden") as it:
            other = sqlite3.connect(it.path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            assert (await it.post(CHAT, asked(model="one")))[0] == 200
            await it.http.close()
            closing = asyncio.create_task(it.gateway.close())
            while await _is_open(it.url):
                await asyncio.sleep(0)
            other.execute("ROLLBACK")
            await closing
            assert other.execute("SELECT outcome FROM history").fetchall() == [("ok",)]
            ((meters,),) = other.execute("SELECT meters FROM spent").fetchall()
            assert sum(count for _, count in json.loads(meters).values()) == 29
            other.close()

    with Server([say("Hi.")]) as server:
        asyncio.run(inside(server))


async def _is_open(url: str) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    except OSError:
        return False
    writer.close()
    return True


def test_a_limit_shortens_what_a_runner_left_open(tmp_path):
    async def inside(server):
        two_providers(
            tmp_path / "garden",
            server.endpoint,
            server.endpoint,
            "limits: { tokens_per_day: 900 },",
        )
        body = asked(model="one")
        del body["max_tokens"]
        async with Proxied(tmp_path / "garden") as it:
            assert (await it.post(CHAT, body))[0] == 200
            assert 800 < server.requests[0].body["max_tokens"] < 900

    with Server([say("Hi.")]) as server:
        asyncio.run(inside(server))


def _wants_the_new_name(request):
    if "max_tokens" not in request.body:
        return say("Hi.")
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    return {"status": 400, "body": {"error": {"message": said, "code": "unsupported_parameter"}}}


def test_the_field_that_the_proxy_adds_has_the_name_that_the_server_wants(tmp_path):
    async def inside(server):
        limits = "limits: { tokens_per_day: 900 },"
        two_providers(tmp_path / "garden", server.endpoint, server.endpoint, limits)
        body = asked(model="one")
        del body["max_tokens"]
        for count in (2, 3):  # also after a restart
            async with Proxied(tmp_path / "garden") as it:
                assert (await it.post(CHAT, body))[0] == 200
            assert len(server.requests) == count
            sent = server.requests[-1].body
            assert "max_tokens" not in sent and 700 < sent["max_completion_tokens"] < 900
        async with Proxied(tmp_path / "garden") as it:  # what the runner wrote is the runner's
            status, _, said = await it.post(CHAT, asked(model="one"))
            assert status == 400 and "Unsupported parameter" in message(said)

    with Server([_wants_the_new_name] * 4) as server:
        asyncio.run(inside(server))


def test_a_refusal_of_another_field_is_not_asked_again(tmp_path):
    async def inside(server):
        limits = "limits: { tokens_per_day: 900 },"
        two_providers(tmp_path / "garden", server.endpoint, server.endpoint, limits)
        body = asked(model="one", logit_bias={})
        del body["max_tokens"]
        async with Proxied(tmp_path / "garden") as it:
            assert (await it.post(CHAT, body))[0] == 400
            assert len(server.requests) == 1

    said = "Unsupported parameter: 'logit_bias' is not supported with this model."
    with Server([{"status": 400, "body": {"error": {"message": said}}}]) as server:
        asyncio.run(inside(server))


def test_no_stream_is_cut_to_look_whole(tmp_path):
    async def play(it):
        with pytest.raises(aiohttp.ClientPayloadError):
            await it.post(CHAT, asked(stream=True))
        (row,) = await it.rows("SELECT outcome, said FROM history")
        assert "broke off" in row[0] and row[1].startswith("Let me")

    with Server([FAULTS["close early"]]) as server:
        run(play, tmp_path, server)


@pytest.mark.parametrize("stream", [True, False])
def test_a_runner_that_goes_away_cancels_the_request_upstream(tmp_path, stream):
    async def play(it):
        request = asyncio.create_task(it.post(CHAT, asked(stream=stream)))
        await asyncio.to_thread(server.stalled.wait, 30)
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        while not (rows := await it.rows("SELECT outcome FROM history")):
            await asyncio.sleep(0)
        assert rows == [("cancelled: the runner went away",)]
        assert await asyncio.to_thread(server.gone.wait, 30)

    fault = FAULTS["stall in stream" if stream else "stall before head"]
    with Server([fault]) as server:
        run(play, tmp_path, server)


def test_who_speaks_for_which_agent(tmp_path):
    async def inside(server):
        for name in ("analyst", "executor"):
            project(tmp_path / "all" / name, server.endpoint, name=name)
        async with Proxied(tmp_path / "all") as it:
            assert (await it.post(CHAT, asked(), it.token("analyst")))[0] == 200
            assert await it.rows("SELECT device, agent FROM history") == [("analyst", "analyst")]
            status, _, body = await it.post(CHAT, asked(), it.token("stranger"))
            assert status == 403 and "several: analyst, executor" in message(body)

    with Server([say("Hi.")]) as server:
        asyncio.run(inside(server))


def test_tls_and_only_on_this_machine_without_it(tmp_path):
    authority, path = trustme.CA(), tmp_path / "server.pem"
    made = authority.issue_cert("127.0.0.1")
    path.write_bytes(
        made.private_key_pem.bytes() + b"".join(pem.bytes() for pem in made.cert_chain_pems)
    )

    async def inside(server):
        project(tmp_path / "garden", server.endpoint)
        async with Proxied(tmp_path / "garden", certificate=str(path)) as it:
            context = ssl.create_default_context()
            authority.configure_trust(context)
            headers = {"Authorization": "Bearer " + it.token()}
            async with it.http.post(
                it.url + CHAT, json=asked(), headers=headers, ssl=context
            ) as response:
                assert response.status == 200
            for address in ("0.0.0.0:0", "192.0.2.1:7421"):
                with pytest.raises(ClawError, match="unencrypted"):
                    await it.gateway.mediate(address)
            for address in ("7421", "127.0.0.1:x", "127.0.0.1:70000"):
                with pytest.raises(ClawError, match="expected ADDRESS:PORT"):
                    await it.gateway.mediate(address)

    with Server([say("Hi.")]) as server:
        asyncio.run(inside(server))


def test_requests_at_once_exceed_no_limit_together(tmp_path):
    """CKP 5.2: also before any of them has ended and was counted."""
    go = threading.Event()

    async def inside(server):
        limits = "limits: { tokens_per_day: 10000 },"
        two_providers(tmp_path / "garden", server.endpoint, "http://127.0.0.1:9/v1", limits)
        large = asked(model="one", max_tokens=1, max_completion_tokens=2000, n=2, stream=True)
        async with Proxied(tmp_path / "garden") as it:
            token = it.token()
            waiting = [asyncio.create_task(it.post(CHAT, large, token)) for _ in range(2)]
            while len(server.requests) < 2:
                await asyncio.sleep(0)
            status, _, said = await it.post(CHAT, large, token)
            assert status == 502 and "provider second: no connection" in message(said)
            assert any("tokens_per_day is 10000" in note for note in it.notes), it.notes
            go.set()
            assert [(await one)[0] for one in waiting] == [200, 200]
            (runner,) = it.gateway._proxy._runners.values()
            while runner.meter._held:  # until they are counted
                await asyncio.sleep(0)
            assert (await it.post(CHAT, large, token))[0] == 200, "what was held is free again"
            while runner.meter._held:  # until the last one is counted
                await asyncio.sleep(0)

    slow = {"stream": [b"data: {}\n\n", go, b"data: [DONE]\n\n"]}
    with Server([slow, slow, say("Hi.")]) as server:
        asyncio.run(inside(server))


def limited(tmp_path, server, limit: str):
    """Return the folder of a project whose provider has a limit."""
    folder = tmp_path / "garden"
    project(folder, server.endpoint)
    claw = folder / "claw.yaml"
    claw.write_text(claw.read_text().replace("auth:", "limits: { %s }, auth:" % limit, 1))
    return folder


def test_answers_that_break_off_hold_nothing_for_good(tmp_path):
    """Each is asked for again, and holds again."""

    async def inside(server):
        folder = limited(tmp_path, server, "tokens_per_day: 1000")
        async with Proxied(folder, desk=Desk()) as it:
            for number in range(4):
                messages = [{"role": "user", "content": "question %d" % number}]
                status, _, body = await it.post(CHAT, asked(messages=messages), it.token())
                assert status == 200, body

    with Server([FAULTS["close early"], say("Hi.")] * 4) as server:
        asyncio.run(inside(server))


def quota(**limits) -> SimpleNamespace:
    return SimpleNamespace(
        **{"name": "p", "per_day": None, "per_request": None, "window": None, "prices": (0, 0)}
        | limits
    )


def allowed(meter, provider, wanted) -> int:
    body = {"model": MODEL, "messages": []} | ({"max_tokens": wanted} if wanted else {})
    return Upstream(None, None)._reserve(
        provider, Outgoing([provider], b"x" * 400, body, {}, "", meter)
    )


@pytest.mark.parametrize("limit", [{"per_request": 5000}, {"window": 8192}])
def test_the_limits_of_one_request_do_not_count_others(limit):
    """CKP 5.2, and of all providers together, 5.8."""
    meter = RunnerMeter(lambda: (0, 1795900000), dict)
    for _ in range(3):
        allowed(meter, quota(**limit), 4000)
    meter = RunnerMeter(lambda: (0, 1795900000), dict, 5000)
    allowed(meter, quota(**limit), 4000)
    with pytest.raises(QuotaExceeded, match="tokens_per_hour"):
        allowed(meter, quota(name="other"), 4000)


@pytest.mark.parametrize("wanted", [10001, 1 << 30, 10**12])
def test_more_than_any_answer_has_is_no_wish_for_the_default(wanted):
    meter = RunnerMeter(lambda: (0, 1795900000), dict)
    with pytest.raises(QuotaExceeded, match="tokens_per_day is 10000"):
        allowed(meter, quota(per_day=10000), wanted)


def test_requests_that_wait_for_a_secret_exceed_no_minute_together(tmp_path):
    """The place of a request is taken when it is sent."""
    opens = threading.Event()

    def secret(agent: str, name: str) -> str:
        opens.wait(60)
        return KEY

    async def inside(server):
        folder = limited(tmp_path, server, "requests_per_minute: 3")
        async with Proxied(folder, secret=secret) as it:
            token = it.token()
            waiting = [asyncio.create_task(it.post(CHAT, asked(), token)) for _ in range(6)]
            while it.gateway._proxy._open < 6:
                await asyncio.sleep(0)
            opens.set()
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            while sum(one.done() for one in waiting) < 3:
                await asyncio.sleep(0)
            assert len(server.requests) == 3
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    with Server([say("Hi.")] * 6) as server:
        asyncio.run(inside(server))


def of_stream(dialect, *events) -> tuple:
    """Return the tokens that are counted of a stream of *events*, of a request of 400 bytes."""
    reader = UsageReader(dialect, json.loads, True)
    for event in events:
        reader.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    reader.end()
    return reader.tokens(100)


def test_the_tokens_of_an_answer_that_says_nothing_sensible_are_estimated():
    """docs/providers.md: also of one that breaks off."""
    told = {"input_tokens": 10, "output_tokens": 1}
    begun = {"type": "message_start", "message": {"usage": told}}
    text = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x" * 4000}}
    end = {"type": "message_delta", "usage": {"output_tokens": 900}}
    assert of_stream(Anthropic(), begun, text) == (10, 1000)
    assert of_stream(Anthropic(), begun, text, end) == (10, 900)
    token = {"id": "chatcmpl-" + "0" * 200, "choices": [{"delta": {"content": " the"}}]}
    all_of_it = {"choices": [], "usage": {"prompt_tokens": 50, "completion_tokens": 3000}}
    assert of_stream(OpenAI(), *[token] * 3000, all_of_it) == (50, 3000)
    piece = {"choices": [{"delta": {"content": "x" * 4000}}]}
    for usage, counted in (
        ({"prompt_tokens": 50.0, "completion_tokens": 800.0}, (50, 800)),
        ({"prompt_tokens": -5, "completion_tokens": -1}, (100, 1000)),
        ({"total_tokens": 7}, (100, 1000)),
        ({}, (100, 1000)),
        ({"prompt_tokens": 10**400, "completion_tokens": 900}, (100, 900)),
    ):
        assert of_stream(OpenAI(), piece, {"choices": [], "usage": usage}) == counted, usage


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": [{"type": {}}]},
        {"tools": [{"type": "function", "function": {"name": ["x"]}}]},
        {"messages": [{"role": "assistant", "content": "", "tool_calls": 5}]},
        {"messages": [{"role": "assistant", "content": "", "tool_calls": [5]}]},
        {"tool_choice": {"type": "function", "function": 5}},
        {"stream": True, "stream_options": 5},
    ],
)
def test_a_request_of_a_wrong_form_is_400_before_any_tool_runs(tmp_path, wrong):
    async def play(it):
        status, _, said = await it.post(CHAT, {**asked(), **wrong})
        assert status == 400 and "wrong type" in message(said), said
        assert it.desk.calls == []

    with Server([calls(("desk__market", {})), say("Hi.")]) as server:
        run(play, tmp_path, server, desk=Desk())
    assert server.requests == []


def test_a_request_of_a_wrong_form_without_managed_tools_is_the_providers_to_judge(tmp_path):
    async def play(it):
        wrong = [{"role": "assistant", "content": "", "tool_calls": 5}]
        status, _, said = await it.post(CHAT, asked(messages=wrong))
        assert status == 400 and "is not iterable" in message(said)  # the provider's own words

    with Server([say("Hi.")]) as server:
        run(play, tmp_path, server)
    assert len(server.requests) == 1


@pytest.mark.parametrize("change", [{"name": {"a": 1}}, {"name": ["a"]}, None])
def test_the_next_provider_is_asked_after_an_answer_of_wrong_types(tmp_path, change):
    made = {"id": "1", "type": "function", "function": change} if change else {"type": ["x"]}
    answer = {"choices": [{"message": {"role": "assistant", "tool_calls": [made]}}]}
    odd = {"status": 200, "body": json.dumps(answer).encode()}

    async def inside(first, second):
        two_providers(tmp_path / "garden", first.endpoint, second.endpoint)
        async with Proxied(tmp_path / "garden", desk=Desk()) as it:
            status, _, body = await it.post(CHAT, asked(model="one"))
            assert status == 200 and b"By the second." in body, body

    with Server([odd]) as first, Server([say("By the second.")]) as second:
        asyncio.run(inside(first, second))


@pytest.mark.parametrize(
    "head",
    [
        b"GET /\x00 HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\xff\xfe\r\n\r\n",
    ],
)
def test_strangers_that_speak_no_http_write_no_traceback(tmp_path, capfd, head):
    async def play(it):
        port = int(it.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head)
        writer.write_eof()
        await reader.read()
        writer.close()

    with Server([]) as server:
        run(play, tmp_path, server)
    said = capfd.readouterr()
    assert "Traceback" not in said.err + said.out


def test_a_body_that_is_not_in_its_encoding_is_400(tmp_path):
    async def play(it):
        headers = {"Authorization": "Bearer " + it.token(), "Content-Encoding": "gzip"}
        async with it.http.post(it.url + CHAT, data=b"no gzip", headers=headers) as response:
            assert response.status == 400 and "the body: " in message(await response.read())

    with Server([]) as server:
        run(play, tmp_path, server)
