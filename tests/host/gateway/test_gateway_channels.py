"""Channels that a gateway carries for a board: real MicroPython, a real gateway, and servers of the
platforms on loopback.
"""

import re

import pytest
from bot_server import TOKEN, BotServer
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
