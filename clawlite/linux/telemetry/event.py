"""What those who tell telemetry and those who carry it away agree on: an event as people have
it, the histograms' bounds.
"""

BOUNDS_MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000)


def shown(event: dict) -> dict:
    """Return *event* as exporters for people have it: without the nanoseconds."""
    return {key: value for key, value in event.items() if key != "time_ns"}
