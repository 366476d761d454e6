"""The picture of the benchmarks, docs/images/benchmarks.svg, out of the rows that README.md has as
tables: ``python benchmarks/picture.py`` draws it anew.

The engines differ by 100,000: their scale is logarithmic, that of the agents is not.
"""

import math

import readme

FILE = readme.ROOT / "docs/images/benchmarks.svg"
WIDTH, HEIGHT = 860, 420
COLOURS = ("a0", "a1", "a2", "a3", "a4", "a5")
STYLE = (
    "text{font:13px ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2937}"
    ".t{font-size:15px;font-weight:600}.b{font-weight:600}.d{fill:#6b7280}.e{text-anchor:end}"
    ".m{text-anchor:middle}.bg{fill:#ffffff}.g{stroke:#e5e7eb}.l{fill:none;stroke-width:2.5}"
    ".a0{--c:#0f766e}.a1{--c:#14b8a6}.a2{--c:#6366f1}.a3{--c:#d97706}.a4{--c:#db2777}"
    ".a5{--c:#6b7280}.f{fill:var(--c)}.l{stroke:var(--c)}"
    "@media (prefers-color-scheme:dark){text{fill:#e5e7eb}.d{fill:#9ca3af}.bg{fill:#16191f}"
    ".g{stroke:#374151}.a0{--c:#2dd4bf}.a1{--c:#5eead4}.a2{--c:#818cf8}.a3{--c:#fbbf24}"
    ".a4{--c:#f472b6}.a5{--c:#9ca3af}}"
)
LEFT, TOP, LOW = 500, 90, 330  # of the chart of decisions
PLOT = 210


def draw() -> str:
    """Return the SVG."""
    turns = readme.values("x86_64-vm-busy-agents.jsonl")
    decisions = readme.values("x86_64-vm-all.jsonl")
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
            f'width="{WIDTH}" height="{HEIGHT}">',
            "<title>What a turn and a decision cost, beside other programs</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="bg" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
            *_draw_bars(turns, "", "One turn, from start to exit: processor time", "ms", 30),
            *_draw_bars(turns, "memory, ", "Memory of that turn", "MiB", 220),
            *_draw_lines(decisions),
            "</svg>\n",
        ]
    )


def _text(x, y, text: str, style: str = "") -> str:
    return f'<text class="{style}" x="{x:.0f}" y="{y:.0f}">{text}</text>'


def _draw_bars(found: dict, what: str, title: str, unit: str, top: int) -> list:
    """Return a bar for each agent."""
    values = [found[f"one turn, {what}{name}"] for name in readme.AGENTS]
    drawn = [_text(20, top, title, "t")]
    for number, (name, value) in enumerate(zip(readme.AGENTS, values)):
        y = top + 16 + 32 * number
        length = max(3, 230 * value / max(values))
        style, word = ("a0", "b") if number == 0 else ("a5", "")
        drawn += [
            _text(105, y + 16, name, f"e {word}"),
            f'<rect class="f {style}" x="115" y="{y}" width="{length:.0f}" height="22" rx="3"/>',
            _text(122 + length, y + 16, f"{value:,.0f} {unit}", word),
        ]
    return drawn


def _draw_lines(found: dict) -> list:
    """Return the line of each engine: microseconds of a decision, by the number of rules."""
    drawn = [_text(LEFT - 40, 30, "One decision of policy, by the number of rules", "t")]
    tops = []
    for power in range(-1, 6):
        y = LOW - (LOW - TOP) * (power + 1) / 6
        said = f"{10**power:,} us" if power >= 0 else "0.1 us"
        drawn.append(f'<path class="g" d="M{LEFT} {y:.0f}H{LEFT + PLOT}"/>')
        drawn.append(_text(LEFT - 8, y + 4, said, "e d"))
    for place, count in enumerate(readme.RULES):
        drawn.append(_text(LEFT + PLOT * place / 3, LOW + 22, count, "m d"))
    drawn.append(_text(LEFT + PLOT / 2, LOW + 44, "rules", "m d"))
    for name, title, colour in zip(readme.ENGINES, readme.TITLES, COLOURS):
        points = []
        for place, count in enumerate(readme.RULES):
            us = found[f"decide, {count} rules, {name}"] / 1e3
            y = LOW - (LOW - TOP) * (math.log10(us) + 1) / 6
            points.append(f"{LEFT + PLOT * place / 3:.0f} {y:.0f}")
        drawn.append(f'<path class="l {colour}" d="M{" L".join(points)}"/>')
        at = y
        while any(abs(at - other) < 15 for other in tops):
            at += 1
        tops.append(at)
        drawn.append(_text(LEFT + PLOT + 8, at + 4, title, "b" if name == "clawlite" else ""))
    return drawn


if __name__ == "__main__":
    FILE.write_text(draw(), "utf-8")
