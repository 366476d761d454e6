"""What docs/tutorials says is what happens: every command, file and output is played."""

import pytest
import tutorials
from agents import ROOT

FOUND = sorted((ROOT / "docs/tutorials").glob("*.md"))


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_a_tutorial_works_word_for_word(path, tmp_path):
    assert tutorials.play(path, tmp_path) >= 5


def test_a_wrong_output_is_noticed():
    assert tutorials.fits("a ... c\n", "a b c\n") and tutorials.fits("...\nx\n", "1\n2\nx\n")
    assert not tutorials.fits("a\n", "b\n") and not tutorials.fits("a\n", "a\nb\n")
    assert not tutorials.fits("", "something\n") and tutorials.fits("", "")
    steps = tutorials.read_steps(
        "```console\n$ a b # exit code 3\nout\n$ c\n```\n```toml x.toml\ny\n```\n"
    )
    assert [(s.command, s.output, s.code, s.file) for s in steps] == [
        ("a b", "out\n", 3, ""),
        ("c", "", 0, ""),
        ("", "y\n", 0, "x.toml"),
    ]
