"""A schema as the compiler makes it and a device checks it."""

from clawlite.core.formats import cbor
from clawlite.core.formats.encoder import encode
from clawlite.core.formats.schema import check
from clawlite.host.schema.automata import compile_pattern
from clawlite.host.schema.compile import compile_schema


class Pool:
    def __init__(self, patterns=()):
        self.patterns = list(patterns)
        self.tables = [compile_pattern(pattern) for pattern in self.patterns]

    def add(self, pattern):
        table = compile_pattern(pattern)
        if pattern not in self.patterns:
            self.patterns.append(pattern)
            self.tables.append(table)
        return self.patterns.index(pattern)


def violation(schema, value):
    """Return what the checker says against *value*, None when it fits; a schema that tools may not
    have raises ``SchemaError``.
    """
    pool = Pool()
    program = cbor.decode(encode(compile_schema(schema, pool)))
    return check(program, value, pool.tables.__getitem__)
