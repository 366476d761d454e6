"""A real browser (Debian's Chromium), driven by selenium, for the tests of the page.

``make browser`` puts both below build/.  What a person does is done by the browser: it clicks and
types where a person would, and reads what is shown.
"""

import contextlib
import os
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ROOT / "build/browser/python"
UNPACKED = ROOT / "build/chromium"
WAIT_S = 120  # for what is there within a second where nobody else works
PHONE, DESK = (390, 844), (1180, 820)
_FLAGS = (
    "--headless=new",
    "--no-sandbox",  # as root, and where users have no namespaces: it sees our own pages alone
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-crash-reporter",
    "--disable-breakpad",
    "--hide-scrollbars",
)


def _program(name: str):
    """Return (path of *name*, environment that it needs), or None where there is none."""
    found = shutil.which(name)
    if found:
        return found, {}
    inside = UNPACKED / ("usr/lib/chromium" if name == "chromium" else "usr/bin") / name
    if not inside.exists():
        return None
    lib = UNPACKED / "usr/lib"
    places = [one for one in lib.glob("*-linux-*") if one.is_dir()]
    places += [below for one in places for below in one.iterdir() if below.is_dir()]
    fonts = UNPACKED / "fonts.conf"  # a browser without any font ends at its first page
    text = "<fontconfig>%s<cachedir>%s</cachedir></fontconfig>\n"
    folders = ("/usr/share/fonts", UNPACKED / "usr/share/fonts")
    lines = "".join("<dir>%s</dir>" % one for one in folders)
    fonts.write_text(text % (lines, UNPACKED / "font-cache"))
    needs = {"LD_LIBRARY_PATH": ":".join(map(str, places)), "FONTCONFIG_FILE": str(fonts)}
    return str(inside), needs


def require():
    """Skip the test where no browser is installed."""
    if not (PACKAGES.parent / "made").exists() or not (
        _program("chromium") and _program("chromedriver")
    ):
        pytest.skip("needs a browser: make browser")
    if str(PACKAGES) not in sys.path:
        sys.path.append(str(PACKAGES))


class Browser:
    """One window; *url*: of the page.

    driver  selenium's
    """

    def __init__(self, driver, url: str):
        self.driver, self.url = driver, url

    def show(self, size: tuple, is_dark: bool = False):
        """Give the window a size, and a colour scheme."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size == PHONE},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def log_in(self, token: str):
        """Open the page, and log in as a person does."""
        self.driver.get(self.url + "/")
        self.find("#token").send_keys(token)
        self.find("form button").click()
        self.until(lambda: self.texts("nav a"))

    def open(self, view: str):
        """Touch the name of a view; on a phone some are behind "More"."""

        def click() -> bool:
            for place in ("nav", "main"):
                links = self.all('%s a[href^="#%s"]' % (place, view))
                shown = [link for link in links if link.is_displayed()][:1]
                for link in shown or self.all('nav a[href^="#more"]') * (place == "nav"):
                    link.click()
            return self.driver.title.lower().startswith(view)

        self.until(click)

    def find(self, selector: str):
        """Return the element, once it is there."""
        self.until(lambda: self.all(selector))
        return self.all(selector)[0]

    def all(self, selector: str) -> list:
        return self.driver.find_elements("css selector", selector)

    def texts(self, selector: str) -> list:
        """Return what is shown in all elements."""
        read = "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)"
        return self.driver.execute_script(read, selector)

    def touch(self, name: str):
        """Click the button with this name, once it can be clicked."""
        find = (
            "return [...document.querySelectorAll('button:not([aria-disabled=true])')]"
            ".find((one) => one.innerText.trim() === arguments[0])"
        )

        def click() -> bool:
            found = self.driver.execute_script(find, name)
            if found is not None:
                self.click(found)
            return found is not None

        self.until(click)

    def click(self, element):
        """Click what may lie behind the bar, as a person who scrolls first."""
        center = "arguments[0].scrollIntoView({ block: 'center' })"
        self.driver.execute_script(center, element)
        element.click()

    def until(self, holds):
        """Wait until *holds()*; an assertion with what is shown when it takes ``WAIT_S``."""
        from selenium.common.exceptions import StaleElementReferenceException, TimeoutException
        from selenium.webdriver.support.ui import WebDriverWait

        wait = WebDriverWait(
            self.driver, WAIT_S, 0.05, ignored_exceptions=[StaleElementReferenceException]
        )
        try:
            wait.until(lambda _: holds())
        except TimeoutException:
            raise AssertionError(self.texts("body") + self.complaints()) from None

    def complaints(self) -> list:
        """Return what the browser says of the page's faults, since the last look."""
        return [
            one["message"] for one in self.driver.get_log("browser") if one["level"] == "SEVERE"
        ]

    def find_barriers(self) -> list:
        """Return what axe-core says keeps people from using what is shown."""
        import axe_core_python

        script = Path(axe_core_python.__file__).parent / "axe.min.js"
        self.driver.execute_script(script.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document).then((said) => done(said.violations))"
        )
        return [
            (one["id"], [node["html"][:200] for node in one["nodes"]], one["help"]) for one in found
        ]


@contextlib.contextmanager
def open_browser(url: str, folder):
    """Yield a ``Browser`` for the page at *url*; *folder*: for its profile."""
    require()
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    (chromium, needs), (chromedriver, _) = _program("chromium"), _program("chromedriver")
    options = Options()
    options.binary_location = chromium
    for flag in (*_FLAGS, "--user-data-dir=%s" % (folder / "browser")):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = Service(chromedriver, env={**os.environ, **needs})
    driver = webdriver.Chrome(service=service, options=options)
    try:
        driver.set_script_timeout(WAIT_S)
        yield Browser(driver, url)
    finally:
        driver.quit()
