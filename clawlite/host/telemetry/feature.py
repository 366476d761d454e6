"""The Telemetry of a manifest (CKP 5.10) to the section of the image that
linux/telemetry/telemetry.py reads.
"""

from clawlite.core.image.image import TELEMETRY
from clawlite.host.models.feature import Feature, Requirement
from clawlite.host.providers import remotes
from clawlite.host.swarm.feature import is_built
from clawlite.host.telemetry.model import TYPES, TelemetrySpec
from clawlite.host.world_models.feature import find_named
from clawlite.protocols.image.features import EXPORTERS

CATEGORIES = (
    "tool_calls",
    "memory_ops",
    "swarm_ops",
    "lifecycle",
    "errors",
    "world_model_ops",
    "planning_ops",
)
METRICS = ("token_usage", "cost_usd", "latency_histogram")
BATCH = 100  # where an exporter says nothing
HERE_MS, AWAY_MS = 1000, 5000  # so long an event waits: on this machine, for a server
_OF_WORLD_MODELS = (
    "world_model_ops",
    "planning_ops",
    "prediction_error",
    "retrieval_hit_rate",
    "plan_revision_count",
)


def check(manifest, at_use: bool) -> None:
    """Add a problem for each operation that this version cannot report, because it does not have
    that part.
    """
    telemetry = manifest.telemetry
    if not telemetry:
        return
    for block in ("events", "metrics"):
        for name in _OF_WORLD_MODELS[2:] if find_named(manifest) else _OF_WORLD_MODELS:
            if getattr(getattr(telemetry.spec, block), name, False):
                manifest.problem(
                    telemetry,
                    (block, name),
                    "nothing here does what this would tell",
                    "false",
                    "true",
                    key=True,
                )
    events = telemetry.spec.events
    if events is not None and events.swarm_ops and not is_built(manifest):
        manifest.note(
            telemetry, ("events", "swarm_ops"), "swarm_ops tells nothing: this agent is in no swarm"
        )
    for index, exporter in enumerate(telemetry.spec.exporters):
        if TYPES[exporter.type].is_remote:
            wrong = remotes.endpoint_problem(exporter.endpoint)
            if wrong:
                path = ("exporters", index, "endpoint")
                manifest.problem(telemetry, path, wrong, hint=remotes.ENDPOINT)


def compile_sections(manifest, work) -> dict:
    return {TELEMETRY: _section(manifest)}


def find_needs(manifest) -> list[Requirement]:
    return [Requirement("telemetry", manifest.telemetry.place)] if _section(manifest) else []


def _section(manifest) -> list | None:
    """Return the record of the telemetry; None when nothing would ever be reported."""
    if manifest.telemetry is None:
        return None
    spec = manifest.telemetry.spec
    rate = 1.0 if spec.sampling is None else float(spec.sampling.rate)
    if not rate:
        return None
    redaction = spec.redaction
    return [
        [_exporter(one) for one in spec.exporters],
        _on(spec.events, CATEGORIES, ("tool_calls", "lifecycle", "errors")),
        _on(spec.metrics, METRICS, ("token_usage", "latency_histogram")),
        rate,
        redaction is not None and redaction.strip_arguments,
        redaction is not None and redaction.strip_results,
    ]


def _exporter(one) -> list:
    batch, kind = one.batch, TYPES[one.type]
    away = kind.is_remote
    return [
        EXPORTERS.index(kind),
        one.endpoint if away else one.path or "",
        one.auth.secret_ref or "" if one.auth else "",
        batch and batch.max_size or BATCH,
        batch and batch.flush_interval_ms or (AWAY_MS if away else HERE_MS),
    ]


def _on(block, names: tuple, default: tuple) -> list:
    return list(default) if block is None else [name for name in names if getattr(block, name)]


FEATURE = Feature(
    "Telemetry", TelemetrySpec, check=check, compile=compile_sections, needs=find_needs
)
