"""Make the plan of one call from a sandbox profile: real paths, limits and the environment, as
plain values for the server and the supervisor.

1. /workspace stands for the folder that linux/files/workspace.py chooses.  Links in paths are
   followed here, once, before the child process exists: the sandbox has only real paths, and opens
   them without following links (linux/files/real_path.py).
2. No link counts that lies in a folder where tools may write: a tool may have made it.
3. A denied path wins over every mount.  Hidden paths (the agent's state, secrets) are denied, too,
   except for a workspace inside them.
"""

import functools
import os
import sys

from clawlite.core.base.errors import SandboxDenied
from clawlite.linux.files.packages import PACKAGE
from clawlite.linux.files.real_path import covers, follow, resolve
from clawlite.protocols.sandbox.profile import DENY, FILE, FULL, READ_ONLY, SCOPED

PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
TMP_MB = 64  # size of the private /tmp, where no memory limit is lower
MAX_OUTPUT = 10485760  # bytes, where the profile gives no max_output_bytes
WHOLE_READ, WHOLE_WRITE = 1, 2
OWN_TMP = "/.tmp"  # a private /tmp, where the whole file system with its own /tmp is shown
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Debian's Python has links from /usr/lib/python3.* to these folders.  It prints an error at each
# start when it may not follow one.
_PYTHON = tuple(
    "/etc/" + name
    for name in (sorted(os.listdir("/etc")) if os.access("/etc", os.R_OK) else [])
    if name.startswith("python3")
)
_STEADY = (
    SYSTEM
    + _PYTHON
    + (
        "/proc/cpuinfo",
        "/proc/filesystems",
        "/proc/loadavg",
        "/proc/meminfo",
        "/proc/stat",
        "/proc/uptime",
        "/proc/version",
    )
)
_REPLACED = (  # installing programs replaces these by new files of the same names
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
)
_WRITABLE = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# (path, writable): what every call in profile L may open
STEADY = [(path, False) for path in _STEADY] + [(path, True) for path in _WRITABLE]


class Refused(Exception):
    """The sandbox cannot be built: reason, hint."""

    def __init__(self, reason: str, hint: str):
        super().__init__(reason, hint)


def workspace_of(profile, folder: str, real=resolve) -> tuple:
    """Return (real folder behind /workspace, writable) for *profile*, or (None, False) when it
    has no workspace.

    folder  where /workspace leads (linux/files/workspace.py decides): the agent's own, or the first
            writable mount
    real    ``resolve``, or a version of it with a cache
    """
    if profile.files == DENY:
        return None, False
    found = real(folder)
    if profile.files == FULL or not profile.mounts:
        return found, profile.files == FULL or profile.files == SCOPED
    for path, writable in profile.mounts:
        if path == "/workspace" or real(path) == found:
            return found, writable and profile.files != READ_ONLY
    return None, False


def make(profile, job, workspace: str, hidden: list, relaxed=(), known: dict = None) -> dict:
    """Return the plan for *job* under *profile*.  It serves both profile N and profile L.  The time
    limit of a call is not part of it, but is sent with the call.

    workspace  the folder behind /workspace;  hidden  real paths that no tool sees
    known      dict to which {path: its real path} is added for each path, or None
    Raises ``SandboxDenied`` for a mount that is hidden.
    """
    known = {} if known is None else known
    links = {}  # path -> the folders of the links on its way

    def real(path):  # each link is read once
        if path not in known:
            known[path], links[path] = follow(path)
        return known[path]

    folder, writable = workspace_of(profile, workspace, real)
    denied = [_real(path, workspace, real) for path in profile.denied]
    there = {path: os.path.lexists(path) for path in denied}
    firm = [path for path in denied if there[path]]
    denied += _names_of_links(profile, workspace, real, links)
    whole = 0
    if profile.files == FULL:
        whole = WHOLE_WRITE
    elif profile.files == READ_ONLY and not profile.mounts:
        whole = WHOLE_READ
    # where the whole file system is shown, a writable mount still counts: without it, devices are
    # missing, and so is what lies below a folder closed to the tools' user; a read-only mount adds
    # nothing
    mounts = [mount for mount in _list_mounts(profile, workspace, real) if mount[2] or not whole]
    if folder is not None:
        mounts.append((folder, "/workspace", writable))
        if whole:
            mounts.append((folder, folder, writable))
    _check_links([workspace] + [path for path, _ in profile.mounts], mounts, workspace, links, real)
    for source, target, _ in mounts:
        if source != folder and not source.startswith(str(folder) + "/") and covers(hidden, source):
            raise SandboxDenied(
                "%s holds the agent's own state, no tool may see it" % target,
                "mount another folder",
            )
    mounts = sorted(
        {m[1]: m for m in mounts if not covers(denied, m[0])}.values(),
        key=lambda m: m[1].count("/"),
    )
    covered = masks(mounts, denied, hidden, folder, whole)
    cwd = job.cwd or (_workspace_path(folder, mounts) if folder is not None else "")
    python = _python(job, whole)
    return {
        "python": [source for source, _, _ in python],
        "kind": job.KIND,
        "name": profile.name,
        "network": profile.network,
        "whole": whole,
        "mounts": python + mounts,
        "veils": _veils(hidden, folder, whole),
        "masks": covered,
        "firm": _firm(
            masks(mounts, firm, [], folder, whole), covered, _veils(hidden, folder, whole)
        ),
        "pins": pins(mounts, covered, whole),
        "read_only": [source for source, _, is_writable in mounts if not is_writable],
        "absent": _absent(job, mounts, there, whole),
        "is_own": folder is not None and covers(hidden, folder),
        "denied": denied,
        "there": there,
        "hidden": hidden,
        "folder": folder,
        "relaxed": sorted(relaxed),
        "cwd": cwd or "",
        "env": _environment(),
        "memory_mb": profile.memory_mb,
        "cpu_shares": profile.cpu_shares,
        "cpu_s": job.cpu_s,
        "max_processes": profile.max_processes,
        "max_open_files": profile.max_open_files,
        "max_output_bytes": profile.max_output_bytes or MAX_OUTPUT,
        "tmp_mb": min(TMP_MB, profile.memory_mb or TMP_MB),
        "tmp": os.environ.get("TMPDIR") or "/tmp",
        "room": job.most if job.KIND != "builtin" and writable else None,
        "gives_files": profile.injection == FILE and job.KIND != "builtin",
    }


def _real(path: str, workspace: str, real) -> str:
    return real(name_in(path, workspace))


def name_in(path: str, workspace: str) -> str:
    """Return *path* of a manifest with the folder *workspace* in place of /workspace."""
    if path == "/workspace" or path.startswith("/workspace/"):
        return workspace + path[10:]
    return path


def _list_mounts(profile, workspace: str, real) -> list:
    result = []
    for path, writable in profile.mounts:
        writable = writable and profile.files != READ_ONLY
        source = _real(path, workspace, real)
        if path != "/workspace":
            result.append((source, os.path.normpath(path), writable))
        if not path.startswith("/workspace"):
            result.append((source, source, writable))
    return result


def _names_of_links(profile, workspace: str, real, links: dict) -> list:
    """Return the own names of the denied paths that are links: a folder may take the place of such
    a link before the sandbox is built.
    """
    result = []
    for path in [name_in(path, workspace) for path in profile.denied]:
        above, name = os.path.split(path.rstrip("/"))
        if links.get(path) and name not in ("", ".", ".."):
            named = os.path.join(real(above), name)
            result += [named] if named != real(path) else []
    return result


def _check_links(paths: list, mounts: list, workspace: str, links: dict, real):
    """Refuse a mount behind a link that lies in a writable mount: a tool may have made it."""
    writable = [(source, target) for source, target, is_writable in mounts if is_writable]
    for path in paths:
        for place in links.get(name_in(path, workspace), ()):
            above = next((target for source, target in writable if covers([source], place)), None)
            if above is not None:
                source = _real(path, workspace, real)
                raise SandboxDenied(
                    "%s is below %s, which tools may write to, and leads to %s"
                    % (path, above, source),
                    "mount %s itself, or remove the link" % source,
                )


def _workspace_path(folder: str, mounts: list) -> str:
    """Return the path of the workspace in the sandbox: its real path when that is mounted, else
    /workspace.
    """
    return folder if any(target == folder for _, target, _ in mounts) else "/workspace"


def _python(job, whole: int) -> list:
    """Return the mounts that a function needs: the interpreter that runs it, and clawlite."""
    if job.KIND in ("command", "server") or whole:
        return []
    return [(path, path, False) for path in python_folders()]


@functools.cache
def python_folders() -> list:
    """Return the folders of this process's Python and of clawlite that are outside of SYSTEM.

    They are looked up once, before a tool has run: they may lie where tools may write.
    """
    packages = [p for p in sys.path if p.endswith("-packages")]
    paths = {resolve(p) for p in [sys.prefix, sys.base_prefix, PACKAGE] + packages}
    paths = {p for p in paths if not covers(SYSTEM, p)}
    return [p for p in sorted(paths) if not covers(list(paths - {p}), p)]


def masks(mounts: list, denied: list, hidden: list, folder, whole: int) -> list:
    """Return the paths that are covered in the sandbox: every denied path, at each place where a
    mount shows it.
    """
    roots = [("/", "/")] if whole else [(source, target) for source, target, _ in mounts]
    if denied and not whole:
        roots = [(path, path) for path in SYSTEM] + roots
    paths = denied + [path for path in hidden if path not in _veils(hidden, folder, whole)]
    result = []
    for source, target in roots + ([(folder, "/workspace")] if whole and folder else []):
        below = source.rstrip("/") + "/"
        result += [
            os.path.join(target, path[len(below) :]) for path in paths if path.startswith(below)
        ]
    return result


def _firm(targets: list, covered: list, veils: list) -> list:
    """Return those of *targets* that are there when the sandbox is built, unless somebody takes
    them away meanwhile: no other mask or veil covers them.
    """
    return [
        target
        for target in targets
        if not covers([path for path in covered + veils if path != target], target)
    ]


def _veils(hidden: list, folder, whole: int) -> list:
    """Return the hidden paths that contain the workspace, where the whole file system is shown.
    Each is covered, and the workspace is mounted inside it again.
    """
    return [path for path in hidden if whole and folder is not None and covers([path], folder)]


def pins(mounts: list, covered: list, whole: int) -> list:
    """Return the folders between a writable mount and what is mounted or covered below it, the
    upper ones first.

    Each becomes a mount of its own, because a mount cannot be renamed.  Otherwise a tool could
    rename the folder above a denied path and reach the path by its new name in the next call, or
    put a link where the next call expects a folder."""
    roots = sorted(
        ["/"] if whole == WHOLE_WRITE else [target for _, target, writable in mounts if writable],
        key=len,
    )
    result = set()
    for path in covered + [target for _, target, _ in mounts]:
        above = [root for root in roots if path != root and covers([root], path)]
        parent = os.path.dirname(path)
        while above and len(parent) > len(above[-1]):
            result.add(parent)
            parent = os.path.dirname(parent)
    return sorted(
        result - {target for _, target, _ in mounts}, key=lambda one: (one.count("/"), one)
    )


def _absent(job, mounts: list, there: dict, whole: int) -> list:
    """Return the denied paths that do not exist but could be created: the kernel cannot deny a path
    that does not exist.

    The list is empty for a built-in file tool, which checks each path that it is given.
    """
    writable = (
        ["/"]
        if whole == WHOLE_WRITE
        else [source for source, _, is_writable in mounts if is_writable]
    )
    if job.KIND == "builtin":
        return []
    return [path for path, is_there in there.items() if not is_there and covers(writable, path)]


def _environment() -> dict:
    return {"PATH": PATH, "LANG": "C.UTF-8"}


def for_namespaces(plan: dict):
    """Complete *plan* for profile N."""
    home = _workspace_path(plan["folder"], plan["mounts"]) if plan["folder"] is not None else "/tmp"
    plan["cwd"] = plan["cwd"] or home
    plan["env"].update(HOME=home, WORKSPACE=home, TMPDIR=OWN_TMP if plan["whole"] else "/tmp")


def writable_in_namespaces(plan: dict) -> list:
    """Return the paths in a sandbox of profile N below which a tool may write."""
    if plan["whole"] == WHOLE_WRITE:
        return ["/"]
    return ["/dev", "/proc", "/tmp", plan["env"]["TMPDIR"]] + [
        target for _, target, writable in plan["mounts"] if writable
    ]


def for_landlock(plan: dict, around, listable):
    """Complete *plan* for profile L, which knows real paths only, and keeps a denied path out by
    allowing its neighbours.  *around*, *listable*: the functions of linux/confinement/landlock.py.

    Raises ``Refused`` for what Landlock cannot express.
    """
    denied = plan["denied"] + plan["hidden"]
    plan["system"] = _system(plan, around)
    # built-in file tools check denied paths themselves (walk.py), so they may list and change the
    # folders above one
    if plan["kind"] == "builtin":
        around = lambda path, denied: [path]
    else:
        _check_writable(plan)
    allowed = []
    for source, writable in [("/", plan["whole"] == WHOLE_WRITE)] if plan["whole"] else []:
        allowed += [(path, writable) for path in around(source, denied + ["/proc"])]
    for source, _, writable in plan["mounts"]:
        inside = plan["is_own"] and covers([plan["folder"]], source)
        kept_out = plan["denied"] if inside else denied
        parts = around(source, kept_out)
        allowed += [(path, writable) for path in parts]
        if parts != [source] and os.path.isdir(source) and not covers(kept_out, source):
            lists = listable(source, kept_out)
            allowed += [(source, None)] if lists else []
            plan["note"] = (
                "%s itself can be %s here: a denied path lies below it, and Landlock denies "
                "nothing below what it allows; work in a folder inside it, or move what is denied"
                % (source, "listed and not changed" if lists else "neither listed nor changed")
            )
    plan["allowed"] = allowed
    # git fails when it may not read the system's configuration
    plan["env"]["GIT_CONFIG_NOSYSTEM"] = "1"
    folder = plan["folder"]
    if folder is not None:
        plan["env"].update(HOME=folder, WORKSPACE=folder)
        if plan["cwd"] == "/workspace" or plan["cwd"].startswith("/workspace/"):
            plan["cwd"] = folder + plan["cwd"][10:]


def _system(plan: dict, around) -> list:
    """Return [(path, writable)] of the system's own files that a call in profile L may open besides
    ``STEADY``: links in these paths are followed.
    """
    system = [(path, False) for path in _REPLACED]
    plan["is_steady"] = not any(
        covers([os.path.realpath(path)], other) or covers([other], os.path.realpath(path))
        for other in plan["denied"]
        for path in _STEADY + _WRITABLE
    )
    if not plan["is_steady"]:
        system += STEADY
    return [
        (path, writable)
        for one, writable in system
        for path in (around(os.path.realpath(one), plan["denied"]) if plan["denied"] else [one])
    ]


def _check_writable(plan: dict):
    """Refuse what has fewer rights than a writable mount around it: a rule of Landlock holds for a
    folder and all below it, and takes no right away (docs/adr/0027).
    """
    for above in [source for source, _, is_writable in plan["mounts"] if is_writable]:
        for kind, paths in (("denied path", "there"), ("read-only mount", "read_only")):
            path = next((one for one in plan[paths] if one != above and covers([above], one)), None)
            if path is not None:
                raise Refused(
                    "the %s %s lies in %s, which tools may write to: Landlock, which confines "
                    "calls here, takes no rights away below a folder" % (kind, path, above),
                    "move %s out of %s, mount the folders beside it one by one, or allow user "
                    "namespaces: see clawlite doctor" % (path, above),
                )
