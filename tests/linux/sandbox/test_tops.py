"""What lies around a denied path, what a denial of the system's own files does, and the bounds
of /tmp.
"""

import os
import re
import tempfile

import pytest
from sandboxes import WAIT_S

from clawlite.linux.confinement.landlock import listable
from clawlite.linux.sandbox.removal import remove


def _mounted(place, denied: str, writable=None) -> dict:
    """A mount with a denied path below it, which in L has to be read-only."""
    return {
        "mounts": [[str(place.folder / "ws"), place.profile == "N" if writable is None else True]],
        "denied": [str(place.folder / "ws" / denied)],
    }


def test_the_folder_of_a_denied_file_can_be_listed(place):
    (place.folder / "ws" / "private" / "other").write_text("other")
    for denied, top in (("hello", "."), ("private/key", "private")):
        said = place.shell("ls %s && cat %s" % (top, denied), **_mounted(place, denied))
        assert (
            denied.rpartition("/")[2] in said["output"]
            and "canary" not in said["output"]
            and "hello-benign" not in said["output"]
        ), said
        assert "other" in said["output"] or top == "."
    (place.folder / "ws" / "private" / "other").unlink()


def test_a_denied_file_gets_no_other_name(place):
    for command in (
        "mv private/key private/k",
        "ln private/key private/k",
        "mv private/key k",
        "ln private/key k",
        "rm -f private/key",
        "mv private p",
    ):
        place.shell(command, **_mounted(place, "private/key"))
        assert os.listdir(place.folder / "ws" / "private") == ["key"], command
    assert (place.folder / "ws" / "private" / "key").read_text() == "canary-key"


@pytest.mark.parametrize("denied", ["private", "hello", "private/key", "missing", "a/b/missing"])
def test_what_landlock_cannot_express_is_refused_by_name(place, denied):
    """A denied path below a folder that tools may write to: file tools know it themselves."""
    ws = place.folder / "ws"
    profile = _mounted(place, denied, True)
    said = place.run(["command", ["sh", "-c", "ls && echo x > new && rm new"]], **profile)
    if place.profile == "N":
        if "missing" not in denied:
            assert said[0] and said[1]["exit_code"] == 0 and said[1]["note"] == "", said
        return
    body = "def f():\n    return 1\n"
    for good, error in (said, place.run(["function", "tools.py", body, "f", {}], **profile)):
        assert not good and error[:2] == ["SandboxDenied", -32010], error
        assert "the denied path %s lies in %s, which tools may" % (ws / denied, ws) in error[2]
        assert error[3].startswith("move %s out of %s" % (ws / denied, ws))
        assert error[4]["ran"] is False
    assert place.run(["file", "write-file", {"path": "new", "content": "x"}], **profile)[0]
    (ws / "new").unlink()
    good, error = place.run(["file", "read-file", {"path": str(ws / denied)}], **profile)
    assert not good and error[1] == (-32603 if "a/b" in denied else -32010), error
    # beside it tools work
    beside = {"mounts": [[str(ws), True]], "denied": [str(place.folder / "out")]}
    assert place.shell("echo x > new && rm new", **beside)["exit_code"] == 0


def test_what_the_top_of_a_read_only_mount_lacks_is_said_by_name(place):
    said = place.shell("ls", **_mounted(place, "private"))
    if place.profile == "N":
        assert said["exit_code"] == 0 and said["note"] == ""
        return
    top = str(place.folder / "ws")
    assert said["exit_code"] != 0 and said["note"].startswith(
        top + " itself can be neither listed nor changed here: a denied path"
    )
    body = "def f():\n    import os\n    return os.listdir(%r)\n" % top
    good, error = place.run(["function", "tools.py", body, "f", {}], **_mounted(place, "private"))
    assert not good and "Permission" in error[2] and error[3].startswith(top + " itself")


def test_a_read_only_mount_in_a_writable_one(place):
    ws = place.folder / "ws"
    (ws / "kept").mkdir(exist_ok=True)
    (ws / "kept" / "file").write_text("as it was")
    mounts = {"mounts": [[str(ws), True], [str(ws / "kept"), False]]}
    try:
        if place.profile == "L":
            good, error = place.run(["command", ["true"]], **mounts)
            assert not good and error[1] == -32010, error
            assert "the read-only mount %s lies in %s" % (ws / "kept", ws) in error[2]
            return
        _attack_read_only(place, mounts)
    finally:
        (ws / "kept" / "file").unlink()
        (ws / "kept").rmdir()


def _attack_read_only(place, mounts: dict):
    ws = place.folder / "ws"
    for command in (
        "echo pwned > kept/file",
        "rm -f kept/file",
        "echo x > kept/new",
        "mv kept moved; echo pwned > moved/file",
        "ln kept/file f; echo pwned > f",
        "chmod 777 kept/file",
        "mkdir kept/d",
    ):
        place.shell(command, **mounts)
        assert (
            os.listdir(ws / "kept") == ["file"]
            and (ws / "kept" / "file").read_text() == "as it was"
        ), command
    said = place.shell(
        "cat kept/file && ls && echo fine > private/new && cat private/new && echo x > top",
        **mounts,
    )
    assert (
        "as it was" in said["output"] and "private" in said["output"] and "fine" in said["output"]
    ), said
    assert said["exit_code"] == 0
    (ws / "top").unlink()
    (ws / "private" / "new").unlink()


def test_names_below_a_denied_folder_are_not_listed(place):
    for command in ("ls private", "ls -R .", "find . -name 'k*'", "ls */", "cd private && ls"):
        assert "key" not in place.shell(command, **_mounted(place, "private"))["output"], command


def test_listable(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    top = str(tmp_path)
    assert listable(top, []) and listable(top, [top + "/file"]) and listable(top, ["/elsewhere"])
    assert (
        not listable(top, [top + "/folder"])
        and not listable(top, [top + "/file", top + "/folder"])
        and not listable(top, [top + "/missing"])
    )


def test_the_systems_own_files_can_be_denied(place):
    path = "/usr/share/zoneinfo" if os.path.isdir("/usr/share/zoneinfo") else "/usr/share/doc"
    name = sorted(os.listdir(path))[0]
    scoped = {"mounts": [[str(place.folder / "ws"), True]]}
    assert name in place.shell("ls " + path, **scoped)["output"]
    said = place.shell(
        "ls %s; ls /usr/share >/dev/null || cat /usr/share/*/nothing; echo ran" % path,
        denied=[path],
        **scoped,
    )
    assert name not in said["output"].split() and "ran" in said["output"]
    with open("/etc/passwd") as file:
        real = file.read()
    assert (
        real not in place.shell("cat /etc/passwd; echo", denied=["/etc/passwd"], **scoped)["output"]
    )


def test_tmp_is_bounded(place):
    said = place.shell(
        'head -c 200000000 /dev/zero > "$TMPDIR/a" && sleep 3600; wc -c < "$TMPDIR/a"',
        timeout_ms=WAIT_S * 1000,
    )
    if place.profile == "N":
        assert int(said["output"].split()[-1]) <= 64 << 20
    else:
        assert said["ended"] == "/tmp" and said["exit_code"] == 137
    assert place.shell("echo next")["output"] == "next\n"


def test_tmp_is_bounded_for_files_without_a_name_too(place):
    command = (
        'exec 3> "$TMPDIR/a"; rm "$TMPDIR/a"; head -c 200000000 /dev/zero >&3 && sleep 3600; '
        'echo "ended $?"'
    )
    said = place.shell(command, timeout_ms=WAIT_S * 1000)
    assert "ended 1" in said["output"] if place.profile == "N" else said["ended"] == "/tmp"


def test_the_number_of_files_in_tmp_is_bounded(place):
    body = """    made = 0
    try:
        for made in range(40000):
            os.close(os.open(os.environ["TMPDIR"] + "/%d" % made, os.O_CREAT | os.O_WRONLY))
        import time
        time.sleep(3600)
    except OSError:
        pass
    return made
"""
    if place.profile == "N":
        assert 10000 < place.python(body) < 20000
    else:
        good, error = place.run(
            ["function", "tools.py", "import os\ndef f():\n" + body, "f", {}],
            timeout_ms=WAIT_S * 1000,
        )
        assert not good and "/tmp" in error[2]


def test_tmp_goes_with_its_call_whatever_is_in_it(place):
    before = set(os.listdir("/tmp"))
    said = place.shell(
        'mkdir -p "$TMPDIR/a/b/c"; touch "$TMPDIR/a/b/f"; chmod 0 "$TMPDIR/a/b" '
        '"$TMPDIR/a"; ls "$TMPDIR/a"'
    )
    assert said["exit_code"] != 0
    new = set(os.listdir("/tmp")) - before
    # as a supervisor names it, with its number; one that lives is another test's, and one that has
    # ended meanwhile took its folder with it
    owners = {name: re.match(r"clawlite-(\d+)-", name) for name in new}
    ended = [name for name in owners if owners[name] and not _is_alive(owners[name][1])]
    assert not [name for name in ended if os.path.exists("/tmp/" + name)], new


def _is_alive(number: str) -> bool:
    return os.path.exists("/proc/" + number)


def test_a_folder_of_any_depth_is_removed_and_nothing_beside_it(tmp_path):
    (tmp_path / "keep").mkdir()
    (tmp_path / "keep" / "file").write_text("kept")
    path = tempfile.mkdtemp(dir=tmp_path)
    fd = os.open(path, os.O_RDONLY)
    for level in range(1500):  # more than a path can name
        os.mkdir("x", dir_fd=fd)
        below = os.open("x", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
        if level % 500 == 0:
            os.symlink(tmp_path / "keep", "link", dir_fd=fd)
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)
    os.symlink(tmp_path / "keep", path + "/link")
    before = os.listdir("/proc/self/fd")
    remove(path)
    assert (
        not os.path.exists(path)
        and (tmp_path / "keep" / "file").read_text() == "kept"
        and os.listdir("/proc/self/fd") == before
    )
    remove(path)
    os.symlink(tmp_path / "keep", path)
    remove(path)
    assert (tmp_path / "keep" / "file").exists()
