"""The views that explain and look back, in a real browser: Home's card, Why, Audit, Memory,
Budgets, Swarm, and a day of a rule in a picture.
"""

import json

import browsers
import pytest
from agents import Agent, eventually, linux
from browsers import DESK, PHONE
from pages import STRANGE, RunningPage, act
from swarm_team import delegate
from swarm_team import project as member

VIEWS = ("home", "why", "audit", "memory", "budgets", "swarm", "rules", "more")


@pytest.fixture
def browser(state, garden, add_person, tmp_path):
    with RunningPage(state) as page, browsers.open_browser(page.url, tmp_path) as window:
        window.token = add_person("ada", "admin", "ruled")
        yield window


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_home_has_a_curve_the_pins_and_how_it_is(browser, size):
    browser.show(size)
    browser.log_in(browser.token)
    browser.until(lambda: browser.all("main .card svg"))
    (card,) = browser.texts("main .card")
    assert "20 %" in card and "soil" in card and "pump, output" in card and "off" in card
    assert "dashed: 30 %" in card and "image " in card and "on this machine" in card
    assert "morning-water" in card
    words = browser.all("main svg")[0].get_attribute("aria-label")
    assert words.startswith("soil: from ") and "between 20 % and 4" in words


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_why_a_call_was_refused_and_what_another_would_do(browser, garden, size):
    act(garden)
    browser.show(size)
    browser.log_in(browser.token)
    browser.driver.get(browser.url + "/#why")
    browser.until(lambda: browser.texts(".gates"))
    assert browser.texts(".gates .stopped") == ["arguments ✗\nstopped here"]
    assert browser.all("button.line")[0].text.startswith("water")
    field = browser.find("#other0")
    assert field.get_attribute("value") == "600"
    field.clear()
    field.send_keys("6")
    browser.touch("What would it do?")
    browser.until(lambda: len(browser.texts(".gates")) == 2)
    assert browser.texts(".gates .asks") == ["approval ?\nasks a person"]
    assert browser.texts("li.hit") == ["ask · asks first"] or "ask" in browser.texts("li.hit")[0]
    assert "would ask first" in browser.texts("main .tag")
    assert not garden.call("claw.approval.subscribe", {})["result"]["approvals"]
    browser.click(browser.all("button.line")[1])
    browser.until(lambda: browser.texts("main .card h2")[0] == "read-soil")
    assert browser.texts(".gates .stopped") == []


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_audit_is_filtered_verified_and_taken_along(browser, garden, size, tmp_path):
    act(garden)
    browser.show(size)
    browser.log_in(browser.token)
    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    browser.open("audit")
    browser.until(lambda: len(browser.texts("main .card")) > 1)
    browser.find("input[type=search]").send_keys("operator read-soil")
    browser.until(lambda: browser.texts("main .card h2") == ["No record"])
    browser.find("input[type=search]").clear()
    browser.find("input[type=search]").send_keys('"operator"')
    browser.until(lambda: set(browser.texts("main .card h2")) == {"water", "read-soil"})
    browser.touch("Verify")
    browser.until(lambda: "as they were written" in browser.texts("main .tag"))
    browser.touch("Export")
    path = tmp_path / "ruled-audit.jsonl"
    eventually(lambda: path.exists() and path.stat().st_size)
    assert [json.loads(one)["n"] for one in path.read_text().splitlines()][0] == 1
    browser.touch("Why?")
    browser.until(lambda: browser.driver.title.startswith("Why") and browser.texts(".gates"))
    assert browser.texts("main .card h2")[0] in ("water", "read-soil")


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_the_memory_is_searched_and_forgets(browser, garden, size):
    act(garden)
    browser.show(size)
    browser.log_in(browser.token)
    browser.open("memory")
    browser.until(lambda: len(browser.texts(".pre")) == 2)
    assert STRANGE in browser.texts(".pre") and browser.all("main img") == []
    browser.find("#words").send_keys("basil")
    browser.touch("Search")
    browser.until(lambda: browser.texts(".pre") == ["the basil likes shade"])
    browser.touch("Forget")
    assert browser.texts(".pre") == ["the basil likes shade"]
    browser.touch("Really forget?")
    browser.until(lambda: "Forgotten." in browser.texts("main p"))
    browser.until(lambda: browser.texts("main .card h2") == ["Nothing found"])


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_budgets_are_bars(browser, garden, size):
    act(garden)
    browser.show(size)
    browser.log_in(browser.token)
    browser.open("budgets")
    browser.until(lambda: browser.all("main progress"))
    words = browser.all("main progress")[0].get_attribute("aria-label")
    assert words.endswith(" of 300 used") and words in browser.texts("main p")
    assert "Calls of tools a minute" in browser.texts("main h2")
    browser.open("swarm")
    browser.until(lambda: "This agent works alone" in browser.texts("main h2"))


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_a_day_of_a_rule_is_a_picture(browser, size):
    browser.show(size)
    browser.log_in(browser.token)
    browser.open("rules")
    browser.touch("A day in a picture")
    browser.until(lambda: browser.all("svg.day polyline"))
    picture = browser.all("svg.day")[0].get_attribute("aria-label")
    runs = browser.texts(".card figure + ul li")
    assert picture.startswith("What it would have done in the last day") and runs
    assert any("asks" in one or "left out" in one for one in runs)
    assert browser.all("svg.day .mark")
    browser.touch("Why?")
    browser.until(lambda: any("begins by the clock" in one for one in browser.texts(".mono p")))


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_nothing_keeps_people_out(browser, garden, size, is_dark):
    act(garden)
    browser.show(size, is_dark)
    browser.log_in(browser.token)
    for view in VIEWS:
        browser.driver.get(browser.url + "/#" + view)
        browser.until(lambda: browser.texts("main .card"))
        if view == "rules":
            browser.touch("A day in a picture")
            browser.until(lambda: browser.all("svg.day"))
        assert browser.find_barriers() == [], view
        wide = browser.driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= size[0], view
    assert browser.complaints() == []


@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_a_swarm_shows_who_is_there_and_its_tasks(state, tmp_path, add_person, size):
    image, token = member(tmp_path, "lead"), add_person("ada", "admin", "lead")
    words, env = linux("serve", image, "--socket", "--stdio"), {"CLAWLITE_STATE": state}
    with Agent(words, tmp_path / "home", cwd=tmp_path, env=env).initialize() as agent:
        eventually((state / "lead" / "control.sock").exists)
        assert "result" in delegate(agent, STRANGE)
        with RunningPage(state) as page, browsers.open_browser(page.url, tmp_path) as browser:
            browser.show(size)
            browser.log_in(token)
            browser.open("swarm")
            browser.until(lambda: "team" in browser.texts("main h2"))
            rows = browser.texts("main li")
            assert rows[0].startswith("lead leader, 1 process") and "away" in rows[1]
            assert STRANGE in browser.texts(".pre") and browser.all("main img") == []
            assert browser.find_barriers() == []


def test_home_says_since_when_an_agent_is_gone(state, garden_image, tmp_path, add_person):
    token = add_person("ada", "admin", "ruled")
    words, env = linux("serve", garden_image, "--socket", "--stdio"), {"CLAWLITE_STATE": state}
    with Agent(words, tmp_path / "home", cwd=tmp_path, env=env).initialize() as agent:
        eventually((state / "ruled" / "control.sock").exists)
        act(agent)
        agent.end()
        assert agent.wait() == 0
    with RunningPage(state) as page, browsers.open_browser(page.url, tmp_path) as browser:
        browser.log_in(token)
        browser.until(lambda: browser.texts("main .card p"))
        (said,) = browser.texts("main .card p")
        assert said.startswith("not online since ") and said.endswith(" ago")
