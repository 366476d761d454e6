"""What those who tell telemetry and those who carry it away agree on: an event as people have
it, the metrics, the histograms' bounds.
"""

# name at a collector, kind, unit (UCUM), what of spec.metrics turns it on, of what
METRICS = (
    ("clawlite.input_tokens", "sum", "{token}", "token_usage", "tokens that a provider read"),
    ("clawlite.output_tokens", "sum", "{token}", "token_usage", "tokens that it wrote"),
    ("clawlite.cost_nano_usd", "sum", "nUSD", "cost_usd", "both, by clawlite.toml's prices"),
    ("clawlite.tool.duration", "histogram", "ms", "latency_histogram", "calls that ended"),
    ("clawlite.provider.duration", "histogram", "ms", "latency_histogram", "requests to providers"),
)
BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000)


def strip_ns(event: dict) -> dict:
    """Return *event* as exporters for people have it: without the nanoseconds."""
    return {key: value for key, value in event.items() if key != "time_ns"}
