"""JSON Schema 2020-12 to the check programs of ``clawlite.core.formats.schema``.

Rules: 1. What a JSON value can be asked without a network is compiled; the rest is refused by name,
with its path.
2. Annotations are dropped, also ``x-...``; any other unknown keyword is an error, since a misspelt
   one would check nothing.
3. Formats that ``schemas_words`` knows are asserted, others are annotations (2020-12 allows both).
   4. The program holds ints, floats, text, lists and, within ENUM, maps: it survives CBOR.  It
      nests at most 11
lists, whatever the schema: deeper nodes move to its table.  5. The same schema gives the same
program."""

import difflib
from urllib.parse import unquote

from clawlite.core.base.jsonvalue import show
from clawlite.host.schema import vocabulary as words
from clawlite.host.schema.kind_masks import (
    ANYTHING,
)
from clawlite.host.schema.node import Node
from clawlite.host.schema.values import SchemaError, height

_DEPTH = 64  # nesting of a schema
# nodes of a schema: a manifest has tens, one built from YAML aliases has no end
_NODES = 5000
_HEIGHT = 6  # lists within a node before it moves to the table


def compile_schema(schema, pool, is_foreign: bool = False):
    """Return the check program of *schema* (a dict or a bool).

    pool    has ``add(pattern) -> int``, the index by which the device finds the pattern's automaton
    is_foreign  it is no maker's own: a keyword that JSON Schema does not know is an annotation, as
            the standard says, for nobody here has misspelt it
    Raises SchemaError for what is no schema, is not supported, or refers to itself without end.
    """
    return _Compiler(schema, pool, is_foreign).program()


class _Compiler:
    def __init__(self, root, pool, is_foreign: bool):
        self.root = root
        self.pool = pool
        self.is_foreign = is_foreign
        self.table = [None, None]
        self.targets = {(): 1}  # path of a $ref's target -> index in the table
        self.waiting = []  # (index, path, schema) still to compile
        self.loops = {}  # index -> [(index, path of the $ref)]: reached with the same value
        self.recursive = False  # a $ref leads to the root
        self.nodes = 0

    def program(self):
        self.table[1] = self.node(self.root, [], 1)
        while self.waiting:
            index, path, schema = self.waiting.pop(0)
            self.table[index] = self.node(schema, path, index)
        done = set()
        for start in list(self.loops):
            self.refuse_loops(start, [], done)
        return self.table[1] if len(self.table) == 2 and not self.recursive else self.table

    def refuse_loops(self, index, trail, done):
        for target, path in self.loops.get(index, ()) if index not in done else ():
            if target == index or target in trail:
                raise SchemaError(
                    path, "this $ref leads back to itself without looking into the value"
                )
            self.refuse_loops(target, trail + [index], done)
        done.add(index)

    # One schema.  *here* is the index in the table whose value this one still is, None below a
    # member or an item.

    def node(self, schema, path, here):
        self.nodes += 1
        if self.nodes > _NODES or len(path) > 2 * _DEPTH:
            raise SchemaError(
                path[:8], "the schema is too large (at most %d parts, %d deep)" % (_NODES, _DEPTH)
            )
        if schema is True:
            return ANYTHING
        if schema is False:
            return 0
        if type(schema) is not dict:
            raise SchemaError(
                path, "expected a schema (an object, true or false), got %s" % show(schema)
            )
        self.refuse_words(schema, path)
        node = Node(self, schema, path, here).compile()
        if height(node) > _HEIGHT:
            self.table.append(node)
            return 1 - len(self.table)
        return node

    def refuse_words(self, schema, path):
        for word in schema:
            if self.is_foreign and word not in words.REFUSED_EVER:
                continue
            if word in words.REFUSED:
                raise SchemaError(path + [word], words.REFUSED[word])
            if (
                word in words.ANNOTATIONS
                or word in words.CHECKS
                or type(word) is str
                and word.startswith("x-")
            ):
                continue
            close = difflib.get_close_matches(
                str(word), list(words.CHECKS) + list(words.ANNOTATIONS), 1
            )
            raise SchemaError(
                path + [word],
                "unknown keyword" + (' - did you mean "%s"?' % close[0] if close else ""),
            )
        if "$id" in schema and path:
            raise SchemaError(
                path + ["$id"], 'only the root of a schema may have one; a $ref here is "#/..."'
            )
        dialect = schema.get("$schema", words.DIALECTS[0])
        is_known = type(dialect) is str and dialect.rstrip("#") in words.DIALECTS
        if not is_known and not self.is_foreign:
            raise SchemaError(
                path + ["$schema"], "expected %s, got %s" % (words.DIALECTS[0], show(dialect))
            )

    def reference(self, ref, path, here):
        """Return the node for a ``$ref`` found at *path*; its target is compiled once."""
        target, schema = self.resolve(ref, path)
        key = tuple(target)
        if not key:
            self.recursive = True
        elif key not in self.targets:
            self.targets[key] = len(self.table)
            self.waiting.append((len(self.table), target, schema))
            self.table.append(None)
        if here is not None:
            self.loops.setdefault(here, []).append((self.targets[key], path))
        return -self.targets[key]

    def resolve(self, ref, path):
        """Return path and schema that a ``$ref`` leads to, by JSON Pointer (RFC 6901) within the
        document.
        """
        home = self.root.get("$id")
        if type(ref) is not str:
            raise SchemaError(path, "expected text, got %s" % show(ref))
        local = ref[len(home) :] if type(home) is str and ref.startswith(home) else ref
        if local not in ("", "#") and not local.startswith("#/"):
            raise SchemaError(
                path,
                'expected "#" or "#/...", got %s: other documents are not read' % show(ref),
            )
        target = []
        schema = self.root
        for part in local.split("/")[1:]:
            part = unquote(part).replace("~1", "/").replace("~0", "~")
            if type(schema) is list and part.isdigit() and int(part) < len(schema):
                part = int(part)
            elif type(schema) is not dict or part not in schema:
                raise SchemaError(path, "%s leads nowhere" % show(ref))
            target.append(part)
            schema = schema[part]
        return target, schema
