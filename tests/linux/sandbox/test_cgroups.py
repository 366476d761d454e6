"""Control groups of calls: made, limited and removed, in a part of the real tree that is delegated
as systemd does it.

A kernel whose controllers for memory, processors and processes belong to cgroup v1 still has
groups: then ``hugetlb``, which limits nothing here, stands for them, and what the limits do is
skipped by name."""

import contextlib
import os
import signal
import time

import pytest
from sandbox_places import host
from sandboxes import WAIT_S

from clawlite.linux.confinement import cgroups
from clawlite.linux.confinement.limits import KEEPERS


def _mounted() -> str:
    with open("/proc/self/mounts") as file:
        for line in file:
            if line.split()[2] == "cgroup2":
                return line.split()[1]
    return ""


def _text(path: str) -> str:
    with open(path) as file:
        return file.read()


def _write(path: str, text: str):
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


@contextlib.contextmanager
def delegated(root: bool, controllers):
    """Make a group with *controllers* for another user, or for root by systemd's mark; it is
    empty and goes afterwards.
    """
    base = _mounted()
    if os.geteuid() or not base:
        pytest.skip(
            "only root delegates a control group" if base else "no cgroup v2 is mounted here"
        )
    missing = set(controllers) - set(_text(base + "/cgroup.controllers").split())
    if missing:
        pytest.skip("cgroup v2 has no controller %s here" % ", ".join(sorted(missing)))
    added = [
        name for name in controllers if name not in _text(base + "/cgroup.subtree_control").split()
    ]
    path = "%s/clawlite-test-%s" % (base, os.urandom(4).hex())
    try:
        for name in added:
            _write(base + "/cgroup.subtree_control", "+" + name)
        os.mkdir(path)
    # a container, whose own group holds its processes, or is read-only
    except OSError as e:
        pytest.skip("no control group can be delegated here: %s" % e)
    try:
        if root:
            os.setxattr(path, "trusted.delegate", b"1")
        else:
            for name in ("", "/cgroup.procs", "/cgroup.subtree_control", "/cgroup.threads"):
                os.chown(path + name, 65534, 65534)
        yield path
        assert _groups(path) == [], "a group was left behind"
    finally:
        for name in _groups(path):
            os.rmdir(path + "/" + name)
        os.rmdir(path)
        for name in added:
            _write(base + "/cgroup.subtree_control", "-" + name)


def _groups(path: str) -> list:
    return sorted(name for name in os.listdir(path) if os.path.isdir(path + "/" + name))


def _calls(path: str) -> list:
    return [name for name in _groups(path) if name.startswith("clawlite-call-")]


def _until(fact):
    end = time.monotonic() + WAIT_S
    while not fact():
        assert time.monotonic() < end
        time.sleep(0.005)


def _some() -> tuple:
    """Return controllers that this kernel has in cgroup v2."""
    base = _mounted()
    has = _text(base + "/cgroup.controllers").split() if base else []
    return tuple(name for name in cgroups.CONTROLLERS if name in has) or ("hugetlb",)


@pytest.fixture(scope="module", params=["N-user", "N-root", "L-user", "L-root"])
def place(request):
    profile, _, user = request.param.partition("-")
    with (
        delegated(user == "root", _some()) as path,
        host(profile, user == "root", None, (path, _some())) as one,
    ):
        one.group = path
        yield one


def test_a_call_has_a_group_of_its_own_and_nothing_is_left_of_it(place):
    report = place.ask(report=True)
    assert (
        report["cgroups"] == {"folder": place.group, "controllers": sorted(_some()), "reason": ""}
        and report["profile"] == place.profile
    )
    seen = [
        place.shell("while read a; do case $a in 0::*) echo $a;; esac; done < /proc/self/cgroup")[
            "output"
        ].strip()
        for _ in range(3)
    ]
    assert len(set(seen)) == 3 and all(
        "/" + os.path.basename(place.group) + "/clawlite-call-" in one for one in seen
    ), seen
    # the next call's
    _until(
        lambda: (
            not {os.path.basename(one) for one in seen} & set(_calls(place.group))
            and len(_calls(place.group)) == 1
        )
    )


def test_a_tool_runs_in_its_group_and_the_agent_beside_it(place):
    agent = place.ask(agent=True)
    inside = os.path.basename(place.group) + "/clawlite-agent"
    assert _text("/proc/%d/cgroup" % agent["pid"]).rstrip().endswith(inside) and _text(
        "/proc/%d/cgroup" % agent["server"]
    ).rstrip().endswith(inside)
    number = place.ask(
        start=True, profile={}, job=["command", ["sh", "-c", "(setsid sleep 61 &) ; sleep 61"]]
    )["number"]
    _until(
        lambda: any(
            len(_text("%s/%s/cgroup.procs" % (place.group, name)).split()) >= 3
            for name in _calls(place.group)
        )
    )
    place.ask(cancel=number)
    place.shell("true")
    _until(lambda: len(_calls(place.group)) == 1)


def test_no_tool_sees_where_limits_are_written(place):
    for more in (
        {"files": 3, "mounts": []},
        {"files": 1, "mounts": []},
        {"mounts": [["/sys/fs/cgroup", False]]},
    ):
        said = place.shell(
            "ls %s; cat %s/cgroup.procs; echo 0 > %s/clawlite-agent/cgroup.procs; "
            "echo; cat /proc/self/cgroup" % ((place.group,) * 3),
            **more,
        )
        assert (
            "clawlite-call" not in said["output"].partition("0::")[0]
            and "cgroup.kill" not in said["output"]
        ), said
        assert not said["output"].rstrip().endswith("clawlite-agent"), said


def test_a_fork_bomb_ends_with_its_call(place):
    good, _ = place.run(
        ["command", ["sh", "-c", "b() { b | b & }; b; sleep 0.3; echo alive"]],
        max_processes=20,
        timeout_ms=2000,
    )
    assert place.shell("echo next")["output"] == "next\n"
    _until(lambda: len(_calls(place.group)) == 1)


@pytest.mark.parametrize("profile, user", [("N", "user"), ("L", "root")])
def test_who_is_killed_leaves_nothing_that_lasts(profile, user):
    with delegated(user == "root", _some()) as path:
        with host(profile, user == "root", None, (path, _some())) as place:
            server = place.ask(agent=True)["server"]
            place.shell("true")
            os.kill(server, signal.SIGKILL)
            # it may have been with the one that is gone
            place.run(["command", ["true"]])
            # a new server finds the agent where it is
            assert place.shell("echo again")["output"] == "again\n"
            assert place.ask(report=True)["cgroups"]["folder"] == path
            _until(lambda: len(_calls(path)) == 1)


def test_a_group_that_holds_others_is_left_alone():
    with delegated(False, _some()) as path:
        stranger = os.fork()
        if stranger == 0:
            signal.pause()
        try:
            _write(path + "/cgroup.procs", str(stranger))
            with host("N", False, None, (path, _some())) as place:
                found = place.ask(report=True)
                assert (
                    found["cgroups"]["controllers"] == []
                    and "holds other programs" in found["cgroups"]["reason"]
                )
                assert (
                    found["limits"]["memory_mb"].startswith("RLIMIT_DATA")
                    and place.shell("echo runs")["output"] == "runs\n"
                )
                assert _groups(path) == []
        finally:
            os.kill(stranger, signal.SIGKILL)
            os.waitpid(stranger, 0)


def test_root_wants_to_be_told_that_a_group_is_its_own():
    with delegated(False, _some()) as path, host("N", True, None, (path, _some())) as place:
        assert "Delegate" in place.ask(report=True)["cgroups"]["reason"]


def test_an_ordinary_user_without_a_delegated_group_goes_on_as_before():
    with delegated(True, _some()) as path, host("L", False, None, (path, _some())) as place:
        assert (
            "not delegated to uid 65534" in place.ask(report=True)["cgroups"]["reason"]
            and place.shell("echo runs")["output"] == "runs\n"
        )


# -- limits, where this kernel has them in cgroup v2


@contextlib.contextmanager
def limited(profile: str, *controllers):
    with (
        delegated(False, controllers) as path,
        host(profile, False, None, (path, controllers)) as place,
    ):
        found = place.ask(report=True)
        assert all(
            "control group" in found["limits"][name]
            for name, controller in KEEPERS.items()
            if controller in controllers
        )
        yield place


@pytest.mark.kernel
@pytest.mark.parametrize("profile", ["N", "L"])
def test_memory_by_its_controller(profile):
    with limited(profile, "memory") as place:
        good, error = place.run(
            [
                "function",
                "tools.py",
                "def f():\n    return len(bytearray(b'x') * (400 << 20))\n",
                "f",
                {},
            ],
            memory_mb=64,
        )
        assert not good and "memory_mb" in error[2]
        # address space is not memory; no machine has less
        assert (
            place.python(
                "    import mmap\n    return len(mmap.mmap(-1, 256 << 20))\n", memory_mb=64
            )
            == 256 << 20
        )
        assert place.python("    return tried(os.memfd_create, 'x')\n", memory_mb=64) == "open"


@pytest.mark.kernel
@pytest.mark.parametrize("profile", ["N", "L"])
def test_processes_by_their_controller(profile):
    with limited(profile, "pids") as place:
        body = (
            "    n = 0\n    try:\n        while n < 40:\n            if os.fork() == 0:\n      "
            "          import time\n                time.sleep(3600)\n            n += 1\n"
        )
        assert (
            place.python(
                body + "    except OSError:\n        pass\n    return n\n", max_processes=10
            )
            == 9
        )


@pytest.mark.kernel
@pytest.mark.parametrize("profile", ["N", "L"])
def test_shares_by_their_controller(profile):
    with limited(profile, "cpu") as place:
        assert place.python("    return os.getpriority(os.PRIO_PROCESS, 0)\n", cpu_shares=256) == 0
        assert (
            place.run(["command", ["true"]], cpu_shares=10)[0]
            and not place.run(["command", ["true"]], cpu_shares=9)[0]
        )


# -- what is written, without a kernel


def test_what_is_written_for_each_limit(tmp_path):
    for name in (
        "memory.max",
        "memory.swap.max",
        "memory.oom.group",
        "cpu.weight",
        "pids.max",
        "memory.events",
        "cgroup.kill",
    ):
        (tmp_path / name).write_text("")
    plan = {"memory_mb": 64, "cpu_shares": 512, "max_processes": 16}

    def made(*controllers):
        return cgroups.Group(os.open(tmp_path, os.O_RDONLY), list(controllers))

    group = made("cpu", "memory", "pids")
    assert sorted(group.limit(plan)) == sorted(plan)
    assert [
        (tmp_path / name).read_text()
        for name in ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.weight", "pids.max")
    ] == [str(64 << 20), "0", "1", "50", "16"]
    assert not group.is_out_of_memory()
    (tmp_path / "memory.events").write_text("low 0\nmax 5\noom 1\noom_kill 0\noom_group_kill 0\n")
    assert not group.is_out_of_memory()
    (tmp_path / "memory.events").write_text("oom_kill 2\n")
    assert group.is_out_of_memory()
    group.kill()
    assert (tmp_path / "cgroup.kill").read_text() == "1"
    group.close()
    for name in ("memory.swap.max", "memory.oom.group"):  # a kernel without them
        (tmp_path / name).unlink()
    group = made("memory")
    assert group.limit(plan) == ["memory_mb"] and group.limit(dict.fromkeys(plan)) == []
    group.close()
    group = made("pids")
    assert group.limit(plan) == ["max_processes"]
    group.close()


def test_weights():
    assert [
        cgroups.weight_of(shares)
        for shares in (1, cgroups.LEAST_SHARES, 15, 512, 1024, 2048, 1 << 20)
    ] == [1, 1, 1, 50, 100, 200, 10000]
