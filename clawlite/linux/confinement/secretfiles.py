"""Secrets as files (``injection: file-mount``): one file for each name, with mode 0400, owned by
the tools' user, and removed with the call.

1. Profile N: a tmpfs of the call's own at /run/secrets, read-only once it is filled.  The kernel
   removes it with the mount namespace.
2. Profile L: a folder below one that no call may see, in memory (/dev/shm) if there is such a
   place.  Landlock lets its own call alone read it.  The supervisor removes it; when a supervisor
   was killed, the next one removes what it left.
3. The values are in the job, which the agent hands on.  $NAME_FILE says where each file lies, and
   the environment never holds a value.
"""

import marshal
import os
import stat

from clawlite.linux.confinement import limits, namespaces

PLACE = "/run/secrets"
OWN_PLACE = "/.secrets"  # where /run is everybody's
MEMORY = "/dev/shm"
_SIZE = "1m"  # 32 of 8 KiB, and what a tmpfs takes


def values_of(job_fd: int) -> dict:
    """Return {name: value} of the job behind *job_fd*, which stays as it is for the child."""
    return marshal.loads(os.pread(job_fd, os.fstat(job_fd).st_size, 0)).get("files", {})


def place_of(plan: dict) -> str:
    """Return where secrets are in the root of a call in profile N."""
    tops = [target.rstrip("/") + "/" for _, target, _ in plan["mounts"]]
    return OWN_PLACE if plan["whole"] or (PLACE + "/").startswith(tuple(tops)) else PLACE


def mount(root, plan: dict, values: dict):
    """Put *values* into the root of a call in profile N (``namespaces.Root``), above all that is
    mounted there.
    """
    place = place_of(plan)
    uid = os.getuid() if plan["uid"] is None else plan["uid"]
    gid = os.getgid() if plan["uid"] is None else plan["uid"]
    new = root.at(place)
    os.makedirs(new, 0o755, exist_ok=True)
    namespaces.mount(
        "tmpfs",
        new,
        "tmpfs",
        namespaces.CLOSED,
        "mode=0500,size=%s,uid=%d,gid=%d" % (_SIZE, uid, gid),
    )
    _fill(new, place, plan, values)
    namespaces.seal(new)


def parent(temporary: str) -> str:
    """Return the folder that holds those of all calls in profile L; it is made, and nobody's but
    this user's.  Raises ``OSError``.
    """
    path = "%s/clawlite-secrets-%d" % (MEMORY if _is_memory() else temporary, os.getuid())
    try:
        os.mkdir(path, 0o711)
    except FileExistsError:
        found = os.lstat(path)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise OSError(1, "it is somebody else's", path) from None
    return path


def folder(above: str, plan: dict, values: dict, remove):
    """Put *values* into a folder below *above* (``parent``), in profile L.

    remove  function(path), for what a killed supervisor left
    """
    for name in os.listdir(above):
        pid = name.partition("-")[0]
        if not limits.is_there(pid):
            remove(os.path.join(above, name))
    path = "%s/%d-%s" % (above, os.getpid(), os.urandom(8).hex())
    plan["secrets"] = path  # known before there is anything to be removed
    os.mkdir(path, 0o700)
    _fill(path, path, plan, values)
    if plan["uid"] is not None:
        os.chown(path, plan["uid"], plan["uid"])
    plan["allowed"] = plan["allowed"] + [(path, False)]


def _fill(path: str, seen: str, plan: dict, values: dict):
    for name, value in values.items():
        fd = os.open(
            os.path.join(path, name),
            os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC,
            0o400,
        )
        try:
            os.write(fd, value.encode())
            if plan["uid"] is not None:
                os.fchown(fd, plan["uid"], plan["uid"])
        finally:
            os.close(fd)
        plan["env"][name + "_FILE"] = os.path.join(seen, name)


def _is_memory() -> bool:
    """Return whether MEMORY is a tmpfs that this user may write to."""
    try:
        with open("/proc/self/mounts") as file:
            return any(line.split()[1:3] == [MEMORY, "tmpfs"] for line in file) and os.access(
                MEMORY, os.W_OK | os.X_OK
            )
    except OSError:
        return False
