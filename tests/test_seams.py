"""What an agent is given: each field of ``Setup`` is described, and the setups of a Linux shell and
of a board have the same ones.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SETUP = ROOT / "clawlite/core/agent/agent_setup.py"
# (file, class): a class that takes the place of ``Setup``
OTHERS = (
    ("clawlite/linux/runtime/agent_parts.py", "AgentParts"),
    ("firmware-host/micropython/runtime/device.py", "Device"),
)
# what a board's assemble.py gives each of them
OF_ASSEMBLE = {"later", "codecs"}


def class_of(path: Path, name: str) -> ast.ClassDef:
    tree = ast.parse(path.read_text())
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def names(of: ast.ClassDef) -> set:
    """Return the fields and methods of a class: those in its body, and those that it sets."""
    found = {node.name for node in of.body if isinstance(node, ast.FunctionDef)}
    for node in of.body:
        if isinstance(node, ast.Assign):
            found |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    for node in ast.walk(of):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if ast.unparse(node.value) == "self":
                found.add(node.attr)
    return {name for name in found if not name.startswith("_")}


def test_each_field_of_a_setup_is_described():
    made = class_of(SETUP, "Setup")
    described = re.findall(r"^(\w+)  +\S", ast.get_docstring(made), re.MULTILINE)
    assert set(described) == names(made) and len(described) == len(set(described))


def test_every_setup_has_the_same_fields():
    wanted = names(class_of(SETUP, "Setup"))
    for file, name in OTHERS:
        missing = wanted - names(class_of(ROOT / file, name))
        assert missing <= (OF_ASSEMBLE if name == "Device" else set()), (file, missing)
