"""The seams of an agent: attributes that a shell sets.  The agent's docstring, its ``__init__`` and
the Protocols of a Linux shell name the same ones, and each function that is handed in takes what
the agent gives it.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
AGENT = ROOT / "clawlite/core/agent/agent.py"
SEAMS = ROOT / "clawlite/linux/runtime/seams.py"
LAYERS = ("clawlite/core/protocol", "clawlite/linux", "firmware-host/micropython")
# what the agent makes for itself, and nobody hands in
OWN = {
    "image",
    "effects",
    "tasks",
    "lifecycle",
    "waiting",
    "idempotency",
    "max_tasks",
    "providers",
}
# (file, class, seam, method): handed in by another file
ELSEWHERE = (
    ("clawlite/linux/runtime/fast_path.py", "FastPath", "run", "start"),
    ("clawlite/linux/runtime/fast_path.py", "FastPath", "emit", "emit"),
    ("firmware-host/micropython/runtime/device.py", "Device", "kept", "kept"),
    ("firmware-host/micropython/stores/stores.py", "Stores", "memories", "methods"),
    ("firmware-host/micropython/stores/stores.py", "Stores", "lasting", "lasting"),
)


def class_of(path: Path, name: str) -> ast.ClassDef:
    tree = ast.parse(path.read_text())
    return next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)


def function_of(nodes, name: str):
    """Return the function *name* among *nodes*, or None."""
    return next(
        (node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == name), None
    )


def documented() -> set:
    """Return the seams that the docstring of ``Agent`` describes."""
    text = ast.get_docstring(class_of(AGENT, "Agent"))
    return set(re.findall(r"^(\w+)  +\S", text.partition("Each seam below")[2], re.MULTILINE))


def attributes() -> set:
    """Return the attributes that ``Agent.__init__`` makes for others to set."""
    begin = function_of(class_of(AGENT, "Agent").body, "__init__")
    names = {
        node.attr
        for node in ast.walk(begin)
        if isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id == "self"
    }
    return {name for name in names if not name.startswith("_")} - OWN


def declared() -> dict:
    """Return {seam: source of its type} of the Protocol ``AgentSeams``."""
    return {
        node.target.id: ast.unparse(node.annotation)
        for node in class_of(SEAMS, "AgentSeams").body
        if isinstance(node, ast.AnnAssign)
    }


def bounds(function: ast.FunctionDef) -> tuple[int, int]:
    """Return the least and the most arguments by position that *function* takes, without self."""
    arguments = function.args
    names = [one.arg for one in arguments.args]
    count = len(names) - (names[:1] == ["self"])
    least = count - len(arguments.defaults)
    return least, 99 if arguments.vararg else count


def protocol(kind: str):
    """Return the ``__call__`` of the Protocol in the type *kind*, or None for plain data."""
    found = re.match(r"(?:tuple\[)?([A-Z]\w+)", kind)
    if not found or found[1] == "Any":
        return None
    return function_of(class_of(SEAMS, found[1]).body, "__call__")


def handed_in() -> list:
    """Return [(file, line, seam, name of the function), ...] of all places that set a seam of an
    agent to a function of the same file.
    """
    found = []
    for layer in LAYERS:
        for path in sorted((ROOT / layer).glob("**/*.py")):
            text = path.read_text()
            if "agent." not in text:
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Assign):
                    found += [(path, node.lineno, *pair) for pair in pairs(node)]
    return found


def pairs(node: ast.Assign) -> list:
    """Return [(seam, name of the function), ...] that *node* sets."""
    found = []
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            both = list(zip(target.elts, node.value.elts))
        else:
            both = [(target, node.value)]
        for left, right in both:
            is_seam = isinstance(left, ast.Attribute) and ast.unparse(left.value).endswith("agent")
            if is_seam and isinstance(right, ast.Attribute) and ast.unparse(right.value) == "self":
                found.append((left.attr, right.attr))
            elif is_seam and isinstance(right, ast.Name):
                found.append((left.attr, right.id))
    return found


def test_each_seam_is_documented_and_declared():
    assert documented() == attributes() == set(declared())


def test_each_function_of_a_seam_takes_what_the_agent_gives():
    kinds, compared, wrong = declared(), set(), []
    for path, line, seam, name in handed_in():
        call = protocol(kinds.get(seam, "Any"))
        given = function_of(ast.walk(ast.parse(path.read_text())), name)
        if call is None or given is None:
            continue
        compared.add(seam)
        (least, most), (few, many) = bounds(given), bounds(call)
        if least > few or most < many:
            wrong.append(f"{path}:{line}: {seam} takes {few} to {many}, {name} {least} to {most}")
    for path, owner, seam, name in ELSEWHERE:
        given, call = function_of(class_of(ROOT / path, owner).body, name), protocol(kinds[seam])
        compared.add(seam)
        if bounds(given) != bounds(call):
            wrong.append(f"{path}: {name} is no {seam}")
    assert not wrong
    assert compared >= {"emit", "run", "on_wait", "memories", "lasting", "kept", "adopt"}
