"""The page in this process, in a thread with a loop of its own, and clients in the same loop."""

import asyncio
import threading

from agents import INITIALIZE, UUID

from clawlite.host.page.page import Page, Place

AGENT = "g"  # the greenhouse
STRANGE = "<img src=x onerror=document.title='HACKED'>"


class Loop:
    """A loop in a thread, from ``with`` on."""

    def __enter__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        return self

    def do(self, work, seconds: float = 120):
        """Return what the coroutine *work* does, run there."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds)

    def start(self, work):
        """Let *work* go on there; return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def __exit__(self, *_):
        self.do(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._loop.shutdown_asyncgens()


class RunningPage(Loop):
    """A page over the state folders below *root*.

    url   where it is, without a slash at the end
    http  an ``aiohttp.ClientSession`` without cookies
    """

    def __init__(self, root, **place):
        self._root = str(root)
        self._place = Place(**{"address": "127.0.0.1:0", **place})

    def __enter__(self):
        super().__enter__()
        self.page = Page(self._place, root=self._root)
        self.do(self._open())
        return self

    async def _open(self):
        import aiohttp

        where = await self.page.open()
        self.url = where.rpartition("(here ")[2].rstrip("/)")
        self.http = aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar())

    def __exit__(self, *_):
        self.do(self.http.close())
        self.do(self.page.close())
        super().__exit__()

    def ask(self, method: str, path: str, **more) -> tuple:
        """Return (status, headers, body) of one request."""

        async def ask():
            async with self.http.request(
                method, self.url + path, allow_redirects=False, **more
            ) as said:
                return said.status, said.headers, await said.read()

        return self.do(ask())

    def log_in(self, token: str, **more) -> tuple:
        """Return (status, headers, body) of the login form."""
        headers = {"Origin": self.url, **more.pop("headers", {})}
        return self.ask("POST", "/login", data={"token": token}, headers=headers, **more)


def initialize(id=1) -> dict:
    return {"jsonrpc": "2.0", "id": id, "method": "claw.initialize", "params": INITIALIZE}


def act(agent):
    """Let the garden do something: a call that is allowed, one that does not fit, and notes."""
    context = {"request_id": UUID % 1, "identity": "t"}
    call = {"name": "read-soil", "arguments": {}, "context": context}
    assert "result" in agent.call("claw.tool.call", call)
    wrong = {"name": "water", "arguments": {"seconds": 600}}
    assert "error" in agent.call(
        "claw.tool.call", {**wrong, "context": {**context, "request_id": UUID % 2}}
    )
    entries = [{"content": "the basil likes shade"}, {"content": STRANGE}]
    stored = {"store": "notes", "entries": entries, "context": {**context, "request_id": UUID % 3}}
    assert "result" in agent.call("claw.memory.store", stored)
