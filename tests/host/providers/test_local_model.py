"""builtin:local in a manifest: what its image has, and what is refused (host/providers)."""

import json
import os

import cbor2
import pytest
from local_model import project

from clawlite.core.base.errors import ClawError
from clawlite.core.image.image import WIRE, Image
from clawlite.core.image.memories import stores
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.compiler import compiler, lint
from clawlite.host.manifest import manifest
from clawlite.host.projects import new


def _built(folder):
    data = compiler.build(manifest.load(str(folder))).data
    return Image(lambda offset, length: data[offset : offset + length], len(data), 1)


def _setup(image) -> dict:
    offset, length, _ = image.provider(0)[21]
    return json.loads(image.part(WIRE, offset, length))


def test_the_image_has_tools_examples_and_settings(tmp_path):
    project(tmp_path / "a", more='[local.say]\nread-soil = "{percent} %"\n')
    image = _built(tmp_path / "a")
    assert image.agent.providers == [2] and "local" in image.requires
    setup = _setup(image)
    assert [tool["name"] for tool in setup["tools"]] == ["read-soil", "water"]
    assert [tool["reads"] for tool in setup["tools"]] == [True, False]
    assert {"say": "is the soil dry", "tool": "read-soil"} in setup["examples"]
    assert setup["say"] == {"read-soil": "{percent} %"} and setup["idle_ms"] == 600000


def test_its_row_fits_the_grammar(tmp_path):
    from cddl_verifier import validate

    grammar = os.path.dirname(compiler.__file__).replace("compiler", "image") + "/image.cddl"
    project(tmp_path / "a")
    row = _built(tmp_path / "a").provider(0)
    found = validate(open(grammar).read(), cbor2.dumps(row), root_type="local-provider")
    assert found.valid, found


def test_rules_make_no_embeddings_for_a_store(tmp_path):
    endpoint = "builtin:reflex"
    path = project(tmp_path / "a")
    embedding = '{ provider_ref: "words", model: "needle-3", dimensions: 512 }'
    store = '{ name: "facts", type: "semantic", embedding: %s }' % embedding
    memory = '  memory:\n    inline:\n      name: "m"\n      stores:\n        - %s\n' % store
    path.write_text(path.read_text().replace("builtin:local", endpoint) + memory)
    with pytest.raises(ManifestErrors) as caught:
        _built(tmp_path / "a")
    line = 1 + path.read_text().splitlines().index("        - " + store)
    assert [one.text() for one in caught.value.problems if "embedding" in one.path] == [
        "%s:%d: spec.memory.inline.stores[0].embedding.provider_ref: %s makes no embeddings for "
        'stores - name a provider with protocol "openai-compatible" or the local model '
        '("builtin:local"), or remove embedding: the store is searched by words then'
        % (path, line, endpoint)
    ]


def test_it_makes_the_vectors_of_a_store_by_the_row_of_the_chain(tmp_path):
    path = project(tmp_path / "a")
    embedding = '{ provider_ref: "words", model: "needle-3", dimensions: 3072 }'
    store = '{ name: "facts", type: "semantic", embedding: %s }' % embedding
    memory = '  memory:\n    inline:\n      name: "m"\n      stores:\n        - %s\n' % store
    path.write_text(path.read_text() + memory)
    image = _built(tmp_path / "a")
    [kept] = stores(image)
    assert kept.embedding == [0, 3072] and _setup(image)["tools"] and image.agent.providers == [2]


def test_a_tool_that_policy_denies_is_not_shown(tmp_path):
    project(tmp_path / "a", approve="deny")
    with pytest.raises(ManifestErrors, match="no tool that may be called is named"):
        _built(tmp_path / "a")


@pytest.mark.parametrize(
    "line, said",
    [
        ("water", "no JSON"),
        ('{"say": "x", "tool": "water", "more": 1}', "expected an object with say and tool"),
        ('["x"]', "expected an object with say and tool"),
        ('{"say": 7, "tool": "water"}', "say: expected 1 to 200 characters"),
        ('{"say": "%s", "tool": "water"}' % ("x" * 201), "say: expected 1 to 200 characters"),
        ('{"say": "x", "tool": "watr"}', "did you mean .water.?"),
    ],
)
def test_a_wrong_example_is_told_with_its_line(tmp_path, line, said):
    project(tmp_path / "a")
    file = tmp_path / "a" / "sentences.jsonl"
    count = len(file.read_text().splitlines())
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(ManifestErrors, match=said) as caught:
        _built(tmp_path / "a")
    assert "sentences.jsonl:%d" % (count + 1) in str(caught.value)


def test_another_model_is_refused_and_a_board_behind_a_gateway_needs_no_engine(tmp_path):
    made = project(tmp_path / "a")
    made.write_text(made.read_text().replace("needle-3", "needle-9"))
    with pytest.raises(ManifestErrors, match="needle-3"):
        _built(tmp_path / "a")
    project(tmp_path / "b", more='[gateway]\nwire = "line"\n')
    image = _built(tmp_path / "b")
    assert "gateway" in image.requires and "local" not in image.requires
    assert [tool["name"] for tool in _setup(image)["tools"]] == ["read-soil", "water"]


def test_check_warns_of_heaters_that_run_unasked_and_of_few_examples(tmp_path):
    project(tmp_path / "a")
    said = [one["message"] for one in lint.find(manifest.load(str(tmp_path / "a")))["warnings"]]
    assert any("policy lets the local model run water unasked" in one for one in said)
    assert any("read-soil has 3 example sentences" in one for one in said)
    project(tmp_path / "b", approve="require-approval")
    said = [one["message"] for one in lint.find(manifest.load(str(tmp_path / "b")))["warnings"]]
    assert not any("unasked" in one for one in said)


@pytest.mark.parametrize(
    "template", "greenhouse thermostat weather freezer door bell notes files".split()
)
def test_templates_have_examples_and_sentences(tmp_path, template):
    new.new(str(tmp_path / "p"), template, local=True)
    image = _built(tmp_path / "p")
    assert image.agent.providers == [2, 0, -1]
    counts: dict = {}
    for one in _setup(image)["examples"]:
        counts[one["tool"]] = counts.get(one["tool"], 0) + 1
    assert counts and min(counts.values()) >= 4
    assert (tmp_path / "p" / "try.jsonl").is_file()


def test_local_is_refused_where_it_cannot_be(tmp_path):
    with pytest.raises(ClawError, match="no tools for the local model"):
        new.new(str(tmp_path / "p"), "chat", local=True)
    with pytest.raises(ClawError, match="--endpoint and --model name another one"):
        new.new(str(tmp_path / "p"), "greenhouse", "http://127.0.0.1:1/v1", local=True)
    with pytest.raises(ClawError, match="runs on Linux, and not on pico"):
        new.new(str(tmp_path / "p"), "greenhouse", board="pico", local=True)
