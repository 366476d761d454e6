"""What the features of a manifest are compiled with, and share (host/models/feature.py)."""

import dataclasses

from clawlite.host.policy import folding
from clawlite.host.sandbox import sandboxes
from clawlite.host.schema.automata import PatternError, compile_pattern
from clawlite.host.schema.compile import SchemaError, compile_schema
from clawlite.host.tools import skill_tools

_SIMPLER = "change the schema here, or remove this keyword from it"


class Pool:
    """Automata that schemas share, by pattern."""

    def __init__(self):
        self.tables = []
        self._numbers = {}

    def add(self, pattern: str, dollar: str = "end") -> int:
        """Return the number of the automaton for *pattern* (``automata.compile_pattern``).
        Raises ``automata.PatternError``.
        """
        if (pattern, dollar) not in self._numbers:
            compiled = compile_pattern(pattern, dollar)
            self._numbers[pattern, dollar] = len(self.tables)
            self.tables.append(compiled)
        return self._numbers[pattern, dollar]


class Prose:
    """Texts that are read in place, one after the other."""

    def __init__(self):
        self.data = b""

    def add(self, text: str) -> list:
        """Return [offset, length] of *text*, in bytes."""
        added = text.encode()
        where = self.data.find(added)
        if where < 0:
            where = len(self.data)
            self.data += added
        return [where, len(added)]


class Work:
    """What is known of a manifest's tools, and what its sections have in common.

    pool, prose  automata and texts of the image
    rules        [``folding.FlatRule``] of all policies
    tools        the tools, then the skills as such;  names: by which they are called
    decided      for each of them (entry, alone, bound), as ``folding.entries`` has it
    timeouts     {name: ms}, when a call of it is ended
    shown        entries of what models are shown: None for what they are not
    texts        functions(manifest, offered) -> a part of the system prompt, in their order
    """

    def __init__(self, manifest):
        self.pool, self.prose = Pool(), Prose()
        self.rules = folding.flatten(manifest.policies, sandboxes.workspace(manifest))
        self.tools = manifest.tools + skill_tools.as_tools(manifest)
        self.names = [skill_tools.name_of_call(tool) for tool in self.tools]
        self.decided = [folding.entries(self.rules, manifest, tool) for tool in self.tools]
        self.entries = [entry for entry, _, _ in self.decided]
        self.timeouts, self.shown, self.texts = {}, list(self.entries), []

    def hide(self, names: set) -> None:
        """Show the tools of these *names* to no model."""
        for place, tool in enumerate(self.tools):
            if tool.kind == "Tool" and tool.name in names:
                self.shown[place] = None

    def list_aliased(self) -> list:
        """Return the tools under the names that providers' APIs accept."""
        return [
            dataclasses.replace(tool, name=skill_tools.alias(name))
            for tool, name in zip(self.tools, self.names)
        ]

    def system(self, manifest, offered: list) -> str:
        """Return the system prompt of an agent whose model is shown the tools *offered*."""
        parts = [text for text in (part(manifest, offered) for part in self.texts) if text]
        return "\n\n".join(part.rstrip() for part in parts) if parts[1:] else "".join(parts)

    def compile_schema(self, manifest, tool, field: str, schema: dict):
        """Return the check program of *schema*, which *field* of *tool* has; None with a problem
        when there is none.
        """
        is_foreign = tool.served is not None and schema is tool.served.definition.get("inputSchema")
        try:
            return compile_schema(schema, self.pool, is_foreign)
        except SchemaError as e:
            manifest.problem(tool, (field, *e.path), e.message, hint=_SIMPLER)
        except PatternError as e:
            manifest.problem(tool, (field,), str(e), hint=_SIMPLER)
        return None
