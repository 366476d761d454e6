"""Plans that stay: for as long as nothing that they were made of has changed, and nobody can
write to them.
"""

import errno
import marshal
import os

import pytest
from sandboxes import profile

from clawlite.core.base.errors import SandboxDenied
from clawlite.linux.files.real_path import resolve
from clawlite.linux.sandbox import plan as plans
from clawlite.linux.sandbox.jobs import Builtin, Command, Server
from clawlite.linux.sandbox.plan_cache import PlanCache, _is_at
from clawlite.protocols.sandbox.profile import FULL

JOB = Command(["true"])


@pytest.fixture
def planned(tmp_path):
    made = PlanCache(str(tmp_path / "workspace"), [], frozenset(["max_processes"]))
    yield made
    made.close()


def _said(fd: int) -> dict:
    return marshal.loads(os.pread(fd, 65536, 0))


def _fresh(planned, profile, job=JOB) -> dict:
    return marshal.loads(marshal.dumps(plans.make(profile, job, *planned._of)))


def test_it_is_what_a_new_one_would_be_and_is_made_once(planned):
    for one, job in (
        (profile(), JOB),
        (profile(network=1, memory_mb=64, denied=["/etc/shadow"]), JOB),
        (profile(files=FULL, timeout_ms=5), JOB),
        (profile(), Builtin("clawlite.core.base.uri", "parse", {})),
    ):
        fd = planned.memory(one, job)
        assert _said(fd) == _fresh(planned, one, job)
        made, plans.make = plans.make, None
        try:
            assert planned.memory(one, job) == fd
        finally:
            plans.make = made


def test_each_server_has_a_processor_time_of_its_own(planned):
    for cpu_s in (5, None, 7):
        assert _said(planned.memory(profile(), Server(["x"], cpu_s=cpu_s)))["cpu_s"] == cpu_s


def _refused(planned, profile) -> str:
    with pytest.raises(SandboxDenied) as caught:
        planned.memory(profile, JOB)
    return caught.value.message


def test_a_link_is_followed_as_it_was_when_the_agent_began(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    workspace = tmp_path / "workspace"
    workspace.symlink_to("a")
    planned = PlanCache(str(workspace), [], ())
    assert _said(planned.memory(profile(), JOB))["folder"] == str(tmp_path / "a")
    workspace.unlink()
    workspace.symlink_to("b")
    assert "led to %s" % (tmp_path / "a") in _refused(planned, profile())
    workspace.unlink()
    workspace.mkdir()
    assert "leads to %s now" % workspace in _refused(planned, profile())
    workspace.rmdir()
    workspace.symlink_to("a")
    assert _said(planned.memory(profile(), JOB))["folder"] == str(tmp_path / "a")
    planned.close()


def test_a_folder_whose_place_a_link_takes(planned, tmp_path):
    """What is refused is one call: what comes after it finds the folder again."""
    workspace, data = tmp_path / "workspace", tmp_path / "data"
    for one in (workspace, data):
        one.mkdir()
    mounted = profile(mounts=(("/workspace", True), (str(data), False)))
    assert _said(planned.memory(mounted, JOB))["folder"] == str(workspace)
    for path in (workspace, data):
        path.rename(tmp_path / "away")
        path.symlink_to("/etc")
        assert "leads to /etc now" in _refused(planned, mounted)
        path.unlink()
        (tmp_path / "away").rename(path)
        assert _said(planned.memory(mounted, JOB))["folder"] == str(workspace)


def test_a_link_above_it(tmp_path):
    """The folder itself is the same; a folder on its way is another one now."""
    real = tmp_path / "real"
    (real / "w").mkdir(parents=True)
    other = tmp_path / "other"
    (other / "w").mkdir(parents=True)
    link = tmp_path / "link"
    link.symlink_to("real")
    one = profile(mounts=(("/workspace", True), (str(link / "w"), True)))
    planned = PlanCache(str(tmp_path / "workspace"), [], (), [str(link / "w")])
    assert str(real / "w") in [source for source, _, _ in _said(planned.memory(one, JOB))["mounts"]]
    link.unlink()
    link.symlink_to("other")
    assert "led to %s" % (real / "w") in _refused(planned, one)
    planned.close()


@pytest.mark.parametrize("way", ["its own name", "another name of the mount", "the workspace"])
def test_no_link_counts_where_tools_may_write(tmp_path, way):
    """A tool may have made it, whatever path of the manifest leads through it."""
    data, out = tmp_path / "data", tmp_path / "out"
    for one in (data, out):
        one.mkdir()
    (tmp_path / "other").symlink_to("data")
    (data / "link").symlink_to(out)
    path = str((tmp_path / "other" if way == "another name of the mount" else data) / "link")
    workspace = path if way == "the workspace" else str(data)
    one = profile(mounts=((str(data), True), (path, False)))
    planned = PlanCache(workspace, [], ())
    assert "is below" in _refused(planned, one)
    read = profile(mounts=((str(data), False), (path, False)))
    assert str(out) in [source for source, _, _ in _said(planned.memory(read, JOB))["mounts"]]
    planned.close()


def test_a_denied_path_that_comes_and_goes(planned, tmp_path):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    denied = workspace / "secret"
    one = profile(denied=["/workspace/secret"])
    assert _said(planned.memory(one, JOB))["absent"] == [str(denied)]
    denied.mkdir()
    assert _said(planned.memory(one, JOB))["absent"] == []
    denied.rmdir()
    assert _said(planned.memory(one, JOB))["absent"] == [str(denied)]
    # it leads elsewhere: that is denied, and so is what it is called
    denied.symlink_to("/etc")
    assert _said(planned.memory(one, JOB)) == _fresh(planned, one)


def test_another_profile_and_one_that_was_changed(planned, tmp_path):
    first = profile()
    assert _said(planned.memory(first, JOB))["network"] == 0
    assert _said(planned.memory(profile(network=2), JOB))["network"] == 2
    first.denied.append("/etc")
    assert _said(planned.memory(first, JOB))["denied"] == ["/etc"]
    first.denied.append("/usr/share")
    assert _said(planned.memory(first, JOB))["denied"] == ["/etc", "/usr/share"]


def test_another_folder_to_start_in(planned):
    assert _said(planned.memory(profile(), JOB))["cwd"] == "/workspace"
    assert _said(planned.memory(profile(), Command(["true"], "/tmp")))["cwd"] == "/tmp"


def test_what_is_refused_is_refused_each_time(tmp_path):
    planned = PlanCache(str(tmp_path / "workspace"), [str(tmp_path)], ())
    for _ in range(2):
        with pytest.raises(SandboxDenied):
            planned.memory(profile(mounts=((str(tmp_path), False),)), JOB)


def test_nobody_writes_to_it(planned):
    fd = planned.memory(profile(), JOB)
    for change in (
        lambda: os.pwrite(fd, b"x", 0),
        lambda: os.ftruncate(fd, 0),
        lambda: os.ftruncate(fd, 65536),
    ):
        with pytest.raises(OSError) as caught:
            change()
        assert caught.value.errno == errno.EPERM


def test_where_a_path_leads(tmp_path):
    """The short look says what ``os.path.realpath`` says, for whatever there is."""
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "broken").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe")
    for name in (
        "folder",
        "link",
        "loop",
        "broken",
        "pipe",
        "nothing",
        "link/inner",
        "link/../link/inner",
        "folder/inner/",
        "folder//inner",
        "pipe/x",
    ):
        path = str(tmp_path / name)
        real = os.path.realpath(path)
        assert _is_at(path, real), name
        for other in (path + "x", real + "x", str(tmp_path), str(tmp_path / "folder2")):
            assert not _is_at(path, other), (name, other)
    assert resolve("../x/..") == os.path.realpath("../x/..") and resolve("/..") == "/"
    assert _is_at("/proc/self", "/proc/%d" % os.getpid()) and _is_at("/", "/")


class _Watched(Command):
    """Takes note of what is asked of it."""

    def __getattribute__(self, name):
        if name != "asked":
            object.__getattribute__(self, "asked").add(name)
        return object.__getattribute__(self, name)


def test_a_plan_is_made_of_nothing_else_of_a_job(planned):
    """Whatever ``plan.make`` asks of a job is compared before a plan is used again, and its kind
    tells its plans from others.
    """
    job = _Watched.__new__(_Watched)
    object.__setattr__(job, "asked", set())
    job.__init__(["true"], "", b"", {}, {})
    planned.memory(profile(), job)
    made = set(job.asked)
    job.asked.clear()
    planned.memory(profile(), job)
    assert made - {"__init__"} == job.asked == {"KIND", "cwd", "most", "cpu_s"}


def test_another_bound_of_the_workspace(planned):
    job = Command(["true"])
    assert _said(planned.memory(profile(), job))["room"] is None
    job.most = 4096
    assert _said(planned.memory(profile(), job))["room"] == 4096


def test_what_appears_while_a_plan_is_made(planned, tmp_path, monkeypatch):
    """What the plan saw is what is remembered, not what is there a moment later."""
    (tmp_path / "data").mkdir()
    denied, make = tmp_path / "data" / "denied", plans.make

    def slow(*arguments):
        made = make(*arguments)
        if denied.exists():
            denied.rmdir()
        else:
            denied.mkdir()
        return made

    one = profile(mounts=[(str(tmp_path / "data"), True)], denied=[str(denied)])
    monkeypatch.setattr(plans, "make", slow)
    assert _said(planned.memory(one, JOB))["absent"] == [str(denied)]  # there by now
    assert _said(planned.memory(one, JOB))["absent"] == []  # gone by now
    monkeypatch.setattr(plans, "make", make)
    assert _said(planned.memory(one, JOB))["absent"] == [str(denied)]
