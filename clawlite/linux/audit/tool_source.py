"""Which service or MCP server answers a tool, for the record of a call."""

from clawlite.core.image.image import HANDLER_KIND, HANDLER_NAME, MCP, SERVED, SERVICE, SERVICES
from clawlite.protocols.services.service_call import MEDIATED, Service
from clawlite.protocols.services.service_call import SERVED as MCP_SCHEME


class ToolSources:
    """The tools of *image* that services and MCP servers answer."""

    def __init__(self, image):
        self._image, self._known = image, {}  # name of a tool -> what its records say
        self._rows: tuple | None = None

    def of(self, event: dict) -> dict:
        """Return the fields that the record of *event* gets: server, server_tool, mode ("native" or
        "mediated"), protocol ("http", "mcp 2026-07-28" or "mcp handshake", as the build found it)
        and, if a result came back, result_bytes, the size of the text in the event, which is cut
        when the result is long.  Return {} for a tool that neither a service nor a server answers.
        """
        name = event.get("tool")
        if event["event"] != "tool.call" or not isinstance(name, str):
            return {}
        if name not in self._known:
            tool = self._image.tool(name)
            if tool is None:  # the name is any text of a caller, and is not cached
                return {}
            self._known[name] = self._found(tool.handler)
        found = self._known[name]
        if not found or "output" not in event:
            return found
        return dict(found, result_bytes=len(event["output"].encode()))

    def _found(self, handler: list) -> dict:
        kind, name = handler[HANDLER_KIND], handler[HANDLER_NAME]
        if kind not in (SERVED, SERVICE):
            return {}
        server, _, tool = name.partition("/" if kind == SERVED else ".")
        if self._rows is None:
            rows = map(Service, self._image.section(SERVICES) or ())
            starts = self._image.section(MCP) or ()
            self._rows = (
                {one.name: one for one in rows},
                {one: is_handshake for one, _, _, is_handshake, *_ in starts},
            )
        services, servers = self._rows
        service = services.get(server) if kind == SERVICE else None
        mode = "mediated" if service is not None and service.mode == MEDIATED else "native"
        protocol = "http"
        if service is None or service.scheme == MCP_SCHEME:
            protocol = "mcp handshake" if servers.get(server) else "mcp 2026-07-28"
        return {"server": server, "server_tool": tool, "mode": mode, "protocol": protocol}
