"""What the proxy holds at once, and how long what it reads and keeps may be."""

import asyncio
import functools
import json
import threading
import tracemalloc

import pytest
from llm_server import FAULTS, MODEL, Server, error, say
from proxies import Desk, run

from clawlite.host.gateway import store as stores
from clawlite.host.proxy import continuity, proxy, upstream
from clawlite.host.proxy.openai import OpenAI

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
APIS = [("openai-compatible", "openai", CHAT), ("anthropic-native", "anthropic", MESSAGES)]


def asked(text: str = "how is it?", **more) -> dict:
    return {
        "model": MODEL,
        "max_tokens": 100,
        "messages": [{"role": "user", "content": text}],
        **more,
    }


def message(answer: bytes) -> str:
    return json.loads(answer)["error"]["message"]


def test_one_request_too_many_is_429_and_the_next_has_a_place_again(tmp_path, monkeypatch):
    monkeypatch.setattr(proxy, "MAX_REQUESTS", 3)
    go = threading.Event()

    async def play(it):
        ask = functools.partial(it.post, CHAT, token=it.token())
        waiting = [asyncio.create_task(ask(asked(stream=True))) for _ in range(3)]
        while it.gateway._proxy._open < 3:
            await asyncio.sleep(0)
        status, _, body = await ask(asked())
        assert status == 429 and message(body) == "3 requests are under way already - try later"
        go.set()
        assert [(await each)[0] for each in waiting] == [200] * 3
        status, _, body = await ask(asked())
        assert status == 200 and b"Hi." in body

    waits = {"stream": [b"data: {}\n\n", go, b"data: [DONE]\n\n"]}
    with Server([waits] * 3 + [say("Hi.")]) as server:
        run(play, tmp_path, server)


@pytest.mark.parametrize("protocol, api, path", APIS)
def test_50_mb_pass_through_and_are_not_kept(tmp_path, protocol, api, path):
    async def play(it):
        tracemalloc.start()
        try:
            async with it.http.post(
                it.url + path, json=asked(), headers={"Authorization": "Bearer " + it.token()}
            ) as response:
                size = 0
                async for piece in response.content.iter_any():
                    size += len(piece)
            assert response.status == 200 and size > 50 << 20
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()
        assert await it.rows("SELECT outcome FROM history") == [("ok",)]

    with Server([FAULTS["huge"]], api=api) as server:
        run(play, tmp_path, server, protocol)


@pytest.mark.parametrize("protocol, api, path", APIS)
def test_50_mb_that_are_read_here_are_refused(tmp_path, protocol, api, path):
    """With managed tools an answer is read here, as far as MAX_ANSWER; nothing is called."""
    desk = Desk()

    async def play(it):
        status, _, body = await it.post(path, asked())
        assert status == 502 and f"longer than {upstream.MAX_ANSWER} bytes" in message(body)

    with Server([FAULTS["huge"]] * 2, api=api) as server:
        run(play, tmp_path, server, protocol, desk=desk)
    assert desk.calls == []


def test_a_long_refusal_is_cut(tmp_path):
    """Its beginning says why; it is no JSON then, and the error is the proxy's own."""
    refusal = error(400, "No. " + "x" * (1 << 20))

    async def play(it):
        status, _, body = await it.post(CHAT, asked())
        assert status == 400 and len(body) <= upstream.MAX_REFUSAL

    with Server([refusal]) as server:
        run(play, tmp_path, server)


def test_hidden_rounds_of_a_runner_are_so_many_and_so_long(tmp_path):
    """The oldest go first; those of another runner stay."""
    one, other, dialect = continuity.Continuity(), "other", OpenAI()
    talk = lambda number: [{"role": "user", "content": f"question {number}"}]
    one.note_pending(other, dialect, talk(0), talk(0))
    for number in range(continuity.KEPT + 2):
        one.note_pending("runner", dialect, talk(number), talk(number))
    found = [one.pending_rounds("runner", dialect, talk(number)) for number in range(3)]
    assert found == [[], [], talk(2)] and one.pending_rounds(other, dialect, talk(0)) == talk(0)
    long = [{"role": "tool", "content": "x" * (continuity.KEPT_BYTES // 2)}]
    for number in range(2):
        one.note_pending("runner", dialect, talk(number), long)
    found = [one.pending_rounds("runner", dialect, talk(number)) for number in range(3)]
    assert found == [[], long, []]


def test_the_rounds_on_the_disk_are_so_many(tmp_path):
    async def play(it):
        for number in range(stores.MAX_HIDDEN + 2):
            it.gateway.store.hide("runner", f"anchor {number}", "", "[]")
        it.gateway.store.hide("other", "anchor 0", "", "[]")
        rows = await it.rows("SELECT runner, anchor FROM hidden ORDER BY id")
        assert len(rows) == stores.MAX_HIDDEN + 1
        assert rows[0] == ("runner", "anchor 2") and rows[-1] == ("other", "anchor 0")

    with Server([]) as server:
        run(play, tmp_path, server)
