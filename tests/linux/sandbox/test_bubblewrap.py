"""Namespaces by a real bubblewrap: the machine's, or the one that ``make bubblewrap`` put into
build/.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from sandbox_places import host

BUILT = Path(__file__).resolve().parents[3] / "build" / "bubblewrap" / "usr" / "bin" / "bwrap"


def program() -> str:
    return shutil.which("bwrap") or (str(BUILT) if BUILT.exists() else "")


@pytest.fixture(scope="module")
def folder():
    """A folder for $PATH with bwrap in it, which anybody may run."""
    if not program():
        pytest.skip("no bwrap: apt-get install bubblewrap, or make bubblewrap")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o755)
        shutil.copy(program(), name)
        yield name


@pytest.fixture(scope="module")
def place(folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", folder + ":" + os.environ["PATH"])
        with host("N", False, bubblewrap=True) as found:
            yield found


def test_the_report_names_it(place):
    report = place.ask(report=True)
    assert (
        report["profile"] == "N"
        and report["tried"] == {"seccomp": "", "bubblewrap": ""}
        and report["call_ms"] > 0
    )
    assert report["cgroups"]["controllers"] == [] and "bubblewrap" in report["cgroups"]["reason"]


def test_a_call_sees_what_is_declared_and_no_more(place):
    said = place.shell(
        "cat hello; echo new > made; cat made; ls /; cat %s/out/secret; cat "
        "private/key; ls /old /home" % place.folder,
        denied=["/workspace/private"],
    )
    assert (
        said["output"].startswith("hello-benign")
        and "new\n" in said["output"]
        and "canary" not in said["output"]
    )
    assert "old" not in said["output"].split("/old")[0].split()
    (place.folder / "ws" / "made").unlink()


def test_a_call_is_alone_and_has_no_rights(place):
    said = place.shell(
        "echo /proc/[0-9]*; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' "
        "/proc/self/status; id -u; ls /sys/class/net 2>&1; cat /proc/net/dev"
    )
    words = said["output"]
    assert (
        "CapEff:\t0000000000000000" in words
        and "NoNewPrivs:\t1" in words
        and "Seccomp:\t2" in words
        and "eth" not in words
    )
    assert len(words.split("\n")[0].split()) <= 4
    body = (
        "    return [system_call('unshare', 0x10000000), system_call('mount', b'a', b'/tmp', "
        "b'tmpfs', 0, 0), tried(os.kill, %d, 0)]\n"
    )
    assert place.python(body % place.ask(agent=True)["pid"]) == ["EPERM", "EPERM", "ESRCH"]


def test_limits_hold_and_nothing_outlives_its_call(place):
    assert (
        place.run(
            ["command", ["sh", "-c", "sleep 40 & setsid sleep 40 & sleep 40"]], timeout_ms=500
        )[1][0]
        == "ToolTimeout"
    )
    assert (
        place.shell("/usr/bin/python3 -c 'bytearray(400 << 20)'", memory_mb=128)["exit_code"] != 0
    )
    said = place.shell(
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 60 & done; echo all", max_processes=6
    )
    assert "all" not in said["output"] or said["ended"] == "max_processes"
    assert place.shell("setsid sleep 77.75 >/dev/null 2>&1 & echo left")["output"] == "left\n"
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            assert b"77.75" not in (Path("/proc") / name / "cmdline").read_bytes()
        except OSError:
            pass


def test_the_door_is_the_only_way_out(place):
    body = (
        "import socket, os\nurl = os.environ['http_proxy'].split(':')\ns = "
        "socket.create_connection(('127.0.0.1', int(url[2])), 5)\nprint(s.recv(9))"
    )
    assert "door" in place.shell('/usr/bin/python3 -c "%s"' % body, network=2)["output"]
    assert "EACCES" in place.python("    import _socket\n    return tried(_socket.socket, 2, 1)\n")


def test_what_waits_in_sockets_has_an_end(place):
    """The supervisor shortens what TCP may hold in the network namespace that bwrap made."""
    said = place.shell(
        "cut -f3 /proc/sys/net/ipv4/tcp_rmem /proc/sys/net/ipv4/tcp_wmem", network=1, memory_mb=128
    )
    assert [int(word) <= 1 << 20 for word in said["output"].split()] == [True, True], said


def test_a_function_and_a_file_tool_run(place):
    assert place.python("    return sorted(os.listdir('.'))\n") == ["hello", "private"]
    good, value = place.run(
        [
            "builtin",
            "clawlite.linux.tools.file_tools",
            "run_inside",
            {
                "name": "read-file",
                "arguments": {"path": "hello"},
                "files": [2, [["/workspace", True]], []],
                "hidden": [],
            },
        ]
    )
    assert good and value == {"text": "hello-benign"}, value


def test_who_asks_for_it_and_has_none_is_refused(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    with host("N", False, bubblewrap=True) as place:
        good, error = place.run(["command", ["/bin/true"]])
    assert (
        not good
        and error[1] == -32010
        and error[4]["missing"] == ["bubblewrap"]
        and "no program bwrap in $PATH" in error[3]
    )


def test_a_program_that_is_no_bubblewrap_is_refused(monkeypatch, tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        fake = Path(folder) / "bwrap"
        fake.write_text(
            "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"
        )
        fake.chmod(0o755)
        monkeypatch.setenv("PATH", folder)
        with host("N", False, bubblewrap=True) as place:
            good, error = place.run(["command", ["/bin/true"]])
    assert not good and error[1] == -32010 and "uid map: Permission denied" in error[3]


def test_as_root_it_is_refused(folder, monkeypatch):
    monkeypatch.setenv("PATH", folder + ":" + os.environ["PATH"])
    with host("N", True, bubblewrap=True) as place:
        good, error = place.run(["command", ["/bin/true"]])
    assert not good and error[1] == -32010 and "the agent is root" in error[3]
