"""All tools of an MCP server at once: a Tool whose ``mcp_source`` has no tool_name, and whose own
name the server does not have.

    tools: [{ inline: { name: files, mcp_source: { uri: "stdio:///opt/mcp/files" } } }]

1. Each tool of the server stands for it as ``SERVER__TOOL``, with all else that the document says
   of tools: its timeout, annotations and policy.
2. They are internal: a model is shown those alone that a Skill of the agent names in
   ``tools_required``, by name or pattern ("files__*").  Operators may call all.
3. While the lock lacks the server, the document stands as it is, and names of tools are not held
   against what there is.
"""

import dataclasses
import json
import re

from clawlite.host.base.problems import quoted
from clawlite.host.documents import lock
from clawlite.host.documents.sources import Refused, Sources
from clawlite.host.mcp.pinned import is_pinned, is_served, server_of

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def expand(found: list, settings, sources: Sources, raws, problems) -> None:
    """Put the tools of such servers into *found*, the primitives of a manifest, and their names
    into *raws* (``DeclaredNames``).
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
        names = sorted(json.loads(entry.text)["tools"])
        if tool.name in names or not names:
            continue
        at = found.index(tool)
        del raws.versions["Tool", tool.name]
        found[at : at + 1] = _each(tool, server.name, names, raws, problems)


def _each(tool, server: str, names: list, raws, problems) -> list:
    """Return a Tool for each of *names*."""
    for field in ("description", "input_schema"):
        if getattr(tool.spec, field) is not None:
            problems.add(
                tool.place,
                (field,),
                f"this means all {len(names)} tools of the MCP server {server}, which say it "
                "themselves",
                hint="set mcp_source.tool_name to bind one of them, or leave this out",
                key=True,
            )
            return []
    made = []
    for theirs in names:
        name = f"{server}__{theirs}"
        if not _NAME.fullmatch(name):
            problems.add(
                tool.place,
                ("mcp_source",),
                f"{quoted(name[:100])} is no name that a model can call",
                "1 to 64 of A-Z a-z 0-9 _ -",
                hint="give the server a name (#NAME), or bind its tools one by one with tool_name",
            )
            return []
        if ("Tool", name) in raws.versions:
            problems.add(
                tool.place,
                (),
                f"a Tool {quoted(name)} is already declared",
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
    return made
