"""Nothing outlives a call, whoever is killed."""

import os
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
