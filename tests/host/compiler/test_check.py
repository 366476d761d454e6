"""``clawlite check``: what is valid CKP and cannot be built yet, and what nobody could ever
build.
"""

import hashlib
import json

import pytest

from clawlite.core.formats.encoder import encode
from clawlite.host.base.problems import ManifestErrors
from clawlite.host.builder import build, check
from clawlite.host.compiler import compiler
from clawlite.host.manifest import manifest

SWARM = {
    "topology": "leader-worker",
    "coordination": {
        "message_passing": "queue",
        "backend": "sqlite-wal",
        "concurrency": {"max_parallel": 4, "sequential_within_agent": True},
    },
    "aggregation": {"strategy": "leader-decides", "cost_aware": True, "timeout_ms": 600000},
    "agents": [
        {
            "identity_ref": "lead-analyst",
            "role": "leader",
            "provider_ref": "high-quality-llm",
            "count": 1,
        },
        {
            "identity_ref": "claw://local/identity/data-collector",
            "role": "worker",
            "provider_ref": "fast-llm",
            "count": 3,
        },
    ],
}


REMOTE = {
    "protocol": "openai-compatible",
    "endpoint": "https://example.com/v1",
    "model": "m",
    "auth": {"type": "none"},
}


def project(folder, **spec):
    """Write an agent whose spec has *spec* beside an Identity and a Provider; return its folder."""
    spec = {
        "identity": {"inline": {"personality": "x"}},
        "providers": [
            {
                "inline": {
                    "protocol": "custom",
                    "endpoint": "builtin:reflex",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        **spec,
    }
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "t"}, "spec": spec})
    )
    (folder / "clawlite.toml").write_text('reflex = "r.toml"\n')
    (folder / "r.toml").write_text('[[rule]]\nwhen = "x"\nsay = "y"\n')
    return str(folder)


def refusals(folder) -> list:
    """Return why *folder* cannot be built, a line each."""
    with pytest.raises(ManifestErrors) as caught:
        build.build_beside(folder)
    return [problem.text() for problem in caught.value.problems]


def checked(folder) -> list:
    """Return why ``check`` refuses *folder*, a line each: whatever ``build`` says."""
    with pytest.raises(ManifestErrors) as caught:
        check.check(folder)
    said = [problem.text() for problem in caught.value.problems]
    assert said == refusals(folder)
    return said


@pytest.mark.parametrize(
    "level, runtime", [("process", "gvisor"), ("none", "firecracker"), ("process", "docker")]
)
def test_5_7_a_runtime_that_is_not_here_is_refused_by_name(tmp_path, level, runtime):
    folder = project(tmp_path, sandbox={"inline": {"level": level, "runtime": runtime}})
    (said,) = refusals(folder)
    assert f'runtime "{runtime}" at level {level} is not supported' in said
    assert checked(folder) == [said]


@pytest.mark.parametrize("level", ["none", "process"])
def test_5_7_native_is_what_these_levels_have(tmp_path, level):
    check.check(project(tmp_path, sandbox={"inline": {"level": level, "runtime": "native"}}))


@pytest.mark.parametrize("level", ["wasm", "container", "vm"])
def test_what_the_schema_allows_and_this_version_does_not_do_is_refused(tmp_path, level):
    """5.7: it is valid CKP, and no agent of this version could run it."""
    folder = project(tmp_path, sandbox={"inline": {"level": level}})
    assert manifest.load(folder).sandbox.spec.level == level
    (said,) = checked(folder)
    assert f'level "{level}" is not supported by this version' in said


def test_5_9_the_example_of_the_specification_is_valid(tmp_path):
    """Its agents have other manifests: ``build`` wants the one that is built among them."""
    folder = project(tmp_path, swarm={"inline": SWARM})
    assert manifest.load(folder).swarm
    (said,) = checked(folder)
    assert "the agent of this manifest, t, is not in its swarm" in said


@pytest.mark.parametrize("reference", ["claw://local/tool/x", "claw://"])
def test_5_9_an_agent_of_a_swarm_is_an_identity(tmp_path, reference):
    swarm = dict(SWARM, agents=[{"identity_ref": reference, "role": "leader"}])
    with pytest.raises(ManifestErrors, match="identity_ref"):
        check.check(project(tmp_path, swarm={"inline": swarm}))


@pytest.mark.parametrize(
    "spec, said",
    [
        (
            {
                "channels": [
                    {
                        "inline": {
                            "type": "cron",
                            "transport": "polling",
                            "auth": {"secret_ref": "S"},
                            "trigger": {"schedule": "61 * * * *"},
                        }
                    }
                ]
            },
            "61",
        ),
        (
            {
                "memory": {
                    "inline": {
                        "stores": [{"name": "files", "type": "workspace", "path": "/x/{nope}/"}]
                    }
                }
            },
            "nope",
        ),
    ],
)
def test_what_nobody_could_ever_build_is_an_error(tmp_path, spec, said):
    """5.3 and 5.6: a schedule or a path that means nothing."""
    with pytest.raises(ManifestErrors, match=said):
        check.check(project(tmp_path, **spec))


@pytest.mark.parametrize(
    "endpoint, said",
    [
        ("http://example.com:99999/v1", "out of range"),
        ("http://example.com:none/v1", "none"),
        ("https://me:c4n4ry@example.com/v1", "a key or password has no place in a URL"),
        ("http://example.com:0/v1", "a port from 1 to 65535"),
    ],
)
def test_5_2_an_endpoint_that_is_none_is_an_error(tmp_path, endpoint, said):
    one = dict(REMOTE, endpoint=endpoint)
    with pytest.raises(ManifestErrors, match=said) as caught:
        check.check(project(tmp_path, providers=[{"inline": one}]))
    assert "c4n4ry" not in str(caught.value)


@pytest.mark.parametrize(
    "endpoint",
    [
        "grpc://example.com",
        "https://example.com/v1?version=2",
        "https://example.com/v1?api-version=2024-10-21&key=secret",
        "https://example.com/v1?api-version=2024-10-21#x",
    ],
)
def test_5_2_an_endpoint_that_this_version_does_not_reach_is_refused(tmp_path, endpoint):
    one = dict(REMOTE, endpoint=endpoint)
    (said,) = checked(project(tmp_path, providers=[{"inline": one}]))
    assert "endpoint" in said


def test_a_tool_that_delegates_needs_a_swarm(tmp_path):
    folder = project(tmp_path, tools=["claw://registry/clawlite/delegate@1.0.0"])
    assert "this agent is in no swarm that could do what delegate asks" in "\n".join(
        refusals(folder)
    )


def test_5_10_operations_of_swarms_are_a_warning_where_there_is_none(tmp_path):
    folder = project(
        tmp_path,
        telemetry={"inline": {"exporters": [{"type": "console"}], "events": {"swarm_ops": True}}},
    )
    build.build(str(folder))
    said = [one["message"] for one in check.check(folder)["warnings"]]
    assert "swarm_ops tells nothing: this agent is in no swarm" in said


def test_runtime_profile_2_an_unnamed_identity_has_the_name_of_its_claw(tmp_path):
    from clawlite.host.manifest import manifest

    assert manifest.load(project(tmp_path)).identity.name == "t"


def test_the_digest_of_sources_is_that_of_their_cbor():
    sources = [("a%d.yaml" % size, b"x" * size) for size in (0, 1, 23, 24, 255, 256, 65536)]
    whole = b"".join(encode([name, data]) for name, data in sources)
    assert compiler._digest(sources) == hashlib.sha256(whole).digest()
