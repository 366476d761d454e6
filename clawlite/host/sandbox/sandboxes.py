"""The Sandbox of a manifest to the section of the image that protocols/sandbox/profile.py reads.

No Sandbox means the most restrictive one this runtime has (CKP 0.2.0, 5.7): level process, every
capability denied."""

from types import SimpleNamespace

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.formats.automaton import search
from clawlite.core.policy.policy import normalise
from clawlite.host.base.kinds import LIMITS
from clawlite.host.base.problems import enquote
from clawlite.host.documents import registry
from clawlite.host.sandbox import credentials
from clawlite.host.schema.automata import PatternError
from clawlite.protocols.net.netrules import is_listed, parse_authority
from clawlite.protocols.sandbox import profile

NETWORK = {
    None: profile.DENY,
    "deny": profile.DENY,
    "allowlist": profile.ALLOWLIST,
    "allow-all": profile.ALLOW_ALL,
}
FILES = {
    None: profile.DENY,
    "deny": profile.DENY,
    "read-only": profile.READ_ONLY,
    "scoped": profile.SCOPED,
    "full": profile.FULL,
}
INJECTION = {
    None: profile.BOUNDARY,
    "host-boundary": profile.BOUNDARY,
    "environment": profile.ENVIRONMENT,
    "file-mount": profile.FILE,
}
SHELL = {
    None: profile.DENY,
    "deny": profile.DENY,
    "restricted": profile.RESTRICTED,
    "full": profile.UNRESTRICTED,
}


def level(manifest) -> int:
    """Return the level of the sandbox that the tools of *manifest* run in."""
    return (
        profile.NONE
        if manifest.sandbox and manifest.sandbox.spec.level == "none"
        else profile.PROCESS
    )


def block_of(name: str) -> str | None:
    """Return the block of ``capabilities`` that the built-in tool *name* needs, or None."""
    category = registry.category(name)
    return category if category in ("filesystem", "shell", "network") else None


def denies(manifest, tool) -> str | None:
    """Return the block of ``capabilities`` that denies every call of *tool*, or None."""
    block = block_of(tool.name) if tool.origin == "registry" else None
    can = manifest.sandbox.spec.capabilities if manifest.sandbox else None
    part = getattr(can, block) if can and block else None
    return block if block and (part is None or part.mode in (None, "deny")) else None


def workspace(manifest) -> str | None:
    """Return the mount that /workspace means, normalised, or None when it is the agent's own
    folder.
    """
    spec = manifest.sandbox.spec if manifest.sandbox else None
    files = spec.capabilities.filesystem if spec and spec.capabilities else None
    mode, mounts, _ = files_of(files)
    mount = profile.workspace_mount(mode, mounts)
    return None if mount is None else normalise(mount, "/")


def section(manifest, pool) -> list | None:
    """Return the record of the sandbox; None for an agent without tools and feeds.

    pool  gets the automata of ``blocked_patterns``; what has none is a problem of *manifest*
    """
    if not _needs_one(manifest):
        return None
    if manifest.sandbox is None:
        return [
            "",
            profile.PROCESS,
            [profile.DENY, [], True],
            [profile.DENY, [], []],
            [profile.BOUNDARY, False],
            [profile.DENY, [], []],
            [None] * len(LIMITS),
        ]
    spec = manifest.sandbox.spec
    can = spec.capabilities
    return [
        manifest.sandbox.name,
        level(manifest),
        network_of(can and can.network),
        files_of(can and can.filesystem),
        _secrets(can and can.secrets),
        _shell(manifest, can and can.shell, pool),
        [spec.resource_limits and getattr(spec.resource_limits, name) or None for name in LIMITS],
    ]


def network_of(network) -> list:
    """Return [mode, hosts, whether private addresses are refused] of ``capabilities.network``."""
    if network is None:
        return [profile.DENY, [], True]
    return [
        NETWORK[network.mode],
        [host.lower() for host in network.allowed_hosts or []],
        blocks_private(network),
    ]


def refuse_rules(manifest) -> None:
    """Add a problem for each rule of an MCP server that nothing would keep, and for each host that
    it names in vain.
    """
    can = manifest.sandbox.spec.capabilities if manifest.sandbox else None
    rules = SimpleNamespace()
    rules.network, rules.hosts, _ = network_of(can and can.network)
    for name, own in manifest.settings.mcp.items():
        # A board with functions of its own can declare no network, so here ``hosts`` decides alone.
        is_alone = own.mode == "mediated" and not (can and can.network)
        for index, host in enumerate(own.hosts or ()):
            try:
                parsed, _ = parse_authority(host.lower().replace("*.", "any.", 1), 443)
                why = "the Sandbox does not allow it"
                hint = "add it to the allowed_hosts of the Sandbox, or remove it here"
            except SandboxDenied as e:
                parsed, why, hint = "", e.message, "name hosts as in allowed_hosts"
            is_allowed = host.lower() in rules.hosts or parsed and is_listed(rules, parsed)
            if not is_allowed and not (parsed and is_alone):
                place = ("mcp", name, "hosts", index)
                manifest.problems.add(manifest.settings.place, place, why, hint=hint)
        # at a gateway level none is no reason to refuse: the gateway contains the program
        is_free = level(manifest) == profile.NONE and own.mode == "native"
        for field in ("hosts", "cpu_s") if is_free else ():
            if getattr(own, field) is not None:
                manifest.problems.add(
                    manifest.settings.place,
                    ("mcp", name, field),
                    "nothing contains a program at level none",
                    hint="set the level of the Sandbox to process",
                    key=True,
                )


def blocks_private(network) -> bool:
    """Return whether tools are kept from addresses that are not public: they are, unless
    *network* switches that off.
    """
    guard = network.ssrf_protection
    return guard is None or (guard.enabled is not False and guard.block_private_ips is not False)


def files_of(files) -> list:
    if files is None:
        return [profile.DENY, [], []]
    mode = FILES[files.mode]
    mounts = [
        [normalise(mount.path) or "", mount.permissions == "rw" and mode != profile.READ_ONLY]
        for mount in files.mount_paths or []
    ]
    # a relative one is below /workspace
    return [mode, mounts, [normalise(path) or "" for path in files.denied_paths or []]]


def _secrets(secrets) -> list:
    if secrets is None:
        return [profile.BOUNDARY, False]
    leaks = secrets.leak_detection
    return [INJECTION[secrets.injection], leaks is not None and leaks.enabled is not False]


def _shell(manifest, shell, pool) -> list:
    if shell is None:
        return [profile.DENY, [], []]
    patterns = []
    for index, pattern in enumerate(shell.blocked_patterns or []):
        try:
            patterns.append(pool.add(pattern, "python"))
        except PatternError as e:
            manifest.problem(
                manifest.sandbox,
                ("capabilities", "shell", "blocked_patterns", index),
                str(e),
                hint="say it without that, or block the command's name",
            )
        else:
            if search(pool.tables[patterns[-1]], b""):
                manifest.problem(
                    manifest.sandbox,
                    ("capabilities", "shell", "blocked_patterns", index),
                    "it matches every command",
                    "an expression that matches some",
                    enquote(pattern),
                    "to block every command: mode: deny",
                )
    for index, command in enumerate(shell.blocked_commands or []):
        if not command.replace("*", "").strip():
            manifest.problem(
                manifest.sandbox,
                ("capabilities", "shell", "blocked_commands", index),
                "expected words of a command, and * between them",
                hint="to block every command: mode: deny",
            )
    return [SHELL[shell.mode], list(shell.blocked_commands or []), patterns]


def local(manifest) -> list | None:
    """Return what clawlite.toml adds to the tools of this machine: [relaxed, environment,
    writable, search, credentials, namespaces]; None for nothing.
    """
    sandbox, search = manifest.settings.sandbox, manifest.settings.search
    record = [list(getattr(sandbox, name) or []) for name in ("relaxed", "environment", "writable")]
    record.append(
        None if search is None else [search.endpoint, search.header or "", search.credential or ""]
    )
    record.append(credentials.records(manifest))
    record.append(sandbox.namespaces or "")
    return record if any(record) and _needs_one(manifest) else None


def _needs_one(manifest) -> bool:
    """Return whether the agent has what a sandbox is for: tools, or feeds."""
    return bool(manifest.tools) or any(service.feeds for service in manifest.services)
