"""One schema object to one node of a check program; ``clawlite.core.schema`` has the table of operations."""
import difflib

from clawlite.host.automata import PatternError
from clawlite.host.schemas_values import SchemaError, constant, count, number, plain, step, strings
from clawlite.host.schemas_words import FORMATS, KINDS

_ANYTHING = 127
_STRING, _NUMBER, _OBJECT, _ARRAY = 1, 12, 16, 32
(OBJECT, REQUIRED, NAMES, MIN_MEMBERS, MAX_MEMBERS, ITEMS, CONTAINS, UNIQUE, MIN_ITEMS, MAX_ITEMS, MATCH, MIN_LENGTH,
 MAX_LENGTH, MINIMUM, MAXIMUM, ABOVE, BELOW, MULTIPLE, ENUM, ALL, ANY, ONE, NOT, IF) = range(24)

# keyword, operation, kinds that it is about, what reads its value; in the order of the checks
_SIMPLE = (
    ("minimum", MINIMUM, _NUMBER, number),
    ("maximum", MAXIMUM, _NUMBER, number),
    ("exclusiveMinimum", ABOVE, _NUMBER, number),
    ("exclusiveMaximum", BELOW, _NUMBER, number),
    ("multipleOf", MULTIPLE, _NUMBER, step),
    ("minLength", MIN_LENGTH, _STRING, count),
    ("maxLength", MAX_LENGTH, _STRING, count),
    ("minItems", MIN_ITEMS, _ARRAY, count),
    ("maxItems", MAX_ITEMS, _ARRAY, count),
    ("minProperties", MIN_MEMBERS, _OBJECT, count),
    ("maxProperties", MAX_MEMBERS, _OBJECT, count),
)


class Node:
    """The work on one schema: the mask of kinds and the operations found so far.

    compiler  has node(schema, path, here), reference(ref, path, here) and the pool of automata
    here      index of the table's entry whose value this schema still looks at, None below a member or an item
    """

    def __init__(self, compiler, schema: dict, path: list, here):
        self.compiler = compiler
        self.schema = schema
        self.path = path
        self.here = here
        self.mask = _ANYTHING
        self.ops = []

    def compile(self):
        """Return the node: a mask where that says it all, the shared node where that does, else a list."""
        self.type()
        self.enum()
        for word, op, kinds, read in _SIMPLE:
            if word in self.schema:
                self.add(op, read(self.schema[word], self.path + [word]), kinds)
        self.text()
        self.array()
        self.object()
        self.combine()
        node = [self.mask]
        for op, arg, kinds in self.ops:
            if kinds & self.mask:
                node += [op, arg]
        if len(node) == 1:
            return self.mask
        if node[0] == _ANYTHING and node[1] == ALL and len(node) == 3 and len(node[2]) == 1:
            return node[2][0]
        return node

    def add(self, op, arg, kinds=_ANYTHING):
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
            raise SchemaError(self.path + [word], "expected %s, got %s" % (what, plain(value)))
        return value

    def type(self):
        if "type" not in self.schema:
            return
        kinds = self.schema["type"]
        self.mask = 0
        for at, kind in enumerate(strings(kinds, self.path + ["type"]) if type(kinds) is list else [kinds]):
            if type(kind) is not str or kind not in KINDS:
                raise SchemaError(self.path + ["type"] + ([at] if type(kinds) is list else []), _no_kind(kind))
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
            self.add(MATCH, [self.automaton(pattern, ["pattern"]), "text like " + _clip(pattern)], _STRING)
        name = self.get("format", str, "the name of a format")
        if name in FORMATS:
            expression, what, longest = FORMATS[name]
            if longest:
                self.add(MAX_LENGTH, longest, _STRING)
            self.add(MATCH, [self.automaton("^(" + expression + ")$", ["format"]), what], _STRING)

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
            raise SchemaError(self.path + ["items"], "expected a schema, got an array; in 2020-12 that is \"prefixItems\"")
        nodes = [self.child("items") if "items" in self.schema else _ANYTHING]
        nodes += [self.child("prefixItems", at) for at in range(len(first or ()))]
        if nodes != [_ANYTHING]:
            self.add(ITEMS, nodes, _ARRAY)
        lowest, highest = (count(self.schema[word], self.path + [word]) if word in self.schema else default
                           for word, default in (("minContains", 1), ("maxContains", -1)))
        if "contains" in self.schema:
            self.add(CONTAINS, [lowest, highest, self.child("contains")], _ARRAY)
        if self.get("uniqueItems", bool, "true or false"):
            self.add(UNIQUE, 1, _ARRAY)

    def object(self):
        members = {name: self.child("properties", name) for name in self.names("properties")}
        patterns = []
        for pattern in self.names("patternProperties"):
            patterns += [self.automaton(pattern, ["patternProperties", pattern]), self.child("patternProperties", pattern)]
        others = self.child("additionalProperties") if "additionalProperties" in self.schema else _ANYTHING
        required = strings(self.schema.get("required", []), self.path + ["required"])
        first = [name for name in members if name in required]
        last = [name for name in members if name not in first and (members[name] != _ANYTHING or others != _ANYTHING)]
        if first or last or patterns or others != _ANYTHING:
            arg = [len(first), others, patterns or 0]
            for name in first + last:
                arg += [name, members[name]]
            self.add(OBJECT, arg, _OBJECT)
        rest = [name for name in required if name not in members]
        if rest:
            self.add(REQUIRED, rest, _OBJECT)
        names = self.child("propertyNames") if "propertyNames" in self.schema else _ANYTHING
        if type(names) is list or names < 0 or not names & _STRING:
            self.add(NAMES, names, _OBJECT)

    def names(self, word):
        """Return the names of an object of schemas, in the order of the document."""
        members = self.get(word, dict, "an object of schemas")
        for name in members or ():
            if type(name) is not str:
                raise SchemaError(self.path + [word], "expected text as a name, got %s" % plain(name))
        return list(members or ())

    def combine(self):
        if "$ref" in self.schema:
            self.add(ALL, [self.compiler.reference(self.schema["$ref"], self.path + ["$ref"], self.here)])
        self.all_of(self.several("allOf"))
        if "anyOf" in self.schema:
            self.any_of(self.several("anyOf"))
        if "oneOf" in self.schema:
            self.one_of(self.several("oneOf"))
        if "not" in self.schema:
            node = self.same("not")
            if type(node) is int and node >= 0:
                self.mask &= ~node
            else:
                self.add(NOT, node)
        for name in self.names("dependentSchemas"):
            self.when_present(name, self.same("dependentSchemas", name))
        for name, others in (self.get("dependentRequired", dict, "an object of arrays of names") or {}).items():
            others = strings(others, self.path + ["dependentRequired", name])
            if others:
                self.when_present(name, [_ANYTHING, REQUIRED, others])
        branches = [self.same(word) if word in self.schema else _ANYTHING for word in ("if", "then", "else")]
        if "if" in self.schema and branches[1:] != [_ANYTHING, _ANYTHING]:
            self.add(IF, branches)

    def several(self, word):
        schemas = self.get(word, list, "an array of schemas")
        if schemas == []:
            raise SchemaError(self.path + [word], "expected at least one schema")
        return [self.same(word, at) for at in range(len(schemas or ()))]

    def all_of(self, nodes):
        rest = []
        for node in nodes:
            if type(node) is list:              # its checks are as good as this schema's own
                self.mask &= node[0]
                for at in range(1, len(node), 2):
                    self.add(node[at], node[at + 1])
            elif node >= 0:
                self.mask &= node
            else:
                rest.append(node)
        if rest:
            self.add(ALL, rest)

    def any_of(self, nodes):
        """Masks become one mask: the kinds of value divide all values."""
        mask = 0
        rest = []
        for node in nodes:
            if type(node) is int and node >= 0:
                mask |= node
            else:
                rest.append(node)
        if not rest or mask == _ANYTHING:
            self.mask &= mask
        else:
            self.add(ANY, ([mask] if mask else []) + rest)

    def one_of(self, nodes):
        nodes = [node for node in nodes if node != 0]
        mask = 0
        for node in nodes:
            if type(node) is not int or node < 0 or mask & node:
                self.add(ONE, nodes)
                return
            mask |= node
        self.mask &= mask

    def when_present(self, name, node):
        self.add(IF, [[_OBJECT, REQUIRED, [name]], node, _ANYTHING], _OBJECT)


def _clip(pattern):
    if not pattern.isprintable():
        return plain(pattern)
    return pattern if len(pattern) <= 40 else pattern[:37] + "..."


def _no_kind(kind):
    close = difflib.get_close_matches(str(kind), list(KINDS), 1)
    return "expected one of %s, got %s%s" % (", ".join(KINDS), plain(kind),
                                            " - did you mean \"%s\"?" % close[0] if close else "")
