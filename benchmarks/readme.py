"""The tables of README.md that say what clawlite costs, out of rows in ``results/``: ``python
benchmarks/readme.py`` writes them anew.
"""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROWS = ROOT / "benchmarks/results/targets"
BEGIN, END = "<!-- written by benchmarks/readme.py -->\n", "<!-- end of what it wrote -->\n"
AGENTS = ("clawlite", "exoclaw", "nanobot-ai", "pythonclaw")
ENGINES = ("clawlite", "clawlite cython", "cel", "regorus", "cedarpy", "casbin")
TITLES = ("clawlite", "compiled", "Rust CEL", "regorus", "Cedar", "Casbin")
RULES = ("10", "100", "1,000", "10,000")


def values(name: str) -> dict:
    """Return {case: value} of suite ``peers`` in the file *name*; the newest row of a case."""
    rows = [json.loads(line) for line in (ROWS / name).read_text("utf-8").splitlines()]
    return {row["case"]: row["value"] for row in rows if row["suite"] == "peers"}


def agents(found: dict) -> list:
    """Return the lines of one turn."""
    lines = [
        "| one turn, from start to exit | processor time | memory | bytes of its request |",
        "|---|---|---|---|",
    ]
    for name in AGENTS:
        spent, held, sent = (
            found["one turn, %s%s" % (what, name)] for what in ("", "memory, ", "request, ")
        )
        lines.append(f"| {name} | {spent:,.0f} ms | {held:.0f} MiB | {sent:,.0f} |")
    return lines


def engines(found: dict) -> list:
    """Return the lines of a decision."""
    lines = ["| rules | " + " | ".join(TITLES) + " |", "|---" * (1 + len(TITLES)) + "|"]
    for count in RULES:
        spent = [found[f"decide, {count} rules, {name}"] / 1e3 for name in ENGINES]
        shown = [f"{us:,.2f}" if us < 10 else f"{us:,.0f}" for us in spent]
        lines.append(f"| {count} | " + " | ".join(shown) + " |")
    return lines


def tables() -> str:
    """Return what stands between BEGIN and END."""
    return "\n".join(
        [
            "",
            *agents(values("x86_64-vm-busy-agents.jsonl")),
            "",
            "A decision of policy, in microseconds, by the number of rules; nothing else at work:",
            "",
            *engines(values("x86_64-vm-all.jsonl")),
            "\n",
        ]
    )


def main() -> None:
    path = ROOT / "README.md"
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    path.write_text(before + BEGIN + tables() + END + rest.partition(END)[2], "utf-8")


if __name__ == "__main__":
    main()
