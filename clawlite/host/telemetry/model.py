"""Telemetry (CKP 5.10): what is observed, and where it goes."""

from typing import Annotated, Literal

from msgspec import Meta

from clawlite.host.models.common import Count, Need, Ratio, Strict, Text
from clawlite.protocols.image.features import EXPORTERS

TYPES = {kind.name: kind for kind in EXPORTERS}


class ExporterAuth(Strict):
    secret_ref: Text | None = None


class Batch(Strict):
    max_size: Count | None = None
    flush_interval_ms: Annotated[int, Meta(ge=100)] | None = None


class Exporter(Strict):
    type: Literal[tuple(TYPES)]  # type: ignore[valid-type]
    endpoint: str | None = None
    path: str | None = None
    auth: ExporterAuth | None = None
    batch: Batch | None = None
    needs = tuple(
        Need(
            kind.needs,
            "type",
            kind.name,
            f'; an exporter of type "{kind.name}" needs it',
            hint=f"add {kind.needs} to the exporter",
        )
        for kind in EXPORTERS
        if kind.needs
    )


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
