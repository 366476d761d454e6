"""Draws what layout.md shows: the layers with their rooms and who imports whom, and the way of one
message.  ``make reference`` writes both, from the sources, into docs/images.
"""

import ast
import html
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs/images"
# layer -> its folder, each above those that it imports
LAYERS = {
    "host": "clawlite/host",
    "linux": "clawlite/linux",
    "scan": "clawlite/scan",
    "protocols": "clawlite/protocols",
    "firmware": "firmware-host/micropython",
    "core": "clawlite/core",
}
WIDTH, ROW, SMALL = 820, 26, 18
STYLE = (
    "text{font:13px ui-sans-serif,system-ui,'Segoe UI',Helvetica,Arial,sans-serif;fill:#1f2937}"
    ".t{font-weight:600}.d{fill:#6b7280;font-size:12px}.bg{fill:#fff}"
    ".x{fill:#f0fdfa;stroke:#0f766e}.a{stroke:#0f766e;stroke-width:1.5;fill:none}.h{fill:#0f766e}"
    "@media (prefers-color-scheme:dark){text{fill:#e5e7eb}.d{fill:#9ca3af}.bg{fill:#16191f}"
    ".x{fill:#132a2a;stroke:#2dd4bf}.a{stroke:#2dd4bf}.h{fill:#2dd4bf}}"
)
# The way of a line that a person types: what happens, the file below clawlite/, the function.
# tests/host/cli/test_diagrams.py lets a message go, and sees that they are entered in this order.
MESSAGE = (
    ("A person's line comes in", "core/protocol/console.py", "line"),
    ("A task begins", "core/agent/agent.py", "begin"),
    ("A turn asks, and runs the calls of the answer", "core/turns/turn.py", "turn"),
    ("Who is asked: rules, or a model", "core/providers/provider_order.py", "ask"),
    ("A call of a tool, the one way to run it", "core/turns/tools.py", "call"),
    ("Which gates it passes", "core/turns/gates.py", "find_way"),
    ("Do its arguments fit the schema?", "core/turns/gates.py", "check_arguments"),
    ("What do autonomy and policy say?", "core/turns/gates.py", "decide"),
    ("Must a person approve?", "core/turns/gates.py", "ask_person"),
    ("Log and audit, before anything acts", "core/turns/gates.py", "record_begin"),
    ("It runs: here, in a sandbox, on a connection", "core/turns/gates.py", "run_handler"),
    ("A person is asked", "core/protocol/console.py", "_put_approval"),
    ("Log and audit of what ran", "core/turns/gates.py", "record_run"),
    ("The text is shown", "linux/terminal/screen.py", "show"),
)


def list_files(layer: str) -> list:
    return sorted((ROOT / LAYERS[layer]).rglob("*.py"))


def list_rooms(layer: str) -> list:
    return sorted(
        {
            path.relative_to(ROOT / LAYERS[layer]).parts[0]
            for path in list_files(layer)
            if path.parent != ROOT / LAYERS[layer]
        }
    )


def list_arrows() -> list:
    """Return [(layer, layer that it imports)], without those within one."""
    on_boards = {path.stem: "core" for path in list_files("core")}
    found = set()
    for layer in LAYERS:
        names = on_boards if layer == "firmware" else {}
        for path in list_files(layer):
            for node in ast.walk(ast.parse(path.read_text())):
                modules = [node.module] if isinstance(node, ast.ImportFrom) else []
                if isinstance(node, ast.Import):
                    modules = [one.name for one in node.names]
                for module in filter(None, modules):
                    first, _, rest = module.partition(".")
                    other = rest.partition(".")[0] if first == "clawlite" else names.get(first)
                    if other in LAYERS and other != layer:
                        found.add((layer, other))
    order = list(LAYERS)
    return sorted(found, key=lambda pair: tuple(map(order.index, pair)))


def draw_layers() -> str:
    """Return the SVG: a box for each layer, its rooms in it, and arrows down the left side."""
    tops, drawn, y = {}, [], 16
    for layer, folder in LAYERS.items():
        rows = break_words(list_rooms(layer))
        height = 34 + SMALL * len(rows)
        tops[layer] = y, height
        drawn += [
            f'<rect class="x" x="130" y="{y}" width="{WIDTH - 150}" height="{height}" rx="6"/>',
            write(146, y + 22, folder, "t"),
            *(write(146, y + 42 + SMALL * at, row, "d") for at, row in enumerate(rows)),
        ]
        y += height + 22
    for at, (above, below) in enumerate(list_arrows()):
        x, (top, height), (goal, _) = 112 - 14 * at, tops[above], tops[below]
        start, end = top + height - 12 - 6 * (at % 2), goal + 12 + 6 * (at % 4)
        drawn.append(
            f'<path class="a" d="M130 {start} H{x} V{end} H124"/>'
            f'<path class="h" d="M130 {end} l-8 -4 v8 z"/>'
        )
    return frame("The layers of clawlite, and which imports which", y, drawn)


def break_words(names: list) -> list:
    rows = [""]
    for name in names:
        if len(rows[-1]) + len(name) > 96:
            rows.append("")
        rows[-1] += name + "  "
    return [row.strip() for row in rows if row.strip()]


def draw_message() -> str:
    """Return the SVG: a box for each step, with the file and the function."""
    drawn, y = [], 16
    for at, (what, path, name) in enumerate(MESSAGE):
        if at:
            drawn.append(
                f'<path class="a" d="M40 {y - 12} V{y - 6}"/>'
                f'<path class="h" d="M40 {y} l-4 -8 h8 z"/>'
            )
        drawn += [
            f'<rect class="x" x="20" y="{y}" width="{WIDTH - 40}" height="{ROW}" rx="6"/>',
            write(36, y + 18, what, ""),
            write(430, y + 18, f"{path}: {name}", "d"),
        ]
        y += ROW + 12
    return frame("The way of one message", y, drawn)


def write(x: int, y: int, text: str, style: str) -> str:
    return f'<text class="{style}" x="{x}" y="{y}">{html.escape(text)}</text>'


def frame(title: str, height: int, drawn: list) -> str:
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'width="{WIDTH}" height="{height}">',
        f"<title>{title}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="bg" width="{WIDTH}" height="{height}" rx="8"/>',
        *drawn,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


PICTURES = {IMAGES / "layers.svg": draw_layers, IMAGES / "message.svg": draw_message}
