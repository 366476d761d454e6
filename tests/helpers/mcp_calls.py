"""Calls of devices to the MCP servers of a gateway, without the devices."""

import asyncio
import json
import os
import shutil
import tempfile
import time

import mcp_agents

from clawlite.core.base.errors import ClawError
from clawlite.host.builder.build import build_beside
from clawlite.host.gateway import mcp_servers
from clawlite.host.gateway.gateway import loads
from clawlite.host.gateway.program import Programs
from clawlite.host.gateway.service_calls import NOBODY
from clawlite.host.image import image_reader
from clawlite.linux.tools.gateway_server import Sandboxes

MS, MOST = 60000, 16384


def image_of(agent):
    settings = agent / "clawlite.toml"
    text = settings.read_text()
    text += "" if "[mcp.t]" in text else "[mcp.t]\n"
    settings.write_text(text + 'mode = "mediated"\n[gateway]\n')
    return image_reader.open_image(build_beside(str(agent)))


async def nothing(name: str):
    raise ClawError(f"there is no {name}")


class Calls:
    """``async with Calls(image) as call``: calls of a device."""

    def __init__(self, image, uncontained=(), caller=NOBODY):
        self.image, self.caller, self.state = image, caller, tempfile.mkdtemp()
        programs = Programs(Sandboxes(os.path.join(self.state, "gateway")), uncontained)
        self.servers = mcp_servers.MCPServers((loads, json.dumps), programs)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.servers.close()
        shutil.rmtree(self.state)

    async def __call__(self, tool="echo", device="shed", ms=MS, find=nothing, **arguments):
        arguments = arguments or {"text": "hello"}
        rest = arguments, device, find, ms, MOST, self.caller
        return await self.servers.call(self.image, "t", tool, *rest)

    async def until_ok(self) -> dict:
        """Call until a server answers: it is begun again after a pause."""
        until = time.monotonic() + 60
        while True:
            result = await self()
            if result["ok"] or time.monotonic() > until:
                return result
            assert "nothing was called" in result["error"]["message"], result
            await asyncio.sleep(0.1)


def run(work):
    async def inside():
        async with asyncio.timeout(180):
            return await work

    return asyncio.run(inside())


async def gone(call: Calls, folder) -> None:
    """Return when no server runs any more, and the gateway has seen it."""
    servers = call.servers._servers.values()
    while mcp_agents.processes(folder) or any(server.client for server, _ in servers):
        await asyncio.sleep(0.01)


def message(result: dict, code: str) -> str:
    assert not result["ok"] and result["error"]["code"] == code, result
    return result["error"]["message"]


class Clock:
    """The time of the gateway's servers, in place of the module ``time``: the test moves it."""

    def __init__(self):
        self.now_s = 1000.0

    def monotonic(self) -> float:
        return self.now_s
