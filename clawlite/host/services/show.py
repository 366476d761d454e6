"""What ``clawlite inspect`` shows of the services that an image's tools need: who calls them, where
they are, and which request each tool makes.
"""

from clawlite.host.mcp.show import describe_caller, list_services, mode_of
from clawlite.protocols.net.netrules import authority
from clawlite.protocols.services.service_call import FORM, QUERY, SERVED, Service

_BODIES = {QUERY: "query", FORM: "form"}


def show(image) -> tuple:
    """Return ([{...}], lines of them).

    Keys: name, mode ("native" or "mediated"), devices ([]: all), url, credential (the name of what
    a gateway shows it, or None), tools ([{"name", "method", "path", "arguments": "query", "json" or
    "form"}]), feeds ([{"name", "path", "ttl_s"}]).
    """
    found, lines = [_service(row) for row in list_services(image) if row.scheme != SERVED], []
    for one in found:
        secret = f", shows {one['credential']}" if one["credential"] else ""
        lines.append(f"{one['name']:20} {describe_caller(one)}, {one['url']}{secret}")
        for tool in one["tools"]:
            lines.append(
                f"{'':20} {tool['name']}: {tool['method']} {tool['path']}, "
                f"arguments: {tool['arguments']}"
            )
        for feed in one["feeds"]:
            what = f"feed {feed['name']}: GET {feed['path']}, good for {feed['ttl_s']} s"
            lines.append(f"{'':20} {what}")
    return found, lines


def _service(row: Service) -> dict:
    credential = None
    if row.auth:
        *_, credential = row.auth
    return {
        "name": row.name,
        "mode": mode_of(row),
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
