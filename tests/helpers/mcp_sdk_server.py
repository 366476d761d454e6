"""An MCP server on the official SDK, in both of its major versions, over Streamable HTTP:
``mcp_sdk_server.py [stdio] [sse] [json] [stateless] [retry]``.  Its port is the first line of
stdout.

stdio      it speaks on stdin and stdout, and has no port
sse        it speaks HTTP+SSE, the transport of 2024-11-05, at /sse
json       answers are JSON, not streams of events
stateless  no sessions, in the handshake era
retry      it keeps events, closes each stream early, and clients come back for the answer
"""

import socket
import sys

import uvicorn
from mcp import types
from pydantic import BaseModel

try:
    from mcp.server import MCPServer as Server
    from mcp.server.mcpserver import Context

    IS_NEW = True
except ImportError:
    from mcp.server.fastmcp import Context
    from mcp.server.fastmcp import FastMCP as Server

    IS_NEW = False

WHAT = sys.argv[1:]


class Events:
    """The events of all streams, in memory, by their ids."""

    def __init__(self):
        self.kept = []

    async def store_event(self, stream, message):
        self.kept.append((stream, message))
        return str(len(self.kept))

    async def replay_events_after(self, last, send):
        from mcp.server.streamable_http import EventMessage

        stream = self.kept[int(last) - 1][0]
        for number in range(int(last), len(self.kept)):
            if self.kept[number][0] == stream and self.kept[number][1] is not None:
                await send(EventMessage(self.kept[number][1], str(number + 1)))
        return stream


def answer_json() -> dict:
    more = {"json_response": "json" in WHAT, "stateless_http": "stateless" in WHAT}
    if "retry" in WHAT:
        more["event_store"], more["retry_interval"] = Events(), 10
    return more


options = {} if IS_NEW else answer_json()
server = Server("remote", **options)


@server.tool()
def echo(text: str) -> str:
    """Give a text back."""
    return text


@server.tool(structured_output=False)
def picture(text: str) -> list:
    """Show a picture."""
    return [types.ImageContent(type="image", data="AAAA", **{KIND: "image/png"})]


KIND = "mime_type" if IS_NEW else "mimeType"


@server.tool()
def fail(text: str) -> str:
    """Fail."""
    raise ValueError("no such " + text)


@server.tool()
async def late(text: str, ctx: Context) -> str:
    """Give a text back after the stream was closed, and tell of progress before."""
    await ctx.report_progress(1, 2)
    if "retry" in WHAT:
        await ctx.close_sse_stream()
    return text


@server.tool()
async def grow(text: str, ctx: Context) -> str:
    """Change the description of another tool, and say so."""

    def echo(text: str) -> str:
        return text

    server.remove_tool("echo")
    server.add_tool(echo, description="Give it back, and more.")
    if IS_NEW:
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return text


class City(BaseModel):
    name: str


if IS_NEW:
    from typing import Annotated

    from mcp.server.mcpserver import Elicit, Resolve

    async def city(ctx: Context) -> Elicit[City]:
        return Elicit("Which city?", City)

    @server.tool()
    async def ask(text: str, city: Annotated[City, Resolve(city)]) -> str:
        """Ask a person for a city, before anything is done."""
        return city.name


@server.tool()
async def ask_within(text: str, ctx: Context) -> str:
    """Ask a person for a city in the middle of a call."""
    return str(await ctx.elicit("Which city?", City))


if __name__ == "__main__":
    if "stdio" in WHAT:
        server.run()
        sys.exit()
    if "sse" in WHAT:
        app = server.sse_app()
    else:
        app = server.streamable_http_app(**(answer_json() if IS_NEW else {}))
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    config = uvicorn.Config(app, log_level="error")
    uvicorn.Server(config).run(sockets=[listener])
