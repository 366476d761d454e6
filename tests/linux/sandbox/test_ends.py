"""Nothing outlives a call, whoever is killed."""

import os
import select
import signal
import time

import pytest
from sandbox_places import host
from sandboxes import WAIT_S


def _sleepers(mark: str) -> list:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    if file.read() == b"sleep\0%s\0" % mark.encode():
                        found.append(int(name))
            except OSError:
                pass
    return found


def _until(count: int, mark: str):
    end = time.monotonic() + WAIT_S
    while len(_sleepers(mark)) != count:
        assert time.monotonic() < end, _sleepers(mark)
        time.sleep(0.01)


@pytest.mark.parametrize(
    "profile, user", [("N", "user"), ("N", "root"), ("L", "user"), ("L", "root")]
)
@pytest.mark.parametrize("victim", ["agent", "server", "line"])
def test_killed(profile, user, victim):
    mark = "7%d" % (time.time_ns() % 1000000)
    with host(profile, user == "root") as place:
        agent = place.ask(agent=True)
        command = "(setsid sh -c 'trap \"\" TERM; sleep %s & sleep %s' &) ; sleep %s" % (
            mark,
            mark,
            mark,
        )
        place.ask(start=True, profile={}, job=["command", ["sh", "-c", command]])
        _until(3, mark)
        if victim == "line":  # it ends in order, with a call under way
            pass
        else:
            os.kill(agent["pid"] if victim == "agent" else agent["server"], signal.SIGKILL)
            _until(0, mark)
        if victim == "server":
            assert place.shell("echo again")["output"] == "again\n"
    _until(0, mark)


def _children(pid: int) -> list:
    with open("/proc/%d/task/%d/children" % (pid, pid)) as file:
        return [int(one) for one in file.read().split()]


def _waiting(server: int) -> int:
    """Return the supervisor of the next call, once it is the only one.  It has a child already;
    one that has just told how its call ended has none any more.
    """
    end = time.monotonic() + WAIT_S
    while True:
        found = _children(server)
        try:
            if len(found) == 1 and _children(found[0]):
                return found[0]
        except OSError:  # it has ended
            pass
        assert time.monotonic() < end, found
        time.sleep(0.01)


@pytest.mark.parametrize(
    "profile, user", [("N", "user"), ("N", "root"), ("L", "user"), ("L", "root")]
)
def test_a_call_that_has_ended_before_it_began_does_not_run(profile, user):
    """On a busy machine a call may be over by its time while its sandbox is still being built."""
    with host(profile, user == "root") as place:
        made = place.folder / "ws" / "made"
        mounts = {"mounts": [[str(made.parent), True]]}
        server = place.ask(agent=True)["server"]
        assert place.ask(report=True)["profile"] == profile
        assert place.shell("true", **mounts)["exit_code"] == 0
        waiting = _waiting(server)
        line = os.pidfd_open(waiting)
        os.kill(waiting, signal.SIGSTOP)
        job = ["command", ["sh", "-c", "echo x > %s" % made]]
        number = place.ask(start=True, profile=mounts, job=job)["number"]
        place.ask(cancel=number)
        os.kill(waiting, signal.SIGCONT)
        assert select.select([line], [], [], WAIT_S)[0], "the supervisor does not end"
        os.close(line)
        assert not made.exists()
        assert place.shell("echo next", **mounts)["output"] == "next\n"
        _waiting(server)  # no other child, not even a zombie


@pytest.mark.parametrize("profile", ["N", "L"])
def test_a_call_that_is_refused_leaves_no_child(profile):
    with host(profile, False) as place:
        server = place.ask(agent=True)["server"]
        for _ in range(3):
            good, error = place.run(["command", ["true"]], cpu_shares=1)
            assert not good and "cpu_shares 1" in error[2], error
        _waiting(server)
