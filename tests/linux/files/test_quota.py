"""The workspace of a Memory is the tools' own (CKP 0.2.0, 5.6): one folder, one limit, whoever
writes.
"""

import itertools
import json
import os

import pytest
from agents import clawlite, linux, tool_call
from memory_operator import Operator
from memory_world import World as MemoryWorld
from memory_world import store

from clawlite.core.base.errors import StoreError
from clawlite.core.image.memories import WORKSPACE
from clawlite.linux.confinement import limits
from clawlite.linux.files import quota
from clawlite.linux.files.workspace import hand_over
from clawlite.linux.memory.workspace_store import MAX_FILE
from clawlite.linux.sandbox import removal

MB = 1 << 20
SANDBOX_DENIED = -32010
NUMBERS = itertools.count(1000)


class World(Operator):
    """An operator of an agent with file tools, exec-shell and a workspace of 1 MB."""

    def __init__(
        self,
        folder,
        level: str,
        store=None,
        mounts=("/workspace",),
        tools=("read-file", "write-file", "edit-file", "exec-shell", "memory-write"),
    ):
        can = {
            "filesystem": {
                "mode": "scoped",
                "mount_paths": [{"path": str(path), "permissions": "rw"} for path in mounts],
            },
            "shell": {"mode": "full"},
        }
        spec = {
            "identity": {"inline": {"name": "a", "personality": "x", "autonomy": "autonomous"}},
            "providers": [
                {
                    "inline": {
                        "protocol": "custom",
                        "endpoint": "builtin:reflex",
                        "model": "r",
                        "auth": {"type": "none"},
                    }
                }
            ],
            "tools": [
                "claw://registry/clawlite/%s@1.0.0" % name
                for name in tools
                if level == "process" or name != "exec-shell"
            ],
            "sandbox": {"inline": {"name": "s", "level": level, "capabilities": can}},
            "policies": [
                {
                    "inline": {
                        "name": "p",
                        "rules": [{"id": "all", "action": "allow", "scope": "all"}],
                    }
                }
            ],
            "memory": {
                "inline": {
                    "stores": [
                        dict(
                            {"name": "files", "type": "workspace", "max_size_mb": 1}, **store or {}
                        )
                    ]
                }
            },
        }
        (folder / "claw.yaml").write_text(
            json.dumps({"claw": "0.3.0", "kind": "Claw", "metadata": {"name": "a"}, "spec": spec})
        )
        (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
        (folder / "reflex.toml").write_text('[[rule]]\nwhen = ["hello"]\nsay = "Hello."\n')
        done = clawlite("build", cwd=folder)
        assert done.returncode == 0, done.stderr
        super().__init__(linux("serve", folder / "claw.cbor", "--stdio"), folder / "home")
        self.boot()

    def call(self, name: str, **arguments):
        """Return the text of the result, or the code of the error."""
        request = tool_call(name, number=next(NUMBERS), identity="a")
        request["params"]["arguments"] = arguments
        self.line(json.dumps(request))
        answer = self.reply(request["id"])
        return (
            answer["error"]["code"] if "error" in answer else answer["result"]["content"][0]["text"]
        )

    def entries(self, key: str) -> list:
        return self.ask("claw.memory.query", store="files", query={"type": "key", "key": key})[
            "result"
        ]["entries"]


@pytest.fixture
def world(tmp_path):
    return lambda *arguments, **more: World(tmp_path, *arguments, **more)


@pytest.mark.parametrize("level", ["none", "process"])
def test_what_tools_write_is_found_by_its_key_and_what_is_stored_is_read_by_tools(
    tmp_path, world, level
):
    with world(level) as one:
        assert (
            one.call("write-file", path="notes/a.txt", content="by a tool")
            == "wrote 9 bytes to notes/a.txt"
        )
        (entry,) = one.entries("notes/a.txt")
        assert (
            entry["content"] == "by a tool"
            and entry["key"] == "notes/a.txt"
            and entry["id"] == "file:notes/a.txt"
            and entry["timestamp"]
        )
        assert one.put("files", "by an operator", 1, "notes/b.txt")["result"]["stored"] == 1
        assert one.call("read-file", path="notes/b.txt") == "by an operator"
        assert (
            one.call("edit-file", path="notes/b.txt", old_text="an operator", new_text="two")
            == "replaced 11 bytes with 3 in notes/b.txt"
        )
        (entry,) = one.entries("notes/b.txt")
        assert entry["content"] == "by two" and entry["id"].startswith("entry-")
        assert one.entries("notes/c.txt") == []
    assert (tmp_path / "home/state/a/workspace/notes/a.txt").read_text() == "by a tool"


@pytest.mark.parametrize("level", ["none", "process"])
def test_the_limit_holds_for_tools_and_operators_together(tmp_path, world, level):
    with world(level) as one:
        assert one.put("files", "x" * 200000, 1, "big")["result"]["stored"] == 1
        for n in range(3):
            assert one.call("write-file", path="t%d" % n, content="y" * 270000).startswith("wrote")
        assert one.call("write-file", path="t9", content="y" * 270000) == (
            "write-file failed: the workspace would have 1280000 bytes, and may have 1048576; "
            "make files in it shorter, or have some removed"
        )
        assert "may have 1048576" in one.put("files", "x" * 200000, 2, "more")["error"]["message"]
        assert one.call("edit-file", path="big", old_text="x" * 200000, new_text="x").startswith(
            "replaced"
        )
        assert one.call("write-file", path="t0", content="z" * 270000).startswith("wrote"), (
            "in place of as much"
        )
        assert one.put("files", "x" * 200000, 3, "more")["result"]["stored"] == 1
    assert quota.size(str(tmp_path / "home/state/a/workspace")) == 200000 + 810000 + 1


def test_a_command_that_fills_the_workspace_is_ended_and_may_still_make_room(world):
    with world("process") as one:
        said = one.call(
            "exec-shell", command="head -c 3000000 /dev/zero > big; sleep 30; echo late"
        )
        assert "ended by max_size_mb" in said and "late" not in said, said
        assert one.call("write-file", path="small", content="x").startswith(
            "write-file failed: the workspace would have "
        )
        assert "ended by" in one.call(
            "exec-shell", command="head -c 100000 /dev/zero > more; sleep 30"
        )
        assert one.call("exec-shell", command="rm big more; sleep 0.2; ls") == ""
        assert one.call("write-file", path="small", content="x") == "wrote 1 bytes to small"


def test_a_path_is_the_folder_of_the_tools_too(tmp_path, world):
    with world("process", {"path": str(tmp_path / "mine/{identity_name}")}) as one:
        assert one.put("files", "by an operator", 1, "b.txt")["result"]["stored"] == 1
        assert (tmp_path / "mine/a/b.txt").read_text() == "by an operator"
        said = one.call("read-file", path="/workspace/b.txt")
        assert said == "by an operator", said


def test_another_folder_that_is_mounted_is_the_tools_and_not_the_stores(tmp_path, world):
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o777)
    with world("process", mounts=[tmp_path / "data"]) as one:
        assert one.call("write-file", path="a", content="x" * 700000) == "wrote 700000 bytes to a"
        assert (
            one.call("write-file", path="b", content="x" * 700000) == "wrote 700000 bytes to b"
        ), "max_size_mb is the store's"
        assert one.entries("a") == []


def test_the_state_is_nobodys_workspace(tmp_path, world):
    state = tmp_path / "home/state/a"
    with world("none", mounts=[state]) as one:
        assert one.call("memory-write", content="secret!") == "remembered, 8 bytes in all"
        for path in ("MEMORY.md", str(state / "MEMORY.md"), "../MEMORY.md"):
            assert one.call("read-file", path=path) in (
                SANDBOX_DENIED,
                "read-file failed: there is no MEMORY.md; list-directory shows what is there",
            ), path


def test_bytes_are_counted_without_links(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_bytes(b"x" * 100)
    (tmp_path / "out").write_bytes(b"x" * 1000)
    (tmp_path / "a/link").symlink_to(tmp_path / "out")
    (tmp_path / "a/around").symlink_to(tmp_path)
    link = len(str(tmp_path / "out"))
    link += len(str(tmp_path))
    assert quota.size(str(tmp_path / "a")) == 100 + link
    with pytest.raises(
        quota.ClawError, match="would have %d bytes, and may have 150" % (100 + link + 100)
    ):
        quota.check(str(tmp_path / "a"), 150, 100)
    quota.check(str(tmp_path / "a"), 150, 0)
    quota.check(str(tmp_path / "a"), None, 1 << 40)
    quota.check(str(tmp_path / "a"), 300 + link, 200)


@pytest.mark.parametrize("place", ["top", "above"])
def test_a_link_in_the_place_of_a_workspace_is_not_followed(tmp_path, place):
    """A tool that may write above its workspace can exchange it."""
    (tmp_path / "above/top/deep").mkdir(parents=True)
    (tmp_path / "above/top/deep/file").write_bytes(b"x" * 100)
    top = str(tmp_path / "above/top")
    assert quota.size(top) == 100
    big = tmp_path / "else/top"
    big.mkdir(parents=True)
    (big / "file").write_bytes(b"")
    changed = tmp_path / "above" if place == "above" else tmp_path / "above/top"
    changed.rename(tmp_path / "away")
    changed.symlink_to(big if place == "top" else big.parent)
    assert quota.size(top) == quota.UNSEEN, "0 bytes of another folder would be room for all"
    with pytest.raises(quota.ClawError, match="cannot be measured"):
        quota.check(top, 150, 1)
    fd = os.open(tmp_path / "away", os.O_RDONLY)
    assert quota.size(fd) == 100
    os.close(fd)
    assert quota.size(str(tmp_path / "nowhere")) == 0
    if place == "top":
        assert not limits.is_more(str(tmp_path / "away"), [], 1 << 20)
        assert limits.is_more(top, [], 1 << 20), "it measured another folder"


def test_what_root_hands_over_is_not_behind_a_link(tmp_path):
    (tmp_path / "else/inner").mkdir(parents=True)
    (tmp_path / "home").symlink_to(tmp_path / "state")  # the owner's own
    (tmp_path / "state").mkdir()
    (tmp_path / "state/workspace").symlink_to(tmp_path / "else")
    changed = []
    try:
        os.chown(tmp_path / "else/inner", 0, 0)
        hand_over(str(tmp_path / "home/workspace"), 65534)
        changed.append(os.stat(tmp_path / "else/inner").st_uid)
        (tmp_path / "state/workspace").unlink()
        (tmp_path / "else").rename(tmp_path / "state/workspace")
        hand_over(str(tmp_path / "home/workspace"), 65534)
        changed.append(os.stat(tmp_path / "state/workspace/inner").st_uid)
    except PermissionError:
        pytest.skip("only root hands files over")
    assert changed == [0, 65534]


def test_a_store_whose_folder_became_a_link_writes_nowhere_else(tmp_path):
    memory, files = MemoryWorld(tmp_path), store(type=WORKSPACE, path=str(tmp_path / "notes"))
    (tmp_path / "disk").mkdir()
    (tmp_path / "notes").symlink_to(tmp_path / "disk")  # the owner's own
    memory.put(files, "short", key="a")
    assert (tmp_path / "disk/a").read_text() == "short"
    (tmp_path / "disk").rename(tmp_path / "away")
    (tmp_path / "secret").mkdir()
    (tmp_path / "disk").symlink_to(tmp_path / "secret")
    for verb in ("write", "read"):
        with pytest.raises(StoreError, match="a link, or what is no folder") as found:
            if verb == "write":
                memory.stores._files.write(files, "", [("b", "x")])
            else:
                memory.stores._files._root(files, "", False)
        assert found.value.hint
    assert not os.listdir(tmp_path / "secret")


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_file_that_is_too_long_for_an_answer_says_so(tmp_path, is_stored):
    memory, files = MemoryWorld(tmp_path), store(type=WORKSPACE)
    if is_stored:
        memory.put(files, "short", key="a")
    for extra in (0, 1):
        memory.stores._files.write(files, "", [("a", "x" * (MAX_FILE + extra))])
        answer = memory.do("query", files, "", ("key", "a", 1, None))
        assert answer["entries"][0]["content"] == "x" * MAX_FILE and answer.get(
            "truncated", False
        ) == (extra > 0)


def test_what_is_too_deep_to_be_counted_is_too_much_and_keeps_no_agent_from_starting(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    for depth in range(1, 1100):
        os.mkdir("a", dir_fd=fd)
        below = os.open("a", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
        if depth in (quota.MAX_DEPTH, quota.MAX_DEPTH + 1):
            assert quota.size(str(tmp_path)) == quota.UNSEEN * (depth > quota.MAX_DEPTH)
    os.close(fd)
    try:
        assert quota.size(str(tmp_path)) == quota.UNSEEN
        with pytest.raises(
            quota.ClawError,
            match="the workspace has folders that cannot be measured .no permission, or nested "
            "deeper than 64.; it may have 150 bytes",
        ):
            quota.check(str(tmp_path), 150, 100)
        hand_over(str(tmp_path), os.geteuid())
    finally:
        removal.remove(str(tmp_path / "a"))


def test_what_a_command_closes_or_nests_does_not_escape_the_limit_nor_stop_the_agent(
    tmp_path, world
):
    deep = "mkdir -p $(printf 'a/%.0s' $(seq 300)); sleep 30; echo late"
    with world("process") as one:
        for command in (
            deep,
            "mkdir -m 300 shut; head -c 3000000 /dev/zero > shut/file; sleep 30; echo late",
        ):
            said = one.call("exec-shell", command=command)
            assert "ended by max_size_mb" in str(said) and "late" not in said, said
        assert one.call("exec-shell", command="echo again; sleep 0.2") == "again\n"
        assert "ended by" in one.call(
            "exec-shell", command="head -c 100000 /dev/zero > more; sleep 30"
        )
        assert one.call("write-file", path="small", content="x").startswith(
            "write-file failed: the workspace has folders that cannot be measured"
        )
        assert "cannot be measured" in one.put("files", "x", 1, "small")["error"]["message"]
    with Operator(
        linux("serve", tmp_path / "claw.cbor", "--stdio"), tmp_path / "home"
    ).boot() as again:
        call = World.call
        assert (
            call(again, "exec-shell", command="chmod 700 shut; rm -r shut a more; sleep 0.2; ls")
            == ""
        )
        assert call(again, "write-file", path="small", content="x") == "wrote 1 bytes to small"
