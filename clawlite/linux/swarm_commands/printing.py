"""What ``clawlite swarm`` prints."""

import os

from clawlite.core.base.printable import printable
from clawlite.linux.io.jsontext import dumps


def print_line(line: str):
    """Print *line*, whatever strangers have written into it."""
    os.write(1, printable(line.encode("utf-8", "replace")) + b"\n")


def result_text(result) -> str:
    """Return what a person reads of the *result* of a report."""
    if isinstance(result, dict) and result.keys() <= {"text", "error"}:
        parts = [result[name] for name in ("text", "error") if result.get(name)]
        if parts and all(isinstance(part, str) for part in parts):
            return "\n".join(parts)
    return dumps(result)
