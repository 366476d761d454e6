"""Write clawlite/host/manifest/clauses.json again, from tests/ckp/clauses.toml and pending.toml:
``python tests/helpers/record_clauses.py``.

An installation has no tests; ``clawlite conformance`` shows this file there.
tests/host/cli/test_conformance.py checks that it is current."""

import json
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "helpers")]

from clawlite.host.manifest.conformance import FILE  # noqa: E402

CKP = ROOT / "tests" / "ckp"


def table() -> dict:
    """Return what the file should hold: {"pending": {group: reason}, "clauses": [...]}."""
    groups = tomllib.loads((CKP / "pending.toml").read_text())
    clauses = tomllib.loads((CKP / "clauses.toml").read_text())["clause"]
    named = {clause["pending"] for clause in clauses if "pending" in clause}
    return {
        "pending": {name: groups[name]["reason"] for name in sorted(named)},
        "clauses": [_row(clause) for clause in clauses],
    }


def _row(clause: dict) -> dict:
    row = {key: clause[key] for key in ("id", "level", "kind", "title")}
    if "pending" in clause:
        return dict(row, state="pending", waits_for=clause["pending"])
    # a SHOULD with a reason is not done, whatever its tests show of what is done instead
    is_held = clause.get("tests") and not {"binds", "reason"} & set(clause)
    return dict(row, state="held" if is_held else "others")


def text() -> str:
    """Return the file's text: one clause a line, so that a difference reads well."""
    found = table()
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in found["clauses"])
    return '{"pending": %s,\n"clauses": [\n%s\n]}\n' % (
        json.dumps(found["pending"], ensure_ascii=False),
        rows,
    )


if __name__ == "__main__":
    FILE.write_text(text())
