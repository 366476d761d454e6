"""The section MCP of an image: what starts each server, and the pins of the tools that the agent
has of it (linux/mcp/servers.py).
"""

from clawlite.core.base.render import canonical
from clawlite.core.mcp.mcp_pin import pin_of
from clawlite.host.mcp.orders import gives_orders


def section(manifest) -> list | None:
    """Return [[name, argv, names of variables, needs the handshake, [[tool, pin], ...], [[header,
    value], ...]], ...], the servers in the order of their first tools; None without any.
    """
    rows = {}
    for tool in manifest.tools:
        served = tool.served
        if served is not None:
            server = served.server
            row = rows.setdefault(
                server.name,
                [
                    server.name,
                    server.argv,
                    server.environment,
                    served.is_handshake,
                    {},
                    [list(header) for header in server.headers],
                ],
            )
            row[4][served.tool] = pin_of(served.definition)
    found = []
    for name, argv, environment, is_handshake, pins, headers in rows.values():
        listed = sorted(map(list, pins.items()))
        found.append([name, argv, environment, is_handshake, listed, headers])
    return found or None


def refuse(manifest) -> None:
    """Add a problem for each tool whose server is not pinned, or is another one of the same
    name, and for each whose description would give the model orders.
    """
    argv = {}
    for tool in manifest.tools:
        source = tool.spec.mcp_source if tool.kind == "Tool" else None
        if source is None:
            continue
        served = tool.served
        if served is None:
            manifest.problem(
                tool,
                ("mcp_source",),
                "what this server offers is not known yet",
                hint="clawlite build asks it here and pins its tools in clawlite.lock",
                key=True,
            )
        elif argv.setdefault(served.server.name, served.server.argv) != served.server.argv:
            manifest.problem(
                tool,
                ("mcp_source", "uri"),
                f"{served.server.name} is the name of another MCP server already",
                hint="give one of them a name: stdio:///PATH#NAME, https://HOST/PATH#NAME",
            )
        elif any(gives_orders(canonical(text)) for text in served.shown):
            manifest.problem(
                tool,
                ("mcp_source",),
                f"what the server {served.server.name} says of its tool {served.tool} gives orders "
                "to a model",
                hint="look at it in clawlite.lock; write description and input_schema here, and "
                "the model sees those",
                key=True,
            )
