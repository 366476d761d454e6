"""The examples with which documents begin are valid, so a maker may copy them."""

import re
import textwrap
from pathlib import Path

import pytest

from clawlite.host.manifest import manifest

DOCS = Path(__file__).resolve().parents[3] / "docs"
CLAW = """\
claw: "0.3.0"
kind: Claw
metadata: { name: example }
spec:
  identity: { inline: { personality: "You answer.", autonomy: autonomous } }
  providers:
    - inline: { protocol: custom, endpoint: "builtin:reflex", model: reflex, auth: { type: none } }
"""


def block(name: str, heading: str, language: str) -> str:
    """Return the first block of *language* below *heading* in docs/NAME."""
    text = ("\n" + (DOCS / name).read_text()).partition("\n%s\n" % heading)[2]
    indent, code = re.search(r"^( *)```%s\n(.*?)^\1```$" % language, text, re.M | re.S).groups()
    return textwrap.dedent(code)


def loaded(folder, part: str, **files: str) -> manifest.Manifest:
    """Load a manifest whose ``spec`` has *part*, too."""
    (folder / "clawlite.toml").write_text('reflex = "reflex.toml"\n')
    (folder / "reflex.toml").write_text('[[rule]]\nwhen = "hello"\nsay = "Hello!"\n')
    for name, text in files.items():
        (folder / name.replace("_py", ".py")).write_text(text)
    (folder / "claw.yaml").write_text(CLAW + textwrap.indent(part, "  "))
    return manifest.load(folder / "claw.yaml")


@pytest.mark.parametrize(
    "name, heading",
    [
        ("policy.md", "## Begin here"),
        ("sandbox.md", "## Begin here"),
        ("telemetry.md", "# Telemetry"),
        ("channels.md", "## Telegram"),
    ],
)
def test_an_example_is_valid(tmp_path, name, heading):
    loaded(tmp_path, block(name, heading, "yaml"))


def test_the_first_tool_is_a_tool_of_the_agent(tmp_path):
    heading = "## Your own: tools.py"
    code = block("tools.md", heading, "python")
    found = loaded(tmp_path, block("tools.md", heading, "yaml"), tools_py=code)
    assert [tool.name for tool in found.tools] == ["convert"]
