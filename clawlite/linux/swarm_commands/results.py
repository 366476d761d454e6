"""What a task of a swarm has brought, as a person reads it."""

from clawlite.linux.io.jsontext import dumps


def result_lines(result) -> list:
    """Return the lines of the *result* of a report."""
    if isinstance(result, dict) and result.keys() <= {"text", "error"}:
        parts = [result[name] for name in ("text", "error") if result.get(name)]
        if parts and all(isinstance(part, str) for part in parts):
            return "\n".join(parts).split("\n")
    return [dumps(result)]
