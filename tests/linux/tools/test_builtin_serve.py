"""Built-in tools through the whole pipeline of an operator's agent, at level none."""

import itertools
import json
import os

import pytest
from agents import Agent, clawlite, linux, tool_call

SANDBOX_DENIED, POLICY_DENIED, PARAMS = -32010, -32011, -32602
RULES = [
    {
        "id": "private",
        "action": "deny",
        "scope": "all",
        "match": {"category": "filesystem"},
        "conditions": {"path_within": "{ws}/private"},
    },
    {
        "id": "notes",
        "action": "allow",
        "scope": "all",
        "match": {"name": "write_file"},
        "conditions": {"path_within": "{ws}/notes"},
    },
    {"id": "no-write", "action": "deny", "scope": "all", "match": {"name": "write-file"}},
    {"id": "all", "action": "allow", "scope": "all"},
]
NUMBERS = itertools.count(1)
TOOLS = ("read-file", "write-file", "edit-file", "list-directory", "memory-read", "memory-write")


def project(folder, ws: str, mounts: list, level: str = "none", **more):
    """Write an agent whose rules speak of the workspace as *ws*."""
    spec = {
        "identity": {"inline": {"name": "a", "personality": "You are.", "autonomy": "autonomous"}},
        "providers": [
            {
                "inline": {
                    "name": "p",
                    "protocol": "openai-compatible",
                    "endpoint": "http://h/v1",
                    "model": "m",
                    "auth": {"type": "none"},
                }
            }
        ],
        "tools": ["claw://registry/clawlite/%s@1.0.0" % name for name in TOOLS],
        "sandbox": {
            "inline": {
                "name": "s",
                "level": level,
                "capabilities": {"filesystem": {"mode": "scoped", "mount_paths": mounts}},
                **more,
            }
        },
        "policies": [
            {"inline": {"name": "p", "rules": json.loads(json.dumps(RULES).replace("{ws}", ws))}}
        ],
    }
    (folder / "claw.yaml").write_text(
        json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
    )
    done = clawlite("build", cwd=folder)
    assert done.returncode == 0, done.stderr


def serve(folder) -> Agent:
    return Agent(linux("serve", folder / "claw.cbor", "--stdio"), folder / "home")


def call(agent, name, **arguments):
    """Return the text of the result, or the code of the error."""
    request = tool_call(name, number=next(NUMBERS))
    request["params"]["arguments"] = arguments
    agent.line(json.dumps(request))
    answer = agent.message()
    if "error" in answer:
        assert (
            answer["error"]["code"] == PARAMS
            or "hint" in answer["error"].get("data", {})
            or answer["error"]["code"] == POLICY_DENIED
        ), answer
        return answer["error"]["code"]
    return ("failed: " if answer["result"]["isError"] else "") + answer["result"]["content"][0][
        "text"
    ]


# The agent's own folder has no name that a manifest could know.
@pytest.mark.parametrize(
    "mounted, named", [("/workspace", "/workspace"), ("real", "/workspace"), ("real", "real")]
)
def test_rules_and_calls_may_name_the_workspace_by_either_name(tmp_path, mounted, named):
    """A folder that is mounted and /workspace are one: no rule about one is passed by naming the
    other.
    """
    ws = tmp_path / ("home/state/a/workspace" if mounted == "/workspace" else "data")
    (ws / "private").mkdir(parents=True)
    (ws / "notes").mkdir()
    (ws / "private/key").write_text("secret")
    project(
        tmp_path,
        str(ws) if named == "real" else "/workspace",
        [{"path": str(ws) if mounted == "real" else "/workspace", "permissions": "rw"}],
    )
    os.symlink("private", ws / "link")
    with serve(tmp_path) as agent:
        agent.initialize()
        for path in ("notes/a", str(ws / "notes/b"), "/workspace/notes/c", "notes/../notes/d"):
            assert call(agent, "write_file", path=path, content="x") == "wrote 1 bytes to " + path
        assert call(agent, "list-directory", path="notes") == "a\nb\nc\nd"
        for path in (
            "private/key",
            str(ws / "private/key"),
            "/workspace/private/key",
            "notes/../private/key",
            "link/key",
            str(ws / "link/key"),
        ):
            assert call(agent, "read-file", path=path) == POLICY_DENIED, path
        for path in ("x", str(ws / "x"), "/workspace/x", "notes/../x"):
            assert call(agent, "write-file", path=path, content="x") == POLICY_DENIED, path
        for path in ("../out", "/etc/passwd", str(tmp_path / "claw.yaml")):
            assert call(agent, "read-file", path=path) == SANDBOX_DENIED, path
        assert (
            call(agent, "read-file", path="nope")
            == "failed: read-file failed: there is no nope; list-directory shows what is there"
        )
        assert call(agent, "read-file", path="") == call(agent, "read-file", file="x") == PARAMS
        assert (
            call(agent, "memory-write", content="Ada") == "remembered, 4 bytes in all"
            and call(agent, "memory_read", query="ada") == "Ada"
        )


def test_a_mounted_home_does_not_show_the_state_of_any_agent(tmp_path):
    home = tmp_path / "home"
    (home / "state/a/secrets").mkdir(parents=True)
    (home / "state/other").mkdir()
    for name in ("state/a/secrets/KEY", "state/other/MEMORY.md", "hello"):
        (home / name).write_text("canary")
    project(tmp_path, str(home), [{"path": str(home), "permissions": "rw"}])
    with serve(tmp_path) as agent:
        agent.initialize()
        assert call(agent, "read-file", path="hello") == "canary"
        for path in (
            "state/a/secrets/KEY",
            str(home / "state/a/secrets/KEY"),
            "state/other/MEMORY.md",
            "state/a/../other/MEMORY.md",
        ):
            assert (
                call(agent, "read-file", path=path)
                == call(agent, "edit-file", path=path, old_text="c", new_text="x")
                == SANDBOX_DENIED
            ), path
        assert (
            call(agent, "list-directory", path=".") == "hello"
            and call(agent, "list-directory", path="state") == SANDBOX_DENIED
        )


def test_a_folder_of_the_state_that_is_mounted_by_name_is_reached(tmp_path):
    shared = tmp_path / "home/state/shared"
    shared.mkdir(parents=True)
    project(tmp_path, str(shared), [{"path": str(shared), "permissions": "rw"}])
    with serve(tmp_path) as agent:
        agent.initialize()
        assert call(agent, "write-file", path="notes/x", content="x") == "wrote 1 bytes to notes/x"
        assert (
            call(agent, "read-file", path=str(tmp_path / "home/state/a/log.jsonl"))
            == SANDBOX_DENIED
        )


@pytest.mark.parametrize("level, most", [("none", 65536), ("process", 65536), ("process", 1000)])
def test_results_are_cut_and_say_so(tmp_path, level, most):
    project(
        tmp_path,
        "/workspace",
        [{"path": "/workspace", "permissions": "rw"}],
        level=level,
        resource_limits={"max_output_bytes": most},
    )
    ws = tmp_path / "home/state/a/workspace"
    (ws / "many").mkdir(parents=True)
    (ws / "big").write_bytes(b"x" * 1000000)
    for number in range(1000):
        (ws / "many" / ("n%0199d" % number)).touch()
    with serve(tmp_path) as agent:
        agent.initialize()
        for name, path, size in (("read-file", "big", 1000000), ("list-directory", "many", 200999)):
            request = tool_call(name, number=next(NUMBERS))
            request["params"]["arguments"] = {"path": path}
            agent.line(json.dumps(request))
            result = agent.message()["result"]
            assert (
                len(result["content"][0]["text"]) == most
                and result["truncated"] is True
                and result["original_bytes"] == size
            )
