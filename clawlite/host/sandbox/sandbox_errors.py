"""Find settings of a Sandbox that are valid CKP but cannot be meant: a protection that has no
effect, or another one than its maker expects.  Each is an error when an image is built.

hosts     of ``allowed_hosts`` that no host matches: with a scheme, a port, a path, a ``*``
          elsewhere than first
paths     that mean no file (host/base/paths.py); mounts that are relative, or stand twice
secrets   an injection that a level does not have
A setting that is only odd is a warning: without_effect.py, sandbox_warnings.py.
"""

import re

from clawlite.core.base.errors import SandboxDenied
from clawlite.core.policy.policy import normalise
from clawlite.host.base.paths import MOST, mistake
from clawlite.host.base.problems import enquote
from clawlite.protocols.net.netaddress import address_of
from clawlite.protocols.net.netrules import parse_host

MOST_MB = 1 << 20  # a tebibyte: more is bytes
_RANGE = re.compile(r"[0-9a-fA-F.:]+/[0-9]+|[0-9.]*\*[0-9.*]*|[0-9.]+-[0-9.]+")


def refuse(manifest) -> None:
    """Add a problem for each mistake in the Sandbox of *manifest*."""
    capabilities = manifest.sandbox.spec.capabilities
    _hosts(manifest, capabilities and capabilities.network)
    _paths(manifest, capabilities and capabilities.filesystem)
    _injection(manifest, capabilities and capabilities.secrets)
    limits = manifest.sandbox.spec.resource_limits
    if limits and (limits.memory_mb or 0) > MOST_MB:
        manifest.problem(
            manifest.sandbox,
            ("resource_limits", "memory_mb"),
            "that is more than a tebibyte",
            "a number of MiB",
            str(limits.memory_mb),
            f"{limits.memory_mb >> 20} is as many bytes",
        )


def _hosts(manifest, network) -> None:
    for index, text in enumerate(network.allowed_hosts or [] if network else []):
        wrong = host_problem(text)
        if wrong:
            manifest.problem(
                manifest.sandbox,
                ("capabilities", "network", "allowed_hosts", index),
                "no host matches it",
                "a name, *.NAME or an address",
                enquote(text),
                wrong,
            )


def host_problem(text: str) -> str:
    """Return what to write in place of *text* among ``allowed_hosts``, "" when a host can match
    it.
    """
    if address_of(text.strip("[]") if ":" in text else text) is not None or _is_name(
        text[2:] if text.startswith("*.") else text
    ):
        return ""
    if text.strip() in ("*", "*.*"):
        return "to let tools reach every host: mode: allow-all"
    if _RANGE.fullmatch(text):
        return "write the addresses out, one by one: there are no ranges"
    bare = text.partition("://")[2] or text
    bare = bare.strip().partition("/")[0].rpartition("@")[2]
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    bare = bare.strip("[]")
    if bare != text and (_is_name(bare.removeprefix("*.")) or address_of(bare) is not None):
        return f"write {enquote(bare)}: without scheme, port, path and spaces"
    if "*" in text:
        return "a * stands first and alone, for everything below a name: *.example.com"
    return "one name for each entry, letters a-z, digits, hyphens and dots"


def _is_name(text: str) -> bool:
    try:
        return address_of(parse_host(text)) is None
    except SandboxDenied:
        return False


def _paths(manifest, files) -> None:
    """Of a sandbox: mounts, and what is denied in them."""
    at = "capabilities", "filesystem"
    for field, paths in (
        (
            ("mount_paths", [mount.path for mount in files.mount_paths or []]),
            ("denied_paths", files.denied_paths or []),
        )
        if files
        else ()
    ):
        for index, path in enumerate(paths):
            wrong = mistake(path)
            if wrong:
                manifest.problem(
                    manifest.sandbox,
                    at + (field, index) + ("path",) * (field == "mount_paths"),
                    "",
                    wrong[0],
                    enquote(path),
                    wrong[1],
                )
        if len(paths) > MOST:
            manifest.problem(
                manifest.sandbox,
                at + (field,),
                "",
                f"at most {MOST} paths",
                str(len(paths)),
                "name the folder that they lie in",
                key=True,
            )
    seen = {}
    for index, mount in enumerate(files.mount_paths or [] if files else []):
        path, where = normalise(mount.path), at + ("mount_paths", index, "path")
        if mistake(mount.path):
            continue
        if not mount.path.startswith("/"):
            manifest.problem(
                manifest.sandbox,
                where,
                "",
                "a path from the root",
                enquote(mount.path),
                f"write {enquote(normalise(mount.path, '/'))}, or {enquote(path)} for "
                f"a folder of the agent's own",
            )
        elif path in seen:
            _, line = manifest.sandbox.where(
                "capabilities", "filesystem", "mount_paths", seen[path]
            )
            manifest.problem(
                manifest.sandbox,
                where,
                f"{enquote(path)} is mounted already (line {line})",
                hint="one entry for each path, ro or rw",
            )
        seen.setdefault(path, index)


def _injection(manifest, secrets) -> None:
    mode = secrets and secrets.injection
    if mode in ("environment", "file-mount") and manifest.sandbox.spec.level == "none":
        manifest.problem(
            manifest.sandbox,
            ("capabilities", "secrets", "injection"),
            "at level none a tool has no process of its own, so nobody is given a secret",
            '"host-boundary"',
            enquote(mode),
            "use level: process, or host-boundary",
        )
