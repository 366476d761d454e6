"""The definitions of an agent's tools for an MCP client, made from the image.

An image has a schema as its maker wrote it where it is sent to a remote provider.  Otherwise the
schema is made from the check program (core/formats/schema.py).  It admits the same values, but
lacks patterns, which are compiled to automata, and descriptions of single arguments.  Where that is
a difference, the section SCHEMAS has the schema as it was written.  Nothing else reads it.
"""

from clawlite.core.image.header import check_shape
from clawlite.core.image.image import (
    DESTRUCTIVE,
    HANDLER_KIND,
    IDEMPOTENT,
    OPEN_WORLD,
    READ_ONLY,
    SKILL,
    WIRE,
)

# here and not beside the others in core/image/image.py: no board pays for it
SCHEMAS = 26
_PREFIX = -3  # of a provider's row: [offset, length, end] in WIRE, with tools
_ROWS = [(str, str, str)]  # name, input schema, output schema as JSON; "": what was made will do
HINTS = {
    "readOnlyHint": READ_ONLY,
    "destructiveHint": DESTRUCTIVE,
    "idempotentHint": IDEMPOTENT,
    "openWorldHint": OPEN_WORLD,
}
_KINDS = (
    ("string", 1),
    ("boolean", 2),
    ("integer", 4),
    ("object", 16),
    ("array", 32),
    ("null", 64),
)
_ANYTHING = 127
_OBJECT, _ITEMS, _CONTAINS, _MULTIPLE, _NOT, _IF = 0, 5, 6, 17, 22, 23
# keyword of an operation whose argument is the keyword's value
_PLAIN = {
    1: "required",
    3: "minProperties",
    4: "maxProperties",
    8: "minItems",
    9: "maxItems",
    11: "minLength",
    12: "maxLength",
    13: "minimum",
    14: "maximum",
    15: "exclusiveMinimum",
    16: "exclusiveMaximum",
    18: "enum",
}
_COMBINED = {19: "allOf", 20: "anyOf", 21: "oneOf"}


def definitions(image, raw_decode) -> list:
    """Return the definition of each tool of *image*, as ``tools/list`` of MCP gives it.

    raw_decode  function(text, offset) -> (value, end), of JSON
    """
    written, outputs = find_sent(image, raw_decode), {}
    for name, given, gives in check_shape(image.section(SCHEMAS) or [], _ROWS, "schemas"):
        if given:
            written[name] = raw_decode(given, 0)[0]
        if gives:
            outputs[name] = raw_decode(gives, 0)[0]
    return [_definition(image, image.tool(name), written, outputs) for name in image.names]


def _definition(image, tool, written: dict, outputs: dict) -> dict:
    """Return the definition of *tool* for a client.

    written, outputs  {name: input schema as written}, {name: output schema as written}
    """
    schema = written.get(tool.name) or schema_of(tool.schema)
    if schema.get("type") != "object":  # MCP accepts no other
        schema = dict(schema, type="object")
    found = {
        "name": tool.name,
        "description": image.prose(tool.about),
        "inputSchema": schema,
        # a hint that the manifest does not give is left out: then a client may assume the worst
        "annotations": {hint: True for hint, flag in HINTS.items() if tool.flags & flag},
    }
    if tool.output is not None:
        output = outputs.get(tool.name) or schema_of(tool.output)
        if output.get("type") == "object":
            found["outputSchema"] = output
    return found


def prompts(image, tools: list) -> list:
    """Return the definitions of the skills that are instructions, among the definitions *tools*."""
    found = []
    for tool in tools:
        if image.tool(tool["name"]).handler[HANDLER_KIND] == SKILL:
            schema = tool["inputSchema"]
            needed, parts = schema.get("required", []), schema.get("properties", {})
            arguments = [{"name": name, "required": name in needed} for name in sorted(parts)]
            for one in arguments:
                part = parts[one["name"]]
                if isinstance(part, dict) and part.get("description"):
                    one["description"] = part["description"]
            about = {"name": tool["name"], "description": tool["description"]}
            found.append(dict(about, arguments=arguments))
    return found


def find_sent(image, raw_decode) -> dict:
    """Return {tool: input schema}, as the image's remote providers are sent them."""
    found = {}
    for number in image.agent.providers:
        if number > 1:
            offset, length, _ = image.provider(number - 2)[_PREFIX]
            text = str(image.part(WIRE, offset, length), "utf-8")
            at = text.find('"tools":')
            for tool in raw_decode(text, at + 8)[0] if at >= 0 else ():
                tool = tool.get("function", tool)
                found[tool["name"]] = tool.get("parameters") or tool.get("input_schema")
    return found


def schema_of(program: list | int) -> dict:
    """Return a JSON Schema for a check program; it is looser where a schema cannot express it."""
    if type(program) is list and program[0] is None:
        schema = _node(program[1])
        schema["$defs"] = {"d%d" % at: _node(program[at]) for at in range(1, len(program))}
        return schema
    return _node(program)


def _node(node: list | int) -> dict:
    if isinstance(node, int):
        return {"$ref": "#/$defs/d%d" % -node} if node < 0 else _types(node)
    schema = _types(node[0])
    for at in range(1, len(node), 2):
        op, arg = node[at], node[at + 1]
        if op in _PLAIN:
            schema[_PLAIN[op]] = arg
        elif op in _COMBINED:
            word = _COMBINED[op]
            more = [_node(one) for one in arg]
            if word in schema:
                schema.setdefault("allOf", []).append({word: more})
            else:
                schema[word] = more
        elif op == _OBJECT:
            _object(schema, arg)
        elif op == _ITEMS:
            others, *first = arg
            if first:
                schema["prefixItems"] = [_node(one) for one in first]
            if others != _ANYTHING:
                schema["items"] = _node(others) if others != 0 else False
        elif op == _CONTAINS:
            least, most, contained = arg
            schema["contains"], schema["minContains"] = _node(contained), least
            if most >= 0:
                schema["maxContains"] = most
        elif op == 7:
            schema["uniqueItems"] = True
        elif op == _MULTIPLE:
            number, places = (arg, 0) if type(arg) is int else arg
            schema["multipleOf"] = number / 10**places if places else number
        elif op == _NOT:
            schema["not"] = _node(arg)
        elif op == _IF:
            schema["if"], schema["then"], schema["else"] = [_node(one) for one in arg]
    return schema


def _object(schema: dict, arg: list) -> None:
    required, others, patterns, *members = arg
    names = members[::2]
    if names:
        schema["properties"] = {
            name: _node(node) for name, node in zip(names, members[1::2], strict=True)
        }
    if required:
        schema["required"] = names[:required]
    # with patterns, whether other members are allowed depends on the patterns
    if patterns == 0 and others != _ANYTHING:
        schema["additionalProperties"] = _node(others) if others != 0 else False


def _types(mask: int) -> dict:
    if mask & _ANYTHING == _ANYTHING:
        return {}
    if mask == 0:
        return {"not": {}}
    found = [name for name, bit in _KINDS if mask & bit and not (bit == 4 and mask & 8)]
    if mask & 8:
        found.append("number")
    return {"type": found[0] if len(found) == 1 else found}
