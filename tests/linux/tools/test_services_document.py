"""The example of docs/services.md, word by word."""

import re
from pathlib import Path

from agents import ROOT, clawlite
from trading_desk import Desk

FILES = ("services/desk.json", "clawlite.toml", "claw.yaml", "reflex.toml")


def blocks() -> list:
    """Return [(language, text)] of what the document quotes."""
    text = (ROOT / "docs/services.md").read_text()
    return re.findall(r"^```([a-z]*)\n(.*?)^```$", text, re.S | re.M)


def test_the_example_word_by_word(tmp_path):
    with Desk() as desk:
        project = tmp_path / "analyst"
        (project / "services").mkdir(parents=True)
        for name, text in zip(FILES, [text for language, text in blocks() if language]):
            text = text.replace("127.0.0.1:4000", f"127.0.0.1:{desk.port}")
            Path(project / name).write_text(text)
        done = clawlite("run", project, cwd=tmp_path, stdin=b"balance\n", DESK_TOKEN="t-canary")
        desk.tokens["t-canary"] = "desk"
        again = clawlite("run", project, cwd=tmp_path, stdin=b"balance\n", DESK_TOKEN="t-canary")
    assert '"code":"http_401"' in done.stdout, done
    said = next(text for language, text in blocks() if not language)
    assert said in again.stdout and "t-canary" not in again.stdout + again.stderr, again
