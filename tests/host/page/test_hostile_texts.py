"""An agent that was taken over says markup, scripts, links and marks of direction wherever it says
anything: each view shows that as text, loads nothing and runs nothing, on a phone, light and dark.
"""

import browsers
import pytest
from browsers import PHONE
from hostile_agent import AT, BAD, MARK, HostileAgent
from pages import AGENT, WATCH, RunningPage, hold_to_text

from clawlite.host.page import site
from clawlite.host.page.known_people import GATEWAY
from clawlite.linux.secrets import people

VIEWS = "home approve why rules memory audit log budgets swarm setup more talk".split()
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
            widths[view] = hold_to_text(browser, view)
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
