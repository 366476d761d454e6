"""The stages of a turn on a board: groups (outline.py) of which one at a time is in memory.

To build a request, to read an answer and to run a tool each need code that the others do not.  A
turn waits seconds for its network, so the milliseconds of loading do not count.  A caller reaches a
function of a stage by ``stage("group").function(...)`` (unload.py), which forgets the other stages
first.  Generators and objects of a forgotten stage keep their code as long as they live; the next
call of ``stage`` loads the group again.
"""

import ast

from clawlite.host.firmware.trees import walk

HOME = "base"


def part(trees: dict, stages: tuple) -> None:
    """Lead the calls of *stages*, groups of *trees*, {module: ``ast.Module``}, through ``stage``
    of the module base, in place.
    """
    for name, tree in trees.items():
        found = [
            node
            for node in walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "__import__"
            and isinstance(node.args[0], ast.Constant)
            and node.args[0].value in stages
        ]
        for node in found:
            node.func.id = "stage"
        if found and name != HOME:
            tree.body.insert(0, ast.ImportFrom(HOME, [ast.alias("stage")], 0))
            ast.fix_missing_locations(tree)
