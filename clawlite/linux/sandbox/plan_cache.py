"""The plans of one engine, in memory that supervisors read.  A plan is computed once, and used as
long as its inputs have not changed.

The inputs of a plan are the profile, the kind of job, the targets of links, and which denied paths
exist.  All of them are checked at each call.  A plan contains nothing of a call, and its memory is
sealed against writing.
"""

import fcntl
import marshal
import os

from clawlite.core.base.errors import SandboxDenied
from clawlite.linux.files.real_path import resolve
from clawlite.linux.sandbox import plan as plans
from clawlite.linux.sandbox import spawn


class PlanCache:
    """*workspace*, *hidden*, *relaxed*: see ``plan.make``.

    paths  of the manifest's mounts.  They and *workspace* lead where they lead now, other mounts
           where they led at first: whoever exchanges one for a link later gives tools nothing
    """

    def __init__(self, workspace: str, hidden: list, relaxed, paths=()):
        self._of = workspace, hidden, relaxed
        self._led = {}
        self._check_leads([workspace, *paths], {})
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
        self._check_leads([self._of[0]] + [path for path, _ in profile.mounts], leads)
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

    def _check_leads(self, paths: list, leads: dict):
        """Raise ``SandboxDenied`` when one of *paths* leads elsewhere than it did at first."""
        for path in [plans.name_in(path, self._of[0]) for path in paths]:
            now = leads[path] if path in leads else resolve(path)
            first = self._led.setdefault(path, now)
            if first != now:
                raise SandboxDenied(
                    "%s changed: it led to %s when the agent began, and leads to %s now"
                    % (path, first, now),
                    "undo that, or start the agent again when it is what you want",
                )

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
    """Return whether ``resolve`` of *path* gives *real*.  Cost: three system calls when it
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
    return resolve(path) == real
