"""The page by keyboard alone, in a real browser: what has the focus is seen, and never lost, and
axe-core finds no barrier in the states on the way.
"""

import browsers
import pytest
from agents import tool_call
from browsers import DESK, PHONE
from pages import RunningPage, act

VIEWS = "Home Talk Approve Rules Log Audit Memory Budgets Swarm Setup".split()
ON_PHONE = VIEWS[:4]  # the others are behind "More"
MOST_STOPS = 120
FOCUSED = """
const one = document.activeElement;
const style = getComputedStyle(one), box = one.getBoundingClientRect();
const top = Math.max(0, box.top), bottom = Math.min(innerHeight, box.bottom);
const there = document.elementFromPoint(box.x + box.width / 2, (top + bottom) / 2);
return {
  tag: one.tagName,
  words: (one.ariaLabel || one.innerText).trim().split("\\n"),
  card: one.closest("[aria-label]")?.ariaLabel,
  mark: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
  is_seen: bottom > top && there !== null && (one.contains(there) || there.closest("nav") !== null
    && one.tagName === "MAIN"),
};
"""
MARK = "document.activeElement.dataset.old = 1"
IS_NEW = "return document.activeElement.dataset.old === undefined"


class Keyboard:
    """The keys of *browser*, and what has the focus."""

    def __init__(self, browser, is_phone: bool):
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        self.keys, self.browser, self._chain = Keys, browser, ActionChains
        self._is_phone = is_phone

    def press(self, *keys: str):
        self._chain(self.browser.driver).send_keys(*keys).perform()

    def step(self, is_back: bool = False):
        chain = self._chain(self.browser.driver)
        chain = chain.key_down(self.keys.SHIFT) if is_back else chain
        chain = chain.send_keys(self.keys.TAB)
        (chain.key_up(self.keys.SHIFT) if is_back else chain).perform()

    def focused(self) -> dict:
        return self.browser.driver.execute_script(FOCUSED)

    def reach(self, name: str, tag: str = "BUTTON", is_back: bool = False, card: str = None):
        """Go to what is called *name*; each stop on the way is seen, and has a mark."""
        stops = []
        for _ in range(MOST_STOPS):
            self.step(is_back)
            now = self.focused()
            stops.append(now)
            if now["tag"] in ("BODY", "HTML"):
                continue  # round the window: behind the last comes the first
            assert now["is_seen"] and now["mark"] >= 2, now
            if now["tag"] == tag and name in now["words"] and card in (None, now["card"]):
                return
        raise AssertionError((name, stops))

    def hold(self, name: str, tag: str = "BUTTON") -> dict:
        """What is called *name* has the focus, or is about to."""
        self.browser.until(lambda: name in self.focused()["words"])
        return self.hold_any(tag)

    def hold_any(self, *tags: str) -> dict:
        """The focus is on something that is seen, with one of *tags*."""
        now = self.focused()
        assert now["tag"] in tags and now["is_seen"] and now["mark"] >= 2, now
        return now

    def go(self, view: str):
        """Open *view* by its name."""
        title = lambda name: lambda: self.browser.driver.title.startswith(name)
        if self._is_phone and view not in ON_PHONE:
            self.reach("More", "A")
            self.press(self.keys.ENTER)
            self.browser.until(title("More"))
        self.reach(view, "A")
        self.press(self.keys.ENTER)
        self.browser.until(title(view))
        self.browser.until(lambda: self.browser.texts("main h1"))
        self.hold_any("MAIN")

    def log_in(self, token: str):
        self.browser.driver.get(self.browser.url + "/login")
        if self.browser.driver.execute_script("return document.activeElement.id") != "token":
            self.step()
        self.press(token, self.keys.ENTER)
        self.browser.until(lambda: "online" in self.browser.texts(".tag"))


@pytest.fixture(params=[PHONE, DESK], ids=["phone", "desk"])
def size(request):
    return request.param


@pytest.fixture
def keyboard(page, greenhouse, tokens, tmp_path, size):
    with browsers.open_browser(page.url, tmp_path) as browser:
        browser.show(size)
        made = Keyboard(browser, size == PHONE)
        made.log_in(tokens["ada"])
        yield made


@pytest.fixture
def garden_keyboard(state, garden, add_person, tmp_path, size):
    act(garden)
    token = add_person("ada", "admin", "ruled")
    with RunningPage(state) as page, browsers.open_browser(page.url, tmp_path) as browser:
        browser.show(size)
        made = Keyboard(browser, size == PHONE)
        made.log_in(token)
        yield made


def ask_to_water(keyboard):
    keyboard.reach("Message", "TEXTAREA")
    keyboard.press("water for 2 s")
    keyboard.reach("Send")
    keyboard.press(keyboard.keys.SPACE)
    keyboard.browser.until(lambda: "waits for approval" in keyboard.browser.texts(".it"))
    keyboard.hold("Send")  # it is off, and still has the focus


def test_each_view_is_opened_and_a_question_answered(keyboard):
    browser, keys = keyboard.browser, keyboard.keys
    for view in VIEWS:
        keyboard.go(view)
    keyboard.go("Talk")
    for button, key, word, end in (
        ("Approve", keys.SPACE, "Approved by ada", "Watered"),
        ("Deny", keys.ENTER, "Denied by ada", "not approved"),
    ):
        ask_to_water(keyboard)
        keyboard.go("Approve")
        browser.until(lambda: browser.all(".ask button:not([aria-disabled=true])"))
        keyboard.reach(button, is_back=True)
        keyboard.press(key)
        browser.until(lambda word=word: any(word in one for one in browser.texts("main p")))
        keyboard.hold_any("MAIN")
        keyboard.go("Talk")
        browser.until(lambda end=end: any(end in one for one in browser.texts(".it")))
    keyboard.reach("Message", "TEXTAREA")
    keyboard.press("water for 2 s", keys.ENTER)
    browser.until(lambda: "waits for approval" in browser.texts(".it"))
    keyboard.hold("Message", "TEXTAREA")
    keyboard.reach("Stop")
    keyboard.press(keys.ENTER)
    browser.until(lambda: any("Stopped" in one for one in browser.texts(".it")))
    keyboard.hold("Stop")
    assert browser.find_barriers() == []


def test_what_was_called_stays_open_while_more_is_said(keyboard):
    browser, keys = keyboard.browser, keyboard.keys
    keyboard.go("Talk")
    keyboard.reach("Message", "TEXTAREA")
    keyboard.press("how wet is the soil", keys.ENTER)
    browser.until(lambda: browser.all("summary"))
    keyboard.reach(browser.texts("summary")[0], "SUMMARY", is_back=True)
    keyboard.press(keys.SPACE)
    keyboard.reach("Why?")
    keyboard.reach("Stop")
    keyboard.press(keys.ENTER)
    browser.until(lambda: any("Stopped" in one for one in browser.texts(".it")))
    keyboard.hold("Stop")
    assert browser.find_barriers() == []
    keyboard.reach("Why?", is_back=True)
    keyboard.press(keys.ENTER)
    browser.until(lambda: browser.driver.title.startswith("Why") and browser.texts(".gates"))
    keyboard.hold_any("MAIN")


def test_rules_are_switched_and_rehearsed(garden_keyboard):
    keyboard, browser, keys = garden_keyboard, garden_keyboard.browser, garden_keyboard.keys
    keyboard.go("Rules")
    keyboard.reach("Switch off")
    for key, name in ((keys.ENTER, "Switch on"), (keys.SPACE, "Switch off")):
        keyboard.press(key)
        assert keyboard.hold(name)["card"] == "morning-water"
    keyboard.reach("A day in a picture", is_back=True)
    keyboard.press(keys.ENTER)
    browser.until(lambda: browser.all("svg.day polyline"))
    keyboard.hold("A day in a picture")
    keyboard.reach("Why?", is_back=True)
    keyboard.press(keys.SPACE)
    browser.until(lambda: any("begins by the clock" in one for one in browser.texts(".mono p")))
    # the list is asked for again: what stands below a rule stays, and the focus does
    browser.driver.execute_script(MARK)
    browser.until(lambda: browser.driver.execute_script(IS_NEW))
    assert keyboard.hold("Why?")["card"] == "morning-water"
    assert any("begins by the clock" in one for one in browser.texts(".mono p"))
    assert browser.find_barriers() == []


def test_the_memory_is_searched_and_one_may_think_again(garden_keyboard):
    keyboard, browser, keys = garden_keyboard, garden_keyboard.browser, garden_keyboard.keys
    keyboard.go("Memory")
    browser.until(lambda: len(browser.texts(".pre")) == 2)
    keyboard.step()
    while browser.driver.execute_script("return document.activeElement.id") != "words":
        keyboard.step()
        keyboard.hold_any("SELECT", "INPUT")
    keyboard.press("basil", keys.ENTER)
    browser.until(lambda: browser.texts(".pre") == ["the basil likes shade"])
    keyboard.hold_any("INPUT")
    keyboard.reach("Forget")
    for away in (
        lambda: keyboard.press(keys.ESCAPE),
        lambda: (keyboard.step(is_back=True), keyboard.step()),
    ):
        keyboard.press(keys.ENTER)
        keyboard.hold("Really forget?")
        away()
        keyboard.hold("Forget")
    hold_enter(browser)
    keyboard.hold("Really forget?")
    assert browser.find_barriers() == []
    assert browser.texts(".pre") == ["the basil likes shade"]
    keyboard.press(keys.SPACE)
    browser.until(lambda: browser.texts("main .card h2") == ["Nothing found"])
    keyboard.hold_any("DIV")  # the list that it was in
    assert browser.find_barriers() == []
    keyboard.reach("Search", is_back=True)


def hold_enter(browser):
    """Hold the key Enter down, so that it repeats."""
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
    for more in (
        {"type": "keyDown"},
        {"type": "keyDown", "autoRepeat": True},
        {"type": "keyDown", "autoRepeat": True},
        {"type": "keyUp"},
    ):
        browser.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {**key, **more})


def test_the_audit_the_log_and_why_keep_the_focus(garden_keyboard, garden):
    keyboard, browser, keys = garden_keyboard, garden_keyboard.browser, garden_keyboard.keys
    keyboard.go("Audit")
    browser.until(lambda: len(browser.texts("main .card")) > 1)
    keyboard.reach("Verify")
    keyboard.press(keys.ENTER)
    browser.until(lambda: "as they were written" in browser.texts("main .tag"))
    keyboard.hold("Verify")
    assert browser.find_barriers() == []
    keyboard.reach("Why?")
    keyboard.press(keys.ENTER)
    browser.until(lambda: browser.driver.title.startswith("Why") and browser.all("button.line"))
    keyboard.hold_any("MAIN")
    keyboard.reach("water")
    keyboard.press(keys.SPACE)
    browser.until(lambda: browser.all("#other0"))
    keyboard.hold_any("MAIN")
    keyboard.reach("What would it do?")
    keyboard.press(keys.ENTER)
    browser.until(lambda: len(browser.texts(".gates")) == 2)
    keyboard.hold("What would it do?")
    assert browser.find_barriers() == []
    keyboard.go("Log")
    garden.record(tool_call("read-soil", {}, 5, "t"))
    browser.until(lambda: "read-soil" in browser.texts("main h2"))
    keyboard.reach("Why?")
    card = keyboard.hold_any("BUTTON")["card"]
    garden.record(tool_call("read-soil", {}, 6, "t"))
    browser.until(lambda: browser.texts("main h2").count("read-soil") > 1)
    assert keyboard.hold("Why?")["card"] == card
    assert browser.find_barriers() == []


def test_the_focus_stays_while_a_question_comes_and_goes(garden_keyboard, garden):
    keyboard, browser, keys = garden_keyboard, garden_keyboard.browser, garden_keyboard.keys
    browser.until(lambda: browser.all("main .card svg"))
    keyboard.reach("ruled", "A")
    garden.record(tool_call("water", {"seconds": 3}, 7, "t"))
    browser.until(lambda: "1 question waits" in browser.texts("main h2"))
    assert keyboard.hold("ruled", "A")["card"] == "ruled"
    keyboard.reach("Approve", "A")
    garden.record(tool_call("water", {"seconds": 4}, 8, "t"))
    browser.until(lambda: browser.texts(".count") == ["2"])
    assert "Approve" in keyboard.hold_any("A")["words"]
    keyboard.press(keys.ENTER)
    browser.until(lambda: len(browser.all(".ask button:not([aria-disabled=true])")) == 4)
    assert browser.find_barriers() == []
    keyboard.reach("Deny")
    keyboard.press(keys.ENTER)
    browser.until(lambda: len(browser.all(".ask")) == 1)
    keyboard.hold_any("MAIN")  # and not on the question that still waits
    assert browser.find_barriers() == []
