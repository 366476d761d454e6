"""The services and MCP servers that the tools of an image need, as ``clawlite inspect`` shows them:
who calls them, where they are, and which request each tool makes.
"""

from clawlite.core.image import image as layout
from clawlite.protocols.net.netrules import authority
from clawlite.protocols.services.service_call import FORM, MEDIATED, QUERY, SERVED, Service

_BODIES = {QUERY: "query", FORM: "form"}


def services(image) -> list[dict]:
    """Return the services of *image*.

    Keys: name, mode ("native" or "mediated"), devices ([]: all), url, credential (the name of what
    a gateway shows it, or None), tools ([{"name", "method", "path", "arguments": "query", "json" or
    "form"}]), feeds ([{"name", "path", "ttl_s"}]).
    """
    return [_service(row) for row in _rows(image) if row.scheme != SERVED]


def servers(image) -> list[dict]:
    """Return the MCP servers of *image*.

    Keys: name, mode and devices as of a service, command (argv, or [] of one at a URL), url (or
    None), revision ("2026-07-28", or "handshake": an older one), is_pinned (False: trust =
    "start"), tools (their names at the server), credential (of OAuth, or None).
    """
    gateways = {row.name: row for row in _rows(image) if row.scheme == SERVED}
    found = image.section(layout.MCP) if image.size_of(layout.MCP) else []
    return [_server(row, gateways.get(row[0])) for row in found]


def _rows(image) -> list[Service]:
    return list(map(Service, image.section(layout.SERVICES) or ()))


def _service(row: Service) -> dict:
    credential = None
    if row.auth:
        *_, credential = row.auth
    return {
        "name": row.name,
        "mode": _mode(row),
        "devices": row.devices,
        "url": f"{row.scheme}://{authority(row.scheme, row.host, row.port)}{row.base}",
        "credential": credential,
        "tools": [
            {
                "name": f"{row.name}.{name}",
                "method": method,
                "path": path,
                "arguments": _BODIES.get(body, "json"),
            }
            for name, method, path, body, _ in row.tools.values()
        ],
        "feeds": [{"name": name, "path": path, "ttl_s": ttl} for name, path, ttl in row.feeds],
    }


def _mode(row: Service | None) -> str:
    return "mediated" if row is not None and row.mode == MEDIATED else "native"


def _server(row: list, gateway: Service | None) -> dict:
    name, argv, _, is_handshake, pins, _, tokens, _ = row
    is_program, credential = argv[0].startswith("/"), None
    if tokens:
        *_, credential, _, _ = tokens
    return {
        "name": name,
        "mode": _mode(gateway),
        "devices": gateway.devices if gateway else [],
        "command": argv if is_program else [],
        "url": None if is_program else argv[0],
        "revision": "handshake" if is_handshake else "2026-07-28",
        "is_pinned": all(pin for _, pin in pins),
        "tools": [tool for tool, _ in pins],
        "credential": credential,
    }


def inspection_lines(found: dict) -> list[str]:
    """Return what a person reads of *found*, ``inspection.inspect``'s answer."""
    shown = ["services"] if found["services"] else []
    for one in found["services"]:
        secret = f", shows {one['credential']}" if one["credential"] else ""
        shown.append(f"  {one['name']:20} {_caller(one)}, {one['url']}{secret}")
        for tool in one["tools"]:
            shown.append(
                f"  {'':20} {tool['name']}: {tool['method']} {tool['path']}, "
                f"arguments: {tool['arguments']}"
            )
        for feed in one["feeds"]:
            what = f"feed {feed['name']}: GET {feed['path']}, good for {feed['ttl_s']} s"
            shown.append(f"  {'':20} {what}")
    shown += ["MCP servers"] if found["mcp_servers"] else []
    for one in found["mcp_servers"]:
        secret = f", tokens by {one['credential']}" if one["credential"] else ""
        where = one["url"] or " ".join(one["command"])
        shown.append(f"  {one['name']:20} {_caller(one)}, {where}{secret}")
        pinned = "pinned" if one["is_pinned"] else 'trust = "start"'
        what = f"{one['revision']}, {pinned}: {', '.join(one['tools'])}"
        shown.append(f"  {'':20} {what}")
    return shown


def _caller(one: dict) -> str:
    devices = f" for {', '.join(one['devices'])}" if one["devices"] else ""
    return f"{one['mode']}{devices}"
