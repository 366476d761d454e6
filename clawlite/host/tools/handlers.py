"""Which code answers each tool: a function of tools.py, the registry, an MCP server, or a skill.

1. A Tool of the manifest and a function of one name (kebab or snake) are one tool: the document's
   description and schema hold, and its parameters must be ones that the function has.
2. A function without a Tool document becomes a Tool of its own, after the manifest's.
3. A tool that nothing answers is valid CKP and cannot be built: ``missing`` says so.
"""

from clawlite.host.base.document import LinePlace
from clawlite.host.base.problems import Problems, did_you_mean, enquote
from clawlite.host.documents.primitives import Primitive
from clawlite.host.tools.model import ToolSpec
from clawlite.host.tools.signature import FILE, Function


def bind(tools: list, functions: list, problems: Problems) -> None:
    """Set ``function`` of each Tool that a Function answers, and compare their parameters."""
    by_name = {function.name: function for function in functions}
    for tool in tools:
        function = by_name.get(tool.name)
        if function is None:
            continue
        owner = _owner(tool)
        if owner:
            problems.add(
                tool.report_place,
                (),
                f"the tool {enquote(tool.name)} comes from {owner}, and "
                f"{FILE} has a function "
                f"{function.function} (line {function.line})",
                hint="rename one of them"
                if tool.spec.mcp_source is None
                else "remove mcp_source, and the function answers",
            )
            continue
        tool.function = function
        _compare(tool, function, problems)


def own_tools(functions: list, taken, file: str, version: str) -> list:
    """Return a Tool for each of *functions* whose name is not in *taken*; *version* is the
    root's.
    """
    return [
        Primitive(
            "Tool",
            f.name,
            version,
            {},
            {},
            ToolSpec(description=f.description, input_schema=f.schema),
            f"claw://local/tool/{f.name}",
            "function",
            LinePlace(file, f.line, (f.function,)),
            f,
        )
        for f in functions
        if f.name not in taken
    ]


def missing(tools: list, functions: list, problems: Problems) -> None:
    """Add a problem for each tool that nothing answers."""
    for tool in tools:
        if tool.function is None and not _owner(tool):
            near = did_you_mean(tool.name, [function.name for function in functions])
            problems.add(
                tool.place,
                (),
                f"nothing answers the tool {enquote(tool.name)}",
                hint=near or f"write def {tool.name.replace('-', '_')}(...) in {FILE}",
            )


def _owner(tool: Primitive) -> str:
    if tool.origin == "registry":
        return "the registry"
    if tool.spec.mcp_source is not None:
        return "an MCP server"
    if tool.service is not None:
        return "a service"
    return "a skill" if tool.spec.composite or tool.kind == "Skill" else ""


def _compare(tool: Primitive, function: Function, problems: Problems) -> None:
    schema = tool.spec.input_schema
    has, needs = function.schema["properties"], function.schema.get("required", [])
    given = schema.get("properties", {})
    for name in given:
        if name not in has:
            problems.add(
                tool.place,
                ("input_schema", "properties", name),
                f"the function "
                f"{function.function} "
                f"({FILE}:{function.line})"
                f" has no parameter {enquote(name)}",
                hint=did_you_mean(name, has),
                key=True,
            )
    for name in needs:
        if name not in schema.get("required", []):
            problems.add(
                tool.place,
                ("input_schema", "required"),
                f"the function {function.function} ({FILE}:{function.line}) needs {enquote(name)}",
                hint="list it under required, or give the parameter a default",
            )
