"""The cases and what they wait for: ``cases.jsonl`` and ``pending.toml``, read once."""

import json
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
CASES = {
    case["id"]: case for case in map(json.loads, (HERE / "cases.jsonl").read_text().splitlines())
}
# {what is missing: {"reason", "cases"}}
PENDING = tomllib.loads((HERE / "pending.toml").read_text())


def waits_for(id: str) -> list:
    """Return the names of the groups in which the case *id* is listed."""
    return [name for name, group in PENDING.items() if id in group["cases"]]
