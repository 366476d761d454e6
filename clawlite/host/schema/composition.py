"""Keywords that combine schemas, folded into the node of the schema that they stand in.

Where masks of kinds say it all there is no operation: kinds divide all values, so alternatives of
masks are one mask."""

from clawlite.core.formats.operations import (
    ALL,
    ANY,
    IF_THEN,
    NOT,
    ONE,
    REQUIRED,
)
from clawlite.host.schema.kind_masks import (
    AN_OBJECT,
    ANYTHING,
)
from clawlite.host.schema.values import SchemaError, strings


def combine(work) -> None:
    """Add what the combining keywords of a schema say to *work*, a ``node.Node``; raises
    SchemaError.
    """
    if "$ref" in work.schema:
        work.add(
            ALL, [work.compiler.reference(work.schema["$ref"], work.path + ["$ref"], work.here)]
        )
    _all_of(work, _several(work, "allOf"))
    if "anyOf" in work.schema:
        _any_of(work, _several(work, "anyOf"))
    if "oneOf" in work.schema:
        _one_of(work, _several(work, "oneOf"))
    if "not" in work.schema:
        node = work.same("not")
        if type(node) is int and node >= 0:
            work.mask &= ~node
        else:
            work.add(NOT, node)
    for name in work.names("dependentSchemas"):
        _when_present(work, name, work.same("dependentSchemas", name))
    for name, others in (
        work.get("dependentRequired", dict, "an object of arrays of names") or {}
    ).items():
        others = strings(others, work.path + ["dependentRequired", name])
        if others:
            _when_present(work, name, [ANYTHING, REQUIRED, others])
    branches = [
        work.same(word) if word in work.schema else ANYTHING for word in ("if", "then", "else")
    ]
    if "if" in work.schema and branches[1:] != [ANYTHING, ANYTHING]:
        work.add(IF_THEN, branches)


def _several(work, word):
    schemas = work.get(word, list, "an array of schemas")
    if schemas == []:
        raise SchemaError(work.path + [word], "expected at least one schema")
    return [work.same(word, at) for at in range(len(schemas or ()))]


def _all_of(work, nodes):
    rest = []
    for node in nodes:
        if type(node) is list:  # its checks are as good as this schema's own
            work.mask &= node[0]
            for at in range(1, len(node), 2):
                work.add(node[at], node[at + 1])
        elif node >= 0:
            work.mask &= node
        else:
            rest.append(node)
    if rest:
        work.add(ALL, rest)


def _any_of(work, nodes):
    """Masks become one mask: the kinds of value divide all values."""
    mask = 0
    rest = []
    for node in nodes:
        if type(node) is int and node >= 0:
            mask |= node
        else:
            rest.append(node)
    if not rest or mask == ANYTHING:
        work.mask &= mask
    else:
        work.add(ANY, ([mask] if mask else []) + rest)


def _one_of(work, nodes):
    nodes = [node for node in nodes if node != 0]
    mask = 0
    for node in nodes:
        if type(node) is not int or node < 0 or mask & node:
            work.add(ONE, nodes)
            return
        mask |= node
    work.mask &= mask


def _when_present(work, name, node):
    work.add(IF_THEN, [[AN_OBJECT, REQUIRED, [name]], node, ANYTHING], AN_OBJECT)
