"""What the features of a manifest are compiled with, and share (host/models/feature.py)."""

from clawlite.host.schema.automata import compile_pattern


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
    def __init__(self):
        self.pool, self.prose = Pool(), Prose()
