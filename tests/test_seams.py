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
    "setup",
    "image",
    "effects",
    "tasks",
    "lifecycle",
    "waiting",
    "idempotency",
    "max_tasks",
    "providers",
}
RUNTIME = "clawlite/linux/runtime"
BOARD = "firmware-host/micropython"
# {(file that sets it, seam): (file, class, method)}: what another file's object hands in
ELSEWHERE = {
    (f"{RUNTIME}/shell.py", "run"): (f"{RUNTIME}/fast_path.py", "FastPath", "start"),
    (f"{RUNTIME}/shell.py", "emit"): (f"{RUNTIME}/fast_path.py", "FastPath", "emit"),
    (f"{BOARD}/runtime/assemble.py", "kept"): (f"{BOARD}/runtime/device.py", "Device", "kept"),
    (f"{BOARD}/runtime/assemble.py", "memories"): (
        f"{BOARD}/stores/stores.py",
        "Stores",
        "methods",
    ),
    (f"{BOARD}/runtime/assemble.py", "lasting"): (f"{BOARD}/stores/stores.py", "Stores", "lasting"),
}


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
    """Return [(file, line, seam, value), ...] of all places that set a seam of an agent: *value* is
    the syntax tree of what is handed in, each of several in a tuple or a choice by itself.
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
    """Return [(seam, value), ...] that *node* sets."""
    found = []
    for target in node.targets:
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            both = list(zip(target.elts, node.value.elts))
        else:
            both = [(target, node.value)]
        for left, right in both:
            if isinstance(left, ast.Attribute) and ast.unparse(left.value).endswith("agent"):
                found += [(left.attr, value) for value in alternatives(right)]
    return found


def alternatives(value) -> list:
    """Return what *value* may be: the items of a tuple, both sides of a choice, or itself."""
    if isinstance(value, ast.Tuple):
        return [one for item in value.elts for one in alternatives(item)]
    if isinstance(value, ast.IfExp):
        return alternatives(value.body) + alternatives(value.orelse)
    return [value]


def function_behind(path: Path, value):
    """Return the function or lambda that *value* in the file at *path* is, or None when another
    file has it.
    """
    if isinstance(value, ast.Lambda):
        return value
    is_own = isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self"
    name = value.attr if is_own else value.id if isinstance(value, ast.Name) else ""
    return function_of(ast.walk(ast.parse(path.read_text())), name)


def test_each_seam_is_documented_and_declared():
    assert documented() == attributes() == set(declared())


def test_each_function_of_a_seam_takes_what_the_agent_gives():
    kinds, compared, wrong, elsewhere = declared(), set(), [], set()
    for path, line, seam, value in handed_in():
        call = protocol(kinds.get(seam, "Any"))
        if call is None or isinstance(value, ast.Constant):  # data, or nothing is handed in
            continue
        given = function_behind(path, value)
        if given is None:
            setter = path.relative_to(ROOT).as_posix()
            elsewhere.add((setter, seam))
            file, owner, name = ELSEWHERE[setter, seam]
            given = function_of(class_of(ROOT / file, owner).body, name)
        compared.add(seam)
        (least, most), (few, many) = bounds(given), bounds(call)
        if least > few or most < many:
            wrong.append(f"{path}:{line}: {seam} takes {few} to {many}, not {least} to {most}")
    assert not wrong
    assert elsewhere == set(ELSEWHERE)
    assert compared >= {"emit", "run", "on_wait", "memories", "lasting", "kept", "adopt"}


def test_a_function_in_a_tuple_a_choice_or_a_lambda_is_found():
    """Each way in which a shell hands in a function leads to the function."""
    text = "agent.conditions = (self.about, lambda: 1)\nagent.run, agent.emit = (a if b else c), d"
    found = [pair for node in ast.parse(text).body for pair in pairs(node)]
    assert [(seam, ast.unparse(value)) for seam, value in found] == [
        ("conditions", "self.about"),
        ("conditions", "lambda: 1"),
        ("run", "a"),
        ("run", "c"),
        ("emit", "d"),
    ]
