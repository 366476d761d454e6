"""The report of ``clawlite doctor`` about the sandbox: the result of the probe, how each limit is
enforced, and what one call costs.
"""

import select
from time import monotonic_ns

from clawlite.linux.confinement.limits import KEEPERS, OPEN_FILES
from clawlite.linux.sandbox.jobs import Command
from clawlite.protocols.sandbox.profile import PROCESS, Profile

CALLS = 5  # calls of ``true``; the time of the fastest is reported
_NUMBER = -1  # differs from the numbers of the agent's own calls


def report(engine, found: dict, uid) -> dict:
    """Return {"profile", "tried", "missing", "available", "uid", "cgroups", "limits", "call_ms"}.
    Runs ``true`` a few times for the last.

    found  the result of the probe, or None when the server has died
    """
    if found is None:
        said = "it does not answer"
        found = {"profile": None, "tried": {"server": said}, "missing": ["server"], "available": []}
        found.update(cgroup=None, cgroups=[], no_cgroup=said)
    works = found["profile"] is not None
    return {
        "profile": found["profile"],
        "tried": found["tried"],
        "missing": found["missing"],
        "available": found["available"],
        "uid": uid,
        "cgroups": {
            "folder": found["cgroup"],
            "controllers": found["cgroups"],
            "reason": found["no_cgroup"],
        },
        "limits": _limits(found) if works else {},
        "call_ms": _measure(engine) if works else None,
    }


def _limits(found: dict) -> dict:
    own = found["profile"] == "N" and found["own_users"]
    counted = (
        "RLIMIT_NPROC of its own user namespace"
        if own
        else "RLIMIT_NPROC above what runs already, and counted by the supervisor"
    )
    if found["blind"]:
        counted = "refused: /proc hides processes of this user (hidepid)"
    kept = {
        "memory": "memory.max of the call's control group",
        "cpu": "cpu.weight of the call's control group, beside the agent's",
        "pids": "pids.max of the call's control group",
    }
    kept = {
        name: kept[controller]
        for name, controller in KEEPERS.items()
        if controller in found["cgroups"]
    }
    return {
        "memory_mb": "RLIMIT_DATA of each process, and by the supervisor the sum over the tree: "
        "pages, swap, and the most that the kernel may hold "
        "for its tasks, mappings, descriptors, pipes, sockets and locks; what it "
        "could not count is refused",
        "cpu_shares": "nice, and that of each session by the supervisor where the kernel groups "
        "by session",
        "max_processes": counted,
        "max_open_files": "RLIMIT_NOFILE of each process"
        + ("" if "memory_mb" in kept else "; %d where memory_mb is declared alone" % OPEN_FILES),
        "timeout_ms": "TERM, 500 ms, KILL by the supervisor, to the whole tree",
        "max_output_bytes": "counted by the supervisor, the rest is read and dropped",
        **kept,
    }


def _measure(engine) -> float:
    """Return the milliseconds of the fastest of some calls of ``true``."""
    profile = Profile(
        ["", PROCESS, [0, [], True], [0, [], []], [0, False], [2, [], []], [None] * 6]
    )
    best = None
    for _ in range(CALLS):
        start = monotonic_ns()
        if engine.start(_NUMBER, profile, Command(["true"]), None, start // 1000000) is not None:
            return None
        while not any(number == _NUMBER for number, _ in engine.poll()):
            select.select([engine.fileno()], [], [], 5)
        took = (monotonic_ns() - start) / 1e6
        best = took if best is None or took < best else best
    return round(best, 2)
