"""One schema object to one node of a check program; ``clawlite.core.formats.schema`` has the table
of operations.
"""

import difflib

from clawlite.core.base.jsonvalue import show
from clawlite.core.formats.operations import (
    ABOVE,
    ALL,
    BELOW,
    CONTAINS,
    ENUM,
    ITEMS,
    MATCH,
    MAX_ITEMS,
    MAX_LENGTH,
    MAX_MEMBERS,
    MAXIMUM,
    MIN_ITEMS,
    MIN_LENGTH,
    MIN_MEMBERS,
    MINIMUM,
    MULTIPLE,
    NAMES,
    OBJECT,
    REQUIRED,
    UNIQUE,
)
from clawlite.host.schema.automata import PatternError
from clawlite.host.schema.composition import combine
from clawlite.host.schema.kind_masks import (
    A_NUMBER,
    A_STRING,
    AN_ARRAY,
    AN_OBJECT,
    ANYTHING,
)
from clawlite.host.schema.values import (
    SchemaError,
    constant,
    count,
    number,
    step,
    strings,
)
from clawlite.host.schema.vocabulary import FORMATS, KINDS

# keyword, operation, kinds that it is about, what reads its value; in the order of the checks
_SIMPLE = (
    ("minimum", MINIMUM, A_NUMBER, number),
    ("maximum", MAXIMUM, A_NUMBER, number),
    ("exclusiveMinimum", ABOVE, A_NUMBER, number),
    ("exclusiveMaximum", BELOW, A_NUMBER, number),
    ("multipleOf", MULTIPLE, A_NUMBER, step),
    ("minLength", MIN_LENGTH, A_STRING, count),
    ("maxLength", MAX_LENGTH, A_STRING, count),
    ("minItems", MIN_ITEMS, AN_ARRAY, count),
    ("maxItems", MAX_ITEMS, AN_ARRAY, count),
    ("minProperties", MIN_MEMBERS, AN_OBJECT, count),
    ("maxProperties", MAX_MEMBERS, AN_OBJECT, count),
)


class Node:
    """The work on one schema: the mask of kinds and the operations found so far.

    compiler  has node(schema, path, here), reference(ref, path, here) and the pool of automata
    here      index of the table's entry whose value this schema still looks at, None below a member
              or an item
    """

    def __init__(self, compiler, schema: dict, path: list, here):
        self.compiler = compiler
        self.schema = schema
        self.path = path
        self.here = here
        self.mask = ANYTHING
        self.ops = []

    def compile(self):
        """Return the node: a mask where that says it all, the shared node where that does, else
        a list.
        """
        self.type()
        self.enum()
        for word, op, kinds, read in _SIMPLE:
            if word in self.schema:
                self.add(op, read(self.schema[word], self.path + [word]), kinds)
        self.text()
        self.array()
        self.object()
        combine(self)
        node = [self.mask]
        for op, arg, kinds in self.ops:
            if kinds & self.mask:
                node += [op, arg]
        if len(node) == 1:
            return self.mask
        if node[0] == ANYTHING and node[1] == ALL and len(node) == 3 and len(node[2]) == 1:
            return node[2][0]
        return node

    def add(self, op, arg, kinds=ANYTHING):
        self.ops.append((op, arg, kinds))

    def child(self, *keys):
        """Return the node of a schema about a part of the value."""
        return self.compile_at(keys, None)

    def same(self, *keys):
        """Return the node of a schema about the value itself."""
        return self.compile_at(keys, self.here)

    def compile_at(self, keys, here):
        schema = self.schema
        for key in keys:
            schema = schema[key]
        return self.compiler.node(schema, self.path + list(keys), here)

    def get(self, word, kind, what):
        """Return the value of *word*, or None when it is not there; it must be of type *kind*."""
        value = self.schema.get(word)
        if word in self.schema and type(value) is not kind:
            raise SchemaError(self.path + [word], "expected %s, got %s" % (what, show(value)))
        return value

    def type(self):
        if "type" not in self.schema:
            return
        kinds = self.schema["type"]
        self.mask = 0
        for at, kind in enumerate(
            strings(kinds, self.path + ["type"]) if type(kinds) is list else [kinds]
        ):
            if type(kind) is not str or kind not in KINDS:
                raise SchemaError(
                    self.path + ["type"] + ([at] if type(kinds) is list else []), _no_kind(kind)
                )
            self.mask |= KINDS[kind]
        if not self.mask:
            raise SchemaError(self.path + ["type"], "expected at least one type")

    def enum(self):
        values = self.get("enum", list, "an array of values")
        if values is not None:
            if not values:
                raise SchemaError(self.path + ["enum"], "expected at least one value")
            self.add(ENUM, constant(values, self.path + ["enum"], -1))
        if "const" in self.schema:
            self.add(ENUM, [constant(self.schema["const"], self.path + ["const"])])

    def text(self):
        pattern = self.get("pattern", str, "a regular expression")
        if pattern is not None:
            self.add(
                MATCH,
                [self.automaton(pattern, ["pattern"]), "text like " + _clip(pattern)],
                A_STRING,
            )
        name = self.get("format", str, "the name of a format")
        if name in FORMATS:
            expression, what, longest = FORMATS[name]
            if longest:
                self.add(MAX_LENGTH, longest, A_STRING)
            self.add(MATCH, [self.automaton("^(" + expression + ")$", ["format"]), what], A_STRING)

    def automaton(self, pattern, keys):
        try:
            return self.compiler.pool.add(pattern)
        except PatternError as error:
            raise SchemaError(self.path + keys, str(error))

    def array(self):
        first = self.get("prefixItems", list, "an array of schemas")
        if first == []:
            raise SchemaError(self.path + ["prefixItems"], "expected at least one schema")
        if type(self.schema.get("items")) is list:
            raise SchemaError(
                self.path + ["items"],
                'expected a schema, got an array; in 2020-12 that is "prefixItems"',
            )
        nodes = [self.child("items") if "items" in self.schema else ANYTHING]
        nodes += [self.child("prefixItems", at) for at in range(len(first or ()))]
        if nodes != [ANYTHING]:
            self.add(ITEMS, nodes, AN_ARRAY)
        lowest, highest = (
            count(self.schema[word], self.path + [word]) if word in self.schema else default
            for word, default in (("minContains", 1), ("maxContains", -1))
        )
        if "contains" in self.schema:
            self.add(CONTAINS, [lowest, highest, self.child("contains")], AN_ARRAY)
        if self.get("uniqueItems", bool, "true or false"):
            self.add(UNIQUE, 1, AN_ARRAY)

    def object(self):
        members = {name: self.child("properties", name) for name in self.names("properties")}
        patterns = []
        for pattern in self.names("patternProperties"):
            patterns += [
                self.automaton(pattern, ["patternProperties", pattern]),
                self.child("patternProperties", pattern),
            ]
        others = (
            self.child("additionalProperties")
            if "additionalProperties" in self.schema
            else ANYTHING
        )
        required = strings(self.schema.get("required", []), self.path + ["required"])
        first = [name for name in members if name in required]
        last = [
            name
            for name in members
            if name not in first and (members[name] != ANYTHING or others != ANYTHING)
        ]
        if first or last or patterns or others != ANYTHING:
            arg = [len(first), others, patterns or 0]
            for name in first + last:
                arg += [name, members[name]]
            self.add(OBJECT, arg, AN_OBJECT)
        rest = [name for name in required if name not in members]
        if rest:
            self.add(REQUIRED, rest, AN_OBJECT)
        names = self.child("propertyNames") if "propertyNames" in self.schema else ANYTHING
        if type(names) is list or names < 0 or not names & A_STRING:
            self.add(NAMES, names, AN_OBJECT)

    def names(self, word):
        """Return the names of an object of schemas, in the order of the document."""
        members = self.get(word, dict, "an object of schemas")
        for name in members or ():
            if type(name) is not str:
                raise SchemaError(
                    self.path + [word], "expected text as a name, got %s" % show(name)
                )
        return list(members or ())


def _clip(pattern):
    if not pattern.isprintable():
        return show(pattern)
    return pattern if len(pattern) <= 40 else pattern[:37] + "..."


def _no_kind(kind):
    close = difflib.get_close_matches(str(kind), list(KINDS), 1)
    return "expected one of %s, got %s%s" % (
        ", ".join(KINDS),
        show(kind),
        ' - did you mean "%s"?' % close[0] if close else "",
    )
