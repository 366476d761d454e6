"""Policy (CKP 5.8): what is allowed, what needs a person, what is denied.

Beyond the schema, as documented extensions: ``match.name`` (exact or glob), ``match.labels``, scope
``skill``. Stricter than the schema: a condition that is not known here rejects the manifest, since
it could never be evaluated."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from clawlite.host.base.problems import value_text
from clawlite.host.models.common import Amount, Count, Duration, Money, Strict, Text
from clawlite.protocols.mcp.tool_definitions import HINTS


class Match(Strict):
    annotations: dict[str, Any] | None = None
    category: str | None = None
    name: Text | None = None
    labels: dict[str, str] | None = None

    @staticmethod
    def check_rules(value: dict, report) -> None:
        hints = value.get("annotations")
        for name, hint in hints.items() if isinstance(hints, dict) else ():
            if name in HINTS and not isinstance(hint, bool):
                report(
                    ("annotations", name),
                    "such a rule could never match",
                    "true or false",
                    value_text(hint),
                )


class Approval(Strict):
    timeout_seconds: Count | None = None
    default_if_timeout: Literal["deny", "allow"] | None = None


class Conditions(Strict):
    path_within: Text | None = None


class RuleRate(Strict):
    cost_per_day_usd: Money | None = None
    tokens_per_day: Amount | None = None


class Rule(Strict):
    id: Text
    action: Literal["allow", "deny", "require-approval", "audit-only"]
    scope: Literal["tool", "category", "all", "skill"]
    match: Match | None = None
    reason: str | None = None
    approval: Approval | None = None
    conditions: Conditions | None = None
    rate_limit: RuleRate | None = None


class PromptInjection(Strict):
    detection: Literal["pattern", "llm-based", "hybrid", "none"] | None = None
    pattern_engine: str | None = None
    pattern_count: Amount | None = None
    action: Literal["block-and-log", "warn", "log-only", "ignore"] | None = None


class SecretScanning(Strict):
    enabled: bool | None = None
    scope: Literal["input", "output", "both"] | None = None
    patterns: Amount | None = None
    action: Literal["redact", "block", "warn"] | None = None


class InputValidation(Strict):
    max_size_bytes: Amount | None = None
    null_byte_detection: bool | None = None
    whitespace_analysis: bool | None = None
    encoding: str | None = None


class RateLimits(Strict):
    tool_calls_per_minute: Amount | None = None
    tokens_per_hour: Amount | None = None
    cost_per_day_usd: Money | None = None


class Audit(Strict):
    log_inputs: bool | None = None
    log_outputs: bool | None = None
    log_approvals: bool | None = None
    retention: Duration | None = None
    destination: Literal["file", "sqlite", "webhook", "syslog"] | None = None


class PolicySpec(Strict):
    rules: Annotated[list[Rule], Meta(min_length=1)]
    prompt_injection: PromptInjection | None = None
    secret_scanning: SecretScanning | None = None
    input_validation: InputValidation | None = None
    rate_limits: RateLimits | None = None
    audit: Audit | None = None
