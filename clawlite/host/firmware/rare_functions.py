"""Which functions a board loads only when they are called: those that outline.py moves out.

1. ``rare`` in groups.json names the functions with which each group begins.  A person chose them,
   not a count: they run together, or are not needed once an agent is READY, or no transcript calls
   them.
2. A function that only functions of one group mention joins the group.  This follows from the
   sources, so a new helper of such a function needs no entry.
3. A mention is any use of the name, in any module.  So a function does not move when another
   function of its name is used elsewhere, or when a string contains its name as a word.
"""

import ast

from clawlite.host.firmware.trees import walk

ALWAYS = ""  # the mentioning function, for a mention at the top of a module


def functions(body: list, owner: str = ""):
    """Yield (qualified name, node) of functions and methods; inner functions are not listed."""
    for node in body:
        if isinstance(node, ast.FunctionDef):
            yield owner + node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node.body, node.name + ".")


def with_companions(groups: dict, trees: dict, units: dict, first: tuple, plain: tuple) -> dict:
    """Return *groups*, {group: {module: [name]}}, with those that only their members mention.

    trees  {module: ``ast.Module``} of the sources
    units  {module: its unit}; a group takes functions from its own units and from *first* only
    plain  modules whose functions are called by name, so that they do not move
    """
    group_of = {
        (module, name): group
        for group, of in groups.items()
        for module, names in of.items()
        for name in names
    }
    homes = {
        group: {*first, *(units.get(module, module) for module in of)}
        for group, of in groups.items()
    }
    open_ones = {
        (module, name): users
        for (module, name), users in _users(trees).items()
        if module not in plain and (module, name) not in group_of
    }
    found = {
        group: {module: [*names] for module, names in of.items()} for group, of in groups.items()
    }
    while True:
        more = {
            key: group
            for key, users in open_ones.items()
            if (group := _only(users, group_of)) and units.get(key[0], key[0]) in homes[group]
        }
        if not more:
            return found
        for (module, name), group in more.items():
            found[group].setdefault(module, []).append(name)
            del open_ones[module, name]
        group_of.update(more)


def with_classes(groups: dict, trees: dict) -> set[str]:
    """Return the groups with a class that an ``except``, an ``isinstance`` or a subclass names.  If
    such a group were loaded twice, there would be two classes, and these places would not know
    the second.
    """
    named = set()
    for tree in trees.values():
        for node in walk(tree):
            asked = []
            if isinstance(node, ast.ExceptHandler) and node.type:
                asked = [node.type]
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
                asked = node.args[1:]
            elif isinstance(node, ast.ClassDef):
                asked = node.bases
            for one in asked:
                named.update(name for part in walk(one) for name in _mentions(part))
    classes = {
        (module, node.name)
        for module, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name in named
    }
    return {
        group
        for group, of in groups.items()
        if any((module, name) in classes for module, names in of.items() for name in names)
    }


def _only(users: set, group_of: dict):
    """Return the group that all *users*, {(module, name)}, are in, or None."""
    groups = {
        group_of.get(key) or group_of.get((key[0], key[1].partition(".")[0])) for key in users
    }
    return groups.pop() if len(groups) == 1 else None


def _users(trees: dict) -> dict[tuple, set]:
    """Return {(module, qualified name) of a plain function: {(module, qualified name) of each
    function that mentions it}}.  Functions that nobody mentions are left out.
    """
    mentions, texts = {}, set()
    for module, tree in trees.items():
        within = {id(part): name for name, node in functions(tree.body) for part in walk(node)}
        described = {id(node.value) for node in walk(tree) if isinstance(node, ast.Expr)}
        for node in walk(tree):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in described
            ):
                words = node.value.split()
                if all(word.isidentifier() for word in words):  # no sentence
                    texts.update(words)
            for name in _mentions(node):
                mentions.setdefault(name, set()).add((module, within.get(id(node), ALWAYS)))
    found = {}
    for module, tree in trees.items():
        for key, node in functions(tree.body):
            users = mentions.get(node.name, set()) - {(module, key)}
            if node.name.startswith("_") and "." not in key:
                users = {user for user in users if user[0] == module}
            if users and node.name not in texts and is_plain(node):
                found[module, key] = users
    return found


def _mentions(node) -> list[str]:
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        return [node.attr]
    # an alias counts as a mention, because the uses of the other name are not followed
    return [node.name] if isinstance(node, ast.alias) and node.asname else []


def is_plain(node) -> bool:
    """Return whether outline.py can move the function *node* without being told more about it."""
    arguments = node.args
    return not (
        node.name.startswith("__")
        or node.decorator_list
        or arguments.kwarg
        or arguments.kwonlyargs
        or arguments.defaults
    )
