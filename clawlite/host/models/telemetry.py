"""Telemetry (CKP 5.10): what is observed, and where it goes."""

from typing import Annotated, Literal

from msgspec import Meta

from clawlite.host.base.problems import quoted
from clawlite.host.models.common import Count, Ratio, Strict, Text

NEEDED = {"otlp": "endpoint", "webhook": "endpoint", "file": "path", "sqlite": "path"}


class ExporterAuth(Strict):
    secret_ref: Text | None = None


class Batch(Strict):
    max_size: Count | None = None
    flush_interval_ms: Annotated[int, Meta(ge=100)] | None = None


class Exporter(Strict):
    type: Literal["otlp", "file", "sqlite", "webhook", "console"]
    endpoint: str | None = None
    path: str | None = None
    auth: ExporterAuth | None = None
    batch: Batch | None = None

    @staticmethod
    def more(value: dict, report) -> None:
        kind = value.get("type")
        needed = NEEDED.get(kind) if isinstance(kind, str) else None
        if needed and needed not in value:
            report((), f'{quoted(needed)} is missing; an exporter of type "{kind}" needs it')


class Events(Strict):
    tool_calls: bool = True
    memory_ops: bool = False
    swarm_ops: bool = False
    lifecycle: bool = True
    errors: bool = True
    world_model_ops: bool = False
    planning_ops: bool = False


class Metrics(Strict):
    token_usage: bool = True
    cost_usd: bool = False
    latency_histogram: bool = True
    prediction_error: bool = False
    retrieval_hit_rate: bool = False
    plan_revision_count: bool = False


class Sampling(Strict):
    rate: Ratio = 1.0


class Redaction(Strict):
    strip_arguments: bool = False
    strip_results: bool = False


class TelemetrySpec(Strict):
    exporters: Annotated[list[Exporter], Meta(min_length=1)]
    events: Events | None = None
    metrics: Metrics | None = None
    sampling: Sampling | None = None
    redaction: Redaction | None = None
