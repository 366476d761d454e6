"""People at the page use boards behind a gateway: real MicroPython, real gateway, real page."""

import asyncio
import json
import os
import signal
import time

import browsers
import pytest
from agents import clawlite
from board_beds import AGENTS
from bot_server import TOKEN, BotServer
from gateways import flashed, gateway, process_of
from pages import RunningPage, initialize
from relayed_board import ADMIN, USER, Garden, wait
from sims import needs_micropython, needs_mpy_cross
from swarm_team import delegate, start
from swarm_team import project as member

from clawlite.host.sim.sim import Sim
from clawlite.linux.secrets import people

pytestmark = [needs_micropython, needs_mpy_cross]
ROLES = {"ada": "admin", "bea": "user", "vic": "viewer"}
PEOPLE = [{"id": str(ADMIN), "role": "admin"}, {"id": str(USER), "role": "user"}]
BOT = {
    "bot": {
        "type": "telegram",
        "transport": "polling",
        "access_control": {"mode": "role-based", "roles": PEOPLE},
    }
}


class Person:
    """One person's WebSocket to the board."""

    def __init__(self, page, token: str, path: str):
        self._page, self._last, self.told = page, 0, []
        headers = {"Authorization": "Bearer " + token}
        self._socket = page.do(page.http.ws_connect(page.url + path, headers=headers))

    def ask(self, method: str, **params) -> dict:
        """Return the answer: a result, or an error."""
        self._last += 1
        return self._page.do(self._ask(method, params))

    def begin(self):
        return self.ask("claw.initialize", **initialize()["params"])

    async def _ask(self, method: str, params: dict) -> dict:
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        await self._socket.send_json(message)
        while True:
            said = await asyncio.wait_for(self._socket.receive_json(), 60)
            if said.get("id") == self._last:
                return said
            self.told.append(said)

    def hear(self, method: str, holds=lambda params: True) -> dict:
        """Return the params of the next notification *method* for which *holds*."""

        def find():
            for one in self.told:
                if one.get("method") == method and holds(one["params"]):
                    self.told.remove(one)
                    return one["params"]

        async def listen():
            while True:
                found = find()
                if found is not None:
                    return found
                self.told.append(await asyncio.wait_for(self._socket.receive_json(), 60))

        return self._page.do(listen())


HEAP = "320k"  # 64-bit words: as 160 KB of a board


class World(Garden):
    """The garden on a board, its gateway, and a page with people of each role."""

    def __init__(self, tmp_path, firmware, channels: dict, toml: str = "", **options):
        super().__init__(tmp_path, firmware, channels, toml, **options)
        self.state = tmp_path / "state"
        self.tokens, self.people = {}, []
        for name, role in ROLES.items():
            self.tokens[name], digest = people.make_token(name)
            people.add(str(self.state / ".gateway"), name, role, digest)

    def board(self) -> Sim:
        self.sims.append(Sim(folder=str(self.flash), heap=HEAP).__enter__())
        return self.sims[-1]

    def begin(self, secret: str = TOKEN):
        """Start all of it, and wait until the board can be reached."""
        self.sim = self.board()
        self.gateway = self.serve(self.sim, secret).__enter__()
        self.page = RunningPage(self.state).__enter__()
        doors = self.state / ".gateway/boards"
        wait(lambda: list(doors.glob("*/control.sock")) and self.rows(), self.gateway.errors)
        (row,) = self.rows()
        self.name, self.door = row["board"], next(doors.glob("*/control.sock"))

    def rows(self, name: str = "ada") -> list:
        headers = {"Authorization": "Bearer " + self.tokens[name], "Accept": "application/json"}
        return json.loads(self.page.ask("GET", "/", headers=headers)[2])["agents"]

    def join(self, name: str) -> Person:
        (row,) = self.rows(name)
        person = Person(self.page, self.tokens[name], row["ckp"])
        assert "result" in person.begin(), name
        return person

    def end(self):
        if hasattr(self, "page"):
            self.page.__exit__()
        if hasattr(self, "gateway"):
            self.gateway.__exit__(None, None, None)
        super().end()


@pytest.fixture(scope="module")
def firmware(tmp_path_factory):
    return tmp_path_factory.mktemp("firmware")


@pytest.fixture
def bot():
    with BotServer(TOKEN) as server:
        yield server


@pytest.fixture
def worlds(tmp_path, firmware):
    """A function that makes a ``World``."""
    made = []

    def make(channels=None, toml="", **options):
        made.append(World(tmp_path, firmware, channels or {}, toml, **options))
        made[-1].begin()
        return made[-1]

    yield make
    for world in made:
        world.end()


def make_task(person, text: str, id: str = "t1") -> str:
    message = {"role": "user", "content": text}
    said = person.ask("claw.task.create", task_id=id, message=message)
    assert said.get("result", {}).get("state") == "working", said
    person.ask("claw.task.subscribe", task_id=id)
    return id


def is_ended(params: dict) -> bool:
    return params["state"] in ("completed", "failed", "canceled")


def test_people_share_the_line_to_a_board_with_their_own_rights(worlds):
    world = worlds()
    (row,) = world.rows()
    assert (row["agent"], row["role"], row["online"], row["why"]) == (world.name, "admin", True, "")
    ada, bea, vic = (world.join(name) for name in ROLES)
    assert ada.ask("claw.status")["result"]["state"] == "READY"
    assert ada.ask("claw.approval.subscribe")["result"] == {"approvals": []}
    assert ada.ask("claw.log.subscribe")["result"] == {"subscribed": True}
    make_task(bea, "water the beds")
    assert bea.hear("claw.task.updated")["state"] == "input_required"
    asked = ada.hear("claw.approval.updated")
    assert (asked["tool"], asked["asker"], asked["state"]) == ("water", "operator/bea", "waiting")
    assert asked["arguments"] == {"seconds": 1} and asked["timeout_ms"] == 300000
    refused = bea.ask("claw.approval.answer", number=asked["number"], is_approved=True)
    assert refused["error"]["code"] == -32011 and not world.read("pump")
    assert (
        vic.ask("claw.task.create", task_id="v", message={"role": "user", "content": "x"})["error"][
            "code"
        ]
        == -32011
    )
    answered = ada.ask("claw.approval.answer", number=asked["number"], is_approved=True)
    assert answered["result"] == {"acknowledged": True}
    ended = bea.hear("claw.task.updated", is_ended)
    assert ended["result"] == {"text": "Done. Watered for 1 s."} and world.read("pump") == "1"
    gone = ada.hear("claw.approval.updated")
    assert (gone["state"], gone["by"]) == ("approved", "ada")
    again = ada.ask("claw.approval.answer", number=asked["number"], is_approved=True)
    assert again["result"] == {"acknowledged": False}
    call = ada.hear("claw.log.event", lambda one: one["event"] == "tool.call")
    assert call["caller"] == "operator/bea" and any("rule ask" in line for line in call["why"])


def test_nobody_is_an_admin_where_the_image_lets_the_gateway_speak_for_users_alone(worlds):
    world = worlds(roles="")
    ada, bea = world.join("ada"), world.join("bea")
    make_task(bea, "water the beds")
    assert bea.hear("claw.task.updated")["state"] == "input_required"
    for method, params in (
        ("claw.approval.subscribe", {}),
        ("claw.approval.answer", {"number": 1, "is_approved": True}),
        ("claw.shutdown", {}),
        ("claw.people.add", {}),
    ):
        assert ada.ask(method, **params)["error"]["code"] == -32011, method
    talks = ada.ask("claw.task.create", task_id="o", message={"role": "user", "content": "x"})
    assert "result" in talks
    other = bea.ask("claw.rule.list", actor="ada")["error"]
    assert "acts in no other name" in other["message"]
    # nobody else ends the turn of somebody, and its end is told
    assert "error" in world.join("vic").ask("claw.task.cancel", task_id="t1")
    assert bea.ask("claw.task.cancel", task_id="t1")["result"]["state"] == "canceled"
    assert not world.read("pump")


THIRST = """
[[rule]]
name = "thirst"
every = "4s"
call = "water"
arguments = { seconds = 1 }
"""


def policies(**more) -> list:
    rules = [
        {
            "id": "ask",
            "action": "require-approval",
            "scope": "tool",
            "match": {"name": "water"},
            "approval": {"timeout_seconds": 300},
        },
        {"id": "all", "action": "allow", "scope": "all"},
    ]
    return [{"inline": {"rules": rules, **more}}]


def questions(bot) -> list:
    """Return the places in ``sent`` of the questions that have buttons."""
    return [at for at, one in enumerate(bot.sent) if "reply_markup" in one]


def make_toml(bot) -> str:
    return f'[telegram]\nvia = "gateway"\nbase_url = "{bot.url}"\n'


def test_a_rule_of_a_board_asks_and_a_tap_on_a_phone_lets_it_water(worlds, bot, tmp_path):
    spec = {"policies": policies(audit={"destination": "file"})}
    world = worlds(BOT, make_toml(bot), rules=THIRST, **spec)
    with browsers.open_browser(world.page.url, tmp_path) as browser:
        browser.show(browsers.PHONE)
        browser.log_in(world.tokens["ada"])
        browser.until(lambda: "online" in browser.texts(".tag"))
        browser.open("talk")
        browser.find("#message").send_keys("echo hello")
        browser.touch("Send")
        browser.until(lambda: "You said: hello" in browser.texts(".it"))
        browser.until(lambda: browser.texts(".count") == ["1"])
        browser.open("approve")
        browser.until(lambda: browser.texts(".ask"))
        (card,) = browser.texts(".ask")
        assert card.startswith("water?") and "rule ask asks first" in card and "thirst" in card
        assert not world.read("pump")
        browser.open("log")
        browser.open("approve")
        browser.touch("Approve")
        wait(lambda: world.read("pump") == "1", world.gateway.errors)
        said = "Approved by ada: water"
        browser.until(lambda: any(said in one for one in browser.texts("main p")))
        wait(lambda: any(said in text for _, text in bot.edits()), bot.edits)
        # the next one is answered in the chat
        wait(lambda: len(questions(bot)) > 1, lambda: bot.sent, world.gateway.errors)
        bot.tap(ADMIN, "Approve", questions(bot)[-1])
        wait(lambda: world.read("pump") == "11", world.gateway.errors, bot.notices)
        by = f"Approved by bot/{ADMIN}: water"
        browser.until(lambda: any(by in one for one in browser.texts("main p")))
        browser.open("log")
        browser.until(lambda: any("rule ask" in one for one in browser.texts("li")))
    told = clawlite("audit", "--dir", world.flash, "--json", cwd=tmp_path)
    calls = [one for one in json.loads(told.stdout) if one.get("tool") == "water"]
    assert [one["by"] for one in calls if one.get("by")][:2] == ["ada", f"bot/{ADMIN}"], calls


MEASURED = """
[[reading]]
name = "running"
pin = "pump"
every = "1s"
"""


def test_the_card_of_a_board_has_a_curve_and_pins(worlds, tmp_path):
    world = worlds(rules=MEASURED)
    vic = world.join("vic")
    pins = vic.ask("claw.pin.list")
    assert pins["result"] == {"pins": [{"name": "pump", "kind": "output", "value": 0, "of": 1}]}
    wait(lambda: list(world.flash.glob("state/readings/*")), world.gateway.errors)
    for at_s, value in ((int(time.time()) - 7200, 1), (int(time.time()) - 3700, 0)):
        with open(world.flash / f"state/readings/{at_s // 86400}", "a") as file:
            file.write(f'["running",{at_s},[0,{value}]]\n')
    with browsers.open_browser(world.page.url, tmp_path) as browser:
        browser.show(browsers.PHONE)
        browser.log_in(world.tokens["vic"])
        browser.until(lambda: browser.all("main .card figure svg polyline"))
        (card,) = browser.texts("main .card")
        assert "running, last day, 0 to 1" in card and "pump, output" in card
        assert browser.find_barriers() == []


def test_a_board_that_has_gone_says_since_when(worlds):
    world = worlds()
    ada = world.join("ada")
    make_task(ada, "fill")
    wait(lambda: world.read("filled") == "x", world.gateway.errors)
    world.sim.__exit__()
    world.sims.remove(world.sim)
    ended = ada.hear("claw.task.updated", is_ended)
    assert "is not connected any more, since 20" in ended["result"]["error"]
    wait(lambda: not world.door.exists(), world.gateway.errors)
    (row,) = world.rows()
    assert not row["online"] and "the board is not connected; it was there last at 20" in row["why"]
    headers = {"Authorization": "Bearer " + world.tokens["ada"]}
    status, _, body = world.page.ask("POST", row["ckp"], headers=headers, json=initialize())
    assert status == 503
    assert "the board is not connected; it was there last at 20" in json.loads(body)["error"]


def test_a_board_that_was_reset_asks_again_and_old_buttons_do_nothing(worlds, bot):
    world = worlds(BOT, make_toml(bot))
    bot.message(USER, "water the beds")
    wait(lambda: questions(bot), lambda: bot.sent, world.gateway.errors)
    (first,) = questions(bot)
    bot.tap(USER, "Approve", first)
    wait(lambda: bot.notices() == ["Only an admin approves."], bot.notices)
    bot.tap(ADMIN, "Show all", first)
    wait(lambda: len(questions(bot)) == 2, lambda: bot.sent, world.gateway.errors)
    assert "seconds" in bot.sent[questions(bot)[1]]["text"]
    bot.tap(ADMIN, "", first, data="forged")
    wait(lambda: "This question has ended. Nothing was done." in bot.notices(), bot.notices)
    os.kill(process_of(world.sim), signal.SIGKILL)  # the board is reset
    wait(lambda: len(questions(bot)) == 3, lambda: bot.sent, world.gateway.errors)
    bot.tap(ADMIN, "Approve", first)  # of the board before, where it had the same number
    wait(
        lambda: any("No call with that number waits" in one["text"] for one in bot.sent),
        lambda: bot.sent,
        world.gateway.errors,
    )
    assert not world.read("pump")
    bot.tap(ADMIN, "Deny", questions(bot)[2])
    wait(lambda: any("Denied by bot/" in text for _, text in bot.edits()), bot.edits)
    assert not world.read("pump")


def test_the_page_shows_the_swarm_of_a_board(tmp_path, firmware):
    lead = member(tmp_path, "lead", agents=AGENTS)
    image = member(tmp_path, "shed", toml="[gateway]\n", agents=AGENTS)
    flash, state = flashed(image, tmp_path / "flash", firmware), tmp_path / "state"
    token, digest = people.make_token("vic")
    people.add(str(state / ".gateway"), "vic", "viewer", digest)
    with (
        Sim(folder=str(flash), heap=HEAP) as sim,
        start(tmp_path, lead) as leader,
        gateway(tmp_path, tmp_path / "shed", "--port", sim.path) as running,
        RunningPage(state) as page,
        browsers.open_browser(page.url, tmp_path) as browser,
    ):
        wait(lambda: list(state.glob(".gateway/boards/*/control.sock")), running.errors)
        browser.show(browsers.DESK)
        browser.log_in(token)
        browser.open("swarm")
        browser.until(lambda: any("shed worker, 1 process" in one for one in browser.texts("li")))
        assert "team" in browser.texts("main h2")
        assert "result" in delegate(leader, "look at 4")
        browser.until(lambda: "look at 4" in browser.texts(".pre"))
        assert browser.texts(".problem") == [] and browser.find_barriers() == []
