"""Images, sounds and blobs of MCP servers are files in the workspace, where the tools of the agent
may write there (CKP 0.3.0 Tool, "MCP Compatibility"; docs/mcp.md).
"""

import json
import os
import re

import mcp_agents
import pytest
from agents import Agent, linux, tool_call

from clawlite.linux.files.files import open_image
from clawlite.linux.files.workspace import NOBODY
from clawlite.linux.tools import saved_content

RO = {"own": "ro"}
PNG = b"\0\0\0"  # what the server's picture is


def agent_of(tmp_path, level: str, what=(), **mounts):
    """Return an agent whose tools may use the workspace as *mounts* says: rw, ro, or not at all;
    *what* its server does.
    """
    agent = mcp_agents.write(tmp_path, what, level)
    claw = agent / "claw.yaml"
    text = claw.read_text()
    old = re.search(r"sandbox: \{ inline: (.*) \}", text)[1]
    box = json.loads(old)
    files = box.setdefault("capabilities", {}).setdefault("filesystem", {"mode": "scoped"})
    own = [{"path": "/workspace", "permissions": rights} for rights in mounts.values()]
    files["mount_paths"] = files.get("mount_paths", []) + own
    box.setdefault("name", "box")
    claw.write_text(text.replace(old, json.dumps(box)))
    return mcp_agents.build_beside(str(agent))


def pictures(tmp_path, image: str, times=1, first=0) -> list:
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as one:
        found = []
        for number in range(first, first + times):
            one.line(json.dumps(tool_call("picture", {"text": ""}, number)))
            found.append(one.message()["result"]["content"][0]["text"])
    return found


def place(tmp_path):
    (found,) = tmp_path.rglob("workspace/mcp")
    return found


@pytest.mark.parametrize("level", ["none", "process"])
def test_it_is_a_file_where_tools_may_write(tmp_path, level):
    """The text names path, type and size; each call has a file of its own."""
    first, second = pictures(tmp_path, agent_of(tmp_path, level, own="rw"), 2)
    form = r'\["image" "image/png", 3 bytes, in /workspace/mcp/(t-[0-9a-f]{16}\.png)\]'
    names = [re.fullmatch(form, text)[1] for text in (first, second)]
    assert names[0] != names[1] and sorted(names) == sorted(os.listdir(place(tmp_path)))
    for name in names:
        file = place(tmp_path) / name
        assert file.read_bytes() == PNG
        if level == "process" and os.geteuid() == 0:
            assert file.stat().st_uid == place(tmp_path).stat().st_uid == NOBODY


def test_sounds_and_documents_are_files_too(tmp_path):
    (text,) = pictures(tmp_path, agent_of(tmp_path, "none", ["sounds"], own="rw"))
    form = r"(t-[0-9a-f]{16}\.%s)"
    sound, paper = text.split("\n")
    start = r'\["audio" "audio/wav", 3 bytes, in /workspace/mcp/'
    name = re.fullmatch(start + form % "wav" + r"\]", sound)[1]
    assert (place(tmp_path) / name).read_bytes() == b"\0" * 3
    start = r'\["resource" "application/pdf", 4 bytes, in /workspace/mcp/'
    name = re.fullmatch(start + form % "pdf" + r"\]", paper)[1]
    assert (place(tmp_path) / name).read_bytes() == b"\0" * 4


@pytest.mark.parametrize("level, mounts", [("none", {}), ("none", RO), ("process", RO)])
def test_it_is_none_where_tools_may_not_write(tmp_path, level, mounts):
    (text,) = pictures(tmp_path, agent_of(tmp_path, level, **mounts))
    assert text == '["image" "image/png", 3 bytes, not shown]'
    assert not list(tmp_path.rglob("*.png"))


def test_a_link_of_a_tool_leads_nowhere_else(tmp_path):
    image = agent_of(tmp_path, "none", own="rw")
    pictures(tmp_path, image)
    folder, outside = place(tmp_path), tmp_path / "outside"
    outside.mkdir()
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()
    folder.symlink_to(outside)
    (text,) = pictures(tmp_path, image, first=1)  # an id has one answer
    assert text.endswith("not shown]")
    assert os.listdir(outside) == []


def kept(tmp_path, data="AAAA", kind="image/png", server="t"):
    image = open_image(agent_of(tmp_path, "none", own="rw"))
    from clawlite.protocols.sandbox.profile import profile_of

    workspace = str(tmp_path / "box/workspace")
    return saved_content.keep_content(
        profile_of(image), workspace, [], None, None, server, kind, data
    )


def test_a_folder_that_is_full(tmp_path, monkeypatch):
    monkeypatch.setattr(saved_content, "MAX_FILES", 2)
    assert [kept(tmp_path).partition(" ")[0] for _ in range(3)] == ["in", "in", "not"]
    assert "at most 2 files" in kept(tmp_path)
    monkeypatch.setattr(saved_content, "MAX_FILES", 9)
    monkeypatch.setattr(saved_content, "MAX_BYTES", 8)
    assert "not kept" in kept(tmp_path)
    monkeypatch.setattr(saved_content, "MAX_BYTES", 9)
    assert kept(tmp_path).startswith("in ")


def test_what_a_server_says_names_no_file(tmp_path):
    said = kept(tmp_path, kind="image/../../x", server="../../etc/x y")
    assert re.fullmatch(r"in /workspace/mcp/-{6}etc-x-y-[0-9a-f]{16}\.bin", said)
    assert kept(tmp_path, data="A") == "not shown", "no base64"
