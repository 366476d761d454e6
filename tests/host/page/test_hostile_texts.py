"""An agent that was taken over says markup, scripts, links and marks of direction wherever it says
anything: each view shows that as text, loads nothing and runs nothing, on a phone, light and dark.
"""

import browsers
import pytest
from browsers import PHONE
from hostile_agent import AT, BAD, MARK, HostileAgent
from pages import AGENT, RunningPage

from clawlite.host.page import site
from clawlite.host.page.known_people import GATEWAY
from clawlite.linux.secrets import people

VIEWS = "home approve why rules memory audit log budgets swarm setup more talk".split()
WATCH = """
window.ran = 0; window.reports = [];
document.addEventListener("securitypolicyviolation", (one) => window.reports.push(one.blockedURI));
"""
INSERTED = (
    "main img, main script, main iframe, main style, main svg[onload], main object, "
    "[onerror], [onfocus], [autofocus], a[href^='javascript'], main a[href*='//']"
)
UNSEEN = "[\\u202a-\\u202e\\u2066-\\u2069\\u200b\\ufeff\\u001b]"
LOADED = "return performance.getEntriesByType('resource').map((one) => one.name)"
ONLY_TEXT = (
    "const bad = new RegExp(arguments[0], 'u'); "
    "return bad.test(document.getElementById('main').textContent)"
)


# what a board behind a gateway does not answer
LACKS = (
    "call.list call.preview audit.list audit.verify audit.export reading.history rule.rehearse "
    "pin.list usage.get swarm.list"
)


def add_ada(state) -> str:
    """Make ada an admin of the agent and of the gateway; return her token."""
    token, digest = people.make_token("ada")
    for place in (AGENT, GATEWAY):
        (state / place).mkdir(exist_ok=True)
        people.add(str(state / place), "ada", "admin", digest)
    return token


@pytest.fixture
def hostile(state, monkeypatch):
    monkeypatch.setattr(
        site,
        "find_boards",
        lambda _: [{"board": BAD, "agent": BAD, "seen": AT, "ckp": "/ckp/none"}],
    )
    token = add_ada(state)
    with HostileAgent(state / AGENT), RunningPage(state) as page:
        yield page, token


def look(browser, url: str, view: str) -> int:
    """Hold what is shown to what may be shown; return how wide it is."""
    script = browser.driver.execute_script
    assert script("return [window.ran, window.reports]") == [0, []], view
    assert browser.all(INSERTED) == [], view
    assert script(ONLY_TEXT, UNSEEN) is False, f"{view}: a mark that nobody sees"
    assert all(name.startswith(url) for name in script(LOADED)), script(LOADED)
    assert browser.driver.title.lower().startswith(view), "a title that it has set"
    return script("return document.documentElement.scrollWidth")


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_each_view_shows_what_an_agent_says_as_text(hostile, tmp_path, is_dark):
    page, token = hostile
    with browsers.open_browser(page.url, tmp_path) as browser:
        browser.show(PHONE, is_dark)
        browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": WATCH})
        browser.log_in(token)
        has_mark = f"return document.getElementById('main').textContent.includes('{MARK}')"
        widths = {}
        for view in VIEWS:
            browser.driver.execute_script("location.hash = arguments[0]", "#" + view)
            browser.until(lambda view=view: browser.driver.title.lower().startswith(view))
            if view == "talk":
                browser.find("#message").send_keys("hello")
                browser.touch("Send")
                browser.until(lambda: MARK in "".join(browser.texts(".it")))
            if view == "rules":
                browser.touch("Why?")
            if view == "audit":
                browser.touch("Verify")
            if view not in ("setup", "more"):
                browser.until(lambda: browser.driver.execute_script(has_mark))
            widths[view] = look(browser, page.url, view)
        assert {view: wide for view, wide in widths.items() if wide > PHONE[0]} == {}
        assert not [one for one in browser.complaints() if "evil" in one or "x.png" in one]


def test_a_view_of_what_a_board_does_not_keep_says_so(state, tmp_path):
    lacks = ["claw." + one for one in LACKS.split()]
    token = add_ada(state)
    with HostileAgent(state / AGENT, lacks), RunningPage(state) as page:
        with browsers.open_browser(page.url, tmp_path) as browser:
            browser.show(PHONE)
            browser.log_in(token)
            wanted = {
                "why": "A board does not keep this",
                "audit": "A board does not keep this",
                "budgets": "This agent does not say what it uses",
                "swarm": "This agent works alone",
                "home": "5",
            }
            for view, words in wanted.items():
                browser.driver.execute_script("location.hash = arguments[0]", "#" + view)
                shown = lambda words=words: words in "".join(browser.texts("main"))
                browser.until(shown)
                assert browser.texts(".problem") == [] and browser.find_barriers() == [], view
            browser.open("rules")
            browser.touch("A day in a picture")
            browser.until(lambda: "A board does not keep this" in "".join(browser.texts("main")))
