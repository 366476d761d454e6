"""The suite ``page`` as a browser sees it: the first paint, what is loaded for it, and how soon a
question is shown with 20 viewers.  It needs the browser of the tests: ``make browser``.
"""

import contextlib
import gzip
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

from clawlite.core.base.errors import ClawError
from clawlite.host.bench import agent
from clawlite.host.bench.run import quantile
from clawlite.host.bench.serve import Peer
from suites.page import Page, Socket, await_socket

ROOT = Path(__file__).resolve().parents[2]
HELPERS = ROOT / "tests" / "helpers"
NAME = "greenhouse"  # of the agent, whose tool water asks a person
VIEWERS = 20
PAINTS, QUESTIONS = 15, 60
_PAINT = (
    "const done = arguments[0], look = () => { const paint = performance.getEntriesByName("
    "'first-contentful-paint')[0]; paint ? done([paint.startTime, "
    "performance.getEntriesByType('resource').map((one) => one.name)]) : setTimeout(look, 5) };"
    "look()"
)
# a card is shown once its next frame is painted
_WATCH = (
    "window.shown = []; const seen = new Set(); new MutationObserver(() => { for (const card of "
    "document.querySelectorAll('.ask')) if (!seen.has(card)) { seen.add(card); "
    "requestAnimationFrame(() => setTimeout(() => window.shown.push(performance.timeOrigin + "
    "performance.now()))) } }).observe(document.body, { childList: true, subtree: true })"
)


def paint(bench):
    """Yield rows: the first paint of Home on loopback, and what is loaded for it."""
    with _greenhouse(bench) as door, _browser(bench, door) as browser:
        times, names = [], []
        for _ in range(PAINTS):
            browser.driver.get(browser.url + "/")
            browser.until(lambda: browser.texts("nav a"))
            took_ms, names = browser.driver.execute_async_script(_PAINT)
            times.append(took_ms)
    yield bench.row("page", "first paint of Home, on loopback", "ms", times)
    files = [ROOT / "clawlite/host/page/static" / name for name in _static(names)]
    size = sum(len(gzip.compress(path.read_bytes())) for path in files)
    note = "files of the page that Home loads, each by gzip"
    yield bench.row("page", "bytes of Home, compressed", "B", [size], note=note)
    note = "with the document, and a WebSocket to one agent"
    yield bench.row("page", "requests of Home", "count", [len(names) + 2], note=note)


def _static(names: list) -> list:
    found = [name.rpartition("/")[2] for name in names if "/static/" in name]
    return ["index.html", *dict.fromkeys(found)]


def shown(bench):
    """Yield a row: from the moment at which a call is sent that needs approval until a browser
    shows it, which is one of 20 viewers, all admins who hear of approvals.
    """
    with _greenhouse(bench) as door, _browser(bench, door) as browser:
        others = [Socket(door.port, door.token, name=NAME) for _ in range(VIEWERS - 1)]
        for one in others:
            one.ask(agent.opening().split(b"\n")[0])
            one.ask(agent.line("claw.approval.subscribe", {}, 2).rstrip(b"\n"))
        browser.open("approve")
        browser.driver.execute_script(_WATCH)
        times = [_ask(others[0], browser, number) for number in range(QUESTIONS)]
        for one in others:
            one.close()
    p99 = quantile(sorted(times), 0.99)
    note = "value: p99; from the request that is sent to the frame that has the card"
    yield bench.row("page", "a question until a browser shows it", "ms", times, p99, note)


def _ask(asker: Socket, browser, number: int) -> float:
    """Return the ms from a call until it is shown; it is denied then."""
    id = str(uuid.uuid4())
    context = {"request_id": id, "identity": NAME}
    call = {"name": "water", "arguments": {"seconds": number % 50 + 1}, "context": context}
    sent_ms = time.time() * 1000
    asker.send(agent.line("claw.tool.call", call, 1000 + number).rstrip(b"\n"))
    browser.until(lambda: browser.driver.execute_script("return window.shown.length") > number)
    shown_ms = browser.driver.execute_script("return window.shown.at(-1)")
    asker.send(agent.line("claw.tool.deny", {"request_id": id}, 5000 + number).rstrip(b"\n"))
    browser.until(lambda: not browser.all(".ask"))
    return shown_ms - sent_ms


@contextlib.contextmanager
def _greenhouse(bench):
    """Yield the page of an agent that runs."""
    folder = os.path.join(bench.make("project"), NAME)
    for words in (["new", folder, "--offline"], ["build", folder]):
        done = subprocess.run(
            [sys.executable, "-m", "clawlite", *words], env=bench.environment(), capture_output=True
        )
        if done.returncode:
            raise ClawError(done.stderr.decode()[-300:], "look at the template greenhouse")
    image = os.path.join(folder, "claw.cbor")
    words = [sys.executable, "-m", "clawlite", "serve", image, "--stdio", "--socket"]
    peer = Peer(words, bench.environment(), bench.folder)
    peer.ask(agent.opening(), 2)
    door = Page(bench, name=NAME)
    try:
        await_socket(bench, NAME)
        yield door
    finally:
        door.close()
        peer.end()


@contextlib.contextmanager
def _browser(bench, door):
    """Yield a browser, with somebody who has logged in."""
    if not (ROOT / "build/browser/made").exists():
        raise ClawError("this needs the browser of the tests", "make browser")
    sys.path.append(str(HELPERS))
    try:
        import browsers
    finally:
        sys.path.remove(str(HELPERS))
    with browsers.open_browser(f"http://127.0.0.1:{door.port}", Path(bench.make("b"))) as browser:
        browser.show(browsers.DESK)
        browser.log_in(door.token)
        yield browser
