"""Secrets as files (``injection: file-mount``): one file for each name, with mode 0400, owned by
the tools' user, and removed with the call.

1. Profile N: a tmpfs of the call's own at /run/secrets, read-only once it is filled.  The kernel
   removes it with the mount namespace.
2. Profile L: a folder below one that no call may see, in memory (/dev/shm) when possible.  Landlock
   lets only its own call read it.  The supervisor removes it; after a supervisor was killed, the
   next one does.
3. The values come with the job, from the agent.  $NAME_FILE is the path of each file, and the
   environment never contains a value.
"""

import marshal
import os
import stat

from clawlite.linux.confinement import limits, namespaces

PLACE = "/run/secrets"
OWN_PLACE = "/.secrets"  # used when /run is a folder of the machine
MEMORY = "/dev/shm"
_SIZE = "1m"  # 32 of 8 KiB, and what a tmpfs takes


def values_of(job_fd: int) -> dict:
    """Return {name: value} of the job in *job_fd*, without moving its position: the child reads it
    next.
    """
    return marshal.loads(os.pread(job_fd, os.fstat(job_fd).st_size, 0)).get("files", {})


def place_of(plan: dict) -> str:
    """Return the path of the secrets in the root of a call in profile N."""
    tops = [target.rstrip("/") + "/" for _, target, _ in plan["mounts"]]
    return OWN_PLACE if plan["whole"] or (PLACE + "/").startswith(tuple(tops)) else PLACE


def mount(root, plan: dict, values: dict):
    """Mount *values* as files into the root of a call in profile N (``namespaces.Root``), over any
    other mount there.
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
    """Make and return the folder for the secrets of all calls in profile L.  Raises ``OSError``,
    also when it belongs to another user, or another user may write to it.
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
    """Write *values* as files into a folder below *above* (``parent``), in profile L.

    remove  function(path), removes a folder that a killed supervisor left
    """
    for name in os.listdir(above):
        pid = name.partition("-")[0]
        if not limits.is_there(pid):
            remove(os.path.join(above, name))
    path = "%s/%d-%s" % (above, os.getpid(), os.urandom(8).hex())
    plan["secrets"] = path  # set before the folder is made, so that it is always removed
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
