"""Embeddings through a provider: a real agent, a real server on loopback."""

import json
import os
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
from agents import UUID, clawlite, linux
from llm_server import FAULTS, Server, error
from memory_operator import Operator
from memory_world import World, store
from run_core_micropython import ROOT

from clawlite.core.base.errors import ClawError, ProviderError
from clawlite.core.image.memories import SEMANTIC, VECTOR
from clawlite.linux.memory import search as memory_search
from clawlite.linux.memory.embeddings import Embedder, _vectors_of

KEY = "sk-canary-5511aa"
# what this model knows of words
MEANING = {"pump": 0, "irrigation": 0, "lamp": 1, "light": 1, "cat": 2}


def vector(text: str) -> list:
    found = [0.01, 0.01, 0.01]
    for word in text.split():
        if word in MEANING:
            found[MEANING[word]] += 1
    return found


def embed(request) -> dict:
    """A step of the server: what an openai-compatible API answers."""
    data = [
        {"object": "embedding", "index": n, "embedding": vector(text)}
        for n, text in enumerate(request.body["input"])
    ]
    return {
        "body": {
            "object": "list",
            "data": data[::-1],
            "model": request.body["model"],
            "usage": {"prompt_tokens": 5, "total_tokens": 5},
        }
    }


class Agent(Operator):
    def put(self, text, number: int, store: str = "notes", **entry) -> dict:
        return self.ask(
            "claw.memory.store",
            store=store,
            entries=[dict(entry, content=text)],
            context={"request_id": UUID % number},
        )

    def search(self, text: str, store: str = "notes", **query) -> dict:
        return self.ask(
            "claw.memory.query", store=store, query=dict(query, type="semantic", text=text)
        )


def agent(
    tmp_path, server, limits=None, retry=None, auth="bearer", settings: str = "", **search
) -> Agent:
    """Build and start an agent with three stores whose vectors *server* makes."""
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    made = {
        "name": "vectors",
        "protocol": "openai-compatible",
        "endpoint": server.endpoint,
        "model": "chat",
        "auth": {"type": auth, "secret_ref": "KEY"},
        "retry": retry or {"max_attempts": 2, "backoff": "constant", "initial_delay_ms": 1},
    }
    if limits:
        made["limits"] = limits
    embedding = {"provider_ref": "vectors", "model": "embed-small", "dimensions": 3}
    stores = [
        {
            "name": "notes",
            "type": "semantic",
            "embedding": embedding,
            "search": dict({"strategy": "hybrid"}, **search),
        },
        {
            "name": "strict",
            "type": "semantic",
            "embedding": embedding,
            "search": {"strategy": "vector-only"},
        },
    ]
    spec = {
        "identity": {"inline": {"name": "i", "personality": "x"}},
        "memory": {"inline": {"stores": stores}},
        "providers": [
            {
                "inline": {
                    "name": "reflex",
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "r",
                    "auth": {"type": "none"},
                }
            },
            {"inline": made},
        ],
    }
    (project / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    (project / "clawlite.toml").write_text('reflex = "reflex.toml"\n' + settings)
    (project / "reflex.toml").write_text('[[rule]]\nwhen = ["hello"]\nsay = "Hello."\n')
    done = clawlite("build", cwd=project)
    assert done.returncode == 0, done.stderr
    return Agent(
        linux("serve", project / "claw.cbor", "--stdio"), tmp_path, env={"KEY": KEY}
    ).boot()


def contents(reply: dict) -> list:
    return [entry["content"] for entry in reply["result"]["entries"]]


@pytest.mark.parametrize("fusion", ["reciprocal-rank", "linear-combination"])
def test_what_means_the_same_is_found_without_its_words(tmp_path, fusion):
    with Server(embed) as server, agent(tmp_path, server, fusion=fusion) as one:
        for number, text in enumerate(("the pump runs", "the lamp is blue", "a cat sleeps")):
            assert one.put(text, number)["result"]["stored"] == 1
        assert contents(one.search("irrigation", top_k=1)) == ["the pump runs"], "by its meaning"
        assert contents(one.search("blue", top_k=1)) == ["the lamp is blue"], "by its word"
        assert contents(one.search("light sleeps", top_k=2))[:2] in (
            ["a cat sleeps", "the lamp is blue"],
            ["the lamp is blue", "a cat sleeps"],
        )
        assert "notice" not in one.search("pump")["result"]
        first = server.requests[0]
        assert (
            first.target == "/v1/embeddings" and first.headers["authorization"] == "Bearer " + KEY
        )
        assert first.body == {
            "model": "embed-small",
            "input": ["the pump runs"],
            "encoding_format": "float",
        }


def test_vectors_alone_are_searched_where_the_store_says_so(tmp_path):
    with Server(embed) as server, agent(tmp_path, server, auth="api-key-header") as one:
        one.put("the pump runs", 1, "strict")
        one.put({"text": "cat", "age": 3}, 2, "strict")
        assert contents(one.search("irrigation", "strict", top_k=1)) == ["the pump runs"]
        assert server.requests[0].headers["api-key"] == KEY and server.requests[1].body[
            "input"
        ] == ['{"text":"cat","age":3}']


def test_many_texts_are_few_requests_and_own_vectors_none(tmp_path):
    with Server(embed) as server, agent(tmp_path, server) as one:
        entries = [{"content": "cat %d" % n} for n in range(130)] + [
            {"content": "own", "vector": [0, 1, 0]}
        ]
        assert (
            one.ask(
                "claw.memory.store",
                store="notes",
                entries=entries,
                context={"request_id": UUID % 1},
            )["result"]["stored"]
            == 131
        )
        assert [len(request.body["input"]) for request in server.requests] == [64, 64, 2]
        assert contents(one.search("light", top_k=1)) == ["own"]
        assert (
            len(server.requests) == 4
            and one.search("zzz", vector=[0, 1, 0])["result"]["entries"]
            and len(server.requests) == 4
        )
        assert (
            one.ask(
                "claw.memory.store",
                store="notes",
                entries=entries,
                context={"request_id": UUID % 1},
            )["result"]["ids"][-1]
            == "entry-1-131"
        ), "a retry is known"


@pytest.mark.parametrize(
    "fault", ["html 502", "unauthorized", "empty", "cut json", "reset", "broken stream"]
)
def test_a_provider_that_fails_is_a_notice_or_an_error(tmp_path, fault):
    with (
        Server(
            lambda request: FAULTS[fault](request) if callable(FAULTS[fault]) else FAULTS[fault]
        ) as server,
        agent(tmp_path, server) as one,
    ):
        stored = one.put("the pump runs", 1)["result"]
        assert (
            stored["stored"] == 1
            and stored["notice"].startswith("provider vectors: ")
            and stored["notice"].endswith("; only words are searched")
        )
        found = one.search("pump")
        assert (
            contents(found) == ["the pump runs"]
            and "only words are searched" in found["result"]["notice"]
        )
        for reply in (one.put("x", 2, "strict"), one.search("x", "strict")):
            assert reply["error"]["code"] == -32020 and reply["error"]["message"].startswith(
                "provider vectors: "
            ), reply
        assert (
            contents(
                one.ask(
                    "claw.memory.query",
                    store="strict",
                    query={
                        "type": "time-range",
                        "time_range": {"from": "2000-01-01", "to": "2100-01-01"},
                    },
                )
            )
            == []
        )
        assert (
            one.ask("claw.status")["result"]["state"] == "READY"
            and KEY not in one.text() + one.errors()
        )


def test_a_failure_that_passes_is_tried_again(tmp_path):
    steps = [error(503, "Overloaded."), embed, embed]
    with (
        Server(
            lambda request: steps.pop(0) if isinstance(steps[0], dict) else steps.pop(0)(request)
        ) as server,
        agent(tmp_path, server) as one,
    ):
        assert "notice" not in one.put("the pump runs", 1)["result"] and len(server.requests) == 2
        assert contents(one.search("irrigation")) == ["the pump runs"]


def test_entries_of_an_outage_are_given_their_vectors_later(tmp_path):
    down = [True]
    with (
        Server(lambda request: error(503, "Overloaded.") if down else embed(request)) as server,
        agent(tmp_path, server, retry={"max_attempts": 1}) as one,
    ):
        for number in range(70):
            assert (
                "only words are searched"
                in one.put("cat %d" % number if number else "the pump runs", number)["result"][
                    "notice"
                ]
            )
        down.clear()
        server.requests.clear()
        assert "notice" not in one.put("a lamp", 100)["result"]
        assert [len(request.body["input"]) for request in server.requests] == [1, 64], (
            "64 with each request, the newest first"
        )
        one.search("cat")
        assert [len(request.body["input"]) for request in server.requests[2:]] == [1, 6]
        assert (
            contents(one.search("irrigation", top_k=1)) == ["the pump runs"]
            and len(server.requests) == 5
        ), "all have theirs"
        one.put("light", 101)
        assert len(server.requests) == 6


def test_a_text_that_the_provider_does_not_take_is_not_asked_for_each_time(tmp_path):
    def step(request):
        bad = any(text in ("", "bad") for text in request.body["input"])
        return error(400, "Invalid input.") if bad else embed(request)

    with Server(step) as server, agent(tmp_path, server) as one:
        assert "notice" not in one.put("", 1)["result"] and not server.requests, (
            "nothing means nothing"
        )
        assert "Invalid input" in one.put("bad", 2)["result"]["notice"]
        for number in range(3, 9):
            assert "notice" not in one.put("cat %d" % number, number)["result"]
        assert [request.body["input"] for request in server.requests] == [
            ["bad"],
            ["a"],  # which every model takes
            ["cat 3"],
            ["bad"],
        ] + [["cat %d" % n] for n in range(4, 9)]
        assert contents(one.search("bad", top_k=1)) == ["bad"], "by its word"


def test_limits_of_the_provider_hold(tmp_path):
    with Server(embed) as server, agent(tmp_path, server, limits={"tokens_per_day": 30}) as one:
        assert "notice" not in one.put("cat", 1)["result"]
        assert "tokens_per_day is 30" in one.put("cat " * 50, 2)["result"]["notice"]
        reply = one.put("cat " * 50, 3, "strict")
        assert (
            reply["error"]["code"] == -32021
            and reply["error"]["data"]["limit"] == "tokens_per_day"
            and len(server.requests) == 1
        )


def test_a_secret_that_is_missing_is_said(tmp_path):
    with Server(embed) as server, agent(tmp_path, server) as one:
        one.end()
        one.process.wait()
        again = Agent(linux("serve", tmp_path / "project" / "claw.cbor", "--stdio"), tmp_path)
        with again:
            again.boot()
            assert (
                "secret KEY: not found" in again.put("x", 1, "strict")["error"]["message"]
                and not server.requests
            )


@pytest.mark.parametrize(
    "answer, said",
    [
        ({}, "holds 0 vectors, and 2 were asked for"),
        ({"data": [{"index": 0, "embedding": [1, 2, 3]}]}, "holds 1 vectors, and 2"),
        (
            {"data": [{"index": 0, "embedding": [1, 2]}]},
            "have 2 numbers, and the store says dimensions: 3",
        ),
        ({"data": [{"index": 2, "embedding": [1, 2, 3]}]}, "no embeddings"),
        ({"data": [{"index": True, "embedding": [1, 2, 3]}]}, "no embeddings"),
        ({"data": ["x"]}, "no embeddings"),
        ({"data": [{"embedding": "AAAA"}]}, "no embeddings"),
        ({"data": [{"embedding": [1, 2, None]}] * 2}, "is not a vector"),
        ({"data": [{"embedding": [0, 0, 0]}] * 2}, "is not a vector"),
        ({"data": [{"embedding": [1, 2, float("inf")]}] * 2}, "is not a vector"),
        ({"data": [{"embedding": [1, 2, True]}] * 2}, "is not a vector"),
        ({"data": [{"embedding": []}] * 2}, "is not a vector"),
    ],
)
def test_an_answer_that_is_none_is_refused(answer, said):
    with pytest.raises(ProviderError, match=said):
        _vectors_of(answer, 2, 3)


@pytest.mark.parametrize("secret", [None, "key"])
def test_what_lacks_a_vector_is_known_and_learns_it(tmp_path, secret):
    world, one = World(tmp_path), store(type=SEMANTIC, secret=secret)
    world.put(one, "first")
    world.put(one, "second", vector=[1.0, 0.0])
    world.put(one, {"third": 3})
    lacking = world.do("lacking", one, "", 10)
    assert [text for _, text in lacking] == ['{"third":3}', "first"] and world.do(
        "lacking", one, "", 1
    ) == lacking[:1]
    world.do(
        "learn",
        one,
        "",
        [(id, text, [0.0, number + 1.0]) for number, (id, text) in enumerate(lacking)]
        + [(lacking[0][0] + 1, "", [1.0, 1.0])],
    )
    assert (
        world.do("lacking", one, "", 10) == [] and world.rows("SELECT count(*) FROM vectors") == 3
    )
    assert (
        set(world.search(one, "", 2, [0.0, 1.0])[0]) == set({"third": 3})
        and world.do("lacking", one, "nobody", 10) == []
    )
    world.do("replace", one, "", (lacking[0][0], "a summary"))
    assert [text for _, text in world.do("lacking", one, "", 10)] == ["a summary"], (
        "its vector is not that of what it stands for"
    )
    world.do("learn", one, "", [(*lacking[0], [1.0, 0.0])])
    assert [text for _, text in world.do("lacking", one, "", 10)] == ["a summary"], (
        "nor one that was asked for before it stood there"
    )
    world.stores.close()


# -- how many are compared, and by whom


@pytest.mark.parametrize("more, fails", [(0, False), (1, True)])
def test_no_more_vectors_are_compared_than_is_said(tmp_path, monkeypatch, more, fails):
    monkeypatch.setattr(memory_search, "MAX_VECTORS", 4)
    monkeypatch.setattr(memory_search, "MAX_COMPARED", 4)
    world = World(tmp_path)
    alone, both = store("a", type=SEMANTIC, search=VECTOR), store("b", type=SEMANTIC)
    for number in range(4 + more):
        for one in (alone, both):
            world.put(one, "word %d" % number, vector=[1.0, number])
    found = world.do("query", both, "", ("semantic", "word", 10, [1.0, 0.0]))
    assert ("no more are compared" in found.get("notice", "")) == fails and len(
        found["entries"]
    ) == 4 + more
    if fails:
        with pytest.raises(
            ClawError,
            match="store a has more than 4 vectors in this part, and no more are compared",
        ) as raised:
            world.search(alone, "", 10, [1.0, 0.0])
        assert raised.value.code == -32031 and "retention.max_entries" in raised.value.hint
    else:
        assert len(world.search(alone, "", 10, [1.0, 0.0])) == 4
    world.stores.close()


COMPARE = """import json, sys
sys.path[:0] = sys.argv[2:]
from memory_world import World, store
from clawlite.core.image.memories import SEMANTIC
world, one = World(sys.argv[1]), store(type=SEMANTIC)
for n in range(50):
    world.put(one, str(n), vector=[1.0, n % 7 - 3, n / 10])
world.put(one, "other size", vector=[1.0, 2.0])
is_there = world.stores._db.compares_vectors()
found = [[entry["content"], entry["score"]] for entry in world.found(one, "semantic", "", 8, [0.3, 1.0, 2.0])]
print(json.dumps([is_there, found]))"""  # noqa: E501


def test_sqlite_vec_says_what_python_says(tmp_path):
    """Each Python here that runs this code is asked, with the extension and without it; not
    every one loads extensions.
    """
    import sqlite_vec

    beside = tmp_path / "beside"
    beside.mkdir()
    os.symlink(Path(sqlite_vec.__file__).parent, beside / "sqlite_vec")
    answers = []
    for number, python in enumerate(
        dict.fromkeys([sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"])
    ):
        for more in ((), (str(beside),)):
            folder = tmp_path / ("%d%d" % (number, len(more)))
            if (
                os.path.exists(python)
                and subprocess.run(
                    [python, "-c", "import sys, sqlite3; sys.exit(sys.version_info < (3, 11))"]
                ).returncode
                == 0
            ):
                done = subprocess.run(
                    [
                        python,
                        "-B",
                        "-c",
                        COMPARE,
                        str(folder),
                        str(ROOT),
                        str(ROOT / "tests" / "helpers"),
                        *more,
                    ],
                    capture_output=True,
                    text=True,
                )
                assert done.returncode == 0, done.stderr
                answers.append(json.loads(done.stdout))
    assert len({json.dumps(found) for _, found in answers}) == 1 and len(answers[0][1]) == 8, (
        answers
    )


def test_a_vector_of_any_length_but_none_has_a_direction():
    for one in ([1e-200, 0.0], [5e-324, 0.0], [3e300, 0.0], [1.0, 0.0]):
        assert memory_search.pack(one) == array("f", [1.0, 0.0]).tobytes()
    half = array("f")
    half.frombytes(memory_search.pack([1e308, 1e308]))
    assert abs(half[0] - 0.5**0.5) < 1e-6 and half[0] == half[1]


# -- texts that a server refuses


def picky(most_characters: int, most_texts: int, status: int = 400, words: str = "no"):
    """Return a server that takes texts of so many characters, none empty, and so many at once."""

    def step(request):
        texts = request.body["input"]
        if len(texts) > most_texts:
            return error(413, "batch size %d" % len(texts))
        if any(len(text) > most_characters or not text.strip() for text in texts):
            return error(status, words)
        return embed(request)

    return step


def put_all(asked, number: int, *texts, store: str = "notes") -> dict:
    return asked.ask(
        "claw.memory.store",
        store=store,
        entries=[{"content": text} for text in texts],
        context={"request_id": UUID % number},
    )


@pytest.mark.parametrize(
    "status, words", [(400, "no"), (422, "no"), (500, "the input is too large to process")]
)
def test_one_text_that_is_refused_costs_its_neighbours_nothing(tmp_path, status, words):
    long = "word " * 1000
    with Server(picky(2000, 64, status, words)) as server, agent(tmp_path, server) as asked:
        stored = put_all(asked, 1, long, "pump", "lamp", " ")
        notice = stored["result"]["notice"]
        assert '"word word' in notice and "its first 1250 characters" in notice
        assert "no vector is made of" in notice
        assert contents(asked.search("irrigation"))[:1] == ["pump"]
        assert contents(asked.search("light"))[:1] == ["lamp"]
        before = len(server.requests)
        assert "notice" not in put_all(asked, 2, "cat")["result"]
        assert len(server.requests) - before <= 2


@pytest.mark.parametrize("odd", [[None] * 3, [0, 0, 0], []])
def test_one_text_without_a_vector_in_an_answer_costs_its_neighbours_nothing(tmp_path, odd):
    """llama.cpp has null for a number that is none, and other servers zeros."""

    def step(request):
        answer = embed(request)
        for one in answer["body"]["data"]:
            if request.body["input"][one["index"]] == "odd":
                one["embedding"] = odd
        return answer

    with Server(step) as server, agent(tmp_path, server) as asked:
        notice = put_all(asked, 1, "pump", "odd", "lamp")["result"]["notice"]
        assert 'no vector is made of "odd": its answer has something else' in notice
        assert contents(asked.search("irrigation"))[:1] == ["pump"]
        assert contents(asked.search("light"))[:1] == ["lamp"]
        assert contents(asked.search("odd"))[:1] == ["odd"]


def test_a_refusal_inside_of_an_answer_is_one(tmp_path):
    def step(request):
        if "odd" in request.body["input"]:
            return {"body": {"error": {"message": "too many tokens", "type": "x", "code": None}}}
        return embed(request)

    with Server(step) as server, agent(tmp_path, server) as asked:
        notice = put_all(asked, 1, "pump", "odd", "lamp")["result"]["notice"]
        assert 'no vector is made of "odd"' in notice and "too many tokens" in notice
        assert contents(asked.search("irrigation"))[:1] == ["pump"]


def test_a_batch_that_takes_too_long_is_smaller_the_next_time():
    class Silent(Embedder):
        def __init__(self):
            self.asked = []

        def embed(self, texts, size, meter):
            self.asked.append(len(texts))
            if len(texts) > 10:
                raise ProviderError("provider p: it said nothing for 60 s (tried 1 of 3)")
            return [[1.0]] * len(texts)
            yield

    one, texts = Silent(), ["text"] * 40
    for _ in range(2):
        with pytest.raises(ProviderError):
            outcome(one.embed_each(texts[: one.most_texts], 1, None, []))
    assert outcome(one.embed_each(texts[: one.most_texts], 1, None, [])) == [[1.0]] * 10
    assert one.asked == [40, 20, 10]


def outcome(generator):
    """Return what a generator without effects returns."""
    try:
        next(generator)
    except StopIteration as e:
        return e.value


def test_batches_fit_the_server(tmp_path):
    texts = ["cat %d" % number for number in range(12)]
    with Server(picky(2000, 5)) as server, agent(tmp_path, server) as asked:
        assert "notice" not in put_all(asked, 1, *texts)["result"]
        before = len(server.requests)
        assert "notice" not in put_all(asked, 2, *["dog %d" % n for n in range(12)])["result"]
        sizes = [len(request.body["input"]) for request in server.requests[before:]]
        assert max(sizes) <= 5 and sizes.count(3) >= 4


def test_a_server_that_refuses_everything_is_asked_twice(tmp_path):
    with Server(lambda request: error(400, "no such model")) as server:
        with agent(tmp_path, server) as asked:
            stored = put_all(asked, 1, "pump", "lamp")
            assert "only words are searched" in stored["result"]["notice"]
            assert len(server.requests) == 2
