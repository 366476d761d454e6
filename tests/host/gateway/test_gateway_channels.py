"""Channels that a gateway carries for a board: real MicroPython, a real gateway, and servers of the
platforms on loopback.
"""

import json
import os
import re
import signal
import socket
import threading

import pytest
from bot_server import TOKEN, BotServer
from brokers import Broker, Peer
from channel_world import KEY, signed
from gateways import process_of, script
from relayed_board import ADMIN, USER, Garden, wait
from sims import needs_micropython, needs_mpy_cross

pytestmark = [needs_micropython, needs_mpy_cross]
PEOPLE = [{"id": str(ADMIN), "role": "admin"}, {"id": str(USER), "role": "user"}]
BOT = {
    "bot": {
        "type": "telegram",
        "transport": "polling",
        "access_control": {"mode": "role-based", "roles": PEOPLE},
    }
}


@pytest.fixture
def bot():
    with BotServer(TOKEN) as server:
        yield server


@pytest.fixture
def gardens(tmp_path, firmware):
    """A function that makes a ``Garden`` with a bot at *url*."""
    made = []

    def make(url, channels=BOT, toml="", **options):
        if url:
            toml = f'[telegram]\nvia = "gateway"\nbase_url = "{url}"\n{toml}'
        made.append(Garden(tmp_path, firmware, channels, toml, **options))
        return made[-1]

    yield make
    for garden in made:
        garden.end()


def texts(bot, chat: int) -> list:
    """Return what was sent to *chat*."""
    return [one["text"] for one in bot.sent if one["chat_id"] == str(chat)]


def asked(bot, running, chat: int = ADMIN) -> str:
    """Wait until an approval is asked in *chat*; return the number to answer with."""
    found = lambda: re.findall(r"/approve (\d+)", "\n".join(texts(bot, chat)))
    wait(found, lambda: bot.sent, running.errors)
    return found()[-1]


def test_a_message_makes_a_board_ask_a_person_and_water(gardens, bot):
    garden = gardens(bot.url)
    with garden.serve(garden.board(), TOKEN) as running:
        bot.message(USER, "water the beds")
        number = asked(bot, running)
        wait(lambda: texts(bot, USER) == ["This waits for approval."], lambda: bot.sent)
        assert not garden.read("pump")
        assert f"bot/{USER} asked for it" in texts(bot, ADMIN)[0]
        bot.message(USER, f"/approve {number}")
        wait(lambda: len(texts(bot, USER)) == 2, lambda: bot.sent, running.errors)
        assert texts(bot, USER)[1] == "Only an admin approves." and not garden.read("pump")
        bot.message(ADMIN, f"/approve {number}")
        wait(lambda: len(texts(bot, USER)) == 3, lambda: bot.sent, running.errors)
        assert texts(bot, USER)[2] == "Done. Watered for 1 s."
        assert texts(bot, ADMIN)[1:] == ["Approved."] and garden.read("pump") == "1"
        assert TOKEN not in running.errors()


def test_a_gateway_that_was_restarted_gets_the_answer_of_the_turn_that_went_on(gardens, bot):
    garden = gardens(bot.url)
    sim = garden.board()
    with garden.serve(sim, TOKEN) as running:
        bot.message(USER, "fill")
        wait(lambda: garden.read("filled") == "x", lambda: bot.sent, running.errors)
    garden.write("full")
    with garden.serve(sim, TOKEN) as running:
        wait(lambda: texts(bot, USER), lambda: bot.sent, running.errors)
        bot.message(USER, "echo next")
        wait(lambda: len(texts(bot, USER)) > 1, lambda: bot.sent, running.errors)
        assert texts(bot, USER) == ["The tank is full.", "You said: next"]
    assert garden.read("filled") == "x"


BY_ITSELF = """
[[rule]]
name = "dry"
every = "1s"
at_most = "1/week"
call = "fill"
then = [ { say = "Filled by itself: {result}", to = "admins" } ]
"""


def test_a_rule_of_a_board_says_something_to_an_admin_who_never_wrote(gardens, bot):
    garden = gardens(bot.url, rules=BY_ITSELF)
    garden.write("full")
    with garden.serve(garden.board(), TOKEN) as running:
        wait(lambda: texts(bot, ADMIN), lambda: bot.sent, running.errors)
        assert texts(bot, ADMIN) == ["[rule dry] Filled by itself: The tank is full."]
        bot.message(USER, "/rules off dry")
        wait(lambda: texts(bot, USER), lambda: bot.sent, running.errors)
        assert texts(bot, USER) == ["Only an admin switches rules."]
        bot.message(ADMIN, "/rules off dry")
        bot.message(ADMIN, "/rules")
        wait(lambda: len(texts(bot, ADMIN)) == 3, lambda: bot.sent, running.errors)
        assert texts(bot, ADMIN)[1] == "Rule dry is off."
        assert "dry                  every 1s: fill()  (off)" in texts(bot, ADMIN)[2]
    assert garden.read("filled") == "x"


def test_a_question_of_a_boards_rule_is_answered_by_an_admin(gardens, bot):
    rule = BY_ITSELF.replace('"fill"', '"water"\narguments = { seconds = 1 }')
    garden = gardens(bot.url, rules=rule)
    with garden.serve(garden.board(), TOKEN) as running:
        number = asked(bot, running)
        assert "rule/dry asked for it" in texts(bot, ADMIN)[0]
        bot.message(ADMIN, f"/approve {number}")
        said = "[rule dry] Filled by itself: Watered for 1 s."
        wait(lambda: said in texts(bot, ADMIN), lambda: bot.sent, running.errors)
        assert garden.read("pump") == "1" and not texts(bot, USER)


def post(port: int, who: str, text: str, found: list):
    """Send a signed message, and add (status, answer) to *found*."""
    body = json.dumps({"from": who, "text": text}).encode()
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(signed(body))
        data = b""
        while b"\r\n\r\n" not in data or not data.endswith(b"}"):
            data += client.recv(65536)
    head, _, answer = data.partition(b"\r\n\r\n")
    found.append((int(head.split()[1]), json.loads(answer)))


def test_a_webhook_and_its_approval(gardens, bot, port):
    people = [{"id": "ann", "role": "admin"}, {"id": "bob", "role": "user"}]
    control = {"mode": "role-based", "roles": people}
    hook = {"hook": {"type": "webhook", "transport": "webhook", "access_control": control}}
    toml = f'[webhook]\nvia = "gateway"\naddress = "127.0.0.1:{port}"\n'
    garden = gardens(None, hook, toml)
    with garden.serve(garden.board(), KEY) as running:

        def is_open() -> bool:
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        wait(is_open, running.errors)
        found, refused, approved = [], [], []
        asks = threading.Thread(target=post, args=(port, "bob", "water the beds", found))
        asks.start()
        post(port, "eve", "echo hello", refused)
        assert refused == [(403, {"error": "stranger"})]

        def answers() -> bool:
            post(port, "ann", "/approve", approved)
            number = re.findall(r"Waiting: (\d+)\.", approved[-1][1]["text"])
            post(port, "ann", "/approve " + "".join(number), approved)
            return approved[-1] == (200, {"text": "Approved."})

        wait(answers, lambda: approved, running.errors)
        asks.join()
        assert found == [(200, {"text": "Done. Watered for 1 s."})]
        assert garden.read("pump") == "1"


def test_a_queue_and_its_approval(gardens, tmp_path):
    broker = Broker(tmp_path / "broker")
    people = [{"id": "ann", "role": "admin"}, {"id": "bob", "role": "user"}]
    jobs = {
        "type": "queue",
        "transport": "polling",
        "access_control": {"mode": "role-based", "roles": people},
        "trigger": {"queue_name": "garden/in/+", "max_parallel": 2, "overlap_policy": "queue"},
    }
    toml = (
        f'[mqtt]\nvia = "gateway"\naddress = "mqtt://127.0.0.1:{broker.port}"\n'
        'replies = { jobs = "garden/out/+" }\n'
    )
    garden = gardens(None, {"jobs": jobs}, toml)
    peer = Peer(broker.port, "garden/out/#")
    try:
        with garden.serve(garden.board(), "none") as running:
            # the session at the broker begins with the first connection
            wait(lambda: "garden/in/+" in broker.log.read_text(), running.errors)
            peer.publish("garden/in/bob", "water the beds", b"c1")
            asked = lambda: re.findall(r"/approve (\d+)", str(peer.heard))
            wait(asked, lambda: peer.heard, running.errors)
            peer.publish("garden/in/ann", f"/approve {asked()[0]}")
            done = ("garden/out/bob", "Done. Watered for 1 s.", b"c1")
            wait(lambda: done in peer.heard, lambda: peer.heard, running.errors)
            assert garden.read("pump") == "1"
            assert [one for one in peer.heard if one[0] == "garden/out/ann"][1][1] == "Approved."
    finally:
        peer.close()
        broker.stop()


def test_a_stranger_is_paired_at_the_console_and_stays_so(gardens, bot):
    control = {"mode": "pairing", "pairing": {"code_expiry_minutes": 5, "max_pending": 2}}
    pairing = {"bot": {"type": "telegram", "transport": "polling", "access_control": control}}
    garden = gardens(bot.url, pairing)
    sim = garden.board()
    with garden.serve(sim, TOKEN) as running:
        bot.message(USER, "echo hello")
        code = lambda: re.findall(r"/pair (\w+)", str(texts(bot, USER)))
        wait(code, lambda: bot.sent, running.errors)
        said = script(garden.path, sim.facts["id"], f"/pair {code()[0]}", "/channels")
        assert "is paired with channel bot" in said and "bot pairing" in said
        wait(lambda: len(texts(bot, USER)) == 2, lambda: bot.sent, running.errors)
    sim.__exit__()
    garden.sims.clear()
    with garden.serve(garden.board(), TOKEN) as running:
        bot.message(USER, "echo hello again")
        wait(lambda: len(texts(bot, USER)) == 3, lambda: bot.sent, running.errors)
        assert texts(bot, USER)[1:] == [
            "You are paired with this agent now.",
            "You said: hello again",
        ]


def test_a_board_that_was_reset_acts_once_and_asks_again(gardens, bot):
    garden = gardens(bot.url)
    sim = garden.board()
    with garden.serve(sim, TOKEN) as running:
        bot.message(USER, "water the beds")
        asked(bot, running)
        os.kill(process_of(sim), signal.SIGKILL)  # the board is reset; nothing has begun
        questions = lambda: [text for text in texts(bot, ADMIN) if "/approve" in text]
        wait(lambda: len(questions()) == 2, lambda: bot.sent, running.errors)
        bot.message(ADMIN, f"/approve {asked(bot, running)}")
        wait(lambda: "Done. Watered for 1 s." in texts(bot, USER), lambda: bot.sent, running.errors)
        assert garden.read("pump") == "1"
        bot.message(USER, "fill")
        wait(lambda: garden.read("filled") == "x", lambda: bot.sent, running.errors)
        os.kill(process_of(sim), signal.SIGKILL)  # the board is reset; nobody knows what it did
        told = lambda: [text for text in texts(bot, USER) if "fill may have happened" in text]
        wait(told, lambda: bot.sent, running.errors)
        assert garden.read("filled") == "x"
