"""Modes, times and owners: changed where tools may write, and nowhere else, by path and by
descriptor, in N and in L.
"""

import ctypes
import errno
import os
import threading

import pytest
from sandbox_places import host

from clawlite.linux.confinement.modes import _memory, _process_of


def _scoped(place, **more) -> dict:
    return dict(
        {
            "mounts": [
                [str(place.folder / "ws"), place.profile == "N"],
                [str(place.folder / "ro"), False],
            ],
            "denied": [str(place.folder / "ws" / "private")],
        },
        **more,
    )


def test_programs_change_modes_and_times_of_their_own_files(place):
    said = place.shell(
        "echo x > file && mkdir dir && chmod 640 file && chmod 700 dir && stat -c "
        "%a file dir && touch -d @86400 file && stat -c %Y file "
        "&& cp -p file copy && stat -c '%a %Y' copy && sed -i s/x/y/ file && stat "
        "-c %a file && cat file && tar c file dir | tar x -C dir "
        "&& stat -c %a dir/file && cp -a dir twin && mkdir u && tar c twin | tar "
        "xp -C u && rm -r twin u && touch -h -d @5 copy && rm -r file dir copy",
        mounts=[[str(place.folder / "ws"), True]],
    )
    assert said["output"].split() == ["640", "700", "86400", "640", "86400", "640", "y", "640"], (
        said
    )


def test_functions_and_file_tools_do_so_too(place):
    body = """    os.chdir(%r)
    with open("f", "w") as file:
        os.fchmod(file.fileno(), 0o600)
        os.utime(file.fileno(), (7, 8))
    os.chmod("f", 0o604)
    os.rename("f", "g")
    fd = os.open("g", os.O_RDONLY)
    os.fchmod(fd, 0o644)
    os.fchown(fd, os.getuid(), -1)
    found = os.stat("g")
    os.unlink("g")
    return [found.st_mode & 0o777, found.st_mtime]
""" % str(place.folder / "ws")
    assert place.python(body, mounts=[[str(place.folder / "ws"), True]]) == [0o644, 8]
    hello = place.folder / "ws" / "hello"
    os.chmod(hello, 0o640)
    files = [2, [[str(place.folder / "ws"), True]], []]
    good, value = place.run(
        [
            "builtin",
            "clawlite.linux.tools.file_tools",
            "run_inside",
            {
                "name": "edit-file",
                "arguments": {"path": "hello", "old_text": "hello", "new_text": "hello"},
                "files": files,
                "hidden": [],
            },
        ],
        mounts=files[1],
    )
    assert good and hello.stat().st_mode & 0o777 == 0o640 and hello.read_text() == "hello-benign"


def test_nothing_else_is_changed_by_a_descriptor_or_a_path(place):
    config = place.folder / "ro" / "config"
    before = config.stat()
    body = """    path = %r
    found = []
    fd = os.open(path, os.O_RDONLY)
    for what in (fd, path):
        found += [tried(os.chmod, what, 0o777), tried(os.utime, what, (1, 1)), tried(os.utime, what), tried(os.setxattr, what, "user.x", b"1")]
    found += [tried(os.fchown, fd, -1, 0), tried(os.chown, path, os.getuid(), os.getgid()), tried(os.removexattr, fd, "user.x")]
    import fcntl
    found.append(tried(fcntl.ioctl, fd, 0x40086602, b"\\0" * 8))
    os.symlink(path, os.environ["TMPDIR"] + "/link")
    found += [tried(os.chmod, os.environ["TMPDIR"] + "/link", 0o777), tried(os.chmod, "/proc/self/fd/%%d" %% fd, 0o777), tried(os.chmod, "ro/../" + path, 0o777)]
    return found
""" % str(config)  # noqa: E501
    found = place.python(body, **_scoped(place))
    assert "open" not in found, found
    after = config.stat()
    assert (after.st_mode, after.st_mtime, after.st_gid) == (
        before.st_mode,
        before.st_mtime,
        before.st_gid,
    ) and os.listxattr(config) == []
    key = place.folder / "ws" / "private" / "key"
    before = key.stat()
    place.shell("chmod 777 private/key private; touch -d @1 private/key private", **_scoped(place))
    assert (key.stat().st_mode, key.stat().st_mtime) == (
        before.st_mode,
        before.st_mtime,
    ) and key.parent.stat().st_mode & 0o777 != 0o777


def test_no_file_becomes_set_user_id(place):
    mounts = [[str(place.folder / "ws"), True]]
    said = place.shell(
        "cp /bin/true t; chmod 4755 t; chmod 2755 t; stat -c %a t; rm t", mounts=mounts
    )
    assert said["output"].split()[-1] in ("755", "644"), said
    found = place.python(
        """    os.umask(0)
    made = [tried(os.open, "s%d" % n, os.O_CREAT | os.O_WRONLY, mode) for n, mode in enumerate((0o4755, 0o2755, 0o755))]
    made.append(tried(os.open, ".", os.O_TMPFILE | os.O_WRONLY, 0o4755))
    made.append(tried(os.mknod, "m", 0o104755))
    return made + [tried(os.fchmod, os.open("s2", os.O_RDWR), 0o4755), tried(os.open, "s2", os.O_RDONLY, 0o4755)]
""",  # noqa: E501
        mounts=mounts,
    )
    (place.folder / "ws" / "s2").unlink()
    assert found == ["EPERM", "EPERM", "open", "EPERM", "EPERM", "EPERM", "open"]
    assert not [
        path
        for path in (place.folder / "ws").rglob("*")
        if path.is_file() and path.stat().st_mode & 0o6000
    ]


def test_what_makes_no_sense_is_an_error_and_nothing_more(place):
    body = """    fd = os.open(os.environ["TMPDIR"] + "/f", os.O_CREAT | os.O_RDWR)
    path = os.open(os.environ["TMPDIR"] + "/f", os.O_PATH)
    assert tried(os.chmod, "/proc/self/fd/%d" % path, 0o600) == "open" and os.stat(fd).st_mode & 0o777 == 0o600
    assert tried(os.chmod, "/proc/self/fd/%d" % os.open("/usr", os.O_PATH), 0o700) != "open"
    return [tried(os.fchmod, 999, 0), tried(os.fchmod, path, 0o600), tried(os.chmod, os.environ["TMPDIR"] + "/none", 0o600), tried(os.chmod, "/none", 0),
            system_call("fchmodat", -100, 8, 0o600), system_call("fchmodat", -100, None, 0o600), system_call("utimensat", fd, None, ctypes.c_void_p(8), 0),
            system_call("fchmodat", -100, b"", 0o600), tried(os.chmod, "x" * 5000, 0o600), tried(os.fchmod, fd, 0o600)]
"""  # noqa: E501
    found = place.python(body)
    assert (
        found[:3] == ["EBADF", "EBADF", "ENOENT"]
        and found[-1] == "open"
        and "open" not in found[:-1]
    ), found


def test_no_address_and_no_name_of_a_process_ends_the_supervisor(place):
    """Nobody else would end in L what a call has left behind."""
    body = """    libc = ctypes.CDLL(None)
    libc.prctl(15, b"\\xff\\xfe")
    fd = os.open(os.environ["TMPDIR"] + "/f", os.O_CREAT | os.O_RDWR)
    return [system_call("fchmodat", -100, ctypes.c_void_p(address), 0o600) for address in (-1, -4096, 1 << 63, (1 << 63) - 1)] + [tried(os.fchmod, fd, 0o600)]
"""  # noqa: E501
    found = place.python(body)
    assert found[0] == "EFAULT" and found[-1] == "open" and "open" not in found[:-1], found


def test_a_file_that_is_exchanged_all_the_time_is_never_the_wrong_one():
    """A path that leads in and out by turns, while the tool asks for a mode again and again."""
    with host("L", False) as place:
        config = place.folder / "ro" / "config"
        mode = config.stat().st_mode
        body = """    import threading
    os.chdir(%r)
    open("good", "w").close()
    stop = []
    def flip():
        for i in range(3000):
            os.symlink(("good", %r)[i & 1], "new")
            os.rename("new", "door")
        stop.append(1)
    os.symlink("good", "door")
    thread = threading.Thread(target=flip)
    thread.start()
    said = set()
    while not stop:
        said.add(tried(os.chmod, "door", 0o777))
    thread.join()
    os.unlink("door")
    os.unlink("good")
    return sorted(said)
""" % (str(place.folder / "ws"), str(config))
        said = place.python(
            body,
            **{"mounts": [[str(place.folder / "ws"), True], [str(place.folder / "ro"), False]]},
        )
        assert "open" in said and config.stat().st_mode == mode


def test_what_the_supervisor_reads_of_another_process():
    data = ctypes.create_string_buffer(b"text\0more")
    address, pid = ctypes.addressof(data), os.getpid()
    assert (
        _memory(pid, address, 4096, True) == b"text"
        and _memory(pid, address, 9, False) == b"text\0more"
    )
    for bad, size, code in (
        (8, 16, errno.EFAULT),
        (0xFFFFFFFF, 16, errno.EFAULT),
        (address + 4, 4096, errno.ENOENT),
    ):
        with pytest.raises(OSError) as caught:
            _memory(pid, bad, size, True)
        assert caught.value.errno == code
    found = []
    thread = threading.Thread(target=lambda: found.append(_process_of(threading.get_native_id())))
    thread.start()
    thread.join()
    assert found == [pid]


def test_a_supervisor_that_fails_ends_what_its_call_started(monkeypatch):
    from clawlite.linux.sandbox import watch

    ended = []
    monkeypatch.setattr(watch.Watch, "__init__", lambda self: None)
    monkeypatch.setattr(watch.Watch, "_watch", lambda self: [][0])
    monkeypatch.setattr(watch.Watch, "_sweep", lambda self: ended.append(self))
    with pytest.raises(IndexError):
        watch.Watch().run()
    assert len(ended) == 1
