"""Pictures of the documents that are made from real runs: ``make pictures``.

``session.svg``  a conversation with the greenhouse on a terminal, as an SVG without script, font or
                 anything of elsewhere; tests/host/cli/test_pictures.py compares it with a run.
"""

import html
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
IMAGES = ROOT / "docs/images"
BEGIN = "clawlite new greenhouse --offline && cd greenhouse && clawlite run"
SAID = ("is the soil dry?", "y", "water the plants for 90 seconds", "/trace 2", "/quit")
WIDTH, LINE, TOP, LEFT, COLUMNS = 860, 20, 52, 24, 96
STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:#d7dde5;white-space:pre}.typed{fill:#8fd694;font-weight:600}.asks{fill:#f2c97d}"
    ".dim{fill:#8b97a6}"
)


def play_session() -> list:
    """Return the lines of a real conversation in a fresh folder, as a terminal shows them."""
    from agents import Agent, clawlite, linux

    with tempfile.TemporaryDirectory() as folder:
        made = clawlite("new", "greenhouse", "--offline", cwd=folder)
        project = Path(folder) / "greenhouse"
        words, env = linux("run"), {"TERM": "dumb"}
        with Agent(words, Path(folder) / "home", terminal=True, cwd=project, env=env) as agent:
            shown = agent.expect("> ") + "> "
            for line in SAID:
                agent.line(line)
                ends = "[y/N] " if line.endswith("dry?") else "\n> "
                shown += agent.expect(ends) + ends if line != "/quit" else ""
            agent.wait()
        return ["$ " + BEGIN, *made.stderr.splitlines(), *(shown + "/quit").splitlines()]


def draw_session(lines: list) -> str:
    """Return the SVG of a terminal with *lines*."""
    rows = []
    for line in lines:
        rows += textwrap.wrap(line, COLUMNS, drop_whitespace=False, break_on_hyphens=False) or [""]
    height = TOP + LINE * len(rows) + 12
    drawn = [_draw_row(row, TOP + LINE * number) for number, row in enumerate(rows)]
    dots = "".join(
        f'<circle cx="{24 + 20 * n}" cy="22" r="6" fill="{colour}"/>'
        for n, colour in enumerate(("#e06c75", "#e5c07b", "#98c379"))
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
            'aria-label="A conversation with the greenhouse agent on a terminal">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#1c2128"/>{dots}',
            *drawn,
            "</svg>\n",
        ]
    )


def _draw_row(row: str, y: int) -> str:
    """Return a line: what was typed, what is asked, what is beside it."""
    at, name = f'<text x="{LEFT}" y="{y}"', ""
    for prompt in ("$ ", "> ", "[y/N] "):
        if row.startswith(prompt):
            typed = html.escape(row[len(prompt) :])
            before = f'<tspan class="dim">{html.escape(prompt)}</tspan>'
            return f'{at} xml:space="preserve">{before}<tspan class="typed">{typed}</tspan></text>'
    if row.startswith("Approve "):
        name = ' class="asks"'
    elif row.startswith(("  ", "Next: ", "Made ")):
        name = ' class="dim"'
    return f'{at}{name} xml:space="preserve">{html.escape(row)}</text>'


def main():
    IMAGES.mkdir(parents=True, exist_ok=True)
    (IMAGES / "session.svg").write_text(draw_session(play_session()))


if __name__ == "__main__":
    main()
