"""The sandbox of an agent, as its image has it (CKP 0.3.0, Sandbox): what tools may use, and how
much of it.

A capability that is left out is denied on every level.  Level ``none`` enforces what it can for
built-in tools (docs/adr/0018)."""

NONE, PROCESS = 0, 1  # levels
DENY, ALLOWLIST, ALLOW_ALL = 0, 1, 2  # network
READ_ONLY, SCOPED, FULL = 1, 2, 3  # files, beside DENY
BOUNDARY, ENVIRONMENT, FILE = 0, 1, 2  # injection of secrets
RESTRICTED, UNRESTRICTED = 1, 2  # shell, beside DENY


_MANY = 1 << 32
_LIMIT = [None, -_MANY]
# core/image/header.py
_SHAPE = (
    str,
    2,
    (3, [str], bool),
    (4, [(str, bool)], [str]),
    (3, bool),
    (3, [str], [_MANY]),
    (_LIMIT,) * 6,
)


def profile_of(image) -> "Profile":
    """Return the ``Profile`` of *image*, which has tools.  Raises ``ImageError``."""
    from clawlite.core.image.header import check_shape
    from clawlite.core.image.image import SANDBOX

    return Profile(check_shape(image.section(SANDBOX), _SHAPE, "the sandbox"))


def workspace_mount(files: int, mounts: list) -> str | None:
    """Return the mount that /workspace stands for, or None when that is the agent's own folder.

    It is the agent's own folder when nothing is mounted, when /workspace or a path below it is, and
    when tools may use no files or the whole file system.  Otherwise it is the first mount that
    tools may write to, or else the first mount.
    """
    if files == DENY or files == FULL or not mounts:
        return None
    for path, _ in mounts:
        if path == "/workspace" or path.startswith("/workspace/"):
            return None
    for path, writable in mounts:
        if writable and files == SCOPED:
            return path
    path, _ = mounts[0]
    return path


class Profile:
    """One compiled Sandbox.

    name           str, "" when the manifest declares none
    level          NONE | PROCESS
    network        DENY | ALLOWLIST | ALLOW_ALL
    hosts          list of str: lower-case names, or "*." and a name
    block_private  bool, addresses that are not public are refused
    files          DENY | READ_ONLY | SCOPED | FULL
    mounts         list of (path, writable); /workspace is virtual, other paths are real
    denied         list of paths, which win over everything
    injection      BOUNDARY | ENVIRONMENT | FILE
    leaks          bool, output is searched for secrets
    shell          DENY | RESTRICTED | UNRESTRICTED
    commands       list of str, blocked_commands
    patterns       list of numbers of automata, blocked_patterns
    memory_mb, cpu_shares, max_processes, max_open_files, timeout_ms, max_output_bytes   int >= 1,
    or None"""

    def __init__(self, record: list) -> None:
        self.name, self.level, network, files, secrets, shell, limits = record
        self.network, self.hosts, self.block_private = network
        self.files, self.mounts, self.denied = files
        self.injection, self.leaks = secrets
        self.shell, self.commands, self.patterns = shell
        (
            self.memory_mb,
            self.cpu_shares,
            self.max_processes,
            self.max_open_files,
            self.timeout_ms,
            self.max_output_bytes,
        ) = limits
