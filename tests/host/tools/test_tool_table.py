"""``clawlite tools``: what it says of each tool, from a manifest and from an image."""

import json

import pytest
from agents import clawlite

from clawlite.core.base.errors import ImageError
from clawlite.host.builder import tool_table
from clawlite.host.compiler import lint
from clawlite.host.manifest import manifest
from clawlite.protocols.sandbox.defaults import DEFAULTS

KEYS = [
    "name",
    "description",
    "category",
    "input_schema",
    "output_schema",
    "annotations",
    "sandbox",
    "handler",
    "timeout_ms",
    "max_output_bytes",
    "decision",
    "rule",
    "policy",
    "skill",
]
PY = 'def plain(text: str, count: int = 1) -> str:\n    """Say it."""\n    return text\n'
RULES = [
    {"id": "no-edits", "action": "deny", "scope": "tool", "match": {"name": "edit-file"}},
    {"id": "asks", "action": "require-approval", "scope": "tool", "match": {"name": "exec-shell"}},
    {
        "id": "inside",
        "action": "allow",
        "scope": "tool",
        "match": {"name": "write-file"},
        "conditions": {"path_within": "/workspace/notes"},
    },
    {
        "id": "reads",
        "action": "audit-only",
        "scope": "all",
        "match": {"annotations": {"readOnlyHint": True}},
    },
    {"id": "mine", "action": "allow", "scope": "tool", "match": {"name": "plain"}},
]
NAMES = ("read-file", "write-file", "edit-file", "exec-shell", "web-fetch")


def project(
    folder,
    autonomy="autonomous",
    endpoint="http://h/v1",
    protocol="openai-compatible",
    capabilities=None,
    more=(),
):
    files = {
        "filesystem": {
            "mode": "scoped",
            "mount_paths": [{"path": "/workspace", "permissions": "rw"}],
        },
        "shell": {"mode": "full"},
    }
    spec = {
        "identity": {"inline": {"name": "a", "personality": "You are.", "autonomy": autonomy}},
        "providers": [
            {
                "inline": {
                    "name": "p",
                    "protocol": protocol,
                    "endpoint": endpoint,
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "tools": ["claw://registry/clawlite/%s@1.0.0" % name for name in NAMES] + list(more),
        "sandbox": {
            "inline": {
                "name": "box",
                "level": "process",
                "capabilities": files if capabilities is None else capabilities,
            }
        },
        "policies": [{"inline": {"name": "p", "rules": RULES}}],
    }
    folder.mkdir(exist_ok=True)
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    (folder / "tools.py").write_text(PY)
    return folder


def rows(*args, **more) -> dict:
    return {row["name"]: row for row in tool_table.rows(str(project(*args, **more)))}


def test_every_tool_has_a_row_that_says_what_decides(tmp_path):
    found = rows(tmp_path)
    assert list(found) == [*NAMES, "plain"] and all(list(row) == KEYS for row in found.values())
    assert [(row["decision"], row["rule"]) for row in found.values()] == [
        ("allow", "reads"),
        ("depends", None),
        ("deny", "no-edits"),
        ("ask", "asks"),
        ("deny", None),
        ("allow", "mine"),
    ]
    assert (
        found["write-file"]["policy"]
        == "within /workspace/notes allowed (rule inside), else denied"
    )
    assert found["read-file"]["input_schema"]["required"] == ["path"] and found["read-file"][
        "annotations"
    ] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert found["read-file"]["sandbox"] == {
        "name": "box",
        "level": "process",
        "refuses": None,
        "limits": dict(DEFAULTS, cpu_shares=None),
        "default_limits": sorted(DEFAULTS),
    }
    assert "not declared, so each call has 1024 MB of memory" in tool_table.text(
        list(found.values())
    )
    assert found["web-fetch"]["sandbox"]["refuses"] == "capabilities.network is deny"
    assert found["plain"]["handler"] == "tools.py: plain" and found["plain"]["input_schema"][
        "required"
    ] == ["text"]
    assert (
        found["exec-shell"]["handler"] == "built in: exec-shell"
        and found["exec-shell"]["max_output_bytes"] == 65536
    )


@pytest.mark.parametrize(
    "autonomy, wanted",
    [
        ("observer", ["deny"] * 6),
        ("supervised", ["allow", "depends", "deny", "ask", "deny", "ask"]),
    ],
)
def test_autonomy_stands_above_policy(tmp_path, autonomy, wanted):
    assert [row["decision"] for row in rows(tmp_path, autonomy).values()] == wanted


def test_policy_ref_narrows(tmp_path):
    own = {
        "inline": {
            "name": "plain",
            "description": "Say it",
            "input_schema": {
                "type": "object",
                "properties": {"text": {"type": "string"}},
                "required": ["text"],
            },
            "policy_ref": "p",
        }
    }
    assert rows(tmp_path, more=[own])["plain"]["decision"] == "allow"


def test_what_the_sandbox_refuses_is_said(tmp_path):
    found = rows(tmp_path, capabilities={})
    warned = [
        warning["message"]
        for warning in lint.find(manifest.load(tmp_path))["warnings"]
        if "refuses" in warning["message"]
    ]
    assert (
        len(warned) == 5
        and "the sandbox refuses every call of exec-shell: capabilities.shell is deny, which is "
        "what is left out, too"
        in warned
    )
    assert [row["sandbox"]["refuses"] for row in found.values()] == [
        "capabilities.filesystem is deny"
    ] * 3 + ["capabilities.shell is deny", "capabilities.network is deny", None]


@pytest.mark.parametrize(
    "endpoint, protocol, known",
    [
        ("http://h/v1", "openai-compatible", True),
        ("https://h", "anthropic-native", True),
        ("builtin:reflex", "custom", False),
    ],
)
def test_an_image_alone_says_the_same_but_for_schemas_that_it_does_not_have(
    tmp_path, endpoint, protocol, known
):
    project(tmp_path, endpoint=endpoint, protocol=protocol)
    if not known:
        (tmp_path / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
        (tmp_path / "reflex.toml").write_text('[[rule]]\nwhen = ["hi"]\nsay = "hello"\n')
    built = clawlite("build", cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    whole, image = tool_table.rows(str(tmp_path)), tool_table.rows(str(tmp_path / "claw.cbor"))
    for one, other in zip(whole, image):
        offered = one["decision"] != "deny"
        if one["name"] == "plain" and not known:
            assert other.pop("input_schema") is None and one.pop("input_schema")
        assert one["name"] == "plain" or offered or other["input_schema"] == one["input_schema"]
        other.pop("output_schema"), one.pop("output_schema")
        assert one == other
    told = clawlite("tools", "claw.cbor", cwd=tmp_path).stdout
    assert ("name the manifest to see them" in told) == (not known)


def test_the_command(tmp_path):
    project(tmp_path)
    done = clawlite("tools", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    said = done.stdout.splitlines()
    assert said.pop(1).startswith("  not declared, so each call has 1024 MB of memory")
    assert said[:4] == [
        "sandbox box, level process",
        "read-file          allow    allowed and audited (rule reads)",
        "  Read a text file. Returns its text; a long one is cut.",
        "  built in: read-file, filesystem, readOnly, idempotent",
    ]
    assert "  always refused: capabilities.network is deny\n" in done.stdout
    assert "    mode" not in done.stdout and "    count: integer, optional" in done.stdout
    found = json.loads(clawlite("tools", "--json", cwd=tmp_path).stdout)
    assert [row["name"] for row in found] == [*NAMES, "plain"]
    assert clawlite("tools", "nope", cwd=tmp_path).returncode == 2


def test_an_agent_without_tools(tmp_path):
    assert clawlite("new", "e", "--template", "empty", cwd=tmp_path).returncode == 0
    assert json.loads(clawlite("tools", "--json", cwd=tmp_path / "e").stdout) == []
    assert clawlite("tools", cwd=tmp_path / "e").stdout == "this agent has no tools\n"


def test_what_is_no_image_is_told_with_its_name(tmp_path):
    (tmp_path / "x.cbor").write_bytes(b"nothing")
    with pytest.raises(ImageError) as e:
        tool_table.rows(str(tmp_path / "x.cbor"))
    assert "x.cbor" in e.value.message


def test_a_tool_that_the_agent_lacks_is_decided_by_its_name(tmp_path, monkeypatch):
    """As it would be, should the agent get such a tool, without labels and hints."""
    rules = [
        {"id": "no-gpu", "action": "deny", "scope": "tool", "match": {"name": "gpu-*"}},
        {
            "id": "notes",
            "action": "allow",
            "scope": "tool",
            "match": {"name": "keep-note"},
            "conditions": {"path_within": "/workspace/notes"},
        },
    ]
    monkeypatch.setattr(__name__ + ".RULES", rules + RULES)
    folder = str(project(tmp_path / "without"))
    assert tool_table.decision_of(folder, "gpu-burn") == {
        "name": "gpu-burn",
        "known": False,
        "decision": "deny",
        "rule": "no-gpu",
        "policy": "denied (rule no-gpu)",
    }
    assert tool_table.decision_of(folder, "other")["policy"] == "denied (no rule allows it)"
    for name in ("keep-note", "keep_note", "gpu_burn", "other"):
        having = project(tmp_path / "with")
        head = f"def {name.replace('-', '_')}(path: str) -> str:"
        (having / "tools.py").write_text(f'{PY}\n\n{head}\n    """Take it."""\n    return path\n')
        asked, known = (
            tool_table.decision_of(folder, name),
            tool_table.decision_of(str(having), name),
        )
        assert not asked.pop("known") and known.pop("known")
        asked["name"] = known["name"]
        assert asked == known
    assert known["policy"] == "denied (no rule allows it)"


def test_a_tool_of_the_agent_is_told_as_in_its_row(tmp_path):
    for name, row in rows(tmp_path / "a", autonomy="supervised").items():
        found = tool_table.decision_of(str(tmp_path / "a"), name)
        assert found == {"known": True, **{key: row[key] for key in found if key != "known"}}


def test_an_image_knows_its_own_tools_alone(tmp_path):
    folder = project(tmp_path / "a")
    assert clawlite("build", cwd=folder).returncode == 0
    image = str(folder / "claw.cbor")
    assert tool_table.decision_of(image, "edit_file")["rule"] == "no-edits"
    with pytest.raises(ImageError, match="the image has no tool gpu-burn.*manifest"):
        tool_table.decision_of(image, "gpu-burn")
    done = clawlite("tools", "--may", "gpu-burn", cwd=folder)
    assert done.stdout == "gpu-burn: denied (no rule allows it)\n" and "no such tool" in done.stderr
    told = json.loads(clawlite("tools", "--may", "exec_shell", "--json", cwd=folder).stdout)
    assert told["known"] and told["decision"] == "ask" and told["name"] == "exec-shell"
