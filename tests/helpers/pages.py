"""The page in this process, in a thread with a loop of its own, and clients in the same loop."""

import asyncio
import threading

from agents import INITIALIZE, UUID

from clawlite.host.page.page import Page, Place

AGENT = "g"  # the greenhouse
STRANGE = "<img src=x onerror=document.title='HACKED'>"
WATCH = """
window.ran = 0; window.reports = [];
document.addEventListener("securitypolicyviolation", (one) => window.reports.push(one.blockedURI));
"""
_INSERTED = (
    "main img, main script, main iframe, main style, main svg[onload], main object, "
    "[onerror], [onfocus], [autofocus], a[href^='javascript'], main a[href*='//']"
)
_UNSEEN = "[\\u0080-\\u009f\\u202a-\\u202e\\u2066-\\u2069\\u200b\\ud800-\\udfff\\ufeff\\u001b]"
_LOADED = "return performance.getEntriesByType('resource').map((one) => one.name)"
_READ = """
const bad = new RegExp(arguments[0], "u"), main = document.getElementById("main");
const read = [main, ...main.querySelectorAll("*")].flatMap((one) =>
  ["aria-label", "title", "placeholder"].map((name) => one.getAttribute(name) || ""));
return [main.textContent, ...read].filter((one) => bad.test(one));
"""


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


def hold_to_text(browser, view: str) -> int:
    """Hold what is shown to what may be shown of a stranger's words: nothing of them was inserted,
    run or loaded (``WATCH`` was there before), and no mark in them is unseen.  Return how wide the
    view is.
    """
    script = browser.driver.execute_script
    assert script("return [window.ran, window.reports]") == [0, []], view
    assert browser.all(_INSERTED) == [], view
    assert script(_READ, _UNSEEN) == [], f"{view}: a mark that nobody sees"
    assert all(name.startswith(browser.url) for name in script(_LOADED)), script(_LOADED)
    assert browser.driver.title.lower().startswith(view), "a title that it has set"
    return script("return document.documentElement.scrollWidth")
