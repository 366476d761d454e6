"""Sandbox (CKP 5.7): where tools run."""

from typing import Literal

from clawlite.host.base.problems import enquote
from clawlite.host.models.common import Amount, Strict
from clawlite.host.schema.validity import pattern_error

# the runtime that a level implies when none is named (0.3.0: SHOULD be inferred)
RUNTIME = {
    "none": "native",
    "process": "native",
    "wasm": "wasmtime",
    "container": "docker",
    "vm": "firecracker",
}


class SSRFProtection(Strict):
    enabled: bool | None = None
    block_private_ips: bool | None = None
    dns_pinning: bool | None = None


class Network(Strict):
    mode: Literal["deny", "allowlist", "allow-all"] | None = None
    allowed_hosts: list[str] | None = None
    ssrf_protection: SSRFProtection | None = None


class Mount(Strict):
    path: str
    permissions: Literal["ro", "rw"]


class Filesystem(Strict):
    mode: Literal["deny", "read-only", "scoped", "full"] | None = None
    mount_paths: list[Mount] | None = None
    denied_paths: list[str] | None = None


class LeakDetection(Strict):
    enabled: bool | None = None
    patterns: Amount | None = None


class Secrets(Strict):
    injection: Literal["host-boundary", "environment", "file-mount"] | None = None
    encryption: str | None = None
    leak_detection: LeakDetection | None = None


class Shell(Strict):
    mode: Literal["deny", "restricted", "full"] | None = None
    blocked_commands: list[str] | None = None
    blocked_patterns: list[str] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        patterns = value.get("blocked_patterns")
        for index, pattern in enumerate(patterns if isinstance(patterns, list) else ()):
            wrong = pattern_error(pattern) if isinstance(pattern, str) else ""
            if wrong:
                report(
                    ("blocked_patterns", index),
                    f"{enquote(pattern)} is no regular expression: {wrong}",
                    hint="mend the pattern",
                )


class Capabilities(Strict):
    network: Network | None = None
    filesystem: Filesystem | None = None
    secrets: Secrets | None = None
    shell: Shell | None = None


class ResourceLimits(Strict):
    memory_mb: Amount | None = None
    cpu_shares: Amount | None = None
    max_processes: Amount | None = None
    max_open_files: Amount | None = None
    timeout_ms: Amount | None = None
    max_output_bytes: Amount | None = None


class SandboxSpec(Strict):
    level: Literal["none", "process", "wasm", "container", "vm"]
    runtime: (
        Literal["docker", "apple-container", "wasmtime", "firecracker", "gvisor", "native"] | None
    ) = None
    capabilities: Capabilities | None = None
    resource_limits: ResourceLimits | None = None

    def __post_init__(self):
        if self.runtime is None:
            self.runtime = RUNTIME[self.level]
