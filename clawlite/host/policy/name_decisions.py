"""Decisions about tools by their name alone: of those that an agent may lack and a policy names.

An image holds the decisions of its own tools (folding.py), each folded when it is built.  Of any
other name, the rules of the manifest are folded when it is first asked for.
"""

import types

from clawlite.host.policy import folding


class NameDecisions:
    """What policies decide about names.

    rules  ``folding.flatten``
    """

    def __init__(self, rules: list):
        self._rules = rules
        self._entries: dict[str, object] = {}

    def entry(self, name: str) -> object:
        """Return the entry (core/policy/policy.py) of a tool *name* that has neither labels nor
        hints and takes a path.

        Cost  all rules for a new name, a look-up for one that was asked for before
        """
        if name not in self._entries:
            tool = types.SimpleNamespace(
                kind="Tool", name=name, labels={}, spec=types.SimpleNamespace(annotations={})
            )
            self._entries[name] = folding.fold(self._rules, tool, ["path"])
        return self._entries[name]
