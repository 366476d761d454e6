"""Fields of a Sandbox that another field makes ineffective, hosts that stay closed, and tools that
the Sandbox always refuses.
"""

import re
from types import SimpleNamespace

from clawlite.core.policy.policy import is_within
from clawlite.host.base.problems import enquote
from clawlite.host.sandbox import sandboxes
from clawlite.protocols.net.netaddress import address_of, is_public
from clawlite.protocols.net.netrules import is_listed, parse_url
from clawlite.protocols.sandbox import profile

_WORD = re.compile(r"[A-Za-z]{2,}(?![A-Za-z]*[|?*{])[^|]*\Z")


def find(manifest) -> list:
    """Return [((file, line), message)] of the Sandbox of *manifest*."""
    return _find_refused(manifest) + _find_closed_hosts(manifest) + _find_unused(manifest)


def _capability(manifest, name: str):
    capabilities = manifest.sandbox.spec.capabilities if manifest.sandbox else None
    return getattr(capabilities, name) if capabilities else None


def _find_closed_hosts(manifest) -> list:
    """Return a warning for each of ``allowed_hosts`` that ``block_private_ips`` keeps closed.  That
    of a service is open for the service's own tools.
    """
    network = _capability(manifest, "network")
    found, services = [], {service.url[1] for service in manifest.services}
    for index, text in enumerate(network.allowed_hosts or [] if network else []):
        address = address_of(text.strip("[]"))
        is_closed = address is not None and not is_public(address) and text not in services
        if is_closed and sandboxes.blocks_private(network):
            found.append(
                (
                    manifest.sandbox.where("capabilities", "network", "allowed_hosts", index),
                    f"{enquote(text)} is no public address, and ssrf_protection lets "
                    f"tools reach no other (block_private_ips: false does)",
                )
            )
    return found


def _find_unused(manifest) -> list:
    """Return a warning for each field of a sandbox or a rule that another one makes say nothing."""
    found = []

    def say(message: str, *path):
        found.append((manifest.sandbox.where("capabilities", *path), message))

    network, files, shell = [
        _capability(manifest, name) for name in ("network", "filesystem", "shell")
    ]
    if network and network.allowed_hosts and network.mode != "allowlist":
        say(
            f"allowed_hosts say nothing with mode "
            f"{network.mode or 'deny, which is what is left out'}: mode: allowlist keeps to them",
            "network",
            "allowed_hosts",
        )
    elif network and network.mode == "allowlist" and not network.allowed_hosts:
        say("mode allowlist without allowed_hosts lets tools reach no host", "network", "mode")
    if shell and (shell.blocked_commands or shell.blocked_patterns) and shell.mode != "restricted":
        say(
            f"what is blocked says nothing with mode "
            f"{shell.mode or 'deny, which is what is left out'}: mode: restricted keeps to it",
            "shell",
        )
    for index, pattern in enumerate(
        shell.blocked_patterns or [] if shell and shell.mode == "restricted" else []
    ):
        word = _WORD.match(pattern)
        if word:
            say(
                f"{enquote(pattern)} matches inside of longer words too, once their quotation "
                f"marks are gone: {enquote(chr(92) + 'b' + pattern)} begins at a word",
                "shell",
                "blocked_patterns",
                index,
            )
    mode, mounts, denied = sandboxes.files_of(files)
    if files and files.mount_paths and files.mode in (None, "deny", "full"):
        say(
            f"mount_paths say nothing with mode "
            f"{files.mode or 'deny, which is what is left out'}: mode: scoped keeps to them",
            "filesystem",
            "mount_paths",
        )
    elif files and mode == profile.SCOPED and mounts:
        for index, path in enumerate(denied):
            if not any(is_within(path, mount) or is_within(mount, path) for mount, _ in mounts):
                say(
                    f"denied_paths: {enquote(files.denied_paths[index])} lies outside every mount, "
                    f"where nothing can be reached anyway",
                    "filesystem",
                    "denied_paths",
                    index,
                )
    for index, (path, _) in enumerate(
        mounts if mode in (profile.SCOPED, profile.READ_ONLY) else ()
    ):
        if (over := next((one for one in denied if is_within(path, one)), None)) is not None:
            say(
                f"mount_paths: {enquote(path)} lies in {enquote(over)}, which is denied: no tool "
                f"sees it",
                "filesystem",
                "mount_paths",
                index,
            )
    return found


def _find_refused(manifest) -> list:
    return [
        (
            tool.where(),
            f"the sandbox refuses every call of {tool.name}: "
            f"capabilities.{block} is deny, which is what is left out, too",
        )
        for tool, block in [(tool, sandboxes.denies(manifest, tool)) for tool in manifest.tools]
        if block
    ] + _far_servers(manifest)


def _far_servers(manifest) -> list:
    """Return a warning for each MCP server at a URL that the sandbox lets nobody reach."""
    rules, found, seen = SimpleNamespace(name=""), [], set()
    rules.network, rules.hosts, _ = sandboxes.network_of(_capability(manifest, "network"))
    for tool in manifest.tools:
        source = tool.spec.mcp_source
        if source is None or not source.uri.startswith(("http:", "https:")) or source.uri in seen:
            continue
        seen.add(source.uri)
        if tool.served is not None and tool.served.server.is_mediated:
            continue  # a gateway asks it
        _, host, *_ = parse_url(source.uri.partition("#")[0])
        if not is_listed(rules, host):
            found.append(
                (
                    tool.where("mcp_source"),
                    f"the sandbox refuses every call of {tool.name}: it does not let tools reach "
                    f"{host} - add capabilities: {{ network: {{ mode: allowlist, allowed_hosts: "
                    f"[{host}] }} }} to a Sandbox of this manifest",
                )
            )
    return found
