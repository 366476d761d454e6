"""A gateway with its proxy on loopback, for tests of runners: real HTTP on both sides.

async with Proxied(folder, server) as it:
    ...  it.url, it.token("garden"), it.rows("SELECT ..."), it.notes
"""

import asyncio
import json
import os
import sqlite3
from pathlib import Path

import aiohttp
from gateways import KEY, project

from clawlite.core.base.errors import ClawError
from clawlite.host.gateway import gateway as gateways
from clawlite.host.gateway.images import Images
from clawlite.host.gateway.program import Programs
from clawlite.host.gateway.store import Store
from clawlite.host.proxy.dialect import Tool
from clawlite.host.proxy.mediation import Budget, Managed
from clawlite.linux.tools.gateway_server import Sandboxes

MARKET = Tool(
    "desk.market",
    "desk__market",
    "Market context of an agent.",
    {"type": "object", "properties": {"symbol": {"type": "string"}}},
    "desk",
)
TRADE = Tool("desk.trade", "desk__trade", "Trade.", {"type": "object"}, "desk")


class Desk:
    """Two managed tools; what was called is in ``calls``."""

    tools = [MARKET, TRADE]

    def __init__(self, answer=None):
        self.calls = []
        self._answer = answer or (lambda tool, arguments: {"ok": True, "data": {"balance": 50}})

    async def call(self, tool, arguments: dict, request: str) -> dict:
        self.calls.append((tool.name, arguments))
        made = self._answer(tool, arguments)
        return await made if asyncio.iscoroutine(made) else made


class Proxied:
    """One gateway of *folder*, or of several.

    desk    ``Desk``, whose tools every runner has; None: no managed tools
    secret  function(agent, name) -> value
    """

    def __init__(self, *folders, desk=None, budget=None, secret=None, first_s=30, **tls):
        self._folders, self.desk, self._budget, self._tls = folders, desk, budget, tls
        self._secret = secret or (lambda agent, name: KEY)
        self._first_s = first_s
        self.notes = []

    async def __aenter__(self):
        self.path = os.path.join(gateways.folder(), "gateway.db")
        store = await Store.open(self.path, self.notes.append)
        images = Images([str(folder) for folder in self._folders], self.notes.append)
        self.gateway = gateways.Gateway(
            images, store, self._secret, self.notes.append, Programs(Sandboxes(gateways.folder()))
        )
        if self.desk:
            budget = self._budget or Budget()
            self.gateway.manage = lambda runner: Managed(self.desk.tools, self.desk.call, budget)
        try:
            where = await self.gateway.mediate("127.0.0.1:0", **self._tls)
        except ClawError:
            await self.gateway.close()
            raise
        proxy = self.gateway._proxy
        proxy.first_s, proxy.keep_alive_s = self._first_s, 0.01
        self.url = f"http{'s' if self._tls else ''}://{where}"
        self.http = aiohttp.ClientSession()
        return self

    async def __aexit__(self, *_):
        await self.http.close()
        await self.gateway.close()

    def token(self, name: str = "garden") -> str:
        return f"{name}:{gateways.make_token(name, ['proxy'])}"

    async def post(self, path: str, body, token: str = None, **headers) -> tuple:
        """Return (status, headers, bytes) of a POST; *body*: bytes, or a value for JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": "Bearer " + (token or self.token()), **headers}
        async with self.http.post(self.url + path, data=data, headers=headers) as response:
            return response.status, response.headers, await response.read()

    async def rows(self, question: str) -> list:
        """Return rows of the gateway's file, once all that waits was written."""
        store = self.gateway.store
        while store._tasks:
            await asyncio.wait(store._tasks)
        with sqlite3.connect(self.path) as db:
            return db.execute(question).fetchall()


def run(play, folder: Path, server, protocol: str = "openai-compatible", **options):
    """Run the coroutine function *play* with a proxy before *server*."""
    project(folder / "garden", server.endpoint, protocol=protocol)

    async def inside():
        async with Proxied(folder / "garden", **options) as it, asyncio.timeout(60):
            return await play(it)

    return asyncio.run(inside())
