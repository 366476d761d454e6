"""docs/tasks.md: its example is what happens."""

import json
from pathlib import Path

from agents import Agent, clawlite, eventually, linux

PAGE = Path(__file__).resolve().parents[3] / "docs/tasks.md"


def test_the_example_of_the_page(tmp_path):
    assert clawlite("new", "greenhouse", "--offline", cwd=tmp_path).returncode == 0
    text = PAGE.read_text().replace("\n    ", " ")  # a record that is broken on the page
    lines = [line for line in text.splitlines() if line[:2] in ("> ", "< ")]
    assert len(lines) == 8
    image = str(tmp_path / "greenhouse")
    with Agent(linux("serve", image, "--stdio"), tmp_path).initialize() as agent:
        for asked, answered in zip(lines[::2], lines[1::2]):
            request, expected = json.loads(asked[2:]), json.loads(answered[2:])
            parts = request["method"], request["params"], request["id"]
            if request["method"].endswith("get"):  # a task goes on by itself: this may be too early
                eventually(lambda: agent.call(*parts) == expected)
            else:
                assert agent.call(*parts) == expected
