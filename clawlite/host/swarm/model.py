"""Swarm (CKP 5.9): agents that work together."""

from typing import Annotated, Literal

from msgspec import Meta

from clawlite.host.models.common import Amount, Count, Money, Strict


class Agent(Strict):
    identity_ref: str
    role: str
    provider_ref: str | None = None
    count: Count | None = None


class Concurrency(Strict):
    max_parallel: Count | None = None
    sequential_within_agent: bool | None = None


class Coordination(Strict):
    message_passing: Literal["queue", "shared-memory", "event-bus", "direct"]
    backend: Literal["sqlite-wal", "redis", "nats", "in-process"]
    concurrency: Concurrency


class Aggregation(Strict):
    strategy: Literal["leader-decides", "majority-vote", "merge", "chain", "best-of-n"]
    cost_aware: bool | None = None
    timeout_ms: Amount | None = None


class DeadLetter(Strict):
    enabled: bool | None = None
    max_retries: Amount | None = None


class CircuitBreaker(Strict):
    failure_threshold: Count | None = None
    reset_timeout_ms: Amount | None = None


class Failure(Strict):
    retry_per_agent: Amount | None = None
    dead_letter: DeadLetter | None = None
    circuit_breaker: CircuitBreaker | None = None


class SwarmLimits(Strict):
    max_total_tokens: Amount | None = None
    max_total_cost_usd: Money | None = None
    max_duration_ms: Amount | None = None


class SwarmSpec(Strict):
    topology: Literal["leader-worker", "peer-to-peer", "pipeline", "broadcast", "hierarchical"]
    agents: Annotated[list[Agent], Meta(min_length=1)]
    coordination: Coordination
    aggregation: Aggregation
    failure: Failure | None = None
    resource_limits: SwarmLimits | None = None
