"""What a document must have (CKP 5 to 6.1), field by field: the smallest valid one of its kind
passes, each that lacks one field does not.
"""

import copy
import json

import pytest
from ckp.static import MINIMAL

from clawlite.core.image.image import SUPERVISED
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.image.image_file import AUTONOMY
from clawlite.host.manifest import manifest

AUTH = {"secret_ref": "T"}
PROVIDER = MINIMAL["spec"]["providers"][0]["inline"]
SMALLEST = {
    "Identity": ("identity", {"personality": "x"}),
    "Provider": ("providers", PROVIDER),
    "Channel": ("channels", {"type": "slack", "transport": "websocket", "auth": AUTH}),
    "Tool": ("tools", {"description": "d", "input_schema": {"type": "object"}}),
    "Skill": ("skills", {"description": "d", "tools_required": ["t"], "instruction": "i"}),
    "Memory": ("memory", {"stores": [{"name": "s", "type": "conversation"}]}),
    "Sandbox": ("sandbox", {"level": "none"}),
    "Policy": ("policies", {"rules": [{"id": "r", "action": "deny", "scope": "all"}]}),
    "Swarm": (
        "swarm",
        {
            "topology": "peer-to-peer",
            "agents": [{"identity_ref": "i", "role": "peer"}],
            "aggregation": {"strategy": "merge"},
            "coordination": {
                "message_passing": "direct",
                "backend": "in-process",
                "concurrency": {"max_parallel": 1},
            },
        },
    ),
    "Telemetry": ("telemetry", {"exporters": [{"type": "console"}]}),
}
LISTS = ("providers", "channels", "tools", "skills", "policies")


def written(folder, kind: str, spec: dict, document: dict = None):
    """Write a manifest with one document of *kind* in a file of its own; return the folder."""
    slot = SMALLEST[kind][0]
    root = copy.deepcopy(MINIMAL)
    root["spec"]["identity"]["inline"]["name"] = "i"
    if kind == "Skill":
        root["spec"]["tools"] = [{"inline": dict(SMALLEST["Tool"][1], name="t")}]
    root["spec"][slot] = ["./one.yaml"] if slot in LISTS else "./one.yaml"
    document = document or {"claw": "0.3.0", "kind": kind, "metadata": {"name": "i"}, "spec": spec}
    (folder / "claw.yaml").write_text(json.dumps(root))
    (folder / "one.yaml").write_text(json.dumps(document))
    return folder


def refused(folder) -> str:
    with pytest.raises(ManifestErrors) as caught:
        manifest.load(folder)
    return str(caught.value)


@pytest.mark.parametrize("kind", SMALLEST)
def test_the_smallest_of_each_kind_is_valid(tmp_path, kind):
    manifest.load(written(tmp_path, kind, SMALLEST[kind][1]))


@pytest.mark.parametrize(
    "kind, field", [(kind, field) for kind, (_, spec) in SMALLEST.items() for field in spec]
)
def test_each_required_field_is_required(tmp_path, kind, field):
    spec = {key: value for key, value in SMALLEST[kind][1].items() if key != field}
    assert '"%s"' % field in refused(written(tmp_path, kind, spec))


@pytest.mark.parametrize(
    "kind, field", [(kind, field) for kind, (_, spec) in SMALLEST.items() for field in spec]
)
def test_each_required_field_is_required_inline(tmp_path, kind, field):
    slot, spec = SMALLEST[kind]
    inline = {"inline": {key: value for key, value in spec.items() if key != field}}
    root = copy.deepcopy(MINIMAL)
    root["spec"][slot] = [inline] if slot in LISTS else inline
    (tmp_path / "claw.yaml").write_text(json.dumps(root))
    assert '"%s"' % field in refused(tmp_path)


@pytest.mark.parametrize("field", ["claw", "kind", "metadata"])
def test_the_envelope_is_required(tmp_path, field):
    document = {
        "claw": "0.3.0",
        "kind": "Tool",
        "metadata": {"name": "t"},
        "spec": SMALLEST["Tool"][1],
    }
    del document[field]
    assert '"%s"' % field in refused(written(tmp_path, "Tool", {}, document))


@pytest.mark.parametrize(
    "change",
    [{"claw": "banana"}, {"claw": "0.3"}, {"kind": "Tol"}, {"kind": "tool"}, {"metadata": {}}],
)
def test_the_envelope_is_checked(tmp_path, change):
    document = {
        "claw": "0.3.0",
        "kind": "Tool",
        "metadata": {"name": "t"},
        "spec": SMALLEST["Tool"][1],
    }
    assert "one.yaml:" in refused(written(tmp_path, "Tool", {}, {**document, **change}))


@pytest.mark.parametrize(
    "kind, spec",
    [
        ("Identity", {"personality": ""}),
        ("Memory", {"stores": []}),
        ("Policy", {"rules": []}),
        ("Telemetry", {"exporters": []}),
        *[
            ("Provider", dict(PROVIDER, auth={"type": auth}))
            for auth in ("bearer", "api-key-header", "oauth2")
        ],
        *[
            ("Telemetry", {"exporters": [{"type": exporter}]})
            for exporter in ("otlp", "webhook", "file", "sqlite")
        ],
        *[
            ("Telemetry", {"exporters": [{"type": "console"}], "sampling": {"rate": rate}})
            for rate in (-0.1, 1.1, "1")
        ],
    ],
)
def test_what_must_not_be_empty_or_out_of_range(tmp_path, kind, spec):
    assert "one.yaml:" in refused(written(tmp_path, kind, spec))


@pytest.mark.parametrize("rate", [0, 0.0, 1, 1.0])
def test_the_ends_of_a_range_belong_to_it(tmp_path, rate):
    manifest.load(
        written(
            tmp_path, "Telemetry", {"exporters": [{"type": "console"}], "sampling": {"rate": rate}}
        )
    )


def test_autonomy_is_supervised_unless_it_says_otherwise(tmp_path):
    (tmp_path / "claw.yaml").write_text(json.dumps(MINIMAL))
    found = manifest.load(tmp_path)
    assert found.identity.spec.autonomy == "supervised"
    assert AUTONOMY.index("supervised") == SUPERVISED
