"""What is denied is denied by what it is: by each name that mounts and links give it, in N and
in L, for commands and for file tools.
"""

import errno
import os
import select
import time

import pytest
from caseless import Caseless
from mounted import mounted
from sandbox_places import host
from sandboxes import WAIT_S

from clawlite.linux.files.mounts import Table
from clawlite.linux.sandbox import names

PLACES = ["N-user", "N-root", "L-user", "L-root"]


@pytest.fixture(params=PLACES)
def place(request):
    with mounted(request.param) as one:
        yield one


def scoped(place, *denied, top="ws") -> dict:
    """What is denied lies below the mount, which in L has to be read-only then."""
    return {
        "mounts": [[str(place.folder / top), place.profile == "N" or not denied]],
        "denied": [str(place.folder / name) for name in denied],
    }


def closed(place, path: str, **profile):
    """Assert that nothing is read, listed or written at *path*, below the Host's folder, and
    that the workspace works all the same.
    """
    path = place.folder / path
    said = place.shell(
        "cat %s; head -c 9 < %s; cat %s/key; ls %s; cp -r %s /tmp/x && cat /tmp/x; "
        "echo changed > %s; echo x > %s/new; cat %s/ws/hello" % ((path,) * 7 + (place.folder,)),
        **profile,
    )
    assert (
        "canary" not in said["output"]
        and "key\n" not in said["output"].replace("/key", "")
        and said["output"].endswith("hello-benign")
    ), said
    for one in (path, path / "key"):
        good, error = place.read(one, **profile)
        assert not good and error[1] == -32010 and error[3] == "use another file", error
    assert not (path / "new").exists()


def opened_for_writing(path):
    """Return a descriptor of the named pipe *path* once somebody reads from it, or None when nobody
    does in time.

    Opened as a file it would wait for ever for a command that was refused.
    """
    until = time.monotonic() + WAIT_S
    while time.monotonic() < until:
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as e:
            if e.errno != errno.ENXIO:  # what it says until there is a reader
                raise
        select.select([], [], [], 0.005)
    return None


def test_a_denied_folder_that_is_mounted_elsewhere(place):
    place.bind("ws/private", "ws/again")
    closed(place, "ws/again", **scoped(place, "ws/private"))
    assert (place.folder / "ws/private/key").read_text() == "canary-key"


def test_what_is_around_it_is_mounted_elsewhere(place):
    place.bind("ws", "ws2/deep")
    profile = scoped(place, "ws/private")
    profile["mounts"].append([str(place.folder / "ws2"), False])
    closed(place, "ws2/deep/private", **profile)
    assert (
        place.shell("cat %s/ws2/deep/hello" % place.folder, **profile)["output"] == "hello-benign"
    )


def test_a_part_of_it_is_mounted_elsewhere(place):
    (place.folder / "ws/private/inner").mkdir()
    (place.folder / "ws/private/inner/key").write_text("canary-inner")
    place.bind("ws/private/inner", "ws/part")
    closed(place, "ws/part", **scoped(place, "ws/private"))
    place.bind("ws/private/key", "ws/file")
    closed(place, "ws/file", **scoped(place, "ws/private"))


def test_a_denied_file_that_is_mounted_elsewhere(place):
    place.bind("out/secret", "ws/file")
    closed(place, "ws/file", **scoped(place, "out/secret"))


def test_what_is_mounted_in_it_is_mounted_elsewhere(place):
    """Another file system, which is denied by where it lies."""
    for name in ("ws/private/disk", "ws/disk"):
        (place.folder / name).mkdir()
    place.mount("-t", "tmpfs", "-o", "mode=777", "tmpfs", place.folder / "ws/private/disk")
    place.mount("--bind", place.folder / "ws/private/disk", place.folder / "ws/disk")
    place.shell("echo canary > %s/ws/disk/key" % place.folder, **scoped(place))
    assert place.shell("cat %s/ws/disk/key" % place.folder, **scoped(place))["output"] == "canary\n"
    closed(place, "ws/disk", **scoped(place, "ws/private"))


def test_an_overlay_of_it(place):
    (place.folder / "ws/merged").mkdir()
    (place.folder / "out" / "deep").mkdir()
    (place.folder / "out" / "deep" / "key").write_text("canary-deep")
    place.mount(
        "-t",
        "overlay",
        "-o",
        "lowerdir=%s/out:%s/ro" % ((place.folder,) * 2),
        "overlay",
        place.folder / "ws/merged",
    )
    assert (
        place.shell("cat %s/ws/merged/secret" % place.folder, **scoped(place))["output"]
        == "canary-out"
    )
    closed(place, "ws/merged/secret", **scoped(place, "out/secret"))
    closed(place, "ws/merged/deep", **scoped(place, "out/deep"))
    profile = scoped(place, "ws/merged/deep")
    profile["mounts"].append([str(place.folder / "out"), False])
    closed(place, "out/deep", **profile)


def test_a_mount_that_comes_and_goes_between_calls(place):
    profile = scoped(place, "ws/private")
    for _ in range(2):
        assert place.shell("cat hello", **profile)["exit_code"] == 0
        place.bind("ws/private", "ws/later")
        closed(place, "ws/later", **profile)
        place.umount("ws/later")
        good, said = place.run(["command", ["ls", "%s/ws/later" % place.folder]], **profile)
        assert good and said["exit_code"] == 0 and said["output"] == ""
        assert place.read(place.folder / "ws/hello", **profile) == (True, {"text": "hello-benign"})


def test_a_mount_that_comes_while_a_call_runs(place):
    """In N it stays outside; in L there is one table for all, and it counts from the next call
    on (docs/sandbox.md).
    """
    ws = place.folder / "ws"
    (ws / "later").mkdir()
    os.mkfifo(ws / "go")
    (ws / "go").chmod(0o666)
    profile = scoped(place, "out")
    command = "cd %s; read line < go; cat later/secret; cat hello" % ws
    number = place.ask(start=True, profile=profile, job=["command", ["sh", "-c", command]])[
        "number"
    ]
    go = opened_for_writing(ws / "go")
    if go is None:
        pytest.fail("the command never began: %s" % place.ask(wait=number)["outcome"])
    place.bind("out", "ws/later")
    with open(go, "w") as file:
        file.write("go\n")
    said = place.ask(wait=number)["outcome"][1]["output"]
    assert said.endswith("hello-benign") and ("canary" in said) == (place.profile == "L")
    closed(place, "ws/later", **profile)


def test_a_folder_above_a_mount_is_renamed(place):
    """The kernel does not say that the table has changed: a name that leads nowhere does."""
    (place.folder / "ws" / "a").mkdir()
    place.bind("ws/private", "ws/a/m")
    profile = scoped(place, "ws/private")
    closed(place, "ws/a/m", **profile)
    place.shell("mv %s/ws/a %s/ws/b" % (place.folder, place.folder), **scoped(place))
    assert (place.folder / "ws/b/m").is_dir()
    closed(place, "ws/b/m", **profile)


def test_a_tool_renames_no_folder_above_it(place):
    (place.folder / "ws" / "a").mkdir()
    place.bind("ws/private", "ws/a/m")
    profile = scoped(place, "ws/private")
    place.shell("mv %s/ws/a %s/ws/b; ln -s %s/ws/a/m %s/ws/link" % ((place.folder,) * 4), **profile)
    for name in ("ws/a/m", "ws/b/m", "ws/link"):
        assert (
            "canary" not in place.shell("cat %s/%s/key" % (place.folder, name), **profile)["output"]
        )
    assert (place.folder / "ws/a/m").is_dir()


def test_a_mount_that_is_a_part_of_what_is_denied_is_refused_by_name(place):
    (place.folder / "ws/private/inner").mkdir()
    place.bind("ws/private/inner", "data")
    profile = scoped(place, "ws/private", top="data")
    good, error = place.run(["command", ["true"]], **profile)
    assert (
        not good
        and error[1] == -32010
        and "%s shows a denied path under another name" % (place.folder / "data") in error[2]
        and "findmnt" in error[3]
    )
    assert not place.read(place.folder / "data", **profile)[0]


def test_the_agents_state_that_is_mounted_elsewhere(place):
    (place.folder / "state" / "key").write_text("canary-state")
    assert place.shell("cat hello")["exit_code"] == 0
    place.bind("state", "ws/state")
    closed(place, "ws/state", **scoped(place))
    (place.folder / "state" / "inner").mkdir()
    (place.folder / "state" / "inner" / "key").write_text("canary-inner")
    place.bind("state/inner", "ws/inner")
    closed(place, "ws/inner", **scoped(place))
    for files in (1, 3):
        closed(place, "ws/inner", files=files, mounts=[])


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("name", [".", "part"])
def test_what_the_workspace_shows_is_nobodys_state(where, name):
    """A disk of one's own as the workspace, in the agent's state, or as a part of it."""
    with mounted(where, workspace="state/workspace") as place:
        for folder in ("state/workspace/part", "data"):
            (place.folder / folder).mkdir(parents=True)
            (place.folder / folder).chmod(0o777)
        (place.folder / "state/workspace").chmod(0o777)
        (place.folder / "data/file").write_text("benign")
        place.bind("data", "state/workspace/" + name)
        profile = {"mounts": [["/workspace", True], [str(place.folder / "data"), False]]}
        assert (
            place.shell("cat %s/data/file %s/file" % (place.folder, name), **profile)["output"]
            == "benignbenign"
        )
        assert place.read(place.folder / "data/file", **profile) == (True, {"text": "benign"})
        assert (
            place.shell("cat %s/data/file" % place.folder, files=1, mounts=[])["output"] == "benign"
        )


def test_another_mount_of_proc(place):
    """As a chroot or a container has it: there, too, are the environments of other processes of
    this user.
    """
    (place.folder / "ws" / "proc").mkdir()
    place.mount("-t", "proc", "proc", place.folder / "ws/proc")
    pid = place.ask(agent=True)["server"]
    for profile in (scoped(place), {"files": 1, "mounts": []}):
        said = place.shell(
            "cd %s/ws; ls proc; cat proc/%d/stat proc/%d/comm proc/self/status; "
            "cat hello" % (place.folder, pid, pid),
            **profile,
        )
        assert (
            said["output"].endswith("hello-benign")
            and "clawlite" not in said["output"]
            and "Pid" not in said["output"]
            and "sys" not in said["output"]
        ), said
        good, error = place.read(place.folder / "ws/proc" / str(pid) / "stat", **profile)
        assert not good and error[1] == -32010
    mounts = [[str(place.folder / "ws/proc"), False]]
    # its maker's wish
    assert (
        "MemTotal" in place.shell("cat %s/ws/proc/meminfo" % place.folder, mounts=mounts)["output"]
    )


# -- links


@pytest.fixture(scope="module", params=PLACES)
def linked(request):
    """A Host with three names of a denied file."""
    profile, _, user = request.param.partition("-")
    with host(profile, user == "root") as one:
        (one.folder / "ws" / "sub" / "deep").mkdir(parents=True)
        for name in ("alias", "sub/deep/alias"):
            os.link(one.folder / "ws" / "private" / "key", one.folder / "ws" / name)
        yield one


@pytest.mark.parametrize("denied", ["ws/private", "ws/private/key"])
def test_hard_links_of_what_is_denied(linked, denied):
    profile = scoped(linked, denied)
    said = linked.shell(
        "cd %s; cat alias sub/deep/alias private/key; cat sub/deep/../../alias; "
        "cp alias /tmp/c; cat /tmp/c; ln alias new; cat new; mv alias moved; cat "
        "moved;"
        "echo x > alias; mv sub gone; cat gone/deep/alias; ln -s alias link; cat "
        "link; cat hello" % (linked.folder / "ws"),
        **profile,
    )
    assert "canary" not in said["output"] and said["output"].endswith("hello-benign"), said
    assert (
        (linked.folder / "ws/private/key").read_text() == "canary-key"
        and (linked.folder / "ws/alias").exists()
        and (linked.folder / "ws/sub/deep/alias").exists()
    )


def test_hard_links_that_nobody_can_find_are_refused_by_name(linked):
    for profile in ({"files": 1, "mounts": []}, {"files": 3, "mounts": []}):
        if profile["files"] == 3 and linked.profile == "L":
            continue  # nothing may be denied in the workspace there
        good, error = linked.run(
            ["command", ["true"]], denied=[str(linked.folder / "ws/private/key")], **profile
        )
        assert (
            not good
            and error[1] == -32010
            and "ws/private/key has other names (hard links)" in error[2]
            and "samefile" in error[3]
        )
        names_of_it = [str(linked.folder / "ws" / name) for name in ("private", "alias", "sub")]
        said = linked.shell(
            "cat %s/ws/alias; echo ran" % linked.folder, denied=names_of_it, **profile
        )
        assert "canary" not in said["output"] and said["output"].endswith("ran\n")


def test_a_hard_link_outside_of_what_is_mounted_is_nobodys_business(linked):
    said = linked.shell(
        "cat %s/ro/config" % linked.folder,
        mounts=[[str(linked.folder / "ro"), False]],
        denied=[str(linked.folder / "ws/private/key")],
    )
    assert said["output"] == "ro-config"


def test_a_link_that_appears_after_the_start(linked):
    """One that a tool makes, and one that somebody makes between calls."""
    profile = scoped(linked, "ws/private")
    link = linked.folder / "ws" / "sub" / "shortcut"
    for target in ("../private", str(linked.folder / "ws/private")):
        link.symlink_to(target)
        said = linked.shell("cat %s/key %s/../private/key" % (link, link), **profile)
        link.unlink()
        assert "canary" not in said["output"]
    assert (
        "canary"
        not in linked.shell(
            "cd %s/ws/sub; ln -s ../private made; cat made/key" % linked.folder, **profile
        )["output"]
    )


# -- bounds, as they are counted


def _plan(top, **more) -> dict:
    return dict(
        {
            "denied": [str(top / "private")],
            "hidden": [],
            "mounts": [(str(top), str(top), True)],
            "folder": None,
            "whole": 0,
            "kind": "command",
            "python": [],
            "masks": [],
            "pins": [],
        },
        **more,
    )


class _Nothing:
    """A mount table in which nothing is mounted twice."""

    @staticmethod
    def refresh():
        return True

    @staticmethod
    def other_names(paths, but=None):
        return []

    @staticmethod
    def processes():
        return []


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("x")
    os.link(tmp_path / "private" / "key", tmp_path / "alias")
    return tmp_path


def _denied(plan: dict) -> list:
    names.deny(plan, _Nothing, "")
    return plan["denied"][1:]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_so_many_entries_are_looked_at(tree, monkeypatch, over):
    monkeypatch.setattr(names, "MAX_NAMES", 2 - over)  # private, alias
    if over > 0:
        with pytest.raises(names.Refused):
            _denied(_plan(tree))
    else:
        assert _denied(_plan(tree)) == [str(tree / "alias")]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_so_many_entries_of_a_denied_folder_are_looked_at(tree, monkeypatch, over):
    (tree / "private" / "inner").mkdir()
    monkeypatch.setattr(names, "MAX_BELOW", 2 - over)  # key, inner
    assert _denied(_plan(tree)) == ([] if over > 0 else [str(tree / "alias")])


def test_without_a_mount_table_nothing_runs(tree):
    with pytest.raises(names.Refused, match="mountinfo cannot be read"):
        names.deny(_plan(tree), Table(str(tree / "none")), "")


def test_a_file_tool_looks_itself_and_a_file_of_one_name_costs_nothing(tree, monkeypatch):
    assert _denied(_plan(tree, kind="builtin")) == []
    os.unlink(tree / "alias")
    monkeypatch.setattr(names, "MAX_NAMES", 0)
    assert _denied(_plan(tree)) == []


def test_other_names_that_are_denied_too_are_no_others(tree):
    assert (
        _denied(_plan(tree, whole=1, denied=[str(tree / "private"), str(tree / "alias")]))[1:] == []
    )
    with pytest.raises(names.Refused, match="hard links"):
        _denied(_plan(tree, whole=1))


# -- names that differ in case alone


@pytest.fixture
def caseless(place):
    """A Host with a file system in ws/stick that ignores case."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("the kernel under test is without FUSE")
    (place.folder / "ws" / "stick").mkdir()
    Caseless(
        {"Private": {"key": b"canary-folder"}, "Secret": b"canary-file", "hello": b"hello"},
        place.folder / "ws/stick",
        place._process.pid,
    )
    return place


@pytest.mark.kernel
@pytest.mark.parametrize("denied", ["ws/stick/Private", "ws/stick/PRIVATE"])
def test_a_denied_folder_by_another_case(caseless, denied):
    for name in ("Private", "PRIVATE", "pRIVATE"):
        closed(caseless, "ws/stick/" + name, **scoped(caseless, denied))
    assert (
        caseless.shell(
            "cat %s/ws/stick/hello %s/ws/stick/HELLO" % ((caseless.folder,) * 2),
            **scoped(caseless, denied),
        )["output"]
        == "hellohello"
    )


@pytest.mark.kernel
@pytest.mark.parametrize("denied", ["ws/stick/Secret", "ws/stick/sECRET"])
def test_a_denied_file_by_another_case(caseless, denied):
    """What the kernel keeps no single name for cannot be covered in N: refused by name."""
    profile = scoped(caseless, denied)
    command = [
        "command",
        ["sh", "-c", "cd %s/ws/stick; cat Secret SECRET sECRET; cat hello" % caseless.folder],
    ]
    good, value = caseless.run(command, **profile)
    if caseless.profile == "L":
        assert good and "canary" not in value["output"] and value["output"].endswith("hello"), value
    else:
        assert not good and value[1] == -32010 and "ignores case" in value[2] and value[3], value
    assert not caseless.read(caseless.folder / "ws/stick/SECRET", **profile)[0]
