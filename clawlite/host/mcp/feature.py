"""The section MCP of an image: what starts each server or signs in at it, and the pins of the
tools that the agent has of it (linux/mcp/servers.py).
"""

from urllib.parse import urlsplit

from clawlite.core.base.render import canonical
from clawlite.core.image.image import MCP
from clawlite.host.base.problems import NOT_ASKED
from clawlite.host.mcp.injection_check import gives_orders
from clawlite.host.mcp.pinned import SCHEME, image_row
from clawlite.host.models.feature import Feature, Requirement
from clawlite.protocols.mcp.mcp_pin import pin_of

_OF_PROGRAMS = ("args", "environment", "hosts", "mount_paths", "idle_s", "life_s", "cpu_s")


def compile_sections(manifest, work) -> dict:
    """Compile [[name, argv, names of variables, needs the handshake, [[tool, pin], ...], [[header,
    value], ...], row of its tokens or None, [hosts or None, seconds without a call or 0, seconds of
    its life or 0, seconds of processor time or 0]], ...], the servers in the order of their first
    tools; None without any.  The pin of a server that is trusted is empty.  The last list has
    [[path, whether it may be written], ...] too, where a gateway's program has folders of its own.
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
                    image_row(server.oauth2, served.authorization, server.argv[0])
                    if server.oauth2
                    else None,
                    _life(manifest.settings.mcp.get(server.name)),
                ],
            )
            row[4][served.tool] = b"" if server.is_trusted else pin_of(served.definition)
    found = []
    for row in rows.values():
        row[4] = sorted(map(list, row[4].items()))
        found.append(row)
    return {MCP: found or None}


def _life(own) -> list:
    if own is None:
        return [None, 0, 0, 0]
    hosts = None if own.hosts is None else [host.lower() for host in own.hosts]
    found = [hosts, own.idle_s or 0, own.life_s or 0, own.cpu_s or 0]
    if own.mount_paths is not None:
        found.append([[one.path, one.permissions == "rw"] for one in own.mount_paths])
    return found


def check(manifest, at_use: bool) -> None:
    """Add a problem for each tool whose server is not pinned, or is another one of the same
    name, and for each whose description would give the model orders.
    """
    argv, told = {}, set()
    for tool in manifest.tools:
        source = tool.spec.mcp_source if tool.kind == "Tool" else None
        if source is None:
            continue
        served = tool.served
        if served is None:
            manifest.problem(
                tool,
                ("mcp_source",),
                f"what this server offers {NOT_ASKED}",
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
        elif served.server.name not in told and (
            unused := _find_unused(manifest.settings.mcp.get(served.server.name), served.server)
        ):
            told.add(served.server.name)
            manifest.problem(
                tool,
                ("mcp_source", "uri"),
                f"[mcp.{served.server.name}] {unused} is for another kind of server: a program "
                f"gets {', '.join(_OF_PROGRAMS)}, a server at a URL headers and oauth2",
                hint=f"remove {unused}",
            )
        elif served.server.oauth2 is not None and _has_credential(manifest, served.server):
            manifest.problem(
                tool,
                ("mcp_source", "uri"),
                f"a credential of [[credentials]] and [mcp.{served.server.name}] oauth2 both give "
                "requests to this server their Authorization",
                hint="keep one of them",
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


def _find_unused(own, server) -> str:
    """Return the field of [mcp.NAME] that a server of this kind never gets, or ""."""
    is_program = server.uri.startswith(SCHEME)
    fields = ("headers", "oauth2") if is_program else _OF_PROGRAMS
    return next((field for field in fields if getattr(own, field, None) is not None), "")


def _has_credential(manifest, server) -> bool:
    host = urlsplit(server.argv[0]).hostname
    return any(
        host in (one.hosts or ()) and (one.header or "Authorization").lower() == "authorization"
        for one in manifest.settings.credentials
    )


def find_needs(manifest) -> list[Requirement]:
    instead = 'let a gateway call it: mode = "mediated" under [mcp.NAME], and [gateway]'
    return [
        Requirement("mcp", tool.report_place, ("mcp_source",), instead)
        for tool in manifest.tools
        if tool.served and not tool.served.server.is_mediated
    ][:1]


FEATURE = Feature("mcp", check=check, compile=compile_sections, needs=find_needs)
