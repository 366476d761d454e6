"""What is there, and what can be done with it: files, folders and links, in N and in L, as an
ordinary user and as root.
"""

import os
import shutil
import tempfile

import pytest


def _scoped(place, **more) -> dict:
    """The mounts of most manifests: a workspace, a folder to read, and denied paths below the
    one and beside.  In L nothing may be denied below a folder that tools may write to.
    """
    return dict(
        {
            "mounts": [
                [str(place.folder / "ws"), place.profile == "N"],
                [str(place.folder / "ro"), False],
            ],
            "denied": [str(place.folder / "ws" / "private"), str(place.folder / "out")],
        },
        **more,
    )


def test_what_is_mounted_can_be_used(place):
    scoped = {"mounts": [[str(place.folder / "ws"), True], [str(place.folder / "ro"), False]]}
    said = place.shell(
        "cat hello; cat %s/ro/config; echo new > made; mkdir d; mv made d/made; ln "
        "-s d/made l; cat l; rm -r d l" % place.folder,
        **scoped,
    )
    assert (said["exit_code"], said["output"]) == (0, "hello-benignro-confignew\n")


def test_no_file_gives_another_user(place):
    """By PR_GET_NO_NEW_PRIVS (39) in both profiles; in N, which has mounts of its own, by them."""
    mounts = _scoped(place)["mounts"]
    paths = [path for path, _ in mounts] + ["/tmp", "/usr"]
    body = """    flags = [os.statvfs(path).f_flag & os.ST_NOSUID for path in %r]
    return [flags, ctypes.CDLL(None).prctl(39, 0, 0, 0, 0)]
"""
    flags, no_new_privileges = place.python(body % (paths,), mounts=mounts)
    assert no_new_privileges == 1
    if place.ask(report=True)["profile"] == "N":
        assert flags == [os.ST_NOSUID] * len(paths)


def test_the_systems_python_has_nothing_to_say_when_it_starts(place):
    """Debian's has a link in /usr/lib/python3.* that leads to /etc."""
    said = place.shell("/usr/bin/python3 -c 'print(1)'")
    assert said["output"] == "1\n", said


def test_what_is_read_only_stays_as_it_is(place):
    ro = place.folder / "ro"
    for command in (
        "echo x > %s/config",
        "rm %s/config",
        "touch %s/new",
        "mv %s/config /tmp/x",
        "ln %s/config /tmp/x",
        "chmod 777 %s/config",
        "mkdir %s/d",
        "truncate -s 0 %s/config",
    ):
        assert place.shell(command % ro, **_scoped(place))["exit_code"] != 0, command
    assert [(p.name, p.read_text()) for p in ro.iterdir()] == [("config", "ro-config")] and (
        ro / "config"
    ).stat().st_mode & 0o777 != 0o777


def test_a_named_pipe_that_is_mounted_read_only_takes_nothing(place):
    """Of a read-only mount alone the kernel keeps files and folders: pipes and devices in it can
    still be written to.
    """
    if place.ask(report=True)["tried"]["landlock"]:
        pytest.skip("this kernel has no Landlock")
    # below /tmp everything may be written
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        pipe = os.path.join(folder, "pipe")
        os.mkfifo(pipe)
        os.chmod(pipe, 0o666)
        body = (
            """    pipe = %r
    return [tried(os.open, pipe, os.O_WRONLY | os.O_NONBLOCK), tried(os.open, pipe, os.O_RDWR),
            tried(os.open, pipe, os.O_RDONLY | os.O_NONBLOCK)]
"""
            % pipe
        )
        found = place.python(body, mounts=[[str(place.folder / "ws"), True], [folder, False]])
        assert found == ["EACCES", "EACCES", "open"]


def test_what_is_not_mounted_is_not_there(place):
    assert place.shell("ls %s" % place.folder, **_scoped(place))["output"].split()[:2] in (
        ["ro", "ws"],
        ["ls:", "cannot"],
    )
    for command in (
        "ls %s/out",
        "cat %s/out/secret",
        "echo x > %s/out/new",
        "cat ../out/secret",
        "cat %s/state/x",
        "chmod 777 %s/out",
        "touch %s/out/secret",
        "ls /media",
        "ls /var/lib",
        "cat /etc/shadow",
        "ls /sys",
        "ls /boot",
        "ls /run",
        "head -c 1 /dev/shm/../mem",
        "head -c 1 /dev/shm/../kmsg",
        "mknod /dev/sda b 8 0",
        "echo x > /usr/x",
        "echo x > /etc/x",
        "echo x > /x",
    ):
        said = place.shell(command % place.folder if "%" in command else command, **_scoped(place))
        assert said["exit_code"] != 0 and "canary" not in said["output"], (command, said)
    assert [p.name for p in (place.folder / "out").iterdir()] == ["secret"]


def test_what_an_earlier_call_mounted_has_left_no_folder(place):
    """A call gets a copy of mounts; the file system that holds their folders is still one for
    all.
    """
    # each call has a /tmp of its own
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chmod(folder, 0o755)
        file = os.path.join(folder, "file")
        with open(file, "w") as written:
            written.write("x")
        for mounts in ([folder, False], [file, False]):
            said = place.shell("cat %s" % file, mounts=[[str(place.folder / "ws"), True], mounts])
            assert said["output"] == "x", said
            # one call was being prepared when the first ended
            for _ in range(2):
                # In L nothing is mounted, so only what is in it is closed again.
                if place.profile == "L":
                    said = place.shell("cat %s" % file, mounts=[["/workspace", True]])
                    assert said["exit_code"] != 0 and said["output"] != "x", said
                    continue
                said = place.shell("ls -d %s; ls -a /" % folder, mounts=[["/workspace", True]])
                assert folder + "\n" not in said["output"], said
                assert "var" not in said["output"].split(), said


def test_links_and_magic_links_lead_nowhere_else(place):
    link = place.folder / "ws" / "shortcut"
    link.symlink_to(place.folder / "out")
    try:
        for command in (
            "cat shortcut/secret",
            "cat /proc/self/root%s/out/secret",
            "cat /proc/1/root%s/out/secret",
            "cat /proc/1/cwd/../../%s/out/secret",
            "ln shortcut/secret here; cat here",
            "cd shortcut && cat secret",
            "cp -r shortcut/ copy; cat copy/secret",
        ):
            said = place.shell(
                command % place.folder if "%" in command else command, **_scoped(place)
            )
            assert "canary" not in said["output"], command
    finally:
        link.unlink()


def test_a_denied_path_below_a_mount(place):
    scoped = _scoped(place)
    for command in (
        "cat private/key",
        "ls private",
        "cp private/key k && cat k",
        "echo x > private/new",
        "mv private p2 && cat p2/key",
        "rm -rf private",
        "ln private/key k; cat k",
        "cat %s/ws/private/key" % place.folder,
        "cat /workspace/private/key",
        "cat */key",
        "cd private && ls",
        "mkdir -p private/d",
        "tar c private",
    ):
        said = place.shell(command, **scoped)
        assert "canary" not in said["output"] and "key\n" not in said["output"].replace(
            "private/key", ""
        ), command
    assert (place.folder / "ws" / "private" / "key").read_text() == "canary-key"
    assert [p.name for p in (place.folder / "ws" / "private").iterdir()] == ["key"]
    assert place.shell("cat hello", **scoped)["output"] == "hello-benign"


def test_a_denied_file_and_a_denied_mount(place):
    hello = str(place.folder / "ws" / "hello")
    assert "hello" not in place.shell(
        "cat hello; cat < hello; head -c 5 hello",
        mounts=[[str(place.folder / "ws"), place.profile == "N"]],
        denied=[hello],
    )["output"].replace("cat: hello", "").replace("'hello'", "").replace("open hello", "")
    said = place.shell(
        "cat %s/ro/config" % place.folder,
        mounts=[[str(place.folder / "ws"), True], [str(place.folder / "ro"), False]],
        denied=[str(place.folder / "ro")],
    )
    assert "ro-config" not in said["output"] and said["exit_code"] != 0


def test_no_files_at_all(place):
    said = place.shell(
        "cat %s/ws/hello; ls /workspace; pwd; echo x > t && cat t" % place.folder,
        files=0,
        mounts=[],
    )
    assert "hello-benign" not in said["output"] and said["output"].endswith("x\n")


def test_the_whole_file_system_to_read(place):
    said = place.shell(
        "cat %s/out/secret; echo x > %s/out/new; cat %s/state/x" % ((place.folder,) * 3),
        files=1,
        mounts=[],
        denied=[str(place.folder / "ro")],
    )
    assert "canary-out" in said["output"] and not (place.folder / "out" / "new").exists()
    (place.folder / "state" / "x").write_text("canary-state")
    said = place.shell(
        "cat %s/state/x %s/ro/config; cat /etc/hostname >/dev/null && echo host"
        % ((place.folder,) * 2),
        files=1,
        mounts=[],
        denied=[str(place.folder / "ro")],
    )
    assert "canary" not in said["output"] and "ro-config" not in said["output"]


def test_the_whole_file_system_to_write(place):
    said = place.shell(
        "echo x > %s/out/new; cat %s/state/x; cat %s/ro/config" % ((place.folder,) * 3),
        files=3,
        mounts=[],
        denied=[str(place.folder / "ro")],
    )
    assert (place.folder / "out" / "new").read_text() == "x\n", said
    (place.folder / "out" / "new").unlink()
    assert "canary" not in said["output"] and "ro-config" not in said["output"]


def test_what_is_hidden_cannot_be_mounted(place):
    good, error = place.run(["command", ["true"]], mounts=[[str(place.folder / "state"), True]])
    assert not good and error[1] == -32010


def test_tmp_is_the_calls_own(place):
    assert place.shell('echo x > "$TMPDIR/mine" && cat "$TMPDIR/mine"')["output"] == "x\n"
    assert place.shell('ls -A "$TMPDIR"')["output"] == ""
    where = place.shell(
        'mkdir -p "$TMPDIR/a/b"; touch "$TMPDIR/a/b/c"; ln -s / "$TMPDIR/root"; echo "$TMPDIR"'
    )["output"].strip()
    assert (
        where == "/tmp"
        if place.profile == "N"
        else "/clawlite-" in where and not os.path.lexists(where)
    )


def test_devices_are_those_that_programs_need(place):
    assert place.shell(
        "head -c 3 /dev/zero | wc -c; echo x > /dev/null; head -c 3 /dev/urandom | "
        "wc -c; head -c1 /dev/full | wc -c"
    )["output"].split() == ["3", "3", "1"]
    assert (
        place.shell("cat /dev/kmsg; cat /dev/mem; cat /dev/sda; cat /dev/vda; echo x > /dev/tty")[
            "exit_code"
        ]
        != 0
    )


def test_programs_find_what_they_need(place):
    said = place.shell(
        "id -u; awk 'BEGIN { print 1 }'; sed s/a/b/ < /dev/null; date +%Y | wc -c; "
        "sort < /dev/null; ls /usr/bin/env"
    )
    assert said["exit_code"] == 0, said


def test_a_function_imports_the_standard_library(place):
    if place.profile == "L" and place.root:
        good, value = place.run(
            ["function", "tools.py", "import this_is_not_there\ndef f():\n    pass\n", "f", {}]
        )
        assert not good and "ModuleNotFoundError" in value[2]
        return  # the tools' user need not be able to read root's Python
    assert (
        place.python("    import json, decimal, email.message\n    return json.dumps([1])\n")
        == "[1]"
    )


def test_a_denied_path_that_is_not_there_yet(place):
    ws = str(place.folder / "ws")
    command = ["command", ["sh", "-c", "echo x > later; mkdir later2; ls later"]]
    good, value = place.run(command, mounts=[[ws, True]], denied=[ws + "/later", ws + "/later2"])
    assert not good and value[1] == -32010 and "later" in value[2] and value[3]
    assert not os.path.lexists(ws + "/later") and not os.path.lexists(ws + "/later2")
    assert place.run(command[:1] + [["true"]], mounts=[[ws, False]], denied=[ws + "/later"])[0]


def test_a_folder_that_the_tools_may_not_write(place):
    other = place.folder / "other"
    other.mkdir(mode=0o755)
    good, value = place.run(
        ["command", ["sh", "-c", "echo x > %s/x" % other]], mounts=[[str(other), True]]
    )
    if place.root:  # the tools are another user than the agent
        assert not good and value[1] == -32010 and str(other) in value[2] and "65534" in value[2]
        assert os.stat(other).st_uid == os.geteuid() and list(other.iterdir()) == []
    elif os.geteuid() == 0:
        assert good and value["exit_code"] != 0
    shutil.rmtree(other)


def test_what_is_denied_does_not_come_back_under_another_name(place):
    deep = place.folder / "ws" / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "key").write_text("canary-deep")
    (deep / "other").write_text("other")
    ws = str(place.folder / "ws")
    scoped = {"mounts": [[ws, place.profile == "N"]], "denied": [str(deep / "key")]}
    for command in (
        "mv a z",
        "mv a/b a/c",
        "mv a/b b",
        "mv a private/",
        "ln -s / a/b/link; mv a/b/key a/b/k",
        "rm -rf a",
    ):
        place.shell(command, **scoped)
    said = place.shell(
        "find . -name key -o -name k | xargs cat; cat z/b/key a/c/key b/key a/b/k a/b/key", **scoped
    )
    assert "canary-deep" not in said["output"]
    assert (deep / "key").read_text() == "canary-deep"


def test_a_mount_below_a_writable_one_is_not_led_elsewhere(place):
    ws = place.folder / "ws"
    (ws / "n" / "m").mkdir(parents=True)
    mounts = [[str(ws), True], [str(ws / "n" / "m"), False]]
    good, value = place.run(
        ["command", ["sh", "-c", "mv n gone; ln -s %s n; ls" % (place.folder / "out")]],
        mounts=mounts,
    )
    if place.profile == "L":
        assert not good and value[1] == -32010 and str(ws / "n" / "m") in value[2], value
    else:
        assert good and value["exit_code"] in (0, 1)
        assert (ws / "n" / "m").is_dir() and not (ws / "n").is_symlink()
    if not (ws / "n").is_symlink():
        shutil.rmtree(ws / "n")
        (ws / "n").symlink_to(place.folder)
    mounts = [[str(ws), True], [str(ws / "n" / "out"), False]]
    good, value = place.run(
        ["command", ["sh", "-c", "cat n/out/secret %s/out/secret" % place.folder]], mounts=mounts
    )
    (ws / "n").unlink()
    assert not good and value[1] == -32010 and "link" in value[3]
