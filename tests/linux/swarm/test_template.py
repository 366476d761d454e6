"""``clawlite new --template team``, followed as docs/swarm.md has it."""

import json
import re
import shlex
import signal
from pathlib import Path

from agents import Agent, eventually, linux

DOCS = Path(__file__).resolve().parents[3] / "docs/swarm.md"


def clawlite(folder, home, line: str) -> tuple:
    """Run a line of the docs; return (exit code, stdout)."""
    words = shlex.split(line)
    assert words[0] == "clawlite"
    with Agent(linux(*words[1:]), home, cwd=folder) as command:
        return command.wait(), command.text()


def test_a_newcomer_has_a_team_at_work(tmp_path):
    text = DOCS.read_text().partition("## Begin here")[2].partition("\n## ")[0]
    blocks = re.findall(r"(?:^    .+\n)+", text, re.M)
    lines = [line.strip() for line in blocks[0].splitlines()]
    assert lines[1:] == ["cd team", "clawlite swarm up"]
    assert clawlite(tmp_path, tmp_path, lines[0])[0] == 0
    team = tmp_path / "team"
    leader, *workers = (json_of(team / name) for name in ("leader", "gardener", "shed"))
    assert workers == [leader] * 2, "the same swarm in all"
    with Agent(linux("swarm", "up"), tmp_path, cwd=team) as up:

        def is_there():
            _, said = clawlite(team, tmp_path, "clawlite swarm status leader --json")
            return [one["processes"] for one in json.loads(said)["members"]] == [1, 1, 0]

        for _ in range(2):
            up.expect(" is ready")
        eventually(is_there)
        for part in re.split(r"^ {4}\$ ", blocks[1], flags=re.M)[1:]:
            line, *expected = [text.strip() for text in part.splitlines()]
            code, said = clawlite(team, tmp_path, line)
            assert (
                code == 0 and [x.rstrip() for x in said.splitlines()][: len(expected)] == expected
            )
        given = """clawlite swarm run "look at bed 3" leader --input '{"asked": "today"}'"""
        assert clawlite(team, tmp_path, given) == (0, "Bed 3 is dry.\n"), "rules fit the words"
        with Agent(linux("run", "leader"), tmp_path, cwd=team) as talk:
            talk.expect("is ready")
            talk.line("water bed 2")
            assert "Bed 2 is watered." in talk.expect("\n") + talk.expect("\n")
        assert clawlite(team, tmp_path, "clawlite swarm stop leader")[0] == 0
        found = clawlite(team, tmp_path, 'clawlite swarm run "look at bed 3" leader')
        assert found == (0, "Bed 3 is dry.\n"), "it only reads"
        code, said = clawlite(team, tmp_path, 'clawlite swarm run "water bed 3" leader')
        assert code == 1 and "was stopped by a person" in said
        up.signal(signal.SIGTERM)
        assert up.wait() == 0


def json_of(folder) -> str:
    """Return the Swarm as it stands in the manifest."""
    return (folder / "claw.yaml").read_text().partition("\n  swarm:")[2]
