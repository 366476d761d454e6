"""The file tools over real files: what they do, and what a sandbox lets them reach."""

import ctypes
import itertools
import multiprocessing
import os
import signal
import socket
import stat
import subprocess

import pytest
from mounted import own_table

from clawlite.core.base.errors import ClawError, SandboxDenied
from clawlite.linux.files import file_scope, mounts, path_walk
from clawlite.linux.files.file_scope import Scope
from clawlite.linux.files.mounts import Table
from clawlite.linux.tools import file_tools
from clawlite.linux.tools.file_tools import run
from clawlite.protocols.sandbox import profile as P
from clawlite.protocols.sandbox.profile import Profile

CANARY = "CANARY-of-the-outside"


def profile(files=P.SCOPED, mounts=(), denied=()) -> Profile:
    return Profile(
        [
            "",
            P.PROCESS,
            [P.DENY, [], True],
            [files, list(mounts), list(denied)],
            [P.BOUNDARY, False],
            [P.DENY, [], []],
            [None] * 6,
        ]
    )


class World:
    """A workspace "ws" (rw), a folder "ro" (read-only), and "out", which nobody may reach."""

    def __init__(self, root, files=P.SCOPED, denied=("ws/private",)):
        self.root = root
        for name in ("ws/sub", "ws/private", "ro/sub", "out"):
            (root / name).mkdir(parents=True, exist_ok=True)
        self.write("ws/hello.txt", "hello-benign\n")
        self.write("ws/sub/inner.txt", "inner-text\n")
        self.write("ws/private/key.txt", CANARY)
        self.write("out/secret.txt", CANARY)
        self.write("ro/config.txt", "ro-config")
        self.ws = str(root / "ws")
        self.profile = profile(
            files,
            [(self.ws, True), (str(root / "ro"), False)] if files == P.SCOPED else [],
            [str(root / name) for name in denied],
        )
        self.hidden = []
        self.table = mounts.own_table

    def write(self, name: str, text) -> str:
        path = self.root / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)

    def text(self, name: str) -> str:
        return (self.root / name).read_text()

    def scope(self) -> Scope:
        return Scope(self.profile, self.ws, self.hidden, table=self.table)

    def __call__(self, name: str, **arguments) -> str:
        return run(name, arguments, self.scope())["text"]

    def read(self, path: str) -> str:
        return self("read-file", path=path)

    def refused(self, path: str, name: str = "read-file", **more) -> SandboxDenied:
        with pytest.raises(SandboxDenied) as e:
            self(name, path=path, **more)
        assert e.value.hint and e.value.data["reason"]
        return e.value

    def failed(self, name: str, **arguments) -> str:
        with pytest.raises(ClawError) as e:
            self(name, **arguments)
        assert not isinstance(e.value, SandboxDenied)
        return e.value.message


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


# -- what they do


def test_read_file_gives_the_text(world):
    assert world.read("hello.txt") == "hello-benign\n"
    assert (
        world.read("sub/./inner.txt")
        == world.read("sub//inner.txt")
        == world.read("/workspace/sub/inner.txt")
        == "inner-text\n"
    )
    assert world.read(world.ws + "/hello.txt") == "hello-benign\n"
    assert (
        world.read(str(world.root / "ro/config.txt"))
        == world.read("../ro/config.txt")
        == "ro-config"
    )


def test_two_dots_in_a_name_are_no_traversal(world):
    world.write("ws/notes..old.txt", "x")
    assert world.read("notes..old.txt") == "x"


@pytest.mark.parametrize("over", [-1, 0, 1, 5000])
def test_read_file_is_bounded_and_says_the_size(world, over):
    size = file_tools.MAX_READ + over
    world.write("ws/big", "x" * size)
    result = run("read-file", {"path": "big"}, world.scope())
    assert len(result["text"]) == min(size, file_tools.MAX_READ)
    assert result.get("original_bytes") == (size if over > 0 else None)


@pytest.mark.parametrize("shift", range(4))
def test_a_cut_is_never_inside_a_character(world, shift):
    world.write("ws/big", "x" * shift + "\U0001f600" * (file_tools.MAX_READ // 4 + 1))
    text = world.read("big")
    assert text.strip("x") == "\U0001f600" * (file_tools.MAX_READ // 4 - (shift > 0))


def test_write_file_makes_folders_and_keeps_the_mode(world):
    assert world("write-file", path="a/b/c.txt", content="grün") == "wrote 5 bytes to a/b/c.txt"
    assert world.text("ws/a/b/c.txt") == "grün"
    os.chmod(world.root / "ws/hello.txt", 0o751)
    world("write-file", path="hello.txt", content="")
    assert (
        world.text("ws/hello.txt") == ""
        and stat.S_IMODE(os.stat(world.root / "ws/hello.txt").st_mode) == 0o751
    )
    # what was written beside is gone
    assert sorted(os.listdir(world.root / "ws/a/b")) == ["c.txt"]


def test_write_file_leaves_nothing_when_it_cannot_write(world):
    (world.root / "ws/sub/deep").mkdir()
    assert "is a folder" in world.failed("write-file", path="sub", content="x")
    assert sorted(os.listdir(world.root / "ws")) == ["hello.txt", "private", "sub"]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_write_file_is_bounded(world, over, monkeypatch):
    monkeypatch.setattr(file_tools, "MAX_FILE", 10)
    content = "x" * (10 + over)
    if over > 0:
        assert "11 bytes, at most 10" in world.failed("write-file", path="f", content=content)
    else:
        world("write-file", path="f", content=content)
        assert world.text("ws/f") == content


def test_half_a_character_is_refused(world):
    assert "lone surrogate" in world.failed("write-file", path="f", content="a\ud800")


def test_edit_file_replaces_the_one_match(world):
    world("edit-file", path="hello.txt", old_text="hello", new_text="good bye")
    assert world.text("ws/hello.txt") == "good bye-benign\n"
    world("edit-file", path="hello.txt", old_text="good ", new_text="")
    assert world.text("ws/hello.txt") == "bye-benign\n"


@pytest.mark.parametrize(
    "old, said",
    [("not there", "does not contain old_text"), ("e", "more than once"), ("aa", "more than once")],
)
def test_edit_file_wants_exactly_one_match(world, old, said):
    world.write("ws/f", "three es and aaa")
    assert said in world.failed("edit-file", path="f", old_text=old, new_text="x")
    assert world.text("ws/f") == "three es and aaa"


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_edit_file_is_bounded(world, over, monkeypatch):
    monkeypatch.setattr(file_tools, "MAX_FILE", 10)
    world.write("ws/f", "x" * 8 + "y")
    arguments = {"path": "f", "old_text": "y", "new_text": "z" * (2 + over)}
    if over > 0:
        assert "would have 11 bytes" in world.failed("edit-file", **arguments)
    else:
        world("edit-file", **arguments)
    world.write("ws/f", "x" * (9 + over) + "y")
    if over > 0:
        assert "more than 10 bytes" in world.failed(
            "edit-file", path="f", old_text="y", new_text="z"
        )
    else:
        world("edit-file", path="f", old_text="y", new_text="z")


def test_list_directory_is_sorted_and_marks_kinds(world):
    os.symlink("hello.txt", world.root / "ws/link")
    os.mkfifo(world.root / "ws/pipe")
    world.write("ws/new\nline\x1b", "")
    os.mkdir(os.fsencode(world.ws) + b"/\xff")
    # the denied folder is not shown
    assert world("list-directory", path=".").split("\n") == [
        "hello.txt",
        "link@",
        "new\\nline\\x1b",
        "pipe|",
        "sub/",
        "\\xff/",
    ]
    assert world("list-directory", path="/workspace/sub") == "inner.txt"


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_list_directory_is_bounded(world, over, monkeypatch):
    monkeypatch.setattr(file_tools, "MAX_ENTRIES", 3)
    for number in range(3 + over):
        world.write("ws/sub/%d" % number, "")
    os.unlink(world.root / "ws/sub/inner.txt")
    lines = world("list-directory", path="sub").split("\n")
    assert lines == ["0", "1", "2"][: 3 + over] + (["... 4 entries in all"] if over > 0 else [])


@pytest.mark.parametrize(
    "name, arguments, said",
    [
        ("read-file", {"path": "nope"}, "list-directory shows"),
        ("read-file", {"path": "nope/deeper"}, "list-directory shows"),
        ("read-file", {"path": "sub"}, "list-directory shows"),
        ("read-file", {"path": "hello.txt/x"}, "is no folder"),
        ("read-file", {"path": "x" * 300}, "too long"),
        ("read-file", {"path": "binary"}, "no UTF-8 text (byte 1)"),
        ("edit-file", {"path": "nope", "old_text": "a", "new_text": "b"}, "list-directory shows"),
        ("write-file", {"path": "hello.txt/x", "content": ""}, "is no folder"),
        ("list-directory", {"path": "hello.txt"}, "read-file reads it"),
        ("list-directory", {"path": "nope"}, "list-directory shows"),
    ],
)
def test_what_cannot_be_done_says_the_next_step(world, name, arguments, said):
    world.write("ws/binary", b"a\xff")
    assert said in world.failed(name, **arguments)


# -- what they reach


@pytest.mark.parametrize(
    "path",
    [
        "../out/secret.txt",
        "a/../../out/secret.txt",
        "sub/../../out/secret.txt",
        "/etc/passwd",
        "//etc/passwd",
        "/",
        "..",
        "../..",
        "/proc/self/root/etc/passwd",
        "/workspace/../out",
        "/workspaces/x",
        "\0",
        "a\0b",
        "",
        "x" * 5000,
    ],
)
def test_what_is_outside_is_refused(world, path):
    (world.root / "ws/a").mkdir()
    for name, more in (
        ("read-file", {}),
        ("list-directory", {}),
        ("write-file", {"content": "x"}),
        ("edit-file", {"old_text": "a", "new_text": "b"}),
    ):
        world.refused(path, name, **more)


def test_absolute_paths_outside_are_refused(world):
    assert world.refused(str(world.root / "out/./secret.txt")).data["reason"] == "path outside"
    assert world.refused(str(world.root / "ws2/x")).data["reason"] == "path outside"
    assert world.refused(str(world.root)).data["reason"] == "path outside"  # above the mounts


@pytest.mark.parametrize(
    "target, text",
    [
        ("hello.txt", "hello-benign\n"),
        ("sub/../hello.txt", "hello-benign\n"),
        ("{ws}/hello.txt", "hello-benign\n"),
        ("/workspace/hello.txt", "hello-benign\n"),
        ("../ro/config.txt", "ro-config"),
        ("{root}/ro/config.txt", "ro-config"),
        ("../out/secret.txt", None),
        ("{root}/out/secret.txt", None),
        ("/etc/passwd", None),
        ("private/key.txt", None),
        ("{ws}/sub/../private/key.txt", None),
        ("/proc/self/cwd", None),
        ("link", None),
        ("/proc/self/fd/0", None),
    ],
)
def test_links_are_followed_to_where_they_lead(world, target, text):
    os.symlink(target.format(ws=world.ws, root=world.root), world.root / "ws/link")
    if text is None:
        world.refused("link")
        world.refused("link", "write-file", content="x")
    else:
        assert world.read("link") == text
    assert world.text("out/secret.txt") == CANARY


def test_links_of_folders(world):
    os.symlink("sub", world.root / "ws/in")
    os.symlink(world.root / "out", world.root / "ws/away")
    os.symlink("in/../away", world.root / "ws/both")
    assert world.read("in/inner.txt") == "inner-text\n"
    assert world("list-directory", path="in") == "inner.txt"
    for path in ("away/secret.txt", "both/secret.txt", "both", "away"):
        world.refused(path, "list-directory")
        world.refused(path)
    world.refused("away/new/file", "write-file", content="x")
    assert os.listdir(world.root / "out") == ["secret.txt"]


def test_two_dots_in_a_link_leave_what_was_really_passed(world):
    """in/../x of a link in -> sub/deep is sub/x, as the kernel has it, not x."""
    (world.root / "ws/sub/deep").mkdir()
    os.symlink("sub/deep", world.root / "ws/in")
    os.symlink("in/../inner.txt", world.root / "ws/link")
    assert world.read("link") == "inner-text\n"


def test_nothing_is_written_through_a_dangling_link_to_the_outside(world):
    os.symlink(world.root / "out/made.txt", world.root / "ws/out-link")
    world.refused("out-link", "write-file", content="pwned")
    assert os.listdir(world.root / "out") == ["secret.txt"]
    os.symlink("sub/made.txt", world.root / "ws/in-link")
    world("write-file", path="in-link", content="fine")
    assert world.text("ws/sub/made.txt") == "fine" and os.path.islink(world.root / "ws/in-link")


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_links_end_after_so_many_steps(world, over, monkeypatch):
    steps = len((world.ws + "/sub/inner.txt").split("/")) - 1
    monkeypatch.setattr(path_walk, "MAX_STEPS", steps - over)
    if over > 0:
        with pytest.raises(SandboxDenied):
            world.read("sub/inner.txt")
    else:
        assert world.read("sub/inner.txt") == "inner-text\n"


@pytest.mark.parametrize(
    "path",
    [
        "private",
        "private/key.txt",
        "private/./key.txt",
        "sub/../private/key.txt",
        "private/../private/key.txt",
        "private/new",
    ],
)
def test_denied_paths_win(world, path):
    for name, more in (
        ("read-file", {}),
        ("list-directory", {}),
        ("write-file", {"content": "x"}),
        ("edit-file", {"old_text": "C", "new_text": "b"}),
    ):
        assert world.refused(path, name, **more).data["reason"] == "denied path"
    assert world.text("ws/private/key.txt") == CANARY and os.listdir(world.root / "ws/private") == [
        "key.txt"
    ]


def test_a_name_that_only_begins_like_a_denied_one_is_allowed(world):
    world.write("ws/private2.txt", "x")
    assert world.read("private2.txt") == "x"


def test_a_denied_path_that_is_not_there_yet_is_not_made(world, tmp_path):
    world.profile.denied.append("/workspace/later")
    world.refused("later/x", "write-file", content="x")
    world.refused("later", "write-file", content="x")
    assert not os.path.exists(tmp_path / "ws/later")


def test_a_denied_path_under_another_name_is_denied(tmp_path):
    """The same folder by way of a link above the mounts, and a denied path that is named through
    one.
    """
    World(tmp_path)
    os.symlink(tmp_path, tmp_path / "alias")
    world = World(tmp_path)
    world.profile = profile(
        P.SCOPED, [(str(tmp_path / "alias/ws"), True)], [str(tmp_path / "alias/ws/private")]
    )
    assert (
        world.read(str(tmp_path / "alias/ws/hello.txt"))
        == world.read("hello.txt")
        == "hello-benign\n"
    )
    for path in (
        "private/key.txt",
        str(tmp_path / "alias/ws/private/key.txt"),
        str(tmp_path / "ws/private/key.txt"),
    ):
        world.refused(path)


def test_a_denied_folder_is_known_by_its_identity(world, monkeypatch):
    """As it is with a bind mount, or with another case on a file system that ignores it: the
    name differs, the folder is the same.
    """
    os.rename(world.root / "ws/private", world.root / "ws/moved")
    os.symlink("moved", world.root / "ws/private")
    world.refused("moved/key.txt")
    world.refused("moved", "list-directory")


def test_read_only_mounts_are_read_only(world):
    path = str(world.root / "ro/config.txt")
    for name, more in (
        ("write-file", {"content": "x"}),
        ("edit-file", {"old_text": "ro", "new_text": "b"}),
    ):
        assert world.refused(path, name, **more).data["reason"] == "read-only"
    world.refused(str(world.root / "ro/new/file"), "write-file", content="x")
    world.refused(str(world.root / "ro/absent"), "edit-file", old_text="x", new_text="y")
    os.symlink(path, world.root / "ws/link")
    world.refused("link", "write-file", content="x")
    assert world.text("ro/config.txt") == "ro-config" and sorted(os.listdir(world.root / "ro")) == [
        "config.txt",
        "sub",
    ]


def test_a_mount_inside_another_has_its_own_rights(world):
    world.profile.mounts.append((world.ws + "/sub", False))
    world.refused("sub/inner.txt", "write-file", content="x")
    assert world.read("sub/inner.txt") == "inner-text\n"
    world("write-file", path="other.txt", content="x")


def test_a_mount_inside_a_writable_one_is_not_followed_through_a_link(world):
    os.symlink(world.root / "out", world.root / "ws/theirs")
    world.profile.mounts.append((world.ws + "/theirs", True))
    with pytest.raises(ClawError):
        world.read("theirs/secret.txt")
    with pytest.raises(ClawError):
        world("list-directory", path="theirs")


def test_a_mount_may_be_a_file(world):
    world.profile.mounts.append((str(world.root / "out/secret.txt"), False))
    assert world.read(str(world.root / "out/secret.txt")) == CANARY
    world.refused(str(world.root / "out"), "list-directory")
    world.refused(str(world.root / "out/other"))


def test_modes(tmp_path):
    deny = World(tmp_path, P.DENY)
    assert deny.refused("hello.txt").data["reason"] == "no files"
    nothing = World(tmp_path)
    nothing.profile.mounts.clear()
    nothing.refused("hello.txt")  # scoped to nothing
    readable = World(tmp_path, P.READ_ONLY)
    assert (
        readable.read("hello.txt") == "hello-benign\n"
        and readable.read(str(tmp_path / "out/secret.txt")) == CANARY
    )
    readable.refused("hello.txt", "write-file", content="x")
    readable.refused("private/key.txt")
    some = World(tmp_path, P.READ_ONLY)
    some.profile.mounts.append((some.ws, False))
    assert some.read("hello.txt") == "hello-benign\n"
    some.refused(str(tmp_path / "out/secret.txt"))
    full = World(tmp_path, P.FULL)
    full("write-file", path=str(tmp_path / "out/new"), content="x")
    full.refused("private/key.txt")
    assert "etc/" in full("list-directory", path="/").split("\n")


def test_the_agents_own_state_is_hidden_but_for_the_workspace(tmp_path):
    world = World(tmp_path / "state", P.FULL, [])
    world.hidden = [str(tmp_path / "state")]
    assert world.read("hello.txt") == world.read(world.ws + "/hello.txt") == "hello-benign\n"
    for path in (
        "../out/secret.txt",
        str(tmp_path / "state/out/secret.txt"),
        str(tmp_path / "state"),
        "..",
    ):
        world.refused(path)
        world.refused(path, "list-directory")


def test_state_in_the_workspace_is_hidden(tmp_path):
    world = World(tmp_path, denied=[])
    world.write("ws/sub/key", CANARY)
    world.hidden = [world.ws + "/sub"]
    assert world.read("hello.txt") == "hello-benign\n"
    for path in ("sub/key", "sub/../sub/key", world.ws + "/sub/key", "sub"):
        world.refused(path)
    world.refused("sub", "list-directory")
    assert "sub" not in world("list-directory", path=".")


@pytest.mark.parametrize(
    "path",
    [
        "/proc/self/environ",
        "/proc/1/environ",
        "/proc/thread-self/mem",
        "/proc/OWN/maps",
        "/proc/self",
        "/proc/OWN/cwd",
        "/proc/1/cwd/etc",
        "/proc/OWN/root/etc/passwd",
        "/proc/OWN/task/OWN/fd/0",
        "/proc/OWN/fd",
        "/dev/fd",
        "/dev/fd/0",
        "/dev/stdin",
        "/proc/mounts",
    ],
)
def test_processes_are_hidden_from_whole_file_systems(tmp_path, path):
    path = path.replace("OWN", str(os.getpid()))
    world = World(tmp_path, P.FULL, [])
    world.refused(path)
    os.symlink(path, tmp_path / "ws/link")
    world.refused("link")
    assert "cpu" in world.read("/proc/stat")


# -- kinds of files, and other names


@pytest.mark.parametrize(
    "name, more",
    [
        ("read-file", {}),
        ("write-file", {"content": "x"}),
        ("edit-file", {"old_text": "a", "new_text": "b"}),
    ],
)
def test_pipes_sockets_and_devices_are_refused_at_once(world, name, more, monkeypatch):
    os.mkfifo(world.root / "ws/pipe")
    monkeypatch.chdir(world.root / "ws")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        for path in ("pipe", "socket"):
            assert world.refused(path, name, **more).data["reason"] == "no regular file"
    everything = World(world.root, P.FULL, [])
    everything.refused("/dev/zero", name, **more)


def test_a_hard_link_to_the_outside_is_refused(world):
    os.link(world.root / "out/secret.txt", world.root / "ws/hard")
    os.link(world.root / "ws/private/key.txt", world.root / "ws/alias")
    for path in ("hard", "alias"):
        for name, more in (
            ("read-file", {}),
            ("write-file", {"content": "x"}),
            ("edit-file", {"old_text": "C", "new_text": "b"}),
        ):
            assert "hard link" in world.refused(path, name, **more).message
    assert world.text("out/secret.txt") == CANARY


def test_hard_links_among_what_may_be_reached_are_fine(world):
    os.link(world.root / "ws/hello.txt", world.root / "ws/sub/twin")
    os.link(world.root / "ws/hello.txt", world.root / "ro/sub/third")
    assert world.read("sub/twin") == "hello-benign\n"
    world("write-file", path="sub/twin", content="new")
    assert world.text("ws/hello.txt") == "hello-benign\n"  # a write replaces one name
    os.link(world.root / "ws/hello.txt", world.root / "out/fourth")
    world.refused("hello.txt")


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_search_for_other_names_is_bounded(world, over, monkeypatch):
    os.link(world.root / "ws/hello.txt", world.root / "ws/sub/twin")
    # hello, inner, twin in ws; config in ro
    monkeypatch.setattr(file_scope, "MAX_NAMES", 4 - over)
    if over > 0:
        world.refused("hello.txt")
    else:
        assert world.read("hello.txt") == "hello-benign\n"


def test_whole_file_systems_with_denied_paths_refuse_hard_links(tmp_path):
    world = World(tmp_path, P.FULL)
    os.link(tmp_path / "ws/private/key.txt", tmp_path / "ws/alias")
    world.refused("alias")
    free = World(tmp_path, P.FULL, [])
    assert free.read("alias") == CANARY


def test_names_of_any_bytes(world):
    """What list-directory shows as \\xff is no name; half a character stands for such a byte, as
    Python has it.
    """
    for name in (
        b"new\nline",
        b"\x1b[2J",
        b"\xff\xfe",
        b"-rf",
        b" ",
        "\u202e".encode(),
        b"a" * 255,
    ):
        with open(os.fsencode(world.ws) + b"/" + name, "wb") as file:
            file.write(b"text of it")
        path = os.fsdecode(name)
        assert world.read(path) == "text of it"
        world("edit-file", path=path, old_text="text", new_text="word")
        world("write-file", path=path, content=world.read(path) + ".")
        assert world.read(path) == "word of it."
        os.unlink(os.fsencode(world.ws) + b"/" + name)
    message = world.failed("read-file", path="no\nsuch\x1b[2J\udcff")
    assert message.isprintable() and "no\\nsuch\\x1b[2J" in message
    assert "too long" in world.failed("write-file", path="a" * 256, content="x") and sorted(
        os.listdir(world.ws)
    ) == ["hello.txt", "private", "sub"]


def test_a_file_that_is_nearly_all_hole(world):
    with open(world.ws + "/hole", "wb") as file:
        file.write(b"begin")
        file.truncate(1 << 40)
    result = run("read-file", {"path": "hole"}, world.scope())
    assert result["original_bytes"] == 1 << 40 and result["text"] == "begin" + "\0" * (
        file_tools.MAX_READ - 5
    )
    assert "use exec-shell" in world.failed(
        "edit-file", path="hole", old_text="begin", new_text="x"
    )
    world("write-file", path="hole", content="end")
    assert world.read("hole") == "end"


def test_a_folder_of_a_hundred_thousand_names(world):
    fd = os.open(world.ws + "/sub", os.O_RDONLY)
    for number in range(100000):
        os.mknod("%05d" % number, dir_fd=fd)
    os.close(fd)
    lines = world("list-directory", path="sub").split("\n")
    assert lines[: file_tools.MAX_ENTRIES] == [
        "%05d" % number for number in range(file_tools.MAX_ENTRIES)
    ]
    assert lines[file_tools.MAX_ENTRIES :] == ["... 100001 entries in all"]
    assert world.read("sub/inner.txt") == "inner-text\n"


def test_a_file_of_the_kernel_that_waits_for_news(world):
    """A regular file, as its mode has it; who reads it to its end waits for the next message."""
    if os.geteuid():
        pytest.skip("the kernel's messages are root's to read")
    everything = World(world.root, P.FULL, [])
    for _ in range(2):
        try:
            assert len(everything.read("/proc/kmsg")) <= file_tools.MAX_READ
        except ClawError as e:
            assert "nothing to read now" in e.message or "kmsg: " in e.message


def test_what_is_mounted_twice_is_denied_twice(world):
    """At level none, in this process, with a mount table of its own; also what was mounted after
    the first look.
    """

    def body():
        own_table()
        world.table = Table()
        assert world.read("hello.txt") == "hello-benign\n"
        for source, target in (
            ("ws/private", "ws/again"),
            ("out", "ws/out"),
            ("state/secrets", "ws/state"),
            ("ws", "ro/sub/deep"),
        ):
            os.makedirs(world.root / source, exist_ok=True)
            os.makedirs(world.root / target, exist_ok=True)
            subprocess.run(
                ["mount", "--rbind", world.root / source, world.root / target], check=True
            )
        world.hidden = [str(world.root / "state")]
        world.write("state/secrets/key", CANARY)
        for path in (
            "again/key.txt",
            "again",
            "../ro/sub/deep/private/key.txt",
            "../ro/sub/deep/again/key.txt",
            "state/key",
            "state",
            "../ro/sub/deep/state/key",
        ):
            assert world.refused(path).data["reason"] == "denied path"
        assert (
            world.read("out/secret.txt") == CANARY
            and world.read("../ro/sub/deep/hello.txt") == "hello-benign\n"
        )
        world.profile.denied.append(str(world.root / "out"))
        world.refused("out/secret.txt")
        os.rename(world.root / "ro/sub", world.root / "ro/sub2")
        assert world.refused("../ro/sub2/deep/private/key.txt").data["reason"] == "denied path"

    if os.geteuid():
        pytest.skip("a mount table of its own needs root")
    context = multiprocessing.get_context("fork")
    child = context.Process(target=body)
    child.start()
    child.join()
    assert child.exitcode == 0


# -- races


def _race(flip, work):
    """Call ``flip(i)`` again and again in a process of its own while ``work()`` runs."""
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        try:
            for i in itertools.count():
                flip(i)
                if i == 100:
                    os.write(tell, b"x")
        finally:
            os._exit(1)
    try:
        os.close(tell)
        assert os.read(told, 1) == b"x"
        work()
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the flips ended early"
    finally:
        os.close(told)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _flipper(world, path, targets):
    def flip(i):
        os.symlink(targets[i % len(targets)], path + ".flip")
        os.rename(path + ".flip", path)

    return flip


def test_a_folder_that_flips_to_a_link_never_gives_a_byte_from_outside(world):
    real = world.root / "ws/real"
    real.mkdir()
    (real / "secret.txt").write_text("benign")
    seen = {"read": 0, "refused": 0}

    def work():
        for _ in range(1500):
            try:
                text = world.read("swap/secret.txt")
                assert text == "benign"
                seen["read"] += 1
            except ClawError:
                seen["refused"] += 1

    flip = _flipper(world, world.ws + "/swap", [str(real), str(world.root / "out")])
    flip(0)
    _race(flip, work)
    assert seen["read"] and seen["refused"]


def test_a_real_folder_that_is_exchanged_for_a_link_never_gives_a_byte_from_outside(world):
    """Not only links: the folder itself goes away and a link takes its name, between look and
    open.
    """
    (world.root / "ws/swap").mkdir()
    (world.root / "ws/swap/secret.txt").write_text("benign")
    os.symlink(world.root / "out", world.root / "ws/bait")
    libc = ctypes.CDLL(None)

    def flip(i):
        # RENAME_EXCHANGE
        assert (
            libc.renameat2(
                -100, (world.ws + "/swap").encode(), -100, (world.ws + "/bait").encode(), 2
            )
            == 0
        )

    seen = []

    def work():
        for _ in range(1500):
            for name, more in (("read-file", {}), ("write-file", {"content": "benign"})):
                try:
                    seen.append(world(name, path="swap/secret.txt", **more))
                except ClawError:
                    pass

    _race(flip, work)
    assert seen and CANARY not in seen
    assert world.text("out/secret.txt") == CANARY and os.listdir(world.root / "out") == [
        "secret.txt"
    ]


def test_a_file_that_is_exchanged_for_a_link_or_a_pipe_is_not_opened(world):
    os.mkfifo(world.root / "ws/pipe")
    os.symlink(world.root / "out/secret.txt", world.root / "ws/link")
    world.write("ws/file", "benign")
    names = [world.ws + "/" + name for name in ("file", "link", "pipe")]

    def flip(i):
        path = names[(i + 1) % 3]
        os.link(path, world.ws + "/tmp", follow_symlinks=False)
        os.rename(world.ws + "/tmp", world.ws + "/swap")

    flip(1)
    seen = []

    def work():
        for _ in range(1500):
            try:
                seen.append(world.read("swap"))
            except ClawError:
                pass

    world.profile.denied.clear()
    _race(flip, work)
    assert set(seen) <= {"benign"}


def test_a_file_that_changes_while_it_is_read(world):
    """What is read is never more than was asked for, and a cut is said."""
    path = world.write("ws/log", "begin\n")

    def flip(i):
        with open(path, "wb" if i % 50 == 0 else "ab") as file:
            file.write(b"begin\n" if i % 50 == 0 else b"x" * 9999)

    def work():
        for _ in range(300):
            result = run("read-file", {"path": "log"}, world.scope())
            assert result.get("original_bytes", 1 << 40) > file_tools.MAX_READ >= len(
                result["text"]
            ) and set(result["text"]) <= set("begin\nx")

    _race(flip, work)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text("hello-other"),
        lambda path: path.open("a").write("more"),
        lambda path: (
            path.with_name("new").write_text("hello-benign\n"),
            path.with_name("new").replace(path),
        ),
    ],
    ids=["write", "append", "replace"],
)
def test_a_file_that_is_written_while_it_is_edited_stays_as_it_was_written(
    world, monkeypatch, change
):
    """By whoever else: here right after it was read."""
    read, path = file_tools._read, world.root / "ws" / "hello.txt"

    def meanwhile(*arguments):
        data = read(*arguments)
        change(path)
        return data

    monkeypatch.setattr(file_tools, "_read", meanwhile)
    assert "was changed while it was edited, nothing is written" in world.failed(
        "edit-file", path="hello.txt", old_text="benign", new_text="x"
    )
    assert "benign" in path.read_text() or path.read_text() == "hello-other"
    assert sorted(os.listdir(world.ws)) == ["hello.txt", "private", "sub"]


def test_no_descriptor_is_left_open(world):
    world.read("hello.txt")  # the mount table stays open
    os.symlink("loop", world.root / "ws/loop")
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(20):
        for path in (
            "hello.txt",
            "nope",
            "loop",
            "../out/secret.txt",
            "private/key.txt",
            "sub",
            "sub/inner.txt/x",
            "pipe",
        ):
            for name, more in (
                ("read-file", {}),
                ("list-directory", {}),
                ("edit-file", {"old_text": "zz", "new_text": "b"}),
            ):
                try:
                    world(name, path=path, **more)
                except ClawError:
                    pass
    assert sorted(os.listdir("/proc/self/fd")) == before
