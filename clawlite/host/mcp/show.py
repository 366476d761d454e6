"""What ``clawlite inspect`` shows of the MCP servers of an image, and who calls them."""

from clawlite.core.image import image as layout
from clawlite.protocols.services.service_call import MEDIATED, SERVED, Service


def show(image) -> tuple:
    """Return ([{...}], lines of them).

    Keys: name, mode ("native" or "mediated"), devices ([]: all), command (argv, or [] of one at a
    URL), url (or None), revision ("2026-07-28", or "handshake": an older one), is_pinned (False:
    trust = "start"), tools (their names at the server), credential (of OAuth, or None).
    """
    gateways = {row.name: row for row in list_services(image) if row.scheme == SERVED}
    rows = image.section(layout.MCP) if image.size_of(layout.MCP) else []
    found, lines = [_server(row, gateways.get(row[0])) for row in rows], []
    for one in found:
        secret = f", tokens by {one['credential']}" if one["credential"] else ""
        where = one["url"] or " ".join(one["command"])
        pinned = "pinned" if one["is_pinned"] else 'trust = "start"'
        lines += [
            f"{one['name']:20} {describe_caller(one)}, {where}{secret}",
            f"{'':20} {one['revision']}, {pinned}: {', '.join(one['tools'])}",
        ]
    return found, lines


def list_services(image) -> list[Service]:
    """Return the services of *image*, and the MCP servers that a gateway calls (of scheme
    ``SERVED``).
    """
    return list(map(Service, image.section(layout.SERVICES) or ()))


def mode_of(row: Service | None) -> str:
    return "mediated" if row is not None and row.mode == MEDIATED else "native"


def describe_caller(one: dict) -> str:
    devices = f" for {', '.join(one['devices'])}" if one["devices"] else ""
    return f"{one['mode']}{devices}"


def _server(row: list, gateway: Service | None) -> dict:
    name, argv, _, is_handshake, pins, _, tokens, _ = row
    is_program, credential = argv[0].startswith("/"), None
    if tokens:
        *_, credential, _, _ = tokens
    return {
        "name": name,
        "mode": mode_of(gateway),
        "devices": gateway.devices if gateway else [],
        "command": argv if is_program else [],
        "url": None if is_program else argv[0],
        "revision": "handshake" if is_handshake else "2026-07-28",
        "is_pinned": all(pin for _, pin in pins),
        "tools": [tool for tool, _ in pins],
        "credential": credential,
    }
