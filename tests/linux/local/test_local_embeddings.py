"""Semantic stores whose vectors the local model makes, without a network."""

import pytest
from agents import UUID, clawlite, linux
from local_model import alone, environment, needs_model, project
from memory_operator import Operator

STORE = '{ name: "notes", type: "semantic", embedding: %s, search: { strategy: "%s" } }'
EMBEDDING = '{ provider_ref: "%s", model: "%s", dimensions: %d }'
SAID = ("The pump of the greenhouse is broken", "Anna's birthday is in May", "The cat sleeps")


def made(tmp_path, strategy="vector-only", provider="words", model="needle-3", size=3072):
    path = project(tmp_path / "agent")
    embedding = EMBEDDING % (provider, model, size)
    memory = '  memory:\n    inline:\n      name: "m"\n      stores:\n        - %s\n'
    path.write_text(path.read_text() + memory % (STORE % (embedding, strategy)))
    return path


def build(path):
    return clawlite("build", cwd=path.parent)


def of_template(tmp_path):
    """The template notes, which has such a store where the local model is chosen."""
    assert clawlite("new", "notes", "--template", "notes", "--local", cwd=tmp_path).returncode == 0
    return tmp_path / "notes/claw.yaml"


@needs_model
@pytest.mark.parametrize("kind", ["vector-only", "hybrid", "template"])
def test_what_means_the_same_is_found(tmp_path, kind):
    store = "clippings" if kind == "template" else "notes"
    path = of_template(tmp_path) if kind == "template" else made(tmp_path, kind)
    done = build(path)
    assert done.returncode == 0, done.stderr
    words = linux("serve", path.parent / "claw.cbor", "--stdio")
    with Operator(words, tmp_path, env=environment(tmp_path), preexec_fn=alone).boot() as one:
        for number, text in enumerate(SAID):
            kept = one.ask(
                "claw.memory.store",
                store=store,
                entries=[{"content": text}],
                context={"request_id": UUID % number},
            )["result"]
            assert kept["stored"] == 1 and "notice" not in kept
        query = {"type": "semantic", "text": "the irrigation does not work", "top_k": 1}
        found = one.ask("claw.memory.query", store=store, query=query)["result"]
        assert [entry["content"] for entry in found["entries"]] == [SAID[0]]
        assert "notice" not in found


def test_without_the_engine_words_are_searched_and_the_notice_says_why(tmp_path):
    path = made(tmp_path, "hybrid")
    assert build(path).returncode == 0
    words = linux("serve", path.parent / "claw.cbor", "--stdio")
    env = dict(environment(tmp_path), CLAWLITE_LOCAL=str(tmp_path))
    with Operator(words, tmp_path, env=env).boot() as one:
        kept = one.ask(
            "claw.memory.store",
            store="notes",
            entries=[{"content": SAID[0]}],
            context={"request_id": UUID % 1},
        )["result"]
        assert kept["stored"] == 1 and "only words are searched" in kept["notice"]
        assert "the local model" in kept["notice"]
        query = {"type": "semantic", "text": "pump", "top_k": 1}
        found = one.ask("claw.memory.query", store="notes", query=query)["result"]
        assert [entry["content"] for entry in found["entries"]] == [SAID[0]]


@pytest.mark.parametrize(
    "how, said",
    [
        ({"size": 512}, "embedding.dimensions: expected 3072, found 512"),
        ({"model": "other"}, 'embedding.model: expected "needle-3", found "other"'),
    ],
)
def test_its_vectors_are_of_one_kind(tmp_path, how, said):
    done = build(made(tmp_path, **how))
    assert done.returncode == 2 and said in done.stderr
