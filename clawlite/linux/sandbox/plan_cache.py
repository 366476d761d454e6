"""The plans of one engine, in memory that supervisors read.  A plan is computed once, and used as
long as its inputs have not changed.

The inputs of a plan are the profile, the kind of job, the targets of links, and which denied paths
exist.  All of them are checked at each call.  A plan contains nothing of a call, and its memory is
sealed against writing.
"""

import fcntl
import marshal
import os

from clawlite.linux.sandbox import plan as plans
from clawlite.linux.sandbox import spawn


class PlanCache:
    """*workspace*, *hidden*, *relaxed*: see ``plan.make``."""

    def __init__(self, workspace: str, hidden: list, relaxed):
        self._of = workspace, hidden, relaxed
        # kind of job -> (fields of profile and job, {path: where it leads}, {denied path: whether
        # it exists}, fd)
        self._kept = {}

    def memory(self, profile, job) -> int:
        """Return a descriptor of the marshalled plan for *job* under *profile*.  This object owns
        the descriptor.

        Raises ``SandboxDenied``, as ``plan.make`` does.
        """
        told = tuple(vars(profile).values()), job.cwd, job.most, job.cpu_s
        kept = self._kept.get(job.KIND)
        if kept is not None:
            known, led, was_there, fd = kept
            if known == told and _holds(led, was_there):
                return fd
        leads = {}
        plan = plans.make(profile, job, *self._of, leads)
        there = plan["there"]
        fd = spawn.memory("plan", marshal.dumps(plan), os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        fcntl.fcntl(
            fd,
            fcntl.F_ADD_SEALS,
            fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE,
        )
        self._forget(job.KIND)
        self._kept[job.KIND] = (
            (tuple([list(one) if type(one) is list else one for one in told[0]]),) + told[1:],
            leads,
            there,
            fd,
        )
        return fd

    def close(self):
        """Free all memory."""
        for kind in list(self._kept):
            self._forget(kind)

    def _forget(self, kind: str):
        kept = self._kept.pop(kind, None)
        if kept is not None:
            *_, fd = kept
            os.close(fd)


def _holds(leads: dict, there: dict) -> bool:
    """Return whether each path still leads to the same place, and the same denied paths exist."""
    for path, real in leads.items():
        if not _is_at(path, real):
            return False
    for path, was in there.items():
        if os.path.lexists(path) != was:
            return False
    return True


def _is_at(path: str, real: str) -> bool:
    """Return whether ``os.path.realpath`` of *path* is *real*.  Cost: three system calls when it
    is, however long the path.
    """
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            # the kernel's own name of the opened file contains no link
            if os.readlink("/proc/self/fd/%d" % fd) == real:
                return True
        finally:
            os.close(fd)
    except OSError:  # the path does not exist, or there is no /proc
        pass
    return os.path.realpath(path) == real
