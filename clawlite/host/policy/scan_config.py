"""Compile what policies and the sandbox want to have scanned to the image's section GUARD, which
core/image/scan_config.py reads (CKP 0.2.0, 5.7, 5.8).

1. Several policies act as one: each field has the strictest of their values.  A block that is
   switched off adds nothing, and it does not switch off the block of another policy.
2. Defaults: scope ``both``, detection ``pattern``, action ``block-and-log`` for injections and
   ``redact`` for secrets.
3. What this version cannot do is a problem of the manifest: detection by a model in an agent that
   has none, other engines and encodings, more patterns than there are.
"""

import functools
import operator

from clawlite.core.image import scan_config as guard
from clawlite.host.base.problems import LATER
from clawlite.host.policy import audits
from clawlite.host.policy.injections import LITERALS, SENTENCES, WORDS

KINDS = (
    "anthropic",
    "authorization",
    "aws-id",
    "aws-secret",
    "azure-storage",
    "discord",
    "github",
    "gitlab",
    "google",
    "huggingface",
    "jwt",
    "known",
    "npm",
    "openai",
    "password",
    "pem",
    "pypi",
    "sendgrid",
    "slack",
    "slack-webhook",
    "stripe",
    "telegram",
    "url-password",
)
ENCRYPTION = "aes-256-gcm"
ENGINE = "aho-corasick"
PHRASES = 1000  # the sentences of injections.py match at least so many different phrases
SCOPES = {
    "input": guard.INPUT,
    "output": guard.OUTPUT,
    "both": guard.INPUT | guard.OUTPUT,
    None: guard.INPUT | guard.OUTPUT,
}
LEAKS = {"block": guard.BLOCK, "redact": guard.REDACT, "warn": guard.WARN, None: guard.REDACT}
INJECTIONS = {
    "block-and-log": guard.STOP,
    "warn": guard.MARK,
    "log-only": guard.NOTE,
    None: guard.STOP,
}
DETECTION = {
    "pattern": guard.PATTERN,
    "llm-based": guard.ALL,
    "hybrid": guard.PATTERN | guard.DOUBTFUL,
    None: guard.PATTERN,
}
ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "ascii": "ascii",
    "us-ascii": "ascii",
    None: "utf-8",
}


def section(manifest, pool) -> list | None:
    """Return the section GUARD: [injection, leaks, checks, audit, references, encrypted].  Each of
    the first four is None when nothing asks for it.  Return None when nothing asks for any of them
    or for encryption.

    pool  the image's automata; the one that finds injections is added
    Problems are added to *manifest*.
    """
    found = [
        _injection(manifest, pool),
        _leaks(manifest),
        _checks(manifest),
        audits.record(manifest, blocks_of(manifest, "audit")),
    ]
    encrypted = _check_encryption(manifest)
    return (
        found + [references(manifest), encrypted]
        if encrypted or any(part is not None for part in found)
        else None
    )


def list_wanted_abilities(manifest) -> list:
    """Return (ability, primitive, path in its spec) of each block that needs an ability: "guard"
    (scan texts), "guard-model" (ask a model about them), "encryption" (of its secrets) or "audit".
    """
    found = [
        ("guard", policy, (field,))
        for field in ("prompt_injection", "secret_scanning", "input_validation")
        for policy, _ in blocks_of(manifest, field)
    ]
    found += [
        ("guard-model", policy, ("prompt_injection", "detection"))
        for policy, block in blocks_of(manifest, "prompt_injection")
        if DETECTION.get(block.detection, 0) & (guard.DOUBTFUL | guard.ALL)
    ]
    found += [("audit", policy, ("audit",)) for policy, _ in blocks_of(manifest, "audit")]
    can = manifest.sandbox and manifest.sandbox.spec.capabilities
    if can and can.secrets and can.secrets.encryption:
        found.append(("encryption", manifest.sandbox, ("capabilities", "secrets", "encryption")))
    if (
        can
        and can.secrets
        and can.secrets.leak_detection
        and can.secrets.leak_detection.enabled is not False
    ):
        found.append(("guard", manifest.sandbox, ("capabilities", "secrets", "leak_detection")))
    return found


def references(manifest) -> list[str]:
    """Return the names of the secrets that *manifest* refers to, sorted."""
    named = [
        primitive.spec.auth.secret_ref
        for primitive in [*manifest.providers, *manifest.channels]
        if primitive.spec.auth
    ]
    return sorted(
        {
            name
            for name in [
                *named,
                manifest.settings.audit.credential,
                manifest.settings.memory.encryption,
            ]
            if name
        }
    )


def blocks_of(manifest, field: str) -> list:
    """Return (policy, block) of each policy that has *field* and does not switch it off."""
    found = [(policy, getattr(policy.spec, field)) for policy in manifest.policies]
    return [
        (policy, block)
        for policy, block in found
        if block is not None
        and getattr(block, "enabled", None) is not False
        and getattr(block, "detection", None) != "none"
        and getattr(block, "action", None) != "ignore"
    ]


def _injection(manifest, pool) -> list | None:
    blocks = blocks_of(manifest, "prompt_injection")
    for policy, block in blocks:
        if block.detection in ("llm-based", "hybrid") and not any(
            primitive.spec.protocol != "custom" for primitive in manifest.providers
        ):
            manifest.problem(
                policy,
                ("prompt_injection", "detection"),
                f'detection "{block.detection}" asks a model, and this agent has none',
                '"pattern"',
                hint="add a provider that is a model",
            )
        if block.pattern_engine not in (None, ENGINE):
            manifest.problem(
                policy,
                ("prompt_injection", "pattern_engine"),
                f'"{block.pattern_engine}" is {LATER}',
                f'"{ENGINE}"',
            )
        if (block.pattern_count or 0) > PHRASES:
            manifest.problem(
                policy,
                ("prompt_injection", "pattern_count"),
                "",
                f"at most {PHRASES}",
                str(block.pattern_count),
            )
    if not blocks:
        return None
    return [
        min(INJECTIONS[block.action] for _, block in blocks),
        pool.add("|".join(SENTENCES)),
        [list(word) for word in WORDS],
        list(LITERALS),
        functools.reduce(operator.or_, [DETECTION[block.detection] for _, block in blocks]),
    ]


def _leaks(manifest) -> list | None:
    blocks = [
        (policy, block, ("secret_scanning",))
        for policy, block in blocks_of(manifest, "secret_scanning")
    ]
    scope = [SCOPES[block.scope] for _, block, _ in blocks]
    action = [LEAKS[block.action] for _, block, _ in blocks]
    can = manifest.sandbox and manifest.sandbox.spec.capabilities
    inside = can and can.secrets and can.secrets.leak_detection
    if inside and inside.enabled is not False:
        blocks.append((manifest.sandbox, inside, ("capabilities", "secrets", "leak_detection")))
        scope.append(guard.OUTPUT)
        action.append(guard.REDACT)
    for primitive, block, path in blocks:
        if (block.patterns or 0) > len(KINDS):
            manifest.problem(
                primitive,
                path + ("patterns",),
                f"this version knows {len(KINDS)} kinds of secrets",
                f"at most {len(KINDS)}",
                str(block.patterns),
            )
    both = 0
    for one in scope:
        both |= one
    return [both, min(action)] if blocks else None


def _check_encryption(manifest) -> bool:
    """Return whether the sandbox demands an encrypted store of secrets."""
    can = manifest.sandbox and manifest.sandbox.spec.capabilities
    wanted = can and can.secrets and can.secrets.encryption
    if wanted and wanted != ENCRYPTION:
        manifest.problem(
            manifest.sandbox,
            ("capabilities", "secrets", "encryption"),
            f'"{wanted}" is {LATER}',
            f'"{ENCRYPTION}"',
        )
    return bool(wanted)


def _checks(manifest) -> list | None:
    blocks = blocks_of(manifest, "input_validation")
    for policy, block in blocks:
        if (block.encoding and block.encoding.lower()) not in ENCODINGS:
            manifest.problem(
                policy,
                ("input_validation", "encoding"),
                f'"{block.encoding}" is {LATER}',
                '"utf-8" or "ascii"',
            )
    if not blocks:
        return None
    blocks = [block for _, block in blocks]
    charsets = {ENCODINGS.get(block.encoding and block.encoding.lower()) for block in blocks}
    return [
        min(
            (block.max_size_bytes for block in blocks if block.max_size_bytes is not None),
            default=None,
        ),
        any(block.null_byte_detection for block in blocks),
        any(block.whitespace_analysis for block in blocks),
        "ascii" if "ascii" in charsets else "utf-8",
    ]
