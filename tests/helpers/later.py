"""Packages that take long to import, imported when a test first uses them.

Every process of a run collects all tests, so what stands at the top of one file is imported by each
of them: the clients of three vendors took four seconds of processor time, three times over.
"""

import importlib


class Later:
    """``anthropic = Later("anthropic")`` stands for the module, and imports it at the first use.

    importlib.util.LazyLoader would not do: it imports the packages above the module at once.
    """

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str):
        # pytest asks each object of a test file for some of these when it collects the tests
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(importlib.import_module(self._name), name)
