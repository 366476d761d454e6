"""Makes the pictures of the page and of a report, for docs/images, from a real run: ``make
page-pictures``, which needs ``make browser``.

An agent of the template greenhouse runs, a person logs in and asks for water, and what the browser
shows is kept.  The report is that of the same agent.
"""

import contextlib
import subprocess
import tempfile
from pathlib import Path

import browsers
from agents import Agent, environment, eventually, linux, make_greenhouse
from browsers import PHONE
from pages import RunningPage

from clawlite.linux.secrets import people

FOLDER = Path(__file__).resolve().parents[2] / "docs/images"
NAME = "greenhouse"
DESK = (960, 900)


def make_images(folder: Path):
    """Write all pictures, with what a run leaves below *folder*."""
    FOLDER.mkdir(exist_ok=True)
    image, state = make_greenhouse(folder / NAME), folder / "state"
    token, digest = people.make_token("ada")
    people.add(str(state / NAME), "ada", "admin", digest)
    words, env = linux("serve", image, "--socket"), {"CLAWLITE_STATE": state}
    with contextlib.ExitStack() as stack:
        stack.enter_context(Agent(words, folder / "home", cwd=folder, env=env))
        eventually((state / NAME / "control.sock").exists)
        page = stack.enter_context(RunningPage(state))
        browser = stack.enter_context(browsers.open_browser(page.url, folder))
        browser.show(PHONE)
        browser.log_in(token)
        take_views(browser)
        report = str(folder / "report.html")
        subprocess.run(
            linux("report", report, image), env=environment(folder / "home", **env), check=True
        )
        browser.show(DESK)
        browser.driver.get("file://" + report)
        save(browser, "report")


def take_views(browser):
    """Talk, approve, and look at what came of it."""
    for said in ("hello", "water the plants for 5 seconds"):
        browser.open("talk")
        browser.find("#message").send_keys(said)
        browser.touch("Send")
    browser.until(lambda: browser.texts(".count") == ["1"])
    browser.open("approve")
    browser.until(lambda: browser.texts(".ask"))
    save(browser, "approve")
    browser.touch("Approve")
    browser.open("talk")
    browser.until(lambda: any("Watered" in one for one in browser.texts(".it")))
    browser.show(PHONE, True)
    save(browser, "talk")


def save(browser, name: str):
    """Keep what is shown, once it stands still."""
    browser.driver.execute_async_script("const done = arguments[0]; setTimeout(done, 700)")
    browser.driver.save_screenshot(str(FOLDER / (name + ".png")))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        make_images(Path(place))
