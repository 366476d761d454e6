"""Telemetry as OpenTelemetry (OTLP 1.x over HTTP, JSON encoding).

Tool calls are spans, other events log records, metrics are metrics: an endpoint of a collector ends
in /v1/traces, /v1/logs or /v1/metrics, and each kind goes to its own beside it.
"""

import os

from clawlite.linux.io.jsontext import dumps
from clawlite.linux.telemetry.event import BOUNDS_MS, METRICS

_SIGNALS = ("/v1/traces", "/v1/logs", "/v1/metrics")
_CUMULATIVE = 2  # AggregationTemporality
_UNITS = {name: unit for name, _, unit, *_ in METRICS}


def otlp(endpoint: str, secret: str, about):
    """Return a sink that posts to a collector at *endpoint*."""
    base = endpoint.rstrip("/")
    for signal in _SIGNALS:
        base = base.removesuffix(signal)
    resource = {
        "attributes": _attributes(
            {"service.name": about.name, "service.version": about.version or "0"}
        )
    }

    def sink(events: list):
        from clawlite.linux.net.http_post import deliver

        spans = [_span(event) for event in events if event["event"] == "tool.call"]
        metrics = [
            metric
            for event in events
            if event["category"] == "metrics"
            for metric in _metrics(event)
        ]
        logs = [
            _log(event)
            for event in events
            if event["event"] != "tool.call" and event["category"] != "metrics"
        ]
        for signal, kind, scoped, items in (
            (_SIGNALS[0], "resourceSpans", "scopeSpans", {"spans": spans}),
            (_SIGNALS[1], "resourceLogs", "scopeLogs", {"logRecords": logs}),
            (_SIGNALS[2], "resourceMetrics", "scopeMetrics", {"metrics": metrics}),
        ):
            if any(items.values()):
                found = {"resource": resource, scoped: [dict(items, scope={"name": "clawlite"})]}
                deliver(base + signal, about.name, secret, dumps({kind: [found]}).encode())

    return sink


def _span(event: dict) -> dict:
    end, took = event["time_ns"], event.get("duration_ms", 0) * 1000000
    return {
        "traceId": os.urandom(16).hex(),
        "spanId": os.urandom(8).hex(),
        "name": "tool " + str(event.get("tool")),
        "kind": 1,
        "startTimeUnixNano": str(end - took),
        "endTimeUnixNano": str(end),
        "attributes": _attributes(_rest(event)),
        "status": {"code": 1 if event.get("status") == "ok" else 2},
    }


def _log(event: dict) -> dict:
    is_error = event["category"] == "errors"
    return {
        "timeUnixNano": str(event["time_ns"]),
        "severityNumber": 17 if is_error else 9,
        "severityText": "ERROR" if is_error else "INFO",
        "body": {"stringValue": event["event"]},
        "attributes": _attributes(_rest(event)),
    }


def _metrics(event: dict) -> list:
    now, found = str(event["time_ns"]), []
    for short, label, value in event["counters"]:
        name = "clawlite." + short
        point = {
            "asInt": str(value),
            "timeUnixNano": now,
            "attributes": _attributes({"provider": label}),
        }
        found.append(
            {
                "name": name,
                "unit": _UNITS[name],
                "sum": {
                    "aggregationTemporality": _CUMULATIVE,
                    "isMonotonic": True,
                    "dataPoints": [point],
                },
            }
        )
    for short, count, total, buckets in event["histograms"]:
        name = "clawlite.%s.duration" % short
        point = {
            "count": str(count),
            "sum": total,
            "bucketCounts": [str(one) for one in buckets],
            "explicitBounds": list(BOUNDS_MS),
            "timeUnixNano": now,
        }
        found.append(
            {
                "name": name,
                "unit": _UNITS[name],
                "histogram": {"aggregationTemporality": _CUMULATIVE, "dataPoints": [point]},
            }
        )
    return found


def _rest(event: dict) -> dict:
    return {
        key: value
        for key, value in event.items()
        if key not in ("time_ns", "timestamp", "category", "event", "agent")
    }


def _attributes(values: dict) -> list:
    return [
        {
            "key": key,
            "value": {"intValue": str(value)}
            if isinstance(value, int) and not isinstance(value, bool)
            else {"boolValue": value}
            if isinstance(value, bool)
            else {"stringValue": str(value)},
        }
        for key, value in values.items()
    ]
