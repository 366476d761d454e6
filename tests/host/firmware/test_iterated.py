"""The linker's list of modules whose generators are for loops (``firmware.ITERATED``) is what
the sources say.
"""

import ast

from clawlite.host.firmware import firmware

TAKERS = (
    "all",
    "any",
    "dict",
    "enumerate",
    "extend",
    "filter",
    "join",
    "list",
    "map",
    "max",
    "min",
    "next",
    "reversed",
    "set",
    "sorted",
    "sum",
    "tuple",
    "zip",
)
FUNCTIONS = (ast.FunctionDef, ast.Lambda)
# What a loop iterates, and what is iterated by way of a variable; ``driven`` is for Agent.drive.
SAMPLE = """
def listed(value):
    yield from listed(value[1:])
def kept(value):
    yield from listed(value)
def starred(value):
    yield from kept(value)
def driven(value):
    answer = yield from starred(value)
    return answer
def plain(value):
    yield value
def use(value):
    later = kept(value)
    later = driven(value) if value else driven(0)
    return [one for one in listed(value)], (*starred(value),), sum(plain(value))
def loop(value):
    later = kept(value)
    for one in later:
        return one
"""


def own(function):
    """Yield the nodes of *function*, without those of functions in it."""
    todo = list(ast.iter_child_nodes(function))
    while todo:
        node = todo.pop()
        if not isinstance(node, FUNCTIONS):
            yield node
            todo += ast.iter_child_nodes(node)


def called(node) -> str:
    """Return the name of the function that *node* calls, without the object that it belongs to,
    or "".
    """
    return (
        getattr(node.func, "attr", getattr(node.func, "id", ""))
        if isinstance(node, ast.Call)
        else ""
    )


def iterated_names(tree) -> set:
    """Return the names of the functions whose result a loop, or what works as one, goes through."""
    found = set()
    for function in ast.walk(tree):
        if not isinstance(function, (*FUNCTIONS, ast.Module)):
            continue
        held, through = {}, []
        for node in own(function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                held.setdefault(node.targets[0].id, set()).add(called(node.value))
            elif isinstance(node, (ast.For, ast.comprehension)):
                through.append(node.iter)
            elif isinstance(node, ast.Starred):
                through.append(node.value)
            elif called(node) in TAKERS:
                through += node.args
        for node in through:
            found |= held.get(node.id, set()) if isinstance(node, ast.Name) else {called(node)}
    return found


def delegating(trees: dict) -> dict:
    """Return {(module, name): names that it hands over to with ``yield from``} of the generators
    that do so.
    """
    found = {}
    for module, tree in trees.items():
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef):
                to = {
                    called(node.value) for node in own(function) if isinstance(node, ast.YieldFrom)
                }
                if to:
                    found[module, function.name] = to
    return found


def iterated(trees: dict) -> tuple:
    """Return ({(module, name)} of delegating generators that loops go through, the same of all
    others).
    """
    all_of = delegating(trees)
    names = set().union(*map(iterated_names, trees.values()))
    while True:
        found = {key for key in all_of if key[1] in names}
        more = set().union(names, *(all_of[key] for key in found))
        if more == names:
            return found, set(all_of) - found
        names = more


def test_the_scan_tells_what_a_loop_goes_through_from_what_is_driven():
    found, others = iterated({"sample": ast.parse(SAMPLE)})
    assert {name for _, name in found} == {"listed", "kept", "starred"} and {
        name for _, name in others
    } == {"driven"}
    found, others = iterated(
        {
            "one": ast.parse("def far(x):\n    yield from x.near()\n"),
            "two": ast.parse("for x in y.far(1): pass"),
        }
    )
    assert found == {("one", "far")} and not others


def test_each_module_whose_generators_a_loop_goes_through_is_listed_and_no_other():
    found, others = iterated(
        {name: ast.parse(path.read_text()) for name, path in firmware.sources().items()}
    )
    assert {module for module, _ in found} == set(firmware.ITERATED), found
    # nobody would drive them
    assert not {key for key in others if key[0] in firmware.ITERATED}
    # the scan sees those that Agent.drive goes through
    assert ("tools", "call") in others and ("turn", "turn") in others
