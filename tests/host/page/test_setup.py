"""Setup, in a real browser: a board at a port, what fits it, a project, and its way onto it."""

import json

import browsers
import pytest
from browsers import DESK, PHONE
from pages import RunningPage
from sims import needs_micropython, needs_mpy_cross

from clawlite.host.page import setup as room
from clawlite.host.sim.sim import Sim

JOB = {"Content-Type": "application/json", "X-Claw": "1"}


@pytest.fixture
def world(state, tmp_path, monkeypatch, add_person):
    """Return the tokens; what Setup makes lies in the test's own folder."""
    monkeypatch.setenv("CLAWLITE_STATE", str(state))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return {role: add_person(role, role) for role in ("admin", "user", "viewer")}


def ask(page, token: str, **job) -> tuple:
    """Return (status, the lines that were said)."""
    headers = {**JOB, "Authorization": "Bearer " + token}
    status, _, body = page.ask("POST", "/setup", data=json.dumps(job), headers=headers)
    return status, [json.loads(line) for line in body.splitlines()]


def test_who_may_set_up_and_what_is_refused(world, state, monkeypatch):
    with RunningPage(state) as page:
        assert page.ask("POST", "/setup", data="{}", headers=JOB)[0] == 401
        for role in ("user", "viewer"):
            assert ask(page, world[role], do="look")[0] == 403
        status, headers, _ = page.log_in(world["admin"])
        cookie = {"Cookie": headers["Set-Cookie"].partition(";")[0], "Origin": page.url}
        assert page.ask("POST", "/setup", data='{"do": "look"}', headers=cookie)[0] == 403
        fresh = {**cookie, **JOB}
        assert page.ask("POST", "/setup", data='{"do": "look"}', headers=fresh)[0] == 200
        monkeypatch.setattr(room, "FRESH_S", -1)
        status, _, body = page.ask("POST", "/setup", data='{"do": "look"}', headers=fresh)
        assert status == 403 and b"log in again" in body
        monkeypatch.setattr(room, "FRESH_S", 300)
        for wrong in ({"do": "erase"}, {}, {"do": "make", "name": "../x", "template": "blink"}):
            status, (line,) = ask(page, world["admin"], **wrong)
            assert status == 200 and line["error"]
        status, (line,) = ask(page, world["admin"], do="make", name="x", template="../blink")
        assert line["error"]
        assert ask(page, world["admin"], do="x" * 5000)[0] == 413


@needs_micropython
@needs_mpy_cross
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
def test_a_person_sets_a_board_up(world, state, tmp_path, size):
    (tmp_path / "board").mkdir()
    with (
        Sim(folder=str(tmp_path / "board")) as board,
        RunningPage(state) as page,
        browsers.open_browser(page.url, tmp_path) as browser,
    ):
        browser.show(size)
        browser.log_in(world["admin"])
        browser.open("setup")
        browser.until(lambda: board.path in " ".join(browser.texts("main .card")))
        assert "virtual board" in browser.texts("main .card")[0]
        browser.touch("Choose")
        browser.until(lambda: "does not fit" in browser.texts("main .tag"))
        browser.click(browser.find("main details summary"))
        assert "files is for this machine" in " ".join(browser.texts("main details"))
        browser.touch("Make a project: blink")
        name = browser.find("#project")
        name.clear()
        name.send_keys("lamp")
        assert browser.find_barriers() == []
        browser.touch("Make it")
        browser.until(lambda: any("The project is in" in one for one in browser.texts("main p")))
        assert (tmp_path / "data/clawlite/projects/lamp/claw.yaml").exists()
        browser.touch("What would be written?")
        browser.touch("Flash it")
        browser.until(lambda: "Flashed" in browser.texts("main .tag"))
        assert any("lamp 1.0.0 is ready" in one for one in browser.texts("main p"))
        assert browser.find_barriers() == []
        wide = browser.driver.execute_script("return document.documentElement.scrollWidth")
        assert wide <= size[0]
        # its agent does not run: that alone may fail
        assert [one for one in browser.complaints() if "/ckp/g" not in one] == []
