"""All tools of an MCP server at once: a Tool whose ``mcp_source`` has no tool_name, and whose own
name the server does not have.

    tools: [{ inline: { name: files, mcp_source: { uri: "stdio:///opt/mcp/files" } } }]

1. Each tool of the server stands for it as ``SERVER__TOOL``, with all else that the document says
   of tools: its timeout, annotations and policy.
2. They are internal: a model is shown those alone that a Skill of the agent names in
   ``tools_required``, by name or pattern ("files__*").  Operators may call all.
3. One that cannot be taken is left out with a warning: its name is none that a model can call, its
   input schema cannot be held, or what it says gives orders to a model.  When that is true of all,
   the document is an error.
4. While the lock lacks the server, the document stands as it is, and names of tools are not held
   against what there is.
"""

import dataclasses
import json
import re

from clawlite.core.base.render import canonical
from clawlite.host.base.problems import enquote
from clawlite.host.documents import lock
from clawlite.host.documents.sources import Refused, Sources
from clawlite.host.mcp.injection_check import gives_orders
from clawlite.host.mcp.pinned import is_pinned, is_served, server_of
from clawlite.host.schema.automata import PatternError, compile_pattern
from clawlite.host.schema.compile import SchemaError, compile_schema

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def expand(found: list, settings, sources: Sources, raws, problems, notes: list) -> None:
    """Put the tools of such servers into *found*, the primitives of a manifest, and their names
    into *raws* (``DeclaredNames``).  Warnings go to *notes*: [((file, line), message), ...].
    """
    whole = [one for one in found if is_served(one) and one.spec.mcp_source.tool_name is None]
    if not whole:
        return
    try:
        entries = lock.read(sources)
    except Refused:  # ``pinned.bind`` says it
        return
    for tool in whole:
        server = server_of(tool.spec.mcp_source.uri, settings)
        entry = entries.get(server.uri)
        if entry is None or not is_pinned(entry, server):
            raws.broken.add("Tool")
            continue
        listed = json.loads(entry.text)["tools"]
        if tool.name in listed or not listed:
            continue
        at = found.index(tool)
        del raws.versions["Tool", tool.name]
        found[at : at + 1] = _each(tool, server.name, listed, raws, problems, notes)


def _each(tool, server: str, listed: dict, raws, problems, notes: list) -> list:
    """Return a Tool for each of *listed*, {name: definition}, that can be taken."""
    for field in ("description", "input_schema"):
        if getattr(tool.spec, field) is not None:
            problems.add(
                tool.place,
                (field,),
                f"this means all {len(listed)} tools of the MCP server {server}, which say it "
                "themselves",
                hint="set mcp_source.tool_name to bind one of them, or leave this out",
                key=True,
            )
            return []
    made, left_out = [], []
    for theirs in sorted(listed):
        name = f"{server}__{theirs}"
        why = _why_not(name, listed[theirs])
        if why:
            left_out.append(
                f"the tool {enquote(theirs)} of the MCP server {server} is left out: {why}"
            )
            continue
        if ("Tool", name) in raws.versions:
            problems.add(
                tool.place,
                (),
                f"a Tool {enquote(name)} is already declared",
                hint="give one of them another name",
            )
        raws.versions["Tool", name] = tool.version
        source = type(tool.spec.mcp_source)(uri=tool.spec.mcp_source.uri, tool_name=theirs)
        spec = type(tool.spec)(
            **{field: getattr(tool.spec, field) for field in tool.spec.__struct_fields__}
        )
        spec.mcp_source = source
        uri = f"claw://local/tool/{name}"
        made.append(dataclasses.replace(tool, name=name, spec=spec, uri=uri, is_internal=True))
    where = tool.place.where(("mcp_source",), True)
    notes += [(where, about) for about in left_out]
    if not made:
        why = f"none can be taken: {left_out[0]}"
        problems.add(tool.place, ("mcp_source",), why, hint="mend the server", key=True)
    return made


class _Pool:
    """What schemas are compiled into to see whether that works."""

    def add(self, pattern: str, dollar: str = "end") -> int:
        compile_pattern(pattern, dollar)
        return 0


def _why_not(name: str, definition: dict) -> str:
    """Return why the tool that would be called *name* cannot be taken, and what to do, or ""."""
    if not _NAME.fullmatch(name):
        return (
            f"{enquote(name[:100])} is no name that a model can call (1 to 64 of A-Z a-z 0-9 _ -) "
            "- give the server a shorter name (#NAME), or bind this tool with tool_name"
        )
    about, schema = definition.get("description"), definition.get("inputSchema")
    if gives_orders(canonical([about, schema])):
        return (
            "what the server says of it gives orders to a model - look at it in clawlite.lock; "
            "bound with tool_name it may have a description and an input_schema of yours"
        )
    try:
        compile_schema(schema if isinstance(schema, dict) else {}, _Pool(), True)
    except (SchemaError, PatternError) as e:
        path = "".join(f".{step}" for step in getattr(e, "path", ())[:8])
        why = e.message if isinstance(e, SchemaError) else str(e)
        return (
            f"its inputSchema{path}: {why} - bound with tool_name it may have an input_schema of "
            "yours"
        )
    return ""
