"""The page in a real browser, as a person uses it, on a phone and at a desk."""

import gzip
import json
from pathlib import Path

import browsers
import pytest
from agents import Agent, eventually, linux
from browsers import DESK, PHONE
from pages import AGENT

from clawlite.host import page as room

STATIC = Path(room.__file__).parent / "static"
VIEWS = ("home", "talk", "approve", "rules", "log")


@pytest.fixture
def browser(page, greenhouse, tokens, tmp_path):
    with browsers.open_browser(page.url, tmp_path) as window:
        yield window


def say(browser, text: str):
    browser.open("talk")
    browser.find("#message").send_keys(text)
    browser.touch("Send")


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_a_person_talks_and_approves_with_one_tap(browser, tokens, size):
    browser.show(size)
    browser.log_in(tokens["ada"])
    browser.until(lambda: "online" in browser.texts(".tag"))
    assert browser.texts("h2") == [AGENT]
    say(browser, "water for 2 s")
    browser.until(lambda: "waits for approval" in browser.texts(".it"))
    browser.until(lambda: browser.texts(".count") == ["1"])
    browser.open("approve")
    (card,) = browser.texts(".ask")
    assert card.startswith("water?") and "seconds" in card and "\n2\n" in card
    assert "rule ask-before-watering asks first" in card and "No answer: denied." in card
    browser.touch("Approve")
    browser.until(lambda: any("Approved by ada: water" in one for one in browser.texts("main p")))
    assert browser.texts(".count") == []
    browser.open("talk")
    browser.until(lambda: any("Watered" in one or "water" in one for one in browser.texts(".it")))
    (call,) = browser.texts(".call summary")
    assert call.startswith("water") and "approved" in call and "done" in call
    browser.open("log")
    say(browser, "how wet is the soil")
    browser.until(lambda: len(browser.texts(".it")) == 2 and "thinking" not in browser.texts(".it"))
    browser.open("log")
    browser.until(lambda: browser.texts("li.hit"))
    assert not [one for one in browser.complaints() if "favicon" not in one]


def test_a_denied_call_says_so_where_it_was_asked_for(browser, tokens):
    browser.log_in(tokens["ada"])
    say(browser, "water for 2 s")
    browser.open("approve")
    browser.touch("Deny")
    browser.until(lambda: any("Denied by ada" in one for one in browser.texts("main p")))
    browser.open("talk")
    browser.until(lambda: any("not approved" in one for one in browser.texts(".it")))


def test_a_user_talks_and_answers_nothing(browser, tokens):
    browser.log_in(tokens["bea"])
    say(browser, "water for 2 s")
    browser.until(lambda: "waits for approval" in browser.texts(".it"))
    browser.open("approve")
    assert "Only an admin answers questions." in browser.texts("main")[0]
    assert browser.all(".ask") == []
    browser.open("talk")
    browser.touch("Stop")
    browser.until(lambda: any("Stopped" in one for one in browser.texts(".it")))


def test_what_a_stranger_writes_is_text(browser, tokens):
    browser.log_in(tokens["ada"])
    words = "<img src=x onerror=document.title='HACKED'><script>alert(1)</script> [a](javascript:x)"
    say(browser, words)
    browser.until(lambda: browser.texts(".it") and "thinking" not in browser.texts(".it"))
    assert browser.texts(".me") == [words] and browser.all("main img, main script, .talk a") == []
    assert "HACKED" not in browser.driver.title


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_keeps_people_out(browser, tokens, size, is_dark):
    browser.show(size, is_dark)
    browser.driver.get(browser.url + "/login")
    assert browser.find_barriers() == []
    browser.log_in(tokens["ada"])
    say(browser, "water for 60 s")
    browser.until(lambda: browser.texts(".count") == ["1"])
    for view in VIEWS:
        browser.open(view)
        browser.until(lambda: browser.texts("main h1, main h2"))
        assert browser.find_barriers() == [], view
        wide = browser.driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= size[0], view


def test_an_agent_that_is_gone_is_shown_as_gone(page, tokens, greenhouse_image, state, tmp_path):
    words, env = linux("serve", greenhouse_image, "--socket"), {"CLAWLITE_STATE": state}
    with browsers.open_browser(page.url, tmp_path) as browser:
        with Agent(words, tmp_path / "home", cwd=tmp_path, env=env):
            eventually((state / AGENT / "control.sock").exists)
            browser.log_in(tokens["ada"])
            browser.until(lambda: browser.texts("main small"))
        browser.until(lambda: browser.texts(".tag") == ["offline, old values"])


def test_the_page_is_small():
    files = [file for file in STATIC.iterdir() if file.is_file()]
    assert sum(len(gzip.compress(file.read_bytes())) for file in files) <= 60000
    first = [
        "index.html",
        "page.css",
        "icon.svg",
        "app.js",
        "ckp.js",
        "dom.js",
        "text.js",
        "home.js",
    ]
    assert len(first) + 1 <= 12 and {*first} <= {file.name for file in files}
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert "innerHTML" not in text and "http:" not in text.replace("http://www.w3.org/", "")
        assert "https:" not in text and json.dumps("eval(")[1:-1] not in text
