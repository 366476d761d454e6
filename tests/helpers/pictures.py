"""Pictures of the documents that are made from real runs: ``make pictures``.

``session.svg``  a conversation with the greenhouse on a terminal, as an SVG without script, font or
                 anything of elsewhere; tests/host/cli/test_pictures.py compares it with a run.
``gallery/``     what each template does: its wiring, or a terminal; docs/gallery.md shows them.
"""

import html
import shlex
import sys
import tempfile
import textwrap
from pathlib import Path

PAGE = """\
# Gallery

<!-- written by make pictures -->

What a project may begin as. `clawlite new --list` shows the same list. Each template builds and
runs as it is, here and on the boards that it is for. Where no hardware is, it is simulated.
`clawlite wiring` draws the wiring for your board: `clawlite wiring --board esp32`. With `--local`
a template understands plain sentences without a key ([local.md](local.md)).
"""
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "helpers"))
IMAGES = ROOT / "docs/images"
BEGIN = "clawlite new %s && cd %s && clawlite run"
NEXT, ASKED = "\n> ", "[y/N] "  # what ends what is shown: the prompt, or a question
# what a person types, and what ends the answer
SAID = {
    "greenhouse": [
        ("is the soil dry?", ASKED),
        ("y", NEXT),
        ("water the plants for 90 seconds", NEXT),
        ("/trace 2", NEXT),
    ],
    "notes": [
        ("remember that the drill is in the cellar", NEXT),
        ("note: Anna calls on Friday", NEXT),
        ("where is the drill?", NEXT),
    ],
    "files": [
        ("write buy milk to todo.txt", ASKED),
        ("y", NEXT),
        ("read todo.txt", NEXT),
        ("read private/diary.txt", NEXT),
    ],
    "chat": [("hello", NEXT), ("/tools", NEXT)],
}
TEAM = ['clawlite swarm run "look at bed 3" leader', 'clawlite swarm run "water bed 3" leader']
WIDTH, LINE, TOP, LEFT, COLUMNS = 860, 20, 52, 24, 96
STYLE = (
    "text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;"
    "fill:#d7dde5;white-space:pre}.typed{fill:#8fd694;font-weight:600}.asks{fill:#f2c97d}"
    ".dim{fill:#8b97a6}"
)


def play_session(template: str) -> list:
    """Return the lines of a real conversation in a fresh folder, as a terminal shows them."""
    from agents import Agent, clawlite, linux

    options = ["--offline"] if template in ("greenhouse", "chat") else ["--template", template]
    options += ["--template", template] if template == "chat" else []
    words = " ".join([template, *options])
    with tempfile.TemporaryDirectory() as folder:
        made = clawlite("new", template, *options, cwd=folder)
        project = Path(folder) / template
        env = {"TERM": "dumb"}
        home = Path(folder) / "home"
        with Agent(linux("run"), home, terminal=True, cwd=project, env=env) as agent:
            shown = agent.expect("> ") + "> "
            for line, ends in SAID[template]:
                agent.line(line)
                shown += agent.expect(ends) + ends
            agent.line("/quit")
            agent.wait()
        begin = "$ " + BEGIN % (words, template)
        return [begin, *made.stderr.splitlines(), *(shown + "/quit").splitlines()]


def play_team() -> list:
    """Return the lines of a terminal on which a team is given tasks."""
    import signal

    from agents import Agent, clawlite, linux

    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / ".home"  # that of clawlite() below
        clawlite("new", "team", "--template", "team", cwd=folder)
        team = Path(folder) / "team"
        lines = ["$ clawlite new team --template team && cd team", "$ clawlite swarm up &"]
        env = {"CLAWLITE_STATE": team / ".home/state", "HOME": team / ".home"}
        with Agent(linux("swarm", "up"), home, cwd=team, env=env) as up:
            up.expect(" is ready")
            up.expect(" is ready")
            for command in TEAM:
                done = clawlite(*shlex.split(command)[1:], cwd=team)
                lines += ["$ " + command, *done.stdout.splitlines()]
            up.signal(signal.SIGTERM)
            up.wait()
        return lines


def draw_session(lines: list, about: str = "A conversation with the greenhouse agent") -> str:
    """Return the SVG of a terminal with *lines*; *about*: what they are, for who cannot see it."""
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
            f'aria-label="{about} on a terminal">',
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


def draw_wiring(template: str) -> str:
    """Return the SVG of the wiring of *template* on a Pico W, or on a Pico where its lamp is."""
    from clawlite.host.projects import new
    from clawlite.host.wiring import drawing, wiring

    with tempfile.TemporaryDirectory() as folder:
        project = str(Path(folder) / template)
        new.new(project, template, offline=template in new.WITH_MODEL)
        board = "pico" if template == "blink" else None
        return "".join(line + "\n" for line in drawing.draw(wiring.find(project, board)))


def draw_template(template: str) -> str:
    """Return the picture of *template* in the gallery."""
    if template == "team":
        return draw_session(play_team(), "A team that is given tasks")
    if template in SAID and template != "greenhouse":
        return draw_session(play_session(template), f"A conversation with {template}")
    return draw_wiring(template)


def list_drawn() -> list:
    """Return the templates of the gallery, each of which has a picture."""
    from clawlite.host.projects import gallery

    return [one for one in gallery.describe() if one["name"] != "empty"]


def write_page() -> str:
    """Return the text of docs/gallery.md."""
    parts = [PAGE]
    for one in list_drawn():
        name = one["name"]
        parts.append(
            f"## {name}\n\n{one['about']}\n\n```sh\nclawlite new {name} --template {name}\n"
            f"```\n\n![{name}](images/gallery/{name}.svg)\n"
        )
    return "\n".join(parts)


def main():
    (IMAGES / "gallery").mkdir(parents=True, exist_ok=True)
    (IMAGES / "session.svg").write_text(draw_session(play_session("greenhouse")))
    for one in list_drawn():
        (IMAGES / "gallery" / f"{one['name']}.svg").write_text(draw_template(one["name"]))
    (ROOT / "docs/gallery.md").write_text(write_page())


if __name__ == "__main__":
    main()
