"""What a Sandbox of level process allows that is more than its maker may want: warnings of
``clawlite check`` and ``build``.

Each is valid, and each was the way in of an attack on an agent, or of a tool that took its machine
down by accident."""

from clawlite.core.policy.policy import is_within
from clawlite.host.base.problems import enquote
from clawlite.host.sandbox import sandboxes
from clawlite.protocols.sandbox import defaults, profile

# Under many countries a registry gives names to strangers one level down: co.uk, com.au, or.jp.
_REGISTERED = ("ac", "co", "com", "edu", "gov", "me", "ne", "net", "or", "org")


def find(manifest) -> list[tuple]:
    """Return (path in the Sandbox's spec, message) for each caution about *manifest*."""
    if (
        manifest.sandbox is None
        or not manifest.tools
        or sandboxes.level(manifest) != profile.PROCESS
    ):
        return []
    can = manifest.sandbox.spec.capabilities
    found = _limits(manifest)
    if can:
        found += _files(can.filesystem) + _network(can.network)
    runs = any(sandboxes.block_of(tool.name) == "shell" for tool in manifest.tools)
    if runs and can and can.shell and can.shell.mode == "full":
        found.append(
            (
                ("capabilities", "shell", "mode"),
                "exec-shell may run every command: mode: restricted keeps a model from running "
                "what blocked_commands name by accident, and a rule with require-approval asks a "
                "person first",
            )
        )
    return found


def _limits(manifest) -> list[tuple]:
    declared = manifest.sandbox.spec.resource_limits
    if declared is not None and any(getattr(declared, name) for name in sandboxes.LIMITS):
        return []
    relaxed = manifest.settings.sandbox.relaxed or []
    default = {name: value for name, value in defaults.DEFAULTS.items() if name not in relaxed}
    return [
        (
            (),
            f"no resource_limits: each call has {defaults.sentence(default)}, as far as the kernel "
            "keeps it; resource_limits declare others",
        )
    ]


def _files(files) -> list[tuple]:
    mode, mounts, denied = sandboxes.files_of(files)
    at = "capabilities", "filesystem"
    found, writable = [], [path for path, may in mounts if may and mode == profile.SCOPED]
    if mode == profile.FULL:
        found = [
            (
                at + ("mode",),
                "tools may write wherever the agent's user may: "
                "mode: scoped keeps them to mount_paths",
            )
        ]
        mounts, writable = [], ["/"]
    for index, (path, may) in enumerate(mounts):
        if path == "/" and may:
            found.append(
                (
                    at + ("mount_paths", index),
                    "tools may write wherever the agent's user may: mount the folders that "
                    "they need, "
                    'and "/" with permissions: ro',
                )
            )
    if mode == profile.SCOPED and not mounts:
        writable = ["/workspace"]
    for where, what, above in _fewer_rights(denied, mounts, writable):
        if above == "/":
            costs = "can make nothing in the folders above it; mount the folders that tools need"
        else:
            costs = f"are refused; move it out of {enquote(above)}"
        found.append(
            (
                at + where,
                f"{what} lies in {enquote(above)}, which tools may write to: where a kernel has "
                f"Landlock and no user namespaces (profile L), commands and functions {costs}",
            )
        )
    return found


def _fewer_rights(denied: list, mounts: list, writable: list) -> list[tuple]:
    """Return (place in the block, what, folder) for each path that has fewer rights than the
    writable folder around it.

    Landlock gives a right to a folder and all below it, and takes none away (docs/adr/0027).
    """
    found = []
    inner = [
        (("denied_paths", index), path if path.startswith("/") else "/workspace/" + path, "")
        for index, path in enumerate(denied)
    ] + [
        (("mount_paths", index), path, ", mounted to be read,")
        for index, (path, may) in enumerate(mounts)
        if not may
    ]
    for where, path, more in inner:
        above = [mount for mount in writable if mount != path and is_within(path, mount)]
        if above:
            found.append((where, enquote(path) + more, above[0]))
    return found


def find_inexpressible(manifest) -> list[tuple]:
    """Return (path in the Sandbox's spec, what, folder) for each path of *manifest* for which
    commands and functions are refused in profile L.
    """
    can = manifest.sandbox.spec.capabilities
    runs = any(
        tool.origin != "registry" or sandboxes.block_of(tool.name) == "shell"
        for tool in manifest.tools
    )
    if not runs or not can or sandboxes.level(manifest) != profile.PROCESS:
        return []
    mode, mounts, denied = sandboxes.files_of(can.filesystem)
    writable = [path for path, may in mounts if may]
    if mode == profile.FULL or mode == profile.SCOPED and not mounts:
        writable.append("/workspace")
    return [
        (("capabilities", "filesystem") + where, what, above)
        for where, what, above in _fewer_rights(
            denied, [] if mode == profile.FULL else mounts, writable
        )
    ]


def _network(network) -> list[tuple]:
    if network and network.mode == "allow-all":
        return [
            (
                ("capabilities", "network", "mode"),
                "tools may reach every host, strangers' too: mode: allowlist keeps them to "
                "allowed_hosts",
            )
        ]
    hosts = network.allowed_hosts or [] if network and network.mode == "allowlist" else []
    return [
        (
            ("capabilities", "network", "allowed_hosts", index),
            f"{enquote(host)} is every name below a top-level domain, strangers' too: name "
            "the domain, as in *.example.com",
        )
        for index, host in enumerate(hosts)
        if host.startswith("*.") and _is_suffix(host[2:].rstrip("."))
    ]


def _is_suffix(name: str) -> bool:
    """Return whether strangers can have names below *name*: "com", and "co.uk" as well."""
    first, dot, country = name.lower().rpartition(".")
    return not dot or (len(country) == 2 and first in _REGISTERED)
